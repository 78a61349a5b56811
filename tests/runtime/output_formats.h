/* output_formats.h -- the formats of templates/lib/output.lua as C, for tests and the fuzz
 * target. */
#ifndef TEST_OUTPUT_FORMATS_H
#define TEST_OUTPUT_FORMATS_H

#include "chat/output.h"

#define BAR "\xEF\xBD\x9C"   /* U+FF5C */
#define BLOCK "\xE2\x96\x81" /* U+2581 */

static const rt_output_format format_laguna = {
    .name = "laguna", .think_begin = "<think>", .think_end = "</think>", .form = RT_CALLS_KEYS,
    .call_begin = "<tool_call>", .call_end = "</tool_call>", .key_begin = "<arg_key>",
    .key_end = "</arg_key>", .value_begin = "<arg_value>", .value_end = "</arg_value>",
    .turn_end = "</assistant>",
};
static const rt_output_format format_hermes = {
    .name = "hermes", .think_begin = "<think>", .think_end = "</think>", .form = RT_CALLS_JSON,
    .call_begin = "<tool_call>", .call_end = "</tool_call>",
};
static const rt_output_format format_llama3 = {
    .name = "llama3", .form = RT_CALLS_BARE, .call_begin = "<|python_tag|>",
    .arguments_key = "parameters",
};
static const rt_output_format format_channels = {.name = "channels", .form = RT_CALLS_CHANNELS};
static const rt_output_format format_deepseek = {
    .name = "deepseek", .think_begin = "<think>", .think_end = "</think>", .form = RT_CALLS_NAMED,
    .calls_begin = "<" BAR "tool" BLOCK "calls" BLOCK "begin" BAR ">",
    .calls_end = "<" BAR "tool" BLOCK "calls" BLOCK "end" BAR ">",
    .call_begin = "<" BAR "tool" BLOCK "call" BLOCK "begin" BAR ">",
    .call_end = "<" BAR "tool" BLOCK "call" BLOCK "end" BAR ">",
    .separator = "<" BAR "tool" BLOCK "sep" BAR ">",
};
static const rt_output_format format_plain = {.name = "plain"};

static const rt_output_format *const all_formats[] = {
    &format_laguna, &format_hermes, &format_llama3, &format_channels, &format_deepseek,
        &format_plain,
};

#endif
