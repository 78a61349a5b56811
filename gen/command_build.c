/* command_build.c -- `lagen emit` and `lagen build`: plan, prove, pack, render, write, compile. The
 * program's folder is locked from its first file to the last compiler's end. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/digest.h"
#include "base/file.h"
#include "command_parts.h"
#include "cubin_check.h"
#include "emit.h"
#include "fit.h"
#include "pack.h"
#include "process.h"
#include "stamp.h"

typedef struct build_args {
    lg_model_args model;
    const char *out, *weights;
    const char *host, *compiler; /* of a GPU program */
    bool compiler_given;
    const char *chat_template;
    uint64_t jobs;
} build_args;

/* What emit() made. */
typedef struct built {
    const char *out, *name; /* folder, model */
    lg_outdir *folder;      /* open: to be closed by the command */
    const lg_plan *plan;    /* of a GPU program, for the check of its cubins */
} built;

/* The folder: --out, or out/<model>-<row> below the working directory. */
static bool folder(const build_args *a, const lg_hw_row *hw, lb_arena *arena, built *b,
                   lb_err *err) {
    b->out = a->out != NULL ? a->out : lb_format(arena, err, "out/%s-%s", b->name, lg_hw_name(hw));
    return b->out != NULL && lg_outdir_open(b->out, arena, &b->folder, err);
}

typedef struct image_request {
    lg_context *c;
    const lg_result *r;
    const built *b;
} image_request;

/* The packed image is there, made of these weights by this plan? Then its digest; otherwise it is
 * packed. The stamp goes in place behind the image that it speaks of. */
static bool make_image(void *arg, char hex[LB_DIGEST_HEX_BYTES], lb_err *err) {
    const image_request *q = arg;
    lg_context *c = q->c;
    const lg_result *r = q->r;
    const char *path = lb_format(c->arena, err, "%s/weights.bin", q->b->out);
    const char *stamp = lb_format(c->arena, err, "%s/.weights.stamp", q->b->out);
    const char *want = NULL;
    bool fresh = false;
    if (path == NULL || stamp == NULL || !lg_stamp_of(r->plan, r->file, c->arena, &want, err) ||
        !lg_stamp_fresh(stamp, want, path, r->plan->arena_bytes[LG_ARENA_WEIGHTS], hex, &fresh,
                        err)) {
        return false;
    }
    if (fresh) {
        return true;
    }
    uint8_t digest[LB_DIGEST_BYTES];
    unsigned last = 0;
    const char *image = path;
    const char *stamp_name = stamp;
    if (!lg_outdir_stage(q->b->folder, "weights.bin", &path, err) ||
        !lg_outdir_stage(q->b->folder, ".weights.stamp", &stamp, err)) {
        return false;
    }
    const lg_pack_options o = {path, image, c->stop, c->progress, &last};
    if (!lg_pack(r->plan, &o, digest, err)) {
        return false;
    }
    c->progress(&last, "packing weights", 1, 1);
    lb_digest_hex(digest, hex);
    return lg_stamp_write(stamp, stamp_name, want, hex, err);
}

/* The C compiler for a row's host side: cc where this machine is of its kind, else the cross
 * compiler. */
static bool compiler_for(const lg_hw_row *hw, lb_arena *arena, const char **out, lb_err *err) {
    struct utsname here;
    if (uname(&here) == 0 && strcmp(here.machine, hw->machine) == 0) {
        *out = "cc";
        return true;
    }
    *out = lb_format(arena, err, "%s-gcc", hw->triple);
    return *out != NULL;
}

/* The CPU row of the program's host side. */
static bool host_row(const build_args *a, const lg_hw_row *hw, const lg_hw_row **out, lb_err *err) {
    if (!hw->gpu && a->host != NULL) {
        return lb_err_set(err, LB_USAGE, "--host names the CPU beside a GPU; %s is a CPU itself",
                          lg_hw_name(hw));
    }
    const char *name = a->host != NULL ? a->host : hw->host;
    if (!hw->gpu) {
        *out = hw;
        return true;
    }
    if (!lg_hw_find(name, out, err)) {
        return lb_err_prefix(err, "--host");
    }
    return !(*out)->gpu || lb_err_set(err, LB_USAGE,
                                      "--host: %s is a GPU; it names the CPU beside one", name);
}

/* What compiles the kernels of a GPU program. Sources can be emitted where there is no nvcc. */
static bool cuda_compiler(lg_context *c, const build_args *a, const lg_hw_row *hw, bool building,
                          lg_cuda_compiler *out, const lg_cuda_compiler **in_use, lb_err *err) {
    lb_err why = {0};
    *in_use = NULL;
    if (!hw->gpu) {
        return !a->compiler_given ||
               lb_err_set(err, LB_USAGE, "--compiler %s is for GPU kernels; %s is a CPU",
                          a->compiler, lg_hw_name(hw));
    }
    if (!lg_cuda_compiler_find(a->compiler, c->stop, c->arena, out, &why)) {
        bool needed = building || why.code != LB_MISSING || strcmp(a->compiler, "nvrtc") == 0;
        *err = needed ? why : *err;
        return !needed;
    }
    *in_use = out;
    return true;
}

/* What does not fit the memory that was named is not built. */
static bool has_room(const lg_result *r, const lg_pools *pools, lb_arena *arena, lb_err *err) {
    lg_fit fit;
    lg_need need;
    if (!lg_need_sum(r->plan, &need, err)) {
        return false;
    }
    if (lg_need_fits(&need, pools)) {
        return true;
    }
    const char *why =
        lg_fit_find(r, pools, arena, &fit, err) ? lg_fit_refusal(&fit, pools, arena, err) : NULL;
    return why != NULL && lb_err_set(err, LB_LIMIT, "%s", why);
}

static void note_chunk(lg_context *c, const lg_result *r, const char *out) {
    lb_err why = {0};
    if (r->chunk_why != NULL) {
        c->note(lb_format(c->arena, &why, "%s: chunk %" PRIu64 " by choice: %s", out,
                          r->plan->limits.chunk, r->chunk_why));
    }
}

static bool emit(lg_context *c, const build_args *a, const lg_request *rq, bool building, built *b,
                 lb_err *err) {
    lg_result r;
    lg_cuda_compiler cuda = {0};
    const lg_cuda_compiler *in_use = NULL;
    const lg_hw_row *host = NULL;
    lg_emit_result result = {0};
    bool linked = strcmp(a->weights, "link") == 0;
    const char *cc = NULL;
    const char *compiler = NULL;
    bool ok = lg_run(rq, c->arena, &r, err) && has_room(&r, &rq->pools, c->arena, err) &&
              lg_model_name(a->model.model, c->arena, &b->name, err) &&
              host_row(a, r.hw, &host, err) && compiler_for(host, c->arena, &cc, err) &&
              cuda_compiler(c, a, r.hw, building, &cuda, &in_use, err) &&
              lg_process_first_line(cc, "--version", c->stop, c->arena, &compiler, err) &&
              folder(a, r.hw, c->arena, b, err);
    if (ok) {
        lg_note_unused(c, &r);
        image_request image = {c, &r, b};
        const lg_emit_options o = {.root = c->root,
                                   .out = b->out,
                                   .folder = b->folder,
                                   .stop = c->stop,
                                   .name = b->name,
                                   .file = r.file,
                                   .recipe = &r.recipe,
                                   .weights_linked = linked,
                                   .image = linked ? NULL : make_image,
                                   .image_arg = &image,
                                   .kv = rq->kv,
                                   .attn = r.subject.attn,
                                   .chunk_why = r.chunk_why != NULL ? r.chunk_why : "as asked",
                                   .pre = a->model.pre,
                                   .cc = cc,
                                   .compiler = compiler,
                                   .host = host,
                                   .cuda = in_use,
                                   .chat_template = a->chat_template};
        ok = lg_emit(r.plan, &r.proof, r.host, &o, c->arena, &result, err);
    }
    if (ok) {
        c->note(lb_format(c->arena, err,
                          "%s: %" PRIu32 " launches of %" PRIu32 " kernels proved by %" PRIu32
                          " facts; %" PRIu32 " files, %" PRIu32 " written",
                          b->out, r.plan->n_launches, r.plan->n_kernels, r.proof.n_facts,
                          result.n_files, result.n_changed));
        note_chunk(c, &r, b->out);
    }
    lg_cuda_compiler_close(&cuda);
    b->plan = ok && r.hw->gpu ? r.plan : NULL;
    lg_result_close(&r);
    return ok;
}

/* The command line of `lagen build`, or of `lagen emit`, which starts no compilers. */
static bool parse(lg_context *c, bool building, build_args *a, int argc, char *const *argv,
                  lg_request *rq, bool *done, lb_err *err) {
    lb_opt options[LG_MODEL_OPTIONS + 6];
    *a = (build_args){
        .model = lg_model_args_default(), .weights = "pack", .compiler = "nvcc", .jobs = 2};
    uint32_t n = lg_model_options(&a->model, options);
    options[n++] = (lb_opt){"--out",     "-o",
                            LB_OPT_NAME, (void *)&a->out,
                            0,           0,
                            false,       NULL,
                            "DIR",       "folder of the program; default out/<model>-<row>"};
    options[n++] = (lb_opt){"--weights",
                            NULL,
                            LB_OPT_WORD,
                            (void *)&a->weights,
                            0,
                            0,
                            false,
                            NULL,
                            "pack|link",
                            "pack (default): a weight image beside the program;\nlink: "
                            "the program reads the model file itself"};
    if (building) {
        options[n++] = (lb_opt){"--jobs", "-j", LB_OPT_UINT, &a->jobs, 1, 1024, false, NULL, "N",
                                "compilers at once; default 2"};
    }
    options[n++] =
        (lb_opt){"--compiler",
                 NULL,
                 LB_OPT_WORD,
                 (void *)&a->compiler,
                 0,
                 0,
                 false,
                 &a->compiler_given,
                 "nvcc|nvrtc",
                 "of GPU kernels: nvcc (default), run by ninja, or\nnvrtc, called by lagen itself"};
    options[n++] = (lb_opt){"--host",
                            NULL,
                            LB_OPT_NAME,
                            (void *)&a->host,
                            0,
                            0,
                            false,
                            NULL,
                            "ROW",
                            "CPU row of a GPU program's host side; default: the\none "
                            "that `lagen targets` shows for the GPU"};
    options[n++] = (lb_opt){"--template", NULL,  LB_OPT_NAME, (void *)&a->chat_template,
                            0,            0,     false,       NULL,
                            "FILE",       "a chat template (Jinja) in place of the model file's"};
    const lb_command command = {
        .name = building ? "lagen build" : "lagen emit",
        .summary = building
                       ? "Emits, packs and compiles a program that runs one model on one machine."
                       : "Writes a program's sources and weights without compiling them.",
        .options = options,
        .n_options = n};
    return lg_model_parse(c, &command, &a->model, argc, argv, rq, done, err) &&
           (*done || a->host == NULL || lg_row_option("--host", a->host, err));
}

static bool run_ninja(lg_context *c, const build_args *a, const char *out, const char *target,
                      lb_err *err) {
    char jobs[32];
    snprintf(jobs, sizeof jobs, "%" PRIu64, a->jobs);
    const char *const ninja[] = {"ninja", "-C", out, "-j", jobs, "--quiet", target, NULL};
    return lg_process_run(ninja, c->stop, err) || lb_err_prefix(err, "compiling %s", out);
}

/* Step 12b before the rest of step 12: a program whose cubins are not what was proved is not
 * linked. */
static bool compile_kernels(lg_context *c, const build_args *a, const built *b, lb_err *err) {
    lb_text json;
    lb_text_init(&json, c->arena);
    const char *path = lb_format(c->arena, err, "%s/cubins.json", b->out);
    if (path == NULL ||
        (strcmp(a->compiler, "nvcc") == 0 && !run_ninja(c, a, b->out, "cubins", err)) ||
        !lg_cubins_check(b->plan, b->out, c->arena, &json, err) || !lb_text_done(&json, err)) {
        return false;
    }
    c->note(lb_format(c->arena, err, "%s: %" PRIu32 " cubins are what was proved", b->out,
                      b->plan->n_kernels));
    return lb_write_file(path, json.data, json.n_bytes, true, NULL, err);
}

static bool emit_only(lg_context *c, const build_args *a, const lg_request *rq, built *b,
                      lb_err *err) {
    return emit(c, a, rq, false, b, err) && (b->plan == NULL || strcmp(a->compiler, "nvrtc") != 0 ||
                                             compile_kernels(c, a, b, err));
}

static bool build(lg_context *c, const build_args *a, const lg_request *rq, built *b,
                  lb_err *err) {
    return emit(c, a, rq, true, b, err) && (b->plan == NULL || compile_kernels(c, a, b, err)) &&
           run_ninja(c, a, b->out, NULL, err);
}

bool lg_command_emit(lg_context *c, int argc, char *const *argv, lb_err *err) {
    build_args a;
    lg_request rq;
    bool done = false;
    built b = {0};
    if (!parse(c, false, &a, argc, argv, &rq, &done, err) || done) {
        return done;
    }
    bool ok = emit_only(c, &a, &rq, &b, err);
    lg_outdir_close(b.folder);
    if (ok) {
        lb_text_printf(c->out, "%s\n", b.out);
    }
    return ok;
}

bool lg_command_build(lg_context *c, int argc, char *const *argv, lb_err *err) {
    build_args a;
    lg_request rq;
    bool done = false;
    built b = {0};
    if (!parse(c, true, &a, argc, argv, &rq, &done, err) || done) {
        return done;
    }
    bool ok = build(c, &a, &rq, &b, err);
    lg_outdir_close(b.folder);
    if (ok) {
        lb_text_printf(c->out, "%s/%s-cli\n", b.out, b.name);
    }
    return ok;
}
