/* test_memory.c -- the memory planner on graphs of random lifetimes and sizes: nothing that lives
 * together overlaps, every place is aligned, the arena is never larger than the sum of its values
 * and never smaller than what lives at once; and the limits that the command line may ask for. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plan.h"
#include "plans.h"

enum { VALUES_MAX = 60, NODES_MAX = 80 };

typedef struct random_plan {
    lb_arena arena;
    lg_graph g;
    lg_plan plan;
    lg_gvalue values[VALUES_MAX];
    lg_gnode nodes[NODES_MAX];
    lg_goperand operands[NODES_MAX][VALUES_MAX];
    lg_launch launches[NODES_MAX];
    uint64_t seed;
} random_plan;

static uint64_t draw(random_plan *r, uint64_t n) {
    r->seed = r->seed * 6364136223846793005U + 1442695040888963407U;
    return (r->seed >> 33) % n;
}

static void use(random_plan *r, uint32_t node, uint32_t value, lg_access access) {
    lg_gnode *n = &r->nodes[node];
    r->operands[node][n->n_operands++] = (lg_goperand){"r", access, value};
}

/* Values with first and last use anywhere, states, and the logits at the end. */
static void make_random(random_plan *r, uint64_t seed, lg_hw_row *hw) {
    memset(r, 0, sizeof *r);
    lb_arena_init(&r->arena, "random", 1 << 24);
    r->seed = seed;
    r->g.n_values = 2 + (uint32_t)draw(r, VALUES_MAX - 2);
    r->g.n_nodes = 1 + (uint32_t)draw(r, NODES_MAX - 1);
    r->g.values = r->values;
    r->g.nodes = r->nodes;
    for (uint32_t i = 0; i < r->g.n_nodes; i++) {
        r->nodes[i].operands = r->operands[i];
    }
    for (uint32_t v = 0; v < r->g.n_values; v++) {
        static const lg_elem elems[] = {LG_ELEM_F32, LG_ELEM_I8, LG_ELEM_I16};
        bool state = draw(r, 9) == 0;
        bool wide = draw(r, 5) == 0;
        r->values[v] = (lg_gvalue){.name = "v",
                                   .rows = draw(r, 4) == 0 ? LG_ROWS_L : LG_ROWS_T,
                                   .elem = elems[draw(r, 3)],
                                   .width = 1 + draw(r, wide ? 100000 : 50)};
        if (state) {
            r->values[v] = (lg_gvalue){.name = "s", .rows = LG_ROWS_STATE, .elem = LG_ELEM_F16,
                                       .state_bytes = 1 + draw(r, 10000)};
        }
        uint32_t first = (uint32_t)draw(r, r->g.n_nodes);
        uint32_t last = first + (uint32_t)draw(r, r->g.n_nodes - first);
        use(r, first, v, state ? LG_STATE : LG_WRITE);
        if (last != first) {
            use(r, last, v, state ? LG_STATE : LG_READ);
        }
    }
    r->g.logits = (uint32_t)draw(r, r->g.n_values);
    r->values[r->g.logits].rows = LG_ROWS_L;
    r->values[r->g.logits].width = 7;
    r->plan =
        (lg_plan){.graph = &r->g, .hw = hw, .launches = r->launches, .n_launches = r->g.n_nodes};
    assert_true(lg_limits_make(4096, 1 + draw(r, 80), 1 + draw(r, 600), &r->plan.limits, NULL));
}

static uint64_t size_of(const random_plan *r, uint32_t v) {
    const lg_gvalue *value = &r->values[v];
    uint64_t rows = value->rows == LG_ROWS_L ? r->plan.limits.logit_rows_max : r->plan.limits.t_max;
    return value->rows == LG_ROWS_STATE ? value->state_bytes
                                        : rows * value->width * lg_elem_bytes(value->elem);
}

static bool meet(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return a < d && c < b;
}

static void check_pair(const random_plan *r, uint32_t v, uint32_t w) {
    const lg_place *a = &r->plan.places[v];
    const lg_place *b = &r->plan.places[w];
    bool time = a->first <= b->last && b->first <= a->last;
    bool space = a->arena == b->arena &&
                 meet(a->offset, a->offset + a->bytes, b->offset, b->offset + b->bytes);
    assert_false(time && space);
}

static uint64_t align64(uint64_t n) {
    return (n + 63) / 64 * 64;
}

/* The most that lives at one launch: no plan can do with less. */
static uint64_t at_once(const random_plan *r) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < r->g.n_nodes; i++) {
        uint64_t sum = 0;
        for (uint32_t v = 0; v < r->g.n_values; v++) {
            const lg_place *p = &r->plan.places[v];
            sum += p->arena == LG_ARENA_SCRATCH && p->first <= i && i <= p->last ? p->bytes : 0;
        }
        most = sum > most ? sum : most;
    }
    return most;
}

static void check_random(random_plan *r) {
    uint64_t sum[LG_N_ARENAS] = {0};
    for (uint32_t v = 0; v < r->g.n_values; v++) {
        const lg_place *p = &r->plan.places[v];
        lg_arena_kind want = v == r->g.logits ? LG_ARENA_IO
                             : r->values[v].rows == LG_ROWS_STATE ? LG_ARENA_KV : LG_ARENA_SCRATCH;
        assert_int_equal(p->arena, want);
        assert_int_equal(p->bytes, size_of(r, v));
        assert_int_equal(p->offset % LG_ALIGN_BYTES, 0);
        assert_true(p->offset + p->bytes <= r->plan.arena_bytes[p->arena]);
        sum[p->arena] += align64(p->bytes);
        for (uint32_t w = 0; w < v; w++) {
            check_pair(r, v, w);
        }
    }
    for (int i = LG_ARENA_KV; i < LG_N_ARENAS; i++) {
        assert_true(r->plan.arena_bytes[i] <= sum[i]);
    }
    assert_true(r->plan.arena_bytes[LG_ARENA_SCRATCH] >= at_once(r));
}

static void random_graphs(void **state) {
    (void)state;
    static random_plan r;
    lg_hw_row hw = {.name = "none"};
    double ratio = 0.0;
    const uint64_t n = 400;
    for (uint64_t seed = 1; seed <= n; seed++) {
        lb_err e = {0};
        make_random(&r, seed, &hw);
        if (!lg_plan_memory(&r.plan, NULL, &r.arena, &e)) {
            fail_msg("seed %" PRIu64 ": %s", seed, e.text);
        }
        check_random(&r);
        uint64_t least = at_once(&r);
        ratio += least == 0 ? 1.0 : (double)r.plan.arena_bytes[LG_ARENA_SCRATCH] / (double)least;
        lb_arena_reset(&r.arena);
    }
    print_message("# scratch is %.3f times what lives at once, on average\n", ratio / (double)n);
    assert_true(ratio / (double)n < 1.2);
}

/* The same graph gives the same plan. */
static void plans_repeat(void **state) {
    (void)state;
    static random_plan a;
    static random_plan b;
    lg_hw_row hw = {.name = "none"};
    for (uint64_t seed = 1; seed < 40; seed++) {
        make_random(&a, seed, &hw);
        make_random(&b, seed, &hw);
        assert_true(lg_plan_memory(&a.plan, NULL, &a.arena, NULL) &&
                    lg_plan_memory(&b.plan, NULL, &b.arena, NULL));
        assert_memory_equal(a.plan.places, b.plan.places, a.g.n_values * sizeof *a.plan.places);
        lb_arena_reset(&a.arena);
        lb_arena_reset(&b.arena);
    }
}

/* Sizes that pass 64 bits are refused, in a product, in an arena, in the search for a place. */
static void sizes_that_overflow(void **state) {
    (void)state;
    static random_plan r;
    lg_hw_row hw = {.name = "none"};
    for (int i = 0; i < 3; i++) {
        lb_err e = {0};
        make_random(&r, 5, &hw);
        r.g.n_values = 3;
        r.g.n_nodes = 1;
        r.plan.n_launches = 1;
        r.g.logits = 2;
        r.nodes[0].n_operands = 0;
        for (uint32_t v = 0; v < 3; v++) {
            use(&r, 0, v, LG_WRITE);
            r.values[v] =
                (lg_gvalue){.name = "huge", .rows = LG_ROWS_T, .elem = LG_ELEM_I8, .width = 1};
        }
        r.plan.limits.t_max = 2;
        if (i == 0) {
            r.values[0].width = UINT64_MAX / 2 + 1;
        } else {
            r.values[0].width = UINT64_MAX / 2 - 100;
            r.values[1].width = i == 1 ? UINT64_MAX / 2 - 100 : 1;
        }
        if (i == 2) {
            r.values[0].rows = LG_ROWS_STATE;
            r.values[0].state_bytes = UINT64_MAX - 3;
            r.values[1].rows = LG_ROWS_STATE;
            r.values[1].state_bytes = 64;
        }
        assert_false(lg_plan_memory(&r.plan, NULL, &r.arena, &e));
        assert_int_equal(e.code, LB_OVERFLOW);
        assert_non_null(strstr(e.text, "memory plan: "));
        lb_arena_reset(&r.arena);
    }
}

/* ---- real plans */

static uint64_t arena(const plans_request *rq, lg_arena_kind kind) {
    plans p;
    plans_open(&p, rq);
    uint64_t n = p.r.plan->arena_bytes[kind];
    plans_close(&p);
    return n;
}

/* Caches grow with context and slots and nothing else; scratch with the rows of a step and nothing
 * else; weights with neither. */
static void what_grows_with_what(void **state) {
    (void)state;
    plans_request rq = {.recipe = "synth/llama-tiny", .ctx = 256, .chunk = 16};
    const uint64_t kv = arena(&rq, LG_ARENA_KV);
    const uint64_t scratch = arena(&rq, LG_ARENA_SCRATCH);
    const uint64_t weights = arena(&rq, LG_ARENA_WEIGHTS);
    assert_int_equal(kv, 2 * 2 * 256 * 2 * 16 *
                             2); /* layers, k and v, positions, heads, width, bytes */
    rq.ctx = 257;
    assert_int_equal(arena(&rq, LG_ARENA_KV), 2 * kv);
    assert_int_equal(arena(&rq, LG_ARENA_SCRATCH), scratch);
    rq.ctx = 256;
    rq.slots = 16;
    assert_int_equal(arena(&rq, LG_ARENA_KV), 16 * kv);
    assert_int_equal(arena(&rq, LG_ARENA_SCRATCH), scratch);
    rq.slots = 32;
    assert_int_equal(arena(&rq, LG_ARENA_SCRATCH), 2 * scratch); /* a row for each slot */
    assert_int_equal(arena(&rq, LG_ARENA_WEIGHTS), weights);
    rq.layers = 5;
    assert_int_equal(arena(&rq, LG_ARENA_SCRATCH), 2 * scratch); /* layers share it */
}

/* Tied embeddings lie in the image once. */
static void tied_weights_lie_once(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .ctx = 256, .chunk = 16});
    const lg_plan *plan = p.r.plan;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < plan->graph->n_tensors; i++) {
        sum += align64(plan->weights[i].bytes);
        assert_true(i == 0 || strcmp(plan->graph->tensors[i].name, "token_embd.weight") != 0);
    }
    assert_true(plan->arena_bytes[LG_ARENA_WEIGHTS] <= sum &&
                sum < plan->arena_bytes[LG_ARENA_WEIGHTS] + 64);
    plans_close(&p);
}

/* ---- limits */

static void limits_in_range(void **state) {
    (void)state;
    static const struct {
        uint64_t ctx, slots, chunk, t_max, rows;
    } right[] = {
        {1, 1, 1, 1, 1},
        {64, 1, 7, 7, 7},
        {4096, 1, 512, 512, 64},
        {4096, 100, 7, 100, 100},
        {4096, 3, 512, 512, 64},
        {LG_CTX_MAX, LG_SLOTS_MAX, LG_CHUNK_MAX, LG_CHUNK_MAX, LG_SLOTS_MAX},
        {1, LG_SLOTS_MAX, 1, LG_SLOTS_MAX, LG_SLOTS_MAX},
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        lg_limits l = {0};
        lb_err e = {0};
        assert_true(lg_limits_make(right[i].ctx, right[i].slots, right[i].chunk, &l, &e));
        assert_int_equal(l.t_max, right[i].t_max);
        assert_int_equal(l.logit_rows_max, right[i].rows);
    }
}

static void limits_out_of_range(void **state) {
    (void)state;
    static const struct {
        uint64_t ctx, slots, chunk;
        const char *says;
    } wrong[] = {
        {0, 1, 1, "--ctx is 0; it may be 1 to 16777216"},
        {LG_CTX_MAX + 1ULL, 1, 1, "--ctx is 16777217; it may be 1 to 16777216"},
        {1, 0, 1, "--slots is 0; it may be 1 to 1024"},
        {1, LG_SLOTS_MAX + 1ULL, 1, "--slots is 1025; it may be 1 to 1024"},
        {64, 1, 0, "--chunk is 0; it may be 1 to 131072"},
        {LG_CTX_MAX, 1, LG_CHUNK_MAX + 1ULL, "--chunk is 131073; it may be 1 to 131072"},
        {64, 1, 65, "--chunk is 65, more than --ctx 64"},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, "--ctx is 18446744073709551615"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        lg_limits l = {7, 7, 7, 7, 7};
        lb_err e = {0};
        assert_false(lg_limits_make(wrong[i].ctx, wrong[i].slots, wrong[i].chunk, &l, &e));
        assert_int_equal(e.code, LB_BAD_VALUE);
        if (strstr(e.text, wrong[i].says) == NULL) {
            fail_msg("'%s'; expected: %s", e.text, wrong[i].says);
        }
        assert_int_equal(l.ctx, 7);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(plans_repeat),
        cmocka_unit_test(sizes_that_overflow),
        cmocka_unit_test(what_grows_with_what),
        cmocka_unit_test(tied_weights_lie_once),
        cmocka_unit_test(limits_in_range),
        cmocka_unit_test(limits_out_of_range),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
