/* splitter_value.c -- a compiled splitter as a tree for its template. Function and class references
 * are indexes from 1, as Lua counts. */
#include "splitter.h"

#include "base/unicode.h"

static const char *kind_name(lg_split_kind kind) {
    static const char *const names[] = {"run",  "steps",  "next",     "end",
                                        "look", "repeat", "give_back"};
    return names[kind];
}

/* "LB_UC_L | LB_UC(LB_MN)": the mask in the names of base/unicode.h, so that it reads. */
static lg_value *mask_value(lg_builder *b, uint32_t mask) {
    static const struct {
        const char *name;
        uint32_t mask;
    } majors[] = {{"LB_UC_SPACE", LB_UC_SPACE}, {"LB_UC_L", LB_UC_L}, {"LB_UC_M", LB_UC_M},
                  {"LB_UC_N", LB_UC_N},         {"LB_UC_P", LB_UC_P}, {"LB_UC_S", LB_UC_S},
                  {"LB_UC_C", LB_UC_C}};
    static const char *const minors[LB_N_CATEGORIES] = {
        "LB_LU", "LB_LL", "LB_LT", "LB_LM", "LB_LO", "LB_MN", "LB_MC", "LB_ME",
        "LB_ND", "LB_NL", "LB_NO", "LB_PC", "LB_PD", "LB_PS", "LB_PE", "LB_PI",
        "LB_PF", "LB_PO", "LB_SM", "LB_SC", "LB_SK", "LB_SO", "LB_ZS", "LB_ZL",
        "LB_ZP", "LB_CC", "LB_CF", "LB_CS", "LB_CO", "LB_CN", "LB_CW"};
    lg_value *names = lg_build_array(b);
    bool inverse = mask == (LB_UC_ALL & ~LB_UC_SPACE); /* \S */
    uint32_t left = inverse ? LB_UC_SPACE : mask;
    for (size_t i = 0; i < sizeof majors / sizeof majors[0]; i++) {
        if ((left & majors[i].mask) == majors[i].mask) {
            const char *name = inverse ? "LB_UC_ALL & ~LB_UC_SPACE" : majors[i].name;
            lg_build_push(b, names, lg_build_string(b, name));
            left &= ~majors[i].mask;
        }
    }
    for (int c = 0; c < LB_N_CATEGORIES; c++) {
        if ((left & LB_UC(c)) != 0) {
            lg_build_push(b, names, lg_build_string(b, minors[c]));
        }
    }
    return names;
}

static lg_value *ranges_value(lg_builder *b, const lg_range *ranges, size_t n) {
    lg_value *list = lg_build_array(b);
    for (size_t i = 0; i < n; i++) {
        lg_value *range = lg_build_map(b);
        lg_build_set_uint(b, range, "first", ranges[i].first);
        lg_build_set_uint(b, range, "last", ranges[i].last);
        lg_build_push(b, list, range);
    }
    return list;
}

static lg_value *class_value(lg_builder *b, const lg_class *cls) {
    lg_value *v = lg_build_map(b);
    lg_build_set_string(b, v, "source", cls->source);
    lg_build_set(b, v, "mask", mask_value(b, cls->mask));
    lg_build_set_bool(b, v, "negated", cls->negated);
    lg_build_set(b, v, "ranges", ranges_value(b, cls->ranges, cls->n_ranges));
    lg_build_set(b, v, "except", ranges_value(b, cls->except, cls->n_except));
    return v;
}

static lg_value *op_value(lg_builder *b, const lg_split_op *op) {
    lg_value *v = lg_build_map(b);
    lg_build_set_string(b, v, "kind", kind_name(op->kind));
    lg_build_set_uint(b, v, "cls", op->cls + 1);
    lg_build_set_uint(b, v, "fn", op->fn + 1);
    lg_build_set_uint(b, v, "min", op->min);
    lg_build_set_bool(b, v, "negative", op->negative);
    lg_build_set_bool(b, v, "may_be_none", op->may_be_none);
    lg_build_set_string(b, v, "source", op->source);
    if (op->max != LG_REGEX_ENDLESS) {
        lg_build_set_uint(b, v, "max", op->max);
    }
    if (op->run != LG_SPLIT_NO_RUN) {
        lg_build_set_uint(b, v, "run", op->run);
    }
    return v;
}

static lg_value *fn_value(lg_builder *b, const lg_split_fn *fn) {
    lg_value *v = lg_build_map(b);
    lg_build_set_string(b, v, "name", fn->name);
    lg_build_set_string(b, v, "source", fn->source);
    lg_build_set_bool(b, v, "uses_runs", fn->uses_runs);
    lg_value *items = lg_build_array(b);
    if (fn->choices == NULL) {
        for (size_t i = 0; i < fn->n_ops; i++) {
            lg_build_push(b, items, op_value(b, &fn->ops[i]));
        }
        lg_build_set(b, v, "ops", items);
        return v;
    }
    for (size_t i = 0; i < fn->n_choices; i++) {
        lg_build_push(b, items, lg_build_uint(b, fn->choices[i] + 1));
    }
    lg_build_set(b, v, "choices", items);
    return v;
}

bool lg_splitter_value(const lg_splitter *s, const char *name, lg_builder *b, lg_value **out) {
    lg_value *v = lg_build_map(b);
    lg_value *classes = lg_build_array(b);
    lg_value *fns = lg_build_array(b);
    lg_value *stages = lg_build_array(b);
    for (size_t i = 0; i < s->n_classes; i++) {
        lg_build_push(b, classes, class_value(b, s->classes[i]));
    }
    for (size_t i = 0; i < s->n_fns; i++) {
        lg_build_push(b, fns, fn_value(b, &s->fns[i]));
    }
    for (size_t i = 0; i < s->n_stages; i++) {
        lg_value *stage = lg_build_map(b);
        lg_build_set_string(b, stage, "source", s->sources[i]);
        lg_build_set_uint(b, stage, "fn", s->stages[i] + 1);
        lg_build_push(b, stages, stage);
    }
    lg_build_set_string(b, v, "name", name);
    lg_build_set(b, v, "classes", classes);
    lg_build_set(b, v, "fns", fns);
    lg_build_set(b, v, "stages", stages);
    *out = v;
    return !b->failed;
}
