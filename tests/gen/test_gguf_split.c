/* test_gguf_split.c -- models in several files, right and wrong, and opening by path. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "gen/gguf_bytes.h"
#include "gguf_value.h"
#include "named.h"

/* A folder with the parts of one model; each test bends one thing before writing. */
typedef struct folder {
    char dir[64];
    char path[3][128];
    gguf_bytes part[3];
} folder;

static void put_part_keys(gguf_bytes *b, unsigned no, unsigned count, int32_t total) {
    gb_u16(b, "split.no", no);
    gb_u16(b, "split.count", count);
    gb_i32(b, "split.tensors.count", total);
}

static void make(folder *f) {
    snprintf(f->dir, sizeof f->dir, "/tmp/lagen-split-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    for (unsigned i = 0; i < 3; i++) {
        snprintf(f->path[i], sizeof f->path[i], "%s/m-%05u-of-00003.gguf", f->dir, i + 1);
        gb_init(&f->part[i]);
    }
    gb_str(&f->part[0], "general.architecture", "llama");
}

/* Part 0 has no tensors, part 1 has two, part 2 has one. */
static void put_tensors(folder *f) {
    gb_tensor(&f->part[1], "a", LG_QTYPE_F32, 1, (uint64_t[]){8});
    gb_tensor(&f->part[1], "b", LG_QTYPE_F16, 1, (uint64_t[]){5});
    gb_tensor(&f->part[2], "c", LG_QTYPE_Q4_0, 2, (uint64_t[]){32, 3});
}

static void write_parts(folder *f) {
    for (int i = 0; i < 3; i++) {
        gb_write(&f->part[i], f->path[i]);
    }
}

static void clean(folder *f) {
    for (int i = 0; i < 3; i++) {
        unlink(f->path[i]);
        gb_free(&f->part[i]);
    }
    assert_int_equal(rmdir(f->dir), 0); /* fails if anything was left behind */
}

static void refused(const char *path, lb_code code, const char *says) {
    lb_arena a;
    lb_err e = {0};
    lg_gguf *g = NULL;
    lb_arena_init(&a, "load", 1 << 20);
    if (lg_gguf_open(path, &a, &g, &e)) {
        fail_msg("accepted; expected: %s", says);
    }
    if (e.code != code || strstr(e.text, says) == NULL) {
        fail_msg("code %d '%s'; expected: code %d '%s'", (int)e.code, e.text, (int)code, says);
    }
    assert_null(g);
    lb_arena_reset(&a);
}

static void opens_all_parts(void **state) {
    (void)state;
    folder f;
    make(&f);
    for (unsigned i = 0; i < 3; i++) {
        put_part_keys(&f.part[i], i, 3, 3);
    }
    put_tensors(&f);
    f.part[2].alignment = 64; /* each part has an alignment of its own */
    gb_u32(&f.part[2], "general.alignment", 64);
    gb_str(&f.part[1], "general.name", "not taken from here");
    write_parts(&f);
    lb_arena a;
    lb_err e = {0};
    lg_gguf *g = NULL;
    lb_arena_init(&a, "load", 1 << 20);
    assert_true(lg_gguf_open(f.path[0], &a, &g, &e));
    assert_int_equal(lg_gguf_n_files(g), 3);
    assert_string_equal(lg_gguf_file_at(g, 2)->path, f.path[2]);
    assert_int_equal(lg_gguf_file_at(g, 1)->n_tensors, 2);
    assert_int_equal(lg_gguf_file_at(g, 2)->alignment, 64);
    assert_int_equal(lg_gguf_n_tensors(g), 3);
    assert_null(lg_gguf_find(g, "general.name"));
    const lg_gguf_tensor *t = lg_gguf_tensor_find(g, "c");
    assert_int_equal(t->file_index, 2);
    assert_int_equal(t->offset % 64, 0);
    assert_int_equal(t->data[t->n_bytes - 1], 0); /* readable */
    assert_int_equal(lg_gguf_tensor_find(g, "b")->file_index, 1);
    assert_int_equal(lg_gguf_tensor_bytes(g), 32 + 10 + 54);
    lg_gguf_close(g);
    lb_arena_reset(&a);
    clean(&f);
}

static void single_files_may_carry_split_keys(void **state) {
    (void)state;
    for (unsigned count = 0; count <= 1; count++) {
        folder f;
        make(&f);
        put_part_keys(&f.part[0], 0, count, 0);
        write_parts(&f);
        lb_arena a;
        lb_err e = {0};
        lg_gguf *g = NULL;
        lb_arena_init(&a, "load", 1 << 20);
        assert_true(lg_gguf_open(f.path[0], &a, &g, &e));
        assert_int_equal(lg_gguf_n_files(g), 1);
        lg_gguf_close(g);
        lb_arena_reset(&a);
        clean(&f);
    }
}

static void wrong_first_part(void **state) {
    (void)state;
    folder f;
    make(&f);
    for (unsigned i = 0; i < 3; i++) {
        put_part_keys(&f.part[i], i, 3, 3);
    }
    put_tensors(&f);
    write_parts(&f);
    refused(f.path[1], LB_BAD_VALUE, "key 'split.no': 1; open the first of the 3 parts");
    char other[160];
    snprintf(other, sizeof other, "%s/renamed.gguf", f.dir);
    assert_int_equal(rename(f.path[0], other), 0);
    refused(other, LB_BAD_FORMAT, "its name must end in '-00001-of-00003.gguf'");
    assert_int_equal(rename(other, f.path[0]), 0);
    assert_int_equal(unlink(f.path[2]), 0);
    refused(f.path[0], LB_IO, "part 3 of 3: ");
    gb_refused(&f.part[0], LB_UNSUPPORTED, "one of 3 parts");
    clean(&f);
}

static void first_part_claims_too_much(void **state) {
    (void)state;
    static const struct {
        unsigned count;
        lb_code code;
        const char *says;
    } want[] = {
        {1025, LB_LIMIT, "key 'split.count': 1025 is not from 0 to 1024"},
        {65535, LB_LIMIT, "key 'split.count': 65535"},
        {4, LB_BAD_FORMAT, "'-00001-of-00004.gguf'"},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        folder f;
        make(&f);
        put_part_keys(&f.part[0], 0, want[i].count, 3);
        write_parts(&f);
        refused(f.path[0], want[i].code, want[i].says);
        clean(&f);
    }
    folder f;
    make(&f);
    gb_u16(&f.part[0], "split.count", 3);
    write_parts(&f);
    refused(f.path[0], LB_MISSING, "key 'split.no' is missing");
    clean(&f);
}

static void parts_of_another_split(void **state) {
    (void)state;
    folder f;
    make(&f);
    put_part_keys(&f.part[0], 0, 3, 3);
    put_part_keys(&f.part[1], 2, 3, 3);
    put_part_keys(&f.part[2], 2, 3, 3);
    write_parts(&f);
    refused(f.path[0], LB_BAD_VALUE, "m-00002-of-00003.gguf: key 'split.no': 2 where 1 is needed");
    clean(&f);
    make(&f);
    put_part_keys(&f.part[0], 0, 3, 3);
    put_part_keys(&f.part[1], 1, 4, 3);
    write_parts(&f);
    refused(f.path[0], LB_BAD_VALUE, "key 'split.count': 4, but the first part says 3");
    clean(&f);
    make(&f);
    put_part_keys(&f.part[0], 0, 3, 3);
    write_parts(&f);
    refused(f.path[0], LB_MISSING, "m-00002-of-00003.gguf: key 'split.no' is missing");
    clean(&f);
}

/* Each of the keys once in every type that is none of integers. */
static void keys_of_a_wrong_type(void **state) {
    (void)state;
    static const char *const keys[] = {"split.no", "split.count", "split.tensors.count"};
    static const lg_gguf_type wrong[] = {LG_GGUF_F32, LG_GGUF_F64, LG_GGUF_BOOL, LG_GGUF_STR,
                                         LG_GGUF_ARRAY};
    for (size_t k = 0; k < 3; k++) {
        for (size_t t = 0; t < sizeof wrong / sizeof *wrong; t++) {
            folder f;
            make(&f);
            for (unsigned i = 0; i < 3; i++) {
                const unsigned right[] = {i, 3, 3};
                for (size_t j = 0; j < 3; j++) {
                    if (j == k && i == 0) {
                        gb_any(&f.part[i], keys[j], wrong[t]);
                    } else {
                        gb_u16(&f.part[i], keys[j], right[j]);
                    }
                }
            }
            put_tensors(&f);
            write_parts(&f);
            refused(f.path[0], LB_BAD_TYPE, keys[k]);
            clean(&f);
        }
    }
}

static void totals_over_all_parts(void **state) {
    (void)state;
    for (int32_t total = -1; total <= 4; total++) {
        folder f;
        make(&f);
        for (unsigned i = 0; i < 3; i++) {
            put_part_keys(&f.part[i], i, 3, total);
        }
        put_tensors(&f);
        write_parts(&f);
        if (total < 0) {
            refused(f.path[0], LB_BAD_VALUE, "key 'split.tensors.count': -1 is negative");
        } else if (total != 3) {
            refused(f.path[0], LB_BAD_VALUE, "but the 3 parts hold 3 tensors");
        }
        clean(&f);
    }
}

static void a_name_in_two_parts(void **state) {
    (void)state;
    folder f;
    make(&f);
    for (unsigned i = 0; i < 3; i++) {
        put_part_keys(&f.part[i], i, 3, 4);
    }
    put_tensors(&f);
    gb_tensor(&f.part[2], "a", LG_QTYPE_F32, 1, (uint64_t[]){8});
    write_parts(&f);
    refused(f.path[0], LB_DUPLICATE, "tensor 'a' occurs twice");
    clean(&f);
}

static void damaged_part(void **state) {
    (void)state;
    folder f;
    make(&f);
    for (unsigned i = 0; i < 3; i++) {
        put_part_keys(&f.part[i], i, 3, 3);
    }
    put_tensors(&f);
    write_parts(&f);
    assert_int_equal(truncate(f.path[1], (off_t)f.part[1].file.n_bytes - 1), 0);
    refused(f.path[0], LB_BAD_FORMAT, "m-00002-of-00003.gguf: tensor 'b': truncated");
    assert_int_equal(truncate(f.path[1], 20), 0);
    refused(f.path[0], LB_BAD_FORMAT, "m-00002-of-00003.gguf: not a GGUF file: 20 bytes");
    assert_int_equal(truncate(f.path[2], 0), 0);
    refused(f.path[2], LB_BAD_FORMAT, "not a GGUF file: 0 bytes");
    refused(f.dir, LB_IO, "not a regular file");
    refused("/nonexistent/m.gguf", LB_IO, "No such file");
    clean(&f);
}

static void each_allocation_may_fail(void **state) {
    (void)state;
    folder f;
    make(&f);
    for (unsigned i = 0; i < 3; i++) {
        put_part_keys(&f.part[i], i, 3, 3);
    }
    put_tensors(&f);
    write_parts(&f);
    for (int64_t n = 0;; n++) {
        lb_arena a;
        lb_err e = {0};
        lg_gguf *g = NULL;
        lb_arena_init(&a, "load", 1 << 20);
        a.fail_after = n;
        bool ok = lg_gguf_open(f.path[0], &a, &g, &e);
        lg_gguf_close(g);
        lb_arena_reset(&a);
        if (ok) {
            assert_true(n > 10);
            break;
        }
        assert_int_equal(e.code, LB_NO_MEMORY);
    }
    clean(&f);
}

/* 66 GiB of weights that are a hole in the file: opening reads the header alone. */
static void a_huge_file_opens_at_once(void **state) {
    (void)state;
    folder f;
    make(&f);
    for (unsigned i = 0; i < 48; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.ffn_up_exps.weight", i);
        uint64_t ne[] = {3072, 1024, 256};
        gb_tensor(&f.part[0], name, LG_QTYPE_Q8_0, 3, ne);
        snprintf(name, sizeof name, "blk.%u.ffn_down_exps.weight", i);
        gb_tensor(&f.part[0], name, LG_QTYPE_Q8_0, 3, ne);
    }
    uint64_t data_bytes = f.part[0].data_bytes;
    assert_true(data_bytes > 66ULL << 30);
    f.part[0].no_data = true;
    gb_write(&f.part[0], f.path[0]);
    off_t size = (off_t)(f.part[0].file.n_bytes + 31 + data_bytes);
    if (truncate(f.path[0], size) != 0) {
        clean(&f);
        print_message("# SKIP a_huge_file_opens_at_once: no file of 78 GiB, even a sparse one\n");
        skip();
    }
    lb_arena a;
    lb_err e = {0};
    lg_gguf *g = NULL;
    struct timespec from;
    struct timespec to;
    lb_arena_init(&a, "load", 1 << 20);
    clock_gettime(CLOCK_MONOTONIC, &from);
    assert_true(lg_gguf_open(f.path[0], &a, &g, &e));
    clock_gettime(CLOCK_MONOTONIC, &to);
    assert_int_equal(lg_gguf_tensor_bytes(g), data_bytes);
    double ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    print_message("# opened %" PRIu64 " bytes in %.2f ms\n", (uint64_t)size, ms);
    assert_true(ms < 200);
    lg_gguf_close(g);
    lb_arena_reset(&a);
    clean(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_all_parts),
        cmocka_unit_test(single_files_may_carry_split_keys),
        cmocka_unit_test(wrong_first_part),
        cmocka_unit_test(first_part_claims_too_much),
        cmocka_unit_test(parts_of_another_split),
        named_test("B03 keys of splits in every wrong type", keys_of_a_wrong_type),
        cmocka_unit_test(totals_over_all_parts),
        named_test("B19 a tensor in two parts", a_name_in_two_parts),
        cmocka_unit_test(damaged_part),
        cmocka_unit_test(each_allocation_may_fail),
        cmocka_unit_test(a_huge_file_opens_at_once),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("gguf_split", tests, NULL, NULL);
}
