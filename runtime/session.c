/* session.c -- see session.h. */
#include "session.h"

static bool interrupted(const volatile sig_atomic_t *flag) {
    return flag != NULL && *flag != 0;
}

/* Shows the logits of a step's last f->n_logits rows. */
static bool visit_rows(const rt_feed *f, const rt_feed_opts *o, lb_err *err) {
    uint32_t pos = f->seq->n_tokens - f->n_logits;
    for (uint32_t i = 0; i < f->n_logits; i++) {
        const float *l = rt_engine_logits(f->seq->engine, f->first_logit + i);
        if (!o->visit(o->visit_arg, pos + i, l, err)) {
            return false;
        }
    }
    return true;
}

bool rt_seq_feed(rt_seq *s, const uint32_t *tokens, uint32_t n, const rt_feed_opts *o,
                 lb_err *err) {
    static const rt_feed_opts NONE = {0};
    rt_engine *e = s->engine;
    uint32_t most = e->model->logit_rows_max;
    o = o == NULL ? &NONE : o;
    if (n == 0 || n > e->model->ctx - s->n_tokens) {
        return lb_err_set(err, n == 0 ? LB_BAD_VALUE : LB_LIMIT,
                          "%u tokens after %u; the context holds %u", n, s->n_tokens,
                          e->model->ctx);
    }
    uint32_t chunk = o->visit != NULL && most < e->chunk ? most : e->chunk;
    for (uint32_t at = 0; at < n;) {
        if (interrupted(o->interrupt)) {
            return lb_err_set(err, LB_CANCELLED, "stopped after %u of %u tokens", at, n);
        }
        rt_feed f = {.seq = s, .tokens = tokens + at, .n_tokens = n - at < chunk ? n - at : chunk};
        bool last = at + f.n_tokens == n;
        f.n_logits = o->visit != NULL ? f.n_tokens : last ? 1 : 0;
        f.prompt = o->prompt;
        f.sampler = o->visit == NULL && last ? o->sampler : NULL;
        if (!rt_engine_step(e, &f, 1, err) || (o->visit != NULL && !visit_rows(&f, o, err))) {
            return false;
        }
        at += f.n_tokens;
        if (o->progress != NULL) {
            o->progress(o->progress_arg, at, n);
        }
    }
    return true;
}

bool rt_seq_holds(const rt_seq *s, uint32_t n) {
    const rt_model *m = s->engine->model;
    bool whole = m->ring == 0 || s->n_stored <= m->ring || s->n_stored - n <= m->ring_spare;
    return n == 0 || (n >= s->least_cut && whole);
}

uint32_t rt_seq_cut(rt_seq *s, uint32_t n) {
    s->chosen_by = n < s->n_tokens ? NULL : s->chosen_by;
    n = n < s->n_tokens ? n : s->n_tokens;
    s->n_tokens = rt_seq_holds(s, n) ? n : 0;
    if (s->n_tokens == 0) {
        s->n_stored = 0;
        s->least_cut = 0;
    }
    return s->n_tokens;
}

uint32_t rt_seq_common(const rt_seq *s, const uint32_t *tokens, uint32_t n) {
    uint32_t same = 0;
    while (same < s->n_tokens && same < n && s->tokens[same] == tokens[same]) {
        same++;
    }
    return same;
}

bool rt_seq_prompt(rt_seq *s, const uint32_t *tokens, uint32_t n, const rt_feed_opts *o,
                   uint32_t *n_kept, lb_err *err) {
    if (n == 0 || n > s->engine->model->ctx) {
        return lb_err_set(err, n == 0 ? LB_BAD_VALUE : LB_LIMIT,
                          "a prompt of %u tokens; the context holds %u", n, s->engine->model->ctx);
    }
    uint32_t same = rt_seq_cut(s, rt_seq_common(s, tokens, n - 1));
    if (n_kept != NULL) {
        *n_kept = same;
    }
    rt_feed_opts own = o == NULL ? (rt_feed_opts){0} : *o;
    own.prompt = true;
    return rt_seq_feed(s, tokens + same, n - same, &own, err);
}

void rt_gen_start(rt_gen *g, rt_seq *seq, const rt_gen_opts *o) {
    *g = (rt_gen){.o = *o, .seq = seq};
    rt_detok_init(&g->detok, seq->engine->model->tokenizer, false, false);
    if (o->n_predict == 0) {
        g->stop = RT_STOP_LENGTH;
    }
}

static bool emit(const rt_gen *g, const char *text, size_t n_bytes, lb_err *err) {
    return n_bytes == 0 || g->o.emit(g->o.emit_arg, text, n_bytes, err);
}

bool rt_gen_end(rt_gen *g, rt_stop_reason why, lb_err *err) {
    const char *text = NULL;
    size_t n = rt_detok_flush(&g->detok, rt_stream_room(g->o.stream));
    bool found = rt_stream_push(g->o.stream, n, &text, &n);
    g->stop = why;
    if (!emit(g, text, n, err)) {
        return false;
    }
    if (found) {
        return true;
    }
    rt_stream_end(g->o.stream, &text, &n);
    return emit(g, text, n, err);
}

bool rt_gen_next(rt_gen *g, const float *logits, lb_err *err) {
    const rt_seq *s = g->seq;
    const rt_model *m = s->engine->model;
    if (!rt_seq_choose(s, g->o.sampler, g->o.scratch, logits, &g->token, err)) {
        return false;
    }
    g->n_generated++;
    if (rt_token_is_eog(m->tokenizer, g->token)) {
        return rt_gen_end(g, RT_STOP_EOG, err);
    }
    const char *text = NULL;
    size_t n = rt_detok_push(&g->detok, g->token, rt_stream_room(g->o.stream));
    if (rt_stream_push(g->o.stream, n, &text, &n)) {
        g->stop = RT_STOP_STRING;
        return emit(g, text, n, err);
    }
    if (!emit(g, text, n, err)) {
        return false;
    }
    if (g->n_generated >= g->o.n_predict) {
        return rt_gen_end(g, RT_STOP_LENGTH, err);
    }
    return s->n_tokens < m->ctx || rt_gen_end(g, RT_STOP_CONTEXT, err);
}

bool rt_generate(rt_gen *g, lb_err *err) {
    rt_engine *e = g->seq->engine;
    const rt_feed_opts o = {.sampler = g->o.sampler};
    while (g->stop == RT_STOP_NOT) {
        if (interrupted(g->o.interrupt)) {
            return rt_gen_end(g, RT_STOP_INTERRUPT, err);
        }
        if (!rt_gen_next(g, rt_engine_logits(e, 0), err)) {
            return false;
        }
        if (g->stop == RT_STOP_NOT && !rt_seq_feed(g->seq, &g->token, 1, &o, err)) {
            return false;
        }
    }
    return true;
}

const char *rt_stop_name(rt_stop_reason r) {
    switch (r) {
    case RT_STOP_EOG: return "end of answer";
    case RT_STOP_STRING: return "stop string";
    case RT_STOP_LENGTH: return "length";
    case RT_STOP_CONTEXT: return "context full";
    case RT_STOP_INTERRUPT: return "interrupted";
    default: return "not stopped";
    }
}
