/* limits.c -- see limits.h. */
#include "recorder/limits.h"

enum { SM_PARTS = 4 }; /* an SM's registers lie in four parts */

static unsigned long long ceil_to(unsigned long long n, unsigned long long to) {
    return (n + to - 1) / to * to;
}

static unsigned long long least(unsigned long long a, unsigned long long b) {
    return a < b ? a : b;
}

static unsigned long long regs_of_warp(const rec_function *f) {
    return ceil_to(f->facts.regs * rec.s.warp_threads, rec.s.regs_unit);
}

unsigned rec_function_threads(const rec_function *f) {
    unsigned long long by_regs = rec.s.cta_threads_max;
    if (f->facts.regs != 0) {
        by_regs =
            rec.s.regs_per_cta_max / regs_of_warp(f) / SM_PARTS * SM_PARTS * rec.s.warp_threads;
    }
    unsigned long long bound =
        f->facts.max_threads == 0 ? rec.s.cta_threads_max : f->facts.max_threads;
    return (unsigned)least(least(by_regs, bound), rec.s.cta_threads_max);
}

/* Whether the registers of one cta pass what hardware gives it: it counts warps as if they filled
 * all parts alike. */
static bool too_many_registers(const rec_function *f, unsigned long long threads) {
    unsigned long long warps = ceil_to(threads, rec.s.warp_threads) / rec.s.warp_threads;
    return regs_of_warp(f) * ceil_to(warps, SM_PARTS) > rec.s.regs_per_cta_max;
}

unsigned rec_ctas_of_sm(const rec_function *f, unsigned threads, size_t smem_bytes) {
    unsigned long long warps = ceil_to(threads, rec.s.warp_threads) / rec.s.warp_threads;
    unsigned long long smem = smem_bytes + f->facts.static_smem_bytes;
    if (threads > rec_function_threads(f) || smem > rec.s.smem_per_cta_bytes ||
        too_many_registers(f, threads)) {
        return 0;
    }
    unsigned long long n =
        least(rec.s.ctas_per_sm, rec.s.threads_per_sm / (warps * rec.s.warp_threads));
    n = least(n, rec.s.smem_per_sm_bytes / ceil_to(smem + rec.s.smem_reserved_bytes, 128));
    if (f->facts.regs != 0) {
        n = least(n, rec.s.regs_per_sm / SM_PARTS / regs_of_warp(f) * SM_PARTS / warps);
    }
    return (unsigned)n;
}

static rt_cu_result check_dims(const rec_launch *l) {
    const unsigned long long grid[3] = {rec.s.grid_x_max, rec.s.grid_y_max, rec.s.grid_z_max};
    const unsigned long long block[3] = {rec.s.cta_x_max, rec.s.cta_y_max, rec.s.cta_z_max};
    unsigned long long threads = 1;
    for (int d = 0; d < 3; d++) {
        if (l->grid[d] == 0 || l->grid[d] > grid[d]) {
            return rec_refuse(l->grid[d] == 0 ? REC_grid_zero : REC_grid_too_large);
        }
        if (l->block[d] == 0 || l->block[d] > block[d]) {
            return rec_refuse(l->block[d] == 0 ? REC_block_zero : REC_block_too_large);
        }
        threads *= l->block[d];
    }
    return threads > rec.s.cta_threads_max ? rec_refuse(REC_block_too_large) : RT_CU_SUCCESS;
}

static rt_cu_result check_cluster(const rec_launch *l) {
    unsigned long long ctas = 1;
    for (int d = 0; d < 3; d++) {
        ctas *= l->cluster[d];
        if (l->cluster[d] == 0 || l->grid[d] % l->cluster[d] != 0) {
            return rec_refuse(REC_cluster_no_divisor);
        }
    }
    return ctas > rec.s.cluster_ctas_max ? rec_refuse(REC_cluster_too_large) : RT_CU_SUCCESS;
}

rt_cu_result rec_check_launch(const rec_function *f, const rec_launch *l) {
    rt_cu_result r = check_dims(l);
    unsigned long long threads = (unsigned long long)l->block[0] * l->block[1] * l->block[2];
    if (r == RT_CU_SUCCESS && f->facts.max_threads != 0 && threads > f->facts.max_threads) {
        r = rec_refuse(REC_block_above_launch_bounds);
    }
    if (r == RT_CU_SUCCESS && l->smem_bytes > f->dynamic_smem_max) {
        r = rec_refuse(REC_shared_above_attribute);
    }
    if (r == RT_CU_SUCCESS && too_many_registers(f, threads)) {
        r = rec_refuse(REC_too_many_registers);
    }
    if (r == RT_CU_SUCCESS) {
        r = check_cluster(l);
    }
    unsigned long long ctas = (unsigned long long)l->grid[0] * l->grid[1] * l->grid[2];
    if (r == RT_CU_SUCCESS && l->cooperative &&
        ctas > rec.s.sms * rec_ctas_of_sm(f, (unsigned)threads, l->smem_bytes)) {
        r = rec_refuse(REC_cooperative_too_large);
    }
    return r;
}
