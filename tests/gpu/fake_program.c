#define _GNU_SOURCE
#include "gpu/fake_program.h"

#include <assert.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest.h"
#include "gpu/fake_cubin.h"
#include "load.h"

bool fake_uncut;

typedef struct rows_params {
    const float *x;
    float *y;
    const rt_step *step;
} rows_params;

typedef struct cut_params {
    float *y;
    const rt_step *step;
    uint32_t base;
} cut_params;

static const char DEFAULTS[] =
    "name NVIDIA H200\ncompute_major 9\ncompute_minor 0\nsms 132\nmemory_bytes 4294967296\n"
    "threads_per_sm 2048\n"
    "smem_per_cta_bytes 232448\nsmem_per_sm_bytes 233472\n";

static bool launch_cut(rt_cuda *c, const rt_step *s, lb_err *err) {
    const uint64_t n = s->n_rows;
    const uint64_t most = fake_uncut ? n : 65535;
    for (uint64_t base = 0; base < n; base += most) {
        const cut_params p = {(float *)(void *)rt_cuda_arena(c, RT_ARENA_SCRATCH),
                              rt_cuda_step_on_device(c), (uint32_t)base};
        const rt_gpu_launch l = {
            2, {1, (uint32_t)(n - base < most ? n - base : most), 1}, "norm of rows", 1};
        if (!rt_cuda_launch(c, &l, &p, s, err)) {
            return false;
        }
    }
    return true;
}

static bool launches(rt_cuda *c, const rt_step *s, lb_err *err) {
    const rows_params p = {(const float *)(void *)rt_cuda_arena(c, RT_ARENA_WEIGHTS),
                           (float *)(void *)rt_cuda_arena(c, RT_ARENA_SCRATCH),
                           rt_cuda_step_on_device(c)};
    const rt_gpu_launch embed = {0, {s->n_rows, 1, 1}, "embed of token_embd", -1};
    const rt_gpu_launch head = {1, {s->n_logits, 20, 1}, "matmul of output", -1};
    const rt_gpu_launch pick = {0, {s->n_logits, 1, 1}, "sample_pick", -1};
    return rt_cuda_launch(c, &embed, &p, s, err) && launch_cut(c, s, err) &&
           (s->n_logits == 0 || rt_cuda_launch(c, &head, &p, s, err)) &&
           (s->picks == NULL || rt_cuda_launch(c, &pick, &p, s, err));
}

static bool step(uint8_t *const *arenas, const rt_step *s, rt_pool *pool, lb_err *err) {
    (void)pool;
    return rt_cuda_step(arenas, s, err);
}

static void recorder_path(char path[PATH_MAX]) {
    char exe[PATH_MAX - 64];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    assert(n > 0);
    exe[n] = '\0';
    for (int up = 0; up < 3; up++) {
        *strrchr(exe, '/') = '\0';
    }
    snprintf(path, PATH_MAX, "%s/liblagen_recorder.so", exe);
}

void fake_program_settings(const fake_program *p, const char *settings) {
    FILE *f = fopen(p->settings, "w");
    assert(f != NULL);
    fputs(DEFAULTS, f);
    fputs(settings == NULL ? "" : settings, f);
    fclose(f);
}

static void write_weights(fake_program *p) {
    char path[96];
    uint8_t *data = calloc(1, FAKE_WEIGHT_BYTES);
    uint8_t digest[LB_DIGEST_BYTES];
    assert(data != NULL);
    for (uint32_t i = 0; i < FAKE_WEIGHT_BYTES; i++) {
        data[i] = (uint8_t)(i * 7);
    }
    bool ok = lb_digest_tree(data, FAKE_WEIGHT_BYTES, digest, NULL);
    assert(ok);
    lb_digest_hex(digest, p->digest);
    snprintf(path, sizeof path, "%s/weights.bin", p->folder);
    FILE *f = fopen(path, "wb");
    assert(f != NULL);
    size_t n = fwrite(data, 1, FAKE_WEIGHT_BYTES, f);
    assert(n == FAKE_WEIGHT_BYTES);
    fclose(f);
    free(data);
}

void fake_program_kernel(fake_program *p, uint32_t i, uint32_t regs, uint32_t local, uint32_t smem,
                         uint32_t params) {
    rt_gpu_kernel *k = &p->kernels[i];
    const fake_kernel f = {k->name, regs, local, smem, params, k->block};
    size_t n = fake_cubin(90, &f, p->cubins[i], sizeof p->cubins[i]);
    k->cubin = p->cubins[i];
    k->cubin_end = p->cubins[i] + n;
}

void fake_program_init(fake_program *p, const char *settings) {
    static const char *const names[FAKE_KERNELS] = {"k_embed", "k_head", "k_norm_cut"};
    char path[PATH_MAX];
    uint64_t words = 3ULL * FAKE_T_MAX + FAKE_SLOTS + FAKE_SLOTS;
    uint64_t logits = FAKE_SLOTS * FAKE_VOCAB * 4;
    uint64_t choices = FAKE_SLOTS * sizeof(rt_picked);
    *p = (fake_program){.folder = "/tmp/lagen-cuda-XXXXXX"};
    char *made = mkdtemp(p->folder);
    assert(made != NULL);
    snprintf(p->settings, sizeof p->settings, "%s/recorder.txt", p->folder);
    fake_program_settings(p, settings);
    recorder_path(path);
    setenv("LAGEN_CUDA_DRIVER", path, 1);
    setenv("LAGEN_RECORDER", p->settings, 1);
    write_weights(p);
    p->words = calloc(2 * FAKE_T_MAX, sizeof *p->words);
    assert(p->words != NULL);
    for (uint32_t i = 0; i < FAKE_T_MAX; i++) {
        p->words[i] = i;
    }
    for (uint32_t i = 0; i < FAKE_KERNELS; i++) {
        p->kernels[i] = (rt_gpu_kernel){.name = names[i],
                                        .block = 128,
                                        .smem_bytes = i == 1 ? 65536 : 0,
                                        .ctas_per_sm = 2,
                                        .reg_cap = 168,
                                        .param_bytes = 24};
        fake_program_kernel(p, i, 40, 0, 0, 24);
    }
    p->gpu = (rt_gpu){
        .compute_major = 9,
        .driver_min = 13000,
        .limits = {{2147483647, 65535, 65535}, 1024, 32, 2048, 32, 232448, 233472, 65536, 65536},
        .kernels = p->kernels,
        .n_kernels = FAKE_KERNELS,
        .n_launches = 3,
        .few_rows = 8,
        .step_offset_bytes = logits + choices,
        .step_bytes = 64 + 4 * words + 8 + FAKE_SLOTS * sizeof(rt_pick),
        .launches = launches};
    p->file = (rt_file){"weights.bin", FAKE_WEIGHT_BYTES, p->digest};
    p->model =
        (rt_model){.abi_version = RT_ABI_VERSION,
                   .name = "fake",
                   .arch_row = "sm_90",
                   .n_vocab = FAKE_VOCAB,
                   .ctx = FAKE_T_MAX,
                   .slots = FAKE_SLOTS,
                   .chunk = FAKE_T_MAX,
                   .t_max = FAKE_T_MAX,
                   .logit_rows_max = FAKE_SLOTS,
                   .arena_bytes = {FAKE_WEIGHT_BYTES + 64, 4096, 8192,
                                   logits + choices + p->gpu.step_bytes},
                   .samples = true,
                   .choices_offset_bytes = logits,
                   .files = &p->file,
                   .n_files = 1,
                   .step = step,
                   .device = &rt_cuda_ops,
                   .gpu = &p->gpu};
}

void fake_program_free(fake_program *p) {
    char path[96];
    snprintf(path, sizeof path, "%s/weights.bin", p->folder);
    unlink(path);
    unlink(p->settings);
    rmdir(p->folder);
    free(p->words);
}

bool fake_program_start(const fake_program *p, const char *wanted, rt_memory *mem, lb_err *err) {
    const rt_load_opts o = {.dir = p->folder};
    rt_pool *pool = NULL;
    *mem = (rt_memory){0};
    bool ok = rt_memory_map_on(&p->model, wanted, mem, err) && rt_pool_start(6, &pool, err) &&
              rt_memory_touch(&p->model, mem, pool, err) &&
              rt_weights_load(&p->model, &o, pool, mem, err);
    if (pool != NULL) {
        rt_pool_stop(pool);
    }
    if (!ok) {
        rt_memory_unmap(mem);
    }
    return ok;
}

bool fake_program_prefill(const fake_program *p, const rt_memory *mem, uint32_t T, lb_err *err) {
    const uint32_t *zeros = p->words + FAKE_T_MAX;
    const uint32_t last = T - 1;
    const rt_step s = {T, 1, 1, T, zeros, zeros, p->words, zeros, &last, NULL};
    return p->model.step(mem->arenas, &s, NULL, err);
}

bool fake_program_decode(const fake_program *p, const rt_memory *mem, uint32_t T, lb_err *err) {
    const uint32_t *zeros = p->words + FAKE_T_MAX;
    const rt_step s = {T, T, T, 0, zeros, p->words, zeros, p->words, p->words, NULL};
    return p->model.step(mem->arenas, &s, NULL, err);
}

bool fake_program_choose(const fake_program *p, const rt_memory *mem, uint32_t T, lb_err *err) {
    const uint32_t *zeros = p->words + FAKE_T_MAX;
    rt_pick picks[FAKE_SLOTS];
    memset(picks, 0, sizeof picks);
    const rt_step s = {T, T, T, 0, zeros, p->words, zeros, p->words, p->words, picks};
    return p->model.step(mem->arenas, &s, NULL, err);
}

static void *sym(void *library, const char *name) {
    void *at = dlsym(library, name);
    assert(at != NULL);
    return at;
}

void fake_control_open(fake_control *c) {
    c->library = dlopen(getenv("LAGEN_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
    assert(c->library != NULL);
    *(void **)&c->calls = sym(c->library, "lagen_recorder_calls");
    *(void **)&c->fail_at = sym(c->library, "lagen_recorder_fail");
    *(void **)&c->fail_again = sym(c->library, "lagen_recorder_fail_again");
    *(void **)&c->launches = sym(c->library, "lagen_recorder_launches");
    *(void **)&c->bytes = sym(c->library, "lagen_recorder_bytes");
    *(void **)&c->last = sym(c->library, "lagen_recorder_last");
}

void fake_control_close(fake_control *c) {
    dlclose(c->library);
}
