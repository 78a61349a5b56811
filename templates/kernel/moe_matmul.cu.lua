-- Experts for many rows: a cta has a tile of at most 32 pairs of one expert and 128 rows of its weights (of a gated
-- product 64 of gate and 64 of up); a warp 16 of those rows (a strip) by all pairs, as lib/mma_stream.lua has it. Which
-- pairs, and of which expert, the map says that moe_sort made; rows of x are gathered by index into shared memory.
-- Entries of the map that no expert needed end their cta at once.
local book = import("lib/book.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/moe_matmul.c.lua")
local mma = import("lib/mma_text.lua")
local moe = import("lib/moe_parts.lua")
local stream = import("lib/mma_stream.lua")

local PAIRS, WARPS = stream.ROWS, stream.WARPS
local BLOCK = 32 * WARPS
-- Floats of a pair's row of 64 results: 4 more, so that four rows lie in all banks.
local ACT_STRIDE = 68
local ROWS_OF_X = { count = "n_pairs", list = "row_of" }

-- Strips of each matrix that a cta has.
local function strips_of(op) return op.stage == "gated" and WARPS // 2 or WARPS end

-- Shared memory, stages of copies, ctas for an SM.
local function plan(op)
  local act = op.stage == "gated" and 2 * PAIRS * ACT_STRIDE * 4 or 0
  local list = { cuda.smem("pair", PAIRS * 4), cuda.smem("row", PAIRS * 4) }
  for _, piece in ipairs(mma.carve_float(moe.types(op), PAIRS)) do list[#list + 1] = piece end
  if act > 0 and not moe.has_kind(op, "int") then list[#list + 1] = cuda.smem("act", act) end
  return stream.plan(moe.types(op), op.K, op.hw, list, act)
end

function module.describe(op)
  if moe.TILE > PAIRS then fail("moe_matmul: tiles of " .. moe.TILE .. " pairs") end
  local c = c_kernel.describe_pieces(op, 16 * strips_of(op))
  local smem, _, ctas = plan(op)
  return cuda.of(c, {
    axes = c.axes, grid = c.grid, block = BLOCK, ctas_per_sm = ctas,
    smem = smem, features = { "mma_s8", "f16" },
  })
end

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

%%template place_set(op, set)
% local gated, routed = op.stage == "gated", set.name == "routed"
% for i, m in ipairs(set.of) do
% local from = "p." .. m.param .. (routed and " + (size_t)e * " .. m.matrix_bytes or "") .. " + (size_t)strip * " .. m.strip_bytes
% if gated then
${i == 1 and "if (!is_up) {" or "} else {"}
    weights = ${from};
% if #moe.types(op) > 1 then
    type = ${stream.number(moe.types(op), m)};
% end
${i == 2 and "}" or ""}
% else
weights = ${from};
% if #moe.types(op) > 1 then
type = ${stream.number(moe.types(op), m)};
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

%%template int_atom(op, n, at)
% local function part(quant) return quant.type .. "_part(atom, a, " .. stream.room(moe.types(op), at) .. ", x, n_eights, acc);" end
${stream.advance(moe.types(op), op.K, n, ROWS_OF_X, at)}
if (here) {
    ${parts_of_kind(op, "int", part)}
}
${stream.scales(moe.types(op), op.K, at)}

%%template float_atom(op, block)
% local function part(quant) return quant.type .. "_part(weights, a, begin, width, x_f, n_pairs, acc);" end
${mma.float_atom(op.K, block, PAIRS, "n_pairs", "(size_t)row_of[t]", parts_of_kind(op, "float", part))}

%%template gated_end(op)
% local n = op.n
    /* All hand over theirs: gate, then up. */
    isa_barrier();
    float *mine = act + (is_up ? ${PAIRS * ACT_STRIDE} : 0) + w % ${WARPS // 2} * 16 + column;
    for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
        float *v = &mine[(k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2) * ${ACT_STRIDE} + k % 4 / 2];
        *v = is_up ? ${moe.scaled(op, "y[k / 4][k % 4]", 2, "e")} : ${moe.scaled(op, "y[k / 4][k % 4]", 1, "e")};
    }
    isa_barrier();

    /* A warp 32 columns of a pair, a lane a column. */
    for (uint32_t u = w; u < 2 * n_pairs; u += ${WARPS}) {
        const uint32_t t = u / 2, group = 2 * piece + u % 2, c = 32 * group + isa_lane();
        const size_t pair = pair_of[t];
        const float *gate = act + t * ${ACT_STRIDE} + u % 2 * 32 + isa_lane();
        const float v = isa_silu(gate[0]) * gate[${PAIRS * ACT_STRIDE}];
% if moe.out(op, "f32") then
        if (c < ${n}) {
            p.y[pair * ${n} + c] = v;
        }
% end
% if moe.out(op, "q8") then
        if (32 * group < ${n}) {
            isa_q8_group(v, p.y_q + pair * ${n} + c, p.y_d + pair * ${n // 32} + group, p.y_s + pair * ${n // 16} + 2 * group);
        }
% end
    }

%%template down_end(op)
#pragma unroll
    for (uint32_t k = 0; k < ${PAIRS // 2}; k++) {
        const uint32_t t = k / 4 * 8 + 2 * (isa_lane() % 4) + k % 2, c = 16 * strip + column + k % 4 / 2;
        if (t < n_pairs && c < ${op.n}) {
            p.y[(size_t)pair_of[t] * ${op.n} + c] = ${moe.scaled(op, "y[k / 4][k % 4]", 1, "e")};
        }
    }

%%template
% local d = module.describe(params)
% local _, n_stages = plan(params)
% local P, gated = moe.per_row(params), stage == "gated"
% local types, int, float = moe.types(params), moe.has_kind(params, "int"), moe.has_kind(params, "float")
% local at, n_strips = cuda.smem_offsets(d.smem), strips_of(params)
% local does = gated and "silu(gate x) * (up x) of every pair" or "W x of every pair"
% does = does .. "; a tile of at most " .. moe.TILE .. " pairs of an expert by 128 rows of its weights a cta"
${cuda.head(d, "kernel/moe_matmul.cu.lua", does, moe.shapes(params))}

${cuda.params(d)}

% if int then
${stream.types(types, K)}

% end
% for _, quant in ipairs(types) do
${quant.kind == "int" and stream.int_type(quant, K, types, at) or mma.float_type(quant, K, PAIRS, true)}

% end
${cuda.open(d)}
    const uint32_t piece = isa_cta_y(), w = isa_warp();
    uint32_t *pair_of = (uint32_t *)(void *)isa_smem(${at.pair}), *row_of = (uint32_t *)(void *)isa_smem(${at.row});
    ${book.fill(types, at, d.block)}
    isa_wait_launch();
    isa_let_launch();
    const isa_x4 entry = isa_load_x4(p.map + (size_t)isa_cta_x() * ${moe.ENTRY});
    const uint32_t e = entry.w[0], n_pairs = entry.w[2];
    if (n_pairs == 0) {
        return;
    }
% if int then
    const uint32_t n_eights = (n_pairs + 7) / 8;
% end
% if gated then
    const bool is_up = w >= ${n_strips};
% end
    const uint32_t strip = ${n_strips} * piece + w % ${n_strips};
    const bool here = ${n % (16 * n_strips) == 0 and "true" or "16 * strip < " .. n};
    ${module.place(params)}
% if int then
    ${stream.begin(types, K, n_stages, at)}
% end
    if (isa_thread() < ${PAIRS}) {
        const uint32_t t = isa_thread() < n_pairs ? isa_thread() : 0;
        const uint32_t pair = (uint32_t)p.pairs[(size_t)entry.w[1] + t];
        pair_of[isa_thread()] = pair;
        row_of[isa_thread()] = pair${gated and " / " .. P or ""};
    }
    isa_barrier();
% if int then
    ${stream.fill(types, K, n_stages, ROWS_OF_X, at)}
% end
% if float then
    float *x_f = (float *)(void *)isa_smem(${at.f});
% end
    ${stream.sums()}
#pragma unroll 1
    for (uint32_t a = 0; a < ${ceil_div(K, 256)}; a++) {
        float acc[${PAIRS // 8}][4] = {};
% if int then
        ${module.int_atom(params, n_stages, at)}
% end
% if float then
        ${module.float_atom(params, d.block)}
% end
        ${stream.add_sums()}
    }

    /* Columns of the lane in its strip: this one and the next. */
    const uint32_t column = isa_lane() / 4 * 2;
% if gated then
    float *act = (float *)(void *)isa_smem(${int and at.stages or at.act}); /* [gate, up][pair][${ACT_STRIDE}] */
${module.gated_end(params)}
% else
${module.down_end(params)}
% end
}
