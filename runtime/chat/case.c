/* case.c -- see case.h. Tables: case.def. */
#include "chat/case.h"

#include "base/unicode.h"

typedef struct case_run {
    uint8_t to;
    uint8_t stride;
    uint16_t second, third;
    uint32_t first, last;
    int32_t delta;
} case_run;

static const case_run runs[] = {
#define X(to, first, last, stride, delta, second, third)                                         \
    {to, stride, second, third, first, last, delta},
#include "chat/case.def"
#undef X
};

/* The row that maps `code`, or NULL: rows are sorted by case and code point. */
static const case_run *find(rt_case to, uint32_t code) {
    size_t low = 0;
    size_t high = sizeof runs / sizeof runs[0];
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const case_run *r = &runs[mid];
        if (r->to < (uint8_t)to || (r->to == (uint8_t)to && r->last < code)) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    if (low == sizeof runs / sizeof runs[0]) {
        return NULL;
    }
    const case_run *r = &runs[low];
    bool hit = r->to == (uint8_t)to && r->first <= code && (code - r->first) % r->stride == 0;
    return hit ? r : NULL;
}

static void add_code(rt_chat_ctx *c, rt_sb *sb, uint32_t code, bool user) {
    char utf8[4];
    rt_sb_add(c, sb, utf8, lb_utf8_encode(code, utf8), user);
}

/* Appends `ch`, whose code point is `code`, in another case. */
static void add_cased(rt_chat_ctx *c, rt_sb *sb, rt_val ch, uint32_t code, rt_case to) {
    const case_run *r = find(to, code);
    if (r == NULL && to == RT_TITLE) {
        r = find(RT_UPPER, code);
    }
    if (r == NULL) {
        rt_sb_text(c, sb, ch);
        return;
    }
    bool user = ch.mark != NULL ? ch.mark[0] != 0 : ch.user;
    add_code(c, sb, (uint32_t)((int64_t)code + r->delta), user);
    if (r->second != 0) {
        add_code(c, sb, r->second, user);
    }
    if (r->third != 0) {
        add_code(c, sb, r->third, user);
    }
}

static bool is_cased(uint32_t code) {
    lb_category k = lb_unicode_category(code);
    return k == LB_LU || k == LB_LL || k == LB_LT || find(RT_UPPER, code) != NULL ||
           find(RT_LOWER, code) != NULL;
}

/* Characters that do not count in the rule for sigma (Unicode's Case_Ignorable, by category). */
static bool is_ignorable(uint32_t code) {
    lb_category k = lb_unicode_category(code);
    return k == LB_MN || k == LB_ME || k == LB_CF || k == LB_LM || k == LB_SK || code == '\'' ||
           code == '.' || code == ':' || code == 0xB7 || code == 0x2019;
}

/* True if a cased letter follows byte `at` of the text, ignorable characters aside. */
static bool cased_after(rt_val text, size_t at) {
    uint32_t code = 0;
    for (size_t len; (len = lb_utf8_decode(text.u.s + at, text.n_bytes - at, &code)) > 0;
         at += len) {
        if (!is_ignorable(code)) {
            return is_cased(code);
        }
    }
    return false;
}

/* Walks a text; `first` letters of words or of the text alone are titled, others lowered. */
static rt_val convert(rt_chat_ctx *c, rt_val text, rt_case rest, bool words, bool title_first) {
    enum { FINAL_SIGMA = 0x3C2, CAPITAL_SIGMA = 0x3A3 };
    rt_sb sb = {0};
    bool after_cased = false;  /* the character before is a cased letter */
    bool sigma_after = false;  /* the same, ignorable characters aside */
    uint32_t code = 0;
    for (size_t i = 0, len; i < text.n_bytes && rt_work(c, 1); i += len) {
        len = lb_utf8_decode(text.u.s + i, text.n_bytes - i, &code);
        if (len == 0) {
            break;
        }
        rt_val ch = rt_part(text, i, len);
        bool title = title_first && (words ? !after_cased : i == 0);
        bool lower = !title && rest == RT_LOWER;
        if (lower && code == CAPITAL_SIGMA && sigma_after && !cased_after(text, i + len)) {
            add_code(c, &sb, FINAL_SIGMA, ch.mark != NULL ? ch.mark[0] != 0 : ch.user);
        } else {
            add_cased(c, &sb, ch, code, title ? RT_TITLE : rest);
        }
        after_cased = is_cased(code);
        sigma_after = is_ignorable(code) ? sigma_after : after_cased;
    }
    rt_val out = rt_sb_value(&sb);
    out.markup = text.markup;
    return out;
}

rt_val rt_text_case(rt_chat_ctx *c, rt_val text, rt_case to) {
    return convert(c, text, to, false, false);
}

rt_val rt_text_title(rt_chat_ctx *c, rt_val text) {
    return convert(c, text, RT_LOWER, true, true);
}

rt_val rt_text_capitalize(rt_chat_ctx *c, rt_val text) {
    return convert(c, text, RT_LOWER, false, true);
}

bool rt_is_space(uint32_t code) {
    return (code >= 0x1C && code <= 0x1F) ||
           (LB_UC(lb_unicode_category(code)) & LB_UC_SPACE) != 0;
}
