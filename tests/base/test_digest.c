/* test_digest.c -- SHA-256 against published vectors; the tree against its definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/digest.h"

static void hex_is(const uint8_t *d, const char *want) {
    char hex[LB_DIGEST_HEX_BYTES];
    lb_digest_hex(d, hex);
    assert_string_equal(hex, want);
}

static void sha256_known_answers(void **state) {
    (void)state;
    uint8_t d[LB_DIGEST_BYTES];
    lb_err e = {0};
    assert_true(lb_sha256("", 0, d, &e)); /* FIPS 180-4 examples */
    hex_is(d, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_true(lb_sha256("abc", 3, d, &e));
    hex_is(d, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/* The definition, spelled out over a buffer. */
static void tree_by_definition(const uint8_t *data, uint64_t n, uint8_t *out) {
    uint8_t text[13 + 8 + 4 * LB_DIGEST_BYTES];
    size_t at = 13;
    memcpy(text, "lagen.tree/1\n", 13);
    for (int i = 0; i < 8; i++) {
        text[at++] = (uint8_t)(n >> (8 * i));
    }
    for (uint64_t from = 0; from < n; from += LB_DIGEST_PIECE_BYTES) {
        uint64_t len = n - from < LB_DIGEST_PIECE_BYTES ? n - from : LB_DIGEST_PIECE_BYTES;
        assert_true(lb_sha256(data + from, len, text + at, NULL));
        at += LB_DIGEST_BYTES;
    }
    assert_true(lb_sha256(text, at, out, NULL));
}

static void tree_is_as_defined(void **state) {
    (void)state;
    const uint64_t piece = LB_DIGEST_PIECE_BYTES;
    const uint64_t sizes[] = {0, 1, piece - 1, piece, piece + 1, 2 * piece, 2 * piece + 5};
    uint8_t *data = calloc(1, 2 * piece + 5);
    assert_non_null(data);
    for (uint64_t i = 0; i < 2 * piece + 5; i += 4097) {
        data[i] = (uint8_t)(i * 7);
    }
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        uint64_t n = sizes[k];
        uint8_t want[LB_DIGEST_BYTES];
        uint8_t got[LB_DIGEST_BYTES];
        uint8_t pieces[3 * LB_DIGEST_BYTES];
        tree_by_definition(data, n, want);
        assert_true(lb_digest_tree(data, n, got, NULL));
        assert_memory_equal(got, want, LB_DIGEST_BYTES);
        assert_int_equal(lb_digest_n_pieces(n), (n + piece - 1) / piece);
        for (uint64_t i = 0; i < lb_digest_n_pieces(n); i++) {
            uint64_t left = n - i * piece;
            assert_true(lb_sha256(data + i * piece, left < piece ? left : piece,
                                       pieces + i * LB_DIGEST_BYTES, NULL));
        }
        assert_true(lb_digest_root(pieces, n, got, NULL));
        assert_memory_equal(got, want, LB_DIGEST_BYTES);
    }
    free(data);
}

static void a_stopped_tree_leaves_its_place_alone(void **state) {
    (void)state;
    const uint8_t data[3] = {1, 2, 3};
    uint8_t want[LB_DIGEST_BYTES];
    uint8_t got[LB_DIGEST_BYTES] = {7};
    volatile sig_atomic_t stop = 1;
    lb_err e = {0};
    assert_true(lb_digest_tree(data, sizeof data, want, NULL));
    assert_false(lb_digest_tree_until(data, sizeof data, &stop, got, &e));
    assert_int_equal(e.code, LB_CANCELLED);
    assert_int_equal(got[0], 7);
    stop = 0;
    assert_true(lb_digest_tree_until(data, sizeof data, &stop, got, &e));
    assert_memory_equal(got, want, LB_DIGEST_BYTES);
}

int main(void) {
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_known_answers),
        cmocka_unit_test(a_stopped_tree_leaves_its_place_alone),
        cmocka_unit_test(tree_is_as_defined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
