/* test_quantize.c -- quantisers and half conversions: fixed vectors, edges, refusals. How good the
 * quantisers are is measured by test_quantize.py. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "half.h"
#include "payload.h"
#include "quantize.h"

typedef struct vector {
    lg_qtype type;
    uint32_t n_elems;
    const char *hex;
} vector;

/* Rows of vector_input. By the gguf package they decode to within 15 % of it, q2_k 31 %. */
static const vector vectors[] = {
    {LG_QTYPE_F16, 4,
     "abb6ab35abb28038"},
    {LG_QTYPE_BF16, 4,
     "d5beb53e55be103f"},
    {LG_QTYPE_Q4_0, 32,
     "c033730ca53fc851fb841da63fd962fb942e"},
    {LG_QTYPE_Q4_1, 32,
     "1134c0bf730c952ec851ea731da63fc862fb841d"},
    {LG_QTYPE_Q5_0, 32,
     "c02f5aad546ae6093b5e80a2d5f72a5c7fa2c4f7193c"},
    {LG_QTYPE_Q5_1, 32,
     "df2fc0bf5aad546ae6083b5d80a2d5f72a4c7f91c4e6193b"},
    {LG_QTYPE_Q8_0, 32,
     "d023ae46d76f009129ba52e37b0c9e35c75ef08119aa42d36bfc8d25b64edf77089a"},
    {LG_QTYPE_Q2_K, 256,
     "222244445566788889a9bbbbccedffff89669977dd882299769d772288269977dd882299669977dd8822"
     "9966dd7722888866dd77dd88229876dd772188669976dd88229966dd77ee88229977dd7722886c39003c"},
    {LG_QTYPE_Q3_K, 256,
     "55aa55aa5555aa55aa55aaff55aa55aa00aaff00ff00ff5500ff00ff00ffff00bbaa554500ffffaa9955"
     "00ccffaaaa553300ddddaa777700ccddaaaa7733ccddbbaa554400ffffaa995500ccffaaaa553300dddd"
     "aa777700ccddaaab7733ccdddc34889865bc001005fa05050030"},
    {LG_QTYPE_Q4_K, 256,
     "33289e338890d7df8890d8e097ff96ffa24bc56ef7812ab34cd67e08923ac45de67019a23bc56df78129"
     "b34cd57e0891a34cd56ef8912ab35de67f08923bc45de78019a24cd56ef7812ab34cd67f0891a34cd56e"
     "f8812ab34dd67f08923bc45de77019a23cc56ef7812ab34cd67f0892a34cd56ef8812ab34dd67f08923b"
     "c45de77019a23cc56ef7812ab34cd67f0891"},
    {LG_QTYPE_Q5_K, 256,
     "10249e338890d7e08890d8e097ff96ffaa55aa55feaa55aa55aa5555aa55aa55aaa055aa55aa55aaaa55"
     "aa55aa5555aa5587aadcff12446799bcee10336588baddf02245779accef11436698bbed00235588abde"
     "f01245679abcef11336688bbdef02345789acdef11446699bcef01235678abcdf02245779accef013456"
     "89abde00235578aacdff12346789bcde01335679abcef02245779accef01345689acde00235578aacdff"
     "1234678abcdf0133"},
    {LG_QTYPE_Q6_K, 256,
     "55eebb3300dd5522bb7700ddaa22ff77cc0166bb0055baff3499ee3388ed226744ffaa5500bb6611cc77"
     "22dd8833ee9933ffbb5511aa6600cc8822dd7733ff9955eebb3300dd5522bb7700ddaa22ff77cc0066aa"
     "0055bbff3399ee4388ee226644ffaa5500bb6611cc7722dd8833ee9933ffbb5511aa6600cc8822dd7733"
     "ff99778822882277dd77882288dd77dd22881144ee44ff11bb1144ee44bb11bbee44778822882277dd77"
     "882288dd77dd22881144ee44ff11bb1144ee44bb11bbee44f110e0e1d32fc0c2b54ea0a3976d8084001c"},
    {LG_QTYPE_IQ4_NL, 32,
     "d023620da52fd841fb831eb53fd951fc931e"},
    {LG_QTYPE_IQ4_XS, 256,
     "081c6633840c830b720da52fd841fb831eb63fd951fc941e148cf24ad026ae037ce149cf159df36b720d"
     "a52fd841fb831eb63fd951fc941e148cf24ad026ae037ce149cf159df36b620da52fd841fb830eb52fe9"
     "51fc931e148cf24ad026ae037ce149cf159df36b620da52fd841fb831eb52fd951fc931e148cf24ad026"
     "ae037ce149cf159df36b"},
    {LG_QTYPE_MXFP4, 32,
     "7daef63cf760df740ef64be761cf751df7"},
    {LG_QTYPE_NVFP4, 64,
     "2a2a33326eb57c17e05fd46dfa4fe26eb57c17e0c46d96fa37d25eb527e05fd46d96fa37"},
};

static void vector_input(uint32_t n, float *x) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t saw = (int32_t)((i * 37 + 11) % 64) - 31;
        x[i] = (float)(saw * (int32_t)(1 + i / 32)) / 16.0F;
        x[i] = n == 4 ? x[i] / 3.0F : x[i];
    }
}

static void rows_have_known_bytes(void **state) {
    (void)state;
    for (size_t v = 0; v < sizeof vectors / sizeof vectors[0]; v++) {
        float x[256];
        uint8_t out[2 + 256] = {0x5A};
        char hex[2 * 256 + 1] = "";
        uint64_t n_bytes = 0;
        lb_err e = {0};
        vector_input(vectors[v].n_elems, x);
        assert_true(lg_qtype_row_bytes(vectors[v].type, vectors[v].n_elems, &n_bytes, &e));
        out[1 + n_bytes] = 0xA5;
        assert_true(lg_quantize_row(vectors[v].type, x, vectors[v].n_elems, out + 1, &e));
        for (size_t i = 0; i < n_bytes; i++) {
            snprintf(hex + 2 * i, 3, "%02x", out[1 + i]);
        }
        assert_string_equal(hex, vectors[v].hex);
        assert_int_equal(out[0], 0x5A);
        assert_int_equal(out[1 + n_bytes], 0xA5);
    }
}

/* Or random weights. */
static void every_computed_type_has_one(void **state) {
    (void)state;
    for (size_t i = 0; lg_qtype_at(i) != NULL; i++) {
        if (lg_qtype_at(i)->computes) {
            assert_true(lg_quantize_has(lg_qtype_at(i)->id) != lg_payload_has(lg_qtype_at(i)->id));
        }
    }
    assert_false(lg_quantize_has(LG_QTYPE_IQ2_XXS));
    assert_false(lg_quantize_has(LG_QTYPE_Q8_K));
}

static void refusals(void **state) {
    (void)state;
    float x[256] = {0};
    uint8_t out[256] = {0x5A};
    lb_err e = {0};
    assert_false(lg_quantize_row(LG_QTYPE_IQ2_XXS, x, 256, out, &e));
    assert_int_equal(e.code, LB_UNSUPPORTED);
    assert_false(lg_quantize_row(LG_QTYPE_Q4_0, x, 0, out, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    assert_false(lg_quantize_row(LG_QTYPE_Q4_K, x, 255, out, &e));
    assert_int_equal(e.code, LB_BAD_SHAPE);
    const float bad[] = {NAN, INFINITY, -INFINITY, 65505.0F, -1e30F};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        x[17] = bad[i];
        assert_false(lg_quantize_row(LG_QTYPE_Q8_0, x, 32, out, &e));
        assert_int_equal(e.code, LB_BAD_VALUE);
        assert_non_null(strstr(e.text, "column 17"));
        assert_int_equal(lg_quantize_row(LG_QTYPE_F32, x, 32, out + 64, &e), isfinite(bad[i]));
        assert_int_equal(out[0], 0x5A);
    }
}

/* The whole range that is accepted decodes to finite numbers: no scale overflows its half. */
static void largest_numbers_keep_finite_scales(void **state) {
    (void)state;
    for (size_t i = 0; lg_qtype_at(i) != NULL; i++) {
        const lg_qtype_row *t = lg_qtype_at(i);
        float x[256];
        uint8_t out[2048];
        lb_err e = {0};
        bool half_scale = t->id != LG_QTYPE_MXFP4 && t->id != LG_QTYPE_NVFP4;
        if (!lg_quantize_has(t->id) || t->qblock_elems < 32 || !half_scale) {
            continue;
        }
        for (int k = 0; k < 256; k++) {
            x[k] = k % 2 != 0 ? 65504.0F : -65504.0F;
        }
        assert_true(lg_quantize_row(t->id, x, 256, out, &e));
        uint32_t first = t->id == LG_QTYPE_Q2_K ? 80 : t->id == LG_QTYPE_Q3_K ? 108 :
                         t->id == LG_QTYPE_Q6_K ? 208 : 0;
        assert_int_not_equal(out[first + 1] & 0x7C, 0x7C);
    }
}

static void halves_round_trip(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float x = lg_half_float((uint16_t)h);
        uint16_t back = lg_half_bits(x);
        if (isnan(x)) {
            assert_int_equal(back & 0x7C00, 0x7C00);
            assert_int_not_equal(back & 0x3FF, 0);
        } else {
            assert_int_equal(back, h);
        }
    }
}

/* Between two neighbouring halves: below, at and above the middle. */
static void halves_round_to_even(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7BFF; h++) {
        float lo = lg_half_float((uint16_t)h);
        float hi = lg_half_float((uint16_t)(h + 1));
        float middle = (lo + hi) / 2.0F; /* exact: floats have 13 bits more */
        assert_int_equal(lg_half_bits(middle), h + (h & 1));
        assert_int_equal(lg_half_bits(nextafterf(middle, 0.0F)), h);
        assert_int_equal(lg_half_bits(nextafterf(middle, INFINITY)), h + 1);
        assert_int_equal(lg_half_bits(-middle), 0x8000 | (h + (h & 1)));
    }
    assert_int_equal(lg_half_bits(65519.996F), 0x7BFF);
    assert_int_equal(lg_half_bits(65520.0F), 0x7C00);
    assert_int_equal(lg_half_bits(1e-45F), 0);
}

static void bf16_rounds_to_even(void **state) {
    (void)state;
    assert_int_equal(lg_bf16_bits(1.0F), 0x3F80);
    assert_int_equal(lg_bf16_bits(lg_bits_float(0x3F808000)), 0x3F80);
    assert_int_equal(lg_bf16_bits(lg_bits_float(0x3F818000)), 0x3F82);
    assert_int_equal(lg_bf16_bits(lg_bits_float(0x3F808001)), 0x3F81);
    assert_int_equal(lg_bf16_bits(-INFINITY), 0xFF80);
    assert_int_equal(lg_bf16_bits(lg_bits_float(0x7F800001)), 0x7FC0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_known_bytes),
        cmocka_unit_test(every_computed_type_has_one),
        cmocka_unit_test(refusals),
        cmocka_unit_test(largest_numbers_keep_finite_scales),
        cmocka_unit_test(halves_round_trip),
        cmocka_unit_test(halves_round_to_even),
        cmocka_unit_test(bf16_rounds_to_even),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("quantize", tests, NULL, NULL);
}
