/* talk.h -- a conversation through the model's chat template: turns in, prompt tokens out. What
 * users and the model wrote never becomes a control token. */
#ifndef RT_CLI_TALK_H
#define RT_CLI_TALK_H

#include "chat/message.h"
#include "chat/render.h"
#include "cli/cli.h"

typedef struct rt_cli_talk {
    const rt_cli *cli;
    rt_chat_caps caps;
    rt_chat chat;
    rt_thinking thinking;
    lb_arena turns; /* texts of the conversation; emptied by rt_cli_talk_reset */
    lb_arena work;  /* of one prompt; emptied by the next */
    rt_rendered prompt; /* the last one, in `work` */
} rt_cli_talk;

/* Row for a command's table: const char *out; and what its value asks for. NULL: the default. */
#define RT_CLI_THINKING_ROW(out)                                                                  \
    RT_CLI_WORD("--thinking", out, "on|off",                                                      \
                "let the model think before it answers (default: the\ntemplate's way)")
rt_thinking rt_cli_thinking(const char *word);

/* LB_UNSUPPORTED if the model has no chat template or no tokenizer. `system` may be NULL. Release
 * with rt_cli_talk_free, which allows a zeroed one. */
bool rt_cli_talk_new(const rt_cli *c, const char *system, rt_thinking thinking, rt_cli_talk *out,
                     lb_err *err);
void rt_cli_talk_free(rt_cli_talk *t);

/* Begins anew with this system message (NULL: none). */
bool rt_cli_talk_reset(rt_cli_talk *t, const char *system, lb_err *err);

bool rt_cli_talk_add(rt_cli_talk *t, rt_role role, const char *text, size_t n_bytes, lb_err *err);

/* Adds the model's answer to the last prompt, as it was generated: reasoning is told from content,
 * so that the template can leave it out of later prompts. */
bool rt_cli_talk_answer(rt_cli_talk *t, const char *text, size_t n_bytes, lb_err *err);

/* What the last prompt ends in that belongs in front of the answer where people read it: the opening
 * of reasoning, if its end will be printed too (it is no control token). *n_bytes may be 0. */
bool rt_cli_talk_opening(rt_cli_talk *t, const char **text, size_t *n_bytes, lb_err *err);

/* Takes back the last turn. */
void rt_cli_talk_drop(rt_cli_talk *t);

/* The prompt for the next answer; valid until the next call. */
bool rt_cli_talk_prompt(rt_cli_talk *t, uint32_t **ids, size_t *n, lb_err *err);

#endif
