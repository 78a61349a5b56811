/* device_sample.h -- the kernels of sampling for one vocabulary, in C and in CUDA: a table that
 * test_sample.py makes for device_sample.c. */
#ifndef DEVICE_SAMPLE_H
#define DEVICE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stages: tiles, total, pick. `params` are the kernel's parameters, all of them pointers. */
typedef struct sample_case {
    uint32_t n_vocab, n_rows, n_tiles, n_words;
    void (*plain[3])(const void *const *params, uint32_t cta_begin, uint32_t cta_end);
    void (*soft[3])(const void *params);
    uint32_t block[3];
    size_t smem_bytes[3];
} sample_case;

extern const sample_case sample_cases[];
extern const uint32_t n_sample_cases;

#ifdef __cplusplus
}
#endif

#endif
