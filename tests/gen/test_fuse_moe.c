/* test_fuse_moe.c -- mixtures of experts fused: the launches that they should have, for few rows
 * and for many, with the shared expert before or behind the sum or of another width; the same
 * function in all of them; what is no such block is refused. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fuse.h"
#include "graph_eval.h"
#include "graphs.h"
#include "op.h"

enum { EXPERTS = 6, PICKS = 3, EMBD = 64, FFN = 96 };

/* Where the shared expert stands. */
typedef enum place { NOWHERE, BEFORE, BEHIND } place;

typedef struct shape {
    lg_qtype gate, up, down; /* of the routed experts */
    lg_qtype shared;
    uint64_t shared_ffn;
    place where;
} shape;

static const uint32_t TOKENS[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
static const uint32_t ROWS[] = {6, 0, 3};

static uint32_t f32(graphs *b, uint64_t width) {
    return graphs_value(b, "v", LG_ROWS_T, LG_ELEM_F32, width);
}

static uint32_t matrices(graphs *b, const char *name, lg_qtype type, uint64_t cols, uint64_t rows,
                         uint64_t mats) {
    uint32_t t = graphs_tensor(b, name, type, cols, rows);
    b->tensors[t].n_mats = mats;
    return t;
}

static uint32_t linear(graphs *b, uint32_t x, uint32_t w, uint64_t n) {
    char text[64];
    uint32_t y = f32(b, n);
    snprintf(text, sizeof text, "x=%%%" PRIu32 " w=@%" PRIu32 " y=%%%" PRIu32, x, w, y);
    graphs_node(b, LG_OP_LINEAR, 0, text, "{}");
    return y;
}

static uint32_t expert_linear(graphs *b, uint32_t x, uint32_t ids, uint32_t w, uint64_t n) {
    char text[64];
    uint32_t y = f32(b, PICKS * n);
    snprintf(text, sizeof text, "x=%%%" PRIu32 " ids=%%%" PRIu32 " w=@%" PRIu32 " y=%%%" PRIu32, x,
             ids, w, y);
    graphs_node(b, LG_OP_EXPERT_LINEAR, 0, text, "{\"n_used\": 3}");
    return y;
}

static uint32_t pointwise(graphs *b, lg_op op, const char *first, uint32_t p, const char *second,
                          uint32_t q, uint64_t n) {
    char text[64];
    uint32_t y = f32(b, n);
    snprintf(text, sizeof text, "%s=%%%" PRIu32 " %s=%%%" PRIu32 " y=%%%" PRIu32, first, p, second,
             q, y);
    graphs_node(b, op, 0, text, "{}");
    return y;
}

static uint32_t shared_expert(graphs *b, const shape *s, uint32_t x, uint32_t h) {
    uint64_t n = s->shared_ffn;
    uint32_t gate = linear(b, h, graphs_tensor(b, "s_gate", s->shared, EMBD, n), n);
    uint32_t up = linear(b, h, graphs_tensor(b, "s_up", s->shared, EMBD, n), n);
    uint32_t act = pointwise(b, LG_OP_SILU_MUL, "gate", gate, "up", up, n);
    uint32_t y = linear(b, act, graphs_tensor(b, "s_down", s->shared, n, EMBD), EMBD);
    return pointwise(b, LG_OP_ADD, "a", x, "b", y, EMBD);
}

static uint32_t routed_experts(graphs *b, const shape *s, uint32_t x, uint32_t h) {
    char text[96];
    uint32_t logits =
        linear(b, h, graphs_tensor(b, "router", LG_QTYPE_F32, EMBD, EXPERTS), EXPERTS);
    uint32_t ids = graphs_value(b, "ids", LG_ROWS_T, LG_ELEM_I32, PICKS);
    uint32_t weights = f32(b, PICKS);
    uint32_t bias = graphs_tensor(b, "bias", LG_QTYPE_F32, EXPERTS, 1);
    b->values[ids].below = EXPERTS;
    snprintf(text, sizeof text,
             "logits=%%%" PRIu32 " bias=@%" PRIu32 " ids=%%%" PRIu32 " weights=%%%" PRIu32, logits,
             bias, ids, weights);
    graphs_node(b, LG_OP_ROUTER, 0, text,
                "{\"n_used\": 3, \"gating\": \"sigmoid\", \"norm\": true, \"scale\": 2.5}");
    uint32_t gate = expert_linear(b, h, ids, matrices(b, "gate", s->gate, EMBD, FFN, EXPERTS), FFN);
    uint32_t up = expert_linear(b, h, ids, matrices(b, "up", s->up, EMBD, FFN, EXPERTS), FFN);
    uint32_t act = pointwise(b, LG_OP_SILU_MUL, "gate", gate, "up", up, PICKS * FFN);
    uint32_t z = expert_linear(b, act, ids, matrices(b, "down", s->down, FFN, EMBD, EXPERTS), EMBD);
    uint32_t sum = f32(b, EMBD);
    snprintf(text, sizeof text, "x=%%%" PRIu32 " weights=%%%" PRIu32 " y=%%%" PRIu32, z, weights,
             sum);
    graphs_node(b, LG_OP_EXPERT_SUM, 0, text, "{\"n_used\": 3}");
    return pointwise(b, LG_OP_ADD, "a", x, "b", sum, EMBD);
}

/* One layer of experts between an embedding and the logits. */
static void mixture(graphs *b, const shape *s) {
    char text[64];
    graphs_open(b);
    uint32_t embd = graphs_tensor(b, "embd", LG_QTYPE_F32, EMBD, 320);
    uint32_t x = f32(b, EMBD);
    uint32_t h = f32(b, EMBD);
    graphs_node(b, LG_OP_EMBED, -1, "w=@0 y=%0", "{}");
    snprintf(text, sizeof text, "x=%%0 w=@%" PRIu32 " y=%%1",
             graphs_tensor(b, "norm", LG_QTYPE_F32, EMBD, 1));
    graphs_node(b, LG_OP_RMS_NORM, 0, text, "{\"eps\": 0.00001}");
    if (s->where == BEFORE) {
        x = shared_expert(b, s, x, h);
    }
    x = routed_experts(b, s, x, h);
    if (s->where == BEHIND) {
        x = shared_expert(b, s, x, h);
    }
    uint32_t taken = graphs_value(b, "taken", LG_ROWS_L, LG_ELEM_F32, EMBD);
    uint32_t normed = graphs_value(b, "normed", LG_ROWS_L, LG_ELEM_F32, EMBD);
    b->g.logits = graphs_value(b, "logits", LG_ROWS_L, LG_ELEM_F32, 320);
    snprintf(text, sizeof text, "x=%%%" PRIu32 " y=%%%" PRIu32, x, taken);
    graphs_node(b, LG_OP_TAKE_ROWS, -1, text, "{}");
    snprintf(text, sizeof text, "x=%%%" PRIu32 " w=@%" PRIu32 " y=%%%" PRIu32, taken,
             graphs_tensor(b, "output_norm", LG_QTYPE_F32, EMBD, 1), normed);
    graphs_node(b, LG_OP_RMS_NORM, -1, text, "{\"eps\": 0.00001}");
    snprintf(text, sizeof text, "x=%%%" PRIu32 " w=@%" PRIu32 " y=%%%" PRIu32, normed, embd,
             b->g.logits);
    graphs_node(b, LG_OP_LINEAR, -1, text, "{}");
}

static lg_graph *fused(graphs *b) {
    lb_err e = {0};
    lg_graph *out = NULL;
    if (!lg_graph_check(&b->g, "building", &e) || !lg_fuse(&b->g, &b->arena, &out, &e) ||
        !lg_graph_check(out, "fusing", &e)) {
        fail_msg("%s", e.text);
    }
    return out;
}

/* Both graphs give the same logits, in a step of few rows and in one of many. */
static void same_function(const lg_graph *a, const lg_graph *b) {
    for (uint32_t n = 7; n <= 11; n += 4) {
        const graph_inputs in = {TOKENS, n, ROWS, 3};
        lb_arena memory;
        double spread = 0.0;
        lb_arena_init(&memory, "eval", UINT64_C(1) << 30);
        const double *x = graph_eval(a, &in, &memory);
        const double *y = graph_eval(b, &in, &memory);
        for (uint64_t i = 0; i < in.n_logits * a->n_vocab; i++) {
            assert_true(isfinite(x[i]) && fabs(x[i] - y[i]) <= 1e-9 * (1.0 + fabs(x[i])));
            spread += fabs(x[i] - x[0]);
        }
        assert_true(spread > 1.0);
        lb_arena_reset(&memory);
    }
}

/* The launches of the layer for steps of few rows, or of many. */
static void expect(const lg_graph *g, lg_when when, const char *want) {
    char got[512] = "";
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const lg_gnode *n = &g->nodes[i];
        size_t len = strlen(got);
        if (n->layer == 0 && (n->when == LG_WHEN_ANY || n->when == when)) {
            snprintf(got + len, sizeof got - len, "%s%s", len == 0 ? "" : " ",
                     lg_op_get(n->op)->name);
        }
    }
    assert_string_equal(got, want);
}

static const shape PLAIN = {LG_QTYPE_Q8_0, LG_QTYPE_Q8_0, LG_QTYPE_Q8_0,
                            LG_QTYPE_Q8_0, FFN,           NOWHERE};

static void routed_experts_alone(void **state) {
    (void)state;
    graphs b;
    mixture(&b, &PLAIN);
    lg_graph *g = fused(&b);
    expect(g, LG_WHEN_FEW, "norm_quant router_parts router_topk matvec_moe_gated matvec_moe_down");
    expect(g, LG_WHEN_MANY,
           "norm_quant router_parts router_topk moe_sort moe_gated moe_down moe_sum");
    same_function(&b.g, g);
    graphs_close(&b);
}

static void a_shared_expert_is_one_more_pick(void **state) {
    (void)state;
    for (int where = BEFORE; where <= BEHIND; where++) {
        shape s = PLAIN;
        graphs b;
        s.where = (place)where;
        mixture(&b, &s);
        lg_graph *g = fused(&b);
        expect(g, LG_WHEN_FEW,
               "norm_quant router_parts router_topk matvec_moe_gated matvec_moe_down");
        expect(g, LG_WHEN_MANY,
               "norm_quant router_parts router_topk moe_sort moe_gated moe_down moe_sum");
        for (uint32_t i = 0; i < g->n_nodes; i++) {
            const lg_goperand *o = lg_node_operand(&g->nodes[i], "s0");
            bool product = strstr(lg_op_get(g->nodes[i].op)->name, "moe_") != NULL &&
                           lg_node_operand(&g->nodes[i], "w0") != NULL;
            assert_true(product == (o != NULL));
        }
        same_function(&b.g, g);
        graphs_close(&b);
    }
}

static void another_width_is_a_product_of_its_own(void **state) {
    (void)state;
    shape s = PLAIN;
    graphs b;
    s.shared_ffn = 32;
    s.where = BEHIND;
    mixture(&b, &s);
    lg_graph *g = fused(&b);
    expect(
        g, LG_WHEN_FEW,
        "norm_quant router_parts router_topk matvec_moe_gated matvec_moe_down matmul quant "
        "matmul_add");
    same_function(&b.g, g);
    graphs_close(&b);
    s.where = BEFORE;
    mixture(&b, &s);
    g = fused(&b);
    expect(
        g, LG_WHEN_MANY,
        "norm_quant matmul quant matmul_add router_parts router_topk moe_sort moe_gated moe_down "
        "moe_sum");
    same_function(&b.g, g);
    graphs_close(&b);
}

/* Plain and quantised matrices in every mixture: each stage reads and writes what the next needs.
 */
static void mixed_types(void **state) {
    (void)state;
    static const lg_qtype types[] = {LG_QTYPE_F16, LG_QTYPE_Q4_0};
    for (uint32_t mix = 0; mix < 32; mix++) {
        graphs b;
        const shape s = {types[mix & 1],
                         types[mix >> 1 & 1],
                         types[mix >> 2 & 1],
                         types[mix >> 3 & 1],
                         FFN,
                         mix >> 4 == 0 ? BEFORE : BEHIND};
        mixture(&b, &s);
        same_function(&b.g, fused(&b));
        graphs_close(&b);
    }
}

static lg_gnode *first(graphs *b, lg_op op) {
    for (uint32_t i = 0; i < b->g.n_nodes; i++) {
        if (b->nodes[i].op == op) {
            return &b->nodes[i];
        }
    }
    fail_msg("no node of op %d", (int)op);
    return NULL;
}

static void set(graphs *b, const lg_gnode *n, const char *role, uint32_t id) {
    for (uint32_t i = 0; i < n->n_operands; i++) {
        lg_goperand *o = &b->operands[n - b->nodes][i];
        o->id = strcmp(o->role, role) == 0 ? id : o->id;
    }
}

static void refused(graphs *b, const char *says) {
    lb_err e = {0};
    lg_graph *out = NULL;
    if (!lg_graph_check(&b->g, "building", &e)) {
        fail_msg("the graph itself is wrong: %s", e.text);
    }
    if (lg_fuse(&b->g, &b->arena, &out, &e)) {
        fail_msg("fused; expected: %s", says);
    }
    if (strstr(e.text, says) == NULL || strstr(e.text, "of layer 0") == NULL) {
        fail_msg("'%s'; expected: %s", e.text, says);
    }
    graphs_close(b);
}

static void what_is_no_block_is_refused(void **state) {
    (void)state;
    graphs b;
    mixture(&b, &PLAIN);
    lg_gnode *silu = first(&b, LG_OP_SILU_MUL);
    set(&b, silu, "up", lg_node_operand(silu, "gate")->id); /* up is read by nobody */
    refused(&b, "it is not part of experts' gated product");

    mixture(&b, &PLAIN);
    lg_gnode *add = first(&b, LG_OP_ADD);
    uint32_t x = lg_node_operand(add, "a")->id;
    set(&b, add, "a", lg_node_operand(add, "b")->id);
    set(&b, add, "b", x);
    refused(&b, "it is not part of experts' gated product");

    mixture(&b, &PLAIN);
    set(&b, first(&b, LG_OP_TAKE_ROWS), "x", 0); /* the old residual is read behind the add */
    refused(&b, "it is not a residual whose old value is free");
}

static void memory_may_run_out(void **state) {
    (void)state;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        shape s = PLAIN;
        graphs b;
        lb_err e = {0};
        lg_graph *out = NULL;
        s.where = BEHIND;
        mixture(&b, &s);
        b.arena.fail_after = n;
        done = lg_fuse(&b.g, &b.arena, &out, &e);
        assert_true(done || (e.code == LB_NO_MEMORY && out == NULL));
        graphs_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routed_experts_alone),
        cmocka_unit_test(a_shared_expert_is_one_more_pick),
        cmocka_unit_test(another_width_is_a_product_of_its_own),
        cmocka_unit_test(mixed_types),
        cmocka_unit_test(what_is_no_block_is_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("fuse_moe", tests, NULL, NULL);
}
