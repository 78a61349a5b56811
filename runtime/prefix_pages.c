/* prefix_pages.c -- see prefix_pages.h. Linux. */
#define _GNU_SOURCE
#include "prefix_pages.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "base/num.h"

enum { CELL_MAX_BYTES = 16 * 1024, CELL_MIN_BYTES = 64, OS_PAGE_BYTES = 4096 };

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* ---- memory */

/* Cells are as large as the smaller part, rounded up, but no more than CELL_MAX_BYTES: little is
 * lost at the ends of parts. */
static void choose_cell(rt_pages *p) {
    uint64_t least = CELL_MAX_BYTES;
    for (int k = 0; k < RT_N_PARTS; k++) {
        if (p->part_bytes[k] > 0 && p->part_bytes[k] < least) {
            least = p->part_bytes[k];
        }
    }
    p->cell_bytes = (uint32_t)(lb_ceil_div(least, CELL_MIN_BYTES) * CELL_MIN_BYTES);
    for (int k = 0; k < RT_N_PARTS; k++) {
        p->part_cells[k] = (uint32_t)lb_ceil_div(p->part_bytes[k], p->cell_bytes);
    }
}

/* Present at once: a page that is refused later could only be answered by a signal. */
static bool take(rt_pages *p, uint64_t n, lb_err *err) {
    p->map = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->map == MAP_FAILED) {
        p->map = NULL;
        return lb_err_set(err, LB_RESOURCES, "prefix store: cannot map %" PRIu64 " bytes: %s", n,
                          strerror(errno));
    }
    p->map_bytes = n;
    madvise(p->map, n, MADV_HUGEPAGE);
    if (madvise(p->map, n, MADV_POPULATE_WRITE) == 0) {
        return true;
    }
    if (errno != EINVAL) {
        return lb_err_set(err, LB_RESOURCES, "prefix store: cannot have %" PRIu64 " bytes: %s", n,
                          strerror(errno));
    }
    for (uint64_t i = 0; i < n; i += OS_PAGE_BYTES) {
        ((volatile uint8_t *)p->map)[i] = 0;
    }
    return true;
}

static void fill_free_lists(rt_pages *p) {
    for (uint32_t i = 0; i < p->n_cells; i++) {
        p->next[i] = i + 1 < p->n_cells ? i + 1 : RT_NO_CELL;
    }
    for (uint32_t i = 1; i < p->n_pages; i++) {
        p->page[i].sibling = i + 1 < p->n_pages ? i + 1 : 0;
    }
    p->free_cell = 0;
    p->free_page = 1;
    p->n_free_cells = p->n_cells;
    p->page[0].cell[0] = p->page[0].cell[1] = RT_NO_CELL;
    p->page[0].n_tokens = RT_PAGE;
}

bool rt_pages_open(rt_pages *p, uint64_t n_bytes, const uint64_t part_bytes[RT_N_PARTS],
                   uint32_t n_more, lb_err *err) {
    uint64_t fixed = (uint64_t)(n_more + 1) * sizeof(rt_page);
    uint64_t have = rt_memory_available();
    *p = (rt_pages){.clock = 1};
    memcpy(p->part_bytes, part_bytes, sizeof p->part_bytes);
    choose_cell(p);
    uint64_t each = p->cell_bytes + sizeof(rt_page) + sizeof p->next[0];
    uint64_t n = n_bytes > fixed ? (n_bytes - fixed) / each : 0;
    uint64_t need = p->part_cells[0] + (uint64_t)p->part_cells[1];
    if (n < need || n > UINT32_MAX / 2) {
        return lb_err_set(err, LB_RESOURCES,
                          "prefix store: %" PRIu64 " bytes; the least is %" PRIu64
                          " for a page of %d tokens, the most %" PRIu64 "; 0 for none",
                          n_bytes, fixed + need * each, RT_PAGE, fixed + UINT32_MAX / 2 * each);
    }
    if (n_bytes > have) {
        return lb_err_set(err, LB_RESOURCES,
                          "prefix store: %" PRIu64 " bytes; %" PRIu64 " are available; 0 for none",
                          n_bytes, have);
    }
    p->n_cells = (uint32_t)n;
    p->n_pages = (uint32_t)n + n_more + 1;
    if (!take(p, n * each + fixed, err)) {
        rt_pages_close(p);
        return false;
    }
    p->cells = p->map; /* its size is a multiple of 64 */
    p->page = (rt_page *)(void *)(p->cells + n * p->cell_bytes);
    p->next = (uint32_t *)(void *)(p->page + p->n_pages);
    fill_free_lists(p);
    return true;
}

void rt_pages_close(rt_pages *p) {
    if (p->map != NULL) {
        munmap(p->map, p->map_bytes);
    }
    *p = (rt_pages){0};
}

/* ---- lists by last use; the root is head and tail of both: newer[k] of it is the oldest page,
 * older[k] the newest */

static void unlink_use(rt_pages *p, uint32_t page, uint32_t k) {
    rt_page *g = &p->page[page];
    p->page[g->newer[k]].older[k] = g->older[k];
    p->page[g->older[k]].newer[k] = g->newer[k];
}

static void link_use(rt_pages *p, uint32_t page, uint32_t k) {
    rt_page *g = &p->page[page];
    g->newer[k] = 0;
    g->older[k] = p->page[0].older[k];
    p->page[g->older[k]].newer[k] = page;
    p->page[0].older[k] = page;
    g->used[k] = p->clock;
}

void rt_pages_touch(rt_pages *p, uint32_t page, uint32_t k) {
    if (page != 0 && (k == RT_WHOLE || p->page[page].cell[RT_RING] != RT_NO_CELL)) {
        unlink_use(p, page, k);
        link_use(p, page, k);
    }
}

/* ---- parts and pages go */

void rt_pages_changed(rt_pages *p, uint32_t page, bool tokens) {
    rt_page *g = &p->page[page];
    if (tokens && g->has_file && p->gone != NULL) {
        p->gone(p->gone_arg, g);
        g->has_file = false;
    }
    p->n_dirty += !g->dirty;
    g->dirty = true;
}

void rt_pages_drop_part(rt_pages *p, uint32_t page, uint32_t k) {
    rt_page *g = &p->page[page];
    if (g->cell[k] == RT_NO_CELL) {
        return;
    }
    uint32_t last = g->cell[k];
    while (p->next[last] != RT_NO_CELL) {
        last = p->next[last];
    }
    p->next[last] = p->free_cell;
    p->free_cell = g->cell[k];
    p->n_free_cells += p->part_cells[k];
    g->cell[k] = RT_NO_CELL;
    g->n_held[k] = 0;
    rt_pages_changed(p, page, false);
    if (k == RT_RING) {
        unlink_use(p, page, RT_RING);
    }
}

static void unlink_child(rt_pages *p, uint32_t page) {
    uint32_t *at = &p->page[p->page[page].parent].child;
    while (*at != page) {
        at = &p->page[*at].sibling;
    }
    *at = p->page[page].sibling;
}

void rt_pages_remove(rt_pages *p, uint32_t page) {
    while (page != 0 && p->page[page].child == 0) {
        rt_page *g = &p->page[page];
        uint32_t parent = g->parent;
        for (uint32_t k = 0; k < RT_N_PARTS; k++) {
            rt_pages_drop_part(p, page, k);
        }
        rt_pages_changed(p, page, true);
        g->dirty = false;
        p->n_dirty--;
        unlink_use(p, page, RT_WHOLE);
        unlink_child(p, page);
        g->sibling = p->free_page;
        p->free_page = page;
        p->n_used_pages--;
        page = parent;
        g = &p->page[page];
        if (g->cell[RT_WHOLE] != RT_NO_CELL || g->cell[RT_RING] != RT_NO_CELL ||
            g->used[RT_WHOLE] >= p->clock) {
            return;
        }
    }
}

/* What was used the longest ago goes, unless that was now. Pages are used after those that follow
 * them, so the oldest has none behind it; if it had, they would go first. */
static bool evict(rt_pages *p) {
    uint32_t page = p->page[0].newer[RT_WHOLE];
    uint32_t ring = p->page[0].newer[RT_RING];
    if (ring != 0 && p->page[ring].used[RT_RING] < p->clock &&
        (page == 0 || p->page[ring].used[RT_RING] < p->page[page].used[RT_WHOLE])) {
        rt_pages_drop_part(p, ring, RT_RING);
        p->n_evicted++;
        if (p->page[ring].cell[RT_WHOLE] == RT_NO_CELL && p->page[ring].used[RT_WHOLE] < p->clock) {
            rt_pages_remove(p, ring);
        }
        return true;
    }
    while (page != 0 && p->page[page].child != 0) {
        page = p->page[page].child;
    }
    if (page == 0 || p->page[page].used[RT_WHOLE] >= p->clock) {
        return false;
    }
    rt_pages_remove(p, page);
    p->n_evicted++;
    return true;
}

/* ---- pages come */

uint32_t rt_pages_child(const rt_pages *p, uint32_t page, const uint32_t *tokens, uint32_t n,
                        uint32_t *same) {
    uint32_t best = 0;
    *same = 0;
    for (uint32_t i = p->page[page].child; i != 0; i = p->page[i].sibling) {
        const rt_page *g = &p->page[i];
        uint32_t k = 0;
        while (k < n && k < g->n_tokens && g->tokens[k] == tokens[k]) {
            k++;
        }
        if (k > *same) {
            *same = k;
            best = i;
        }
    }
    return best;
}

uint32_t rt_pages_add(rt_pages *p, uint32_t parent, const uint32_t *tokens, uint32_t n) {
    while (p->free_page == 0) {
        if (!evict(p)) {
            return 0;
        }
    }
    uint32_t page = p->free_page;
    rt_page *g = &p->page[page];
    p->free_page = g->sibling;
    p->n_used_pages++;
    *g = (rt_page){.parent = parent,
                   .sibling = p->page[parent].child,
                   .n_tokens = n,
                   .begin = parent == 0 ? 0 : p->page[parent].begin + RT_PAGE,
                   .cell = {RT_NO_CELL, RT_NO_CELL}};
    memcpy(g->tokens, tokens, n * sizeof *tokens);
    p->page[parent].child = page;
    link_use(p, page, RT_WHOLE);
    rt_pages_changed(p, page, false);
    return page;
}

bool rt_pages_add_part(rt_pages *p, uint32_t page, uint32_t k) {
    while (p->n_free_cells < p->part_cells[k]) {
        if (!evict(p)) {
            return false;
        }
    }
    rt_page *g = &p->page[page];
    g->cell[k] = p->free_cell;
    uint32_t last = p->free_cell;
    for (uint32_t i = 1; i < p->part_cells[k]; i++) {
        last = p->next[last];
    }
    p->free_cell = p->next[last];
    p->next[last] = RT_NO_CELL;
    p->n_free_cells -= p->part_cells[k];
    if (k == RT_RING) {
        link_use(p, page, RT_RING);
    }
    return true;
}

/* ---- bytes */

/* The piece at `offset` of the part that begins with `cell`, no more than n bytes of it. */
static uint8_t *piece(const rt_pages *p, uint32_t cell, uint64_t offset, uint64_t *n) {
    for (uint64_t i = offset / p->cell_bytes; i > 0; i--) {
        cell = p->next[cell];
    }
    uint64_t at = offset % p->cell_bytes;
    *n = *n < p->cell_bytes - at ? *n : p->cell_bytes - at;
    return p->cells + (uint64_t)cell * p->cell_bytes + at;
}

void rt_pages_put(rt_pages *p, uint32_t cell, uint64_t offset, const uint8_t *at, uint64_t n) {
    for (uint64_t done = 0; done < n;) {
        uint64_t now = n - done;
        uint8_t *to = piece(p, cell, offset + done, &now);
        memcpy(to, at + done, now);
        done += now;
    }
}

void rt_pages_get(const rt_pages *p, uint32_t cell, uint64_t offset, uint8_t *at, uint64_t n) {
    for (uint64_t done = 0; done < n;) {
        uint64_t now = n - done;
        const uint8_t *from = piece(p, cell, offset + done, &now);
        memcpy(at + done, from, now);
        done += now;
    }
}
