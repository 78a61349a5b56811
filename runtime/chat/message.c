/* message.c -- see message.h. */
#include "chat/message.h"

#include <string.h>

#include "base/num.h"
#include "base/unicode.h"
#include "chat/json_read.h"

void rt_chat_init(rt_chat *chat, lb_arena *arena) {
    *chat = (rt_chat){.arena = arena};
}

static rt_message *append(rt_chat *chat, lb_err *err) {
    if (chat->n_messages == chat->cap_messages) {
        size_t cap = chat->cap_messages == 0 ? 16 : chat->cap_messages * 2;
        rt_message *p = lb_alloc_n(chat->arena, cap, sizeof *p, err);
        if (p == NULL) {
            return NULL;
        }
        if (chat->n_messages > 0) {
            memcpy(p, chat->messages, chat->n_messages * sizeof *p);
        }
        chat->messages = p;
        chat->cap_messages = cap;
    }
    return &chat->messages[chat->n_messages];
}

/* A copy in which what is no UTF-8 is U+FFFD, one for every bad byte. */
static bool copy_text(rt_chat *chat, const char *s, size_t n, rt_string *out, lb_err *err) {
    uint64_t worst = 0;
    if (!lb_mul(n, 3, &worst) || worst > UINT32_MAX) {
        return lb_err_set(err, LB_LIMIT, "text of %zu bytes", n);
    }
    bool valid = lb_utf8_valid_bytes(s, n) == n;
    char *to = lb_alloc(chat->arena, (valid ? n : worst) + 1, err);
    if (to == NULL) {
        return false;
    }
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        size_t good = lb_utf8_valid_bytes(s + i, n - i);
        memcpy(to + len, s + i, good);
        len += good;
        i += good;
        if (i < n) {
            len += lb_utf8_encode(LB_REPLACEMENT, to + len);
            i++;
        }
    }
    *out = (rt_string){.s = to, .n = len};
    return true;
}

bool rt_chat_add(rt_chat *chat, rt_role role, const char *text, size_t n_bytes, lb_err *err) {
    rt_message *m = append(chat, err);
    rt_string copy = {0};
    if (m == NULL || !copy_text(chat, text, n_bytes, &copy, err)) {
        return false;
    }
    *m = (rt_message){.role = role, .content = copy};
    chat->n_messages++;
    return true;
}

/* ---- from JSON ---- */

static bool bad(lb_err *err, lb_code code, size_t i, const char *what) {
    return lb_err_set(err, code, "messages[%zu]%s", i, what);
}

/* Copies the text under `key`; null and absent leave *out alone. */
static bool text_key(rt_chat *chat, const json_t *object, const char *key, size_t i, rt_string *out,
                     lb_err *err) {
    const json_t *v = json_object_get(object, key);
    if (v == NULL || json_is_null(v)) {
        return true;
    }
    const char *digits = NULL;
    size_t n_digits = 0;
    if (!json_is_string(v) || rt_json_big(v, &digits, &n_digits)) {
        return lb_err_set(err, LB_BAD_TYPE, "messages[%zu].%s: must be a string", i, key);
    }
    return copy_text(chat, json_string_value(v), json_string_length(v), out, err);
}

static bool read_role(const json_t *json, size_t i, rt_role *out, lb_err *err) {
    static const struct { const char *name; rt_role role; } roles[] = {
        {"system", RT_ROLE_SYSTEM}, {"developer", RT_ROLE_SYSTEM}, {"user", RT_ROLE_USER},
        {"assistant", RT_ROLE_ASSISTANT}, {"tool", RT_ROLE_TOOL}, {"function", RT_ROLE_TOOL},
    };
    const char *name = json_string_value(json_object_get(json, "role"));
    for (size_t k = 0; name != NULL && k < sizeof roles / sizeof roles[0]; k++) {
        if (strcmp(name, roles[k].name) == 0) {
            *out = roles[k].role;
            return true;
        }
    }
    return lb_err_set(err, LB_BAD_VALUE,
                      "messages[%zu].role: '%s'; it must be system, developer, user, assistant or "
                      "tool", i, name == NULL ? "(none)" : name);
}

static bool read_part(rt_chat *chat, const json_t *json, size_t i, rt_content_part *out,
                      lb_err *err) {
    rt_content_part part = {.json = json};
    if (!json_is_object(json)) {
        return bad(err, LB_BAD_TYPE, i, ".content: parts must be objects");
    }
    const char *type = json_string_value(json_object_get(json, "type"));
    if (type == NULL) {
        return bad(err, LB_BAD_VALUE, i, ".content: a part has no type");
    }
    part.type = (rt_string){.s = type, .n = strlen(type)};
    const json_t *text = json_object_get(json, "text");
    if (strcmp(type, "text") == 0) {
        if (!json_is_string(text)) {
            return bad(err, LB_BAD_TYPE, i, ".content: a text part has no text");
        }
        if (!copy_text(chat, json_string_value(text), json_string_length(text), &part.text, err)) {
            return false;
        }
    }
    *out = part;
    return true;
}

static bool read_content(rt_chat *chat, const json_t *json, size_t i, rt_message *m, lb_err *err) {
    const json_t *content = json_object_get(json, "content");
    if (!json_is_array(content)) {
        return text_key(chat, json, "content", i, &m->content, err);
    }
    size_t n = json_array_size(content);
    m->parts = lb_alloc_n(chat->arena, n, sizeof *m->parts, err);
    if (m->parts == NULL) {
        return false;
    }
    for (size_t k = 0; k < n; k++) {
        if (!read_part(chat, json_array_get(content, k), i, &m->parts[k], err)) {
            return false;
        }
    }
    m->n_parts = n;
    return true;
}

static bool read_call(rt_chat *chat, const json_t *json, size_t i, rt_tool_call *out, lb_err *err) {
    const json_t *function = json_object_get(json, "function");
    if (!json_is_object(function)) {
        return bad(err, LB_BAD_TYPE, i, ".tool_calls: a call has no function");
    }
    if (!text_key(chat, json, "id", i, &out->id, err) ||
        !text_key(chat, function, "name", i, &out->name, err)) {
        return false;
    }
    if (out->name.n == 0) {
        return bad(err, LB_BAD_VALUE, i, ".tool_calls: a function has no name");
    }
    const json_t *arguments = json_object_get(function, "arguments");
    if (json_is_object(arguments)) {
        out->object = arguments;
        return true;
    }
    return text_key(chat, function, "arguments", i, &out->arguments, err);
}

static bool read_calls(rt_chat *chat, const json_t *json, size_t i, rt_message *m, lb_err *err) {
    const json_t *calls = json_object_get(json, "tool_calls");
    if (calls == NULL || json_is_null(calls)) {
        return true;
    }
    if (!json_is_array(calls)) {
        return bad(err, LB_BAD_TYPE, i, ".tool_calls: must be an array");
    }
    size_t n = json_array_size(calls);
    m->tool_calls = lb_alloc_n(chat->arena, n, sizeof *m->tool_calls, err);
    if (m->tool_calls == NULL) {
        return false;
    }
    for (size_t k = 0; k < n; k++) {
        if (!read_call(chat, json_array_get(calls, k), i, &m->tool_calls[k], err)) {
            return false;
        }
    }
    m->n_tool_calls = n;
    return true;
}

static bool read_reasoning(rt_chat *chat, const json_t *json, size_t i, rt_message *m,
                           lb_err *err) {
    static const char *const keys[] = {"reasoning_content", "reasoning", "thinking"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0] && m->reasoning.s == NULL; k++) {
        if (json_is_string(json_object_get(json, keys[k])) &&
            !text_key(chat, json, keys[k], i, &m->reasoning, err)) {
            return false;
        }
    }
    return true;
}

static bool read_message(rt_chat *chat, const json_t *json, size_t i, lb_err *err) {
    if (!json_is_object(json)) {
        return bad(err, LB_BAD_TYPE, i, ": must be an object");
    }
    rt_message m = {.json = json};
    if (!read_role(json, i, &m.role, err) || !read_content(chat, json, i, &m, err) ||
        !read_calls(chat, json, i, &m, err) || !read_reasoning(chat, json, i, &m, err) ||
        !text_key(chat, json, "tool_call_id", i, &m.tool_call_id, err) ||
        !text_key(chat, json, "name", i, &m.name, err)) {
        return false;
    }
    rt_message *place = append(chat, err);
    if (place == NULL) {
        return false;
    }
    *place = m;
    chat->n_messages++;
    return true;
}

bool rt_chat_add_json(rt_chat *chat, const json_t *messages, const json_t *tools, lb_err *err) {
    if (!json_is_array(messages)) {
        return lb_err_set(err, LB_BAD_TYPE, "messages: must be an array");
    }
    if (tools != NULL && !json_is_null(tools) && !json_is_array(tools)) {
        return lb_err_set(err, LB_BAD_TYPE, "tools: must be an array");
    }
    for (size_t i = 0; i < json_array_size(messages); i++) {
        if (!read_message(chat, json_array_get(messages, i), i, err)) {
            return false;
        }
    }
    if (json_array_size(tools) > 0) {
        chat->tools = tools;
    }
    return true;
}
