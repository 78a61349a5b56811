/* test_fuse.c -- rewriting into launch ops: the fused graph is right by the verifier, computes the
 * same function, has the launches that it should have, and what fits no rule is refused. */
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
#include "plans.h"

static const uint32_t TOKENS[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}; /* more than a window of 8 */
static const uint32_t ROWS[] = {11, 0, 3};
static const graph_inputs INPUTS = {TOKENS, 12, ROWS, 3};

static lg_graph *fused(const lg_graph *g, lb_arena *arena) {
    lb_err e = {0};
    lg_graph *out = NULL;
    if (!lg_graph_check(g, "building", &e) || !lg_fuse(g, arena, &out, &e) ||
        !lg_graph_check(out, "fusing", &e)) {
        fail_msg("%s", e.text);
    }
    return out;
}

static void refused(graphs *b, const char *says) {
    lb_err e = {0};
    lg_graph *out = NULL;
    if (!lg_graph_check(&b->g, "building", &e)) {
        fail_msg("the graph itself is wrong: %s", e.text);
    }
    if (lg_fuse(&b->g, &b->arena, &out, &e) && lg_graph_check(out, "fusing", &e)) {
        fail_msg("fused; expected: %s", says);
    }
    if (strstr(e.text, says) == NULL || strstr(e.text, "op '") == NULL) {
        fail_msg("'%s'; expected: %s", e.text, says);
    }
    graphs_close(b);
}

/* Both graphs give the same logits, up to the order of a sum. */
static void same_function(const lg_graph *a, const lg_graph *b) {
    lb_arena memory;
    lb_arena_init(&memory, "eval", UINT64_C(1) << 30);
    const double *x = graph_eval(a, &INPUTS, &memory);
    const double *y = graph_eval(b, &INPUTS, &memory);
    double spread = 0.0;
    for (uint64_t i = 0; i < INPUTS.n_logits * a->n_vocab; i++) {
        assert_true(isfinite(x[i]) && fabs(x[i] - y[i]) <= 1e-9 * (1.0 + fabs(x[i])));
        spread += fabs(x[i] - x[0]);
    }
    assert_true(spread > 1.0);
    lb_arena_reset(&memory);
}

static void expect_ops(const lg_graph *g, const char *want) {
    char got[512] = "";
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        size_t n = strlen(got);
        snprintf(got + n, sizeof got - n, "%s%s", i == 0 ? "" : " ",
                 lg_op_get(g->nodes[i].op)->name);
    }
    assert_string_equal(got, want);
}

static uint32_t planes(const lg_graph *g) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        n += g->values[i].elem == LG_ELEM_I8;
    }
    return n;
}

static void quantised_llama(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    lg_graph *g = fused(&b.g, &b.arena);
    expect_ops(
        g,
        "embed rope_table norm_quant matmul rope_kv attn quant matmul_add norm_quant matmul quant "
        "matmul_add norm_quant matmul");
    assert_int_equal(planes(g), 5);
    assert_int_equal(g->n_tensors, b.g.n_tensors);
    same_function(&b.g, g);
    graphs_close(&b);
}

static void plain_llama_quantises_nothing(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_F16);
    lg_graph *g = fused(&b.g, &b.arena);
    expect_ops(
        g,
        "embed rope_table norm_quant matmul rope_kv attn matmul_add norm_quant matmul matmul_add "
        "norm_quant matmul");
    assert_int_equal(planes(g), 0);
    same_function(&b.g, g);
    graphs_close(&b);
}

/* Every mixture of plain and quantised matrices: each gets the input that it reads, made once. */
static void mixed_types(void **state) {
    (void)state;
    for (uint32_t mix = 0; mix < 256; mix++) {
        static const uint32_t matrices[] = {0, 2, 3, 4, 5, 7, 8, 9};
        graphs b;
        graphs_llama(&b, LG_QTYPE_F16);
        for (uint32_t i = 0; i < 8; i++) {
            b.files[matrices[i]].type = (mix >> i & 1) != 0 ? LG_QTYPE_Q4_0 : LG_QTYPE_F32;
        }
        lg_graph *g = fused(&b.g, &b.arena);
        bool q = (mix & 0x0e) != 0;
        uint32_t want = q + (mix >> 4 & 1) + ((mix & 0x60) != 0) + (mix >> 7 & 1) + (mix & 1);
        assert_int_equal(planes(g), want);
        if (mix % 16 == 5) {
            same_function(&b.g, g);
        }
        graphs_close(&b);
    }
}

/* The models that the recipes make: biases, YaRN, untied outputs, several layers. */
static void recipes_compute_the_same(void **state) {
    (void)state;
    static const char *const recipes[] = {"synth/llama-tiny", "synth/llama-spm", "synth/llama-yarn",
                                          "synth/laguna-dense", "synth/llama-nvfp4",
                                          "synth/llama-moe-nvfp4"};
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        plans p;
        plans_open(&p, &(plans_request){.recipe = recipes[i], .ctx = 64, .chunk = 16});
        same_function(p.r.arch_graph, p.r.graph);
        plans_close(&p);
    }
}

static void neox_pairs(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_F32);
    for (uint32_t i = 0; i < b.g.n_nodes; i++) {
        if (b.nodes[i].op == LG_OP_ROPE) {
            b.nodes[i].attrs =
                graphs_attrs(&b, "{\"head_dim\": 16, \"n_rot\": 16, \"pairing\": \"neox\"}");
        }
    }
    same_function(&b.g, fused(&b.g, &b.arena));
    graphs_close(&b);
}

/* A node of graphs_llama, by op and occurrence. */
static lg_gnode *nth(graphs *b, lg_op op, uint32_t nth_one) {
    for (uint32_t i = 0; i < b->g.n_nodes; i++) {
        if (b->nodes[i].op == op && nth_one-- == 0) {
            return &b->nodes[i];
        }
    }
    fail_msg("no such node of op %d", (int)op);
    return &b->nodes[0];
}

static void set_operand(graphs *b, const lg_gnode *n, const char *role, uint32_t id) {
    for (uint32_t i = 0; i < n->n_operands; i++) {
        lg_goperand *o = &b->operands[n - b->nodes][i];
        if (strcmp(o->role, role) == 0) {
            o->id = id;
        }
    }
}

/* Parallel residual: the second norm reads the old x behind the product of the first block, where
 * an update in place would already have changed it. */
static void parallel_residual_is_refused(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    lg_gnode add = *nth(&b, LG_OP_ADD, 0);
    set_operand(&b, nth(&b, LG_OP_RMS_NORM, 1), "x", 0);
    lg_gnode *first = nth(&b, LG_OP_ADD, 0);
    lg_goperand operands[3];
    memcpy(operands, add.operands, sizeof operands);
    memmove(first, first + 1,
            5 * sizeof *first); /* the add moves behind the products of the second block */
    first[5] = add;
    refused(&b, "it is not a residual whose old value is free");
}

static void old_value_read_later_is_refused(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    set_operand(&b, nth(&b, LG_OP_ADD, 1), "a",
                0); /* the second residual adds to the embedding again */
    refused(&b, "it is not a residual whose old value is free");
}

static void add_of_other_order_is_refused(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    lg_gnode *add = nth(&b, LG_OP_ADD, 0);
    set_operand(&b, add, "a", 11);
    set_operand(&b, add, "b", 0);
    refused(&b, "it is not a residual");
}

static void rows_of_logits_need_a_norm(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    lg_gnode *norm = nth(&b, LG_OP_RMS_NORM, 2);
    set_operand(&b, nth(&b, LG_OP_LINEAR, 7), "x", 19);
    b.g.n_tensors--; /* the norm's weight is the last */
    norm[0] = norm[1];
    b.g.n_nodes--;
    refused(&b, "it is not followed by one rms_norm");
}

static void input_read_behind_take_rows_is_refused(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    uint32_t y = graphs_value(&b, "late", LG_ROWS_T, LG_ELEM_F32, 64);
    char operands[32];
    snprintf(operands, sizeof operands, "x=%%18 w=@10 y=%%%" PRIu32, y);
    graphs_node(&b, LG_OP_RMS_NORM, -1, operands, "{\"eps\": 0.1}");
    refused(&b, "its input is read again behind it");
}

static void gate_and_up_of_two_inputs_are_refused(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    set_operand(&b, nth(&b, LG_OP_LINEAR, 5), "x", 2);
    refused(&b, "its inputs are not two products of one value");
}

static void keys_of_another_input_are_refused(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    set_operand(&b, nth(&b, LG_OP_LINEAR, 1), "x", 0);
    refused(&b, "do not come from products of one value");
}

static void two_rotations_of_one_kind_only(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    nth(&b, LG_OP_ROPE, 1)->attrs =
        graphs_attrs(&b, "{\"head_dim\": 16, \"n_rot\": 16, \"pairing\": \"neox\"}");
    refused(&b, "do not come from products of one value");
}

static void queries_read_twice_are_refused(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    uint32_t y = graphs_value(&b, "late", LG_ROWS_T, LG_ELEM_F32, 64);
    char operands[32];
    snprintf(operands, sizeof operands, "x=%%3 w=@10 y=%%%" PRIu32, y);
    graphs_node(&b, LG_OP_RMS_NORM, -1, operands, "{\"eps\": 0.1}");
    refused(&b, "op '");
}

static void memory_may_run_out(void **state) {
    (void)state;
    bool done = false;
    for (int64_t n = 0; !done; n++) {
        graphs b;
        lb_err e = {0};
        lg_graph *out = NULL;
        graphs_llama(&b, LG_QTYPE_Q8_0);
        b.arena.fail_after = n;
        done = lg_fuse(&b.g, &b.arena, &out, &e);
        assert_true(done || (e.code == LB_NO_MEMORY && out == NULL));
        graphs_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantised_llama),
        cmocka_unit_test(plain_llama_quantises_nothing),
        cmocka_unit_test(mixed_types),
        cmocka_unit_test(recipes_compute_the_same),
        cmocka_unit_test(neox_pairs),
        cmocka_unit_test(parallel_residual_is_refused),
        cmocka_unit_test(old_value_read_later_is_refused),
        cmocka_unit_test(add_of_other_order_is_refused),
        cmocka_unit_test(rows_of_logits_need_a_norm),
        cmocka_unit_test(input_read_behind_take_rows_is_refused),
        cmocka_unit_test(gate_and_up_of_two_inputs_are_refused),
        cmocka_unit_test(keys_of_another_input_are_refused),
        cmocka_unit_test(two_rotations_of_one_kind_only),
        cmocka_unit_test(queries_read_twice_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("fuse", tests, NULL, NULL);
}
