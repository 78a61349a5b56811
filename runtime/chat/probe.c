/* probe.c -- see probe.h. Words that no template contains are put into a conversation and looked
 * for in the prompt. */
#define _GNU_SOURCE /* memmem */
#include "chat/probe.h"

#include <stdlib.h>
#include <string.h>

enum { PROBE_ARENA_BYTES = 16 * 1024 * 1024, PROBE_WORK = 1000000 };

static const char needle[] = "qzNeedle";
static const char arguments[] = "{\"qzKey\": \"qzValue\"}";

typedef struct trial {
    const rt_chat_template *t;
    json_t *tools;
    json_t *object;  /* `arguments` as an object */
    lb_arena arena;
    rt_chat chat;
    rt_chat_caps caps;
    rt_chat_options options;
    rt_rendered out;
    bool no_memory;
} trial;

static bool note(trial *p, bool ok, const lb_err *err) {
    p->no_memory = p->no_memory || (!ok && err->code == LB_NO_MEMORY);
    return ok;
}

/* Begins a new conversation; what was rendered before is gone. */
static void begin(trial *p) {
    lb_arena_reset(&p->arena);
    rt_chat_init(&p->chat, &p->arena);
    p->options = (rt_chat_options){.add_generation_prompt = true, .work_max = PROBE_WORK};
    p->options.thinking = RT_THINKING_ON;
}

/* Appends a turn and returns it; NULL if there is no memory. */
static rt_message *say(trial *p, rt_role role, const char *text) {
    lb_err err = {0};
    bool ok = note(p, rt_chat_add(&p->chat, role, text, strlen(text), &err), &err);
    return ok ? &p->chat.messages[p->chat.n_messages - 1] : NULL;
}

static bool render(trial *p) {
    lb_err err = {0};
    p->out = (rt_rendered){0};
    return !p->no_memory &&
           note(p, rt_chat_render(p->t, &p->caps, &p->chat, &p->options, &p->arena, &p->out, &err),
                &err);
}

static bool shows(const trial *p, const char *what) {
    return p->out.text != NULL && memmem(p->out.text, p->out.n_bytes, what, strlen(what)) != NULL;
}

/* ---- content as text or as parts ---- */

static bool takes_text(trial *p) {
    begin(p);
    say(p, RT_ROLE_USER, needle);
    return render(p) && shows(p, needle) && !shows(p, "'type'") && !shows(p, "\"type\"");
}

static bool takes_parts(trial *p) {
    begin(p);
    p->caps.parts_only = true;
    say(p, RT_ROLE_USER, needle);
    bool ok = render(p) && shows(p, needle) && !shows(p, "'type'") && !shows(p, "\"type\"");
    p->caps.parts_only = false;
    return ok;
}

/* ---- arguments of calls ---- */

/* A call with its result; the tools are given too, as some templates look at them first. */
static rt_message *converse_with_call(trial *p, rt_tool_call *call) {
    begin(p);
    p->chat.tools = p->tools;
    say(p, RT_ROLE_USER, "Q");
    rt_message *m = say(p, RT_ROLE_ASSISTANT, "");
    if (m == NULL) {
        return NULL;
    }
    m->content.s = NULL;
    m->tool_calls = call;
    m->n_tool_calls = 1;
    rt_message *result = say(p, RT_ROLE_TOOL, "R");
    if (result != NULL) {
        result->tool_call_id = call->id;
    }
    return &p->chat.messages[1]; /* a message array that grew has moved */
}

static bool shows_arguments(const trial *p) {
    return shows(p, "qzValue") && !shows(p, "\\\"qzKey");
}

/* Objects are what templates are written for; text is kept where it comes out the same, or where
 * objects do not come out at all. *calls says whether calls come out in either form. */
static bool wants_objects(trial *p, bool *calls) {
    rt_tool_call call = {.id = {"call00000", 9}, .name = {"f", 1}};
    call.arguments = (rt_string){arguments, sizeof arguments - 1};
    converse_with_call(p, &call);
    bool text_ok = render(p) && shows_arguments(p);
    char *text = NULL;
    size_t n_text = p->out.n_bytes;
    if (text_ok) {
        text = strndup(p->out.text, n_text);
        p->no_memory = p->no_memory || text == NULL;
    }
    call.object = p->object;
    converse_with_call(p, &call);
    bool object_ok = render(p) && shows_arguments(p);
    bool same = text != NULL && p->out.n_bytes == n_text && p->out.text != NULL &&
                memcmp(text, p->out.text, n_text) == 0;
    free(text);
    *calls = object_ok || text_ok;
    return object_ok ? !same : !text_ok;
}

/* ---- thinking ---- */

static bool knows_thinking(trial *p) {
    begin(p);
    say(p, RT_ROLE_USER, "Q");
    bool ok = render(p);
    size_t n = p->out.n_bytes;
    const char *text = p->out.text; /* stays in the arena: no new conversation is begun */
    p->options.thinking = RT_THINKING_OFF;
    ok = ok && render(p);
    return ok && (p->out.n_bytes != n || memcmp(p->out.text, text, n) != 0);
}

/* True if reasoning under `key` is in the prompt, in a last answer or in front of a call. */
static bool reads_reasoning(trial *p, const char *key) {
    rt_tool_call call = {.id = {"call00000", 9}, .name = {"f", 1}};
    call.arguments = (rt_string){arguments, sizeof arguments - 1};
    call.object = p->caps.object_arguments ? p->object : NULL;
    p->caps.reasoning_key = key;
    for (int with_call = 0; with_call < 2; with_call++) {
        rt_message *m = NULL;
        if (with_call == 1) {
            m = converse_with_call(p, &call);
        } else {
            begin(p);
            say(p, RT_ROLE_USER, "Q");
            m = say(p, RT_ROLE_ASSISTANT, "A");
        }
        if (m != NULL) {
            m->reasoning = (rt_string){needle, sizeof needle - 1};
        }
        if (m != NULL && render(p) && shows(p, needle)) {
            return true;
        }
    }
    return false;
}

static void run(trial *p, rt_chat_caps *caps) {
    static const char *const keys[] = {"reasoning_content", "reasoning", "thinking"};
    rt_chat_caps found = {0};
    bool text = takes_text(p);
    found.parts = takes_parts(p);
    found.parts_only = found.parts && !text;
    p->caps = found;
    bool calls = false;
    found.object_arguments = wants_objects(p, &calls);
    if (!calls) {
        p->caps.null_content = true;
        bool objects = wants_objects(p, &calls);
        found.null_content = calls;
        found.object_arguments = calls ? objects : found.object_arguments;
    }
    p->caps = found;
    found.thinking = knows_thinking(p);
    p->caps = found;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && found.reasoning_key == NULL; i++) {
        found.reasoning_key = reads_reasoning(p, keys[i]) ? keys[i] : NULL;
    }
    *caps = found;
}

bool rt_chat_probe(const rt_chat_template *t, rt_chat_caps *caps, lb_err *err) {
    trial p = {.t = t};
    lb_arena_init(&p.arena, "template probe", PROBE_ARENA_BYTES);
    p.tools = json_pack("[{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s}}}}}]", "type", "function", "function",
                        "name",
                        "f", "description", "d", "parameters", "type", "object", "properties",
                            "qzKey",
                        "type", "string");
    p.object = json_pack("{s:s}", "qzKey", "qzValue");
    p.no_memory = p.tools == NULL || p.object == NULL;
    run(&p, caps);
    lb_arena_reset(&p.arena);
    json_decref(p.tools);
    json_decref(p.object);
    if (p.no_memory) {
        return lb_err_set(err, LB_NO_MEMORY, "no memory to try the chat template");
    }
    return true;
}
