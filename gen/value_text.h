/* value_text.h -- text forms of an lg_value tree: a stable dump for people, goldens and --dump, and
 * JSON for files.
 *
 * The dump writes map keys sorted, doubles as hex float with the decimal behind, and any byte that
 * is not printable ASCII as \xNN: two trees dump alike exactly if lg_value_equal holds (save NaN).
 * JSON writes keys in the order in which they were set. */
#ifndef LG_VALUE_TEXT_H
#define LG_VALUE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "value.h"

/* Appends the dump of `v`, ending in a newline. A failure (memory, LB_LIMIT beyond
 * LG_VALUE_DEPTH_MAX levels) fails `t`, where lb_text_done finds it. */
void lg_value_dump(const lg_value *v, lb_text *t);

/* Appends `v` as JSON, 2 spaces a level, arrays of numbers on one line, ending in a newline.
 * Refuses what JSON cannot hold: inf and NaN (LB_BAD_VALUE), strings or keys that are not UTF-8
 * (LB_BAD_FORMAT). Doubles are written with the fewest digits that read back the same, and always
 * with a point or exponent, so that they stay doubles. */
bool lg_value_to_json(const lg_value *v, lb_text *t, lb_err *err);

/* Reads one JSON text (any value, RFC 8259) of `n_bytes` into the arena. Refused: duplicate keys,
 * integers outside int64, more than LG_VALUE_DEPTH_MAX levels. Errors name `name`, line and column:
 * LB_SYNTAX, LB_LIMIT, LB_NO_MEMORY. */
bool lg_value_from_json(const char *name, const char *text, size_t n_bytes, lb_arena *arena,
                        lg_value **out, lb_err *err);

#endif
