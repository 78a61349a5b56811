/* cuda_compiler.h -- what turns kernel text into cubins: nvcc, which the emitted build runs, or
 * NVRTC, which lagen calls itself. Its identity is an input of the program and stands in the
 * manifest. */
#ifndef LG_CUDA_COMPILER_H
#define LG_CUDA_COMPILER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct lg_nvrtc lg_nvrtc; /* nvrtc.c */

typedef struct lg_cuda_compiler {
    const char *identity; /* one line: name, version, build */
    uint32_t version;     /* 13000: CUDA 13.0 */
    lg_nvrtc *nvrtc;      /* NULL: nvcc */
} lg_cuda_compiler;

/* `which` is "nvcc" (on PATH) or "nvrtc". LB_MISSING if it is not here, LB_UNSUPPORTED below
 * CUDA 13, LB_CANCELLED if `*stop` is set meanwhile. Close with lg_cuda_compiler_close, which allows
 * a zeroed struct. */
bool lg_cuda_compiler_find(const char *which, const volatile sig_atomic_t *stop, lb_arena *arena,
                           lg_cuda_compiler *out, lb_err *err);
void lg_cuda_compiler_close(lg_cuda_compiler *c);

/* The identity, or the words for there being none (`c` NULL). */
const char *lg_cuda_identity(const lg_cuda_compiler *c);

typedef struct lg_cuda_header {
    const char *name, *text;
} lg_cuda_header;

typedef struct lg_cuda_source {
    const char *name, *text;  /* for messages; the whole file */
    const char *const *flags; /* e.g. "-arch=sm_90" */
    uint32_t n_flags;
    const lg_cuda_header *headers; /* that the text may include */
    uint32_t n_headers;
} lg_cuda_source;

/* nvrtc.c: opens the library; the cubin of one source, in `arena`. LB_SYNTAX with the compiler's
 * first message. */
bool lg_nvrtc_open(lg_nvrtc **out, int *major, int *minor, lb_err *err);
/* "libnvrtc.so.13.0.88, 104857600 bytes": the library's file, because NVRTC tells no build. */
bool lg_nvrtc_file(const lg_nvrtc *n, lb_arena *arena, const char **out, lb_err *err);
void lg_nvrtc_close(lg_nvrtc *n);
bool lg_nvrtc_compile(lg_nvrtc *n, const lg_cuda_source *s, lb_arena *arena, void **cubin,
                      size_t *n_bytes, lb_err *err);

#endif
