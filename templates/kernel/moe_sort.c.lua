local name = import("lib/name.lua")
local descr = import("lib/descr.lua")
local moe = import("lib/moe_parts.lua")

function module.describe(op)
  moe.check(op)
  local ids = descr.operand("ids", "read", "T * " .. op.n_used, 4, 64)
  ids.below = op.E
  local entries = moe.ENTRY .. " * " .. moe.n_tiles(op)
  return {
    name = name.kernel("moe_sort", {}, "i32", { op.E, op.n_used, moe.shared(op) and "shared" or "routed", moe.TILE }),
    axes = {}, grid = { "1", "1", "1" }, block = 1,
    params = { descr.param("ids", "const int32_t *"), descr.param("pairs", "int32_t *"),
               descr.param("map", "int32_t *"), descr.step_param() },
    operands = { ids, descr.operand("pairs", "write", moe.n_pairs(op), 4, 64),
                 descr.operand("map", "write", entries, 4, 64) },
    covers = { { param = "pairs", sorted = moe.sorted(op),
                 scattered = "a pair's place is behind those of lesser experts, and of its own expert before it" },
               { param = "map", sorted = moe.sorted(op),
                 scattered = "an expert's entries are behind those of lesser ones; the rest are empty" } },
    scratch = 4 * (moe.experts(op) + 1) + 256, reduction = "none", tolerance = 0.0,
    bytes = "T * " .. (4 * op.n_used + 4 * moe.per_row(op)) .. " + 16 * " .. moe.n_tiles(op), flops = "0",
    includes = { "model_abi.h" }, features = {},
  }
end

%%template
% local d = module.describe(params)
% local P, EE, shared = moe.per_row(params), moe.experts(params), moe.shared(params)
% local does = "pairs in the order of their experts, and tiles of at most " .. moe.TILE .. " pairs of one expert"
% local shapes = "ids [n_rows][" .. n_used .. "];  pairs [n_rows * " .. P .. "];  map [tiles][" .. moe.ENTRY .. "]"
${descr.c_head(d, "kernel/moe_sort.c.lua", does, shapes)}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

${descr.c_params(d)}

/* Entries for the n pairs of expert e, from place `first` on, at `tile`; the entry behind them. */
static uint32_t add_tiles(int32_t *map, uint32_t tile, uint32_t e, uint32_t first, uint32_t n) {
    for (uint32_t i = 0; i < n; i += ${moe.TILE}, tile++) {
        const uint32_t left = n - i < ${moe.TILE} ? n - i : ${moe.TILE};
        const int32_t entry[${moe.ENTRY}] = {(int32_t)e, (int32_t)(first + i), (int32_t)left, 0};
        memcpy(map + (size_t)tile * ${moe.ENTRY}, entry, sizeof entry);
    }
    return tile;
}

${descr.c_open(d)}
    if (cta_begin == cta_end) {
        return;
    }
    const uint32_t n_rows = p.step->n_rows, n_ids = n_rows * ${n_used};
    const uint32_t n_tiles = ${moe.n_tiles_c(params, "n_rows")};
    uint32_t place[${EE}];
    memset(place, 0, sizeof place);
    for (uint32_t i = 0; i < n_ids; i++) {
        place[p.ids[i]]++;
    }
% if shared then
    place[${E}] = n_rows;
% end

    /* Counts become first places. */
    uint32_t first = 0, tile = 0;
    for (uint32_t e = 0; e < ${EE}; e++) {
        const uint32_t n = place[e];
        tile = add_tiles(p.map, tile, e, first, n);
        place[e] = first;
        first += n;
    }
    memset(p.map + (size_t)tile * ${moe.ENTRY}, 0, (size_t)(n_tiles - tile) * ${4 * moe.ENTRY});
    for (uint32_t i = 0; i < n_ids; i++) {
        p.pairs[place[p.ids[i]]++] = (int32_t)${shared and "(i + i / " .. n_used .. ")" or "i"};
    }
% if shared then
    for (uint32_t t = 0; t < n_rows; t++) {
        p.pairs[place[${E}]++] = (int32_t)(t * ${P} + ${n_used});
    }
% end
}
