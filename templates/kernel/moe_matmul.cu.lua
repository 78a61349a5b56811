-- Experts for many rows: a cta has a tile of at most 64 pairs of one expert and 64 rows of its weights (of a gated
-- product 32 of gate and 32 of up); a warp 16 of those rows (a strip) by all pairs, in the fragments of isa_mma_s8:
-- lane l has rows l / 4 and l / 4 + 8, and of each 8 pairs numbers 2 (l % 4) and 2 (l % 4) + 1. Which pairs, and of which
-- expert, the map says that moe_sort made; rows of x are gathered by index into shared memory, an atom's columns at a
-- time. Entries of the map that no expert needed end their cta at once.
local book = import("lib/book.lua")
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local group = import("lib/group.lua")
local c_kernel = import("kernel/moe_matmul.c.lua")
local moe = import("lib/moe_parts.lua")

local PAIRS = moe.TILE
local WARPS = 4
-- Bytes of a row's staged columns: 16 more than 256, so that the words of 8 rows lie in 32 banks.
local STRIDE = 272
-- Columns of x that are staged at once for weights that are plain numbers, and floats of a row of them.
local CHUNK = 64
local CHUNK_STRIDE = 68
-- Floats of a pair's row of 32 results.
local ACT_STRIDE = 33

-- Strips of each matrix that a cta has.
local function strips_of(op) return op.stage == "gated" and WARPS // 2 or WARPS end

-- Whether some quantised matrix has this in its quant file.
local function any_quant(op, key, value)
  for _, quant in ipairs(moe.types(op)) do
    if quant.kind == "int" and quant[key] == value then return true end
  end
  return false
end

-- What is staged beside bytes and scales: both sums in a word, scale times sum of a group, those of its halves.
local function needs_sums(op) return any_quant(op, "needs_sums", true) end
local function has_min(op) return any_quant(op, "n_mins", 1) end
local function has_mins(op) return any_quant(op, "n_mins", 2) end

local function carve(op)
  local list = { cuda.smem("pair", PAIRS * 4), cuda.smem("row", PAIRS * 4) }
  local per_group = 8 * PAIRS * 4
  local function add(name, bytes) list[#list + 1] = cuda.smem(name, bytes) end
  if moe.has_kind(op, "int") then
    add("q", PAIRS * STRIDE)
    add("d", per_group)
    if needs_sums(op) then add("s", per_group) end
    if has_min(op) then add("m", per_group) end
    if has_mins(op) then add("h", 2 * per_group) end
  end
  book.carve(list, moe.types(op))
  if moe.has_kind(op, "float") then add("x", PAIRS * CHUNK_STRIDE * 4) end
  if op.stage == "gated" then add("act", PAIRS * ACT_STRIDE * 4) end
  return list
end

function module.describe(op)
  local c = c_kernel.describe(op)
  return cuda.of(c, {
    axes = c.axes, grid = c.grid, block = 32 * WARPS, ctas_per_sm = 3,
    smem = carve(op), features = { "mma_s8", "f16" },
  })
end

%%template int_type(quant, K, n_types, smem)
% local t, a, groups = quant.type, descr.atoms(quant, K), quant.qblock_elems // 32
% -- As in matmul/prefill.cu.lua: registers do not hold two groups of some types, nor of a loop of several.
% local at_once = (n_types > 1 or quant.n_scales + quant.n_mins > 2) and 1 or 2
${group.cu_functions(quant, smem)}

/* Group g of an atom of nq qblocks for the first 8 n_eights pairs: acc[n] has the fragment of pairs 8n .. 8n + 7. */
ISA_FN void ${t}_group(const uint8_t *atom, uint32_t nq, uint32_t g, const staged &x, const uint32_t n_eights,
    float (&acc)[${PAIRS // 8}][4]) {
    const uint32_t row = isa_lane() / 4, i = isa_lane() % 4;
    const ${t}_scale s[2] = {${t}_scales(${t}_load_scale(atom, nq, g, row), g),
                             ${t}_scales(${t}_load_scale(atom, nq, g, row + 8), g)};
    uint32_t a[4];
    ${t}_codes(${t}_load(atom, nq, g, row, i), g, i, &a[0], &a[2]);
    ${t}_codes(${t}_load(atom, nq, g, row + 8, i), g, i, &a[1], &a[3]);
#pragma unroll
    for (uint32_t n = 0; n < n_eights; n++) {
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

        /* The lane's two pairs: scale and sums of their activations. */
        const uint32_t at = g * ${PAIRS} + 8 * n + 2 * i;
        const isa_x2 d = isa_load_x2(x.d + at);
% if quant.needs_sums then
        const isa_x2 both = isa_load_x2(x.s + at);
% end
% if quant.n_mins == 1 then
        const isa_x2 scaled = isa_load_x2(x.m + at);
% elseif quant.n_mins == 2 then
        const isa_x2 scaled[2] = {isa_load_x2(x.h + at), isa_load_x2(x.h + ${8 * PAIRS} + at)};
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

/* Atom a of a strip; what the next one needs is on its way meanwhile. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, const staged &x, const uint32_t n_eights,
    float (&acc)[${PAIRS // 8}][4]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    const uint32_t nq = ${cuda.by_atom(K, "a", a.per, a.rest)};
    if (a + 1 < ${ceil_div(K, 256)} && isa_lane() < ${ceil_div(a.bytes, 128)}) {
        isa_prefetch(atom + ${a.bytes} + 128 * isa_lane());
    }
#pragma unroll ${at_once}
    for (uint32_t g = 0; g < nq * ${groups}; g++) {
        ${t}_group(atom, nq, g, x, n_eights, acc);
    }
}

ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, const staged &x, uint32_t n_pairs,
    float (&acc)[${PAIRS // 8}][4], int) {
    if (n_pairs <= 16) {
        ${t}_part(strip, a, x, 2, acc);
    } else if (n_pairs <= 32) {
        ${t}_part(strip, a, x, 4, acc);
    } else {
        ${t}_part(strip, a, x, ${PAIRS // 8}, acc);
    }
}

%%template float_type(quant, K)
% local t, a = quant.type, descr.atoms(quant, K)
${quant.cu_load()}

/* Columns [begin, begin + n_cols) of atom a of a strip; x holds them of all pairs. */
ISA_FN void ${t}_part(const uint8_t *strip, uint32_t a, uint32_t begin, uint32_t n_cols, const float *x,
    float (&acc)[${PAIRS // 8}][4]) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    const uint32_t row = isa_lane() / 4, i = isa_lane() % 4;
    for (uint32_t col = 0; col < n_cols; col++) {
        const float w[2] = {${t}_at(atom, begin + col, row), ${t}_at(atom, begin + col, row + 8)};
#pragma unroll
        for (uint32_t n = 0; n < ${PAIRS // 8}; n++) {
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                acc[n][e] = isa_fma(w[e / 2], x[(8 * n + 2 * i + e % 2) * ${CHUNK_STRIDE} + col], acc[n][e]);
            }
        }
    }
}

%%template staged_type(op)
/* An atom's columns of the pairs' activations in shared memory: bytes [pair][${STRIDE}], and by [group][pair]
 * their scales d, their two sums s in one word, m = scale times sum, and h = that of each half. */
typedef struct staged {
    int8_t *q;
    float *d;
% if needs_sums(op) then
    int32_t *s;
% end
% if has_min(op) then
    float *m;
% end
% if has_mins(op) then
    float *h;
% end
} staged;

%%template stage(op, block)
% local K = op.K
/* The atom's columns of x for all pairs, a 16-byte piece a turn; pairs that are not there are zeros. */
const uint32_t n_pieces = ${cuda.by_atom(K, "a", 16, K % 256 // 16)};
#pragma unroll 4
for (uint32_t i = isa_thread(); i < ${PAIRS} * n_pieces; i += ${block}) {
    const uint32_t t = i / n_pieces, at = i % n_pieces * 16;
    isa_x4 v = {};
    if (t < n_pairs) {
        v = isa_load_x4(p.x_q + (size_t)row_of[t] * ${K} + 256 * a + at);
    }
    isa_store_x4(x.q + t * ${STRIDE} + at, v);
}
#pragma unroll 4
for (uint32_t i = isa_thread(); i < ${PAIRS} * (n_pieces / 2); i += ${block}) {
    const uint32_t t = i / (n_pieces / 2), g = i % (n_pieces / 2), at = g * ${PAIRS} + t;
    const bool there = t < n_pairs;
    const size_t row = row_of[t];
    const float d = there ? p.x_d[row * ${K // 32} + 8 * a + g] : 0.0f;
    x.d[at] = d;
% if needs_sums(op) or has_min(op) or has_mins(op) then
    const int16_t *s = p.x_s + row * ${K // 16} + 16 * a + 2 * g;
    const int32_t both = there ? (int32_t)isa_load_x1(s) : 0;
% end
% if needs_sums(op) then
    x.s[at] = both;
% end
% if has_min(op) or has_mins(op) then
    const isa_act token = isa_act_of(d, both);
% end
% if has_min(op) then
    x.m[at] = token.m;
% end
% if has_mins(op) then
    x.h[at] = token.m_half[0];
    x.h[${8 * PAIRS} + at] = token.m_half[1];
% end
}

%%lua
local function of_kind(op, kind)
  local list = {}
  for i, quant in ipairs(moe.types(op)) do
    if quant.kind == kind then list[#list + 1] = { quant = quant, number = i - 1 } end
  end
  return list
end

-- C text that calls text(quant) for the types of one kind, of those of the op.
local function parts_of_kind(op, kind, text)
  local list, lines = of_kind(op, kind), {}
  if #moe.types(op) == 1 then return text(list[1].quant) end
  for _, one in ipairs(list) do
    lines[#lines + 1] = "if (type == " .. one.number .. ") {"
    lines[#lines + 1] = indent(text(one.quant), 4)
    lines[#lines + 1] = "}"
  end
  return join(lines, "\n")
end

local function type_number(op, m)
  for i, quant in ipairs(moe.types(op)) do
    if quant.type == m.type then return i - 1 end
  end
  fail("no such type")
end

%%template place_set(op, set)
% local gated, routed = op.stage == "gated", set.name == "routed"
% for i, m in ipairs(set.of) do
% local from = "p." .. m.param .. (routed and " + (size_t)e * " .. m.matrix_bytes or "") .. " + (size_t)strip * " .. m.strip_bytes
% if gated then
if (is_up == ${i == 2 and "true" or "false"}) {
    weights = ${from};
% if #moe.types(op) > 1 then
    type = ${type_number(op, m)};
% end
}
% else
weights = ${from};
% if #moe.types(op) > 1 then
type = ${type_number(op, m)};
% end
% end
% end

%%template place(op)
% local sets = moe.each_set(op)
const uint8_t *weights = nullptr;
% if #moe.types(op) > 1 then
uint32_t type = 0;
% end
% if #sets == 1 then
${module.place_set(op, sets[1])}
% else
if (e < ${op.E}) {
    ${module.place_set(op, sets[1])}
} else {
    ${module.place_set(op, sets[2])}
}
% end

%%template int_atom(op, block)
isa_barrier();
${module.stage(op, block)}
isa_barrier();
if (here) {
    ${parts_of_kind(op, "int", function(quant) return quant.type .. "_part(weights, a, x, n_pairs, acc, 0);" end)}
}

%%template float_atom(op, block)
% local K = op.K
const uint32_t n_cols = ${cuda.by_atom(K, "a", 256, K % 256)};
for (uint32_t begin = 0; begin < n_cols; begin += ${CHUNK}) {
    const uint32_t width = n_cols - begin < ${CHUNK} ? n_cols - begin : ${CHUNK};
    isa_barrier();
    for (uint32_t i = isa_thread(); i < ${PAIRS * CHUNK}; i += ${block}) {
        const uint32_t t = i / ${CHUNK}, col = i % ${CHUNK};
        float v = 0.0f;
        if (t < n_pairs && col < width) {
            v = p.x[(size_t)row_of[t] * ${K} + 256 * a + begin + col];
        }
        plain[t * ${CHUNK_STRIDE} + col] = v;
    }
    isa_barrier();
    if (here) {
        ${parts_of_kind(op, "float", function(quant) return quant.type .. "_part(weights, a, begin, width, plain, acc);" end)}
    }
}

%%template gated_end(op, block)
% local n = op.n
    /* The warps of up hand theirs over; those of gate put what comes of both in its place. */
    float *mine = act + isa_lane() / 4 + w % 2 * 16;
    if (is_up) {
#pragma unroll
        for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
            float *v = &mine[(k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2) * ${ACT_STRIDE} + k % 4 / 2 * 8];
            *v = ${moe.scaled(op, "y[k / 4][k % 4]", 2, "e")};
        }
    }
    isa_barrier();
    if (!is_up) {
#pragma unroll
        for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
            float *v = &mine[(k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2) * ${ACT_STRIDE} + k % 4 / 2 * 8];
            *v = isa_silu(${moe.scaled(op, "y[k / 4][k % 4]", 1, "e")}) * *v;
        }
    }
    isa_barrier();

    /* A warp a pair's row, a lane a column. */
    const uint32_t column = 32 * piece + isa_lane();
    for (uint32_t t = w; t < n_pairs; t += ${WARPS}) {
        const float v = ${n % 32 == 0 and "" or "column >= " .. n .. " ? 0.0f : "}act[t * ${ACT_STRIDE} + isa_lane()];
        const size_t pair = pair_of[t];
% if moe.out(op, "f32") then
% if n % 32 == 0 then
        p.y[pair * ${n} + column] = v;
% else
        if (column < ${n}) {
            p.y[pair * ${n} + column] = v;
        }
% end
% end
% if moe.out(op, "q8") then
        isa_q8_group(v, p.y_q + pair * ${n} + column, p.y_d + pair * ${n // 32} + piece,
            p.y_s + pair * ${n // 16} + 2 * piece);
% end
    }

%%template down_end(op)
#pragma unroll
    for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
        const uint32_t t = k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2;
        const uint32_t column = 16 * strip + isa_lane() / 4 + k % 4 / 2 * 8;
        if (t < n_pairs && column < ${op.n}) {
            p.y[(size_t)pair_of[t] * ${op.n} + column] = ${moe.scaled(op, "y[k / 4][k % 4]", 1, "e")};
        }
    }

%%template
% local d = module.describe(params)
% local P, gated = moe.per_row(params), stage == "gated"
% local int, float = moe.has_kind(params, "int"), moe.has_kind(params, "float")
% local at, n_strips = cuda.smem_offsets(d.smem), strips_of(params)
% local does = gated and "silu(gate x) * (up x) of every pair" or "W x of every pair"
% does = does .. "; a tile of at most " .. PAIRS .. " pairs of an expert by 64 rows of its weights a cta"
${cuda.head(d, "kernel/moe_matmul.cu.lua", does, moe.shapes(params))}

${cuda.params(d)}

% if int then
${module.staged_type(params)}

% end
% for _, quant in ipairs(moe.types(params)) do
${quant.kind == "int" and module.int_type(quant, K, #moe.types(params), at) or module.float_type(quant, K)}

% end
${cuda.open(d)}
    const uint32_t piece = isa_cta_y(), w = isa_warp();
    uint32_t *pair_of = (uint32_t *)(void *)isa_smem(${at.pair}), *row_of = (uint32_t *)(void *)isa_smem(${at.row});
    ${book.fill(moe.types(params), at, d.block)}
    isa_wait_launch();
    isa_let_launch();
    const isa_x4 entry = isa_load_x4(p.map + (size_t)isa_cta_x() * ${moe.ENTRY});
    const uint32_t e = entry.w[0], n_pairs = entry.w[2];
    if (n_pairs == 0) {
        return;
    }
    if (isa_thread() < ${PAIRS}) {
        const uint32_t t = isa_thread() < n_pairs ? isa_thread() : 0;
        const uint32_t pair = (uint32_t)p.pairs[(size_t)entry.w[1] + t];
        pair_of[isa_thread()] = pair;
        row_of[isa_thread()] = pair${gated and " / " .. P or ""};
    }
    isa_barrier();
% if gated then
    const bool is_up = w >= ${n_strips};
% end
    const uint32_t strip = ${n_strips} * piece + w % ${n_strips};
    const bool here = ${n % (16 * n_strips) == 0 and "true" or "16 * strip < " .. n};
    ${module.place(params)}
% if int then
    staged x;
    x.q = (int8_t *)isa_smem(${at.q});
    x.d = (float *)(void *)isa_smem(${at.d});
% if needs_sums(params) then
    x.s = (int32_t *)(void *)isa_smem(${at.s});
% end
% if has_min(params) then
    x.m = (float *)(void *)isa_smem(${at.m});
% end
% if has_mins(params) then
    x.h = (float *)(void *)isa_smem(${at.h});
% end
% end
% if float then
    float *plain = (float *)(void *)isa_smem(${at.x});
% end
% if gated then
    float *act = (float *)(void *)isa_smem(${at.act}); /* [pair][${ACT_STRIDE}] */
% end
    float y[${PAIRS // 8}][4] = {};
    for (uint32_t a = 0; a < ${ceil_div(K, 256)}; a++) {
        float acc[${PAIRS // 8}][4] = {};
% if int then
        ${module.int_atom(params, d.block)}
% end
% if float then
        ${module.float_atom(params, d.block)}
% end
#pragma unroll
        for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
            y[k / 4][k % 4] = a == 0 ? acc[k / 4][k % 4] : y[k / 4][k % 4] + acc[k / 4][k % 4];
        }
    }

% if gated then
${module.gated_end(params, d.block)}
% else
${module.down_end(params)}
% end
}
