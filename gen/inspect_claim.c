/* inspect_claim.c -- holds what a file says of its types against those that it has.
 *
 * Names of mixes are looked for in the last part of the path and in general.file_type. Two things
 * make a warning: another type has most bytes of the layers' matrices, or a whole group (attention,
 * ffn, experts) has less than a quarter of its weights in the type that the name promises. Mixes of
 * llama-quantize never do either when every row fits the type. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "inspect_data.h"

typedef struct claim {
    int id;
    const char *name;
    lg_qtype main;
    lg_qtype other;
    bool experts;
} claim;

static const claim claims[] = {
#define FTYPE(id, name, main, other, experts) \
    {id, name, LG_QTYPE_##main, LG_QTYPE_##other, experts != 0},
#include "ftype.def"
};

enum { N_CLAIMS = sizeof claims / sizeof claims[0], GUESSED = 1024 /* flag in file_type */ };

static bool alnum(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char upper(char c) {
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* `name` stands at `at`, in either case, between characters that are neither letter nor digit. */
static bool stands_at(const char *text, size_t at, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++) {
        if (upper(text[at + i]) != name[i]) {
            return false; /* also at the end of the text */
        }
    }
    return (at == 0 || !alnum(text[at - 1])) && !alnum(text[at + n]);
}

/* The longest mix name in the file's name; of equally long ones the last. */
static const claim *claim_of_path(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *text = slash == NULL ? path : slash + 1;
    const claim *best = NULL;
    for (size_t at = 0; text[at] != '\0'; at++) {
        for (size_t i = 0; i < N_CLAIMS; i++) {
            if (stands_at(text, at, claims[i].name) &&
                (best == NULL || strlen(claims[i].name) >= strlen(best->name))) {
                best = &claims[i];
            }
        }
    }
    return best;
}

static bool claim_of_key(const lg_gguf *g, const claim **out, lb_err *err) {
    const uint32_t none = UINT32_MAX;
    uint32_t id = none;
    if (!lg_gguf_u32(g, "general.file_type", &none, &id, err)) {
        return false;
    }
    for (size_t i = 0; i < N_CLAIMS; i++) {
        if (claims[i].id >= 0 && (uint32_t)claims[i].id == (id & ~(uint32_t)GUESSED)) {
            *out = &claims[i];
        }
    }
    return true;
}

/* Bytes (or weights) of matrices of type t in the groups that make up the layers. */
static uint64_t layer_bytes(const lg_inspection *in, const claim *c, size_t t) {
    uint64_t sum = in->matrices[LG_GROUP_EXPERTS][t].n_bytes;
    if (!c->experts) {
        sum += in->matrices[LG_GROUP_ATTENTION][t].n_bytes + in->matrices[LG_GROUP_FFN][t].n_bytes;
    }
    return sum;
}

static bool check_majority(lg_inspection *in, const claim *c, const char *who, lb_err *err) {
    uint64_t total = 0;
    uint64_t claimed = 0;
    size_t most = 0;
    for (size_t t = 0; t < LG_INSPECT_TYPES; t++) {
        uint64_t n = layer_bytes(in, c, t);
        total += n;
        claimed += t == (size_t)c->main || t == (size_t)c->other ? n : 0;
        most = n > layer_bytes(in, c, most) ? t : most;
    }
    if (total == 0 || most == (size_t)c->main || most == (size_t)c->other) {
        return true;
    }
    uint64_t share = lg_inspect_permille(layer_bytes(in, c, most), total);
    uint64_t own = lg_inspect_permille(claimed, total);
    return lg_inspect_warn(in, err,
                           "%s says %s, but most bytes of the layers' matrices are %s (%" PRIu64
                           ".%" PRIu64 " %%; %s has %" PRIu64 ".%" PRIu64 " %%)",
                           who, c->name, lg_qtype_get((lg_qtype)most)->name, share / 10,
                           share % 10, lg_qtype_get(c->main)->name, own / 10, own % 10);
}

static bool check_group(lg_inspection *in, const claim *c, const char *who, lg_group group,
                        lb_err *err) {
    uint64_t total = 0;
    uint64_t claimed = 0;
    size_t most = 0;
    const lg_tally *of = in->matrices[group];
    for (size_t t = 0; t < LG_INSPECT_TYPES; t++) {
        total += of[t].n_elems;
        claimed += t == (size_t)c->main || t == (size_t)c->other ? of[t].n_elems : 0;
        most = of[t].n_elems > of[most].n_elems ? t : most;
    }
    if (claimed >= total / 4) {
        return true;
    }
    uint64_t share = lg_inspect_permille(of[most].n_elems, total);
    return lg_inspect_warn(in, err,
                           "%s says %s, but the %s matrices are %s (%" PRIu64 ".%" PRIu64
                           " %% of their weights)",
                           who, c->name, lg_group_name(group), lg_qtype_get((lg_qtype)most)->name,
                           share / 10, share % 10);
}

static bool check(lg_inspection *in, const claim *c, const char *who, lb_err *err) {
    if (c == NULL) {
        return true;
    }
    return check_majority(in, c, who, err) &&
           check_group(in, c, who, LG_GROUP_EXPERTS, err) &&
           (c->experts || (check_group(in, c, who, LG_GROUP_ATTENTION, err) &&
                           check_group(in, c, who, LG_GROUP_FFN, err)));
}

bool lg_inspect_claims(lg_inspection *in, lb_err *err) {
    const claim *of_key = NULL;
    const claim *of_path = claim_of_path(in->path);
    if (!claim_of_key(in->g, &of_key, err)) {
        return false;
    }
    if (of_path == of_key) {
        return check(in, of_path, "the file's name, like general.file_type,", err);
    }
    return check(in, of_path, "the file's name", err) &&
           check(in, of_key, "general.file_type", err);
}
