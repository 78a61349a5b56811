local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local group = import("lib/group.lua")
local term = import("lib/term.lua")

-- Tokens of one cta; the register tile inside is the instruction layer's affair.
local ROW_TILE = 16

local function activations(op)
  local a = { q8 = false, f32 = false }
  for _, part in ipairs(op.parts) do
    local quant = import("quant/" .. part.type .. ".lua")
    if op.K % quant.qblock_elems ~= 0 then
      fail("matmul: K = " .. op.K .. " is not a multiple of " .. quant.qblock_elems .. " (" ..
           part.type .. ")")
    end
    if quant.kind == "int" then a.q8 = true else a.f32 = true end
  end
  return a
end

local function out_cols(op)
  if op.epilogue == "swiglu" then return op.parts[1].n end
  local n = 0
  for _, part in ipairs(op.parts) do n = n + part.n end
  return n
end

local function check(op)
  if #op.parts < 1 or #op.parts > 4 then fail("matmul: 1 to 4 parts, got " .. #op.parts) end
  local e = op.epilogue
  if e ~= "none" and e ~= "add" and e ~= "swiglu" then
    fail("matmul: epilogue '" .. tostring(e) .. "'")
  end
  if e == "swiglu" and (#op.parts ~= 2 or op.parts[1].n ~= op.parts[2].n) then
    fail("matmul: swiglu needs two parts of equal n")
  end
end

local function params_and_operands(op, rows, act, n_out)
  local params, operands = {}, {}
  local function add(p, o) params[#params + 1] = p; operands[#operands + 1] = o end
  if act.f32 then
    add(descr.param("x", "const float *"), descr.operand("x", "read", rows .. " * " .. op.K, 4, 64))
  end
  if act.q8 then
    local o = { descr.q8_operands("x", "read", rows, op.K) }
    for i, p in ipairs({ descr.q8_params("x", true) }) do add(p, o[i]) end
  end
  for i, part in ipairs(op.parts) do
    local quant = import("quant/" .. part.type .. ".lua")
    local image = tostring(descr.image_bytes(quant, part.n, op.K))
    add(descr.param("w" .. (i - 1), "const uint8_t *"),
        descr.operand("w" .. (i - 1), "read", image, 1, 64))
    if get(part, "factor", false) then
      add(descr.param("f" .. (i - 1), "const float *"), descr.operand("f" .. (i - 1), "read", "1", 4, 4))
    end
    if get(part, "bias", false) then
      add(descr.param("b" .. (i - 1), "const float *"),
          descr.operand("b" .. (i - 1), "read", tostring(part.n), 4, 4))
    end
  end
  add(descr.param("y", "float *"),
      descr.operand("y", op.epilogue == "add" and "both" or "write", rows .. " * " .. n_out, 4, 64))
  params[#params + 1] = descr.step_param()
  return params, operands
end

-- Strips of 16 columns of y: those of part after part; one segment for each part.
local function segments(op)
  local list, first, begin = {}, 0, 0
  local n_parts = op.epilogue == "swiglu" and 1 or #op.parts
  for i = 1, n_parts do
    local n = op.parts[i].n
    list[i] = { axis = "strips", first = first, tile = 16, begin = begin, n = n }
    first = first + (n + 15) // 16
    begin = begin + n
  end
  return list, first
end

local function symbol(op, rows, act)
  local types, dims = {}, { op.K }
  for i, part in ipairs(op.parts) do
    types[i] = part.type
    dims[#dims + 1] = part.n .. (get(part, "factor", false) and "f" or "") .. (get(part, "bias", false) and "b" or "")
  end
  dims[#dims + 1] = op.epilogue
  dims[#dims + 1] = rows
  return name.kernel("matmul", types, (act.q8 and "q8" or "") .. (act.f32 and "f32" or ""), dims)
end

local function weight_bytes(op)
  local b = 0
  for _, part in ipairs(op.parts) do
    b = b + descr.image_bytes(import("quant/" .. part.type .. ".lua"), part.n, op.K)
  end
  return b
end

local function total_n(op)
  local n = 0
  for _, part in ipairs(op.parts) do n = n + part.n end
  return n
end

function module.describe(op)
  check(op)
  local rows = descr.rows_of(op)
  local act = activations(op)
  local n_out = out_cols(op)
  local params, operands = params_and_operands(op, rows, act, n_out)
  local cols, n_strips = segments(op)
  return {
    name = symbol(op, rows, act),
    axes = { descr.rows_axis(rows, ROW_TILE), descr.dim_axis("strips", n_strips, "y") },
    grid = { descr.row_ctas(rows, ROW_TILE), tostring(n_strips), "1" }, block = 1,
    params = params, operands = operands,
    covers = { { param = "y", rows = { axis = "rows", tile = ROW_TILE, n = rows }, cols = cols } },
    scratch = 16384, reduction = "atoms256", tolerance = 2e-6,
    bytes = weight_bytes(op) .. " + " .. rows .. " * " .. (op.K + n_out * 4),
    flops = rows .. " * " .. (2 * op.K * total_n(op)),
    includes = { op.hw.isa, "isa_math.h" }, features = { "dot4", "f16" },
  }
end

-- Each type once, in order of appearance.
local function distinct_types(parts)
  local list, seen = {}, {}
  for _, part in ipairs(parts) do
    if not get(seen, part.type, false) then
      seen[part.type] = true
      list[#list + 1] = import("quant/" .. part.type .. ".lua")
    end
  end
  return list
end

-- What the text needs to know of each part.
local function part_facts(op)
  local list, first, begin = {}, 0, 0
  for i, part in ipairs(op.parts) do
    local quant = import("quant/" .. part.type .. ".lua")
    list[i] = { i = i - 1, type = part.type, kind = quant.kind, n = part.n, first = first,
                begin = begin, factor = get(part, "factor", false), bias = get(part, "bias", false),
                strip_bytes = 16 * (op.K // quant.qblock_elems) * quant.qblock_bytes }
    first = first + (part.n + 15) // 16
    begin = begin + part.n
    list[i].last = first
  end
  return list
end

local function has_any(facts, key)
  for _, part in ipairs(facts) do
    if part[key] then return true end
  end
  return false
end

-- Register tiles: token counts that a group of 32 columns is unpacked once for.
local TOKENS = { 16, 8, 4, 2, 1 }
module.TOKENS = TOKENS

%%template int_atom(quant, K)
% local t = quant.type
% local groups = quant.qblock_elems // 32
% local per_group = exact_div(16 * quant.qblock_bytes, groups)
${group.c_functions(quant)}

/* One atom of nq qblocks: 16 rows by n_tokens. Writes (first) or adds its sums to out. */
ISA_FN void ${t}_atom(const uint8_t *atom, const uint32_t nq, const int8_t *x_q, const float *x_d,
    const int16_t *x_s, const uint32_t n_tokens, const bool first, float (*out)[16]) {
    ${t}_sums sums;
    ${t}_sum(&sums, x_d, x_s, ${term.times("nq", groups)}, n_tokens, ${K});
    for (uint32_t row = 0; row < 16; row += ISA_N) {
        isa_f acc[16];
#pragma GCC unroll 16
        for (uint32_t t = 0; t < n_tokens; t++) {
            acc[t] = isa_set1(0.0f);
        }
        for (uint32_t g = 0; g < ${term.times("nq", groups)}; g++) {
            const ${t}_group v = ${t}_load(atom, nq, g, row);
#pragma GCC unroll 16
            for (uint32_t t = 0; t < n_tokens; t++) {
                const int8_t *q = x_q + (size_t)t * ${K} + 32 * g;
                const float d = x_d[(size_t)t * ${K // 32} + g];
                acc[t] = ${t}_add(acc[t], &v, q, d, &sums, t, g);
            }
        }
#pragma GCC unroll 16
        for (uint32_t t = 0; t < n_tokens; t++) {
            isa_f y = first ? acc[t] : isa_add(isa_load(out[t] + row), acc[t]);
            isa_store(out[t] + row, y);
        }
    }
}

/* The same for one token, all 16 rows of a group before the next: weights are read in the order in
 * which they lie, which is what decode waits for. */
ISA_FN void ${t}_atom_1(const uint8_t *atom, const uint32_t nq, const int8_t *x_q,
    const float *x_d, const int16_t *x_s, const bool first, float *out) {
    ${t}_sums sums;
    ${t}_sum(&sums, x_d, x_s, ${term.times("nq", groups)}, 1, ${K});
    isa_f acc[16 / ISA_N];
    for (uint32_t r = 0; r < 16 / ISA_N; r++) {
        acc[r] = isa_set1(0.0f);
    }
    for (uint32_t g = 0; g < ${term.times("nq", groups)}; g++) {
        isa_ahead(atom + g * ${per_group}, ${per_group});
#pragma GCC unroll 4
        for (uint32_t r = 0; r < 16 / ISA_N; r++) {
            const ${t}_group v = ${t}_load(atom, nq, g, r * ISA_N);
            acc[r] = ${t}_add(acc[r], &v, x_q + 32 * g, x_d[g], &sums, 0, g);
        }
    }
    for (uint32_t r = 0; r < 16 / ISA_N; r++) {
        isa_f y = first ? acc[r] : isa_add(isa_load(out + r * ISA_N), acc[r]);
        isa_store(out + r * ISA_N, y);
    }
}

%%template int_strip(quant, K)
% local t, atoms = quant.type, descr.atoms(quant, K)
% local only_rest = atoms.whole == 0 and "true" or "false"
/* One strip: 16 rows by n_tokens, atom after atom. */
ISA_FN void ${t}_strip(const uint8_t *strip, const int8_t *x_q, const float *x_d,
    const int16_t *x_s, const uint32_t n_tokens, float (*out)[16]) {
% if atoms.whole > 0 then
    for (uint32_t a = 0; a < ${atoms.whole}; a++) {
        const uint8_t *atom = strip + (size_t)a * ${atoms.bytes};
        if (n_tokens == 1) {
            ${t}_atom_1(atom, ${atoms.per}, x_q + 256 * a, x_d + 8 * a, x_s + 16 * a, a == 0,
                out[0]);
        } else {
            ${t}_atom(atom, ${atoms.per}, x_q + 256 * a, x_d + 8 * a, x_s + 16 * a, n_tokens,
                a == 0, out);
        }
    }
% end
% if atoms.rest > 0 then
    const uint8_t *rest = strip + ${atoms.whole * atoms.bytes};
    x_q += ${256 * atoms.whole}, x_d += ${8 * atoms.whole}, x_s += ${16 * atoms.whole};
    if (n_tokens == 1) {
        ${t}_atom_1(rest, ${atoms.rest}, x_q, x_d, x_s, ${only_rest}, out[0]);
    } else {
        ${t}_atom(rest, ${atoms.rest}, x_q, x_d, x_s, n_tokens, ${only_rest}, out);
    }
% end
}

%%template int_type(quant, K)
% local t = quant.type
${module.int_atom(quant, K)}

${module.int_strip(quant, K)}

/* One strip by n <= 16 tokens, in register tiles of falling size. */
static void ${t}_tile(const uint8_t *strip, const int8_t *x_q, const float *x_d, const int16_t *x_s,
    uint32_t n, float (*out)[16]) {
    uint32_t t = 0;
% for _, n in ipairs(TOKENS) do
    for (; ISA_TOKENS >= ${n} && t + ${n} <= n; t += ${n}) {
        ${t}_strip(strip, x_q + (size_t)t * ${K}, x_d + (size_t)t * ${K // 32},
            x_s + (size_t)t * ${K // 16}, ${n}, out + t);
    }
% end
}

%%template float_atom(quant, K)
% local t = quant.type
${quant.c_functions()}

/* One atom of n_cols columns: 16 rows by n_tokens. Writes (first) or adds its sums to out. */
ISA_FN void ${t}_atom(const uint8_t *atom, const uint32_t n_cols, const float *x,
    const uint32_t n_tokens, const bool first, float (*out)[16]) {
    for (uint32_t row = 0; row < 16; row += ISA_N) {
        isa_f acc[16];
#pragma GCC unroll 16
        for (uint32_t t = 0; t < n_tokens; t++) {
            acc[t] = isa_set1(0.0f);
        }
        for (uint32_t col = 0; col < n_cols; col++) {
            isa_f w = ${t}_column(atom, col, row);
#pragma GCC unroll 16
            for (uint32_t t = 0; t < n_tokens; t++) {
                acc[t] = isa_fma(w, isa_set1(x[(size_t)t * ${K} + col]), acc[t]);
            }
        }
#pragma GCC unroll 16
        for (uint32_t t = 0; t < n_tokens; t++) {
            isa_f y = first ? acc[t] : isa_add(isa_load(out[t] + row), acc[t]);
            isa_store(out[t] + row, y);
        }
    }
}

%%template float_strip(quant, K)
% local t, atoms = quant.type, descr.atoms(quant, K)
% local only_rest = atoms.whole == 0 and "true" or "false"
/* One strip: 16 rows by n_tokens, atom after atom. */
ISA_FN void ${t}_strip(const uint8_t *strip, const float *x, const uint32_t n_tokens,
    float (*out)[16]) {
% if atoms.whole > 0 then
    for (uint32_t a = 0; a < ${atoms.whole}; a++) {
        ${t}_atom(strip + (size_t)a * ${atoms.bytes}, ${atoms.per}, x + 256 * a, n_tokens, a == 0,
            out);
    }
% end
% if atoms.rest > 0 then
    ${t}_atom(strip + ${atoms.whole * atoms.bytes}, ${atoms.rest}, x + ${256 * atoms.whole},
        n_tokens, ${only_rest}, out);
% end
}

%%template float_type(quant, K)
% local t = quant.type
${module.float_atom(quant, K)}

${module.float_strip(quant, K)}

/* One strip by n <= 16 tokens, in register tiles of falling size. */
static void ${t}_tile(const uint8_t *strip, const float *x, uint32_t n, float (*out)[16]) {
    uint32_t t = 0;
% for _, n in ipairs(TOKENS) do
    for (; ISA_TOKENS >= ${n} && t + ${n} <= n; t += ${n}) {
        ${t}_strip(strip, x + (size_t)t * ${K}, ${n}, out + t);
    }
% end
}

%%template call_tile(part, strip, out, K)
% if part.kind == "int" then
${part.type}_tile(p.w${part.i} + (size_t)${term.whole(strip)} * ${part.strip_bytes}, p.x_q + row0 * ${K},
    p.x_d + row0 * ${K // 32}, p.x_s + row0 * ${K // 16}, n, ${out});
% else
${part.type}_tile(p.w${part.i} + (size_t)${term.whole(strip)} * ${part.strip_bytes}, p.x + row0 * ${K}, n,
    ${out});
% end

%%template
% local d = module.describe(params)
% local facts = part_facts(params)
% local n_out = out_cols(params)
% local rows = descr.rows_of(params) == "L" and "n_logits" or "n_rows"
% local does = "y = W x, 16 rows of W by up to 16 tokens for each cta; epilogue " .. epilogue
% local shapes = "x [" .. rows .. "][" .. K .. "];  y [" .. rows .. "][" .. n_out .. "]"
${descr.c_head(d, "kernel/matmul.c.lua", does, shapes)}
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_math.h"

${descr.c_params(d)}

% for _, quant in ipairs(distinct_types(parts)) do
${quant.kind == "int" and module.int_type(quant, K) or module.float_type(quant, K)}

% end
% if has_any(facts, "factor") then
/* tile *= factor */
static void scale_tile(float (*tile)[16], uint32_t n, float factor) {
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t c = 0; c < 16; c += ISA_N) {
            isa_store(tile[t] + c, isa_mul(isa_load(tile[t] + c), isa_set1(factor)));
        }
    }
}

% end
% if has_any(facts, "bias") then
/* tile += bias, for the n_cols columns that exist. */
static void add_bias(float (*tile)[16], uint32_t n, uint32_t n_cols, const float *bias) {
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t c = 0; c < n_cols; c += ISA_N) {
            isa_f b = isa_load_n(bias + c, n_cols - c < ISA_N ? n_cols - c : ISA_N);
            isa_store(tile[t] + c, isa_add(isa_load(tile[t] + c), b));
        }
    }
}

% end
% if epilogue == "swiglu" then
/* gate = silu(gate) * up */
static void swiglu_tile(float (*gate)[16], float (*up)[16], uint32_t n) {
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t c = 0; c < 16; c += ISA_N) {
            isa_f v = isa_mul(isa_silu(isa_load(gate[t] + c)), isa_load(up[t] + c));
            isa_store(gate[t] + c, v);
        }
    }
}

% end
/* Stores n rows of a tile as columns of y; n_cols of the 16 exist. */
static void store_tile(float (*tile)[16], uint32_t n, uint32_t n_cols, float *y) {
    for (uint32_t t = 0; t < n; t++, y += ${n_out}) {
        for (uint32_t c = 0; c < n_cols; c += ISA_N) {
            uint32_t left = n_cols - c < ISA_N ? n_cols - c : ISA_N;
            isa_f v = isa_load(tile[t] + c);
% if epilogue == "add" then
            v = isa_add(isa_load_n(y + c, left), v);
% end
            isa_store_n(y + c, v, left);
        }
    }
}

${descr.c_open(d)}
    const uint32_t n_rows = p.step->${rows}, n_tiles = (n_rows + 15) / 16;
    for (uint32_t cta = cta_begin; cta < cta_end; cta++) {
        const uint32_t strip = cta / n_tiles;
        const size_t row0 = (size_t)(cta % n_tiles) * 16;
        const uint32_t n = n_rows - (uint32_t)row0 < 16 ? n_rows - (uint32_t)row0 : 16;
        float *y = p.y + row0 * ${n_out};
        float tile[16][16];
% if epilogue == "swiglu" then
        float up[16][16];
        const uint32_t at = 16 * strip, n_cols = ${n_out} - at < 16 ? ${n_out} - at : 16;
        ${module.call_tile(facts[1], "strip", "tile", K)}
        ${module.call_tile(facts[2], "strip", "up", K)}
% for i, which in ipairs({ "tile", "up" }) do
% if facts[i].factor then
        scale_tile(${which}, n, p.f${i - 1}[0]);
% end
% if facts[i].bias then
        add_bias(${which}, n, n_cols, p.b${i - 1} + at);
% end
% end
        swiglu_tile(tile, up, n);
        store_tile(tile, n, n_cols, y + at);
% else
% for i, part in ipairs(facts) do
% if i == 1 then
        if (strip < ${part.last}) {
% elseif i < #facts then
        } else if (strip < ${part.last}) {
% else
        } else {
% end
            const uint32_t at = ${part.first == 0 and "16 * strip" or "16 * (strip - " .. part.first .. ")"};
            const uint32_t n_cols = ${part.n} - at < 16 ? ${part.n} - at : 16;
            ${module.call_tile(part, term.minus("strip", part.first), "tile", K)}
% if part.factor then
            scale_tile(tile, n, p.f${part.i}[0]);
% end
% if part.bias then
            add_bias(tile, n, n_cols, p.b${part.i} + at);
% end
            store_tile(tile, n, n_cols, ${term.plus("y", part.begin)} + at);
% end
        }
% end
    }
}
