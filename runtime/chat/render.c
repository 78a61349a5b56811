#define _POSIX_C_SOURCE 200809L /* localtime_r */
/* render.c -- see render.h. */
#include "chat/render.h"

#include <string.h>

#include "chat/ctx.h"
#include "chat/json.h"
#include "chat/ops.h"
#include "chat/to_values.h"

static void set_var(rt_chat_ctx *c, rt_val vars, const char *name, rt_val v) {
    rt_put(c, vars, rt_lit(name, strlen(name)), v);
}

static void set_kwargs(rt_chat_ctx *c, rt_val vars, const json_t *kwargs) {
    json_t *object = (json_t *)(uintptr_t)kwargs; /* jansson iterates through non-const pointers */
    for (void *it = json_object_iter(object); it != NULL && !c->failed;
         it = json_object_iter_next(object, it)) {
        rt_val key = rt_lit(json_object_iter_key(it), json_object_iter_key_len(it));
        rt_put(c, vars, key, rt_from_json(c, json_object_iter_value(it), true));
    }
}

/* bos_token and eos_token are the template's own words. */
static void set_tokens(rt_chat_ctx *c, rt_val vars, const rt_chat_template *t) {
    if (t->bos_text != NULL) {
        set_var(c, vars, "bos_token", rt_lit(t->bos_text, strlen(t->bos_text)));
    }
    if (t->eos_text != NULL) {
        set_var(c, vars, "eos_token", rt_lit(t->eos_text, strlen(t->eos_text)));
    }
}

static void read_clock(rt_chat_ctx *c, const rt_chat_options *options) {
    if (options->now != NULL) {
        c->now = *options->now;
        return;
    }
    time_t now = time(NULL);
    localtime_r(&now, &c->now);
}

static rt_chat_ctx begin(const rt_chat_options *options, lb_arena *arena) {
    rt_chat_ctx c = {.arena = arena, .work_left = options->work_max};
    if (c.work_left == 0) {
        c.work_left = RT_CHAT_WORK_DEFAULT;
    }
    read_clock(&c, options);
    return c;
}

/* The ranges of the output that are marked. */
static bool user_ranges(rt_chat_ctx *c, rt_val text, rt_token_span **out, size_t *n_out) {
    size_t n = 0;
    for (size_t i = 0; i < text.n_bytes; i++) {
        bool here = text.mark != NULL ? text.mark[i] != 0 : text.user;
        bool before = i > 0 && (text.mark != NULL ? text.mark[i - 1] != 0 : text.user);
        n += here && !before;
    }
    rt_token_span *ranges = rt_alloc(c, n, sizeof *ranges);
    if (ranges == NULL) {
        return false;
    }
    size_t k = 0;
    for (size_t i = 0; i < text.n_bytes; i++) {
        bool here = text.mark != NULL ? text.mark[i] != 0 : text.user;
        bool before = k > 0 && ranges[k - 1].at + ranges[k - 1].n_bytes == i;
        if (here && before) {
            ranges[k - 1].n_bytes++;
        } else if (here) {
            ranges[k++] = (rt_token_span){.at = i, .n_bytes = 1};
        }
    }
    *out = ranges;
    *n_out = n;
    return true;
}

static bool finish(rt_chat_ctx *c, const rt_chat_template *t, rt_val vars, rt_rendered *out,
                   lb_err *err) {
    if (!c->failed && vars.kind == RT_DICT) {
        c->vars = vars.u.dict;
        t->render(c);
    }
    rt_val text = rt_sb_value(&c->out);
    rt_token_span *ranges = NULL;
    size_t n_ranges = 0;
    char *copy = c->failed ? NULL : rt_alloc(c, (uint64_t)text.n_bytes + 1, 1);
    if (copy == NULL || !user_ranges(c, text, &ranges, &n_ranges)) {
        *err = c->err;
        return false;
    }
    memcpy(copy, text.u.s, text.n_bytes);
    *out = (rt_rendered){.text = copy, .n_bytes = text.n_bytes, .user = ranges, .n_user = n_ranges};
    return true;
}

bool rt_chat_render_vars(const rt_chat_template *t, const json_t *vars,
                         const rt_chat_options *options,
                         lb_arena *arena, rt_rendered *out, lb_err *err) {
    rt_chat_ctx c = begin(options, arena);
    rt_val dict = rt_new_dict(&c);
    set_tokens(&c, dict, t);
    set_kwargs(&c, dict, vars);
    return finish(&c, t, dict, out, err);
}

/* %d %b %Y and the like, which templates may ask for by name. */
static rt_val date(rt_chat_ctx *c, const char *format) {
    return rt_strftime_now(c, rt_lit(format, strlen(format)));
}

bool rt_chat_render(const rt_chat_template *t, const rt_chat_caps *caps, const rt_chat *chat,
                    const rt_chat_options *options, lb_arena *arena, rt_rendered *out,
                        lb_err *err) {
    rt_chat_ctx c = begin(options, arena);
    rt_val vars = rt_new_dict(&c);
    set_tokens(&c, vars, t);
    set_var(&c, vars, "messages", rt_messages_value(&c, chat, caps));
    if (chat->tools != NULL) {
        set_var(&c, vars, "tools", rt_from_json(&c, chat->tools, true));
    }
    if (options->add_generation_prompt) {
        set_var(&c, vars, "add_generation_prompt", rt_bool(true));
    }
    rt_thinking thinking =
        options->thinking != RT_THINKING_DEFAULT ? options->thinking : t->thinking;
    bool on = thinking == RT_THINKING_ON || (thinking == RT_THINKING_DEFAULT && caps->thinking);
    set_var(&c, vars, "enable_thinking", rt_bool(on));
    if (options->keep_reasoning) { /* the switches that templates have for it */
        set_var(&c, vars, "preserve_thinking", rt_bool(true));
        set_var(&c, vars, "clear_thinking", rt_bool(false));
        set_var(&c, vars, "truncate_history_thinking", rt_bool(false));
        set_var(&c, vars, "drop_thinking", rt_bool(false));
    }
    set_var(&c, vars, "date_string", date(&c, "%d %b %Y"));
    set_var(&c, vars, "datetime", date(&c, "%b %d %Y"));
    set_kwargs(&c, vars, options->kwargs);
    return finish(&c, t, vars, out, err);
}
