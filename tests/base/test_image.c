/* test_image.c -- the weight image: every byte of a packed matrix stands where docs/kernels.md
 * says, found here by that formula read backwards; plus each refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/image.h"

/* A 256-element type of four planes with words of every size, cut out of order. */
static const lb_layout odd_256 = {
    .type = "odd",
    .qblock_elems = 256,
    .qblock_bytes = 45,
    .n_planes = 4,
    .planes = {{13, 32, 4, 0}, {0, 2, 2, 1}, {2, 9, 1, 0}, {11, 2, 2, 1}}};
static const lb_layout small_32 = {.type = "small",
                                   .qblock_elems = 32,
                                   .qblock_bytes = 18,
                                   .n_planes = 2,
                                   .planes = {{2, 16, 4, 0}, {0, 2, 2, 1}}};
static const lb_layout plain_1 = {
    .type = "plain", .qblock_elems = 1, .qblock_bytes = 2, .n_planes = 1, .planes = {{0, 2, 2, 0}}};

static uint8_t at_src(const lb_layout *l, const uint8_t *src, uint64_t n_rows, uint64_t n_cols,
                      uint64_t row, uint64_t qblock, uint32_t byte) {
    uint64_t row_bytes = n_cols / l->qblock_elems * l->qblock_bytes;
    return row < n_rows ? src[row * row_bytes + qblock * l->qblock_bytes + byte] : 0;
}

/* Walks the image front to back and says what each byte must be. */
static void check_image(const lb_layout *l, const uint8_t *src, uint64_t n_rows, uint64_t n_cols,
                        const uint8_t *image) {
    uint64_t per_atom = 256 / l->qblock_elems;
    uint64_t n_qblocks = n_cols / l->qblock_elems;
    const uint8_t *at = image;
    for (uint64_t row0 = 0; row0 < n_rows; row0 += 16) {
        for (uint64_t q0 = 0; q0 < n_qblocks; q0 += per_atom) {
            uint64_t n = n_qblocks - q0 < per_atom ? n_qblocks - q0 : per_atom;
            for (uint32_t p = 0; p < l->n_planes; p++) {
                const lb_plane *pl = &l->planes[p];
                for (uint64_t i = 0; i < n * pl->n_bytes * 16; i++) {
                    uint64_t word = i / pl->word_bytes / 16;
                    uint64_t row = row0 + i / pl->word_bytes % 16;
                    uint32_t n_words = pl->n_bytes / pl->word_bytes;
                    uint32_t byte = pl->src_offset + (uint32_t)(word % n_words) * pl->word_bytes +
                                    (uint32_t)(i % pl->word_bytes);
                    assert_int_equal(
                        *at++, at_src(l, src, n_rows, n_cols, row, q0 + word / n_words, byte));
                }
            }
        }
    }
}

static uint8_t *random_rows(const lb_layout *l, uint64_t n_rows, uint64_t n_cols) {
    uint64_t n = n_rows * (n_cols / l->qblock_elems) * l->qblock_bytes;
    uint8_t *src = malloc(n);
    assert_non_null(src);
    uint32_t x = 12345;
    for (uint64_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        src[i] = (uint8_t)(x >> 24) & 0x7b; /* no half of such bytes is infinite or NaN */
    }
    return src;
}

static void image_puts_each_byte_in_its_place(void **state) {
    (void)state;
    static const struct {
        const lb_layout *l;
        uint64_t n_rows, n_cols;
    } cases[] = {{&odd_256, 1, 256},  {&odd_256, 16, 768},  {&odd_256, 17, 512},
                 {&small_32, 15, 32}, {&small_32, 33, 576}, {&small_32, 16, 256},
                 {&plain_1, 31, 259}, {&plain_1, 2, 1}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const lb_layout *l = cases[c].l;
        uint64_t n_rows = cases[c].n_rows, n_cols = cases[c].n_cols, bytes;
        assert_true(lb_image_bytes(l, n_rows, n_cols, &bytes, NULL));
        assert_int_equal(bytes,
                         (n_rows + 15) / 16 * 16 * (n_cols / l->qblock_elems) * l->qblock_bytes);
        uint8_t *src = random_rows(l, n_rows, n_cols);
        uint8_t *image = malloc(bytes);
        assert_non_null(image);
        memset(image, 0xee, bytes);
        assert_true(lb_image_pack(l, src, n_rows, n_cols, 0, (n_rows + 15) / 16, image, NULL));
        check_image(l, src, n_rows, n_cols, image);
        free(src);
        free(image);
    }
}

static void image_in_pieces_is_the_same(void **state) {
    (void)state;
    const uint64_t n_rows = 45, n_cols = 288;
    uint64_t bytes;
    assert_true(lb_image_bytes(&small_32, n_rows, n_cols, &bytes, NULL));
    uint8_t *src = random_rows(&small_32, n_rows, n_cols);
    uint8_t *whole = malloc(bytes), *pieces = malloc(bytes);
    assert_non_null(whole);
    assert_non_null(pieces);
    assert_true(lb_image_pack(&small_32, src, n_rows, n_cols, 0, 3, whole, NULL));
    for (uint64_t s = 0; s < 3; s++) {
        uint64_t at = s * (bytes / 3);
        assert_true(
            lb_image_pack(&small_32, src + at, n_rows, n_cols, s, s + 1, pieces + at, NULL));
    }
    assert_memory_equal(whole, pieces, bytes);
    assert_true(lb_image_pack(&small_32, src, n_rows, n_cols, 3, 3, pieces, NULL));
    assert_memory_equal(whole, pieces, bytes);
    free(src);
    free(whole);
    free(pieces);
}

static void image_refuses_bad_shapes(void **state) {
    (void)state;
    uint64_t bytes = 7;
    lb_err e = {0};
    assert_false(lb_image_bytes(&small_32, 0, 32, &bytes, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_false(lb_image_bytes(&small_32, 1, 0, &bytes, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_false(lb_image_bytes(&small_32, 1, 33, &bytes, &e));
    assert_string_equal(e.text, "33 columns is not a positive multiple of 32 (small qblock)");
    assert_false(lb_image_bytes(&small_32, UINT64_MAX, 32, &bytes, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
    assert_false(lb_image_bytes(&small_32, 1 << 20, UINT64_C(1) << 45, &bytes, &e));
    assert_int_equal(e.code, LB_OVERFLOW);
    assert_int_equal(bytes, 7);
    uint8_t byte = 0;
    assert_false(lb_image_pack(&small_32, &byte, 16, 32, 0, 2, &byte, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_false(lb_image_pack(&small_32, &byte, 16, 32, 1, 0, &byte, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
}

static void image_names_a_scale_that_is_not_finite(void **state) {
    (void)state;
    uint8_t *src = random_rows(&small_32, 20, 576);
    uint64_t bytes;
    assert_true(lb_image_bytes(&small_32, 20, 576, &bytes, NULL));
    uint8_t *image = malloc(bytes);
    assert_non_null(image);
    uint8_t *half = src + 18 * (19 * 18 + 17); /* row 19, qblock 17 = column 544 */
    half[0] = 0;
    half[1] = 0xfc; /* minus infinity */
    lb_err e = {0};
    assert_false(lb_image_pack(&small_32, src, 20, 576, 0, 2, image, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_string_equal(e.text, "row 19, column 544: a small scale is not finite");
    free(src);
    free(image);
}

/* One qblock for each kind of scale; the first bytes are set, the others are all ones and no scale. */
static void image_checks_every_kind_of_scale(void **state) {
    (void)state;
    static const struct {
        lb_check check;
        uint8_t bytes[8];
        bool finite;
    } cases[] = {
        {LB_CHECK_HALVES, {0xff, 0x7b, 0xff, 0xfb, 0xff, 0xff, 0xff, 0xfb}, false},
        {LB_CHECK_HALVES, {0xff, 0x7b, 0xff, 0xfb, 0, 0, 0x7c, 0x03}, true},
        {LB_CHECK_HALVES, {0, 0, 0, 0, 0, 0, 0, 0x7c}, false},
        {LB_CHECK_E8M0, {254, 0, 1, 2, 3, 4, 5, 6}, true},
        {LB_CHECK_E8M0, {254, 0, 1, 2, 3, 4, 5, 255}, false},
        {LB_CHECK_NIBBLES, {0xff, 0xff, 0xff, 0xff, 0xff, 0xbf, 0xff, 0x7f}, true},
        {LB_CHECK_NIBBLES, {0, 0, 0, 0, 0, 0xc0, 0, 0x70}, false},
        {LB_CHECK_NIBBLES, {0, 0, 0, 0x10, 0, 0xd0, 0, 0xf0}, false},
        {LB_CHECK_NONE, {255, 255, 255, 255, 255, 255, 255, 255}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const lb_layout l = {.type = "scaled", .qblock_elems = 32, .qblock_bytes = 10, .n_planes = 2,
                             .planes = {{0, 8, 2, (uint16_t)cases[i].check}, {8, 2, 1, 0}}};
        uint8_t src[20], image[320];
        lb_err e = {0};
        memset(src, 0, 10);
        memset(src + 10, 255, 10);
        memcpy(src + 10, cases[i].bytes, 8);
        assert_int_equal(lb_image_pack(&l, src, 1, 64, 0, 1, image, &e), cases[i].finite);
        if (!cases[i].finite) {
            assert_string_equal(e.text, "row 0, column 32: a scaled scale is not finite");
        }
    }
}

static const char *const NAMES[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

/* A layout that is right, with one number of one plane a little more or less: never right again. */
static void bend_planes(const lb_layout *good) {
    lb_err err = {0};
    assert_true(lb_layout_check(good, NAMES, &err));
    for (uint32_t p = 0; p < good->n_planes; p++) {
        for (int by = -4; by <= 4; by++) {
            for (int what = 0; what < 2 && by != 0; what++) {
                lb_layout bent = *good;
                uint16_t *at = what == 0 ? &bent.planes[p].src_offset : &bent.planes[p].n_bytes;
                *at = (uint16_t)(*at + by);
                err = (lb_err){0};
                assert_false(lb_layout_check(&bent, NAMES, &err));
                assert_non_null(strstr(err.text, good->type));
            }
        }
    }
}

static void check_says(const lb_layout *l, const char *says) {
    lb_err err = {0};
    assert_false(lb_layout_check(l, NAMES, &err));
    assert_string_equal(err.text, says);
}

static void layout_holds_each_byte_once(void **state) {
    (void)state;
    bend_planes(&odd_256);
    bend_planes(&small_32);
    bend_planes(&plain_1);
    lb_layout l = small_32;
    l.planes[0].n_bytes = 12;
    check_says(&l, "small: no plane holds bytes 14 to 17 of the qblock's 18; planes hold each byte once");
    l = small_32;
    l.planes[0].src_offset = 1;
    check_says(&l, "small: plane 'a', bytes 1 to 16, and plane 'b', bytes 0 to 1, both hold byte 1 of the qblock; "
                   "planes hold each byte once");
    l = small_32;
    l.planes[0].n_bytes = 20;
    check_says(&l, "small: plane 'a', bytes 2 to 21, ends past the qblock's 18 bytes");
    l = small_32;
    l.planes[0].word_bytes = 3;
    check_says(&l, "small: plane 'a' is 16 bytes in words of 3, check 0; it holds whole words, and checks are below 4");
    l = small_32;
    l.planes[1].check = LB_N_CHECKS;
    check_says(&l, "small: plane 'b' is 2 bytes in words of 2, check 4; it holds whole words, and checks are below 4");
    l = small_32;
    l.n_planes = 1;
    check_says(&l, "small: no plane holds bytes 0 to 1 of the qblock's 18; planes hold each byte once");
    l.n_planes = LB_MAX_PLANES + 1;
    check_says(&l, "small: 9 planes; at most 8 are possible");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(image_checks_every_kind_of_scale),
        cmocka_unit_test(image_puts_each_byte_in_its_place),
        cmocka_unit_test(image_in_pieces_is_the_same),
        cmocka_unit_test(image_refuses_bad_shapes),
        cmocka_unit_test(layout_holds_each_byte_once),
        cmocka_unit_test(image_names_a_scale_that_is_not_finite),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
