/* driver.c -- renders compiled templates for tests: reads JSON lines from stdin, writes JSON lines.
 *
 * Linked with a table of templates, `const rt_chat_render_fn test_templates[]`, made by the test.
 * A line is {"template": index, and either "vars": {...} or "messages": [...], "tools": [...],
 * "options": {...}}, or "probe": true; "work" and "memory" bound it. The answer is {"text": ...,
 * "user": [[at, n], ...]} or {"error": ..., "code": n}. The clock stands at 2026-07-26 09:05:03. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/json_read.h"
#include "chat/probe.h"
#include "chat/render.h"

extern const rt_chat_render_fn test_templates[];
extern const size_t n_test_templates;

/* A Sunday in summer. */
static const struct tm now = {.tm_year = 126, .tm_mon = 6, .tm_mday = 26, .tm_hour = 9, .tm_min = 5,
                              .tm_sec = 3, .tm_wday = 0, .tm_yday = 206};

static bool render_messages(const rt_chat_template *t, const json_t *line, rt_chat_options *options,
                            lb_arena *arena, rt_rendered *out, lb_err *err) {
    rt_chat chat;
    rt_chat_caps caps;
    rt_chat_init(&chat, arena);
    const json_t *o = json_object_get(line, "options");
    options->kwargs = json_object_get(o, "kwargs");
    options->add_generation_prompt = !json_is_false(json_object_get(o, "add_generation_prompt"));
    options->thinking = json_is_true(json_object_get(o, "thinking"))    ? RT_THINKING_ON
                        : json_is_false(json_object_get(o, "thinking")) ? RT_THINKING_OFF
                                                                        : RT_THINKING_DEFAULT;
    return rt_chat_probe(t, &caps, err) &&
           rt_chat_add_json(&chat, json_object_get(line, "messages"), json_object_get(line,
                   "tools"), err) &&
           rt_chat_render(t, &caps, &chat, options, arena, out, err);
}

static json_t *probe(const rt_chat_template *t) {
    rt_chat_caps caps;
    lb_err err = {0};
    if (!rt_chat_probe(t, &caps, &err)) {
        return json_pack("{s:s}", "error", err.text);
    }
    return json_pack("{s:b,s:b,s:b,s:b,s:b,s:s?}", "parts", caps.parts, "parts_only",
                     caps.parts_only, "object_arguments", caps.object_arguments, "null_content",
                     caps.null_content, "thinking", caps.thinking, "reasoning_key",
                     caps.reasoning_key);
}

static json_t *answer(const rt_rendered *r) {
    json_t *user = json_array();
    for (size_t i = 0; i < r->n_user; i++) {
        json_array_append_new(user, json_pack("[I,I]", (json_int_t)r->user[i].at,
                                              (json_int_t)r->user[i].n_bytes));
    }
    return json_pack("{s:o,s:o}", "text", json_stringn(r->text, r->n_bytes), "user", user);
}

static json_t *run(const json_t *line) {
    lb_arena arena;
    lb_err err = {0};
    rt_rendered out = {0};
    json_t *memory = json_object_get(line, "memory");
    size_t which = (size_t)json_integer_value(json_object_get(line, "template"));
    rt_chat_template t = {.bos_text = json_string_value(json_object_get(line, "bos")),
                          .eos_text = json_string_value(json_object_get(line, "eos"))};
    rt_chat_options options = {.now = &now};
    options.work_max = (uint64_t)json_integer_value(json_object_get(line, "work"));
    lb_arena_init(&arena, "rendering", memory != NULL ? (uint64_t)json_integer_value(memory)
                                                      : (uint64_t)RT_CHAT_ARENA_BYTES);
    bool ok = which < n_test_templates;
    if (ok) {
        t.render = test_templates[which];
        if (json_is_true(json_object_get(line, "probe"))) {
            return probe(&t);
        }
        const json_t *vars = json_object_get(line, "vars");
        ok = vars != NULL ? rt_chat_render_vars(&t, vars, &options, &arena, &out, &err)
                          : render_messages(&t, line, &options, &arena, &out, &err);
    }
    json_t *result = ok ? answer(&out)
                        : json_pack("{s:s,s:i}", "error", err.text, "code", (int)err.code);
    lb_arena_reset(&arena);
    return result;
}

int main(void) {
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        lb_arena arena;
        lb_err err = {0};
        json_t *in = NULL;
        lb_arena_init(&arena, "line", UINT64_C(1) << 28);
        bool ok = rt_json_read(line, (size_t)n, &arena, &in, &err);
        json_t *out = ok ? run(in) : json_pack("{s:s,s:i}", "error", err.text, "code", (int)err.code);
        lb_arena_reset(&arena);
        char *text = json_dumps(out, JSON_COMPACT);
        puts(text);
        free(text);
        json_decref(out);
        json_decref(in);
    }
    free(line);
    return 0;
}
