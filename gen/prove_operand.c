/* prove_operand.c -- facts of arguments: what a launch hands to its kernel is what the kernel
 * declares, in kind, extent and place. */
#include <string.h>

#include "base/num.h"
#include "prove_parts.h"

/* ---- taking a launch in hand */

static const char *ctype_of(lg_elem e) {
    static const char *const names[] = {
        "float", "int8_t", "int16_t", "uint16_t", "int32_t", "uint64_t"}; /* as lg_elem */
    return names[e];
}

static bool shape_of(lg_prover *p, const lg_goperand *arg, lg_shape *s) {
    const lg_graph *g = p->plan->graph;
    uint32_t n = arg->access == LG_TENSOR ? g->n_tensors : g->n_values;
    if (arg->id >= n) {
        return lg_prove_fail(p, "number of the argument", arg->role, arg->id, n);
    }
    if (arg->access == LG_TENSOR) {
        bool plain = p->plan->weights[arg->id].layout == NULL;
        *s = (lg_shape){.name = g->tensors[arg->id].name, .ctype = plain ? "float" : "uint8_t",
                        .sized = true, .rows = LG_ROWS_STATE, .elem_bytes = plain ? 4 : 1};
        return lg_prove_weight_bytes(p, arg->id, &s->bytes);
    }
    const lg_gvalue *v = &g->values[arg->id];
    *s = (lg_shape){.name = v->name, .ctype = ctype_of(v->elem), .sized = v->rows == LG_ROWS_STATE,
                    .rows = v->rows, .width = v->width, .elem_bytes = lg_elem_bytes(v->elem),
                    .bytes = v->state_bytes, .extra = v->extra, .below = v->below};
    return s->sized == (arg->access == LG_STATE) ||
           lg_prove_fail_text(p, "kind", v->name, LG_ROWS_NAMES[v->rows],
                              "a state where one is kept");
}

static const lg_operand *operand_of(const lg_kernel *k, const char *param, uint32_t *times) {
    const lg_operand *found = NULL;
    *times = 0;
    for (uint32_t i = 0; i < k->n_operands; i++) {
        if (strcmp(k->operands[i].param, param) == 0) {
            found = &k->operands[i];
            (*times)++;
        }
    }
    return found;
}

static const lg_cover *cover_of(const lg_kernel *k, const char *param) {
    for (uint32_t i = 0; i < k->n_covers; i++) {
        if (strcmp(k->covers[i].param, param) == 0) {
            return &k->covers[i];
        }
    }
    return NULL;
}

static bool access_agrees(const lg_operand *o, lg_access access) {
    switch (access) {
    case LG_TENSOR:
    case LG_READ: return o->access == LG_READ;
    case LG_WRITE: return o->access == LG_WRITE;
    case LG_BOTH: return o->access == LG_BOTH;
    case LG_STATE: return o->access == LG_READ || o->access == LG_WRITE || o->access == LG_BOTH;
    }
    return false;
}

/* "const float *": the element's type, const exactly where it is only read. */
static bool ctype_agrees(lg_prover *p, const lg_param *param, const lg_bound *b) {
    const char *c = param->ctype;
    bool is_const = strncmp(c, "const ", 6) == 0;
    const char *base = is_const ? c + 6 : c;
    size_t n = strlen(b->shape.ctype);
    if (is_const != (b->operand->access == LG_READ)) {
        return lg_prove_fail_text(p, "C type", param->name, c,
                                  "const where it is read, and only there");
    }
    return (strncmp(base, b->shape.ctype, n) == 0 && strcmp(base + n, " *") == 0) ||
           lg_prove_fail_text(p, "C type", param->name, c, b->shape.ctype);
}

/* A kernel reads no further back in a state than the plan keeps for it, and no less: rings are as
 * long as that asks for. */
static bool window_agrees(lg_prover *p, const lg_bound *b) {
    const lg_operand *o = b->operand;
    const bool reads = b->arg->access == LG_STATE && o->access != LG_WRITE;
    if (o->has_window != reads) {
        return lg_prove_fail(p, "windows declared", b->param, o->has_window, reads);
    }
    const uint64_t window = reads ? p->plan->graph->values[b->arg->id].window : 0;
    return !reads || o->window == window || lg_prove_fail(p, "window", b->param, o->window, window);
}

/* Whether some axis that is cut takes its first position through this parameter. */
static bool is_base(const lg_kernel *k, const char *param) {
    for (uint32_t i = 0; i < k->n_axes; i++) {
        if (k->axes[i].base != NULL && strcmp(k->axes[i].base, param) == 0) {
            return true;
        }
    }
    return false;
}

/* The C type of a parameter that is no operand: the step or a base; NULL for operands. */
static const char *other_ctype(const lg_kernel *k, const char *param) {
    if (strcmp(param, "step") == 0) {
        return "const rt_step *";
    }
    return is_base(k, param) ? "uint32_t" : NULL;
}

/* Parameter i with its argument, the one operand that declares it, and the cover of an output. */
static bool bind_param(lg_prover *p, uint32_t i) {
    const lg_param *param = &p->kernel->params[i];
    const char *other = other_ctype(p->kernel, param->name);
    lg_bound *b = &p->bound[i];
    uint32_t times = 0;
    *b = (lg_bound){.param = param->name, .arg = p->plan->launches[p->launch].args[i]};
    b->operand = operand_of(p->kernel, param->name, &times);
    if (times != (other == NULL) || (b->arg == NULL) != (other != NULL)) {
        return lg_prove_fail(p, "operands and arguments", param->name, times + (b->arg != NULL),
                             other != NULL ? 0 : 2);
    }
    if (other != NULL) {
        return strcmp(param->ctype, other) == 0 ||
               lg_prove_fail_text(p, "C type", param->name, param->ctype, other);
    }
    if (!access_agrees(b->operand, b->arg->access)) {
        return lg_prove_fail_text(p, "access declared", param->name,
                                  LG_ACCESS_NAMES[b->operand->access],
                                  LG_ACCESS_NAMES[b->arg->access]);
    }
    if (!shape_of(p, b->arg, &b->shape) || !ctype_agrees(p, param, b) || !window_agrees(p, b)) {
        return false;
    }
    if (b->arg->access == LG_WRITE || b->arg->access == LG_BOTH) {
        b->cover = cover_of(p->kernel, param->name);
        return b->cover != NULL || lg_prove_fail(p, "covers", param->name, 0, 1);
    }
    return true;
}

/* A value stands behind one parameter only: no kernel sees its output through a second name. */
static bool arguments_differ(lg_prover *p) {
    for (uint32_t i = 0; i < p->n_bound; i++) {
        const lg_goperand *a = p->bound[i].arg;
        for (uint32_t j = 0; a != NULL && a->access != LG_TENSOR && j < i; j++) {
            const lg_goperand *b = p->bound[j].arg;
            if (b != NULL && b->access != LG_TENSOR && b->id == a->id) {
                return lg_prove_fail(p, "arguments for one value", p->bound[i].param, 2, 1);
            }
        }
    }
    return true;
}

bool lg_prove_take(lg_prover *p, uint32_t i, uint32_t kernel) {
    p->launch = i;
    p->kernel_id = kernel;
    p->kernel = &p->plan->kernels[kernel];
    p->n_bound = p->kernel->n_params;
    if (p->n_bound > LG_PARAMS_MAX) {
        return lg_prove_fail(p, "parameters", p->kernel->name, p->n_bound, LG_PARAMS_MAX);
    }
    if (p->plan->launches[i].n_args != p->n_bound) {
        return lg_prove_fail(p, "arguments", p->kernel->name, p->plan->launches[i].n_args,
                             p->n_bound);
    }
    uint32_t n_operands = 0;
    uint32_t n_covers = 0;
    uint32_t n_steps = 0;
    for (uint32_t a = 0; a < p->n_bound; a++) {
        if (!bind_param(p, a)) {
            return false;
        }
        n_operands += p->bound[a].operand != NULL;
        n_covers += p->bound[a].cover != NULL;
        n_steps += strcmp(p->bound[a].param, "step") == 0;
    }
    if (p->kernel->n_covers != n_covers) {
        return lg_prove_fail(p, "covers", p->kernel->name, p->kernel->n_covers, n_covers);
    }
    if (n_steps != 1 || p->kernel->n_operands != n_operands) {
        return lg_prove_fail(p, "operands", p->kernel->name, p->kernel->n_operands, n_operands);
    }
    return arguments_differ(p);
}

/* ---- extent */

bool lg_prove_there(lg_prover *p, const lg_bound *b, uint64_t *out) {
    const lg_shape *s = &b->shape;
    uint64_t rows = s->rows == LG_ROWS_L ? p->L : p->T;
    *out = s->bytes;
    return s->sized ||
           (lb_mul(rows, s->width, out) && lb_add(*out, s->extra, out) &&
            lb_mul(*out, s->elem_bytes, out)) ||
           lg_prove_fail(p, "bytes", s->name, UINT64_MAX, UINT64_MAX);
}

/* The least that the kernel must declare: all of a weight, a state or what its ctas share, so that
 * none of it is left out or laid out otherwise; of an output up to where its cover ends; of an input some of its last row.
 */
static bool least_bytes(lg_prover *p, const lg_bound *b, uint64_t there, uint64_t *out) {
    if (b->shape.sized || (b->cover != NULL && b->cover->own.splits != 0)) {
        *out = there;
        return true;
    }
    if (b->cover != NULL) {
        return b->cover->scattered != NULL ? lg_prove_scattered(p, b, out)
                                           : lg_prove_cover_end(p, b, out);
    }
    *out = b->shape.elem_bytes;
    if (b->shape.extra == 0) { /* else data say how much there is: prove_sorted.c */
        *out += there - b->shape.width * b->shape.elem_bytes;
    }
    return true;
}

static bool index_fits(lg_prover *p, const lg_bound *b, uint64_t bytes, bool record) {
    const lg_operand *o = b->operand;
    uint64_t index = 0;
    uint64_t most = o->index_bits == 32 ? INT32_MAX : INT64_MAX;
    if (!lg_prove_eval(p, o->max_index, "largest index", b->param, &index)) {
        return false;
    }
    if (o->index_bits != 32 && o->index_bits != 64) {
        return lg_prove_fail(p, "index bits", b->param, o->index_bits, 64);
    }
    if (index != bytes / b->shape.elem_bytes - 1) {
        return lg_prove_fail(p, "largest index", b->param, index, bytes / b->shape.elem_bytes - 1);
    }
    if (index > most) {
        return lg_prove_fail(p, "largest index", b->param, index, most);
    }
    return !record || lg_prove_fact(p, "index", b->param, index, most);
}

bool lg_prove_operand(lg_prover *p, const lg_bound *b, bool record) {
    uint64_t bytes = 0;
    uint64_t there = 0;
    uint64_t least = 0;
    if (!lg_prove_there(p, b, &there) || there == 0 || !least_bytes(p, b, there, &least) ||
        !lg_prove_eval(p, b->operand->bytes, "bytes touched", b->param, &bytes)) {
        return there > 0 ? false : lg_prove_fail(p, "bytes there", b->param, 0, 1);
    }
    if (bytes > there) {
        return lg_prove_fail(p, "bytes touched", b->param, bytes, there);
    }
    if (bytes < least || bytes % b->shape.elem_bytes != 0) {
        return lg_prove_fail(p, "bytes left out: touched", b->param, bytes, least);
    }
    return index_fits(p, b, bytes, record) &&
           (!record || lg_prove_fact(p, "range", b->param, bytes, there));
}

/* ---- place */

/* Arenas begin at multiples of LG_ALIGN_BYTES, so offsets tell. */
bool lg_prove_alignment(lg_prover *p) {
    for (uint32_t i = 0; i < p->n_bound; i++) {
        const lg_bound *b = &p->bound[i];
        if (b->arg == NULL) {
            continue;
        }
        uint64_t offset = b->arg->access == LG_TENSOR ? p->plan->weights[b->arg->id].offset
                                                      : p->plan->places[b->arg->id].offset;
        uint64_t align = b->operand->align;
        if (!lb_is_pow2(align) || align > LG_ALIGN_BYTES || align < b->shape.elem_bytes) {
            return lg_prove_fail(p, "alignment", b->param, align, LG_ALIGN_BYTES);
        }
        if (offset % align != 0) {
            return lg_prove_fail(p, "offset modulo alignment", b->param, offset % align, 0);
        }
        if (!lg_prove_fact(p, "align", b->param, align, LG_ALIGN_BYTES)) {
            return false;
        }
    }
    return true;
}
