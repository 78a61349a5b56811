/* message.h -- conversations: what a request or a user at the terminal says, before any template.
 *
 * The form is OpenAI's. Only templates read it (render.h). Texts are copied into the arena; JSON
 * values are borrowed and must outlive the conversation. */
#ifndef RT_CHAT_MESSAGE_H
#define RT_CHAT_MESSAGE_H

#include <jansson.h>

#include "base/arena.h"

typedef enum rt_role {
    RT_ROLE_SYSTEM, /* "developer" is the same */
    RT_ROLE_USER,
    RT_ROLE_ASSISTANT,
    RT_ROLE_TOOL    /* "function" is the same */
} rt_role;

typedef struct rt_string {
    const char *s; /* valid UTF-8; NULL: absent */
    size_t n;
} rt_string;

typedef struct rt_content_part {
    rt_string type;     /* "text", "image_url", ... */
    rt_string text;     /* of a text part */
    const json_t *json; /* the part as it came */
} rt_content_part;

typedef struct rt_tool_call {
    rt_string id, name;
    rt_string arguments;        /* JSON text, if the request gave one */
    const json_t *object;       /* else the object that it gave, or NULL */
} rt_tool_call;

typedef struct rt_message {
    rt_role role;
    rt_string content;          /* s NULL: null, absent or parts */
    rt_content_part *parts;
    size_t n_parts;
    rt_string reasoning;        /* reasoning_content, or reasoning, or thinking */
    rt_tool_call *tool_calls;
    size_t n_tool_calls;
    rt_string tool_call_id, name;
    const json_t *json;         /* the message as it came, for its other keys; NULL if none */
} rt_message;

typedef struct rt_chat {
    rt_message *messages;
    size_t n_messages, cap_messages;
    const json_t *tools;        /* an array with items, or NULL */
    lb_arena *arena;
} rt_chat;

/* An empty conversation in `arena`. */
void rt_chat_init(rt_chat *chat, lb_arena *arena);

/* Appends a turn without JSON. Bytes that are not UTF-8 become U+FFFD. */
bool rt_chat_add(rt_chat *chat, rt_role role, const char *text, size_t n_bytes, lb_err *err);

/* Appends the messages of a request and sets its tools (NULL, null or []: none). Fails with
 * LB_BAD_TYPE or LB_BAD_VALUE, the message naming the place ("messages[2].role: ..."): roles other
 * than system, developer, user, assistant, tool and function; wrong types; calls without a name;
 * LB_LIMIT, LB_NO_MEMORY. */
bool rt_chat_add_json(rt_chat *chat, const json_t *messages, const json_t *tools, lb_err *err);

#endif
