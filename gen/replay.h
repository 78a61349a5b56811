/* replay.h -- `lagen verify --replay`: the launches of a GPU program, one by one, on the recorder:
 * a driver look-alike that checks each against the row's limits and the cubin's own numbers, and
 * shares no formula with the prover. */
#ifndef LG_REPLAY_H
#define LG_REPLAY_H

#include <signal.h>

#include "plan.h"

/* Makes every launch that any T from 1 to t_max, and any L that a step can have, asks for: each
 * kernel and grid once, through `tool` (lagen-replay). *n_launches: how many. LB_PROOF if one is
 * refused: the tool has said which on stderr. */
bool lg_replay(const lg_plan *plan, const char *dir, const char *tool,
               const volatile sig_atomic_t *stop, lb_arena *arena, uint64_t *n_launches,
               lb_err *err);

/* Runs the emitted program itself on the recorder (`driver`): `cli selftest --launches`, which
 * makes a step of every size without weights and says on our stderr what it tried. LB_PROOF if one is
 * refused. */
bool lg_replay_program(const lg_plan *plan, const char *cli, const char *driver,
                       const volatile sig_atomic_t *stop, lb_arena *arena, lb_err *err);

#endif
