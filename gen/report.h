/* report.h -- `lagen report`: a program's plan as one page for a browser.
 *
 * C gathers numbers; where they stand on the page and all its text is templates/report/. Nothing
 * on it comes from outside the program's folder but the board's data sheet (hw.def). */
#ifndef LG_REPORT_H
#define LG_REPORT_H

#include "host.h"
#include "program.h"

/* Appends the page. `board`: whose bandwidth and operations give times, NULL: there are none, and
 * launches are drawn by the bytes that they move. */
bool lg_report(const lg_program *p, const lg_hw_device *board, lg_host *host, lb_arena *arena,
               lb_text *out, lb_err *err);

/* report_step.c: one step of n_rows rows as a map: launches in order, each with its bytes,
 * operations, least time in ns and what bounds it. */
const lg_value *lg_report_step(lg_builder *b, const lg_plan *plan, const lg_hw_device *board,
                               uint64_t n_rows, lb_arena *arena, lb_err *err);

/* report_proof.c: each kernel's limits with how much of them is used; the facts by kind. */
const lg_value *lg_report_margins(lg_builder *b, const lg_program *p);
const lg_value *lg_report_facts(lg_builder *b, const lg_program *p, lb_arena *arena, lb_err *err);

/* value / limit in thousandths, rounded down, at most 1000; 0 where limit is 0. */
uint64_t lg_permille(uint64_t value, uint64_t limit);

/* Drawings are LG_DRAWN units wide and high: browsers lose coordinates above 2^25. */
enum { LG_DRAWN = 1000000 };

/* Where value of total lies there, rounded down; value <= total, total > 0. */
uint64_t lg_drawn(uint64_t value, uint64_t total);

/* Sets x and w (y and h) of `map`: n units from `at` on, of total. */
void lg_draw(lg_builder *b, lg_value *map, const char *x, const char *w, uint64_t at, uint64_t n,
             uint64_t total);

/* Sets <key> to a number, and <key>_text to it as a size. */
void lg_report_size(lg_builder *b, lg_value *map, const char *key, uint64_t bytes);

#endif
