/* regex.c -- recursive descent over an expression; the depth is bounded. */
#include "regex.h"

#include <string.h>

#include "base/unicode.h"

typedef struct parser {
    const char *text;
    size_t at, n;
    uint32_t depth;
    lb_arena *arena;
    lb_err *err;
} parser;

static bool fail(parser *p, const char *what) {
    return lb_err_set(p->err, LB_SYNTAX, "expression '%s': character %zu: %s", p->text, p->at + 1,
                      what);
}

static bool looking_at(const parser *p, const char *s) {
    size_t n = strlen(s);
    return n <= p->n - p->at && memcmp(p->text + p->at, s, n) == 0;
}

static bool take(parser *p, const char *s) {
    if (!looking_at(p, s)) {
        return false;
    }
    p->at += strlen(s);
    return true;
}

static const char *source_since(parser *p, size_t from) {
    return lb_strndup(p->arena, p->text + from, p->at - from, p->err);
}

/* A growing array in the arena; `n` elements so far, room for powers of two from 4 on. */
static void *grow(parser *p, void *old, size_t n, size_t elem_bytes) {
    if (n < 4 ? n != 0 : (n & (n - 1)) != 0) {
        return old;
    }
    void *new = lb_alloc_n(p->arena, n < 4 ? 4 : 2 * n, elem_bytes, p->err);
    if (new != NULL && n > 0) {
        memcpy(new, old, n * elem_bytes);
    }
    return new;
}

static bool character(parser *p, uint32_t *code) {
    size_t n = lb_utf8_decode(p->text + p->at, p->n - p->at, code);
    p->at += n;
    return n > 0 || fail(p, "a character was expected");
}

static bool hex_code(parser *p, uint32_t *code) {
    uint32_t value = 0;
    size_t digits = 0;
    while (p->at < p->n && p->text[p->at] != '}') {
        const char *hex = "0123456789ABCDEF";
        const char *digit = strchr(hex, p->text[p->at]);
        if (digit == NULL || digits++ == 6) {
            return fail(p, "\\x{...} takes 1 to 6 digits 0-9 A-F");
        }
        value = value * 16 + (uint32_t)(digit - hex);
        p->at++;
    }
    if (!take(p, "}") || digits == 0 || value >= LB_UNICODE_END) {
        return fail(p, "\\x{...} is no code point");
    }
    *code = value;
    return true;
}

/* The mask behind "\p{": a major class or a category. */
static bool property(parser *p, uint32_t *mask) {
    static const struct {
        char name;
        uint32_t mask;
    } majors[] = {{'L', LB_UC_L}, {'M', LB_UC_M}, {'N', LB_UC_N}, {'P', LB_UC_P},
                  {'S', LB_UC_S}, {'Z', LB_UC_Z}, {'C', LB_UC_C}};
    const char *close = memchr(p->text + p->at, '}', p->n - p->at);
    size_t n = close == NULL ? 0 : (size_t)(close - (p->text + p->at));
    const char *name = p->text + p->at;
    *mask = 0;
    for (size_t i = 0; n == 1 && i < sizeof majors / sizeof majors[0]; i++) {
        *mask |= majors[i].name == name[0] ? majors[i].mask : 0;
    }
    for (int c = 0; n == 2 && c < LB_N_CATEGORIES; c++) {
        *mask |= memcmp(lb_category_name((lb_category)c), name, 2) == 0 ? LB_UC(c) : 0;
    }
    p->at += n + 1;
    return *mask != 0 || fail(p, "\\p{...} is no general category");
}

/* One element of a class or a class of its own: sets *mask, or *mask = 0 and *code. */
static bool element(parser *p, uint32_t *mask, uint32_t *code) {
    static const char plain_escapes[] = "\\.$^|()[]{}?*+-/\"'`~,";
    *mask = 0;
    if (take(p, "\\p{")) {
        return property(p, mask);
    }
    if (take(p, "\\s") || take(p, "\\S")) {
        bool negated = p->text[p->at - 1] == 'S';
        *mask = negated ? LB_UC_ALL & ~LB_UC_SPACE : LB_UC_SPACE;
        return true;
    }
    if (take(p, "\\d")) {
        *mask = LB_UC(LB_ND);
        return true;
    }
    if (take(p, "\\x{")) {
        return hex_code(p, code);
    }
    if (!take(p, "\\")) {
        return character(p, code);
    }
    char c = p->at < p->n ? p->text[p->at++] : '\0';
    *code = (uint8_t)(c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c);
    if (c == '\0' || (strchr("nrt", c) == NULL && strchr(plain_escapes, c) == NULL)) {
        return fail(p, "unknown escape");
    }
    return true;
}

static bool add_range(parser *p, lg_class *cls, uint32_t first, uint32_t last) {
    lg_range *ranges = grow(p, (void *)(uintptr_t)cls->ranges, cls->n_ranges, sizeof *ranges);
    if (ranges == NULL) {
        return false;
    }
    ranges[cls->n_ranges++] = (lg_range){first, last};
    cls->ranges = ranges;
    return true;
}

/* The script Han. Source: Scripts.txt of Unicode 15.1. */
static const lg_range han[] = {
    {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
    {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
    {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
    {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
    {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
    {0x30000, 0x3134A}, {0x31350, 0x323AF},
};

static bool add_han(parser *p, lg_class *cls) {
    for (size_t i = 0; i < sizeof han / sizeof han[0]; i++) {
        if (!add_range(p, cls, han[i].first, han[i].last)) {
            return false;
        }
    }
    return true;
}

/* Elements up to ']' or "&&". */
static bool class_elements(parser *p, lg_class *cls) {
    while (p->at < p->n && !looking_at(p, "]") && !looking_at(p, "&&")) {
        if (take(p, "\\p{Han}")) {
            if (!add_han(p, cls)) {
                return false;
            }
            continue;
        }
        uint32_t mask, first;
        if (looking_at(p, "[")) {
            return fail(p, "'[' in a class must be escaped");
        }
        if (!element(p, &mask, &first)) {
            return false;
        }
        if (mask != 0) {
            cls->mask |= mask;
            continue;
        }
        uint32_t last = first;
        if (looking_at(p, "-") && p->at + 1 < p->n && p->text[p->at + 1] != ']') {
            p->at++;
            if (!element(p, &mask, &last)) {
                return false;
            }
            if (mask != 0 || last < first) {
                return fail(p, "a range must ascend between two characters");
            }
        }
        if (!add_range(p, cls, first, last)) {
            return false;
        }
    }
    return true;
}

static bool class_body(parser *p, lg_class *cls) {
    cls->negated = take(p, "^");
    if (!class_elements(p, cls)) {
        return false;
    }
    lg_class except = {.mask = 0};
    if (take(p, "&&")) {
        if (cls->negated || !take(p, "[^") || !class_elements(p, &except) || except.mask != 0 ||
            !take(p, "]")) {
            return fail(p, "&& takes [^...] with characters, ranges and \\p{Han}");
        }
    }
    cls->except = except.ranges;
    cls->n_except = except.n_ranges;
    return take(p, "]") || fail(p, "']' is missing");
}

static bool class_item(parser *p, lg_class *cls) {
    size_t from = p->at;
    *cls = (lg_class){.mask = 0};
    if (take(p, "[")) {
        if (!class_body(p, cls)) {
            return false;
        }
    } else {
        uint32_t code;
        if (p->at < p->n && strchr(".^{}]?*+", p->text[p->at]) != NULL) {
            return fail(p, "this metacharacter must be escaped here");
        }
        if (!element(p, &cls->mask, &code) ||
            (cls->mask == 0 && !add_range(p, cls, code, code))) {
            return false;
        }
    }
    cls->source = source_since(p, from);
    lg_charset listed, except, all;
    if (cls->source == NULL ||
        !lg_charset_make(0, cls->ranges, cls->n_ranges, false, p->arena, &listed, p->err) ||
        !lg_charset_make(0, cls->except, cls->n_except, false, p->arena, &except, p->err)) {
        return false;
    }
    cls->ranges = listed.ranges;
    cls->n_ranges = listed.n;
    cls->except = except.ranges;
    cls->n_except = except.n;
    return lg_charset_make(cls->mask, cls->ranges, cls->n_ranges, cls->negated, p->arena, &all,
                           p->err) &&
           lg_charset_minus(&all, &except, p->arena, &cls->set, p->err);
}

static bool count(parser *p, uint32_t *out) {
    uint32_t value = 0;
    size_t from = p->at;
    while (p->at < p->n && p->text[p->at] >= '0' && p->text[p->at] <= '9') {
        value = value * 10 + (uint32_t)(p->text[p->at++] - '0');
        if (value > LG_REGEX_REPEAT_MAX) {
            return fail(p, "more than 1000 repetitions");
        }
    }
    *out = value;
    return p->at > from || fail(p, "a number was expected");
}

static bool quantifier(parser *p, lg_regex_item *item) {
    item->min = item->max = 1;
    if (take(p, "?")) {
        item->min = 0;
    } else if (take(p, "*")) {
        item->min = 0;
        item->max = LG_REGEX_ENDLESS;
    } else if (take(p, "+")) {
        item->max = LG_REGEX_ENDLESS;
    } else if (take(p, "{")) {
        if (!count(p, &item->min)) {
            return false;
        }
        item->max = item->min;
        if (take(p, ",") && !count(p, &item->max)) {
            return false;
        }
        if (!take(p, "}") || item->max < item->min || item->max == 0) {
            return fail(p, "{m,n} must close and ascend");
        }
    }
    if (p->at < p->n && strchr("?*+{", p->text[p->at]) != NULL) {
        return fail(p, "only plain greedy quantifiers are supported");
    }
    return true;
}

static bool alternatives(parser *p, lg_regex *out);

static bool item(parser *p, lg_regex_item *out) {
    size_t from = p->at;
    *out = (lg_regex_item){.kind = LG_REGEX_CLASS, .min = 1, .max = 1};
    if (take(p, "$")) {
        out->kind = LG_REGEX_END;
    } else if (take(p, "(")) {
        out->kind = LG_REGEX_GROUP;
        if (take(p, "?=") || take(p, "?!")) {
            out->kind = LG_REGEX_LOOK;
            out->negative = p->text[p->at - 1] == '!';
        } else if (looking_at(p, "?") && !take(p, "?:")) {
            return fail(p, "this kind of group is not supported");
        }
        if (!alternatives(p, &out->body)) {
            return false;
        }
        if (!take(p, ")")) {
            return fail(p, "')' is missing");
        }
    } else if (!class_item(p, &out->cls)) {
        return false;
    }
    bool repeats = out->kind == LG_REGEX_CLASS || out->kind == LG_REGEX_GROUP;
    if (repeats && !quantifier(p, out)) {
        return false;
    }
    out->source = source_since(p, from);
    return out->source != NULL;
}

static bool sequence(parser *p, lg_regex_seq *out) {
    size_t from = p->at;
    *out = (lg_regex_seq){.n = 0};
    while (p->at < p->n && !looking_at(p, "|") && !looking_at(p, ")")) {
        out->items = grow(p, out->items, out->n, sizeof *out->items);
        if (out->items == NULL || !item(p, &out->items[out->n])) {
            return false;
        }
        out->n++;
    }
    out->source = source_since(p, from);
    return out->source != NULL;
}

static bool alternatives(parser *p, lg_regex *out) {
    size_t from = p->at;
    *out = (lg_regex){.n = 0};
    if (++p->depth > LG_REGEX_DEPTH_MAX) {
        return fail(p, "groups are nested too deeply");
    }
    do {
        out->alts = grow(p, out->alts, out->n, sizeof *out->alts);
        if (out->alts == NULL || !sequence(p, &out->alts[out->n])) {
            return false;
        }
        out->n++;
    } while (take(p, "|"));
    p->depth--;
    out->source = source_since(p, from);
    return out->source != NULL;
}

bool lg_regex_parse(const char *text, lb_arena *arena, lg_regex *out, lb_err *err) {
    parser p = {.text = text, .n = strlen(text), .arena = arena, .err = err};
    lg_regex parsed;
    if (!alternatives(&p, &parsed)) {
        return false;
    }
    if (p.at < p.n) {
        return fail(&p, "')' without '('");
    }
    *out = parsed;
    return true;
}
