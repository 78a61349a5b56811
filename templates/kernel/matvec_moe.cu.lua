-- Experts for a few rows of x, by the picks themselves: no sorting, weights of an expert that two rows share are read
-- twice. A half-warp takes an atom: each lane one row of it, loaded at once. The atoms' parts
-- meet in shared memory and are added in order.
--   gated  a cta has 32 columns of one pair: 2 strips of gate and 2 of up
--   down   a cta has 16 columns of one row: the strip of every pick, weighted and added in their order
local book = import("lib/book.lua")
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/matvec_moe.c.lua")
local moe = import("lib/moe_parts.lua")
local term = import("lib/term.lua")
local product = import("kernel/matmul/decode.cu.lua")

local MOST_SLOTS = 12 -- atoms at a time

local function n_atoms(op) return ceil_div(op.K, 256) end

-- Atoms of a cta: its work.
local function total(op) return n_atoms(op) * (op.stage == "gated" and 4 or moe.per_row(op)) end

-- As many half-warps as make turns of equal length.
local function slots_of(op)
  local turns = ceil_div(total(op), MOST_SLOTS)
  return round_up(ceil_div(total(op), turns), 2)
end

local function carve(op)
  local list = { cuda.smem("sums", total(op) * 16 * 4) }
  book.carve(list, moe.types(op))
  return list
end

function module.describe(op)
  local c = c_kernel.describe(op)
  local block = 16 * slots_of(op)
  -- More ctas hide more of memory's latency, fewer leave the registers that texts of several types need, and one of a
  -- single turn, whose loads all stand together. (An SM of some rows takes 16 ctas, not 18 of a warp.)
  local threads = (#moe.types(op) > 1 or total(op) <= MOST_SLOTS) and 384 or 576
  return cuda.of(c, {
    axes = c.axes, grid = c.grid, block = block, ctas_per_sm = math.max(1, math.min(12, threads // block)),
    smem = carve(op), features = { "dp4a", "f16" },
  })
end

%%template dot(m, K, row)
% if m.quant.kind == "int" then
const int8_t *x_q = p.x_q + ${row} * ${K} + 256 * a;
const float *x_d = p.x_d + ${row} * ${K // 32} + 8 * a;
const int16_t *x_s = p.x_s + ${row} * ${K // 16} + 16 * a;
% if K % 256 == 0 then
sums[16 * v + r] = ${m.type}_dot(w, 8, x_q, x_d, x_s);
% elseif K < 256 then
sums[16 * v + r] = ${m.type}_dot(w, ${K // 32}, x_q, x_d, x_s);
% else
sums[16 * v + r] = a < ${K // 256} ? ${m.type}_dot(w, 8, x_q, x_d, x_s) : ${m.type}_dot(w, ${K % 256 // 32}, x_q, x_d, x_s);
% end
% else
sums[16 * v + r] = ${m.type}_dot(w, a, p.x + ${row} * ${K} + 256 * a);
% end

%%template atom(m, K, matrix, strip, row)
{
    ${m.type}_atom w;
    ${m.type}_fetch(${matrix} + (size_t)(${strip}) * ${m.strip_bytes}, a, r, w);
    ${module.dot(m, K, row)}
}

%%lua
-- C text: where expert e of matrix i begins; pick j may be the shared expert where its matrix is of the same type.
local function matrix_of(op, i)
  local sets = moe.sets(op)
  local m = sets.routed[i]
  local routed = "p." .. m.param .. " + (size_t)(uint32_t)p.ids[row * " .. op.n_used .. " + j] * " .. m.matrix_bytes
  if not sets.shared or sets.shared[i].type ~= m.type then return routed end
  return "j == " .. op.n_used .. " ? p." .. sets.shared[i].param .. " : " .. routed
end

-- Whether routed and shared experts need texts of their own.
local function two_texts(op)
  local sets = moe.sets(op)
  for i, m in ipairs(sets.routed) do
    if sets.shared and sets.shared[i].type ~= m.type then return true end
  end
  return false
end

%%template gated_loop(op, g, u, gate, up)
% local atoms, n_strips = n_atoms(op), ceil_div(op.n, 16)
const uint8_t *gate = ${gate};
const uint8_t *up = ${up};
#pragma unroll 1
for (uint32_t v = slot; v < ${total(op)}; v += ${slots_of(op)}) {
    const uint32_t a = ${term.mod("v", atoms)}, strip = 2 * piece + ${term.over("v", atoms)} % 2;
% if n_strips % 2 == 1 then
    if (strip >= ${n_strips}) {
        continue;
    }
% end
% if g.type == u.type then
    ${module.atom(g, op.K, "(v < " .. 2 * atoms .. " ? gate : up)", "strip", "row")}
% else
    if (v < ${2 * atoms}) {
        ${module.atom(g, op.K, "gate", "strip", "row")}
    } else {
        ${module.atom(u, op.K, "up", "strip", "row")}
    }
% end
}

%%template gated_body(op, d)
% local P, atoms, sets = moe.per_row(op), n_atoms(op), moe.sets(op)
    const uint32_t piece = isa_cta_y(), r = isa_thread() % 16, slot = isa_thread() / 16;
    const size_t pair = isa_cta_x(), row = pair / ${P};
    const uint32_t j = (uint32_t)pair % ${P};
    float *sums = (float *)(void *)isa_smem(0); /* [gate, up][strip][atom][row] */
    ${book.fill(moe.types(op), cuda.smem_offsets(d.smem), d.block)}
    isa_wait_launch();
    isa_let_launch();
    ${book.barrier(moe.types(op))}
% if two_texts(op) then
    if (j == ${op.n_used}) {
        ${module.gated_loop(op, sets.shared[1], sets.shared[2], "p.s0", "p.s1")}
    } else {
        ${module.gated_loop(op, sets.routed[1], sets.routed[2], matrix_of(op, 1), matrix_of(op, 2))}
    }
% else
    ${module.gated_loop(op, sets.routed[1], sets.routed[2], matrix_of(op, 1), matrix_of(op, 2))}
% end
    isa_barrier();
    if (isa_thread() >= 32) {
        return;
    }

    /* One warp: lane l has column l of the cta's 32. */
    const uint32_t column = 32 * piece + isa_lane();
    const float *part = sums + isa_lane() / 16 * ${16 * atoms} + isa_lane() % 16;
    float act = 0.0f;
    if (column < ${op.n}) {
        float gate = part[0], up = part[${32 * atoms}];
#pragma unroll
        for (uint32_t a = 1; a < ${atoms}; a++) {
            gate += part[16 * a];
            up += part[${32 * atoms} + 16 * a];
        }
% if moe.any_factor(op) then
        const uint32_t e = ${moe.shared(op) and "j == " .. op.n_used .. " ? " .. op.E .. " : " or ""}(uint32_t)p.ids[row * ${op.n_used} + j];
% end
        act = isa_silu(${moe.scaled(op, "gate", 1, "e")}) * (${moe.scaled(op, "up", 2, "e")});
% if moe.out(op, "f32") then
        p.y[pair * ${op.n} + column] = act;
% end
    }
% if moe.out(op, "q8") then
    isa_q8_group(act, p.y_q + pair * ${op.n} + column, p.y_d + pair * ${op.n // 32} + piece,
        p.y_s + pair * ${op.n // 16} + 2 * piece);
% end

%%template down_body(op, d)
% local P, atoms, k, sets = moe.per_row(op), n_atoms(op), op.n_used, moe.sets(op)
    const uint32_t strip = isa_cta_y(), r = isa_thread() % 16, slot = isa_thread() / 16;
    const size_t row = isa_cta_x();
    float *sums = (float *)(void *)isa_smem(0); /* [pick][atom][row] */
    ${book.fill(moe.types(op), cuda.smem_offsets(d.smem), d.block)}
    isa_wait_launch();
    isa_let_launch();
    ${book.barrier(moe.types(op))}
#pragma unroll 1
    for (uint32_t v = slot; v < ${total(op)}; v += ${slots_of(op)}) {
        const uint32_t a = ${term.mod("v", atoms)}, j = ${term.over("v", atoms)};
        const size_t pair = row * ${P} + j;
% if two_texts(op) then
        if (j == ${k}) {
            ${module.atom(sets.shared[1], op.K, "p.s0", "strip", "pair")}
        } else {
            const uint8_t *matrix = ${matrix_of(op, 1)};
            ${module.atom(sets.routed[1], op.K, "matrix", "strip", "pair")}
        }
% else
        const uint8_t *matrix = ${matrix_of(op, 1)};
        ${module.atom(sets.routed[1], op.K, "matrix", "strip", "pair")}
% end
    }
    isa_barrier();
    if (isa_thread() >= 16 || 16 * strip + r >= ${op.n}) {
        return;
    }
    float sum = 0.0f;
#pragma unroll
    for (uint32_t j = 0; j < ${P}; j++) {
        float z = sums[${16 * atoms} * j + r];
#pragma unroll
        for (uint32_t a = 1; a < ${atoms}; a++) {
            z += sums[16 * (${term.times("j", atoms)} + a) + r];
        }
% if moe.any_factor(op) then
        const uint32_t e = ${moe.shared(op) and "j == " .. k .. " ? " .. op.E .. " : " or ""}(uint32_t)p.ids[row * ${k} + j];
        z = ${moe.scaled(op, "z", 1, "e")};
% end
% if moe.shared(op) then
        sum = j < ${k} ? isa_fma(p.weights[row * ${k} + j], z, sum) : sum + z;
% else
        sum = isa_fma(p.weights[row * ${k} + j], z, sum);
% end
    }
    float *y = p.y + row * ${op.n} + 16 * strip + r;
    *y = *y + sum;

%%template
% local d = module.describe(params)
% local gated = stage == "gated"
% local does = gated and "silu(gate x) * (up x) of every pair; a pair and 32 columns a cta"
%   or "y += sum over picks of weight * W x, in their order; a row and 16 columns a cta"
${cuda.head(d, "kernel/matvec_moe.cu.lua", does, moe.shapes(params))}

${cuda.params(d)}

% local smem = cuda.smem_offsets(d.smem)
% for _, quant in ipairs(moe.types(params)) do
${quant.kind == "int" and product.int_type(quant, K, smem) or product.float_type(quant, K)}

% end
${cuda.open(d)}
${gated and module.gated_body(params, d) or module.down_body(params, d)}
}
