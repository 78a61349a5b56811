/* test_attn_splits.c -- attention of few rows on a GPU: what the rewrite makes of a graph, what it
 * refuses, and that each fact about memory which ctas share is noticed when it is bent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "attn_splits.h"
#include "attn_type.h"
#include "fuse.h"
#include "graphs.h"
#include "plans.h"

/* 4 heads of 16 over 2: a row of two splits takes 2 groups x 2 x 36 elements. */
static const plans_request TINY = {
    .recipe = "synth/llama-tiny", .target = "sm_90", .ctx = 512, .chunk = 20, .slots = 2};

static const lg_gvalue *value_at(const lg_graph *g, const lg_gnode *n, const char *role) {
    const lg_goperand *o = lg_node_operand(n, role);
    return o == NULL ? NULL : &g->values[o->id];
}

static void every_attn_becomes_two(void **state) {
    (void)state;
    plans p;
    uint32_t n_many = 0;
    uint32_t n_few = 0;
    plans_open(&p, &TINY);
    const lg_graph *g = p.r.plan->graph;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const lg_gnode *n = &g->nodes[i];
        if (n->op != LG_OP_ATTN) {
            continue;
        }
        n_many += n->when == LG_WHEN_MANY && value_at(g, n, "part") == NULL;
        bool halves = lg_value_find(n->attrs, "prompt") != NULL; /* where prompts can be */
        assert_int_equal(halves, n->when == LG_WHEN_MANY);
        if (n->when != LG_WHEN_FEW) {
            continue;
        }
        n_few++;
        const lg_gvalue *part = value_at(g, n, "part");
        uint64_t heads = (uint64_t)lg_value_find(n->attrs, "n_head")->u.integer;
        uint64_t hd = (uint64_t)lg_value_find(n->attrs, "head_dim")->u.integer;
        assert_int_equal(part->rows, LG_ROWS_FEW);
        assert_int_equal(part->width, heads * 2 * (hd + 2));
        assert_ptr_equal(value_at(g, n, "count"), value_at(g, &g->nodes[i - 2], "count"));
        assert_int_equal(g->nodes[i - 2].op, LG_OP_ROPE_KV);
        assert_int_equal(p.r.plan->places[lg_node_operand(n, "part")->id].bytes,
                         8 * 4 * part->width);
    }
    assert_int_equal(n_many, g->n_layers);
    assert_int_equal(n_few, g->n_layers);
    plans_close(&p);
}

/* Where no step has 8 rows there is room for those that there are. */
static void steps_of_few_rows_take_less(void **state) {
    (void)state;
    plans p;
    plans_request rq = TINY;
    rq.chunk = 3;
    plans_open(&p, &rq);
    const lg_graph *g = p.r.plan->graph;
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].rows == LG_ROWS_FEW) {
            assert_int_equal(p.r.plan->places[i].bytes, 3 * 4 * g->values[i].width);
            n++;
        }
    }
    assert_int_equal(n, g->n_layers);
    plans_close(&p);
}

/* A window of w positions touches two splits from w = 2 on, three from 258 on. */
static void windows_touch_few_splits(void **state) {
    (void)state;
    static const uint64_t windows[][2] = {{1, 1},   {2, 2},   {256, 2},   {257, 2},
                                          {258, 3}, {512, 3}, {1023, 5}, {1024, 4}};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        lb_arena arena;
        lg_host *host = NULL;
        lg_value *out = NULL;
        lg_builder b;
        lb_err e = {0};
        lb_arena_init(&arena, "windows", UINT64_C(1) << 26);
        assert_true(lg_host_open("templates", NULL, &arena, &host, &e));
        lg_build_init(&b, &arena);
        lg_value *op = lg_build_map(&b);
        lg_build_set_uint(&b, op, "n_head", 6);
        lg_build_set_uint(&b, op, "n_kv", 2);
        lg_build_set_uint(&b, op, "hd", 64);
        lg_build_set_uint(&b, op, "cap", 1024);
        lg_build_set_uint(&b, op, "window", windows[i][0]);
        lg_build_set_string(&b, op, "gate", "none");
        if (!lg_host_call(host, "lib/attn_parts.lua", "split_widths", op, &arena, &out, &e)) {
            fail_msg("%s", e.text);
        }
        assert_int_equal(lg_value_find(out, "part")->u.integer, 6 * 66 * windows[i][1]);
        assert_int_equal(lg_value_find(out, "count")->u.integer, 2);
        lg_host_close(host);
        lb_arena_reset(&arena);
    }
}

/* A llama of one layer, fused; then `bend`, and the rewrite has to refuse. */
static void keys_must_be_stored(void **state) {
    (void)state;
    graphs b;
    lb_err e = {0};
    lg_graph *g = NULL;
    lg_host *host = NULL;
    graphs_open(&b);
    graphs_llama(&b, LG_QTYPE_Q8_0);
    assert_true(lg_host_open("templates", NULL, &b.arena, &host, &e));
    if (!lg_fuse(&b.g, &b.arena, &g, &e)) {
        fail_msg("%s", e.text);
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        g->nodes[i].op = g->nodes[i].op == LG_OP_ROPE_KV ? LG_OP_QUANT : g->nodes[i].op;
    }
    assert_false(lg_add_attn_splits(g, host, &b.arena, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_non_null(strstr(e.text, "attn of layer 0: nothing stores its keys"));
    lg_host_close(host);
    graphs_close(&b);
}

/* The verifier: memory of few rows is not for steps of many. */
static void few_rows_stay_few(void **state) {
    (void)state;
    plans p;
    lb_err e = {0};
    plans_open(&p, &TINY);
    lg_graph *g = (lg_graph *)(uintptr_t)p.r.plan->graph;
    uint32_t i = 0;
    while (g->nodes[i].op != LG_OP_ATTN || g->nodes[i].when != LG_WHEN_FEW) {
        i++;
    }
    g->nodes[i - 1].when = LG_WHEN_FEW;
    g->nodes[i].when = LG_WHEN_MANY;
    assert_false(lg_graph_check(g, "test", &e));
    assert_non_null(strstr(e.text, "is not for few rows only, as is 'attn.part'"));
    plans_close(&p);
}

/* ---- the prover */

/* The first launch of few rows' attention. */
static lg_launch *few_of(const plans *p) {
    const lg_graph *g = p->r.plan->graph;
    uint32_t i = 0;
    while (g->nodes[i].op != LG_OP_ATTN || g->nodes[i].when != LG_WHEN_FEW) {
        i++;
    }
    return &p->r.plan->launches[i];
}

static lg_cover *cover_of(const lg_kernel *k, const char *param) {
    for (uint32_t i = 0; i < k->n_covers; i++) {
        if (strcmp(k->covers[i].param, param) == 0) {
            return (lg_cover *)(uintptr_t)&k->covers[i];
        }
    }
    fail_msg("no cover of '%s'", param);
    return NULL;
}

static void covers_are_proved(void **state) {
    (void)state;
    static const struct {
        const char *param, *says;
        lg_own own; /* tile 0: as it is */
        const char *last_axis, *last_count;
    } bends[] = {
        {"part", "splits of 'part' is 2, the limit is 1", {"heads", "k", 72, 1}, NULL, NULL},
        {"part", "elements of a group of 'part'", {"heads", "k", 37, 2}, NULL, NULL},
        {"part", "groups of 'part' is 1, the limit is 2", {"heads", "k", 72, 2}, NULL, NULL},
        {"part", "groups of 'part' is 2, the limit is 1", {"rows", "k", 36, 2}, NULL, NULL},
        {"part", "the axis of 'part' is nowhere", {"nowhere", "k", 36, 2}, NULL, NULL},
        {"part", "splits of 'part' is qkv", {"heads", "qkv", 36, 2}, NULL, NULL},
        {"part", "kind of 'part' is float", {"heads", NULL, 36, 2}, NULL, NULL},
        {"count", "elements of a group of 'count'", {"heads", NULL, 3, 1}, NULL, NULL},
        {"count", "the counter of 'y' is count", {NULL, NULL, 1, 1}, NULL, NULL},
        {"y", "ctas that write one element of 'y'", {0}, NULL, NULL},
        {"y", "the counter of 'y' is part", {0}, "lanes", "part"},
        {"y", "the counter of 'y' is qkv", {0}, "lanes", "qkv"},
        {"y", "the axis of 'y' is nowhere", {0}, "nowhere", "count"},
        {"y", "the axis of 'y' is rows, it must be apart", {0}, "rows", "count"},
    };
    plans p;
    plans_open(&p, &TINY);
    const lg_kernel *k = &p.r.plan->kernels[few_of(&p)->kernel];
    for (size_t i = 0; i < sizeof bends / sizeof *bends; i++) {
        lg_cover *c = cover_of(k, bends[i].param);
        const lg_cover kept = *c;
        if (bends[i].own.tile != 0) {
            c->own = bends[i].own;
        } else {
            c->last_axis = bends[i].last_axis;
            c->last_count = bends[i].last_count;
        }
        plans_refused(p.r.plan, bends[i].says);
        *c = kept;
    }
    plans_close(&p);
}

/* What ctas share is neither read by another launch nor there in steps of many rows. */
static void shared_memory_is_its_own(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &TINY);
    lg_launch *l = few_of(&p);
    lg_gnode *n = (lg_gnode *)(uintptr_t)&p.r.plan->graph->nodes[l->node];
    uint32_t part = lg_node_operand(n, "part")->id;
    lg_goperand *read = (lg_goperand *)(uintptr_t)l[1].args[0];
    uint32_t kept = read->id;
    read->id = part;
    plans_refused(p.r.plan, "shared memory of 'part' is read by another launch");
    read->id = kept;
    l->when = LG_WHEN_ANY;
    n->when = LG_WHEN_ANY;
    plans_refused(p.r.plan, "steps with the value of 'attn.part'");
    plans_close(&p);
}

/* What prompts are computed with, by what is asked, the row and the cache. */
static void f16_where_it_can_be(void **state) {
    (void)state;
    static const struct {
        const char *asked, *row, *kv, *want, *says;
        bool exact; /* weights */
    } cases[] = {
        {NULL, "sm_90", "f16", "f32", NULL, true},
        {"f16", "sm_90", "f16", "f16", NULL, true},
        {NULL, "sm_80", "f16", "f16", NULL, false},
        {NULL, "sm_121a", "f16", "f16", NULL, false},
        {NULL, "sm_90", "q8_0", "f32", NULL, false},
        {NULL, "x86-64-v3", "f16", "f32", NULL, false},
        {"f32", "sm_90", "f16", "f32", NULL, false},
        {"f32", "x86-64-v2", "q8_0", "f32", NULL, false},
        {"f16", "sm_90", "f16", "f16", NULL, false},
        {"f16", "x86-64-v3", "f16", NULL, "row x86-64-v3 has none", false},
        {"f16", "sm_90", "q8_0", NULL, "with --kv q8_0 it is f32", false},
        {"F16", "sm_90", "f16", NULL, "'F16' is nothing that attention computes with", false},
        {"", "sm_90", "f16", NULL, "'' is nothing", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const lg_hw_row *hw = NULL;
        const char *got = NULL;
        lb_err e = {0};
        assert_true(lg_hw_find(cases[i].row, &hw, &e));
        assert_int_equal(lg_attn_choose(cases[i].asked, hw, cases[i].kv, cases[i].exact, &got, &e), cases[i].want != NULL);
        if (cases[i].want == NULL) {
            assert_int_equal(e.code, LB_USAGE);
            assert_non_null(strstr(e.text, cases[i].says));
            assert_null(got);
        } else {
            assert_string_equal(got, cases[i].want);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_attn_becomes_two), cmocka_unit_test(f16_where_it_can_be),
          cmocka_unit_test(steps_of_few_rows_take_less),
        cmocka_unit_test(windows_touch_few_splits), cmocka_unit_test(keys_must_be_stored),
        cmocka_unit_test(few_rows_stay_few),        cmocka_unit_test(covers_are_proved),
        cmocka_unit_test(shared_memory_is_its_own),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("attn_splits", tests, NULL, NULL);
}
