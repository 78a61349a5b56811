/* test_chat_template.c -- the emitted description of a chat template: which format answers have, by
 * the recipe or by the template's own text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host.h"

static lb_arena arena;
static lg_host *host;

static int setup(void **state) {
    (void)state;
    lb_arena_init(&arena, "test", 64 << 20);
    return lg_host_open("templates", NULL, &arena, &host, NULL) ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    lg_host_close(host);
    lb_arena_reset(&arena);
    return 0;
}

/* The emitted file for a template text and a recipe (NULL: none); NULL with err set on failure. */
static const char *emitted(const char *source, const lg_value *recipe, lb_err *err) {
    lg_builder b;
    lb_text out;
    lg_build_init(&b, &arena);
    lb_text_init(&out, &arena);
    lg_value *p = lg_build_map(&b);
    lg_build_set_string(&b, p, "bos", "<s>");
    lg_build_set_bool(&b, p, "eos", false);
    lg_build_set_string(&b, p, "source", source);
    lg_build_set_string(&b, p, "thinking", "default");
    lg_build_set(&b, p, "recipe_output", recipe != NULL ? recipe : lg_build_bool(&b, false));
    assert_true(lg_build_done(&b, err));
    bool ok = lg_host_render(host, "program/chat_template.c.lua", p, &out, err) &&
              lb_text_done(&out, err);
    return ok ? out.data : NULL;
}

static void check(const char *source, const char *name, const char *says, const char *lacks) {
    lb_err err = {0};
    char want[64];
    const char *c = emitted(source, NULL, &err);
    if (c == NULL) {
        fail_msg("%s: %s", source, err.text);
        return;
    }
    snprintf(want, sizeof want, ".name = \"%s\"", name);
    if (strstr(c, want) == NULL || strstr(c, says) == NULL || strstr(c, lacks) != NULL) {
        fail_msg("%s:\n%s", source, c);
    }
}

static void the_template_tells_its_format(void **state) {
    (void)state;
    check("{{ 'hello' }}", "plain", ".form = RT_CALLS_NONE", "think_");
    check("<think></think>", "plain", ".think_begin = \"<think>\"", "call_begin");
    check("<tool_call>f<arg_key></think>", "laguna", ".form = RT_CALLS_KEYS", "turn_end");
    check("<tool_call>f<arg_key></assistant>", "laguna", ".turn_end = \"</assistant>\"", "think_");
    check("<tool_call>{}</tool_call></think>", "hermes", ".form = RT_CALLS_JSON", "arg_key");
    check("'\"parameters\": '", "llama3", ".arguments_key = \"parameters\"", "think_");
    check("<|python_tag|>", "llama3", ".form = RT_CALLS_BARE", "think_");
    check("<|start|>assistant<|channel|>final</think>", "channels", ".form = RT_CALLS_CHANNELS",
          "think_");
    check("<\xEF\xBD\x9Ctool\xE2\x96\x81""calls\xE2\x96\x81""begin\xEF\xBD\x9C></think>",
          "deepseek",
          ".form = RT_CALLS_NAMED", "arguments_key");
}

static void the_recipe_comes_first(void **state) {
    (void)state;
    lb_err err = {0};
    lg_builder b;
    lg_build_init(&b, &arena);
    const char *c = emitted("<arg_key></think>", lg_build_string(&b, "hermes"), &err);
    if (c == NULL) {
        fail_msg("%s", err.text);
    }
    assert_non_null(strstr(c, ".form = RT_CALLS_JSON"));
    assert_null(emitted("", lg_build_string(&b, "nosuch"), &err));
    assert_non_null(strstr(err.text, "output format 'nosuch' is not known"));
    lg_value *own = lg_build_map(&b);
    lg_build_set_string(&b, own, "form", "JSON");
    lg_build_set_string(&b, own, "call_begin", "[CALL \"]");
    lg_build_set_string(&b, own, "call_end", "[/CALL]");
    c = emitted("<arg_key></think>", own, &err);
    if (c == NULL) {
        fail_msg("%s", err.text);
    }
    assert_non_null(strstr(c, ".call_begin = \"[CALL \\\"]\""));
    if (strstr(c, "think_") != NULL) {
        fail_msg("%s", c);
    }
    lg_value *bad = lg_build_map(&b);
    lg_build_set_string(&b, bad, "form", "JSON");
    lg_build_set_string(&b, bad, "call_begin", "<call>");
    lg_build_set_string(&b, bad, "call_end", "<call>s");
    assert_null(emitted("", bad, &err));
    assert_non_null(strstr(err.text, "call_end begins with call_begin"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_template_tells_its_format),
        cmocka_unit_test(the_recipe_comes_first),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("chat_template", tests, setup, teardown);
}
