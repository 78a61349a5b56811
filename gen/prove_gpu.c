/* prove_gpu.c -- the prover's facts about a launch on a GPU that do not depend on T: threads,
 * registers, shared memory and parameter bytes against the hardware row. What the compiler makes of
 * the text is checked afterwards (cubin_check.h).
 *
 * Source of the formulas: CUDA C++ Programming Guide 13.0, "Hardware Multithreading" (registers are
 * given to warps in units) and "Launch Bounds"; struct layout: System V ABI for x86-64 and AAPCS64,
 * alike for the two types that a struct may hold. */
#include <string.h>

#include "base/num.h"
#include "prove_parts.h"

/* An SM's registers lie in four parts and a warp's in one of them; for the limit of one cta,
 * hardware counts warps as if they filled all parts alike. Source: cuda_occupancy.h of
 * toolkit 13.0; the caps that its ptxas keeps to agree (tests). */
enum { SM_PARTS = 4 };

static uint64_t warps_of(const lg_hw_row *hw, uint64_t threads) {
    return lb_ceil_div(threads, hw->warp_threads);
}

uint64_t lg_prove_reg_cap(const lg_hw_row *hw, uint64_t threads, uint64_t ctas_per_sm) {
    uint64_t warps = warps_of(hw, threads);
    uint64_t all = 0;
    if (warps == 0 || !lb_mul(warps, ctas_per_sm, &all) || all == 0) {
        return 0;
    }
    uint64_t in_sm = hw->regs_per_sm / SM_PARTS / lb_ceil_div(all, SM_PARTS);
    uint64_t in_cta = hw->regs_per_cta_max / (lb_ceil_div(warps, SM_PARTS) * SM_PARTS);
    uint64_t per_warp = in_sm < in_cta ? in_sm : in_cta;
    uint64_t cap = per_warp / hw->regs_unit * hw->regs_unit / hw->warp_threads;
    return cap < hw->regs_per_thread_max ? cap : hw->regs_per_thread_max;
}

/* sizeof the parameter struct: pointers of 8 bytes and uint32_t of 4. */
bool lg_prove_param_bytes(const lg_kernel *k, uint64_t *out, lb_err *err) {
    uint64_t at = 0;
    uint64_t largest = 1;
    for (uint32_t i = 0; i < k->n_params; i++) {
        const char *type = k->params[i].ctype;
        size_t n = strlen(type);
        bool pointer = n > 0 && type[n - 1] == '*';
        if (!pointer && strcmp(type, "uint32_t") != 0) {
            return lb_err_set(err, LB_PROOF,
                              "kernel '%s': parameter '%s' is of type '%.40s'; only pointers and "
                              "uint32_t have a known size",
                              k->name, k->params[i].name, type);
        }
        uint64_t size = pointer ? 8 : 4;
        largest = size > largest ? size : largest;
        at = (at + size - 1) / size * size + size; /* at most 64 parameters */
    }
    *out = (at + largest - 1) / largest * largest;
    return true;
}

/* Where the pieces of the carve list end. */
static bool shared_end(lg_prover *p, const lg_kernel *k, uint64_t *out) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < k->n_smem; i++) {
        const lg_smem *s = &k->smem[i];
        uint64_t begin = end;
        if (s->align == 0 || !lb_add(end, s->align - 1, &begin) ||
            !lb_add(begin / s->align * s->align, s->bytes, &end)) {
            return lg_prove_fail(p, "end of shared", s->name, UINT64_MAX, UINT64_MAX);
        }
    }
    *out = end;
    return true;
}

/* As many ctas as the kernel asks for lie on one SM together. */
static bool fits_sm(lg_prover *p, const lg_kernel *k, uint64_t smem) {
    const lg_hw_row *hw = p->plan->hw;
    uint64_t threads = 0;
    uint64_t bytes = 0;
    if (k->ctas_per_sm == 0) {
        return lg_prove_fail(p, "ctas_per_sm", k->name, 0, hw->ctas_per_sm);
    }
    if (!lb_mul(k->ctas_per_sm, k->block, &threads) ||
        !lb_add(smem, hw->smem_reserved_bytes, &bytes) || !lb_mul(bytes, k->ctas_per_sm, &bytes)) {
        return lg_prove_fail(p, "ctas_per_sm", k->name, k->ctas_per_sm, hw->ctas_per_sm);
    }
    return lg_prove_fact(p, "ctas of an SM", k->name, k->ctas_per_sm, hw->ctas_per_sm) &&
           lg_prove_fact(p, "threads of an SM", k->name, threads, hw->threads_per_sm) &&
           lg_prove_fact(p, "shared bytes of an SM", k->name, bytes, hw->smem_per_sm_bytes);
}

/* A cap that leaves the compiler nothing to work with is refused here; ptxas gives each thread 16
 * at least. */
static bool registers_fit(lg_prover *p, const lg_kernel *k) {
    enum { LEAST = 16 };
    const lg_hw_row *hw = p->plan->hw;
    uint64_t cap = lg_prove_reg_cap(hw, k->block, k->ctas_per_sm);
    if (cap < LEAST) {
        return lg_prove_fail(p, "registers wanted", k->name, LEAST, cap);
    }
    uint64_t per_warp = lb_ceil_div(cap * hw->warp_threads, hw->regs_unit) * hw->regs_unit;
    uint64_t warps = warps_of(hw, k->block);
    uint64_t counted = lb_ceil_div(warps, SM_PARTS) * SM_PARTS;
    uint64_t held = hw->regs_per_sm / SM_PARTS / per_warp * SM_PARTS;
    return lg_prove_fact(p, "registers of a cta", k->name, per_warp * counted,
                         hw->regs_per_cta_max) &&
           lg_prove_fact(p, "warps that an SM's registers hold", k->name, warps * k->ctas_per_sm,
                         held);
}

/* What is read before the launch in front has ended is a weight, which no launch writes: the loader
 * did, long before. */
static bool early_reads_are_weights(lg_prover *p) {
    const lg_kernel *k = p->kernel;
    for (uint32_t i = 0; i < k->n_early; i++) {
        const lg_goperand *arg = NULL;
        uint32_t found = 0;
        for (uint32_t b = 0; b < p->n_bound; b++) {
            if (strcmp(p->bound[b].param, k->early[i]) == 0) {
                arg = p->bound[b].arg;
                found++;
            }
        }
        if (found != 1 || arg == NULL) {
            return lg_prove_fail(p, "arguments of an early read", k->early[i], found, 1);
        }
        if (arg->access != LG_TENSOR) {
            return lg_prove_fail_text(p, "early read", k->early[i], LG_ACCESS_NAMES[arg->access],
                                      LG_ACCESS_NAMES[LG_TENSOR]);
        }
        if (!lg_prove_fact(p, "launches that write an early read", k->early[i], 0, 0)) {
            return false;
        }
    }
    return k->waits || k->n_early == 0 ||
           lg_prove_fail(p, "waits for the launch in front", k->name, 0, 1);
}

bool lg_prove_gpu(lg_prover *p) {
    const lg_hw_row *hw = p->plan->hw;
    const lg_kernel *k = p->kernel;
    uint64_t params = 0;
    uint64_t smem = 0;
    if (k->block == 0 || k->block % hw->warp_threads != 0) {
        return lg_prove_fail(p, "threads beside whole warps", k->name, k->block % hw->warp_threads,
                             0);
    }
    uint64_t most = hw->cta_threads_max < hw->cta_x_max ? hw->cta_threads_max : hw->cta_x_max;
    if (!lg_prove_param_bytes(k, &params, p->err) || !shared_end(p, k, &smem)) {
        return false;
    }
    if (smem != k->smem_bytes) {
        return lg_prove_fail(p, "shared bytes of a launch", k->name, k->smem_bytes, smem);
    }
    return lg_prove_fact(p, "threads of a cta", k->name, k->block, most) &&
           lg_prove_fact(p, "shared bytes of a cta", k->name, smem, hw->smem_per_cta_bytes) &&
           lg_prove_fact(p, "parameter bytes", k->name, params, hw->param_bytes_max) &&
           lg_prove_fact(p, "local bytes", k->name, k->scratch_bytes, 0) && fits_sm(p, k, smem) &&
           registers_fit(p, k) && early_reads_are_weights(p);
}
