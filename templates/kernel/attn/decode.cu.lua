-- A cta has a row's splits number `lane`, lane + lanes, .. for some query heads of one key head, which share what is read of
-- its keys and values. In a split of 256 positions thread i of 128 has the scores of positions 2i and 2i + 1; then each warp
-- makes the weights of some heads, and has one chain of 64 positions for all dimensions. Every 128 threads have some of the
-- heads. A row with one split is done then; else splits go to `part`, and the last cta to have brought its own (`count`) joins
-- all of them, in their order.
local cuda = import("lib/descr_cuda.lua")
local descr = import("lib/descr.lua")
local c_kernel = import("kernel/attn.c.lua")
local attn = import("lib/attn_parts.lua")

local CTAS_PER_SM = { 3, 2, 1 } -- by teams of 128 threads: with more of them there are too few registers
local SMEM_OF_ALL = 97 * 1024 -- of an SM with least of it, less what the system keeps of three ctas

local function smem(op, s)
  local weights, chains = s.heads * 256 * 4, 4 * s.heads * op.hd * 4
  return { cuda.smem("q", s.heads * op.hd * 4), cuda.smem("weight", math.max(weights, chains)),
           cuda.smem("of_head", 2 * s.heads * 4), cuda.smem("before", 4) }
end

-- Heads of a team of 128 threads, a divisor of the cta's: five at most, and three teams, if it can be.
local function heads_of_team(heads)
  for n = 5, 3, -1 do
    if heads % n == 0 and heads // n <= 3 then return n end
  end
  return heads
end

local function teams_of(s) return s.heads // heads_of_team(s.heads) end

local FETCHED = 4 * 1024 * 1024 -- bytes of keys and values of a row that may be on their way together

-- The axes: rows, groups of heads, lanes.
local function axes(s)
  return { descr.rows_axis("T", 1), descr.dim_axis("heads", s.groups, "y"), descr.dim_axis("lanes", s.lanes, "z"), attn.splits }
end

local function covers(op, s)
  local y = attn.covers(op, 1)[1]
  y.cols[1].tile = s.heads * op.hd
  y.last = { axis = "lanes", count = "count" }
  local part, count = attn.split_covers(op, "heads")
  return { y, part, count }
end

function module.describe(op)
  local s = attn.split(op)
  local shared, teams = smem(op, s), teams_of(s)
  local _, bytes = cuda.smem_offsets(shared)
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xdecode", axes = axes(s), grid = { "T", tostring(s.groups), tostring(s.lanes) }, block = 128 * teams,
    ctas_per_sm = math.max(1, math.min(CTAS_PER_SM[teams], SMEM_OF_ALL // bytes)), covers = covers(op, s), smem = shared,
    features = { "shuffle", "f16" },
  })
end

-- Dimensions whose keys are read at once, and groups of four positions whose values are: what registers allow; bytes take
-- more of them than halves, for their scales.
local function keys_at_once(op, heads, teams)
  local bytes = attn.kv(op).elem_bytes == 1
  if op.hd % 64 == 0 and heads <= 4 and teams == 1 and not bytes then return 64 end
  return op.hd % 32 == 0 and (heads <= 4 or not bytes) and 32 or 16
end

local function fours_at_once(op)
  local fours = attn.vector(op.hd) <= 2 and 8 or attn.vector(op.hd) <= 4 and 4 or 2
  return attn.kv(op).elem_bytes == 1 and fours // 2 or fours
end

%%template
% local d, s = module.describe(params), attn.split(params)
% local width, kv, vec = attn.width(params), attn.kv(params), attn.vector(hd)
% local block, gates = kv.block(hd), (n_head + 2 * n_kv) * hd
% local at, elems, teams = cuda.smem_offsets(d.smem), s.heads * hd, teams_of(s)
% local THREADS, mine, keys = 128 * teams, s.heads // teams, keys_at_once(params, s.heads // teams, teams)
% local per_thread, per_warp = ceil_div(elems, THREADS), ceil_div(s.heads, 4 * teams)
% local does = "softmax(scale * q k) v over splits of 256 positions; a cta has " .. s.heads .. " heads of one row and each " ..
%   s.lanes .. "th of its splits"
% local shapes = "qkv [n_rows][" .. width .. "];  part [n_rows][" .. s.groups .. "][" .. s.splits .. " splits][" .. s.tile ..
%   "];  count [n_rows][" .. s.groups .. "];  y [n_rows][" .. n_head * hd .. "]"
${cuda.head(d, "kernel/attn/decode.cu.lua", does, shapes)}

${cuda.params(d)}

${kv.cu_load_wide(hd, vec)}

/* The first position that one at `pos` sees; window 0: all. */
ISA_FN uint32_t first_seen(uint32_t pos, uint32_t window) {
    return window == 0 || pos < window ? 0 : pos - (window - 1);
}

/* The scores of positions t and t + 1 of those at `keys` for the team's heads, into their rows of 256. */
ISA_FN void scores_of(const float *q, const ${kv.ctype} *keys, uint32_t t, float *weight) {
    float score[${mine}][2] = {};
    for (uint32_t some = 0; some < ${hd}; some += ${keys}) {
#pragma unroll
        for (uint32_t i = 0; i < ${keys}; i += 4) {
            float key[4][2];
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                kv_keys2(keys, t, some + i + e, key[e]);
            }
#pragma unroll
            for (uint32_t h = 0; h < ${mine}; h++) {
                const isa_x4 of_q = isa_load_x4(q + h * ${hd} + some + i);
#pragma unroll
                for (uint32_t e = 0; e < 4; e++) {
                    score[h][0] = isa_fma(isa_float(of_q.w[e]), key[e][0], score[h][0]);
                    score[h][1] = isa_fma(isa_float(of_q.w[e]), key[e][1], score[h][1]);
                }
            }
        }
    }
#pragma unroll
    for (uint32_t h = 0; h < ${mine}; h++) {
        weight[256 * h + t] = score[h][0] * ${hexfloat(scale)};
        weight[256 * h + t + 1] = score[h][1] * ${hexfloat(scale)};
    }
}

/* A warp turns the scores of a head at positions [from, to) into weights; the others become 0. Returns the greatest
 * score and, in *sum, the sum of the weights over 256 lanes. All is computed for all, so that there is no branch. */
ISA_FN float weights_of(float *weight, uint32_t from, uint32_t to, float *sum) {
    const float absent = -isa_float(0x7f800000u);
    float v[8], top = absent;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t t = 32 * i + isa_lane();
        const float score = weight[t];
        v[i] = t >= from && t < to ? score : absent;
        top = top > v[i] ? top : v[i];
    }
    top = isa_warp_max(top);
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t t = 32 * i + isa_lane();
        const float e = isa_exp(v[i] - top);
        v[i] = t >= from && t < to ? e : 0.0f;
        weight[t] = v[i];
    }
    *sum = isa_warp_lanes_sum(v);
    return top;
}

/* acc += weight * value at positions t .. t + 3, for ${vec} dimensions of the team's heads. */
ISA_FN void add_four(const float *weight, const ${kv.ctype} *values, uint32_t dim, uint32_t t,
    float (&acc)[${mine}][${vec}]) {
    float value[4][${vec}];
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        kv_values${vec}(values, t + e, dim, value[e]);
    }
#pragma unroll
    for (uint32_t h = 0; h < ${mine}; h++) {
        const isa_x4 w = isa_load_x4(weight + 256 * h + t);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
#pragma unroll
            for (uint32_t i = 0; i < ${vec}; i++) {
                acc[h][i] = isa_fma(isa_float(w.w[e]), value[e][i], acc[h][i]);
            }
        }
    }
}

/* The same where some of them are not in [begin, end): these are read as their nearest neighbour, so that all reads can
 * go out together, and left out. */
ISA_FN void add_some(const float *weight, const ${kv.ctype} *values, uint32_t dim, uint32_t t, uint32_t begin, uint32_t end,
    float (&acc)[${mine}][${vec}]) {
    float value[4][${vec}];
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        kv_values${vec}(values, t + e < begin ? begin : t + e < end ? t + e : end - 1, dim, value[e]);
    }
#pragma unroll
    for (uint32_t h = 0; h < ${mine}; h++) {
        const isa_x4 w = isa_load_x4(weight + 256 * h + t);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            const bool seen = t + e >= begin && t + e < end;
#pragma unroll
            for (uint32_t i = 0; i < ${vec}; i++) {
                const float next = isa_fma(isa_float(w.w[e]), value[e][i], acc[h][i]);
                acc[h][i] = seen ? next : acc[h][i];
            }
        }
    }
}

/* The chains over positions [begin, end) of ${vec} dimensions of the team's heads. */
ISA_FN void chains_of(const float *weight, const ${kv.ctype} *values, uint32_t dim, uint32_t begin, uint32_t end,
    float (&acc)[${mine}][${vec}]) {
    uint32_t t = begin / 4 * 4;
    if (t < begin) {
        add_some(weight, values, dim, t, begin, end, acc);
        t += 4;
    }
#pragma unroll ${fours_at_once(params)}
    for (; t + 4 <= end; t += 4) {
        add_four(weight, values, dim, t, acc);
    }
    if (t < end) {
        add_some(weight, values, dim, t, begin, end, acc);
    }
}

/* One split, at positions `split` on, of which the row sees [from, to): o of element ${THREADS} k + thread, [head][dimension],
 * in mid[k], and m and l of docs/numerics.md in of_head. No thread reads `weight` any more. */
ISA_FN void one_split(const ${kv.ctype} *keys, const ${kv.ctype} *values, uint32_t from, uint32_t to,
    float (&mid)[${per_thread}]) {
    const float *q = (const float *)(const void *)isa_smem(${at.q}); /* [head][dimension] */
    float *weight = (float *)(void *)isa_smem(${at.weight}); /* [head][position]: scores, then weights; then chains */
    float *of_head = (float *)(void *)isa_smem(${at.of_head});
    const uint32_t me = isa_thread(), t = 2 * (me % 128), first = me / 128 * ${mine}; /* head of the team */
    if (t + 1 >= from && t < to) {
        scores_of(q + first * ${hd}, keys, t, weight + 256 * first);
    }
    isa_barrier();
    for (uint32_t h = isa_warp(); h < ${s.heads}; h += ${4 * teams}) {
        float sum;
        const float top = weights_of(weight + 256 * h, from, to, &sum);
        if (isa_lane() == 0) {
            of_head[h] = top;
            of_head[${s.heads} + h] = sum;
        }
    }
    isa_barrier();

    /* A chain of 64 positions for each warp. */
    const uint32_t number = isa_warp() % 4, base = 64 * number, dim = ${vec} * isa_lane();
    const uint32_t begin = from > base ? from : base, end = to < base + 64 ? to : base + 64;
    float acc[${mine}][${vec}] = {};
    if (dim < ${hd} && begin < end) {
        chains_of(weight + 256 * first, values, dim, begin, end, acc);
    }
    isa_barrier();
    float *chain = weight; /* [chain][head][dimension] */
#pragma unroll
    for (uint32_t h = 0; h < ${mine} && dim < ${hd}; h++) {
#pragma unroll
        for (uint32_t i = 0; i < ${vec}; i++) {
            chain[(number * ${s.heads} + first + h) * ${hd} + dim + i] = acc[h][i];
        }
    }
    isa_barrier();
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        const uint32_t e = me + ${THREADS} * k;
        if (e < ${elems}) {
            mid[k] = (chain[e] + chain[${elems} + e]) + (chain[${2 * elems} + e] + chain[${3 * elems} + e]);
        }
    }
    isa_barrier();
}

/* Element e of the group's heads, from its o and l. */
ISA_FN void put(const ${d.name}_params &p, uint32_t row, uint32_t group, uint32_t e, float o, float sum) {
    float y = isa_div(o, sum);
% if gate == "head" then
    y = y * isa_softplus(p.qkv[(size_t)row * ${width} + ${gates} + group * ${s.heads} + e / ${hd}]);
% elseif gate == "element" then
    y = y * isa_softplus(p.qkv[(size_t)row * ${width} + ${gates} + group * ${elems} + e]);
% end
    p.y[(size_t)row * ${n_head * hd} + group * ${elems} + e] = y;
}

/* What splits number begin .. begin + 31 are multiplied by, as far as the row has them: a and b of docs/numerics.md, and
 * l times b. `run` is the greatest score of the splits before them. */
ISA_FN void factors(const float *part, uint32_t begin, uint32_t n_splits, float (&run)[${per_warp}]) {
    float *factor = (float *)(void *)isa_smem(${at.weight}); /* [head][32 splits][a, b, l b] */
    const uint32_t j = begin + isa_lane();
#pragma unroll
    for (uint32_t i = 0; i < ${per_warp}; i++) {
        const uint32_t h = isa_warp() + ${4 * teams} * i;
        if (h < ${s.heads}) {
            const float *of_split = part + (size_t)j * ${s.tile} + ${elems} + h;
            const float top = j < n_splits ? isa_load_other(of_split) : -isa_float(0x7f800000u);
            const float sum = j < n_splits ? isa_load_other(of_split + ${s.heads}) : 0.0f;
            const float before = isa_warp_max_before(run[i], top), new_top = before > top ? before : top;
            const float b = isa_exp(top - new_top);
            float *mine = factor + 96 * h + 3 * isa_lane();
            mine[0] = isa_exp(before - new_top);
            mine[1] = b;
            mine[2] = sum * b;
            run[i] = isa_warp_max(new_top);
        }
    }
}

/* All splits of a row, in order. */
ISA_FN void join(const ${d.name}_params &p, uint32_t row, uint32_t group, const float *part, uint32_t n_splits) {
    const float *factor = (const float *)(const void *)isa_smem(${at.weight});
    float run[${per_warp}], sum[${per_thread}] = {}, out[${per_thread}] = {};
#pragma unroll
    for (uint32_t i = 0; i < ${per_warp}; i++) {
        run[i] = -isa_float(0x7f800000u);
    }
    for (uint32_t begin = 0; begin < n_splits; begin += 32) {
        const uint32_t n = n_splits - begin < 32 ? n_splits - begin : 32;
        factors(part, begin, n_splits, run);
        isa_barrier();
#pragma unroll
        for (uint32_t k = 0; k < ${per_thread}; k++) {
            const uint32_t e = isa_thread() + ${THREADS} * k;
            if (e < ${elems}) {
                const float *of_split = part + (size_t)begin * ${s.tile} + e, *f = factor + 96 * (e / ${hd});
                uint32_t j = 0;
                if (begin == 0) { /* the first one stands for itself */
                    out[k] = isa_load_other(of_split);
                    sum[k] = isa_load_other(part + ${elems + s.heads} + e / ${hd});
                    j = 1;
                }
#pragma unroll 8
                for (; j < n; j++) {
                    sum[k] = isa_fma(sum[k], f[3 * j], f[3 * j + 2]);
                    out[k] = isa_fma(out[k], f[3 * j], isa_load_other(of_split + (size_t)j * ${s.tile}) * f[3 * j + 1]);
                }
            }
        }
        isa_barrier();
    }
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        if (isa_thread() + ${THREADS} * k < ${elems}) {
            put(p, row, group, isa_thread() + ${THREADS} * k, out[k], sum[k]);
        }
    }
}

/* A split's numbers to their place for who joins them. */
ISA_FN void keep(const float *of_head, const float (&mid)[${per_thread}], float *to) {
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        if (isa_thread() + ${THREADS} * k < ${elems}) {
            to[isa_thread() + ${THREADS} * k] = mid[k];
        }
    }
    if (isa_thread() < ${2 * s.heads}) {
        to[${elems} + isa_thread()] = of_head[isa_thread()];
    }
}

${cuda.open(d)}
    float *q = (float *)(void *)isa_smem(${at.q}), *of_head = (float *)(void *)isa_smem(${at.of_head});
    uint32_t *before = (uint32_t *)(void *)isa_smem(${at.before});
    const uint32_t row = isa_cta_x(), group = isa_cta_y(), lane = isa_cta_z(), me = isa_thread();
    isa_wait_launch();
    isa_let_launch();
    const uint32_t pos = p.step->pos_of_row[row], slot = p.step->slot_of_seq[p.step->seq_of_row[row]];
    const uint32_t first = first_seen(pos, ${window}), n_splits = pos / 256 + 1 - first / 256;
    if (lane >= n_splits) {
        return;
    }
    const size_t cell = ((size_t)slot * ${n_kv} + group * ${s.heads} / ${n_head // n_kv}) * ${cap // 16 * block};
    float *part = p.part + ((size_t)row * ${s.groups} + group) * ${s.splits * s.tile};
    for (uint32_t e = me; e < ${elems}; e += ${THREADS}) {
        q[e] = p.qkv[(size_t)row * ${width} + group * ${elems} + e];
    }
    isa_barrier();

    float mid[${per_thread}] = {};
% local bytes = 16 * block * kv.elem_bytes
    if (n_splits <= ${math.max(1, FETCHED // (s.groups * 2 * bytes))}) { /* they fit the L2 cache: all at once from memory */
        const size_t begin = cell + (size_t)((first / 256 + lane) * 256 % ${cap} / 16) * ${block};
        for (uint32_t i = 128 * me; i < ${bytes}; i += ${128 * THREADS}) {
            isa_prefetch((const uint8_t *)(p.k + begin) + i);
            isa_prefetch((const uint8_t *)(p.v + begin) + i);
        }
    }
    for (uint32_t j = lane; j < n_splits; j += ${s.lanes}) {
        const uint32_t split = (first / 256 + j) * 256;
        const size_t at = cell + (size_t)(split % ${cap} / 16) * ${block};
        one_split(p.k + at, p.v + at, first > split ? first - split : 0, pos - split < 255 ? pos - split + 1 : 256, mid);
        if (n_splits > 1) {
            keep(of_head, mid, part + (size_t)j * ${s.tile});
        }
    }
    if (n_splits == 1) {
#pragma unroll
        for (uint32_t k = 0; k < ${per_thread}; k++) {
            const uint32_t e = me + ${THREADS} * k;
            if (e < ${elems}) {
                put(p, row, group, e, mid[k], of_head[${s.heads} + e / ${hd}]);
            }
        }
        return;
    }

    /* The last of the ctas that have splits of the row goes on. */
    isa_fence();
    isa_barrier();
    if (me == 0) {
        *before = isa_arrive(p.count + (size_t)row * ${s.groups} + group);
    }
    isa_barrier();
    if (*before + 1 == (n_splits < ${s.lanes} ? n_splits : ${s.lanes})) {
        isa_fence();
        join(p, row, group, part, n_splits);
    }
}
