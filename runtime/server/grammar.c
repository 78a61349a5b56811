/* grammar.c -- see grammar.h. */
#include "server/grammar.h"

#include <string.h>

enum { CLOSURE_MAX = 4096, REPEAT_MAX = 10000, CHECK_MAX = 20000000 };

/* ---- building */

void rt_grammar_init(rt_grammar *g, lb_arena *arena) {
    *g = (rt_grammar){.arena = arena};
    rt_g_place(g); /* 0 */
    if (!g->failed) {
        g->nodes[0].kind = RT_G_RETURN;
    }
}

static void fail(rt_grammar *g) {
    g->failed = true;
}

/* Room for one more of n elements. */
static bool grow(rt_grammar *g, void **list, uint32_t n, uint32_t *cap, size_t elem_bytes) {
    if (g->failed || n < *cap) {
        return !g->failed;
    }
    uint32_t more = *cap == 0 ? 256 : *cap * 2;
    void *p = lb_alloc_n(g->arena, more, elem_bytes, &g->err);
    if (p == NULL) {
        fail(g);
        return false;
    }
    if (n > 0) {
        memcpy(p, *list, n * elem_bytes);
    }
    *list = p;
    *cap = more;
    return true;
}

static uint32_t add_node(rt_grammar *g, rt_gkind kind, uint32_t a, uint32_t b) {
    if (!g->failed && g->n_nodes == RT_G_NODES_MAX) {
        lb_err_set(&g->err, LB_LIMIT, "the schema takes more than %d steps", RT_G_NODES_MAX);
        fail(g);
    }
    void *list = g->nodes;
    if (!grow(g, &list, g->n_nodes, &g->cap_nodes, sizeof *g->nodes)) {
        return 0;
    }
    g->nodes = list;
    g->nodes[g->n_nodes] = (rt_gnode){(uint8_t)kind, a, b};
    return g->n_nodes++;
}

uint32_t rt_g_set(rt_grammar *g, const rt_gset *set, uint32_t next) {
    uint32_t i = 0;
    while (i < g->n_sets && memcmp(&g->sets[i], set, sizeof *set) != 0) {
        i++;
    }
    if (i == g->n_sets) {
        void *list = g->sets;
        if (!grow(g, &list, g->n_sets, &g->cap_sets, sizeof *g->sets)) {
            return 0;
        }
        g->sets = list;
        g->sets[g->n_sets++] = *set;
    }
    return add_node(g, RT_G_SET, i, next);
}

uint32_t rt_g_range(rt_grammar *g, uint8_t from, uint8_t to, uint32_t next) {
    rt_gset s = {{0, 0, 0, 0}};
    rt_gset_add(&s, from, to);
    return rt_g_set(g, &s, next);
}

uint32_t rt_g_text(rt_grammar *g, const char *s, size_t n, uint32_t next) {
    for (size_t i = n; i > 0; i--) {
        next = rt_g_range(g, (uint8_t)s[i - 1], (uint8_t)s[i - 1], next);
    }
    return next;
}

uint32_t rt_g_word(rt_grammar *g, const char *s, uint32_t next) {
    return rt_g_text(g, s, strlen(s), next);
}

uint32_t rt_g_either(rt_grammar *g, uint32_t a, uint32_t b) {
    return a == b ? a : add_node(g, RT_G_SPLIT, a, b);
}

uint32_t rt_g_call(rt_grammar *g, uint32_t rule, uint32_t next) {
    return add_node(g, RT_G_CALL, rule, next);
}

uint32_t rt_g_place(rt_grammar *g) {
    return add_node(g, RT_G_SPLIT, 0, 0);
}

void rt_g_set_place(rt_grammar *g, uint32_t place, uint32_t a, uint32_t b) {
    if (!g->failed) {
        g->nodes[place].a = a;
        g->nodes[place].b = b;
    }
}

uint32_t rt_g_repeat(rt_grammar *g, uint32_t rule, uint32_t least, uint32_t most, uint32_t next) {
    uint32_t at = next;
    uint32_t some = most == UINT32_MAX ? least : most;
    if (some > REPEAT_MAX || least > some) {
        if (!g->failed) {
            lb_err_set(&g->err, LB_LIMIT,
                       "%u repetitions at least and %u at most; up to %d are "
                       "supported",
                       least, most, REPEAT_MAX);
            fail(g);
        }
        return 0;
    }
    if (most == UINT32_MAX) {
        uint32_t loop = rt_g_place(g);
        rt_g_set_place(g, loop, rt_g_call(g, rule, loop), next);
        at = loop;
    }
    for (uint32_t i = some; i > 0; i--) {
        uint32_t more = rt_g_call(g, rule, at);
        at = i > least ? rt_g_either(g, more, next) : more;
    }
    return at;
}

bool rt_grammar_done(rt_grammar *g, uint32_t root, lb_err *err) {
    g->root = root;
    if (g->failed) {
        *err = g->err;
    }
    return !g->failed;
}

/* ---- walking */

static uint32_t push(rt_gmachine *m, uint32_t node, uint32_t parent) {
    for (uint32_t i = m->n_frames; i > 1 && i + 16 > m->n_frames; i--) { /* often there already */
        if (m->frames[i - 1].node == node && m->frames[i - 1].parent == parent) {
            return i - 1;
        }
    }
    if (m->n_frames == RT_G_FRAMES_MAX) {
        m->overflow = true;
        return 0;
    }
    m->frames[m->n_frames] = (rt_gframe){node, parent, m->frames[parent].depth + 1};
    return m->n_frames++;
}

static void add_way(rt_gmachine *m, rt_gways *to, uint32_t node, uint32_t frame) {
    for (uint32_t i = 0; i < to->n; i++) {
        if (to->way[i].node == node && to->way[i].frame == frame) {
            return;
        }
    }
    if (to->n == RT_G_WAYS_MAX) {
        m->overflow = true;
        return;
    }
    to->way[to->n].node = node;
    to->way[to->n].frame = frame;
    to->n++;
}

/* All nodes that read a byte, from here on; `work` bounds what a strange graph could cost. */
static void close_over(rt_gmachine *m, rt_gways *to, uint32_t node, uint32_t frame,
                       uint32_t *work) {
    const rt_grammar *g = m->g;
    for (;;) {
        const rt_gnode *n = &g->nodes[node];
        if (++*work > CLOSURE_MAX) {
            m->overflow = true;
            return;
        }
        if (n->kind == RT_G_SET) {
            add_way(m, to, node, frame);
            return;
        }
        if (n->kind == RT_G_SPLIT) {
            if (n->a != n->b) {
                close_over(m, to, n->a, frame, work);
            }
            node = n->b;
        } else if (n->kind == RT_G_CALL) {
            if (n->b != 0) { /* a call in last place returns where its caller would */
                if (m->frames[frame].depth == RT_G_DEPTH_MAX) {
                    return;
                }
                frame = push(m, n->b, frame);
            }
            node = n->a;
        } else if (frame == 0) {
            to->end = true;
            return;
        } else {
            node = m->frames[frame].node;
            frame = m->frames[frame].parent;
        }
    }
}

static bool read_byte(rt_gmachine *m, const rt_gways *from, uint8_t byte, rt_gways *to) {
    const rt_grammar *g = m->g;
    uint32_t work = 0;
    to->n = 0;
    to->end = false;
    for (uint32_t i = 0; i < from->n; i++) {
        const rt_gnode *n = &g->nodes[from->way[i].node];
        if (rt_gset_has(&g->sets[n->a], byte)) {
            close_over(m, to, n->b, from->way[i].frame, &work);
        }
    }
    return !m->overflow && (to->n > 0 || to->end);
}

static const rt_gways *read_all(rt_gmachine *m, const char *s, size_t n) {
    const rt_gways *from = &m->now;
    for (size_t i = 0; i < n; i++) {
        rt_gways *to = &m->tried[i & 1U];
        if (!read_byte(m, from, (uint8_t)s[i], to)) {
            return NULL;
        }
        from = to;
    }
    return from;
}

static void find_first(rt_gmachine *m) {
    m->first = (rt_gset){{0, 0, 0, 0}};
    for (uint32_t i = 0; i < m->now.n; i++) {
        const rt_gset *s = &m->g->sets[m->g->nodes[m->now.way[i].node].a];
        for (int k = 0; k < 4; k++) {
            m->first.bits[k] |= s->bits[k];
        }
    }
}

/* Frames that no way needs any more are dropped, so that they do not pile up with the answer. */
static void tidy(rt_gmachine *m) {
    if (m->n_frames < RT_G_FRAMES_MAX / 2) {
        return;
    }
    uint32_t stack[RT_G_DEPTH_MAX + 1];
    rt_gframe *old = m->frames;
    rt_gframe *kept = m->spare;
    uint32_t n = 1;
    kept[0] = old[0];
    for (uint32_t i = 0; i < m->now.n; i++) {
        uint32_t depth = 0;
        for (uint32_t f = m->now.way[i].frame; f != 0; f = old[f].parent) {
            stack[depth++] = f;
        }
        uint32_t parent = 0;
        while (depth > 0) {
            const rt_gframe *f = &old[stack[--depth]];
            uint32_t k = 1;
            while (k < n && (kept[k].node != f->node || kept[k].parent != parent)) {
                k++;
            }
            if (k == n) {
                kept[n++] = (rt_gframe){f->node, parent, f->depth};
            }
            parent = k;
        }
        m->now.way[i].frame = parent;
    }
    m->frames = kept;
    m->spare = old;
    m->n_frames = n;
}

static bool too_many_ways(lb_err *err) {
    return lb_err_set(err, LB_LIMIT, "the schema leaves more ways open than %d", RT_G_WAYS_MAX);
}

/* What it costs to keep n ways apart. */
static uint64_t cost(const rt_gways *w) {
    return (uint64_t)w->n * w->n / 2 + 1;
}

/* Bytes that several ways of tried[0] share: what they open together. */
static uint64_t look_ahead(rt_gmachine *m) {
    const rt_gways *from = &m->tried[0];
    uint64_t all = 0;
    for (unsigned byte = 0; byte < 256 && from->n > 1 && !m->overflow; byte++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < from->n && n < 2; i++) {
            const rt_gnode *node = &m->g->nodes[from->way[i].node];
            n += rt_gset_has(&m->g->sets[node->a], (uint8_t)byte);
        }
        if (n > 1) {
            read_byte(m, from, (uint8_t)byte, &m->tried[1]);
            all += cost(&m->tried[1]);
        }
        all += from->n;
    }
    return all;
}

bool rt_gmachine_check(rt_gmachine *m, lb_err *err) {
    const rt_grammar *g = m->g;
    m->tried[0] = m->now;
    uint64_t all = look_ahead(m);
    for (uint32_t i = 0; i < g->n_nodes && all < CHECK_MAX && !m->overflow; i++) {
        uint32_t work = 0;
        if (g->nodes[i].kind == RT_G_SET) {
            m->n_frames = 1;
            m->tried[0].n = 0;
            close_over(m, &m->tried[0], g->nodes[i].b, 0, &work);
            all += work + cost(&m->tried[0]) + look_ahead(m);
        }
    }
    return !m->overflow || too_many_ways(err);
}

bool rt_gmachine_new(const rt_grammar *g, lb_arena *arena, rt_gmachine **out, lb_err *err) {
    rt_gmachine *m = lb_alloc(arena, sizeof *m, err);
    uint32_t work = 0;
    if (m == NULL ||
        (m->frames = lb_alloc_n(arena, RT_G_FRAMES_MAX, sizeof *m->frames, err)) == NULL ||
        (m->spare = lb_alloc_n(arena, RT_G_FRAMES_MAX, sizeof *m->spare, err)) == NULL) {
        return false;
    }
    m->g = g;
    m->n_frames = 1;
    close_over(m, &m->now, g->root, 0, &work);
    if (m->overflow) {
        return too_many_ways(err);
    }
    find_first(m);
    *out = m;
    return true;
}

bool rt_gmachine_fits(rt_gmachine *m, const char *s, size_t n) {
    if (!rt_gset_has(&m->first, (uint8_t)s[0])) {
        return false;
    }
    uint32_t n_frames = m->n_frames;
    bool ok = read_all(m, s, n) != NULL;
    m->n_frames = n_frames;
    m->overflow = false;
    return ok;
}

bool rt_gmachine_take(rt_gmachine *m, const char *s, size_t n) {
    const rt_gways *w = n == 0 ? &m->now : read_all(m, s, n);
    if (w == NULL) {
        return false;
    }
    if (w != &m->now) {
        memcpy(&m->now, w, sizeof m->now);
    }
    tidy(m);
    find_first(m);
    return true;
}

bool rt_gmachine_may_end(const rt_gmachine *m) {
    return m->now.end;
}

bool rt_gmachine_must_end(const rt_gmachine *m) {
    return m->now.end && m->now.n == 0;
}
