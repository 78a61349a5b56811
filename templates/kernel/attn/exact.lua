-- The text of attention in f32, for any number of rows: what prefill.cu.lua is made of, and what rows that are no prompt's
-- take in prefill_f16.cu.lua. A warp has one head of 8 rows and shares nothing with the others of its cta but the cache that
-- they read through. In a split of 256 positions lane i has the scores of positions 8i..8i+7 of all 8 rows, so that a key
-- and a query are read once for 8 products; after their weights it has 8 dimensions of all rows in one of the four chains,
-- which four lanes join. Parameters: the op, `kernel` (its name), and `at`: where the buffers of smem() begin.
local cuda = import("lib/descr_cuda.lua")
local attn = import("lib/attn_parts.lua")

module.WARPS = 4
module.ROWS = 8 -- of a warp
local WARPS, ROWS = module.WARPS, module.ROWS

function module.smem(op)
  return { cuda.smem("q", WARPS * op.hd * ROWS * 4), cuda.smem("weight", WARPS * 256 * ROWS * 4),
           cuda.smem("joined", WARPS * ROWS * 8 * 4) }
end

-- Values read at once: what registers are there for, with eight to spare (ptxas 13.0, all rows).
local function values_at_once(op) return op.window == 0 and attn.kv(op).elem_bytes == 2 and 4 or 2 end

%%template
% local width, kv = attn.width(params), attn.kv(params)
% local block, gates = kv.block(hd), (n_head + 2 * n_kv) * hd
% local parts = ceil_div(hd, 64)
% local whole = hd % 64 == 0
${kv.cu_load_8(hd)}

/* ${ROWS} consecutive rows of one sequence, the first `n` of them in use, from position `pos` on, and the split at `split`. */
typedef struct rows_of_split {
    uint32_t pos, n, split;
} rows_of_split;

/* The first position that one at `pos` sees; window 0: all. */
ISA_FN uint32_t first_seen(uint32_t pos, uint32_t window) {
    return window == 0 || pos < window ? 0 : pos - (window - 1);
}

/* The positions of the split at `split` that the row at `pos` sees: [*from, *to), empty if from >= to. */
ISA_FN void seen_of(uint32_t pos, uint32_t split, uint32_t *from, uint32_t *to) {
    const uint32_t first = first_seen(pos, ${window});
    *from = first > split ? first - split < 256 ? first - split : 256 : 0;
    *to = pos < split ? 0 : pos - split < 255 ? pos - split + 1 : 256;
}

/* Whether row r sees position t of the split: one that lies ahead is very far behind. */
ISA_FN bool sees(const rows_of_split &s, uint32_t r, uint32_t t) {
    return s.pos + r - (s.split + t) < ${window == 0 and "0x80000000u" or window .. "u"};
}

/* What some row in use sees of the split, and what all of them do: the first row sees the least at the end, the last one the
 * least at the beginning. */
ISA_FN void seen_of_rows(const rows_of_split &s, uint32_t *from, uint32_t *to, uint32_t *all_from, uint32_t *all_to) {
    seen_of(s.pos, s.split, from, all_to);
    seen_of(s.pos + s.n - 1, s.split, all_from, to);
}

/* acc[r] += x number r of 8 at `of_row`, one rounding each; x is 8 numbers. */
ISA_FN void fma_8x8(const float *low, const float *high, const float (&x)[8], float (&acc)[${ROWS}][8]) {
    const isa_x4 rows[2] = {isa_load_x4(low), isa_load_x4(high)};
#pragma unroll
    for (uint32_t r = 0; r < ${ROWS}; r++) {
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) {
            acc[r][e] = isa_fma(isa_float(rows[r / 4].w[r % 4]), x[e], acc[r][e]);
        }
    }
}

/* The scores of positions 8 lane .. 8 lane + 7 of the split; a row that does not see one has -inf there. */
ISA_FN void scores_of(const rows_of_split &s, const float *q, const ${kv.ctype} *keys, float (&score)[${ROWS}][8]) {
    const uint32_t t = 8 * isa_lane();
#pragma unroll
    for (uint32_t r = 0; r < ${ROWS}; r++) {
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) {
            score[r][e] = 0.0f;
        }
    }
    uint32_t some_from, some_to, all_from, all_to;
    seen_of_rows(s, &some_from, &some_to, &all_from, &all_to);
    if (t + 8 > some_from && t < some_to) {
#pragma unroll 4
        for (uint32_t i = 0; i < ${hd}; i++) {
            float key[8];
            kv_keys8(keys, t, i, key);
            fma_8x8(q + i * ${ROWS}, q + i * ${ROWS} + 4, key, score);
        }
    }
#pragma unroll
    for (uint32_t r = 0; r < ${ROWS}; r++) {
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) {
            score[r][e] = sees(s, r, t + e) ? score[r][e] * ${hexfloat(scale)} : -isa_float(0x7f800000u);
        }
    }
}

/* x + the x of lane ^ s, for one half of its rows: the second one in the lane of the two where `second` is set. */
template <uint32_t N> ISA_FN void half_sum(const float (&x)[2 * N][8], uint32_t s, bool second, float (&sum)[N][8]) {
#pragma unroll
    for (uint32_t r = 0; r < N; r++) {
        float give[8], other[8];
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) {
            give[e] = second ? x[r][e] : x[r + N][e];
        }
        isa_warp_xor8(give, s, other);
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) {
            sum[r][e] = (second ? x[r + N][e] : x[r][e]) + other[e];
        }
    }
}

/* The first of the two rows whose results this lane keeps. */
ISA_FN uint32_t own_row() {
    return isa_lane() / 16 * 4 + isa_lane() / 8 % 2 * 2;
}

/* Of numbers of all rows, those of the lane's own. */
ISA_FN void own_of(const float (&x)[${ROWS}], float (&own)[2]) {
#pragma unroll
    for (uint32_t k = 0; k < 2; k++) {
        const float first = isa_lane() / 8 % 2 != 0 ? x[2 + k] : x[k], second = isa_lane() / 8 % 2 != 0 ? x[6 + k] : x[4 + k];
        own[k] = isa_lane() / 16 != 0 ? second : first;
    }
}

/* Scores become weights: exp(score - the row's greatest); with the greatest and the sum over 256 lanes (docs/numerics.md)
 * of the lane's own rows. Element i of a row is position i, so lanes 16, 8, .. 1 apart come before positions of one lane. */
ISA_FN void weights_of(float (&score)[${ROWS}][8], float (&top)[2], float (&sum)[2]) {
    const float absent = -isa_float(0x7f800000u);
    float tops[${ROWS}];
#pragma unroll
    for (uint32_t r = 0; r < ${ROWS}; r++) {
        float most = absent;
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) {
            most = most > score[r][e] ? most : score[r][e];
        }
        tops[r] = isa_warp_max(most);
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) {
            score[r][e] = score[r][e] == absent ? 0.0f : isa_exp(score[r][e] - tops[r]);
        }
    }
    own_of(tops, top);

    float half[4][8], two[2][8], one[1][8];
    half_sum<4>(score, 16, isa_lane() / 16 != 0, half);
    half_sum<2>(half, 8, isa_lane() / 8 % 2 != 0, two);
    half_sum<1>(two, 4, isa_lane() / 4 % 2 != 0, one);
#pragma unroll
    for (uint32_t s = 2; s > 0; s /= 2) {
        float other[8];
        isa_warp_xor8(one[0], s, other);
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) {
            one[0][e] = one[0][e] + other[e];
        }
    }
    const float even = (one[0][0] + one[0][4]) + (one[0][2] + one[0][6]);
    const float odd = (one[0][1] + one[0][5]) + (one[0][3] + one[0][7]);
    const float mine = even + odd, others = isa_float(isa_warp_xor(isa_bits(mine), 4));
    sum[0] = isa_lane() / 4 % 2 != 0 ? others : mine;
    sum[1] = isa_lane() / 4 % 2 != 0 ? mine : others;
}

/* Where four rows' weights of position t stand in a warp's: rows 0-3 or, with `high`, 4-7. Eights of positions lie in turns,
 * so that lanes that write such eights side by side meet different banks. */
ISA_FN uint32_t weight_at(uint32_t t, uint32_t high) {
    return 4 * ((2 * t + high) ^ t / 8 % 8);
}

ISA_FN void store_weights(const float (&x)[${ROWS}][8], float *weight) {
#pragma unroll
    for (uint32_t e = 0; e < 8; e++) {
#pragma unroll
        for (uint32_t high = 0; high < 2; high++) {
            isa_x4 v;
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                v.w[i] = isa_bits(x[4 * high + i][e]);
            }
            isa_store_x4(weight + weight_at(8 * isa_lane() + e, high), v);
        }
    }
}

/* acc += weight * value over positions [begin, end), which all rows see, for dimensions dim .. dim + 7. */
ISA_FN void add_all(const float *weight, const ${kv.ctype} *values, uint32_t dim, uint32_t begin, uint32_t end,
    float (&acc)[${ROWS}][8]) {
#pragma unroll ${values_at_once(params)}
    for (uint32_t t = begin; t < end; t++) {
        float value[8];
        kv_values8(values, t, dim, value);
        fma_8x8(weight + weight_at(t, 0), weight + weight_at(t, 1), value, acc);
    }
}

/* The same over positions that only some rows see. */
ISA_FN void add_some(const rows_of_split &s, const float *weight, const ${kv.ctype} *values, uint32_t dim, uint32_t begin,
    uint32_t end, float (&acc)[${ROWS}][8]) {
#pragma unroll 1
    for (uint32_t t = begin; t < end; t++) {
        float value[8];
        kv_values8(values, t, dim, value);
        const isa_x4 rows[2] = {isa_load_x4(weight + weight_at(t, 0)), isa_load_x4(weight + weight_at(t, 1))};
#pragma unroll
        for (uint32_t r = 0; r < ${ROWS}; r++) {
            const bool seen = sees(s, r, t);
#pragma unroll
            for (uint32_t e = 0; e < 8; e++) {
                const float next = isa_fma(isa_float(rows[r / 4].w[r % 4]), value[e], acc[r][e]);
                acc[r][e] = seen ? next : acc[r][e];
            }
        }
    }
}

ISA_FN uint32_t within(uint32_t x, uint32_t low, uint32_t high) {
    return x < low ? low : x < high ? x : high;
}

/* Dimensions dim .. dim + 7 of the split's values for the lane's own two rows. Lanes of a warp that differ in bits 3 and 4 have
 * the chains c0 .. c3 of 64 positions. */
ISA_FN void values_of(const rows_of_split &s, const float *weight, const ${kv.ctype} *values, uint32_t dim, float (&mid)[2][8]) {
    const uint32_t base = 64 * (isa_lane() / 8 % 2 * 2 + isa_lane() / 16);
    float acc[${ROWS}][8] = {}, half[4][8];
% if not whole then
    if (dim < ${hd}) {
% end
    uint32_t from, to, all_from, all_to;
    seen_of_rows(s, &from, &to, &all_from, &all_to);
    const uint32_t begin = within(from, base, base + 64), end = within(to, begin, base + 64);
    const uint32_t low = within(all_from, begin, end), high = within(all_to, low, end);
    add_some(s, weight, values, dim, begin, low, acc);
    add_all(weight, values, dim, low, high, acc);
    add_some(s, weight, values, dim, high, end, acc);
% if not whole then
    }
% end
    half_sum<4>(acc, 16, isa_lane() / 16 != 0, half);
    half_sum<2>(half, 8, isa_lane() / 8 % 2 != 0, mid);
}

/* What a warp knows of a row: maximum and sum of the splits so far (m and l of docs/numerics.md), the factors of what was
 * and of what comes, and whether a split is the row's first, or no split of it at all. */
typedef struct joined_row {
    float top, sum, a, b;
    uint32_t first, none, unused[2];
} joined_row;

/* A split's maximum and sum join those of the row at `pos` before it. */
ISA_FN void join(joined_row *of, uint32_t pos, uint32_t split, float top, float sum) {
    uint32_t from, to;
    seen_of(pos, split, &from, &to);
    of->none = from >= to;
    of->first = split <= first_seen(pos, ${window});
    const float most = of->top > top ? of->top : top;
    of->a = isa_exp(of->top - most);
    of->b = isa_exp(top - most);
    if (from < to) {
        of->sum = of->first ? sum : isa_fma(of->sum, of->a, sum * of->b);
        of->top = of->first ? top : most;
    }
}

/* Out, which is what a lane has of its own rows: 8 dimensions in each part of 64, is joined by a split. */
ISA_FN void one_split(const rows_of_split &s, const float *q, float *weight, const ${kv.ctype} *keys, const ${kv.ctype} *values,
    joined_row *joined, float (&out)[${parts}][2][8]) {
    {
        float score[${ROWS}][8], top[2], sum[2];
        scores_of(s, q, keys, score);
        weights_of(score, top, sum);
        store_weights(score, weight);
        if (isa_lane() % 8 == 0) {
#pragma unroll
            for (uint32_t k = 0; k < 2; k++) {
                join(joined + own_row() + k, s.pos + own_row() + k, s.split, top[k], sum[k]);
            }
        }
        isa_warp_sync();
    }
#pragma unroll
    for (uint32_t part = 0; part < ${parts}; part++) {
        float mid[2][8];
        values_of(s, weight, values, 64 * part + isa_lane() % 8 * 8, mid);
#pragma unroll
        for (uint32_t k = 0; k < 2; k++) {
            const joined_row *of = joined + own_row() + k;
            const float a = of->a, b = of->b;
            const bool first = of->first != 0, none = of->none != 0;
#pragma unroll
            for (uint32_t e = 0; e < 8; e++) {
                const float both = first ? mid[k][e] : isa_fma(out[part][k][e], a, mid[k][e] * b);
                out[part][k][e] = none ? out[part][k][e] : both;
            }
        }
    }
    isa_warp_sync();
}

/* The results of the lane's own rows to y. */
ISA_FN void put(const ${kernel}_params &p, uint32_t head, uint32_t row, uint32_t n, const joined_row *joined,
    const float (&out)[${parts}][2][8]) {
#pragma unroll
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t of = own_row() + k;
        if (of >= n) {
            continue;
        }
% if gate ~= "none" then
        const float *gates = p.qkv + (size_t)(row + of) * ${width} + ${gates};
% end
% if gate == "head" then
        const float gate = isa_softplus(gates[head]);
% end
#pragma unroll
        for (uint32_t part = 0; part < ${parts}; part++) {
            const uint32_t dim = 64 * part + isa_lane() % 8 * 8;
% if not whole then
            if (dim >= ${hd}) {
                continue;
            }
% end
            float *y = p.y + (size_t)(row + of) * ${n_head * hd} + head * ${hd} + dim;
#pragma unroll
            for (uint32_t e = 0; e < 8; e += 4) {
                isa_x4 v;
#pragma unroll
                for (uint32_t i = 0; i < 4; i++) {
% if gate == "element" then
                    const float gate = isa_softplus(gates[head * ${hd} + dim + e + i]);
% end
                    v.w[i] = isa_bits(isa_div(out[part][k][e + i], joined[of].sum)${gate ~= "none" and " * gate" or ""});
                }
                isa_store_x4(y + e, v);
            }
        }
    }
}

/* One head of rows row .. row + n - 1, at most ${ROWS}, which are of one sequence at ascending positions from pos on. */
ISA_FN void attend(const ${kernel}_params &p, uint32_t head, uint32_t row, uint32_t n, uint32_t pos, uint32_t slot) {
    float *q = (float *)(void *)isa_smem(${at.q}) + isa_warp() * ${hd * ROWS};             /* [dimension][row] */
    float *weight = (float *)(void *)isa_smem(${at.weight}) + isa_warp() * ${256 * ROWS}; /* weight_at */
    joined_row *joined = (joined_row *)(void *)isa_smem(${at.joined}) + isa_warp() * ${ROWS};
    const size_t cell = ((size_t)slot * ${n_kv} + head / ${n_head // n_kv}) * ${cap // 16 * block};
    for (uint32_t i = isa_lane(); i < ${hd * ROWS}; i += 32) {
        const uint32_t of = i / ${hd};
        q[i % ${hd} * ${ROWS} + of] = of < n ? p.qkv[(size_t)(row + of) * ${width} + head * ${hd} + i % ${hd}] : 0.0f;
    }
    isa_warp_sync();
    float out[${parts}][2][8] = {};
    for (uint32_t split = first_seen(pos, ${window}) / 256 * 256; split < pos + n; split += 256) {
        const size_t at = cell + (size_t)(split % ${cap} / 16) * ${block};
        one_split({pos, n, split}, q, weight, p.k + at, p.v + at, joined, out);
    }
    put(p, head, row, n, joined, out);
    isa_warp_sync();
}

/* One head of rows begin .. end - 1, at most ${ROWS}: those of a sequence together. */
ISA_FN void attend_rows(const ${kernel}_params &p, uint32_t head, uint32_t begin, uint32_t end) {
    const rt_step *step = p.step;
    for (uint32_t row = begin, next; row < end; row = next) {
        const uint32_t seq = step->seq_of_row[row];
        for (next = row + 1; next < end && step->seq_of_row[next] == seq;) {
            next++;
        }
        attend(p, head, row, next - row, step->pos_of_row[row], step->slot_of_seq[seq]);
    }
}
