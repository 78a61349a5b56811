/* graph.c -- runs an architecture file and turns the plain data it returns into an lg_graph.
 *
 * In: a model file's metadata and tensor directory, the build options. Out: a graph of ARCH ops,
 * not yet checked (graph_check.c). Refuses ids out of range, unknown ops and roles, counts beyond
 * their limits; messages carry the path inside the returned data. */
#include "graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "at.h"
#include "base/num.h"
#include "gguf_value.h"
#include "op.h"

enum {
    META_ELEMS_MAX = 1024,   /* longer arrays (vocabularies) are no business of an architecture */
    CONFIG_ELEMS_MAX = 4096, /* numbers of one configuration tensor */
    GRAPH_ITEMS_MAX = 1 << 20
};

/* ---- what the architecture file is given */

static const lg_value *meta_elem(lg_builder *b, const lg_gguf_value *v) {
    switch (v->kind) {
    case LG_GGUF_KIND_INT: return lg_build_int(b, v->i);
    case LG_GGUF_KIND_UINT: return lg_build_uint(b, v->u);
    case LG_GGUF_KIND_REAL: return lg_build_double(b, v->f);
    case LG_GGUF_KIND_BOOL: return lg_build_bool(b, v->i != 0);
    case LG_GGUF_KIND_STR: return lg_build_bytes(b, v->s.data, v->s.n_bytes);
    }
    return NULL;
}

/* A key's value. Of arrays too long to matter here only the length: { long_array = n }. */
static const lg_value *meta_value(lg_builder *b, const lg_gguf_kv *kv) {
    lg_gguf_iter it = lg_gguf_begin(kv);
    lg_gguf_value v;
    if (kv->type != LG_GGUF_ARRAY) {
        return lg_gguf_next(&it, &v) ? meta_elem(b, &v) : NULL;
    }
    if (kv->n_elems > META_ELEMS_MAX) {
        lg_value *length = lg_build_map(b);
        lg_build_set_uint(b, length, "long_array", kv->n_elems);
        return length;
    }
    lg_value *list = lg_build_array(b);
    while (lg_gguf_next(&it, &v)) {
        lg_build_push(b, list, meta_elem(b, &v));
    }
    return list;
}

const lg_value *lg_graph_meta(lg_builder *b, const lg_gguf *file) {
    lg_value *meta = lg_build_map(b);
    for (uint64_t i = 0; i < lg_gguf_n_keys(file) && !b->failed; i++) {
        const lg_gguf_kv *kv = lg_gguf_key_at(file, i);
        const lg_value *v = meta_value(b, kv);
        if (v != NULL) {
            lg_build_set_n(b, meta, kv->key.data, kv->key.n_bytes, v);
        }
    }
    return meta;
}

/* The numbers of a small one-dimensional F32 tensor. */
static const lg_value *config_numbers(lg_builder *b, const lg_gguf_tensor *t) {
    if (t->type != LG_QTYPE_F32 || t->n_elems > CONFIG_ELEMS_MAX) {
        return NULL;
    }
    lg_value *list = lg_build_array(b);
    for (uint64_t i = 0; i < t->n_elems; i++) {
        float f = 0;
        memcpy(&f, t->data + i * sizeof f, sizeof f);
        lg_build_push(b, list, lg_build_double(b, (double)f));
    }
    return list;
}

/* `names` is an array (build_input has seen to it). */
static bool named_in(const lg_value *names, lg_gguf_str name) {
    for (size_t i = 0; i < lg_value_count(names); i++) {
        const lg_value *v = names->u.array.items[i];
        if (v->kind == LG_VALUE_STRING && v->u.string.n_bytes == name.n_bytes &&
            memcmp(v->u.string.bytes, name.data, name.n_bytes) == 0) {
            return true;
        }
    }
    return false;
}

static const lg_value *build_tensors(lg_builder *b, const lg_gguf *file, const lg_value *numbers) {
    lg_value *map = lg_build_map(b);
    for (uint64_t i = 0; i < lg_gguf_n_tensors(file) && !b->failed; i++) {
        const lg_gguf_tensor *t = lg_gguf_tensor_at(file, i);
        lg_value *entry = lg_build_map(b);
        lg_value *ne = lg_build_array(b);
        for (uint32_t d = 0; d < t->n_dims; d++) {
            lg_build_push(b, ne, lg_build_uint(b, t->ne[d]));
        }
        lg_build_set_string(b, entry, "type", lg_qtype_get(t->type)->name);
        lg_build_set(b, entry, "ne", ne);
        const lg_value *values = named_in(numbers, t->name) ? config_numbers(b, t) : NULL;
        if (values != NULL) {
            lg_build_set(b, entry, "values", values);
        }
        lg_build_set_n(b, map, t->name.data, t->name.n_bytes, entry);
    }
    return map;
}

static bool build_input(const lg_gguf *file, const lg_build_options *o, const lg_value *numbers,
                        lb_arena *arena, const lg_value **out, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *options = lg_build_map(&b);
    lg_build_set_uint(&b, options, "ctx", o->ctx);
    lg_build_set_uint(&b, options, "slots", o->slots);
    lg_build_set_uint(&b, options, "chunk", o->chunk);
    lg_build_set_string(&b, options, "kv", o->kv);
    lg_build_set_string(&b, options, "rope_mscale",
                        o->rope_mscale == NULL ? "formula" : o->rope_mscale);
    lg_build_set_string(&b, options, "rope_beta", o->rope_beta == NULL ? "fixed" : o->rope_beta);
    lg_value *input = lg_build_map(&b);
    lg_build_set(&b, input, "meta", lg_graph_meta(&b, file));
    lg_build_set(&b, input, "tensors", build_tensors(&b, file, numbers));
    lg_build_set(&b, input, "options", options);
    *out = input;
    return lg_build_done(&b, err);
}

/* ---- what it returns */

/* { slots, positions, window, position_bytes, elem } of a state. */
static bool read_state(const lg_at *at, lg_gvalue *v, lb_err *err) {
    static const char *const elems[] = {"f16", "i8", NULL};
    uint64_t bytes = 0;
    uint32_t elem = 0;
    if (!lg_at_choice(at, "elem", elems, &elem, err) || !lg_at_uint(at, "slots", &v->slots, err) ||
        !lg_at_uint(at, "positions", &v->positions, err) ||
        !lg_at_uint(at, "window", &v->window, err) ||
        !lg_at_uint(at, "position_bytes", &bytes, err)) {
        return false;
    }
    v->elem = elem == 0 ? LG_ELEM_F16 : LG_ELEM_I8;
    return (lb_mul(bytes, v->slots, &v->state_bytes) &&
            lb_mul(v->state_bytes, v->positions, &v->state_bytes)) ||
           lg_at_fail(at, NULL, err, LB_OVERFLOW,
                      "%" PRIu64 " slots of %" PRIu64 " positions of %" PRIu64
                      " bytes pass 64 bits",
                      v->slots, v->positions, bytes);
}

static bool read_value(const lg_at *at, lg_gvalue *v, lb_err *err) {
    static const char *const rows[] = {"T", "L", "state", NULL};
    static const char *const types[] = {"f32", "i32", NULL};
    uint32_t kind = 0;
    if (!lg_at_string(at, "name", &v->name, err) || !lg_at_choice(at, "rows", rows, &kind, err) ||
        !lg_at_uint(at, "width", &v->width, err)) {
        return false;
    }
    v->rows = (lg_rows)kind;
    v->elem = LG_ELEM_F32;
    if (v->rows == LG_ROWS_STATE) {
        return read_state(at, v, err);
    }
    if (v->width == 0) {
        return lg_at_fail(at, "width", err, LB_BAD_SHAPE, "is 0");
    }
    if (!lg_at_choice(at, "type", types, &kind, err) ||
        !lg_at_uint_or(at, "below", 0, &v->below, err)) {
        return false;
    }
    v->elem = kind == 1 ? LG_ELEM_I32 : LG_ELEM_F32;
    return true;
}

static bool read_tensor(const lg_at *at, const lg_gguf *file, lg_gtensor *t, lb_err *err) {
    if (!lg_at_string(at, "name", &t->name, err) || !lg_at_uint(at, "cols", &t->n_cols, err) ||
        !lg_at_uint(at, "rows", &t->n_rows, err) || !lg_at_uint(at, "mats", &t->n_mats, err)) {
        return false;
    }
    t->file = lg_gguf_tensor_find(file, t->name);
    if (t->file == NULL) {
        return lg_at_fail(at, "name", err, LB_MISSING, "'%s' is not in the model file", t->name);
    }
    const uint64_t *ne = t->file->ne;
    return (ne[0] == t->n_cols && ne[1] == t->n_rows && ne[2] == t->n_mats && ne[3] == 1) ||
           lg_at_fail(at, "name", err, LB_BAD_SHAPE,
                      "'%s' is %" PRIu64 " x %" PRIu64 " x %" PRIu64
                      " in the model file, not %" PRIu64 " x %" PRIu64 " x %" PRIu64,
                      t->name, ne[0], ne[1], ne[2], t->n_cols, t->n_rows, t->n_mats);
}

static bool read_op(const lg_at *at, lg_op *out, lb_err *err) {
    const char *name = NULL;
    if (!lg_at_string(at, "op", &name, err)) {
        return false;
    }
    for (int i = 0; i < LG_N_OPS; i++) {
        if (strcmp(name, lg_op_get((lg_op)i)->name) == 0) {
            *out = (lg_op)i;
            return true;
        }
    }
    return lg_at_fail(at, "op", err, LB_UNSUPPORTED, "'%s' is not an op of op.def", name);
}

static lg_access access_of(char letter) {
    switch (letter) {
    case 'r': return LG_READ;
    case 'w': return LG_WRITE;
    case 'b': return LG_BOTH;
    case 's': return LG_STATE;
    default: return LG_TENSOR;
    }
}

static bool read_operand(const lg_at *at, lg_op op, const lg_graph *g, lg_goperand *o,
                         lb_err *err) {
    if (!lg_at_string(at, "role", &o->role, err)) {
        return false;
    }
    char letter = lg_op_role(op, o->role, NULL, NULL);
    if (letter == '\0') {
        return lg_at_fail(at, "role", err, LB_BAD_VALUE, "op '%s' has no operand '%s'",
                          lg_op_get(op)->name, o->role);
    }
    o->access = access_of(letter);
    bool tensor = o->access == LG_TENSOR;
    uint32_t limit = tensor ? g->n_tensors : g->n_values;
    if (!lg_at_u32(at, tensor ? "tensor" : "value", &o->id, err)) {
        return false;
    }
    return o->id < limit ||
           lg_at_fail(at, NULL, err, LB_BAD_VALUE, "number %" PRIu32 " of %" PRIu32, o->id, limit);
}

static bool read_node(const lg_at *at, const lg_graph *g, lb_arena *arena, lg_gnode *n,
                      lb_err *err) {
    lg_at list;
    lg_at attrs;
    size_t count = 0;
    int64_t layer = 0;
    if (!read_op(at, &n->op, err) || !lg_at_int(at, "layer", &layer, err) ||
        !lg_at_array(at, "operands", &list, &count, err) || !lg_at_key(at, "attrs", &attrs, err)) {
        return false;
    }
    if (layer < -1 || layer > INT32_MAX || count > 64) {
        return lg_at_fail(at, NULL, err, LB_LIMIT, "layer %" PRId64 ", %zu operands", layer, count);
    }
    lg_goperand *o = lb_alloc_n(arena, count, sizeof *o, err);
    if (o == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        lg_at item = lg_at_item(&list, i);
        if (!read_operand(&item, n->op, g, &o[i], err)) {
            return false;
        }
    }
    n->layer = (int32_t)layer;
    n->operands = o;
    n->n_operands = (uint32_t)count;
    n->attrs = attrs.value;
    return true;
}

/* Room for one of the graph's three lists. */
static void *list_room(const lg_at *root, const char *key, lg_at *list, uint32_t *n, size_t elem,
                       lb_arena *arena, lb_err *err) {
    size_t count = 0;
    if (!lg_at_array(root, key, list, &count, err)) {
        return NULL;
    }
    if (count == 0 || count > GRAPH_ITEMS_MAX) {
        lg_at_fail(root, key, err, LB_LIMIT, "has %zu items", count);
        return NULL;
    }
    *n = (uint32_t)count;
    return lb_alloc_n(arena, count, elem, err);
}

static bool read_lists(const lg_at *root, const lg_gguf *file, lb_arena *arena, lg_graph *g,
                       lb_err *err) {
    lg_at list;
    g->values = list_room(root, "values", &list, &g->n_values, sizeof *g->values, arena, err);
    for (uint32_t i = 0; g->values != NULL && i < g->n_values; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!read_value(&at, &g->values[i], err)) {
            return false;
        }
    }
    if (g->values == NULL) {
        return false;
    }
    g->tensors = list_room(root, "tensors", &list, &g->n_tensors, sizeof *g->tensors, arena, err);
    for (uint32_t i = 0; g->tensors != NULL && i < g->n_tensors; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!read_tensor(&at, file, &g->tensors[i], err)) {
            return false;
        }
    }
    if (g->tensors == NULL) {
        return false;
    }
    g->nodes = list_room(root, "nodes", &list, &g->n_nodes, sizeof *g->nodes, arena, err);
    for (uint32_t i = 0; g->nodes != NULL && i < g->n_nodes; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!read_node(&at, g, arena, &g->nodes[i], err)) {
            return false;
        }
    }
    return g->nodes != NULL;
}

static bool read_graph(const lg_value *v, const char *path, const lg_gguf *file, lb_arena *arena,
                       lg_graph *g, lb_err *err) {
    lg_at root = lg_at_root(path, v);
    if (!lg_at_uint(&root, "n_layers", &g->n_layers, err) ||
        !lg_at_uint(&root, "n_embd", &g->n_embd, err) ||
        !lg_at_uint(&root, "n_vocab", &g->n_vocab, err) ||
        !lg_at_uint(&root, "ctx_train", &g->ctx_train, err) ||
        !read_lists(&root, file, arena, g, err) || !lg_at_u32(&root, "logits", &g->logits, err)) {
        return false;
    }
    lg_at notes;
    if (lg_at_has(&root, "notes")) {
        if (!lg_at_key(&root, "notes", &notes, err)) {
            return false;
        }
        bool map = notes.value->kind == LG_VALUE_MAP;
        if (!map && lg_value_count(notes.value) != 0) { /* an empty table is an array */
            return lg_at_fail(&root, "notes", err, LB_BAD_TYPE, "is no map");
        }
        g->notes = map ? notes.value : NULL;
    }
    return g->logits < g->n_values || lg_at_fail(&root, "logits", err, LB_BAD_VALUE, "is no value");
}

/* Tensors of the file that are neither weights of the graph nor read as numbers, in file order. */
static bool find_unused(const lg_gguf *file, const lg_value *numbers, lb_arena *arena, lg_graph *g,
                        lb_err *err) {
    uint64_t n = lg_gguf_n_tensors(file);
    bool *used = lb_alloc_n(arena, n, sizeof *used, err);
    g->unused = lb_alloc_n(arena, n, sizeof *g->unused, err);
    if (used == NULL || g->unused == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        used[g->tensors[i].file - lg_gguf_tensor_at(file, 0)] = true;
    }
    for (uint64_t i = 0; i < n; i++) {
        const lg_gguf_tensor *t = lg_gguf_tensor_at(file, i);
        if (!used[i] && !named_in(numbers, t->name)) {
            g->unused[g->n_unused++] = t;
        }
    }
    return true;
}

static bool arch_file(lg_host *host, const char *arch, lb_arena *arena, const char **path,
                      lb_err *err) {
    bool has = false;
    lb_err why = {0};
    *path = lb_format(arena, err, "arch/%s.lua", arch);
    if (*path == NULL) {
        return false;
    }
    if (!lg_host_has(host, *path, "build", &has, &why)) {
        return why.code == LB_IO ? lb_err_set(err, LB_UNSUPPORTED,
                                              "architecture '%s' is not supported: there is no"
                                              " templates/arch/%s.lua",
                                              arch, arch)
                                 : lb_err_set(err, why.code, "%s", why.text);
    }
    return has || lb_err_set(err, LB_MISSING, "%s has no function build", *path);
}

/* The names of the tensors whose numbers the architecture asks for: an array. */
static bool ask_numbers(lg_host *host, const char *path, lb_arena *arena, const lg_value **out,
                        lb_err *err) {
    lg_builder b;
    lg_value *numbers = NULL;
    lg_at list;
    size_t n = 0;
    lg_build_init(&b, arena);
    const lg_value *none = lg_build_map(&b);
    if (!lg_build_done(&b, err) ||
        !lg_host_call(host, path, "numbers", none, arena, &numbers, err)) {
        return false;
    }
    lg_at root = lg_at_root(path, numbers);
    *out = numbers;
    return lg_at_array(&root, NULL, &list, &n, err);
}

bool lg_graph_build(const lg_gguf *file, lg_host *host, const lg_build_options *options,
                    lb_arena *arena, lg_graph **out, lb_err *err) {
    const char *arch = NULL;
    const char *path = NULL;
    uint32_t n_layers = 0;
    const lg_value *numbers = NULL;
    const lg_value *input = NULL;
    lg_value *built = NULL;
    if (!lg_gguf_arch(file, arena, &arch, err) || !lg_gguf_n_layers(file, &n_layers, err) ||
        !arch_file(host, arch, arena, &path, err) ||
        !ask_numbers(host, path, arena, &numbers, err) ||
        !build_input(file, options, numbers, arena, &input, err) ||
        !lg_host_call(host, path, "build", input, arena, &built, err)) {
        return false;
    }
    lg_graph *g = lb_alloc(arena, sizeof *g, err);
    if (g == NULL) {
        return false;
    }
    g->arch = arch;
    g->level = LG_LEVEL_ARCH;
    g->attn = options->attn == NULL ? "f32" : options->attn;
    if (!read_graph(built, path, file, arena, g, err) ||
        !find_unused(file, numbers, arena, g, err)) {
        return false;
    }
    *out = g;
    return true;
}
