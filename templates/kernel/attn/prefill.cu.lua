-- A cta has one head of 8 rows; rows of one sequence that follow each other go together, and a key or value is read
-- once for all of them. In a split of 256 positions thread i has the scores of position i; then each warp makes the
-- weights of one row; then four chains of 64 positions for each dimension, and the split joins those before it.
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/attn.c.lua")
local attn = import("lib/attn_parts.lua")

local THREADS = 256
local ROWS = 8 -- the warps of a cta

function module.describe(op)
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xprefill",
    axes = { descr.rows_axis("T", ROWS), descr.dim_axis("heads", op.n_head, "y"), attn.splits },
    grid = { descr.row_ctas("T", ROWS), tostring(op.n_head), "1" }, block = THREADS, ctas_per_sm = op.hd > 128 and 1 or 2,
    covers = attn.covers(op, ROWS),
    smem = { cuda.smem("q", op.hd * ROWS * 4), cuda.smem("weight", 256 * ROWS * 4),
             cuda.smem("chain", 4 * op.hd * ROWS * 4), cuda.smem("top", 2 * ROWS * 4) },
    features = { "shuffle", "f16" },
  })
end

%%template
% local d = module.describe(params)
% local width, kv = attn.width(params), attn.kv(params)
% local block, gates = kv.block(hd), (n_head + 2 * n_kv) * hd
% local at = cuda.smem_offsets(d.smem)
% local per_thread = ceil_div(hd * ROWS, THREADS)
% local does = "softmax(scale * q k) v over splits of 256 positions; a cta has one head of " .. ROWS .. " rows"
% local shapes = "qkv [n_rows][" .. width .. "];  y [n_rows][" .. n_head * hd .. "]"
${cuda.head(d, "kernel/attn/prefill.cu.lua", does, shapes)}

${cuda.params(d)}

${kv.cu_load(hd)}

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

/* acc[r] += x times number r of ${ROWS} at `of_row`, in one rounding. */
ISA_FN void fma_rows(float x, const float *of_row, float (&acc)[${ROWS}]) {
#pragma unroll
    for (uint32_t r = 0; r < ${ROWS}; r += 4) {
        const isa_x4 v = isa_load_x4(of_row + r);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            acc[r + i] = isa_fma(isa_float(v.w[i]), x, acc[r + i]);
        }
    }
}

/* ${ROWS} numbers to `of_row`. */
ISA_FN void store_rows(const float (&x)[${ROWS}], float *of_row) {
#pragma unroll
    for (uint32_t r = 0; r < ${ROWS}; r += 4) {
        isa_x4 v;
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            v.w[i] = isa_bits(x[r + i]);
        }
        isa_store_x4(of_row + r, v);
    }
}

/* A warp turns the scores of row r at positions [from, to) into weights; the others become 0. Returns the greatest
 * score and, in *sum, the sum of the weights over 256 lanes. */
ISA_FN float weights_of(float *weight, uint32_t r, uint32_t from, uint32_t to, float *sum) {
    const float absent = -isa_float(0x7f800000u);
    float v[8], top = absent;
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t t = 32 * i + isa_lane();
        v[i] = t >= from && t < to ? weight[t * ${ROWS} + r] : absent;
        top = top > v[i] ? top : v[i];
    }
    top = isa_warp_max(top);
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t t = 32 * i + isa_lane();
        v[i] = t >= from && t < to ? isa_exp(v[i] - top) : 0.0f;
        weight[t * ${ROWS} + r] = v[i];
    }
    const float even = (v[0] + v[4]) + (v[2] + v[6]), odd = (v[1] + v[5]) + (v[3] + v[7]);
    *sum = isa_warp_sum(even + odd);
    return top;
}

/* One head of rows row .. row + n - 1, which are of one sequence at ascending positions from pos on. */
ISA_FN void attend(const ${d.name}_params &p, uint32_t head, uint32_t row, uint32_t n, uint32_t pos, uint32_t slot) {
    float *q = (float *)(void *)isa_smem(${at.q});           /* [dimension][row] */
    float *weight = (float *)(void *)isa_smem(${at.weight}); /* [position][row]: scores, then weights */
    float *chain = (float *)(void *)isa_smem(${at.chain});   /* [chain][dimension][row] */
    float *of_row = (float *)(void *)isa_smem(${at.top});    /* [row]: the split's top; then its sums */
    const uint32_t me = isa_thread(), r = isa_warp(), last = pos + n - 1;
    const size_t cell = ((size_t)slot * ${n_kv} + head / ${n_head // n_kv}) * ${cap // 16 * block};
    for (uint32_t i = me; i < ${hd * ROWS}; i += ${THREADS}) {
        const uint32_t mine = i % ${ROWS};
        q[i] = mine < n ? p.qkv[(size_t)(row + mine) * ${width} + head * ${hd} + i / ${ROWS}] : 0.0f;
    }
    isa_barrier();

    /* Thread i keeps element i, i + ${THREADS}, .. of [dimension][row]: o, with its row's m and l of docs/numerics.md. */
    float top[${per_thread}] = {}, sum[${per_thread}] = {}, out[${per_thread}] = {};
    for (uint32_t split = first_seen(pos, ${window}) / 256 * 256; split <= last; split += 256) {
        const ${kv.ctype} *keys = p.k + cell + (size_t)(split % ${cap} / 16) * ${block};
        const ${kv.ctype} *values = p.v + cell + (size_t)(split % ${cap} / 16) * ${block};
        uint32_t from, to, all_from, all_to, mine_from, mine_to;
        seen_of(pos, split, &from, &all_to);       /* the first row sees the least at the end */
        seen_of(last, split, &all_from, &to);      /* and the last the least at the beginning */
        seen_of(pos + r, split, &mine_from, &mine_to);

        /* The scores of position split + me. */
        if (me >= from && me < to) {
            float score[${ROWS}] = {};
#pragma unroll 16
            for (uint32_t i = 0; i < ${hd}; i++) {
                fma_rows(kv_key(keys, me, i), q + i * ${ROWS}, score);
            }
#pragma unroll
            for (uint32_t i = 0; i < ${ROWS}; i++) {
                score[i] = score[i] * ${hexfloat(scale)};
            }
            store_rows(score, weight + me * ${ROWS});
        }
        isa_barrier();
        if (r < n) {
            float row_sum;
            const float row_top = weights_of(weight, r, mine_from, mine_to, &row_sum);
            if (isa_lane() == 0) {
                of_row[r] = row_top;
                of_row[${ROWS} + r] = row_sum;
            }
        }
        isa_barrier();

        /* Chains of 64 positions for each dimension; at the ends some rows do not see a position. */
        for (uint32_t i = me; i < ${4 * hd}; i += ${THREADS}) {
            const uint32_t base = i / ${hd} * 64, dim = i % ${hd};
            const uint32_t begin = from > base ? from : base, end = to < base + 64 ? to : base + 64;
            float acc[${ROWS}] = {};
#pragma unroll 8
            for (uint32_t t = begin; t < end; t++) {
                const float v = kv_value(values, t, dim);
                if (t >= all_from && t < all_to) {
                    fma_rows(v, weight + t * ${ROWS}, acc);
                } else {
#pragma unroll
                    for (uint32_t k = 0; k < ${ROWS}; k++) {
                        uint32_t k_from, k_to;
                        seen_of(pos + k, split, &k_from, &k_to);
                        if (k < n && t >= k_from && t < k_to) {
                            acc[k] = isa_fma(weight[t * ${ROWS} + k], v, acc[k]);
                        }
                    }
                }
            }
            store_rows(acc, chain + i * ${ROWS});
        }
        isa_barrier();

        /* This split and those before. */
#pragma unroll
        for (uint32_t k = 0; k < ${per_thread}; k++) {
            const uint32_t i = me + ${THREADS} * k, of = i % ${ROWS};
            uint32_t of_from, of_to;
            seen_of(pos + of, split, &of_from, &of_to);
            if (i < ${hd * ROWS} && of < n && of_from < of_to) {
                const float mid = (chain[i] + chain[${hd * ROWS} + i]) + (chain[${2 * hd * ROWS} + i] + chain[${3 * hd * ROWS} + i]);
                const float split_top = of_row[of], split_sum = of_row[${ROWS} + of];
                if (split <= first_seen(pos + of, ${window})) {
                    top[k] = split_top;
                    sum[k] = split_sum;
                    out[k] = mid;
                } else {
                    const float new_top = top[k] > split_top ? top[k] : split_top;
                    const float a = isa_exp(top[k] - new_top), b = isa_exp(split_top - new_top);
                    top[k] = new_top;
                    sum[k] = isa_fma(sum[k], a, split_sum * b);
                    out[k] = isa_fma(out[k], a, mid * b);
                }
            }
        }
    }

    /* Through shared memory, so that a row's dimensions go out together. */
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        const uint32_t i = me + ${THREADS} * k;
        if (i < ${hd * ROWS} && i % ${ROWS} < n) {
            q[i] = isa_div(out[k], sum[k]);
        }
    }
    isa_barrier();
    for (uint32_t i = me; i < n * ${hd}; i += ${THREADS}) {
        float o = q[i % ${hd} * ${ROWS} + i / ${hd}];
% if gate == "head" then
        o = o * isa_softplus(p.qkv[(size_t)(row + i / ${hd}) * ${width} + ${gates} + head]);
% elseif gate == "element" then
        o = o * isa_softplus(p.qkv[(size_t)(row + i / ${hd}) * ${width} + ${gates} + head * ${hd} + i % ${hd}]);
% end
        p.y[(size_t)(row + i / ${hd}) * ${n_head * hd} + head * ${hd} + i % ${hd}] = o;
    }
    isa_barrier();
}

${cuda.open(d)}
    const uint32_t head = isa_cta_y(), begin = isa_cta_x() * ${ROWS};
    isa_wait_launch();
    isa_let_launch();
    const rt_step *step = p.step;
    const uint32_t end = begin + ${ROWS} < step->n_rows ? begin + ${ROWS} : step->n_rows;
    for (uint32_t row = begin, next; row < end; row = next) {
        const uint32_t seq = step->seq_of_row[row];
        for (next = row + 1; next < end && step->seq_of_row[next] == seq;) {
            next++;
        }
        attend(p, head, row, next - row, step->pos_of_row[row], step->slot_of_seq[seq]);
    }
}
