/* inspect.c -- counts what a model file holds: tensors by type, group and role, and the keys that
 * describe the model; see inspect.h. Writing is in inspect_text.c and inspect_json.c. */
#include "inspect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gguf_bits.h"
#include "inspect_data.h"

const char *lg_group_name(lg_group group) {
    static const char *const name[LG_N_GROUPS] = {"embedding", "attention", "ffn",  "experts",
                                                  "norms",     "output",    "other"};
    return name[group];
}

/* a * factor / b, to the nearest, for numbers of which only leading digits matter. */
static uint64_t ratio(uint64_t a, uint64_t factor, uint64_t b) {
    while (a > (UINT64_MAX - b / 2) / factor) {
        a /= 2;
        b /= 2;
    }
    return b == 0 ? 0 : (a * factor + b / 2) / b;
}

uint64_t lg_inspect_permille(uint64_t part, uint64_t total) {
    return ratio(part, 1000, total);
}

uint64_t lg_inspect_centibits(const lg_tally *t) {
    return ratio(t->n_bytes, 800, t->n_elems);
}

bool lg_inspect_warn(lg_inspection *in, lb_err *err, const char *fmt, ...) {
    if (in->n_warnings == LG_INSPECT_WARNINGS) {
        in->warnings[LG_INSPECT_WARNINGS - 1] = "there is more to warn of than is listed here";
        return true;
    }
    char line[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    const char *kept = lb_strndup(in->arena, line, strlen(line), err);
    if (kept == NULL) {
        return false;
    }
    in->warnings[in->n_warnings++] = kept;
    return true;
}

static bool has(const char *name, const char *part) {
    return strstr(name, part) != NULL;
}

static bool starts(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

/* The group of a role, by the naming that GGUF files share. */
static lg_group group_of(const char *role) {
    const char *stem = starts(role, "blk.N.") ? role + 6 : role;
    if (has(stem, "norm")) {
        return LG_GROUP_NORMS;
    }
    if (has(stem, "token_embd") || starts(stem, "position_embd") || starts(stem, "token_types")) {
        return LG_GROUP_EMBEDDING;
    }
    if (stem == role && starts(stem, "output")) {
        return LG_GROUP_OUTPUT;
    }
    if (has(stem, "_exps.") || (starts(stem, "ffn_") && has(stem, ".N."))) {
        return LG_GROUP_EXPERTS;
    }
    if (starts(stem, "attn")) {
        return LG_GROUP_ATTENTION;
    }
    if (starts(stem, "ffn") || starts(stem, "exp_probs")) {
        return LG_GROUP_FFN;
    }
    return LG_GROUP_OTHER;
}

/* The tensor's name with N for each part between dots that is a number. */
static char *role_of(lg_gguf_str name, lb_arena *arena, lb_err *err) {
    char role[LG_GGUF_MAX_NAME_BYTES + 1];
    size_t n = 0;
    for (uint64_t i = 0; i < name.n_bytes;) {
        uint64_t end = i;
        bool number = true;
        for (; end < name.n_bytes && name.data[end] != '.'; end++) {
            number = number && name.data[end] >= '0' && name.data[end] <= '9';
        }
        if (number && end > i) {
            role[n++] = 'N';
        } else {
            memcpy(role + n, name.data + i, end - i);
            n += end - i;
        }
        if (end < name.n_bytes) {
            role[n++] = '.';
        }
        i = end + 1;
    }
    return lb_strndup(arena, role, n, err);
}

static int by_role(const void *a, const void *b) {
    const lg_role *x = a;
    const lg_role *y = b;
    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }
    int c = strcmp(x->name, y->name);
    if (c != 0) {
        return c;
    }
    if (x->type != y->type) {
        return x->type < y->type ? -1 : 1;
    }
    /* Both point into one array; file order makes the sort's result unique. */
    return x->first < y->first ? -1 : x->first > y->first;
}

static void add(lg_tally *to, const lg_tally *t) {
    to->n_tensors += t->n_tensors;
    to->n_elems += t->n_elems; /* display only: a wrap would take 2^63 weights of zero bytes */
    to->n_bytes += t->n_bytes;
}

/* One role per tensor; then equal ones are merged in place. */
static uint64_t merge_roles(lg_role *roles, uint64_t n) {
    qsort(roles, n, sizeof *roles, by_role);
    uint64_t n_out = 0;
    for (uint64_t i = 0; i < n; i++) {
        lg_role *last = n_out == 0 ? NULL : &roles[n_out - 1];
        const lg_role *r = &roles[i];
        if (last == NULL || last->group != r->group || last->type != r->type ||
            strcmp(last->name, r->name) != 0) {
            roles[n_out++] = *r;
            continue;
        }
        add(&last->sum, &r->sum);
        last->one_shape = last->one_shape &&
                          memcmp(last->first->ne, r->first->ne, sizeof r->first->ne) == 0;
    }
    return n_out;
}

static bool count_tensors(lg_inspection *in, lb_err *err) {
    uint64_t n = lg_gguf_n_tensors(in->g);
    lg_role *roles = lb_alloc_n(in->arena, n, sizeof *roles, err);
    if (roles == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        const lg_gguf_tensor *t = lg_gguf_tensor_at(in->g, i);
        lg_role *r = &roles[i];
        *r = (lg_role){.type = t->type, .first = t, .one_shape = true};
        r->sum = (lg_tally){.n_tensors = 1, .n_elems = t->n_elems, .n_bytes = t->n_bytes};
        r->name = role_of(t->name, in->arena, err);
        if (r->name == NULL) {
            return false;
        }
        r->group = group_of(r->name);
        add(&in->total, &r->sum);
        add(&in->by_type[t->type], &r->sum);
        add(&in->by_group[r->group], &r->sum);
        if (t->n_dims >= 2) {
            add(&in->matrices[r->group][t->type], &r->sum);
        }
    }
    in->n_roles = merge_roles(roles, n);
    in->roles = roles;
    return true;
}

/* A string key that may be absent; then *out stays empty. */
static bool optional_str(const lg_gguf *g, const char *key, lg_gguf_str *out, lb_err *err) {
    return lg_gguf_find(g, key) == NULL || lg_gguf_str_key(g, key, out, err);
}

static bool read_model_keys(lg_inspection *in, lb_err *err) {
    const uint64_t none = 0;
    char key[128];
    const char *arch = NULL;
    if (!optional_str(in->g, "general.name", &in->name, err)) {
        return false;
    }
    if (lg_gguf_find(in->g, "general.architecture") == NULL) {
        return true;
    }
    if (!lg_gguf_arch(in->g, in->arena, &arch, err)) {
        return false;
    }
    in->arch = (lg_gguf_str){.data = arch, .n_bytes = strlen(arch)};
    snprintf(key, sizeof key, "%s.block_count", arch);
    if (lg_gguf_find(in->g, key) != NULL && !lg_gguf_n_layers(in->g, &in->n_layers, err)) {
        return false;
    }
    snprintf(key, sizeof key, "%s.context_length", arch);
    return lg_gguf_u64(in->g, key, &none, &in->context, err);
}

static bool warn_of_types(lg_inspection *in, lb_err *err) {
    const lg_qtype_row *row;
    for (size_t i = 0; (row = lg_qtype_at(i)) != NULL; i++) {
        const lg_tally *t = &in->by_type[row->id];
        if (t->n_tensors > 0 && !row->computes &&
            !lg_inspect_warn(in, err,
                             "%" PRIu64 " tensors are of type %s, which this lagen cannot run",
                             t->n_tensors, row->name)) {
            return false;
        }
    }
    return true;
}

bool lg_inspect(const lg_gguf *g, const char *path, bool json, lb_text *out, lb_err *err) {
    lg_inspection *in = lb_alloc(out->arena, sizeof *in, err);
    if (in == NULL) {
        return false;
    }
    in->g = g;
    in->path = path;
    in->arena = out->arena;
    for (uint32_t i = 0; i < lg_gguf_n_files(g); i++) {
        in->file_bytes += lg_gguf_file_at(g, i)->n_bytes;
    }
    if (!count_tensors(in, err) || !read_model_keys(in, err) || !lg_inspect_tokenizer(in, err) ||
        !lg_inspect_claims(in, err) || !warn_of_types(in, err)) {
        return false;
    }
    if (json) {
        return lg_inspect_json(in, out, err);
    }
    lg_inspect_text(in, out);
    return lb_text_done(out, err);
}
