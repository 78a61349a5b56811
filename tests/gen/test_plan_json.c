/* test_plan_json.c -- launches.json and memory.json: written, read and proved again they are the
 * same bytes; damaged ones are refused with the path in the file, or not proved. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan_json.h"
#include "plans.h"
#include "value_text.h"

/* ---- there and back */

typedef struct texts {
    lb_text launches, memory;
} texts;

static void write_texts(const lg_plan *plan, const lg_proof *proof, lb_arena *arena, texts *t) {
    lb_err e = {0};
    lb_text_init(&t->launches, arena);
    lb_text_init(&t->memory, arena);
    if (!lg_launches_json(plan, proof, arena, &t->launches, &e) ||
        !lb_text_done(&t->launches, &e) || !lg_memory_json(plan, arena, &t->memory, &e) ||
        !lb_text_done(&t->memory, &e)) {
        fail_msg("%s", e.text);
    }
}

static lg_value *parse(const char *name, const lb_text *t, lb_arena *arena) {
    lb_err e = {0};
    lg_value *v = NULL;
    if (!lg_value_from_json(name, t->data, t->n_bytes, arena, &v, &e)) {
        fail_msg("%s", e.text);
    }
    return v;
}

static void same_bytes_there_and_back(void **state) {
    (void)state;
    static const plans_request models[] = {
        {.recipe = "synth/llama-tiny", .ctx = 300, .slots = 3, .chunk = 7},
        {.recipe = "synth/llama-spm", .target = "aarch64-v8.2", .chunk = 64},
        {.recipe = "synth/llama-wide", .layers = 2, .chunk = 16},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        plans p;
        texts first;
        texts again;
        lg_plan *plan = NULL;
        lg_proof proof;
        lb_err e = {0};
        plans_open(&p, &models[i]);
        write_texts(p.r.plan, &p.r.proof, &p.arena, &first);
        if (!lg_plan_from_json(parse("l", &first.launches, &p.arena),
                               parse("m", &first.memory, &p.arena), &p.arena, &plan, &e) ||
            !lg_prove(plan, &p.arena, &proof, &e)) {
            fail_msg("%s", e.text);
        }
        assert_int_equal(proof.n_facts, p.r.proof.n_facts);
        write_texts(plan, &proof, &p.arena, &again);
        assert_string_equal(first.launches.data, again.launches.data);
        assert_string_equal(first.memory.data, again.memory.data);
        plans_close(&p);
    }
}

/* ---- damage */

/* Paths that carry words for people, or numbers that `lagen verify` compares by writing the file
 * again;
 * * at the end: all that begin so. */
static const char *const UNREAD[] = {
    "launches.kernels.descriptor.bytes",    "launches.kernels.descriptor.flops",
    "launches.kernels.descriptor.features*", "launches.kernels.descriptor.includes*",
    "launches.kernels.descriptor.tolerance", "launches.kernels.descriptor.reduction",
    "launches.kernels.descriptor.scratch",
    "launches.kernels.descriptor.axes.bound", "launches.kernels.descriptor.axes.tile",
    "launches.kernels.descriptor.axes.name",
    "launches.kernels.descriptor.axes",      "launches.kernels.descriptor.operands.indexed",
    "launches.kernels.descriptor.operands.align", "launches.kernels.descriptor.covers.cols.tile",
    "launches.kernels.family",  "launches.launches.name",      "launches.launches.layer",
    "launches.launches.grid_max*", "launches.launches.limit*", "launches.launches.margin*",
    "launches.launches.tiles",  "launches.launches.shared_bytes", "launches.launches.facts*",
    "launches.facts*",          "memory.values.name",          "memory.weights.name",
    "memory.weights.rows",      "launches.limits.ctx",
    "memory.limits.ctx",
};

typedef struct damage {
    uint32_t target, seen; /* number of the value to damage, of those passed */
    int way;
    char path[128]; /* of it */
} damage;

enum { DELETE, OTHER_KIND, MORE, LESS, N_WAYS };

/* The damaged value in place of v; NULL: left out. */
static lg_value *damaged(lg_builder *b, const lg_value *v, int way) {
    if (way == OTHER_KIND) {
        return v->kind == LG_VALUE_STRING ? lg_build_int(b, 7) : lg_build_string(b, "x");
    }
    if (v->kind == LG_VALUE_INT) {
        return lg_build_int(b, v->u.integer + (way == MORE ? 1 : -1));
    }
    if (v->kind == LG_VALUE_STRING) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", way == MORE ? "(" : "9", v->u.string.bytes);
        return lg_build_string(b, text);
    }
    if (v->kind == LG_VALUE_ARRAY) {
        lg_value *list = lg_build_array(b);
        for (size_t i = 0; i + (way == LESS) < v->u.array.n; i++) {
            lg_build_push(b, list, v->u.array.items[i]);
        }
        if (way == MORE && v->u.array.n > 0) {
            lg_build_push(b, list, v->u.array.items[0]);
        }
        return list;
    }
    return lg_build_nil(b);
}

static lg_value *copy(lg_builder *b, const lg_value *v, damage *d, const char *path) {
    if (d->seen++ == d->target) {
        snprintf(d->path, sizeof d->path, "%s", path);
        return d->way == DELETE ? NULL : damaged(b, v, d->way);
    }
    if (v->kind == LG_VALUE_ARRAY) {
        lg_value *list = lg_build_array(b);
        for (size_t i = 0; i < v->u.array.n; i++) {
            lg_value *item = copy(b, v->u.array.items[i], d, path);
            if (item != NULL) {
                lg_build_push(b, list, item);
            }
        }
        return list;
    }
    if (v->kind != LG_VALUE_MAP) {
        return lg_build_copy(b, v);
    }
    lg_value *map = lg_build_map(b);
    for (size_t i = 0; i < v->u.map.n; i++) {
        const lg_value_entry *entry = &v->u.map.entries[i];
        char below[128];
        snprintf(below, sizeof below, "%s.%s", path, entry->key->u.string.bytes);
        bool told =
            strcmp(entry->key->u.string.bytes, "facts") == 0; /* not read; thousands of values */
        lg_value *item = told ? lg_build_copy(b, entry->value) : copy(b, entry->value, d, below);
        if (item != NULL) {
            lg_build_set(b, map, entry->key->u.string.bytes, item);
        }
    }
    return map;
}

static bool is_unread(const char *path) {
    for (size_t i = 0; i < sizeof UNREAD / sizeof *UNREAD; i++) {
        size_t n = strlen(UNREAD[i]);
        bool open = UNREAD[i][n - 1] == '*';
        if (open ? strncmp(UNREAD[i], path, n - 1) == 0 : strcmp(UNREAD[i], path) == 0) {
            return true;
        }
    }
    return false;
}

/* One damaged pair of files; false once there is no value of this number. */
static bool one_damage(const lg_value *launches, const lg_value *memory, bool in_launches,
                       damage *d, uint32_t *n_wrong) {
    lb_arena arena;
    lg_builder b;
    lg_plan *plan = NULL;
    lg_proof proof;
    lb_err e = {0};
    lb_arena_init(&arena, "damage", UINT64_C(1) << 28);
    lg_build_init(&b, &arena);
    const lg_value *tree =
        copy(&b, in_launches ? launches : memory, d, in_launches ? "launches" : "memory");
    bool hit = d->seen > d->target;
    if (hit && tree != NULL && lg_build_done(&b, &e)) {
        bool read = lg_plan_from_json(in_launches ? tree : launches, in_launches ? memory : tree,
                                      &arena, &plan, &e);
        bool proved = read && lg_prove(plan, &arena, &proof, &e);
        bool named = read ? e.code == LB_PROOF
                          : strncmp(e.text, "launches.json", 13) == 0 ||
                                strncmp(e.text, "memory.json", 11) == 0 ||
                                strncmp(e.text, "no target '", 11) == 0;
        if (proved ? !is_unread(d->path) : !named) {
            print_message("# %s, way %d: %s\n", d->path, d->way, proved ? "not noticed" : e.text);
            (*n_wrong)++;
        }
    }
    lb_arena_reset(&arena);
    return hit;
}

/* Values of both files, one after the other, each in one way or two of the four. */
static void damaged_files_are_noticed(void **state) {
    (void)state;
    plans p;
    texts t;
    uint32_t n = 0;
    uint32_t n_wrong = 0;
    plans_open(&p,
               &(plans_request){.recipe = "synth/llama-tiny", .layers = 1, .ctx = 512, .chunk = 3});
    write_texts(p.r.plan, &p.r.proof, &p.arena, &t);
    const lg_value *launches = parse("l", &t.launches, &p.arena);
    const lg_value *memory = parse("m", &t.memory, &p.arena);
    for (int in_launches = 0; in_launches < 2; in_launches++) {
        bool more = true;
        for (uint32_t i = 1; more; i++) {
            for (int way = 0; way < N_WAYS && more && n_wrong < 20; way++) {
                if (in_launches == 1 && (i + (uint32_t)way) % 3 != 0) {
                    continue;
                }
                damage d = {.target = i, .way = way};
                more = one_damage(launches, memory, in_launches == 1, &d, &n_wrong);
                n++;
            }
            more = more && n_wrong < 20;
        }
    }
    print_message("# %" PRIu32 " damages\n", n);
    assert_int_equal(n_wrong, 0);
    assert_true(n > 2000);
    plans_close(&p);
}

/* ---- single damages with their messages */

static void refused(const char *from, const char *to, bool in_launches, lb_code code,
                    const char *says) {
    plans p;
    texts t;
    lg_plan *plan = NULL;
    lb_err e = {0};
    plans_open(&p,
               &(plans_request){.recipe = "synth/llama-tiny", .layers = 1, .ctx = 512, .chunk = 3});
    write_texts(p.r.plan, &p.r.proof, &p.arena, &t);
    lb_text *text = in_launches ? &t.launches : &t.memory;
    char *found = strstr(text->data, from);
    if (found == NULL) {
        fail_msg("'%s' is not in the file", from);
    }
    lb_text changed;
    lb_text_init(&changed, &p.arena);
    lb_text_add_n(&changed, text->data, (size_t)(found - text->data));
    lb_text_add(&changed, to);
    lb_text_add(&changed, found + strlen(from));
    assert_true(lb_text_done(&changed, &e));
    *text = changed;
    bool ok = lg_plan_from_json(parse("l", &t.launches, &p.arena), parse("m", &t.memory, &p.arena),
                                &p.arena, &plan, &e);
    if (ok || plan != NULL || e.code != code || strstr(e.text, says) == NULL) {
        fail_msg("code %d '%s'; expected: code %d '%s'", (int)e.code, ok ? "read" : e.text,
                 (int)code, says);
    }
    plans_close(&p);
}

static void messages_have_the_path(void **state) {
    (void)state;
    refused("lagen.launches/1", "lagen.launches/2", true, LB_BAD_VALUE,
            "launches.json.schema: is 'lagen.launches/2'");
    refused("lagen.memory/1", "lagen.launches/1", false, LB_BAD_VALUE, "memory.json.schema");
    refused("\"x86-64-v3\"", "\"native\"", true, LB_BAD_VALUE, "launches.json.target: is native");
    refused("\"x86-64-v3\"", "\"x86-64-v9\"", true, LB_MISSING, "no target 'x86-64-v9'");
    refused("\"x86-64-v3\"", "\"x86-64-v2\"", false, LB_BAD_VALUE, "memory.json.target");
    refused("\"chunk\": 3", "\"chunk\": 4", false, LB_BAD_VALUE,
            "memory.json.limits: differ from those of launches.json");
    refused("\"id\": 1,", "\"id\": 2,", false, LB_BAD_VALUE,
            "memory.json.values[1].id: is 2, expected 1");
    refused("\"q8_0\"", "\"q9_0\"", false, LB_BAD_VALUE, "memory.json.weights[0].type");
    refused("\"strips\"", "\"knots\"", false, LB_BAD_VALUE, "memory.json.weights[0].layout");
    refused("\"layer\": 0", "\"layer\": 4294967296", true, LB_BAD_VALUE, "layer: is 4294967296");
    refused("\"tile\": 1", "\"tile\": 0", true, LB_BAD_VALUE,
            "launches.json.kernels[0].descriptor.axes[0]");
    refused("\"bound\": \"T\"", "\"bound\": \"T +\"", true, LB_SYNTAX,
            "launches.json.kernels[0].descriptor.axes[0].bound");
    refused("\"kind\": \"rows\"", "\"kind\": \"logits\"", true, LB_BAD_VALUE,
            "axes[0].kind: is 'logits'; the bound of axis 'rows' makes it 'rows'");
    refused("\"fold\": \"none\"", "\"fold\": \"sum\"", true, LB_BAD_VALUE,
            "launches.json.kernels[0].descriptor.axes[0].fold");
    refused("\"name\": \"strips\"", "\"name\": \"rows\"", true, LB_DUPLICATE,
            "axes[1].name: 'rows' is axis 0 too");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bytes_there_and_back),
        cmocka_unit_test(damaged_files_are_noticed),
        cmocka_unit_test(messages_have_the_path),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("plan_json", tests, NULL, NULL);
}
