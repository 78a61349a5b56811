/* queue.c -- lists by rank under a tree of bits, see queue.h. */
#include "token/queue.h"

#include <string.h>

bool rt_queue_new(rt_queue *q, uint32_t n_ranks, uint32_t n_items, lb_arena *arena, lb_err *err) {
    *q = (rt_queue){.n_ranks = n_ranks};
    q->head = lb_alloc_n(arena, n_ranks, sizeof *q->head, err);
    q->rank = lb_alloc_n(arena, n_items, sizeof *q->rank, err);
    q->next = lb_alloc_n(arena, n_items, sizeof *q->next, err);
    q->prev = lb_alloc_n(arena, n_items, sizeof *q->prev, err);
    if (q->head == NULL || q->rank == NULL || q->next == NULL || q->prev == NULL) {
        return false;
    }
    memset(q->head, 0xFF, n_ranks * sizeof *q->head);
    uint32_t n = n_ranks;
    do {
        n = (n + 63) / 64;
        n = n == 0 ? 1 : n;
        q->bits[q->n_levels] = lb_alloc_n(arena, n, sizeof **q->bits, err);
        if (q->bits[q->n_levels] == NULL) {
            return false;
        }
        q->n_levels++;
    } while (n > 1);
    return true;
}

void rt_queue_begin(rt_queue *q, uint32_t n_items) {
    memset(q->rank, 0xFF, n_items * sizeof *q->rank);
    q->sorted = 0;
}

static void set_bit(rt_queue *q, uint32_t rank) {
    for (uint32_t level = 0; level < q->n_levels; level++) {
        uint64_t *word = &q->bits[level][rank >> 6];
        bool was_empty = *word == 0;
        *word |= UINT64_C(1) << (rank & 63);
        if (!was_empty) {
            return;
        }
        rank >>= 6;
    }
}

static void clear_bit(rt_queue *q, uint32_t rank) {
    for (uint32_t level = 0; level < q->n_levels; level++) {
        uint64_t *word = &q->bits[level][rank >> 6];
        *word &= ~(UINT64_C(1) << (rank & 63));
        if (*word != 0) {
            return;
        }
        rank >>= 6;
    }
}

static uint32_t lowest_rank(const rt_queue *q) {
    if (q->bits[q->n_levels - 1][0] == 0) {
        return RT_QUEUE_NONE;
    }
    uint32_t at = 0;
    for (uint32_t level = q->n_levels; level > 0; level--) {
        at = at << 6 | (uint32_t)__builtin_ctzll(q->bits[level - 1][at]);
    }
    return at;
}

/* Puts `i` between `before` and `after`, either of which may be RT_QUEUE_NONE. */
static void link_between(rt_queue *q, uint32_t rank, uint32_t before, uint32_t i, uint32_t after) {
    q->prev[i] = before;
    q->next[i] = after;
    if (before == RT_QUEUE_NONE) {
        q->head[rank] = i;
    } else {
        q->next[before] = i;
    }
    if (after != RT_QUEUE_NONE) {
        q->prev[after] = i;
    }
}

void rt_queue_push(rt_queue *q, uint32_t i, uint32_t rank) {
    uint32_t before = RT_QUEUE_NONE;
    uint32_t after = q->head[rank];
    if (after == RT_QUEUE_NONE) {
        set_bit(q, rank);
    }
    if (rank < q->sorted) {
        while (after != RT_QUEUE_NONE && after < i) {
            before = after;
            after = q->next[after];
        }
    }
    q->rank[i] = rank;
    link_between(q, rank, before, i, after);
}

void rt_queue_remove(rt_queue *q, uint32_t i) {
    uint32_t rank = q->rank[i];
    if (rank == RT_QUEUE_NONE) {
        return;
    }
    q->rank[i] = RT_QUEUE_NONE;
    uint32_t before = q->prev[i];
    uint32_t after = q->next[i];
    if (after != RT_QUEUE_NONE) {
        q->prev[after] = before;
    }
    if (before != RT_QUEUE_NONE) {
        q->next[before] = after;
        return;
    }
    q->head[rank] = after;
    if (after == RT_QUEUE_NONE) {
        clear_bit(q, rank);
    }
}

/* Merges two ascending lists, linked by `next` only. */
static uint32_t merge_lists(rt_queue *q, uint32_t a, uint32_t b) {
    uint32_t first = RT_QUEUE_NONE;
    uint32_t *end = &first;
    while (a != RT_QUEUE_NONE && b != RT_QUEUE_NONE) {
        uint32_t *low = a < b ? &a : &b;
        *end = *low;
        end = &q->next[*low];
        *low = q->next[*low];
    }
    *end = a != RT_QUEUE_NONE ? a : b;
    return first;
}

/* Sorts the list of `rank` by item. Pairs mostly came from left to right, so the list is mostly a
 * few descending runs; runs are taken off, turned round and merged, lists of like size first. */
static void sort_list(rt_queue *q, uint32_t rank) {
    uint32_t part[32];
    size_t n_parts = 0;
    uint32_t n_runs = 0;
    for (uint32_t i = q->head[rank]; i != RT_QUEUE_NONE;) {
        uint32_t run = RT_QUEUE_NONE;
        do {
            uint32_t next = q->next[i];
            q->next[i] = run;
            run = i;
            i = next;
        } while (i != RT_QUEUE_NONE && i < run);
        for (uint32_t size = ++n_runs; (size & 1) == 0; size >>= 1) {
            run = merge_lists(q, part[--n_parts], run);
        }
        part[n_parts++] = run;
    }
    uint32_t all = RT_QUEUE_NONE;
    while (n_parts > 0) {
        all = merge_lists(q, part[--n_parts], all);
    }
    q->head[rank] = all;
    for (uint32_t before = RT_QUEUE_NONE; all != RT_QUEUE_NONE; all = q->next[all]) {
        q->prev[all] = before;
        before = all;
    }
}

uint32_t rt_queue_pop(rt_queue *q, uint32_t *rank) {
    uint32_t r = lowest_rank(q);
    if (r == RT_QUEUE_NONE) {
        return RT_QUEUE_NONE;
    }
    if (r >= q->sorted) {
        sort_list(q, r);
        q->sorted = r + 1;
    }
    uint32_t i = q->head[r];
    rt_queue_remove(q, i);
    *rank = r;
    return i;
}
