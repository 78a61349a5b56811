/* split.c -- applies one stage of a pre-tokenizer to a text, see split.h. */
#include "token/split.h"

bool rt_in_ranges(rt_char c, const uint32_t (*ranges)[2], size_t n) {
    uint32_t code = rt_code(c);
    while (n > 0) {
        size_t half = n / 2;
        if (code < ranges[half][0]) {
            n = half;
        } else if (code > ranges[half][1]) {
            ranges += half + 1;
            n -= half + 1;
        } else {
            return true;
        }
    }
    return false;
}

size_t rt_split_next(const rt_char *t, size_t at, size_t n) {
    do {
        at++;
    } while (at < n && (t[at] & RT_CHAR_CUT) == 0);
    return at;
}

static void cut(rt_char *t, size_t at, size_t n) {
    if (at < n) {
        t[at] |= RT_CHAR_CUT;
    }
}

/* One segment; a match that is empty cuts where it stands. */
static void split_segment(rt_char *t, size_t from, size_t end, rt_split_match match,
                          rt_split_run *runs) {
    size_t at = from;
    while (at < end) {
        size_t stop = match(t, at, end, runs);
        if (stop == RT_SPLIT_NONE) {
            at++;
            continue;
        }
        cut(t, at, end);
        cut(t, stop, end);
        at = stop > at ? stop : at + 1;
    }
}

void rt_split_stage(rt_char *t, size_t n, rt_split_match match) {
    rt_split_run runs[RT_SPLIT_RUNS_MAX] = {{0, 0, 0}};
    for (size_t at = 0; at < n;) {
        size_t end = rt_split_next(t, at, n);
        split_segment(t, at, end, match, runs);
        at = end;
    }
}

/* Categories of ASCII by table: most text is ASCII, and the search takes a dozen steps. */
static rt_char make_char(uint32_t code) {
    return code | (rt_char)lb_unicode_category(code) << RT_CHAR_CATEGORY_SHIFT;
}

size_t rt_split_chars(const char *text, size_t n_bytes, rt_char *t) {
    rt_char ascii[128];
    for (uint32_t code = 0; code < 128; code++) {
        ascii[code] = make_char(code);
    }
    size_t n = 0;
    for (size_t at = 0; at < n_bytes; n++) {
        uint8_t byte = (uint8_t)text[at];
        if (byte < 128) {
            t[n] = ascii[byte];
            at++;
            continue;
        }
        uint32_t code = LB_REPLACEMENT;
        size_t len = lb_utf8_decode(text + at, n_bytes - at, &code);
        t[n] = make_char(code);
        at += len == 0 ? 1 : len;
    }
    cut(t, 0, n);
    return n;
}
