-- embed with its rows on y, which no kernel of lagen has: so that the planner's static tile and the
-- row's limit there are met by a whole program (tests/gpu/test_program.py puts this file in the real
-- one's place).
local descr = import("lib/descr.lua")
local c_kernel = import("kernel/embed.c.lua")
local cuda = import("lib/descr_cuda.lua")

function module.describe(op)
  local c = c_kernel.describe(op)
  local d = cuda.of(c, {
    axes = { { name = "rows", kind = "rows", bound = "T", tile = 1, on = "y", fold = "none",
               base = "first_row" } },
    grid = { "1", "T", "1" }, block = 128, ctas_per_sm = 1, features = { "f16" },
  })
  local params = {}
  for i, p in ipairs(c.params) do params[i] = p end
  params[#params + 1] = descr.param("first_row", "uint32_t")
  d.params = params
  return d
end

%%template
% local d = module.describe(params)
${cuda.head(d, "kernel/embed.cu.lua", "nothing but its grid", "y [n_rows][" .. H .. "]")}

${cuda.params(d)}

${cuda.open(d)}
    const uint32_t t = isa_cta_y() + p.first_row;
    for (uint32_t col = isa_thread(); col < ${H}; col += 128) {
        p.y[(size_t)t * ${H} + col] = 0.0f;
    }
}
