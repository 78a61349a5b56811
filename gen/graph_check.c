/* graph_check.c -- the verifier: run after the graph is built and after every rewrite; and its dump.
 *
 * Checks, for every node: required operands present, no unknown or repeated one, ids in range, the
 * graph's level, every value written exactly once before it is read (in-place ops excepted), shapes by op.c;
 * at the end: the logits are written and are [L][n_vocab] floats. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"
#include "op.h"
#include "value_text.h"

static const char *const ELEM_NAMES[] = {"f32", "i8", "i16", "f16"};
static const char *const ROWS_NAMES[] = {"T", "L", "state"};

static bool fail(const lg_gnode *n, lb_err *err, const char *what, const char *which) {
    return lb_err_set(err, LB_BAD_SHAPE, "op '%s' of layer %" PRId32 ": %s '%s'", lg_op_get(n->op)->name,
                      n->layer, what, which);
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
        if ((letter == 't') != (o->access == LG_TENSOR) ||
            o->id >= (o->access == LG_TENSOR ? g->n_tensors : g->n_values)) {
            return fail(n, err, "has an operand out of range", o->role);
        }
    }
    return true;
}

/* Reads come after writes; each activation is written once. `written` has a flag per value. */
static bool order_of(const lg_graph *g, const lg_gnode *n, bool *written, lb_err *err) {
    for (uint32_t i = 0; i < n->n_operands; i++) {
        const lg_goperand *o = &n->operands[i];
        if (o->access != LG_TENSOR && o->access != LG_STATE && o->access != LG_WRITE && !written[o->id]) {
            return fail(n, err, "reads before it is written", g->values[o->id].name);
        }
        if (o->access == LG_WRITE && written[o->id]) {
            return fail(n, err, "writes a second time", g->values[o->id].name);
        }
    }
    for (uint32_t i = 0; i < n->n_operands; i++) {
        if (n->operands[i].access == LG_WRITE) {
            written[n->operands[i].id] = true;
        }
    }
    return true;
}

static bool check_nodes(const lg_graph *g, bool *written, lb_err *err) {
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const lg_gnode *n = &g->nodes[i];
        bool launch = lg_op_get(n->op)->level == LG_LEVEL_LAUNCH;
        if (g->level == LG_LEVEL_LAUNCH && !launch) {
            return fail(n, err, "is no launch op in graph of", g->arch);
        }
        if (!operands_known(g, n, err) || !required_roles(n, err) || !order_of(g, n, written, err) ||
            !lg_op_shapes(g, n, err)) {
            return false;
        }
    }
    return true;
}

bool lg_graph_check(const lg_graph *g, const char *after, lb_err *err) {
    bool *written = calloc(g->n_values, sizeof *written);
    if (written == NULL) {
        return lb_err_set(err, LB_NO_MEMORY, "verifier: no memory for %" PRIu32 " values", g->n_values);
    }
    bool ok = check_nodes(g, written, err);
    const lg_gvalue *out = &g->values[g->logits];
    if (ok && (!written[g->logits] || out->rows != LG_ROWS_L || out->width != g->n_vocab)) {
        ok = lb_err_set(err, LB_BAD_SHAPE, "the logits are not written as rows of %" PRIu64, g->n_vocab);
    }
    free(written);
    return ok || lb_err_prefix(err, "graph after %s", after);
}

void lg_graph_dump(const lg_graph *g, lb_text *out) {
    lb_text_printf(out, "graph %s level=%s layers=%" PRIu64 " embd=%" PRIu64 " vocab=%" PRIu64 " ctx_train=%" PRIu64 "\n",
                   g->arch, g->level == LG_LEVEL_ARCH ? "arch" : "launch", g->n_layers, g->n_embd,
                   g->n_vocab, g->ctx_train);
    for (uint32_t i = 0; i < g->n_values; i++) {
        const lg_gvalue *v = &g->values[i];
        lb_text_printf(out, "value %" PRIu32 " %s %s[%s][%" PRIu64 "]", i, v->name, ELEM_NAMES[v->elem],
                       ROWS_NAMES[v->rows], v->width);
        lb_text_printf(out, v->rows == LG_ROWS_STATE ? " bytes=%" PRIu64 "\n" : "\n", v->state_bytes);
    }
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const lg_gnode *n = &g->nodes[i];
        lb_text_printf(out, "node %" PRIu32 " layer=%" PRId32 " %s", i, n->layer, lg_op_get(n->op)->name);
        for (uint32_t o = 0; o < n->n_operands; o++) {
            const lg_goperand *p = &n->operands[o];
            if (p->access == LG_TENSOR) {
                lb_text_printf(out, " %s=%s", p->role, g->tensors[p->id].name);
            } else {
                lb_text_printf(out, " %s=%%%" PRIu32, p->role, p->id);
            }
        }
        lb_text_add(out, "\n");
    }
}
