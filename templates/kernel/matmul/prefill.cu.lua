-- y = W x for many rows of x. A cta has 128 rows of W (for swiglu 64 of gate and 64 of up) by 32 tokens; a warp 16
-- rows (a strip) by all of them, as lib/mma_stream.lua has it.
local book = import("lib/book.lua")
local cuda = import("lib/descr_cuda.lua")
local descr = import("lib/descr.lua")
local mma = import("lib/mma_text.lua")
local c_kernel = import("kernel/matmul.c.lua")
local parts = import("lib/matmul_parts.lua")
local stream = import("lib/mma_stream.lua")

local TOKENS, WARPS = stream.ROWS, stream.WARPS

-- Strips of each part that a cta has.
local function strips_of(op) return op.epilogue == "swiglu" and WARPS // 2 or WARPS end

-- Shared memory, stages of copies, ctas for an SM.
local function plan(op, facts)
  local up = op.epilogue == "swiglu" and strips_of(op) * 16 * TOKENS * 4 or 0
  local list = {}
  for _, piece in ipairs(mma.carve_float(parts.types(facts), TOKENS)) do list[#list + 1] = piece end
  if up > 0 and not parts.has_kind(facts, "int") then list[#list + 1] = cuda.smem("up", up) end
  return stream.plan(parts.types(facts), op.K, op.hw, list, up)
end

function module.describe(op)
  local rows = descr.rows_of(op)
  local tile = 16 * strips_of(op)
  local facts = parts.facts(op, tile)
  local cols, n_strips = parts.segments(op, facts, tile)
  local smem, _, ctas = plan(op, facts)
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xprefill",
    axes = { descr.rows_axis(rows, TOKENS), descr.dim_axis("strips", n_strips, "y") },
    grid = { descr.row_ctas(rows, TOKENS), tostring(n_strips), "1" },
    block = 32 * WARPS, ctas_per_sm = ctas,
    covers = parts.row_cover(rows, TOKENS, cols),
    smem = smem, features = { "mma_s8", "f16" },
  })
end

%%lua
-- C text of an atom's products of one kind of types, "int" or "float"; nothing where the warp's type is of the other.
local function call_parts(op, facts, kind, room)
  local swiglu, lines = op.epilogue == "swiglu", {}
  local function text(part)
    local args = kind == "int" and "atom, a, " .. room .. ", x, n_eights" or "weights, a, begin, width, x_f, n_tokens"
    return part.type .. "_part(" .. args .. ", acc);"
  end
  if not (parts.has_kind(facts, "int") and parts.has_kind(facts, "float")) and not swiglu then
    return parts.by_strip(facts, text)
  end
  if #parts.types(facts) == 1 then return text(facts[1]) end
  for i, part in ipairs(facts) do
    if part.quant.kind == kind then
      local mine = i == 1 and "!is_up" or "is_up"
      if not swiglu then
        mine = (part.first > 0 and "strip >= " .. part.first .. " && " or "") .. "strip < " .. part.last
      end
      lines[#lines + 1] = "if (" .. mine .. ") {"
      lines[#lines + 1] = "    " .. text(part)
      lines[#lines + 1] = "}"
    end
  end
  return join(lines, "\n")
end

%%template place_swiglu(facts, n_strips)
const bool is_up = w >= ${n_strips};
const uint32_t first = 0, n_cols = ${facts[1].n};
const uint8_t *matrix = is_up ? p.w1 : p.w0;
% if facts[1].type == facts[2].type then
const uint32_t strip_bytes = ${facts[1].strip_bytes};
% else
const uint32_t strip_bytes = is_up ? ${facts[2].strip_bytes} : ${facts[1].strip_bytes};
% end

%%template
% local d = module.describe(params)
% local facts = parts.facts(params, 16 * strips_of(params))
% local n_out, n_atoms, types = parts.out_cols(params, facts), parts.n_atoms(params), parts.types(facts)
% local rows = descr.rows_of(params) == "L" and "n_logits" or "n_rows"
% local int, float = parts.has_kind(facts, "int"), parts.has_kind(facts, "float")
% local _, n_stages = plan(params, facts)
% local at = cuda.smem_offsets(d.smem)
% local does = "y = W x, 128 rows of W by up to " .. TOKENS .. " tokens for each cta; epilogue " .. epilogue
% local shapes = "x [" .. rows .. "][" .. K .. "];  y [" .. rows .. "][" .. n_out .. "]"
% local n_strips, swiglu = strips_of(params), epilogue == "swiglu"
% local rows_of_x = { count = "n_tokens", first = "token0" }
${cuda.head(d, "kernel/matmul/prefill.cu.lua", does, shapes)}

${cuda.params(d)}

% if int then
${stream.types(types, K)}

% end
% for _, quant in ipairs(types) do
${quant.kind == "int" and stream.int_type(quant, K, types, at) or mma.float_type(quant, K, TOKENS, true)}

% end
${cuda.open(d)}
    const uint32_t strip = isa_cta_y(), w = isa_warp();
% if swiglu then
    ${module.place_swiglu(facts, n_strips)}
% else
    ${parts.place(facts)}
    const uint32_t strip_bytes = ${parts.pick(facts, function(part) return part.strip_bytes end)};
% end
% if #types > 1 and swiglu then
    const uint32_t type = is_up ? ${stream.number(parts.types(facts), facts[2])} : ${stream.number(parts.types(facts), facts[1])};
% elseif #types > 1 and int then
    const uint32_t type = ${parts.pick(facts, function(part) return stream.number(parts.types(facts), part) end)};
% end
    const uint32_t mine = ${n_strips} * (strip - first) + w % ${n_strips};
    const uint8_t *weights = matrix + (size_t)mine * strip_bytes;
    const bool here = 16 * mine < n_cols;
    ${book.fill(types, at, d.block)}
    isa_wait_launch();
    isa_let_launch();
    const size_t token0 = (size_t)isa_cta_x() * ${TOKENS};
    const uint32_t left = p.step->${rows} - (uint32_t)token0, n_tokens = left < ${TOKENS} ? left : ${TOKENS};
% if int then
    const uint32_t n_eights = (n_tokens + 7) / 8;
    ${stream.begin(types, K, n_stages, at)}
    ${stream.fill(types, K, n_stages, rows_of_x, at)}
% end
% if float then
    float *x_f = (float *)(void *)isa_smem(${at.f});
% end
    ${stream.sums()}
#pragma unroll 1
    for (uint32_t a = 0; a < ${n_atoms}; a++) {
        float acc[${TOKENS // 8}][4] = {};
% if int then
        ${stream.advance(types, K, n_stages, rows_of_x, at)}
        if (here) {
            ${call_parts(params, facts, "int", stream.room(types, at))}
        }
        ${stream.scales(types, K, at)}
% end
% if float then
        ${mma.float_atom(K, d.block, TOKENS, "n_tokens", "token0 + t", call_parts(params, facts, "float"))}
% end
        ${stream.add_sums()}
    }
% if swiglu then

    /* The warps of up hand theirs to those of gate, lane for lane. */
    float *up = (float *)(void *)isa_smem(${int and at.stages or at.up}) + isa_thread() % ${32 * n_strips};
    isa_barrier();
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
            const uint32_t at = 16 * mine + isa_lane() / 4 * 2 + e / 2;
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
