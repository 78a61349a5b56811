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

/* Puts `i` at the end of the list that begins with `first`. */
static void append(rt_queue *q, uint32_t first, uint32_t i) {
    uint32_t last = q->prev[first];
    q->next[last] = i;
    q->prev[i] = last;
    q->next[i] = RT_QUEUE_NONE;
    q->prev[first] = i;
}

/* Puts `i` in its place in a list in order: among the first few. */
static void insert(rt_queue *q, uint32_t rank, uint32_t first, uint32_t i) {
    uint32_t before = RT_QUEUE_NONE;
    uint32_t after = first;
    while (after != RT_QUEUE_NONE && after < i) {
        before = after;
        after = q->next[after];
    }
    if (after == RT_QUEUE_NONE) {
        append(q, first, i);
        return;
    }
    q->next[i] = after;
    q->prev[i] = q->prev[after];
    q->prev[after] = i;
    if (before == RT_QUEUE_NONE) {
        q->head[rank] = i;
    } else {
        q->next[before] = i;
    }
}

void rt_queue_push(rt_queue *q, uint32_t i, uint32_t rank) {
    uint32_t first = q->head[rank];
    q->rank[i] = rank;
    if (first == RT_QUEUE_NONE) {
        set_bit(q, rank);
        q->head[rank] = i;
        q->next[i] = RT_QUEUE_NONE;
        q->prev[i] = i;
    } else if (rank < q->sorted) {
        insert(q, rank, first, i);
    } else {
        append(q, first, i);
    }
}

void rt_queue_remove(rt_queue *q, uint32_t i) {
    uint32_t rank = q->rank[i];
    if (rank == RT_QUEUE_NONE) {
        return;
    }
    q->rank[i] = RT_QUEUE_NONE;
    uint32_t first = q->head[rank];
    uint32_t before = q->prev[i];
    uint32_t after = q->next[i];
    if (i != first) {
        q->next[before] = after;
        q->prev[after == RT_QUEUE_NONE ? first : after] = before;
        return;
    }
    q->head[rank] = after;
    if (after == RT_QUEUE_NONE) {
        clear_bit(q, rank);
    } else {
        q->prev[after] = before; /* the last one */
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

static bool is_sorted(const rt_queue *q, uint32_t i) {
    uint32_t next = q->next[i];
    while (next != RT_QUEUE_NONE && i < next) {
        i = next;
        next = q->next[i];
    }
    return next == RT_QUEUE_NONE;
}

/* Sorts the list of `rank` by item: ascending runs are taken off and merged, lists of like size
 * first. */
static void sort_list(rt_queue *q, uint32_t rank) {
    uint32_t part[32];
    size_t n_parts = 0;
    uint32_t n_runs = 0;
    for (uint32_t i = q->head[rank]; i != RT_QUEUE_NONE;) {
        uint32_t run = i;
        while (q->next[i] != RT_QUEUE_NONE && i < q->next[i]) {
            i = q->next[i];
        }
        uint32_t rest = q->next[i];
        q->next[i] = RT_QUEUE_NONE;
        i = rest;
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
    uint32_t last = all;
    for (uint32_t i = q->next[all]; i != RT_QUEUE_NONE; i = q->next[i]) {
        q->prev[i] = last;
        last = i;
    }
    q->prev[all] = last;
}

uint32_t rt_queue_pop(rt_queue *q, uint32_t *rank) {
    uint32_t r = lowest_rank(q);
    if (r == RT_QUEUE_NONE) {
        return RT_QUEUE_NONE;
    }
    if (r >= q->sorted) {
        if (!is_sorted(q, q->head[r])) {
            sort_list(q, r);
        }
        q->sorted = r + 1;
    }
    uint32_t i = q->head[r];
    rt_queue_remove(q, i);
    *rank = r;
    return i;
}
