/* test_prove_gpu.c -- the facts of a GPU's row: each is broken once, and the prover says which.
 * Every row plans and proves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "plans.h"

static const plans_request TINY = {
    .recipe = "synth/llama-tiny", .target = "sm_90", .ctx = 512, .chunk = 9, .slots = 2};

static void every_row_proves(void **state) {
    (void)state;
    size_t n = 0;
    const lg_hw_row *rows = lg_hw_rows(&n);
    for (size_t i = 0; i < n; i++) {
        plans p;
        if (!rows[i].gpu) {
            continue;
        }
        plans_open(&p, &(plans_request){.recipe = "synth/llama-576",
                                        .target = rows[i].name,
                                        .ctx = 512,
                                        .chunk = 64,
                                        .slots = 3});
        assert_true(p.r.plan->n_kernels > 10);
        plans_close(&p);
    }
}

/* More layers, the same kernels: there are as many cubins as different ops. */
static void layers_share_kernels(void **state) {
    (void)state;
    plans two;
    plans seven;
    plans_open(&two, &TINY);
    plans_open(&seven, &(plans_request){.recipe = "synth/llama-tiny",
                                        .target = "sm_90",
                                        .layers = 7,
                                        .ctx = 512,
                                        .chunk = 9,
                                        .slots = 2});
    assert_true(seven.r.plan->n_launches > two.r.plan->n_launches);
    assert_int_equal(seven.r.plan->n_kernels, two.r.plan->n_kernels);
    plans_close(&two);
    plans_close(&seven);
}

/* A product has a kernel of its own for few rows, proved beside the other with the same parameters.
 */
static void few_rows_have_their_kernel(void **state) {
    (void)state;
    plans p;
    uint32_t n = 0;
    plans_open(&p, &TINY);
    lg_plan *plan = p.r.plan;
    for (uint32_t i = 0; i < plan->n_kernels; i++) {
        lg_kernel *k = &plan->kernels[i];
        if (k->few == i) {
            continue;
        }
        n++;
        assert_int_equal(plan->kernels[k->few].few, k->few);
        uint32_t few = k->few;
        k->few = plan->n_kernels;
        plans_refused(plan, "kernel for few rows");
        k->few = 0; /* embed: other parameters */
        plans_refused(plan, "parameter of the kernel for few rows");
        k->few = few;
        uint64_t block = plan->kernels[few].block;
        plan->kernels[few].block = 1056;
        plans_refused(plan, "is 1056, the limit is 1024");
        plan->kernels[few].block = block;
    }
    assert_true(n >= 5); /* the products */
    plans_close(&p);
}

typedef struct bend {
    const char *says;
    uint64_t block, scratch, smem_bytes, ctas_per_sm; /* 0: as it is; 1: set to 0 */
} bend;

static void one_bend(lg_plan *plan, lg_kernel *k, const bend *b) {
    lg_kernel kept = *k;
    if (b->block != 0) {
        k->block = b->block;
    }
    k->scratch_bytes += b->scratch;
    if (b->smem_bytes != 0) {
        k->smem_bytes = b->smem_bytes;
    }
    if (b->ctas_per_sm != 0) {
        k->ctas_per_sm = b->ctas_per_sm == 1 ? 0 : b->ctas_per_sm;
    }
    plans_refused(plan, b->says);
    *k = kept;
}

static void numbers_of_a_kernel(void **state) {
    (void)state;
    static const bend bends[] = {
        {"threads beside whole warps", 100, 0, 0, 0},
        {"block of", 2048, 0, 0, 0},
        {"local bytes of", 0, 4, 0, 0},
        {"shared bytes of a launch", 0, 0, 64, 0},
        {"ctas_per_sm", 0, 0, 0, 1},
        {"ctas of an SM", 0, 0, 0, 33},
        {"threads of an SM", 1024, 0, 0, 3},
        {"registers wanted", 1024, 0, 0, 2000},
    };
    plans p;
    plans_open(&p, &TINY);
    for (size_t i = 0; i + 1 < sizeof bends / sizeof *bends; i++) {
        one_bend(p.r.plan, &p.r.plan->kernels[0], &bends[i]);
    }
    lg_hw_row hw = *p.r.plan->hw;
    p.r.plan->hw = &hw;
    hw.regs_per_sm = 1024; /* a warp of 32 threads gets 256 of a quarter, 8 a thread */
    plans_refused(p.r.plan, "registers wanted of 'k_embed");
    plans_close(&p);
}

/* A kernel that waits for the launch in front itself may read weights before it does, and nothing
 * else. */
static void early_reads_are_weights(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &TINY);
    lg_kernel *k = p.r.plan->kernels;
    while (k->n_early == 0 || strcmp(k->family, "matmul") != 0) {
        k++;
        assert_true(k < p.r.plan->kernels + p.r.plan->n_kernels);
    }
    const lg_kernel kept = *k;
    static const struct {
        const char *name, *says;
    } bends[] = {{"x_q", "early read of 'x_q' is read, it must be tensor"},
                 {"y", "early read of 'y' is write"},
                 {"step", "arguments of an early read of 'step'"},
                 {"w9", "arguments of an early read of 'w9' is 0"}};
    for (size_t i = 0; i < sizeof bends / sizeof *bends; i++) {
        k->early = &bends[i].name;
        k->n_early = 1;
        plans_refused(p.r.plan, bends[i].says);
    }
    *k = kept;
    k->waits = false;
    plans_refused(p.r.plan, "waits for the launch in front");
    *k = kept;
    plans_close(&p);
}

static void shared_memory_is_added_up_again(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &TINY);
    lg_kernel *k = NULL;
    for (uint32_t i = 0; i < p.r.plan->n_kernels && k == NULL; i++) {
        k = p.r.plan->kernels[i].n_smem > 0 ? &p.r.plan->kernels[i] : NULL;
    }
    assert_non_null(k);
    lg_smem *s = (lg_smem *)(uintptr_t)&k->smem[0];
    uint64_t kept = s->bytes;
    s->bytes += 300000;
    plans_refused(p.r.plan, "shared bytes of a launch");
    k->smem_bytes += 300000;
    plans_refused(p.r.plan, "shared bytes of a cta");
    s->bytes = kept;
    plans_refused(p.r.plan, "shared bytes of a launch");
    plans_close(&p);
}

static void parameters_have_a_known_size(void **state) {
    (void)state;
    plans p;
    lb_err e = {0};
    uint64_t n = 0;
    plans_open(&p, &TINY);
    lg_kernel *k = &p.r.plan->kernels[0];
    assert_true(lg_prove_param_bytes(k, &n, &e));
    assert_int_equal(n, 24); /* w, y, step */
    const lg_param odd[] = {
        {"a", "uint32_t"}, {"b", "const float *"}, {"c", "uint32_t"}, {"d", "uint32_t"}};
    const lg_kernel three = {.name = "k", .params = odd, .n_params = 3};
    const lg_kernel four = {.name = "k", .params = odd, .n_params = 4};
    const lg_kernel one = {.name = "k", .params = odd, .n_params = 1};
    assert_true(lg_prove_param_bytes(&three, &n, &e));
    assert_int_equal(n, 24);
    assert_true(lg_prove_param_bytes(&four, &n, &e));
    assert_int_equal(n, 24);
    assert_true(lg_prove_param_bytes(&one, &n, &e));
    assert_int_equal(n, 4);
    const lg_param bad[] = {{"a", "double"}};
    const lg_kernel wrong = {.name = "k", .params = bad, .n_params = 1};
    assert_false(lg_prove_param_bytes(&wrong, &n, &e));
    assert_int_equal(e.code, LB_PROOF);
    lg_hw_row hw = *p.r.plan->hw;
    p.r.plan->hw = &hw;
    hw.param_bytes_max = 16;
    plans_refused(p.r.plan, "parameter bytes of 'k_embed");
    plans_close(&p);
}

static void the_step_has_its_place(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &TINY);
    lg_plan *plan = p.r.plan;
    uint64_t offset = plan->step_offset;
    plan->step_offset = 0;
    plans_refused(plan, "'step'");
    plan->step_offset = offset + 64;
    plans_refused(plan, "'step'");
    plan->step_offset = offset + 1;
    plans_refused(plan, "'step'");
    plan->step_offset = offset;
    plan->step_bytes -= 4;
    plans_refused(plan, "'step'");
    plans_close(&p);
}

/* What ptxas of toolkit 13.0 gave to a kernel that wants 250 registers, under these launch bounds,
 * for sm_90. */
static void caps_are_those_of_the_compiler(void **state) {
    (void)state;
    static const struct {
        uint64_t threads, ctas, regs;
    } seen[] = {{384, 2, 80},  {384, 1, 168}, {256, 3, 80},  {128, 3, 168}, {128, 5, 96},
                {128, 4, 128}, {640, 1, 96},  {1024, 1, 64}, {512, 2, 64},  {512, 1, 128},
                {224, 1, 255}, {288, 2, 96},  {288, 1, 168}, {160, 1, 255}, {160, 6, 64},
                {96, 8, 80},   {96, 10, 64},  {64, 16, 64},  {32, 16, 128}, {32, 32, 64}};
    const lg_hw_row *hw = NULL;
    lb_err e = {0};
    assert_true(lg_hw_find("sm_90", &hw, &e));
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        assert_int_equal(lg_prove_reg_cap(hw, seen[i].threads, seen[i].ctas), seen[i].regs);
    }
    assert_int_equal(lg_prove_reg_cap(hw, 0, 1), 0);
    assert_int_equal(lg_prove_reg_cap(hw, 128, 0), 0);
    assert_int_equal(lg_prove_reg_cap(hw, 128, UINT64_MAX), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_proves),
        cmocka_unit_test(layers_share_kernels),
        cmocka_unit_test(few_rows_have_their_kernel),
        cmocka_unit_test(numbers_of_a_kernel),
        cmocka_unit_test(early_reads_are_weights),
        cmocka_unit_test(shared_memory_is_added_up_again),
        cmocka_unit_test(parameters_have_a_known_size),
        cmocka_unit_test(the_step_has_its_place),
        cmocka_unit_test(caps_are_those_of_the_compiler),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
