/* grammar.h -- what an answer may be, byte by byte: a grammar as a graph, and a machine that walks
 * it.
 *
 * The graph is built from its end to its beginning: every builder takes the node that comes next
 * and returns the node that begins. Rules that are used in several places, or in themselves, are
 * called. The machine keeps all ways through the graph that fit what was read; a way is a node and
 * a stack of nodes to return to. Nothing backtracks; time is bounded by the number of ways. */
#ifndef RT_SERVER_GRAMMAR_H
#define RT_SERVER_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum {
    RT_G_NODES_MAX = 200000,
    RT_G_WAYS_MAX = 256,  /* of a machine at once */
    RT_G_DEPTH_MAX = 128, /* calls inside each other: a deeper way ends */
    RT_G_FRAMES_MAX = 1 << 14
};

typedef enum rt_gkind {
    RT_G_RETURN, /* from a call, or the end */
    RT_G_SET,    /* a byte of sets[a], then b */
    RT_G_SPLIT,  /* a or b */
    RT_G_CALL    /* a, and b after it returns */
} rt_gkind;

typedef struct rt_gnode {
    uint8_t kind;
    uint32_t a, b;
} rt_gnode;

typedef struct rt_gset {
    uint64_t bits[4];
} rt_gset;

typedef struct rt_grammar {
    lb_arena *arena;
    rt_gnode *nodes; /* nodes[0] is RT_G_RETURN */
    rt_gset *sets;
    uint32_t n_nodes, cap_nodes, n_sets, cap_sets;
    uint32_t root;
    lb_err err; /* the first failure; builders then return 0 and do nothing */
    bool failed;
} rt_grammar;

void rt_grammar_init(rt_grammar *g, lb_arena *arena);

/* Builders; `next` comes after. */
uint32_t rt_g_set(rt_grammar *g, const rt_gset *set, uint32_t next);
uint32_t rt_g_range(rt_grammar *g, uint8_t from, uint8_t to, uint32_t next);
uint32_t rt_g_text(rt_grammar *g, const char *s, size_t n, uint32_t next);
uint32_t rt_g_word(rt_grammar *g, const char *s, uint32_t next); /* NUL-terminated */
uint32_t rt_g_either(rt_grammar *g, uint32_t a, uint32_t b);
uint32_t rt_g_call(rt_grammar *g, uint32_t rule, uint32_t next);

/* A place for a split whose ways come later: for loops and for rules that call themselves. */
uint32_t rt_g_place(rt_grammar *g);
void rt_g_set_place(rt_grammar *g, uint32_t place, uint32_t a, uint32_t b);

/* Between least and most (UINT32_MAX: no end) calls of `rule`. LB_LIMIT where that takes too many
 * nodes. */
uint32_t rt_g_repeat(rt_grammar *g, uint32_t rule, uint32_t least, uint32_t most, uint32_t next);

bool rt_grammar_done(rt_grammar *g, uint32_t root, lb_err *err);

static inline void rt_gset_add(rt_gset *s, uint8_t from, uint8_t to) {
    for (unsigned i = from; i <= to; i++) {
        s->bits[i >> 6] |= UINT64_C(1) << (i & 63U);
    }
}

static inline bool rt_gset_has(const rt_gset *s, uint8_t byte) {
    return (s->bits[byte >> 6] >> (byte & 63U) & 1U) != 0;
}

/* ---- the machine */

typedef struct rt_gframe {
    uint32_t node, parent, depth;
} rt_gframe;

typedef struct rt_gways {
    uint32_t n;
    bool end; /* what was read is a whole answer */
    struct {
        uint32_t node, frame; /* node is an RT_G_SET */
    } way[RT_G_WAYS_MAX];
} rt_gways;

typedef struct rt_gmachine {
    const rt_grammar *g;
    rt_gframe *frames, *spare; /* [RT_G_FRAMES_MAX] each; 0 is the bottom */
    uint32_t n_frames;
    bool overflow; /* more ways or frames than there is room for: nothing is accepted */
    rt_gways now, tried[2];
    rt_gset first; /* bytes that may come next */
} rt_gmachine;

/* LB_NO_MEMORY; LB_LIMIT for a grammar with too many ways. */
bool rt_gmachine_new(const rt_grammar *g, lb_arena *arena, rt_gmachine **out, lb_err *err);

/* Of a new machine, which is of no use behind it: LB_LIMIT if a single way opens more within two
 * bytes than there is room for, anywhere. (Several together may still do so later: then nothing is
 * accepted.) */
bool rt_gmachine_check(rt_gmachine *m, lb_err *err);

/* True if these bytes may come next; n >= 1. */
bool rt_gmachine_fits(rt_gmachine *m, const char *s, size_t n);

/* They have come; false (and no change) if they may not. */
bool rt_gmachine_take(rt_gmachine *m, const char *s, size_t n);

/* What was read may be all; nothing can follow. */
bool rt_gmachine_may_end(const rt_gmachine *m);
bool rt_gmachine_must_end(const rt_gmachine *m);

#endif
