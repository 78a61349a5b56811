-- f16: keys and values as halves, rounded to nearest even.
--
-- A cache holds, for each slot and key head, blocks of 16 positions; K as [d][16], so that 16 positions of one
-- dimension lie together, V as [16][d]. What kernels ask of a file here:
--   elem, elem_bytes, ctype   the element of the cache's memory
--   check(op)           refuses heads that the type cannot hold
--   block(hd)           its elements in a block of 16 positions of one head
--   c_load, c_store     C: ISA_N positions of a dimension of keys, ISA_N dimensions of a value; one head's row in
--   cu_load_wide        CUDA: two keys of a dimension; n dimensions of a value (2, 4 or 8)
--   cu_load_8           CUDA: 8 keys of a dimension; 8 dimensions of a value
--   cu_store            CUDA: all key heads of a row, by all threads of a cta
module.ctype = "uint16_t"
module.elem = "f16"
module.elem_bytes = 2

function module.check(op) end

function module.block(hd) return 16 * hd end

%%template c_load(hd)
/* Dimension `dim` of ISA_N keys from position t on (a multiple of ISA_N) of those at `keys`. */
ISA_FN isa_f kv_keys(const uint16_t *keys, uint32_t t, uint32_t dim) {
    return isa_load_half(keys + (size_t)(t / 16) * ${16 * hd} + 16 * dim + t % 16);
}

/* ISA_N dimensions from `dim` on of value t of those at `values`. */
ISA_FN isa_f kv_values(const uint16_t *values, uint32_t t, uint32_t dim) {
    return isa_load_half(values + (size_t)t * ${hd} + dim);
}

%%template c_store(hd)
/* f32 to f16, ${hd} elements. */
static void to_half(const float *x, uint16_t *y) {
    for (uint32_t i = 0; i < ${hd}; i += ISA_N) {
        isa_store_half(y + i, isa_load(x + i));
    }
}

/* Position `at` of one head's cache: its key. */
static void store_key(const float *x, uint16_t *cache, uint32_t at) {
    uint16_t half[${hd}];
    to_half(x, half);
    uint16_t *k = cache + (size_t)(at / 16) * ${16 * hd} + at % 16;
    for (uint32_t i = 0; i < ${hd}; i++) {
        k[16 * i] = half[i];
    }
}

/* And its value. */
static void store_value(const float *x, uint16_t *cache, uint32_t at) {
    to_half(x, cache + (size_t)at * ${hd});
}

%%template cu_values(hd, n)
/* Dimensions dim .. dim + ${n - 1} (a multiple of ${n}) of value t of those at `values`. */
ISA_FN void kv_values${n}(const uint16_t *values, uint32_t t, uint32_t dim, float (&value)[${n}]) {
% if n == 2 then
    const uint32_t w[1] = {isa_load_x1(values + t * ${hd} + dim)};
% else
    const isa_x${n // 2} all = isa_load_x${n // 2}(values + t * ${hd} + dim);
    const uint32_t *w = all.w;
% end
#pragma unroll
    for (uint32_t i = 0; i < ${n}; i++) {
        value[i] = isa_half(w[i / 2] >> 16 * (i % 2) & 0xffffu);
    }
}

%%template cu_load_wide(hd, n)
/* Dimension `dim` of keys t and t + 1 (t even) of those at `keys`. */
ISA_FN void kv_keys2(const uint16_t *keys, uint32_t t, uint32_t dim, float (&key)[2]) {
    const uint32_t both = isa_load_line(keys + t / 16 * ${16 * hd} + 16 * dim + t % 16);
    key[0] = isa_half(both & 0xffffu);
    key[1] = isa_half(both >> 16);
}

${module.cu_values(hd, n)}

%%template cu_load_8(hd)
/* Dimension `dim` of keys t .. t + 7 (a multiple of 8) of those at `keys`. */
ISA_FN void kv_keys8(const uint16_t *keys, uint32_t t, uint32_t dim, float (&key)[8]) {
    const isa_x4 all = isa_load_x4(keys + t / 16 * ${16 * hd} + 16 * dim + t % 16);
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        key[i] = isa_half(all.w[i / 2] >> 16 * (i % 2) & 0xffffu);
    }
}

${module.cu_values(hd, 8)}

%%template cu_store(hd, n_kv, cap, threads)
/* Position `at` of ${n_kv} heads' caches: their keys. */
ISA_FN void store_keys(const float *x, uint16_t *cache, uint32_t at) {
    uint16_t *k = cache + (size_t)(at / 16) * ${16 * hd} + at % 16;
    for (uint32_t i = isa_thread(); i < ${n_kv * hd}; i += ${threads}) {
        k[(size_t)(i / ${hd}) * ${cap * hd} + 16 * (i % ${hd})] = isa_to_half(x[i]);
    }
}

/* And their values. */
ISA_FN void store_values(const float *x, uint16_t *cache, uint32_t at) {
    uint16_t *v = cache + (size_t)at * ${hd};
    for (uint32_t i = isa_thread(); i < ${n_kv * hd}; i += ${threads}) {
        v[(size_t)(i / ${hd}) * ${cap * hd} + i % ${hd}] = isa_to_half(x[i]);
    }
}
