/* ops.h -- what emitted templates do with values: operators, subscripts, assignment, output.
 *
 * Meaning and errors are Python's and jinja2's (with Undefined: it prints as nothing, is false, has
 * no items, and anything else done to it is an error). All functions may fail the rendering: see
 * ctx.h. */
#ifndef RT_CHAT_OPS_H
#define RT_CHAT_OPS_H

#include "chat/ctx.h"

/* Defined by the emitted file: writes the whole prompt to c->out. Called by rt_chat_render only. */
bool lagen_chat_render(rt_chat_ctx *c);

/* What the template can see from outside: the value that the request gives `name`. */
rt_val rt_var(rt_chat_ctx *c, const char *name);

/* Sets the line; true, so that it can stand in a condition. */
static inline bool rt_at(rt_chat_ctx *c, uint32_t line) {
    c->line = line;
    return true;
}

/* True if nothing failed. */
static inline bool rt_finished(const rt_chat_ctx *c) {
    return !c->failed;
}

/* New containers of n values; of pairs (key, value, key, value, ...), n counting both; of n names
 * and values. */
rt_val rt_list_of(rt_chat_ctx *c, size_t n, const rt_val *items);
rt_val rt_tuple_of(rt_chat_ctx *c, size_t n, const rt_val *items);
rt_val rt_dict_of(rt_chat_ctx *c, size_t n, const rt_val *items);
rt_val rt_dict_of_names(rt_chat_ctx *c, size_t n, const rt_val *names_and_values);
rt_val rt_namespace_of(rt_chat_ctx *c, size_t n, const rt_val *names_and_values);
rt_val rt_new_list(rt_chat_ctx *c, rt_flavor flavor);
rt_val rt_new_dict(rt_chat_ctx *c);

/* list.append without its checks; dict[key] = value. */
void rt_push(rt_chat_ctx *c, rt_val list, rt_val item);
void rt_put(rt_chat_ctx *c, rt_val dict, rt_val key, rt_val value);
/* NULL if it is not there */
const rt_val *rt_find(rt_chat_ctx *c, const rt_dict *dict, rt_val key);

/* Conditions. rt_lt and its kin order numbers, texts, lists and tuples. */
bool rt_true(rt_chat_ctx *c, rt_val v);
bool rt_eq(rt_chat_ctx *c, rt_val a, rt_val b);
bool rt_lt(rt_chat_ctx *c, rt_val a, rt_val b);
bool rt_le(rt_chat_ctx *c, rt_val a, rt_val b);
bool rt_gt(rt_chat_ctx *c, rt_val a, rt_val b);
bool rt_ge(rt_chat_ctx *c, rt_val a, rt_val b);
bool rt_in(rt_chat_ctx *c, rt_val item, rt_val container);

/* Arithmetic. Integers are 64 bits wide: LB_OVERFLOW where Python would go on. */
rt_val rt_add(rt_chat_ctx *c, rt_val a, rt_val b);
rt_val rt_sub(rt_chat_ctx *c, rt_val a, rt_val b);
rt_val rt_mul(rt_chat_ctx *c, rt_val a, rt_val b);
rt_val rt_div(rt_chat_ctx *c, rt_val a, rt_val b);
rt_val rt_floordiv(rt_chat_ctx *c, rt_val a, rt_val b);
rt_val rt_mod(rt_chat_ctx *c, rt_val a, rt_val b); /* text % values formats, with %s %d %r %% */
rt_val rt_neg(rt_chat_ctx *c, rt_val a);
rt_val rt_pos(rt_chat_ctx *c, rt_val a);

/* a + b + ... where one operand is text, so that all must be; a ~ b ~ ..., each made text. */
rt_val rt_cat(rt_chat_ctx *c, size_t n, const rt_val *texts);
rt_val rt_tilde(rt_chat_ctx *c, size_t n, const rt_val *values);

/* v.name (a Python attribute before a key); v[key] (a key before an attribute); v[lo:hi:step],
 * where none stands for an absent part. What is not there is undefined. */
rt_val rt_attr(rt_chat_ctx *c, rt_val v, const char *name);
rt_val rt_item(rt_chat_ctx *c, rt_val v, rt_val key);
rt_val rt_slice(rt_chat_ctx *c, rt_val v, rt_val lo, rt_val hi, rt_val step);

/* The Python attribute of this name, if v's type has one: a method, or undefined if the sandbox
 * hides it. Returns false if there is none. */
bool rt_python_attr(rt_val v, const char *name, size_t n_name, rt_val *out);

/* namespace.name = value; a, b = sequence. */
void rt_ns_set(rt_chat_ctx *c, rt_val ns, const char *name, rt_val value);
void rt_unpack(rt_chat_ctx *c, rt_val sequence, size_t n, rt_val *const *targets);

/* Number of items, as Python's len; false if v has none. */
bool rt_len(rt_chat_ctx *c, rt_val v, int64_t *n);

/* range(stop), range(start, stop[, step]). */
rt_val rt_range_of(rt_chat_ctx *c, size_t n, const rt_val *args);

/* raise_exception(message): fails with LB_BAD_VALUE and the template's own message. */
rt_val rt_raise(rt_chat_ctx *c, rt_val message);
rt_val rt_strftime_now(rt_chat_ctx *c, rt_val format);
rt_val rt_unknown_function(rt_chat_ctx *c, const char *name);

/* Writes a value as Python's str() has it. */
void rt_out(rt_chat_ctx *c, rt_val v);

/* Writes a text; fails for anything else. (The result of a filter block.) */
void rt_out_filtered(rt_chat_ctx *c, rt_val v);

/* Output between rt_capture and rt_captured becomes a text instead. */
size_t rt_capture(rt_chat_ctx *c);
rt_val rt_captured(rt_chat_ctx *c, size_t start);

/* Brackets of a macro's body; enter is false where calls are nested too deep or something
 * failed. */
bool rt_macro_enter(rt_chat_ctx *c);
rt_val rt_macro_leave(rt_chat_ctx *c, size_t start);

#endif
