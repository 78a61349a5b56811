/* test_process.c -- programs that lagen runs: their status, their output, stopping them. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "process.h"

static volatile sig_atomic_t stop;

static void on_alarm(int number) {
    (void)number;
    stop = 1;
}

static bool run(const char *script, const volatile sig_atomic_t *flag, lb_err *e) {
    const char *const argv[] = {"sh", "-c", script, NULL};
    return lg_process_run(argv, flag, e);
}

static void status_decides(void **state) {
    (void)state;
    lb_err e = {0};
    assert_true(run("exit 0", NULL, &e));
    assert_false(run("exit 3", NULL, &e));
    assert_int_equal(e.code, LB_IO);
    assert_string_equal(e.text, "'sh' failed with status 3; its messages stand above");
    assert_false(run("kill -KILL $$", NULL, &e));
    assert_string_equal(e.text, "'sh' was ended by a signal");
}

static void programs_that_are_not_there(void **state) {
    (void)state;
    lb_err e = {0};
    lb_arena arena;
    const char *line = NULL;
    const char *const argv[] = {"lagen-no-such-program", NULL};
    lb_arena_init(&arena, "process", 1 << 20);
    assert_false(lg_process_run(argv, NULL, &e));
    assert_int_equal(e.code, LB_MISSING);
    assert_non_null(strstr(e.text, "cannot run 'lagen-no-such-program'"));
    assert_false(lg_process_first_line("lagen-no-such-program", "--version", NULL, &arena, &line, &e));
    assert_int_equal(e.code, LB_MISSING);
    assert_null(line);
    lb_arena_reset(&arena);
}

/* The child prints to our stderr: stdout is the command's own. */
static void output_goes_to_stderr(void **state) {
    (void)state;
    int ends[2];
    char text[16] = "";
    assert_int_equal(pipe(ends), 0);
    int was = dup(1);
    dup2(ends[1], 1);
    int was2 = dup(2);
    int null = dup(ends[1]);
    dup2(null, 2);
    bool ok = run("echo out", NULL, NULL);
    dup2(was, 1);
    dup2(was2, 2);
    close(ends[1]);
    close(null);
    assert_true(ok);
    assert_int_equal(read(ends[0], text, sizeof text), 4);
    assert_memory_equal(text, "out\n", 4);
    close(ends[0]);
    close(was);
    close(was2);
}

static void first_lines(void **state) {
    (void)state;
    lb_arena arena;
    lb_err e = {0};
    const char *line = NULL;
    lb_arena_init(&arena, "process", 1 << 20);
    assert_true(lg_process_first_line("echo", "one\ntwo", NULL, &arena, &line, &e));
    assert_string_equal(line, "one");
    assert_true(lg_process_first_line("printf", "", NULL, &arena, &line, &e));
    assert_string_equal(line, "");
    assert_false(lg_process_first_line("false", "x", NULL, &arena, &line, &e));
    assert_int_equal(e.code, LB_MISSING);
    /* more than the buffer holds is read to its end, and cut */
    const char *all = NULL;
    assert_true(lg_process_output("seq", "200000", NULL, &arena, &all, &e));
    assert_int_equal(strlen(all), 4095);
    lb_arena_reset(&arena);
}

/* A signal to this process alone: the child is told, and waited for. The shell becomes the program, so that none is left behind
 * which holds our output open. */
static void stopping(void **state) {
    (void)state;
    lb_err e = {0};
    struct sigaction sa = {.sa_handler = on_alarm};
    struct itimerval soon = {.it_value = {.tv_usec = 50000}};
    time_t begin = time(NULL);
    sigaction(SIGALRM, &sa, NULL);
    stop = 0;
    setitimer(ITIMER_REAL, &soon, NULL);
    assert_false(run("exec sleep 30", &stop, &e));
    assert_int_equal(e.code, LB_CANCELLED);
    assert_true(time(NULL) - begin < 20);
}

/* The flag may be set when no call is interrupted any more, or before the child has begun. */
static void stopped_before_the_wait(void **state) {
    (void)state;
    lb_err e = {0};
    lb_arena arena;
    const char *line = NULL;
    time_t begin = time(NULL);
    lb_arena_init(&arena, "process", 1 << 20);
    stop = 1;
    assert_false(run("exec sleep 30", &stop, &e));
    assert_int_equal(e.code, LB_CANCELLED);
    assert_false(lg_process_output("sleep", "30", &stop, &arena, &line, &e));
    assert_int_equal(e.code, LB_CANCELLED);
    assert_null(line);
    assert_true(time(NULL) - begin < 20);
    stop = 0;
    lb_arena_reset(&arena);
}

/* While its output is awaited. */
static void stopped_while_reading(void **state) {
    (void)state;
    lb_err e = {0};
    lb_arena arena;
    const char *line = NULL;
    struct itimerval soon = {.it_value = {.tv_usec = 50000}};
    time_t begin = time(NULL);
    lb_arena_init(&arena, "process", 1 << 20);
    stop = 0;
    setitimer(ITIMER_REAL, &soon, NULL);
    assert_false(lg_process_output("sleep", "30", &stop, &arena, &line, &e));
    assert_int_equal(e.code, LB_CANCELLED);
    assert_true(time(NULL) - begin < 20);
    stop = 0;
    lb_arena_reset(&arena);
}

/* A program that writes where nobody reads ends, although lagen itself ignores that signal. */
static void ignored_signals_are_not_passed_on(void **state) {
    (void)state;
    lb_err e = {0};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction was;
    sigaction(SIGPIPE, &ignore, &was);
    assert_false(run("kill -PIPE $$; exit 0", NULL, &e));
    assert_string_equal(e.text, "'sh' was ended by a signal");
    sigaction(SIGPIPE, &was, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_decides),
        cmocka_unit_test(programs_that_are_not_there),
        cmocka_unit_test(output_goes_to_stderr),
        cmocka_unit_test(first_lines),
        cmocka_unit_test(stopping),
        cmocka_unit_test(stopped_before_the_wait),
        cmocka_unit_test(stopped_while_reading),
        cmocka_unit_test(ignored_signals_are_not_passed_on),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
