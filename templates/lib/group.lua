-- group.lua -- a group of 32 columns of a quantised type times activations, in the operations and the order of
-- docs/numerics.md, for every kernel that multiplies weights. What differs between types a quant file tells:
--   n_scales   scales of a group: one, or one for each half of it
--   n_mins     minimums of a group: none, one, or one for each half
--   c_offsets  what the C codes have too much, as C text: for none, all or each half of a group
--   cu_sub     integers that a group's sum, or the sums of its halves, are multiplied with, as C text
--   halves     whether the halves' sums of a group are needed apart; needs_sums: whether a GPU needs those of activations
local book = import("lib/book.lua")
local term = import("lib/term.lua")

-- Integers by which the codes' dot product of a group starts, at least one for the array.
local function n_starts(quant) return math.max(#quant.c_offsets, 1) end

%%template c_functions(quant)
% local t, n_sums, n_mins = quant.type, #quant.c_offsets, quant.n_mins
${quant.c_functions()}

/* What the activations add to each group beside the codes: made once for an atom and its tokens. */
typedef struct ${t}_sums {
% if n_mins > 0 then
    float scaled[16][${8 * n_mins}]; /* the activation's scale times its sum, for the minimum */
% end
    int32_t start[16][${8 * n_starts(quant)}]; /* minus offset times sum: the dot's start */
} ${t}_sums;

/* Those of n_groups groups of n_tokens rows of K activations. */
ISA_FN void ${t}_sum(${t}_sums *sums, const float *x_d, const int16_t *x_s, const uint32_t n_groups,
    const uint32_t n_tokens, const uint32_t K) {
    (void)sums, (void)x_d, (void)x_s, (void)n_groups;
#pragma GCC unroll 1
    for (uint32_t t = 0; t < n_tokens; t++, x_d += K / 32, x_s += K / 16) {
% if n_mins == 1 then
        if (n_groups == 8) {
            isa_sum8_scaled(x_s, x_d, sums->scaled[t]);
            continue;
        }
        for (uint32_t g = 0; g < n_groups; g++) {
            sums->scaled[t][g] = (float)(x_s[2 * g] + x_s[2 * g + 1]) * x_d[g];
        }
% elseif n_mins == 2 then
        for (uint32_t i = 0; i < 2 * n_groups; i++) {
            sums->scaled[t][i] = (float)x_s[i] * x_d[i / 2];
        }
% elseif n_sums == 1 then
        if (n_groups == 8) {
            isa_sum8_times(x_s, -${quant.c_offsets[1]}, sums->start[t]);
            continue;
        }
        for (uint32_t g = 0; g < n_groups; g++) {
            sums->start[t][g] = (x_s[2 * g] + x_s[2 * g + 1]) * -${quant.c_offsets[1]};
        }
% elseif n_sums == 2 then
        for (uint32_t i = 0; i < 2 * n_groups; i += 2) {
            sums->start[t][i] = x_s[i] * -${quant.c_offsets[1]};
            sums->start[t][i + 1] = x_s[i + 1] * -${quant.c_offsets[2]};
        }
% end
    }
}

/* acc + group g of the atom, v, times the activations q of token t with scale d. */
ISA_FN isa_f ${t}_add(isa_f acc, const ${t}_group *v, const int8_t *q, float d,
    const ${t}_sums *sums, uint32_t t, uint32_t g) {
    const int32_t *start = &sums->start[t][${term.times("g", n_starts(quant))}];
% if quant.n_scales == 2 then
    acc = isa_fma(${t}_dot(v, q, start, 0), isa_mul(v->scale[0], isa_set1(d)), acc);
    acc = isa_fma(${t}_dot(v, q, start, 1), isa_mul(v->scale[1], isa_set1(d)), acc);
% else
    acc = isa_fma(${t}_dot(v, q, start), isa_mul(v->scale, isa_set1(d)), acc);
% end
% if n_mins == 1 then
    acc = isa_fma(v->min, isa_set1(sums->scaled[t][g]), acc);
% elseif n_mins == 2 then
    acc = isa_fma(v->min[0], isa_set1(sums->scaled[t][2 * g]), acc);
    acc = isa_fma(v->min[1], isa_set1(sums->scaled[t][2 * g + 1]), acc);
% end
    return acc;
}

%%template cu_functions(quant, smem)
% local t = quant.type
${book.cu_load(quant, smem)}

${quant.cu_sum()}

% if quant.n_mins > 0 then
${quant.cu_min()}

% end
/* acc + a group: lo and hi are the sums of code times activation over its halves, x what else there is of the
 * activations. */
ISA_FN float ${t}_add(float acc, const ${t}_scale &s, int32_t lo, int32_t hi, const isa_act &x) {
% if quant.n_scales == 2 then
    acc = isa_fma((float)lo, s.d[0] * x.d, acc);
    acc = isa_fma((float)hi, s.d[1] * x.d, acc);
% else
    acc = isa_fma((float)${t}_total(s, lo, hi, x.s[0], x.s[1]), s.d * x.d, acc);
% end
% if quant.n_mins == 1 then
    acc = isa_fma(${t}_min(s), x.m, acc);
% elseif quant.n_mins == 2 then
    acc = isa_fma(${t}_min(s, 0), x.m_half[0], acc);
    acc = isa_fma(${t}_min(s, 1), x.m_half[1], acc);
% end
    return acc;
}
