/* fields.c -- see fields.h. */
#include "server/fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chat/json_read.h"

const char *rt_json_kind(const json_t *v) {
    switch (json_typeof(v)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number with a fraction";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    default: return "null";
    }
}

const json_t *rt_field(const json_t *object, const char *key) {
    const json_t *v = json_object_get(object, key);
    return json_is_null(v) ? NULL : v;
}

static bool wrong_type(const char *key, const char *want, const json_t *v, lb_err *err) {
    return lb_err_set(err, LB_BAD_TYPE, "%s: must be %s, not %s", key, want, rt_json_kind(v));
}

bool rt_field_bool(const json_t *o, const char *key, bool *out, lb_err *err) {
    const json_t *v = rt_field(o, key);
    if (v == NULL) {
        return true;
    }
    if (!json_is_boolean(v)) {
        return wrong_type(key, "true or false", v, err);
    }
    *out = json_is_true(v);
    return true;
}

bool rt_field_int(const json_t *o, const char *key, int64_t least, int64_t most, int64_t *out,
                  lb_err *err) {
    const json_t *v = rt_field(o, key);
    const char *digits = NULL;
    size_t n_digits = 0;
    if (v == NULL) {
        return true;
    }
    if (rt_json_big(v, &digits, &n_digits)) {
        return lb_err_set(err, LB_BAD_VALUE, "%s: %.*s is not in %" PRId64 "..%" PRId64, key,
                          n_digits < 40 ? (int)n_digits : 40, digits, least, most);
    }
    if (!json_is_integer(v)) {
        return wrong_type(key, "an integer", v, err);
    }
    int64_t x = json_integer_value(v);
    if (x < least || x > most) {
        return lb_err_set(err, LB_BAD_VALUE, "%s: %" PRId64 " is not in %" PRId64 "..%" PRId64, key,
                          x, least, most);
    }
    *out = x;
    return true;
}

bool rt_field_real(const json_t *o, const char *key, double least, double most, float *out,
                   lb_err *err) {
    const json_t *v = rt_field(o, key);
    if (v == NULL) {
        return true;
    }
    if (!json_is_number(v)) {
        return wrong_type(key, "a number", v, err);
    }
    double x = json_number_value(v);
    if (!(x >= least && x <= most)) {
        return lb_err_set(err, LB_BAD_VALUE, "%s: %g is not in %g..%g", key, x, least, most);
    }
    *out = (float)x;
    return true;
}

bool rt_field_text(const json_t *o, const char *key, rt_string *out, lb_err *err) {
    const json_t *v = rt_field(o, key);
    if (v == NULL) {
        return true;
    }
    if (!json_is_string(v)) {
        return wrong_type(key, "a string", v, err);
    }
    *out = (rt_string){.s = json_string_value(v), .n = json_string_length(v)};
    return true;
}

bool rt_field_word(const json_t *o, const char *key, const char *const *words, int *out,
                   lb_err *err) {
    char list[160] = "";
    rt_string s = {0};
    if (!rt_field_text(o, key, &s, err) || s.s == NULL) {
        return rt_field(o, key) == NULL;
    }
    for (int i = 0; words[i] != NULL; i++) {
        if (strlen(words[i]) == s.n && memcmp(words[i], s.s, s.n) == 0) {
            *out = i;
            return true;
        }
        size_t n = strlen(list);
        if (n + strlen(words[i]) + 3 < sizeof list) {
            memcpy(list + n, n == 0 ? "" : ", ", n == 0 ? 1 : 3);
            memcpy(list + strlen(list), words[i], strlen(words[i]) + 1);
        }
    }
    return lb_err_set(err, LB_BAD_VALUE, "%s: '%.40s' is none of %s", key, s.s, list);
}

bool rt_field_array(const json_t *o, const char *key, const json_t **out, lb_err *err) {
    const json_t *v = rt_field(o, key);
    if (v != NULL && !json_is_array(v)) {
        return wrong_type(key, "an array", v, err);
    }
    *out = v;
    return true;
}

bool rt_field_object(const json_t *o, const char *key, const json_t **out, lb_err *err) {
    const json_t *v = rt_field(o, key);
    if (v != NULL && !json_is_object(v)) {
        return wrong_type(key, "an object", v, err);
    }
    *out = v;
    return true;
}

static bool is_nothing(const json_t *v) {
    return v == NULL || json_is_false(v) || (json_is_array(v) && json_array_size(v) == 0) ||
           (json_is_string(v) && json_string_length(v) == 0) ||
           (json_is_number(v) && json_number_value(v) == 0.0);
}

bool rt_fields_refuse(const json_t *o, const rt_refused *list, size_t n, lb_err *err) {
    for (size_t i = 0; i < n; i++) {
        if (!is_nothing(rt_field(o, list[i].key))) {
            return lb_err_set(err, LB_UNSUPPORTED, "%s: not supported; %s", list[i].key,
                              list[i].why);
        }
    }
    return true;
}

bool rt_is_word(const json_t *v, const char *word) {
    return json_is_string(v) && strcmp(json_string_value(v), word) == 0;
}

json_t *rt_json_join(const json_t *texts) {
    size_t n = json_array_size(texts);
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        n_bytes += json_string_length(json_array_get(texts, i)) + 1;
    }
    char *s = malloc(n_bytes + 1);
    size_t at = 0;
    for (size_t i = 0; s != NULL && i < n; i++) {
        const json_t *text = json_array_get(texts, i);
        if (i > 0) {
            s[at++] = '\n';
        }
        memcpy(s + at, json_string_value(text), json_string_length(text));
        at += json_string_length(text);
    }
    json_t *joined = s == NULL ? NULL : json_stringn(s, at);
    free(s);
    return joined;
}
