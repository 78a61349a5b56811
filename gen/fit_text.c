/* fit_text.c -- see fit_text.h. */
#include "fit_text.h"

#include <inttypes.h>

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
    row(out, "all else, at most", n->heap, "code, tokenizer, stacks, requests");
}

static void pool_rows(const lg_need *n, const lg_hw_row *hw, lb_text *out) {
    bool one = lg_one_pool(hw);
    lb_text_printf(out, "  %s\n", !one ? "GPU memory" : hw->gpu ? "memory, one pool" : "memory");
    arena_rows(n, out);
    if (hw->gpu) {
        row(out, "driver, at most", n->driver, "context, code, graphs: a bound");
    }
    if (!one) {
        row(out, "together", n->vram, "");
        lb_text_add(out, "  host memory\n");
    }
    host_rows(n, hw->gpu, out);
    row(out, "together", n->ram, "");
}

static void cost_row(lb_text *out, const char *what, const lg_cost *c) {
    char size[32];
    if (c->there) {
        lb_text_printf(out, "  1,024 tokens of %-8s %15" PRIu64 "  %11s\n", what, c->bytes,
                       lg_size_text(c->bytes, size));
    }
}

static void most_row(lb_text *out, const char *what, const lg_most *m) {
    if (m->value == 0) {
        lb_text_printf(out, "    %-8s none would: %s\n", what, m->binds);
    } else {
        lb_text_printf(out, "    %-8s %-9" PRIu64 " then %s\n", what, m->value, m->binds);
    }
}

static void combination(lb_text *out, const char *what, const lg_need *n) {
    char vram[32];
    char ram[32];
    lb_text_printf(out, "  %s--ctx %" PRIu64 " --chunk %" PRIu64 " --slots %" PRIu64 ": ", what,
                   n->limits.ctx, n->limits.chunk, n->limits.slots);
    if (n->vram > 0) {
        lb_text_printf(out, "%s of GPU memory, ", lg_size_text(n->vram, vram));
    }
    lb_text_printf(out, "%s of memory\n", lg_size_text(n->ram, ram));
}

static void answer(const lg_fit *f, const lg_pools *pools, lb_text *out) {
    const struct {
        const char *name;
        uint64_t need, have;
    } rows[] = {{"--vram", f->need.vram, pools->vram}, {"--ram", f->need.ram, pools->ram}};
    char size[32];
    lb_text_printf(out, "\n  fits           %s\n", f->fits ? "yes" : "no");
    for (int i = 0; i < 2; i++) {
        bool enough = rows[i].need <= rows[i].have;
        if (rows[i].have != 0) {
            uint64_t n = enough ? rows[i].have - rows[i].need : rows[i].need - rows[i].have;
            lb_text_printf(out, "    %-7s %15" PRIu64 " bytes %s, %s\n", rows[i].name, n,
                           enough ? "are left" : "too few", lg_size_text(n, size));
        }
    }
    if (f->near) {
        combination(out, "nearest yes    ", &f->nearest);
    } else if (!f->fits) {
        combination(out, "no yes; least  ", &f->least);
    }
    lb_text_add(out, "  largest that fits, with all else as asked\n");
    most_row(out, "ctx", &f->ctx);
    most_row(out, "chunk", &f->chunk);
    most_row(out, "slots", &f->slots);
}

void lg_fit_text(const lg_fit *f, const lg_pools *pools, const lg_hw_row *hw, lb_text *out) {
    pool_rows(&f->need, hw, out);
    lb_text_add(out, "\n");
    cost_row(out, "context", &f->ctx_cost);
    cost_row(out, "chunk", &f->chunk_cost);
    if (f->asked) {
        answer(f, pools, out);
    }
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
