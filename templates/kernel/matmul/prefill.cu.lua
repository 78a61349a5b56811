-- y = W x for many rows of x. A cta has 64 rows of W (for swiglu 32 of gate and 32 of up) by 64 tokens; a warp 16
-- rows (a strip) by all of them, in the fragments of isa_mma_s8: lane l has rows l / 4 and l / 4 + 8, and of each 8
-- tokens numbers 2 (l % 4) and 2 (l % 4) + 1. Activations of an atom's columns are staged in shared memory.
local book = import("lib/book.lua")
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local group = import("lib/group.lua")
local c_kernel = import("kernel/matmul.c.lua")
local parts = import("lib/matmul_parts.lua")

local TOKENS = 64
local WARPS = 4
-- Bytes of a token's staged columns: 16 more than 256, so that the words of 8 tokens lie in 32 banks.
local STRIDE = 272

-- Strips of each part that a cta has.
local function strips_of(op) return op.epilogue == "swiglu" and WARPS // 2 or WARPS end

-- Whether some quantised part has this in its quant file.
local function any_quant(facts, key, value)
  for _, part in ipairs(facts) do
    if part.quant.kind == "int" and part.quant[key] == value then return true end
  end
  return false
end

-- What is staged beside bytes and scales: both sums in a word, scale times sum of a group, those of its halves.
local function needs_sums(facts) return any_quant(facts, "needs_sums", true) end
local function has_min(facts) return any_quant(facts, "n_mins", 1) end
local function has_mins(facts) return any_quant(facts, "n_mins", 2) end

local function carve(op, facts)
  local list = {}
  local per_group = 8 * TOKENS * 4
  if parts.has_kind(facts, "int") then
    list = { cuda.smem("q", TOKENS * STRIDE), cuda.smem("d", per_group) }
    if needs_sums(facts) then list[#list + 1] = cuda.smem("s", per_group) end
    if has_min(facts) then list[#list + 1] = cuda.smem("m", per_group) end
    if has_mins(facts) then list[#list + 1] = cuda.smem("h", 2 * per_group) end
  end
  book.carve(list, parts.types(facts))
  if op.epilogue == "swiglu" then list[#list + 1] = cuda.smem("up", strips_of(op) * 16 * TOKENS * 4) end
  return list
end

function module.describe(op)
  local rows = descr.rows_of(op)
  local tile = 16 * strips_of(op)
  local facts = parts.facts(op, tile)
  local cols, n_strips = parts.segments(op, facts, tile)
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xprefill",
    axes = { descr.rows_axis(rows, TOKENS), descr.dim_axis("strips", n_strips, "y") },
    grid = { descr.row_ctas(rows, TOKENS), tostring(n_strips), "1" },
    block = 32 * WARPS, ctas_per_sm = 3,
    covers = parts.row_cover(rows, TOKENS, cols),
    smem = carve(op, facts), features = { "mma_s8", "f16" },
  })
end

%%template int_type(quant, K, n_types, smem)
% local t, a, groups = quant.type, descr.atoms(quant, K), quant.qblock_elems // 32
% -- Two groups at once hide latency; more than one scale and minimum each, or a second type's part of the same loop, and
% -- registers do not hold them.
% local at_once = (n_types > 1 or quant.n_scales + quant.n_mins > 2) and 1 or 2
${group.cu_functions(quant, smem)}

/* Group g of an atom of nq qblocks for the first 8 n_tiles tokens: acc[n] has the fragment of tokens 8n .. 8n + 7. */
ISA_FN void ${t}_group(const uint8_t *atom, uint32_t nq, uint32_t g, const staged &x, const uint32_t n_tiles,
    float (&acc)[${TOKENS // 8}][4]) {
    const uint32_t row = isa_lane() / 4, i = isa_lane() % 4;
    const ${t}_scale s[2] = {${t}_scales(${t}_load_scale(atom, nq, g, row), g),
                             ${t}_scales(${t}_load_scale(atom, nq, g, row + 8), g)};
    uint32_t a[4];
    ${t}_codes(${t}_load(atom, nq, g, row, i), g, i, &a[0], &a[2]);
    ${t}_codes(${t}_load(atom, nq, g, row + 8, i), g, i, &a[1], &a[3]);
#pragma unroll
    for (uint32_t n = 0; n < n_tiles; n++) {
        const int8_t *q = x.q + (8 * n + row) * ${STRIDE} + 32 * g + 4 * i;
        const uint32_t b[2] = {isa_load_x1(q), isa_load_x1(q + 16)};
        int32_t lo[4] = {};
% if quant.halves then
        int32_t hi[4] = {};
        isa_mma_s8_half(lo, a[0], a[1], b[0]);
        isa_mma_s8_half(hi, a[2], a[3], b[1]);
% else
        const int32_t hi[4] = {};
        isa_mma_s8(lo, a, b);
% end

        /* The lane's two tokens: scale and sums of their activations. */
        const uint32_t at = g * ${TOKENS} + 8 * n + 2 * i;
        const isa_x2 d = isa_load_x2(x.d + at);
% if quant.needs_sums then
        const isa_x2 both = isa_load_x2(x.s + at);
% end
% if quant.n_mins == 1 then
        const isa_x2 scaled = isa_load_x2(x.m + at);
% elseif quant.n_mins == 2 then
        const isa_x2 scaled[2] = {isa_load_x2(x.h + at), isa_load_x2(x.h + ${8 * TOKENS} + at)};
% end
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            isa_act token = {};
            token.d = isa_float(d.w[e % 2]);
% if quant.needs_sums then
            token.s[0] = (int16_t)both.w[e % 2];
            token.s[1] = (int32_t)both.w[e % 2] >> 16;
% end
% if quant.n_mins == 1 then
            token.m = isa_float(scaled.w[e % 2]);
% elseif quant.n_mins == 2 then
            token.m_half[0] = isa_float(scaled[0].w[e % 2]);
            token.m_half[1] = isa_float(scaled[1].w[e % 2]);
% end
            acc[n][e] = ${t}_add(acc[n][e], s[e / 2], lo[e], hi[e], token);
        }
    }
}

/* Atom a of a strip. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, const staged &x, const uint32_t n_tiles,
    float (&acc)[${TOKENS // 8}][4]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    const uint32_t nq = ${cuda.by_atom(K, "a", a.per, a.rest)};
#pragma unroll ${at_once}
    for (uint32_t g = 0; g < nq * ${groups}; g++) {
        ${t}_group(atom, nq, g, x, n_tiles, acc);
    }
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

%%template call_part(part, K)
% if part.quant.kind == "int" then
if (n_tokens <= 16) {
    ${part.type}_part(weights, a, x, 2, acc);
} else {
    ${part.type}_part(weights, a, x, ${TOKENS // 8}, acc);
}
% else
${part.type}_part(weights, a, p.x + token0 * ${K}, n_tokens, acc);
% end

%%template place_swiglu(facts, n_strips)
const bool is_up = w >= ${n_strips};
const uint32_t first = 0, n_cols = ${facts[1].n};
const uint8_t *matrix = is_up ? p.w1 : p.w0;
% if facts[1].type == facts[2].type then
const uint32_t strip_bytes = ${facts[1].strip_bytes};
% else
const uint32_t strip_bytes = is_up ? ${facts[2].strip_bytes} : ${facts[1].strip_bytes};
% end

%%template stage(K, block, facts)
/* The atom's columns of x for all tokens, a 16-byte piece a turn; tokens that are not there are zeros. */
const uint32_t n_pieces = ${cuda.by_atom(K, "a", 16, K % 256 // 16)};
for (uint32_t i = isa_thread(); i < ${TOKENS} * n_pieces; i += ${block}) {
    const uint32_t t = i / n_pieces, at = i % n_pieces * 16;
    isa_x4 v = {};
    if (t < n_tokens) {
        v = isa_load_x4(p.x_q + (token0 + t) * ${K} + 256 * a + at);
    }
    isa_store_x4(x.q + t * ${STRIDE} + at, v);
}
for (uint32_t i = isa_thread(); i < ${TOKENS} * (n_pieces / 2); i += ${block}) {
    const uint32_t t = i / (n_pieces / 2), g = i % (n_pieces / 2), at = g * ${TOKENS} + t;
    const bool there = t < n_tokens;
    const float d = there ? p.x_d[(token0 + t) * ${K // 32} + 8 * a + g] : 0.0f;
    x.d[at] = d;
% if needs_sums(facts) or has_min(facts) or has_mins(facts) then
    const int16_t *s = p.x_s + (token0 + t) * ${K // 16} + 16 * a + 2 * g;
    const int32_t both = there ? (int32_t)isa_load_x1(s) : 0;
% end
% if needs_sums(facts) then
    x.s[at] = both;
% end
% if has_min(facts) or has_mins(facts) then
    const isa_act token = isa_act_of(d, both);
% end
% if has_min(facts) then
    x.m[at] = token.m;
% end
% if has_mins(facts) then
    x.h[at] = token.m_half[0];
    x.h[${8 * TOKENS} + at] = token.m_half[1];
% end
}

%%template
% local d = module.describe(params)
% local facts = parts.facts(params, 16 * strips_of(params))
% local n_out, n_atoms = parts.out_cols(params, facts), parts.n_atoms(params)
% local rows = descr.rows_of(params) == "L" and "n_logits" or "n_rows"
% local int = parts.has_kind(facts, "int")
% local at = cuda.smem_offsets(d.smem)
% local does = "y = W x, 64 rows of W by up to " .. TOKENS .. " tokens for each cta; epilogue " .. epilogue
% local shapes = "x [" .. rows .. "][" .. K .. "];  y [" .. rows .. "][" .. n_out .. "]"
% local n_strips, swiglu = strips_of(params), epilogue == "swiglu"
${cuda.head(d, "kernel/matmul/prefill.cu.lua", does, shapes)}

${cuda.params(d)}

% if int then
/* An atom's columns of the tokens' activations in shared memory: bytes [token][${STRIDE}], and by [group][token]
 * their scales d, their two sums s in one word, m = scale times sum, and h = that of each half. */
typedef struct staged {
    int8_t *q;
    float *d;
% if needs_sums(facts) then
    int32_t *s;
% end
% if has_min(facts) then
    float *m;
% end
% if has_mins(facts) then
    float *h;
% end
} staged;

% end
% local types = parts.types(facts)
% for _, quant in ipairs(types) do
${quant.kind == "int" and module.int_type(quant, K, #types, at) or module.float_type(quant, K)}

% end
${cuda.open(d)}
    const uint32_t strip = isa_cta_y(), w = isa_warp();
% if swiglu then
    ${module.place_swiglu(facts, n_strips)}
% else
    ${parts.place(facts)}
    const uint32_t strip_bytes = ${parts.pick(facts, function(part) return part.strip_bytes end)};
% end
    const uint32_t mine = ${n_strips} * (strip - first) + w % ${n_strips};
    const uint8_t *weights = matrix + (size_t)mine * strip_bytes;
% if int then
    staged x;
    x.q = (int8_t *)isa_smem(${at.q});
    x.d = (float *)(void *)isa_smem(${at.d});
% if needs_sums(facts) then
    x.s = (int32_t *)(void *)isa_smem(${at.s});
% end
% if has_min(facts) then
    x.m = (float *)(void *)isa_smem(${at.m});
% end
% if has_mins(facts) then
    x.h = (float *)(void *)isa_smem(${at.h});
% end
% end
    ${book.fill(types, at, d.block)}
    isa_wait_launch();
    isa_let_launch();
    const size_t token0 = (size_t)isa_cta_x() * ${TOKENS};
    const uint32_t left = p.step->${rows} - (uint32_t)token0, n_tokens = left < ${TOKENS} ? left : ${TOKENS};
    float y[${TOKENS // 8}][4] = {};
#pragma unroll 1
    for (uint32_t a = 0; a < ${n_atoms}; a++) {
% if int then
        isa_barrier();
        ${module.stage(K, d.block, facts)}
        isa_barrier();
% end
        float acc[${TOKENS // 8}][4] = {};
        if (16 * mine < n_cols) {
% if swiglu and facts[1].type ~= facts[2].type then
            if (is_up) {
                ${module.call_part(facts[2], K)}
            } else {
                ${module.call_part(facts[1], K)}
            }
% elseif swiglu then
            ${module.call_part(facts[1], K)}
% else
            ${parts.by_strip(facts, function(part) return module.call_part(part, K) end)}
% end
        }
#pragma unroll
        for (uint32_t n = 0; n < ${TOKENS // 8}; n++) {
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                y[n][e] = a == 0 ? acc[n][e] : y[n][e] + acc[n][e];
            }
        }
    }
% if swiglu then

    /* The warps of up hand theirs to those of gate, lane for lane. */
    float *up = (float *)(void *)isa_smem(${at.up}) + isa_thread() % ${32 * n_strips};
    if (is_up) {
#pragma unroll
        for (uint32_t n = 0; n < ${TOKENS // 8}; n++) {
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                up[(4 * n + e) * ${32 * n_strips}] = y[n][e];
            }
        }
    }
    isa_barrier();
    if (is_up) {
        return;
    }
% end

#pragma unroll
    for (uint32_t n = 0; n < ${TOKENS // 8}; n++) {
#pragma unroll
        for (uint32_t e = 0; e < 4; e++) {
            const uint32_t t = 8 * n + 2 * (isa_lane() % 4) + e % 2;
            const uint32_t at = 16 * mine + isa_lane() / 4 + e / 2 * 8;
            if (t < n_tokens && at < n_cols) {
% if swiglu then
                const float u = up[(4 * n + e) * ${32 * n_strips}];
                const float gate = ${parts.finished({ facts[1] }, "y[n][e]")};
                p.y[(token0 + t) * ${n_out} + at] = isa_silu(gate) * (${parts.finished({ facts[2] }, "u")});
% else
                float *out = p.y + (token0 + t) * ${n_out} + begin + at;
                const float v = ${parts.finished(facts, "y[n][e]")};
                *out = ${epilogue == "add" and "*out + v" or "v"};
% end
            }
        }
    }
}
