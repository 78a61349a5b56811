/* test_stamp.c -- a stamp is fresh for the same plan, layouts and model file, and for nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "plans.h"
#include "stamp.h"

static const char HEX[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static char folder[] = "/tmp/test_stamp.XXXXXX";
static char stamp[64], image[64];

static const char *text_of(plans *p) {
    const char *text = NULL;
    lb_err e = {0};
    if (!lg_stamp_of(p->r.plan, p->r.file, &p->arena, &text, &e)) {
        fail_msg("%s", e.text);
    }
    return text;
}

static bool fresh(const char *want, uint64_t image_bytes) {
    char hex[LB_DIGEST_HEX_BYTES] = "";
    bool yes = false;
    lb_err e = {0};
    assert_true(lg_stamp_fresh(stamp, want, image, image_bytes, hex, &yes, &e));
    assert_string_equal(hex, yes ? HEX : "");
    return yes;
}

static void open_tiny(plans *p, uint64_t ctx) {
    plans_open(p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = ctx, .chunk = 8});
}

static void fresh_for_the_same_only(void **state) {
    (void)state;
    plans p;
    plans other;
    lb_err e = {0};
    open_tiny(&p, 256);
    const char *want = text_of(&p);
    assert_false(fresh(want, 5)); /* no stamp yet */
    assert_true(lg_stamp_write(stamp, stamp, want, HEX, &e));
    assert_false(fresh(want, 5)); /* no image */
    assert_true(lb_write_file(image, "12345", 5, false, NULL, &e));
    assert_true(fresh(want, 5));
    assert_false(fresh(want, 6));
    open_tiny(&other, 512); /* another plan, another file */
    assert_false(fresh(text_of(&other), 5));
    plans_close(&other);
    plans_close(&p);
}

/* Planes in another order, of the same sizes: another image, though memory.json is the same. */
static void layouts_count(void **state) {
    (void)state;
    plans p;
    open_tiny(&p, 256);
    const char *want = text_of(&p);
    lb_layout *l = (lb_layout *)(uintptr_t)p.r.plan->weights[0].layout;
    lb_plane first = l->planes[0];
    l->planes[0] = l->planes[1];
    l->planes[1] = first;
    assert_string_not_equal(want, text_of(&p));
    plans_close(&p);
}

static void model_file_counts(void **state) {
    (void)state;
    plans p;
    open_tiny(&p, 256);
    const char *want = text_of(&p);
    assert_string_equal(want, text_of(&p));
    struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, p.path, times, 0), 0);
    assert_string_not_equal(want, text_of(&p));
    assert_null(strstr(want, "/")); /* no path in it */
    unlink(p.path);
    const char *text = NULL;
    lb_err e = {0};
    assert_false(lg_stamp_of(p.r.plan, p.r.file, &p.arena, &text, &e));
    assert_int_equal(e.code, LB_IO);
    plans_close(&p);
}

/* A damaged stamp is not fresh: cut anywhere, longer, or with a digest that is none. */
static void damaged_stamps(void **state) {
    (void)state;
    static const char want[] = "plan x\nfile 0\n";
    char text[256];
    lb_err e = {0};
    assert_true(lb_write_file(image, "12345", 5, false, NULL, &e));
    int n = snprintf(text, sizeof text, "%s%s\n", want, HEX);
    for (int cut = 0; cut < n; cut++) {
        assert_true(lb_write_file(stamp, text, (size_t)cut, false, NULL, &e));
        assert_false(fresh(want, 5));
    }
    assert_true(lb_write_file(stamp, text, (size_t)n, false, NULL, &e));
    assert_true(fresh(want, 5));
    text[n] = 'x';
    assert_true(lb_write_file(stamp, text, (size_t)n + 1, false, NULL, &e));
    assert_false(fresh(want, 5));
    text[n - 5] = 'G';
    assert_true(lb_write_file(stamp, text, (size_t)n, false, NULL, &e));
    assert_false(fresh(want, 5));
}

static int setup(void **state) {
    (void)state;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(stamp, sizeof stamp, "%s/.stamp", folder);
    snprintf(image, sizeof image, "%s/w.bin", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(stamp);
    unlink(image);
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fresh_for_the_same_only, setup, teardown),
        cmocka_unit_test_setup_teardown(layouts_count, setup, teardown),
        cmocka_unit_test_setup_teardown(model_file_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_stamps, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("stamp", tests, NULL, NULL);
}
