/* cuda_compiler.c -- see cuda_compiler.h. */
#include "cuda_compiler.h"

#include <stdio.h>
#include <string.h>

#include "process.h"

enum { LEAST_MAJOR = 13 };

static bool new_enough(const char *which, int major, int minor, lb_err *err) {
    return major >= LEAST_MAJOR ||
           lb_err_set(err, LB_UNSUPPORTED, "%s is of CUDA %d.%d; lagen needs CUDA %d or newer",
                      which, major, minor, LEAST_MAJOR);
}

/* From the text of `nvcc --version`: "..., release 13.0, V13.0.88" and "Build cuda_13.0...". */
static bool read_nvcc(const char *text, lb_arena *arena, lg_cuda_compiler *out, lb_err *err) {
    int major = 0;
    int minor = 0;
    const char *release = strstr(text, "release ");
    const char *version = release == NULL ? NULL : strstr(release, ", V");
    const char *build = strstr(text, "Build ");
    if (version == NULL || sscanf(release, "release %d.%d", &major, &minor) != 2) {
        return lb_err_set(err, LB_UNSUPPORTED, "`nvcc --version` names no release");
    }
    int n_version = (int)strcspn(version + 3, " \n");
    int n_build = build == NULL ? 0 : (int)strcspn(build + 6, "\n");
    out->version = (uint32_t)(major * 1000 + minor * 10);
    out->identity = lb_format(arena, err, "nvcc %.*s (%.*s)", n_version, version + 3, n_build,
                              build == NULL ? "" : build + 6);
    return out->identity != NULL && new_enough("nvcc", major, minor, err);
}

bool lg_cuda_compiler_find(const char *which, const volatile sig_atomic_t *stop, lb_arena *arena,
                           lg_cuda_compiler *out, lb_err *err) {
    int major = 0;
    int minor = 0;
    const char *file = NULL;
    *out = (lg_cuda_compiler){0};
    if (strcmp(which, "nvrtc") != 0) {
        const char *text = NULL;
        return (lg_process_output("nvcc", "--version", stop, arena, &text, err) ||
                lb_err_prefix(err, "the CUDA toolkit's compiler (or use --compiler nvrtc)")) &&
               read_nvcc(text, arena, out, err);
    }
    if (!lg_nvrtc_open(&out->nvrtc, &major, &minor, err)) {
        return false;
    }
    out->version = (uint32_t)(major * 1000 + minor * 10);
    out->identity = lg_nvrtc_file(out->nvrtc, arena, &file, err)
                        ? lb_format(arena, err, "NVRTC %d.%d (%s)", major, minor, file)
                        : NULL;
    if (out->identity == NULL || !new_enough("NVRTC", major, minor, err)) {
        lg_cuda_compiler_close(out);
        return false;
    }
    return true;
}

const char *lg_cuda_identity(const lg_cuda_compiler *c) {
    return c == NULL ? "not known where this was emitted" : c->identity;
}

void lg_cuda_compiler_close(lg_cuda_compiler *c) {
    lg_nvrtc_close(c->nvrtc);
    *c = (lg_cuda_compiler){0};
}
