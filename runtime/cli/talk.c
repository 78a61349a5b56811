/* talk.c -- see talk.h. */
#include "cli/talk.h"

#include <string.h>

#include "base/budget.h"
#include "chat/output.h"
#include "chat/probe.h"

enum { TURNS_BYTES = 256 * 1024 * 1024 };

rt_thinking rt_cli_thinking(const char *word) {
    if (word == NULL) {
        return RT_THINKING_DEFAULT;
    }
    return strcmp(word, "on") == 0 ? RT_THINKING_ON : RT_THINKING_OFF;
}

bool rt_cli_talk_new(const rt_cli *c, const char *system, rt_thinking thinking, rt_cli_talk *out,
                     lb_err *err) {
    const rt_tokenizer *tok = NULL;
    if (!rt_cli_tokenizer(c, &tok, err)) {
        return false;
    }
    if (c->model->chat == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED, "%s has no chat template; `run --raw` works",
                          c->model->name);
    }
    *out = (rt_cli_talk){.cli = c, .thinking = thinking};
    lb_arena_init(&out->turns, "conversation", TURNS_BYTES);
    lb_arena_init(&out->work, "prompt", LB_HEAP_BYTES);
    return rt_chat_probe(c->model->chat, &out->caps, err) &&
           rt_cli_talk_reset(out, system, err);
}

void rt_cli_talk_free(rt_cli_talk *t) {
    lb_arena_reset(&t->turns);
    lb_arena_reset(&t->work);
}

bool rt_cli_talk_reset(rt_cli_talk *t, const char *system, lb_err *err) {
    lb_arena_reset(&t->turns);
    rt_chat_init(&t->chat, &t->turns);
    return system == NULL || rt_cli_talk_add(t, RT_ROLE_SYSTEM, system, strlen(system), err);
}

bool rt_cli_talk_add(rt_cli_talk *t, rt_role role, const char *text, size_t n_bytes, lb_err *err) {
    return rt_chat_add(&t->chat, role, text, n_bytes, err);
}

typedef struct answer_parts {
    lb_text reasoning, content;
} answer_parts;

static void take_part(void *to, const rt_event *e) {
    answer_parts *p = to;
    lb_text *text = e->kind == RT_EVENT_REASONING ? &p->reasoning : &p->content;
    lb_text_add_n(text, e->text.s, e->text.n);
}

static bool take_apart(rt_cli_talk *t, const char *text, size_t n, lb_arena *arena,
                       answer_parts *p, lb_err *err) {
    rt_output *o = NULL;
    lb_text_init(&p->reasoning, &t->turns);
    lb_text_init(&p->content, &t->turns);
    return rt_output_new(t->cli->model->chat->output, NULL, &t->prompt, take_part, p, arena, &o,
                         err) &&
           rt_output_feed(o, text, n, err) && rt_output_finish(o, err) &&
           lb_text_done(&p->reasoning, err) && lb_text_done(&p->content, err);
}

bool rt_cli_talk_answer(rt_cli_talk *t, const char *text, size_t n_bytes, lb_err *err) {
    const rt_output_format *f = t->cli->model->chat->output;
    if (f == NULL || (f->think_end == NULL && f->form != RT_CALLS_CHANNELS)) {
        return rt_cli_talk_add(t, RT_ROLE_ASSISTANT, text, n_bytes, err);
    }
    lb_arena arena;
    answer_parts p;
    lb_arena_init(&arena, "answer", RT_OUTPUT_ARENA_BYTES);
    bool ok = take_apart(t, text, n_bytes, &arena, &p, err) &&
              rt_cli_talk_add(t, RT_ROLE_ASSISTANT, p.content.data, p.content.n_bytes, err);
    lb_arena_reset(&arena);
    if (ok && p.reasoning.n_bytes > 0) {
        t->chat.messages[t->chat.n_messages - 1].reasoning =
            (rt_string){.s = p.reasoning.data, .n = p.reasoning.n_bytes};
    }
    return ok;
}

/* Whether a text that the model spells in tokens of its own is seen in an answer. */
static bool is_shown(const rt_cli *c, const char *text, lb_arena *arena, bool *shown, lb_err *err) {
    const rt_token_input in = {.text = text, .n_bytes = strlen(text), .parse_special = true};
    uint32_t *ids = NULL;
    size_t n = 0;
    if (!rt_cli_encode(c, &in, arena, &ids, &n, err)) {
        return false;
    }
    *shown = n > 0;
    for (size_t i = 0; i < n; i++) {
        size_t n_piece = 0;
        rt_token_piece(c->model->tokenizer, ids[i], false, &n_piece);
        *shown = *shown && n_piece > 0;
    }
    return true;
}

bool rt_cli_talk_opening(rt_cli_talk *t, const char **text, size_t *n_bytes, lb_err *err) {
    const rt_output_format *f = t->cli->model->chat->output;
    size_t n = f == NULL || f->think_end == NULL ? 0 : rt_output_opening(f, &t->prompt);
    bool shown = false;
    if (n > 0 && !is_shown(t->cli, f->think_end, &t->work, &shown, err)) {
        return false;
    }
    *n_bytes = shown ? n : 0;
    *text = *n_bytes == 0 ? "" : t->prompt.text + t->prompt.n_bytes - n;
    return true;
}

void rt_cli_talk_drop(rt_cli_talk *t) {
    t->chat.n_messages -= t->chat.n_messages > 0 ? 1 : 0;
}

bool rt_cli_talk_prompt(rt_cli_talk *t, uint32_t **ids, size_t *n, lb_err *err) {
    const rt_chat_options o = {.add_generation_prompt = true, .thinking = t->thinking};
    lb_arena_reset(&t->work);
    t->prompt = (rt_rendered){0};
    if (!rt_chat_render(t->cli->model->chat, &t->caps, &t->chat, &o, &t->work, &t->prompt, err)) {
        return false;
    }
    const rt_rendered *r = &t->prompt;
    rt_token_input in = {.text = r->text, .n_bytes = r->n_bytes, .add_special = true,
                         .parse_special = true, .at_most_one = true, .user = r->user,
                         .n_user = r->n_user};
    return rt_cli_encode(t->cli, &in, &t->work, ids, n, err);
}
