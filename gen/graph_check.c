/* graph_check.c -- the verifier: run after the graph is built and after every rewrite; and its
 * dump.
 *
 * Checks, for every node: required operands present, no unknown or repeated one, access as in
 * op.def, ids in range, the graph's level, every value written exactly once before it is read
 * (in-place ops excepted), shapes by op.c. For the whole: layers 0, 1, ... in order and without a
 * gap, no op outside the layers between two of them, every tensor used, the logits written as
 * [L][n_vocab] floats. */
#include <inttypes.h>
#include <string.h>

#include "graph.h"
#include "op.h"

/* What the walk over the nodes has seen. */
typedef struct seen {
    uint8_t *written; /* per value: bit 0 by steps of few rows, bit 1 by those of many */
    bool *used;    /* a flag per tensor */
    int64_t layer; /* the last node's */
    int64_t n_layers;
} seen;

static bool fail(const lg_gnode *n, lb_err *err, const char *what, const char *which) {
    return lb_err_set(err, LB_BAD_SHAPE, "op '%s' of layer %" PRId32 ": %s '%s'",
                      lg_op_get(n->op)->name, n->layer, what, which);
}

/* Every role that the op requires is there. */
static bool required_roles(const lg_gnode *n, lb_err *err) {
    for (const char *p = lg_op_get(n->op)->roles; *p != '\0';) {
        size_t len = strcspn(p, " ");
        size_t name_len = strcspn(p, "*:");
        char name[32] = {0};
        if (name_len < sizeof name && p[name_len] != '*' && p[len - 1] != '?') {
            memcpy(name, p, name_len);
            if (lg_node_operand(n, name) == NULL) {
                return fail(n, err, "misses operand", name);
            }
        }
        p += len;
        p += strspn(p, " ");
    }
    return true;
}

static bool operands_known(const lg_graph *g, const lg_gnode *n, lb_err *err) {
    for (uint32_t i = 0; i < n->n_operands; i++) {
        const lg_goperand *o = &n->operands[i];
        char letter = lg_op_role(n->op, o->role, NULL, NULL);
        if (letter == '\0' || lg_node_operand(n, o->role) != o) {
            return fail(n, err, "has an unknown or repeated operand", o->role);
        }
        if (letter != "rwbst"[o->access]) {
            return fail(n, err, "has another access than op.def says to", o->role);
        }
        if (o->id >= (o->access == LG_TENSOR ? g->n_tensors : g->n_values)) {
            return fail(n, err, "has an operand out of range", o->role);
        }
    }
    return true;
}

/* The steps in which a node is there, as bits of `written`. */
static uint8_t steps_of(const lg_gnode *n) {
    return n->when == LG_WHEN_FEW ? 1 : n->when == LG_WHEN_MANY ? 2 : 3;
}

/* Reads come after writes, and each activation is written once, in steps of few rows and in those
 * of many. */
static bool order_of(const lg_graph *g, const lg_gnode *n, seen *s, lb_err *err) {
    uint8_t in = steps_of(n);
    for (uint32_t i = 0; i < n->n_operands; i++) {
        const lg_goperand *o = &n->operands[i];
        if ((o->access == LG_READ || o->access == LG_BOTH) &&
            (s->written[o->id] & in) != in) {
            return fail(n, err, "reads before it is written", g->values[o->id].name);
        }
        if (o->access == LG_WRITE && (s->written[o->id] & in) != 0) {
            return fail(n, err, "writes a second time", g->values[o->id].name);
        }
        if (o->access != LG_TENSOR && g->values[o->id].rows == LG_ROWS_FEW && in != 1) {
            return fail(n, err, "is not for few rows only, as is", g->values[o->id].name);
        }
    }
    for (uint32_t i = 0; i < n->n_operands; i++) {
        const lg_goperand *o = &n->operands[i];
        if (o->access == LG_WRITE) {
            s->written[o->id] |= in;
        }
        if (o->access == LG_TENSOR) {
            s->used[o->id] = true;
        }
    }
    return true;
}

/* A node is in its predecessor's layer, in the next one, or behind the last one. Emission groups
 * launches by layer and relies on it. */
static bool layer_of(const lg_graph *g, const lg_gnode *n, seen *s, lb_err *err) {
    bool behind = n->layer == -1 && (s->n_layers == 0 || s->n_layers == (int64_t)g->n_layers);
    bool next = n->layer == s->n_layers && n->layer < (int64_t)g->n_layers;
    if (n->layer != s->layer && !behind && !next) {
        return lb_err_set(err, LB_BAD_SHAPE,
                          "op '%s' of layer %" PRId32 " follows layer %" PRId64 " of %" PRIu64,
                          lg_op_get(n->op)->name, n->layer, s->n_layers - 1, g->n_layers);
    }
    s->layer = n->layer;
    s->n_layers += next;
    return true;
}

static bool check_node(const lg_graph *g, const lg_gnode *n, seen *s, lb_err *err) {
    if ((unsigned)n->op >= LG_N_OPS) {
        return lb_err_set(err, LB_UNSUPPORTED, "op number %u is not in op.def", (unsigned)n->op);
    }
    if ((unsigned)n->when > LG_WHEN_MANY || (n->when != LG_WHEN_ANY && g->level == LG_LEVEL_ARCH)) {
        return fail(n, err, "is for some steps only in graph of", g->arch);
    }
    if (g->level == LG_LEVEL_LAUNCH && lg_op_get(n->op)->level != LG_LEVEL_LAUNCH) {
        return fail(n, err, "is no launch op in graph of", g->arch);
    }
    return operands_known(g, n, err) && required_roles(n, err) && order_of(g, n, s, err) &&
           layer_of(g, n, s, err) && lg_op_shapes(g, n, err);
}

static bool check_whole(const lg_graph *g, const seen *s, lb_err *err) {
    if (s->n_layers != (int64_t)g->n_layers) {
        return lb_err_set(err, LB_BAD_SHAPE, "%" PRId64 " layers have ops, expected %" PRIu64,
                          s->n_layers, g->n_layers);
    }
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        if (!s->used[i]) {
            return lb_err_set(err, LB_BAD_SHAPE, "tensor '%s' is used by no op",
                              g->tensors[i].name);
        }
    }
    const lg_gvalue *out = &g->values[g->logits];
    if (s->written[g->logits] != 3 || out->rows != LG_ROWS_L || out->elem != LG_ELEM_F32 ||
        out->width != g->n_vocab) {
        return lb_err_set(err, LB_BAD_SHAPE,
                          "the logits are not written as rows of %" PRIu64 " floats", g->n_vocab);
    }
    return true;
}

bool lg_graph_check(const lg_graph *g, const char *after, lb_err *err) {
    lb_arena memory;
    seen s = {.layer = -1};
    lb_arena_init(&memory, "verifier", UINT64_C(1) << 30);
    s.written = lb_alloc_n(&memory, g->n_values, sizeof *s.written, err);
    s.used = s.written == NULL ? NULL : lb_alloc_n(&memory, g->n_tensors, sizeof *s.used, err);
    bool ok =
        s.used != NULL && (g->logits < g->n_values || lb_err_set(err, LB_BAD_VALUE, "no logits"));
    for (uint32_t i = 0; ok && i < g->n_nodes; i++) {
        ok = check_node(g, &g->nodes[i], &s, err);
    }
    ok = ok && check_whole(g, &s, err);
    lb_arena_reset(&memory);
    return ok || lb_err_prefix(err, "graph after %s", after);
}

/* An attribute on one line; real numbers in hex, so that every bit shows. */
static void dump_attr(const lg_value *v, lb_text *out) {
    switch (v->kind) {
    case LG_VALUE_INT: lb_text_printf(out, "%" PRId64, v->u.integer); break;
    case LG_VALUE_DOUBLE: lb_text_printf(out, "%a", v->u.real); break;
    case LG_VALUE_STRING: lb_text_add_n(out, v->u.string.bytes, v->u.string.n_bytes); break;
    case LG_VALUE_ARRAY:
        lb_text_add(out, "[");
        for (size_t i = 0; i < v->u.array.n; i++) {
            lb_text_add(out, i == 0 ? "" : ",");
            dump_attr(v->u.array.items[i], out);
        }
        lb_text_add(out, "]");
        break;
    case LG_VALUE_BOOL: lb_text_add(out, v->u.boolean ? "true" : "false"); break;
    default: lb_text_add(out, lg_value_kind_name(v->kind));
    }
}

static void dump_attrs(const lg_value *attrs, lb_text *out) {
    for (size_t i = 0; attrs->kind == LG_VALUE_MAP && i < lg_value_count(attrs); i++) {
        const lg_value_entry *entry = &attrs->u.map.entries[i];
        lb_text_printf(out, " %s:", entry->key->u.string.bytes);
        dump_attr(entry->value, out);
    }
}

void lg_graph_dump(const lg_graph *g, lb_text *out) {
    lb_text_printf(out,
                   "graph %s level=%s layers=%" PRIu64 " embd=%" PRIu64 " vocab=%" PRIu64
                   " ctx_train=%" PRIu64 "\n",
                   g->arch, g->level == LG_LEVEL_ARCH ? "arch" : "launch", g->n_layers, g->n_embd,
                   g->n_vocab, g->ctx_train);
    for (uint32_t i = 0; i < g->n_values; i++) {
        const lg_gvalue *v = &g->values[i];
        lb_text_printf(out, "value %" PRIu32 " %s %s[%s][%" PRIu64 "]", i, v->name,
                       LG_ELEM_NAMES[v->elem], LG_ROWS_NAMES[v->rows], v->width);
        if (v->extra != 0) {
            lb_text_printf(out, " extra=%" PRIu64, v->extra);
        }
        lb_text_printf(out, v->rows == LG_ROWS_STATE ? " bytes=%" PRIu64 "\n" : "\n",
                       v->state_bytes);
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const lg_gnode *n = &g->nodes[i];
        lb_text_printf(out, "node %" PRIu32 " layer=%" PRId32 " %s", i, n->layer,
                       lg_op_get(n->op)->name);
        if (n->when != LG_WHEN_ANY) {
            lb_text_printf(out, " when=%s", LG_WHEN_NAMES[n->when]);
        }
        for (uint32_t o = 0; o < n->n_operands; o++) {
            const lg_goperand *p = &n->operands[o];
            if (p->access == LG_TENSOR) {
                lb_text_printf(out, " %s=%s", p->role, g->tensors[p->id].name);
            } else {
                lb_text_printf(out, " %s=%%%" PRIu32, p->role, p->id);
            }
        }
        dump_attrs(n->attrs, out);
        lb_text_add(out, "\n");
    }
}
