/* test_moe_plan.c -- launches of experts for a GPU: tokens times picks never lie where 65,535 is
 * the limit, widths never make a cta's threads, and what has no kernel is refused before anything
 * is emitted. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fuse.h"
#include "graphs.h"
#include "named.h"
#include "plans.h"

static uint64_t grid_at(const plans *p, const lg_kernel *k, int d, uint64_t T) {
    const lg_limits *l = &p->r.plan->limits;
    const lg_expr_var vars[] = {
        {"T", T}, {"L", 1}, {"ctx", l->ctx}, {"slots", l->slots}, {"chunk", l->chunk}};
    uint64_t out = 0;
    assert_true(lg_expr_eval(k->grid[d], vars, 5, &out, NULL));
    return out;
}

static bool of_experts(const lg_kernel *k) {
    return strstr(k->family, "moe") != NULL || strcmp(k->family, "router_topk") == 0;
}

/* Kernels of experts at T rows: on y and z what it always is, on x at most `most_x` or what sorting
 * takes for the experts themselves. */
static void experts_lie_on_x(const plans *p, uint64_t T, uint64_t most_x) {
    enum { SORT = 33 };
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->r.plan->n_kernels; i++) {
        const lg_kernel *k = &p->r.plan->kernels[i];
        if (!of_experts(k)) {
            continue;
        }
        n++;
        assert_true(grid_at(p, k, 0, T) <= (most_x > SORT ? most_x : SORT));
        for (int d = 1; d < 3; d++) {
            assert_false(lg_expr_uses(k->grid[d], "T"));
            assert_true(grid_at(p, k, d, T) <= 65535);
        }
    }
    assert_true(n >= 7);
}

/* Top-10 of 256 experts: 6,553 rows are 65,530 pairs, 6,554 are 65,540. */
static void pairs_lie_on_x(void **state) {
    (void)state;
    static const uint64_t rows[] = {1, 8, 9, 6049, 6553, 6554, 7069, 8192};
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/laguna-s",
                                    .layers = 4,
                                    .target = "sm_121a",
                                    .ctx = 8192,
                                    .chunk = 8192});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        experts_lie_on_x(&p, rows[i], 11 * rows[i]);
    }
    plans_close(&p);
}

/* The same kernels with their tiles put on y: refused where the first launch would not fit. */
static void tiles_on_y_are_refused(void **state) {
    (void)state;
    plans p;
    uint32_t n = 0;
    plans_open(
        &p,
        &(plans_request){
            .recipe = "synth/llama-moe", .layers = 1, .target = "sm_90a", .ctx = 64, .chunk = 16});
    for (uint32_t i = 0; i < p.r.plan->n_kernels; i++) {
        lg_kernel *k = &p.r.plan->kernels[i];
        for (uint32_t a = 0; a < k->n_axes; a++) {
            lg_axis *axis = (lg_axis *)(uintptr_t)&k->axes[a];
            const char *was = axis->on;
            lg_proof proof;
            lb_err e = {0};
            if (!of_experts(k) || strcmp(axis->kind, "rows") != 0) {
                continue;
            }
            axis->on = "y";
            assert_false(lg_prove(p.r.plan, &p.arena, &proof, &e));
            assert_int_equal(e.code, LB_PROOF);
            axis->on = was;
            n++;
        }
    }
    assert_true(n >= 6);
    plans_close(&p);
}

/* Top-8 on both sides of 65,536 pairs, rows on both sides of 65,535: the prover tries all up to the
 * chunk. */
static void long_steps_are_proved(void **state) {
    (void)state;
    static const uint64_t rows[] = {8191, 8192, 65535, 65536, 65537};
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/laguna-xs",
                                    .layers = 2,
                                    .target = "sm_121a",
                                    .ctx = 131072,
                                    .chunk = 65537});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        experts_lie_on_x(&p, rows[i], 9 * rows[i]);
    }
    plans_close(&p);
}

/* ---- widths */

enum { EXPERTS = 4, EMBD = 256 };

static uint32_t expert_linear(graphs *b, lg_qtype type, uint32_t x, uint64_t cols, uint64_t rows) {
    char text[64];
    uint32_t w = graphs_tensor(b, "w", type, cols, rows);
    b->tensors[w].n_mats = EXPERTS;
    uint32_t y = graphs_value(b, "v", LG_ROWS_T, LG_ELEM_F32, 2 * rows);
    snprintf(text, sizeof text, "x=%%%" PRIu32 " ids=%%2 w=@%" PRIu32 " y=%%%" PRIu32, x, w, y);
    graphs_node(b, LG_OP_EXPERT_LINEAR, 0, text, "{\"n_used\": 2}");
    return y;
}

/* Experts `ffn` wide behind a norm; logits of the embedding. */
static void wide(graphs *b, lg_qtype type, uint64_t ffn) {
    char text[64];
    graphs_open(b);
    graphs_tensor(b, "embd", LG_QTYPE_F32, EMBD, 320);
    graphs_tensor(b, "router", LG_QTYPE_F32, EMBD, EXPERTS);
    graphs_value(b, "x", LG_ROWS_T, LG_ELEM_F32, EMBD);
    graphs_value(b, "logits", LG_ROWS_T, LG_ELEM_F32, EXPERTS);
    uint32_t ids = graphs_value(b, "ids", LG_ROWS_T, LG_ELEM_I32, 2);
    b->values[ids].below = EXPERTS;
    uint32_t weights = graphs_value(b, "weights", LG_ROWS_T, LG_ELEM_F32, 2);
    graphs_node(b, LG_OP_EMBED, -1, "w=@0 y=%0", "{}");
    graphs_node(b, LG_OP_LINEAR, 0, "x=%0 w=@1 y=%1", "{}");
    graphs_node(b, LG_OP_ROUTER, 0, "logits=%1 ids=%2 weights=%3",
                "{\"n_used\": 2, \"gating\": \"softmax\", \"norm\": true, \"scale\": 1.0}");
    uint32_t gate = expert_linear(b, type, 0, EMBD, ffn);
    uint32_t up = expert_linear(b, type, 0, EMBD, ffn);
    uint32_t act = graphs_value(b, "act", LG_ROWS_T, LG_ELEM_F32, 2 * ffn);
    snprintf(text, sizeof text, "gate=%%%" PRIu32 " up=%%%" PRIu32 " y=%%%" PRIu32, gate, up, act);
    graphs_node(b, LG_OP_SILU_MUL, 0, text, "{}");
    uint32_t z = expert_linear(b, type, act, ffn, EMBD);
    uint32_t sum = graphs_value(b, "sum", LG_ROWS_T, LG_ELEM_F32, EMBD);
    uint32_t y = graphs_value(b, "y", LG_ROWS_T, LG_ELEM_F32, EMBD);
    snprintf(text, sizeof text, "x=%%%" PRIu32 " weights=%%%" PRIu32 " y=%%%" PRIu32, z, weights,
             sum);
    graphs_node(b, LG_OP_EXPERT_SUM, 0, text, "{\"n_used\": 2}");
    snprintf(text, sizeof text, "a=%%0 b=%%%" PRIu32 " y=%%%" PRIu32, sum, y);
    graphs_node(b, LG_OP_ADD, 0, text, "{}");
    uint32_t taken = graphs_value(b, "taken", LG_ROWS_L, LG_ELEM_F32, EMBD);
    uint32_t normed = graphs_value(b, "normed", LG_ROWS_L, LG_ELEM_F32, EMBD);
    b->g.logits = graphs_value(b, "out", LG_ROWS_L, LG_ELEM_F32, 320);
    b->g.n_embd = EMBD;
    snprintf(text, sizeof text, "x=%%%" PRIu32 " y=%%%" PRIu32, y, taken);
    graphs_node(b, LG_OP_TAKE_ROWS, -1, text, "{}");
    snprintf(text, sizeof text, "x=%%%" PRIu32 " w=@%" PRIu32 " y=%%%" PRIu32, taken,
             graphs_tensor(b, "norm", LG_QTYPE_F32, EMBD, 1), normed);
    graphs_node(b, LG_OP_RMS_NORM, -1, text, "{\"eps\": 0.00001}");
    snprintf(text, sizeof text, "x=%%%" PRIu32 " w=@0 y=%%%" PRIu32, normed, b->g.logits);
    graphs_node(b, LG_OP_LINEAR, -1, text, "{}");
}

/* Plans and proves; the largest cta in *threads. */
static bool plan_wide(lg_qtype type, uint64_t ffn, uint64_t *threads, lb_err *err) {
    graphs b;
    lg_graph *fused = NULL;
    lg_plan *plan = NULL;
    lg_host *host = NULL;
    const lg_hw_row *hw = NULL;
    lg_limits limits;
    lg_proof proof;
    wide(&b, type, ffn);
    b.files[b.g.n_tensors - 1].n_bytes = EMBD * sizeof(float); /* the norm's: a plain vector */
    assert_true(lg_hw_find("sm_121a", &hw, err) && lg_limits_make(64, 1, 33, &limits, err) &&
                lg_host_open("templates", NULL, &b.arena, &host, err));
    bool ok = lg_graph_check(&b.g, "building", err) && lg_fuse(&b.g, &b.arena, &fused, err) &&
              lg_graph_check(fused, "fusing", err) &&
              lg_plan_launches(fused, hw, &limits, host, &b.arena, &plan, err) &&
              lg_plan_memory(plan, host, &b.arena, err) && lg_prove(plan, &b.arena, &proof, err);
    *threads = 0;
    for (uint32_t i = 0; ok && i < plan->n_kernels; i++) {
        *threads = plan->kernels[i].block > *threads ? plan->kernels[i].block : *threads;
    }
    lg_host_close(host);
    graphs_close(&b);
    return ok;
}

static void widths_make_no_threads(void **state) {
    (void)state;
    static const struct {
        lg_qtype type;
        uint64_t ffn;
        const char *says; /* NULL: proved */
    } widths[] = {
        {LG_QTYPE_Q8_0, 8192, NULL},
        {LG_QTYPE_F16, 8200, NULL},
        {LG_QTYPE_Q8_0, 8224, NULL},
        {LG_QTYPE_Q4_K, 16384, NULL},
        {LG_QTYPE_Q8_0, 16384, NULL},
        {LG_QTYPE_F16, 16385, NULL},
        {LG_QTYPE_Q8_0, 8200, "width modulo 32"},
        {LG_QTYPE_Q4_K, 8224, "not a multiple of 256"},
    };
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        uint64_t threads = 0;
        lb_err e = {0};
        bool ok = plan_wide(widths[i].type, widths[i].ffn, &threads, &e);
        if (ok != (widths[i].says == NULL) || threads > 1024 ||
            (!ok && strstr(e.text, widths[i].says) == NULL)) {
            fail_msg("width %" PRIu64 ": %" PRIu64 " threads, '%s'", widths[i].ffn, threads,
                     e.text);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        named_test("A01 pairs of top-10 lie on x", pairs_lie_on_x),
        named_test("A01 tiles on y are refused", tiles_on_y_are_refused),
        named_test("A02 A04 steps of up to 65,537 rows are proved", long_steps_are_proved),
        named_test("A07 widths of experts make no threads", widths_make_no_threads),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("moe_plan", tests, NULL, NULL);
}
