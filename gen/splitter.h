/* splitter.h -- a pre-tokenizer's expressions, compiled to straight-line match functions that a
 * template writes down as C (templates/program/splitter.c.lua).
 *
 * The functions match what the expressions match under backtracking, in time that is linear in the
 * text and with constant stack; an expression for which this cannot be shown is LB_UNSUPPORTED. The
 * argument: every loop is of one of four forms.
 *   - It is followed by nothing that can fail: it takes all it can, and what it read is consumed.
 *   - It is bounded: it costs a constant.
 *   - It is followed by (?!D) alone, D disjoint from its class: it gives back one at most.
 *   - It keeps a note of the run it stands in (rt_split_run): each run is read once, and what
 *     follows, which fails in constant time, is tried at most once at each position of it.
 * Loops over groups are only accepted in the first form, with bodies that fail in constant time. */
#ifndef LG_SPLITTER_H
#define LG_SPLITTER_H

#include "regex.h"
#include "value.h"

#define LG_SPLIT_NO_RUN UINT32_MAX
enum { LG_SPLIT_RUNS_MAX = 8, LG_SPLIT_STAGES_MAX = 8 };

typedef enum lg_split_kind {
    LG_SPLIT_RUN,      /* min..max characters of a class, as many as there are */
    LG_SPLIT_STEPS,    /* as many times min characters as there are, with a note of the run */
    LG_SPLIT_NEXT,     /* the next character is of a class; or, negative, is not or is not there */
    LG_SPLIT_END,      /* the segment ends here */
    LG_SPLIT_LOOK,     /* fn matches here; or, negative, does not */
    LG_SPLIT_REPEAT,   /* fn min..max times, as often as it matches */
    LG_SPLIT_GIVE_BACK /* min..max of a class, then fn; fewer while fn does not match. The last */
} lg_split_kind;

typedef struct lg_split_op {
    lg_split_kind kind;
    uint32_t cls; /* index, RUN STEPS NEXT GIVE_BACK */
    uint32_t fn;  /* index, LOOK REPEAT GIVE_BACK; always a lower one */
    uint32_t min, max;
    uint32_t run; /* index of the note, or LG_SPLIT_NO_RUN */
    bool negative;
    bool may_be_none; /* STEPS: also no time at all */
    const char *source;
} lg_split_op;

/* Matches ops one after the other, or is the first of `choices` (functions) that matches. */
typedef struct lg_split_fn {
    const char *name;
    const char *source;
    const lg_split_op *ops;
    size_t n_ops;
    const uint32_t *choices; /* NULL: ops */
    size_t n_choices;
    bool uses_runs; /* takes the notes of runs */
} lg_split_fn;

typedef struct lg_splitter {
    const lg_class *const *classes;
    size_t n_classes;
    const lg_split_fn *fns;
    size_t n_fns;
    uint32_t stages[LG_SPLIT_STAGES_MAX]; /* functions */
    const char *sources[LG_SPLIT_STAGES_MAX];
    size_t n_stages;
} lg_splitter;

/* Compiles `n` (1..LG_SPLIT_STAGES_MAX) expressions, applied one after the other. */
bool lg_splitter_compile(const char *const *stages, size_t n, lb_arena *arena, lg_splitter *out,
                         lb_err *err);

/* The same as a tree for the template. `name` goes into the text as the pre-tokenizer's name. */
bool lg_splitter_value(const lg_splitter *s, const char *name, lg_builder *b, lg_value **out);

#endif
