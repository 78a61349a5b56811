/* main.c -- lagen's command line: finds its own folder, runs one command, prints its result or one
 * line of error.
 *
 * Exit status: 0 done, 1 refused, 2 usage, 3 artifact damaged (contracts, "The rest"). Ctrl-C,
 * SIGTERM and SIGHUP stop long work: children end, what was begun is taken back, and then the signal
 * ends lagen, so that a shell sees 130, 143 or 129. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/console.h"
#include "base/stop.h"
#include "command.h"
#include "version.h"

enum { ARENA_LIMIT_BYTES = 1 << 30, ROOT_BYTES = 4096 };

static const struct {
    const char *name;
    lg_command_fn run;
    const char *summary;
} COMMANDS[] = {
    {"build", lg_command_build,
     "emit, compile and pack a program that runs one model on one machine"},
    {"emit", lg_command_emit, "write the program's sources and weights without compiling"},
    {"plan", lg_command_plan, "show launches, bytes and proof without writing anything"},
    {"verify", lg_command_verify, "prove an emitted program again and check its files"},
    {"report", lg_command_report, "show a program's plan and proof as a page for a browser"},
    {"inspect", lg_command_inspect, "show what a model file really holds"},
    {"targets", lg_command_targets, "list the hardware rows"},
    {"synth", lg_command_synth, "make a model file with random weights"},
};

enum { N_COMMANDS = sizeof COMMANDS / sizeof *COMMANDS };

static void print_usage(FILE *to) {
    fputs(
        "usage: lagen COMMAND [options]\n\nlagen reads one GGUF model file and one hardware target and emits a program that runs that\n"
        "model on that machine and nothing else.\n\ncommands:\n",
        to);
    for (int i = 0; i < N_COMMANDS; i++) {
        fprintf(to, "  %-10s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    }
    fputs("\n`lagen help COMMAND` and `lagen COMMAND --help` show a command's options; "
          "`lagen --version`\n"
          "tells the version.\n"
          "exit status: 0 done, 1 refused, 2 usage, 3 damaged program; 130 Ctrl-C\n",
          to);
}

static void note(const char *text) {
    if (text != NULL) { /* NULL: its text found no memory; the command fails for that reason itself */
        fprintf(stderr, "%s\n", text);
    }
}

/* A bar that overwrites itself on a terminal; lines at each quarter otherwise. */
static void progress(void *arg, const char *what, uint64_t done, uint64_t total) {
    unsigned *last = arg;
    unsigned percent = total == 0 ? 100 : (unsigned)(done * 100 / total);
    bool terminal = isatty(2) == 1;
    unsigned mark = terminal ? percent + 1 : percent / 25 + 1;
    if (mark == *last) {
        return;
    }
    *last = mark;
    fprintf(stderr, terminal ? "\r%s %3u %%" : "%s %u %%\n", what, percent);
    if (terminal && done >= total) {
        fputs("\n", stderr);
    }
}

/* lagen's own folder: where the executable lies, or a folder above it, with templates/ inside. */
static bool find_root(char root[ROOT_BYTES], lb_err *err) {
    ssize_t n = readlink("/proc/self/exe", root, ROOT_BYTES - 16);
    if (n <= 0) {
        return lb_err_set(err, LB_IO,
                          "cannot read /proc/self/exe, which tells where lagen's templates are");
    }
    root[n] = '\0';
    for (char *slash = strrchr(root, '/'); slash != NULL && slash != root;
         slash = strrchr(root, '/')) {
        strcpy(slash, "/templates");
        bool found = access(root, R_OK) == 0;
        *slash = '\0';
        if (found) {
            return true;
        }
    }
    return lb_err_set(err, LB_MISSING, "no folder above the lagen executable holds templates/");
}

/* The exit status of a failure, or the end by the signal that caused it. */
static int report(const lb_err *err, const volatile sig_atomic_t *stop) {
    if (err->code != LB_CLOSED) {
        fprintf(stderr, "lagen: %s\n", err->text);
    }
    return *stop != 0 ? lb_stop_raise() : lb_err_exit_status(err->code);
}

static int run(lg_command_fn command, int argc, char **argv, const volatile sig_atomic_t *stop) {
    static char root[ROOT_BYTES];
    lb_err err = {0};
    lb_arena arena;
    lb_text out;
    if (!find_root(root, &err)) {
        return report(&err, stop);
    }
    lb_arena_init(&arena, "lagen", ARENA_LIMIT_BYTES);
    lb_text_init(&out, &arena);
    lg_context c = {.root = root, .stop = stop, .arena = &arena, .out = &out, .note = note,
                    .progress = progress, .to_person = isatty(1) == 1};
    bool ok = command(&c, argc, argv, &err);
    if (ok || c.answered) {
        lb_err unread = {0}; /* what happens to an answer comes before what it says */
        bool told = lb_text_done(&out, &unread) &&
                    (fwrite(out.data, 1, out.n_bytes, stdout), lb_console_flush(&unread));
        err = told ? err : unread;
        ok = ok && told;
    }
    lb_arena_reset(&arena);
    return ok ? 0 : report(&err, stop);
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

static int unknown_command(const char *name) {
    fprintf(stderr, "lagen: unknown command '%.80s'; lagen --help lists them\n", name);
    return 2;
}

/* The command of argv[0], with what stands behind it. */
static int run_named(int argc, char **argv, const volatile sig_atomic_t *stop) {
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(argv[0], COMMANDS[i].name) == 0) {
            return run(COMMANDS[i].run, argc - 1, argv + 1, stop);
        }
    }
    return unknown_command(argv[0]);
}

/* `help`, or `help COMMAND`, which is `COMMAND --help`. */
static int help(int argc, char **argv, const volatile sig_atomic_t *stop) {
    lb_err err = {0};
    char option[] = "--help";
    if (argc > 1) {
        fprintf(stderr, "lagen: help takes one command, and '%.80s' is a second word\n", argv[1]);
        return 2;
    }
    if (argc == 1) {
        char *line[] = {argv[0], option};
        return run_named(2, line, stop);
    }
    print_usage(stdout);
    return lb_console_flush(&err) ? 0 : report(&err, stop);
}

static int version(int argc, char **argv, const volatile sig_atomic_t *stop) {
    lb_err err = {0};
    if (argc > 0) {
        fprintf(stderr, "lagen: unexpected argument '%.80s' behind version\n", argv[0]);
        return 2;
    }
    printf("lagen %s\n", LG_VERSION);
    return lb_console_flush(&err) ? 0 : report(&err, stop);
}

int main(int argc, char **argv) {
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, 0};
    lb_err err = {0};
    if (!lb_console_init(&err)) {
        return lb_err_exit_status(err.code);
    }
    signal(SIGCHLD, SIG_DFL); /* a parent that ignores it would have us wait for nobody */
    const volatile sig_atomic_t *stop = lb_stop_catch(SIGNALS);
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (is_one_of(argv[1], "--help", "-h", "help")) {
        return help(argc - 2, argv + 2, stop);
    }
    if (is_one_of(argv[1], "--version", "-V", "version")) {
        return version(argc - 2, argv + 2, stop);
    }
    return run_named(argc - 1, argv + 1, stop);
}
