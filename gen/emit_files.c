/* emit_files.c -- the files of a program on their way: listed, rendered or copied, and at last written
 * into its folder together. POSIX (opendir). */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "at.h"
#include "base/file.h"
#include "emit_parts.h"

enum { FILES_MAX = 4096, HEADERS_MAX = 64, FILE_BYTES_MAX = 64 << 20 };

bool lg_emit_begin(lg_emitter *e, lb_err *err) {
    e->files = lb_alloc_n(e->arena, FILES_MAX, sizeof *e->files, err);
    return e->files != NULL;
}

static bool keep_going(const lg_emitter *e, lb_err *err) {
    return e->o->stop == NULL || *e->o->stop == 0 ||
           lb_err_set(err, LB_CANCELLED, "stopped; %s is as it was", e->o->out);
}

bool lg_emit_add(lg_emitter *e, const char *path, const void *data, size_t n_bytes, lb_err *err) {
    if (!keep_going(e, err)) {
        return false;
    }
    if (e->n_files == FILES_MAX) {
        return lb_err_set(err, LB_LIMIT, "%s: more than %d emitted files", path, FILES_MAX);
    }
    const char *name = lb_strndup(e->arena, path, strlen(path), err);
    if (name == NULL) {
        return false;
    }
    e->files[e->n_files++] = (lg_emit_file){name, data, n_bytes};
    return true;
}

bool lg_emit_render(lg_emitter *e, const char *template, const lg_value *params, const char *path,
                    lb_err *err) {
    lb_text text;
    lb_text_init(&text, e->arena);
    return lg_host_render(e->host, template, params, &text, err) && lb_text_done(&text, err) &&
           lg_emit_add(e, path, text.data, text.n_bytes, err);
}

bool lg_emit_copy(lg_emitter *e, const char *from, const char *to, lb_err *err) {
    char *data = NULL;
    size_t n = 0;
    const char *path = lb_format(e->arena, err, "%s/%s", e->o->root, from);
    return path != NULL && lb_read_file(path, FILE_BYTES_MAX, e->arena, &data, &n, err) &&
           lg_emit_add(e, to, data, n, err);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool lg_emit_headers(lg_emitter *e, lb_err *err) {
    const char *dir = lb_format(e->arena, err, "%s/templates/lib", e->o->root);
    DIR *d = dir == NULL ? NULL : opendir(dir);
    if (d == NULL) {
        return dir != NULL && lb_err_set(err, LB_IO, "%s: cannot be read: %s", dir, strerror(errno));
    }
    const char *names[HEADERS_MAX];
    size_t n = 0;
    bool ok = true;
    for (struct dirent *f = readdir(d); ok && f != NULL; f = readdir(d)) {
        size_t len = strlen(f->d_name);
        if (len <= 2 || strcmp(f->d_name + len - 2, ".h") != 0) {
            continue;
        }
        if (n == HEADERS_MAX) {
            ok = lb_err_set(err, LB_LIMIT, "%s: more than %d headers", dir, HEADERS_MAX);
            break;
        }
        names[n] = lb_strndup(e->arena, f->d_name, len, err);
        ok = names[n++] != NULL;
    }
    closedir(d);
    if (ok) {
        qsort(names, n, sizeof *names, by_name);
    }
    for (size_t i = 0; ok && i < n; i++) {
        const char *from = lb_format(e->arena, err, "templates/lib/%s", names[i]);
        const char *to = lb_format(e->arena, err, "src/lib/%s", names[i]);
        ok = from != NULL && to != NULL && lg_emit_copy(e, from, to, err);
    }
    return ok;
}

static bool is_emitted(const lg_emitter *e, const char *path) {
    for (uint32_t i = 0; i < e->n_files; i++) {
        if (strcmp(e->files[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* Files that an earlier emission into this folder listed and this one does not have: a folder holds
 * what its manifest says, whatever was in it before. */
static bool remove_stale(const lg_emitter *e, const lg_at *old, lb_err *err) {
    lg_at list;
    size_t n = 0;
    if (!lg_at_array(old, "emitted", &list, &n, NULL)) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        lg_at item = lg_at_item(&list, i);
        const char *path = NULL;
        bool ours = lg_at_string(&item, "path", &path, NULL) && path[0] != '/' &&
                    strstr(path, "..") == NULL;
        if (ours && !is_emitted(e, path) && !lg_outdir_remove(e->o->folder, path, err)) {
            return false;
        }
    }
    return true;
}

/* What was made of the files that change now: beside others, and other weights, it would be a
 * program of which the manifest knows nothing, if compiling does not come to its end. */
static bool remove_made(const lg_emitter *e, const lg_at *old, lb_err *err) {
    const char *model = NULL;
    if (!lg_at_string(old, "model", &model, NULL) || strchr(model, '/') != NULL) {
        return true;
    }
    const char *cli = lb_format(e->arena, err, "%s-cli", model);
    const char *server = lb_format(e->arena, err, "%s-server", model);
    return cli != NULL && server != NULL && lg_outdir_remove(e->o->folder, cli, err) &&
           lg_outdir_remove(e->o->folder, server, err) &&
           lg_outdir_remove(e->o->folder, "cubins.json", err);
}

static bool remove_old(const lg_emitter *e, lb_err *err) {
    const lg_value *old = NULL;
    if (!lg_manifest_read(e->o->out, e->arena, &old, NULL)) {
        return true; /* none, or not ours to judge */
    }
    lg_at root = lg_at_root("manifest.json", old);
    return remove_stale(e, &root, err) && remove_made(e, &root, err);
}

bool lg_emit_write(const lg_emitter *e, lg_emit_result *result, lb_err *err) {
    *result = (lg_emit_result){.n_files = e->n_files};
    for (uint32_t i = 0; i < e->n_files; i++) {
        const lg_emit_file *file = &e->files[i];
        bool changed = false;
        if (!keep_going(e, err) || !lg_outdir_write(e->o->folder, file->path, file->data,
                                                    file->n_bytes, &changed, err)) {
            return false;
        }
        result->n_changed += changed;
    }
    if (result->n_changed > 0 && !remove_old(e, err)) {
        return false;
    }
    return keep_going(e, err) && lg_outdir_commit(e->o->folder, "manifest.json", err);
}
