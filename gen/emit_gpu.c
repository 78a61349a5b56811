/* emit_gpu.c -- what is special about emitting a program for a GPU. */
#include <inttypes.h>
#include <string.h>

#include "emit_parts.h"

/* ---- what templates read */

/* Grid expression d as C in T and L. */
static const lg_value *grid_c(lg_builder *b, const lg_plan *plan, const lg_kernel *k, int d,
                              lb_arena *arena) {
    const lg_limits *l = &plan->limits;
    const lg_expr_var known[] = {{"ctx", l->ctx}, {"slots", l->slots}, {"chunk", l->chunk}};
    const lg_expr *folded = NULL;
    lb_err why = {0};
    lb_text c;
    lb_text_init(&c, arena);
    if (!lg_expr_fold(k->grid[d], known, sizeof known / sizeof *known, arena, &folded, &why)) {
        lg_build_fail(b, &why);
        return NULL;
    }
    lg_expr_c(folded, NULL, NULL, 0, &c);
    if (!lb_text_done(&c, &why)) {
        lg_build_fail(b, &why);
        return NULL;
    }
    return lg_build_string(b, c.data);
}

/* The dimensions that are cut: which, how many positions a launch gets, the parameter that takes
 * the first. */
static const lg_value *cuts(lg_builder *b, const lg_kernel *k) {
    static const char *const names[] = {"x", "y", "z"};
    lg_value *list = lg_build_array(b);
    for (uint32_t i = 0; i < k->n_axes; i++) {
        const lg_axis *a = &k->axes[i];
        int d = a->on[0] - 'x';
        if (a->base == NULL || k->per_launch[d] == 0) {
            continue;
        }
        lg_value *v = lg_build_map(b);
        lg_build_set_string(b, v, "dim", names[d]);
        lg_build_set_uint(b, v, "index", (uint64_t)d);
        lg_build_set_uint(b, v, "per_launch", k->per_launch[d]);
        lg_build_set_string(b, v, "base", a->base);
        lg_build_push(b, list, v);
    }
    return list;
}

/* Which rows a kernel runs over: "L" if it has an axis of logit rows. */
static const char *rows_of(const lg_kernel *k) {
    for (uint32_t i = 0; i < k->n_axes; i++) {
        if (strcmp(k->axes[i].kind, "logits") == 0) {
            return "L";
        }
    }
    return "T";
}

void lg_emit_gpu_kernel(lg_builder *b, const lg_plan *plan, uint32_t kernel, lb_arena *arena,
                        lg_value *out) {
    const lg_kernel *k = &plan->kernels[kernel];
    lg_value *v = lg_build_map(b);
    lg_value *grid = lg_build_array(b);
    for (int d = 0; d < 3; d++) {
        lg_build_push(b, grid, grid_c(b, plan, k, d, arena));
    }
    lg_build_set_uint(b, v, "block", k->block);
    lg_build_set_uint(b, v, "smem_bytes", k->smem_bytes);
    lg_build_set_bool(b, v, "overlaps", k->waits && lg_hw_has(plan->hw, LG_HW_PDL));
    lg_build_set_uint(b, v, "ctas_per_sm", k->ctas_per_sm);
    lg_build_set_uint(b, v, "reg_cap", lg_prove_reg_cap(plan->hw, k->block, k->ctas_per_sm));
    lg_build_set(b, v, "grid", grid);
    lg_build_set(b, v, "cuts", cuts(b, k));
    lg_build_set_string(b, v, "rows", rows_of(k));
    lg_build_set_string(b, v, "few", plan->kernels[k->few].name);
    lg_build_set_uint(b, v, "few_rows", LG_FEW_ROWS);
    lg_build_set(b, out, "gpu", v);
}

const lg_value *lg_emit_gpu(lg_builder *b, const lg_plan *plan, const lg_emit_options *o) {
    enum { DRIVER_OF_CUDA_13 = 13000 };
    const lg_hw_row *hw = plan->hw;
    lg_value *v = lg_build_map(b);
    lg_value *grid = lg_build_array(b);
    lg_value *flags = lg_build_array(b);
    uint64_t limit[3];
    lg_hw_grid_max(hw, limit);
    for (int d = 0; d < 3; d++) {
        lg_build_push(b, grid, lg_build_uint(b, limit[d]));
    }
    lg_build_push(b, flags, lg_build_string(b, hw->flags));
    lg_build_set(b, v, "grid_max", grid);
    lg_build_set(b, v, "flags", flags);
    lg_build_set_bool(b, v, "nvcc", o->cuda == NULL || o->cuda->nvrtc == NULL);
    lg_build_set_uint(b, v, "driver_min",
                      o->cuda == NULL ? DRIVER_OF_CUDA_13 : o->cuda->version / 1000 * 1000);
    lg_build_set_uint(b, v, "few_rows", LG_FEW_ROWS);
    lg_build_set_uint(b, v, "step_offset", plan->step_offset);
    lg_build_set_uint(b, v, "step_bytes", plan->step_bytes);
    lg_build_set_uint(b, v, "pick_bytes", LG_PICK_BYTES);
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"compute_major", hw->compute_major},
        {"compute_minor", hw->compute_minor},
        {"cta_threads_max", hw->cta_threads_max},
        {"warp_threads", hw->warp_threads},
        {"threads_per_sm", hw->threads_per_sm},
        {"ctas_per_sm", hw->ctas_per_sm},
        {"smem_per_cta_bytes", hw->smem_per_cta_bytes},
        {"smem_per_sm_bytes", hw->smem_per_sm_bytes},
        {"regs_per_cta_max", hw->regs_per_cta_max},
        {"regs_per_sm", hw->regs_per_sm},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lg_build_set_uint(b, v, numbers[i].key, numbers[i].value);
    }
    return v;
}

/* ---- cubins that lagen compiles itself */

enum { HEADERS_MAX = 64 };

/* The emitted headers that kernel text may include: src/lib/<name>. */
static uint32_t headers(const lg_emitter *e, lg_cuda_header *out) {
    static const char folder[] = "src/lib/";
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_files && n < HEADERS_MAX; i++) {
        const lg_emit_file *f = &e->files[i];
        if (strncmp(f->path, folder, sizeof folder - 1) == 0) {
            out[n++] = (lg_cuda_header){f->path + sizeof folder - 1, f->data};
        }
    }
    return n;
}

static const lg_emit_file *file_at(const lg_emitter *e, const char *path) {
    for (uint32_t i = 0; i < e->n_files; i++) {
        if (strcmp(e->files[i].path, path) == 0) {
            return &e->files[i];
        }
    }
    return NULL;
}

static bool compile(lg_emitter *e, const lg_kernel *k, const lg_cuda_header *list,
                    uint32_t n_headers, lb_err *err) {
    const char *from = lb_format(e->arena, err, "src/%s.cu", k->name);
    const char *to = lb_format(e->arena, err, "cubin/%s.cubin", k->name);
    const lg_emit_file *text = from == NULL ? NULL : file_at(e, from);
    void *cubin = NULL;
    size_t n = 0;
    if (to == NULL || text == NULL) {
        return text != NULL || lb_err_set(err, LB_MISSING, "%s was not emitted", k->name);
    }
    const char *const flags[] = {e->plan->hw->flags};
    const lg_cuda_source source = {from, text->data, flags, 1, list, n_headers};
    return lg_nvrtc_compile(e->o->cuda->nvrtc, &source, e->arena, &cubin, &n, err) &&
           lg_emit_add(e, to, cubin, n, err);
}

static bool compile_all(lg_emitter *e, lb_err *err) {
    lg_cuda_header list[HEADERS_MAX];
    uint32_t n = headers(e, list);
    for (uint32_t i = 0; i < e->plan->n_kernels; i++) {
        if (!compile(e, &e->plan->kernels[i], list, n, err)) {
            return false;
        }
    }
    return true;
}

bool lg_emit_gpu_files(lg_emitter *e, const lg_value *all, lb_err *err) {
    static const char *const files[][2] = {{"program/kernels_cuda.h.lua", "src/kernels.h"},
                                           {"program/step_cuda.c.lua", "src/step.c"},
                                           {"program/gpu.c.lua", "src/gpu.c"},
                                           {"program/cubins.S.lua", "src/cubins.S"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!lg_emit_render(e, files[i][0], all, files[i][1], err)) {
            return false;
        }
    }
    return e->o->cuda == NULL || e->o->cuda->nvrtc == NULL || compile_all(e, err);
}
