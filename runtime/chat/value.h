/* value.h -- values of chat templates, with the meaning that Python gives them.
 *
 * A value is small and passed by copy; what it points at lives in the arena of one rendering and is
 * shared, as references are in Python. Text is UTF-8 and knows for every byte whether it came from
 * the request (messages, tools, arguments of the request) or from the template: `mark`, or `user`
 * where all bytes are alike. Whatever is made from request data counts as request data. */
#ifndef RT_CHAT_VALUE_H
#define RT_CHAT_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum rt_kind {
    RT_UNDEFINED, /* u.s, n_bytes: the name that was looked for, for messages */
    RT_MISSING,   /* an argument that a macro call left out; never seen by templates */
    RT_NONE,
    RT_BOOL,
    RT_INT,
    RT_BIG,       /* an integer beyond 64 bits; u.s, n_bytes: its digits (big.h) */
    RT_FLOAT,
    RT_STR,
    RT_LIST,      /* every sequence and iterator; see rt_flavor */
    RT_DICT,
    RT_NAMESPACE,
    RT_RANGE,
    RT_METHOD     /* a Python method that was named and not called: only defined and true */
} rt_kind;

typedef enum rt_flavor {
    RT_PLAIN,
    RT_TUPLE,
    RT_VIEW,     /* dict.items(), keys(), values(): no subscripts */
    RT_GENERATOR /* map, select, ...: no length, consumed once, always true */
} rt_flavor;

typedef struct rt_list rt_list;
typedef struct rt_dict rt_dict;
typedef struct rt_span rt_span;

typedef struct rt_val {
    uint8_t kind;
    bool user;   /* made from the request; for lists and dicts: their brackets are */
    bool markup; /* text that `safe` or `escape` made: + escapes what is joined to it */
    uint32_t n_bytes; /* RT_STR */
    union {
        bool b;
        int64_t i;
        double f;
        const char *s;
        rt_list *list;
        rt_dict *dict; /* namespaces too */
        const rt_span *range;
    } u;
    const uint8_t *mark; /* RT_STR: n_bytes times 1 (request) or 0; NULL: all bytes are `user` */
} rt_val;

struct rt_list {
    rt_val *items;
    size_t n, cap;
    size_t taken; /* RT_GENERATOR: items that were consumed */
    rt_flavor flavor;
    bool shared;  /* a slice looks at the same items: copy before changing them */
};

typedef struct rt_pair {
    rt_val key, value;
} rt_pair;

struct rt_dict {
    rt_pair *pairs; /* in the order of insertion */
    size_t n, cap;
};

struct rt_span {
    int64_t start, stop, step;
    int64_t n;
};

/* "..." of the template, of any bytes. */
#define RT_LIT(s) rt_lit(s, sizeof(s) - 1)

static inline rt_val rt_lit(const char *s, size_t n) {
    rt_val v = {.kind = RT_STR, .n_bytes = (uint32_t)n};
    v.u.s = s;
    return v;
}

static inline rt_val rt_undefined(void) {
    return (rt_val){.kind = RT_UNDEFINED};
}

static inline rt_val rt_missing(void) {
    return (rt_val){.kind = RT_MISSING};
}

static inline rt_val rt_none(void) {
    return (rt_val){.kind = RT_NONE};
}

static inline rt_val rt_bool(bool b) {
    rt_val v = {.kind = RT_BOOL};
    v.u.b = b;
    return v;
}

static inline rt_val rt_int(int64_t i) {
    rt_val v = {.kind = RT_INT};
    v.u.i = i;
    return v;
}

static inline rt_val rt_float(double f) {
    rt_val v = {.kind = RT_FLOAT};
    v.u.f = f;
    return v;
}

static inline bool rt_is_missing(rt_val v) {
    return v.kind == RT_MISSING;
}

/* bool and int, as in Python. */
static inline bool rt_has_int(rt_val v) {
    return v.kind == RT_INT || v.kind == RT_BOOL;
}

/* Any number at all. */
static inline bool rt_is_numeric(rt_val v) {
    return rt_has_int(v) || v.kind == RT_FLOAT || v.kind == RT_BIG;
}

static inline int64_t rt_int_of(rt_val v) {
    return v.kind == RT_BOOL ? (int64_t)v.u.b : v.u.i;
}

static inline bool rt_is_flavor(rt_val v, rt_flavor flavor) {
    return v.kind == RT_LIST && v.u.list->flavor == flavor;
}

#endif
