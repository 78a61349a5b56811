/* test_pool.c -- the thread team: barriers and grids under stress, shares, sleep, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "pool.h"

enum { MAX_THREADS = 8, N_PHASES = 300, N_CTAS = 300, N_GRIDS = 53 };

static rt_pool *start(uint32_t n) {
    rt_pool *p = NULL;
    lb_err e = {0};
    assert_true(rt_pool_start(n, &p, &e));
    assert_int_equal(rt_pool_size(p), n);
    return p;
}

/* Each worker writes its cell, waits, and must see every other cell of the same phase. */
typedef struct stress {
    uint32_t cell[MAX_THREADS]; /* plain memory: the barrier alone orders it */
    uint32_t n_phases;
    _Atomic uint32_t n_wrong;
} stress;

static void stress_fn(void *arg, rt_pool *pool, uint32_t worker, uint32_t n) {
    stress *s = arg;
    for (uint32_t phase = 1; phase <= s->n_phases; phase++) {
        s->cell[worker] = phase;
        rt_pool_barrier(pool, worker);
        for (uint32_t i = 0; i < n; i++) {
            if (s->cell[i] != phase) {
                atomic_fetch_add(&s->n_wrong, 1);
            }
        }
        rt_pool_barrier(pool, worker);
    }
}

static void barrier_orders_memory(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= MAX_THREADS; n++) {
        rt_pool *p = start(n);
        stress s = {.n_phases = n <= 2 ? 20000 : N_PHASES};
        rt_pool_run(p, stress_fn, &s);
        assert_int_equal(s.n_wrong, 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(s.cell[i], s.n_phases);
        }
        rt_pool_stop(p);
    }
}

static void many_runs_each_reach_every_worker(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= MAX_THREADS; n++) {
        rt_pool *p = start(n);
        for (uint32_t i = 1; i <= 200; i++) {
            stress s = {.n_phases = 1};
            rt_pool_run(p, stress_fn, &s);
            assert_int_equal(s.n_wrong, 0);
        }
        rt_pool_stop(p);
    }
}

static void shares_cover_the_grid_once(void **state) {
    (void)state;
    static const uint32_t sizes[] = {0, 1, 2, 7, 8, 9, 1000, UINT32_MAX};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        for (uint32_t n = 1; n <= 9; n++) {
            uint32_t at = 0;
            for (uint32_t w = 0; w < n; w++) {
                uint32_t b = 1;
                uint32_t e = 0;
                rt_share(sizes[k], w, n, &b, &e);
                assert_int_equal(b, at);
                assert_true(e - b >= sizes[k] / n && e - b - sizes[k] / n <= 1);
                at = e;
            }
            assert_int_equal(at, sizes[k]);
        }
    }
}

/* A sequence of grids. In each, cta i adds to hits[i] and checks what its neighbour left in the grid
 * before: plain memory, so only rt_pool_close orders it. */
typedef struct grids {
    uint32_t cell[N_GRIDS + 1][N_CTAS];
    _Atomic uint8_t hits[N_GRIDS][N_CTAS];
    _Atomic uint32_t n_wrong;
    uint32_t grain;
    bool hold_back; /* workers but 0 enter only when 0 has gone through */
    _Atomic bool through;
} grids;

static uint32_t size_of(uint32_t g) {
    static const uint32_t sizes[] = {N_CTAS, 1, 0, 7, 100};
    return sizes[g % 5];
}

static void one_cta(grids *t, uint32_t g, uint32_t i) {
    uint32_t before = g == 0 ? 0 : size_of(g - 1);
    uint32_t other = before == 0 ? 0 : (i * 7U + 1U) % before;
    if (before > 0 && t->cell[g][other] != g * 1000U + other) {
        atomic_fetch_add(&t->n_wrong, 1);
    }
    t->cell[g + 1][i] = (g + 1) * 1000U + i;
    atomic_fetch_add(&t->hits[g][i], 1);
}

static void grids_fn(void *arg, rt_pool *pool, uint32_t worker, uint32_t n) {
    grids *t = arg;
    (void)n;
    while (t->hold_back && worker > 0 && !t->through) {
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    for (uint32_t g = 0; g < N_GRIDS; g++) {
        uint32_t b = 0;
        uint32_t e = 0;
        while (rt_pool_take(pool, worker, size_of(g), t->grain, &b, &e)) {
            if (b >= e || e > size_of(g) || e - b > t->grain) {
                atomic_fetch_add(&t->n_wrong, 1);
                break;
            }
            for (; b < e; b++) {
                one_cta(t, g, b);
            }
        }
        rt_pool_close(pool, worker, size_of(g));
    }
    if (worker == 0) {
        t->through = true;
    }
}

static void run_grids(rt_pool *p, uint32_t grain, bool hold_back) {
    static grids t;
    memset(&t, 0, sizeof t);
    t.grain = grain;
    t.hold_back = hold_back;
    rt_pool_run(p, grids_fn, &t);
    assert_int_equal(t.n_wrong, 0);
    for (uint32_t g = 0; g < N_GRIDS; g++) {
        for (uint32_t i = 0; i < N_CTAS; i++) {
            assert_int_equal(t.hits[g][i], i < size_of(g));
        }
    }
}

static void grids_run_each_cta_once_and_in_order(void **state) {
    (void)state;
    static const uint32_t grains[] = {1, 7, N_CTAS, UINT32_MAX};
    for (uint32_t n = 1; n <= MAX_THREADS; n++) {
        rt_pool *p = start(n);
        for (uint32_t k = 0; k < 40; k++) {
            run_grids(p, grains[k % 4], false);
        }
        rt_pool_stop(p);
    }
    assert_int_equal(rt_grain(0, 2), 1);
    assert_int_equal(rt_grain(1600, 2), 100);
}

static void grids_do_not_wait_for_workers(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 4; n++) {
        rt_pool *p = start(n);
        for (uint32_t k = 0; k < 10; k++) { /* would never end if a grid waited for the others */
            run_grids(p, 16, true);
            run_grids(p, 16, false);
        }
        rt_pool_stop(p);
    }
}

static double seconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void idle_workers_use_no_cpu(void **state) {
    (void)state;
    rt_pool *p = start(MAX_THREADS);
    stress s = {.n_phases = 1};
    rt_pool_run(p, stress_fn, &s);
    double before = seconds(CLOCK_PROCESS_CPUTIME_ID);
    nanosleep(&(struct timespec){.tv_nsec = 100 * 1000 * 1000}, NULL);
    assert_true(seconds(CLOCK_PROCESS_CPUTIME_ID) - before < 0.03);
    rt_pool_run(p, stress_fn, &s); /* and they wake again */
    assert_int_equal(s.n_wrong, 0);
    rt_pool_stop(p);
}

static void sizes_are_refused_not_clamped(void **state) {
    (void)state;
    rt_pool *p = NULL;
    lb_err e = {0};
    assert_false(rt_pool_start(RT_POOL_MAX_THREADS + 1, &p, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_non_null(strstr(e.text, "1025"));
    assert_non_null(strstr(e.text, "1024"));
    assert_null(p);
    assert_true(rt_pool_start(0, &p, &e));
    assert_true(rt_pool_size(p) >= 1);
    rt_pool_stop(p);
    rt_pool_stop(NULL);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(barrier_orders_memory),
        cmocka_unit_test(many_runs_each_reach_every_worker),
        cmocka_unit_test(shares_cover_the_grid_once),
        cmocka_unit_test(grids_run_each_cta_once_and_in_order),
        cmocka_unit_test(grids_do_not_wait_for_workers),
        cmocka_unit_test(idle_workers_use_no_cpu),
        cmocka_unit_test(sizes_are_refused_not_clamped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
