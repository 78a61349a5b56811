/* emit_value.c -- see emit_value.h. */
#include "emit_value.h"

#include "emit_parts.h"

#include <inttypes.h>
#include <string.h>

#include "at.h"
#include "base/num.h"

enum { KV_BLOCK = 16 }; /* positions that lie together in a cache: templates/kv/f16.lua */

typedef struct maker {
    const lg_plan *plan;
    const lg_emit_options *o;
    const char *image_digest;
    lg_builder b;
    lb_arena *arena;
} maker;

/* ---- kernels and launches */

/* The grid as text for people and as C in T and L; the other names are numbers of this program. */
static void grid_text(maker *m, const lg_kernel *k, lg_value *out) {
    const lg_limits *l = &m->plan->limits;
    const lg_expr_var known[] = {{"ctx", l->ctx}, {"slots", l->slots}, {"chunk", l->chunk}};
    lb_err why = {0};
    lb_text human;
    lb_text c;
    lb_text_init(&human, m->arena);
    lb_text_init(&c, m->arena);
    bool uses_T = false;
    bool uses_L = false;
    for (int d = 0; d < 3; d++) {
        const lg_expr *folded = NULL;
        lb_text_add(&human, d == 0 ? "" : " x ");
        lg_expr_text(k->grid[d], &human);
        if (!lg_expr_fold(k->grid[d], known, sizeof known / sizeof *known, m->arena, &folded,
                          &why)) {
            lg_build_fail(&m->b, &why);
            return;
        }
        if (d > 0 && folded->kind == LG_EXPR_INT && folded->value == 1) {
            continue;
        }
        lb_text_add(&c, d == 0 ? "(" : " * (");
        lg_expr_c(folded, NULL, NULL, 0, &c);
        lb_text_add(&c, ")");
        uses_T = uses_T || lg_expr_uses(k->grid[d], "T");
        uses_L = uses_L || lg_expr_uses(k->grid[d], "L");
    }
    if (!lb_text_done(&human, &why) || !lb_text_done(&c, &why)) {
        lg_build_fail(&m->b, &why);
        return;
    }
    lg_build_set_string(&m->b, out, "grid_text", human.data);
    lg_build_set_string(&m->b, out, "grid_c", c.data);
    lg_build_set_bool(&m->b, out, "uses_T", uses_T);
    lg_build_set_bool(&m->b, out, "uses_L", uses_L);
}

static const lg_value *kernels(maker *m) {
    lg_value *list = lg_build_array(&m->b);
    for (uint32_t i = 0; i < m->plan->n_kernels; i++) {
        const lg_kernel *k = &m->plan->kernels[i];
        lg_value *v = lg_build_map(&m->b);
        lg_build_set_string(&m->b, v, "name", k->name);
        lg_build_set_string(&m->b, v, "family", k->family);
        grid_text(m, k, v);
        lg_build_set(&m->b, v, "params", lg_value_find(k->descriptor, "params"));
        lg_build_set(&m->b, v, "op", k->op);
        if (m->plan->hw->gpu) {
            lg_emit_gpu_kernel(&m->b, m->plan, i, m->arena, v);
        }
        lg_build_push(&m->b, list, v);
    }
    return list;
}

/* A C identifier for an argument: the tensor's name without its layer, or the value's. */
static const char *identifier(maker *m, const char *name) {
    if (strncmp(name, "blk.", 4) == 0 || strncmp(name, "kv.", 3) == 0) {
        const char *p = strchr(name, '.') + 1;
        const char *rest = strchr(p, '.');
        name = rest != NULL && name[0] == 'b' ? rest + 1 : name;
        if (rest != NULL && name[0] == 'k' && name[1] == 'v') {
            name = strcmp(rest, ".k") == 0 ? "k_cache" : "v_cache";
        }
    }
    char *s = lb_strndup(m->arena, name, strlen(name), &m->b.err);
    if (s == NULL) {
        m->b.failed = true;
        return "";
    }
    for (char *p = s; *p != '\0'; p++) {
        bool plain =
            (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9');
        *p = plain ? *p : '_';
    }
    return s;
}

static const lg_value *argument(maker *m, const lg_kernel *k, uint32_t param,
                                const lg_goperand *arg) {
    const lg_graph *g = m->plan->graph;
    bool tensor = arg->access == LG_TENSOR;
    lg_arena_kind arena = tensor ? LG_ARENA_WEIGHTS : m->plan->places[arg->id].arena;
    uint64_t offset = tensor ? m->plan->weights[arg->id].offset : m->plan->places[arg->id].offset;
    lg_value *v = lg_build_map(&m->b);
    lg_build_set_string(&m->b, v, "param", k->params[param].name);
    lg_build_set_string(&m->b, v, "ctype", k->params[param].ctype);
    lg_build_set_string(&m->b, v, "arena", LG_ARENA_NAMES[arena]);
    lg_build_set_uint(&m->b, v, "offset", offset);
    lg_build_set_string(&m->b, v, "what",
                        identifier(m, tensor ? g->tensors[arg->id].name : g->values[arg->id].name));
    return v;
}

static const lg_value *launches(maker *m) {
    lg_value *list = lg_build_array(&m->b);
    for (uint32_t i = 0; i < m->plan->n_launches; i++) {
        const lg_launch *l = &m->plan->launches[i];
        const lg_kernel *k = &m->plan->kernels[l->kernel];
        lg_value *v = lg_build_map(&m->b);
        lg_value *args = lg_build_array(&m->b);
        for (uint32_t a = 0; a < k->n_params; a++) {
            if (l->args[a] != NULL) {
                lg_build_push(&m->b, args, argument(m, k, a, l->args[a]));
            }
        }
        lg_build_set_string(&m->b, v, "kernel", k->name);
        lg_build_set_string(&m->b, v, "family", k->family);
        lg_build_set_int(&m->b, v, "layer", l->layer);
        lg_build_set_string(&m->b, v, "when", LG_WHEN_NAMES[l->when]);
        lg_build_set_string(&m->b, v, "label", l->label);
        lg_build_set(&m->b, v, "args", args);
        lg_build_push(&m->b, list, v);
    }
    return list;
}

/* Where each layer leaves the hidden states that the next one begins with: the last floats of the
 * model's width that one of its launches writes. */
static const lg_value *hidden(maker *m) {
    const lg_plan *p = m->plan;
    lg_value *list = lg_build_array(&m->b);
    uint64_t found = 0;
    for (uint64_t layer = 0; layer < p->graph->n_layers; layer++) {
        uint64_t before = found;
        for (uint32_t i = p->n_launches; i > 0 && found == before; i--) {
            const lg_launch *l = &p->launches[i - 1];
            const lg_goperand *y = lg_node_operand(&p->graph->nodes[l->node], "y");
            if (l->layer != (int64_t)layer || y == NULL) {
                continue;
            }
            const lg_gvalue *v = &p->graph->values[y->id];
            if (v->rows == LG_ROWS_T && v->elem == LG_ELEM_F32 && v->width == p->graph->n_embd) {
                lg_build_push(&m->b, list, lg_build_uint(&m->b, p->places[y->id].offset));
                found++;
            }
        }
    }
    if (found != p->graph->n_layers) {
        lb_err why = {0};
        lb_err_set(&why, LB_UNSUPPORTED, "a layer writes no rows of the model's width");
        lg_build_fail(&m->b, &why);
    }
    return list;
}

/* ---- weights */

static const lg_value *layouts(maker *m) {
    lg_value *list = lg_build_array(&m->b);
    const lb_layout *seen[LG_QTYPE_LIMIT] = {0};
    for (uint32_t i = 0; i < m->plan->graph->n_tensors; i++) {
        const lb_layout *l = m->plan->weights[i].layout;
        lg_qtype type = m->plan->graph->tensors[i].file->type;
        if (l == NULL || seen[type] != NULL) {
            continue;
        }
        seen[type] = l;
        lg_value *v = lg_build_map(&m->b);
        lg_value *planes = lg_build_array(&m->b);
        for (uint32_t p = 0; p < l->n_planes; p++) {
            lg_value *plane = lg_build_map(&m->b);
            lg_build_set_uint(&m->b, plane, "src_offset", l->planes[p].src_offset);
            lg_build_set_uint(&m->b, plane, "n_bytes", l->planes[p].n_bytes);
            lg_build_set_uint(&m->b, plane, "word_bytes", l->planes[p].word_bytes);
            lg_build_set_uint(&m->b, plane, "check", l->planes[p].check);
            lg_build_push(&m->b, planes, plane);
        }
        lg_build_set_string(&m->b, v, "type", l->type);
        lg_build_set_uint(&m->b, v, "qblock_elems", l->qblock_elems);
        lg_build_set_uint(&m->b, v, "qblock_bytes", l->qblock_bytes);
        lg_build_set(&m->b, v, "planes", planes);
        lg_build_push(&m->b, list, v);
    }
    return list;
}

/* Linked weights come from file 0, 1, ... of the model; a packed image is file 0 and sources are
 * informative. */
static const lg_value *weights(maker *m) {
    lg_value *list = lg_build_array(&m->b);
    for (uint32_t i = 0; i < m->plan->graph->n_tensors; i++) {
        const lg_gtensor *t = &m->plan->graph->tensors[i];
        const lg_weight *w = &m->plan->weights[i];
        lg_value *v = lg_build_map(&m->b);
        lg_build_set_string(&m->b, v, "name", t->name);
        lg_build_set(&m->b, v, "layout",
                     w->layout == NULL ? lg_build_bool(&m->b, false)
                                       : lg_build_string(&m->b, w->layout->type));
        lg_build_set_uint(&m->b, v, "n_rows", t->n_rows);
        lg_build_set_uint(&m->b, v, "n_cols", t->n_cols);
        lg_build_set_uint(&m->b, v, "n_mats", t->n_mats);
        lg_build_set_uint(&m->b, v, "offset", w->offset);
        lg_build_set_uint(&m->b, v, "bytes", w->bytes);
        lg_build_set_uint(&m->b, v, "file", m->o->weights_linked ? t->file->file_index : 0);
        lg_build_set_uint(&m->b, v, "file_offset", t->file->offset);
        lg_build_set_uint(&m->b, v, "file_bytes", t->file->n_bytes);
        lg_build_push(&m->b, list, v);
    }
    return list;
}

static void push_file(maker *m, lg_value *list, const char *name, uint64_t n_bytes,
                      const char *digest) {
    lg_value *v = lg_build_map(&m->b);
    lg_build_set_string(&m->b, v, "name", name);
    lg_build_set_uint(&m->b, v, "n_bytes", n_bytes);
    lg_build_set(&m->b, v, "sha256",
                 digest == NULL ? lg_build_bool(&m->b, false) : lg_build_string(&m->b, digest));
    lg_build_push(&m->b, list, v);
}

static const lg_value *files(maker *m) {
    lg_value *list = lg_build_array(&m->b);
    if (!m->o->weights_linked) {
        push_file(m, list, "weights.bin", m->plan->arena_bytes[LG_ARENA_WEIGHTS], m->image_digest);
        return list;
    }
    for (uint32_t i = 0; i < lg_gguf_n_files(m->o->file); i++) {
        const lg_gguf_file *f = lg_gguf_file_at(m->o->file, i);
        push_file(m, list, f->path, f->n_bytes, NULL);
    }
    return list;
}

/* What tells the linked files from others of their size: samples of all weights. */
static void put_samples(maker *m, lg_value *root) {
    uint8_t chain[LB_DIGEST_BYTES] = {0};
    char hex[LB_DIGEST_HEX_BYTES];
    lb_err why = {0};
    for (uint32_t i = 0; i < m->plan->graph->n_tensors; i++) {
        const lg_gguf_tensor *t = m->plan->graph->tensors[i].file;
        if (!lb_digest_sample(chain, t->data, t->n_bytes, &why)) {
            lg_build_fail(&m->b, &why);
            return;
        }
    }
    lb_digest_hex(chain, hex);
    lg_build_set_string(&m->b, root, "linked_sha256", hex);
}

/* ---- numbers */

static uint64_t n_params(const lg_graph *g) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        n += g->tensors[i].file->n_elems;
    }
    return n;
}

static const lg_value *dims(maker *m) {
    const lg_graph *g = m->plan->graph;
    lg_value *v = lg_build_map(&m->b);
    lg_build_set_uint(&m->b, v, "n_vocab", g->n_vocab);
    lg_build_set_uint(&m->b, v, "n_embd", g->n_embd);
    lg_build_set_uint(&m->b, v, "n_layers", g->n_layers);
    lg_build_set_uint(&m->b, v, "n_params", n_params(g));
    return v;
}

/* Heads of a state: what the first launch that uses it says. 0: none does. */
static uint64_t heads_of(const lg_graph *g, uint32_t state) {
    uint64_t heads = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const lg_gnode *n = &g->nodes[i];
        const lg_at at = lg_at_root("attrs", n->attrs);
        for (uint32_t o = 0; o < n->n_operands; o++) {
            const lg_goperand *p = &n->operands[o];
            if (p->access != LG_TENSOR && p->id == state && lg_at_has(&at, "n_kv") &&
                lg_at_uint(&at, "n_kv", &heads, NULL)) {
                return heads;
            }
        }
    }
    return 0;
}

static void refuse_cache(maker *m, const lg_gvalue *v) {
    lb_err why = {0};
    lb_err_set(&why, LB_UNSUPPORTED, "cache %s: its bytes are no whole blocks of %d positions",
               v->name, KV_BLOCK);
    lg_build_fail(&m->b, &why);
}

/* Where each cache lies and how: rt_cache of model_abi.h. */
static const lg_value *caches(maker *m) {
    const lg_graph *g = m->plan->graph;
    lg_value *list = lg_build_array(&m->b);
    for (uint32_t i = 0; i < g->n_values; i++) {
        const lg_gvalue *v = &g->values[i];
        if (v->rows != LG_ROWS_STATE) {
            continue;
        }
        uint64_t heads = heads_of(g, i);
        uint64_t blocks = 0; /* of all slots and heads */
        if (heads == 0 || v->positions % KV_BLOCK != 0 || !lb_mul(v->slots, heads, &blocks) ||
            !lb_mul(blocks, v->positions / KV_BLOCK, &blocks) || v->state_bytes % blocks != 0) {
            refuse_cache(m, v);
            continue;
        }
        lg_value *c = lg_build_map(&m->b);
        lg_build_set_string(&m->b, c, "name", v->name);
        lg_build_set_uint(&m->b, c, "offset", m->plan->places[i].offset);
        lg_build_set_uint(&m->b, c, "heads", heads);
        lg_build_set_uint(&m->b, c, "positions", v->positions);
        lg_build_set_uint(&m->b, c, "window", v->window);
        lg_build_set_uint(&m->b, c, "block_bytes", v->state_bytes / blocks);
        lg_build_push(&m->b, list, c);
    }
    return list;
}

static const lg_value *limits(maker *m) {
    const lg_limits *l = &m->plan->limits;
    uint64_t ring = 0;
    uint64_t spare = 0;
    lg_plan_ring(m->plan, &ring, &spare);
    lg_value *v = lg_build_map(&m->b);
    lg_build_set_uint(&m->b, v, "ctx", l->ctx);
    lg_build_set_uint(&m->b, v, "slots", l->slots);
    lg_build_set_uint(&m->b, v, "chunk", l->chunk);
    lg_build_set_string(&m->b, v, "chunk_why", m->o->chunk_why);
    lg_build_set_uint(&m->b, v, "t_max", l->t_max);
    lg_build_set_uint(&m->b, v, "logit_rows_max", l->logit_rows_max);
    lg_build_set_uint(&m->b, v, "ring", ring);
    lg_build_set_uint(&m->b, v, "ring_spare", spare);
    return v;
}

static const lg_value *arenas(maker *m) {
    lg_value *v = lg_build_map(&m->b);
    for (int i = 0; i < LG_N_ARENAS; i++) {
        lg_build_set_uint(&m->b, v, LG_ARENA_NAMES[i], m->plan->arena_bytes[i]);
    }
    return v;
}

/* Sampler defaults: what the recipe found. */
static const lg_value *sampling(maker *m) {
    const lg_sampling *s = &m->o->recipe->sampling;
    lg_value *v = lg_build_map(&m->b);
    lg_build_set_double(&m->b, v, "temperature", s->temperature);
    lg_build_set_double(&m->b, v, "top_p", s->top_p);
    lg_build_set_double(&m->b, v, "min_p", s->min_p);
    lg_build_set_double(&m->b, v, "repeat_penalty", s->repeat_penalty);
    lg_build_set_double(&m->b, v, "frequency_penalty", 0.0);
    lg_build_set_double(&m->b, v, "presence_penalty", 0.0);
    lg_build_set_int(&m->b, v, "top_k", s->top_k);
    lg_build_set_int(&m->b, v, "repeat_last_n", s->repeat_last_n);
    return v;
}

/* The words of a blank-separated text. */
static const lg_value *words(maker *m, const char *text) {
    lg_value *list = lg_build_array(&m->b);
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (n > 0) {
            lg_build_push(&m->b, list, lg_build_bytes(&m->b, text, n));
        }
        text += n + (text[n] == ' ');
    }
    return list;
}

/* How the emitted C is compiled. */
static const lg_value *target(maker *m) {
    lg_value *v = lg_build_map(&m->b);
    lg_build_set_string(&m->b, v, "cc", m->o->cc);
    lg_build_set(&m->b, v, "flags", words(m, m->o->host->flags));
    return v;
}

bool lg_emit_params(const lg_plan *plan, const lg_emit_options *o, const char *image_digest,
                    lb_arena *arena, const lg_value **out, lb_err *err) {
    maker m = {.plan = plan, .o = o, .image_digest = image_digest, .arena = arena};
    lg_build_init(&m.b, arena);
    lg_value *root = lg_build_map(&m.b);
    lg_build_set_string(&m.b, root, "model", o->name);
    lg_build_set_string(&m.b, root, "arch_row", lg_hw_name(plan->hw));
    lg_build_set_string(&m.b, root, "kv", o->kv);
    lg_build_set_string(&m.b, root, "attn", o->attn == NULL ? "f32" : o->attn);
    lg_build_set_bool(&m.b, root, "weights_linked", o->weights_linked);
    lg_build_set(&m.b, root, "target", target(&m));
    lg_build_set(&m.b, root, "cpu_features", words(&m, o->host->features));
    lg_build_set(&m.b, root, "gpu",
                 plan->hw->gpu ? lg_emit_gpu(&m.b, plan, o) : lg_build_bool(&m.b, false));
    lg_build_set(&m.b, root, "dims", dims(&m));
    lg_build_set(&m.b, root, "limits", limits(&m));
    lg_build_set_uint(&m.b, root, "few_rows", LG_FEW_ROWS);
    lg_build_set(&m.b, root, "arenas", arenas(&m));
    lg_build_set_uint(&m.b, root, "logits_offset", plan->places[plan->graph->logits].offset);
    bool samples = plan->graph->samples;
    lg_build_set_bool(&m.b, root, "samples", samples);
    lg_build_set_uint(&m.b, root, "choices_offset",
                      samples ? plan->places[plan->graph->choices].offset : 0);
    lg_build_set(&m.b, root, "sampling", sampling(&m));
    lg_build_set(&m.b, root, "kernels", kernels(&m));
    lg_build_set(&m.b, root, "launches", launches(&m));
    lg_build_set(&m.b, root, "hidden", hidden(&m));
    lg_build_set(&m.b, root, "layouts", layouts(&m));
    lg_build_set(&m.b, root, "weights", weights(&m));
    lg_build_set(&m.b, root, "files", files(&m));
    if (o->weights_linked) {
        put_samples(&m, root);
    }
    lg_build_set(&m.b, root, "caches", caches(&m));
    lg_build_set_uint(&m.b, root, "cache_block", KV_BLOCK);
    *out = root;
    return lg_build_done(&m.b, err);
}
