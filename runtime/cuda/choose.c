/* choose.c -- which device a program runs on: one that has the compute capability and the limits
 * that its proof took as given, and memory for its arenas. Named by index, UUID or PCI address, or
 * the only one of its kind. */
#include "cuda/cuda.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"

static bool attr(const rt_cuda *c, rt_cu_device_attr which, int *out, lb_err *err) {
    return RT_CU_CALL(&c->d, err, cuDeviceGetAttribute, out, which, c->device);
}

/* "GPU-" and the 16 bytes in hex, as nvidia-smi writes them. */
static bool read_uuid(rt_cuda *c, lb_err *err) {
    static const char hex[] = "0123456789abcdef";
    rt_cu_uuid u = {{0}};
    size_t at = 4;
    if (!RT_CU_CALL(&c->d, err, cuDeviceGetUuid_v2, &u, c->device)) {
        return false;
    }
    char *to = c->board.uuid; /* 40 characters of its 48 */
    memcpy(to, "GPU-", 4);
    for (size_t i = 0; i < sizeof u.bytes; i++) {
        unsigned byte = (unsigned char)u.bytes[i];
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            to[at++] = '-';
        }
        to[at++] = hex[byte >> 4];
        to[at++] = hex[byte & 15];
    }
    to[at] = '\0';
    return true;
}

/* Fills c->device and c->board with device `index`. */
static bool look_at(rt_cuda *c, int index, lb_err *err) {
    rt_cuda_board *b = &c->board;
    *b = (rt_cuda_board){.index = index};
    return RT_CU_CALL(&c->d, err, cuDeviceGet, &c->device, index) &&
           RT_CU_CALL(&c->d, err, cuDeviceGetName, b->name, (int)sizeof b->name, c->device) &&
           read_uuid(c, err) &&
           RT_CU_CALL(&c->d, err, cuDeviceGetPCIBusId, b->pci, (int)sizeof b->pci, c->device) &&
           RT_CU_CALL(&c->d, err, cuDeviceTotalMem_v2, &b->total_bytes, c->device) &&
           attr(c, RT_CU_DEV_MAJOR, &b->major, err) && attr(c, RT_CU_DEV_MINOR, &b->minor, err) &&
           attr(c, RT_CU_DEV_SMS, &b->sms, err);
}

static bool is_number(const char *s) {
    size_t n = strspn(s, "0123456789");
    return n > 0 && n < 5 && s[n] == '\0';
}

/* Whether it has the form of an index, a UUID's beginning or a PCI address' end. */
static bool is_name(const char *s) {
    size_t n = strlen(s);
    if (strncasecmp(s, "GPU-", 4) == 0) {
        return n >= 8 && s[4 + strspn(s + 4, "0123456789abcdefABCDEF-")] == '\0';
    }
    return is_number(s) || (n >= 6 && strchr(s, ':') != NULL &&
                            s[strspn(s, "0123456789abcdefABCDEF:.")] == '\0');
}

/* "GPU-4a1b" names by the beginning of the UUID, "01:00.0" by the end of the PCI address. */
static bool is_wanted(const rt_cuda_board *b, const char *wanted) {
    char index[16];
    size_t pci = strlen(b->pci);
    size_t n = strlen(wanted);
    snprintf(index, sizeof index, "%d", b->index);
    if (is_number(wanted)) {
        return strcmp(index, wanted) == 0;
    }
    if (strncasecmp(wanted, "GPU-", 4) == 0) {
        return n >= 8 && strncasecmp(b->uuid, wanted, n) == 0;
    }
    return n >= 6 && n <= pci && strcasecmp(b->pci + pci - n, wanted) == 0 &&
           (n == pci || b->pci[pci - n - 1] == ':');
}

static bool right_class(const rt_cuda *c) {
    const rt_gpu *g = c->model->gpu;
    return c->board.major == (int)g->compute_major && c->board.minor == (int)g->compute_minor;
}

/* The attributes that the proof took as given, each at least as large here. */
static bool has_limits(const rt_cuda *c, lb_err *err) {
    const rt_gpu_limits *l = &c->model->gpu->limits;
    const struct {
        const char *what;
        rt_cu_device_attr which;
        uint32_t least;
    } rows[] = {
        {"grid x", RT_CU_DEV_GRID_X, l->grid[0]},
        {"grid y", RT_CU_DEV_GRID_Y, l->grid[1]},
        {"grid z", RT_CU_DEV_GRID_Z, l->grid[2]},
        {"threads of a cta", RT_CU_DEV_CTA_THREADS, l->cta_threads},
        {"threads of a warp", RT_CU_DEV_WARP, l->warp_threads},
        {"threads of an SM", RT_CU_DEV_THREADS_PER_SM, l->threads_per_sm},
        {"ctas of an SM", RT_CU_DEV_CTAS_PER_SM, l->ctas_per_sm},
        {"shared bytes of a cta", RT_CU_DEV_SMEM_OPTIN, l->smem_per_cta_bytes},
        {"shared bytes of an SM", RT_CU_DEV_SMEM_PER_SM, l->smem_per_sm_bytes},
        {"registers of a cta", RT_CU_DEV_REGS_PER_CTA, l->regs_per_cta},
        {"registers of an SM", RT_CU_DEV_REGS_PER_SM, l->regs_per_sm},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int have = 0;
        if (!attr(c, rows[i].which, &have, err)) {
            return false;
        }
        if (have < 0 || (uint32_t)have < rows[i].least) {
            return lb_err_set(err, LB_WRONG_BOX,
                              "device %d (%s): %s is %d; the program was proved for %u",
                              c->board.index, c->board.name, rows[i].what, have, rows[i].least);
        }
    }
    int have = 0;
    return attr(c, RT_CU_DEV_WARP, &have, err) &&
           ((uint32_t)have == l->warp_threads ||
            lb_err_set(err, LB_WRONG_BOX, "a warp of %d threads", have));
}

static bool arena_sum(const rt_model *m, uint64_t *out) {
    *out = 0;
    for (int k = 0; k < RT_N_ARENAS; k++) {
        if (!lb_add(*out, m->arena_bytes[k], out)) {
            return false;
        }
    }
    return true;
}

/* "0: NVIDIA H200, compute 9.0, 150754820096 bytes; 1: ..." as far as it fits. */
static void list_one(const rt_cuda_board *b, char *list, size_t size) {
    size_t at = strlen(list);
    snprintf(list + at, size - at, "%s%d: %s, compute %d.%d, %.1f GiB", at == 0 ? "" : "; ",
             b->index, b->name, b->major, b->minor,
             (double)b->total_bytes / (1024.0 * 1024.0 * 1024.0));
}

bool rt_cuda_choose(rt_cuda *c, const char *wanted, lb_err *err) {
    const rt_gpu *g = c->model->gpu;
    char list[160] = "";
    uint64_t need = 0;
    int n = 0;
    int found = -1;
    int matches = 0;
    if (wanted != NULL && !is_name(wanted)) {
        return lb_err_set(err, LB_USAGE,
                          "--device: '%.40s' is no index, no beginning of a UUID (GPU- and 4 digits "
                          "at least) and no PCI address",
                          wanted);
    }
    if (!arena_sum(c->model, &need)) {
        return lb_err_set(err, LB_RESOURCES, "the sum of the arenas passes 64 bits");
    }
    if (!RT_CU_CALL(&c->d, err, cuDeviceGetCount, &n)) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (!look_at(c, i, err)) {
            return false;
        }
        list_one(&c->board, list, sizeof list);
        bool fits = wanted != NULL ? is_wanted(&c->board, wanted)
                                   : right_class(c) && c->board.total_bytes >= need;
        found = fits ? i : found;
        matches += fits;
    }
    if (matches == 0) {
        return lb_err_set(err, LB_WRONG_BOX,
                          "no device %s for this program (compute %u.%u, %" PRIu64
                          " bytes); there is: %s",
                          wanted == NULL ? "here is one" : wanted, g->compute_major,
                          g->compute_minor, need, n == 0 ? "none" : list);
    }
    if (matches > 1) {
        return lb_err_set(
            err, LB_WRONG_BOX,
            "%d devices would do; name one by --device (index, UUID or PCI address): %s", matches,
            list);
    }
    if (!look_at(c, found, err)) {
        return false;
    }
    if (!right_class(c)) {
        return lb_err_set(
            err, LB_WRONG_BOX,
            "device %d (%s) has compute capability %d.%d; this program was made for %u.%u (%s)",
            found, c->board.name, c->board.major, c->board.minor, g->compute_major,
            g->compute_minor, c->model->arch_row);
    }
    return has_limits(c, err);
}

/* One line a device; the reason why there is none. */
static void describe_devices(rt_cuda *c, lb_text *out) {
    lb_err err = {0};
    int n = 0;
    bool ok = rt_cuda_driver_open(&c->d, (int)c->model->gpu->driver_min, &err) &&
              RT_CU_CALL(&c->d, &err, cuDeviceGetCount, &n);
    for (int i = 0; ok && i < n; i++) {
        const rt_cuda_board *b = &c->board;
        ok = look_at(c, i, &err);
        if (ok) {
            lb_text_printf(out, "  device %d  %s, compute %d.%d, %d SMs, %zu bytes, %s, PCI %s%s\n",
                           i, b->name, b->major, b->minor, b->sms, b->total_bytes, b->uuid, b->pci,
                           right_class(c) ? "" : "; not of this program's kind");
        }
    }
    if (!ok) {
        lb_text_printf(out, "  %s\n", err.text);
    }
    rt_cuda_driver_close(&c->d);
}

void rt_cuda_describe(const rt_model *m, lb_text *out) {
    rt_cuda c = {.model = m};
    lb_err err = {0};
    const rt_gpu *g = m->gpu;
    lb_text_printf(out,
                   "gpu         compute %u.%u, driver for CUDA %u or newer; %u launches of %u "
                   "kernels a step\n",
                   g->compute_major, g->compute_minor, g->driver_min / 1000, g->n_launches,
                   g->n_kernels);
    if (!rt_cuda_env(c.env, sizeof c.env, &err)) {
        lb_text_printf(out, "  environment  %s\n", err.text);
    } else if (c.env[0] != '\0') {
        lb_text_printf(out, "  environment  %s\n", c.env);
    }
    describe_devices(&c, out);
}
