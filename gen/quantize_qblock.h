/* quantize_qblock.h -- the quantisers of single qblocks, shared by quantize*.c.
 *
 * Each takes the qblock's elements (all finite) and writes its bytes in the layout that
 * templates/quant/<type>.lua reads. Formulas: block quantisation as in ggml's reference quantisers
 * for the 32- and 64-element types; for the 256-element types one scale per sub-block from its
 * extremes, no search. */
#ifndef LG_QUANTIZE_QBLOCK_H
#define LG_QUANTIZE_QBLOCK_H

#include <stdint.h>

/* The largest integer <= v in 0..top; NaN gives 0. v + 0.5 rounds. */
static inline uint8_t lg_level(float v, uint8_t top) {
    if (!(v > 0.0F)) {
        return 0;
    }
    return v >= (float)top ? top : (uint8_t)v;
}

static inline void lg_put_u16(uint8_t *out, uint16_t v) {
    out[0] = (uint8_t)(v & 0xFFU);
    out[1] = (uint8_t)(v >> 8);
}

static inline void lg_put_u32(uint8_t *out, uint32_t v) {
    lg_put_u16(out, (uint16_t)(v & 0xFFFFU));
    lg_put_u16(out + 2, (uint16_t)(v >> 16));
}

void lg_qblock_q2_k(const float *x, uint8_t *out);
void lg_qblock_q3_k(const float *x, uint8_t *out);
void lg_qblock_q4_k(const float *x, uint8_t *out);
void lg_qblock_q5_k(const float *x, uint8_t *out);
void lg_qblock_q6_k(const float *x, uint8_t *out);
void lg_qblock_iq4_nl(const float *x, uint8_t *out);
void lg_qblock_iq4_xs(const float *x, uint8_t *out);
void lg_qblock_mxfp4(const float *x, uint8_t *out);
void lg_qblock_nvfp4(const float *x, uint8_t *out);

#endif
