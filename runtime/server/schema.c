/* schema.c -- see schema.h. */
#include "server/schema.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT_MAX = 40, DIGITS_MAX = 17, FRACTION_MAX = 16, EXPONENT_MAX = 2 };

bool rt_schema_init(rt_schema *s, rt_grammar *g, const json_t *root, lb_err *err) {
    *s = (rt_schema){.g = g, .root = root};
    s->rules = lb_alloc_n(g->arena, RT_SCHEMA_RULES_MAX, sizeof *s->rules, err);
    return s->rules != NULL;
}

/* ---- JSON's own rules */

uint32_t rt_schema_space(rt_schema *s) {
    rt_grammar *g = s->g;
    if (s->space == 0) {
        rt_gset blank = {{0, 0, 0, 0}};
        rt_gset_add(&blank, ' ', ' ');
        rt_gset_add(&blank, '\t', '\t');
        uint32_t indent = rt_g_repeat(g, rt_g_set(g, &blank, 0), 0, INDENT_MAX, 0);
        uint32_t some =
            rt_g_either(g, rt_g_range(g, ' ', ' ', 0), rt_g_range(g, '\n', '\n', indent));
        s->space = rt_g_either(g, some, 0);
    }
    return s->space;
}

static uint32_t hex(rt_grammar *g, unsigned n, uint32_t next) {
    rt_gset s = {{0, 0, 0, 0}};
    rt_gset_add(&s, '0', '9');
    rt_gset_add(&s, 'a', 'f');
    rt_gset_add(&s, 'A', 'F');
    for (; n > 0; n--) {
        next = rt_g_set(g, &s, next);
    }
    return next;
}

static uint32_t one_of(rt_grammar *g, const char *bytes, uint32_t next) {
    rt_gset s = {{0, 0, 0, 0}};
    for (; *bytes != '\0'; bytes++) {
        rt_gset_add(&s, (uint8_t)*bytes, (uint8_t)*bytes);
    }
    return rt_g_set(g, &s, next);
}

/* Behind "\u": four digits, half surrogates only in pairs. */
static uint32_t code_unit(rt_grammar *g) {
    uint32_t plain = one_of(g, "0123456789ABCabcEFef", hex(g, 3, 0));
    uint32_t low = one_of(g, "Dd", one_of(g, "01234567", hex(g, 2, 0)));
    uint32_t second = rt_g_word(g, "\\u", one_of(g, "Dd", one_of(g, "CDEFcdef", hex(g, 2, 0))));
    uint32_t pair = one_of(g, "Dd", one_of(g, "89ABab", hex(g, 2, second)));
    return rt_g_either(g, plain, rt_g_either(g, low, pair));
}

/* Characters of several bytes, well-formed: Unicode, table 3-7. */
static uint32_t wide(rt_grammar *g) {
    uint32_t t1 = rt_g_range(g, 0x80, 0xBF, 0);
    uint32_t t2 = rt_g_range(g, 0x80, 0xBF, t1);
    uint32_t t3 = rt_g_range(g, 0x80, 0xBF, t2);
    uint32_t all = rt_g_range(g, 0xC2, 0xDF, t1);
    all = rt_g_either(g, rt_g_range(g, 0xE0, 0xE0, rt_g_range(g, 0xA0, 0xBF, t1)), all);
    all = rt_g_either(g, rt_g_range(g, 0xE1, 0xEC, t2), all);
    all = rt_g_either(g, rt_g_range(g, 0xED, 0xED, rt_g_range(g, 0x80, 0x9F, t1)), all);
    all = rt_g_either(g, rt_g_range(g, 0xEE, 0xEF, t2), all);
    all = rt_g_either(g, rt_g_range(g, 0xF0, 0xF0, rt_g_range(g, 0x90, 0xBF, t2)), all);
    all = rt_g_either(g, rt_g_range(g, 0xF1, 0xF3, t3), all);
    return rt_g_either(g, rt_g_range(g, 0xF4, 0xF4, rt_g_range(g, 0x80, 0x8F, t2)), all);
}

static uint32_t character(rt_schema *s) {
    rt_grammar *g = s->g;
    if (s->character == 0) {
        rt_gset plain = {{0, 0, 0, 0}};
        rt_gset_add(&plain, 0x20, 0x21);
        rt_gset_add(&plain, 0x23, 0x5B);
        rt_gset_add(&plain, 0x5D, 0x7F);
        uint32_t escape =
            rt_g_either(g, one_of(g, "\"\\/bfnrt", 0), rt_g_range(g, 'u', 'u', code_unit(g)));
        uint32_t all = rt_g_either(g, rt_g_range(g, '\\', '\\', escape), wide(g));
        s->character = rt_g_either(g, rt_g_set(g, &plain, 0), all);
    }
    return s->character;
}

static uint32_t string(rt_schema *s, uint32_t least, uint32_t most) {
    rt_grammar *g = s->g;
    uint32_t end = rt_g_range(g, '"', '"', 0);
    return rt_g_range(g, '"', '"', rt_g_repeat(g, character(s), least, most, end));
}

static uint32_t any_string(rt_schema *s) {
    if (s->string == 0) {
        s->string = string(s, 0, UINT32_MAX);
    }
    return s->string;
}

/* An integer, then `next`. */
static uint32_t digits(rt_grammar *g, bool negative, uint32_t next) {
    uint32_t digit = rt_g_range(g, '0', '9', 0);
    uint32_t more = rt_g_range(g, '1', '9', rt_g_repeat(g, digit, 0, DIGITS_MAX, next));
    uint32_t plain = rt_g_either(g, rt_g_range(g, '0', '0', next), more);
    return negative ? rt_g_either(g, rt_g_range(g, '-', '-', plain), plain) : plain;
}

static uint32_t number(rt_schema *s, bool negative) {
    rt_grammar *g = s->g;
    uint32_t digit = rt_g_range(g, '0', '9', 0);
    uint32_t power = rt_g_repeat(g, digit, 1, EXPONENT_MAX, 0);
    uint32_t sign = rt_g_either(g, one_of(g, "+-", power), power);
    uint32_t exponent = rt_g_either(g, one_of(g, "eE", sign), 0);
    uint32_t fraction = rt_g_repeat(g, digit, 1, FRACTION_MAX, exponent);
    return digits(g, negative, rt_g_either(g, rt_g_range(g, '.', '.', fraction), exponent));
}

/* space `byte` space, then `next`. */
static uint32_t spaced(rt_schema *s, char byte, uint32_t next) {
    rt_grammar *g = s->g;
    uint32_t space = rt_schema_space(s);
    return rt_g_call(g, space,
                     rt_g_range(g, (uint8_t)byte, (uint8_t)byte, rt_g_call(g, space, next)));
}

/* open, rule and more of them with commas between, close; how many is counted. */
static uint32_t list(rt_schema *s, const char *brackets, uint32_t rule, uint32_t least,
                     uint32_t most) {
    rt_grammar *g = s->g;
    uint32_t space = rt_schema_space(s);
    uint32_t close =
        rt_g_call(g, space, rt_g_range(g, (uint8_t)brackets[1], (uint8_t)brackets[1], 0));
    uint32_t more = spaced(s, ',', rt_g_call(g, rule, 0));
    uint32_t rest = rt_g_repeat(g, more, least > 0 ? least - 1 : 0,
                                most == UINT32_MAX ? most
                                : most > 0         ? most - 1
                                                   : 0,
                                close);
    uint32_t some = most == 0 ? close : rt_g_call(g, space, rt_g_call(g, rule, rest));
    return rt_g_range(g, (uint8_t)brackets[0], (uint8_t)brackets[0],
                      least > 0 ? some : rt_g_either(g, some, close));
}

static uint32_t members(rt_schema *s, uint32_t value) {
    rt_grammar *g = s->g;
    uint32_t member = rt_g_call(g, any_string(s), spaced(s, ':', rt_g_call(g, value, 0)));
    return list(s, "{}", member, 0, UINT32_MAX);
}

uint32_t rt_schema_value(rt_schema *s) {
    rt_grammar *g = s->g;
    if (s->value == 0) {
        s->value = rt_g_place(g); /* values hold values */
        s->number = number(s, true);
        uint32_t words = rt_g_either(g, rt_g_word(g, "true", 0), rt_g_word(g, "false", 0));
        uint32_t all = rt_g_either(g, rt_g_word(g, "null", 0), words);
        all = rt_g_either(g, s->number, all);
        all = rt_g_either(g, any_string(s), all);
        all = rt_g_either(g, list(s, "[]", s->value, 0, UINT32_MAX), all);
        rt_g_set_place(g, s->value, members(s, s->value), all);
    }
    return s->value;
}

uint32_t rt_schema_object(rt_schema *s) {
    return members(s, rt_schema_value(s));
}

/* ---- words as a tree, so that equal beginnings are one way */

static int by_bytes(const void *a, const void *b) {
    const rt_string *x = a;
    const rt_string *y = b;
    int order = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* Words [0..n), sorted, which agree in their first `at` bytes. */
static uint32_t tree(rt_grammar *g, const rt_string *w, size_t n, size_t at, uint32_t next) {
    uint32_t all = 0;
    bool any = false;
    for (size_t i = 0; i < n;) {
        size_t same = i + 1;
        uint32_t node = next;
        if (w[i].n > at) {
            while (same < n && w[same].n > at && w[same].s[at] == w[i].s[at]) {
                same++;
            }
            uint8_t byte = (uint8_t)w[i].s[at];
            node = rt_g_range(g, byte, byte, tree(g, w + i, same - i, at + 1, next));
        }
        all = any ? rt_g_either(g, node, all) : node;
        any = true;
        i = same;
    }
    return all;
}

uint32_t rt_schema_words(rt_grammar *g, rt_string *words, size_t n, uint32_t next) {
    qsort(words, n, sizeof *words, by_bytes);
    return tree(g, words, n, 0, next);
}

/* ---- schemas */

static const char *const REFUSED[] = {"pattern",
                                      "patternProperties",
                                      "minProperties",
                                      "maxProperties",
                                      "propertyNames",
                                      "not",
                                      "if",
                                      "then",
                                      "else",
                                      "dependentRequired",
                                      "dependentSchemas",
                                      "dependencies",
                                      "contains",
                                      "minContains",
                                      "maxContains",
                                      "multipleOf",
                                      "maximum",
                                      "exclusiveMinimum",
                                      "exclusiveMaximum",
                                      "prefixItems",
                                      "$dynamicRef",
                                      "$recursiveRef"};

static uint32_t rule_of(rt_schema *s, const json_t *schema, const char *what, lb_err *err);

static uint32_t no(const char *what, lb_err *err, const char *why) {
    lb_err_set(err, LB_UNSUPPORTED, "%s: %s", what, why);
    return 0;
}

static bool check_keywords(const json_t *schema, const char *what, lb_err *err) {
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        if (json_object_get(schema, REFUSED[i]) != NULL) {
            return lb_err_set(err, LB_UNSUPPORTED,
                              "%s: the schema's keyword '%s' cannot be "
                              "guaranteed",
                              what, REFUSED[i]);
        }
    }
    if (json_is_true(json_object_get(schema, "uniqueItems"))) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "%s: the schema's keyword 'uniqueItems' cannot be "
                          "guaranteed",
                          what);
    }
    return true;
}

/* A count under `key`; `otherwise` if it is absent. */
static bool count(const json_t *schema, const char *key, uint32_t otherwise, const char *what,
                  uint32_t *out, lb_err *err) {
    const json_t *v = json_object_get(schema, key);
    *out = otherwise;
    if (v == NULL) {
        return true;
    }
    if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= UINT32_MAX) {
        return lb_err_set(err, LB_BAD_VALUE, "%s: the schema's %s is no count", what, key);
    }
    *out = (uint32_t)json_integer_value(v);
    return true;
}

/* JSON text of a value, in the arena. */
static bool print(rt_schema *s, const json_t *v, rt_string *out, lb_err *err) {
    char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text == NULL) {
        return lb_err_set(err, LB_NO_MEMORY, "no memory for the schema");
    }
    size_t n = strlen(text);
    char *kept = lb_strndup(s->g->arena, text, n, err);
    free(text);
    *out = (rt_string){.s = kept, .n = n};
    return kept != NULL;
}

static uint32_t literals(rt_schema *s, const json_t *values, const char *what, lb_err *err) {
    size_t n = json_array_size(values);
    if (n == 0) {
        return no(what, err, "the schema's enum must have values");
    }
    rt_string *words = lb_alloc_n(s->g->arena, n, sizeof *words, err);
    if (words == NULL) {
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (!print(s, json_array_get(values, i), &words[i], err)) {
            return 0;
        }
    }
    return rt_schema_words(s->g, words, n, 0);
}

/* What "#/a/b" names in the document. */
static const json_t *resolve(const rt_schema *s, const char *ref) {
    const json_t *at = s->root;
    if (ref[0] != '#') {
        return NULL;
    }
    for (const char *p = ref + 1; *p == '/' && at != NULL;) {
        char key[256];
        size_t n = 0;
        for (p++; *p != '\0' && *p != '/' && n + 1 < sizeof key; p++) {
            bool tilde = p[0] == '~' && (p[1] == '0' || p[1] == '1');
            key[n++] = tilde ? p[1] == '0' ? '~' : '/' : *p;
            p += tilde;
        }
        key[n] = '\0';
        at = json_is_array(at) ? json_array_get(at, strtoul(key, NULL, 10))
                               : json_object_get(at, key);
    }
    return at;
}

static uint32_t any_of(rt_schema *s, const json_t *list, const char *what, lb_err *err) {
    uint32_t all = 0;
    size_t n = json_array_size(list);
    if (n == 0) {
        return no(what, err, "the schema's anyOf must have alternatives");
    }
    for (size_t i = n; i > 0; i--) {
        uint32_t one = rule_of(s, json_array_get(list, i - 1), what, err);
        if (one == 0) {
            return 0;
        }
        all = i == n ? one : rt_g_either(s->g, one, all);
    }
    return all;
}

json_t *rt_schema_required(const json_t *schema, const char *what, lb_err *err) {
    const json_t *map = json_object_get(schema, "properties");
    const json_t *list = json_object_get(schema, "required");
    json_t *names = json_object();
    for (size_t i = 0; names != NULL && i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name == NULL || json_object_get(map, name) == NULL) {
            json_decref(names);
            no(what, err, "the schema requires a property that it does not describe");
            return NULL;
        }
        if (json_object_set_new(names, name, json_true()) != 0) {
            json_decref(names);
            names = NULL;
        }
    }
    if (names == NULL) {
        lb_err_set(err, LB_NO_MEMORY, "no memory for the names of properties");
    }
    return names;
}

/* Members from the last to the first, `rest` being what is built of those behind. Where several are
 * optional in a row, the machine keeps a way for each of their names. */
typedef struct rest {
    uint32_t names;   /* one of the members that may come next; 0: there is none */
    uint32_t started; /* behind a member: another one or the end */
    bool may_end;
    uint32_t n_optional; /* in a row */
} rest;

static void add_member(rt_schema *s, rest *r, rt_string key, uint32_t value, bool required) {
    rt_grammar *g = s->g;
    uint32_t space = rt_schema_space(s);
    uint32_t end = rt_g_range(g, '}', '}', 0);
    uint32_t one = rt_g_text(g, key.s, key.n, spaced(s, ':', rt_g_call(g, value, r->started)));
    r->names = required || r->names == 0 ? one : rt_g_either(g, one, r->names);
    r->may_end = r->may_end && !required;
    r->n_optional = required ? 0 : r->n_optional + 1;
    uint32_t more = rt_g_range(g, ',', ',', rt_g_call(g, space, r->names));
    r->started = rt_g_call(g, space, r->may_end ? rt_g_either(g, more, end) : more);
}

static bool add_property(rt_schema *s, rest *r, const char *key, const json_t *schema,
                         bool required, const char *what, lb_err *err) {
    rt_string text;
    json_t *name = json_string(key);
    bool ok = name != NULL && print(s, name, &text, err);
    json_decref(name);
    uint32_t value = ok ? rule_of(s, schema, what, err) : 0;
    if (value == 0) {
        return false;
    }
    add_member(s, r, text, value, required);
    return r->n_optional <= RT_SCHEMA_OPTIONAL_MAX ||
           no(what, err, "the schema has more than 200 optional properties in a row") != 0;
}

static uint32_t properties(rt_schema *s, const json_t *required, const json_t *map,
                           const char *what, lb_err *err) {
    rt_grammar *g = s->g;
    size_t n = json_object_size(map);
    const char **keys = lb_alloc_n(g->arena, n, sizeof *keys, err);
    const char *key = NULL;
    json_t *v = NULL;
    size_t i = 0;
    if (keys == NULL) {
        return 0;
    }
    json_object_foreach((json_t *)(uintptr_t)map, key, v) {
        keys[i++] = key;
    }
    uint32_t end = rt_g_range(g, '}', '}', 0);
    rest r = {.started = rt_g_call(g, rt_schema_space(s), end), .may_end = true};
    for (i = n; i > 0; i--) {
        key = keys[i - 1];
        bool needed = json_object_get(required, key) != NULL;
        if (!add_property(s, &r, key, json_object_get(map, key), needed, what, err)) {
            return 0;
        }
    }
    uint32_t first = r.names == 0 ? end : r.may_end ? rt_g_either(g, r.names, end) : r.names;
    return rt_g_range(g, '{', '{', rt_g_call(g, rt_schema_space(s), first));
}

static uint32_t object(rt_schema *s, const json_t *schema, const char *what, lb_err *err) {
    const json_t *map = json_object_get(schema, "properties");
    const json_t *more = json_object_get(schema, "additionalProperties");
    json_t *required = rt_schema_required(schema, what, err);
    if (required == NULL) {
        return 0;
    }
    if (json_object_size(map) > 0 || json_is_false(more)) {
        uint32_t all = properties(s, required, map, what, err);
        json_decref(required);
        return all;
    }
    json_decref(required);
    uint32_t value = json_is_object(more) ? rule_of(s, more, what, err) : rt_schema_value(s);
    return value == 0 ? 0 : members(s, value);
}

static uint32_t array(rt_schema *s, const json_t *schema, const char *what, lb_err *err) {
    const json_t *items = json_object_get(schema, "items");
    uint32_t least = 0;
    uint32_t most = 0;
    uint32_t item = items == NULL ? rt_schema_value(s) : rule_of(s, items, what, err);
    if (item == 0 || !count(schema, "minItems", 0, what, &least, err) ||
        !count(schema, "maxItems", UINT32_MAX, what, &most, err)) {
        return 0;
    }
    return list(s, "[]", item, least, most);
}

static uint32_t text(rt_schema *s, const json_t *schema, const char *what, lb_err *err) {
    uint32_t least = 0;
    uint32_t most = 0;
    if (!count(schema, "minLength", 0, what, &least, err) ||
        !count(schema, "maxLength", UINT32_MAX, what, &most, err)) {
        return 0;
    }
    return least == 0 && most == UINT32_MAX ? any_string(s) : string(s, least, most);
}

static uint32_t of_type(rt_schema *s, const json_t *schema, const char *type, const char *what,
                        lb_err *err) {
    const json_t *minimum = json_object_get(schema, "minimum");
    bool negative = minimum == NULL;
    if (!negative && (!json_is_number(minimum) || json_number_value(minimum) != 0.0)) {
        return no(what, err, "the schema's keyword 'minimum' can be guaranteed for 0 alone");
    }
    return strcmp(type, "object") == 0    ? object(s, schema, what, err)
           : strcmp(type, "array") == 0   ? array(s, schema, what, err)
           : strcmp(type, "string") == 0  ? text(s, schema, what, err)
           : strcmp(type, "integer") == 0 ? digits(s->g, negative, 0)
           : strcmp(type, "number") == 0  ? number(s, negative)
           : strcmp(type, "null") == 0    ? rt_g_word(s->g, "null", 0)
           : strcmp(type, "boolean") == 0
               ? rt_g_either(s->g, rt_g_word(s->g, "true", 0), rt_g_word(s->g, "false", 0))
               : no(what, err, "the schema has a type that JSON does not have");
}

static uint32_t of_types(rt_schema *s, const json_t *schema, const char *what, lb_err *err) {
    const json_t *type = json_object_get(schema, "type");
    if (json_is_string(type)) {
        return of_type(s, schema, json_string_value(type), what, err);
    }
    uint32_t all = 0;
    for (size_t i = json_array_size(type); i > 0; i--) {
        const char *name = json_string_value(json_array_get(type, i - 1));
        uint32_t one = name == NULL ? no(what, err, "the schema's type is no word")
                                    : of_type(s, schema, name, what, err);
        if (one == 0) {
            return 0;
        }
        all = all == 0 ? one : rt_g_either(s->g, one, all);
    }
    return all != 0 ? all : no(what, err, "the schema's type is neither a word nor a list of them");
}

/* Keywords that stand for the whole schema. */
static uint32_t combined(rt_schema *s, const json_t *schema, const json_t *list, const char *what,
                         lb_err *err) {
    static const char *const beside[] = {"type", "properties", "items",
                                         "enum", "const",      "required"};
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        if (json_object_get(schema, beside[i]) != NULL) {
            return no(what, err, "anyOf, oneOf, allOf and $ref must stand alone in a schema");
        }
    }
    return any_of(s, list, what, err);
}

static uint32_t build(rt_schema *s, const json_t *schema, const char *what, lb_err *err) {
    const json_t *ref = json_object_get(schema, "$ref");
    const json_t *any = json_object_get(schema, "anyOf");
    const json_t *one = json_object_get(schema, "oneOf");
    const json_t *all = json_object_get(schema, "allOf");
    const json_t *constant = json_object_get(schema, "const");
    if (json_is_true(schema) || (json_is_object(schema) && json_object_size(schema) == 0)) {
        return rt_schema_value(s);
    }
    if (!json_is_object(schema)) {
        return no(what, err, "a schema must be an object");
    }
    if (!check_keywords(schema, what, err)) {
        return 0;
    }
    if (json_is_string(ref)) {
        const json_t *to = resolve(s, json_string_value(ref));
        return to != NULL ? rule_of(s, to, what, err)
                          : no(what, err, "the schema refers to something that is not in it");
    }
    if (any != NULL || one != NULL) {
        return combined(s, schema, any != NULL ? any : one, what, err);
    }
    if (all != NULL) {
        return json_array_size(all) == 1 ? combined(s, schema, all, what, err)
                                         : no(what, err, "allOf of several schemas");
    }
    if (constant != NULL) {
        rt_string word;
        return print(s, constant, &word, err) ? rt_g_text(s->g, word.s, word.n, 0) : 0;
    }
    if (json_object_get(schema, "enum") != NULL) {
        return literals(s, json_object_get(schema, "enum"), what, err);
    }
    if (json_object_get(schema, "type") != NULL) {
        return of_types(s, schema, what, err);
    }
    if (json_object_get(schema, "properties") != NULL ||
        json_object_get(schema, "additionalProperties") != NULL) {
        return object(s, schema, what, err);
    }
    return json_object_get(schema, "items") != NULL ? array(s, schema, what, err)
                                                    : rt_schema_value(s);
}

/* A schema that is met again, inside itself perhaps, is the same rule. */
static uint32_t rule_of(rt_schema *s, const json_t *schema, const char *what, lb_err *err) {
    for (uint32_t i = 0; i < s->n_rules; i++) {
        if (s->rules[i].schema == schema) {
            return s->rules[i].rule;
        }
    }
    if (s->n_rules == RT_SCHEMA_RULES_MAX) {
        lb_err_set(err, LB_LIMIT, "%s: the schema has more than %d parts", what,
                   RT_SCHEMA_RULES_MAX);
        return 0;
    }
    uint32_t place = rt_g_place(s->g);
    s->rules[s->n_rules++] = (rt_schema_rule){schema, place};
    uint32_t body = build(s, schema, what, err);
    if (body == 0 || s->g->failed) {
        if (s->g->failed) {
            *err = s->g->err;
        }
        return 0;
    }
    rt_g_set_place(s->g, place, body, body);
    return place;
}

uint32_t rt_schema_build(rt_schema *s, const json_t *schema, const char *what, lb_err *err) {
    return rule_of(s, schema, what, err);
}
