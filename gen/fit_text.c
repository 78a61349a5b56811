/* fit_text.c -- see fit_text.h. */
#include "fit_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "size_text.h"

static uint64_t arena_total(const lg_need *n) {
    uint64_t sum = 0; /* lg_need_sum has seen that it fits */
    for (int i = 0; i < LG_N_ARENAS; i++) {
        sum += n->arenas[i];
    }
    return sum;
}

/* ---- for people */

static void row(lb_text *out, const char *name, uint64_t bytes, const char *remark) {
    char size[32];
    lb_text_printf(out, "    %-22s %15" PRIu64 "  %11s%s%s\n", name, bytes,
                   lg_size_text(bytes, size), remark[0] == '\0' ? "" : "  ", remark);
}

static void arena_rows(const lg_need *n, lb_text *out) {
    row(out, "weights", n->arenas[LG_ARENA_WEIGHTS], "");
    row(out, "KV cache", n->arenas[LG_ARENA_KV], "");
    if (n->kv_window > 0) {
        row(out, "  layers that see all", n->kv_full, "");
        row(out, "  sliding windows", n->kv_window, "");
    }
    row(out, "scratch", n->arenas[LG_ARENA_SCRATCH], "");
    row(out, "logits, step", n->arenas[LG_ARENA_IO], "");
    row(out, "total", arena_total(n), "allocated once, at start");
}

static void host_rows(const lg_need *n, bool gpu, lb_text *out) {
    if (gpu) {
        row(out, "pinned, for good", n->mirror, "the other half of logits and step");
        row(out, "pinned, to load", n->stages, "until the weights are there");
    }
    row(out, "all else, at most", n->heap, "whatever the model: code, stacks, requests");
}

static void pool_rows(const lg_need *n, const lg_hw_row *hw, lb_text *out) {
    bool one = lg_one_pool(hw);
    lb_text_printf(out, "  %s\n", !one ? "GPU memory" : hw->gpu ? "memory, one pool" : "memory");
    arena_rows(n, out);
    if (hw->gpu) {
        row(out, "driver, at most", n->driver, "context, code, graphs: a bound");
    }
    if (!one) {
        row(out, "needed in all", n->vram, "");
        lb_text_add(out, "  host memory\n");
    }
    host_rows(n, hw->gpu, out);
    row(out, "needed in all", n->ram, "");
}

static void cost_row(lb_text *out, const char *what, const lg_cost *c) {
    char size[32];
    if (c->there) {
        lb_text_printf(out, "  1,024 tokens of %-8s %15" PRIu64 "  %11s\n", what, c->bytes,
                       lg_size_text(c->bytes, size));
    }
}

/* What a named pool has, beside what is needed of it. */
static void pool_verdict(lb_text *out, const char *head, const char *pool, uint64_t need,
                         const char *option, uint64_t have) {
    char size[3][32];
    bool enough = need <= have;
    lb_text_printf(out, "  %-14s %sneeds %s of %s, %s is %s, %s %s\n", head,
                   head[0] == '\0' ? "" : enough ? "yes: " : "no: ", lg_size_text(need, size[0]),
                   pool, option, lg_size_text(have, size[1]),
                   lg_size_text(enough ? have - need : need - have, size[2]),
                   enough ? "left" : "too few");
}

static void combination(lb_text *out, const lg_need *n, bool one) {
    char vram[32];
    char ram[32];
    lb_text_printf(out, "--ctx %" PRIu64 " --chunk %" PRIu64 " --slots %" PRIu64 ", which needs ",
                   n->limits.ctx, n->limits.chunk, n->limits.slots);
    if (!one) {
        lb_text_printf(out, "%s of GPU memory,\n  %-14s ", lg_size_text(n->vram, vram), "");
    }
    lb_text_printf(out, "%s of %s\n", lg_size_text(n->ram, ram), one ? "memory" : "host memory");
}

/* What the least program is made of, in a pool that has no room for it. */
static void least_parts(lb_text *out, const lg_need *n, bool gpu_pool, bool one) {
    uint64_t rest = gpu_pool ? n->vram : n->ram;
    const struct {
        const char *name;
        uint64_t bytes;
    } parts[] = {{"weights", gpu_pool || one ? n->arenas[LG_ARENA_WEIGHTS] : 0},
                 {"driver, at most", gpu_pool || one ? n->driver : 0},
                 {"all else, at most, whatever the model", gpu_pool ? 0 : n->heap}};
    char size[32];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].bytes > 0) {
            rest -= parts[i].bytes;
            lb_text_printf(out, "  %-14s %11s  %s\n", "", lg_size_text(parts[i].bytes, size),
                           parts[i].name);
        }
    }
    lb_text_printf(out, "  %-14s %11s  the rest\n", "", lg_size_text(rest, size));
}

static void nothing_fits(lb_text *out, const lg_fit *f, const lg_pools *pools, bool one) {
    bool gpu_pool = pools->vram != 0 && f->least.vram > pools->vram;
    char size[32];
    lb_text_printf(out,
                   "  %-14s none, whatever --ctx, --chunk and --slots are: one slot of one token "
                   "needs\n  %-14s %s of %s\n",
                   "nearest", "", lg_size_text(gpu_pool ? f->least.vram : f->least.ram, size),
                   gpu_pool ? "GPU memory" : one ? "memory" : "host memory");
    least_parts(out, &f->least, gpu_pool, one);
}

static void most_row(lb_text *out, const char *head, const char *option, const lg_most *m) {
    char number[24] = "none";
    if (m->value != 0) {
        snprintf(number, sizeof number, "%" PRIu64, m->value);
    }
    lb_text_printf(out, "  %-14s %-7s %-8s limited by %s\n", head, option, number, m->binds);
}

void lg_fit_verdict(const lg_fit *f, const lg_pools *pools, const lg_hw_row *hw, lb_text *out) {
    bool one = lg_one_pool(hw);
    const char *head = "fits";
    bool gpu_first = pools->vram != 0 && (f->need.vram > pools->vram || f->need.ram <= pools->ram ||
                                          pools->ram == 0);
    if (!f->asked) {
        return;
    }
    if (gpu_first) { /* the first line is the one that decides */
        pool_verdict(out, head, "GPU memory", f->need.vram, "--vram", pools->vram);
        head = "";
    }
    if (pools->ram != 0) {
        pool_verdict(out, head, one ? "memory" : "host memory", f->need.ram, "--ram", pools->ram);
    }
    if (pools->vram != 0 && !gpu_first) {
        pool_verdict(out, "", "GPU memory", f->need.vram, "--vram", pools->vram);
    }
    if (f->near) {
        lb_text_printf(out, "  %-14s ", "nearest");
        combination(out, &f->nearest, one);
    } else if (!f->fits && !lg_need_fits(&f->least, pools)) {
        nothing_fits(out, f, pools, one);
    } else if (!f->fits) {
        lb_text_printf(out, "  %-14s none was found\n", "nearest");
    }
    most_row(out, "largest alone", "--ctx", &f->ctx);
    most_row(out, "", "--chunk", &f->chunk);
    most_row(out, "", "--slots", &f->slots);
    lb_text_add(out, "\n");
}

void lg_fit_text(const lg_fit *f, const lg_hw_row *hw, lb_text *out) {
    pool_rows(&f->need, hw, out);
    lb_text_add(out, "\n");
    cost_row(out, "context", &f->ctx_cost);
    cost_row(out, "chunk", &f->chunk_cost);
}

/* ---- as JSON */

static const lg_value *need_value(lg_builder *b, const lg_need *n, const lg_hw_row *hw) {
    lg_value *v = lg_build_map(b);
    lg_build_set_uint(b, v, "ctx", n->limits.ctx);
    lg_build_set_uint(b, v, "chunk", n->limits.chunk);
    lg_build_set_uint(b, v, "slots", n->limits.slots);
    lg_build_set_uint(b, v, "kv_full", n->kv_full);
    lg_build_set_uint(b, v, "kv_window", n->kv_window);
    if (hw->gpu) {
        lg_build_set_uint(b, v, "driver_at_most", n->driver);
        lg_build_set_uint(b, v, "pinned", n->mirror);
        lg_build_set_uint(b, v, "pinned_to_load", n->stages);
    }
    lg_build_set_uint(b, v, "heap_at_most", n->heap);
    if (!lg_one_pool(hw)) {
        lg_build_set_uint(b, v, "vram", n->vram);
    }
    lg_build_set_uint(b, v, "ram", n->ram);
    return v;
}

static void put_most(lg_builder *b, lg_value *to, const char *key, const lg_most *m) {
    lg_value *v = lg_build_map(b);
    lg_build_set_uint(b, v, "value", m->value);
    lg_build_set_string(b, v, "binds", m->binds);
    lg_build_set(b, to, key, v);
}

static void put_cost(lg_builder *b, lg_value *root, const lg_fit *f) {
    lg_value *v = lg_build_map(b);
    if (f->ctx_cost.there) {
        lg_build_set_uint(b, v, "ctx_1024", f->ctx_cost.bytes);
    }
    if (f->chunk_cost.there) {
        lg_build_set_uint(b, v, "chunk_1024", f->chunk_cost.bytes);
    }
    lg_build_set(b, root, "cost", v);
}

static void put_answer(lg_builder *b, lg_value *root, const lg_fit *f, const lg_pools *pools,
                       const lg_hw_row *hw) {
    lg_value *v = lg_build_map(b);
    lg_value *largest = lg_build_map(b);
    lg_build_set_bool(b, v, "fits", f->fits);
    lg_build_set_uint(b, v, "vram", pools->vram);
    lg_build_set_uint(b, v, "ram", pools->ram);
    put_most(b, largest, "ctx", &f->ctx);
    put_most(b, largest, "chunk", &f->chunk);
    put_most(b, largest, "slots", &f->slots);
    lg_build_set(b, v, "largest", largest);
    if (f->near) {
        lg_build_set(b, v, "nearest", need_value(b, &f->nearest, hw));
    }
    lg_build_set(b, v, "least", need_value(b, &f->least, hw));
    lg_build_set(b, root, "fit", v);
}

void lg_fit_value(lg_builder *b, lg_value *root, const lg_fit *f, const lg_pools *pools,
                  const lg_hw_row *hw) {
    lg_value *memory = lg_build_map(b);
    for (int i = 0; i < LG_N_ARENAS; i++) {
        lg_build_set_uint(b, memory, LG_ARENA_NAMES[i], f->need.arenas[i]);
    }
    lg_build_set_uint(b, memory, "total", arena_total(&f->need));
    lg_build_set(b, root, "memory", memory);
    lg_build_set(b, root, "pools", need_value(b, &f->need, hw));
    put_cost(b, root, f);
    if (f->asked) {
        put_answer(b, root, f, pools, hw);
    }
}
