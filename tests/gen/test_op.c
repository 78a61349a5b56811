/* test_op.c -- every op's shape rule: the right node passes, and each thing that can be wrong about
 * it is refused with the op, the operand and the sizes. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graphs.h"
#include "op.h"

#define ROUTER(used, gating, norm, scale)                                                          \
    "{\"n_used\": " used ", \"gating\": \"" gating "\", \"norm\": " norm ", \"scale\": " scale "}"
#define MOE(shared) "{\"n_used\": 4, \"n_expert\": 16, \"shared\": " shared "}"
#define Q8 "x_q=%1 x_d=%2 x_s=%3"

/* A node whose operands are values 0.. and tensors 0.. as its text names them, in the order of this
 * list: "f64" = f32 rows of T, 64 wide; "F64" of L; "b64" i8, "d2" f32, "h4" i16 (planes); "u65"
 * u64 of L; "s16384" a state; "i4:16" i32 below 16, "i20+68" and 68 more behind the rows; "w64x96"
 * a Q8_0 matrix, "w64x96x16" 16 of them; "n64x1" an F32 one. */
typedef struct right_node {
    lg_op op;
    const char *values, *tensors, *operands, *attrs;
} right_node;

static const right_node RIGHT[] = {
    {LG_OP_EMBED, "f64", "w64x320", "w=@0 y=%0", "{}"},
    {LG_OP_ROPE_TABLE, "f4", "", "y=%0", "{\"freq\": [1.0, 0.5], \"mscale\": 1.0}"},
    {LG_OP_RMS_NORM, "f64 f64", "n64x1", "x=%0 w=@0 y=%1", "{\"eps\": 0.1}"},
    {LG_OP_HEAD_NORM, "f64 f64", "n16x1", "x=%0 w=@0 y=%1", "{\"head_dim\": 16, \"eps\": 0.1}"},
    {LG_OP_LINEAR, "f64 f96", "w64x96 n96x1", "x=%0 w=@0 b=@1 y=%1", "{}"},
    {LG_OP_ROPE, "f64 f16 f64", "", "x=%0 table=%1 y=%2",
     "{\"head_dim\": 32, \"n_rot\": 16, \"pairing\": \"neox\"}"},
    {LG_OP_KV_STORE, "f32 f32 s16384 s16384", "", "k=%0 v=%1 k_cache=%2 v_cache=%3",
     "{\"n_kv\": 2, \"head_dim\": 16, \"cap\": 256, \"kv\": \"f16\"}"},
    {LG_OP_ATTENTION, "f64 s16384 s16384 f64", "", "q=%0 k_cache=%1 v_cache=%2 y=%3",
     "{\"n_head\": 4, \"n_kv\": 2, \"head_dim\": 16, \"cap\": 256, \"scale\": 0.25, \"window\": 0, "
     "\"kv\": \"f16\", \"gate\": \"none\"}"},
    {LG_OP_GATE, "f64 f4 f64", "", "x=%0 gate=%1 y=%2",
     "{\"head_dim\": 16, \"act\": \"softplus\"}"},
    {LG_OP_ADD, "f64 f64 f64", "", "a=%0 b=%1 y=%2", "{}"},
    {LG_OP_SILU_MUL, "f64 f64 f64", "", "gate=%0 up=%1 y=%2", "{}"},
    {LG_OP_ROUTER, "f16 i4:16 f4", "n16x1", "logits=%0 bias=@0 ids=%1 weights=%2",
     "{\"n_used\": 4, \"gating\": \"sigmoid\", \"norm\": true, \"scale\": 2.5}"},
    {LG_OP_EXPERT_LINEAR, "f64 i4:16 f384", "w64x96x16", "x=%0 ids=%1 w=@0 y=%2",
     "{\"n_used\": 4}"},
    {LG_OP_EXPERT_SUM, "f256 f4 f64", "", "x=%0 weights=%1 y=%2", "{\"n_used\": 4}"},
    {LG_OP_TAKE_ROWS, "f64 F64", "", "x=%0 y=%1", "{}"},
    {LG_OP_NORM_QUANT, "f64 f64 b64 d2 h4", "n64x1", "x=%0 w=@0 y=%1 y_q=%2 y_d=%3 y_s=%4",
     "{\"eps\": 0.1}"},
    {LG_OP_QUANT, "f64 b64 d2 h4", "", "x=%0 y_q=%1 y_d=%2 y_s=%3", "{}"},
    {LG_OP_MATMUL, "f64 b64 d2 h4 f128", "w64x96 n64x32 n96x1",
     "x=%0 " Q8 " w0=@0 b0=@2 w1=@1 y=%4", "{\"epilogue\": \"none\"}"},
    {LG_OP_MATMUL_ADD, "f96 b64 d2 h4", "w64x96", Q8 " w0=@0 y=%0", "{\"epilogue\": \"add\"}"},
    {LG_OP_ROPE_KV, "f128 f16 s16384 s16384", "", "qkv=%0 table=%1 k=%2 v=%3",
     "{\"n_head\": 4, \"n_kv\": 2, \"head_dim\": 16, \"cap\": 256, \"n_rot\": 16, \"pairing\": "
     "\"norm\", \"kv\": \"f16\", \"gate\": \"none\"}"},
    {LG_OP_ATTN, "f128 s16384 s16384 f64", "", "qkv=%0 k=%1 v=%2 y=%3",
     "{\"n_head\": 4, \"n_kv\": 2, \"head_dim\": 16, \"cap\": 256, \"scale\": 0.25, \"window\": 0, "
     "\"kv\": \"f16\", \"gate\": \"none\"}"},
    {LG_OP_SAMPLE_TILES, "F320 u65", "", "logits=%0 heads=%1", "{\"heads\": 65, \"totals\": 1}"},
    {LG_OP_SAMPLE_TOTAL, "F320 u65 u1", "", "logits=%0 heads=%1 totals=%2",
     "{\"heads\": 65, \"totals\": 1}"},
    {LG_OP_SAMPLE_PICK, "u65 u1 u1", "", "heads=%0 totals=%1 choices=%2",
     "{\"heads\": 65, \"totals\": 1}"},
    {LG_OP_ROUTER_PARTS, "f300 f32", "n300x16", "x=%0 w=@0 y=%1", "{}"},
    {LG_OP_ROUTER_TOPK, "f48 i4:16 f4", "n16x1", "logits=%0 bias=@0 ids=%1 weights=%2",
     "{\"n_used\": 4, \"gating\": \"softmax\", \"norm\": false, \"scale\": 1.0, \"parts\": 3}"},
    {LG_OP_MOE_SORT, "i4:16 i5 i20+68", "", "ids=%0 pairs=%1 map=%2", MOE("true")},
    {LG_OP_MATVEC_MOE_GATED, "f64 b64 d2 h4 i4:16 f480 b480 d15 h30",
     "w64x96x16 n64x96x16 n64x96 w64x96",
     "x=%0 " Q8 " ids=%4 w0=@0 w1=@1 s0=@2 s1=@3 y=%5 y_q=%6 y_d=%7 y_s=%8", MOE("true")},
    {LG_OP_MATVEC_MOE_DOWN, "f64 b384 d12 h24 i4:16 f4", "w96x64x16",
     Q8 " ids=%4 weights=%5 w0=@0 y=%0", MOE("false")},
    {LG_OP_MOE_GATED, "f64 i5 i20+68 f480", "n64x96x16 n64x96x16 n64x96 n64x96",
     "x=%0 pairs=%1 map=%2 w0=@0 w1=@1 s0=@2 s1=@3 y=%3", MOE("true")},
    {LG_OP_MOE_DOWN, "f320 b480 d15 h30 i5 i20+68", "w96x64x16 w96x64",
     Q8 " pairs=%4 map=%5 w0=@0 s0=@1 y=%0", MOE("true")},
    {LG_OP_MOE_SUM, "f320 f4 f64", "", "x=%0 weights=%1 y=%2", MOE("true")},
};

static void add_value(graphs *b, const char *word) {
    char *end = NULL;
    uint64_t n = strtoull(word + 1, &end, 10);
    switch (word[0]) {
    case 's': graphs_state(b, word, n); break;
    case 'u': graphs_value(b, "v", LG_ROWS_L, LG_ELEM_U64, n); break;
    case 'F': graphs_value(b, "v", LG_ROWS_L, LG_ELEM_F32, n); break;
    case 'i':
        n = graphs_value(b, "v", LG_ROWS_T, LG_ELEM_I32, n);
        if (*end == ':') {
            b->values[n].below = strtoull(end + 1, NULL, 10);
        } else if (*end == '+') {
            b->values[n].extra = strtoull(end + 1, NULL, 10);
        }
        break;
    case 'b': graphs_value(b, "v", LG_ROWS_T, LG_ELEM_I8, n); break;
    case 'h': graphs_value(b, "v", LG_ROWS_T, LG_ELEM_I16, n); break;
    default: graphs_value(b, "v", LG_ROWS_T, LG_ELEM_F32, n);
    }
}

static void add_tensor(graphs *b, const char *word) {
    char *x = NULL;
    uint64_t cols = strtoull(word + 1, &x, 10);
    uint64_t rows = strtoull(x + 1, &x, 10);
    uint32_t t = graphs_tensor(b, "t", word[0] == 'w' ? LG_QTYPE_Q8_0 : LG_QTYPE_F32, cols, rows);
    if (*x == 'x') {
        b->tensors[t].n_mats = strtoull(x + 1, NULL, 10);
    }
}

static void each_word(graphs *b, const char *list, void (*add)(graphs *, const char *)) {
    while (*list != '\0') {
        add(b, list);
        size_t n = strcspn(list, " ");
        list += n + (list[n] == ' ');
    }
}

static void build(graphs *b, const right_node *r, const char *operands, const char *attrs) {
    graphs_open(b);
    each_word(b, r->values, add_value);
    each_word(b, r->tensors, add_tensor);
    graphs_node(b, r->op, 3, operands != NULL ? operands : r->operands,
                attrs != NULL ? attrs : r->attrs);
}

static const right_node *right_of(lg_op op) {
    for (size_t i = 0; i < sizeof RIGHT / sizeof *RIGHT; i++) {
        if (RIGHT[i].op == op) {
            return &RIGHT[i];
        }
    }
    fail_msg("no right node of op %d", (int)op);
    return NULL;
}

/* Every op of op.def has a rule, and it takes the right node. */
static void right_nodes_pass(void **state) {
    (void)state;
    for (int op = 0; op < LG_N_OPS; op++) {
        graphs b;
        lb_err e = {0};
        build(&b, right_of((lg_op)op), NULL, NULL);
        if (!lg_op_shapes(&b.g, &b.nodes[0], &e)) {
            fail_msg("%s", e.text);
        }
        graphs_close(&b);
    }
}

static void refused(graphs *b, lb_code code, const char *says) {
    lb_err e = {0};
    const char *name = lg_op_get(b->nodes[0].op)->name;
    if (lg_op_shapes(&b->g, &b->nodes[0], &e)) {
        fail_msg("op '%s' accepted; expected: %s", name, says);
    }
    if (e.code != code || strstr(e.text, says) == NULL || strstr(e.text, name) == NULL) {
        fail_msg("op '%s': code %d '%s'; expected: code %d '%s'", name, (int)e.code, e.text,
                 (int)code, says);
    }
}

/* One thing about a value made wrong: its width or bytes, its elements, its kind of rows. */
static void bend(lg_gvalue *v, char what) {
    bool is_state = v->rows == LG_ROWS_STATE;
    if (what == 'w') {
        v->width += !is_state;
        v->state_bytes += is_state;
    } else if (what == 'e') {
        v->elem = v->elem == LG_ELEM_F16 || v->elem == LG_ELEM_I16 ? LG_ELEM_F32 : LG_ELEM_I16;
    } else if (what == 's') {
        v->rows = is_state ? LG_ROWS_T : LG_ROWS_STATE;
    } else {
        v->rows = v->rows == LG_ROWS_L ? LG_ROWS_T : LG_ROWS_L;
    }
}

static void bent_values_are_refused(void **state) {
    (void)state;
    for (int op = 0; op < LG_N_OPS; op++) {
        graphs b;
        build(&b, right_of((lg_op)op), NULL, NULL);
        for (uint32_t v = 0; v < b.g.n_values; v++) {
            const lg_gvalue was = b.values[v];
            for (const char *what = "wesr"; *what != '\0'; what++) {
                char says[64];
                bend(&b.values[v], *what);
                snprintf(says, sizeof says, "op '%s'", lg_op_get((lg_op)op)->name);
                refused(&b, LB_BAD_SHAPE, says);
                b.values[v] = was;
            }
        }
        graphs_close(&b);
    }
}

/* The same for tensors: one column more, one row more, two matrices. */
static void bent_tensors_are_refused(void **state) {
    (void)state;
    for (int op = 0; op < LG_N_OPS; op++) {
        graphs b;
        build(&b, right_of((lg_op)op), NULL, NULL);
        for (uint32_t t = 0; t < b.g.n_tensors; t++) {
            const lg_gtensor was = b.tensors[t];
            for (int what = 0; what < 3; what++) {
                b.tensors[t].n_cols += what == 0;
                b.tensors[t].n_rows += what == 1;
                b.tensors[t].n_mats += what == 2;
                refused(&b, LB_BAD_SHAPE, what == 0 ? "columns" : what == 1 ? "is" : "matrices");
                b.tensors[t] = was;
            }
        }
        graphs_close(&b);
    }
}

/* Attributes and operands: op, operands (NULL = right), attributes (NULL = right), code, message.
 */
static void bent_nodes_are_refused(void **state) {
    (void)state;
    static const char heads[] =
        "{\"n_head\": %s, \"n_kv\": %s, \"head_dim\": %s, \"cap\": %s, \"scale\": 0.25, "
        "\"window\": 0, \"n_rot\": %s, \"pairing\": \"%s\", \"kv\": \"f16\", \"gate\": "
        "\"none\"}";
    static const struct {
        const char *n_head, *n_kv, *head_dim, *cap, *n_rot, *pairing;
        lg_op op;
        lb_code code;
        const char *says;
    } bent[] = {
        {"0", "2", "16", "256", "16", "norm", LG_OP_ATTN, LB_BAD_SHAPE, "'n_head' is 0"},
        {"4", "0", "16", "256", "16", "norm", LG_OP_ATTN, LB_BAD_SHAPE, "'n_kv' is 0"},
        {"4", "2", "0", "256", "16", "norm", LG_OP_ATTENTION, LB_BAD_SHAPE, "'head_dim' is 0"},
        {"4", "2", "1025", "256", "16", "norm", LG_OP_ATTN, LB_BAD_SHAPE, "'head_dim' is 1025"},
        {"65537", "2", "16", "256", "16", "norm", LG_OP_ATTN, LB_BAD_SHAPE, "'n_head' is 65537"},
        {"5", "2", "16", "256", "16", "norm", LG_OP_ATTN, LB_BAD_SHAPE,
         "'n_head' is 16, expected 0"},
        {"5", "2", "16", "256", "16", "norm", LG_OP_ATTENTION, LB_BAD_SHAPE,
         "'n_head' is 16, expected 0"},
        {"4", "2", "16", "0", "16", "norm", LG_OP_ROPE_KV, LB_BAD_SHAPE,
         "positions of 'k' is 256, expected 0"},
        {"4", "2", "16", "255", "16", "norm", LG_OP_KV_STORE, LB_BAD_SHAPE,
         "positions of 'k_cache' is 256, expected 255"},
        {"4", "2", "16", "512", "16", "norm", LG_OP_KV_STORE, LB_BAD_SHAPE,
         "positions of 'k_cache'"},
        {"4", "1", "16", "256", "16", "norm", LG_OP_ATTN, LB_BAD_SHAPE,
         "bytes of 'k' is 16384, expected 8192"},
        {"6", "2", "16", "256", "16", "norm", LG_OP_ATTN, LB_BAD_SHAPE,
         "width of 'qkv' is 128, expected 160"},
        {"4", "2", "16", "256", "0", "norm", LG_OP_ROPE_KV, LB_BAD_SHAPE, "'n_rot' is 0"},
        {"4", "2", "16", "256", "15", "norm", LG_OP_ROPE_KV, LB_BAD_SHAPE, "'n_rot' is 15"},
        {"4", "2", "16", "256", "18", "norm", LG_OP_ROPE, LB_BAD_SHAPE, "'n_rot' is 18"},
        {"4", "2", "16", "256", "14", "norm", LG_OP_ROPE_KV, LB_BAD_SHAPE,
         "'table' is 16, expected 14"},
        {"4", "2", "16", "256", "16", "nix", LG_OP_ROPE_KV, LB_BAD_VALUE, "pairing"},
        {"4", "2", "16", "256", "16", "", LG_OP_ROPE, LB_BAD_VALUE, "pairing"},
        {"\"4\"", "2", "16", "256", "16", "norm", LG_OP_ATTN, LB_BAD_TYPE, "n_head"},
    };
    for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
        char attrs[256];
        graphs b;
        snprintf(attrs, sizeof attrs, heads, bent[i].n_head, bent[i].n_kv, bent[i].head_dim,
                 bent[i].cap, bent[i].n_rot, bent[i].pairing);
        build(&b, right_of(bent[i].op), NULL, attrs);
        refused(&b, bent[i].code, bent[i].says);
        graphs_close(&b);
    }
}

static void bent_operands_are_refused(void **state) {
    (void)state;
    static const struct {
        lg_op op;
        const char *operands, *attrs;
        lb_code code;
        const char *says;
    } bent[] = {
        {LG_OP_ROPE_TABLE, NULL, "{\"freq\": [1.0], \"mscale\": 1.0}", LB_BAD_SHAPE,
         "width of 'y' is 4, expected 2"},
        {LG_OP_ROPE_TABLE, NULL, "{\"freq\": [1.0, 2.0]}", LB_MISSING, "mscale"},
        {LG_OP_RMS_NORM, NULL, "{}", LB_MISSING, "eps"},
        {LG_OP_NORM_QUANT, NULL, "{}", LB_MISSING, "eps"},
        {LG_OP_ATTN, NULL, "{}", LB_MISSING, "n_kv"},
        {LG_OP_NORM_QUANT, "x=%0 w=@0", NULL, LB_BAD_SHAPE, "number of outputs"},
        {LG_OP_NORM_QUANT, "x=%0 w=@0 y_q=%2 y_d=%3", NULL, LB_BAD_SHAPE,
         "number of planes of 'y_q' is 2"},
        {LG_OP_NORM_QUANT, "x=%0 w=@0 y=%1 y_s=%4", NULL, LB_BAD_SHAPE,
         "number of planes of 'y_q' is 1"},
        {LG_OP_MATMUL, Q8 " w0=@0 b0=@2 w1=@1 y=%4", NULL, LB_BAD_SHAPE, "number of 'x' is 0"},
        {LG_OP_MATMUL, "x=%0 w0=@0 b0=@2 w1=@1 y=%4", NULL, LB_BAD_SHAPE, "number of 'x_q' is 0"},
        {LG_OP_MATMUL, "w0=@0 y=%4", NULL, LB_BAD_SHAPE, "number of inputs"},
        {LG_OP_MATMUL, "x=%0 " Q8 " w0=@0 y=%4", NULL, LB_BAD_SHAPE, "number of 'x' is 1"},
        {LG_OP_MATMUL, "x=%0 " Q8 " w0=@0 w2=@1 y=%4", NULL, LB_BAD_SHAPE, "parts without a gap"},
        {LG_OP_MATMUL, "x=%0 " Q8 " y=%4", NULL, LB_BAD_SHAPE, "parts without a gap"},
        {LG_OP_MATMUL, "x=%0 " Q8 " w0=@0 w1=@1 b2=@2 y=%4", NULL, LB_BAD_SHAPE,
         "biases of a part"},
        {LG_OP_MATMUL, "x=%0 " Q8 " w0=@0 w1=@1 f2=@2 y=%4", NULL, LB_BAD_SHAPE,
         "factors of a part"},
        {LG_OP_MATMUL, "x=%0 " Q8 " w0=@0 f0=@2 w1=@1 y=%4", NULL, LB_BAD_SHAPE, "'f0' is 96"},
        {LG_OP_MATMUL, NULL, "{\"epilogue\": \"relu\"}", LB_BAD_VALUE, "epilogue"},
        {LG_OP_MATMUL, NULL, "{\"epilogue\": \"add\"}", LB_BAD_SHAPE, "epilogue"},
        {LG_OP_MATMUL_ADD, NULL, "{\"epilogue\": \"none\"}", LB_BAD_SHAPE, "epilogue"},
        {LG_OP_MATMUL, NULL, "{\"epilogue\": \"swiglu\"}", LB_BAD_SHAPE, "gated product"},
        {LG_OP_MATMUL, Q8 " w0=@0 y=%4", "{\"epilogue\": \"swiglu\"}", LB_BAD_SHAPE,
         "gated product"},
        {LG_OP_MATMUL, Q8 " w0=@0 w1=@0 y=%4", "{\"epilogue\": \"swiglu\"}", LB_BAD_SHAPE,
         "'y' is 128, expected 96"},
        {LG_OP_ROUTER, NULL, ROUTER("0", "softmax", "true", "1.0"), LB_BAD_SHAPE,
         "'n_used' is 0, expected 16"},
        {LG_OP_ROUTER, NULL, ROUTER("17", "softmax", "true", "1.0"), LB_BAD_SHAPE,
         "'n_used' is 17, expected 16"},
        {LG_OP_ROUTER, NULL, ROUTER("3", "softmax", "true", "1.0"), LB_BAD_SHAPE,
         "width of 'ids' is 4, expected 3"},
        {LG_OP_ROUTER, NULL, ROUTER("4", "relu", "true", "1.0"), LB_BAD_VALUE, "gating"},
        {LG_OP_ROUTER, NULL, ROUTER("4", "softmax", "1", "1.0"), LB_BAD_TYPE, "norm"},
        {LG_OP_ROUTER, NULL, ROUTER("4", "softmax", "true", "\"1\""), LB_BAD_TYPE, "scale"},
        {LG_OP_EXPERT_LINEAR, "x=%0 ids=%1 w=@0 y=%2", "{\"n_used\": 3}", LB_BAD_SHAPE,
         "width of 'ids' is 4, expected 3"},
        {LG_OP_EXPERT_SUM, NULL, "{\"n_used\": 3}", LB_BAD_SHAPE,
         "width of 'weights' is 4, expected 3"},
    };
    for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
        graphs b;
        build(&b, right_of(bent[i].op), bent[i].operands, bent[i].attrs);
        refused(&b, bent[i].code, bent[i].says);
        graphs_close(&b);
    }
}

/* A row of 4 heads of q and 2 of k and v of 16 each, then gates; norms of q and k. */
static void norms_and_gates(void **state) {
    (void)state;
    static const char attn[] =
        "{\"n_head\": 4, \"n_kv\": 2, \"head_dim\": 16, \"cap\": 256, \"scale\": 0.25, \"window\": 0, "
        "\"kv\": \"f16\", \"gate\": \"%s\", \"act\": \"%s\"}";
    static const char rope_kv[] =
        "{\"n_head\": 4, \"n_kv\": 2, \"head_dim\": 16, \"cap\": 256, \"n_rot\": 16, \"pairing\": "
        "\"neox\", \"kv\": \"f16\", \"gate\": \"%s\"%s}";
    static const char norms[] = "qkv=%0 q_norm=@0 k_norm=@1 table=%1 k=%2 v=%3";
    static const struct {
        lg_op op;
        uint64_t width, norm;
        const char *operands, *gate, *more; /* act of attn, attributes of rope_kv */
        lb_code code;                       /* LB_OK: right */
        const char *says;
    } cases[] = {
        {LG_OP_ATTN, 132, 0, NULL, "head", "softplus", LB_OK, ""},
        {LG_OP_ATTN, 192, 0, NULL, "element", "softplus", LB_OK, ""},
        {LG_OP_ATTN, 128, 0, NULL, "head", "softplus", LB_BAD_SHAPE, "'qkv' is 128, expected 132"},
        {LG_OP_ATTN, 132, 0, NULL, "element", "softplus", LB_BAD_SHAPE, "expected 192"},
        {LG_OP_ATTN, 132, 0, NULL, "none", "softplus", LB_BAD_SHAPE, "expected 128"},
        {LG_OP_ATTN, 132, 0, NULL, "row", "softplus", LB_BAD_VALUE, "gate"},
        {LG_OP_ATTN, 132, 0, NULL, "head", "tanh", LB_BAD_VALUE, "act"},
        {LG_OP_ROPE_KV, 128, 16, norms, "none", ", \"eps\": 0.1", LB_OK, ""},
        {LG_OP_ROPE_KV, 132, 16, norms, "head", ", \"eps\": 0.1", LB_OK, ""},
        {LG_OP_ROPE_KV, 128, 16, norms, "head", ", \"eps\": 0.1", LB_BAD_SHAPE, "expected 132"},
        {LG_OP_ROPE_KV, 128, 32, norms, "none", ", \"eps\": 0.1", LB_BAD_SHAPE,
         "columns of 'q_norm'"},
        {LG_OP_ROPE_KV, 128, 16, norms, "none", "", LB_MISSING, "eps"},
        {LG_OP_ROPE_KV, 128, 16, "qkv=%0 q_norm=@0 table=%1 k=%2 v=%3", "none", ", \"eps\": 0.1",
         LB_BAD_SHAPE, "number of 'k_norm' is 0"},
        {LG_OP_ROPE_KV, 128, 16, "qkv=%0 k_norm=@0 table=%1 k=%2 v=%3", "none", ", \"eps\": 0.1",
         LB_BAD_SHAPE, "number of 'q_norm' is 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char attrs[256];
        graphs b;
        lb_err e = {0};
        snprintf(attrs, sizeof attrs, cases[i].op == LG_OP_ATTN ? attn : rope_kv, cases[i].gate,
                 cases[i].more);
        build(&b, right_of(cases[i].op), cases[i].operands, attrs);
        b.values[0].width = cases[i].width;
        graphs_tensor(&b, "q_norm", LG_QTYPE_F32, cases[i].norm, 1);
        graphs_tensor(&b, "k_norm", LG_QTYPE_F32, cases[i].norm, 1);
        if (cases[i].code != LB_OK) {
            refused(&b, cases[i].code, cases[i].says);
        } else if (!lg_op_shapes(&b.g, &b.nodes[0], &e)) {
            fail_msg("%s", e.text);
        }
        graphs_close(&b);
    }
}

static void bent_heads_are_refused(void **state) {
    (void)state;
    static const struct {
        lg_op op;
        const char *attrs, *says;
        uint64_t gates;
        lb_code code;
    } bent[] = {
        {LG_OP_HEAD_NORM, "{\"head_dim\": 0, \"eps\": 0.1}", "'x' is 64, expected 0", 0,
         LB_BAD_SHAPE},
        {LG_OP_HEAD_NORM, "{\"head_dim\": 48, \"eps\": 0.1}", "'x' is 16, expected 0", 0,
         LB_BAD_SHAPE},
        {LG_OP_HEAD_NORM, "{\"head_dim\": 32, \"eps\": 0.1}", "columns of 'w' is 16", 0,
         LB_BAD_SHAPE},
        {LG_OP_HEAD_NORM, "{\"head_dim\": 16}", "eps", 0, LB_MISSING},
        {LG_OP_GATE, "{\"head_dim\": 16, \"act\": \"tanh\"}", "act", 4, LB_BAD_VALUE},
        {LG_OP_GATE, "{\"head_dim\": 32, \"act\": \"softplus\"}", "'gate' is 4, expected 2", 4,
         LB_BAD_SHAPE},
        {LG_OP_GATE, "{\"head_dim\": 16, \"act\": \"softplus\"}", "'gate' is 8, expected 4", 8,
         LB_BAD_SHAPE},
        {LG_OP_GATE, "{\"head_dim\": 16, \"act\": \"softplus\"}", "'gate' is 1, expected 4", 1,
         LB_BAD_SHAPE},
    };
    for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
        graphs b;
        build(&b, right_of(bent[i].op), NULL, bent[i].attrs);
        b.values[1].width = bent[i].op == LG_OP_GATE ? bent[i].gates : 64;
        refused(&b, bent[i].code, bent[i].says);
        graphs_close(&b);
    }
}

/* Bytes with a scale for each 32 in place of halves. */
static void caches_of_bytes(void **state) {
    (void)state;
    static const char attrs[] =
        "{\"n_head\": 4, \"n_kv\": 1, \"head_dim\": %s, \"cap\": 256, \"scale\": 0.25, \"window\": 0, "
        "\"kv\": \"%s\", \"gate\": \"none\"}";
    static const struct {
        const char *dim, *kv;
        uint64_t width, bytes;
        lg_elem elem;
        lb_code code; /* LB_OK: right */
        const char *says;
    } cases[] = {
        {"64", "q8_0", 384, 256 * 68, LG_ELEM_I8, LB_OK, ""},
        {"64", "q8_0", 384, 256 * 128, LG_ELEM_I8, LB_BAD_SHAPE,
         "bytes of 'k' is 32768, expected 17408"},
        {"64", "q8_0", 384, 256 * 68, LG_ELEM_F16, LB_BAD_SHAPE, "is f16, expected i8"},
        {"64", "f16", 384, 256 * 68, LG_ELEM_I8, LB_BAD_SHAPE, "is i8, expected f16"},
        {"48", "q8_0", 288, 256 * 51, LG_ELEM_I8, LB_BAD_SHAPE, "'head_dim' is 16, expected 0"},
        {"64", "q4_0", 384, 256 * 68, LG_ELEM_I8, LB_UNSUPPORTED, "kv"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        graphs b;
        lb_err e = {0};
        snprintf(text, sizeof text, attrs, cases[i].dim, cases[i].kv);
        build(&b, right_of(LG_OP_ATTN), NULL, text);
        b.values[0].width = cases[i].width;
        b.values[3].width = cases[i].width * 4 / 6;
        for (int k = 1; k < 3; k++) {
            b.values[k].elem = cases[i].elem;
            b.values[k].state_bytes = cases[i].bytes;
        }
        if (cases[i].code != LB_OK) {
            refused(&b, cases[i].code, cases[i].says);
        } else if (!lg_op_shapes(&b.g, &b.nodes[0], &e)) {
            fail_msg("%s", e.text);
        }
        graphs_close(&b);
    }
}

/* A cache's own numbers: positions, slots, the window that the attention reads. */
static void bent_caches_are_refused(void **state) {
    (void)state;
    graphs b;
    build(&b, right_of(LG_OP_ATTN), NULL, NULL);
    b.values[1].positions = 512;
    refused(&b, LB_BAD_SHAPE, "positions of 'k' is 512, expected 256");
    b.values[1].positions = 256;
    b.values[2].slots = 2;
    refused(&b, LB_BAD_SHAPE, "bytes of 'v' is 16384, expected 32768");
    b.values[2].slots = 1;
    b.values[1].window = 64;
    refused(&b, LB_BAD_SHAPE, "window of 'k' is 64, expected 0");
    b.values[1].window = 0;
    b.values[2].window = 64;
    refused(&b, LB_BAD_SHAPE, "window of 'k'");
    graphs_close(&b);
}

/* A norm may write rows of logits, all its outputs the same. */
static void norm_rows_of_logits(void **state) {
    (void)state;
    graphs b;
    lb_err e = {0};
    build(&b, right_of(LG_OP_NORM_QUANT), NULL, NULL);
    b.values[1].rows = LG_ROWS_L;
    refused(&b, LB_BAD_SHAPE, "'y_q' is T, expected L");
    for (uint32_t i = 2; i < 5; i++) {
        b.values[i].rows = LG_ROWS_L;
    }
    assert_true(lg_op_shapes(&b.g, &b.nodes[0], &e));
    b.values[0].rows = LG_ROWS_L;
    refused(&b, LB_BAD_SHAPE, "'x' is L, expected T");
    graphs_close(&b);
}

/* Launches of experts: lists of the right length, all matrices or none, what is read by its kind.
 */
static void bent_expert_launches_are_refused(void **state) {
    (void)state;
    static const struct {
        lg_op op;
        const char *operands, *attrs;
        const char *says;
    } bent[] = {
        {LG_OP_MOE_SORT, NULL, "{\"n_used\": 3, \"n_expert\": 16}",
         "width of 'ids' is 4, expected 3"},
        {LG_OP_MOE_SORT, NULL, "{\"n_used\": 4, \"n_expert\": 15}",
         "bound of 'ids' is 16, expected 15"},
        {LG_OP_MATVEC_MOE_GATED, "x=%0 " Q8 " ids=%4 w0=@0 s0=@2 s1=@3 y=%5", NULL,
         "number of 'w1' is 0, expected 1"},
        {LG_OP_MATVEC_MOE_GATED, "x=%0 " Q8 " ids=%4 w0=@0 w1=@1 s0=@2 y=%5", NULL,
         "number of 's1' is 0, expected 1"},
        {LG_OP_MATVEC_MOE_GATED, "x=%0 " Q8 " ids=%4 w0=@0 w1=@1 s0=@2 s1=@3", NULL,
         "number of outputs of 'y' is 0"},
        {LG_OP_MATVEC_MOE_GATED, Q8 " ids=%4 w0=@0 w1=@1 s0=@2 s1=@3 y=%5", NULL,
         "number of 'x' is 0, expected 1"},
        {LG_OP_MATVEC_MOE_GATED, "x=%0 ids=%4 w0=@0 w1=@1 s0=@2 s1=@3 y=%5", NULL,
         "number of 'x_q' is 0, expected 1"},
        {LG_OP_MOE_GATED, "x=%0 pairs=%1 map=%2 w0=@0 w1=@1 y=%3", NULL,
         "width of 'y' is 480, expected 384"},
        {LG_OP_MOE_DOWN, Q8 " pairs=%4 map=%5 w0=@0 w1=@1 s0=@1 y=%0", NULL,
         "number of 'w1' is 1, expected 0"},
        {LG_OP_MOE_SUM, NULL, MOE("false"), "width of 'x' is 320, expected 256"},
        {LG_OP_MOE_SUM, NULL, "{\"n_used\": 3, \"n_expert\": 16, \"shared\": true}",
         "width of 'weights' is 4, expected 3"},
    };
    for (size_t i = 0; i < sizeof bent / sizeof *bent; i++) {
        graphs b;
        build(&b, right_of(bent[i].op), bent[i].operands, bent[i].attrs);
        refused(&b, LB_BAD_SHAPE, bent[i].says);
        graphs_close(&b);
    }
    graphs b;
    build(&b, right_of(LG_OP_MOE_DOWN), NULL, NULL);
    b.values[5].extra = 64;
    refused(&b, LB_BAD_SHAPE, "elements behind the rows of 'map' is 64, expected 68");
    b.values[5].extra = 68;
    b.values[4].extra = 1;
    refused(&b, LB_BAD_SHAPE, "elements behind the rows of 'pairs' is 1, expected 0");
    graphs_close(&b);
}

/* Experts: as many matrices as the router chose among, no more of them than kernels keep; the input
 * may be one part for all picks or a part for each. */
static void bent_experts_are_refused(void **state) {
    (void)state;
    graphs b;
    lb_err e = {0};
    build(&b, right_of(LG_OP_EXPERT_LINEAR), NULL, NULL);
    b.values[1].below = 15;
    refused(&b, LB_BAD_SHAPE, "number of matrices of 'w' is 16, expected 15");
    b.values[1].below = 16;
    b.values[0].width = 256;
    assert_true(lg_op_shapes(&b.g, &b.nodes[0], &e));
    b.values[0].width = 192;
    refused(&b, LB_BAD_SHAPE, "columns of 'w' is 64, expected 192");
    b.values[0].width = 64;
    b.values[1].below = b.tensors[0].n_mats = 4097;
    refused(&b, LB_BAD_SHAPE, "number of experts of 'ids' is 4097, expected 4096");
    b.values[1].below = b.tensors[0].n_mats = 16;
    b.tensors[0].n_rows = UINT64_MAX / 2;
    refused(&b, LB_BAD_SHAPE, "rows of 'w'");
    graphs_close(&b);
    build(&b, right_of(LG_OP_ROUTER), NULL, NULL);
    b.values[1].below = 17;
    refused(&b, LB_BAD_SHAPE, "bound of 'ids' is 17, expected 16");
    graphs_close(&b);
    build(&b, right_of(LG_OP_ROUTER), "logits=%0 ids=%1 weights=%2", NULL);
    assert_true(lg_op_shapes(&b.g, &b.nodes[0], &e));
    graphs_close(&b);
}

static void odd_widths_have_no_planes(void **state) {
    (void)state;
    graphs b;
    build(&b, right_of(LG_OP_QUANT), NULL, NULL);
    b.values[0].width = 72;
    refused(&b, LB_BAD_SHAPE, "width modulo 32 of 'y_q' is 8");
    graphs_close(&b);
}

static void unknown_op_has_no_rule(void **state) {
    (void)state;
    graphs b;
    lb_err e = {0};
    build(&b, right_of(LG_OP_ADD), NULL, NULL);
    b.nodes[0].op = LG_N_OPS;
    assert_false(lg_op_shapes(&b.g, &b.nodes[0], &e));
    assert_int_equal(e.code, LB_UNSUPPORTED);
    graphs_close(&b);
}

static void roles(void **state) {
    (void)state;
    bool optional = false;
    bool numbered = false;
    assert_int_equal(lg_op_role(LG_OP_MATMUL, "w0", &optional, &numbered), 't');
    assert_true(numbered && !optional);
    assert_int_equal(lg_op_role(LG_OP_MATMUL, "b12", &optional, &numbered), 't');
    assert_true(numbered && optional);
    assert_int_equal(lg_op_role(LG_OP_MATMUL, "x_q", &optional, &numbered), 'r');
    assert_true(!numbered && optional);
    assert_int_equal(lg_op_role(LG_OP_MATMUL_ADD, "y", NULL, NULL), 'b');
    static const char *const none[] = {"w", "wx", "w0x", "", "x_", "x_qq", "b"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(lg_op_role(LG_OP_MATMUL, none[i], NULL, NULL), 0);
    }
}

/* What ctas of one attn share: room for splits of 4 heads of 16 with m and l, and counters. */
static void ctas_share_memory(void **state) {
    (void)state;
    static const char attn[] = "qkv=%0 k=%1 v=%2 part=%4 count=%5 y=%3";
    static const struct {
        lg_op op;
        const char *operands;
        uint64_t part, count;
        lg_rows part_rows, count_rows;
        lg_elem part_elem, count_elem;
        const char *says; /* "": right */
    } cases[] = {
        {LG_OP_ATTN, attn, 216, 2, LG_ROWS_FEW, LG_ROWS_T, LG_ELEM_F32, LG_ELEM_I32, ""},
        {LG_OP_ATTN, attn, 0, 2, LG_ROWS_FEW, LG_ROWS_T, LG_ELEM_F32, LG_ELEM_I32, "'part' is 0"},
        {LG_OP_ATTN, attn, 217, 2, LG_ROWS_FEW, LG_ROWS_T, LG_ELEM_F32, LG_ELEM_I32,
         "'part' is 217, expected 72"},
        {LG_OP_ATTN, attn, 216, 2, LG_ROWS_T, LG_ROWS_T, LG_ELEM_F32, LG_ELEM_I32, "'part'"},
        {LG_OP_ATTN, attn, 216, 2, LG_ROWS_FEW, LG_ROWS_T, LG_ELEM_I32, LG_ELEM_I32, "'part'"},
        {LG_OP_ATTN, attn, 216, 2, LG_ROWS_FEW, LG_ROWS_L, LG_ELEM_F32, LG_ELEM_I32, "'count'"},
        {LG_OP_ATTN, attn, 216, 2, LG_ROWS_FEW, LG_ROWS_T, LG_ELEM_F32, LG_ELEM_F32, "'count'"},
        {LG_OP_ATTN, "qkv=%0 k=%1 v=%2 part=%4 y=%3", 216, 2, LG_ROWS_FEW, LG_ROWS_T, LG_ELEM_F32,
         LG_ELEM_I32, "number of 'count' is 0"},
        {LG_OP_ATTN, "qkv=%0 k=%1 v=%2 count=%5 y=%3", 216, 2, LG_ROWS_FEW, LG_ROWS_T, LG_ELEM_F32,
         LG_ELEM_I32, "number of 'part' is 0"},
        {LG_OP_ROPE_KV, "qkv=%0 table=%1 k=%2 v=%3 count=%5", 0, 2, LG_ROWS_FEW, LG_ROWS_T,
         LG_ELEM_F32, LG_ELEM_I32, ""},
        {LG_OP_ROPE_KV, "qkv=%0 table=%1 k=%2 v=%3 count=%5", 0, 2, LG_ROWS_FEW, LG_ROWS_L,
         LG_ELEM_F32, LG_ELEM_I32, "'count'"},
        {LG_OP_ROPE_KV, "qkv=%0 table=%1 k=%2 v=%3 count=%5", 0, 2, LG_ROWS_FEW, LG_ROWS_T,
         LG_ELEM_F32, LG_ELEM_I16, "'count'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        graphs b;
        lb_err e = {0};
        build(&b, right_of(cases[i].op), cases[i].operands, NULL);
        graphs_value(&b, "part", cases[i].part_rows, cases[i].part_elem, cases[i].part);
        graphs_value(&b, "count", cases[i].count_rows, cases[i].count_elem, cases[i].count);
        if (cases[i].says[0] != '\0') {
            refused(&b, LB_BAD_SHAPE, cases[i].says);
        } else if (!lg_op_shapes(&b.g, &b.nodes[0], &e)) {
            fail_msg("%s", e.text);
        }
        graphs_close(&b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_nodes_pass),
        cmocka_unit_test(bent_values_are_refused),
        cmocka_unit_test(bent_tensors_are_refused),
        cmocka_unit_test(bent_nodes_are_refused),
        cmocka_unit_test(bent_operands_are_refused),
        cmocka_unit_test(norms_and_gates),
        cmocka_unit_test(ctas_share_memory),
        cmocka_unit_test(bent_heads_are_refused),
        cmocka_unit_test(caches_of_bytes),
        cmocka_unit_test(bent_caches_are_refused),
        cmocka_unit_test(norm_rows_of_logits),
        cmocka_unit_test(bent_expert_launches_are_refused),
        cmocka_unit_test(bent_experts_are_refused),
        cmocka_unit_test(odd_widths_have_no_planes),
        cmocka_unit_test(unknown_op_has_no_rule),
        cmocka_unit_test(roles),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("op", tests, NULL, NULL);
}
