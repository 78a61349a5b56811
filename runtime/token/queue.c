/* queue.c -- lists by rank under a tree of bits, see queue.h. */
#include "token/queue.h"

#include <string.h>

bool rt_queue_reserve(rt_queue *q, uint64_t n_items, lb_arena *arena, lb_err *err) {
    rt_queued *items = lb_alloc_n(arena, n_items, sizeof *items, err);
    q->items = items != NULL ? items : q->items;
    return items != NULL;
}

bool rt_queue_new(rt_queue *q, uint32_t n_ranks, lb_arena *arena, lb_err *err) {
    *q = (rt_queue){.n_ranks = n_ranks};
    q->head = lb_alloc_n(arena, n_ranks, sizeof *q->head, err);
    q->mixed = lb_alloc_n(arena, n_ranks / 64 + 1, sizeof *q->mixed, err);
    if (q->head == NULL || q->mixed == NULL) {
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
    memset(q->items, 0xFF, n_items * sizeof *q->items);
    q->sorted = 0;
    q->lowest = RT_QUEUE_NONE;
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
    rt_queued *items = q->items;
    uint32_t last = items[first].prev;
    items[last].next = i;
    items[i].prev = last;
    items[i].next = RT_QUEUE_NONE;
    items[first].prev = i;
    if (i < last) {
        uint32_t rank = items[first].rank;
        q->mixed[rank / 64] |= UINT64_C(1) << (rank & 63);
    }
}

/* Puts `i` in its place in a list in order: among the first few. */
static void insert(rt_queue *q, uint32_t rank, uint32_t first, uint32_t i) {
    rt_queued *items = q->items;
    uint32_t before = RT_QUEUE_NONE;
    uint32_t after = first;
    while (after != RT_QUEUE_NONE && after < i) {
        before = after;
        after = items[after].next;
    }
    if (after == RT_QUEUE_NONE) {
        append(q, first, i);
        return;
    }
    items[i].next = after;
    items[i].prev = items[after].prev;
    items[after].prev = i;
    if (before == RT_QUEUE_NONE) {
        q->head[rank] = i;
    } else {
        items[before].next = i;
    }
}

void rt_queue_push(rt_queue *q, uint32_t i, uint32_t rank, uint32_t value) {
    uint32_t first = q->head[rank];
    q->items[i].rank = rank;
    q->items[i].value = value;
    if (first == RT_QUEUE_NONE) {
        set_bit(q, rank);
        q->head[rank] = i;
        q->items[i].next = RT_QUEUE_NONE;
        q->items[i].prev = i;
        q->lowest = rank < q->lowest ? rank : q->lowest;
    } else if (rank < q->sorted) {
        insert(q, rank, first, i);
    } else {
        append(q, first, i);
    }
}

/* Takes the first item of a list off it. */
static void remove_first(rt_queue *q, uint32_t rank, uint32_t i) {
    uint32_t after = q->items[i].next;
    q->items[i].rank = RT_QUEUE_NONE;
    q->head[rank] = after;
    if (after == RT_QUEUE_NONE) {
        clear_bit(q, rank);
    } else {
        q->items[after].prev = q->items[i].prev; /* the last one */
    }
}

void rt_queue_remove(rt_queue *q, uint32_t i) {
    rt_queued *items = q->items;
    uint32_t rank = items[i].rank;
    if (rank == RT_QUEUE_NONE) {
        return;
    }
    uint32_t first = q->head[rank];
    if (i == first) {
        remove_first(q, rank, i);
        return;
    }
    uint32_t before = items[i].prev;
    uint32_t after = items[i].next;
    items[i].rank = RT_QUEUE_NONE;
    items[before].next = after;
    items[after == RT_QUEUE_NONE ? first : after].prev = before;
}

/* Merges two ascending lists, linked by `next` only. */
static uint32_t merge_lists(rt_queue *q, uint32_t a, uint32_t b) {
    uint32_t first = RT_QUEUE_NONE;
    uint32_t *end = &first;
    while (a != RT_QUEUE_NONE && b != RT_QUEUE_NONE) {
        uint32_t *low = a < b ? &a : &b;
        *end = *low;
        end = &q->items[*low].next;
        *low = *end;
    }
    *end = a != RT_QUEUE_NONE ? a : b;
    return first;
}

/* Sorts the list of `rank` by item: ascending runs are taken off and merged, lists of like size
 * first. */
static void sort_list(rt_queue *q, uint32_t rank) {
    rt_queued *items = q->items;
    uint32_t part[32];
    size_t n_parts = 0;
    uint32_t n_runs = 0;
    for (uint32_t i = q->head[rank]; i != RT_QUEUE_NONE;) {
        uint32_t run = i;
        while (items[i].next != RT_QUEUE_NONE && i < items[i].next) {
            i = items[i].next;
        }
        uint32_t rest = items[i].next;
        items[i].next = RT_QUEUE_NONE;
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
    for (uint32_t i = items[all].next; i != RT_QUEUE_NONE; i = items[i].next) {
        items[i].prev = last;
        last = i;
    }
    items[all].prev = last;
}

uint32_t rt_queue_pop(rt_queue *q, uint32_t *rank) {
    uint32_t r = q->lowest;
    if (r == RT_QUEUE_NONE || q->head[r] == RT_QUEUE_NONE) {
        r = q->lowest = lowest_rank(q);
        if (r == RT_QUEUE_NONE) {
            return RT_QUEUE_NONE;
        }
    }
    if (r >= q->sorted) {
        uint64_t bit = UINT64_C(1) << (r & 63);
        if ((q->mixed[r / 64] & bit) != 0) {
            q->mixed[r / 64] &= ~bit;
            sort_list(q, r);
        }
        q->sorted = r + 1;
    }
    uint32_t i = q->head[r];
    remove_first(q, r, i);
    *rank = r;
    return i;
}
