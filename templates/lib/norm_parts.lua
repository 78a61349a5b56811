-- norm_parts.lua -- the RMS norm of a row or of a head, in C (docs/numerics.md, "Sums over a row").

%%template c_inverse_rms(n, eps)
/* 1 / sqrt(mean of squares + eps) of ${n} numbers; 256 lanes, lane i has elements i, i + 256, .. */
static float inverse_rms(const float *x) {
    isa_f lane[256 / ISA_N];
    for (uint32_t i = 0; i < 256 / ISA_N; i++) {
        lane[i] = isa_set1(0.0f);
    }
    for (uint32_t col = 0; col < ${n}; col += 256) {
        for (uint32_t i = 0; i < 256 / ISA_N && col + i * ISA_N < ${n}; i++) {
            const uint32_t at = col + i * ISA_N;
% if n % 16 == 0 then
            isa_f v = isa_load(x + at);
% else
            isa_f v = isa_load_n(x + at, ${n} - at < ISA_N ? ${n} - at : ISA_N);
% end
            lane[i] = isa_fma(v, v, lane[i]);
        }
    }
    float mean = isa_lanes_sum(lane) / ${n}.0f;
    return 1.0f / isa_sqrt1(mean + ${hexfloat(eps)});
}
