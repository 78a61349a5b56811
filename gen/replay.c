/* replay.c -- see replay.h. POSIX (mkdtemp). */
#define _POSIX_C_SOURCE 200809L
#include "replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "hw_rows.h"
#include "process.h"

typedef struct lister {
    const lg_plan *plan;
    lb_text list;
    lb_err *err;
    uint64_t n;
} lister;

/* A device that has just the row's limits, and memory for anything: the plan's bytes are proved
 * elsewhere. */
static bool settings(const lg_plan *plan, lb_arena *arena, lb_text *out, lb_err *err) {
    static const char *const not_there[] = {"vector_bits", "param_bytes_max",
                                            "regs_per_thread_max"};
    lb_text_init(out, arena);
    lb_text_printf(out, "name %s\nmemory_bytes %" PRIu64 "\n", lg_hw_name(plan->hw),
                   UINT64_C(1) << 46);
    for (const lg_hw_number *n = lg_hw_numbers; n->name != NULL; n++) {
        bool known = true;
        for (size_t i = 0; i < sizeof not_there / sizeof *not_there; i++) {
            known = known && strcmp(n->name, not_there[i]) != 0;
        }
        if (known) {
            lb_text_printf(out, "%s %" PRIu64 "\n", n->name, lg_hw_number_of(plan->hw, n));
        }
    }
    return lb_text_done(out, err);
}

static bool grid_at(const lg_plan *plan, const lg_kernel *k, uint64_t T, uint64_t L,
                    uint64_t grid[3], lb_err *err) {
    const lg_limits *l = &plan->limits;
    const lg_expr_var vars[] = {
        {"T", T}, {"L", L}, {"ctx", l->ctx}, {"slots", l->slots}, {"chunk", l->chunk}};
    for (int d = 0; d < 3; d++) {
        if (!lg_expr_eval(k->grid[d], vars, sizeof vars / sizeof *vars, &grid[d], err)) {
            return false;
        }
    }
    return true;
}

static void put_piece(lister *p, uint32_t kernel, const uint64_t grid[3], uint64_t rows) {
    const lg_kernel *k = &p->plan->kernels[kernel];
    lb_text_printf(&p->list,
                   "launch %" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                   " %s for %" PRIu64 " rows\n",
                   kernel, grid[0], grid[1], grid[2], k->block, k->smem_bytes, k->name, rows);
    p->n++;
}

/* One launch, in the pieces that the plan cuts dimension d and those after it into. */
static void put_pieces(lister *p, uint32_t kernel, uint64_t grid[3], int d, uint64_t rows) {
    if (d == 3) {
        put_piece(p, kernel, grid, rows);
        return;
    }
    uint64_t whole = grid[d];
    uint64_t most = p->plan->kernels[kernel].per_launch[d];
    if (most == 0 || whole <= most) {
        put_pieces(p, kernel, grid, d + 1, rows);
        return;
    }
    for (uint64_t at = 0; at < whole; at += most) {
        grid[d] = whole - at < most ? whole - at : most;
        put_pieces(p, kernel, grid, d + 1, rows);
    }
    grid[d] = whole;
}

static bool runs_over_L(const lg_kernel *k) {
    for (uint32_t i = 0; i < k->n_axes; i++) {
        if (strcmp(k->axes[i].kind, "logits") == 0) {
            return true;
        }
    }
    return false;
}

/* Every grid of one kernel; one that comes again for the next number of rows is made once. */
static bool put_kernel(lister *p, uint32_t kernel) {
    const lg_limits *l = &p->plan->limits;
    const lg_kernel *k = &p->plan->kernels[kernel];
    uint64_t last[3] = {0};
    bool over_L = runs_over_L(k);
    uint64_t n = over_L ? l->logit_rows_max : l->t_max;
    for (uint64_t rows = 1; rows <= n; rows++) {
        uint64_t grid[3];
        uint64_t L = rows < l->logit_rows_max ? rows : l->logit_rows_max;
        if (!grid_at(p->plan, k, over_L ? l->t_max : rows, L, grid, p->err)) {
            return false;
        }
        if (memcmp(grid, last, sizeof grid) != 0) {
            memcpy(last, grid, sizeof grid);
            put_pieces(p, kernel, grid, 0, rows);
        }
    }
    return true;
}

static bool make_list(lister *p, const char *dir) {
    for (int i = 0; i < LG_N_ARENAS; i++) {
        if (p->plan->arena_bytes[i] > 0) {
            lb_text_printf(&p->list, "alloc %" PRIu64 "\n", p->plan->arena_bytes[i]);
        }
    }
    for (uint32_t i = 0; i < p->plan->n_kernels; i++) {
        lb_text_printf(&p->list, "module %s/cubin/%s.cubin %s\n", dir, p->plan->kernels[i].name,
                       p->plan->kernels[i].name);
    }
    for (uint32_t i = 0; i < p->plan->n_kernels; i++) {
        if (!put_kernel(p, i)) {
            return false;
        }
    }
    return lb_text_done(&p->list, p->err);
}

/* Runs the tool over both files; what it says of a refused launch goes to stderr. */
static bool run_tool(const lister *p, const char *tool, const char *list, const char *device,
                     const volatile sig_atomic_t *stop, lb_arena *arena, lb_err *err) {
    const char *variable = lb_format(arena, err, "LAGEN_RECORDER=%s", device);
    const char *const argv[] = {"env", variable, tool, list, NULL};
    lb_err why = {0};
    if (variable == NULL || lg_process_run(argv, stop, &why)) {
        return variable != NULL;
    }
    if (why.code == LB_IO) {
        return lb_err_set(err, LB_PROOF, "the recorder of a %s refuses a launch; it stands above",
                          lg_hw_name(p->plan->hw));
    }
    *err = why;
    return false;
}

/* A folder of our own with a file in it; both are removed by drop_file. */
typedef struct own_file {
    char folder[32];
    const char *path;
} own_file;

static void drop_file(const own_file *f) {
    if (f->path != NULL) {
        unlink(f->path);
    }
    rmdir(f->folder);
}

static bool make_file(const lb_text *text, lb_arena *arena, own_file *out, lb_err *err) {
    own_file f = {.folder = "/tmp/lagen-replay-XXXXXX"};
    if (mkdtemp(f.folder) == NULL) {
        return lb_err_set(err, LB_IO, "%s cannot be made", f.folder);
    }
    f.path = lb_format(arena, err, "%s/file", f.folder);
    if (f.path == NULL || !lb_write_file(f.path, text->data, text->n_bytes, false, NULL, err)) {
        drop_file(&f);
        return false;
    }
    *out = f;
    return true;
}

bool lg_replay(const lg_plan *plan, const char *dir, const char *tool,
               const volatile sig_atomic_t *stop, lb_arena *arena, uint64_t *n_launches,
               lb_err *err) {
    lb_text limits;
    own_file list;
    own_file device;
    lister p = {.plan = plan, .err = err};
    lb_text_init(&p.list, arena);
    if (dir[strcspn(dir, " \t\n")] != '\0') {
        return lb_err_set(err, LB_UNSUPPORTED, "--replay: '%s' has a blank in its name", dir);
    }
    if (!settings(plan, arena, &limits, err) || !make_list(&p, dir) ||
        !make_file(&p.list, arena, &list, err)) {
        return false;
    }
    bool ok = make_file(&limits, arena, &device, err);
    if (ok) {
        ok = run_tool(&p, tool, list.path, device.path, stop, arena, err);
        drop_file(&device);
    }
    drop_file(&list);
    *n_launches = p.n;
    return ok;
}

bool lg_replay_program(const lg_plan *plan, const char *cli, const char *driver,
                       const volatile sig_atomic_t *stop, lb_arena *arena, lb_err *err) {
    lb_text limits;
    own_file device;
    if (!settings(plan, arena, &limits, err) || !make_file(&limits, arena, &device, err)) {
        return false;
    }
    const char *to = lb_format(arena, err, "LAGEN_CUDA_DRIVER=%s", driver);
    const char *of = lb_format(arena, err, "LAGEN_RECORDER=%s", device.path);
    const char *const argv[] = {"env", to, of, cli, "selftest", "--launches", NULL};
    lb_err why = {0};
    bool ok = to != NULL && of != NULL && lg_process_run(argv, stop, &why);
    if (!ok && why.code == LB_IO) {
        lb_err_set(err, LB_PROOF, "the program's own steps are refused on the recorder of a %s; why "
                                  "stands above",
                   lg_hw_name(plan->hw));
    } else if (!ok && why.code != LB_OK) {
        *err = why;
    }
    drop_file(&device);
    return ok;
}
