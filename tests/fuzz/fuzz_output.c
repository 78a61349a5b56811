/* fuzz_output.c -- libFuzzer target: any bytes as a model's answer, in every format. Whatever the
 * bytes, feeding them at once and one by one gives the same events, in linear memory. Built and run
 * by run.sh. The same bytes also go through the reader of JSON. The first byte picks the format,
 * whether there are tools, and the prompt's end. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chat/json_read.h"
#include "chat/output.h"
#include "runtime/output_formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { LOG_BYTES = 64 * 1024 };

/* Events one behind the other; texts that follow each other are one. */
typedef struct log {
    char text[LOG_BYTES];
    size_t n;
    int last;
} event_log;

static void must(bool holds) {
    if (!holds) {
        __builtin_trap();
    }
}

static void add(event_log *l, const char *s, size_t n) {
    must(n <= sizeof l->text - l->n);
    if (n > 0) {
        memcpy(l->text + l->n, s, n);
    }
    l->n += n;
}

static void log_event(void *to, const rt_event *e) {
    event_log *l = to;
    bool text = e->kind == RT_EVENT_REASONING || e->kind == RT_EVENT_CONTENT;
    if (l->last != (int)e->kind || !text) {
        char head[2] = {'\0', (char)('0' + (int)e->kind)};
        add(l, head, 2);
    }
    if (e->kind == RT_EVENT_CALL) {
        must(e->name.n > 0);
        json_t *arguments = json_loadb(e->text.s, e->text.n,
                                       JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
        must(json_is_object(arguments));
        json_decref(arguments);
    }
    add(l, e->name.s, e->name.n);
    add(l, e->text.s, e->text.n);
    l->last = (int)e->kind;
}

static void run(const rt_output_format *format, const json_t *tools, const char *tail,
                const char *text, size_t n, size_t piece, event_log *log) {
    lb_arena arena;
    lb_err err = {0};
    rt_output *o = NULL;
    rt_rendered prompt = {.text = tail, .n_bytes = strlen(tail)};
    log->n = 0;
    log->last = -1;
    lb_arena_init(&arena, "output", 16 << 20);
    must(rt_output_new(format, tools, &prompt, log_event, log, &arena, &o, &err));
    for (size_t i = 0; i < n; i += piece) {
        must(rt_output_feed(o, text + i, n - i < piece ? n - i : piece, &err));
    }
    must(rt_output_finish(o, &err));
    lb_arena_reset(&arena);
}

static const char tools_text[] =
    "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"s\":{\"type\":\"string\"},"
    "\"m\":{\"type\":[\"string\",\"null\"]},"
    "\"a\":{\"anyOf\":[{\"type\":\"string\"},{\"const\":1}]},"
    "\"n\":{\"enum\":[1,\"x\"]}}}}}]";

/* What jansson reads, rt_json_read reads alike; it refuses only what is deep or large, and reads
 * besides what has long integers. */
static void read_json(const char *s, size_t n) {
    lb_arena arena;
    lb_err err = {0};
    json_t *ours = NULL;
    lb_arena_init(&arena, "json", 1 << 20);
    json_t *theirs = json_loadb(s, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    bool ok = rt_json_read(s, n, &arena, &ours, &err);
    must(theirs == NULL || (ok ? json_equal(theirs, ours) == 1 : err.code == LB_LIMIT));
    must(ok || err.code == LB_LIMIT || err.code == LB_SYNTAX);
    json_decref(theirs);
    json_decref(ours);
    lb_arena_reset(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
    static const char *const tails[] = {"", "<think>", "</think>", "<|start|>assistant"};
    static event_log whole, single;
    if (n_bytes == 0) {
        return 0;
    }
    size_t n_formats = sizeof all_formats / sizeof all_formats[0];
    const rt_output_format *format = all_formats[data[0] % n_formats];
    json_t *tools = (data[0] & 64) == 0 ? json_loads(tools_text, 0, NULL) : NULL;
    const char *tail = tails[(data[0] / n_formats) % 4];
    char *text = malloc(n_bytes);
    must(text != NULL);
    memcpy(text, data + 1, n_bytes - 1);
    read_json(text, n_bytes - 1);
    run(format, tools, tail, text, n_bytes - 1, n_bytes, &whole);
    run(format, tools, tail, text, n_bytes - 1, 1, &single);
    must(whole.n == single.n && memcmp(whole.text, single.text, whole.n) == 0);
    free(text);
    json_decref(tools);
    return 0;
}
