/* load.h -- fills the weights arena, on all threads, and checks what it read.
 *
 * Packed: the image file is the arena byte for byte. Pieces of 16 MiB are read and hashed by
 * whichever thread is free, and the digest of all of them (runtime/base/digest.h: a tree over
 * plain SHA-256, so that checking does not wait for one thread) must be the one in the emitted
 * code. Linked: rows come from the model's own files, whose sizes are checked, through
 * lb_image_pack. */
#ifndef RT_LOAD_H
#define RT_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "memory.h"
#include "model_abi.h"
#include "pool.h"

/* Called now and then, on the thread that called the loader. */
typedef void (*rt_progress_fn)(void *arg, uint64_t done_bytes, uint64_t total_bytes);

typedef struct rt_load_opts {
    const char *dir; /* the program's folder; names of files are relative to it unless absolute */
    rt_progress_fn progress; /* may be NULL */
    void *progress_arg;
} rt_load_opts;

/* Fills mem->arenas[RT_ARENA_WEIGHTS] as model->weights_linked says. Fails with LB_DAMAGED for a
 * file that is missing, of another size, unreadable or of another digest (exit status 3);
 * LB_BAD_VALUE for an infinite scale in a model file; LB_BAD_SHAPE where the emitted tables
 * contradict each other. The arena's content is then undefined. */
bool rt_weights_load(const rt_model *model, const rt_load_opts *opts, rt_pool *pool,
                     rt_memory *mem, lb_err *err);

/* The folder that holds the running program, from the system (never from argv). */
bool rt_program_dir(char *out, size_t size, lb_err *err);

#endif
