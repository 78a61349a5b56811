/* test_load.c -- identity, arenas and weights: every refusal with its code, and equal bytes for
 * every number of threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/num.h"
#include "identity.h"
#include "load.h"
#include "memory.h"

enum { IMAGE_BYTES = 2 * LB_DIGEST_PIECE_BYTES + 12345 };

static char dir[64];

static int make_dir(void **state) {
    (void)state;
    strcpy(dir, "/tmp/lagen-load-XXXXXX");
    return mkdtemp(dir) == NULL;
}

static int drop_dir(void **state) {
    (void)state;
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    return system(cmd);
}

static void write_file(const char *name, const void *data, size_t n) {
    char path[128];
    lb_err e = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_true(lb_write_file(path, data, n, false, NULL, &e));
}

/* ---- identity ---- */

static void identity_names_what_is_missing(void **state) {
    (void)state;
    static const char *const need[] = {"avx2", "fma", "avx512f", NULL};
    rt_model m = {.abi_version = RT_ABI_VERSION, .arch_row = "some-row", .cpu_features = need};
    lb_err e = {0};
    assert_true(rt_identity_compare(&m, " avx avx2 fma avx512f sse\n", &e));
    assert_false(rt_identity_compare(&m, "avx avx2x fma xavx512f", &e)); /* whole words only */
    assert_int_equal(e.code, LB_WRONG_BOX);
    assert_int_equal(lb_err_exit_status(e.code), 4);
    assert_non_null(strstr(e.text, "some-row"));
    assert_non_null(strstr(e.text, "lacks avx2, avx512f"));
    assert_false(rt_identity_compare(&m, "", &e));
    assert_non_null(strstr(e.text, "avx2, fma, avx512f"));
    m.cpu_features = NULL;
    assert_true(rt_identity_compare(&m, "", &e));
}

static void identity_of_this_machine(void **state) {
    (void)state;
    static const char *const odd[] = {"no_such_feature", NULL};
    rt_model m = {.abi_version = RT_ABI_VERSION, .arch_row = "some-row"};
    lb_err e = {0};
    char flags[RT_CPU_FLAGS_BYTES];
    assert_true(rt_cpu_flags(flags, sizeof flags, &e));
    assert_true(strlen(flags) > 2);
    assert_false(rt_cpu_flags(flags, 16, &e));
    assert_true(rt_identity_check(&m, &e));
    m.cpu_features = odd;
    assert_false(rt_identity_check(&m, &e));
    assert_int_equal(e.code, LB_WRONG_BOX);
    m.abi_version++;
    assert_false(rt_identity_check(&m, &e));
    assert_int_equal(e.code, LB_DAMAGED);
}

/* ---- arenas ---- */

static void arenas_are_aligned_zeroed_and_apart(void **state) {
    (void)state;
    rt_model m = {.arena_bytes = {1, 4096, 3 * 1024 * 1024 + 5, 0}};
    rt_memory mem = {0};
    rt_pool *pool = NULL;
    lb_err e = {0};
    assert_true(rt_pool_start(2, &pool, &e));
    assert_true(rt_memory_map(&m, &mem, &e));
    assert_true(rt_memory_touch(&m, &mem, pool, &e));
    assert_null(mem.arenas[RT_ARENA_IO]);
    for (int k = 0; k < 3; k++) {
        assert_int_equal((uintptr_t)mem.arenas[k] % 64, 0);
        for (uint64_t i = 0; i < m.arena_bytes[k]; i++) {
            assert_int_equal(mem.arenas[k][i], 0);
        }
        memset(mem.arenas[k], 0xA5, m.arena_bytes[k]);
    }
    rt_memory_unmap(&mem);
    rt_memory_unmap(&mem);
    rt_pool_stop(pool);
}

static void arenas_that_do_not_fit_are_refused(void **state) {
    (void)state;
    const uint64_t have = rt_memory_available();
    assert_true(have > 1 << 20);
    rt_model m = {.arena_bytes = {1 << 20, have, 0, 0}};
    rt_memory mem = {0};
    lb_err e = {0};
    assert_false(rt_memory_map(&m, &mem, &e));
    assert_int_equal(e.code, LB_RESOURCES);
    assert_int_equal(lb_err_exit_status(e.code), 5);
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)have + (1 << 20));
    assert_non_null(strstr(e.text, number));
    m.arena_bytes[2] = UINT64_MAX;
    assert_false(rt_memory_map(&m, &mem, &e));
    assert_int_equal(e.code, LB_RESOURCES);
    for (int k = 0; k < RT_N_ARENAS; k++) {
        assert_null(mem.arenas[k]);
    }
}

/* ---- packed image ---- */

static uint8_t *image; /* IMAGE_BYTES of noise */
static char image_hex[LB_DIGEST_HEX_BYTES];

static void make_image(void) {
    uint8_t d[LB_DIGEST_BYTES];
    uint32_t x = 1;
    image = malloc(IMAGE_BYTES);
    assert_non_null(image);
    for (size_t i = 0; i < IMAGE_BYTES; i++) {
        x = x * 1664525U + 1013904223U;
        image[i] = (uint8_t)(x >> 24);
    }
    assert_true(lb_digest_tree(image, IMAGE_BYTES, d, NULL));
    lb_digest_hex(d, image_hex);
}

/* Loads with n threads; on success compares the arena with `want`. */
static bool load(const rt_model *m, uint32_t n, const uint8_t *want, lb_err *e) {
    rt_pool *pool = NULL;
    rt_memory mem = {0};
    rt_load_opts o = {.dir = dir};
    *e = (lb_err){0};
    assert_true(rt_pool_start(n, &pool, e));
    assert_true(rt_memory_map(m, &mem, e));
    bool ok = rt_weights_load(m, &o, pool, &mem, e);
    if (ok && want != NULL) {
        assert_memory_equal(mem.arenas[RT_ARENA_WEIGHTS], want,
                            m->arena_bytes[RT_ARENA_WEIGHTS]);
    }
    rt_memory_unmap(&mem);
    rt_pool_stop(pool);
    return ok;
}

static void count_progress(void *arg, uint64_t done, uint64_t total) {
    assert_true(done <= total);
    *(uint64_t *)arg = done;
}

static void packed_image_loads_and_is_checked(void **state) {
    (void)state;
    make_image();
    write_file("w.img", image, IMAGE_BYTES);
    rt_file f = {.name = "w.img", .n_bytes = IMAGE_BYTES, .sha256 = image_hex};
    rt_model m = {.arena_bytes = {IMAGE_BYTES}, .files = &f, .n_files = 1};
    lb_err e;
    for (uint32_t n = 1; n <= 5; n++) {
        assert_true(load(&m, n, image, &e));
    }
    static const size_t spots[] = {0, LB_DIGEST_PIECE_BYTES - 1, LB_DIGEST_PIECE_BYTES,
                                   IMAGE_BYTES - 1};
    for (size_t k = 0; k < sizeof spots / sizeof spots[0]; k++) {
        image[spots[k]] ^= 1;
        write_file("w.img", image, IMAGE_BYTES);
        image[spots[k]] ^= 1;
        assert_false(load(&m, 2, NULL, &e));
        assert_int_equal(e.code, LB_DAMAGED);
        assert_non_null(strstr(e.text, "w.img"));
    }
    write_file("w.img", image, IMAGE_BYTES - 1);
    assert_false(load(&m, 2, NULL, &e));
    assert_int_equal(e.code, LB_DAMAGED);
    assert_int_equal(lb_err_exit_status(e.code), 3);
    write_file("w.img", image, 0);
    assert_false(load(&m, 2, NULL, &e));
    assert_int_equal(e.code, LB_DAMAGED);
    f.name = "absent.img";
    assert_false(load(&m, 2, NULL, &e));
    assert_int_equal(e.code, LB_DAMAGED);
    f.name = "."; /* a folder */
    assert_false(load(&m, 2, NULL, &e));
    assert_int_equal(e.code, LB_DAMAGED);
    free(image);
}

static void packed_tables_must_agree(void **state) {
    (void)state;
    static const uint8_t bytes[100] = {1, 2, 3};
    uint8_t d[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES];
    assert_true(lb_digest_tree(bytes, sizeof bytes, d, NULL));
    lb_digest_hex(d, hex);
    write_file("s.img", bytes, sizeof bytes);
    rt_file f = {.name = "s.img", .n_bytes = 100, .sha256 = hex};
    rt_model m = {.arena_bytes = {128}, .files = &f, .n_files = 1};
    uint8_t want[128] = {0};
    memcpy(want, bytes, 100);
    lb_err e;
    assert_true(load(&m, 3, want, &e)); /* an arena larger than the image stays zero */
    m.arena_bytes[0] = 99;
    assert_false(load(&m, 3, NULL, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    m.arena_bytes[0] = 128;
    f.sha256 = NULL;
    assert_false(load(&m, 3, NULL, &e));
    assert_int_equal(e.code, LB_DAMAGED);
    m.image_file = 1;
    assert_false(load(&m, 3, NULL, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    char absolute[128]; /* an absolute name is taken as it is */
    snprintf(absolute, sizeof absolute, "%s/s.img", dir);
    f = (rt_file){.name = absolute, .n_bytes = 100, .sha256 = hex};
    m.image_file = 0;
    assert_true(load(&m, 1, want, &e));
}

/* ---- linked to a model file ---- */

enum { ROWS = 16 * 700 + 3, COLS = 64, QBLOCK = 34, MATS = 3, ROW = COLS / 32 * QBLOCK };

static const lb_layout LAYOUT = {.type = "test", .qblock_elems = 32, .qblock_bytes = QBLOCK,
                                 .n_planes = 2, .planes = {{2, 32, 4, 0}, {0, 2, 2, 1}}};

/* A model file: 7 bytes of head, a plain vector, then MATS matrices. */
static uint8_t *make_model_file(size_t *n) {
    *n = 7 + 64 + (size_t)MATS * ROWS * ROW;
    uint8_t *p = malloc(*n);
    assert_non_null(p);
    for (size_t i = 0; i < *n; i++) {
        p[i] = (uint8_t)((i * 2654435761U) >> 13 & 0x7B); /* high bytes of halves stay finite */
    }
    return p;
}

static void linked_file_is_packed_and_checked(void **state) {
    (void)state;
    size_t n = 0;
    uint8_t *p = make_model_file(&n);
    uint64_t one = 0;
    lb_err e = {0};
    assert_true(lb_image_bytes(&LAYOUT, ROWS, COLS, &one, &e));
    rt_file f = {.name = "m.gguf", .n_bytes = n};
    rt_weight w[2] = {
        {.name = "vector", .offset_bytes = 0, .image_bytes = 64, .file_offset_bytes = 7,
         .file_bytes = 64},
        {.name = "matrix", .layout = &LAYOUT, .n_rows = ROWS, .n_cols = COLS, .n_mats = MATS,
         .offset_bytes = 128, .image_bytes = MATS * one, .file_offset_bytes = 71,
         .file_bytes = n - 71},
    };
    rt_model m = {.arena_bytes = {128 + MATS * one}, .weights_linked = true, .files = &f,
                  .n_files = 1, .weights = w, .n_weights = 2};
    uint8_t *want = calloc(1, m.arena_bytes[0]);
    assert_non_null(want);
    memcpy(want, p + 7, 64);
    for (uint64_t i = 0; i < MATS; i++) {
        assert_true(lb_image_pack(&LAYOUT, p + 71 + i * ROWS * ROW, ROWS, COLS, 0,
                                  lb_ceil_div(ROWS, 16), want + 128 + i * one, &e));
    }
    write_file("m.gguf", p, n);
    for (uint32_t t = 1; t <= 4; t++) {
        assert_true(load(&m, t, want, &e));
    }
    uint8_t chain[LB_DIGEST_BYTES] = {0};
    char hex[LB_DIGEST_HEX_BYTES];
    assert_true(lb_digest_sample(chain, p + 7, 64, &e));
    assert_true(lb_digest_sample(chain, p + 71, n - 71, &e));
    lb_digest_hex(chain, hex);
    m.linked_sha256 = hex;
    assert_true(load(&m, 2, want, &e));
    const size_t seen[] = {7, 70, 71, 71 + 63, n - 64, n - 1};
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        p[seen[i]] ^= 1; /* a file of the same size with other weights */
        write_file("m.gguf", p, n);
        assert_false(load(&m, 2, NULL, &e));
        assert_int_equal(e.code, LB_DAMAGED);
        assert_non_null(strstr(e.text, "its weights are others than the program was made with"));
        p[seen[i]] ^= 1;
    }
    m.linked_sha256 = NULL;
    p[71 + (ROWS + 20) * ROW + 1] = 0x7C; /* an infinite scale in the second matrix */
    p[71 + (ROWS + 20) * ROW] = 0;
    write_file("m.gguf", p, n);
    assert_false(load(&m, 2, NULL, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_non_null(strstr(e.text, "weight 'matrix', expert 1: row 20"));
    write_file("m.gguf", p, n - 1);
    assert_false(load(&m, 2, NULL, &e));
    assert_int_equal(e.code, LB_DAMAGED);
    f.name = "absent.gguf";
    assert_false(load(&m, 2, NULL, &e));
    assert_int_equal(e.code, LB_DAMAGED);
    free(want);
    free(p);
}

/* Each field of a weight bent on its own: refused before a byte is read or written. */
static void linked_tables_must_agree(void **state) {
    (void)state;
    static const uint8_t bytes[2048];
    write_file("t.gguf", bytes, sizeof bytes);
    const rt_weight good = {.name = "w", .layout = &LAYOUT, .n_rows = 16, .n_cols = 32,
                            .n_mats = 2, .offset_bytes = 0, .image_bytes = 2 * 16 * QBLOCK,
                            .file_offset_bytes = 0, .file_bytes = 2 * 16 * QBLOCK};
    rt_file f = {.name = "t.gguf", .n_bytes = sizeof bytes};
    for (int bend = 0; bend <= 9; bend++) {
        rt_weight w = good;
        rt_model m = {.arena_bytes = {2048}, .weights_linked = true, .files = &f, .n_files = 1,
                      .weights = &w, .n_weights = 1};
        lb_err e;
        switch (bend) {
        case 1: w.offset_bytes = 2048 - 100; break;
        case 2: w.image_bytes = UINT64_MAX; break;
        case 3: w.file_offset_bytes = 2048 - 100; break;
        case 4: w.file_bytes = UINT64_MAX; break;
        case 5: w.n_mats = 3; break;
        case 6: w.n_cols = 33; break;
        case 7: w.n_rows = 0; break;
        case 8: w.file = 1; break;
        case 9: w.n_mats = UINT64_MAX; break;
        default: break;
        }
        assert_int_equal(load(&m, 2, NULL, &e), bend == 0);
        assert_int_equal(e.code, bend == 0 ? LB_OK : LB_BAD_SHAPE);
    }
}

static void no_weights_at_all(void **state) {
    (void)state;
    rt_model m = {.weights_linked = true};
    lb_err e;
    assert_true(load(&m, 2, NULL, &e));
}

static void progress_ends_complete(void **state) {
    (void)state;
    static const uint8_t bytes[1000];
    uint8_t d[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES];
    assert_true(lb_digest_tree(bytes, sizeof bytes, d, NULL));
    lb_digest_hex(d, hex);
    write_file("p.img", bytes, sizeof bytes);
    rt_file f = {.name = "p.img", .n_bytes = sizeof bytes, .sha256 = hex};
    rt_model m = {.arena_bytes = {1000}, .files = &f, .n_files = 1};
    uint64_t done = 0;
    rt_load_opts o = {.dir = dir, .progress = count_progress, .progress_arg = &done};
    rt_pool *pool = NULL;
    rt_memory mem = {0};
    lb_err e = {0};
    assert_true(rt_pool_start(1, &pool, &e));
    assert_true(rt_memory_map(&m, &mem, &e));
    assert_true(rt_weights_load(&m, &o, pool, &mem, &e));
    assert_int_equal(done, 1000);
    rt_memory_unmap(&mem);
    rt_pool_stop(pool);
}

static void program_folder_is_found(void **state) {
    (void)state;
    char path[4096];
    lb_err e = {0};
    assert_true(rt_program_dir(path, sizeof path, &e));
    assert_int_equal(path[0], '/');
    assert_non_null(strstr(path, "tests/runtime"));
    assert_false(rt_program_dir(path, 4, &e));
    assert_int_equal(e.code, LB_LIMIT);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_names_what_is_missing),
        cmocka_unit_test(identity_of_this_machine),
        cmocka_unit_test(arenas_are_aligned_zeroed_and_apart),
        cmocka_unit_test(arenas_that_do_not_fit_are_refused),
        cmocka_unit_test(packed_image_loads_and_is_checked),
        cmocka_unit_test(packed_tables_must_agree),
        cmocka_unit_test(linked_file_is_packed_and_checked),
        cmocka_unit_test(linked_tables_must_agree),
        cmocka_unit_test(no_weights_at_all),
        cmocka_unit_test(progress_ends_complete),
        cmocka_unit_test(program_folder_is_found),
    };
    return cmocka_run_group_tests(tests, make_dir, drop_dir);
}
