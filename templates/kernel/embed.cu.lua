local book = import("lib/book.lua")
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/embed.c.lua")

-- Threads of a cta; it has one row and its threads take pieces of it in turns.
local THREADS = 128

function module.describe(op)
  local smem = {}
  book.carve(smem, { import("quant/" .. op.wtype .. ".lua") })
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = THREADS, ctas_per_sm = 1, smem = smem, features = { "f16" },
  })
end

%%template int_row(quant, H)
% local a, groups = descr.atoms(quant, H), quant.qblock_elems // 32
    /* 8 columns a turn: 4 of the first half of a group and the 4 that lie 16 on. */
    for (uint32_t at = isa_thread(); at < ${H // 8}; at += ${THREADS}) {
        const uint32_t g = at / 4 % 8, i = at % 4;
        const uint32_t nq = ${cuda.by_atom(H, "at / 32", a.per, a.rest)};
        const uint8_t *atom = strip + (size_t)(at / 32) * ${a.bytes};
        const ${quant.type}_scale s = ${quant.type}_scales(${quant.type}_load_scale(atom, nq, g, row), g);
        uint32_t code[2];
        ${quant.type}_codes(${quant.type}_load(atom, nq, g, row, i), g, i, &code[0], &code[1]);
#pragma unroll
        for (uint32_t half = 0; half < 2; half++) {
            isa_x4 v;
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) {
                v.w[e] = isa_bits(${quant.type}_value(s, code[half] >> 8 * e & 255u, half));
            }
            isa_store_x4(y + at / 4 * 32 + half * 16 + i * 4, v);
        }
    }

%%template float_row(quant, H)
% local a = descr.atoms(quant, H)
    for (uint32_t col = isa_thread(); col < ${H}; col += ${THREADS}) {
        y[col] = ${quant.type}_at(strip + (size_t)(col / 256) * ${a.bytes}, col % 256, row);
    }

%%template
% local d = module.describe(params)
% local quant = import("quant/" .. wtype .. ".lua")
% local smem = cuda.smem_offsets(d.smem)
% local strip_bytes = 16 * exact_div(H, quant.qblock_elems) * quant.qblock_bytes
% local does = "y[t] = row token_of_row[t] of w, dequantised; one token for each cta"
% local shapes = "w [" .. V .. "][" .. H .. "] " .. wtype .. ";  y [n_rows][" .. H .. "]"
${cuda.head(d, "kernel/embed.cu.lua", does, shapes)}

${cuda.params(d)}

${book.cu_load(quant, smem)}
% if quant.kind == "int" then

${quant.cu_value()}
% end

${cuda.open(d)}
    const uint32_t t = isa_cta_x();
    ${book.fill({ quant }, smem, THREADS)}
    isa_wait_launch();
    isa_let_launch();
    ${book.barrier({ quant })}
    const uint32_t token = p.step->token_of_row[t], row = token % 16;
    const uint8_t *strip = p.w + (size_t)(token / 16) * ${strip_bytes};
    float *y = p.y + (size_t)t * ${H};

${quant.kind == "int" and module.int_row(quant, H) or module.float_row(quant, H)}
}
