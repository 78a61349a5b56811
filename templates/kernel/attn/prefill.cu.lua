-- Attention in f32 chains, which give the bits of every other row and of decode (docs/numerics.md): exact.lua has the text.
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/attn.c.lua")
local attn = import("lib/attn_parts.lua")
local exact = import("kernel/attn/exact.lua")

local THREADS = 32 * exact.WARPS

-- Three ctas leave a thread 168 registers, which its 64 sums and the results of heads of 64 or 128 just fit.
local function ctas_per_sm(op)
  if op.hd > 128 then return 1 end
  if op.hd % 64 ~= 0 then return 2 end
  local _, bytes = cuda.smem_offsets(exact.smem(op))
  return math.max(1, math.min(3, (op.hw.smem_per_cta_bytes + 1024) // (bytes + 1024)))
end

function module.describe(op)
  local tile = exact.WARPS * exact.ROWS
  return cuda.of(c_kernel.describe(op), {
    name_suffix = "xprefill",
    axes = { descr.rows_axis("T", tile), descr.dim_axis("heads", op.n_head, "y"), attn.splits },
    grid = { descr.row_ctas("T", tile), tostring(op.n_head), "1" }, block = THREADS, ctas_per_sm = ctas_per_sm(op),
    covers = attn.covers(op, tile), smem = exact.smem(op),
    features = { "shuffle", "f16" },
  })
end

%%template
% local d = module.describe(params)
% local rows = exact.ROWS
% local does = "softmax(scale * q k) v over splits of 256 positions; a warp has one head of " .. rows .. " rows"
% local shapes = "qkv [n_rows][" .. attn.width(params) .. "];  y [n_rows][" .. n_head * hd .. "]"
${cuda.head(d, "kernel/attn/prefill.cu.lua", does, shapes)}

${cuda.params(d)}

${include("kernel/attn/exact.lua", attn.exact_params(params, d.name, cuda.smem_offsets(d.smem)))}

${cuda.open(d)}
    const uint32_t begin = isa_cta_x() * ${exact.WARPS * rows} + isa_warp() * ${rows};
    isa_wait_launch();
    isa_let_launch();
    const uint32_t end = begin + ${rows} < p.step->n_rows ? begin + ${rows} : p.step->n_rows;
    attend_rows(p, isa_cta_y(), begin, end);
}
