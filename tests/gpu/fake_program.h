/* fake_program.h -- what emitted code for a GPU is, by hand and small: three launches, kernels
 * without code, on the recorder. The third launch has its rows on y and is cut as the planner would
 * cut it, or, to show why, not at all. */
#ifndef FAKE_PROGRAM_H
#define FAKE_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/gpu_abi.h"
#include "memory.h"
#include "recorder/control.h"

enum {
    FAKE_T_MAX = 131072,
    FAKE_SLOTS = 4,
    FAKE_VOCAB = 320,
    FAKE_WEIGHT_BYTES = 100000,
    FAKE_KERNELS = 3
};

typedef struct fake_program {
    rt_model model;
    rt_gpu gpu;
    rt_gpu_kernel kernels[FAKE_KERNELS];
    uint8_t cubins[FAKE_KERNELS][2048];
    rt_file file;
    char folder[64], settings[128], digest[80];
    uint32_t *words; /* arrays of a step: 0, 1, 2, ... and zeros */
} fake_program;

extern bool fake_uncut; /* the test hook that takes the static tile away */

/* Makes the folder with weights.bin, points LAGEN_CUDA_DRIVER and LAGEN_RECORDER at the recorder
 * with these settings ("key value\n" lines; NULL: an H200 with 4 GiB). */
void fake_program_init(fake_program *p, const char *settings);
void fake_program_settings(const fake_program *p, const char *settings);
void fake_program_free(fake_program *p);

/* Replaces kernel i's cubin: registers, local, static shared and parameter bytes as a compiler
 * might have made them. */
void fake_program_kernel(fake_program *p, uint32_t i, uint32_t regs, uint32_t local, uint32_t smem,
                         uint32_t params);

/* Map, load, ready. */
bool fake_program_start(const fake_program *p, const char *wanted, rt_memory *mem, lb_err *err);
/* A step of T rows of one sequence with one logit row; or of T sequences, one row and one logit row
 * each. */
bool fake_program_prefill(const fake_program *p, const rt_memory *mem, uint32_t T, lb_err *err);
bool fake_program_decode(const fake_program *p, const rt_memory *mem, uint32_t T, lb_err *err);
/* The same, and the step chooses the tokens: one launch more. */
bool fake_program_choose(const fake_program *p, const rt_memory *mem, uint32_t T, lb_err *err);

/* control.h of the loaded recorder. */
typedef struct fake_control {
    void *library;
    lagen_recorder_calls_fn *calls;
    lagen_recorder_fail_fn *fail_at;
    lagen_recorder_fail_again_fn *fail_again;
    lagen_recorder_launches_fn *launches;
    lagen_recorder_bytes_fn *bytes;
    lagen_recorder_last_fn *last;
} fake_control;
void fake_control_open(fake_control *c);
void fake_control_close(fake_control *c);

#endif
