/* responses.h -- POST /v1/responses: OpenAI's newer endpoint, items in and items out. */
#ifndef RT_SERVER_RESPONSES_H
#define RT_SERVER_RESPONSES_H

#include "server/ask.h"
#include "server/fields.h"

extern const rt_writer rt_responses_writer;

/* Reads a->root into the ask; the conversation so far is a->messages. */
bool rt_responses_parse(rt_ask *a, lb_err *err);

bool rt_responses(rt_request *r, lb_err *err);

#endif
