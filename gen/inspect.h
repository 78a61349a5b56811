/* inspect.h -- what a model file really holds, as text for people or JSON for programs. */
#ifndef LG_INSPECT_H
#define LG_INSPECT_H

#include <stdbool.h>

#include "base/text.h"
#include "gguf.h"

/* Appends the report on an open file to `out`, whose arena also holds what is needed meanwhile.
 *   path  as the user gave it: shown, and its last part compared with the types inside
 *   json  one object with "schema": "lagen.inspect/1" in place of text
 * Shown: architecture, name, layers, context; tensors, weights and bytes per type, per group and
 * per role (the tensor's name with N for its numbers); tokenizer; files; all metadata, long strings
 * and arrays cut; and warnings: a name or general.file_type that the types contradict, types that lagen
 * cannot run, token ids outside the vocabulary. No weight is read.
 * Fails as the accessors of gguf_value.h do if a key that it reads has a wrong type or range, with
 * LB_BAD_SHAPE if the tokenizer's arrays differ in length, and with LB_NO_MEMORY. */
bool lg_inspect(const lg_gguf *g, const char *path, bool json, lb_text *out, lb_err *err);

#endif
