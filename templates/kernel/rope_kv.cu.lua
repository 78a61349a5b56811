local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local attn = import("lib/attn_parts.lua")
local c_kernel = import("kernel/rope_kv.c.lua")

-- Threads of a cta, which has one row; they take pairs of q and k and elements of v in turns.
local THREADS = 256

function module.describe(op)
  local smem = { cuda.smem("key", 4 * op.n_kv * op.hd) }
  if has(op, "eps") then smem[2] = cuda.smem("scale", 4 * (op.n_head + op.n_kv)) end
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis("T", 1) }, smem = smem,
    grid = { "T", "1", "1" }, block = THREADS, ctas_per_sm = 1, features = { "f16", "shuffle", "redux" },
  })
end

%%template
% local d, kv = module.describe(params), attn.kv(params)
% local width, half, rest, normed = attn.width(params), n_rot // 2, hd - n_rot, has(params, "eps")
% local at = cuda.smem_offsets(d.smem)
% local does = normed and "norms the heads of q and k, " or ""
% does = does .. "rotates q in place, k into its cache, v into its cache (" .. params.kv .. "); one row a cta"
% local shapes = "qkv [n_rows][" .. width .. "];  k, v [slot][" .. n_kv .. "][" .. cap // 16 .. " blocks of "
% shapes = shapes .. kv.block(hd) .. "]"
${cuda.head(d, "kernel/rope_kv.cu.lua", does, shapes)}

${cuda.params(d)}

% if normed then
/* 1 / rms of a head of ${hd} numbers, by a warp: the 256 lanes of a row's sum, 8 in each lane of the warp. */
ISA_FN float inverse_rms(const float *x) {
    float v[8];
#pragma unroll
    for (uint32_t i = 0; i < 8; i++) {
        const uint32_t col = 32 * i + isa_lane();
        v[i] = col < ${hd} ? isa_fma(x[col], x[col], 0.0f) : 0.0f;
    }
    return isa_div(1.0f, isa_sqrt(isa_div(isa_warp_lanes_sum(v), ${hd}.0f) + ${hexfloat(eps)}));
}

% end
${kv.cu_store(hd, n_kv, cap, 256)}

${cuda.open(d)}
    float *key = (float *)(void *)isa_smem(${at.key}); /* [key head][dimension] */
% if normed then
    float *scale = (float *)(void *)isa_smem(${at.scale}); /* of each head of q, then of k */
% end
    const uint32_t t = isa_cta_x();
    isa_wait_launch();
    isa_let_launch();
    const uint32_t slot = p.step->slot_of_seq[p.step->seq_of_row[t]];
    const uint32_t at = p.step->pos_of_row[t] % ${cap};
    const float *table = p.table + (size_t)t * ${n_rot};
    float *row = p.qkv + (size_t)t * ${width};
    const size_t cell = (size_t)slot * ${n_kv * attn.head_cells(params)};
% if has(params, "count") then
    for (uint32_t i = isa_thread(); i < ${count}; i += 256) {
        p.count[(size_t)t * ${count} + i] = 0; /* for the attention that follows */
    }
% end
% if normed then

    for (uint32_t head = isa_warp(); head < ${n_head + n_kv}; head += 8) {
        const float r = inverse_rms(row + head * ${hd});
        if (isa_lane() == 0) {
            scale[head] = r;
        }
    }
    isa_barrier();
% end

    /* Pairs that are rotated: those of the ${n_head} heads of q, then those of k. */
    for (uint32_t i = isa_thread(); i < ${(n_head + n_kv) * half}; i += 256) {
        const uint32_t head = i / ${half}, pair = i % ${half};
% if pairing == "norm" then
        const uint32_t first = 2 * pair, second = 2 * pair + 1;
% else
        const uint32_t first = pair, second = pair + ${half};
% end
        float *x = row + head * ${hd};
        const float c = table[2 * pair], s = table[2 * pair + 1];
% if normed then
        const float *w = head < ${n_head} ? p.q_norm : p.k_norm;
        const float a = x[first] * scale[head] * w[first], b = x[second] * scale[head] * w[second];
% else
        const float a = x[first], b = x[second];
% end
        const float y_a = isa_fma(a, c, -(b * s)), y_b = isa_fma(a, s, b * c);
        float *y = head < ${n_head} ? x : key + (head - ${n_head}) * ${hd};
        y[first] = y_a;
        y[second] = y_b;
    }
% if rest > 0 then

    /* What is not rotated, of q${normed and "" or ": nothing to do"} and of k. */
% local first_head = normed and 0 or n_head
    for (uint32_t i = isa_thread(); i < ${(n_head + n_kv - first_head) * rest}; i += 256) {
        const uint32_t head = ${first_head} + i / ${rest}, dim = ${n_rot} + i % ${rest};
        float *x = row + head * ${hd};
% if normed then
        const float *w = head < ${n_head} ? p.q_norm : p.k_norm;
        float *y = head < ${n_head} ? x : key + (head - ${n_head}) * ${hd};
        y[dim] = x[dim] * scale[head] * w[dim];
% else
        key[(head - ${n_head}) * ${hd} + dim] = x[dim];
% end
    }
% end
    isa_barrier();
    store_keys(key, p.k + cell, at);
    store_values(row + ${(n_head + n_kv) * hd}, p.v + cell, at);
}
