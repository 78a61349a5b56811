/* Replaying a plan's launches on the recorder: all of a proved plan are taken; one that hardware
 * would refuse is refused, whatever the prover thinks of it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "gen/plans.h"
#include "gpu/fake_cubin.h"
#include "prove.h"
#include "replay.h"

typedef struct world {
    plans p;
    char folder[64], tool[4096];
} world;

/* Cubins without code, as a compiler would have made them. */
static void write_cubins(world *w) {
    uint8_t data[4096];
    lb_err e = {0};
    for (uint32_t i = 0; i < w->p.r.plan->n_kernels; i++) {
        const lg_kernel *k = &w->p.r.plan->kernels[i];
        char path[512];
        uint64_t params = 0;
        assert_true(lg_prove_param_bytes(k, &params, &e));
        const fake_kernel f = {k->name, 40, 0, 0, (uint32_t)params, (uint32_t)k->block};
        size_t n = fake_cubin(90, &f, data, sizeof data);
        snprintf(path, sizeof path, "%s/cubin/%s.cubin", w->folder, k->name);
        assert_true(lb_write_file(path, data, n, false, NULL, &e));
    }
}

static void begin(world *w) {
    char cubins[80];
    lb_err e = {0};
    plans_open(
        &w->p,
        &(plans_request){
            .recipe = "synth/llama-tiny", .target = "sm_90", .ctx = 512, .chunk = 40, .slots = 2});
    snprintf(w->folder, sizeof w->folder, "/tmp/lagen-replay-test-XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    snprintf(cubins, sizeof cubins, "%s/cubin", w->folder);
    assert_true(lb_make_dirs(cubins, &e));
    write_cubins(w);
    ssize_t n = readlink("/proc/self/exe", w->tool, sizeof w->tool - 32);
    assert_true(n > 0);
    w->tool[n] = '\0';
    for (int up = 0; up < 3; up++) {
        *strrchr(w->tool, '/') = '\0';
    }
    strcat(w->tool, "/lagen-replay");
}

static void end(world *w) {
    char path[512];
    for (uint32_t i = 0; i < w->p.r.plan->n_kernels; i++) {
        snprintf(path, sizeof path, "%s/cubin/%s.cubin", w->folder, w->p.r.plan->kernels[i].name);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/cubin", w->folder);
    rmdir(path);
    rmdir(w->folder);
    plans_close(&w->p);
}

static bool replay(world *w, uint64_t *n, lb_err *e) {
    *e = (lb_err){0};
    return lg_replay(w->p.r.plan, w->folder, w->tool, NULL, &w->p.arena, n, e);
}

static void refused(world *w) {
    uint64_t n = 0;
    lb_err e;
    assert_false(replay(w, &n, &e));
    assert_int_equal(e.code, LB_PROOF);
    assert_non_null(strstr(e.text, "sm_90"));
}

static void a_proved_plan_is_taken(void **state) {
    (void)state;
    world w;
    uint64_t n = 0;
    lb_err e;
    begin(&w);
    if (!replay(&w, &n, &e)) {
        fail_msg("%s", e.text);
    }
    assert_true(n > 40);
    end(&w);
}

static void what_hardware_refuses_is_refused(void **state) {
    (void)state;
    world w;
    lb_err e = {0};
    begin(&w);
    lg_kernel *k = &w.p.r.plan->kernels[0];
    const lg_kernel kept = *k;
    k->block = 160; /* above the launch bounds of its cubin */
    refused(&w);
    *k = kept;
    k->smem_bytes = 300000;
    refused(&w);
    *k = kept;
    assert_true(lg_expr_parse("65535", &w.p.arena, &k->grid[1], &e));
    uint64_t n = 0;
    assert_true(replay(&w, &n, &e));
    assert_true(lg_expr_parse("65536", &w.p.arena, &k->grid[1], &e));
    refused(&w);
    k->per_launch[1] = 65535; /* in two pieces it is taken */
    assert_true(replay(&w, &n, &e));
    *k = kept;
    end(&w);
}

static void missing_cubins_are_refused(void **state) {
    (void)state;
    world w;
    char path[512];
    begin(&w);
    snprintf(path, sizeof path, "%s/cubin/%s.cubin", w.folder, w.p.r.plan->kernels[3].name);
    unlink(path);
    refused(&w);
    end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proved_plan_is_taken),
        cmocka_unit_test(what_hardware_refuses_is_refused),
        cmocka_unit_test(missing_cubins_are_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
