-- book.lua -- code books of CUDA kernels: tables that codes number, copied to shared memory where a cta begins. A quant file that
-- needs one has book_bytes (a multiple of 4), cu_book(): the table <type>_book, and cu_load(at): its functions, which read the
-- copy at byte `at` of shared memory.
local cuda = import("lib/descr_cuda.lua")
local M = {}

function M.has(quant) return get(quant, "book_bytes", 0) > 0 end

function M.any(quants)
  for _, quant in ipairs(quants) do
    if M.has(quant) then return true end
  end
  return false
end

-- Adds what the books need to a carve list.
function M.carve(list, quants)
  for _, quant in ipairs(quants) do
    if M.has(quant) then list[#list + 1] = cuda.smem("book_" .. quant.type, quant.book_bytes) end
  end
end

-- The quant file's functions; `offsets` are those of the carve list.
function M.cu_load(quant, offsets)
  if not M.has(quant) then return quant.cu_load() end
  return quant.cu_book() .. "\n\n" .. quant.cu_load(offsets["book_" .. quant.type])
end

-- C text: all threads of a cta of `block` copy the quant's book; a barrier has to follow.
function M.fill(quant, offsets, block)
  if not M.has(quant) then return "" end
  local copy = "(uint32_t *)(void *)isa_smem(" .. offsets["book_" .. quant.type] .. ")"
  return join({
    "for (uint32_t i = isa_thread(); i < " .. quant.book_bytes // 4 .. "; i += " .. block .. ") {",
    "    (" .. copy .. ")[i] = " .. quant.type .. "_book[i];",
    "}",
  }, "\n")
end

return M
