local descr = import("lib/descr.lua")
local moe = import("lib/moe_parts.lua")
local product = import("kernel/matmul.c.lua")
local text = import("lib/moe_text.lua")

-- Strips of weights that a cta multiplies with the rows it has gathered: of a gated product half of them are up's.
local STRIPS = 4

-- Columns of the result that a cta has.
local function columns(op) return op.stage == "gated" and 16 * STRIPS // 2 or 16 * STRIPS end

local function index(op)
  return { { param = "map", ctype = "const int32_t *", count = moe.ENTRY .. " * " .. moe.n_tiles(op) },
           { param = "pairs", ctype = "const int32_t *", count = moe.n_pairs(op) } }
end

-- The descriptor of a kernel whose cta has a tile and `width` columns of the result.
function module.describe_pieces(op, width)
  local outputs, covers = moe.gated_outputs(op), {}
  if op.stage == "down" then
    outputs = { { param = "y", ctype = "float *", bytes = 4, access = "write", per32 = 32, width = op.n,
                  count = moe.n_pairs(op) .. " * " .. op.n } }
  end
  local n_pieces = ceil_div(op.n, width)
  for i, o in ipairs(outputs) do
    covers[i] = moe.pair_cover(op, o.param, "tiles", 1, width * o.per32 // 32, o.width)
    covers[i].sorted = moe.sorted(op)
  end
  local d = moe.product(op, index(op), outputs, "pairs")
  d.axes = { { name = "tiles", kind = "rows", bound = moe.n_tiles(op), tile = 1, on = "x", fold = "none" },
             descr.dim_axis("pieces", n_pieces, "y") }
  d.grid = { moe.n_tiles(op), tostring(n_pieces), "1" }
  d.covers = covers
  return d
end

function module.describe(op) return module.describe_pieces(op, columns(op)) end

%%template int_functions(quant)
% local t = quant.type
${product.int_atom(quant, 256)}

/* An atom of nq qblocks times n <= 16 gathered rows, in register tiles of falling size. */
static void ${t}_rows(const uint8_t *atom, uint32_t nq, const gathered *x, uint32_t n, bool first,
    float (*out)[16]) {
    uint32_t i = 0;
% for _, n in ipairs(product.TOKENS) do
% if n > 1 then
    for (; ISA_TOKENS >= ${n} && i + ${n} <= n; i += ${n}) {
        ${t}_atom(atom, nq, x->q + 256 * i, x->d + 8 * i, x->s + 16 * i, ${n}, first, out + i);
    }
% else
    for (; i < n; i++) {
        ${t}_atom_1(atom, nq, x->q + 256 * i, x->d + 8 * i, x->s + 16 * i, first, out[i]);
    }
% end
% end
}

%%template float_functions(quant)
% local t = quant.type
${product.float_atom(quant, 256)}

/* An atom of n_cols columns times n <= 16 gathered rows, in register tiles of falling size. */
static void ${t}_rows(const uint8_t *atom, uint32_t n_cols, const gathered *x, uint32_t n,
    bool first, float (*out)[16]) {
    uint32_t i = 0;
% for _, n in ipairs(product.TOKENS) do
    for (; ISA_TOKENS >= ${n} && i + ${n} <= n; i += ${n}) {
        ${t}_atom(atom, n_cols, x->x + 256 * i, ${n}, first, out + i);
    }
% end
}

%%template gather(op, int, float)
% local K = op.K
/* At most 16 rows' columns of one atom, each row's one after the other. */
typedef struct gathered {
% if int then
    int8_t q[16 * 256];
    float d[16 * 8];
    int16_t s[16 * 16];
% end
% if float then
    float x[16 * 256];
% end
} gathered;

/* Inlined: gcc 12.2 takes the zeros before it for what is read behind it where ipa-cp makes a clone. */
ISA_FN void gather(const params *p, const uint32_t *row, uint32_t n, uint32_t a, gathered *x) {
    const uint32_t n_cols = ${K} - 256 * a < 256 ? ${K} - 256 * a : 256;
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = row[i];
% if int then
        memcpy(x->q + 256 * i, p->x_q + at * ${K} + 256 * a, n_cols);
        memcpy(x->d + 8 * i, p->x_d + at * ${K // 32} + 8 * a, n_cols / 32 * sizeof *x->d);
        memcpy(x->s + 16 * i, p->x_s + at * ${K // 16} + 16 * a, n_cols / 16 * sizeof *x->s);
% end
% if float then
        memcpy(x->x + 256 * i, p->x + at * ${K} + 256 * a, n_cols * sizeof *x->x);
% end
    }
}

%%template atom_call(m, K, i, strip)
% local a = descr.atoms(m.quant, K)
% local whole, rest = m.quant.kind == "int" and a.per or 256, m.quant.kind == "int" and a.rest or K % 256
% local nq = rest == 0 and tostring(whole) or a.whole == 0 and tostring(rest) or "(a < " .. a.whole .. " ? " .. whole .. " : " .. rest .. ")"
${m.type}_rows(p->${m.param} + (size_t)e * ${m.matrix_bytes} + (size_t)(${strip}) * ${m.strip_bytes} +
    (size_t)a * ${a.bytes}, ${nq}, &x, n, a == 0, out[${i}]);

%%template set_function(set, op)
% local gated, K = op.stage == "gated", op.K
% local per = gated and STRIPS // 2 or STRIPS
/* Piece `piece` of ${set.name == "routed" and "expert e" or "the shared expert"} times n <= 16 rows: strips of ${gated and "gate, then of up" or "16 columns"}. */
static void ${set.name}_piece(const params *p, uint32_t e, const uint32_t *row, uint32_t n,
    uint32_t piece, float (*out)[16][16]) {
    gathered x = {0};
    const uint32_t left = ${ceil_div(op.n, 16)} - ${per} * piece, n_strips = left < ${per} ? left : ${per};
    for (uint32_t a = 0; a < ${ceil_div(K, 256)}; a++) {
        gather(p, row, n, a, &x);
        for (uint32_t i = 0; i < n_strips; i++) {
            ${module.atom_call(set.of[1], K, "i", per .. " * piece + i")}
% if gated then
            ${module.atom_call(set.of[2], K, per .. " + i", per .. " * piece + i")}
% end
        }
    }
% for k, m in ipairs(set.of) do
% if m.factor then
    for (uint32_t i = 0; i < n_strips * n; i++) {
        scale_16(out[${per * (k - 1)} + i / n][i % n], p->${m.factor}[e]);
    }
% end
% end
}

%%template store(op)
% local gated, n = op.stage == "gated", op.n
/* Row i of the strips belongs to pair pair[i]. */
static void store(const params *p, const int32_t *pair, uint32_t n, uint32_t piece,
    float (*out)[16][16]) {
    for (uint32_t i = 0; i < n; i++) {
% if gated then
        float act[${columns(op)}] = {0};
        for (uint32_t s = 0; s < ${STRIPS // 2} && 16 * (${STRIPS // 2} * piece + s) < ${n}; s++) {
            gate_16(out[s][i], out[${STRIPS // 2} + s][i], act + 16 * s);
        }
        store_gated(p, (size_t)pair[i], ${columns(op)} * piece, act);
% else
        float *y = p->y + (size_t)pair[i] * ${n};
        for (uint32_t s = 0, at = ${columns(op)} * piece; s < ${STRIPS} && at < ${n}; s++, at += 16) {
            memcpy(y + at, out[s][i], (${n} - at < 16 ? ${n} - at : 16) * sizeof *y);
        }
% end
    }
}

%%template
% local d = module.describe(params)
% local P, gated, shared = moe.per_row(params), stage == "gated", moe.shared(params)
% local does = gated and "silu(gate x) * (up x) of every pair" or "W x of every pair"
% does = does .. "; a tile of at most " .. moe.TILE .. " pairs of an expert by " .. columns(params) .. " columns a cta"
${descr.c_head(d, "kernel/moe_matmul.c.lua", does, moe.shapes(params))}
${text.includes(hw)}

${descr.c_params(d)}

typedef ${d.name}_params params;

${module.gather(params, moe.has_kind(params, "int"), moe.has_kind(params, "float"))}

% for _, quant in ipairs(moe.types(params)) do
${quant.kind == "int" and module.int_functions(quant) or module.float_functions(quant)}

% end
% if moe.any_factor(params) then
${text.scale()}

% end
% if gated then
${text.gate()}

${text.store_gated(outputs, n)}

% end
% for _, set in ipairs(moe.each_set(params)) do
${module.set_function(set, params)}

% end
${module.store(params)}

${descr.c_open(d)}
    const uint32_t n_rows = p.step->n_rows;
    const uint32_t n_tiles = ${moe.n_tiles_c(params, "n_rows")};
    for (uint32_t cta = cta_begin; cta < cta_end; cta++) {
        const int32_t *entry = p.map + (size_t)(cta % n_tiles) * ${moe.ENTRY};
        const uint32_t piece = cta / n_tiles, e = (uint32_t)entry[0], n = (uint32_t)entry[2];
        for (uint32_t at = 0; at < n; at += 16) {
            const int32_t *pair = p.pairs + entry[1] + at;
            const uint32_t m = n - at < 16 ? n - at : 16;
            uint32_t row[16];
            float out[${STRIPS}][16][16] = {{{0}}};
            for (uint32_t i = 0; i < m; i++) {
                row[i] = (uint32_t)pair[i]${gated and " / " .. P or ""};
            }
% if shared then
            if (e == ${E}) {
                shared_piece(&p, 0, row, m, piece, out);
            } else {
                routed_piece(&p, e, row, m, piece, out);
            }
% else
            routed_piece(&p, e, row, m, piece, out);
% end
            store(&p, pair, m, piece, out);
        }
    }
}
