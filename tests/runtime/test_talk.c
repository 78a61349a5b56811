/* test_talk.c -- conversations of the command line: what an answer leaves for the next prompt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/talk.h"
#include "runtime/output_formats.h"
#include "tok_fixture.h"

bool render_tags(struct rt_chat_ctx *c);

static const rt_chat_template thinker = {.render = render_tags, .output = &format_laguna};
static const rt_chat_template plain = {.render = render_tags, .output = &format_plain};
static const rt_chat_template unknown = {.render = render_tags};

typedef struct world {
    lb_arena arena;
    tok_row rows[256];
    char bytes[256];
    rt_model model;
    rt_cli cli;
    rt_cli_talk talk;
    lb_err err;
} world;

static int setup(void **state) {
    world *w = calloc(1, sizeof *w);
    static const rt_merge none[1];
    lb_arena_init(&w->arena, "test", 64 << 20);
    for (int i = 0; i < 256; i++) {
        w->bytes[i] = (char)i;
        w->rows[i] = (tok_row){&w->bytes[i], 1, RT_TOKEN_NORMAL, 0};
    }
    w->model.name = "test";
    w->model.tokenizer = tok_fixture(RT_TOKENIZER_BYTES, w->rows, 256, none, 0, &w->arena);
    w->cli.model = &w->model;
    *state = w;
    return 0;
}

static int teardown(void **state) {
    world *w = *state;
    rt_cli_talk_free(&w->talk);
    lb_arena_reset(&w->arena);
    free(w);
    return 0;
}

/* Asks, answers with `text`, and renders the prompt of the next turn. */
static const rt_message *converse(world *w, const rt_chat_template *t, rt_thinking thinking,
                                  const char *text) {
    uint32_t *ids = NULL;
    size_t n = 0;
    rt_cli_talk_free(&w->talk);
    w->model.chat = t;
    assert_true(rt_cli_talk_new(&w->cli, NULL, thinking, &w->talk, &w->err));
    assert_true(rt_cli_talk_add(&w->talk, RT_ROLE_USER, "Q", 1, &w->err));
    assert_true(rt_cli_talk_prompt(&w->talk, &ids, &n, &w->err));
    assert_int_equal(n, w->talk.prompt.n_bytes);
    assert_true(rt_cli_talk_answer(&w->talk, text, strlen(text), &w->err));
    assert_true(rt_cli_talk_add(&w->talk, RT_ROLE_USER, "more", 4, &w->err));
    assert_true(rt_cli_talk_prompt(&w->talk, &ids, &n, &w->err));
    return &w->talk.chat.messages[1];
}

static void check(const rt_message *m, const char *reasoning, const char *content) {
    assert_int_equal(m->role, RT_ROLE_ASSISTANT);
    assert_int_equal(m->content.n, strlen(content));
    assert_memory_equal(m->content.s, content, m->content.n);
    assert_int_equal(m->reasoning.n, strlen(reasoning));
    if (m->reasoning.n > 0) {
        assert_memory_equal(m->reasoning.s, reasoning, m->reasoning.n);
    }
}

static void answers_are_taken_apart(void **state) {
    world *w = *state;
    check(converse(w, &thinker, RT_THINKING_ON, "plan</think>\nhi\n"), "plan", "hi");
    assert_non_null(strstr(w->talk.prompt.text, "<think>\nplan\n</think>\nhi\n</assistant>"));
    check(converse(w, &thinker, RT_THINKING_ON, "cut off"), "cut off", "");
    check(converse(w, &thinker, RT_THINKING_OFF, "hi </think> there"), "", "hi </think> there");
    check(converse(w, &thinker, RT_THINKING_ON, ""), "", "");
    check(converse(w, &thinker, RT_THINKING_ON, "p</think>x<tool_call>f\n</tool_call>"), "p",
          "x<tool_call>f\n</tool_call>"); /* no tools were offered */
}

/* Where nothing says how answers are spelled, they are kept as they are. */
static void other_answers_are_kept(void **state) {
    world *w = *state;
    check(converse(w, &plain, RT_THINKING_ON, "a</think>b \n"), "", "a</think>b \n");
    check(converse(w, &unknown, RT_THINKING_ON, "a</think>b \n"), "", "a</think>b \n");
}

/* What is printed in front of the answer to "Q". */
static const char *opening(world *w, const rt_chat_template *t, rt_thinking thinking, const char *q) {
    uint32_t *ids = NULL;
    const char *text = NULL;
    size_t n = 0;
    rt_cli_talk_free(&w->talk);
    w->model.chat = t;
    assert_true(rt_cli_talk_new(&w->cli, NULL, thinking, &w->talk, &w->err));
    assert_true(rt_cli_talk_add(&w->talk, RT_ROLE_USER, q, strlen(q), &w->err));
    assert_true(rt_cli_talk_prompt(&w->talk, &ids, &n, &w->err));
    assert_true(rt_cli_talk_opening(&w->talk, &text, &n, &w->err));
    return lb_strndup(&w->arena, text, n, &w->err);
}

/* The model writes the end of reasoning that the template began: both are printed, or none. */
static void reasoning_is_printed_whole(void **state) {
    world *w = *state;
    const char *want = "<think>";
    assert_string_equal(opening(w, &thinker, RT_THINKING_ON, "Q"), want);
    assert_string_equal(opening(w, &thinker, RT_THINKING_OFF, "Q"), "");
    assert_string_equal(opening(w, &thinker, RT_THINKING_OFF, "<think>"), "");
    assert_string_equal(opening(w, &plain, RT_THINKING_ON, "Q"), "");
    assert_string_equal(opening(w, &unknown, RT_THINKING_ON, "Q"), "");
    static const rt_merge none[1];
    static const rt_token_type types[] = {RT_TOKEN_USER, RT_TOKEN_CONTROL};
    for (size_t i = 0; i < 2; i++) {
        tok_row rows[257];
        memcpy(rows, w->rows, sizeof w->rows);
        rows[256] = (tok_row){"</think>", 8, types[i], 0};
        w->model.tokenizer = tok_fixture(RT_TOKENIZER_BYTES, rows, 257, none, 0, &w->arena);
        assert_string_equal(opening(w, &thinker, RT_THINKING_ON, "Q"),
                            types[i] == RT_TOKEN_USER ? want : "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_are_taken_apart, setup, teardown),
        cmocka_unit_test_setup_teardown(reasoning_is_printed_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(other_answers_are_kept, setup, teardown),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("talk", tests, NULL, NULL);
}
