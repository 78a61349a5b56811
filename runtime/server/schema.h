/* schema.h -- JSON Schema, and calls of tools, as grammars.
 *
 * Supported: type (and lists of types), properties, required, additionalProperties, items,
 * minItems, maxItems, minLength, maxLength, minimum 0, enum, const, anyOf, oneOf (as anyOf), allOf
 * of one, $ref into the same document, true. Keywords that restrict and are not among them are
 * refused by name; those that only describe are skipped. Properties come in the order of the
 * schema; where a schema names properties, there are no others. White space inside is one blank, or
 * a newline and an indentation. */
#ifndef RT_SERVER_SCHEMA_H
#define RT_SERVER_SCHEMA_H

#include <jansson.h>

#include "chat/output.h"
#include "server/grammar.h"

typedef struct rt_schema_rule {
    const json_t *schema;
    uint32_t rule;
} rt_schema_rule;

enum {
    RT_SCHEMA_RULES_MAX = 4096,
    RT_SCHEMA_OPTIONAL_MAX = 200 /* optional properties in a row: RT_G_WAYS_MAX, with a margin */
};

/* One document: its rules so far. */
typedef struct rt_schema {
    rt_grammar *g;
    const json_t *root; /* what #/... refers to */
    rt_schema_rule *rules;
    uint32_t n_rules;
    uint32_t space, string, number, integer, value, character; /* rules of JSON; 0: not made yet */
} rt_schema;

/* LB_NO_MEMORY. */
bool rt_schema_init(rt_schema *s, rt_grammar *g, const json_t *root, lb_err *err);

/* The rule of a schema; 0 with err set: LB_UNSUPPORTED, LB_BAD_VALUE, LB_LIMIT, beginning with
 * `what`: where the schema is in the request. */
uint32_t rt_schema_build(rt_schema *s, const json_t *schema, const char *what, lb_err *err);

/* The names under `required`, each with true, in a new object; NULL with err set. LB_UNSUPPORTED
 * for one that is no property. */
json_t *rt_schema_required(const json_t *schema, const char *what, lb_err *err);

/* JSON's own rules. */
uint32_t rt_schema_value(rt_schema *s); /* anything */
uint32_t rt_schema_object(rt_schema *s);
uint32_t rt_schema_space(rt_schema *s);

/* One call, as `format` spells it, of one of the tools (all, or the one called `name`); `next`
 * comes after. LB_UNSUPPORTED for formats without such a grammar. */
uint32_t rt_schema_call(rt_grammar *g, const rt_output_format *format, const json_t *tools,
                        const char *name, uint32_t next, lb_err *err);

/* Any text, with calls of the tools where the marker of one stands, as often as the model likes.
 * LB_UNSUPPORTED likewise. */
uint32_t rt_schema_text(rt_grammar *g, const rt_output_format *format, const json_t *tools,
                        lb_err *err);

/* Any one of n texts, each followed by `next`. */
uint32_t rt_schema_words(rt_grammar *g, rt_string *words, size_t n, uint32_t next);

#endif
