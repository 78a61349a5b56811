/* charset.h -- exact sets of code points, for reasoning about expressions: sorted ranges, never
 * touching each other. Immutable, in an arena. Categories are those of base/unicode.def. */
#ifndef LG_CHARSET_H
#define LG_CHARSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct lg_range {
    uint32_t first, last;
} lg_range;

typedef struct lg_charset {
    const lg_range *ranges;
    size_t n;
} lg_charset;

/* All code points whose category is in `mask` (LB_UC bits) or that lie in one of `n` ranges, which
 * may come in any order and overlap; all others if `negated`. */
bool lg_charset_make(uint32_t mask, const lg_range *ranges, size_t n, bool negated,
                     lb_arena *arena, lg_charset *out, lb_err *err);

/* Union of two sets. */
bool lg_charset_join(const lg_charset *a, const lg_charset *b, lb_arena *arena, lg_charset *out,
                     lb_err *err);

/* What is in `a` and not in `b`. */
bool lg_charset_minus(const lg_charset *a, const lg_charset *b, lb_arena *arena, lg_charset *out,
                      lb_err *err);

bool lg_charset_meet(const lg_charset *a, const lg_charset *b);     /* some code point in both */
bool lg_charset_within(const lg_charset *a, const lg_charset *b);   /* every one of a is in b */
bool lg_charset_holds(const lg_charset *s, uint32_t code);

#endif
