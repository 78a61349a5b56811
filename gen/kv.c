/* kv.c -- see kv.h. */
#include "kv.h"

#include <stdio.h>
#include <string.h>

static const lg_kv_row ROWS[] = {
#define KV(name, elem, group, scale_bytes) {name, LG_ELEM_##elem, group, scale_bytes},
#include "kv.def"
#undef KV
};

/* "|f16|q8_0" */
static const char WORDS[] =
#define KV(name, elem, group, scale_bytes) "|" name
#include "kv.def"
#undef KV
    ;

enum { N_ROWS = sizeof ROWS / sizeof *ROWS };

bool lg_kv_find(const char *name, const lg_kv_row **out, lb_err *err) {
    char names[64] = "";
    size_t n = 0;
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(ROWS[i].name, name) == 0) {
            *out = &ROWS[i];
            return true;
        }
        int more = snprintf(names + n, sizeof names - n, i == 0 ? "%s" : ", %s", ROWS[i].name);
        n += more > 0 && n + (size_t)more < sizeof names ? (size_t)more : 0;
    }
    return lb_err_set(err, LB_UNSUPPORTED, "'%.40s' is no type of keys and values; there are %s",
                      name, names);
}

const char *lg_kv_words(void) {
    return WORDS + 1;
}

uint64_t lg_kv_bytes(const lg_kv_row *row, uint64_t width) {
    return width * lg_elem_bytes(row->elem) + width / row->group * row->scale_bytes;
}
