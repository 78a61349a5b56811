/* command_verify.c -- `lagen verify DIR`: checks every file of the manifest, then proves again from
 * launches.json and memory.json. Shares the prover with `plan`, and no data with the build that
 * made the folder. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "at.h"
#include "base/digest.h"
#include "base/file.h"
#include "command.h"
#include "command_parts.h"
#include "cubin_check.h"
#include "program.h"
#include "replay.h"

enum { JSON_BYTES_MAX = 256 << 20 };

/* A file of the folder that must be there. */
static bool open_part(lg_context *c, const char *dir, const char *path, lb_map *map, lb_err *err) {
    const char *full = lb_format(c->arena, err, "%s/%s", dir, path);
    if (full == NULL) {
        return false;
    }
    return lb_map_file(full, map, err);
}

/* Looked at first: a file may be of any length by now, and a digest reads all of it. */
static bool length_is(const char *path, uint64_t there, uint64_t want, lb_err *err) {
    return there == want ||
           lb_err_set(err, LB_DAMAGED, "%s: it has %" PRIu64 " bytes, the manifest says %" PRIu64,
                      path, there, want);
}

static bool goes_on(const lg_context *c, lb_err *err) {
    return *c->stop == 0 || lb_err_set(err, LB_CANCELLED, "stopped");
}

/* SHA-256 of a file against what the manifest says. */
static bool check_file(lg_context *c, const char *dir, const lg_at *at, lb_err *err) {
    const char *path = NULL;
    const char *want = NULL;
    uint64_t bytes = 0;
    if (!lg_at_string(at, "path", &path, err) || !lg_at_string(at, "sha256", &want, err) ||
        !lg_at_uint(at, "bytes", &bytes, err)) {
        return false;
    }
    if (path[0] == '/' || strstr(path, "..") != NULL) {
        return lg_at_fail(at, "path", err, LB_BAD_VALUE, "'%s' leaves the folder", path);
    }
    lb_map map = {0};
    uint8_t digest[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES] = "";
    if (!open_part(c, dir, path, &map, err)) {
        return false;
    }
    const bool ok = length_is(path, map.n_bytes, bytes, err) &&
                    lb_sha256(map.data, map.n_bytes, digest, err);
    lb_unmap(&map);
    if (!ok) {
        return false;
    }
    lb_digest_hex(digest, hex);
    return strcmp(hex, want) == 0 ||
           lb_err_set(err, LB_DAMAGED, "%s: its SHA-256 is %s, the manifest says %s", path, hex, want);
}

static bool check_files(lg_context *c, const char *dir, const lg_value *manifest, size_t *n,
                        lb_err *err) {
    lg_at root = lg_at_root("manifest.json", manifest);
    lg_at list;
    if (!lg_at_array(&root, "emitted", &list, n, err)) {
        return false;
    }
    for (size_t i = 0; i < *n; i++) {
        lg_at at = lg_at_item(&list, i);
        if (!goes_on(c, err) || !check_file(c, dir, &at, err)) {
            return false;
        }
    }
    return true;
}

/* The packed image, by the tree digest that the program itself checks at start. */
static bool check_image(lg_context *c, const char *dir, const lg_value *manifest, const char **what,
                        lb_err *err) {
    lg_at root = lg_at_root("manifest.json", manifest);
    const char *want = NULL;
    bool linked = false;
    uint64_t bytes = 0;
    lg_at arenas;
    if (!lg_at_string_or(&root, "image_sha256_tree", NULL, &want, err) ||
        !lg_at_bool(&root, "weights_linked", &linked, err) ||
        !lg_at_key(&root, "arenas", &arenas, err) ||
        !lg_at_uint(&arenas, LG_ARENA_NAMES[LG_ARENA_WEIGHTS], &bytes, err)) {
        return false;
    }
    if (linked == (want != NULL)) {
        return lb_err_set(err, LB_DAMAGED, "manifest.json: weights_linked is %s, and "
                          "image_sha256_tree is %s", linked ? "true" : "false",
                          linked ? "there" : "missing");
    }
    *what = "weights linked to the model file, not checked here";
    if (linked) {
        return true;
    }
    lb_map map = {0};
    uint8_t digest[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES] = "";
    if (!open_part(c, dir, "weights.bin", &map, err)) {
        return false;
    }
    bool ok = length_is("weights.bin", map.n_bytes, bytes, err) &&
              lb_digest_tree_until(map.data, map.n_bytes, c->stop, digest, err);
    lb_unmap(&map);
    if (!ok) {
        return false;
    }
    lb_digest_hex(digest, hex);
    *what = "weight image has its digest";
    return strcmp(hex, want) == 0 ||
           lb_err_set(err, LB_DAMAGED, "weights.bin: its digest is %s, the manifest says %s", hex,
                      want);
}

/* The certificate: one line per kernel with its tightest facts. */
static void certificate(const lg_plan *plan, const lg_proof *proof, lb_text *out) {
    lb_text_add(out, "  kernel                                                        launches  "
                     "most ctas  facts\n");
    for (uint32_t k = 0; k < plan->n_kernels; k++) {
        uint64_t launches = 0;
        uint64_t ctas = 0;
        uint64_t facts = 0;
        for (uint32_t i = 0; i < proof->n_facts; i++) {
            const lg_fact *f = &proof->facts[i];
            if (f->launch == UINT32_MAX || f->kernel != k) {
                continue;
            }
            facts++;
            if (strcmp(f->kind, "ctas") == 0) {
                launches++;
                ctas = f->value > ctas ? f->value : ctas;
            }
        }
        lb_text_printf(out, "  %-60s %9" PRIu64 " %10" PRIu64 " %6" PRIu64 "\n",
                       plan->kernels[k].name, launches, ctas, facts);
    }
}

/* The cubins of a compiled GPU program: proved again, and the same files as when it was built. */
static bool check_cubins(lg_context *c, const char *dir, const lg_plan *plan, const char **what,
                         lb_err *err) {
    lb_text now;
    lb_text_init(&now, c->arena);
    *what = "";
    if (!plan->hw->gpu) {
        return true;
    }
    const char *path = lb_format(c->arena, err, "%s/cubins.json", dir);
    if (path == NULL) {
        return false;
    }
    if (access(path, F_OK) != 0) {
        *what = "; not built by lagen, so no cubin was looked at";
        return true;
    }
    char *then = NULL;
    size_t n = 0;
    *what = "; cubins proved again";
    return lb_read_file(path, JSON_BYTES_MAX, c->arena, &then, &n, err) &&
           lg_cubins_check(plan, dir, c->arena, &now, err) && lb_text_done(&now, err) &&
           (strcmp(now.data, then) == 0 ||
            lb_err_set(err, LB_DAMAGED, "%s: the cubins are others than those that were proved",
                       path));
}

/* What verify found out. */
typedef struct verified {
    const char *image, *cubins; /* words about them */
    lg_program p;
    size_t n_files;
} verified;

/* Of lagen's own build, whose default target makes both. */
static bool missing_part(const char *path, lb_err *err) {
    return lb_err_set(err, LB_MISSING,
                      "--replay needs %s; `ninja` in lagen's folder makes all that it needs", path);
}

/* The program's own steps on the recorder, where this machine can run it. */
static bool replay_program(lg_context *c, const char *dir, const verified *v, lb_err *err) {
    lg_at root = lg_at_root("manifest.json", v->p.manifest);
    const char *model = NULL;
    const char *host = NULL;
    const lg_hw_row *row = NULL;
    struct utsname here;
    if (!lg_at_string(&root, "model", &model, err) || !lg_at_string(&root, "host", &host, err) ||
        !lg_hw_find(host, &row, err)) {
        return false;
    }
    if (uname(&here) != 0 || strcmp(here.machine, row->machine) != 0) {
        lb_text_printf(c->out,
                       "its own steps were not run: its host side is for %s, this is %s; qemu-user "
                       "and a recorder\nbuilt for %s could\n\n",
                       row->machine, here.machine, row->machine);
        return true;
    }
    const char *cli = lb_format(c->arena, err, "%s/%s-cli", dir, model);
    const char *driver = lb_format(c->arena, err, "%s/build/liblagen_recorder.so", c->root);
    if (cli == NULL || driver == NULL) {
        return false;
    }
    if (access(cli, X_OK) != 0) {
        return lb_err_set(err, LB_MISSING, "--replay needs %s", cli);
    }
    if (access(driver, R_OK) != 0) {
        return missing_part(driver, err);
    }
    if (!lg_replay_program(v->p.plan, cli, driver, c->stop, c->arena, err)) {
        return false;
    }
    lb_text_printf(c->out,
                   "its own steps ran there, of every number of rows from 1 to %" PRIu64
                   ": no launch was refused\n\n",
                   v->p.plan->limits.t_max);
    return true;
}

/* Every launch on the recorder. */
static bool replay(lg_context *c, const char *dir, const lg_plan *plan, lb_err *err) {
    uint64_t n = 0;
    const char *tool = lb_format(c->arena, err, "%s/build/lagen-replay", c->root);
    const char *cubins = lb_format(c->arena, err, "%s/cubins.json", dir);
    if (tool == NULL || cubins == NULL) {
        return false;
    }
    if (!plan->hw->gpu) {
        return lb_err_set(err, LB_UNSUPPORTED,
                          "--replay is for GPU programs, whose launches a driver may refuse; %s is a CPU",
                          lg_hw_name(plan->hw));
    }
    if (access(cubins, F_OK) != 0) {
        return lb_err_set(err, LB_MISSING, "--replay needs a program that lagen has built");
    }
    if (access(tool, X_OK) != 0) {
        return missing_part(tool, err);
    }
    if (!lg_replay(plan, dir, tool, c->stop, c->arena, &n, err)) {
        return false;
    }
    lb_text_printf(c->out,
                   "replayed %" PRIu64 " different launches on the recorder of a %s: all taken\n\n",
                   n, lg_hw_name(plan->hw));
    return true;
}

static bool check_all(lg_context *c, const char *dir, verified *v, lb_err *err) {
    return lg_program_manifest(dir, c->arena, &v->p, err) &&
           check_files(c, dir, v->p.manifest, &v->n_files, err) &&
           lg_program_lists(dir, &v->p, c->arena, err) &&
           check_image(c, dir, v->p.manifest, &v->image, err) &&
           lg_program_read(dir, c->arena, &v->p, err) &&
           lg_program_texts(dir, &v->p, c->arena, err) &&
           lg_program_info(dir, &v->p, c->arena, err) &&
           check_cubins(c, dir, v->p.plan, &v->cubins, err);
}

static bool verify(lg_context *c, const char *dir, bool replayed, lb_err *err) {
    verified v = {0};
    if (!lg_program_folder(dir, c->arena, err)) {
        return false;
    }
    if (!check_all(c, dir, &v, err)) {
        lg_program_damaged(err);
        return false;
    }
    lb_text_printf(c->out,
                   "%s: proved again, %" PRIu32 " facts for every T from 1 to %" PRIu64
                   "; %zu files have their digests; %s%s\n\n",
                   dir, v.p.proof.n_facts, v.p.plan->limits.t_max, v.n_files, v.image, v.cubins);
    if (replayed &&
        (!replay(c, dir, v.p.plan, err) || !replay_program(c, dir, &v, err))) {
        return false;
    }
    certificate(v.p.plan, &v.p.proof, c->out);
    return true;
}

bool lg_command_verify(lg_context *c, int argc, char *const *argv, lb_err *err) {
    const char *dir = NULL;
    bool done = false;
    bool replayed = false;
    const lb_opt options[] = {{"--replay", NULL, LB_OPT_FLAG, &replayed, 0, 0, false, NULL, NULL,
                               "make every launch of a GPU program on the recorder, a\n"
                               "driver that checks and executes nothing, and run the\nprogram's own "
                               "steps of every size there"}};
    const lb_positional pos[] = {{"DIR", &dir, true, "folder of an emitted program"}};
    const lb_command command = {
        "lagen verify",
        "Proves an emitted program again and checks its files.",
        "Reads launches.json, memory.json and manifest.json of DIR, proves every launch again from "
        "them,\n"
        "and compares every file's digest. Exit status 3: DIR is there and is not what lagen\n"
        "wrote: a file is missing, changed, or says what cannot be proved.",
        options,
        1,
        pos,
        1};
    if (!lg_command_parse(c, &command, argc, argv, &done, err) || done) {
        return done;
    }
    return verify(c, dir, replayed, err);
}
