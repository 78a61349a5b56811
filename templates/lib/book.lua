-- book.lua -- code books of CUDA kernels: tables that codes number, copied to shared memory where a cta begins. A quant file that
-- needs one has book_bytes (a multiple of 4), cu_book(): the table <type>_book, and cu_load(at): its functions, which read the
-- copy at byte `at` of shared memory.
local cuda = import("lib/descr_cuda.lua")
local M = {}

local function has(quant) return get(quant, "book_bytes", 0) > 0 end

-- Adds what the books of some quant files need to a carve list.
function M.carve(list, quants)
  for _, quant in ipairs(quants) do
    if has(quant) then list[#list + 1] = cuda.smem("book_" .. quant.type, quant.book_bytes) end
  end
end

-- The quant file's functions; `offsets` are those of the carve list.
function M.cu_load(quant, offsets)
  if not has(quant) then return quant.cu_load() end
  return quant.cu_book() .. "\n\n" .. quant.cu_load(offsets["book_" .. quant.type])
end

local function copy(quant, offset, block)
  local to = "((uint32_t *)(void *)isa_smem(" .. offset .. "))[i]"
  return join({
    "for (uint32_t i = isa_thread(); i < " .. quant.book_bytes // 4 .. "; i += " .. block .. ") {",
    "    " .. to .. " = " .. quant.type .. "_book[i];",
    "}",
  }, "\n")
end

-- C text: all threads of a cta of `block` copy the books; it may stand in front of isa_wait_launch.
function M.fill(quants, offsets, block)
  local texts = {}
  for _, quant in ipairs(quants) do
    if has(quant) then texts[#texts + 1] = copy(quant, offsets["book_" .. quant.type], block) end
  end
  return join(texts, "\n")
end

-- C text that stands between that and the first use.
function M.barrier(quants)
  for _, quant in ipairs(quants) do
    if has(quant) then return "isa_barrier();" end
  end
  return ""
end

return M
