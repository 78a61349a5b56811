/* prefix_pages.h -- the store's tree of pages, its cells, and the order of last uses; private to
 * prefix*.c. Pages and cells are numbers; page 0 is the root, which has no tokens. */
#ifndef RT_PREFIX_PAGES_H
#define RT_PREFIX_PAGES_H

#include "prefix.h"

enum { RT_NO_CELL = UINT32_MAX, RT_WHOLE = 0, RT_RING = 1, RT_N_PARTS = 2 };

typedef struct rt_page {
    uint32_t parent, child, sibling; /* 0: none */
    uint32_t n_tokens;               /* <= RT_PAGE; RT_PAGE if it has children */
    uint32_t begin;                  /* position of its first token */
    uint32_t cell[RT_N_PARTS];       /* the first one of the part, or RT_NO_CELL */
    uint32_t n_held[RT_N_PARTS];     /* the part holds what belongs to tokens 0..n_held-1; */
    uint32_t ring_from;              /* the ring part to tokens ring_from..n_held-1 */
    /* Lists by last use: pages that are there, and pages that have a ring part. */
    uint32_t newer[RT_N_PARTS], older[RT_N_PARTS];
    uint64_t used[RT_N_PARTS];
    bool dirty;    /* it has changed since a file of it was written, or there is none */
    bool has_file; /* named `digest`: prefix_disk.h */
    uint8_t digest[LB_DIGEST_BYTES];
    uint32_t tokens[RT_PAGE];
} rt_page;

typedef struct rt_pages {
    rt_page *page;  /* [n_pages]; 0 is the root */
    uint32_t *next; /* [n_cells]: the next cell of the part, or of the free ones */
    uint8_t *cells; /* [n_cells][cell_bytes] */
    uint32_t n_pages, n_cells, cell_bytes;
    uint64_t part_bytes[RT_N_PARTS]; /* 0: the program has no such caches */
    uint32_t part_cells[RT_N_PARTS];
    uint32_t free_page, free_cell; /* heads of lists: page.sibling, next[]; 0, RT_NO_CELL: none */
    uint32_t n_free_cells, n_used_pages;
    uint64_t clock, n_evicted;
    uint32_t n_dirty;
    /* Told of every page that loses its file. NULL: nobody writes files. */
    void (*gone)(void *arg, const rt_page *page);
    void *gone_arg;
    void *map; /* where cells, next and page lie */
    uint64_t map_bytes;
} rt_pages;

/* At most n_bytes for pages with parts of these sizes, and `n_more` pages without. LB_RESOURCES. */
bool rt_pages_open(rt_pages *p, uint64_t n_bytes, const uint64_t part_bytes[RT_N_PARTS],
                   uint32_t n_more, lb_err *err);
void rt_pages_close(rt_pages *p);

/* The child of `page` that begins most like tokens[0..n), and how many tokens are the same. 0: none
 * begins so. */
uint32_t rt_pages_child(const rt_pages *p, uint32_t page, const uint32_t *tokens, uint32_t n,
                        uint32_t *same);

/* A new child without parts; 0 if there is no room that was not used at this clock. */
uint32_t rt_pages_add(rt_pages *p, uint32_t parent, const uint32_t *tokens, uint32_t n);

/* Gives the page a part, its bytes undefined; false as above. */
bool rt_pages_add_part(rt_pages *p, uint32_t page, uint32_t part);

/* The page is another one than before: its tokens, or what it holds of them. */
void rt_pages_changed(rt_pages *p, uint32_t page, bool tokens);

/* The page was used now: its part of that name goes to the front of its list. */
void rt_pages_touch(rt_pages *p, uint32_t page, uint32_t part);

/* Takes a part away. */
void rt_pages_drop_part(rt_pages *p, uint32_t page, uint32_t part);

/* Takes a page without children away, and pages before it that are then without use: neither parts
 * nor children, and not used at this clock. */
void rt_pages_remove(rt_pages *p, uint32_t page);

/* n bytes at `offset` of a part, from or to `at`. */
void rt_pages_put(rt_pages *p, uint32_t cell, uint64_t offset, const uint8_t *at, uint64_t n);
void rt_pages_get(const rt_pages *p, uint32_t cell, uint64_t offset, uint8_t *at, uint64_t n);

#endif
