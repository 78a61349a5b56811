/* chat.c -- `chat`: a conversation. Ctrl-C ends the answer, not the program; SIGTERM and SIGHUP end
 * that too, once the terminal is as it was. */
#include <stdio.h>
#include <string.h>

#include "base/stop.h"
#include "cli/answer.h"
#include "cli/input.h"
#include "cli/talk.h"

static const char HELP[] =
    "/help           this list\n"
    "/reset          forget the conversation\n"
    "/system TEXT    set the system message and begin anew; without TEXT: none\n"
    "/stats          numbers of the last answer\n"
    "/quit           leave (so does Ctrl-D)\n"
    "Ctrl-C ends an answer. A line that ends in \\ goes on in the next. A first / is doubled to\n"
    "be sent.\n";

typedef struct options {
    rt_cli_team team;
    rt_cli_sampling sampling;
    const char *system, *thinking;
    rt_thinking think;
    bool stats;
} options;

typedef struct session {
    rt_cli *cli;
    const options *o;
    rt_cli_answerer answerer;
    rt_cli_talk talk;
    rt_cli_input *input;
    lb_arena texts; /* a message being entered, an answer being kept */
    bool answered;
} session;

static bool parse(rt_cli *c, int argc, char **argv, options *o, bool *go, lb_err *err) {
    const lb_opt rows[] = {
        RT_CLI_TEXT("--system", NULL, &o->system, "TEXT", "the system message"),
        RT_CLI_THINKING_ROW(&o->thinking),
        RT_CLI_SAMPLING_ROWS(c, o->sampling),
        RT_CLI_TEAM_ROWS(c, o->team),
        RT_CLI_FLAG("--stats", &o->stats, "tokens per second after each answer, on stderr"),
    };
    const rt_cli_line line = {
        .name = "chat", .summary = rt_cmd_chat.summary,
        .details = "Reads lines and answers each. /help in a conversation lists what else can be\n"
                   "typed.",
        .options = rows, .n_options = sizeof rows / sizeof rows[0]};
    if (!rt_cli_parse(c, &line, argc, argv, go, err)) {
        return false;
    }
    o->think = rt_cli_thinking(o->thinking);
    return true;
}

/* By a signal other than Ctrl-C. */
static bool told_to_end(const session *s) {
    return *s->answerer.interrupt != 0 && *s->answerer.interrupt != SIGINT;
}

static bool ended(lb_err *err) {
    return lb_err_set(err, LB_CANCELLED, "ended by a signal");
}

static void forget_ctrl_c(const session *s) {
    if (!told_to_end(s)) {
        lb_stop_clear();
    }
}

/* ---- one turn ---- */

/* Errors that end the conversation; others are told and the turn is taken back. What cannot be
 * written now will not be read later. */
static bool is_fatal(lb_code code) {
    return code == LB_DEVICE_LOST || code == LB_NO_MEMORY || code == LB_IO || code == LB_CLOSED;
}

static void note_stop(const rt_cli_answerer *a) {
    if (a->stop != RT_STOP_EOG && a->stop != RT_STOP_STRING) {
        fprintf(stderr, "[%s]\n", rt_stop_name(a->stop));
    }
}

static bool answer(session *s, lb_err *err) {
    uint32_t *ids = NULL;
    size_t n = 0;
    lb_text text;
    lb_text_init(&text, &s->texts);
    s->answerer.capture = &text;
    if (!rt_cli_talk_prompt(&s->talk, &ids, &n, err) ||
        !rt_cli_talk_opening(&s->talk, &s->answerer.opening, &s->answerer.n_opening, err) ||
        !rt_cli_answer(s->cli, &s->answerer, ids, n, err) || !lb_text_done(&text, err)) {
        return false;
    }
    s->answered = true;
    note_stop(&s->answerer);
    if (s->o->stats) {
        rt_cli_print_rates(&s->answerer);
    }
    if (s->answerer.stop == RT_STOP_INTERRUPT && text.n_bytes == 0) {
        rt_cli_talk_drop(&s->talk); /* as if the line had not been sent */
        return true;
    }
    return rt_cli_talk_answer(&s->talk, text.data, text.n_bytes, err);
}

static bool turn(session *s, const char *text, size_t n, lb_err *err) {
    forget_ctrl_c(s);
    if (!rt_cli_talk_add(&s->talk, RT_ROLE_USER, text, n, err)) {
        return false;
    }
    bool ok = answer(s, err);
    if (told_to_end(s)) {
        return ended(err);
    }
    forget_ctrl_c(s);
    if (!ok && !is_fatal(err->code)) {
        rt_cli_talk_drop(&s->talk);
        fprintf(stderr, "%s%s\n", err->text,
                err->code == LB_LIMIT ? "; /reset begins anew" : "");
        return true;
    }
    return ok;
}

/* ---- commands ---- */

static bool begin_anew(session *s, const char *system, lb_err *err) {
    fprintf(stderr, "[the conversation begins anew]\n");
    return rt_cli_talk_reset(&s->talk, system, err);
}

/* A line that begins with one slash. *leave is set by /quit. */
static bool command(session *s, const char *line, bool *leave, lb_err *err) {
    static const char SYSTEM[] = "/system";
    size_t word = strcspn(line, " ");
    const char *rest = line + word + strspn(line + word, " ");
    if (word == sizeof SYSTEM - 1 && strncmp(line, SYSTEM, word) == 0) {
        return begin_anew(s, *rest == '\0' ? NULL : rest, err);
    }
    if (strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0) {
        *leave = true;
    } else if (strcmp(line, "/reset") == 0) {
        return begin_anew(s, s->o->system, err);
    } else if (strcmp(line, "/help") == 0) {
        fputs(HELP, stderr);
    } else if (strcmp(line, "/stats") == 0 && s->answered) {
        rt_cli_print_rates(&s->answerer);
        rt_cli_print_stats(s->cli, &s->answerer);
    } else if (strcmp(line, "/stats") == 0) {
        fprintf(stderr, "no answer yet\n");
    } else {
        fprintf(stderr, "unknown command %.*s; /help lists them\n", (int)(word < 80 ? word : 80),
                line);
    }
    return true;
}

/* ---- reading ---- */

/* A message: a line and those it goes on in. */
static bool read_message(session *s, rt_cli_got *got, lb_text *out, lb_err *err) {
    const char *line = NULL;
    size_t n = 0;
    bool more = true;
    lb_arena_reset(&s->texts);
    lb_text_init(out, &s->texts);
    for (*got = RT_CLI_LINE; more;) {
        forget_ctrl_c(s);
        *got = rt_cli_input_next(s->input, &line, &n);
        if (*got != RT_CLI_LINE) {
            return true;
        }
        more = n > 0 && line[n - 1] == '\\';
        lb_text_add_n(out, line, more ? n - 1 : n);
        if (more) {
            lb_text_add(out, "\n");
        }
    }
    return lb_text_done(out, err);
}

static bool converse(session *s, lb_err *err) {
    bool leave = false;
    while (!leave) {
        lb_text text;
        rt_cli_got got = RT_CLI_END;
        if (!read_message(s, &got, &text, err)) {
            return false;
        }
        if (told_to_end(s)) {
            return ended(err);
        }
        if (got == RT_CLI_END) {
            break;
        }
        if (got == RT_CLI_INTERRUPTED) {
            fprintf(stderr, "\n[/quit or Ctrl-D leaves]\n");
            continue;
        }
        bool slash = text.n_bytes > 0 && text.data[0] == '/';
        bool doubled = slash && text.data[1] == '/';
        bool ok = true;
        if (slash && !doubled) {
            ok = command(s, text.data, &leave, err);
        } else if (text.n_bytes > 0) {
            ok = turn(s, text.data + doubled, text.n_bytes - doubled, err);
        }
        if (!ok) {
            return false;
        }
    }
    if (rt_cli_input_is_terminal(s->input) && !leave) {
        putchar('\n');
    }
    return true;
}

static bool start(session *s, lb_err *err) {
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, 0};
    rt_cli *c = s->cli;
    if (!rt_cli_answerer_new(c, &s->o->sampling, true, &s->answerer, err) ||
        !rt_cli_talk_new(c, s->o->system, s->o->think, &s->talk, err) ||
        !rt_cli_start(c, &s->o->team, err)) {
        return false;
    }
    s->answerer.interrupt = lb_stop_catch(SIGNALS);
    if (!rt_cli_input_new(c->prog, "> ", s->answerer.interrupt, &c->arena, &s->input, err)) {
        return false;
    }
    if (rt_cli_input_is_terminal(s->input)) {
        fprintf(stderr, "%s; /help lists the commands\n", c->model->name);
    }
    return converse(s, err);
}

static bool run(rt_cli *c, int argc, char **argv, lb_err *err) {
    options o = {0};
    session s = {.cli = c, .o = &o};
    bool go = false;
    bool ok = parse(c, argc, argv, &o, &go, err);
    if (ok && go) {
        lb_arena_init(&s.texts, "message", UINT64_C(1) << 30);
        ok = start(&s, err);
        rt_cli_input_free(s.input);
        rt_cli_talk_free(&s.talk);
        lb_arena_reset(&s.texts);
    }
    return ok;
}

const rt_cli_command rt_cmd_chat = {"chat", "have a conversation", run};
