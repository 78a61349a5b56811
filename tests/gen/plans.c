/* plans.c -- see plans.h. */
#include "plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "synth.h"

static void make_model(plans *p, const plans_request *rq) {
    lb_err e = {0};
    snprintf(p->path, sizeof p->path, "/tmp/lagen-plans-XXXXXX");
    int fd = mkstemp(p->path);
    assert_true(fd >= 0);
    close(fd);
    const lg_synth_options o = {.models_dir = "models",
                                .recipe = rq->recipe,
                                .out_path = p->path,
                                .types = rq->types,
                                .layers = rq->layers,
                                .header_only = !rq->weights};
    if (!lg_synth_run(&o, NULL, &p->arena, &e)) {
        fail_msg("%s: %s", rq->recipe, e.text);
    }
}

void plans_open(plans *p, const plans_request *rq) {
    lb_err e = {0};
    lb_arena_init(&p->arena, "plans", UINT64_C(1) << 30);
    make_model(p, rq);
    const lg_request request = {.root = ".", .model = p->path,
                                .target = rq->target != NULL ? rq->target : "x86-64-v3",
                                .ctx = rq->ctx, .slots = rq->slots == 0 ? 1 : rq->slots,
                                .chunk = rq->chunk, .kv = "f16"};
    if (!lg_run(&request, &p->arena, &p->r, &e)) {
        fail_msg("%s: %s", rq->recipe, e.text);
    }
}

void plans_close(plans *p) {
    lg_result_close(&p->r);
    lb_arena_reset(&p->arena);
    unlink(p->path);
}

void plans_refused(const lg_plan *plan, const char *says) {
    lb_arena memory;
    lg_proof proof = {0};
    lb_err e = {0};
    lb_arena_init(&memory, "proof", UINT64_C(1) << 28);
    if (lg_prove(plan, &memory, &proof, &e)) {
        fail_msg("proved; expected: %s", says);
    }
    if (e.code != LB_PROOF || strstr(e.text, says) == NULL) {
        fail_msg("code %d '%s'; expected: %s", (int)e.code, e.text, says);
    }
    lb_arena_reset(&memory);
}
