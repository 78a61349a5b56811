/* chunk.c -- see chunk.h. */
#include "chunk.h"

#include <inttypes.h>

#include "gguf_value.h"

enum { CPU_ROWS = 512, DENSE_ROWS = 1024, MOST_ROWS = 8192, LEAST_ROWS = 64, EXPERT_ROWS = 64,
       EXPERTS_MAX = 1 << 20 };

/* An optional key of the architecture's; 0 without it. */
static bool key_of(const lg_gguf *file, const char *arch, const char *key, lb_arena *arena,
                   uint64_t *out, lb_err *err) {
    const char *name = lb_format(arena, err, "%s.%s", arch, key);
    const uint64_t none = 0;
    return name != NULL && lg_gguf_u64(file, name, &none, out, err);
}

/* The rows that the model and the row class want. */
static bool wanted(const lg_subject *s, lb_arena *arena, uint64_t *rows, const char **why,
                   lb_err *err) {
    const char *arch = NULL;
    uint64_t experts = 0;
    uint64_t used = 0;
    *rows = CPU_ROWS;
    *why = "on a CPU more rows cost memory and bring little";
    if (!s->hw->gpu) {
        return true;
    }
    if (!lg_gguf_arch(s->file, arena, &arch, err) ||
        !key_of(s->file, arch, "expert_count", arena, &experts, err) ||
        !key_of(s->file, arch, "expert_used_count", arena, &used, err)) {
        return false;
    }
    *rows = DENSE_ROWS;
    *why = "enough to read weights seldom";
    if (experts == 0 || used == 0 || used > experts || experts > EXPERTS_MAX) {
        return true; /* no mixture, or one that the architecture file is about to refuse */
    }
    while (*rows < MOST_ROWS && *rows * used / experts < EXPERT_ROWS) {
        *rows *= 2;
    }
    *why = lb_format(arena, err,
                     "%" PRIu64 " of %" PRIu64 " experts for a row: an expert sees %" PRIu64
                     " rows on average",
                     used, experts, *rows * used / experts);
    return *why != NULL;
}

static bool has_room(const lg_subject *s, const lg_limits *asked, uint64_t chunk,
                     const lg_pools *pools, lb_arena *tmp, bool *yes, lb_err *err) {
    lg_need need;
    lg_limits limits;
    if (!lg_limits_make(asked->ctx, asked->slots, chunk, &limits, err) ||
        !lg_need_of(s, &limits, tmp, &need, err)) {
        return false;
    }
    *yes = lg_need_fits(&need, pools);
    return true;
}

/* Halves *rows until the pools hold it. What no number of rows makes fit keeps its own; the least
 * is tried before those between, because where the weights do not fit nothing does. */
static bool leave_room(const lg_subject *s, uint64_t ctx, uint64_t slots, const lg_pools *pools,
                       lb_arena *tmp, uint64_t *rows, lb_err *err) {
    const lg_limits asked = {.ctx = ctx, .slots = slots};
    uint64_t least = *rows < LEAST_ROWS ? *rows : LEAST_ROWS;
    bool yes = false;
    if (!has_room(s, &asked, *rows, pools, tmp, &yes, err)) {
        return false;
    }
    if (yes || *rows == least) {
        return true;
    }
    if (!has_room(s, &asked, least, pools, tmp, &yes, err)) {
        return false;
    }
    if (!yes) {
        return true;
    }
    uint64_t n = *rows / 2;
    for (yes = false; n > least; n /= 2) {
        if (!has_room(s, &asked, n, pools, tmp, &yes, err)) {
            return false;
        }
        if (yes) {
            break;
        }
    }
    *rows = yes ? n : least;
    return true;
}

bool lg_chunk_choose(const lg_subject *s, uint64_t ctx, uint64_t slots, const lg_pools *pools,
                     lb_arena *arena, lb_arena *tmp, uint64_t *chunk, const char **why,
                     lb_err *err) {
    uint64_t rows = 0;
    if (!wanted(s, arena, &rows, why, err)) {
        return false;
    }
    if (rows > ctx) {
        rows = ctx;
        *why = "the whole context";
    }
    *chunk = rows;
    if ((pools->vram != 0 || pools->ram != 0) &&
        !leave_room(s, ctx, slots, pools, tmp, chunk, err)) {
        return false;
    }
    if (*chunk != rows) {
        *why = lb_format(arena, err, "the memory that was named has no room for %" PRIu64
                                     "; by halves until it fits",
                         rows);
    }
    return *why != NULL;
}
