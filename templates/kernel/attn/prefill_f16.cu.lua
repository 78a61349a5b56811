-- Attention of prompts on tensor cores: f16 operands, sums in f32 (docs/numerics.md, "Attention of prompts in f16"). A warp
-- has one or two tiles of 16 places, which are heads of one key head by rows, so that they all read the same keys and
-- values; these go through shared memory in blocks of 32 positions, the next one on its way while one is in use. A lane
-- has two places of a tile: its scores become the weights of the second product where they are. Rows that are no prompt's
-- take the f32 chains of every other kernel (exact.lua), so that what is generated does not depend on what else a step does.
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/attn.c.lua")
local attn = import("lib/attn_parts.lua")
local term = import("lib/term.lua")
local exact = import("kernel/attn/exact.lua")

local WARPS = exact.WARPS
local THREADS = 32 * WARPS
local BLOCK = 32 -- positions; another number gives other bits

-- How a cta is filled. Two tiles a warp read keys and values half as often. Then, and where heads are wide, queries stay in
-- shared memory. A cell of 16 bytes is 8 halves; rows of an odd number of cells meet different banks.
local function shape(op)
  local tiles = op.hd > 64 and op.hd <= 128 and 2 or 1
  local places, heads = 16 * tiles * WARPS, exact_div(op.n_head, op.n_kv)
  local together = math.min(heads, places)
  while heads % together ~= 0 do together = together - 1 end
  return { tiles = tiles, places = places, heads = together, rows = places // together,
           row_cells = op.hd // 8 | 1, shared = tiles * op.hd > 64 }
end

-- Blocks in turns, then queries where they stay.
local function offsets(op)
  local s = shape(op)
  local keys, values = BLOCK * op.hd * 2, BLOCK * s.row_cells * 16
  local queries = 2 * (keys + values)
  return { values = keys, turn = keys + values, queries = queries,
           bytes = queries + (s.shared and s.places * s.row_cells * 16 or 0) }
end

-- One buffer, used by one of the two kinds of rows at a time.
local function smem(op)
  local _, other = cuda.smem_offsets(exact.smem(op))
  return { cuda.smem("all", math.max(offsets(op).bytes, other)) }
end

-- Two leave a thread 255 registers; at 168, for three, ptxas 13.0 spills on some rows even where heads are narrow.
local function ctas_per_sm(op)
  local _, bytes = cuda.smem_offsets(smem(op))
  return math.max(1, math.min(2, op.hw.smem_per_sm_bytes // (bytes + op.hw.smem_reserved_bytes)))
end

function module.describe(op)
  if op.kv ~= "f16" then fail("attention in f16 reads keys and values in f16, not in " .. op.kv) end
  local s = shape(op)
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xprefillf16",
    axes = { descr.rows_axis("T", s.rows), descr.dim_axis("heads", exact_div(op.n_head, s.heads), "y"), attn.blocks(BLOCK) },
    grid = { descr.row_ctas("T", s.rows), tostring(exact_div(op.n_head, s.heads)), "1" },
    block = THREADS, ctas_per_sm = ctas_per_sm(op), covers = attn.covers(op, s.rows, s.heads), smem = smem(op),
    features = { "shuffle", "f16", "mma_f16" }, reduction = "blocks32_f16", tolerance = 2e-3,
  })
end

%%template
% local d, s, o = module.describe(params), shape(params), offsets(params)
% local width = attn.width(params)
% local gates, group = (n_head + 2 * n_kv) * hd, n_head // n_kv
% local cells, steps, eights = hd // 8, hd // 16, hd // 8
% local queries = s.shared and "const unsigned char *shared" or "const uint32_t (&q)[" .. s.tiles .. "][" .. steps .. "][4]"
% local does = "softmax(scale * q k) v on tensor cores; a cta has " .. s.heads .. " heads of " .. s.rows .. " rows"
% local shapes = "qkv [n_rows][" .. width .. "];  y [n_rows][" .. n_head * hd .. "]"
${cuda.head(d, "kernel/attn/prefill_f16.cu.lua", does, shapes)}

${cuda.params(d)}

/* ---- rows that are no prompt's */

${include("kernel/attn/exact.lua", attn.exact_params(params, d.name, cuda.smem_offsets(exact.smem(params))))}

/* Rows begin .. end - 1 of heads head .. head + ${s.heads - 1}: each warp takes ${exact.ROWS} rows of a head at a time. */
ISA_FN void attend_exact(const ${d.name}_params &p, uint32_t head, uint32_t begin, uint32_t end) {
    for (uint32_t i = isa_warp(); i / ${s.heads} * ${exact.ROWS} < end - begin; i += ${WARPS}) {
        const uint32_t row = begin + i / ${s.heads} * ${exact.ROWS};
        attend_rows(p, head + i % ${s.heads}, row, row + ${exact.ROWS} < end ? row + ${exact.ROWS} : end);
    }
}

/* ---- rows of prompts */

/* Read anew where they are used, so that nothing made of them is kept in registers beside the f32 text, which needs all. */
ISA_FN uint32_t lane_now() {
    return isa_thread_now() % 32;
}

ISA_FN uint32_t warp_now() {
    return isa_thread_now() / 32;
}

/* Rows row .. row + n - 1 of the step, which are of one sequence at ascending positions from pos on. */
typedef struct rows_of_run {
    uint32_t row, n, pos;
} rows_of_run;

/* What a lane has of a tile of 16 places: those of places lane / 4 and lane / 4 + 8, in this order. */
typedef struct place_tile {
    float out[${eights}][4], sum[4]; /* fragments of isa_mma_f16; all columns of the sum are equal */
    float top[2];             /* the greatest score so far */
    float factor[2];          /* scores times this are exponents of 2 */
} place_tile;

/* The number of place lane / 4 + 8 half of this warp's tile. */
ISA_FN uint32_t place_of(uint32_t tile, uint32_t half) {
    return (${term.times("warp_now()", s.tiles)} + tile) * 16 + lane_now() / 4 + 8 * half;
}

/* The position of the row there; a place without one has that of the last one. */
ISA_FN uint32_t pos_of(const rows_of_run &run, uint32_t tile, uint32_t half) {
    const uint32_t row = place_of(tile, half) / ${s.heads};
    return run.pos + (row < run.n ? row : run.n - 1);
}

/* Whether the row at `pos` sees position t: one that lies ahead is very far behind. */
ISA_FN bool row_sees(uint32_t pos, uint32_t t) {
    return pos - t < ${window == 0 and "0x80000000u" or window .. "u"};
}

/* Whether some row of the run does. */
ISA_FN bool some_row_sees(const rows_of_run &run, uint32_t t) {
    return t < run.pos + run.n && t >= first_seen(run.pos, ${window});
}

/* Whether all rows see all of the block at position `block`. */
ISA_FN bool all_see(const rows_of_run &run, uint32_t block) {
    return block + ${BLOCK - 1} <= run.pos && first_seen(run.pos + run.n - 1, ${window}) <= block;
}

/* The block at position `block` of a head's keys and values on its way to `to`. Of keys [16 positions][dimension][16], the two
 * cells of a dimension change places every four dimensions, so that eight of them meet different banks. */
ISA_FN void copy_block(const ${d.name}_params &p, size_t head_cell, uint32_t block, unsigned char *to) {
    const size_t at = head_cell + (size_t)(block % ${cap}) * ${hd};
#pragma unroll
    for (uint32_t i = isa_thread_now(); i < ${BLOCK * cells}; i += ${THREADS}) {
        isa_copy16(to + (i ^ i / 8 % 2) * 16, p.k + at + i * 8);
        isa_copy16(to + ${o.values} + (i / ${cells} * ${s.row_cells} + i % ${cells}) * 16, p.v + at + i * 8);
    }
    isa_copy_close();
}

/* Numbers 16 step + 8 half + 2 (lane % 4) and the next one of a query. */
ISA_FN void query_pair(const float *q, uint32_t step, uint32_t half, float (&x)[2]) {
    const float *at = q + 16 * step + 8 * half + lane_now() % 4 * 2;
% if width % 2 == 0 then
    const isa_x2 both = isa_load_x2(at);
    x[0] = isa_float(both.w[0]);
    x[1] = isa_float(both.w[1]);
% else
    x[0] = at[0];
    x[1] = at[1];
% end
}

/* Halves of a query times a power of two: its greatest number comes to lie in [2^14, 2^15), where no half overflows and few
 * lose bits at the low end. w[2 step + half]; returns what takes that power away again, the scale and log2(e) with it. */
ISA_FN float halves_of_query(const float *q, bool there, uint32_t (&w)[${2 * steps}]) {
    float x[${2 * steps}][2];
    uint32_t top = 0;
#pragma unroll
    for (uint32_t i = 0; i < ${2 * steps}; i++) {
        query_pair(q, i / 2, i % 2, x[i]);
#pragma unroll
        for (uint32_t e = 0; e < 2; e++) {
            x[i][e] = there ? x[i][e] : 0.0f;
            const uint32_t size = isa_bits(x[i][e]) & 0x7fffffffu;
            top = top > size ? top : size;
        }
    }
#pragma unroll
    for (uint32_t lanes = 1; lanes < 4; lanes *= 2) { /* the four that share the place */
        const uint32_t other = isa_warp_xor(top, lanes);
        top = top > other ? top : other;
    }
    const uint32_t exponent = top >> 23 > 15 ? top >> 23 : 15; /* with its bias of 127 */
    const float up = isa_float((127 + 127 + 14 - exponent) << 23);
#pragma unroll
    for (uint32_t i = 0; i < ${2 * steps}; i++) {
        w[i] = isa_halves(x[i][0] * up, x[i][1] * up);
    }
    return ${hexfloat(scale * 1.4426950408889634)} * isa_float((exponent - 14) << 23);
}

/* A tile's queries, to q[step], the fragments of 16 dimensions${s.shared and ", by way of `shared`, where they stay" or ""}. */
ISA_FN void load_queries(const ${d.name}_params &p, const rows_of_run &run, uint32_t head, uint32_t tile, place_tile &to,
    ${s.shared and "unsigned char *shared" or "uint32_t (&q)[" .. steps .. "][4]"}) {
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t place = place_of(tile, half), row = place / ${s.heads};
        const bool there = row < run.n;
        uint32_t w[${2 * steps}];
        to.top[half] = -isa_float(0x7f800000u);
        to.factor[half] = halves_of_query(
            p.qkv + (size_t)(run.row + (there ? row : 0)) * ${width} + (head + place % ${s.heads}) * ${hd}, there, w);
#pragma unroll
        for (uint32_t i = 0; i < ${2 * steps}; i++) {
% if s.shared then
            *(uint32_t *)(void *)(shared + place * ${s.row_cells * 16} + 16 * i + lane_now() % 4 * 4) = w[i];
% else
            q[i / 2][i % 2 * 2 + half] = w[i];
% end
        }
    }
}

/* The scores of a block: score[tile][n] is the fragment of positions 8n .. 8n + 7. */
ISA_FN void scores_of(const unsigned char *keys, ${queries}, float (&score)[${s.tiles}][${BLOCK // 8}][4]) {
    const uint32_t lane = lane_now(), row = lane % 16 * 32 + (lane / 16 ^ lane / 4 % 2) * 16;
#pragma unroll
    for (uint32_t step = 0; step < ${steps}; step++) {
% if s.shared then
        uint32_t q[${s.tiles}][4];
#pragma unroll
        for (uint32_t tile = 0; tile < ${s.tiles}; tile++) {
            const uint32_t place = (${term.times("warp_now()", s.tiles)} + tile) * 16 + lane % 16;
            isa_load_tiles(q[tile], shared + place * ${s.row_cells * 16} + step * 32 + lane / 16 * 16);
        }
% end
#pragma unroll
        for (uint32_t n = 0; n < ${BLOCK // 16}; n++) {
            uint32_t key[4];
            isa_load_tiles_turned(key, keys + n * ${32 * hd} + step * 512 + row);
#pragma unroll
            for (uint32_t tile = 0; tile < ${s.tiles}; tile++) {
                isa_mma_f16(score[tile][2 * n], q[tile]${s.shared and "" or "[step]"}, key[0], key[1]);
                isa_mma_f16(score[tile][2 * n + 1], q[tile]${s.shared and "" or "[step]"}, key[2], key[3]);
            }
        }
    }
}

/* Scores of positions that a row does not see become -inf. */
ISA_FN void hide(const rows_of_run &run, uint32_t tile, uint32_t block, float (&score)[${BLOCK // 8}][4]) {
    const uint32_t pos[2] = {pos_of(run, tile, 0), pos_of(run, tile, 1)};
#pragma unroll
    for (uint32_t n = 0; n < ${BLOCK // 8}; n++) {
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            const uint32_t t = block + 8 * n + lane_now() % 4 * 2 + e % 2;
            score[n][e] = row_sees(pos[e / 2], t) ? score[n][e] : -isa_float(0x7f800000u);
        }
    }
}

/* The greatest score of a place in the block and before; what was summed follows it by a factor, which is 1 for a place that
 * has not got a greater one. */
ISA_FN void follow_top(const float (&score)[${BLOCK // 8}][4], place_tile &of, float (&base)[2]) {
    float shrink[2];
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        float top = of.top[half];
#pragma unroll
        for (uint32_t n = 0; n < ${BLOCK // 8}; n++) {
            top = isa_max(top, isa_max(score[n][2 * half], score[n][2 * half + 1]));
        }
        top = isa_max(top, isa_float(isa_warp_xor(isa_bits(top), 1)));
        top = isa_max(top, isa_float(isa_warp_xor(isa_bits(top), 2)));
        const float from = top == -isa_float(0x7f800000u) ? 0.0f : top; /* nothing seen yet: all weights are 0 */
        shrink[half] = isa_exp2((of.top[half] - from) * of.factor[half]);
        base[half] = 15.0f - from * of.factor[half];
        of.top[half] = top;
    }
    if (isa_ballot(shrink[0] != 1.0f || shrink[1] != 1.0f) != 0) {
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            of.sum[e] = of.sum[e] * shrink[e / 2];
#pragma unroll
            for (uint32_t n = 0; n < ${eights}; n++) {
                of.out[n][e] = of.out[n][e] * shrink[e / 2];
            }
        }
    }
}

/* Weights 2^15 exp(score - top) as halves, in the fragments of 16 positions each. */
ISA_FN void weights_of(const float (&score)[${BLOCK // 8}][4], const place_tile &of, const float (&base)[2],
    uint32_t (&weight)[${BLOCK // 16}][4]) {
#pragma unroll
    for (uint32_t n = 0; n < ${BLOCK // 8}; n++) {
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) {
            const float low = isa_exp2(isa_fma(score[n][2 * half], of.factor[half], base[half]));
            const float high = isa_exp2(isa_fma(score[n][2 * half + 1], of.factor[half], base[half]));
            weight[n / 2][n % 2 * 2 + half] = isa_halves(low, high);
        }
    }
}

/* Values of positions 16 step .. 16 step + 15 of a block, dimensions 16 dim .. 16 dim + 15: two fragments of isa_mma_f16. */
ISA_FN void load_values(const unsigned char *values, uint32_t step, uint32_t dim, uint32_t (&value)[4]) {
    const uint32_t lane = lane_now();
    isa_load_tiles_turned(value, values + (16 * step + lane % 16) * ${s.row_cells * 16} + dim * 32 + lane / 16 * 16);
}

/* out += weight * value, for a block that all rows see. */
ISA_FN void add_block(const unsigned char *values, const uint32_t (&weight)[${s.tiles}][${BLOCK // 16}][4],
    place_tile (&of)[${s.tiles}]) {
#pragma unroll
    for (uint32_t step = 0; step < ${BLOCK // 16}; step++) {
#pragma unroll
        for (uint32_t dim = 0; dim < ${steps}; dim++) {
            uint32_t value[4];
            load_values(values, step, dim, value);
#pragma unroll
            for (uint32_t tile = 0; tile < ${s.tiles}; tile++) {
                isa_mma_f16(of[tile].out[2 * dim], weight[tile][step], value[0], value[1]);
                isa_mma_f16(of[tile].out[2 * dim + 1], weight[tile][step], value[2], value[3]);
            }
        }
    }
}

/* Of the lane's values of 16 positions from t on, in words 0 and 1 of a fragment, bits that a row at `pos` sees, or, with
 * `some`, any row of the run. */
ISA_FN void seen_bits(const rows_of_run &run, bool some, uint32_t pos, uint32_t t, uint32_t (&bits)[2]) {
    const uint32_t first = t + lane_now() % 4 * 2;
#pragma unroll
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t at = first + 8 * i;
        bits[i] = some ? (some_row_sees(run, at) ? 0xffffu : 0) | (some_row_sees(run, at + 1) ? 0xffff0000u : 0)
                       : (row_sees(pos, at) ? 0xffffu : 0) | (row_sees(pos, at + 1) ? 0xffff0000u : 0);
    }
}

/* Whether a value that some row sees is no number or infinite. All lanes get the answer. */
ISA_FN bool any_odd(const unsigned char *values, const rows_of_run &run, uint32_t block) {
    uint32_t odd = 0;
#pragma unroll 1
    for (uint32_t step = 0; step < ${BLOCK // 16}; step++) {
        uint32_t bits[2];
        seen_bits(run, true, 0, block + 16 * step, bits);
#pragma unroll 1
        for (uint32_t dim = 0; dim < ${steps}; dim++) {
            uint32_t value[4];
            load_values(values, step, dim, value);
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                odd |= ((value[i] & bits[i % 2] & 0x7fff7fffu) + 0x04000400u) & 0x80008000u;
            }
        }
    }
    return isa_ballot(odd != 0) != 0;
}

/* One pass over a block of which rows see different parts: values that are out of sight count as 0, whatever they are, by what
 * some row sees, or the row at `only`; then the others' sums stay. */
ISA_FN void add_seen(const unsigned char *values, const uint32_t (&weight)[${s.tiles}][${BLOCK // 16}][4],
    const rows_of_run &run, uint32_t block, bool some, uint32_t only, place_tile (&of)[${s.tiles}]) {
    uint32_t bits[${BLOCK // 16}][2];
#pragma unroll
    for (uint32_t step = 0; step < ${BLOCK // 16}; step++) {
        seen_bits(run, some, only, block + 16 * step, bits[step]);
    }
#pragma unroll
    for (uint32_t dim = 0; dim < ${steps}; dim++) {
        uint32_t value[${BLOCK // 16}][4];
#pragma unroll
        for (uint32_t step = 0; step < ${BLOCK // 16}; step++) {
            load_values(values, step, dim, value[step]);
        }
#pragma unroll
        for (uint32_t i = 0; i < ${2 * s.tiles}; i++) {
            float (&out)[4] = of[i / 2].out[2 * dim + i % 2];
            float next[4] = {out[0], out[1], out[2], out[3]};
#pragma unroll
            for (uint32_t step = 0; step < ${BLOCK // 16}; step++) {
                isa_mma_f16(next, weight[i / 2][step], value[step][i % 2 * 2] & bits[step][0],
                    value[step][i % 2 * 2 + 1] & bits[step][1]);
            }
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                out[e] = some || pos_of(run, i / 2, e / 2) == only ? next[e] : out[e];
            }
        }
    }
}

/* The same for a block of which rows see different parts. A weight of 0 hides all numbers, but not NaN and infinity: where
 * there are such, rows take turns. */
ISA_FN void add_edge(const unsigned char *values, const uint32_t (&weight)[${s.tiles}][${BLOCK // 16}][4],
    const rows_of_run &run, uint32_t block, place_tile (&of)[${s.tiles}]) {
    const bool odd = any_odd(values, run, block);
    const uint32_t last = odd ? run.pos + run.n - 1 : run.pos;
#pragma unroll 1
    for (uint32_t pos = run.pos; pos <= last; pos++) {
        add_seen(values, weight, run, block, !odd, pos, of);
    }
}

/* One block at position `block`, which has come to `at`. */
ISA_FN void one_block(const rows_of_run &run, uint32_t block, const unsigned char *at, ${queries},
    place_tile (&of)[${s.tiles}]) {
    const bool whole = all_see(run, block);
    uint32_t weight[${s.tiles}][${BLOCK // 16}][4];
    float score[${s.tiles}][${BLOCK // 8}][4] = {};
    scores_of(at, ${s.shared and "shared" or "q"}, score);
#pragma unroll
    for (uint32_t tile = 0; tile < ${s.tiles}; tile++) {
        float base[2];
        if (!whole) {
            hide(run, tile, block, score[tile]);
        }
        follow_top(score[tile], of[tile], base);
        weights_of(score[tile], of[tile], base, weight[tile]);
#pragma unroll
        for (uint32_t step = 0; step < ${BLOCK // 16}; step++) { /* all ones: what is summed is what was multiplied */
            isa_mma_f16(of[tile].sum, weight[tile][step], 0x3c003c00u, 0x3c003c00u);
        }
    }
    if (whole) {
        add_block(at + ${o.values}, weight, of);
    } else {
        add_edge(at + ${o.values}, weight, run, block, of);
    }
}

/* The results of a tile to y. */
ISA_FN void put_tile(const ${d.name}_params &p, const rows_of_run &run, uint32_t head, uint32_t tile, const place_tile &of) {
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t place = place_of(tile, half), own = head + place % ${s.heads};
        const size_t row = run.row + place / ${s.heads};
        if (place / ${s.heads} >= run.n) {
            continue;
        }
% if gate ~= "none" then
        const float *gates = p.qkv + row * ${width} + ${gates};
% end
% if gate == "head" then
        const float gate = isa_softplus(gates[own]);
% end
#pragma unroll
        for (uint32_t n = 0; n < ${eights}; n++) {
            const uint32_t dim = own * ${hd} + 8 * n + lane_now() % 4 * 2;
            isa_x2 v;
#pragma unroll
            for (uint32_t e = 0; e < 2; e++) {
% if gate == "element" then
                const float gate = isa_softplus(gates[dim + e]);
% end
                v.w[e] = isa_bits(isa_div(of.out[n][2 * half + e], of.sum[2 * half])${gate ~= "none" and " * gate" or ""});
            }
            isa_store_x2(p.y + row * ${n_head * hd} + dim, v);
        }
    }
}

/* Heads head .. head + ${s.heads - 1} of a run of at most ${s.rows} rows in `slot`. All threads of the cta call. */
ISA_FN void attend_run(const ${d.name}_params &p, const rows_of_run &run, uint32_t head, uint32_t slot) {
    unsigned char *turns = isa_smem(0);
    const size_t cell = ((size_t)slot * ${n_kv} + head / ${group}) * ${cap * hd};
    const uint32_t first = first_seen(run.pos, ${window}) / ${BLOCK} * ${BLOCK}, end = run.pos + run.n;
    isa_barrier(); /* what was in shared memory is not needed any more */
    copy_block(p, cell, first, turns);
    place_tile of[${s.tiles}] = {};
% if s.shared then
    unsigned char *queries = isa_smem(${o.queries});
% else
    uint32_t queries[${s.tiles}][${steps}][4];
% end
#pragma unroll
    for (uint32_t tile = 0; tile < ${s.tiles}; tile++) {
        load_queries(p, run, head, tile, of[tile], queries${s.shared and "" or "[tile]"});
    }
    const bool busy = warp_now() * ${16 * s.tiles} < run.n * ${s.heads};
    for (uint32_t block = first, turn = 0; block < end; block += ${BLOCK}, turn ^= 1) {
        isa_copy_wait<0>();
        isa_barrier();
        if (block + ${BLOCK} < end) {
            copy_block(p, cell, block + ${BLOCK}, turns + (turn ^ 1) * ${o.turn});
        }
        if (busy) {
            one_block(run, block, turns + turn * ${o.turn}, queries, of);
        }
    }
#pragma unroll
    for (uint32_t tile = 0; tile < ${s.tiles}; tile++) {
        put_tile(p, run, head, tile, of[tile]);
    }
}

${cuda.open(d)}
    const uint32_t head = isa_cta_y() * ${s.heads}, begin = isa_cta_x() * ${s.rows};
    isa_wait_launch();
    isa_let_launch();
    const rt_step *step = p.step;
    const uint32_t end = begin + ${s.rows} < step->n_rows ? begin + ${s.rows} : step->n_rows;
    const uint32_t prompt = step->n_rows - step->n_prompt; /* the first row of one */
    if (begin < prompt) {
        attend_exact(p, head, begin, end < prompt ? end : prompt);
    }
    for (uint32_t row = begin > prompt ? begin : prompt, next; row < end; row = next) {
        const uint32_t seq = step->seq_of_row[row];
        for (next = row + 1; next < end && step->seq_of_row[next] == seq;) {
            next++;
        }
        attend_run(p, {row, next - row, step->pos_of_row[row]}, head, step->slot_of_seq[seq]);
    }
}
