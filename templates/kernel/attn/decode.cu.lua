-- A cta has one head of one row. In a split of 256 positions thread i has the score of position i; then four chains
-- of 64 positions for each dimension, and the split joins those before it.
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/attn.c.lua")
local attn = import("lib/attn_parts.lua")

local THREADS = 256

-- Elements of a dot product that are read at once: a divisor of the head, since a remainder costs registers.
local function at_once(hd)
  for _, n in ipairs({ 64, 32 }) do
    if hd % n == 0 then return n end
  end
  return 16
end

function module.describe(op)
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xdecode",
    axes = { descr.rows_axis("T", 1), descr.dim_axis("heads", op.n_head, "y"), attn.splits },
    grid = { "T", tostring(op.n_head), "1" }, block = THREADS, ctas_per_sm = 2,
    covers = attn.covers(op, 1),
    smem = { cuda.smem("q", op.hd * 4), cuda.smem("lane", THREADS * 4), cuda.smem("weight", THREADS * 4),
             cuda.smem("chain", 4 * op.hd * 4), cuda.smem("top", 8 * 4) },
    features = { "shuffle", "f16" },
  })
end

%%template
% local d = module.describe(params)
% local width, kv = attn.width(params), attn.kv(params)
% local block, gates = kv.block(hd), (n_head + 2 * n_kv) * hd
% local at = cuda.smem_offsets(d.smem)
% local does = "softmax(scale * q k) v over splits of 256 positions; a cta has one head of one row"
% local shapes = "qkv [n_rows][" .. width .. "];  y [n_rows][" .. n_head * hd .. "]"
${cuda.head(d, "kernel/attn/decode.cu.lua", does, shapes)}

${cuda.params(d)}

${kv.cu_load(hd)}

/* The first position that one at `pos` sees; window 0: all. */
ISA_FN uint32_t first_seen(uint32_t pos, uint32_t window) {
    return window == 0 || pos < window ? 0 : pos - (window - 1);
}

/* The greatest of the cta's numbers; `of_warp` is 8 floats that no thread reads any more. */
ISA_FN float cta_max(float x, float *of_warp) {
    const float mine = isa_warp_max(x);
    if (isa_lane() == 0) {
        of_warp[isa_warp()] = mine;
    }
    isa_barrier();
    float best = of_warp[0];
#pragma unroll
    for (uint32_t i = 1; i < 8; i++) {
        best = best > of_warp[i] ? best : of_warp[i];
    }
    return best;
}

/* The dot product of q with key t of those at `keys`. */
ISA_FN float dot(const float *q, const ${kv.ctype} *keys, uint32_t t) {
    float sum = 0.0f;
#pragma unroll ${at_once(hd)}
    for (uint32_t i = 0; i < ${hd}; i++) {
        sum = isa_fma(q[i], kv_key(keys, t, i), sum);
    }
    return sum;
}

/* The chain of dimension `dim` over positions [begin, end) of the 64 from `base` on; absent ones are read as their
 * nearest neighbour, so that all reads can go out together, and left out. */
ISA_FN float chain_of(const float *weight, const ${kv.ctype} *values, uint32_t dim, uint32_t base, uint32_t begin,
    uint32_t end) {
    float acc = 0.0f;
#pragma unroll 32
    for (uint32_t t = base; t < base + 64; t++) {
        const uint32_t near = t < begin ? begin : t < end ? t : end - 1;
        const float next = isa_fma(weight[near], kv_value(values, near, dim), acc);
        acc = near == t ? next : acc;
    }
    return acc;
}

${cuda.open(d)}
    float *q = (float *)(void *)isa_smem(${at.q}), *lane = (float *)(void *)isa_smem(${at.lane});
    float *weight = (float *)(void *)isa_smem(${at.weight}), *chain = (float *)(void *)isa_smem(${at.chain});
    float *of_warp = (float *)(void *)isa_smem(${at.top});
    const uint32_t row = isa_cta_x(), head = isa_cta_y(), me = isa_thread();
    isa_wait_launch();
    isa_let_launch();
    const uint32_t pos = p.step->pos_of_row[row], slot = p.step->slot_of_seq[p.step->seq_of_row[row]];
    const uint32_t first = first_seen(pos, ${window});
    const size_t cell = ((size_t)slot * ${n_kv} + head / ${n_head // n_kv}) * ${cap // 16 * block};
    for (uint32_t i = me; i < ${hd}; i += ${THREADS}) {
        q[i] = p.qkv[(size_t)row * ${width} + head * ${hd} + i];
    }
    isa_barrier();

    float top = 0.0f, sum = 0.0f, out = 0.0f; /* m and l of docs/numerics.md; o of dimension `me` */
    for (uint32_t split = first / 256 * 256; split <= pos; split += 256) {
        const uint32_t from = first > split ? first - split : 0;
        const uint32_t to = pos - split < 255 ? pos - split + 1 : 256;
        const ${kv.ctype} *keys = p.k + cell + (size_t)(split % ${cap} / 16) * ${block};
        const ${kv.ctype} *values = p.v + cell + (size_t)(split % ${cap} / 16) * ${block};
        const bool seen = me >= from && me < to;

        /* The score of position split + me. */
        float score = -isa_float(0x7f800000u);
        if (seen) {
            score = dot(q, keys, me) * ${hexfloat(scale)};
        }
        const float split_top = cta_max(score, of_warp);
        const float mine = seen ? isa_exp(score - split_top) : 0.0f;
        weight[me] = mine;
        const float split_sum = isa_lanes_sum(mine, lane);

        /* Chains of 64 positions for each dimension. */
        for (uint32_t i = me; i < ${4 * hd}; i += ${THREADS}) {
            const uint32_t base = i / ${hd} * 64, dim = i % ${hd};
            const uint32_t begin = from > base ? from : base, end = to < base + 64 ? to : base + 64;
            chain[i] = begin < end ? chain_of(weight, values, dim, base, begin, end) : 0.0f;
        }
        isa_barrier();

        /* This split and those before. */
        if (me < ${hd}) {
            const float mid = (chain[me] + chain[${hd} + me]) + (chain[${2 * hd} + me] + chain[${3 * hd} + me]);
            if (split <= first) {
                top = split_top;
                sum = split_sum;
                out = mid;
            } else {
                const float new_top = top > split_top ? top : split_top;
                const float a = isa_exp(top - new_top), b = isa_exp(split_top - new_top);
                top = new_top;
                sum = isa_fma(sum, a, split_sum * b);
                out = isa_fma(out, a, mid * b);
            }
        }
    }
    if (me < ${hd}) {
        float o = isa_div(out, sum);
% if gate == "head" then
        o = o * isa_softplus(p.qkv[(size_t)row * ${width} + ${gates} + head]);
% elseif gate == "element" then
        o = o * isa_softplus(p.qkv[(size_t)row * ${width} + ${gates} + head * ${hd} + me]);
% end
        p.y[(size_t)row * ${n_head * hd} + head * ${hd} + me] = o;
    }
}
