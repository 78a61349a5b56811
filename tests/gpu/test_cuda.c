/* A GPU program's host side, start to step, on the recorder: every call may fail, and what follows
 * works. */
#define _GNU_SOURCE
#include "gpu/fake_program.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cmocka.h>

#include "cuda/cuda.h"
#include "memory.h"
#include "named.h"

#define assert_text(err, part)                                                                     \
    do {                                                                                           \
        if (strstr((err).text, part) == NULL) {                                                    \
            fail_msg("'%s' is not in '%s'", part, (err).text);                                     \
        }                                                                                          \
    } while (0)

/* A started program, for the tests that want one. */
typedef struct running {
    fake_program p;
    rt_memory mem;
    fake_control control;
    lb_err err;
} running;

static running *begin(const char *settings) {
    running *r = calloc(1, sizeof *r);
    assert_non_null(r);
    fake_uncut = false;
    fake_program_init(&r->p, settings);
    fake_control_open(&r->control);
    return r;
}

static void start(running *r) {
    if (!fake_program_start(&r->p, NULL, &r->mem, &r->err)) {
        fail_msg("%s", r->err.text);
    }
}

static void end(running *r) {
    rt_memory_unmap(&r->mem);
    assert_int_equal(r->control.bytes(), 0);
    fake_control_close(&r->control);
    fake_program_free(&r->p);
    free(r);
}

static void refused(const char *settings, const char *wanted, lb_code code, const char *text) {
    running *r = begin(settings);
    assert_false(fake_program_start(&r->p, wanted, &r->mem, &r->err));
    assert_text(r->err, text);
    assert_int_equal(r->err.code, code);
    end(r);
}

static void allocates_what_was_planned(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    const uint64_t *a = r->p.model.arena_bytes;
    assert_int_equal(r->control.bytes(), a[0] + a[1] + a[2] + a[3]);
    unsigned long long before = r->control.launches();
    for (uint32_t T = 1; T <= 7; T += T == 1 ? 1 : 5) {
        assert_true(fake_program_prefill(&r->p, &r->mem, T, &r->err));
    }
    assert_int_equal(r->control.launches() - before, 3 * 3);
    assert_int_equal(r->control.bytes(), a[0] + a[1] + a[2] + a[3]);
    end(r);
}

/* Pages of the weights' file that the system keeps; -1 on a file system that has nothing else. */
static int pages_kept(const running *r) {
    enum { PAGE = 4096, PAGES = (FAKE_WEIGHT_BYTES + PAGE - 1) / PAGE, TMPFS = 0x01021994 };
    unsigned char kept[PAGES];
    char path[96];
    struct statfs fs;
    int n = 0;
    snprintf(path, sizeof path, "%s/weights.bin", r->p.folder);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(fstatfs(fd, &fs), 0);
    void *at = mmap(NULL, FAKE_WEIGHT_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(mincore(at, FAKE_WEIGHT_BYTES, kept), 0);
    for (int i = 0; i < PAGES; i++) {
        n += kept[i] & 1;
    }
    munmap(at, FAKE_WEIGHT_BYTES);
    close(fd);
    return fs.f_type == TMPFS ? -1 : n;
}

static int pages_after_loading(const char *settings) {
    running *r = begin(settings);
    char path[96];
    snprintf(path, sizeof path, "%s/weights.bin", r->p.folder);
    int fd = open(path, O_RDONLY);
    assert_int_equal(fsync(fd), 0); /* written pages stay until they are on the disk */
    close(fd);
    start(r);
    int n = pages_kept(r);
    end(r);
    return n;
}

/* Where the device's memory is the host's, the pages that weights were read through are given
 * back. */
static void pages_are_given_back(void **state) {
    (void)state;
    int own = pages_after_loading(NULL);
    int shared = pages_after_loading("unified 1\n");
    if (own < 0) {
        skip(); /* a file system in memory keeps its pages */
    }
    assert_in_range(own, 20, 25);
    assert_in_range(shared, 0, 1);
}

/* A board that shares the host's memory: what is free is little after a file was read, and what the
 * system can give counts; elsewhere what is free. Both numbers are told. */
static void one_memory(void **state) {
    (void)state;
    const uint64_t gib = UINT64_C(1) << 30;
    assert_int_equal(rt_cuda_room(true, 41 * gib, 115 * gib), 115 * gib);
    assert_int_equal(rt_cuda_room(true, 115 * gib, 41 * gib), 41 * gib);
    assert_int_equal(rt_cuda_room(true, 41 * gib, UINT64_MAX), 41 * gib);
    assert_int_equal(rt_cuda_room(false, 41 * gib, 115 * gib), 41 * gib);
    assert_int_equal(rt_cuda_room(false, 115 * gib, 41 * gib), 115 * gib);
    running *r = begin("unified 1\nmemory_bytes 70368744177664\n"); /* 64 TiB, all free */
    r->p.model.arena_bytes[RT_ARENA_KV] = (rt_memory_available() >> 6 << 6) + (1 << 20);
    assert_false(fake_program_start(&r->p, NULL, &r->mem, &r->err));
    assert_int_equal(r->err.code, LB_RESOURCES);
    assert_text(r->err, "the system can give ");
    assert_text(r->err, " are free");
    end(r);
    /* hardly anything free: it goes on to the allocation, which this driver does refuse */
    refused("unified 1\nmemory_bytes 4294967296\nreserve_bytes 4294960000\n", NULL, LB_RESOURCES,
            "cuMemAlloc_v2");
    refused("memory_bytes 4294967296\nreserve_bytes 4294960000\n", NULL, LB_RESOURCES,
            " of 4294967296 are free");
}

static void decode_replays_one_graph(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    for (uint32_t T = 1; T <= FAKE_SLOTS; T++) {
        unsigned calls = r->control.calls();
        unsigned long long launches = r->control.launches();
        assert_true(fake_program_decode(&r->p, &r->mem, T, &r->err));
        assert_int_equal(r->control.launches() - launches, 3);
        assert_int_equal(r->control.calls() - calls, 3); /* current context, graph, wait */
        assert_true(fake_program_choose(&r->p, &r->mem, T, &r->err));
        assert_int_equal(r->control.launches() - launches, 3 + 4);
        assert_int_equal(r->control.calls() - calls, 6);
    }
    end(r);
}

static void nothing_runs_for_no_rows(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    unsigned calls = r->control.calls();
    const rt_step none = {0};
    assert_true(r->p.model.step(r->mem.arenas, &none, NULL, &r->err));
    assert_int_equal(r->control.calls(), calls);
    end(r);
}

/* Rows on y: refused by hardware's limit at exactly 65,536 without the static tile, and never with
 * it. */
static void the_true_edge(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    fake_uncut = true;
    assert_true(fake_program_prefill(&r->p, &r->mem, 65535, &r->err));
    assert_false(fake_program_prefill(&r->p, &r->mem, 65536, &r->err));
    assert_text(r->err, "launch norm of rows of layer 1, grid 1 x 65536 x 1, T=65536");
    assert_text(r->err, "cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE");
    fake_uncut = false;
    static const uint32_t ts[] = {65534, 65535, 65536, 65537, 131070, 131071, FAKE_T_MAX};
    static const uint32_t tiles[] = {1, 1, 2, 2, 2, 3, 3};
    for (size_t i = 0; i < sizeof ts / sizeof *ts; i++) {
        unsigned long long before = r->control.launches();
        assert_true(fake_program_prefill(&r->p, &r->mem, ts[i], &r->err));
        assert_int_equal(r->control.launches() - before, 2 + tiles[i]);
    }
    end(r);
}

typedef bool make_step(const fake_program *p, const rt_memory *mem, uint32_t T, lb_err *err);

/* Every call k of a step fails once; the step fails and says where, the next one succeeds. */
static void fail_each_call(running *r, make_step *step, uint32_t T) {
    char rows[16];
    snprintf(rows, sizeof rows, "T=%u", T);
    for (unsigned k = 1;; k++) {
        lb_err err = {0};
        r->control.fail_at(k, RT_CU_INVALID_VALUE);
        unsigned calls = r->control.calls();
        bool ok = step(&r->p, &r->mem, T, &err);
        unsigned made = r->control.calls() - calls;
        r->control.fail_at(0, 0);
        if (ok) {
            assert_true(k > made);
            assert_true(k > 2);
            return;
        }
        assert_int_equal(err.code, LB_REFUSED);
        assert_text(err, "CUDA_ERROR_INVALID_VALUE");
        assert_text(err, rows);
        if (k > 2) { /* the context, the block or the graph, launches, what comes back */
            assert_true(strstr(err.text, "grid ") != NULL || strstr(err.text, " rows, ") != NULL);
        }
        if (!step(&r->p, &r->mem, T, &err)) {
            fail_msg("after call %u: %s", k, err.text);
        }
    }
}

static void every_call_of_a_step_may_fail(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    fail_each_call(r, fake_program_prefill, 1);
    fail_each_call(r, fake_program_prefill, 7);
    fail_each_call(r, fake_program_prefill, FAKE_T_MAX);
    fail_each_call(r, fake_program_decode, 1);
    fail_each_call(r, fake_program_decode, FAKE_SLOTS);
    fail_each_call(r, fake_program_choose, 1);
    fail_each_call(r, fake_program_choose, FAKE_SLOTS);
    end(r);
}

static void launch_errors_name_all(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    r->control.fail_at(3, RT_CU_LAUNCH_OUT_OF_RESOURCES); /* context, upload, first launch */
    assert_false(fake_program_prefill(&r->p, &r->mem, 7, &r->err));
    assert_text(r->err, "launch embed of token_embd, grid 7 x 1 x 1, T=7: cuLaunchKernelEx: "
                        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    r->control.fail_at(2, RT_CU_INVALID_VALUE);
    assert_false(fake_program_decode(&r->p, &r->mem, 2, &r->err));
    assert_text(r->err, "refused at once, not one by one: graph of decode: launch embed of "
                        "token_embd, grid 2 x 1 x 1, to launch matmul of output, grid 2 x 20 x 1, "
                        "T=2: cuGraphLaunch: CUDA_ERROR_INVALID_VALUE");
    end(r);
}

/* What a refused graph's error says when the m-th call behind the refusal fails too. */
static const char *const GRAPH_THEN[] = {
    "the step's block, T=2: cuMemcpyHtoDAsync_v2: CUDA_ERROR_",
    "launch embed of token_embd, grid 2 x 1 x 1, T=2: cuLaunchKernelEx: CUDA_ERROR_",
    "launch norm of rows of layer 1, grid 1 x 2 x 1, T=2: cuLaunchKernelEx: CUDA_ERROR_",
    "launch matmul of output, grid 2 x 20 x 1, T=2: cuLaunchKernelEx: CUDA_ERROR_",
    "logits of 2 rows, T=2: cuMemcpyDtoHAsync_v2: CUDA_ERROR_",
    "running: launch embed of token_embd, grid 2 x 1 x 1, to launch matmul of output, "
    "grid 2 x 20 x 1, T=2: cuStreamSynchronize: CUDA_ERROR_"};
enum { N_GRAPH_THEN = sizeof GRAPH_THEN / sizeof *GRAPH_THEN };

/* A step of decode whose graph is refused, and then the m-th call behind that, with `code`. */
static lb_code refuse_graph_and(running *r, unsigned m, rt_cu_result code) {
    r->err = (lb_err){0};
    r->control.fail_at(2, RT_CU_INVALID_VALUE);
    r->control.fail_again(m, code, 2);
    bool ok = fake_program_decode(&r->p, &r->mem, 2, &r->err);
    assert_false(ok);
    r->control.fail_at(0, 0);
    return r->err.code;
}

static void a_refused_graph_names_the_refused_launch(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    for (unsigned m = 1; m <= N_GRAPH_THEN; m++) {
        lb_code code = refuse_graph_and(r, m, RT_CU_LAUNCH_OUT_OF_RESOURCES);
        assert_int_equal(code, LB_REFUSED);
        assert_text(r->err, "a graph was refused, then: ");
        assert_text(r->err, GRAPH_THEN[m - 1]);
        assert_text(r->err, "LAUNCH_OUT_OF_RESOURCES");
        assert_true(fake_program_decode(&r->p, &r->mem, 2, &r->err));
    }
    end(r);
}

static void a_device_may_be_lost_while_a_graph_is_run_again(void **state) {
    (void)state;
    for (unsigned m = 1; m <= N_GRAPH_THEN; m++) {
        running *r = begin(NULL);
        start(r);
        lb_code code = refuse_graph_and(r, m, RT_CU_ILLEGAL_ADDRESS);
        assert_int_equal(code, LB_DEVICE_LOST);
        assert_text(r->err, GRAPH_THEN[m - 1]);
        assert_text(r->err, "CUDA_ERROR_ILLEGAL_ADDRESS");
        assert_false(fake_program_decode(&r->p, &r->mem, 2, &r->err));
        end(r);
    }
}

/* What was queued may still run: its buffers cannot be used again. */
static void a_device_that_does_not_come_to_rest_is_lost(void **state) {
    (void)state;
    for (unsigned k = 2; k <= 4; k++) {
        running *r = begin(NULL);
        start(r);
        r->control.fail_at(k, RT_CU_INVALID_VALUE);
        r->control.fail_again(1, RT_CU_INVALID_VALUE, 0); /* and every call from then on */
        assert_false(fake_program_prefill(&r->p, &r->mem, 7, &r->err));
        assert_int_equal(r->err.code, LB_DEVICE_LOST);
        assert_text(r->err, "device lost: ");
        assert_text(r->err, k == 2 ? "the step's block, T=7" : "launch ");
        r->control.fail_at(0, 0);
        assert_false(fake_program_prefill(&r->p, &r->mem, 7, &r->err));
        end(r);
    }
}

/* Orders are used up; a device that is lost answers nothing else meanwhile. */
static void failures_come_as_ordered(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    unsigned failed = 0;
    r->control.fail_at(3, RT_CU_LAUNCH_OUT_OF_RESOURCES);
    r->control.fail_again(9, RT_CU_INVALID_VALUE, 4);
    for (unsigned i = 0; i < 20; i++) {
        bool ok = fake_program_prefill(&r->p, &r->mem, 7, &r->err);
        failed += !ok;
        if (!ok) {
            assert_text(r->err, failed == 1 ? "LAUNCH_OUT_OF_RESOURCES" : "INVALID_VALUE");
        }
    }
    assert_int_equal(failed, 4);
    end(r);
}

/* Every call of the start fails once: the start fails, nothing is left behind, the next start
 * succeeds. */
static void every_call_of_a_start_may_fail(void **state) {
    (void)state;
    running *r = begin(NULL);
    for (unsigned k = 1;; k++) {
        rt_memory mem;
        lb_err err = {0};
        r->control.fail_at(k, RT_CU_OUT_OF_MEMORY);
        bool ok = fake_program_start(&r->p, NULL, &mem, &err);
        r->control.fail_at(0, 0);
        if (ok) {
            rt_memory_unmap(&mem);
            assert_true(k > 50);
            break;
        }
        assert_text(err, "CUDA_ERROR_OUT_OF_MEMORY");
        assert_int_equal(r->control.bytes(), 0);
    }
    start(r);
    end(r);
}

static void a_lost_device_stays_lost(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    r->control.fail_at(4, RT_CU_ILLEGAL_ADDRESS);
    assert_false(fake_program_prefill(&r->p, &r->mem, 7, &r->err));
    assert_int_equal(r->err.code, LB_DEVICE_LOST);
    assert_int_equal(lb_err_exit_status(r->err.code), 70);
    unsigned calls = r->control.calls();
    assert_false(fake_program_prefill(&r->p, &r->mem, 7, &r->err));
    assert_int_equal(r->err.code, LB_DEVICE_LOST);
    assert_int_equal(r->control.calls(), calls); /* not even tried */
    end(r);
}

static void a_lost_graph_is_not_tried_again(void **state) {
    (void)state;
    running *r = begin(NULL);
    start(r);
    r->control.fail_at(3, RT_CU_LAUNCH_FAILED);
    assert_false(fake_program_decode(&r->p, &r->mem, 1, &r->err));
    assert_int_equal(r->err.code, LB_DEVICE_LOST);
    assert_text(r->err, "CUDA_ERROR_LAUNCH_FAILED");
    end(r);
}

static void other_boxes_are_refused(void **state) {
    (void)state;
    refused("compute_major 8\ncompute_minor 9\n", NULL, LB_WRONG_BOX, "compute 9.0");
    refused("compute_minor 3\n", "0", LB_WRONG_BOX,
            "has compute capability 9.3; this program was made for 9.0 (sm_90)");
    refused("devices 0\n", NULL, LB_WRONG_BOX, "CUDA_ERROR_NO_DEVICE");
    refused("memory_bytes 300000\nreserve_bytes 1000\n", NULL, LB_WRONG_BOX,
            "no device here is one for this program");
    refused("grid_y_max 65534\n", NULL, LB_WRONG_BOX,
            "grid y is 65534; the program was proved for 65535");
    refused("smem_per_cta_bytes 101376\n", NULL, LB_WRONG_BOX, "shared bytes of a cta is 101376");
    refused("driver_version 12080\n", NULL, LB_WRONG_BOX,
            "is a driver for CUDA 12.8; this program needs one for 13.0");
    refused("reserve_bytes 4294000000\n", NULL, LB_RESOURCES, "bytes on device 0 (NVIDIA H200)");
}

static void no_driver_is_named(void **state) {
    (void)state;
    running *r = begin(NULL);
    setenv("LAGEN_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
    assert_false(fake_program_start(&r->p, NULL, &r->mem, &r->err));
    assert_int_equal(r->err.code, LB_WRONG_BOX);
    assert_text(r->err, "no CUDA driver: /nonexistent/libcuda.so.1");
    setenv("LAGEN_CUDA_DRIVER", "libm.so.6", 1);
    assert_false(fake_program_start(&r->p, NULL, &r->mem, &r->err));
    assert_text(r->err, "libm.so.6 has no cuInit");
    end(r);
}

static void several_devices_need_a_name(void **state) {
    (void)state;
    static const char *const names[] = {"1", "GPU-11000000-0000-0000-0000-000000000001", "gpu-1100",
                                        "0000:02:00.0", "02:00.0"};
    static const char *const absent[] = {"2", "GPU-3300", "2:00.0", "00:02:00.0"};
    static const char *const wrong[] = {"GPU-33", "GPU-", "GPU-1", "GPU-110g", "", "banana", "abcdef", "99999", "-1"};
    refused("devices 2\n", NULL, LB_WRONG_BOX, "2 devices would do; name one by --device");
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        refused("devices 2\n", absent[i], LB_WRONG_BOX, "no device");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        refused("devices 2\n", wrong[i], LB_USAGE, "is no index, no beginning of a UUID");
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        running *r = begin("devices 2\n");
        assert_true(fake_program_start(&r->p, names[i], &r->mem, &r->err));
        const rt_cuda *c = (const rt_cuda *)(const void *)r->mem.arenas[RT_DEVICE];
        assert_int_equal(c->board.index, 1);
        assert_string_equal(c->board.pci, "0000:02:00.0");
        end(r);
    }
}

static void drivers_variables_are_shown_or_refused(void **state) {
    (void)state;
    running *r = begin(NULL);
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    setenv("CUDA_HOME", "/usr/local/cuda", 1);
    start(r);
    const rt_cuda *c = (const rt_cuda *)(const void *)r->mem.arenas[RT_DEVICE];
    assert_non_null(strstr(c->env, "CUDA_VISIBLE_DEVICES=0"));
    assert_null(strstr(c->env, "CUDA_HOME"));
    end(r);
    setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    refused(NULL, NULL, LB_BAD_VALUE, "CUDA_FORCE_PTX_JIT=1");
    setenv("CUDA_FORCE_PTX_JIT", "0", 1);
    r = begin(NULL);
    start(r);
    end(r);
    unsetenv("CUDA_FORCE_PTX_JIT");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_HOME");
}

static void bent(uint32_t regs, uint32_t local, uint32_t smem, uint32_t params, const char *text) {
    running *r = begin(NULL);
    fake_program_kernel(&r->p, 2, regs, local, smem, params);
    assert_false(fake_program_start(&r->p, NULL, &r->mem, &r->err));
    assert_int_equal(r->err.code, LB_DAMAGED);
    assert_text(r->err, text);
    end(r);
}

static void kernels_are_what_was_proved(void **state) {
    (void)state;
    bent(169, 0, 0, 24, "has 169 registers; proved was 168");
    bent(40, 8, 0, 24, "has 8 bytes of local memory; proved was 0");
    bent(40, 0, 16, 24, "has 16 bytes of static shared memory; proved was 0");
    bent(40, 0, 0, 16, "takes a parameter of 16 bytes; the program passes 24");
    running *r = begin(NULL);
    r->p.kernels[1].smem_bytes = 120000; /* twice that does not fit an SM */
    assert_false(fake_program_start(&r->p, NULL, &r->mem, &r->err));
    assert_text(r->err, "fits an SM 1 times; proved were 2");
    end(r);
}

static void damaged_weights_are_found(void **state) {
    (void)state;
    running *r = begin(NULL);
    char path[96];
    snprintf(path, sizeof path, "%s/weights.bin", r->p.folder);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, 50000, SEEK_SET);
    fputc(0xff, f);
    fclose(f);
    assert_false(fake_program_start(&r->p, NULL, &r->mem, &r->err));
    assert_int_equal(r->err.code, LB_DAMAGED);
    end(r);
}

static void a_cpu_program_has_no_device(void **state) {
    (void)state;
    const rt_model cpu = {.arch_row = "x86-64-v3"};
    rt_memory mem = {0};
    lb_err err = {0};
    assert_false(rt_memory_map_on(&cpu, "0", &mem, &err));
    assert_int_equal(err.code, LB_USAGE);
}

static void the_step_is_packed_close(void **state) {
    (void)state;
    const uint32_t tokens[] = {11, 12, 13};
    const uint32_t seqs[] = {0, 0, 1};
    const uint32_t pos[] = {4, 5, 9};
    const uint32_t slots[] = {2, 0};
    const uint32_t logits[] = {1, 2};
    rt_step s = {3, 2, 2, 1, tokens, seqs, pos, slots, logits, NULL};
    const uint32_t want[] = {2, 0, 1, 2, 11, 12, 13, 0, 0, 1, 4, 5, 9};
    _Alignas(8) uint8_t block[4096];
    rt_step d;
    assert_int_equal(rt_cuda_pack_step(&s, 0x10000, block), 64 + sizeof want);
    assert_memory_equal(block + 64, want, sizeof want);
    memcpy(&d, block, sizeof d);
    assert_int_equal(d.n_rows, 3);
    assert_int_equal(d.n_prompt, 1);
    assert_int_equal((uintptr_t)d.slot_of_seq, 0x10040);
    assert_int_equal((uintptr_t)d.logit_rows, 0x10048);
    assert_int_equal((uintptr_t)d.token_of_row, 0x10050);
    assert_int_equal((uintptr_t)d.seq_of_row, 0x1005c);
    assert_int_equal((uintptr_t)d.pos_of_row, 0x10068);
    assert_null(d.picks);
    rt_pick picks[2] = {{.random = 5, .n_changes = 1, .changes = {{7, 8, 0.5F}}}, {.top_k = 9}};
    s.picks = picks;
    assert_int_equal(rt_cuda_pack_step(&s, 0x10000, block), 64 + sizeof want + 4 + sizeof picks);
    memcpy(&d, block, sizeof d);
    assert_int_equal((uintptr_t)d.picks, 0x10078);
    assert_memory_equal(block + 0x78, picks, sizeof picks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_step_is_packed_close),
        named_test("F01 what is planned is allocated", allocates_what_was_planned),
        cmocka_unit_test(pages_are_given_back),
        named_test("F09 what is free on a board that shares the host's memory", one_memory),
        cmocka_unit_test(decode_replays_one_graph),
        cmocka_unit_test(nothing_runs_for_no_rows),
        cmocka_unit_test(the_true_edge),
        cmocka_unit_test(every_call_of_a_step_may_fail),
        cmocka_unit_test(launch_errors_name_all),
        cmocka_unit_test(a_refused_graph_names_the_refused_launch),
        cmocka_unit_test(a_device_may_be_lost_while_a_graph_is_run_again),
        cmocka_unit_test(a_device_that_does_not_come_to_rest_is_lost),
        cmocka_unit_test(failures_come_as_ordered),
        cmocka_unit_test(every_call_of_a_start_may_fail),
        cmocka_unit_test(a_lost_device_stays_lost),
        cmocka_unit_test(a_lost_graph_is_not_tried_again),
        cmocka_unit_test(other_boxes_are_refused),
        cmocka_unit_test(no_driver_is_named),
        cmocka_unit_test(several_devices_need_a_name),
        cmocka_unit_test(drivers_variables_are_shown_or_refused),
        cmocka_unit_test(kernels_are_what_was_proved),
        cmocka_unit_test(damaged_weights_are_found),
        cmocka_unit_test(a_cpu_program_has_no_device),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
