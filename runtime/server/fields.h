/* fields.h -- members of a request's JSON, checked: what is there must be of the right type and in
 * its range. Errors are LB_BAD_TYPE and LB_BAD_VALUE and begin with the member's name and ": ".
 * null counts as absent, as clients send it. Absent members leave *out alone and return true. */
#ifndef RT_SERVER_FIELDS_H
#define RT_SERVER_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "chat/message.h"

/* The member, or NULL if it is absent or null. */
const json_t *rt_field(const json_t *object, const char *key);

bool rt_field_bool(const json_t *object, const char *key, bool *out, lb_err *err);
bool rt_field_int(const json_t *object, const char *key, int64_t least, int64_t most, int64_t *out,
                  lb_err *err);
bool rt_field_real(const json_t *object, const char *key, double least, double most, float *out,
                   lb_err *err);
bool rt_field_text(const json_t *object, const char *key, rt_string *out, lb_err *err);

/* One of `words` (NULL-ended); *out is its index. */
bool rt_field_word(const json_t *object, const char *key, const char *const *words, int *out,
                   lb_err *err);

/* An array or object, or NULL. */
bool rt_field_array(const json_t *object, const char *key, const json_t **out, lb_err *err);
bool rt_field_object(const json_t *object, const char *key, const json_t **out, lb_err *err);

/* LB_UNSUPPORTED if any of these members is there, and not false, zero, "" or []. */
typedef struct rt_refused {
    const char *key;
    const char *why; /* "calls of functions are under tools" */
} rt_refused;
bool rt_fields_refuse(const json_t *object, const rt_refused *list, size_t n, lb_err *err);

/* Texts as one, a newline between them, in a new value; NULL: no memory. */
json_t *rt_json_join(const json_t *texts);

/* "a string", "an object", ... */
const char *rt_json_kind(const json_t *v);

/* True if the text is `word`. */
bool rt_is_word(const json_t *v, const char *word);

#endif
