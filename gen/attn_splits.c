/* attn_splits.c -- see attn_splits.h. */
#include "attn_splits.h"

#include <inttypes.h>
#include <string.h>

#include "at.h"

enum { NEW_VALUES = 2, NEW_OPERANDS = 2 };

typedef struct splitter {
    lg_graph *g;
    lg_host *host;
    lb_arena *arena;
    lb_err *err;
} splitter;

static uint64_t n_attn(const lg_graph *g) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        n += g->nodes[i].op == LG_OP_ATTN;
    }
    return n;
}

/* Elements of a row of `part` and `count`, by the template. */
static bool widths(splitter *s, const lg_gnode *n, uint64_t *part, uint64_t *count) {
    static const char *const names[][2] = {{"n_head", "n_head"}, {"n_kv", "n_kv"},
                                           {"head_dim", "hd"},   {"cap", "cap"},
                                           {"window", "window"}, {"gate", "gate"}};
    lg_builder b;
    lg_value *out = NULL;
    lg_build_init(&b, s->arena);
    lg_value *op = lg_build_map(&b);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        lg_build_set(&b, op, names[i][1], lg_value_find(n->attrs, names[i][0]));
    }
    if (!lg_build_done(&b, s->err) ||
        !lg_host_call(s->host, "lib/attn_parts.lua", "split_widths", op, s->arena, &out, s->err)) {
        return lb_err_prefix(s->err, "splits of attention");
    }
    lg_at at = lg_at_root("lib/attn_parts.lua", out);
    return lg_at_uint(&at, "part", part, s->err) && lg_at_uint(&at, "count", count, s->err);
}

static uint32_t add_value(lg_graph *g, const char *name, lg_rows rows, lg_elem elem,
                          uint64_t width) {
    g->values[g->n_values] =
        (lg_gvalue){.name = name, .rows = rows, .elem = elem, .width = width};
    return g->n_values++;
}

/* The node's operands with more behind them. */
static bool more_operands(splitter *s, lg_gnode *n, const lg_goperand *more, uint32_t n_more) {
    lg_goperand *list = lb_alloc_n(s->arena, (uint64_t)n->n_operands + n_more, sizeof *list, s->err);
    if (list == NULL) {
        return false;
    }
    memcpy(list, n->operands, n->n_operands * sizeof *list);
    memcpy(list + n->n_operands, more, n_more * sizeof *list);
    n->operands = list;
    n->n_operands += n_more;
    return true;
}

/* What the node computes prompts with joins its attributes. */
static bool with_prompt(splitter *s, lg_gnode *n) {
    lg_builder b;
    lg_build_init(&b, s->arena);
    n->attrs = lg_build_with(&b, n->attrs, "prompt", lg_build_string(&b, s->g->attn));
    return lg_build_done(&b, s->err);
}

/* The rope_kv among the first n_done nodes that stores the keys which `attn` reads. */
static lg_gnode *store_of(lg_gnode *nodes, uint32_t n_done, const lg_gnode *attn) {
    const lg_goperand *k = lg_node_operand(attn, "k");
    for (uint32_t i = n_done; k != NULL && i-- > 0;) {
        const lg_goperand *own =
            nodes[i].op == LG_OP_ROPE_KV ? lg_node_operand(&nodes[i], "k") : NULL;
        if (own != NULL && own->id == k->id) {
            return &nodes[i];
        }
    }
    return NULL;
}

/* `attn` for many rows at nodes[n_done], and for few behind it. */
static bool divide(splitter *s, const lg_gnode *attn, lg_gnode *nodes, uint32_t n_done) {
    lg_graph *g = s->g;
    lg_gnode *store = store_of(nodes, n_done, attn);
    uint64_t part_width = 0;
    uint64_t count_width = 0;
    if (store == NULL) {
        return lb_err_set(s->err, LB_BAD_SHAPE, "attn of layer %" PRId32 ": nothing stores its keys",
                          attn->layer);
    }
    if (!widths(s, attn, &part_width, &count_width)) {
        return false;
    }
    uint32_t part = add_value(g, "attn.part", LG_ROWS_FEW, LG_ELEM_F32, part_width);
    uint32_t count = add_value(g, "attn.count", LG_ROWS_T, LG_ELEM_I32, count_width);
    const lg_goperand zero = {"count", LG_WRITE, count};
    const lg_goperand shared[] = {{"part", LG_WRITE, part}, {"count", LG_BOTH, count}};
    nodes[n_done] = *attn;
    nodes[n_done].when = LG_WHEN_MANY;
    if (g->attn != NULL && strcmp(g->attn, "f32") != 0 && !with_prompt(s, &nodes[n_done])) {
        return false;
    }
    nodes[n_done + 1] = *attn;
    nodes[n_done + 1].when = LG_WHEN_FEW;
    return more_operands(s, store, &zero, 1) &&
           more_operands(s, &nodes[n_done + 1], shared, NEW_OPERANDS);
}

bool lg_add_attn_splits(lg_graph *g, lg_host *host, lb_arena *arena, lb_err *err) {
    splitter s = {g, host, arena, err};
    uint64_t n = n_attn(g);
    lg_gvalue *values = lb_alloc_n(arena, g->n_values + NEW_VALUES * n, sizeof *values, err);
    lg_gnode *nodes = lb_alloc_n(arena, g->n_nodes + n, sizeof *nodes, err);
    uint32_t n_done = 0;
    if (values == NULL || nodes == NULL) {
        return false;
    }
    memcpy(values, g->values, g->n_values * sizeof *values);
    g->values = values;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].op != LG_OP_ATTN) {
            nodes[n_done++] = g->nodes[i];
        } else if (divide(&s, &g->nodes[i], nodes, n_done)) {
            n_done += 2;
        } else {
            return false;
        }
    }
    g->nodes = nodes;
    g->n_nodes = n_done;
    return true;
}
