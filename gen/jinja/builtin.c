/* builtin.c -- see builtin.h. */
#include "jinja/builtin.h"

#include <string.h>

static const lg_jbuiltin table[] = {
#define LG_FILTER(name, symbol, params) {LG_JFILTER, name, symbol, params},
#define LG_TEST(name, symbol, params) {LG_JTEST, name, symbol, params},
#define LG_METHOD(name, symbol, params) {LG_JMETHOD, name, symbol, params},
#define LG_EFFECT_METHOD(name, symbol, params) {LG_JEFFECT_METHOD, name, symbol, params},
#include "jinja/builtin.def"
#undef LG_FILTER
#undef LG_TEST
#undef LG_METHOD
#undef LG_EFFECT_METHOD
};

const lg_jbuiltin *lg_jinja_builtin(lg_jbuiltin_kind kind, const char *name, size_t n_name) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const lg_jbuiltin *row = &table[i];
        bool same_kind = row->kind == kind ||
                         (kind == LG_JMETHOD && row->kind == LG_JEFFECT_METHOD);
        if (same_kind && strlen(row->name) == n_name && memcmp(row->name, name, n_name) == 0) {
            return row;
        }
    }
    return NULL;
}

size_t lg_jinja_params(const lg_jbuiltin *fn, lg_jparam out[LG_JPARAMS_MAX]) {
    size_t n = 0;
    for (const char *p = fn->params; *p != '\0' && n < LG_JPARAMS_MAX; n++) {
        size_t len = strcspn(p, ";");
        const char *eq = memchr(p, '=', len);
        out[n] = (lg_jparam){.name = p, .n_name = eq == NULL ? len : (size_t)(eq - p)};
        if (eq != NULL) {
            out[n].value = eq + 1;
            out[n].n_value = len - (size_t)(eq + 1 - p);
        }
        p += len + (p[len] == ';');
    }
    return n;
}

lg_jspecial lg_jinja_special(const char *name, size_t n_name) {
    static const struct { const char *name; lg_jspecial special; } names[] = {
        {"map", LG_JSPECIAL_MAP},
        {"select", LG_JSPECIAL_SELECT},
        {"reject", LG_JSPECIAL_REJECT},
        {"selectattr", LG_JSPECIAL_SELECTATTR},
        {"rejectattr", LG_JSPECIAL_REJECTATTR},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i].name) == n_name && memcmp(names[i].name, name, n_name) == 0) {
            return names[i].special;
        }
    }
    return LG_JSPECIAL_NONE;
}
