-- mma_stream.lua -- pieces of CUDA text for products of 16 rows of quantised weights a warp by up to 32 rows of activations,
-- in the fragments of isa_mma_s8. Weights and activations of an atom's columns come to shared memory by copies that are
-- some atoms ahead; a warp then writes what each row and group has beside its codes as floats, once for an atom. Row r of
-- the fragments is row 2r of the strip, and row r + 8 row 2r + 1: so a lane's two rows lie side by side.
local book = import("lib/book.lua")
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local term = import("lib/term.lua")

module.ROWS = 32 -- of activations, at most
module.WARPS = 8
local ROWS, WARPS = module.ROWS, module.WARPS
-- Bytes of a row's columns in shared memory: 16 more than 256, so that 8 rows lie in all banks.
local STRIDE = 272
-- Rows that a group's scales have room for: 2 more, so that groups do not lie in the same banks.
local ROOM = ROWS + 2

-- Number of a matrix's type among those of a list: what `type` says in a kernel.
function module.number(list, m)
  for i, quant in ipairs(list) do
    if quant.type == m.type then return i - 1 end
  end
  fail("no type '" .. m.type .. "' in the list")
end

local function ints(list)
  local out = {}
  for _, quant in ipairs(list) do
    if quant.kind == "int" then out[#out + 1] = quant end
  end
  return out
end

-- Whether some quantised type of a list has this many minimums. One: scale times sum of a group stands behind the scale;
-- two: those of its halves are kept too.
local function has_mins(list, n)
  for _, quant in ipairs(ints(list)) do
    if quant.n_mins == n then return true end
  end
  return false
end

local function subs_of(quant) return get(quant, "cu_sub", {}) end

-- Bytes of what a row's group has beside its codes: 1, 2, 4 or 8 floats.
local function row_bytes(quant)
  local n = quant.n_scales + quant.n_mins + (#subs_of(quant) > 0 and #subs_of(quant) + 1 or 0)
  return n > 4 and 32 or n > 2 and 16 or 4 * n
end

-- Bytes of an atom of 16 rows, the widest.
local function atom_bytes(quant, K)
  local a = descr.atoms(quant, K)
  return a.whole > 0 and a.bytes or 16 * a.rest * quant.qblock_bytes
end

local function most(list, of)
  local n = 0
  for _, quant in ipairs(list) do n = math.max(n, of(quant)) end
  return n
end

local function strip_bytes(list, K) return most(ints(list), function(quant) return atom_bytes(quant, K) end) end

-- Bytes of one stage: an atom of each warp's strip, and the activations' columns.
local function stage_bytes(list, K) return WARPS * strip_bytes(list, K) + ROWS * STRIDE end

local function rows_bytes(list) return 8 * 16 * most(ints(list), row_bytes) end

-- Shared memory: stages, twice d and h (see stream_type), the warps' rows, code books. Nothing without quantised types.
local function carve(list, K, n_stages, least)
  local per_group, out = 8 * ROOM * 4, {}
  out[1] = cuda.smem("stages", math.max(least, n_stages * stage_bytes(list, K)))
  out[2] = cuda.smem("d", 2 * (has_mins(list, 1) and 2 * per_group or per_group))
  if has_mins(list, 2) then out[3] = cuda.smem("h", 2 * 2 * per_group) end
  out[#out + 1] = cuda.smem("rows", WARPS * rows_bytes(list))
  book.carve(out, list)
  return out
end

-- The carve list behind `others`, how many stages it has, and how many ctas then share an SM: two of as many stages as
-- fit, else one; one where registers must hold what three types need, or two of which one has two minimums. The stages
-- have at least `least` bytes, which a kernel may use when they are done with.
function module.plan(list, K, hw, others, least)
  if #ints(list) == 0 then return others, 0, 2 end
  for _, try in ipairs({ { 3, 2 }, { 2, 2 }, { 3, 1 }, { 2, 1 }, { 1, 1 } }) do
    local all = {}
    for i, piece in ipairs(others) do all[i] = piece end
    for _, piece in ipairs(carve(list, K, try[1], least)) do all[#all + 1] = piece end
    local _, bytes = cuda.smem_offsets(all)
    local registers = try[2] == 1 or #list == 1 or #list == 2 and not has_mins(list, 2)
    if registers and bytes <= hw.smem_per_cta_bytes and try[2] * (bytes + hw.smem_reserved_bytes) <= hw.smem_per_sm_bytes then
      return all, try[1], try[2]
    end
  end
  fail("a stage of " .. stage_bytes(list, K) .. " bytes does not fit")
end

-- A quant file's text, reading weights from shared memory.
local function in_smem(text)
  local out = text:gsub("isa_load_w", "isa_smem_w")
  return out
end

-- C text of type's bytes of atom `a` of a strip, which may be the narrower last one; 0 for plain numbers.
local function bytes_of(quant, K, a)
  if quant.kind ~= "int" then return "0" end
  local atoms = descr.atoms(quant, K)
  return cuda.by_atom(K, a, atoms.bytes, 16 * atoms.rest * quant.qblock_bytes)
end

-- The same for the warp's type, number `type` of a list; `of` as bytes_of.
local function by_type(list, of)
  local text = of(list[#list])
  for i = #list - 1, 1, -1 do text = "type == " .. i - 1 .. " ? " .. of(list[i]) .. " : " .. text end
  return text
end

%%template types(list, K)
/* An atom's columns of the activations in shared memory: bytes [row][${STRIDE}], and by [group][${ROOM} rows] their
 * scales d${has_mins(list, 1) and ", each with scale times sum behind it" or ""}${has_mins(list, 2) and ", and h, that of each half" or ""}. */
typedef struct stream {
    const int8_t *q;
    float *d;
% if has_mins(list, 2) then
    float *h;
% end
} stream;

/* An atom of a warp's strip on its way to shared memory. */
ISA_FN void copy_strip(unsigned char *to, const uint8_t *from, uint32_t n_bytes) {
#pragma unroll
    for (uint32_t j = 0; j < ${ceil_div(strip_bytes(list, K), 512)}; j++) {
        const uint32_t i = 512 * j + 16 * isa_lane();
        if (i < n_bytes) {
            isa_copy16(to + i, from + i);
        }
    }
}

/* Scale and sums of group g of row t to their places. */
ISA_FN void put_scales(const stream &x, uint32_t t, uint32_t g, float scale, uint32_t sums) {
    const uint32_t at = g * ${ROOM} + t;
% if has_mins(list, 1) or has_mins(list, 2) then
    const isa_act act = isa_act_of(scale, (int32_t)sums);
% else
    (void)sums;
% end
% if has_mins(list, 1) then
    x.d[2 * at] = scale;
    x.d[2 * at + 1] = act.m;
% else
    x.d[at] = scale;
% end
% if has_mins(list, 2) then
    x.h[at] = act.m_half[0];
    x.h[${8 * ROOM} + at] = act.m_half[1];
% end
}

%%lua
-- What stands in a kernel's text: each needs `weights` (the warp's strip), `here` (whether it has one), `type` (with
-- several types in the list, the number of its own). `n`: stages. `rows` says which rows of x: { count = C text of how many
-- they are, first = C text of the number of the first }, or in place of first { list = an array of their numbers }.
-- Byte `at` of the stage of atom a: a number, or C text such as "a" or "a + 2".
local function in_stage(list, K, n, a, at)
  local size, number = stage_bytes(list, K), math.tointeger(tonumber(a))
  if number then return term.plus("stages", number % n * size + at) end
  if n == 1 then return term.plus("stages", at) end
  return term.plus("stages + " .. term.whole(a) .. " % " .. n .. " * " .. size, at)
end

-- `at` and what lies before atom a, in steps of `size`.
local function at_atom(at, size, a)
  local number = math.tointeger(tonumber(a))
  if number then return term.plus(at, number * size) end
  return at .. " + " .. size .. " * " .. term.whole(a)
end

local function strip_at(a)
  if a == "0" then return "weights" end
  return "weights + " .. (a == "1" and "atom_bytes" or "(size_t)" .. term.whole(a) .. " * atom_bytes")
end

-- "if (..) {" for conditions of which some may always hold; "{" where all do.
local function when(...)
  local list = {}
  for _, c in ipairs({ ... }) do
    if c ~= "" then list[#list + 1] = c end
  end
  return #list == 0 and "{" or "if (" .. join(list, " && ") .. ") {"
end

-- The condition that unit `name`, below `most`, lies in atom a, of which a narrower last one has `rest`.
local function in_atom(name, K, a, most, rest)
  return K % 256 == 0 and "" or name .. " < " .. cuda.by_atom(K, term.whole(a), most, rest)
end

-- Rows that a thread copies columns of: 16 bytes of every 16th row.
local COPIES = ROWS * 16 // (32 * WARPS)

local function row_at(rows, held, t) return get(rows, "list", false) and held or "(" .. rows.first .. " + " .. t .. ")" end

%%template copy_strip(list, K, n, a)
if (here) {
    copy_strip(${in_stage(list, K, n, a, 0)} + isa_warp() * ${strip_bytes(list, K)}, ${strip_at(a)},
        ${by_type(list, function(quant) return bytes_of(quant, K, term.whole(a)) end)});
}

%%template copy_rows(list, K, n, rows, a)
${when(in_atom("my_piece", K, a, 16, K % 256 // 16))}
    unsigned char *to = ${in_stage(list, K, n, a, WARPS * strip_bytes(list, K))} + my_row * ${STRIDE} + 16 * my_piece;
    const int8_t *from = ${at_atom("p.x_q", 256, a)} + 16 * my_piece;
#pragma unroll
    for (uint32_t k = 0; k < ${COPIES}; k++) {
        if (my_row + ${2 * WARPS} * k < ${rows.count}) {
            isa_copy16(to + ${2 * WARPS * STRIDE} * k, from + (size_t)${row_at(rows, "copied[k]", "my_row + " .. 2 * WARPS .. " * k")} * ${K});
        }
    }
}

%%template load_scales(K, rows, a)
${when("my_t < " .. rows.count, in_atom("my_g", K, a, 8, K % 256 // 32))}
    const size_t row = ${row_at(rows, "scaled", "my_t")};
    scale = p.x_d[${at_atom("row * " .. K // 32, 8, a)} + my_g];
    sums = isa_load_x1(${at_atom("p.x_s + row * " .. K // 16, 16, a)} + 2 * my_g);
}

%%template begin(list, K, n, at)
/* The first atoms of the strip, as many as there are stages but one. */
unsigned char *stages = isa_smem(${at.stages});
% if K > 256 or n == 1 then
const uint32_t atom_bytes = ${by_type(list, function(quant) return quant.kind == "int" and tostring(descr.atoms(quant, K).bytes) or "0" end)};
% end
% for a = 0, math.min(n - 1, ceil_div(K, 256)) - 1 do
${module.copy_strip(list, K, n, tostring(a))}
% end

%%template fill(list, K, n, rows, at)
/* The same of x. Columns 16 my_piece .. of row my_row and of every ${2 * WARPS}th from there on are this thread's to copy, group my_g of
 * row my_t is its to scale. */
const uint32_t my_row = isa_thread() / 16, my_piece = isa_thread() % 16;
const uint32_t my_t = isa_thread() / 8, my_g = isa_thread() % 8;
% if get(rows, "list", false) then
const uint32_t scaled = ${rows.list}[my_t];
uint32_t copied[${COPIES}];
#pragma unroll
for (uint32_t k = 0; k < ${COPIES}; k++) {
    copied[k] = ${rows.list}[my_row + ${2 * WARPS} * k];
}
% end
% for a = 0, n - 2 do
% if a < ceil_div(K, 256) then
${module.copy_rows(list, K, n, rows, tostring(a))}
% end
isa_copy_close();
% end
float scale = 0.0f;
uint32_t sums = 0;
stream x;
x.d = (float *)(void *)isa_smem(${at.d});
% if has_mins(list, 2) then
x.h = (float *)(void *)isa_smem(${at.h});
% end
${module.load_scales(K, rows, "0")}
put_scales(x, my_t, my_g, scale, sums);

%%template advance(list, K, n, rows, at)
/* Atom a is there when all have waited for theirs; the one ${n > 1 and n - 1 .. " on takes the place of the last" or "itself takes the place of the last"}. */
% local atoms = ceil_div(K, 256)
% if n > 1 then
isa_copy_wait<${n - 2}>();
isa_barrier();
% if atoms >= n then
if (a + ${n - 1} < ${atoms}) {
    ${module.copy_strip(list, K, n, "a + " .. n - 1)}
    ${module.copy_rows(list, K, n, rows, "a + " .. n - 1)}
}
% end
isa_copy_close();
% else
isa_barrier();
${module.copy_strip(list, K, n, "a")}
${module.copy_rows(list, K, n, rows, "a")}
isa_copy_close();
isa_copy_wait<0>();
isa_barrier();
% end
const uint8_t *atom = ${in_stage(list, K, n, "a", 0)} + isa_warp() * ${strip_bytes(list, K)};
x.q = (const int8_t *)(${in_stage(list, K, n, "a", WARPS * strip_bytes(list, K))});
x.d = (float *)(void *)isa_smem(${at.d}) + a % 2 * ${has_mins(list, 1) and 16 * ROOM or 8 * ROOM};
% if has_mins(list, 2) then
x.h = (float *)(void *)isa_smem(${at.h}) + a % 2 * ${16 * ROOM};
% end
% if atoms > 1 then
if (a + 1 < ${atoms}) {
    ${module.load_scales(K, rows, "a + 1")}
}
% end

%%template scales(list, K, at)
% if ceil_div(K, 256) > 1 then
/* Scales of the next atom, in the place of the last. */
if (a + 1 < ${ceil_div(K, 256)}) {
    x.d = (float *)(void *)isa_smem(${at.d}) + (a + 1) % 2 * ${has_mins(list, 1) and 16 * ROOM or 8 * ROOM};
% if has_mins(list, 2) then
    x.h = (float *)(void *)isa_smem(${at.h}) + (a + 1) % 2 * ${16 * ROOM};
% end
    put_scales(x, my_t, my_g, scale, sums);
}
% end

%%lua
-- C text: where the warp's rows go.
function module.room(list, at) return "isa_smem(" .. at.rows .. ") + isa_warp() * " .. rows_bytes(list) end

%%template int_type(quant, K, list, smem)
% local t, a, groups, subs = quant.type, descr.atoms(quant, K), quant.qblock_elems // 32, subs_of(quant)
% -- Two groups at once hide latency; of halves, or with more than one scale and minimum, registers do not hold them. With a
% -- narrower last atom they do not either where there is a minimum: ptxas 13.0 spills 8 bytes on sm_103.
% local narrower = K > 256 and K % 256 > 0 and quant.n_mins > 0
% local at_once = (#list > 1 or quant.halves or quant.n_scales + quant.n_mins > 2 or narrower) and 1 or 2
% local one = has_mins(list, 1)
${in_smem(book.cu_load(quant, smem))}

% if quant.n_mins > 0 then
${quant.cu_min()}

% end
/* What a row has beside a group's codes: scales, the integers that sums are multiplied with${#subs > 0 and " (and the first of them times -ISA_TOP_F)" or ""},
 * minimums. */
typedef struct alignas(${math.min(16, row_bytes(quant))}) ${t}_row {
    float d[${quant.n_scales}];
% if #subs > 0 then
    float sub[${#subs}], top;
% end
% if quant.n_mins > 0 then
    float min[${quant.n_mins}];
% end
} ${t}_row;

/* Those of the groups of an atom, by the whole warp: [group][row % 2][row / 2]. All are loaded before one is stored. */
ISA_FN void ${t}_fill(const uint8_t *atom, uint32_t nq, ${t}_row *rows) {
    const uint32_t row = isa_lane() % 16;
    ${t}_row r[4] = {};
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
        const uint32_t g = 2 * j + isa_lane() / 16;
        if (g < ${term.times("nq", groups)}) {
            const ${t}_scale s = ${t}_scales(${t}_load_scale(atom, nq, g, row), g);
% for i = 1, quant.n_scales do
            r[j].d[${i - 1}] = s.d${quant.n_scales == 2 and "[" .. i - 1 .. "]" or ""};
% end
% for i, sub in ipairs(subs) do
            r[j].sub[${i - 1}] = (float)${sub};
% end
% if #subs > 0 then
            r[j].top = -ISA_TOP_F * r[j].sub[0];
% end
% for i = 1, quant.n_mins do
            r[j].min[${i - 1}] = ${t}_min(s${quant.n_mins == 2 and ", " .. i - 1 or ""});
% end
        }
    }
    isa_warp_sync();
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
        const uint32_t g = 2 * j + isa_lane() / 16;
        if (g < ${term.times("nq", groups)}) {
            rows[16 * g + row % 2 * 8 + row / 2] = r[j];
        }
    }
    isa_warp_sync();
}

/* acc + a group: lo and hi are the sums of code times activation over its halves (without halves lo that of the whole),
 * on top of ISA_TOP: as floats they are 1.5 * 2^23 more than the sums, exactly. */
ISA_FN float ${t}_add(float acc, const ${t}_row &r, int32_t lo, int32_t hi, const isa_act &x) {
% if not quant.halves then
    (void)hi;
% end
% if quant.n_scales == 2 then
    acc = isa_fma(isa_as_f(lo) - ISA_TOP_F, r.d[0] * x.d, acc);
    acc = isa_fma(isa_as_f(hi) - ISA_TOP_F, r.d[1] * x.d, acc);
% elseif #subs == 0 then
    acc = isa_fma(isa_as_f(lo) - ISA_TOP_F, r.d[0] * x.d, acc);
% elseif #subs == 1 then
    acc = isa_fma(isa_fma(isa_as_f(lo), r.sub[0], r.top), r.d[0] * x.d, acc);
% else
    const float first = isa_fma(isa_as_f(lo), r.sub[0], r.top);
    acc = isa_fma(isa_fma(isa_as_f(hi) - ISA_TOP_F, r.sub[1], first), r.d[0] * x.d, acc);
% end
% if quant.n_mins == 1 then
    acc = isa_fma(r.min[0], x.m, acc);
% elseif quant.n_mins == 2 then
    acc = isa_fma(r.min[0], x.m_half[0], acc);
    acc = isa_fma(r.min[1], x.m_half[1], acc);
% end
    return acc;
}

/* A group's codes a times the bytes b of 8 rows of x; scales of the lane's two rows of x lie from place `at` on. */
ISA_FN void ${t}_eight(float (&acc)[4], const uint32_t a[4], const uint32_t b[2], const ${t}_row (&r)[2], const stream &x,
    uint32_t at) {
% if quant.halves then
    int32_t lo[4], hi[4];
    isa_mma_s8_half_on(lo, a[0], a[1], b[0], ISA_TOP);
    isa_mma_s8_half_on(hi, a[2], a[3], b[1], ISA_TOP);
% else
    int32_t lo[4];
    const int32_t hi[4] = {};
    isa_mma_s8_on(lo, a, b, ISA_TOP);
% end
% if one then
    const isa_x4 both = isa_load_x4(x.d + 2 * at);
    const uint32_t d[2] = {both.w[0], both.w[2]};
% else
    const isa_x2 both = isa_load_x2(x.d + at);
    const uint32_t d[2] = {both.w[0], both.w[1]};
% end
% if quant.n_mins == 2 then
    const isa_x2 scaled[2] = {isa_load_x2(x.h + at), isa_load_x2(x.h + ${8 * ROOM} + at)};
% end
#pragma unroll
    for (uint32_t e = 0; e < 4; e++) {
        isa_act act = {};
        act.d = isa_float(d[e % 2]);
% if quant.n_mins == 1 then
        act.m = isa_float(both.w[2 * (e % 2) + 1]);
% elseif quant.n_mins == 2 then
        act.m_half[0] = isa_float(scaled[0].w[e % 2]);
        act.m_half[1] = isa_float(scaled[1].w[e % 2]);
% end
        acc[e] = ${t}_add(acc[e], r[e / 2], lo[e], hi[e], act);
    }
}

/* Group g of an atom of nq qblocks for the first 8 n_eights rows of x: acc[n] has the fragment of rows 8n .. 8n + 7. */
ISA_FN void ${t}_group(const uint8_t *atom, uint32_t nq, uint32_t g, const ${t}_row *rows, const stream &x,
    const uint32_t n_eights, float (&acc)[${ROWS // 8}][4]) {
    const uint32_t two = isa_lane() / 4, i = isa_lane() % 4, at = g * ${ROOM} + 2 * i;
    const ${t}_row r[2] = {rows[16 * g + two], rows[16 * g + 8 + two]};
    uint32_t a[4], b[4];
    ${t}_codes(${t}_load(atom, nq, g, 2 * two, i), g, i, &a[0], &a[2]);
    ${t}_codes(${t}_load(atom, nq, g, 2 * two + 1, i), g, i, &a[1], &a[3]);
% if quant.needs_sums then
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        a[k] = isa_minus4(a[k], ${quant.c_offsets[1]});
    }
% end
#pragma unroll
    for (uint32_t n = 0; n + 2 <= n_eights; n += 2) {
        isa_load_b_x2(b, x.q + 8 * n * ${STRIDE} + 32 * g, ${STRIDE});
        ${t}_eight(acc[n], a, b, r, x, at + 8 * n);
        ${t}_eight(acc[n + 1], a, b + 2, r, x, at + 8 * n + 8);
    }
    if (n_eights % 2 == 1) {
        isa_load_b(b, x.q + 8 * (n_eights - 1) * ${STRIDE} + 32 * g, ${STRIDE});
        ${t}_eight(acc[n_eights - 1], a, b, r, x, at + 8 * (n_eights - 1));
    }
}

ISA_FN void ${t}_groups(const uint8_t *atom, uint32_t nq, const ${t}_row *rows, const stream &x, const uint32_t n_eights,
    float (&acc)[${ROWS // 8}][4]) {
#pragma unroll ${at_once}
    for (uint32_t g = 0; g < ${term.times("nq", groups)}; g++) {
        ${t}_group(atom, nq, g, rows, x, n_eights, acc);
    }
}

/* Atom a of a strip, in shared memory; room: where the warp's rows go. */
ISA_FN void ${t}_part(const uint8_t *atom, uint32_t a, unsigned char *room, const stream &x, uint32_t n_eights,
    float (&acc)[${ROWS // 8}][4]) {
    const uint32_t nq = ${cuda.by_atom(K, "a", a.per, a.rest)};
% if K < 256 or K % 256 == 0 then
    (void)a;
% end
    ${t}_row *rows = (${t}_row *)(void *)room;
    ${t}_fill(atom, nq, rows);
    if (n_eights == 1) {
        ${t}_groups(atom, nq, rows, x, 1, acc);
    } else if (n_eights == 2) {
        ${t}_groups(atom, nq, rows, x, 2, acc);
    } else if (n_eights == 3) {
        ${t}_groups(atom, nq, rows, x, 3, acc);
    } else {
        ${t}_groups(atom, nq, rows, x, 4, acc);
    }
}

%%template sums()
/* -0 + x is x, whatever x is. */
float y[${ROWS // 8}][4];
#pragma unroll
for (uint32_t k = 0; k < ${ROWS // 2}; k++) {
    y[k / 4][k % 4] = -0.0f;
}

%%template add_sums()
#pragma unroll
for (uint32_t k = 0; k < ${ROWS // 2}; k++) {
    y[k / 4][k % 4] += acc[k / 4][k % 4];
}
