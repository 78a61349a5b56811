-- Ctas of 8 warps, a warp an expert. Every cta counts all pairs of all experts for itself, so that none waits for
-- another; then a warp knows where its expert's pairs and tiles begin, and goes through all picks once more to place
-- them, in their order.
local descr = import("lib/descr.lua")
local cuda = import("lib/descr_cuda.lua")
local c_kernel = import("kernel/moe_sort.c.lua")
local moe = import("lib/moe_parts.lua")

local WARPS = 8

function module.describe(op)
  local n = ceil_div(moe.experts(op), WARPS)
  local axis = descr.dim_axis("experts", moe.experts(op), "x")
  axis.tile = WARPS
  return cuda.of(c_kernel.describe(op), {
    axes = { axis }, grid = { tostring(n), "1", "1" }, block = 32 * WARPS, ctas_per_sm = 1,
    smem = { cuda.smem("count", 4 * moe.experts(op)) }, features = { "ballot", "redux" },
  })
end

%%template place_four(shared, n_used, E)
/* Four picks of each lane, one pick behind the other: those before mine in the warp, then mine. */
const uint32_t lower = (1u << lane) - 1;
uint32_t hit[4], before = 0, total = 0;
#pragma unroll
for (uint32_t c = 0; c < 4; c++) {
    hit[c] = isa_ballot(id.w[c] == e);
    before += isa_popcount(hit[c] & lower);
    total += isa_popcount(hit[c]);
}
#pragma unroll
for (uint32_t c = 0; c < 4; c++) {
    if (id.w[c] == e) {
        const uint32_t i = at + 4 * lane + c;
        p.pairs[place + before] = (int32_t)${shared and "(i + i / " .. n_used .. ")" or "i"};
        before++;
    }
}
place += total;

%%template
% local d = module.describe(params)
% local P, EE, shared = moe.per_row(params), moe.experts(params), moe.shared(params)
% local does = "pairs in the order of their experts, and tiles of at most " .. moe.TILE .. " pairs of one expert"
% local shapes = "ids [n_rows][" .. n_used .. "];  pairs [n_rows * " .. P .. "];  map [tiles][" .. moe.ENTRY .. "]"
${cuda.head(d, "kernel/moe_sort.cu.lua", does, shapes)}

${cuda.params(d)}

/* Words 4 i .. 4 i + 3 of the picks; behind the end what no expert is. */
ISA_FN isa_x4 picks_at(const int32_t *ids, uint32_t i, uint32_t n) {
    isa_x4 v = {{~0u, ~0u, ~0u, ~0u}};
    if (4 * i + 4 <= n) {
        return isa_load_x4(ids + 4 * (size_t)i);
    }
#pragma unroll
    for (uint32_t c = 0; c < 3; c++) {
        if (4 * i + c < n) {
            v.w[c] = isa_load_x1(ids + 4 * (size_t)i + c);
        }
    }
    return v;
}

${cuda.open(d)}
    uint32_t *count = (uint32_t *)(void *)isa_smem(0);
    const uint32_t lane = isa_lane(), e = isa_cta_x() * ${WARPS} + isa_warp();
    for (uint32_t i = isa_thread(); i < ${EE}; i += ${32 * WARPS}) {
        count[i] = 0;
    }
    isa_barrier();
    isa_wait_launch();
    isa_let_launch();
    const uint32_t n_rows = p.step->n_rows, n = n_rows * ${n_used};
    for (uint32_t i = isa_thread(); 4 * i < n; i += ${32 * WARPS}) {
        const isa_x4 id = picks_at(p.ids, i, n);
#pragma unroll
        for (uint32_t c = 0; c < 4; c++) {
            if (id.w[c] < ${E}) {
                isa_count(count + id.w[c]);
            }
        }
    }
% if shared then
    if (isa_thread() == 0) {
        count[${E}] = n_rows;
    }
% end
    isa_barrier();
    if (e >= ${EE}) {
        return;
    }

    /* Pairs and tiles of the experts before mine. */
    int32_t pairs_before = 0, tiles_before = 0;
    for (uint32_t i = lane; i < e; i += 32) {
        pairs_before += (int32_t)count[i];
        tiles_before += (int32_t)((count[i] + ${moe.TILE - 1}) / ${moe.TILE});
    }
    const uint32_t first = (uint32_t)isa_warp_isum(pairs_before), tile = (uint32_t)isa_warp_isum(tiles_before);
    const uint32_t mine = count[e], my_tiles = (mine + ${moe.TILE - 1}) / ${moe.TILE};
    for (uint32_t i = lane; i < my_tiles; i += 32) {
        const uint32_t left = mine - ${moe.TILE} * i;
        const isa_x4 entry = {{e, first + ${moe.TILE} * i, left < ${moe.TILE} ? left : ${moe.TILE}, 0}};
        isa_store_x4(p.map + (size_t)(tile + i) * ${moe.ENTRY}, entry);
    }
    if (e == ${EE - 1}) {
        const uint32_t n_tiles = ${moe.n_tiles_c(params, "n_rows")};
        for (uint32_t i = tile + my_tiles + lane; i < n_tiles; i += 32) {
            const isa_x4 none = {};
            isa_store_x4(p.map + (size_t)i * ${moe.ENTRY}, none);
        }
% if shared then
        for (uint32_t t = lane; t < n_rows; t += 32) {
            p.pairs[first + t] = (int32_t)(t * ${P} + ${n_used});
        }
        return;
% end
    }

    uint32_t place = first;
    for (uint32_t at = 0; at < n && place < first + mine; at += 128) {
        const isa_x4 id = picks_at(p.ids, at / 4 + lane, n);
        ${module.place_four(shared, n_used, E)}
    }
}
