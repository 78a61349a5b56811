-- y = W x for a few rows of x. A cta has 16 rows of W (a strip; for swiglu one of gate and one of up) by up to 8
-- tokens. A half-warp takes an atom: each lane one row of it, so that a load of 16 lanes is one of the image's
-- 64-byte words. The sums of the atoms meet in shared memory and are added in order.
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/matmul.c.lua")
local parts = import("lib/matmul_parts.lua")

local TOKENS = 8
local MOST_SLOTS = 16 -- atoms at a time

local function sources(op) return op.epilogue == "swiglu" and 2 or 1 end

local function slots_of(op) return math.min(MOST_SLOTS, sources(op) * parts.n_atoms(op)) end

function module.describe(op)
  local rows = descr.rows_of(op)
  local facts = parts.facts(op, 16)
  local cols, n_strips = parts.segments(op, facts, 16)
  local slots = slots_of(op)
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xdecode",
    axes = { descr.rows_axis(rows, TOKENS), descr.dim_axis("strips", n_strips, "y") },
    grid = { descr.row_ctas(rows, TOKENS), tostring(n_strips), "1" },
    block = round_up(16 * slots, 32), ctas_per_sm = 2,
    covers = parts.row_cover(rows, TOKENS, cols),
    smem = { cuda.smem("sums", slots * TOKENS * 16 * 4) }, features = { "dp4a", "f16" },
  })
end

%%template int_type(quant, K)
% local t, a, groups = quant.type, descr.atoms(quant, K), quant.qblock_elems // 32
${quant.cu_load()}

${quant.cu_sum()}

/* One atom of nq qblocks: acc[t] is its part of one row for token t. */
ISA_FN void ${t}_atom(const uint8_t *atom, const uint32_t nq, uint32_t row, const int8_t *x_q,
    const float *x_d, const int16_t *x_s, uint32_t n_tokens, float (&acc)[${TOKENS}]) {
#pragma unroll
    for (uint32_t g = 0; g < nq * ${groups}; g++) {
        const ${t}_scale s = ${t}_scales(atom, nq, g, row);
        uint32_t lo[4], hi[4];
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            ${t}_codes(atom, nq, g, row, i, &lo[i], &hi[i]);
        }
#pragma unroll
        for (uint32_t t = 0; t < ${TOKENS}; t++) {
            if (t < n_tokens) {
                const isa_x4 q_lo = isa_load_x4(x_q + t * ${K} + 32 * g);
                const isa_x4 q_hi = isa_load_x4(x_q + t * ${K} + 32 * g + 16);
                const int32_t s0 = x_s[t * ${K // 16} + 2 * g], s1 = x_s[t * ${K // 16} + 2 * g + 1];
                const float d = x_d[t * ${K // 32} + g];
                int32_t n_lo = 0, n_hi = 0;
#pragma unroll
                for (uint32_t i = 0; i < 4; i++) {
                    n_lo = isa_dot4(lo[i], q_lo.w[i], n_lo);
                    n_hi = isa_dot4(hi[i], q_hi.w[i], n_hi);
                }
                const float n = (float)${t}_total(s, n_lo, n_hi, s0, s1);
                acc[t] = isa_fma(n, s.d * d, acc[t]);
% if quant.has_min then
                acc[t] = isa_fma(${t}_min(s), (float)(s0 + s1) * d, acc[t]);
% end
            }
        }
    }
}

/* Atom a of a strip; x_q, x_d and x_s are the first token's. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, uint32_t row, const int8_t *x_q,
    const float *x_d, const int16_t *x_s, uint32_t n_tokens, float (&acc)[${TOKENS}]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    x_q += 256 * a;
    x_d += 8 * a;
    x_s += 16 * a;
% if a.whole > 0 and a.rest > 0 then
    if (a < ${a.whole}) {
        ${t}_atom(atom, ${a.per}, row, x_q, x_d, x_s, n_tokens, acc);
    } else {
        ${t}_atom(atom, ${a.rest}, row, x_q, x_d, x_s, n_tokens, acc);
    }
% else
    ${t}_atom(atom, ${a.rest > 0 and a.rest or a.per}, row, x_q, x_d, x_s, n_tokens, acc);
% end
}

%%template float_type(quant, K)
% local t, a = quant.type, descr.atoms(quant, K)
${quant.cu_load()}

/* Atom a of a strip: acc[t] is its part of one row for token t; x is the first token's. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, uint32_t row, const float *x,
    uint32_t n_tokens, float (&acc)[${TOKENS}]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    const uint32_t n_cols = ${cuda.by_atom(K, "a", 256, K % 256)};
    x += 256 * a;
#pragma unroll 4
    for (uint32_t col = 0; col < n_cols; col++) {
        const float w = ${t}_at(atom, col, row);
#pragma unroll
        for (uint32_t t = 0; t < ${TOKENS}; t++) {
            if (t < n_tokens) {
                acc[t] = isa_fma(w, x[t * ${K} + col], acc[t]);
            }
        }
    }
}

%%template call_part(part, K, strip, atom)
% local w = "p.w" .. part.i .. " + (size_t)(" .. strip .. ") * " .. part.strip_bytes
% if part.quant.kind == "int" then
${part.type}_part(${w}, ${atom}, row, p.x_q + token0 * ${K},
    p.x_d + token0 * ${K // 32}, p.x_s + token0 * ${K // 16}, n_tokens, acc);
% else
${part.type}_part(${w}, ${atom}, row, p.x + token0 * ${K}, n_tokens, acc);
% end

%%lua
-- A swiglu's gate and up, by the number v of the atom.
local function by_source(facts, n_atoms, K)
  return join({ "if (v < " .. n_atoms .. ") {", indent(module.call_part(facts[1], K, "strip", "v"), 4), "} else {",
                indent(module.call_part(facts[2], K, "strip", "v - " .. n_atoms), 4), "}" }, "\n")
end

%%template store_part(part, n_out, epilogue, strip)
const uint32_t at = 16 * (${strip}) + i % 16;
if (i / 16 < n_tokens && at < ${part.n}) {
    float *y = p.y + (token0 + i / 16) * ${n_out} + ${part.begin} + at;
    const float v = sum[k]${part.bias and " + p.b" .. part.i .. "[at]" or ""};
    *y = ${epilogue == "add" and "*y + v" or "v"};
}

%%template store_swiglu(facts, n_out)
const uint32_t at = 16 * strip + i % 16;
if (i / 16 < n_tokens && at < ${n_out}) {
    const float g = sum[k]${facts[1].bias and " + p.b0[at]" or ""}, u = up[k]${facts[2].bias and " + p.b1[at]" or ""};
    p.y[(token0 + i / 16) * ${n_out} + at] = isa_silu(g) * u;
}

%%template
% local d = module.describe(params)
% local facts = parts.facts(params, 16)
% local n_out, n_atoms = parts.out_cols(params, facts), parts.n_atoms(params)
% local n_slots, n_total = slots_of(params), sources(params) * parts.n_atoms(params)
% local per_thread = ceil_div(16 * TOKENS, d.block)
% local rows = descr.rows_of(params) == "L" and "n_logits" or "n_rows"
% local does = "y = W x, 16 rows of W by up to " .. TOKENS .. " tokens for each cta; epilogue " .. epilogue
% local shapes = "x [" .. rows .. "][" .. K .. "];  y [" .. rows .. "][" .. n_out .. "]"
${cuda.head(d, "kernel/matmul/decode.cu.lua", does, shapes)}

${cuda.params(d)}

% for _, quant in ipairs(parts.types(facts)) do
${quant.kind == "int" and module.int_type(quant, K) or module.float_type(quant, K)}

% end
${cuda.open(d)}
    const uint32_t strip = isa_cta_y(), row = isa_thread() % 16, slot = isa_thread() / 16;
    float *sums = (float *)(void *)isa_smem(0); /* [slot][token][row] */
    isa_wait_launch();
    isa_let_launch();
    const size_t token0 = (size_t)isa_cta_x() * ${TOKENS};
    const uint32_t left = p.step->${rows} - (uint32_t)token0, n_tokens = left < ${TOKENS} ? left : ${TOKENS};

    /* Thread i sums elements i, i + ${d.block}, .. of the tile, row fastest. */
    float sum[${per_thread}] = {};
% if epilogue == "swiglu" then
    float up[${per_thread}] = {};
% end
    for (uint32_t base = 0; base < ${n_total}; base += ${n_slots}) {
        const uint32_t v = base + slot;
        if (slot < ${n_slots} && v < ${n_total}) {
            float acc[${TOKENS}] = {};
% if epilogue == "swiglu" then
            ${by_source(facts, n_atoms, K)}
% else
            ${parts.by_strip(facts, function(part, strip) return module.call_part(part, K, strip, "v") end)}
% end
#pragma unroll
            for (uint32_t t = 0; t < ${TOKENS}; t++) {
                if (t < n_tokens) {
                    sums[(slot * ${TOKENS} + t) * 16 + row] = acc[t];
                }
            }
        }
        isa_barrier();
        const uint32_t n_here = ${n_total} - base < ${n_slots} ? ${n_total} - base : ${n_slots};
#pragma unroll
        for (uint32_t k = 0; k < ${per_thread}; k++) {
            const uint32_t i = isa_thread() + ${d.block} * k;
            for (uint32_t s = 0; i < 16 * n_tokens && s < n_here; s++) {
                const float part = sums[s * ${16 * TOKENS} + i];
% if epilogue == "swiglu" then
                if (base + s >= ${n_atoms}) {
                    up[k] = base + s == ${n_atoms} ? part : up[k] + part;
                    continue;
                }
% end
                sum[k] = base + s == 0 ? part : sum[k] + part;
            }
        }
% if n_total > n_slots then
        isa_barrier();
% end
    }

#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        const uint32_t i = isa_thread() + ${d.block} * k;
% if epilogue == "swiglu" then
        ${module.store_swiglu(facts, n_out)}
% else
        ${parts.by_strip(facts, function(part, strip) return module.store_part(part, n_out, epilogue, strip) end)}
% end
    }
}
