/* graphs.c -- see graphs.h. */
#include "graphs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "op.h"
#include "value_text.h"

void graphs_open(graphs *b) {
    memset(b, 0, sizeof *b);
    lb_arena_init(&b->arena, "graphs", 1 << 24);
    b->g = (lg_graph){.arch = "test",
                      .n_vocab = 320,
                      .n_embd = 64,
                      .n_layers = 1,
                      .values = b->values,
                      .tensors = b->tensors,
                      .nodes = b->nodes};
}

void graphs_close(graphs *b) {
    lb_arena_reset(&b->arena);
}

uint32_t graphs_value(graphs *b, const char *name, lg_rows rows, lg_elem elem, uint64_t width) {
    assert_true(b->g.n_values < GRAPHS_MAX);
    b->values[b->g.n_values] =
        (lg_gvalue){.name = name, .rows = rows, .elem = elem, .width = width};
    return b->g.n_values++;
}

uint32_t graphs_state(graphs *b, const char *name, uint64_t bytes) {
    uint32_t id = graphs_value(b, name, LG_ROWS_STATE, LG_ELEM_F16, 0);
    b->values[id].state_bytes = bytes;
    b->values[id].slots = 1;
    b->values[id].positions = 256;
    return id;
}

uint32_t graphs_tensor(graphs *b, const char *name, lg_qtype type, uint64_t cols, uint64_t rows) {
    uint32_t id = b->g.n_tensors++;
    assert_true(id < GRAPHS_MAX);
    b->files[id] = (lg_gguf_tensor){.type = type, .n_dims = 2, .ne = {cols, rows, 1, 1}};
    b->tensors[id] = (lg_gtensor){
        .name = name, .file = &b->files[id], .n_cols = cols, .n_rows = rows, .n_mats = 1};
    return id;
}

const lg_value *graphs_attrs(graphs *b, const char *json) {
    lb_err e = {0};
    lg_value *v = NULL;
    if (!lg_value_from_json("attrs", json, strlen(json), &b->arena, &v, &e)) {
        fail_msg("%s", e.text);
    }
    return v;
}

/* "x=%3" or "w=@0" */
static void read_operand(graphs *b, lg_op op, const char *text, lg_goperand *o) {
    static const char letters[] = "rwbst"; /* in the order of lg_access */
    const char *eq = strchr(text, '=');
    o->role = lb_strndup(&b->arena, text, (uint64_t)(eq - text), NULL);
    const char *letter = strchr(letters, lg_op_role(op, o->role, NULL, NULL));
    o->access = eq[1] == '@'                        ? LG_TENSOR
                : letter == NULL || *letter == '\0' ? LG_READ
                                                    : (lg_access)(letter - letters);
    o->id = (uint32_t)strtoul(eq + 2, NULL, 10);
}

uint32_t graphs_node(graphs *b, lg_op op, int32_t layer, const char *operands, const char *attrs) {
    uint32_t id = b->g.n_nodes++;
    assert_true(id < GRAPHS_MAX);
    lg_gnode *n = &b->nodes[id];
    *n = (lg_gnode){
        .op = op, .layer = layer, .operands = b->operands[id], .attrs = graphs_attrs(b, attrs)};
    while (*operands != '\0') {
        char word[64] = "";
        size_t len = strcspn(operands, " ");
        assert_true(len < sizeof word && n->n_operands < GRAPHS_OPERANDS_MAX);
        memcpy(word, operands, len);
        read_operand(b, op, word, &b->operands[id][n->n_operands++]);
        operands += len + (operands[len] == ' ');
    }
    return id;
}

static void f32(graphs *b, const char *name, lg_rows rows, uint64_t width) {
    graphs_value(b, name, rows, LG_ELEM_F32, width);
}

static void llama_attention(graphs *b) {
    static const char rope[] = "{\"head_dim\": 16, \"n_rot\": 16, \"pairing\": \"norm\"}";
    graphs_node(b, LG_OP_RMS_NORM, 0, "x=%0 w=@1 y=%2", "{\"eps\": 0.00001}");
    graphs_node(b, LG_OP_LINEAR, 0, "x=%2 w=@2 y=%3", "{}");
    graphs_node(b, LG_OP_LINEAR, 0, "x=%2 w=@3 y=%4", "{}");
    graphs_node(b, LG_OP_LINEAR, 0, "x=%2 w=@4 y=%5", "{}");
    graphs_node(b, LG_OP_ROPE, 0, "x=%3 table=%1 y=%6", rope);
    graphs_node(b, LG_OP_ROPE, 0, "x=%4 table=%1 y=%7", rope);
    graphs_node(b, LG_OP_KV_STORE, 0, "k=%7 v=%5 k_cache=%8 v_cache=%9",
                "{\"n_kv\": 2, \"head_dim\": 16, \"cap\": 256, \"kv\": \"f16\"}");
    graphs_node(b, LG_OP_ATTENTION, 0, "q=%6 k_cache=%8 v_cache=%9 y=%10",
                "{\"n_head\": 4, \"n_kv\": 2, \"head_dim\": 16, \"cap\": 256, \"scale\": 0.25, "
                "\"window\": 0, \"kv\": \"f16\"}");
    graphs_node(b, LG_OP_LINEAR, 0, "x=%10 w=@5 y=%11", "{}");
    graphs_node(b, LG_OP_ADD, 0, "a=%0 b=%11 y=%12", "{}");
}

static void llama_rest(graphs *b) {
    graphs_node(b, LG_OP_RMS_NORM, 0, "x=%12 w=@6 y=%13", "{\"eps\": 0.00001}");
    graphs_node(b, LG_OP_LINEAR, 0, "x=%13 w=@7 y=%14", "{}");
    graphs_node(b, LG_OP_LINEAR, 0, "x=%13 w=@8 y=%15", "{}");
    graphs_node(b, LG_OP_SILU_MUL, 0, "gate=%14 up=%15 y=%16", "{}");
    graphs_node(b, LG_OP_LINEAR, 0, "x=%16 w=@9 y=%17", "{}");
    graphs_node(b, LG_OP_ADD, 0, "a=%12 b=%17 y=%18", "{}");
    graphs_node(b, LG_OP_TAKE_ROWS, -1, "x=%18 y=%19", "{}");
    graphs_node(b, LG_OP_RMS_NORM, -1, "x=%19 w=@10 y=%20", "{\"eps\": 0.00001}");
    graphs_node(b, LG_OP_LINEAR, -1, "x=%20 w=@0 y=%21", "{}");
}

void graphs_llama(graphs *b, lg_qtype type) {
    static const struct {
        const char *name;
        uint64_t cols, rows;
    } matrices[] = {{"embd", 64, 320},   {"attn_norm", 64, 1},  {"q", 64, 64},
                    {"k", 64, 32},       {"v", 64, 32},         {"o", 64, 64},
                    {"ffn_norm", 64, 1}, {"gate", 64, 96},      {"up", 64, 96},
                    {"down", 96, 64},    {"output_norm", 64, 1}};
    static const uint64_t widths[] = {64, 16, 64, 64, 32, 32, 64, 32, 0,  0,  64,
                                      64, 64, 64, 96, 96, 96, 64, 64, 64, 64, 320};
    graphs_open(b);
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        graphs_tensor(b, matrices[i].name, matrices[i].rows == 1 ? LG_QTYPE_F32 : type,
                      matrices[i].cols, matrices[i].rows);
    }
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        if (widths[i] == 0) {
            graphs_state(b, i == 8 ? "k_cache" : "v_cache", 2 * 256 * 16 * 2);
        } else {
            f32(b, i == 21 ? "logits" : "v", i >= 19 ? LG_ROWS_L : LG_ROWS_T, widths[i]);
        }
    }
    b->g.logits = 21;
    graphs_node(b, LG_OP_EMBED, -1, "w=@0 y=%0", "{}");
    graphs_node(b, LG_OP_ROPE_TABLE, -1, "y=%1",
                "{\"freq\": [1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003], \"mscale\": 1.0}");
    llama_attention(b);
    llama_rest(b);
}
