/* quantize_code.c -- types whose codes index a table of values: IQ4_NL, IQ4_XS, MXFP4, NVFP4; see
 * quantize.h. */
#include <math.h>
#include <string.h>

#include "half.h"
#include "quantize_qblock.h"

/* Twice the values of E2M1 (OCP Microscaling Formats 1.0, section 5.3.3), sign in bit 3. */
static const int8_t fp4_twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* The levels of IQ4_NL (kvalues_iq4nl of ggml). */
static const int8_t nl[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                              1,    13,   25,  38,  53,  69,  89,  113};

/* The index whose unit * table value is nearest to v; the lowest of equals. */
static uint8_t nearest(const int8_t *table, float unit, float v) {
    uint8_t best = 0;
    float best_error = fabsf((float)table[0] * unit - v);
    for (uint8_t i = 1; i < 16; i++) {
        float error = fabsf((float)table[i] * unit - v);
        if (error < best_error) {
            best = i;
            best_error = error;
        }
    }
    return best;
}

static float max_abs(const float *x, uint32_t n) {
    float best = 0.0F;
    for (uint32_t i = 0; i < n; i++) {
        best = fmaxf(best, fabsf(x[i]));
    }
    return best;
}

/* n codes, element i in the low nibble of byte i, element i + n/2 in its high nibble. */
static void put_codes(const int8_t *table, float unit, const float *x, uint32_t n, uint8_t *out) {
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t lo = nearest(table, unit, x[i]);
        uint32_t hi = nearest(table, unit, x[i + n / 2]);
        out[i] = (uint8_t)(lo | hi << 4);
    }
}

/* The scale that puts the largest magnitude of 32 elements, sign kept, on the lowest level. */
static float nl_step(const float *x) {
    float far = 0.0F;
    for (uint32_t i = 0; i < 32; i++) {
        far = fabsf(x[i]) > fabsf(far) ? x[i] : far;
    }
    return far / (float)nl[0];
}

void lg_qblock_iq4_nl(const float *x, uint8_t *out) {
    uint16_t d = lg_half_bits(nl_step(x));
    lg_put_u16(out, d);
    put_codes(nl, lg_half_float(d), x, 32, out + 2);
}

/* v rounded to nearest, within -32..31. */
static int32_t sub_scale(float v) {
    v = v < -32.0F ? -32.0F : v > 31.0F ? 31.0F : v;
    return (int32_t)roundf(v);
}

/* One scale over eight groups of 32 with integer scales of their own: the widest group has -32. */
void lg_qblock_iq4_xs(const float *x, uint8_t *out) {
    float step[8];
    float widest = 0.0F;
    uint32_t high = 0;
    for (uint32_t g = 0; g < 8; g++) {
        step[g] = nl_step(x + 32 * g);
        widest = fabsf(step[g]) > fabsf(widest) ? step[g] : widest;
    }
    uint16_t bits = lg_half_bits(widest / -32.0F);
    float d = lg_half_float(bits);
    memset(out, 0, 8);
    for (uint32_t g = 0; g < 8; g++) {
        int32_t scale = d != 0.0F ? sub_scale(step[g] / d) : 0;
        uint32_t code = (uint32_t)(scale + 32);
        out[4 + g / 2] |= (uint8_t)((code & 15U) << (g % 2 * 4));
        high |= code >> 4 << (2 * g);
        put_codes(nl, d * (float)scale, x + 32 * g, 32, out + 8 + 16 * g);
    }
    lg_put_u16(out, bits);
    lg_put_u16(out + 2, (uint16_t)high);
}

/* floor(log2 v) for v > 0. */
static int floor_log2(float v) {
    int exp = 0;
    (void)frexpf(v, &exp);
    return exp - 1;
}

/* The scale's exponent is that of the largest magnitude less 2, the exponent of E2M1's largest
 * value (OCP Microscaling Formats 1.0, section 6.3); 2^(e - 128) because the codes are doubled. */
void lg_qblock_mxfp4(const float *x, uint8_t *out) {
    float top = max_abs(x, 32);
    int e = top > 0.0F ? floor_log2(top) - 2 + 127 : 0;
    e = e < 0 ? 0 : e;
    out[0] = (uint8_t)e;
    put_codes(fp4_twice, ldexpf(1.0F, e - 128), x, 32, out + 1);
}

/* v >= 0 as an unsigned E4M3 byte (bias 7), at most 448; halves round up. */
static uint8_t ue4m3(float v) {
    if (!(v > 0.0F)) {
        return 0;
    }
    int e = floor_log2(v);
    if (e <= -7) {
        return lg_level(v * 512.0F + 0.5F, 7);
    }
    uint32_t units = (uint32_t)lg_level(ldexpf(v, 3 - e) + 0.5F, 16); /* 8..16 eighths */
    uint32_t code = (uint32_t)(e + 6) * 8U + units; /* 16 carries into the exponent by itself */
    return code < 0x7EU ? (uint8_t)code : 0x7E;
}

/* Half of the byte's value, because the codes are doubled. */
static float half_of_ue4m3(uint8_t b) {
    uint32_t e = b >> 3;
    float m = (float)(b & 7U);
    return e == 0 ? m * 0x1p-10F : ldexpf(1.0F + m / 8.0F, (int)e - 8);
}

void lg_qblock_nvfp4(const float *x, uint8_t *out) {
    for (uint32_t s = 0; s < 4; s++) {
        out[s] = ue4m3(max_abs(x + 16 * s, 16) / 6.0F);
        put_codes(fp4_twice, half_of_ue4m3(out[s]), x + 16 * s, 16, out + 4 + 8 * s);
    }
}
