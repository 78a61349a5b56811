-- Sampling on a device: what the three stages do, templates/lib/sample_parts.lua and docs/sampling.md say.
local cuda = import("lib/descr_cuda.lua")
local parts = import("lib/sample_parts.lua")
local descr = import("lib/descr.lua")

-- Threads of a cta, by stage.
local THREADS = { tiles = 512, total = 256, pick = 1024 }

-- The next power of two.
local function power_of_two(n)
  local p = 1
  while p < n do p = p * 2 end
  return p
end

-- Keys that the last stage puts in order: whole heads, a power of two of them.
local function sorted_keys(V) return power_of_two(parts.tiles(V)) * parts.HEAD end

local function carve(op)
  local tile = cuda.smem("logits", 4 * parts.tile(op.V))
  if op.stage == "tiles" then
    return { tile, cuda.smem("lists", 8 * parts.HEAD * THREADS.tiles // 32), cuda.smem("bad", 8 * 16) }
  end
  if op.stage == "total" then return { tile, cuda.smem("sums", 8 * THREADS.total // 32) } end
  return { cuda.smem("keys", 8 * sorted_keys(op.V)), cuda.smem("sums", 8 * 32), cuda.smem("words", 8 * 4) }
end

function module.describe(op)
  local c = parts.describe(op)
  return cuda.of(c, {
    axes = c.axes, grid = c.grid, block = THREADS[op.stage], ctas_per_sm = 1, smem = carve(op),
    features = { "shuffle", "redux", "f64" },
  })
end

%%template load_tile(V, threads)
% local tile = parts.tile(V)
/* The logits of a tile, as the row changes them, in shared memory; returns how many. */
ISA_FN uint32_t load_tile(const float *logits, uint32_t first, const rt_pick *pick, float *l) {
    const uint32_t n = ${V} - first < ${tile} ? ${V} - first : ${tile};
    for (uint32_t i = isa_thread(); i < n; i += ${threads}) {
        l[i] = logits[first + i];
    }
    isa_barrier();
    if (isa_thread() < pick->n_changes) {
        const rt_pick_change *c = &pick->changes[isa_thread()];
        if (c->token - first < n) {
            l[c->token - first] = isa_sample_change(l[c->token - first], pick, c);
        }
    }
    isa_barrier();
    return n;
}

%%template tiles(V, d)
% local n, tile, at = parts.tiles(V), parts.tile(V), cuda.smem_offsets(d.smem)
% local warps = d.block // 32
${module.load_tile(V, d.block)}

/* Keys of a warp, two a lane: key i of the 64 in lane i % 32. Those at distance s change places where they are
 * not in order: ascending, unless `down` says otherwise. */
ISA_FN void order_at(uint64_t k[2], uint32_t s, bool down0, bool down1) {
    uint64_t other[2];
    isa_warp_xor2(k, s, other);
    const bool upper = (isa_lane() & s) != 0;
    const bool less0 = other[0] < k[0], less1 = other[1] < k[1];
    k[0] = less0 != (upper != down0) ? other[0] : k[0];
    k[1] = less1 != (upper != down1) ? other[1] : k[1];
}

ISA_FN void order_halves(uint64_t k[2]) {
    const uint64_t low = k[0] < k[1] ? k[0] : k[1], high = k[0] < k[1] ? k[1] : k[0];
    k[0] = low;
    k[1] = high;
}

/* Ascending: bitonic sort. */
ISA_FN void sort64(uint64_t k[2]) {
#pragma unroll
    for (uint32_t size = 2; size < 32; size *= 2) {
        const bool down = (isa_lane() & size) != 0;
#pragma unroll
        for (uint32_t s = size / 2; s > 0; s /= 2) {
            order_at(k, s, down, down);
        }
    }
#pragma unroll
    for (uint32_t s = 16; s > 0; s /= 2) {
        order_at(k, s, false, true);
    }
    order_halves(k);
#pragma unroll
    for (uint32_t s = 16; s > 0; s /= 2) {
        order_at(k, s, false, false);
    }
}

/* The first 64 of two lists in order; `other` is a list's end first. */
ISA_FN void merge64(uint64_t k[2], uint64_t other0, uint64_t other1) {
    k[0] = other0 < k[0] ? other0 : k[0];
    k[1] = other1 < k[1] ? other1 : k[1];
    order_halves(k);
#pragma unroll
    for (uint32_t s = 16; s > 0; s /= 2) {
        order_at(k, s, false, false);
    }
}

${cuda.open(d)}
    const uint32_t row = isa_cta_x(), first = isa_cta_y() * ${tile};
    float *l = (float *)(void *)isa_smem(${at.logits});
    uint64_t *lists = (uint64_t *)(void *)isa_smem(${at.lists});
    uint64_t *bads = (uint64_t *)(void *)isa_smem(${at.bad});
    isa_wait_launch();
    isa_let_launch();
    const uint32_t n = load_tile(p.logits + (size_t)row * ${V}, first, &p.step->picks[row], l);

    /* A warp's first 64, of all pieces of 64 tokens that are its own. */
    uint64_t best[2] = {ISA_SAMPLE_NONE, ISA_SAMPLE_NONE}, bad = ISA_SAMPLE_NONE;
    for (uint32_t piece = isa_warp(); piece < ${tile // 64}; piece += ${warps}) {
        uint64_t k[2];
        for (uint32_t half = 0; half < 2; half++) {
            const uint32_t i = piece * 64 + half * 32 + isa_lane();
            k[half] = i < n ? isa_sample_key(l[i], first + i) : ISA_SAMPLE_NONE;
            if (i < n && !isa_sample_good(l[i]) && bad == ISA_SAMPLE_NONE) {
                bad = isa_sample_bad(l[i], first + i);
            }
        }
        sort64(k);
        uint64_t back[2];
        isa_warp_xor2(k, 31, back);
        merge64(best, back[1], back[0]);
    }
    bad = isa_warp_min64(bad);

    /* Half of the lists join the other half, until there is one. */
    uint64_t *mine = lists + isa_warp() * ${parts.HEAD};
    mine[isa_lane()] = best[0];
    mine[isa_lane() + 32] = best[1];
    if (isa_lane() == 0) {
        bads[isa_warp()] = bad;
    }
    for (uint32_t half = ${warps // 2}; half > 0; half /= 2) {
        isa_barrier();
        if (isa_warp() < half) {
            const uint64_t *other = mine + half * ${parts.HEAD};
            merge64(best, other[63 - isa_lane()], other[31 - isa_lane()]);
            mine[isa_lane()] = best[0];
            mine[isa_lane() + 32] = best[1];
        }
    }
    if (isa_warp() == 0) {
        uint64_t *head = p.heads + ((size_t)row * ${n} + isa_cta_y()) * ${parts.WORDS};
        bad = isa_warp_min64(isa_lane() < ${warps} ? bads[isa_lane()] : ISA_SAMPLE_NONE);
        head[isa_lane()] = best[0];
        head[isa_lane() + 32] = best[1];
        if (isa_lane() == 0) {
            head[${parts.HEAD}] = bad;
        }
    }
}

%%template total(V, d)
% local n, tile, at = parts.tiles(V), parts.tile(V), cuda.smem_offsets(d.smem)
${module.load_tile(V, d.block)}

${cuda.open(d)}
    const uint32_t row = isa_cta_x(), first = isa_cta_y() * ${tile};
    isa_wait_launch();
    isa_let_launch();
    const rt_pick *pick = &p.step->picks[row];
    uint64_t *total = p.totals + (size_t)row * ${n} + isa_cta_y();
    if (!isa_sample_sums(pick)) {
        if (isa_thread() == 0) {
            *total = 0;
        }
        return;
    }
    const uint64_t *heads = p.heads + (size_t)row * ${n * parts.WORDS};
    uint64_t best = ISA_SAMPLE_NONE;
    for (uint32_t t = isa_lane(); t < ${n}; t += 32) {
        best = heads[t * ${parts.WORDS}] < best ? heads[t * ${parts.WORDS}] : best;
    }
    const float max = isa_sample_logit(isa_warp_min64(best));
    const double temperature = isa_sample_sum_temperature(pick);

    float *l = (float *)(void *)isa_smem(${at.logits});
    uint64_t *sums = (uint64_t *)(void *)isa_smem(${at.sums});
    const uint32_t n = load_tile(p.logits + (size_t)row * ${V}, first, pick, l);
    uint64_t sum = 0;
    for (uint32_t i = isa_thread(); i < n; i += ${d.block}) {
        sum += isa_sample_weight(l[i], max, temperature);
    }
    sum = isa_warp_scan64(sum);
    if (isa_lane() == 31) {
        sums[isa_warp()] = sum;
    }
    isa_barrier();
    if (isa_warp() == 0) {
        sum = isa_warp_scan64(isa_lane() < ${d.block // 32} ? sums[isa_lane()] : 0);
        if (isa_lane() == 31) {
            *total = sum;
        }
    }
}

%%template pick(V, d)
% local n, keys, at = parts.tiles(V), sorted_keys(V), cuda.smem_offsets(d.smem)
% local each = math.max(1, keys // d.block)
/* The candidates that are known: all up to the worst of the full heads, in order. The functions below are called by
 * all threads of the cta alike, and all get the result; thread i has keys ${each} i .. */
typedef struct known {
    const uint64_t *key;
    uint64_t *sums;  /* [32], of warps */
    uint64_t *words; /* [2], for one result at a time */
    uint32_t n;
    bool all; /* there are no others */
} known;

/* The sum over threads 0..i of the cta. */
ISA_FN uint64_t scan(const known *c, uint64_t mine) {
    const uint64_t here = isa_warp_scan64(mine);
    isa_barrier();
    if (isa_lane() == 31) {
        c->sums[isa_warp()] = here;
    }
    isa_barrier();
    if (isa_warp() == 0) {
        c->sums[isa_lane()] = isa_warp_scan64(c->sums[isa_lane()]);
    }
    isa_barrier();
    return here + (isa_warp() == 0 ? 0 : c->sums[isa_warp() - 1]);
}

ISA_FN uint64_t weight_of(const known *c, uint32_t i, uint32_t n, double temperature) {
    if (i >= n) {
        return 0;
    }
    return isa_sample_weight(isa_sample_logit(c->key[i]), isa_sample_logit(c->key[0]), temperature);
}

/* The sum of the first n weights. */
ISA_FN uint64_t sum_of(const known *c, uint32_t n, double temperature) {
    uint64_t sum = 0;
    for (uint32_t i = ${each} * isa_thread(); i < ${each} * isa_thread() + ${each}; i++) {
        sum += weight_of(c, i, n, temperature);
    }
    scan(c, sum);
    return c->sums[31];
}

/* The one place that a thread has found, or n. */
ISA_FN uint32_t found(const known *c, uint32_t mine, uint32_t n) {
    isa_barrier();
    if (isa_thread() == 0) {
        c->words[0] = n;
    }
    isa_barrier();
    if (mine < n) {
        c->words[0] = mine;
    }
    isa_barrier();
    return (uint32_t)c->words[0];
}

/* The candidate among the first n at which the running sum of weights meets the limit, or n. */
ISA_FN uint32_t walk(const known *c, uint32_t n, double temperature, const isa_sample_limit *limit) {
    uint64_t weight[${each}], sum = 0;
    for (uint32_t k = 0; k < ${each}; k++) {
        weight[k] = weight_of(c, ${each} * isa_thread() + k, n, temperature);
        sum += weight[k];
    }
    sum = scan(c, sum) - sum;
    uint32_t mine = n;
    for (uint32_t k = 0; k < ${each}; k++) {
        const uint32_t i = ${each} * isa_thread() + k;
        const bool before = i > 0 && isa_sample_met(limit, sum, i - 1);
        sum += weight[k];
        mine = i < n && !before && isa_sample_met(limit, sum, i) ? i : mine;
    }
    return found(c, mine, n);
}

/* How many of the first n stand in front of the first one whose logit is below `least`. */
ISA_FN uint32_t not_below(const known *c, uint32_t n, double least) {
    uint32_t mine = n;
    for (uint32_t k = 0; k < ${each}; k++) {
        const uint32_t i = ${each} * isa_thread() + k;
        if (i < n && (double)isa_sample_logit(c->key[i]) < least) {
            mine = i == 0 || (double)isa_sample_logit(c->key[i - 1]) >= least ? i : mine;
        }
    }
    return found(c, mine, n);
}

${include("kernel/sample/choose.lua", {})}

/* Heads in order, two by two, until they are one list. */
ISA_FN void merge(uint64_t *key) {
    for (uint32_t size = 128; size <= ${keys}; size *= 2) {
        for (uint32_t s = size / 2; s > 0; s /= 2) {
            isa_barrier();
            for (uint32_t c = isa_thread(); c < ${keys // 2}; c += ${d.block}) {
                const uint32_t low = c / s * 2 * s + c % s;
                const uint32_t high = s == size / 2 ? c / s * 2 * s + size - 1 - c % s : low + s;
                const uint64_t a = key[low], b = key[high];
                key[low] = a < b ? a : b;
                key[high] = a < b ? b : a;
            }
        }
    }
    isa_barrier();
}

ISA_FN bool is_known(uint64_t key, uint64_t limit) {
    return key <= limit && key != ISA_SAMPLE_NONE;
}

/* How many candidates are known, of keys in order. */
ISA_FN uint32_t up_to(const known *c, uint64_t limit) {
    uint32_t mine = ${keys};
    for (uint32_t k = 0; k < ${each}; k++) {
        const uint32_t i = ${each} * isa_thread() + k;
        if (i < ${keys} && !is_known(c->key[i], limit)) {
            mine = i == 0 || is_known(c->key[i - 1], limit) ? i : mine;
        }
    }
    return found(c, mine, ${keys});
}

${cuda.open(d)}
    const uint32_t row = isa_cta_x();
    uint64_t *key = (uint64_t *)(void *)isa_smem(${at.keys});
    uint64_t *words = (uint64_t *)(void *)isa_smem(${at.words});
    isa_wait_launch();
    isa_let_launch();
    const uint64_t *heads = p.heads + (size_t)row * ${n * parts.WORDS};
    for (uint32_t i = isa_thread(); i < ${keys}; i += ${d.block}) {
        const uint32_t tile = i / ${parts.HEAD};
        key[i] = tile < ${n} ? heads[tile * ${parts.WORDS} + i % ${parts.HEAD}] : ISA_SAMPLE_NONE;
    }

    /* The first candidate, the worst of the full heads, the first bad token, the sum over the vocabulary. */
    uint64_t best = ISA_SAMPLE_NONE, limit = ISA_SAMPLE_NONE, bad = ISA_SAMPLE_NONE, total = 0;
    if (isa_warp() == 0) {
        for (uint32_t t = isa_lane(); t < ${n}; t += 32) {
            const uint64_t *head = heads + t * ${parts.WORDS};
            best = head[0] < best ? head[0] : best;
            limit = head[${parts.HEAD - 1}] < limit ? head[${parts.HEAD - 1}] : limit;
            bad = head[${parts.HEAD}] < bad ? head[${parts.HEAD}] : bad;
            total += p.totals[(size_t)row * ${n} + t];
        }
        best = isa_warp_min64(best);
        limit = isa_warp_min64(limit);
        bad = isa_warp_min64(bad);
        total = isa_warp_scan64(total);
        if (isa_lane() == 31) {
            words[0] = best;
            words[1] = limit;
            words[2] = bad;
            words[3] = total;
        }
    }
    isa_barrier();
    best = words[0];
    limit = words[1];
    bad = words[2];
    total = words[3];
    if (bad != ISA_SAMPLE_NONE || best == ISA_SAMPLE_NONE) {
        if (isa_thread() == 0) {
            p.choices[row] = bad == ISA_SAMPLE_NONE
                ? isa_sample_choice(0, ${parts.NONE_ALLOWED}, false)
                : isa_sample_choice((uint32_t)(bad >> 32), (uint32_t)bad, false);
        }
        return;
    }
    const rt_pick *pick = &p.step->picks[row];
    if (pick->temperature <= 0.0f) {
        if (isa_thread() == 0) {
            p.choices[row] = isa_sample_choice((uint32_t)best, 0, false);
        }
        return;
    }
    merge(key);
    known c = {key, (uint64_t *)(void *)isa_smem(${at.sums}), words, 0, limit == ISA_SAMPLE_NONE};
    c.n = up_to(&c, limit);
    bool drawn = false;
    const uint32_t i = choose(&c, pick, total, &drawn);
    if (isa_thread() == 0) {
        p.choices[row] = i == c.n ? isa_sample_choice(0, ${parts.UNDECIDED}, false)
                                  : isa_sample_choice((uint32_t)key[i], 0, drawn);
    }
}

%%template
% local d = module.describe(params)
% local does, shapes = parts.head(params)
${cuda.head(d, "kernel/sample.cu.lua", does, shapes)}

${cuda.params(d)}

${module[stage](V, d)}
