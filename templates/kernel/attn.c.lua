local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local attn = import("lib/attn_parts.lua")

-- Heads and rows of one cta. A (row, head) is a pair below: pairs of one key head run together, so
-- that they share what is read of its keys and values; their scores and sums are the scratch.
local function tile_of(op)
  local most = op.hd <= 128 and 16 or 8
  local heads = exact_div(op.n_head, op.n_kv)
  for n = math.min(heads, most), 1, -1 do
    if heads % n == 0 then return { heads = n, rows = most // n, pairs = most // n * n } end
  end
end

local function check(op)
  if op.n_head % op.n_kv ~= 0 then fail("attn: n_head must be a multiple of n_kv") end
  if op.hd % 16 ~= 0 or op.hd > 256 then
    fail("attn: head size " .. op.hd .. " (a multiple of 16, at most 256)")
  end
  if op.gate ~= "none" and op.act ~= "softplus" then fail("attn: gate of act '" .. tostring(op.act) .. "'") end
end

local function operands(op, kv)
  local k = descr.operand("k", "read", tostring(attn.cells(op)), kv.elem_bytes, 64)
  local v = descr.operand("v", "read", tostring(attn.cells(op)), kv.elem_bytes, 64)
  k.indexed = "step: slot < slots, pos % cap < cap"
  v.indexed = k.indexed
  k.window, v.window = op.window, op.window
  local list = { descr.operand("qkv", "read", "T * " .. attn.width(op), 4, 64), k, v }
  if has(op, "split") then list[4], list[5] = attn.split_operands(op, descr.operand) end
  list[#list + 1] = descr.operand("y", "write", "T * " .. op.n_head * op.hd, 4, 64)
  return list
end

local function params(op, kv)
  local list = { descr.param("qkv", "const float *"), descr.param("k", "const " .. kv.ctype .. " *"),
                 descr.param("v", "const " .. kv.ctype .. " *") }
  if has(op, "split") then list[4], list[5] = attn.split_params() end
  list[#list + 1] = descr.param("y", "float *")
  list[#list + 1] = descr.step_param()
  return list
end

local function covers(op, tile)
  local list = { { param = "y", rows = { axis = "rows", tile = tile.rows, n = "T" },
                   cols = { { axis = "heads", first = 0, tile = tile.heads * op.hd, begin = 0,
                              n = op.n_head * op.hd } } } }
  if has(op, "split") then list[2], list[3] = attn.split_covers(op) end
  return list
end

-- The literals that change the arithmetic; what most models do without stands last.
local function dims(op)
  local list = { op.n_head, op.n_kv, op.hd, name.f32(op.scale), op.window, op.cap, op.slots }
  if op.gate ~= "none" then list[#list + 1] = "gate" .. op.gate end
  if has(op, "split") then list[#list + 1] = "split" end
  return list
end

-- Positions that `rows` rows of a sequence read together, and one row with rows "0".
local function seen(op, rows)
  return op.window > 0 and "min(ctx, " .. op.window .. " + " .. rows .. ")" or "ctx"
end

function module.describe(op)
  check(op)
  local tile, kv = tile_of(op), attn.kv(op)
  return {
    name = name.kernel("attn", { op.kv }, "f32", dims(op)),
    axes = { descr.rows_axis("T", tile.rows),
             descr.dim_axis("heads", exact_div(op.n_head, tile.heads), "y"),
             { name = "splits", kind = "kv", bound = "ctx", tile = 256, on = "loop",
               fold = "none" } },
    grid = { descr.row_ctas("T", tile.rows), tostring(exact_div(op.n_head, tile.heads)), "1" },
    block = 1,
    params = params(op, kv), operands = operands(op, kv), covers = covers(op, tile),
    scratch = tile.pairs * (1088 + op.hd * 20 + 64) + 1024,
    reduction = "splits256", tolerance = 1e-5,
    bytes = "min(slots, T) * " .. seen(op, "T") .. " * " .. op.n_kv * kv.block(op.hd) * kv.elem_bytes // 8 .. " + T * " .. op.n_head * op.hd * 8,
    flops = "T * " .. seen(op, "0") .. " * " .. op.n_head * op.hd * 4,
    includes = { op.hw.isa, "isa_math.h" }, features = { "f16", "f32" },
  }
end

-- Register tiles of n pairs: a whole cta's, one row's, and what the rest is made of.
local function pair_tiles(tile)
  local list = {}
  for n = tile.pairs, 1, -1 do
    if n == tile.pairs or n == tile.heads or n == 8 or n == 4 or n <= 2 then list[#list + 1] = n end
  end
  return list
end

-- Vectors that n pairs take at a time with 16 accumulators; a power of 2, so that it divides a split.
local function vectors_of(n)
  if n <= 4 then return 4 end
  return n <= 8 and 2 or 1
end

%%template
% local d = module.describe(params)
% local width, tile, kv = attn.width(params), tile_of(params), attn.kv(params)
% local block = kv.block(hd)
% local pairs = tile.pairs
% local share = tile.heads .. " heads of " .. tile.rows .. " rows" ..
%   (has(params, "split") and " and all their splits, so that part and count are idle" or "")
% local does = "softmax(scale * q k) v in splits of 256 positions; a cta has " .. share
% local shapes = "qkv [n_rows][" .. width .. "];  y [n_rows][" .. n_head * hd .. "]"
${descr.c_head(d, "kernel/attn.c.lua", does, shapes)}
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

${descr.c_params(d)}

/* Row stride of the weights: 256, and 16 more so that the rows spread over the cache. */
enum { P_STRIDE = 272 };

/* Pairs (row, head) that share keys: rows of one sequence, heads of one key head. */
typedef struct pairs {
    uint32_t n;
    uint32_t lo[${pairs}], hi[${pairs}]; /* first and last visible position */
    bool begun[${pairs}];                /* a split was merged already */
    float top[${pairs}], sum[${pairs}];  /* m and l of docs/numerics.md */
    float q[${pairs}][${hd}];
    float o[${pairs}][${hd}];
    float p[${pairs}][P_STRIDE];         /* scores, then weights, of the split's positions */
    float part[3][${pairs}][${hd}];      /* chains of 64 positions: 0 + 1, 2 + 3, 1 or 3 alone */
} pairs;

/* First position of pair i inside the split at `split`, and one past its last; from >= to where it
 * sees none. */
ISA_FN uint32_t seen_from(const pairs *s, uint32_t i, uint32_t split) {
    return s->lo[i] <= split ? 0 : s->lo[i] - split < 256 ? s->lo[i] - split : 256;
}

ISA_FN uint32_t seen_to(const pairs *s, uint32_t i, uint32_t split) {
    return s->hi[i] < split ? 0 : s->hi[i] - split < 255 ? s->hi[i] - split + 1 : 256;
}

${kv.c_load(hd)}

/* Scores of n pairs from i on, at n_vec * ISA_N positions from `at` on. */
ISA_FN void score_tile(pairs *s, uint32_t i, const ${kv.ctype} *keys, uint32_t at, const uint32_t n,
    const uint32_t n_vec) {
    isa_f acc[16];
#pragma GCC unroll 16
    for (uint32_t a = 0; a < n * n_vec; a++) {
        acc[a] = isa_set1(0.0f);
    }
    const float *q = s->q[i];
    for (uint32_t dim = 0; dim < ${hd}; dim++, q++) {
        isa_f k[4];
#pragma GCC unroll 4
        for (uint32_t v = 0; v < n_vec; v++) {
            k[v] = kv_keys(keys, at + v * ISA_N, dim);
        }
#pragma GCC unroll 16
        for (uint32_t j = 0; j < n; j++) {
            isa_f one = isa_set1(q[j * ${hd}]);
#pragma GCC unroll 4
            for (uint32_t v = 0; v < n_vec; v++) {
                acc[j * n_vec + v] = isa_fma(one, k[v], acc[j * n_vec + v]);
            }
        }
    }
    float *p = s->p[i] + at;
#pragma GCC unroll 16
    for (uint32_t a = 0; a < n * n_vec; a++) {
        isa_f score = isa_mul(acc[a], isa_set1(${hexfloat(scale)}));
        isa_store(p + a / n_vec * P_STRIDE + a % n_vec * ISA_N, score);
    }
}

/* Scores of all pairs at the split's positions first..last, in whole vectors: what lies beyond is
 * still inside the split and is masked later. */
static void scores(pairs *s, const ${kv.ctype} *keys, uint32_t first, uint32_t last) {
    uint32_t i = 0;
% for _, n in ipairs(pair_tiles(tile)) do
% local n_vec = vectors_of(n)
    for (; ISA_ACCS >= ${n} && i + ${n} <= s->n; i += ${n}) {
        const uint32_t step = ISA_N * (ISA_ACCS == 16 ? ${n_vec} : ${(n_vec + 1) // 2});
        for (uint32_t at = first / step * step; at <= last; at += step) {
            score_tile(s, i, keys, at, ${n}, step / ISA_N);
        }
    }
% end
}

/* Scores of pair i become weights exp(score - top); returns their sum, *top is the greatest score.
 * Positions outside first..last get weight 0. */
static float weights(pairs *s, uint32_t i, uint32_t first, uint32_t last, float *top) {
    const isa_f absent = isa_set1(-INFINITY);
    float *p = s->p[i];
    isa_f lane[256 / ISA_N], best = absent;
    const uint32_t v_first = first / ISA_N, v_last = last / ISA_N;
    for (uint32_t v = v_first; v <= v_last; v++) {
        lane[v] = isa_load(p + v * ISA_N);
        if (v == v_last) {
            lane[v] = isa_sel(isa_first(last % ISA_N + 1), lane[v], absent);
        }
        if (v == v_first) {
            lane[v] = isa_sel(isa_first(first % ISA_N), absent, lane[v]);
        }
        best = isa_max(best, lane[v]);
    }
    *top = isa_top(best);
    for (uint32_t v = 0; v < 256 / ISA_N; v++) {
        if (v < v_first || v > v_last) {
            lane[v] = isa_set1(0.0f);
            continue;
        }
        lane[v] = isa_exp(isa_sub(lane[v], isa_set1(*top)));
        isa_store(p + v * ISA_N, lane[v]);
    }
    return isa_lanes_sum(lane);
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

static void copy_row(float *to, const float *from) {
    for (uint32_t i = 0; i < ${hd}; i += ISA_N) {
        isa_store(to + i, isa_load(from + i));
    }
}

/* to += from */
static void add_rows(float *to, const float *from, uint32_t n) {
    for (uint32_t i = 0; i < n; i += ISA_N) {
        isa_store(to + i, isa_add(isa_load(to + i), isa_load(from + i)));
    }
}

/* sums (rows of ${hd}) of n pairs += weight * value over positions [from, to) of the split, in
 * n_vec * ISA_N dimensions from `dim` on; sums and p point at the first pair's. */
ISA_FN void value_tile(float *sums, const float *p, const ${kv.ctype} *values, uint32_t dim,
    uint32_t from, uint32_t to, const uint32_t n, const uint32_t n_vec) {
    sums += dim;
    isa_f acc[16];
#pragma GCC unroll 16
    for (uint32_t a = 0; a < n * n_vec; a++) {
        acc[a] = isa_load(sums + a / n_vec * ${hd} + a % n_vec * ISA_N);
    }
    for (uint32_t t = from; t < to; t++) {
        isa_f value[4];
#pragma GCC unroll 4
        for (uint32_t v = 0; v < n_vec; v++) {
            value[v] = kv_values(values, t, dim + v * ISA_N);
        }
#pragma GCC unroll 16
        for (uint32_t j = 0; j < n; j++) {
            isa_f one = isa_set1(p[t + j * P_STRIDE]);
#pragma GCC unroll 4
            for (uint32_t v = 0; v < n_vec; v++) {
                acc[j * n_vec + v] = isa_fma(one, value[v], acc[j * n_vec + v]);
            }
        }
    }
#pragma GCC unroll 16
    for (uint32_t a = 0; a < n * n_vec; a++) {
        isa_store(sums + a / n_vec * ${hd} + a % n_vec * ISA_N, acc[a]);
    }
}

/* value_tile over all dimensions, for n pairs from i on. */
static void value_rows(const pairs *s, float (*sums)[${hd}], uint32_t i, uint32_t n,
    const ${kv.ctype} *values, uint32_t from, uint32_t to) {
    const uint32_t end = i + n;
% for _, n in ipairs(pair_tiles(tile)) do
% local n_vec = vectors_of(n)
    for (; ISA_ACCS >= ${n} && i + ${n} <= end; i += ${n}) {
        const uint32_t wide = ISA_ACCS == 16 ? ${n_vec} : ${(n_vec + 1) // 2};
        uint32_t dim = 0;
        for (; dim + wide * ISA_N <= ${hd}; dim += wide * ISA_N) {
            value_tile(sums[i], s->p[i], values, dim, from, to, ${n}, wide);
        }
        for (; wide > 1 && dim < ${hd}; dim += ISA_N) {
            value_tile(sums[i], s->p[i], values, dim, from, to, ${n}, 1);
        }
    }
% end
}

/* The chain over positions [from, to) of the split, for n pairs from i on. The stretch that all of
 * them see runs together; what some see before and behind it is left to the halves of the pairs, in
 * the order of positions. Absent positions are not touched. */
static void chain(const pairs *s, float (*sums)[${hd}], uint32_t i, uint32_t n,
    const ${kv.ctype} *values, uint32_t split, uint32_t from, uint32_t to) {
    uint32_t all_from = from, all_to = to, some_from = to, some_to = from;
    for (uint32_t j = i; j < i + n; j++) {
        const uint32_t j_from = most(from, seen_from(s, j, split));
        const uint32_t j_to = least(to, seen_to(s, j, split));
        all_from = most(all_from, j_from);
        all_to = least(all_to, j_to);
        if (j_from < j_to) {
            some_from = least(some_from, j_from);
            some_to = most(some_to, j_to);
        }
    }
    if (some_from >= some_to) {
        return;
    }
    if (all_from >= all_to) {
        all_from = all_to = some_to; /* no common stretch: all of it by halves */
    }
    const uint32_t half = n / 2;
    if (some_from < all_from) {
        chain(s, sums, i, half, values, split, some_from, all_from);
        chain(s, sums, i + half, n - half, values, split, some_from, all_from);
    }
    if (all_from < all_to) {
        value_rows(s, sums, i, n, values, all_from, all_to);
    }
    if (all_to < some_to) {
        chain(s, sums, i, half, values, split, all_to, some_to);
        chain(s, sums, i + half, n - half, values, split, all_to, some_to);
    }
}

/* part[0] becomes (chain 0 + chain 1) + (chain 2 + chain 3), the chains over 64 positions each. */
static void split_values(pairs *s, const ${kv.ctype} *values, uint32_t split) {
    const uint32_t n_floats = s->n * ${hd};
    for (uint32_t c = 0; c < 4; c++) {
        float (*sums)[${hd}] = s->part[c % 2 == 0 ? c / 2 : 2];
        for (uint32_t i = 0; i < n_floats; i += ISA_N) {
            isa_store(sums[0] + i, isa_set1(0.0f));
        }
        chain(s, sums, 0, s->n, values, split, 64 * c, 64 * c + 64);
        if (c % 2 == 1) {
            add_rows(s->part[c / 2][0], sums[0], n_floats);
        }
    }
    add_rows(s->part[0][0], s->part[1][0], n_floats);
}

/* exp of one number. */
static float exp1(float x) {
    float lane[ISA_N];
    isa_store(lane, isa_exp(isa_set1(x)));
    return lane[0];
}

/* Merges pair i's split (top, sum, part[0]) into what came before. */
static void merge(pairs *s, uint32_t i, float top, float sum) {
    if (!s->begun[i]) {
        s->begun[i] = true;
        s->top[i] = top;
        s->sum[i] = sum;
        copy_row(s->o[i], s->part[0][i]);
        return;
    }
    const float new_top = s->top[i] > top ? s->top[i] : top;
    const float a = exp1(s->top[i] - new_top), b = exp1(top - new_top);
    s->top[i] = new_top;
    s->sum[i] = isa_fma1(s->sum[i], a, sum * b);
    for (uint32_t dim = 0; dim < ${hd}; dim += ISA_N) {
        isa_f part = isa_mul(isa_load(s->part[0][i] + dim), isa_set1(b));
        isa_store(s->o[i] + dim, isa_fma(isa_load(s->o[i] + dim), isa_set1(a), part));
    }
}

/* One split of 256 positions from `split` on; keys and values point at its cells. */
static void one_split(pairs *s, const ${kv.ctype} *keys, const ${kv.ctype} *values, uint32_t split) {
    uint32_t first = 256, end = 0;
    float top[${pairs}], sum[${pairs}];
    for (uint32_t i = 0; i < s->n; i++) {
        first = least(first, seen_from(s, i, split));
        end = most(end, seen_to(s, i, split));
    }
    scores(s, keys, first, end - 1);
    for (uint32_t i = 0; i < s->n; i++) {
        if (seen_from(s, i, split) < seen_to(s, i, split)) {
            sum[i] = weights(s, i, seen_from(s, i, split), seen_to(s, i, split) - 1, &top[i]);
        }
    }
    split_values(s, values, split);
    for (uint32_t i = 0; i < s->n; i++) {
        if (seen_from(s, i, split) < seen_to(s, i, split)) {
            merge(s, i, top[i], sum[i]);
        }
    }
}

/* Pairs of n_rows rows from `row` on (one sequence) and ${tile.heads} heads from `head` on. */
static void attend(const ${d.name}_params *p,
    uint32_t row, uint32_t n_rows, uint32_t head) {
    pairs s;
    s.n = n_rows * ${tile.heads};
    uint32_t lo = UINT32_MAX, hi = 0;
    for (uint32_t i = 0; i < s.n; i++) {
        const uint32_t pos = p->step->pos_of_row[row + i / ${tile.heads}];
        const float *q = p->qkv + (size_t)(row + i / ${tile.heads}) * ${width};
        copy_row(s.q[i], q + (head + i % ${tile.heads}) * ${hd});
        s.begun[i] = false;
% if window > 0 then
        s.lo[i] = pos >= ${window} ? pos - ${window - 1} : 0;
% else
        s.lo[i] = 0;
% end
        s.hi[i] = pos;
        lo = least(lo, s.lo[i]);
        hi = most(hi, pos);
    }

    const uint32_t slot = p->step->slot_of_seq[p->step->seq_of_row[row]];
    const size_t cell = ((size_t)slot * ${n_kv} + head / ${n_head // n_kv}) * ${cap // 16 * block};
    for (uint32_t split = lo / 256 * 256; split <= hi; split += 256) {
        const size_t at = cell + (size_t)(split % ${cap} / 16) * ${block};
        one_split(&s, p->k + at, p->v + at, split);
    }

    for (uint32_t i = 0; i < s.n; i++) {
        float *y = p->y + (size_t)(row + i / ${tile.heads}) * ${n_head * hd};
        y += (head + i % ${tile.heads}) * ${hd};
% if gate ~= "none" then
        const float *gates = p->qkv + (size_t)(row + i / ${tile.heads}) * ${width} + ${(n_head + 2 * n_kv) * hd};
% end
% if gate == "head" then
        const isa_f open = isa_softplus(isa_set1(gates[head + i % ${tile.heads}]));
% elseif gate == "element" then
        gates += (head + i % ${tile.heads}) * ${hd};
% end
        for (uint32_t dim = 0; dim < ${hd}; dim += ISA_N) {
            isa_f o = isa_div(isa_load(s.o[i] + dim), isa_set1(s.sum[i]));
% if gate == "head" then
            o = isa_mul(o, open);
% elseif gate == "element" then
            o = isa_mul(o, isa_softplus(isa_load(gates + dim)));
% end
            isa_store(y + dim, o);
        }
    }
}

${descr.c_open(d)}
    const rt_step *step = p.step;
    const uint32_t n_tiles = (step->n_rows + ${tile.rows - 1}) / ${tile.rows};
    for (uint32_t cta = cta_begin; cta < cta_end; cta++) {
        const uint32_t head = cta / n_tiles * ${tile.heads}, begin = cta % n_tiles * ${tile.rows};
        const uint32_t end = least(begin + ${tile.rows}, step->n_rows);

        /* Rows of one sequence together. */
        for (uint32_t row = begin, next; row < end; row = next) {
            for (next = row + 1; next < end && step->seq_of_row[next] == step->seq_of_row[row];) {
                next++;
            }
            attend(&p, row, next - row, head);
        }
    }
}
