local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/rope_table.c.lua")

-- Threads of a cta; it has one row and its threads take pairs in turns.
local THREADS = 32

function module.describe(op)
  return cuda.of(c_kernel.describe(op), {
    axes = { descr.rows_axis("T", 1) },
    grid = { "T", "1", "1" }, block = THREADS, ctas_per_sm = 1, features = { "f64" },
  })
end

%%template
% local d = module.describe(params)
% local does = "y[t][i] = (cos, sin) of pos_of_row[t] * freq[i], times the magnitude; one row a cta"
${cuda.head(d, "kernel/rope_table.cu.lua", does, "y [n_rows][" .. n_rot // 2 .. "][2]")}

${cuda.params(d)}

ISA_TABLE double freq[${n_rot // 2}] = {
% for i, f in ipairs(params.freq) do
    ${hexfloat_note(f, "f64")},
% end
};

${cuda.open(d)}
    const uint32_t t = isa_cta_x();
    isa_wait_launch();
    isa_let_launch();
    const double pos = (double)p.step->pos_of_row[t];
    float *y = p.y + (size_t)t * ${n_rot};
    for (uint32_t i = isa_thread(); i < ${n_rot // 2}; i += ${THREADS}) {
        double c, s;
        isa_cos_sin(pos * freq[i], &c, &s);
        y[2 * i] = (float)c * ${hexfloat(mscale)};
        y[2 * i + 1] = (float)s * ${hexfloat(mscale)};
    }
}
