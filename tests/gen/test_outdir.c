/* test_outdir.c -- a program's folder: one writer, all new files or none, nothing left behind. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "outdir.h"

static lb_arena arena;
static char top[64];

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "folder", 64 << 20);
    snprintf(top, sizeof top, "/tmp/lagen-folder-XXXXXX");
    return mkdtemp(top) == NULL;
}

/* Everything must be gone by now, but for the folder itself. */
static int teardown(void **state) {
    (void)state;
    lb_arena_reset(&arena);
    return rmdir(top);
}

static const char *at(const char *name) {
    const char *path = lb_format(&arena, NULL, "%s/%s", top, name);
    assert_non_null(path);
    return path;
}

static bool is_there(const char *name) {
    struct stat st;
    return lstat(at(name), &st) == 0;
}

static void put_text(const char *name, const char *text) {
    assert_true(lb_write_file(at(name), text, strlen(text), false, NULL, NULL));
}

static bool has(const char *name, const char *text) {
    return lb_file_is(at(name), text, strlen(text));
}

static lg_outdir *open_folder(const char *name) {
    lb_err e = {0};
    lg_outdir *f = NULL;
    if (!lg_outdir_open(at(name), &arena, &f, &e)) {
        fail_msg("%s", e.text);
    }
    return f;
}

static void refused(const char *name, lb_code code, const char *says) {
    lb_err e = {0};
    lg_outdir *f = NULL;
    assert_false(lg_outdir_open(at(name), &arena, &f, &e));
    assert_null(f);
    assert_int_equal(e.code, code);
    if (strstr(e.text, says) == NULL) {
        fail_msg("'%s' does not say '%s'", e.text, says);
    }
}

static bool write_text(lg_outdir *f, const char *name, const char *text, lb_err *e) {
    bool changed = false;
    return lg_outdir_write(f, name, text, strlen(text), &changed, e);
}

static void clear(const char *dir, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(remove(at(names[i])), 0);
    }
    assert_int_equal(rmdir(at(dir)), 0);
}

static void files_come_together(void **state) {
    (void)state;
    lb_err e = {0};
    lg_outdir *f = open_folder("a/b");
    bool changed = false;
    const char *path = NULL;
    assert_true(is_there("a/b/.lock"));
    assert_true(lg_outdir_write(f, "src/x.c", "one", 3, &changed, &e) && changed);
    assert_true(lg_outdir_stage(f, "big", &path, &e));
    assert_true(lb_write_file(path, "large", 5, false, NULL, &e));
    assert_true(lg_outdir_write(f, "manifest.json", "\"schema\": \"lagen.", 17, &changed, &e));
    assert_false(is_there("a/b/src") || is_there("a/b/big") || is_there("a/b/manifest.json"));
    assert_true(lg_outdir_commit(f, "manifest.json", &e));
    assert_true(has("a/b/src/x.c", "one") && has("a/b/big", "large"));
    lg_outdir_close(f);
    assert_false(is_there("a/b/.lock") || is_there("a/b/.staged"));

    f = open_folder("a/b");
    assert_true(lg_outdir_write(f, "src/x.c", "one", 3, &changed, &e) && !changed);
    assert_true(lg_outdir_remove(f, "big", &e) && lg_outdir_remove(f, "never", &e));
    assert_true(has("a/b/big", "large"));
    assert_true(lg_outdir_commit(f, "manifest.json", &e));
    lg_outdir_close(f);
    assert_false(is_there("a/b/big") || is_there("a/b/.lock") || is_there("a/b/.staged"));
    clear("a/b", (const char *[]){"a/b/src/x.c", "a/b/src", "a/b/manifest.json"}, 3);
    assert_int_equal(rmdir(at("a")), 0);
}

/* Given up before the commit: the folder is as it was, and those that were made are gone. */
static void giving_up_changes_nothing(void **state) {
    (void)state;
    lb_err e = {0};
    lg_outdir *f = open_folder("a/b/c");
    assert_true(write_text(f, "src/x.c", "new", &e));
    lg_outdir_close(f);
    assert_false(is_there("a"));

    assert_true(lb_make_dirs(at("a"), &e));
    f = open_folder("a/b");
    lg_outdir_close(f);
    assert_true(is_there("a"));
    assert_false(is_there("a/b"));
    f = open_folder("a/");
    lg_outdir_close(f);
    assert_true(is_there("a"));

    put_text("a/manifest.json", "{\"schema\": \"lagen.manifest/1\"}");
    put_text("a/x", "old");
    f = open_folder("a");
    assert_true(write_text(f, "x", "new", &e) && write_text(f, "y", "new", &e));
    assert_true(lg_outdir_remove(f, "manifest.json", &e));
    lg_outdir_close(f);
    assert_true(has("a/x", "old") && is_there("a/manifest.json"));
    assert_false(is_there("a/y") || is_there("a/.staged") || is_there("a/.lock"));
    clear("a", (const char *[]){"a/x", "a/manifest.json"}, 2);
}

/* What a writer that was killed left behind: a lock that nobody holds, staged files. */
static void a_killed_writer_is_no_hindrance(void **state) {
    (void)state;
    lb_err e = {0};
    assert_true(lb_make_dirs(at("a/.staged/src"), &e));
    put_text("a/.staged/src/x.c", "half");
    put_text("a/.lock", "");
    assert_true(lg_outdir_idle(at("a"), &arena, &e));
    lg_outdir *f = open_folder("a");
    assert_false(is_there("a/.staged"));
    lg_outdir_close(f);
    assert_false(is_there("a/.lock"));
    /* killed between making places and renaming the manifest */
    assert_true(lb_make_dirs(at("a/.staged"), &e) && lb_make_dirs(at("a/src"), &e));
    put_text("a/.staged/manifest.json", "{\"schema\": \"lagen.manifest/1\"}");
    lg_outdir_close(open_folder("a"));
    clear("a", (const char *[]){"a/src"}, 1);
}

/* A process that holds the folder until it is told; its id. */
static pid_t holder(const char *name, int *to) {
    int ends[2];
    int ready[2];
    char byte = 0;
    assert_true(pipe(ends) == 0 && pipe(ready) == 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        lb_err e = {0};
        lg_outdir *f = NULL;
        close(ends[1]);
        bool ok = lg_outdir_open(at(name), &arena, &f, &e) && write(ready[1], "x", 1) == 1;
        ok = ok && read(ends[0], &byte, 1) == 0;
        lg_outdir_close(f);
        _exit(ok ? 0 : 1);
    }
    close(ends[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    *to = ends[1];
    return pid;
}

static void one_writer(void **state) {
    (void)state;
    lb_err e = {0};
    int to = -1;
    int status = 0;
    char says[96];
    pid_t pid = holder("a", &to);
    snprintf(says, sizeof says, "a: process %ld is writing into this folder", (long)pid);
    refused("a", LB_IO, says);
    assert_false(lg_outdir_idle(at("a"), &arena, &e));
    assert_non_null(strstr(e.text, says));
    assert_true(is_there("a/.lock")); /* the refused one took nothing away */
    close(to);
    assert_true(waitpid(pid, &status, 0) == pid && status == 0);
    assert_false(is_there("a"));
    assert_true(lg_outdir_idle(at("a"), &arena, &e));

    pid = holder("a", &to);
    kill(pid, SIGKILL);
    close(to);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(is_there("a/.lock"));
    assert_true(lg_outdir_idle(at("a"), &arena, &e));
    lg_outdir_close(open_folder("a"));
    assert_int_equal(rmdir(at("a")), 0);
}

static void foreign_files_are_safe(void **state) {
    (void)state;
    lb_err e = {0};
    assert_true(lb_make_dirs(at("a"), &e));
    put_text("a/build.ninja", "mine");
    refused("a", LB_BAD_VALUE, "holds 'build.ninja' and no program of lagen");
    put_text("a/manifest.json", "{\"name\": \"someone's\"}");
    refused("a", LB_BAD_VALUE, "no program of lagen");
    assert_true(has("a/build.ninja", "mine"));
    assert_false(is_there("a/.lock"));
    put_text("a/launches.json", "{\n  \"schema\": \"lagen.launches/1\""); /* cut, and ours */
    lg_outdir_close(open_folder("a"));
    clear("a", (const char *[]){"a/build.ninja", "a/manifest.json", "a/launches.json"}, 3);
}

static void what_cannot_be_made_is_refused(void **state) {
    (void)state;
    lb_err e = {0};
    const char *path = NULL;
    put_text("file", "x");
    refused("file", LB_IO, "cannot make this directory");
    refused("file/a", LB_IO, "cannot make this directory");
    lg_outdir *f = open_folder("a");
    assert_true(lb_make_dirs(at("a/src"), &e));
    assert_false(lg_outdir_stage(f, "src", &path, &e));
    assert_non_null(strstr(e.text, "a folder stands where a file is to be written"));
    put_text("a/data", "x");
    assert_true(write_text(f, "data/y", "new", &e)); /* its place shows only when it is taken */
    assert_false(lg_outdir_commit(f, "", &e));
    assert_int_equal(e.code, LB_IO);
    lg_outdir_close(f);
    clear("a", (const char *[]){"a/src", "a/data"}, 2);
    f = open_folder("b/c");
    assert_true(write_text(f, "x/y/z", "new", &e) && write_text(f, "data/y", "new", &e));
    put_text("b/c/data", "x");
    assert_false(lg_outdir_commit(f, "", &e));
    lg_outdir_close(f);
    assert_false(is_there("b/c/x"));
    clear("b/c", (const char *[]){"b/c/data"}, 1);
    assert_int_equal(rmdir(at("b")), 0);
    assert_int_equal(remove(at("file")), 0);
}

/* Every allocation that fails is one line, and leaves nothing. */
static void no_memory(void **state) {
    (void)state;
    bool done = false;
    const char *dir = at("a/b");
    for (int64_t n = 0; !done; n++) {
        lb_arena small;
        lb_err e = {0};
        lg_outdir *f = NULL;
        assert_true(n < 1000);
        lb_arena_init(&small, "small", 16 << 20);
        small.fail_after = n;
        done = lg_outdir_open(dir, &small, &f, &e) && write_text(f, "src/x", "y", &e) &&
               lg_outdir_remove(f, "z", &e) && lg_outdir_commit(f, "", &e);
        assert_true(done || e.code == LB_NO_MEMORY);
        if (done) {
            assert_true(has("a/b/src/x", "y"));
            clear("a/b/src", (const char *[]){"a/b/src/x"}, 1);
        }
        lg_outdir_close(f);
        assert_false(is_there("a/b/.lock") || is_there("a/b/.staged"));
        rmdir(at("a/b/src")); /* places are made before a commit fails for memory */
        rmdir(at("a/b"));
        rmdir(at("a"));
        lb_arena_reset(&small);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_together),
        cmocka_unit_test(giving_up_changes_nothing),
        cmocka_unit_test(a_killed_writer_is_no_hindrance),
        cmocka_unit_test(one_writer),
        cmocka_unit_test(foreign_files_are_safe),
        cmocka_unit_test(what_cannot_be_made_is_refused),
        cmocka_unit_test(no_memory),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("outdir", tests, setup, teardown);
}
