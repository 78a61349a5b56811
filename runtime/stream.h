/* stream.h -- text of a generation as it becomes certain: stop strings are cut out, and what may
 * be the beginning of one is held back until it is known not to be. Bytes in, bytes out, in
 * order. */
#ifndef RT_STREAM_H
#define RT_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

typedef struct rt_stop_string {
    const char *text;
    size_t n_bytes; /* >= 1 */
} rt_stop_string;

typedef struct rt_stream {
    char *buf; /* [cap_bytes] */
    size_t cap_bytes, n_bytes;
    size_t n_taken; /* bytes at the front that the last call gave out */
    size_t push_max_bytes;
    const rt_stop_string *stops;
    size_t n_stops;
} rt_stream;

/* Room for pushes of up to push_max_bytes and stop strings of up to stop_max_bytes. LB_NO_MEMORY.
 */
bool rt_stream_new(rt_stream *s, size_t push_max_bytes, size_t stop_max_bytes, lb_arena *arena,
                   lb_err *err);

/* Begins a text. `stops` are borrowed. LB_BAD_VALUE for an empty one, LB_LIMIT for one that is
 * longer than the room. */
bool rt_stream_start(rt_stream *s, const rt_stop_string *stops, size_t n_stops, lb_err *err);

/* Where the next n_bytes <= push_max_bytes are to be written; then rt_stream_push says how many. */
char *rt_stream_room(rt_stream *s);

/* Takes the bytes in. `*out` (valid until the next call) are the bytes now certain. Returns true
 * when a stop string is complete: *out then ends before the one that ends first (the longest of
 * several), and what follows is dropped. */
bool rt_stream_push(rt_stream *s, size_t n_bytes, const char **out, size_t *n_out);

/* The text ends: gives out what was held back. */
void rt_stream_end(rt_stream *s, const char **out, size_t *n_out);

#endif
