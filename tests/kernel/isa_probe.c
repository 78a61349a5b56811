/* isa_probe.c -- test program: every function of the instruction layer on the floats of a file.
 *
 *   isa_probe IN OUT
 * IN holds n float32 (n a multiple of 768), taken as three arrays a, b, c of n / 3. OUT receives
 * the results of one function after the other, in a fixed order and whatever the width of a vector,
 * so that two rows give the same file if and only if they compute the same bits. Compiled for each
 * row with -DISA_HEADER="...". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include ISA_HEADER
#include "isa_math.h"

static FILE *out;

static void put(const void *p, size_t n_bytes) {
    if (fwrite(p, 1, n_bytes, out) != n_bytes) {
        fprintf(stderr, "isa_probe: write failed\n");
        exit(1);
    }
}

/* Which NaN an operation makes is the one thing that processors do not agree on: all count as one.
 */
static void put_f(isa_f v) {
    uint32_t lane[ISA_N];
    memcpy(lane, &v, sizeof lane);
    for (int l = 0; l < ISA_N; l++) {
        lane[l] = (lane[l] & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : lane[l];
    }
    put(lane, sizeof lane);
}

static void put_halves(uint16_t *h, size_t n) {
    for (size_t i = 0; i < n; i++) {
        h[i] = (h[i] & 0x7fffu) > 0x7c00u ? 0x7e00u : h[i];
    }
    put(h, n * sizeof *h);
}

static void put_i(isa_i v) {
    put(&v, sizeof v);
}

#define EACH_VECTOR for (size_t i = 0; i < n; i += ISA_N)

static void arithmetic(const float *a, const float *b, const float *c, size_t n) {
    EACH_VECTOR put_f(isa_fma(isa_load(a + i), isa_load(b + i), isa_load(c + i)));
    EACH_VECTOR put_f(isa_add(isa_load(a + i), isa_load(b + i)));
    EACH_VECTOR put_f(isa_sub(isa_load(a + i), isa_load(b + i)));
    EACH_VECTOR put_f(isa_mul(isa_load(a + i), isa_load(b + i)));
    EACH_VECTOR put_f(isa_div(isa_load(a + i), isa_load(b + i)));
    EACH_VECTOR put_f(isa_neg(isa_load(a + i)));
    EACH_VECTOR put_f(isa_max(isa_load(a + i), isa_load(b + i)));
    EACH_VECTOR put_f(isa_exp(isa_load(a + i)));
    EACH_VECTOR put_f(isa_silu(isa_load(a + i)));
    EACH_VECTOR put_f(isa_softplus(isa_load(a + i)));
    for (size_t i = 0; i < n; i++) {
        float one[2] = {isa_fma1(a[i], b[i], c[i]), isa_sqrt1(a[i] < 0.0f ? -a[i] : a[i])};
        put(one, sizeof one);
    }
}

/* Halves: all of them in, and out of the floats. */
static void halves(const float *a, size_t n) {
    static uint16_t all[65536], back[65536];
    for (uint32_t h = 0; h < 65536; h++) {
        all[h] = (uint16_t)h;
    }
    for (uint32_t h = 0; h < 65536; h += ISA_N) {
        put_f(isa_cvt_half(isa_ishr(isa_as_i(isa_load_bf16(all + h)), 16)));
        isa_store_half(back + h, isa_load_half(all + h));
    }
    put_halves(back, 65536);
    for (uint32_t h = 0; h < 65536; h += 16) { /* 16 at a time, whatever the width */
        float one[16];
        for (uint32_t k = 0; k < 16; k++) {
            one[k] = isa_half1(all + h + k);
        }
        for (uint32_t k = 0; k < 16; k += ISA_N) {
            put_f(isa_load(one + k));
        }
    }
    for (uint32_t h = 0; h < 65536; h += ISA_N) {
        put_f(isa_load_bf16(all + h));
    }
    EACH_VECTOR {
        uint16_t h[ISA_N];
        isa_store_half(h, isa_load(a + i));
        put_halves(h, ISA_N);
    }
}

/* How many of the ISA_N lanes from v on are among the first k of 16. */
static uint32_t lanes_here(uint32_t k, uint32_t v) {
    return k < v ? 0 : k - v < ISA_N ? k - v : ISA_N;
}

static void masks(const float *a, const float *b, size_t n) {
    EACH_VECTOR {
        isa_m greater = isa_gt(isa_load(a + i), isa_load(b + i));
        put_f(isa_sel(greater, isa_load(a + i), isa_set1(7.0f)));
    }
    for (uint32_t k = 0; k <= 16; k++) {
        float stored[16] = {0};
        for (uint32_t v = 0; v < 16; v += ISA_N) {
            isa_m first = isa_first(lanes_here(k, v));
            put_f(isa_sel(first, isa_load(a + v), isa_set1(7.0f)));
        }
        for (uint32_t v = 0; v < 16; v += ISA_N) {
            put_f(isa_load_n(a + v, lanes_here(k, v)));
            isa_store_n(stored + v, isa_load(a + v), lanes_here(k, v));
        }
        put(stored, sizeof stored);
    }
}

static void integers(const float *a, const uint8_t *bytes, size_t n) {
    EACH_VECTOR put_i(isa_cvt_i(isa_mul(isa_load(a + i), isa_set1(0x1p-120f))));
    EACH_VECTOR put_f(isa_cvt_f(isa_iload(bytes + 4 * i)));
    EACH_VECTOR put_i(isa_load_u8(bytes + i));
    EACH_VECTOR put_i(isa_load_s8(bytes + i));
    EACH_VECTOR put_i(isa_iadd(isa_iload(bytes + 4 * i), isa_iset1(-77)));
    EACH_VECTOR put_i(isa_iand(isa_iload(bytes + 4 * i), isa_iset1(0x0ff00ff1)));
    EACH_VECTOR put_i(isa_ior(isa_iload(bytes + 4 * i), isa_iset1(0x0ff00ff1)));
    EACH_VECTOR put_i(isa_ishl(isa_iload(bytes + 4 * i), 5));
    EACH_VECTOR put_i(isa_ishr(isa_iload(bytes + 4 * i), 5));
    EACH_VECTOR put_i(isa_imax(isa_iload(bytes + 4 * i), isa_iset1(-5)));
    EACH_VECTOR put_i(isa_ixor(isa_iload(bytes + 4 * i), isa_iset1(0x0ff00ff1)));
    EACH_VECTOR {
        isa_i at = isa_iand(isa_iload(bytes + 4 * i), isa_iset1(0x0f0f0f0f));
        put_i(isa_lookup16(isa_table16(bytes + i / 16 * 16), at));
    }
    static uint16_t table[2049];
    memcpy(table, bytes, sizeof table);
    for (uint32_t size = 256; size <= 2048; size *= 2) {
        EACH_VECTOR {
            int32_t keep = (int32_t)(size - 1) * 0x10001;
            isa_i at = isa_iand(isa_iload(bytes + 4 * i), isa_iset1(keep));
            put_i(isa_lookup_u16(table, size, at));
        }
    }
    for (uint32_t k = 0; k < 4; k++) {
        EACH_VECTOR put_i(isa_byte4(isa_iload(bytes + 4 * i), k));
    }
    for (uint32_t k = 0; k < 8; k++) {
        EACH_VECTOR put_i(isa_spread4(isa_iload(bytes + 4 * i), k, k % 4 + 3));
    }
    EACH_VECTOR {
        int8_t q[ISA_N];
        isa_store_s8(q, isa_load_s8(bytes + i));
        put(q, sizeof q);
    }
}

/* Dot products over 8 words with every code width, activations -127..127, extremes first. */
static void dots(const uint8_t *bytes, size_t n) {
    int8_t q[32];
    for (size_t at = 0; at + 8 * 4 * 16 <= 4 * n; at += 8 * 4 * 16) {
        for (size_t e = 0; e < 32; e++) {
            int32_t x = (int8_t)bytes[(at + 5 * e) % n];
            q[e] = (int8_t)(at == 0 ? 127 : at == 512 ? -127 : x < -127 ? -127 : x);
        }
        for (int kind = 0; kind < 5; kind++) {
            static const int32_t keep[5] = {0x0f0f0f0f, 0x1f1f1f1f, 0x3f3f3f3f, -1, 0x7f7f7f7f};
            for (size_t v = 0; v < 16; v += ISA_N) {
                isa_i w[8];
                int32_t total = 0;
                for (size_t e = 0; e < 32; e++) {
                    total += q[e];
                }
                for (size_t k = 0; k < 8; k++) {
                    w[k] = isa_iload(bytes + at + 64 * k + 4 * v);
                    if (at <= 512) {
                        w[k] = isa_iset1(kind == 3 ? (int32_t)0x80808080u : -1);
                    }
                    w[k] = isa_iand(w[k], isa_iset1(keep[kind]));
                    w[k] = kind == 3 ? isa_s8_prep(w[k]) : w[k];
                }
                isa_i zero = isa_iset1(0), bias = isa_iset1(-ISA_S8_BIAS * total);
                put_i(kind == 0   ? isa_dot_u4(zero, w, q, 8)
                      : kind == 1 ? isa_dot_u5(zero, w, q, 8)
                      : kind == 2 ? isa_dot_u6(zero, w, q, 8)
                      : kind == 3 ? isa_dot_s8(bias, w, q, 8)
                                  : isa_dot_u7(zero, w, q, 8));
            }
        }
    }
}

static void across(const float *a, const uint8_t *bytes, size_t n) {
    for (size_t i = 0; i + 256 <= n; i += 256) {
        isa_f v[256 / ISA_N], best = isa_load(a + i), even, odd, low, high;
        isa_i top = isa_iload(a + i);
        int32_t sums[2] = {0, 0};
        for (size_t k = 0; k < 256 / ISA_N; k++) {
            v[k] = isa_load(a + i + k * ISA_N);
            best = isa_max(best, v[k]);
            top = isa_imax(top, isa_as_i(v[k]));
        }
        for (size_t k = 0; k < 256; k += 16) {
            sums[0] = 3 * sums[0] + isa_sum16((const int8_t *)bytes + i + k);
        }
        sums[1] = (int32_t)isa_itop(top);
        float f[2] = {isa_lanes_sum(v), isa_top(best) + 0.0f};
        put(f, sizeof f);
        put(sums, sizeof sums);
        for (size_t k = 0; k < 256; k += 2 * ISA_N) {
            isa_unzip(isa_load(a + i + k), isa_load(a + i + k + ISA_N), &even, &odd);
            isa_zip(odd, even, &low, &high);
            put_f(low);
            put_f(high);
        }
    }
    const int16_t *s = (const int16_t *)(const void *)bytes;
    for (size_t i = 0; i + 16 <= n; i += 16) {
        float scaled[8];
        int32_t times[8];
        isa_sum8_scaled(s + i, a + i, scaled);
        isa_sum8_times(s + i, -32, times);
        put(scaled, sizeof scaled);
        put(times, sizeof times);
    }
}

int main(int argc, char **argv) {
    FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
    out = f != NULL ? fopen(argv[2], "wb") : NULL;
    if (out == NULL) {
        fprintf(stderr, "usage: isa_probe IN OUT\n");
        return 2;
    }
    static float data[3 * 65536];
    size_t n = fread(data, sizeof(float), 3 * 65536, f) / 3;
    fclose(f);
    const uint8_t *bytes = (const uint8_t *)(const void *)(data + 2 * n);
    arithmetic(data, data + n, data + 2 * n, n);
    halves(data, n);
    masks(data, data + n, n);
    integers(data, bytes, n);
    dots(bytes, n);
    across(data, bytes, n);
    for (size_t i = 0; i < n; i++) {
        double cs[2];
        isa_cos_sin((double)i * 16.0 + (double)i / 7.0, &cs[0], &cs[1]);
        put(cs, sizeof cs);
    }
    return fclose(out) == 0 ? 0 : 1;
}
