-- q8_0: keys and values as signed bytes with a half as scale for each 32 dimensions (docs/numerics.md). A block of 16
-- positions of one head is its codes, K as [d][16] and V as [16][d], then their scales, K as [d / 32][16] and V as
-- [16][d / 32]. kv/f16.lua says what kernels ask for.
module.ctype = "int8_t"
module.elem = "i8"
module.elem_bytes = 1

function module.check(op)
  if op.hd % 32 ~= 0 then fail("kv q8_0: head size " .. op.hd .. " is no multiple of 32") end
end

function module.block(hd) return 17 * hd end

%%template c_load(hd)
/* Dimension `dim` of ISA_N keys from position t on (a multiple of ISA_N) of those at `keys`. */
ISA_FN isa_f kv_keys(const int8_t *keys, uint32_t t, uint32_t dim) {
    const int8_t *cells = keys + (size_t)(t / 16) * ${17 * hd};
    isa_f scale = isa_load_half(cells + ${16 * hd} + dim / 32 * 32 + t % 16 * 2);
    return isa_mul(isa_cvt_f(isa_load_s8(cells + 16 * dim + t % 16)), scale);
}

/* ISA_N dimensions from `dim` on of value t of those at `values`. */
ISA_FN isa_f kv_values(const int8_t *values, uint32_t t, uint32_t dim) {
    const int8_t *cells = values + (size_t)(t / 16) * ${17 * hd};
    isa_f scale = isa_set1(isa_half1(cells + ${16 * hd} + (t % 16 * ${hd // 32} + dim / 32) * 2));
    return isa_mul(isa_cvt_f(isa_load_s8(cells + t % 16 * ${hd} + dim)), scale);
}

%%template c_store(hd)
/* One group of 32 to bytes; returns its scale as a half. */
static uint16_t to_bytes(const float *x, int8_t *q) {
    isa_i top = isa_iset1(0);
    for (uint32_t i = 0; i < 32; i += ISA_N) {
        top = isa_imax(top, isa_iand(isa_as_i(isa_load(x + i)), isa_iset1(0x7fffffff)));
    }
    uint16_t half[ISA_N];
    isa_store_half(half, isa_set1(isa_soft_float(isa_itop(top)) / 127.0f));
    const float d = isa_half1(half);
    const isa_f inverse = isa_set1(d > 0.0f ? 1.0f / d : 0.0f);
    const isa_f low = isa_set1(-127.0f), high = isa_set1(127.0f);
    for (uint32_t i = 0; i < 32; i += ISA_N) {
        isa_f v = isa_mul(isa_load(x + i), inverse);
        v = isa_sel(isa_gt(v, low), v, low);
        v = isa_sel(isa_gt(high, v), v, high);
        isa_store_s8(q + i, isa_cvt_i(v));
    }
    return half[0];
}

/* Position `at` of one head's cache: its key. */
static void store_key(const float *x, int8_t *cache, uint32_t at) {
    int8_t *cells = cache + (size_t)(at / 16) * ${17 * hd};
    for (uint32_t g = 0; g < ${hd // 32}; g++) {
        int8_t q[32];
        const uint16_t d = to_bytes(x + 32 * g, q);
        for (uint32_t i = 0; i < 32; i++) {
            cells[16 * (32 * g + i) + at % 16] = q[i];
        }
        memcpy(cells + ${16 * hd} + (16 * g + at % 16) * 2, &d, 2);
    }
}

/* And its value. */
static void store_value(const float *x, int8_t *cache, uint32_t at) {
    int8_t *cells = cache + (size_t)(at / 16) * ${17 * hd};
    for (uint32_t g = 0; g < ${hd // 32}; g++) {
        const uint16_t d = to_bytes(x + 32 * g, cells + at % 16 * ${hd} + 32 * g);
        memcpy(cells + ${16 * hd} + (at % 16 * ${hd // 32} + g) * 2, &d, 2);
    }
}

%%template cu_values(hd, n)
/* Dimensions dim .. dim + ${n - 1} (a multiple of ${n}) of value t of those at `values`. */
ISA_FN void kv_values${n}(const int8_t *values, uint32_t t, uint32_t dim, float (&value)[${n}]) {
    const int8_t *cells = values + t / 16 * ${17 * hd};
    const uint16_t *scales = (const uint16_t *)(const void *)(cells + ${16 * hd});
    const float d = isa_half(scales[t % 16 * ${hd // 32} + dim / 32]);
    const void *at = cells + t % 16 * ${hd} + dim;
% if n == 8 then
    const isa_x2 all = isa_load_x2(at);
    const uint32_t *w = all.w;
% else
    const uint32_t w[1] = {${n == 4 and "isa_load_x1(at)" or "*(const uint16_t *)at"}};
% end
#pragma unroll
    for (uint32_t i = 0; i < ${n}; i++) {
        value[i] = (float)(int8_t)(w[i / 4] >> 8 * (i % 4)) * d;
    }
}

%%template cu_load_wide(hd, n)
/* Dimension `dim` of keys t and t + 1 (t even) of those at `keys`. */
ISA_FN void kv_keys2(const int8_t *keys, uint32_t t, uint32_t dim, float (&key)[2]) {
    const int8_t *cells = keys + t / 16 * ${17 * hd};
    const uint32_t d = isa_load_x1(cells + ${16 * hd} + (dim / 32 * 16 + t % 16) * 2);
    const uint32_t both = *(const uint16_t *)(const void *)(cells + 16 * dim + t % 16);
    key[0] = (float)(int8_t)both * isa_half(d & 0xffffu);
    key[1] = (float)(int8_t)(both >> 8) * isa_half(d >> 16);
}

${module.cu_values(hd, n)}

%%template cu_load_8(hd)
/* Dimension `dim` of keys t .. t + 7 (a multiple of 8) of those at `keys`. */
ISA_FN void kv_keys8(const int8_t *keys, uint32_t t, uint32_t dim, float (&key)[8]) {
    const int8_t *cells = keys + t / 16 * ${17 * hd};
    const isa_x2 codes = isa_load_x2(cells + 16 * dim + t % 16);
    const isa_x4 scales = isa_load_x4(cells + ${16 * hd} + (dim / 32 * 16 + t % 16) * 2);
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        key[i] = (float)(int8_t)(codes.w[i / 4] >> 8 * (i % 4)) * isa_half(scales.w[i / 2] >> 16 * (i % 2) & 0xffffu);
    }
}

${module.cu_values(hd, 8)}

%%template cu_store(hd, n_kv, cap, threads)
/* A warp's 32 numbers to bytes: returns this lane's, with the scale of all as a half. */
ISA_FN int8_t to_byte(float x, uint16_t *d) {
    const float top = isa_float(isa_warp_umax(isa_bits(x) & 0x7fffffffu));
    *d = isa_to_half(isa_div(top, 127.0f));
    const float scale = isa_half(*d);
    float v = x * (scale > 0.0f ? isa_div(1.0f, scale) : 0.0f);
    v = v > -127.0f ? v : -127.0f;
    return (int8_t)isa_cvt_i(127.0f > v ? v : 127.0f);
}

/* Position `at` of ${n_kv} heads' caches: their keys. A warp has 32 dimensions of one head. */
ISA_FN void store_keys(const float *x, int8_t *cache, uint32_t at) {
    for (uint32_t g = isa_warp(); g < ${n_kv * hd // 32}; g += ${threads // 32}) {
        const uint32_t head = g / ${hd // 32}, of = g % ${hd // 32};
        int8_t *cells = cache + (size_t)head * ${cap // 16 * 17 * hd} + (size_t)(at / 16) * ${17 * hd};
        uint16_t d;
        cells[16 * (32 * of + isa_lane()) + at % 16] = to_byte(x[32 * g + isa_lane()], &d);
        if (isa_lane() == 0) {
            ((uint16_t *)(void *)(cells + ${16 * hd}))[16 * of + at % 16] = d;
        }
    }
}

/* And their values. */
ISA_FN void store_values(const float *x, int8_t *cache, uint32_t at) {
    for (uint32_t g = isa_warp(); g < ${n_kv * hd // 32}; g += ${threads // 32}) {
        const uint32_t head = g / ${hd // 32}, of = g % ${hd // 32};
        int8_t *cells = cache + (size_t)head * ${cap // 16 * 17 * hd} + (size_t)(at / 16) * ${17 * hd};
        uint16_t d;
        cells[at % 16 * ${hd} + 32 * of + isa_lane()] = to_byte(x[32 * g + isa_lane()], &d);
        if (isa_lane() == 0) {
            ((uint16_t *)(void *)(cells + ${16 * hd}))[at % 16 * ${hd // 32} + of] = d;
        }
    }
}
