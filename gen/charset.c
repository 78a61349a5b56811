/* charset.c -- sets of code points as sorted ranges, see charset.h. */
#include "charset.h"

#include <string.h>

#include "base/unicode.h"

/* Appends a range that begins at or after the last one's beginning, joining what touches. */
static void append(lg_range *ranges, size_t *n, lg_range r) {
    if (*n > 0 && r.first <= ranges[*n - 1].last + 1) {
        if (r.last > ranges[*n - 1].last) {
            ranges[*n - 1].last = r.last;
        }
        return;
    }
    ranges[(*n)++] = r;
}

static bool by_mask(uint32_t mask, lb_arena *arena, lg_charset *out, lb_err *err) {
    size_t n_runs = 0;
    for (uint32_t code = 0; code < LB_UNICODE_END; code = lb_unicode_run_end(code)) {
        n_runs++;
    }
    lg_range *ranges = lb_alloc_n(arena, n_runs, sizeof *ranges, err);
    if (ranges == NULL) {
        return false;
    }
    size_t n = 0;
    for (uint32_t code = 0; code < LB_UNICODE_END;) {
        uint32_t end = lb_unicode_run_end(code);
        if ((mask >> lb_unicode_category(code) & 1) != 0) {
            append(ranges, &n, (lg_range){code, end - 1});
        }
        code = end;
    }
    *out = (lg_charset){ranges, n};
    return true;
}

/* Sorted by insertion: expressions hold a few ranges, the longest about 130. */
static bool by_ranges(const lg_range *in, size_t n_in, lb_arena *arena, lg_charset *out,
                      lb_err *err) {
    lg_range *sorted = lb_alloc_n(arena, n_in + 1, sizeof *sorted, err);
    if (sorted == NULL) {
        return false;
    }
    for (size_t i = 0; i < n_in; i++) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1].first > in[i].first; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = in[i];
    }
    size_t n = 0;
    for (size_t i = 0; i < n_in; i++) {
        append(sorted, &n, sorted[i]);
    }
    *out = (lg_charset){sorted, n};
    return true;
}

static bool complement(const lg_charset *s, lb_arena *arena, lg_charset *out, lb_err *err) {
    lg_range *ranges = lb_alloc_n(arena, s->n + 1, sizeof *ranges, err);
    if (ranges == NULL) {
        return false;
    }
    size_t n = 0;
    uint32_t from = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->ranges[i].first > from) {
            ranges[n++] = (lg_range){from, s->ranges[i].first - 1};
        }
        from = s->ranges[i].last + 1;
    }
    if (from < LB_UNICODE_END) {
        ranges[n++] = (lg_range){from, LB_UNICODE_END - 1};
    }
    *out = (lg_charset){ranges, n};
    return true;
}

bool lg_charset_make(uint32_t mask, const lg_range *ranges, size_t n, bool negated,
                     lb_arena *arena, lg_charset *out, lb_err *err) {
    lg_charset categories, listed, all;
    if (!by_mask(mask, arena, &categories, err) || !by_ranges(ranges, n, arena, &listed, err) ||
        !lg_charset_join(&categories, &listed, arena, &all, err)) {
        return false;
    }
    if (negated) {
        return complement(&all, arena, out, err);
    }
    *out = all;
    return true;
}

bool lg_charset_join(const lg_charset *a, const lg_charset *b, lb_arena *arena, lg_charset *out,
                     lb_err *err) {
    lg_range *ranges = lb_alloc_n(arena, a->n + b->n + 1, sizeof *ranges, err);
    if (ranges == NULL) {
        return false;
    }
    size_t n = 0;
    size_t i = 0;
    for (size_t j = 0; i < a->n || j < b->n;) {
        bool left = j == b->n || (i < a->n && a->ranges[i].first <= b->ranges[j].first);
        append(ranges, &n, left ? a->ranges[i++] : b->ranges[j++]);
    }
    *out = (lg_charset){ranges, n};
    return true;
}

bool lg_charset_minus(const lg_charset *a, const lg_charset *b, lb_arena *arena, lg_charset *out,
                      lb_err *err) {
    lg_charset not_a, either;
    return complement(a, arena, &not_a, err) && lg_charset_join(&not_a, b, arena, &either, err) &&
           complement(&either, arena, out, err);
}

bool lg_charset_meet(const lg_charset *a, const lg_charset *b) {
    size_t i = 0;
    size_t j = 0;
    while (i < a->n && j < b->n) {
        if (a->ranges[i].last < b->ranges[j].first) {
            i++;
        } else if (b->ranges[j].last < a->ranges[i].first) {
            j++;
        } else {
            return true;
        }
    }
    return false;
}

bool lg_charset_within(const lg_charset *a, const lg_charset *b) {
    size_t j = 0;
    for (size_t i = 0; i < a->n; i++) {
        while (j < b->n && b->ranges[j].last < a->ranges[i].first) {
            j++;
        }
        if (j == b->n || a->ranges[i].first < b->ranges[j].first ||
            a->ranges[i].last > b->ranges[j].last) {
            return false;
        }
    }
    return true;
}

bool lg_charset_holds(const lg_charset *s, uint32_t code) {
    for (size_t i = 0; i < s->n; i++) {
        if (code <= s->ranges[i].last) {
            return code >= s->ranges[i].first;
        }
    }
    return false;
}
