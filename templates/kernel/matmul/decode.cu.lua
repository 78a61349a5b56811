-- y = W x for a few rows of x. A cta has 16 rows of W (a strip; for swiglu one of gate and one of up). A half-warp
-- takes an atom: each lane one row of it, so that a load of 16 lanes is one of the image's 64-byte words. All that a
-- lane needs of W for an atom is loaded at once, the first before the launch in front has ended; then the
-- tokens follow one after another. The atoms' parts meet in shared memory and are added in order.
local book = import("lib/book.lua")
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local group = import("lib/group.lua")
local term = import("lib/term.lua")
local c_kernel = import("kernel/matmul.c.lua")
local parts = import("lib/matmul_parts.lua")

local TOKENS = 8
-- Half-warps that a matrix should have at work at once, and bounds of a cta's: with few strips each takes more.
local AT_ONCE, LEAST_SLOTS, MOST_SLOTS = 2048, 12, 24

local function sources(op) return op.epilogue == "swiglu" and 2 or 1 end

-- Atoms at a time, so that turns are of equal length.
local function slots_of(op)
  local total = sources(op) * parts.n_atoms(op)
  local _, n_strips = parts.segments(op, parts.facts(op, 16), 16)
  local most = math.min(MOST_SLOTS, math.max(LEAST_SLOTS, AT_ONCE // n_strips))
  return ceil_div(total, ceil_div(total, most))
end

-- Weights that are read before the launch in front has ended: of swiglu's two only if one text reads both.
local function early(op)
  local names = {}
  if op.epilogue == "swiglu" and op.parts[1].type ~= op.parts[2].type then return names end
  for i = 1, #op.parts do names[i] = "w" .. i - 1 end
  return names
end

local function carve(op, facts)
  local list = { cuda.smem("sums", slots_of(op) * TOKENS * 16 * 4) }
  book.carve(list, parts.types(facts))
  return list
end

function module.describe(op)
  local rows = descr.rows_of(op)
  local facts = parts.facts(op, 16)
  local cols, n_strips = parts.segments(op, facts, 16)
  local slots = slots_of(op)
  local block = round_up(16 * slots, 32)
  -- Eight warps leave a thread all registers that it can have: the text of one warp has no loop over atoms, and its loads
  -- for all of them stand together.
  local threads = block == 32 and 256 or 384
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xdecode",
    axes = { descr.rows_axis(rows, TOKENS), descr.dim_axis("strips", n_strips, "y") },
    grid = { descr.row_ctas(rows, TOKENS), tostring(n_strips), "1" },
    block = block, ctas_per_sm = math.max(1, threads // block),
    covers = parts.row_cover(rows, TOKENS, cols),
    smem = carve(op, facts), features = { "dp4a", "f16" }, early = early(op),
  })
end

%%template int_type(quant, K, smem)
% local t, a, groups = quant.type, descr.atoms(quant, K), quant.qblock_elems // 32
% local n_groups = a.whole > 0 and 8 or a.rest * groups
${group.cu_functions(quant, smem)}

/* One row of an atom of W. */
typedef struct ${t}_atom {
    ${t}_word word[${n_groups}][4];
    ${t}_raw raw[${n_groups}];
} ${t}_atom;

ISA_FN void ${t}_fetch(const uint8_t *strip, uint32_t a, uint32_t row, ${t}_atom &w) {
    const uint8_t *atom = strip + (size_t)a * ${a.bytes};
    const uint32_t nq = ${cuda.by_atom(K, "a", a.per, a.rest)};
#pragma unroll
    for (uint32_t g = 0; g < ${n_groups}; g++) {
        if (g < ${term.times("nq", groups)}) {
            w.raw[g] = ${t}_load_scale(atom, nq, g, row);
#pragma unroll
            for (uint32_t i = 0; i < 4; i++) {
                w.word[g][i] = ${t}_load(atom, nq, g, row, i);
            }
        }
    }
}

/* The product of its n groups with one token: x_q, x_d and x_s are that token's, at the atom's first column. */
ISA_FN float ${t}_dot(const ${t}_atom &w, const uint32_t n, const int8_t *x_q, const float *x_d,
    const int16_t *x_s) {
    float acc = 0.0f;
#pragma unroll
    for (uint32_t g = 0; g < n; g++) {
        const isa_x4 q_lo = isa_load_x4(x_q + 32 * g), q_hi = isa_load_x4(x_q + 32 * g + 16);
        const isa_act x = isa_act_of(x_d[g], (int32_t)isa_load_x1(x_s + 2 * g));
        int32_t n_lo = 0, n_hi = 0;
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t lo, hi;
            ${t}_codes(w.word[g][i], g, i, &lo, &hi);
            n_lo = isa_dot4(lo, q_lo.w[i], n_lo);
            n_hi = isa_dot4(hi, q_hi.w[i], n_hi);
        }
        acc = ${t}_add(acc, ${t}_scales(w.raw[g], g), n_lo, n_hi, x);
    }
    return acc;
}

%%template float_type(quant, K)
% local t, a = quant.type, descr.atoms(quant, K)
${quant.cu_load()}

/* One row of an atom of W: where it lies. Its columns are read in turn, and again for every token. */
typedef struct ${t}_atom {
    const uint8_t *at;
    uint32_t row;
} ${t}_atom;

ISA_FN void ${t}_fetch(const uint8_t *strip, uint32_t a, uint32_t row, ${t}_atom &w) {
    w.at = strip + (size_t)a * ${a.bytes};
    w.row = row;
}

/* Its product with one token, x at the atom's first column. */
ISA_FN float ${t}_dot(const ${t}_atom &w, uint32_t a, const float *x) {
    const uint32_t n_cols = ${cuda.by_atom(K, "a", 256, K % 256)};
    float acc = 0.0f;
    (void)a;
#pragma unroll 16
    for (uint32_t col = 0; col < n_cols; col++) {
        acc = isa_fma(${t}_at(w.at, col, w.row), x[col], acc);
    }
    return acc;
}

%%lua
local function by_atom_dot(quant, K)
  local function dot(n) return quant.type .. "_dot(w, " .. n .. ", x_q, x_d, x_s)" end
  return cuda.by_atom(K, "a", dot(8), dot(K % 256 // 32))
end

%%template tokens_loop(quant, K)
/* The first token is always there: no waiting for their number. */
uint32_t t = 0;
do {
    const size_t token = token0 + t;
% if quant.kind == "int" then
    const int8_t *x_q = p.x_q + token * ${K} + 256 * a;
    const float *x_d = p.x_d + token * ${K // 32} + 8 * a;
    const int16_t *x_s = p.x_s + token * ${K // 16} + 16 * a;
    const float part = ${by_atom_dot(quant, K)};
% else
    const float part = ${quant.type}_dot(w, a, p.x + token * ${K} + 256 * a);
% end
    sums[(slot * ${TOKENS} + t) * 16 + row] = part;
    t++;
} while (t < n_tokens);

%%template type_function(d, op, list, n_out)
% local swiglu = op.epilogue == "swiglu"
% local K, n_atoms, n_slots, part = op.K, parts.n_atoms(op), slots_of(op), list[1]
% local n_total, per_thread = sources(op) * n_atoms, ceil_div(16 * TOKENS, d.block)
% local smem, mine = cuda.smem_offsets(d.smem), parts.types(swiglu and list or { part })
% local ahead, other = not swiglu or list[1].type == list[2].type, swiglu and list[2]
% local value = parts.finished(swiglu and { part } or list, "sum[k]")
/* ${swiglu and "Strip `strip` of gate and of up" or "Strip `strip` of a part of type " .. part.type} times the cta's tokens. */
ISA_FN void ${part.type}_strip(const ${d.name}_params &p, uint32_t strip) {
    float *sums = (float *)(void *)isa_smem(0); /* [slot][token][row] */
    const uint32_t row = isa_thread() % 16, slot = isa_thread() / 16;
    const size_t token0 = (size_t)isa_cta_x() * ${TOKENS};
    ${parts.place(swiglu and { part } or list)}
    const uint8_t *w1 = matrix + (size_t)(strip - first) * ${part.strip_bytes};
% if swiglu then
    const uint8_t *w2 = p.w1 + (size_t)strip * ${other.strip_bytes};
% end
    uint32_t v = slot; /* which atom${swiglu and "; those of up behind those of gate" or ""} */
    bool mine = ${n_slots * 16 < d.block and "slot < " .. n_slots or "true"};
% if ahead then
    ${part.type}_atom w;
    if (mine) {
        ${part.type}_fetch(${swiglu and "v < " .. n_atoms .. " ? w1 : w2, " .. term.mod("v", n_atoms) or "w1, v"}, row, w);
    }
% end
    ${book.fill(mine, smem, d.block)}
    isa_wait_launch();
    isa_let_launch();
    ${book.barrier(mine)}
    const uint32_t left = p.step->${op.rows == "L" and "n_logits" or "n_rows"} - (uint32_t)token0;
    const uint32_t n_tokens = left < ${TOKENS} ? left : ${TOKENS};

    /* Thread i has elements i, i + ${d.block}, .. of the tile, row fastest. */
    float sum[${per_thread}] = {};
% if swiglu then
    float up[${per_thread}] = {};
% end
% if op.epilogue == "add" then
    float old[${per_thread}];
#pragma unroll
    for (uint32_t k = 0; k < ${per_thread}; k++) {
        const uint32_t i = isa_thread() + ${d.block} * k, at = 16 * (strip - first) + i % 16;
        const bool there = at < n_cols && (i < 16 || i / 16 < n_tokens);
        old[k] = there ? p.y[(token0 + i / 16) * ${n_out} + begin + at] : 0.0f;
    }
% end
    for (uint32_t base = 0; base < ${n_total}; base += ${n_slots}) {
        if (mine) {
% if ahead then
            const uint32_t a = ${swiglu and term.mod("v", n_atoms) or "v"};
            ${module.tokens_loop(part.quant, K)}
% else
            if (v < ${n_atoms}) {
                const uint32_t a = v;
                ${part.type}_atom w;
                ${part.type}_fetch(w1, a, row, w);
                ${module.tokens_loop(part.quant, K)}
            } else {
                const uint32_t a = v - ${n_atoms};
                ${other.type}_atom w;
                ${other.type}_fetch(w2, a, row, w);
                ${module.tokens_loop(other.quant, K)}
            }
% end
        }
% if n_total > n_slots then
        v += ${n_slots};
        mine = mine && v < ${n_total};
% if ahead then
        if (mine) {
            ${part.type}_fetch(${swiglu and "v < " .. n_atoms .. " ? w1 : w2, " .. term.mod("v", n_atoms) or "w1, v"}, row, w);
        }
% end
        const uint32_t n_here = ${n_total} - base < ${n_slots} ? ${n_total} - base : ${n_slots};
% else
        const uint32_t n_here = ${n_slots};
% end
        isa_barrier();
#pragma unroll
        for (uint32_t k = 0; k < ${per_thread}; k++) {
            const uint32_t i = isa_thread() + ${d.block} * k;
            for (uint32_t s = 0; i < 16 * n_tokens && s < n_here; s++) {
                const float part = sums[s * ${16 * TOKENS} + i];
% if swiglu then
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
        const uint32_t i = isa_thread() + ${d.block} * k, at = 16 * (strip - first) + i % 16;
        if (i / 16 < n_tokens && at < n_cols) {
            float *y = p.y + (token0 + i / 16) * ${n_out} + begin + at;
% if swiglu then
            *y = isa_silu(${value}) * (${parts.finished({ other }, "up[k]")});
% elseif op.epilogue == "add" then
            *y = old[k] + (${value});
% else
            *y = ${value};
% end
        }
    }
}

%%template
% local d = module.describe(params)
% local facts = parts.facts(params, 16)
% local n_out = parts.out_cols(params, facts)
% local rows = descr.rows_of(params) == "L" and "n_logits" or "n_rows"
% local does = "y = W x, 16 rows of W by up to " .. TOKENS .. " tokens for each cta; epilogue " .. epilogue
% local shapes = "x [" .. rows .. "][" .. K .. "];  y [" .. rows .. "][" .. n_out .. "]"
${cuda.head(d, "kernel/matmul/decode.cu.lua", does, shapes)}

${cuda.params(d)}

% local smem = cuda.smem_offsets(d.smem)
% for _, quant in ipairs(parts.types(facts)) do
${quant.kind == "int" and module.int_type(quant, K, smem) or module.float_type(quant, K)}

% end
% for _, list in ipairs(parts.by_type(params, facts)) do
${module.type_function(d, params, list, n_out)}

% end
${cuda.open(d)}
    const uint32_t strip = isa_cta_y();
    ${parts.by_strip(epilogue == "swiglu" and { facts[1] } or facts, function(part) return part.type .. "_strip(p, strip);" end)}
}
