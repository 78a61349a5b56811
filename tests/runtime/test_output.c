/* test_output.c -- answers taken apart: every format, cut at every byte, whole and broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chat/output.h"
#include "named.h"
#include "runtime/output_formats.h"

/* Events as text: "R{...}" reasoning, "C{...}" content, "F{name|arguments}" a call, "X{...}" a cut
 * one. Texts that follow each other are one. */
typedef struct log {
    char text[8192];
    size_t n;
    char last;
} event_log;

static void log_event(void *to, const rt_event *e) {
    event_log *l = to;
    char kind = "RCFX"[e->kind];
    bool joins = l->last == kind && (kind == 'R' || kind == 'C');
    assert_true(e->text.n + e->name.n + l->n + 8 < sizeof l->text);
    if (joins) {
        l->n--; /* the bracket */
    } else {
        l->n += (size_t)sprintf(l->text + l->n, "%c{", kind);
    }
    if (kind == 'F') {
        l->n += (size_t)sprintf(l->text + l->n, "%.*s|", (int)e->name.n, e->name.s);
    }
    memcpy(l->text + l->n, e->text.s, e->text.n);
    l->n += e->text.n;
    l->text[l->n++] = '}';
    l->text[l->n] = '\0';
    l->last = kind;
}

static const char tools_text[] =
    "[{'type':'function','function':{'name':'f','parameters':{'type':'object','properties':{"
    "'s':{'type':'string'},'n':{'type':'integer'},'o':{'type':'object'},'t':{'type':"
    "['string']},'m':{'type':['string','null']},'p':{'anyOf':[{'type':'string'},{'type':'null'}]},"
    "'e':{'enum':['1','2']},'k':{'const':7},'w':{'oneOf':[{'type':'string'},{}]},"
    "'b':{'type':['boolean','string','number']}}}}},"
    "{'type':'function','function':{'name':'g'}}]";

static json_t *test_tools(void) {
    char text[sizeof tools_text];
    memcpy(text, tools_text, sizeof text);
    for (char *p = text; *p != '\0'; p++) {
        *p = *p == '\'' ? '"' : *p;
    }
    json_t *v = json_loads(text, 0, NULL);
    assert_non_null(v);
    return v;
}

typedef struct answer {
    const rt_output_format *format;
    bool tools;
    const char *prompt; /* what the prompt ends in */
    const char *text;
    const char *want;
} answer;

/* Feeds `text` in pieces that end at the given bytes. */
static void run(const answer *a, const char *text, size_t n, const size_t *cuts, size_t n_cuts,
                event_log *log) {
    lb_arena arena;
    lb_err err = {0};
    rt_output *o = NULL;
    json_t *tools = a->tools ? test_tools() : NULL;
    rt_rendered prompt = {.text = a->prompt, .n_bytes = strlen(a->prompt)};
    *log = (event_log){.last = '\0'};
    lb_arena_init(&arena, "output", 16 << 20);
    assert_true(rt_output_new(a->format, tools, &prompt, log_event, log, &arena, &o, &err));
    size_t from = 0;
    for (size_t i = 0; i <= n_cuts; i++) {
        size_t end = i < n_cuts ? cuts[i] : n;
        char *piece = malloc(end - from + 1); /* the sanitizer sees a read behind the end */
        assert_non_null(piece);
        memcpy(piece, text + from, end - from);
        assert_true(rt_output_feed(o, piece, end - from, &err));
        free(piece);
        from = end;
    }
    assert_true(rt_output_finish(o, &err));
    lb_arena_reset(&arena);
    json_decref(tools);
}

static void check_answer(const answer *a) {
    event_log log;
    size_t n = strlen(a->text);
    run(a, a->text, n, NULL, 0, &log);
    if (strcmp(log.text, a->want) != 0) {
        fail_msg("%s: %s\nwant %s\ngot  %s", a->format->name, a->text, a->want, log.text);
    }
    for (size_t cut = 0; cut <= n; cut++) {
        run(a, a->text, n, &cut, 1, &log);
        assert_string_equal(log.text, a->want);
    }
    size_t *all = malloc((n + 1) * sizeof *all);
    assert_non_null(all);
    for (size_t i = 0; i < n; i++) {
        all[i] = i + 1;
    }
    run(a, a->text, n, all, n, &log);
    assert_string_equal(log.text, a->want);
    /* whatever is missing: no crash, and no call out of thin air */
    for (size_t cut = 0; cut < n; cut++) {
        run(a, a->text, cut, NULL, 0, &log);
        const char *call = strstr(log.text, "F{");
        assert_true(call == NULL || strstr(a->want, "F{") != NULL);
    }
    free(all);
}

#define CALL_F "<tool_call>f\n"
#define ARG(k, v) "<arg_key>" k "</arg_key>\n<arg_value>" v "</arg_value>\n"

static void laguna(void **state) {
    (void)state;
    static const answer answers[] = {
        {&format_laguna, true, "<assistant><think>", "plan</think>hi</assistant>", "R{plan}C{hi}"},
        {&format_laguna, true, "<assistant>\n<think>", "\nplan\n</think>\nhi \n\n", "R{plan}C{hi}"},
        {&format_laguna, true, "<assistant></think>", "hi</assistant>\n ignored", "C{hi}"},
        {&format_laguna, false, "<assistant>", "<think>a</think>b", "R{a}C{b}"},
        {&format_laguna, false, "<assistant>", " \n</think>\nb", "C{b}"},
        {&format_laguna, false, "<assistant>", "  b <think>c</think>", "C{  b <think>c</think>}"},
        {&format_laguna, true, "<assistant><think>", "cut off", "R{cut off}"},
        {&format_laguna, true, "<assistant><think>", "a<b </thin k>\n\n x",
         "R{a<b </thin k>\n\n x}"},
        {&format_laguna, true, "<assistant><think>", "</think>", ""},
        {&format_laguna, true, "</think>", CALL_F ARG("s", "  def g():\n    pass\n")
         "</tool_call></assistant>",
         "F{f|{\"s\": \"  def g():\\n    pass\\n\"}}"},
        {&format_laguna, true, "</think>", CALL_F ARG("s", "123") ARG("n", " 123 ") ARG("t", "true")
         "</tool_call>",
         "F{f|{\"s\": \"123\", \"n\": 123, \"t\": \"true\"}}"},
        {&format_laguna, true, "</think>",
         CALL_F ARG("o", "{\"a\": [1]}") ARG("s", "{\"a\":1}") ARG("x", "true")
         ARG("y", "say \"hi\"\\") "</tool_call>",
         "F{f|{\"o\": {\"a\": [1]}, \"s\": \"{\\\"a\\\":1}\", \"x\": true, \"y\": \"say "
         "\\\"hi\\\"\\\\\"}}"},
        {&format_laguna, true, "</think>", "Look:\n<tool_call>f<arg_key>n</arg_key><arg_value>"
                                           "1</arg_value></tool_call>",
         "C{Look:}F{f|{\"n\": 1}}"},
        {&format_laguna, true, "</think>", CALL_F "</tool_call>\n" CALL_F ARG("n", "2")
         "</tool_call>\nand so",
         "F{f|{}}F{f|{\"n\": 2}}C{and so}"},
        {&format_laguna, false, "</think>", CALL_F "</tool_call>", "C{<tool_call>f\n</tool_call>}"},
        {&format_laguna, true, "</think>", CALL_F "oops</tool_call> then",
         "C{<tool_call>f\noops</tool_call> then}"},
        {&format_laguna, true, "</think>", "<tool_call></tool_call>", "C{<tool_call></tool_call>}"},
        {&format_laguna, true, "</think>", "<tool_call>f" CALL_F "</tool_call>",
         "C{<tool_call>f}F{f|{}}"},
        {&format_laguna, true, "</think>", CALL_F ARG("s", "cut"),
         "X{<tool_call>f\n" ARG("s", "cut") "}"},
        {&format_laguna, true, "</think>", "a < b <tool <tool_calls> </assistan",
         "C{a < b <tool <tool_calls> </assistan}"},
        {&format_laguna, true, "<think>", "p</think>" CALL_F ARG("n", "1") "</tool_call>",
         "R{p}F{f|{\"n\": 1}}"},
        {&format_laguna, true, "</think>", "\xF0\x9F\xA6\x99 \xC3\xA9\n\n",
         "C{\xF0\x9F\xA6\x99 \xC3\xA9}"},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        check_answer(&answers[i]);
    }
}

static void hermes(void **state) {
    (void)state;
    static const answer answers[] = {
        {&format_hermes, true, "assistant\n", "<tool_call>\n{\"name\": \"f\", \"arguments\": {"
                                              "\"a\": 1.50, \"b\": [1, 2]}}\n</tool_call>",
         "F{f|{\"a\": 1.50, \"b\": [1, 2]}}"},
        {&format_hermes, true, "assistant\n", "<think>\nhm\n</think>\n\nok\n<tool_call>{"
                                              "\"arguments\":{},\"name\":\"f\"}</tool_call>\n"
                                              "<tool_call>\n{\"name\": \"g\"}\n</tool_call>",
         "R{hm}C{ok}F{f|{}}F{g|{}}"},
        {&format_hermes, true, "<think>\n\n</think>\n\n", "answer", "C{answer}"},
        {&format_hermes, true, "<think>\n", "a</think>b", "R{a}C{b}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": "
                                    "\"</tool_call> } \\\" {\"}}</tool_call>",
         "F{f|{\"s\": \"</tool_call> } \\\" {\"}}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": \"f\", \"arguments\": {\"n\": "
                                    "123456789012345678901234567890}}</tool_call>",
         "F{f|{\"n\": 123456789012345678901234567890}}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": "
                                    "1}\"}</tool_call>", "F{f|{\"a\": 1}}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": \"f\", \"parameters\": {\"a\": "
                                    "1}}</tool_call>", "F{f|{\"a\": 1}}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": \"\\u0066\", \"arguments\": {}}",
         "F{f|{}}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": \"f\", oops}</tool_call> b",
         "C{<tool_call>{\"name\": \"f\", oops}</tool_call> b}"},
        {&format_hermes, true, "x", "<tool_call>not JSON</tool_call>",
         "C{<tool_call>not JSON</tool_call>}"},
        {&format_hermes, true, "x", "<tool_call>[1]</tool_call>", "C{<tool_call>[1]</tool_call>}"},
        {&format_hermes, true, "x", "<tool_call>{}</tool_call>", "C{<tool_call>{}</tool_call>}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": 5}</tool_call>",
         "C{<tool_call>{\"name\": 5}</tool_call>}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
         "C{<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>}"},
        {&format_hermes, true, "x", "<tool_call>\n<tool_call>{\"name\": \"f\"}</tool_call>",
         "C{<tool_call>}F{f|{}}"},
        {&format_hermes, true, "x", "<tool_call>{\"name\": \"f\", \"argu",
         "X{<tool_call>{\"name\": \"f\", \"argu}"},
        {&format_hermes, false, "x", "<tool_call>{\"name\": \"f\"}</tool_call>",
         "C{<tool_call>{\"name\": \"f\"}</tool_call>}"},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        check_answer(&answers[i]);
    }
}

static void llama3(void **state) {
    (void)state;
    static const answer answers[] = {
        {&format_llama3, true, "\n\n", "{\"name\": \"f\", \"parameters\": {\"a\": {\"b\": \"}\"}}}",
         "F{f|{\"a\": {\"b\": \"}\"}}}"},
        {&format_llama3, true, "\n\n", "\n<|python_tag|>{\"name\": \"f\", \"parameters\": {}}",
         "F{f|{}}"},
        {&format_llama3, true, "\n\n", "{\"type\": \"function\", \"name\": \"f\", \"parameters\": "
                                       "{}}; {\"name\": \"g\", \"arguments\": {\"a\": 1}}",
         "F{f|{}}F{g|{\"a\": 1}}"},
        {&format_llama3, true, "\n\n", "{\"name\": \"f\", \"parameters\": {}}\nDone.",
         "F{f|{}}C{Done.}"},
        {&format_llama3, true, "\n\n", "{\"name\": \"f\"}", "C{{\"name\": \"f\"}}"},
        {&format_llama3, true, "\n\n", "{\"name\": \"Ada\", \"parameters\": {\"age\": 36}}",
         "C{{\"name\": \"Ada\", \"parameters\": {\"age\": 36}}}"},
        {&format_llama3, true, "\n\n", "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"h\", "
         "\"parameters\": {}}", "F{f|{}}C{{\"name\": \"h\", \"parameters\": {}}}"},
        {&format_llama3, true, "\n\n", "{\"answer\": 42} is it", "C{{\"answer\": 42} is it}"},
        {&format_llama3, true, "\n\n", "{not json} {", "C{{not json} {}"},
        {&format_llama3, true, "\n\n", "Say {\"name\": \"f\", \"parameters\": {}}",
         "C{Say {\"name\": \"f\", \"parameters\": {}}}"},
        {&format_llama3, true, "\n\n", "{\"name\": \"f\", \"par", "C{{\"name\": \"f\", \"par}"},
        {&format_llama3, true, "\n\n", "<|python_tag|>print(1)", "C{<|python_tag|>print(1)}"},
        {&format_llama3, false, "\n\n", "{\"name\": \"f\", \"parameters\": {}}",
         "C{{\"name\": \"f\", \"parameters\": {}}}"},
        {&format_plain, true, "", " a <think> {} <tool_call> \n", "C{ a <think> {} <tool_call>}"},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        check_answer(&answers[i]);
    }
}

static void channels(void **state) {
    (void)state;
    static const answer answers[] = {
        {&format_channels, true, "<|start|>assistant", "<|channel|>analysis<|message|>hm\n<|end|>"
                                                       "<|start|>assistant<|channel|>"
                                                       "final<|message|>hi<|return|>",
         "R{hm}C{hi}"},
        {&format_channels, true, "<|start|>assistant", "<|channel|>analysis<|message|>hm<|end|>"
                                                       "<|start|>assistant<|channel|>commentary "
                                 "to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
                                 "R{hm}F{f|{\"a\": 1}}"},
        {&format_channels, true, "<|start|>assistant", " to=functions.f<|channel|>commentary "
                                                       "json<|message|>{\"s\": \"<|end\"}<|call|>",
         "F{f|{\"s\": \"<|end\"}}"},
        {&format_channels, true, "<|start|>assistant", "<|channel|>commentary<|message|>I will "
                                                       "look.<|end|><|start|>assistant<|channel|>"
                                                       "commentary "
                                 "to=functions.f<|message|>{}<|call|>", "C{I will look.}F{f|{}}"},
        {&format_channels, true, "<|start|>assistant<|channel|>final<|message|>", "direct",
         "C{direct}"},
        {&format_channels, true, "<|start|>assistant", "<|channel|>commentary "
                                                       "to=functions.f<|message|>oops<|call|>",
                                                       "C{oops}"},
        {&format_channels, true, "<|start|>assistant", "<|channel|>commentary "
                                                       "to=functions.f<|message|>{\"a\": 1",
                                                       "X{{\"a\": 1}"},
        {&format_channels, true, "<|start|>assistant", "<|channel|>commentary "
                                                       "to=functions.f<|message|>{\"a\": 1}",
                                                       "F{f|{\"a\": 1}}"},
        {&format_channels, true, "<|start|>assistant", "<|channel|>analysis<|message|>cut <|en",
         "R{cut <|en}"},
        {&format_channels, true, "<|start|>assistant", "<|channel|>fin", ""},
        {&format_channels, true, "<|start|>assistant", "no channel at all", "C{no channel at all}"},
        {&format_channels, false, "<|start|>assistant", "<|channel|>commentary "
                                                        "to=functions.f<|message|>{}<|call|>",
                                                        "C{{}}"},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        check_answer(&answers[i]);
    }
}

#define DS(x) "<" BAR "tool" BLOCK x BAR ">"
#define CALLS DS("calls" BLOCK "begin")
#define CALLS_END DS("calls" BLOCK "end")
#define CALL DS("call" BLOCK "begin")
#define CALL_END DS("call" BLOCK "end")
#define SEP DS("sep")

static void deepseek(void **state) {
    (void)state;
    static const answer answers[] = {
        {&format_deepseek, true, "<think>\n", "hm</think>\n" CALLS CALL "function" SEP
         "f\n```json\n{\"a\": 1}\n```" CALL_END CALLS_END,
         "R{hm}F{f|{\"a\": 1}}"},
        {&format_deepseek, true, "</think>", "ok" CALLS CALL "f" SEP "{\"a\": 1}" CALL_END "\n" CALL
         "g" SEP "{}" CALL_END CALLS_END " end",
         "C{ok}F{f|{\"a\": 1}}F{g|{}}C{end}"},
        {&format_deepseek, true, "</think>", CALLS CALL "f" SEP "{\"a\": 1}" CALL_END,
         "F{f|{\"a\": 1}}"},
        {&format_deepseek, true, "</think>", CALLS CALL "f" SEP "{\"a\": 1}", "F{f|{\"a\": 1}}"},
        {&format_deepseek, true, "</think>", CALLS CALL "f" SEP "{\"a\": ", "X{" CALLS CALL "f" SEP
         "{\"a\": }"},
        {&format_deepseek, true, "</think>", CALLS CALL "f" SEP "{oops}" CALL_END, "C{" CALLS CALL
         "f" SEP "{oops}" CALL_END "}"},
        {&format_deepseek, true, "</think>", CALLS "x", "C{" CALLS "x}"},
        {&format_deepseek, true, "</think>", CALLS CALL SEP "{}" CALL_END,
         "C{" CALLS CALL SEP "{}" CALL_END
         "}"},
        {&format_deepseek, true, "</think>", "a <" BAR " b", "C{a <" BAR " b}"},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        check_answer(&answers[i]);
    }
}

/* Only the template's own words say that the prompt opened reasoning: a user may end in the
 * same. */
static void user_text_opens_nothing(void **state) {
    (void)state;
    static const char text[] = "user says <think>";
    rt_token_span span = {.at = 10, .n_bytes = 7};
    rt_rendered prompt = {.text = text, .n_bytes = sizeof text - 1, .user = &span, .n_user = 1};
    lb_arena arena;
    lb_err err = {0};
    rt_output *o = NULL;
    event_log log = {.last = '\0'};
    lb_arena_init(&arena, "output", 1 << 20);
    assert_true(rt_output_new(&format_laguna, NULL, &prompt, log_event, &log, &arena, &o, &err));
    assert_true(rt_output_feed(o, "hi", 2, &err));
    assert_true(rt_output_finish(o, &err));
    assert_string_equal(log.text, "C{hi}");
    lb_arena_reset(&arena);
}

static void ignore_event(void *to, const rt_event *e) {
    *(size_t *)to += e->text.n;
}

/* Long and unfriendly answers take linear time and no more memory than their text. */
static void long_answers(void **state) {
    (void)state;
    static const char *const parts[] = {"<", "<tool_call>", "</think>", "<tool_call>f<arg_key>",
                                        " ",
    "{", "a", "\n<"};
    for (size_t f = 0; f < sizeof all_formats / sizeof all_formats[0]; f++) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            lb_arena arena;
            lb_err err = {0};
            rt_output *o = NULL;
            size_t seen = 0;
            json_t *tools = test_tools();
            rt_rendered prompt = {.text = "<think>", .n_bytes = 7};
            lb_arena_init(&arena, "output", 16 << 20);
            assert_true(rt_output_new(all_formats[f], tools, &prompt, ignore_event, &seen, &arena,
                                      &o, &err));
            size_t n = strlen(parts[i]);
            for (size_t k = 0; k < 300000 / n; k++) {
                assert_true(rt_output_feed(o, parts[i], n, &err));
            }
            assert_true(rt_output_finish(o, &err));
            lb_arena_reset(&arena);
            json_decref(tools);
        }
    }
}

static void count_kinds(void *to, const rt_event *e) {
    ((size_t *)to)[e->kind] += e->text.n;
}

/* Feeds `head`, n times `part`, `tail`; adds the bytes of events to `kinds`. */
static void feed_long(const rt_output_format *format, const char *head, const char *part,
                        size_t n, const char *tail, size_t arena_bytes, size_t kinds[4]) {
    lb_arena arena;
    lb_err err = {0};
    rt_output *o = NULL;
    json_t *tools = test_tools();
    rt_rendered prompt = {.text = "</think>", .n_bytes = 8};
    lb_arena_init(&arena, "output", arena_bytes);
    assert_true(rt_output_new(format, tools, &prompt, count_kinds, kinds, &arena, &o, &err));
    bool ok = rt_output_feed(o, head, strlen(head), &err);
    size_t len = strlen(part);
    size_t per_feed = 4000 / len;
    char piece[4096];
    for (size_t i = 0; i < per_feed * len; i++) {
        piece[i] = part[i % len];
    }
    for (size_t left = n; ok && left > 0;) {
        size_t now = left < per_feed ? left : per_feed;
        ok = rt_output_feed(o, piece, now * len, &err);
        left -= now;
    }
    ok = ok && rt_output_feed(o, tail, strlen(tail), &err) && rt_output_finish(o, &err);
    if (!ok) {
        fail_msg("%s: %s", format->name, err.text);
    }
    lb_arena_reset(&arena);
    json_decref(tools);
}

/* Whatever an answer holds, a machine stays within its arena: calls have a longest length, text is
 * handed on, white space too. */
static void memory_has_a_bound(void **state) {
    (void)state;
    static const char head[] = "<tool_call>f<arg_key>s</arg_key><arg_value>";
    static const char tail[] = "</arg_value></tool_call>";
    size_t fits = RT_CALL_BYTES_MAX - (sizeof head - 1) - (sizeof tail - 1);
    size_t kinds[4] = {0};
    /* every byte takes six in JSON: the longest call of all, and one byte more */
    feed_long(&format_laguna, head, "\x01", fits, tail, RT_OUTPUT_ARENA_BYTES, kinds);
    assert_int_equal(kinds[RT_EVENT_CALL], 6 * fits + strlen("{\"s\": \"\"}"));
    assert_int_equal(kinds[RT_EVENT_CONTENT], 0);
    memset(kinds, 0, sizeof kinds);
    feed_long(&format_laguna, head, "\x01", fits + 1, tail, RT_OUTPUT_ARENA_BYTES, kinds);
    assert_int_equal(kinds[RT_EVENT_CALL], 0);
    assert_int_equal(kinds[RT_EVENT_CONTENT], RT_CALL_BYTES_MAX + 1);
    static const char *const parts[] = {" ", "\xC3\xA9[", "\n<"};
    static const struct { const rt_output_format *format; const char *head; } heads[] = {
        {&format_plain, ""}, {&format_laguna, "<tool_call>"}, {&format_laguna, ""},
        {&format_laguna, "<tool_call>f<arg_key>"}, {&format_hermes, "<tool_call>{\"a\": ["},
        {&format_llama3, "{\"a\": \""}, {&format_deepseek, CALLS CALL "f" SEP "{\"a\": "},
        {&format_channels, "<|channel|>commentary to=functions.f<|message|>{"},
        {&format_channels, ""},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        for (size_t h = 0; h < sizeof heads / sizeof heads[0]; h++) {
            size_t n = (RT_CALL_BYTES_MAX + 100000) / strlen(parts[i]);
            feed_long(heads[h].format, heads[h].head, parts[i], n, "", RT_OUTPUT_ARENA_BYTES,
                      kinds);
        }
    }
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    static const char text[] = "plan</think>x <tool_call>f\n<arg_key>s</arg_key><arg_value>"
                               "y</arg_value></tool_call>z";
    json_t *tools = test_tools();
    bool ok = false;
    int64_t n = 0;
    for (; !ok; n++) {
        lb_arena arena;
        lb_err err = {0};
        rt_output *o = NULL;
        size_t seen = 0;
        rt_rendered prompt = {.text = "<think>", .n_bytes = 7};
        lb_arena_init(&arena, "output", 16 << 20);
        arena.fail_after = n;
        ok = rt_output_new(&format_laguna, tools, &prompt, ignore_event, &seen, &arena, &o, &err) &&
             rt_output_feed(o, text, sizeof text - 1, &err) && rt_output_finish(o, &err);
        if (!ok) {
            assert_int_equal(err.code, LB_NO_MEMORY);
        }
        lb_arena_reset(&arena);
    }
    assert_true(n > 5);
    json_decref(tools);
}

/* The prompt opened reasoning; what the model writes from there on holds the end of it, an answer
 * and the end of the turn: no marker is ever seen, wherever the answer stops. */
static void markers_do_not_leak(void **state) {
    (void)state;
    static const char text[] = "plan</think>hi</assistant>";
    static const struct { size_t n; const char *want; } cuts[] = {
        {0, ""}, {4, "R{plan}"}, {12, "R{plan}"}, {14, "R{plan}C{hi}"}, {26, "R{plan}C{hi}"},
    };
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        char part[sizeof text] = "";
        memcpy(part, text, cuts[i].n);
        check_answer(&(answer){&format_laguna, true, "<assistant><think>", part, cuts[i].want});
    }
    check_answer(&(answer){&format_laguna, true, "<assistant><think>",
                           "plan</think>look<tool_call>f\n</tool_call></assistant>",
                           "R{plan}C{look}F{f|{}}"});
    check_answer(&(answer){&format_laguna, true, "<assistant><think>",
                           "a</think>b</think>c</assistant>", "R{a}C{b</think>c}"});
}

/* An argument whose schema says string is kept byte for byte; any other one is JSON where it can
 * be. */
static void arguments_follow_the_schema(void **state) {
    (void)state;
    static const struct { const char *value, *string, *other; } rows[] = {
        {"  def f():\n    pass\n", "\"  def f():\\n    pass\\n\"", NULL},
        {"123", "\"123\"", "123"},
        {"true", "\"true\"", "true"},
        {"{\"a\":1}", "\"{\\\"a\\\":1}\"", "{\"a\":1}"},
        {"", "\"\"", NULL},
        {" ", "\" \"", NULL},
        {"<arg_key>", "\"<arg_key>\"", NULL},
        {"</tool_call>", "\"</tool_call>\"", NULL},
    };
    static const struct { const char *key, *value, *want; } mixed[] = {
        {"m", "null", "null"},        {"m", "123", "\"123\""},  {"m", " a ", "\" a \""},
        {"p", "null", "null"},        {"p", "true", "\"true\""}, {"p", "\"q\"", "\"\\\"q\\\"\""},
        {"e", "1", "\"1\""},          {"k", "7", "7"},           {"k", "\"7\"", "\"7\""},
        {"w", "12", "12"},            {"w", "x", "\"x\""},       {"b", "1.5", "1.5"},
        {"b", "false", "false"},      {"b", "[1]", "\"[1]\""},   {"n", "[1]", "[1]"},
        {"n", "18446744073709551615", "18446744073709551615"},
        {"m", "18446744073709551615", "\"18446744073709551615\""},
    };
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++) {
        char text[200], want[200];
        snprintf(text, sizeof text, "<tool_call>f\n<arg_key>%s</arg_key><arg_value>%s</arg_value>"
                 "</tool_call>", mixed[i].key, mixed[i].value);
        snprintf(want, sizeof want, "F{f|{\"%s\": %s}}", mixed[i].key, mixed[i].want);
        check_answer(&(answer){&format_laguna, true, "</think>", text, want});
    }
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        bool typed = i % 2 == 0;
        const char *key = typed ? "s" : "x";
        char text[200], want[200];
        snprintf(text, sizeof text,
                 "<tool_call>f\n<arg_key>%s</arg_key>\n<arg_value>%s</arg_value></tool_call>", key,
                 rows[i / 2].value);
        bool json = !typed && rows[i / 2].other != NULL;
        snprintf(want, sizeof want, "F{f|{\"%s\": %s}}", key,
                 json ? rows[i / 2].other : rows[i / 2].string);
        check_answer(&(answer){&format_laguna, true, "</think>", text, want});
    }
}

/* Reasoning is told apart whether or not the request has tools. */
static void reasoning_needs_no_tools(void **state) {
    (void)state;
    for (size_t tools = 0; tools < 2; tools++) {
        check_answer(&(answer){&format_laguna, tools == 1, "<think>", "hm</think>yes",
                               "R{hm}C{yes}"});
        check_answer(&(answer){&format_hermes, tools == 1, "<think>\n", "hm\n</think>\n\nyes",
                               "R{hm}C{yes}"});
        check_answer(&(answer){&format_hermes, tools == 1, "assistant\n",
                               "<think>\nhm\n</think>\n\nyes", "R{hm}C{yes}"});
        check_answer(&(answer){&format_deepseek, tools == 1, "<think>\n", "hm</think>yes",
                               "R{hm}C{yes}"});
        check_answer(&(answer){&format_channels, tools == 1, "<|start|>assistant",
                               "<|channel|>analysis<|message|>hm<|end|><|start|>assistant"
                               "<|channel|>final<|message|>yes<|return|>", "R{hm}C{yes}"});
    }
}

/* An answer that ends while the model still thinks is all reasoning, to the last byte, and not
 * nothing. */
static void cut_in_reasoning(void **state) {
    (void)state;
    static const size_t lengths[] = {0, 1, 400, 1400, 1499, 1500};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        lb_arena arena;
        lb_err err = {0};
        rt_output *o = NULL;
        size_t seen[4] = {0};
        rt_rendered prompt = {.text = "<think>", .n_bytes = 7};
        lb_arena_init(&arena, "output", 16 << 20);
        assert_true(rt_output_new(&format_laguna, NULL, &prompt, count_kinds, seen, &arena, &o,
                                  &err));
        for (size_t k = 0; k < lengths[i]; k++) {
            assert_true(rt_output_feed(o, k == 0 ? "think" : " more", 5, &err));
        }
        assert_true(rt_output_finish(o, &err));
        assert_int_equal(seen[RT_EVENT_REASONING], lengths[i] * 5);
        assert_int_equal(seen[RT_EVENT_CONTENT] + seen[RT_EVENT_CALL], 0);
        lb_arena_reset(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laguna),
        cmocka_unit_test(hermes),
        cmocka_unit_test(llama3),
        cmocka_unit_test(channels),
        cmocka_unit_test(deepseek),
        cmocka_unit_test(user_text_opens_nothing),
        named_test("D10 laguna's markers do not leak", markers_do_not_leak),
        named_test("D12 arguments follow the schema", arguments_follow_the_schema),
        named_test("D13 reasoning needs no tools", reasoning_needs_no_tools),
        named_test("D17 an answer cut in reasoning is reasoning", cut_in_reasoning),
        cmocka_unit_test(long_answers),
        cmocka_unit_test(memory_has_a_bound),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
