/* ask_fields.c -- members of requests that several APIs share: how tokens are chosen, where answers
 * stop, how they are sent. Ranges are refused, never clamped; see ask.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "server/ask.h"
#include "server/fields.h"

enum { STOPS_MAX = 64, STOP_BYTES_MAX = 4096, BIAS_MAX = 4096 };

typedef struct real_row {
    const char *key;
    size_t at; /* in rt_sample_params */
    double least, most;
} real_row;

typedef struct int_row {
    const char *key;
    size_t at;
    int64_t least, most;
} int_row;

/* What other servers take beside the APIs' members, and what would change the answer. */
static const rt_refused OTHERS[] = {
    {"n_predict", "it is max_tokens here"},
    {"min_tokens", "ignore_eos is"},
    {"stop_token_ids", "stop takes texts"},
    {"allowed_token_ids", "logit_bias is"},
    {"bad_words", "logit_bias is"},
    {"top_a", "top_p and min_p are"},
    {"mirostat", "top_p and min_p are"},
    {"samplers", "their order is fixed"},
    {"use_beam_search", "n gives several answers"},
    {"prompt_logprobs", "answers' tokens have them"},
    {"grammar", "response_format takes a schema"},
    {"json_schema", "response_format takes a schema"},
    {"structured_outputs", "response_format takes a schema"},
    {"guided_json", "response_format takes a schema"},
    {"guided_choice", "response_format takes a schema"},
    {"guided_regex", "response_format takes a schema"},
    {"guided_grammar", "response_format takes a schema"},
};

#define AT(field) offsetof(rt_sample_params, field)

static const real_row REALS[] = {
    {"temperature", AT(temperature), 0.0, 2.0},
    {"top_p", AT(top_p), 0.0, 1.0},
    {"min_p", AT(min_p), 0.0, 1.0},
    {"typical_p", AT(typical_p), 0.0, 1.0},
    {"frequency_penalty", AT(frequency_penalty), -2.0, 2.0},
    {"presence_penalty", AT(presence_penalty), -2.0, 2.0},
    {"repeat_penalty", AT(repeat_penalty), 0.01, 100.0},
    {"repetition_penalty", AT(repeat_penalty), 0.01, 100.0},
    {"top_n_sigma", AT(top_n_sigma), -1.0, 100.0},
    {"xtc_probability", AT(xtc_probability), 0.0, 1.0},
    {"xtc_threshold", AT(xtc_threshold), 0.0, 1.0},
    {"dynatemp_range", AT(dynatemp_range), 0.0, 2.0},
    {"dynatemp_exponent", AT(dynatemp_exponent), 0.0, 100.0},
    {"dry_multiplier", AT(dry_multiplier), 0.0, 100.0},
    {"dry_base", AT(dry_base), 0.0, 100.0},
};

static const int_row INTS[] = {
    {"top_k", AT(top_k), -1, INT32_MAX}, /* more than there are tokens means all of them */
    {"repeat_last_n", AT(repeat_last_n), -1, INT32_MAX},
    {"dry_allowed_length", AT(dry_allowed_length), 1, INT32_MAX},
    {"dry_penalty_last_n", AT(dry_last_n), -1, INT32_MAX},
};

static bool read_numbers(rt_ask *a, lb_err *err) {
    char *p = (char *)&a->params;
    for (size_t i = 0; i < sizeof REALS / sizeof REALS[0]; i++) {
        const real_row *row = &REALS[i];
        if (!rt_field_real(a->root, row->key, row->least, row->most, (float *)(void *)(p + row->at),
                           err)) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof INTS / sizeof INTS[0]; i++) {
        const int_row *row = &INTS[i];
        int32_t *to = (int32_t *)(void *)(p + row->at);
        int64_t x = *to;
        if (!rt_field_int(a->root, row->key, row->least, row->most, &x, err)) {
            return false;
        }
        *to = (int32_t)x;
    }
    return true;
}

/* Absent or -1: a random one. */
static bool read_seed(rt_ask *a, lb_err *err) {
    int64_t seed = -1;
    if (!rt_field_int(a->root, "seed", -1, UINT32_MAX, &seed, err)) {
        return false;
    }
    if (seed >= 0) {
        a->params.seed = (uint32_t)seed;
        return true;
    }
    return getrandom(&a->params.seed, sizeof a->params.seed, 0) == sizeof a->params.seed ||
           lb_err_set(err, LB_IO, "cannot draw a seed: %s", strerror(errno));
}

static bool read_token_id(const char *text, uint32_t n_vocab, uint32_t *out, lb_err *err) {
    char *end = NULL;
    errno = 0;
    unsigned long long x = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || x >= n_vocab) {
        return lb_err_set(err, LB_BAD_VALUE, "logit_bias: '%.40s' is no token; they are 0..%u",
                          text, n_vocab - 1);
    }
    *out = (uint32_t)x;
    return true;
}

/* {"id": bias}; and with ignore_eos, nothing may end the answer. */
static bool read_bias(rt_ask *a, lb_err *err) {
    const rt_model *m = a->r->server->model;
    const json_t *map = NULL;
    const char *key = NULL;
    json_t *v = NULL;
    bool ignore = false;
    if (!rt_field_object(a->root, "logit_bias", &map, err) ||
        !rt_field_bool(a->root, "ignore_eos", &ignore, err)) {
        return false;
    }
    size_t n = json_object_size(map);
    if (n > BIAS_MAX) {
        return lb_err_set(err, LB_LIMIT, "logit_bias: %zu tokens; the most is %d", n, BIAS_MAX);
    }
    uint32_t n_eog = ignore ? m->tokenizer->n_eog : 0;
    rt_logit_bias *list = lb_alloc_n(&a->r->arena, n + n_eog, sizeof *list, err);
    uint32_t i = 0;
    if (list == NULL) {
        return false;
    }
    json_object_foreach((json_t *)(uintptr_t)map, key, v) {
        double bias = json_number_value(v);
        if (!read_token_id(key, m->n_vocab, &list[i].token, err)) {
            return false;
        }
        if (!json_is_number(v) || !(bias >= -100.0 && bias <= 100.0)) {
            return lb_err_set(err, LB_BAD_VALUE,
                              "logit_bias: of token %s it must be a number in "
                              "-100..100",
                              key);
        }
        list[i++].bias = bias <= -100.0 ? -INFINITY : (float)bias; /* -100 is a ban */
    }
    for (uint32_t k = 0; k < n_eog; k++) {
        list[i++] = (rt_logit_bias){m->tokenizer->eog[k], -INFINITY};
    }
    a->params.bias = list;
    a->params.n_bias = i;
    return true;
}

bool rt_ask_sampling(rt_ask *a, lb_err *err) {
    int64_t n = 1;
    if (!rt_fields_refuse(a->root, OTHERS, sizeof OTHERS / sizeof OTHERS[0], err) ||
        !read_numbers(a, err) || !read_seed(a, err) || !read_bias(a, err) ||
        !rt_field_int(a->root, "n", 1, RT_MAIL_CHOICES, &n, err)) {
        return false;
    }
    a->n = (uint32_t)n;
    return true;
}

static bool read_stop(const json_t *v, const char *key, rt_stop_string *out, lb_err *err) {
    size_t n = json_string_length(v);
    if (!json_is_string(v) || n == 0 || n > STOP_BYTES_MAX) {
        return lb_err_set(err, LB_BAD_VALUE, "%s: must be texts of 1 to %d bytes", key,
                          STOP_BYTES_MAX);
    }
    *out = (rt_stop_string){json_string_value(v), n};
    return true;
}

bool rt_ask_stops(rt_ask *a, const char *key, lb_err *err) {
    const json_t *v = rt_field(a->root, key);
    size_t n = json_is_array(v) ? json_array_size(v) : 1;
    if (v == NULL) {
        return true;
    }
    if (n > STOPS_MAX) {
        return lb_err_set(err, LB_LIMIT, "%s: %zu texts; the most is %d", key, n, STOPS_MAX);
    }
    rt_stop_string *stops = lb_alloc_n(&a->r->arena, n, sizeof *stops, err);
    if (stops == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_stop(json_is_array(v) ? json_array_get(v, i) : v, key, &stops[i], err)) {
            return false;
        }
    }
    a->stops = stops;
    a->n_stops = n;
    return true;
}

bool rt_ask_stream(rt_ask *a, lb_err *err) {
    const json_t *options = NULL;
    if (!rt_field_bool(a->root, "stream", &a->stream, err) ||
        !rt_field_object(a->root, "stream_options", &options, err) ||
        !rt_field_bool(options, "include_usage", &a->usage, err)) {
        return false;
    }
    if (options != NULL && !a->stream) {
        return lb_err_set(err, LB_BAD_VALUE, "stream_options: only with stream");
    }
    return true;
}

bool rt_ask_effort(rt_ask *a, const json_t *object, const char *key, lb_err *err) {
    static const char *const words[] = {"none", "minimal", "low", "medium", "high", "xhigh",
                                        "max",  NULL};
    static const uint32_t budgets[] = {0,    256,        1024,       4096,
                                       UINT32_MAX, UINT32_MAX, UINT32_MAX};
    int word = -1;
    if (!rt_field_word(object, key, words, &word, err)) {
        return false;
    }
    if (word == 0) {
        a->render.thinking = RT_THINKING_OFF;
    } else if (word > 0) {
        a->render.thinking = RT_THINKING_ON;
        a->think_budget = budgets[word] < a->think_budget ? budgets[word] : a->think_budget;
    }
    return true;
}
