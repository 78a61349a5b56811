-- moe_text.lua -- pieces of text of the C kernels that multiply experts' weights.
local descr = import("lib/descr.lua")

%%template includes(hw)
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

%%template store_gated(outputs, n)
/* The 32 columns from `at` on of one pair's row; those below ${n} exist. */
static void store_gated(const params *p, size_t pair, uint32_t at, const float *act) {
% if get(outputs, "f32", false) then
    const uint32_t n_cols = ${n} - at < 32 ? ${n} - at : 32;
    memcpy(p->y + pair * ${n} + at, act, n_cols * sizeof *act);
% end
% if get(outputs, "q8", false) then
    isa_f v[32 / ISA_N];
    for (uint32_t k = 0; k < 32 / ISA_N; k++) {
        v[k] = isa_load(act + k * ISA_N);
    }
    isa_q8_group(v, p->y_q + pair * ${n} + at, p->y_d + pair * ${n // 32} + at / 32,
        p->y_s + pair * ${n // 16} + at / 16);
% end
}

%%template gate()
/* act = silu(gate) * up, 16 columns. */
ISA_FN void gate_16(const float *gate, const float *up, float *act) {
    for (uint32_t c = 0; c < 16; c += ISA_N) {
        isa_store(act + c, isa_mul(isa_silu(isa_load(gate + c)), isa_load(up + c)));
    }
}

%%template scale()
/* x *= factor, 16 columns. */
ISA_FN void scale_16(float *x, float factor) {
    for (uint32_t c = 0; c < 16; c += ISA_N) {
        isa_store(x + c, isa_mul(isa_load(x + c), isa_set1(factor)));
    }
}
