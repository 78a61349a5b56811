/* json_read.h -- JSON text that strangers wrote, into jansson's values. Everything that parses a
 * request, or arguments that a model wrote, comes through here. */
#ifndef RT_CHAT_JSON_READ_H
#define RT_CHAT_JSON_READ_H

#include <jansson.h>

#include "base/arena.h"

enum {
    RT_JSON_TEXT_DEPTH_MAX = 128,      /* brackets inside each other */
    RT_JSON_TEXT_VALUES_MAX = 1000000, /* values and keys: jansson takes about 100 bytes for each */
    RT_BIG_DIGITS_MAX = 4300           /* of one integer: Python's own limit */
};

/* Reads one JSON value of any kind from n bytes; the caller gives *out back with json_decref.
 * Integers that do not fit 64 bits, which jansson refuses, come out as texts that rt_json_big
 * knows; everything else is jansson's (the last of equal keys counts, half surrogates are errors).
 * Nothing recurses deeper than RT_JSON_TEXT_DEPTH_MAX. `arena` is used for a copy of the text where
 * there are such integers. Fails with LB_SYNTAX (line and column), LB_LIMIT, LB_NO_MEMORY. */
bool rt_json_read(const char *s, size_t n, lb_arena *arena, json_t **out, lb_err *err);

/* True if the n bytes are an integer as JSON has it (an optional -, digits, no leading zero) that
 * does not fit 64 bits. */
bool rt_is_big(const char *s, size_t n);

/* True if `v` is an integer that does not fit 64 bits; *digits are n_digits characters. A text of a
 * request that has this form on purpose is such an integer. */
bool rt_json_big(const json_t *v, const char **digits, size_t *n_digits);

/* True if brackets, outside of strings, stand at most RT_JSON_TEXT_DEPTH_MAX deep and there are at
 * most RT_JSON_TEXT_VALUES_MAX values: then jansson may parse it. */
bool rt_json_is_modest(const char *s, size_t n);

#endif
