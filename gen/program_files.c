/* program_files.c -- files of a program's folder that its manifest should list. POSIX (opendir). */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "manifest.h"
#include "program.h"

enum { DEPTH_MAX = 8 }; /* folders in folders; lagen writes 3 */

typedef struct walk {
    const char *dir;
    const lg_value *manifest;
    lb_arena *arena;
    lb_err *err;
} walk;

static bool folder_lists(walk *w, const char *folder, int depth);

/* One entry of a folder, by its path in the program's. */
static bool entry_lists(walk *w, const char *path, int depth) {
    struct stat st;
    const char *full = lb_format(w->arena, w->err, "%s/%s", w->dir, path);
    if (full == NULL) {
        return false;
    }
    if (lstat(full, &st) != 0) {
        return lb_err_set(w->err, LB_IO, "%s: cannot be read: %s", full, strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) {
        return folder_lists(w, path, depth + 1);
    }
    return lg_manifest_lists(w->manifest, path) ||
           lb_err_set(w->err, LB_DAMAGED,
                      "%s: the manifest does not list it, and programs are compiled from that folder",
                      path);
}

static bool folder_lists(walk *w, const char *folder, int depth) {
    const char *full = lb_format(w->arena, w->err, "%s/%s", w->dir, folder);
    if (full == NULL) {
        return false;
    }
    if (depth > DEPTH_MAX) {
        return lb_err_set(w->err, LB_DAMAGED, "%s: lagen makes no folders this deep", folder);
    }
    DIR *d = opendir(full);
    if (d == NULL) {
        return lb_err_set(w->err, LB_IO, "%s: cannot be read: %s", full, strerror(errno));
    }
    bool ok = true;
    for (struct dirent *e = readdir(d); ok && e != NULL; e = readdir(d)) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            const char *path = lb_format(w->arena, w->err, "%s/%s", folder, e->d_name);
            ok = path != NULL && entry_lists(w, path, depth);
        }
    }
    closedir(d);
    return ok;
}

bool lg_program_lists(const char *dir, const lg_program *p, lb_arena *arena, lb_err *err) {
    static const char *const folders[] = {"src", "runtime"};
    static const char *const files[] = {"launches.json", "memory.json", "build.ninja"};
    walk w = {dir, p->manifest, arena, err};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!lg_manifest_lists(p->manifest, files[i])) {
            return lb_err_set(err, LB_DAMAGED, "manifest.json: does not list %s", files[i]);
        }
    }
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!folder_lists(&w, folders[i], 0)) {
            return false;
        }
    }
    return true;
}
