local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local attn = import("lib/attn_parts.lua")
local c_kernel = import("kernel/rope_kv.c.lua")

-- Threads of a cta, which has a key head of a row with the heads of q that it serves; threads take pairs of q and k and
-- elements of v in turns.
local THREADS = 256

-- Key heads of a cta: one, or all where the counters for the attention that follows cannot be shared out evenly.
local function keys_of(op)
  local even = not has(op, "count") or op.count % op.n_kv == 0
  return even and 1 or op.n_kv
end

function module.describe(op)
  local keys = keys_of(op)
  local pieces, heads = op.n_kv // keys, op.n_head * keys // op.n_kv
  local smem = { cuda.smem("key", 4 * keys * op.hd) }
  if has(op, "eps") then smem[2] = cuda.smem("scale", 4 * (heads + keys)) end
  local function cover(param, tile)
    return { param = param, rows = { axis = "rows", tile = 1, n = "T" },
             cols = { { axis = "pieces", first = 0, tile = tile, begin = 0, n = tile * pieces } } }
  end
  local covers = { cover("qkv", heads * op.hd) }
  covers[1].partial = true
  if has(op, "count") then covers[2] = cover("count", op.count // pieces) end
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis("T", 1), descr.dim_axis("pieces", pieces, "y") }, smem = smem, covers = covers,
    grid = { "T", tostring(pieces), "1" }, block = THREADS, ctas_per_sm = 1, features = { "f16", "shuffle", "redux" },
  })
end

%%template
% local d, kv = module.describe(params), attn.kv(params)
% local width, half, rest, normed = attn.width(params), n_rot // 2, hd - n_rot, has(params, "eps")
% local at, keys = cuda.smem_offsets(d.smem), keys_of(params)
% local heads, pieces = n_head * keys // n_kv, n_kv // keys
% local does = normed and "norms the heads of q and k, " or ""
% does = does .. "rotates q in place, k into its cache, v into its cache (" .. params.kv .. "); " .. keys .. " of a row's " .. n_kv .. " key heads a cta"
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
${kv.cu_store(hd, keys, cap, THREADS)}

${cuda.open(d)}
    float *key = (float *)(void *)isa_smem(${at.key}); /* [key head][dimension] */
% if normed then
    float *scale = (float *)(void *)isa_smem(${at.scale}); /* of the cta's heads of q, then of k */
% end
    const uint32_t t = isa_cta_x(), piece = isa_cta_y();
    isa_wait_launch();
    isa_let_launch();
    const uint32_t slot = p.step->slot_of_seq[p.step->seq_of_row[t]];
    const uint32_t at = p.step->pos_of_row[t] % ${cap};
    const float *table = p.table + (size_t)t * ${n_rot};
    float *row = p.qkv + (size_t)t * ${width};
    float *q = row + piece * ${heads * hd};
    const float *k = row + ${n_head * hd} + piece * ${keys * hd}, *v = k + ${n_kv * hd};
    const size_t cell = ((size_t)slot * ${pieces} + piece) * ${keys * attn.head_cells(params)};
% if has(params, "count") then
% local each = count // pieces
    for (uint32_t i = isa_thread(); i < ${each}; i += ${THREADS}) {
        p.count[(size_t)t * ${count} + ${each == 1 and "piece" or each .. " * piece"} + i] = 0; /* for the attention that follows */
    }
% end
% if normed then

    for (uint32_t head = isa_warp(); head < ${heads + keys}; head += ${THREADS // 32}) {
        const float r = inverse_rms(head < ${heads} ? q + head * ${hd} : k + (head - ${heads}) * ${hd});
        if (isa_lane() == 0) {
            scale[head] = r;
        }
    }
    isa_barrier();
% end

    /* Pairs that are rotated: those of the heads of q, then those of k. */
    for (uint32_t i = isa_thread(); i < ${(heads + keys) * half}; i += ${THREADS}) {
        const uint32_t head = i / ${half}, pair = i % ${half};
% if pairing == "norm" then
        const uint32_t first = 2 * pair, second = 2 * pair + 1;
% else
        const uint32_t first = pair, second = pair + ${half};
% end
        const float *x = head < ${heads} ? q + head * ${hd} : k + (head - ${heads}) * ${hd};
        const float c = table[2 * pair], s = table[2 * pair + 1];
% if normed then
        const float *w = head < ${heads} ? p.q_norm : p.k_norm;
        const float a = x[first] * scale[head] * w[first], b = x[second] * scale[head] * w[second];
% else
        const float a = x[first], b = x[second];
% end
        const float y_a = isa_fma(a, c, -(b * s)), y_b = isa_fma(a, s, b * c);
        float *y = head < ${heads} ? q + head * ${hd} : key + (head - ${heads}) * ${hd};
        y[first] = y_a;
        y[second] = y_b;
    }
% if rest > 0 then

    /* What is not rotated, of q${normed and "" or ": nothing to do"} and of k. */
% local first_head = normed and 0 or heads
    for (uint32_t i = isa_thread(); i < ${(heads + keys - first_head) * rest}; i += ${THREADS}) {
        const uint32_t head = ${first_head} + i / ${rest}, dim = ${n_rot} + i % ${rest};
% if normed then
        const float *x = head < ${heads} ? q + head * ${hd} : k + (head - ${heads}) * ${hd};
        const float *w = head < ${heads} ? p.q_norm : p.k_norm;
        float *y = head < ${heads} ? q + head * ${hd} : key + (head - ${heads}) * ${hd};
        y[dim] = x[dim] * scale[head] * w[dim];
% else
        key[(head - ${heads}) * ${hd} + dim] = k[(head - ${heads}) * ${hd} + dim];
% end
    }
% end
    isa_barrier();
    store_keys(key, p.k + cell, at);
    store_values(v, p.v + cell, at);
}
