/* command_build.c -- `lagen emit` and `lagen build`: plan, prove, pack, render, write, compile. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "command_parts.h"
#include "emit.h"
#include "pack.h"
#include "process.h"
#include "stamp.h"

typedef struct build_args {
    lg_model_args model;
    const char *out, *weights;
    uint64_t jobs;
} build_args;

/* The folder: --out, or out/<model>-<row> below the working directory. */
static bool folder(const build_args *a, const char *name, const lg_hw_row *hw, lb_arena *arena, const char **out, lb_err *err) {
    *out = a->out != NULL ? a->out : lb_format(arena, err, "out/%s-%s", name, lg_hw_name(hw));
    return *out != NULL && lb_make_dirs(*out, err);
}

/* The packed image is there, made of these weights by this plan? Then its digest; otherwise it is packed. */
static bool image(lg_context *c, const lg_result *r, const char *out, char hex[LB_DIGEST_HEX_BYTES], lb_err *err) {
    const char *path = lb_format(c->arena, err, "%s/weights.bin", out);
    const char *stamp = lb_format(c->arena, err, "%s/.weights.stamp", out);
    const char *want = NULL;
    bool fresh = false;
    if (path == NULL || stamp == NULL || !lg_stamp_of(r->plan, r->file, c->arena, &want, err) ||
        !lg_stamp_fresh(stamp, want, path, r->plan->arena_bytes[LG_ARENA_WEIGHTS], hex, &fresh, err)) {
        return false;
    }
    if (fresh) {
        return true;
    }
    uint8_t digest[LB_DIGEST_BYTES];
    unsigned last = 0;
    const lg_pack_options o = {path, c->stop, c->progress, &last};
    if (!lg_pack(r->plan, &o, digest, err)) {
        return false;
    }
    c->progress(&last, "packing weights", 1, 1);
    lb_digest_hex(digest, hex);
    return lg_stamp_write(stamp, want, hex, err);
}

/* The C compiler for a row's host side: cc where this machine is of its kind, else the cross compiler. */
static bool compiler_for(const lg_hw_row *hw, lb_arena *arena, const char **out, lb_err *err) {
    struct utsname here;
    if (uname(&here) == 0 && strcmp(here.machine, hw->machine) == 0) {
        *out = "cc";
        return true;
    }
    *out = lb_format(arena, err, "%s-gcc", hw->triple);
    return *out != NULL;
}

static bool emit(lg_context *c, const build_args *a, const lg_request *rq, const char **out, const char **name, lb_err *err) {
    lg_result r;
    char hex[LB_DIGEST_HEX_BYTES];
    lg_emit_result result = {0};
    bool linked = strcmp(a->weights, "link") == 0;
    const char *cc = NULL;
    const char *compiler = NULL;
    bool ok = lg_run(rq, c->arena, &r, err) && lg_model_name(a->model.model, c->arena, name, err) &&
              folder(a, *name, r.hw, c->arena, out, err) &&
              compiler_for(r.hw, c->arena, &cc, err) &&
              lg_process_first_line(cc, "--version", c->arena, &compiler, err) &&
              (linked || image(c, &r, *out, hex, err));
    if (ok) {
        const lg_emit_options o = {c->root, *out, *name, r.file, linked, linked ? NULL : hex, rq->kv, a->model.pre, cc, compiler};
        ok = lg_emit(r.plan, &r.proof, r.host, &o, c->arena, &result, err);
    }
    if (ok) {
        c->note(lb_format(c->arena, err, "%s: %" PRIu32 " launches of %" PRIu32 " kernels proved by %" PRIu32
                          " facts; %" PRIu32 " files, %" PRIu32 " written", *out, r.plan->n_launches,
                          r.plan->n_kernels, r.proof.n_facts, result.n_files, result.n_changed));
    }
    lg_result_close(&r);
    if (!ok && *out != NULL) {
        rmdir(*out); /* a folder made for nothing goes away; one with content stays */
    }
    return ok;
}

static bool parse(lg_context *c, const char *name, const char *summary, build_args *a, int argc, char *const *argv,
                  lg_request *rq, bool *done, lb_err *err) {
    lb_opt options[LG_MODEL_OPTIONS + 3];
    *a = (build_args){.model = lg_model_args_default(), .weights = "pack", .jobs = 2};
    uint32_t n = lg_model_options(&a->model, options);
    options[n++] = (lb_opt){"--out", "-o", LB_OPT_TEXT, (void *)&a->out, 0, 0, false, NULL, "DIR",
                            "folder of the program; default out/<model>-<row>"};
    options[n++] = (lb_opt){"--weights", NULL, LB_OPT_TEXT, (void *)&a->weights, 0, 0, false, NULL, "HOW",
                            "pack (default): a weight image beside the program;\nlink: the program reads the model file itself"};
    options[n++] = (lb_opt){"--jobs", "-j", LB_OPT_UINT, &a->jobs, 1, 1024, false, NULL, "N", "compilers at once; default 2"};
    const lb_command command = {name, summary, NULL, options, n, NULL, 0};
    if (!lg_model_parse(c, &command, &a->model, argc, argv, rq, done, err)) {
        return false;
    }
    if (strcmp(a->weights, "pack") != 0 && strcmp(a->weights, "link") != 0) {
        return lb_err_set(err, LB_USAGE, "--weights: '%s' is neither pack nor link", a->weights);
    }
    return true;
}

bool lg_command_emit(lg_context *c, int argc, char *const *argv, lb_err *err) {
    build_args a;
    lg_request rq;
    bool done = false;
    const char *out = NULL;
    const char *name = NULL;
    if (!parse(c, "lagen emit", "Writes a program's sources and weights without compiling them.", &a, argc, argv, &rq, &done, err) ||
        done) {
        return done;
    }
    if (!emit(c, &a, &rq, &out, &name, err)) {
        return false;
    }
    lb_text_printf(c->out, "%s\n", out);
    return true;
}

bool lg_command_build(lg_context *c, int argc, char *const *argv, lb_err *err) {
    build_args a;
    lg_request rq;
    bool done = false;
    const char *out = NULL;
    const char *name = NULL;
    if (!parse(c, "lagen build", "Emits, packs and compiles a program that runs one model on one machine.", &a, argc, argv, &rq, &done, err) ||
        done) {
        return done;
    }
    if (!emit(c, &a, &rq, &out, &name, err)) {
        return false;
    }
    char jobs[32];
    snprintf(jobs, sizeof jobs, "%" PRIu64, a.jobs);
    const char *const ninja[] = {"ninja", "-C", out, "-j", jobs, "--quiet", NULL};
    if (!lg_process_run(ninja, c->stop, err)) {
        return lb_err_prefix(err, "compiling %s", out);
    }
    lb_text_printf(c->out, "%s/%s-cli\n", out, name);
    return true;
}
