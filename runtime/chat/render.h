/* render.h -- runs a model's chat template over a conversation.
 *
 * The prompt comes out as text and the ranges of it that the request wrote: there the tokenizer
 * must not see control tokens, whatever is spelled (a user cannot forge a turn). */
#ifndef RT_CHAT_RENDER_H
#define RT_CHAT_RENDER_H

#include <jansson.h>
#include <time.h>

#include "base/arena.h"
#include "chat/message.h"
#include "token/token.h"

/* a sensible limit for the arena of a rendering */
enum { RT_CHAT_ARENA_BYTES = 256 * 1024 * 1024 };

struct rt_chat_ctx;
struct rt_output_format;
typedef bool (*rt_chat_render_fn)(struct rt_chat_ctx *c);

/* What the template makes of its input; found by trial renderings (probe.h), or all false. */
typedef struct rt_chat_caps {
    bool parts_only;       /* content must be a list of parts */
    bool parts;            /* content may be a list of parts */
    bool object_arguments; /* arguments of tool calls must be an object, not JSON text */
    bool null_content;     /* a message that only calls must have no content at all, not "" */
    bool thinking;         /* enable_thinking changes the prompt */
    const char *reasoning_key; /* where reasoning of earlier turns is looked for */
} rt_chat_caps;

typedef enum rt_thinking { RT_THINKING_DEFAULT, RT_THINKING_ON, RT_THINKING_OFF } rt_thinking;

/* A model's template; emitted code holds one. */
typedef struct rt_chat_template {
    rt_chat_render_fn render;
    const char *bos_text; /* what bos_token and eos_token stand for; NULL: not defined */
    const char *eos_text;
    const struct rt_output_format *output; /* how answers are spelled: output.h */
    rt_thinking thinking; /* of a request that does not say; default: on if the template knows it */
} rt_chat_template;

typedef struct rt_chat_options {
    bool add_generation_prompt;
    rt_thinking thinking;  /* default: the template's */
    bool keep_reasoning;   /* of all earlier turns, where the template has a switch for it */
    const json_t *kwargs;  /* further variables, an object or NULL; they win over all others */
    const struct tm *now;  /* local time for strftime_now; NULL: the clock */
    uint64_t work_max;     /* steps; 0: RT_CHAT_WORK_DEFAULT */
} rt_chat_options;

typedef struct rt_rendered {
    const char *text; /* UTF-8, NUL-terminated; NUL bytes of the request may be inside */
    size_t n_bytes;
    const rt_token_span *user; /* ascending, apart: bytes that came from the request */
    size_t n_user;
} rt_rendered;

/* Renders `chat`; everything is allocated in `arena`, whose limit bounds the memory. Fails with
 *   LB_BAD_VALUE    the template's own refusal (raise_exception), in its words, or a bad value
 *   LB_BAD_TYPE, LB_MISSING, LB_OVERFLOW    what jinja2 would raise, with the template's line
 *   LB_LIMIT        work, memory or nesting beyond the budget
 *   LB_NO_MEMORY    the machine has none */
bool rt_chat_render(const rt_chat_template *t, const rt_chat_caps *caps, const rt_chat *chat,
                    const rt_chat_options *options, lb_arena *arena, rt_rendered *out, lb_err *err);

/* The same from bare variables: every key of the object `vars` is one, and all count as written by
 * the request. For tests. */
bool rt_chat_render_vars(const rt_chat_template *t, const json_t *vars,
                         const rt_chat_options *options,
                         lb_arena *arena, rt_rendered *out, lb_err *err);

#endif
