/* test_pack.c -- the weight image: every byte where the layout's formula says, its digest, what
 * stops packing and what then is left. Runs in the repository's root. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "gguf_bytes.h"
#include "named.h"
#include "pack.h"
#include "plans.h"

static char folder[] = "/tmp/test_pack.XXXXXX";
static char path[64];

static int setup(void **state) {
    (void)state;
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(path, sizeof path, "%s/w.bin", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder); /* nothing else may be left in it */
}

/* ---- the formula, written from docs/kernels.md: byte `at` of qblock q of row r of a matrix */

static uint64_t image_offset(const lb_layout *l, uint64_t n_cols, uint64_t row, uint64_t q,
                             uint64_t at) {
    const uint64_t per_atom = 256 / l->qblock_elems;
    const uint64_t per_row = n_cols / l->qblock_elems;
    const uint64_t strip = 16 * per_row * l->qblock_bytes;
    const uint64_t atom = q / per_atom;
    const uint64_t in_atom =
        atom * per_atom + per_atom <= per_row ? per_atom : per_row - atom * per_atom;
    uint64_t base = row / 16 * strip + atom * per_atom * 16 * l->qblock_bytes;
    for (uint32_t p = 0; p < l->n_planes; p++) {
        const lb_plane *plane = &l->planes[p];
        if (at >= plane->src_offset && at < (uint64_t)plane->src_offset + plane->n_bytes) {
            const uint64_t words = plane->n_bytes / plane->word_bytes;
            const uint64_t word = (at - plane->src_offset) / plane->word_bytes;
            const uint64_t byte = (at - plane->src_offset) % plane->word_bytes;
            return base + ((q % per_atom * words + word) * 16 + row % 16) * plane->word_bytes +
                   byte;
        }
        base += in_atom * 16 * plane->n_bytes;
    }
    fail_msg("byte %" PRIu64 " of a %s qblock is in no plane", at, l->type);
    return 0;
}

/* Every byte of the tensor stands where the formula says; *sum counts those of the image that it
 * fills. */
static void check_matrix(const lg_gtensor *t, const lg_weight *w, const uint8_t *image) {
    const lb_layout *l = w->layout;
    const uint64_t per_row = t->n_cols / l->qblock_elems;
    uint8_t *seen = calloc(w->bytes, 1);
    assert_non_null(seen);
    for (uint64_t r = 0; r < t->n_rows; r++) {
        for (uint64_t b = 0; b < per_row * l->qblock_bytes; b++) {
            uint64_t to = image_offset(l, t->n_cols, r, b / l->qblock_bytes, b % l->qblock_bytes);
            assert_true(to < w->bytes && seen[to] == 0);
            seen[to] = 1;
            if (image[w->offset + to] != t->file->data[r * per_row * l->qblock_bytes + b]) {
                fail_msg("tensor '%s': row %" PRIu64 ", byte %" PRIu64, t->name, r, b);
            }
        }
    }
    for (uint64_t i = 0; i < w->bytes; i++) {
        assert_true(seen[i] != 0 ||
                    image[w->offset + i] == 0); /* rows that only fill the last strip */
    }
    free(seen);
}

static void check_image(const lg_plan *plan, const uint8_t digest[LB_DIGEST_BYTES]) {
    lb_map map;
    lb_err e = {0};
    uint8_t again[LB_DIGEST_BYTES];
    uint64_t filled = 0;
    assert_true(lb_map_file(path, &map, &e));
    assert_int_equal(map.n_bytes, plan->arena_bytes[LG_ARENA_WEIGHTS]);
    for (uint32_t i = 0; i < plan->graph->n_tensors; i++) {
        const lg_gtensor *t = &plan->graph->tensors[i];
        const lg_weight *w = &plan->weights[i];
        if (w->layout == NULL) {
            assert_memory_equal(map.data + w->offset, t->file->data, t->file->n_bytes);
        } else {
            check_matrix(t, w, map.data);
        }
        filled += w->bytes;
    }
    assert_true(filled <= map.n_bytes);
    assert_true(lb_digest_tree(map.data, map.n_bytes, again, &e));
    assert_memory_equal(digest, again, LB_DIGEST_BYTES);
    lb_unmap(&map);
}

static void images_follow_the_formula(void **state) {
    (void)state;
    static const plans_request models[] = {
        {.recipe = "synth/llama-tiny", .types = "f32"},
        {.recipe = "synth/llama-tiny", .types = "f16"},
        {.recipe = "synth/llama-tiny", .types = "bf16"},
        {.recipe = "synth/llama-tiny", .types = "q4_0"},
        {.recipe = "synth/llama-tiny", .types = "q4_1"},
        {.recipe = "synth/llama-tiny", .types = "q5_0"},
        {.recipe = "synth/llama-tiny", .types = "q5_1"},
        {.recipe = "synth/llama-tiny", .types = "q8_0"},
        {.recipe = "synth/llama-spm"},
        {.recipe = "synth/llama-wide", .layers = 1},
        {.recipe = "synth/llama-wide", .layers = 1, .types = "q5_k"},
        {.recipe = "synth/llama-wide", .layers = 1, .types = "q6_k"},
    };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        plans p;
        plans_request rq = models[i];
        uint8_t digest[LB_DIGEST_BYTES];
        lb_err e = {0};
        rq.weights = true;
        rq.chunk = 8;
        plans_open(&p, &rq);
        if (!lg_pack(p.r.plan, &(lg_pack_options){.path = path}, digest, &e)) {
            fail_msg("%s", e.text);
        }
        check_image(p.r.plan, digest);
        plans_close(&p);
    }
}

/* An image longer than a hash piece and than a run of strips. */
static void long_images(void **state) {
    (void)state;
    plans p;
    uint8_t digest[LB_DIGEST_BYTES];
    lb_err e = {0};
    plans_open(&p, &(plans_request){.recipe = "synth/llama-576",
                                    .layers = 1,
                                    .weights = true,
                                    .types = "f16",
                                    .chunk = 8});
    assert_true(p.r.plan->arena_bytes[LG_ARENA_WEIGHTS] > 2 * LB_DIGEST_PIECE_BYTES);
    assert_true(lg_pack(p.r.plan, &(lg_pack_options){.path = path}, digest, &e));
    lb_map map;
    uint8_t again[LB_DIGEST_BYTES];
    assert_true(lb_map_file(path, &map, &e));
    assert_true(lb_digest_tree(map.data, map.n_bytes, again, &e));
    assert_memory_equal(digest, again, LB_DIGEST_BYTES);
    lb_unmap(&map);
    plans_close(&p);
}

/* ---- stopping */

typedef struct stopper {
    volatile sig_atomic_t stop;
    uint64_t calls, after, last, total;
} stopper;

static void count(void *arg, const char *what, uint64_t done, uint64_t total) {
    stopper *s = arg;
    assert_string_equal(what, "packing weights");
    assert_true(done >= s->last && done <= total);
    s->last = done;
    s->total = total;
    s->stop = ++s->calls >= s->after;
}

/* Stopped at its first, second, ... look at the flag: an image from before stays, nothing is left.
 */
static void stopping_leaves_nothing(void **state) {
    (void)state;
    plans p;
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .weights = true, .chunk = 8});
    bool done = false;
    for (uint64_t after = 1; !done; after++) {
        stopper s = {.after = after};
        uint8_t digest[LB_DIGEST_BYTES] = {0};
        lb_err e = {0};
        struct stat st;
        assert_true(lb_write_file(path, "old", 3, false, NULL, &e));
        done = lg_pack(p.r.plan, &(lg_pack_options){path, NULL, &s.stop, count, &s}, digest, &e);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, done ? (off_t)p.r.plan->arena_bytes[LG_ARENA_WEIGHTS] : 3);
        assert_true(done || (e.code == LB_CANCELLED && digest[0] == 0 && digest[31] == 0));
    }
    plans_close(&p);
}

static void places_that_cannot_be_written(void **state) {
    (void)state;
    plans p;
    uint8_t digest[LB_DIGEST_BYTES];
    lb_err e = {0};
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .weights = true, .chunk = 8});
    assert_false(
        lg_pack(p.r.plan, &(lg_pack_options){.path = "/tmp/no/such/folder/w.bin"}, digest, &e));
    assert_int_equal(e.code, LB_IO);
    assert_non_null(strstr(e.text, "/tmp/no/such/folder/w.bin"));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(lg_pack(p.r.plan, &(lg_pack_options){.path = path}, digest, &e));
    assert_int_equal(e.code, LB_IO);
    assert_int_equal(rmdir(path), 0);
    plans_close(&p);
}

/* ---- scales */

static void set_half(plans *p, const char *tensor, uint64_t qblock, uint32_t in_qblock,
                     uint16_t half) {
    const lg_gguf_tensor *t = lg_gguf_tensor_find(p->r.file, tensor);
    FILE *f = fopen(p->path, "r+b");
    assert_non_null(f);
    long at = (long)(t->offset + qblock * lg_qtype_get(t->type)->qblock_bytes + in_qblock);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(&half, 2, 1, f), 1);
    assert_int_equal(fclose(f), 0);
}

/* One scale of 0x7C00 (infinite) or 0x7E00 (NaN) anywhere: refused, with tensor, row and column. */
static void scales_must_be_finite(void **state) {
    (void)state;
    static const struct {
        const char *recipe, *types, *tensor, *says;
        uint64_t qblock;
        uint32_t at;
        uint16_t half;
    } bad[] = {
        {"synth/llama-tiny", "q8_0", "blk.1.ffn_down.weight", "row 12", 12 * 5 + 3, 0, 0x7C00},
        {"synth/llama-tiny", "q4_0", "blk.0.attn_q.weight", "row 63", 63 * 2 + 1, 0, 0x7E00},
        {"synth/llama-tiny", "q4_1", "blk.0.attn_k.weight", "row 0", 0, 2, 0xFC00},
        {"synth/llama-tiny", "q5_1", "token_embd.weight", "row 319", 319 * 2, 0, 0xFE01},
        {"synth/llama-tiny", "mxfp4", "blk.0.attn_k.weight", "row 31, column 32", 31 * 2 + 1, 0, 0x03FF},
        {"synth/llama-wide", "q4_k", "blk.0.ffn_up.weight", "row 1279", 1279 * 2 + 1, 2, 0x7C00},
        {"synth/llama-wide", "q6_k", "blk.0.ffn_gate.weight", "row 700", 700 * 2, 208, 0x7FFF},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        plans p;
        uint8_t digest[LB_DIGEST_BYTES];
        lb_err e = {0};
        plans_open(&p, &(plans_request){.recipe = bad[i].recipe,
                                        .types = bad[i].types,
                                        .weights = true,
                                        .chunk = 8,
                                        .layers = strcmp(bad[i].recipe, "synth/llama-wide") == 0 ? 1 : 0});
        set_half(&p, bad[i].tensor, bad[i].qblock, bad[i].at, bad[i].half);
        assert_false(lg_pack(p.r.plan, &(lg_pack_options){.path = path}, digest, &e));
        if (e.code != LB_BAD_VALUE || strstr(e.text, bad[i].tensor) == NULL ||
            strstr(e.text, bad[i].says) == NULL) {
            fail_msg("code %d '%s'; expected: %s, %s", (int)e.code, e.text, bad[i].tensor,
                     bad[i].says);
        }
        assert_int_not_equal(access(path, F_OK), 0);
        plans_close(&p);
    }
}

/* Of a tensor of experts, the expert is named too. */
static void the_expert_is_named(void **state) {
    (void)state;
    plans p;
    uint8_t digest[LB_DIGEST_BYTES];
    lb_err e = {0};
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .weights = true, .chunk = 8});
    for (uint32_t i = 0; i < p.r.plan->graph->n_tensors; i++) {
        lg_gtensor *t = &((lg_graph *)p.r.plan->graph)->tensors[i];
        if (strcmp(t->name, "blk.1.ffn_up.weight") == 0) { /* 160 rows: 5 experts of 32 */
            t->n_rows = 32;
            t->n_mats = 5;
        }
    }
    set_half(&p, "blk.1.ffn_up.weight", 100 * 2 + 1, 0, 0x7E00);
    assert_false(lg_pack(p.r.plan, &(lg_pack_options){.path = path}, digest, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    assert_string_equal(e.text, "tensor 'blk.1.ffn_up.weight', expert 3: row 4, column 32: a q8_0 "
                                "scale is not finite");
    plans_close(&p);
}

/* Places that overlap, which the prover would have refused, do not become a huge file. */
static void overlapping_places(void **state) {
    (void)state;
    plans p;
    uint8_t digest[LB_DIGEST_BYTES];
    lb_err e = {0};
    plans_open(&p, &(plans_request){.recipe = "synth/llama-tiny", .weights = true, .chunk = 8});
    p.r.plan->weights[4].offset = p.r.plan->weights[3].offset + 64;
    assert_false(lg_pack(p.r.plan, &(lg_pack_options){.path = path}, digest, &e));
    assert_int_equal(e.code, LB_BAD_VALUE);
    plans_close(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(images_follow_the_formula, setup, teardown),
        cmocka_unit_test_setup_teardown(long_images, setup, teardown),
        cmocka_unit_test_setup_teardown(stopping_leaves_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(places_that_cannot_be_written, setup, teardown),
        named_test_fixture("B24 scales must be finite", scales_must_be_finite, setup, teardown),
        named_test_fixture("B24 which expert has the NaN", the_expert_is_named, setup, teardown),
        cmocka_unit_test_setup_teardown(overlapping_places, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("pack", tests, NULL, NULL);
}
