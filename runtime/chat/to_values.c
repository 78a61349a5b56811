/* to_values.c -- see to_values.h. */
#include "chat/to_values.h"

#include <string.h>

#include "chat/json.h"
#include "chat/ops.h"

static rt_val text_value(rt_string s) {
    rt_val v = rt_lit(s.s == NULL ? "" : s.s, s.n);
    v.user = true;
    return v;
}

static void set(rt_chat_ctx *c, rt_val dict, const char *key, rt_val v) {
    rt_put(c, dict, rt_lit(key, strlen(key)), v);
}

/* All text parts of a message, joined. */
static rt_val joined_parts(rt_chat_ctx *c, const rt_message *m) {
    rt_sb sb = {0};
    for (size_t i = 0; i < m->n_parts; i++) {
        rt_sb_text(c, &sb, text_value(m->parts[i].text));
    }
    rt_val v = rt_sb_value(&sb);
    v.user = true;
    return v;
}

/* A content text as the only part. */
static rt_val single_part(rt_chat_ctx *c, const rt_message *m) {
    rt_val part = rt_new_dict(c);
    set(c, part, "type", RT_LIT("text"));
    set(c, part, "text", text_value(m->content));
    return rt_list_of(c, 1, &part);
}

static rt_val parts_value(rt_chat_ctx *c, const rt_message *m) {
    rt_val list = rt_new_list(c, RT_PLAIN);
    list.user = true;
    for (size_t i = 0; i < m->n_parts && !c->failed; i++) {
        rt_push(c, list, rt_from_json(c, m->parts[i].json, true));
    }
    return list;
}

static bool only_text(const rt_message *m) {
    for (size_t i = 0; i < m->n_parts; i++) {
        if (m->parts[i].text.s == NULL) {
            return false;
        }
    }
    return true;
}

/* Content is never null: templates print it. Text parts become one text unless parts are needed. */
static rt_val content_value(rt_chat_ctx *c, const rt_message *m, const rt_chat_caps *caps) {
    if (caps->null_content && m->n_tool_calls > 0 && m->n_parts == 0 && m->content.n == 0) {
        return rt_none();
    }
    if (m->n_parts == 0) {
        return caps->parts_only && m->content.s != NULL ? single_part(c, m)
            : text_value(m->content);
    }
    if (caps->parts_only || (caps->parts && !only_text(m))) {
        return parts_value(c, m);
    }
    return joined_parts(c, m);
}

static rt_val arguments_value(rt_chat_ctx *c, const rt_tool_call *call, const rt_chat_caps *caps) {
    if (call->object != NULL) {
        return rt_from_json(c, call->object, true);
    }
    if (!caps->object_arguments) {
        return text_value(call->arguments);
    }
    rt_val v = rt_undefined();
    lb_err why = {0};
    if (call->arguments.n == 0) {
        v = rt_new_dict(c);
        v.user = true;
    } else if (!rt_parse_json(c, call->arguments.s, call->arguments.n, true, &v, &why)) {
        return rt_fail(c, LB_BAD_VALUE, "arguments of the call of '%.*s' are not JSON: %s",
                       call->name.n > 60 ? 60 : (int)call->name.n, call->name.s, why.text);
    }
    return v;
}

static rt_val tool_calls_value(rt_chat_ctx *c, const rt_message *m, const rt_chat_caps *caps) {
    rt_val list = rt_new_list(c, RT_PLAIN);
    list.user = true;
    for (size_t i = 0; i < m->n_tool_calls && !c->failed; i++) {
        const rt_tool_call *call = &m->tool_calls[i];
        rt_val function = rt_new_dict(c);
        set(c, function, "name", text_value(call->name));
        set(c, function, "arguments", arguments_value(c, call, caps));
        rt_val v = rt_new_dict(c);
        set(c, v, "type", RT_LIT("function"));
        if (call->id.s != NULL) {
            set(c, v, "id", text_value(call->id));
        }
        set(c, v, "function", function);
        rt_push(c, list, v);
    }
    return list;
}

/* Keys that the model above does not name go through as they are. */
static void other_keys(rt_chat_ctx *c, rt_val dict, const json_t *json) {
    json_t *object = (json_t *)(uintptr_t)json; /* jansson iterates through non-const pointers */
    static const char *const known[] = {"role", "content", "reasoning_content", "reasoning",
                                        "thinking",
                                        "tool_calls", "tool_call_id", "name"};
    for (void *it = json_object_iter(object); it != NULL && !c->failed;
         it = json_object_iter_next(object, it)) {
        const char *key = json_object_iter_key(it);
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            is_known = is_known || strcmp(known[i], key) == 0;
        }
        if (!is_known && !json_is_null(json_object_iter_value(it))) {
            rt_val name = rt_lit(key, json_object_iter_key_len(it));
            name.user = true;
            rt_put(c, dict, name, rt_from_json(c, json_object_iter_value(it), true));
        }
    }
}

static rt_val message_value(rt_chat_ctx *c, const rt_message *m, const rt_chat_caps *caps) {
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    rt_val v = rt_new_dict(c);
    v.user = true;
    set(c, v, "role", rt_lit(roles[m->role], strlen(roles[m->role])));
    set(c, v, "content", content_value(c, m, caps));
    if (m->reasoning.s != NULL) {
        set(c, v, caps->reasoning_key == NULL ? "reasoning_content" : caps->reasoning_key,
            text_value(m->reasoning));
    }
    if (m->n_tool_calls > 0) {
        set(c, v, "tool_calls", tool_calls_value(c, m, caps));
    }
    if (m->tool_call_id.s != NULL) {
        set(c, v, "tool_call_id", text_value(m->tool_call_id));
    }
    if (m->name.s != NULL) {
        set(c, v, "name", text_value(m->name));
    }
    other_keys(c, v, m->json);
    return v;
}

rt_val rt_messages_value(rt_chat_ctx *c, const rt_chat *chat, const rt_chat_caps *caps) {
    rt_val list = rt_new_list(c, RT_PLAIN);
    list.user = true;
    for (size_t i = 0; i < chat->n_messages && !c->failed; i++) {
        rt_push(c, list, message_value(c, &chat->messages[i], caps));
    }
    return list;
}
