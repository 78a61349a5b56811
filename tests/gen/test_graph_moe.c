/* test_graph_moe.c -- the graph of a mixture of experts as an architecture file builds it with
 * lib/graph.lua: nodes, values and their bounds; shapes that do not fit are refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "folder.h"
#include "gguf_bytes.h"
#include "graph.h"
#include "graphs.h"

static const char BUILD[] =
    "local graph = import('lib/graph.lua')\n"
    "local function build(input)\n"
    "  local g = graph.new(input)\n"
    "  g.arch = 't'\n"
    "  local embd = g:weight('embd', 64, 320)\n"
    "  local x = g:embed(embd, 64)\n"
    "  g.layer = 0\n"
    "  local logits = g:linear('router', x, g:weight('blk.0.router', 64, 16), 16)\n"
    "  local ids, w = g:router('moe', logits, g:optional('blk.0.bias', 16),\n"
    "    { n_used = 4, gating = 'sigmoid', norm = true, scale = 2.5 })\n"
    "  local gate = g:expert_linear('gate', x, ids, g:weight('blk.0.gate', 64, 96, %s), 96)\n"
    "  local up = g:expert_linear('up', x, ids, g:weight('blk.0.up', 64, 96, 16), 96)\n"
    "  local act = g:silu_mul('act', gate, up)\n"
    "  local down = g:expert_linear('down', act, ids, g:weight('blk.0.down', 96, 64, 16), 64)\n"
    "  x = g:add('x', x, g:expert_sum('sum', down, w))\n"
    "  g.layer = -1\n"
    "  x = g:take_rows('x_out', x)\n"
    "  local out = g:linear('logits', x, embd, 320)\n"
    "  return g:finish({ n_layers = 1, n_embd = 64, n_vocab = 320, ctx_train = 64, logits = out })\n"
    "end\n"
    "return { build = build, numbers = function() return {} end }\n";

static lg_gguf *model_file(gguf_bytes *bytes, lb_arena *arena) {
    gb_init(bytes);
    gb_str(bytes, "general.architecture", "t");
    gb_u32(bytes, "t.block_count", 1);
    gb_tensor(bytes, "embd", LG_QTYPE_F32, 2, (uint64_t[]){64, 320});
    gb_tensor(bytes, "blk.0.router", LG_QTYPE_F32, 2, (uint64_t[]){64, 16});
    gb_tensor(bytes, "blk.0.bias", LG_QTYPE_F32, 1, (uint64_t[]){16});
    gb_tensor(bytes, "blk.0.gate", LG_QTYPE_F16, 3, (uint64_t[]){64, 96, 16});
    gb_tensor(bytes, "blk.0.up", LG_QTYPE_F16, 3, (uint64_t[]){64, 96, 16});
    gb_tensor(bytes, "blk.0.down", LG_QTYPE_F16, 3, (uint64_t[]){96, 64, 16});
    return gb_open(bytes, arena);
}

/* Builds with `experts` as the text of the gate's third dimension, checks, and dumps into `out`. */
static bool build(const char *experts, lb_text *out, lb_err *err) {
    const lg_build_options options = {.ctx = 64, .slots = 1, .chunk = 8, .kv = "f16"};
    lb_arena arena;
    folder f;
    gguf_bytes bytes;
    char text[4096];
    char *lib = NULL;
    size_t n = 0;
    lg_host *host = NULL;
    lg_graph *g = NULL;
    lb_arena_init(&arena, "graph", 1 << 26);
    lg_gguf *file = model_file(&bytes, &arena);
    snprintf(text, sizeof text, BUILD, experts);
    assert_true(lb_read_file("templates/lib/graph.lua", 1 << 20, &arena, &lib, &n, err));
    assert_true(folder_open(&f) && folder_put(&f, "arch/t.lua", text) &&
                folder_put(&f, "lib/graph.lua", lib));
    assert_true(lg_host_open(f.path, NULL, &arena, &host, err));
    bool ok = lg_graph_build(file, host, &options, &arena, &g, err) &&
              lg_graph_check(g, "building", err);
    if (ok) {
        lg_graph_dump(g, out);
    }
    lg_host_close(host);
    lg_gguf_close(file);
    gb_free(&bytes);
    assert_true(folder_close(&f));
    lb_arena_reset(&arena);
    return ok;
}

static void mixture_builds(void **state) {
    (void)state;
    static const char *const lines[] = {
        "value 2 moe.ids i32[T][4]\n",
        "value 3 moe.weights f32[T][4]\n",
        "value 4 gate f32[T][384]\n",
        "value 6 act f32[T][384]\n",
        "value 7 down f32[T][256]\n",
        "value 8 sum f32[T][64]\n",
        "router logits=%1 bias=blk.0.bias ids=%2 weights=%3 gating:sigmoid n_used:4 norm:true "
        "scale:0x1.4p+1\n",
        "expert_linear x=%0 ids=%2 w=blk.0.gate y=%4 n_used:4\n",
        "silu_mul gate=%4 up=%5 y=%6\n",
        "expert_linear x=%6 ids=%2 w=blk.0.down y=%7 n_used:4\n",
        "expert_sum x=%7 weights=%3 y=%8 n_used:4\n",
    };
    lb_arena arena;
    lb_err e = {0};
    lb_text out;
    lb_arena_init(&arena, "text", 1 << 20);
    lb_text_init(&out, &arena);
    if (!build("16", &out, &e) || !lb_text_done(&out, &e)) {
        fail_msg("%s", e.text);
    }
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (strstr(out.data, lines[i]) == NULL) {
            fail_msg("no '%s' in\n%s", lines[i], out.data);
        }
    }
    lb_arena_reset(&arena);
}

static void another_number_of_experts_is_refused(void **state) {
    (void)state;
    lb_err e = {0};
    assert_false(build("15", NULL, &e));
    assert_non_null(
        strstr(e.text, "tensor 'blk.0.gate' is 64 x 96 x 16; its metadata asks for 64 x 96 x 15"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixture_builds),
        cmocka_unit_test(another_number_of_experts_is_refused),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("graph_moe", tests, NULL, NULL);
}
