/* anthropic.h -- POST /v1/messages and /v1/messages/count_tokens. */
#ifndef RT_SERVER_ANTHROPIC_H
#define RT_SERVER_ANTHROPIC_H

#include "server/ask.h"
#include "server/fields.h"

extern const rt_writer rt_anthropic_writer;

/* Reads a->root into the ask. `counting`: max_tokens may be absent. */
bool rt_anthropic_parse(rt_ask *a, bool counting, lb_err *err);

/* Endpoints. */
bool rt_anthropic_messages(rt_request *r, lb_err *err);
bool rt_anthropic_count(rt_request *r, lb_err *err);

#endif
