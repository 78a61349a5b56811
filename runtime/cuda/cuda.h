/* cuda.h -- a GPU program's device: what cuda/ *.c share. Nothing else includes it but tests; the
 * rest of the runtime sees rt_device_ops, emitted code sees gpu_abi.h. One thread at a time makes
 * steps; loading is done by several. */
#ifndef RT_CUDA_CUDA_H
#define RT_CUDA_CUDA_H

#include "cuda/driver.h"
#include "cuda/gpu_abi.h"

enum {
    RT_CUDA_STAGES = LB_STAGES, /* workers that upload weights at the same time */
    RT_CUDA_GRAPHS = 16, /* decode classes that get a graph: steps of 1, 2, .. rows, one a slot */
    RT_CUDA_ENV_BYTES = 512
};

/* The board that the program runs on, as `info` shows it. */
typedef struct rt_cuda_board {
    char name[96], uuid[48], pci[24]; /* "GPU-xxxxxxxx-...", "0000:01:00.0" */
    int index, major, minor, sms;
    size_t total_bytes;
} rt_cuda_board;

/* The launches that a step has made so far; the first and the last stand for all in messages. */
typedef struct rt_cuda_span {
    uint32_t n;
    rt_gpu_launch first, last; /* if n > 0 */
} rt_cuda_span;

typedef struct rt_cuda_graph {
    rt_cu_graph_exec exec; /* NULL: none */
    rt_cuda_span span;
} rt_cuda_graph;

struct rt_cuda {
    rt_cuda_driver d;
    const rt_model *model;
    rt_cu_device device;
    rt_cuda_board board;
    char
        env[RT_CUDA_ENV_BYTES]; /* variables of the environment that libcuda reads, as NAME=value */
    rt_cu_context context;
    rt_cu_stream stream;
    rt_cu_ptr arenas[RT_N_ARENAS];
    uint8_t *io;                             /* pinned, arena_bytes[RT_ARENA_IO] */
    uint8_t *stages[RT_CUDA_STAGES];         /* pinned, until ready */
    rt_cu_module *modules;                   /* [n_kernels] */
    rt_cu_function *functions;               /* [n_kernels] */
    /* of decode with i + 1 rows: [0] gives logits, [1] choices */
    rt_cuda_graph graphs[2][RT_CUDA_GRAPHS];
    bool shared; /* the device's memory is the host's too */
    uint64_t free_before,
        free_after; /* bytes free on the device before the arenas, and when ready */
    const rt_trace *trace; /* of the running step, or NULL */
    rt_cuda_span span;     /* of the running step */
    bool lost;
};

/* env.c: collects the variables that libcuda reads into `shown`; fails with LB_BAD_VALUE for one
 * that would change what runs. */
bool rt_cuda_env(char *shown, size_t size, lb_err *err);

/* cuda.c: bytes that arenas can have. `shared`: the board's memory is the host's too; there the
 * driver calls free what holds nothing at all, which is little after a large file was read, and
 * what counts is what the system can give (UINT64_MAX: it does not tell). */
uint64_t rt_cuda_room(bool shared, uint64_t free_bytes, uint64_t available);

/* choose.c: the one device that `wanted` means and that fits the program. LB_WRONG_BOX lists what
 * is there. */
bool rt_cuda_choose(rt_cuda *c, const char *wanted, lb_err *err);

/* choose.c: the GPU that the program needs, those that are here, and the driver's variables; for
 * rt_device_ops.describe. */
void rt_cuda_describe(const rt_model *model, lb_text *out);

/* functions.c: loads every cubin and function at once, and compares what the driver says of each
 * with what was proved. LB_DAMAGED if a number differs. */
bool rt_cuda_load_functions(rt_cuda *c, lb_err *err);

/* step.c: runs each kernel once, then makes the graphs. */
bool rt_cuda_warm(rt_cuda *c, lb_err *err);

/* step.c: writes the block of a step that begins at device address `base`; returns its bytes, at
 * most rt_gpu.step_bytes. Layout: rt_step with device addresses (64 bytes), slot_of_seq,
 * logit_rows, token_of_row, seq_of_row, pos_of_row; picks, if there are, at a multiple of 8. */
uint64_t rt_cuda_pack_step(const rt_step *s, rt_cu_ptr base, uint8_t *to);

#endif
