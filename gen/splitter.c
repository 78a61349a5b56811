/* splitter.c -- from the tree of an expression to match functions; decides for each loop how it may
 * give back, see splitter.h. */
#include "splitter.h"

#include <string.h>

typedef struct compiler {
    lb_arena *arena;
    lb_err *err;
    const lg_class **classes;
    size_t n_classes;
    lg_split_fn *fns;
    size_t n_fns;
    uint32_t n_runs; /* of this stage */
    uint32_t n_looks; /* look-aheads that we are inside of */
    const char *stage;
} compiler;

enum { CLASSES_MAX = 64, FNS_MAX = 256 };

static bool unsupported(compiler *c, const char *source, const char *why) {
    return lb_err_set(c->err, LB_UNSUPPORTED, "expression '%.100s': '%.60s' %s", c->stage, source,
                      why);
}

/* -- what may follow ------------------------------------------------------------------------ */

static bool can_fail(const lg_regex_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool repeats = items[i].kind == LG_REGEX_CLASS || items[i].kind == LG_REGEX_GROUP;
        if (!repeats || items[i].min > 0) {
            return true;
        }
    }
    return false;
}

/* Fails, if it does, after reading a bounded number of characters. */
static bool fails_fast(const lg_regex_item *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (items[i].max == LG_REGEX_ENDLESS && can_fail(items + i + 1, n - i - 1)) {
            return false;
        }
        for (size_t a = 0; a < items[i].body.n; a++) {
            if (!fails_fast(items[i].body.alts[a].items, items[i].body.alts[a].n)) {
                return false;
            }
        }
    }
    return true;
}

/* The item looks at one character only: (?!\S). */
static const lg_class *single_look(const lg_regex_item *item) {
    if (item->kind != LG_REGEX_LOOK || item->body.n != 1 || item->body.alts[0].n != 1) {
        return NULL;
    }
    const lg_regex_item *inner = &item->body.alts[0].items[0];
    bool one = inner->kind == LG_REGEX_CLASS && inner->min == 1 && inner->max == 1;
    return one ? &inner->cls : NULL;
}

/* The rest surely begins with a character that is not of class `cls`. */
static bool begins_apart(const lg_class *cls, const lg_regex_item *rest, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (rest[i].kind != LG_REGEX_CLASS || lg_charset_meet(&rest[i].cls.set, &cls->set)) {
            return false;
        }
        if (rest[i].min > 0) {
            return true;
        }
    }
    return false;
}

/* The rest is (?!D) and perhaps what cannot fail, D disjoint from the class before it. */
static bool gives_back_one(const lg_class *cls, const lg_regex_item *rest, size_t n) {
    const lg_class *look = n == 0 ? NULL : single_look(&rest[0]);
    return look != NULL && rest[0].negative && !can_fail(rest + 1, n - 1) &&
           !lg_charset_meet(&look->set, &cls->set);
}

/* (C{k})+ or (C{k})* before (?!D), C within D, so that giving back cannot help: returns the inner
 * item. */
static const lg_regex_item *as_steps(const lg_regex_item *group, const lg_regex_item *rest,
                                     size_t n) {
    bool form = group->min <= 1 && group->max == LG_REGEX_ENDLESS && group->body.n == 1 &&
                group->body.alts[0].n == 1;
    const lg_regex_item *inner = form ? &group->body.alts[0].items[0] : NULL;
    if (inner == NULL || inner->kind != LG_REGEX_CLASS || inner->min != inner->max || n != 1) {
        return NULL;
    }
    const lg_class *look = single_look(&rest[0]);
    bool fits = look != NULL && rest[0].negative &&
                lg_charset_within(&inner->cls.set, &look->set);
    return fits ? inner : NULL;
}

/* -- functions ------------------------------------------------------------------------------ */

static bool class_index(compiler *c, const lg_class *cls, uint32_t *out) {
    size_t i = 0;
    while (i < c->n_classes && strcmp(c->classes[i]->source, cls->source) != 0) {
        i++;
    }
    if (i == CLASSES_MAX) {
        return unsupported(c, cls->source, "is one class too many");
    }
    if (i == c->n_classes) {
        c->classes[c->n_classes++] = cls;
    }
    *out = (uint32_t)i;
    return true;
}

/* Whether ops or choices of `fn` hand the notes of runs on. */
static bool uses_runs(const compiler *c, const lg_split_fn *fn) {
    for (size_t i = 0; i < fn->n_ops; i++) {
        const lg_split_op *op = &fn->ops[i];
        bool calls = op->kind == LG_SPLIT_LOOK || op->kind == LG_SPLIT_REPEAT ||
                     op->kind == LG_SPLIT_GIVE_BACK;
        if (op->run != LG_SPLIT_NO_RUN || (calls && c->fns[op->fn].uses_runs)) {
            return true;
        }
    }
    for (size_t i = 0; i < fn->n_choices; i++) {
        if (c->fns[fn->choices[i]].uses_runs) {
            return true;
        }
    }
    return false;
}

static bool add_fn(compiler *c, lg_split_fn fn, uint32_t *out) {
    if (c->n_fns == FNS_MAX) {
        return unsupported(c, fn.source, "makes too many functions");
    }
    if (fn.name == NULL || fn.source == NULL) {
        return false;
    }
    fn.uses_runs = uses_runs(c, &fn);
    for (size_t i = 0; i < c->n_fns && !fn.uses_runs; i++) {
        if (!c->fns[i].uses_runs && strcmp(c->fns[i].source, fn.source) == 0) {
            *out = (uint32_t)i; /* the same expression again: "(CI)?" twice */
            return true;
        }
    }
    *out = (uint32_t)c->n_fns;
    c->fns[c->n_fns++] = fn;
    return true;
}

static bool compile_regex(compiler *c, const lg_regex *r, const char *name, uint32_t *out);
static bool compile_items(compiler *c, const lg_regex_item *items, size_t n, const char *source,
                          const char *name, uint32_t *out);

static bool take_run(compiler *c, lg_split_op *op) {
    if (c->n_runs == LG_SPLIT_RUNS_MAX) {
        return unsupported(c, op->source, "needs one note of a run too many");
    }
    op->run = c->n_runs++;
    return true;
}

/* The text of items from `i` on. */
static const char *rest_source(compiler *c, const lg_regex_item *items, size_t n) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += strlen(items[i].source);
    }
    char *s = lb_alloc(c->arena, bytes + 1, c->err);
    for (size_t i = 0, at = 0; s != NULL && i < n; i++) {
        size_t len = strlen(items[i].source);
        memcpy(s + at, items[i].source, len);
        at += len;
    }
    return s;
}

/* Whether a class item takes all it can for good; if not, whether it needs a note of its run. */
static bool settles(const lg_regex_item *item, const lg_regex_item *rest, size_t n) {
    return item->min == item->max || !can_fail(rest, n) ||
           (item->max != LG_REGEX_ENDLESS && begins_apart(&item->cls, rest, n));
}

static bool compile_class(compiler *c, const lg_regex_item *item, size_t n_rest, const char *name,
                          lg_split_op *op) {
    const lg_regex_item *rest = item + 1;
    op->kind = LG_SPLIT_RUN;
    if (!class_index(c, &item->cls, &op->cls)) {
        return false;
    }
    if (settles(item, rest, n_rest)) {
        if (item->max == LG_REGEX_ENDLESS && c->n_looks > 0) {
            return unsupported(c, item->source, "reads ahead without bound at every character");
        }
        return true;
    }
    op->kind = LG_SPLIT_GIVE_BACK;
    bool reads_once = c->n_looks == 0 && gives_back_one(&item->cls, rest, n_rest);
    if (item->max == LG_REGEX_ENDLESS && !reads_once) {
        if (!fails_fast(rest, n_rest)) {
            return unsupported(c, item->source, "is followed by what may fail late");
        }
        if (!take_run(c, op)) {
            return false;
        }
    }
    return compile_items(c, rest, n_rest, rest_source(c, rest, n_rest),
                         lb_format(c->arena, c->err, "%s_rest", name), &op->fn);
}

static bool compile_group(compiler *c, const lg_regex_item *item, size_t n_rest, const char *name,
                          lg_split_op *op) {
    const lg_regex_item *rest = item + 1;
    const lg_regex_item *step = as_steps(item, rest, n_rest);
    if (step != NULL) {
        op->kind = LG_SPLIT_STEPS;
        op->min = step->min;
        op->may_be_none = item->min == 0;
        return class_index(c, &step->cls, &op->cls) && take_run(c, op);
    }
    op->kind = LG_SPLIT_REPEAT;
    if (can_fail(rest, n_rest)) {
        return unsupported(c, item->source, "is a group before something that can fail");
    }
    if (!fails_fast(item, 1)) {
        return unsupported(c, item->source, "is a group that may fail late");
    }
    return compile_regex(c, &item->body, lb_format(c->arena, c->err, "%s_group", name), &op->fn);
}

static bool compile_look(compiler *c, const lg_regex_item *item, const char *name,
                         lg_split_op *op) {
    const lg_class *cls = single_look(item);
    op->negative = item->negative;
    if (cls != NULL) {
        op->kind = LG_SPLIT_NEXT;
        return class_index(c, cls, &op->cls);
    }
    op->kind = LG_SPLIT_LOOK;
    c->n_looks++;
    bool done =
        compile_regex(c, &item->body, lb_format(c->arena, c->err, "%s_ahead", name), &op->fn);
    c->n_looks--;
    return done;
}

static bool compile_item(compiler *c, const lg_regex_item *item, size_t n_rest, const char *name,
                         lg_split_op *op) {
    *op = (lg_split_op){.kind = LG_SPLIT_END, .min = item->min, .max = item->max,
                        .run = LG_SPLIT_NO_RUN, .source = item->source};
    switch (item->kind) {
    case LG_REGEX_CLASS:
        return compile_class(c, item, n_rest, name, op);
    case LG_REGEX_GROUP:
        return compile_group(c, item, n_rest, name, op);
    case LG_REGEX_LOOK:
        return compile_look(c, item, name, op);
    case LG_REGEX_END:
        return true;
    }
    return false;
}

static bool compile_items(compiler *c, const lg_regex_item *items, size_t n, const char *source,
                          const char *name, uint32_t *out) {
    if (n == 1 && items[0].kind == LG_REGEX_GROUP && items[0].min == 1 && items[0].max == 1) {
        return compile_regex(c, &items[0].body, name, out);
    }
    lg_split_op *ops = lb_alloc_n(c->arena, n + 1, sizeof *ops, c->err);
    if (ops == NULL || name == NULL || source == NULL) {
        return false;
    }
    size_t n_ops = 0;
    for (size_t i = 0; i < n; i++) {
        if (!compile_item(c, &items[i], n - i - 1, name, &ops[n_ops])) {
            return false;
        }
        if (ops[n_ops++].kind == LG_SPLIT_GIVE_BACK) {
            break;
        }
    }
    lg_split_fn fn = {.name = name, .source = source, .ops = ops, .n_ops = n_ops};
    return add_fn(c, fn, out);
}

static bool compile_regex(compiler *c, const lg_regex *r, const char *name, uint32_t *out) {
    if (name == NULL) {
        return false;
    }
    if (r->n == 1) {
        return compile_items(c, r->alts[0].items, r->alts[0].n, r->source, name, out);
    }
    uint32_t *choices = lb_alloc_n(c->arena, r->n, sizeof *choices, c->err);
    for (size_t i = 0; choices != NULL && i < r->n; i++) {
        const lg_regex_seq *alt = &r->alts[i];
        const char *alt_name = lb_format(c->arena, c->err, "%s_%zu", name, i + 1);
        if (!compile_items(c, alt->items, alt->n, alt->source, alt_name, &choices[i])) {
            return false;
        }
    }
    lg_split_fn fn = {.name = name, .source = r->source, .choices = choices, .n_choices = r->n};
    return choices != NULL && add_fn(c, fn, out);
}

bool lg_splitter_compile(const char *const *stages, size_t n, lb_arena *arena, lg_splitter *out,
                         lb_err *err) {
    compiler c = {.arena = arena, .err = err};
    c.classes = lb_alloc_n(arena, CLASSES_MAX, sizeof *c.classes, err);
    c.fns = lb_alloc_n(arena, FNS_MAX, sizeof *c.fns, err);
    if (c.classes == NULL || c.fns == NULL) {
        return false;
    }
    if (n == 0 || n > LG_SPLIT_STAGES_MAX) {
        return lb_err_set(err, LB_LIMIT, "a pre-tokenizer of %zu stages: 1 to %d are possible", n,
                          (int)LG_SPLIT_STAGES_MAX);
    }
    lg_splitter s = {.n_stages = n};
    for (size_t i = 0; i < n; i++) {
        lg_regex regex;
        const char *name = lb_format(arena, err, "stage%zu", i + 1);
        c.stage = s.sources[i] = stages[i];
        c.n_runs = 0;
        if (!lg_regex_parse(stages[i], arena, &regex, err) ||
            !compile_regex(&c, &regex, name, &s.stages[i])) {
            return false;
        }
    }
    s.classes = c.classes;
    s.n_classes = c.n_classes;
    s.fns = c.fns;
    s.n_fns = c.n_fns;
    *out = s;
    return true;
}
