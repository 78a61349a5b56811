/* gguf_split.c -- the other parts of a split model.
 *
 * Takes the first part's keys and path; opens <prefix>-0000N-of-0000M.gguf beside it. Refuses parts
 * that are missing, out of order, or of another split, and a total that the first part denies. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "gguf_parse.h"
#include "gguf_value.h"

enum { TAIL_BYTES = 32 }; /* "-00001-of-00003.gguf" has 20; 5 digits are enough for the limit */

/* "-00002-of-00003.gguf" for index 1 of 3. */
static void format_tail(char tail[TAIL_BYTES], uint32_t index, uint32_t count) {
    snprintf(tail, TAIL_BYTES, "-%05" PRIu32 "-of-%05" PRIu32 ".gguf", index + 1, count);
}

/* The bytes of the first part's path in front of its tail. */
static bool find_prefix(const char *path, uint32_t count, uint64_t *n_bytes, lb_err *err) {
    char tail[TAIL_BYTES];
    format_tail(tail, 0, count);
    size_t n = strlen(path);
    size_t n_tail = strlen(tail);
    if (n <= n_tail || strcmp(path + n - n_tail, tail) != 0) {
        return lb_err_set(err, LB_BAD_FORMAT,
                          "part 1 of %" PRIu32 " by its key 'split.count', so its name must end in "
                          "'%s'",
                          count, tail);
    }
    *n_bytes = n - n_tail;
    return true;
}

static bool check_no(const lg_gguf *g, uint32_t want, uint32_t count, lb_err *err) {
    uint32_t no = 0;
    if (!lg_gguf_u32(g, "split.no", NULL, &no, err)) {
        return false;
    }
    if (no == want) {
        return true;
    }
    if (want == 0) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "key 'split.no': %" PRIu32 "; open the first of the %" PRIu32
                          " parts, it finds the others",
                          no, count);
    }
    return lb_err_set(err, LB_BAD_VALUE, "key 'split.no': %" PRIu32 " where %" PRIu32
                      " is needed", no, want);
}

/* The split keys of a further part must continue those of the first. */
static bool check_part(lb_arena *arena, const lg_gguf_part *part, uint32_t index, uint32_t count,
                       lb_err *err) {
    lg_gguf keys = {.arena = arena};
    uint32_t its_count = 0;
    if (!lg_gguf_load_keys(&keys, part, err) || !check_no(&keys, index, count, err) ||
        !lg_gguf_u32(&keys, "split.count", NULL, &its_count, err)) {
        return false;
    }
    if (its_count != count) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "key 'split.count': %" PRIu32 ", but the first part says %" PRIu32,
                          its_count, count);
    }
    return true;
}

static bool check_total(const lg_gguf *g, lb_err *err) {
    uint64_t want = 0;
    uint64_t have = 0;
    if (!lg_gguf_u64(g, "split.tensors.count", NULL, &want, err)) {
        return false;
    }
    for (uint32_t i = 0; i < g->n_parts; i++) {
        have += g->parts[i].info.n_tensors; /* at most 2^10 parts of 2^18 */
    }
    if (have != want) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "key 'split.tensors.count': %" PRIu64 ", but the %" PRIu32
                          " parts hold %" PRIu64 " tensors",
                          want, g->n_parts, have);
    }
    return true;
}

static bool open_others(lg_gguf *g, uint32_t count, uint64_t n_prefix, lb_err *err) {
    const char *first = g->parts[0].info.path;
    for (uint32_t i = 1; i < count; i++) {
        char tail[TAIL_BYTES];
        format_tail(tail, i, count);
        char *path = lb_format(g->arena, err, "%.*s%s", (int)n_prefix, first, tail);
        if (path == NULL) {
            return false;
        }
        if (!lg_gguf_open_part(path, &g->parts[i], err)) {
            return lb_err_prefix(err, "part %" PRIu32 " of %" PRIu32, i + 1, count);
        }
        g->n_parts = i + 1; /* from here on lg_gguf_close unmaps it */
        if (!check_part(g->arena, &g->parts[i], i, count, err)) {
            return lg_gguf_err_file(err, path);
        }
    }
    return true;
}

/* What the first part itself promises; *count is 1 for a file in one piece. */
static bool read_split_keys(const lg_gguf *g, uint32_t *count, uint64_t *n_prefix, lb_err *err) {
    const uint32_t one = 1;
    uint32_t n = 1;
    if (!lg_gguf_u32_in(g, "split.count", &one, 0, LG_GGUF_MAX_FILES, &n, err)) {
        return false;
    }
    if (n <= 1) {
        *count = 1;
        return true;
    }
    if (!g->parts[0].owned) {
        return lb_err_set(err, LB_UNSUPPORTED, "one of %" PRIu32 " parts, opened from memory", n);
    }
    if (!check_no(g, 0, n, err) || !find_prefix(g->parts[0].info.path, n, n_prefix, err)) {
        return false;
    }
    *count = n;
    return true;
}

bool lg_gguf_open_split(lg_gguf *g, lb_err *err) {
    uint32_t count = 1;
    uint64_t n_prefix = 0;
    if (!read_split_keys(g, &count, &n_prefix, err)) {
        return lg_gguf_err_file(err, g->parts[0].info.path);
    }
    if (count == 1) {
        return true;
    }
    lg_gguf_part first = g->parts[0];
    lg_gguf_part *parts = lb_alloc_n(g->arena, count, sizeof *parts, err);
    if (parts == NULL) {
        return false;
    }
    parts[0] = first;
    g->parts = parts;
    if (!open_others(g, count, n_prefix, err)) {
        return false;
    }
    return check_total(g, err) || lg_gguf_err_file(err, first.info.path);
}
