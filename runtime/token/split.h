/* split.h -- what an emitted pre-tokenizer is written in: characters with their category, runs, and
 * the driver that applies one stage to a text.
 *
 * A text is an array of rt_char. A stage cuts every segment between two cuts, taken alone: it finds
 * successive leftmost matches, and both the matches and the gaps between them become segments. Each
 * stage is one emitted match function; time is linear because what a failed attempt learned about a
 * run of characters is kept in an rt_split_run. */
#ifndef RT_TOKEN_SPLIT_H
#define RT_TOKEN_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/unicode.h"

/* A character: code point in the low 21 bits, category in the next 5; the highest bit says that a
 * segment begins here. */
typedef uint32_t rt_char;
#define RT_CHAR_CODE UINT32_C(0x1FFFFF)
#define RT_CHAR_CUT UINT32_C(0x80000000)
enum { RT_CHAR_CATEGORY_SHIFT = 21, RT_CHAR_CATEGORY = 31 };

static inline uint32_t rt_code(rt_char c) {
    return c & RT_CHAR_CODE;
}

/* True if c's category is in `mask`, a sum of LB_UC bits. */
static inline bool rt_is(rt_char c, uint32_t mask) {
    return (mask >> (c >> RT_CHAR_CATEGORY_SHIFT & RT_CHAR_CATEGORY) & 1) != 0;
}

/* True if c's code point lies in one of n ranges {first, last}, ascending and apart. */
bool rt_in_ranges(rt_char c, const uint32_t (*ranges)[2], size_t n);

#define RT_SPLIT_NONE SIZE_MAX
enum { RT_SPLIT_RUNS_MAX = 8 };

/* What is known about the maximal run [from, end) of one class, for one place in an expression:
 * what follows that place cannot match at any position in [bad, end]. */
typedef struct rt_split_run {
    size_t from;
    size_t end; /* from == end: nothing known */
    size_t bad;
} rt_split_run;

/* Where to go on looking for the run's end: its known end if `at` is inside it, else `at`. */
static inline size_t rt_run_skip(const rt_split_run *run, size_t at) {
    return at >= run->from && at < run->end ? run->end : at;
}

/* Notes that the run through `at` ends at `stop`; one past the last position worth trying. */
static inline size_t rt_run_enter(rt_split_run *run, size_t at, size_t stop) {
    if (at == stop) {
        return stop + 1;
    }
    if (stop != run->end || run->from == run->end) {
        *run = (rt_split_run){.from = at, .end = stop, .bad = stop + 1};
    } else if (at < run->from) {
        run->from = at;
    }
    return run->bad;
}

/* What follows was tried at `at`, after all later positions of the run, and did not match. */
static inline void rt_run_fail(rt_split_run *run, size_t at) {
    if (at >= run->from && at <= run->end && at < run->bad) {
        run->bad = at;
    }
}

/* The end of the match at t[at], which may equal `at`, or RT_SPLIT_NONE. Reads t[at..end). */
typedef size_t (*rt_split_match)(const rt_char *t, size_t at, size_t end, rt_split_run *runs);

/* Applies one stage to t[0..n). */
void rt_split_stage(rt_char *t, size_t n, rt_split_match match);

/* Decodes UTF-8 into characters with no cut but the first; a byte that is not part of a well-formed
 * character becomes U+FFFD. `t` has room for n_bytes. Returns the number of characters. */
size_t rt_split_chars(const char *text, size_t n_bytes, rt_char *t);

/* End of the segment that begins at t[at], at < n. */
size_t rt_split_next(const rt_char *t, size_t at, size_t n);

#endif
