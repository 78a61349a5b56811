-- Sampling on a device, in C: the plain twin of its kernels. (A CPU program chooses tokens in runtime/sample.c.)
local descr = import("lib/descr.lua")
local parts = import("lib/sample_parts.lua")

function module.describe(op) return parts.describe(op) end

%%template changed()
/* Token `id`'s logit as the row changes it. */
static float changed(float l, uint32_t id, const rt_pick *pick) {
    for (uint32_t i = 0; i < pick->n_changes; i++) {
        if (pick->changes[i].token == id) {
            return isa_sample_change(l, pick, &pick->changes[i]);
        }
    }
    return l;
}

%%template tiles(V, d)
% local n, tile = parts.tiles(V), parts.tile(V)
${module.changed()}

/* Puts a key among the first ${parts.HEAD}, which are in order. */
static void put(uint64_t *head, uint64_t key) {
    uint32_t at = ${parts.HEAD};
    for (; at > 0 && head[at - 1] > key; at--) {
        if (at < ${parts.HEAD}) {
            head[at] = head[at - 1];
        }
    }
    if (at < ${parts.HEAD}) {
        head[at] = key;
    }
}

${descr.c_open(d)}
    for (uint32_t i = cta_begin; i < cta_end; i++) {
        const uint32_t row = i % p.step->n_logits;
        const uint32_t first = i / p.step->n_logits * ${tile};
        const uint32_t end = ${V} - first < ${tile} ? ${V} : first + ${tile};
        uint64_t *head = p.heads + ((size_t)row * ${n} + first / ${tile}) * ${parts.WORDS};
        for (uint32_t k = 0; k < ${parts.WORDS}; k++) {
            head[k] = ISA_SAMPLE_NONE;
        }
        for (uint32_t id = first; id < end; id++) {
            const float l = changed(p.logits[(size_t)row * ${V} + id], id, &p.step->picks[row]);
            put(head, isa_sample_key(l, id));
            if (!isa_sample_good(l) && head[${parts.HEAD}] == ISA_SAMPLE_NONE) {
                head[${parts.HEAD}] = isa_sample_bad(l, id);
            }
        }
    }
}

%%template total(V, d)
% local n, tile = parts.tiles(V), parts.tile(V)
${module.changed()}

${descr.c_open(d)}
    for (uint32_t i = cta_begin; i < cta_end; i++) {
        const uint32_t row = i % p.step->n_logits;
        const uint32_t first = i / p.step->n_logits * ${tile};
        const uint32_t end = ${V} - first < ${tile} ? ${V} : first + ${tile};
        const rt_pick *pick = &p.step->picks[row];
        const uint64_t *heads = p.heads + (size_t)row * ${n * parts.WORDS};
        uint64_t best = ISA_SAMPLE_NONE;
        for (uint32_t t = 0; t < ${n}; t++) {
            best = heads[t * ${parts.WORDS}] < best ? heads[t * ${parts.WORDS}] : best;
        }
        const float max = isa_sample_logit(best);
        const double temperature = isa_sample_sum_temperature(pick);
        uint64_t sum = 0;
        for (uint32_t id = first; isa_sample_sums(pick) && id < end; id++) {
            const float l = changed(p.logits[(size_t)row * ${V} + id], id, pick);
            sum += isa_sample_weight(l, max, temperature);
        }
        p.totals[(size_t)row * ${n} + first / ${tile}] = sum;
    }
}

%%template pick(V, d)
% local n = parts.tiles(V)
/* The candidates that are known: all up to the worst of the full heads, in order. */
typedef struct known {
    uint64_t key[${n * parts.HEAD}];
    uint32_t n;
    bool all; /* there are no others */
} known;

static void merge(const uint64_t *heads, known *c) {
    uint32_t at[${n}] = {0};
    uint64_t limit = ISA_SAMPLE_NONE;
    for (uint32_t t = 0; t < ${n}; t++) {
        const uint64_t last = heads[t * ${parts.WORDS} + ${parts.HEAD - 1}];
        limit = last < limit ? last : limit;
    }
    c->all = limit == ISA_SAMPLE_NONE;
    for (c->n = 0; c->n < ${n * parts.HEAD}; c->n++) {
        uint32_t from = 0;
        uint64_t best = ISA_SAMPLE_NONE;
        for (uint32_t t = 0; t < ${n}; t++) {
            if (at[t] < ${parts.HEAD} && heads[t * ${parts.WORDS} + at[t]] < best) {
                best = heads[t * ${parts.WORDS} + at[t]];
                from = t;
            }
        }
        if (best == ISA_SAMPLE_NONE || best > limit) {
            return;
        }
        c->key[c->n] = best;
        at[from]++;
    }
}

/* The sum of the first n weights. */
static uint64_t sum_of(const known *c, uint32_t n, double temperature) {
    const float max = isa_sample_logit(c->key[0]);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += isa_sample_weight(isa_sample_logit(c->key[i]), max, temperature);
    }
    return sum;
}

/* The candidate among the first n at which the running sum of weights meets the limit, or n. */
static uint32_t walk(const known *c, uint32_t n, double temperature, const isa_sample_limit *limit) {
    const float max = isa_sample_logit(c->key[0]);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += isa_sample_weight(isa_sample_logit(c->key[i]), max, temperature);
        if (isa_sample_met(limit, sum, i)) {
            return i;
        }
    }
    return n;
}

/* How many of the first n stand in front of the first one whose logit is below `least`. */
static uint32_t not_below(const known *c, uint32_t n, double least) {
    uint32_t i = 0;
    while (i < n && (double)isa_sample_logit(c->key[i]) >= least) {
        i++;
    }
    return i;
}

${include("kernel/sample/choose.lua", {})}

/* The choice of a row that has candidates and no bad logit. */
static uint64_t chosen(const uint64_t *heads, const rt_pick *pick, uint64_t total) {
    known c;
    bool drawn = false;
    merge(heads, &c);
    const uint32_t i = choose(&c, pick, total, &drawn);
    return i == c.n ? isa_sample_choice(0, ${parts.UNDECIDED}, false)
                    : isa_sample_choice((uint32_t)c.key[i], 0, drawn);
}

${descr.c_open(d)}
    for (uint32_t row = cta_begin; row < cta_end; row++) {
        const uint64_t *heads = p.heads + (size_t)row * ${n * parts.WORDS};
        uint64_t best = ISA_SAMPLE_NONE;
        uint64_t bad = ISA_SAMPLE_NONE;
        uint64_t total = 0;
        for (uint32_t t = 0; t < ${n}; t++) {
            const uint64_t *head = heads + t * ${parts.WORDS};
            best = head[0] < best ? head[0] : best;
            bad = head[${parts.HEAD}] < bad ? head[${parts.HEAD}] : bad;
            total += p.totals[(size_t)row * ${n} + t];
        }
        p.choices[row] = bad != ISA_SAMPLE_NONE ? isa_sample_choice((uint32_t)(bad >> 32), (uint32_t)bad, false)
            : best == ISA_SAMPLE_NONE ? isa_sample_choice(0, ${parts.NONE_ALLOWED}, false)
                                      : chosen(heads, &p.step->picks[row], total);
    }
}

%%template
% local d = module.describe(params)
% local does, shapes = parts.head(params)
${descr.c_head(d, "kernel/sample.c.lua", does, shapes)}
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model_abi.h"

#include "${hw.isa}"
#include "isa_sample.h"

${descr.c_params(d)}

${module[stage](V, d)}
