/* golden.c -- see golden.h. */
#include "golden.h"

#include <inttypes.h>
#include <jansson.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "session.h"

enum {
    N_PROMPT = 24,
    N_TOKENS = 16,
    FILE_MAX_BYTES = 1 << 20,
    HEX_BYTES = 2 * SHA256_DIGEST_LENGTH
};

/* ---- tokens */

/* The n most likely tokens behind the prompt, one after the other, in slot 0. */
static bool answer(rt_engine *e, const uint32_t *prompt, uint32_t n_prompt, uint32_t *tokens,
                   uint32_t n, lb_err *err) {
    static const rt_feed_opts o = {.prompt = true};
    rt_seq *q = &e->seqs[0];
    rt_seq_cut(q, 0);
    bool ok = rt_seq_feed(q, prompt, n_prompt, &o, err);
    for (uint32_t i = 0; ok && i < n; i++) {
        const float *l = rt_engine_logits(e, 0);
        uint32_t best = 0;
        for (uint32_t v = 1; v < e->model->n_vocab; v++) {
            best = l[v] > l[best] ? v : best;
        }
        tokens[i] = best;
        ok = i + 1 == n || rt_seq_feed(q, &best, 1, NULL, err);
    }
    rt_seq_cut(q, 0);
    return ok;
}

/* ---- the file's text */

static void add_ids(lb_text *t, const char *key, const uint32_t *ids, uint32_t n) {
    lb_text_printf(t, ",\n \"%s\": [", key);
    for (uint32_t i = 0; i < n; i++) {
        lb_text_printf(t, "%s%" PRIu32, i == 0 ? "" : ", ", ids[i]);
    }
    lb_text_add(t, "]");
}

static const char *weights_of(const rt_model *m) {
    return m->weights_linked || m->n_files == 0 ? "linked" : m->files[m->image_file].sha256;
}

static void add_hex(lb_text *t, const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        lb_text_printf(t, "%02x", bytes[i]);
    }
}

/* The whole file; its last member signs everything before it. */
static bool make_text(const rt_model *m, const uint32_t *prompt, uint32_t n_prompt,
                      const uint32_t *tokens, uint32_t n, lb_text *t, lb_err *err) {
    unsigned char digest[SHA256_DIGEST_LENGTH];
    lb_text_printf(t,
                   "{\"schema\": \"lagen.golden/1\",\n \"model\": \"%s\",\n \"row\": \"%s\",\n "
                   "\"weights\": \"%s\"",
                   m->name, m->arch_row, weights_of(m));
    add_ids(t, "prompt", prompt, n_prompt);
    add_ids(t, "tokens", tokens, n);
    if (!lb_text_done(t, err)) {
        return false;
    }
    SHA256((const unsigned char *)t->data, t->n_bytes, digest);
    lb_text_add(t, ",\n \"sha256\": \"");
    add_hex(t, digest, sizeof digest);
    lb_text_add(t, "\"}\n");
    return lb_text_done(t, err);
}

static const char *path_of(const char *dir, lb_arena *arena, lb_err *err) {
    return lb_format(arena, err, "%s/" RT_GOLDEN_FILE, dir);
}

bool rt_golden_bless(rt_engine *e, const char *dir, lb_arena *arena, lb_err *err) {
    uint32_t prompt[N_PROMPT];
    uint32_t tokens[N_TOKENS];
    uint32_t half = e->model->ctx / 2 + 1;
    uint32_t n_prompt = half < N_PROMPT ? half : N_PROMPT;
    uint32_t n = e->model->ctx - n_prompt + 1 < N_TOKENS ? e->model->ctx - n_prompt + 1 : N_TOKENS;
    lb_text t;
    const char *path = path_of(dir, arena, err);
    for (uint32_t i = 0; i < n_prompt; i++) {
        prompt[i] = (i + 1) * 104729U % e->model->n_vocab;
    }
    lb_text_init(&t, arena);
    return path != NULL && answer(e, prompt, n_prompt, tokens, n, err) &&
           make_text(e->model, prompt, n_prompt, tokens, n, &t, err) &&
           lb_write_file(path, t.data, t.n_bytes, false, NULL, err);
}

/* ---- checking */

static bool read_ids(const json_t *root, const char *key, const rt_model *m, lb_arena *arena,
                     uint32_t **out, uint32_t *n, lb_err *err) {
    const json_t *list = json_object_get(root, key);
    size_t count = json_array_size(list);
    if (count == 0 || count > m->ctx) {
        return lb_err_set(err, LB_DAMAGED, RT_GOLDEN_FILE ": %s has %zu tokens", key, count);
    }
    uint32_t *ids = lb_alloc_n(arena, count, sizeof *ids, err);
    if (ids == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 ||
            json_integer_value(v) >= (json_int_t)m->n_vocab) {
            return lb_err_set(err, LB_DAMAGED, RT_GOLDEN_FILE ": %s[%zu] is no token", key, i);
        }
        ids[i] = (uint32_t)json_integer_value(v);
    }
    *out = ids;
    *n = (uint32_t)count;
    return true;
}

/* The file must be, byte for byte, what bless would write of its tokens for this program: so its
 * digest, its names and its form are checked at once. */
static bool read_file(const rt_model *m, const char *text, size_t n_text, lb_arena *arena,
                      uint32_t *ids[2], uint32_t n[2], lb_err *err) {
    lb_text want;
    json_error_t why;
    json_t *root = json_loadb(text, n_text, 0, &why);
    bool ok = root != NULL || lb_err_set(err, LB_DAMAGED, RT_GOLDEN_FILE ": %s", why.text);
    ok = ok && read_ids(root, "prompt", m, arena, &ids[0], &n[0], err) &&
         read_ids(root, "tokens", m, arena, &ids[1], &n[1], err);
    lb_text_init(&want, arena);
    ok = ok && make_text(m, ids[0], n[0], ids[1], n[1], &want, err);
    json_decref(root);
    if (ok && (want.n_bytes != n_text || memcmp(want.data, text, n_text) != 0 ||
               n[0] + n[1] - 1 > m->ctx)) {
        return lb_err_set(err, LB_DAMAGED,
                          RT_GOLDEN_FILE " was changed or made by another program;"
                                         " `selftest --bless` makes it anew");
    }
    return ok;
}

bool rt_golden_check(rt_engine *e, const char *dir, lb_arena *arena, bool *found, lb_err *err) {
    uint32_t *ids[2] = {NULL, NULL};
    uint32_t n[2] = {0, 0};
    char *text = NULL;
    size_t n_text = 0;
    const char *path = path_of(dir, arena, err);
    if (path == NULL) {
        return false;
    }
    *found = access(path, F_OK) == 0;
    if (!*found) {
        return true;
    }
    if (!lb_read_file(path, FILE_MAX_BYTES, arena, &text, &n_text, err) ||
        !read_file(e->model, text, n_text, arena, ids, n, err)) {
        return false;
    }
    uint32_t *got = lb_alloc_n(arena, n[1], sizeof *got, err);
    if (got == NULL || !answer(e, ids[0], n[0], got, n[1], err)) {
        return false;
    }
    for (uint32_t i = 0; i < n[1]; i++) {
        if (got[i] != ids[1][i]) {
            return lb_err_set(err, LB_PROOF,
                              RT_GOLDEN_FILE ": token %u is %u and was %u: this "
                                             "machine computes something else than it did",
                              i, got[i], ids[1][i]);
        }
    }
    return true;
}
