/* test_graph.c -- architecture files and what they return: data out of range is refused with its
 * path, and the verifier refuses every graph that breaks order, roles, layers or completeness. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "folder.h"
#include "gguf_bytes.h"
#include "graphs.h"
#include "plans.h"

/* ---- the verifier */

static void graph_refused(graphs *b, const char *says) {
    lb_err e = {0};
    if (lg_graph_check(&b->g, "the test", &e)) {
        fail_msg("accepted; expected: %s", says);
    }
    if (strncmp(e.text, "graph after the test: ", 22) != 0 || strstr(e.text, says) == NULL) {
        fail_msg("'%s'; expected: %s", e.text, says);
    }
    graphs_close(b);
}

static void right_graph_passes(void **state) {
    (void)state;
    graphs b;
    lb_err e = {0};
    graphs_llama(&b, LG_QTYPE_Q8_0);
    if (!lg_graph_check(&b.g, "building", &e)) {
        fail_msg("%s", e.text);
    }
    graphs_close(&b);
}

/* One node moved to the front, for each node: it reads what is not there yet, or leaves its layer.
 */
static void every_node_has_its_place(void **state) {
    (void)state;
    for (uint32_t i = 3; i < 21; i++) {
        graphs b;
        graphs_llama(&b, LG_QTYPE_Q8_0);
        lg_gnode n = b.nodes[i];
        memmove(&b.nodes[1], &b.nodes[0], i * sizeof *b.nodes);
        b.nodes[0] = n;
        graph_refused(&b, "graph after");
    }
}

/* One node left out, for each node. */
static void every_node_is_needed(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 21; i++) {
        graphs b;
        graphs_llama(&b, LG_QTYPE_Q8_0);
        if (i == 8) { /* the store writes states, whose order is not the graph's affair */
            graphs_close(&b);
            continue;
        }
        memmove(&b.nodes[i], &b.nodes[i + 1], (20 - i) * sizeof *b.nodes);
        b.g.n_nodes--;
        graph_refused(&b, "graph after");
    }
}

/* Every operand of every node left out, doubled, of another access, out of range. */
static void every_operand_is_checked(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 21; i++) {
        for (uint32_t o = 0; o < 6; o++) {
            for (int what = 0; what < 5; what++) {
                graphs b;
                graphs_llama(&b, LG_QTYPE_Q8_0);
                lg_gnode *n = &b.nodes[i];
                if (o >= n->n_operands) {
                    graphs_close(&b);
                    continue;
                }
                lg_goperand *list = b.operands[i];
                const char *says = "operand";
                if (what == 0) {
                    list[o] = list[--n->n_operands];
                } else if (what == 1) {
                    list[n->n_operands++] = list[o];
                } else if (what == 2) {
                    list[o].access = list[o].access == LG_READ ? LG_STATE : LG_READ;
                    says = "access";
                } else if (what == 3) {
                    list[o].id = list[o].access == LG_TENSOR ? b.g.n_tensors : b.g.n_values;
                } else {
                    list[o].role = "nosuch";
                }
                graph_refused(&b, says);
            }
        }
    }
}

static void layers_are_in_order(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 21; i++) {
        for (int32_t layer = -2; layer < 3; layer++) {
            graphs b;
            graphs_llama(&b, LG_QTYPE_Q8_0);
            bool edge = (i == 2 && layer == -1) || (i == 1 && layer == 0) ||
                        (i == 18 && layer == 0) || (i == 17 && layer == -1);
            if (b.nodes[i].layer == layer || edge) {
                graphs_close(&b);
                continue;
            }
            b.nodes[i].layer = layer;
            graph_refused(&b, "follows layer");
        }
    }
}

static void every_layer_has_ops(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.g.n_layers = 2;
    graph_refused(&b, "of layer -1 follows layer 0 of 2");
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.g.n_layers = 0;
    graph_refused(&b, "follows layer -1 of 0");
}

static void every_tensor_is_used(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    graphs_tensor(&b, "blk.0.left_over", LG_QTYPE_F32, 64, 64);
    graph_refused(&b, "tensor 'blk.0.left_over' is used by no op");
}

static void logits_are_what_they_must_be(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.g.logits = 20;
    graph_refused(&b, "the logits are not written as rows of 320 floats");
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.g.logits = b.g.n_values;
    graph_refused(&b, "no logits");
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.g.logits = graphs_value(&b, "more", LG_ROWS_L, LG_ELEM_F32, 320);
    graph_refused(&b, "the logits are not written");
}

static void levels_and_ops(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.g.level = LG_LEVEL_LAUNCH;
    graph_refused(&b, "op 'rms_norm' of layer 0: is no launch op");
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.nodes[4].op = LG_N_OPS;
    graph_refused(&b, "is not in op.def");
}

static void a_value_is_written_once(void **state) {
    (void)state;
    graphs b;
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.operands[14][2].id = 2; /* the gate's product goes where the first norm's output lies */
    graph_refused(&b, "graph after");
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.operands[5][2].id = 4; /* values go where the keys lie, of equal width */
    graph_refused(&b, "writes a second time 'v'");
}

static void verifier_without_memory(void **state) {
    (void)state;
    graphs b;
    lb_err e = {0};
    graphs_llama(&b, LG_QTYPE_Q8_0);
    b.g.n_tensors = UINT32_MAX; /* more flags than the verifier's memory holds */
    b.g.n_values = UINT32_MAX;
    assert_false(lg_graph_check(&b.g, "the test", &e));
    assert_int_equal(e.code, LB_NO_MEMORY);
    graphs_close(&b);
}

/* ---- what architecture files return */

/* A file of architecture "t" whose build() returns `graph` (Lua text of a table). */
static bool build_from(const char *build, const char *numbers, lb_err *e) {
    folder f;
    gguf_bytes bytes;
    lb_arena arena;
    lg_host *host = NULL;
    lg_graph *g = NULL;
    char text[2048];
    const lg_build_options o = {.ctx = 64, .slots = 2, .chunk = 8, .kv = "f16"};
    lb_arena_init(&arena, "graph", 1 << 26);
    gb_init(&bytes);
    gb_str(&bytes, "general.architecture", "t");
    gb_u32(&bytes, "t.block_count", 1);
    gb_array(&bytes, "t.long", LG_GGUF_U32, 2000);
    for (uint32_t i = 0; i < 2000; i++) {
        gb_put_u32(&bytes.keys, i);
    }
    gb_i32s(&bytes, "t.short", 2, (const int32_t[]){-7, 9});
    gb_tensor(&bytes, "blk.0.w", LG_QTYPE_F32, 2, (uint64_t[]){8, 4});
    gb_tensor(&bytes, "extra", LG_QTYPE_F32, 1, (uint64_t[]){3});
    gb_tensor(&bytes, "halves", LG_QTYPE_F16, 1, (uint64_t[]){3});
    lg_gguf *file = gb_open(&bytes, &arena);
    snprintf(text, sizeof text,
             "local function build(i)\n%s\nend\nlocal function numbers() return %s end\n"
             "return { build = build, numbers = numbers }\n",
             build, numbers);
    assert_true(folder_open(&f) && folder_put(&f, "arch/t.lua", text));
    assert_true(lg_host_open(f.path, NULL, &arena, &host, e));
    bool ok = lg_graph_build(file, host, &o, &arena, &g, e);
    lg_host_close(host);
    lg_gguf_close(file);
    gb_free(&bytes);
    assert_true(folder_close(&f));
    assert_true(ok == (g != NULL));
    lb_arena_reset(&arena);
    return ok;
}

#define VALUES "values = { { name = 'y', rows = 'T', width = 8, type = 'f32' } }"
#define TENSORS "tensors = { { name = 'blk.0.w', cols = 8, rows = 4, mats = 1 } }"
#define NODE                                                                                       \
    "{ op = 'embed', layer = -1, attrs = {}, operands = { { role = 'w', tensor = 0 }, { role = "   \
    "'y', value = 0 } } }"
#define NODES "nodes = { " NODE " }"
#define REST "n_layers = 1, n_embd = 8, n_vocab = 4, ctx_train = 64, logits = 0"

static void returned_data_is_checked(void **state) {
    (void)state;
    static const struct {
        const char *graph;
        lb_code code;
        const char *says;
    } bent[] = {
        {"return { " VALUES ", " TENSORS ", " NODES ", " REST " }", LB_OK, ""},
        {"return 7", LB_BAD_TYPE, "arch/t.lua"},
        {"return { " TENSORS ", " NODES ", " REST " }", LB_MISSING, "arch/t.lua.values"},
        {"return { " VALUES ", " NODES ", " REST " }", LB_MISSING, "arch/t.lua.tensors"},
        {"return { " VALUES ", " TENSORS ", " REST " }", LB_MISSING, "arch/t.lua.nodes"},
        {"return { values = {}, " TENSORS ", " NODES ", " REST " }", LB_LIMIT,
         "values: has 0 items"},
        {"return { " VALUES ", " TENSORS ", " NODES
         ", n_layers = -1, n_embd = 8, n_vocab = 4, ctx_train = 64, logits = 0 }",
         LB_BAD_VALUE, "n_layers"},
        {"return { " VALUES ", " TENSORS ", " NODES
         ", n_layers = 1, n_embd = 8, n_vocab = 4, ctx_train = 64, logits = 1 }",
         LB_BAD_VALUE, "logits: is no value"},
        {"return { values = { { name = 'y', rows = 'R', width = 8 } }, " TENSORS ", " NODES
         ", " REST " }",
         LB_BAD_VALUE, "values[0].rows"},
        {"return { values = { { name = 'y', rows = 'T', width = 0 } }, " TENSORS ", " NODES
         ", " REST " }",
         LB_BAD_SHAPE, "values[0].width"},
        {"return { values = { { name = 'y', rows = 'T', width = 8, type = 'f16' } }, " TENSORS
         ", " NODES ", " REST " }",
         LB_BAD_VALUE, "values[0].type"},
        {"return { values = { { name = 'y', rows = 'T', width = 8, type = 'i32', below = -1 } }, " TENSORS
         ", " NODES ", " REST " }",
         LB_BAD_VALUE, "values[0].below"},
        {"return { values = { { name = 'y', rows = 'state', width = 0, elem = 'f16', slots = 4, positions = 1 << "
         "62, "
         "position_bytes = 2, window = 0 } }, " TENSORS ", " NODES ", " REST " }",
         LB_OVERFLOW, "values[0]: 4 slots"},
        {"return { values = { { name = 'y', rows = 'state', width = 0, elem = 'f16', slots = 2, positions = 3, "
         "window = 0 "
         "} }, " TENSORS ", " NODES ", " REST " }",
         LB_MISSING, "values[0].position_bytes"},
        {"return { " VALUES
         ", tensors = { { name = 'nosuch', cols = 8, rows = 4, mats = 1 } }, " NODES ", " REST " }",
         LB_MISSING, "'nosuch' is not in the model file"},
        {"return { " VALUES
         ", tensors = { { name = 'blk.0.w', cols = 4, rows = 8, mats = 1 } }, " NODES ", " REST
         " }",
         LB_BAD_SHAPE, "'blk.0.w' is 8 x 4 x 1 in the model file, not 4 x 8 x 1"},
        {"return { " VALUES
         ", tensors = { { name = 'blk.0.w', cols = 8, rows = 4, mats = 2 } }, " NODES ", " REST
         " }",
         LB_BAD_SHAPE, "not 8 x 4 x 2"},
        {"return { " VALUES ", " TENSORS
         ", nodes = { { op = 'nosuch', layer = 0, operands = {}, attrs = {} } }, " REST " }",
         LB_UNSUPPORTED, "nodes[0].op: 'nosuch' is not an op"},
        {"return { " VALUES ", " TENSORS
         ", nodes = { { op = 'add', layer = -2, operands = {}, attrs = {} } }, " REST " }",
         LB_LIMIT, "layer -2"},
        {"return { " VALUES ", " TENSORS
         ", nodes = { { op = 'add', layer = 0, attrs = {}, operands = { { role = 'q', value = 0 }"
         " } } }, " REST " }",
         LB_BAD_VALUE, "op 'add' has no operand 'q'"},
        {"return { " VALUES ", " TENSORS
         ", nodes = { { op = 'add', layer = 0, attrs = {}, operands = { { role = 'a', value = 1 }"
         " } } }, " REST " }",
         LB_BAD_VALUE, "number 1 of 1"},
        {"return { " VALUES ", " TENSORS
         ", nodes = { { op = 'embed', layer = 0, attrs = {}, operands = { { role = 'w', value = 0"
         " } } } }, " REST " }",
         LB_MISSING, "nodes[0].operands[0].tensor"},
        {"fail('key x is 7; lagen takes 1 to 3')", LB_BAD_VALUE, "key x is 7"},
        {"return { x = function() end }", LB_BAD_TYPE, "arch/t.lua"},
    };
    for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
        lb_err e = {0};
        bool ok = build_from(bent[i].graph, "{}", &e);
        if (ok != (bent[i].code == LB_OK) || e.code != bent[i].code ||
            strstr(e.text, bent[i].says) == NULL) {
            fail_msg("case %zu: code %d '%s'; expected: code %d '%s'", i, (int)e.code, e.text,
                     (int)bent[i].code, bent[i].says);
        }
    }
}

/* Metadata and configuration numbers as an architecture file sees them. */
static void what_architectures_see(void **state) {
    (void)state;
    static const struct {
        const char *expression, *numbers, *says;
    } seen[] = {
        {"i.meta['t.block_count']", "{}", "saw 1 "},
        {"i.meta['t.short'][1] .. ',' .. i.meta['t.short'][2]", "{}", "saw -7,9 "},
        {"i.meta['t.long'].long_array", "{}", "saw 2000 "},
        {"i.options.ctx .. ',' .. i.options.slots .. ',' .. i.options.chunk .. i.options.kv", "{}",
         "saw 64,2,8f16 "},
        {"i.tensors['blk.0.w'].type .. i.tensors['blk.0.w'].ne[1] .. 'x' .. "
         "i.tensors['blk.0.w'].ne[2]",
         "{}", "saw f328x4 "},
        {"#i.tensors.extra.values", "{ 'extra' }", "saw 3 "},
        {"tostring(has(i.tensors.extra, 'values'))", "{}", "saw false "},
        {"tostring(has(i.tensors.halves, 'values'))", "{ 'halves' }", "saw false "},
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        lb_err e = {0};
        char text[256];
        snprintf(text, sizeof text, "fail('saw ' .. %s .. ' ')", seen[i].expression);
        assert_false(build_from(text, seen[i].numbers, &e));
        if (strstr(e.text, seen[i].says) == NULL) {
            fail_msg("case %zu: '%s'; expected: %s", i, e.text, seen[i].says);
        }
    }
}

static void numbers_must_be_a_list(void **state) {
    (void)state;
    lb_err e = {0};
    assert_false(build_from("return {}", "{ name = 'extra' }", &e));
    assert_int_equal(e.code, LB_BAD_TYPE);
    assert_non_null(strstr(e.text, "arch/t.lua"));
}

static void unknown_architectures_are_named(void **state) {
    (void)state;
    gguf_bytes b;
    lb_arena arena;
    lb_err e = {0};
    lg_host *host = NULL;
    lg_graph *g = NULL;
    const lg_build_options o = {.ctx = 64, .slots = 1, .chunk = 8, .kv = "f16"};
    lb_arena_init(&arena, "graph", 1 << 26);
    gb_init(&b);
    gb_str(&b, "general.architecture", "nosuch");
    gb_u32(&b, "nosuch.block_count", 1);
    gb_tensor(&b, "blk.0.w", LG_QTYPE_F32, 1, (uint64_t[]){8});
    lg_gguf *file = gb_open(&b, &arena);
    assert_true(lg_host_open("templates", NULL, &arena, &host, &e));
    assert_false(lg_graph_build(file, host, &o, &arena, &g, &e));
    assert_int_equal(e.code, LB_UNSUPPORTED);
    assert_non_null(strstr(e.text, "architecture 'nosuch' is not supported"));
    lg_host_close(host);
    lg_gguf_close(file);
    gb_free(&b);
    lb_arena_reset(&arena);
}

/* Tensors that nothing reads are listed; the numbers of rope_freqs count as read. */
static void unused_tensors_are_listed(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){
                       .recipe = "synth/llama-freqs", .ctx = 64, .chunk = 8, .weights = true});
    assert_int_equal(p.r.arch_graph->n_unused, 0);
    plans_close(&p);

    gguf_bytes b;
    lb_arena arena;
    lb_err e = {0};
    lg_host *host = NULL;
    lg_graph *g = NULL;
    const lg_build_options o = {.ctx = 64, .slots = 1, .chunk = 8, .kv = "f16"};
    lb_arena_init(&arena, "graph", 1 << 26);
    gb_tiny_llama(&b, 1, LG_QTYPE_F16);
    gb_tensor(&b, "blk.0.attn_rot_embd.weight", LG_QTYPE_F32, 1, (uint64_t[]){8});
    gb_tensor(&b, "zzz", LG_QTYPE_F32, 1, (uint64_t[]){8});
    lg_gguf *file = gb_open(&b, &arena);
    assert_true(lg_host_open("templates", NULL, &arena, &host, &e));
    if (!lg_graph_build(file, host, &o, &arena, &g, &e)) {
        fail_msg("%s", e.text);
    }
    assert_int_equal(g->n_unused, 2);
    assert_memory_equal(g->unused[0]->name.data, "blk.0.attn_rot_embd.weight", 26);
    assert_memory_equal(g->unused[1]->name.data, "zzz", 3);
    lg_host_close(host);
    lg_gguf_close(file);
    gb_free(&b);
    lb_arena_reset(&arena);
}

static void dump_is_stable(void **state) {
    (void)state;
    char *first = NULL;
    plans p[2];
    for (int i = 0; i < 2; i++) {
        lb_text t;
        lb_err e = {0};
        plans_open(&p[i], &(plans_request){.recipe = "synth/llama-yarn", .ctx = 64, .chunk = 8});
        lb_text_init(&t, &p[i].arena);
        lg_graph_dump(p[i].r.arch_graph, &t);
        lg_graph_dump(p[i].r.graph, &t);
        assert_true(lb_text_done(&t, &e));
        if (i == 0) {
            first = t.data;
            assert_non_null(strstr(first, "node 1 layer=-1 rope_table y=%1 freq:[0x1p+0,0x1."));
            assert_non_null(strstr(first, "logits f32[L][320]"));
        } else {
            assert_string_equal(first, t.data);
        }
    }
    plans_close(&p[0]);
    plans_close(&p[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_graph_passes),
        cmocka_unit_test(every_node_has_its_place),
        cmocka_unit_test(every_node_is_needed),
        cmocka_unit_test(every_operand_is_checked),
        cmocka_unit_test(layers_are_in_order),
        cmocka_unit_test(every_layer_has_ops),
        cmocka_unit_test(every_tensor_is_used),
        cmocka_unit_test(logits_are_what_they_must_be),
        cmocka_unit_test(levels_and_ops),
        cmocka_unit_test(a_value_is_written_once),
        cmocka_unit_test(verifier_without_memory),
        cmocka_unit_test(returned_data_is_checked),
        cmocka_unit_test(what_architectures_see),
        cmocka_unit_test(numbers_must_be_a_list),
        cmocka_unit_test(unknown_architectures_are_named),
        cmocka_unit_test(unused_tensors_are_listed),
        cmocka_unit_test(dump_is_stable),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
