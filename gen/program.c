/* program.c -- see program.h. POSIX (stat). */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "manifest.h"
#include "outdir.h"
#include "plan_json.h"
#include "value_text.h"

enum { JSON_BYTES_MAX = 256 << 20 };

typedef struct json_file {
    char *text;
    const lg_value *tree;
} json_file;

static bool read_json(const char *dir, const char *name, lb_arena *arena, json_file *out,
                      lb_err *err) {
    size_t n = 0;
    lg_value *v = NULL;
    const char *path = lb_format(arena, err, "%s/%s", dir, name);
    if (path == NULL || !lb_read_file(path, JSON_BYTES_MAX, arena, &out->text, &n, err) ||
        !lg_value_from_json(name, out->text, n, arena, &v, err)) {
        return false;
    }
    out->tree = v;
    return true;
}

/* The two files say what a plan like this one and its proof say, to the byte: grids, margins and
 * facts that nobody reads back are true too. */
static bool same_texts(const lg_program *p, const json_file *launches, const json_file *memory,
                       lb_arena *arena, lb_err *err) {
    lb_text l;
    lb_text m;
    lb_text_init(&l, arena);
    lb_text_init(&m, arena);
    if (!lg_launches_json(p->plan, &p->proof, arena, &l, err) || !lb_text_done(&l, err) ||
        !lg_memory_json(p->plan, arena, &m, err) || !lb_text_done(&m, err)) {
        return false;
    }
    if (strcmp(l.data, launches->text) != 0) {
        return lb_err_set(err, LB_DAMAGED,
                          "launches.json: its numbers are not those of its own plan and proof");
    }
    return strcmp(m.data, memory->text) == 0 ||
           lb_err_set(err, LB_DAMAGED, "memory.json: its numbers are not those of its own plan");
}

bool lg_program_manifest(const char *dir, lb_arena *arena, lg_program *out, lb_err *err) {
    return lg_manifest_read(dir, arena, &out->manifest, err);
}

bool lg_program_read(const char *dir, lb_arena *arena, lg_program *out, lb_err *err) {
    json_file launches;
    json_file memory;
    return read_json(dir, "launches.json", arena, &launches, err) &&
           read_json(dir, "memory.json", arena, &memory, err) &&
           lg_plan_from_json(launches.tree, memory.tree, arena, &out->plan, err) &&
           lg_prove(out->plan, arena, &out->proof, err) &&
           same_texts(out, &launches, &memory, arena, err) && lg_program_says(out, err);
}

bool lg_program_folder(const char *dir, lb_arena *arena, lb_err *err) {
    struct stat st;
    if (stat(dir, &st) != 0) {
        return lb_err_set(err, LB_IO, "%s: cannot be read: %s", dir, strerror(errno));
    }
    if (!S_ISDIR(st.st_mode)) {
        return lb_err_set(err, LB_IO, "%s: not a folder; it must be that of a program", dir);
    }
    if (!lg_outdir_idle(dir, arena, err)) {
        return false;
    }
    return lg_manifest_is_in(dir, arena) ||
           lb_err_set(err, LB_MISSING,
                      "%s: no program that lagen made: there is no manifest.json, launches.json or "
                      "memory.json of its own",
                      dir);
}

void lg_program_damaged(lb_err *err) {
    if (err->code != LB_NO_MEMORY && err->code != LB_CANCELLED) {
        err->code = LB_DAMAGED;
    }
}
