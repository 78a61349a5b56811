local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/rope_kv.c.lua")

-- Threads of a cta, which has one row; they take pairs of q and k and elements of v in turns.
local THREADS = 256

function module.describe(op)
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = THREADS, ctas_per_sm = 1, features = { "f16" },
  })
end

%%template
% local d = module.describe(params)
% local width, half, rest = (n_head + 2 * n_kv) * hd, n_rot // 2, hd - n_rot
% local does = "rotates q in place, k into its cache, v into its cache (f16); one row a cta"
% local shapes = "qkv [n_rows][" .. width .. "];  k [slot][" .. n_kv .. "][" .. cap // 16 .. "]["
% shapes = shapes .. hd .. "][16];  v [slot][" .. n_kv .. "][" .. cap .. "][" .. hd .. "]"
${cuda.head(d, "kernel/rope_kv.cu.lua", does, shapes)}

${cuda.params(d)}

/* Element i of a key at `key`, the cell of its position's block of 16. */
ISA_FN void store_key(uint16_t *key, uint32_t i, float x) {
    key[16 * i] = isa_to_half(x);
}

${cuda.open(d)}
    const uint32_t t = isa_cta_x();
    isa_wait_launch();
    isa_let_launch();
    const uint32_t slot = p.step->slot_of_seq[p.step->seq_of_row[t]];
    const uint32_t at = p.step->pos_of_row[t] % ${cap};
    const float *table = p.table + (size_t)t * ${n_rot};
    float *row = p.qkv + (size_t)t * ${width};
    uint16_t *k = p.k + (size_t)slot * ${n_kv * cap * hd} + (size_t)(at / 16) * ${16 * hd} + at % 16;
    uint16_t *v = p.v + (size_t)slot * ${n_kv * cap * hd} + (size_t)at * ${hd};

    /* Pairs that are rotated: those of the ${n_head} heads of q, then those of k. */
    for (uint32_t i = isa_thread(); i < ${(n_head + n_kv) * half}; i += ${THREADS}) {
        const uint32_t head = i / ${half}, pair = i % ${half};
% if pairing == "norm" then
        const uint32_t first = 2 * pair, second = 2 * pair + 1;
% else
        const uint32_t first = pair, second = pair + ${half};
% end
        float *x = row + head * ${hd};
        const float a = x[first], b = x[second], c = table[2 * pair], s = table[2 * pair + 1];
        const float y_a = isa_fma(a, c, -(b * s)), y_b = isa_fma(a, s, b * c);
        if (head < ${n_head}) {
            x[first] = y_a;
            x[second] = y_b;
        } else {
            uint16_t *key = k + (size_t)(head - ${n_head}) * ${cap * hd};
            store_key(key, first, y_a);
            store_key(key, second, y_b);
        }
    }
% if rest > 0 then

    /* What of k is not rotated. */
    for (uint32_t i = isa_thread(); i < ${n_kv * rest}; i += ${THREADS}) {
        const uint32_t head = i / ${rest}, dim = ${n_rot} + i % ${rest};
        store_key(k + (size_t)head * ${cap * hd}, dim, row[(${n_head} + head) * ${hd} + dim]);
    }
% end

    for (uint32_t i = isa_thread(); i < ${n_kv * hd}; i += ${THREADS}) {
        const uint32_t head = i / ${hd}, dim = i % ${hd};
        v[(size_t)head * ${cap * hd} + dim] = isa_to_half(row[${(n_head + n_kv) * hd} + i]);
    }
}
