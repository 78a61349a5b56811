/* sampling.c -- see sampling.h. */
#include "sampling.h"

#include <string.h>

#include "at.h"

enum { NEW_VALUES = 3, NEW_NODES = 3 };

/* {heads, totals}: elements of a row of each. */
static bool widths(uint64_t n_vocab, lg_host *host, lb_arena *arena, lg_value **out, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *arg = lg_build_map(&b);
    lg_build_set_uint(&b, arg, "V", n_vocab);
    return lg_build_done(&b, err) &&
           lg_host_call(host, "lib/sample_parts.lua", "widths", arg, arena, out, err);
}

/* Room for what is new behind what is there. */
static bool grow(lg_graph *g, lb_arena *arena, lb_err *err) {
    lg_gvalue *values = lb_alloc_n(arena, (uint64_t)g->n_values + NEW_VALUES, sizeof *values, err);
    lg_gnode *nodes = lb_alloc_n(arena, (uint64_t)g->n_nodes + NEW_NODES, sizeof *nodes, err);
    if (values == NULL || nodes == NULL) {
        return false;
    }
    memcpy(values, g->values, g->n_values * sizeof *values);
    memcpy(nodes, g->nodes, g->n_nodes * sizeof *nodes);
    g->values = values;
    g->nodes = nodes;
    return true;
}

static uint32_t add_value(lg_graph *g, const char *name, uint64_t width) {
    g->values[g->n_values] =
        (lg_gvalue){.name = name, .rows = LG_ROWS_L, .elem = LG_ELEM_U64, .width = width};
    return g->n_values++;
}

static bool add_node(lg_graph *g, lg_op op, const lg_goperand *operands, uint32_t n,
                     const lg_value *attrs, lb_arena *arena, lb_err *err) {
    lg_goperand *list = lb_alloc_n(arena, n, sizeof *list, err);
    if (list == NULL) {
        return false;
    }
    memcpy(list, operands, n * sizeof *list);
    g->nodes[g->n_nodes++] = (lg_gnode){
        .op = op, .layer = -1, .operands = list, .n_operands = n, .attrs = attrs};
    return true;
}

/* The three stages; `attrs` are the widths. */
static bool add_stages(lg_graph *g, uint32_t heads, uint32_t totals, const lg_value *attrs,
                       lb_arena *arena, lb_err *err) {
    const lg_goperand tiles[] = {{"logits", LG_READ, g->logits}, {"heads", LG_WRITE, heads}};
    const lg_goperand total[] = {
        {"logits", LG_READ, g->logits}, {"heads", LG_READ, heads}, {"totals", LG_WRITE, totals}};
    const lg_goperand pick[] = {
        {"heads", LG_READ, heads}, {"totals", LG_READ, totals}, {"choices", LG_WRITE, g->choices}};
    return add_node(g, LG_OP_SAMPLE_TILES, tiles, 2, attrs, arena, err) &&
           add_node(g, LG_OP_SAMPLE_TOTAL, total, 3, attrs, arena, err) &&
           add_node(g, LG_OP_SAMPLE_PICK, pick, 3, attrs, arena, err);
}

bool lg_add_sampling(lg_graph *g, lg_host *host, lb_arena *arena, lb_err *err) {
    lg_value *attrs = NULL;
    uint64_t heads_width = 0;
    uint64_t totals_width = 0;
    if (!widths(g->n_vocab, host, arena, &attrs, err)) {
        return lb_err_prefix(err, "sampling on the device");
    }
    lg_at at = lg_at_root("lib/sample_parts.lua", attrs);
    if (!lg_at_uint(&at, "heads", &heads_width, err) ||
        !lg_at_uint(&at, "totals", &totals_width, err) || !grow(g, arena, err)) {
        return false;
    }
    uint32_t heads = add_value(g, "heads", heads_width);
    uint32_t totals = add_value(g, "totals", totals_width);
    g->choices = add_value(g, "choices", 1);
    g->samples = true;
    return add_stages(g, heads, totals, attrs, arena, err);
}
