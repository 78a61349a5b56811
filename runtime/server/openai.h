/* openai.h -- what the endpoints in OpenAI's words share. */
#ifndef RT_SERVER_OPENAI_H
#define RT_SERVER_OPENAI_H

#include "server/ask.h"
#include "server/fields.h"

/* max_tokens and max_completion_tokens, which must agree. */
bool rt_openai_max_tokens(rt_ask *a, lb_err *err);

/* {"id": prefix and the request's id, "object": ..., "created": ..., "model": ...  (left open) */
void rt_openai_head(const rt_ask *a, const char *prefix, const char *object, lb_text *out);

/* "usage": {...} */
void rt_openai_usage(const rt_ask *a, lb_text *out);

/* rt_writer's members. */
void rt_openai_ping(lb_text *out);
void rt_openai_fail(rt_ask *a, int status, const char *message, lb_text *out);
bool rt_openai_too_long(const rt_ask *a, uint32_t n_prompt, lb_err *err);

/* Endpoints. */
bool rt_openai_chat(rt_request *r, lb_err *err);
bool rt_openai_completions(rt_request *r, lb_err *err);
bool rt_words_tokenize(rt_request *r, lb_err *err); /* words.c */
bool rt_words_detokenize(rt_request *r, lb_err *err);
bool rt_words_apply_template(rt_request *r, lb_err *err);

#endif
