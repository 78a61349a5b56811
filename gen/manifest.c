/* manifest.c -- see manifest.h. */
#include "manifest.h"

#include <string.h>

#include "base/digest.h"
#include "base/file.h"
#include "value_text.h"

enum { MANIFEST_BYTES_MAX = 16 << 20, JSON_BYTES_MAX = 256 << 20 };

static const char DIGEST_KEY[] = "manifest_sha256";
static const char FILES_KEY[] = "emitted";

static bool hex_of(const void *data, size_t n, char hex[LB_DIGEST_HEX_BYTES], lb_err *err) {
    uint8_t digest[LB_DIGEST_BYTES];
    if (!lb_sha256(data, n, digest, err)) {
        return false;
    }
    lb_digest_hex(digest, hex);
    return true;
}

/* The map's entries but the digest and `other` (NULL: none). */
static lg_value *without_digest(lg_builder *b, const lg_value *map, const char *other) {
    lg_value *copy = lg_build_map(b);
    for (size_t i = 0; map->kind == LG_VALUE_MAP && i < lg_value_count(map); i++) {
        const lg_value_entry *entry = &map->u.map.entries[i];
        const char *key = entry->key->u.string.bytes;
        if (strcmp(key, DIGEST_KEY) != 0 && (other == NULL || strcmp(key, other) != 0)) {
            lg_build_set_n(b, copy, entry->key->u.string.bytes, entry->key->u.string.n_bytes,
                           entry->value);
        }
    }
    return copy;
}

static const lg_value *file_entry(lg_builder *b, const lg_manifest_file *f) {
    char hex[LB_DIGEST_HEX_BYTES] = "";
    lb_err why = {0};
    if (!hex_of(f->data, f->n_bytes, hex, &why)) {
        lg_build_fail(b, &why);
    }
    lg_value *v = lg_build_map(b);
    lg_build_set_string(b, v, "path", f->path);
    lg_build_set_uint(b, v, "bytes", f->n_bytes);
    lg_build_set_string(b, v, "sha256", hex);
    return v;
}

bool lg_manifest_text(const lg_value *info, const lg_manifest_file *files, uint32_t n,
                      lb_arena *arena, lb_text *out, lb_err *err) {
    lg_builder b;
    lb_text t;
    char hex[LB_DIGEST_HEX_BYTES];
    lg_build_init(&b, arena);
    lb_text_init(&t, arena);
    lg_value *root = without_digest(&b, info, NULL);
    lg_value *list = lg_build_array(&b);
    for (uint32_t i = 0; i < n; i++) {
        lg_build_push(&b, list, file_entry(&b, &files[i]));
    }
    lg_build_set(&b, root, FILES_KEY, list);
    if (!lg_build_done(&b, err) || !lg_value_to_json(root, &t, err) || !lb_text_done(&t, err) ||
        !hex_of(t.data, t.n_bytes, hex, err)) {
        return false;
    }
    lg_build_set_string(&b, root, DIGEST_KEY, hex);
    return lg_build_done(&b, err) && lg_value_to_json(root, out, err);
}

/* The text is the one that the tree gives, and its digest is right. */
static bool intact(const lg_value *root, const char *text, lb_arena *arena) {
    lg_builder b;
    lb_text all;
    lb_text rest;
    char hex[LB_DIGEST_HEX_BYTES];
    lg_build_init(&b, arena);
    lb_text_init(&all, arena);
    lb_text_init(&rest, arena);
    const lg_value *digest = lg_value_find(root, DIGEST_KEY);
    const lg_value *copy = without_digest(&b, root, NULL);
    return digest != NULL && digest->kind == LG_VALUE_STRING && lg_build_done(&b, NULL) &&
           lg_value_to_json(copy, &rest, NULL) && lb_text_done(&rest, NULL) &&
           hex_of(rest.data, rest.n_bytes, hex, NULL) && strcmp(hex, digest->u.string.bytes) == 0 &&
           lg_value_to_json(root, &all, NULL) && lb_text_done(&all, NULL) &&
           strcmp(all.data, text) == 0;
}

bool lg_manifest_read(const char *dir, lb_arena *arena, const lg_value **out, lb_err *err) {
    char *text = NULL;
    size_t n = 0;
    lg_value *root = NULL;
    lb_err why = {0};
    const char *path = lb_format(arena, err, "%s/manifest.json", dir);
    if (path == NULL || !lb_read_file(path, MANIFEST_BYTES_MAX, arena, &text, &n, err)) {
        return false;
    }
    if (!lg_value_from_json("manifest.json", text, n, arena, &root, &why)) {
        return lb_err_set(err, LB_DAMAGED, "%s", why.text);
    }
    if (!intact(root, text, arena)) {
        return lb_err_set(err, LB_DAMAGED,
                          "manifest.json: its own SHA-256 is not the one that it says");
    }
    *out = root;
    return true;
}

bool lg_manifest_is_in(const char *dir, lb_arena *arena) {
    static const char *const names[] = {"manifest.json", "launches.json", "memory.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *text = NULL;
        size_t n = 0;
        const char *path = lb_format(arena, NULL, "%s/%s", dir, names[i]);
        if (path != NULL && lb_read_file(path, JSON_BYTES_MAX, arena, &text, &n, NULL) &&
            strstr(text, "\"schema\": \"lagen.") != NULL) {
            return true;
        }
    }
    return false;
}

bool lg_manifest_info(const lg_value *manifest, lb_arena *arena, lb_text *out, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, arena);
    const lg_value *info = without_digest(&b, manifest, FILES_KEY);
    return lg_build_done(&b, err) && lg_value_to_json(info, out, err);
}

bool lg_manifest_lists(const lg_value *manifest, const char *path) {
    const lg_value *list = lg_value_find(manifest, FILES_KEY);
    for (size_t i = 0; list != NULL && list->kind == LG_VALUE_ARRAY && i < list->u.array.n; i++) {
        const lg_value *p = lg_value_find(list->u.array.items[i], "path");
        if (p != NULL && p->kind == LG_VALUE_STRING && strcmp(p->u.string.bytes, path) == 0) {
            return true;
        }
    }
    return false;
}
