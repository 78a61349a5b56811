/* stamp.c -- see stamp.h. POSIX (stat). */
#define _POSIX_C_SOURCE 200809L
#include "stamp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "plan_json.h"

enum { STAMP_BYTES_MAX = 1 << 20 };

/* How each weight's bits are permuted: memory.json tells only where they lie. */
static void add_layouts(const lg_plan *plan, lb_text *t) {
    for (uint32_t i = 0; i < plan->graph->n_tensors; i++) {
        const lb_layout *l = plan->weights[i].layout;
        for (uint32_t p = 0; l != NULL && p < l->n_planes; p++) {
            const lb_plane *plane = &l->planes[p];
            lb_text_printf(t, "%" PRIu32 " %s %u %u %u\n", i, l->type, plane->src_offset,
                           plane->n_bytes, plane->word_bytes);
        }
    }
}

bool lg_stamp_of(const lg_plan *plan, const lg_gguf *file, lb_arena *arena, const char **out,
                 lb_err *err) {
    lb_text memory;
    lb_text t;
    uint8_t digest[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES];
    lb_text_init(&memory, arena);
    lb_text_init(&t, arena);
    if (!lg_memory_json(plan, arena, &memory, err)) {
        return false;
    }
    add_layouts(plan, &memory);
    if (!lb_text_done(&memory, err) || !lb_sha256(memory.data, memory.n_bytes, digest, err)) {
        return false;
    }
    lb_digest_hex(digest, hex);
    lb_text_printf(&t, "plan %s\n", hex);
    for (uint32_t i = 0; i < lg_gguf_n_files(file); i++) {
        struct stat st;
        const char *path = lg_gguf_file_at(file, i)->path;
        if (stat(path, &st) != 0) {
            return lb_err_set(err, LB_IO, "%s: cannot be looked at: %s", path, strerror(errno));
        }
        lb_text_printf(&t, "file %" PRIu32 " bytes %lld time %lld.%09ld inode %llu\n", i,
                       (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                       (unsigned long long)st.st_ino);
    }
    if (!lb_text_done(&t, err)) {
        return false;
    }
    *out = t.data;
    return true;
}

bool lg_stamp_fresh(const char *path, const char *want, const char *image, uint64_t image_bytes,
                    char hex[LB_DIGEST_HEX_BYTES], bool *fresh, lb_err *err) {
    lb_arena a;
    char *text = NULL;
    size_t n = 0;
    struct stat st;
    (void)err;
    lb_arena_init(&a, "stamp", 2 * STAMP_BYTES_MAX);
    size_t len = strlen(want);
    *fresh = lb_read_file(path, STAMP_BYTES_MAX, &a, &text, &n, NULL) &&
             n == len + LB_DIGEST_HEX_BYTES && memcmp(text, want, len) == 0 &&
             stat(image, &st) == 0 && (uint64_t)st.st_size == image_bytes;
    *fresh = *fresh && strspn(text + len, "0123456789abcdef") == LB_DIGEST_HEX_BYTES - 1;
    if (*fresh) {
        memcpy(hex, text + len, LB_DIGEST_HEX_BYTES - 1);
        hex[LB_DIGEST_HEX_BYTES - 1] = '\0';
    }
    lb_arena_reset(&a);
    return true;
}

bool lg_stamp_write(const char *path, const char *name, const char *text, const char *hex,
                    lb_err *err) {
    lb_arena a;
    lb_arena_init(&a, "stamp", 2 * STAMP_BYTES_MAX);
    const char *all = lb_format(&a, err, "%s%s\n", text, hex);
    bool ok = all != NULL && lb_write_plain(path, name, all, strlen(all), err);
    lb_arena_reset(&a);
    return ok;
}
