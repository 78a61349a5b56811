/* launch.c -- step 7: one launch per op, from the descriptor at the head of its kernel template.
 *
 * For each node of the launch graph: build the op table (dims, types, the hardware row's numbers),
 * ask describe() of templates/kernel/<family>.<lang>.lua, read what it returns (descriptor.h),
 * share kernels with equal names, bind the kernel's parameters to the node's operands by role. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "at.h"
#include "descriptor.h"
#include "op.h"
#include "plan.h"

typedef struct planner {
    lg_plan *plan;
    const lg_graph *g;
    lg_host *host;
    lb_arena *arena;
    lb_err *err;
} planner;

/* ---- the op table that describe() and the kernel body are given */

static const lg_gvalue *value_at(const planner *p, const lg_gnode *n, const char *role) {
    const lg_goperand *o = lg_node_operand(n, role);
    return o == NULL ? NULL : &p->g->values[o->id];
}

static const char *type_name(const planner *p, const lg_goperand *o) {
    return lg_qtype_get(p->g->tensors[o->id].file->type)->name;
}

static void put_attr(lg_builder *b, lg_value *op, const lg_gnode *n, const char *attr,
                     const char *as) {
    const lg_value *v = lg_value_find(n->attrs, attr);
    if (v == NULL) {
        lb_err why = {0};
        lb_err_set(&why, LB_MISSING, "op '%s' has no attribute '%s'", lg_op_get(n->op)->name, attr);
        lg_build_fail(b, &why);
        return;
    }
    lg_build_set(b, op, as, v);
}

static void put_attrs(lg_builder *b, lg_value *op, const lg_gnode *n, const char *const *names) {
    for (; *names != NULL; names++) {
        put_attr(b, op, n, *names, *names);
    }
}

/* Parts of a product: type, rows, factor and bias of w0, w1, ... */
static void put_parts(const planner *p, lg_builder *b, lg_value *op, const lg_gnode *n) {
    lg_value *parts = lg_build_array(b);
    for (uint32_t i = 0;; i++) {
        char w[16];
        char factor[16];
        char bias[16];
        snprintf(w, sizeof w, "w%" PRIu32, i);
        snprintf(factor, sizeof factor, "f%" PRIu32, i);
        snprintf(bias, sizeof bias, "b%" PRIu32, i);
        const lg_goperand *o = lg_node_operand(n, w);
        if (o == NULL) {
            break;
        }
        lg_value *part = lg_build_map(b);
        lg_build_set_string(b, part, "type", type_name(p, o));
        lg_build_set_uint(b, part, "n", p->g->tensors[o->id].n_rows);
        lg_build_set_bool(b, part, "factor", lg_node_operand(n, factor) != NULL);
        lg_build_set_bool(b, part, "bias", lg_node_operand(n, bias) != NULL);
        lg_build_push(b, parts, part);
    }
    lg_build_set(b, op, "parts", parts);
}

static void put_stage(const planner *p, lg_builder *b, lg_value *op, const char *stage) {
    lg_build_set_uint(b, op, "V", p->g->n_vocab);
    lg_build_set_string(b, op, "stage", stage);
}

static const lg_gtensor *tensor_at(const planner *p, const lg_gnode *n, const char *role) {
    const lg_goperand *o = lg_node_operand(n, role);
    return o == NULL ? NULL : &p->g->tensors[o->id];
}

/* Types of the matrices <letter>0 and <letter>1, as a list of { type, factor }: whether <factor>0 and
 * <factor>1 stand beside them; nothing without them. */
static void put_types(const planner *p, lg_builder *b, lg_value *op, const lg_gnode *n,
                      char letter, char factor, const char *as) {
    lg_value *list = lg_build_array(b);
    for (int i = 0; i < 2; i++) {
        const char role[] = {letter, (char)('0' + i), '\0'};
        const char beside[] = {factor, (char)('0' + i), '\0'};
        const lg_goperand *o = lg_node_operand(n, role);
        if (o != NULL) {
            lg_value *part = lg_build_map(b);
            lg_build_set_string(b, part, "type", type_name(p, o));
            lg_build_set_bool(b, part, "factor", lg_node_operand(n, beside) != NULL);
            lg_build_push(b, list, part);
        }
    }
    if (lg_value_count(list) > 0) {
        lg_build_set(b, op, as, list);
    }
}

static void put_outputs(const planner *p, lg_builder *b, lg_value *op, const lg_gnode *n) {
    lg_value *outputs = lg_build_map(b);
    lg_build_set_bool(b, outputs, "f32", value_at(p, n, "y") != NULL);
    lg_build_set_bool(b, outputs, "q8", value_at(p, n, "y_q") != NULL);
    lg_build_set(b, op, "outputs", outputs);
}

/* Experts, picks, and whether a shared expert is one of a row's pairs. */
static void put_mixture(const planner *p, lg_builder *b, lg_value *op, const lg_gnode *n) {
    const lg_value *shared = lg_value_find(n->attrs, "shared");
    put_attr(b, op, n, "n_used", "n_used");
    put_attr(b, op, n, "n_expert", "E");
    if (tensor_at(p, n, "w0") == NULL && shared != NULL && shared->u.boolean) {
        lg_build_set_bool(b, op, "shared", true);
    }
}

static void put_experts(const planner *p, lg_builder *b, lg_value *op, const lg_gnode *n) {
    const lg_gtensor *w = tensor_at(p, n, "w0");
    bool gated = tensor_at(p, n, "w1") != NULL;
    put_mixture(p, b, op, n);
    lg_build_set_string(b, op, "stage", gated ? "gated" : "down");
    lg_build_set_uint(b, op, "K", w->n_cols);
    lg_build_set_uint(b, op, "n", w->n_rows);
    put_types(p, b, op, n, 'w', 'f', "parts");
    put_types(p, b, op, n, 's', 'g', "shared");
    if (gated) {
        put_outputs(p, b, op, n);
    }
}

static void put_router(const planner *p, lg_builder *b, lg_value *op, const lg_gnode *n) {
    static const char *const attrs[] = {"n_used", "gating", "norm", "scale", "parts", NULL};
    put_attrs(b, op, n, attrs);
    lg_build_set_uint(b, op, "E", value_at(p, n, "ids")->below);
    lg_build_set_bool(b, op, "bias", lg_node_operand(n, "bias") != NULL);
}

static void put_dims(const planner *p, lg_builder *b, lg_value *op, const lg_gnode *n) {
    static const char *const rope_kv[] = {"n_head", "n_kv", "n_rot", "pairing",
                                          "cap",    "kv",   "gate",  NULL};
    static const char *const attn[] = {"n_head", "n_kv", "cap",  "scale",
                                       "window", "kv",   "gate", NULL};
    static const char *const table[] = {"freq", "mscale", NULL};
    const lg_gvalue *x = value_at(p, n, value_at(p, n, "x") != NULL ? "x" : "x_q");
    switch (n->op) {
    case LG_OP_EMBED:
        lg_build_set_uint(b, op, "H", value_at(p, n, "y")->width);
        lg_build_set_uint(b, op, "V", p->g->n_vocab);
        lg_build_set_string(b, op, "wtype", type_name(p, lg_node_operand(n, "w")));
        break;
    case LG_OP_ROPE_TABLE:
        put_attrs(b, op, n, table);
        lg_build_set_uint(b, op, "n_rot", value_at(p, n, "y")->width);
        break;
    case LG_OP_NORM_QUANT:
        put_outputs(p, b, op, n);
        lg_build_set_uint(b, op, "H", x->width);
        put_attr(b, op, n, "eps", "eps");
        break;
    case LG_OP_ROUTER_TOPK: put_router(p, b, op, n); break;
    case LG_OP_ROUTER_PARTS:
        lg_build_set_uint(b, op, "K", x->width);
        lg_build_set_uint(b, op, "E", tensor_at(p, n, "w")->n_rows);
        lg_build_set_string(b, op, "wtype", type_name(p, lg_node_operand(n, "w")));
        break;
    case LG_OP_MOE_SORT: put_mixture(p, b, op, n); break;
    case LG_OP_MOE_SUM:
        put_mixture(p, b, op, n);
        lg_build_set_uint(b, op, "H", value_at(p, n, "y")->width);
        break;
    case LG_OP_MATVEC_MOE_GATED:
    case LG_OP_MATVEC_MOE_DOWN:
    case LG_OP_MOE_GATED:
    case LG_OP_MOE_DOWN: put_experts(p, b, op, n); break;
    case LG_OP_QUANT: lg_build_set_uint(b, op, "K", x->width); break;
    case LG_OP_MATMUL:
    case LG_OP_MATMUL_ADD:
        lg_build_set_uint(b, op, "K", x->width);
        put_attr(b, op, n, "epilogue", "epilogue");
        put_parts(p, b, op, n);
        break;
    case LG_OP_ROPE_KV:
        put_attrs(b, op, n, rope_kv);
        put_attr(b, op, n, "head_dim", "hd");
        if (lg_node_operand(n, "q_norm") != NULL) {
            put_attr(b, op, n, "eps", "eps");
        }
        lg_build_set_uint(b, op, "slots", p->plan->limits.slots);
        if (value_at(p, n, "count") != NULL) {
            lg_build_set_uint(b, op, "count", value_at(p, n, "count")->width);
        }
        break;
    case LG_OP_ATTN:
        put_attrs(b, op, n, attn);
        put_attr(b, op, n, "head_dim", "hd");
        if (lg_value_find(n->attrs, "act") != NULL) {
            put_attr(b, op, n, "act", "act");
        }
        if (lg_value_find(n->attrs, "prompt") != NULL) {
            put_attr(b, op, n, "prompt", "prompt");
        }
        lg_build_set_uint(b, op, "slots", p->plan->limits.slots);
        if (value_at(p, n, "part") != NULL) {
            lg_build_set_bool(b, op, "split", true);
        }
        break;
    case LG_OP_SAMPLE_TILES: put_stage(p, b, op, "tiles"); break;
    case LG_OP_SAMPLE_TOTAL: put_stage(p, b, op, "total"); break;
    case LG_OP_SAMPLE_PICK: put_stage(p, b, op, "pick"); break;
    default: break;
    }
}

/* Rows of the op's output: what its grid runs over. */
static const char *rows_of(const planner *p, const lg_gnode *n) {
    const char *const outputs[] = {"y", "y_q", "qkv", "heads", "choices"};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const lg_gvalue *v = value_at(p, n, outputs[i]);
        if (v != NULL) {
            return v->rows == LG_ROWS_L ? "L" : "T";
        }
    }
    return "T";
}

static bool build_op(planner *p, const lg_gnode *n, const char *role, const lg_value **out) {
    lg_builder b;
    lg_build_init(&b, p->arena);
    lg_value *op = lg_build_map(&b);
    lg_build_set_string(&b, op, "family", lg_op_get(n->op)->family);
    lg_build_set_string(&b, op, "rows", rows_of(p, n));
    if (role != NULL) {
        lg_build_set_string(&b, op, "role", role);
    }
    put_dims(p, &b, op, n);
    const lg_value *hw = lg_hw_value(p->plan->hw, &b);
    lg_build_set(&b, op, "hw", hw);
    *out = op;
    return lg_build_done(&b, p->err);
}

/* ---- launches */

static bool is_base(const lg_kernel *k, const char *param) {
    for (uint32_t i = 0; i < k->n_axes; i++) {
        if (k->axes[i].base != NULL && strcmp(k->axes[i].base, param) == 0) {
            return true;
        }
    }
    return false;
}

/* Static tiling: an axis that grows on y or z gets at most as many positions a launch as the row
 * allows there. */
static void cut_axes(const planner *p, lg_kernel *k) {
    uint64_t limit[3];
    lg_hw_grid_max(p->plan->hw, limit);
    for (uint32_t i = 0; i < k->n_axes; i++) {
        if (k->axes[i].base != NULL) {
            int d = k->axes[i].on[0] - 'x';
            k->per_launch[d] = limit[d];
        }
    }
}

/* The kernel that an equal op has already got. */
static bool find_op(const planner *p, const lg_value *op, uint32_t *out) {
    for (uint32_t i = 0; i < p->plan->n_kernels; i++) {
        if (lg_value_equal(p->plan->kernels[i].op, op)) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* Symbols carry every literal that changes the arithmetic, so ops that differ have kernels that do:
 * two ops with one symbol would silently run the first one's text. */
static bool name_is_new(const planner *p, const char *name, lb_err *err) {
    for (uint32_t i = 0; i < p->plan->n_kernels; i++) {
        if (strcmp(p->plan->kernels[i].name, name) == 0) {
            return lb_err_set(err, LB_DUPLICATE, "two different ops give one kernel name, '%s'",
                              name);
        }
    }
    return true;
}

/* What describe() says of an op. */
static bool describe(planner *p, const lg_gnode *n, const lg_value *op, lg_kernel *out) {
    lg_value *descriptor = NULL;
    lg_kernel k = {.family = lg_op_get(n->op)->family};
    const char *path =
        lb_format(p->arena, p->err, "kernel/%s.%s.lua", k.family, lg_hw_language(p->plan->hw));
    if (path == NULL ||
        !lg_host_call(p->host, path, "describe", op, p->arena, &descriptor, p->err)) {
        return false;
    }
    lg_at at = lg_at_root(path, descriptor);
    k.op = op;
    k.descriptor = descriptor;
    if (!lg_descriptor_read(&at, p->arena, &k, p->err)) {
        return false;
    }
    cut_axes(p, &k);
    *out = k;
    return true;
}

static bool add_kernel(planner *p, const lg_kernel *k, uint32_t *out) {
    if (!name_is_new(p, k->name, p->err)) {
        return false;
    }
    *out = p->plan->n_kernels++;
    p->plan->kernels[*out] = *k;
    p->plan->kernels[*out].few = *out;
    return true;
}

static bool same_params(const lg_kernel *a, const lg_kernel *b, lb_err *err) {
    bool same = a->n_params == b->n_params;
    for (uint32_t i = 0; same && i < a->n_params; i++) {
        same = strcmp(a->params[i].name, b->params[i].name) == 0 &&
               strcmp(a->params[i].ctype, b->params[i].ctype) == 0;
    }
    return same || lb_err_set(err, LB_BAD_SHAPE,
                              "kernels '%s' and '%s' take each other's place with other parameters",
                              a->name, b->name);
}

/* A family may have a text of its own for few rows: it answers role "decode" with another name. */
static bool add_few(planner *p, const lg_gnode *n, uint32_t kernel) {
    const lg_value *op = NULL;
    lg_kernel k;
    if (!build_op(p, n, "decode", &op) || !describe(p, n, op, &k)) {
        return false;
    }
    if (strcmp(k.name, p->plan->kernels[kernel].name) == 0) {
        return true;
    }
    return same_params(&p->plan->kernels[kernel], &k, p->err) &&
           add_kernel(p, &k, &p->plan->kernels[kernel].few);
}

/* The kernel of node n: that of an equal op before, or a new one from describe(). */
static bool kernel_of(planner *p, const lg_gnode *n, uint32_t *out) {
    const lg_value *op = NULL;
    lg_kernel k;
    bool gpu = p->plan->hw->gpu;
    if (!build_op(p, n, gpu ? "prefill" : NULL, &op)) {
        return false;
    }
    if (find_op(p, op, out)) {
        return true;
    }
    return describe(p, n, op, &k) && add_kernel(p, &k, out) && (!gpu || add_few(p, n, *out));
}

/* Every operand of the node serves exactly one parameter: nothing is left out, nothing is read
 * twice. */
static bool all_bound(planner *p, const lg_gnode *n, const lg_kernel *k) {
    for (uint32_t i = 0; i < n->n_operands; i++) {
        uint32_t times = 0;
        for (uint32_t a = 0; a < k->n_params; a++) {
            times += strcmp(k->params[a].name, n->operands[i].role) == 0;
        }
        if (times != 1) {
            return lb_err_set(p->err, LB_MISSING,
                              "op '%s' has an operand '%s', kernel '%s' %" PRIu32
                              " parameters for it",
                              lg_op_get(n->op)->name, n->operands[i].role, k->name, times);
        }
    }
    return true;
}

static bool bind_args(planner *p, const lg_gnode *n, const lg_kernel *k, lg_launch *l) {
    const lg_goperand **args = lb_alloc_n(p->arena, k->n_params, sizeof *args, p->err);
    if (args == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < k->n_params; i++) {
        if (strcmp(k->params[i].name, "step") == 0 || is_base(k, k->params[i].name)) {
            continue;
        }
        args[i] = lg_node_operand(n, k->params[i].name);
        if (args[i] == NULL) {
            return lb_err_set(p->err, LB_MISSING,
                              "kernel '%s' has a parameter '%s', op '%s' no such operand", k->name,
                              k->params[i].name, lg_op_get(n->op)->name);
        }
    }
    l->args = args;
    l->n_args = k->n_params;
    return all_bound(p, n, k);
}

/* What the launch is called in messages and comments: its first weight's tensor, else its op. */
static const char *label_of(planner *p, const lg_gnode *n) {
    for (uint32_t i = 0; i < n->n_operands; i++) {
        if (n->operands[i].access == LG_TENSOR) {
            return lb_format(p->arena, p->err, "%s (%s)", lg_op_get(n->op)->name,
                             p->g->tensors[n->operands[i].id].name);
        }
    }
    if (n->layer < 0) {
        return lg_op_get(n->op)->name;
    }
    return lb_format(p->arena, p->err, "%s (layer %" PRId32 ")", lg_op_get(n->op)->name, n->layer);
}

static bool plan_node(planner *p, uint32_t i) {
    const lg_gnode *n = &p->g->nodes[i];
    lg_launch *l = &p->plan->launches[p->plan->n_launches++];
    l->node = i;
    l->layer = n->layer;
    l->when = n->when;
    l->label = label_of(p, n);
    return l->label != NULL &&
           (kernel_of(p, n, &l->kernel) || lb_err_prefix(p->err, "%s", l->label)) &&
           bind_args(p, n, &p->plan->kernels[l->kernel], l);
}

/* Every weight's type is one that kernels exist for. */
static bool types_supported(const lg_graph *g, lb_err *err) {
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        if (!lg_qtype_check_computes(g->tensors[i].file->type, err)) {
            return lb_err_prefix(err, "tensor '%s'", g->tensors[i].name);
        }
    }
    return true;
}

bool lg_plan_launches(const lg_graph *graph, const lg_hw_row *hw, const lg_limits *limits,
                      lg_host *host, lb_arena *arena, lg_plan **out, lb_err *err) {
    lg_plan *plan = lb_alloc(arena, sizeof *plan, err);
    if (plan == NULL || !types_supported(graph, err)) {
        return false;
    }
    plan->graph = graph;
    plan->hw = hw;
    plan->limits = *limits;
    plan->kernels = lb_alloc_n(arena, 2 * (uint64_t)graph->n_nodes, sizeof *plan->kernels, err);
    plan->launches = lb_alloc_n(arena, graph->n_nodes, sizeof *plan->launches, err);
    if (plan->kernels == NULL || plan->launches == NULL) {
        return false;
    }
    planner p = {plan, graph, host, arena, err};
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        if (!plan_node(&p, i)) {
            return false;
        }
    }
    *out = plan;
    return true;
}

bool lg_limits_make(uint64_t ctx, uint64_t slots, uint64_t chunk, lg_limits *out, lb_err *err) {
    const struct {
        const char *name;
        uint64_t value, max;
    } checks[] = {
        {"ctx", ctx, LG_CTX_MAX}, {"slots", slots, LG_SLOTS_MAX}, {"chunk", chunk, LG_CHUNK_MAX}};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        if (checks[i].value < 1 || checks[i].value > checks[i].max) {
            return lb_err_set(err, LB_BAD_VALUE, "--%s is %" PRIu64 "; it may be 1 to %" PRIu64,
                              checks[i].name, checks[i].value, checks[i].max);
        }
    }
    if (chunk > ctx) {
        return lb_err_set(err, LB_BAD_VALUE,
                          "--chunk is %" PRIu64 ", more than --ctx %" PRIu64
                          ": no step can be longer than a context",
                          chunk, ctx);
    }
    uint64_t t_max = chunk > slots ? chunk : slots;
    uint64_t rows = slots > LG_LOGIT_ROWS ? slots : LG_LOGIT_ROWS;
    *out = (lg_limits){ctx, slots, chunk, t_max, rows < t_max ? rows : t_max};
    return true;
}
