/* answer.h -- a prompt's tokens in, the answer's text to stdout: what `run` and `chat` share. */
#ifndef RT_CLI_ANSWER_H
#define RT_CLI_ANSWER_H

#include <signal.h>

#include "base/text.h"
#include "cli/cli.h"

/* Sampling options as given; what is not given is the model's default. */
typedef struct rt_cli_sampling {
    double temp, top_p, min_p, repeat_penalty;
    bool temp_given, top_p_given, min_p_given, repeat_penalty_given;
    uint64_t top_k, repeat_last_n, seed, n_predict;
    bool top_k_given, repeat_last_n_given, seed_given, n_predict_given;
    bool greedy;
    lb_opt_list stops;
} rt_cli_sampling;

#define RT_CLI_SAMPLING_ROWS(c, s)                                                                \
    {"--n-predict", "-n", LB_OPT_UINT, &(s).n_predict, 0, 1 << 30, false, &(s).n_predict_given,   \
     "N", "tokens of an answer at most (default: until it ends or\nthe context is full)"},        \
    RT_CLI_REAL("--temp", &(s).temp, 0, 1000, &(s).temp_given,                                    \
                "temperature; 0 takes the likeliest token (defaults of\nthese are the model's: "  \
                "`info` shows them)"),                                                            \
    {"--top-k", NULL, LB_OPT_UINT, &(s).top_k, 0, (c)->model->n_vocab, false, &(s).top_k_given,   \
     "K", "choose among the K likeliest; 0: all"},                                                \
    RT_CLI_REAL("--top-p", &(s).top_p, 0, 1, &(s).top_p_given,                                    \
                "among the likeliest that make up this probability;\n1: all"),                    \
    RT_CLI_REAL("--min-p", &(s).min_p, 0, 1, &(s).min_p_given,                                    \
                "among those at least X times as likely as the first"),                           \
    RT_CLI_REAL("--repeat-penalty", &(s).repeat_penalty, 0.01, 100, &(s).repeat_penalty_given,    \
                "divides the logits of recent tokens; 1: off"),                                   \
    {"--repeat-last-n", NULL, LB_OPT_UINT, &(s).repeat_last_n, 0, (c)->model->ctx, false,         \
     &(s).repeat_last_n_given, "N", "how many tokens are recent"},                                \
    {"--seed", NULL, LB_OPT_UINT, &(s).seed, 0, 4294967295.0, false, &(s).seed_given, "N",        \
     "equal seeds give equal answers (default: a random one,\nshown by --stats)"},                \
    RT_CLI_FLAG("--greedy", &(s).greedy, "always the likeliest token, and nothing else"),         \
    {"--stop", NULL, LB_OPT_REPEAT, &(s).stops, 0, 0, false, NULL, "TEXT",                        \
     "end an answer before this text; may be repeated"}

typedef struct rt_cli_answerer {
    rt_sampler sampler;
    rt_sample_scratch *scratch;
    rt_stream stream;
    rt_stop_string stops[LB_OPT_LIST_MAX + 1];
    size_t n_stops;
    uint32_t n_predict;
    const volatile sig_atomic_t *interrupt; /* may be NULL */
    lb_text *capture;                       /* the answer's text as well; may be NULL */
    const char *opening; /* printed in front of an answer's first byte, n_opening bytes */
    size_t n_opening;
    char last;                              /* the last byte printed */
    /* Of the last answer: */
    uint32_t n_prompt, n_kept, n_generated;
    double prompt_seconds, answer_seconds;
    rt_stop_reason stop;
} rt_cli_answerer;

/* `turns`: answers are turns of a conversation, which end too where the model spells its end of turn
 * in ordinary text. LB_USAGE for options that contradict each other. Needs no engine: call it before
 * rt_cli_start. */
bool rt_cli_answerer_new(rt_cli *c, const rt_cli_sampling *s, bool turns, rt_cli_answerer *out,
                         lb_err *err);

/* Reads the prompt (what the slot already holds of it is kept), prints the answer and a newline.
 * Interrupted while the prompt is read: no answer, a->stop says so. */
bool rt_cli_answer(rt_cli *c, rt_cli_answerer *a, const uint32_t *prompt, size_t n, lb_err *err);

/* One line to stderr: tokens and tokens per second, why it ended. */
void rt_cli_print_rates(const rt_cli_answerer *a);

/* Several lines to stderr: seed, threads, memory, times. */
void rt_cli_print_stats(const rt_cli *c, const rt_cli_answerer *a);

#endif
