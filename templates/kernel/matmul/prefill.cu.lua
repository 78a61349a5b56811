-- y = W x for many rows of x. A cta has 64 rows of W (for swiglu 64 of gate and 64 of up) by 64 tokens; a warp 16
-- rows (a strip) by all of them, in the fragments of isa_mma_s8: lane l has rows l / 4 and l / 4 + 8, and of each 8
-- tokens numbers 2 (l % 4) and 2 (l % 4) + 1. Activations of an atom's columns are staged in shared memory.
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/matmul.c.lua")
local parts = import("lib/matmul_parts.lua")

local TOKENS = 64
local STRIPS = 4
-- Bytes of a token's staged columns: 16 more than 256, so that the words of 8 tokens lie in 32 banks.
local STRIDE = 272

local function threads(op) return 32 * STRIPS * (op.epilogue == "swiglu" and 2 or 1) end

local function carve(op, facts)
  local list = {}
  if parts.has_kind(facts, "int") then
    list = { cuda.smem("x_q", TOKENS * STRIDE), cuda.smem("x_d", 8 * TOKENS * 4), cuda.smem("x_s", 8 * TOKENS * 4) }
  end
  if op.epilogue == "swiglu" then list[#list + 1] = cuda.smem("up", STRIPS * 16 * TOKENS * 4) end
  return list
end

function module.describe(op)
  local rows = descr.rows_of(op)
  local tile = 16 * STRIPS
  local facts = parts.facts(op, tile)
  local cols, n_strips = parts.segments(op, facts, tile)
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xprefill",
    axes = { descr.rows_axis(rows, TOKENS), descr.dim_axis("strips", n_strips, "y") },
    grid = { descr.row_ctas(rows, TOKENS), tostring(n_strips), "1" },
    block = threads(op), ctas_per_sm = 512 // threads(op),
    covers = parts.row_cover(rows, TOKENS, cols),
    smem = carve(op, facts), features = { "mma_s8", "f16" },
  })
end

%%template int_type(quant, K)
% local t, a, groups = quant.type, descr.atoms(quant, K), quant.qblock_elems // 32
${quant.cu_load()}

${quant.cu_sum()}

/* One atom of nq qblocks: acc[n] is its part of the fragment of tokens 8n .. 8n + 7. */
ISA_FN void ${t}_atom(const uint8_t *atom, const uint32_t nq, const int8_t *x_q, const float *x_d,
    const int32_t *x_s, uint32_t n_tokens, float (&acc)[${TOKENS // 8}][4]) {
    const uint32_t row = isa_lane() / 4, i = isa_lane() % 4;
    for (uint32_t g = 0; g < nq * ${groups}; g++) {
        const ${t}_scale s[2] = {${t}_scales(${t}_load_scale(atom, nq, g, row), g),
                                 ${t}_scales(${t}_load_scale(atom, nq, g, row + 8), g)};
        uint32_t a[4];
        ${t}_codes(${t}_load(atom, nq, g, row, i), g, i, &a[0], &a[2]);
        ${t}_codes(${t}_load(atom, nq, g, row + 8, i), g, i, &a[1], &a[3]);
#pragma unroll
        for (uint32_t n = 0; n < ${TOKENS // 8}; n++) {
            if (8 * n < n_tokens) {
                const int8_t *q = x_q + (8 * n + row) * ${STRIDE} + 32 * g + 4 * i;
                const uint32_t b[2] = {isa_load_x1(q), isa_load_x1(q + 16)};
% if quant.halves then
                int32_t lo[4] = {}, hi[4] = {};
                isa_mma_s8_half(lo, a[0], a[1], b[0]);
                isa_mma_s8_half(hi, a[2], a[3], b[1]);
% else
                int32_t lo[4] = {};
                const int32_t hi[4] = {};
                isa_mma_s8(lo, a, b);
% end
#pragma unroll
                for (uint32_t e = 0; e < 4; e++) {
                    const uint32_t at = g * ${TOKENS} + 8 * n + 2 * i + e % 2;
                    const int32_t s0 = (int16_t)x_s[at], s1 = x_s[at] >> 16;
                    const float sum = (float)${t}_total(s[e / 2], lo[e], hi[e], s0, s1);
                    acc[n][e] = isa_fma(sum, s[e / 2].d * x_d[at], acc[n][e]);
% if quant.has_min then
                    acc[n][e] = isa_fma(${t}_min(s[e / 2]), (float)(s0 + s1) * x_d[at], acc[n][e]);
% end
                }
            }
        }
    }
}

/* Atom a of a strip. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, const int8_t *x_q, const float *x_d,
    const int32_t *x_s, uint32_t n_tokens, float (&acc)[${TOKENS // 8}][4]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    ${t}_atom(atom, ${cuda.by_atom(K, "a", a.per, a.rest)}, x_q, x_d, x_s, n_tokens, acc);
}

%%template float_type(quant, K)
% local t, a = quant.type, descr.atoms(quant, K)
${quant.cu_load()}

/* Atom a of a strip: acc[n] is its part of the fragment of tokens 8n .. 8n + 7; x is the first token's. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, const float *x, uint32_t n_tokens,
    float (&acc)[${TOKENS // 8}][4]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    const uint32_t row = isa_lane() / 4, i = isa_lane() % 4, n_cols = ${cuda.by_atom(K, "a", 256, K % 256)};
    for (uint32_t col = 0; col < n_cols; col++) {
        const float w[2] = {${t}_at(atom, col, row), ${t}_at(atom, col, row + 8)};
#pragma unroll
        for (uint32_t n = 0; n < ${TOKENS // 8}; n++) {
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                const uint32_t t = 8 * n + 2 * i + e % 2;
                if (t < n_tokens) {
                    acc[n][e] = isa_fma(w[e / 2], x[(size_t)t * ${K} + 256 * a + col], acc[n][e]);
                }
            }
        }
    }
}

%%template call_part(part, K, strip)
% local w = "p.w" .. part.i .. " + (size_t)(" .. strip .. ") * " .. part.strip_bytes
% if part.quant.kind == "int" then
if (16 * (${strip}) < ${part.n}) {
    ${part.type}_part(${w}, a, x_q, x_d, x_s, n_tokens, acc);
}
% else
if (16 * (${strip}) < ${part.n}) {
    ${part.type}_part(${w}, a, p.x + token0 * ${K}, n_tokens, acc);
}
% end

%%template stage(K, block)
/* The atom's columns of x for all tokens, a 16-byte piece a turn; tokens that are not there are zeros. */
const uint32_t n_pieces = ${cuda.by_atom(K, "a", 16, K % 256 // 16)};
for (uint32_t i = isa_thread(); i < ${TOKENS} * n_pieces; i += ${block}) {
    const uint32_t t = i / n_pieces, at = i % n_pieces * 16;
    isa_x4 v = {};
    if (t < n_tokens) {
        v = isa_load_x4(p.x_q + (token0 + t) * ${K} + 256 * a + at);
    }
    isa_store_x4(x_q + t * ${STRIDE} + at, v);
}
for (uint32_t i = isa_thread(); i < ${TOKENS} * (n_pieces / 2); i += ${block}) {
    const uint32_t t = i / (n_pieces / 2), g = i % (n_pieces / 2);
    x_d[g * ${TOKENS} + t] = t < n_tokens ? p.x_d[(token0 + t) * ${K // 32} + 8 * a + g] : 0.0f;
    const int16_t *s = p.x_s + (token0 + t) * ${K // 16} + 16 * a + 2 * g;
    x_s[g * ${TOKENS} + t] = t < n_tokens ? (int32_t)isa_load_x1(s) : 0;
}

%%template store_part(part, n_out, epilogue, strip)
const uint32_t at = 16 * (${strip}) + isa_lane() / 4 + e / 2 * 8;
if (t < n_tokens && at < ${part.n}) {
    float *out = p.y + (token0 + t) * ${n_out} + ${part.begin} + at;
    const float v = y[n][e]${part.bias and " + p.b" .. part.i .. "[at]" or ""};
    *out = ${epilogue == "add" and "*out + v" or "v"};
}

%%template
% local d = module.describe(params)
% local facts = parts.facts(params, 16 * STRIPS)
% local n_out, n_atoms = parts.out_cols(params, facts), parts.n_atoms(params)
% local rows = descr.rows_of(params) == "L" and "n_logits" or "n_rows"
% local int = parts.has_kind(facts, "int")
% local at = cuda.smem_offsets(d.smem)
% local does = "y = W x, 64 rows of W by up to " .. TOKENS .. " tokens for each cta; epilogue " .. epilogue
% local shapes = "x [" .. rows .. "][" .. K .. "];  y [" .. rows .. "][" .. n_out .. "]"
% local function strip_of(first) return first and STRIPS .. " * (" .. first .. ") + w % " .. STRIPS end
${cuda.head(d, "kernel/matmul/prefill.cu.lua", does, shapes)}

${cuda.params(d)}

% for _, quant in ipairs(parts.types(facts)) do
${quant.kind == "int" and module.int_type(quant, K) or module.float_type(quant, K)}

% end
${cuda.open(d)}
    const uint32_t strip = isa_cta_y(), w = isa_warp();
% if int then
    int8_t *x_q = (int8_t *)isa_smem(${at.x_q});
    float *x_d = (float *)(void *)isa_smem(${at.x_d});
    int32_t *x_s = (int32_t *)(void *)isa_smem(${at.x_s});
% end
    isa_wait_launch();
    isa_let_launch();
    const size_t token0 = (size_t)isa_cta_x() * ${TOKENS};
    const uint32_t left = p.step->${rows} - (uint32_t)token0, n_tokens = left < ${TOKENS} ? left : ${TOKENS};
    float y[${TOKENS // 8}][4] = {};
    for (uint32_t a = 0; a < ${n_atoms}; a++) {
% if int then
        isa_barrier();
        ${module.stage(K, d.block)}
        isa_barrier();
% end
        float acc[${TOKENS // 8}][4] = {};
% if epilogue == "swiglu" then
        if (w < ${STRIPS}) {
            ${module.call_part(facts[1], K, strip_of("strip"))}
        } else {
            ${module.call_part(facts[2], K, strip_of("strip"))}
        }
% else
        ${parts.by_strip(facts, function(part, strip) return module.call_part(part, K, strip_of(strip)) end)}
% end
#pragma unroll
        for (uint32_t n = 0; n < ${TOKENS // 8}; n++) {
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                y[n][e] = a == 0 ? acc[n][e] : y[n][e] + acc[n][e];
            }
        }
    }
% if epilogue == "swiglu" then

    /* The warps of up hand theirs to those of gate, lane for lane. */
    float *up = (float *)(void *)isa_smem(${at.up}) + isa_thread() % ${32 * STRIPS} * ${TOKENS // 2};
    if (w >= ${STRIPS}) {
#pragma unroll
        for (uint32_t n = 0; n < ${TOKENS // 8}; n++) {
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                up[4 * n + e] = y[n][e];
            }
        }
    }
    isa_barrier();
    if (w >= ${STRIPS}) {
        return;
    }
% end

#pragma unroll
    for (uint32_t n = 0; n < ${TOKENS // 8}; n++) {
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            const uint32_t t = 8 * n + 2 * (isa_lane() % 4) + e % 2;
% if epilogue == "swiglu" then
            const uint32_t at = 16 * (${strip_of("strip")}) + isa_lane() / 4 + e / 2 * 8;
            if (t < n_tokens && at < ${n_out}) {
                const float g = y[n][e]${facts[1].bias and " + p.b0[at]" or ""};
                const float u = up[4 * n + e]${facts[2].bias and " + p.b1[at]" or ""};
                p.y[(token0 + t) * ${n_out} + at] = isa_silu(g) * u;
            }
% else
            ${parts.by_strip(facts, function(part, strip) return module.store_part(part, n_out, epilogue, strip_of(strip)) end)}
% end
        }
    }
}
