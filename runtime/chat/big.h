/* big.h -- integers beyond 64 bits. Tool schemas carry them (an unsigned 64-bit maximum) and models
 * write them; Python prints them as they are. Here they are their digits: they print, compare and
 * go to JSON and back; sums and products of them fail, as those of other integers that overflow. */
#ifndef RT_CHAT_BIG_H
#define RT_CHAT_BIG_H

#include "chat/ctx.h"

/* The integer of these digits, for which rt_is_big (json_read.h) holds; copied. LB_LIMIT beyond
 * RT_BIG_DIGITS_MAX characters. */
rt_val rt_big(rt_chat_ctx *c, const char *s, size_t n, bool user);

/* -1, 0, 1, or 2 if one is NaN; a and b are numbers, one of them RT_BIG. */
int rt_big_compare(rt_val a, rt_val b);

/* Its value, rounded; infinite if it has none. */
double rt_big_real(rt_val v);

/* The integer part of a finite real of 2^63 and more, or less than -2^63. */
rt_val rt_big_of_real(rt_chat_ctx *c, double f, bool user);

#endif
