/* stub_model.c -- see stub_model.h. */
#define _POSIX_C_SOURCE 200809L
#include "stub_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chat/output.h"
#include "chat/render.h"
#include "token/token.h"

/* ---- tokenizer: one table of pieces, put together at start */

static const char *const PIECES[] = {
    "<eog>",       "<user>",       "<bot>",         "own",
    "DEF",         "HI",           "ser",           " fox",
    "\nUs",        "er:",          "</think>",      "<think>",
    "<tool_call>", "</tool_call>", "{\"name\": \"", "\", \"arguments\": {",
    "Hello",       " from",        " the",          " stub",
    "word ",       "\xF0\x9F",     "\x8C\x8D",      "\xE4",
    "\xBD\xA0"};
enum { N_PIECES = sizeof PIECES / sizeof PIECES[0], N_VOCAB = 256 + N_PIECES, TEXT_MAX = 1024 };

typedef struct tables {
    char text[TEXT_MAX];
    uint32_t text_at[N_VOCAB + 1];
    uint8_t type[N_VOCAB];
    uint32_t byte_id[256];
} tables;

static tables T; /* filled once, by stub_model_make */
static const uint32_t NO_SLOTS[] = {0};
static const rt_special SPECIALS[] = {
    {STUB_BOT, RT_TOKEN_NONE, 0}, {STUB_EOG, RT_TOKEN_NONE, 0}, {STUB_USER, RT_TOKEN_NONE, 0}};
static const uint32_t SPECIAL_BYTES[] = {6, 5};
static const uint32_t EOG[] = {STUB_EOG};

static const struct rt_tokenizer TOKENIZER = {.kind = RT_TOKENIZER_BYTES,
                                              .n_tokens = N_VOCAB,
                                              .text = T.text,
                                              .text_at = T.text_at,
                                              .type = T.type,
                                              .text_max_bytes = 20,
                                              .byte_id = T.byte_id,
                                              .merge_slots = NO_SLOTS,
                                              .specials = SPECIALS,
                                              .n_specials = 3,
                                              .special_bytes = SPECIAL_BYTES,
                                              .n_special_bytes = 2,
                                              .bos = RT_TOKEN_NONE,
                                              .eos = STUB_EOG,
                                              .unknown = RT_TOKEN_NONE,
                                              .eog = EOG,
                                              .n_eog = 1};

static void fill_tables(void) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < 256; i++) {
        T.text[at] = (char)i;
        T.text_at[i] = at++;
        T.type[i] = RT_TOKEN_NORMAL;
        T.byte_id[i] = i;
    }
    for (uint32_t i = 0; i < N_PIECES; i++) {
        size_t n = strlen(PIECES[i]);
        T.text_at[256 + i] = at;
        T.type[256 + i] = i < 3 ? RT_TOKEN_CONTROL : RT_TOKEN_NORMAL;
        memcpy(T.text + at, PIECES[i], n);
        at += (uint32_t)n;
    }
    T.text_at[N_VOCAB] = at;
}

/* ---- the script */

typedef struct script {
    char *text; /* malloc */
    size_t n;
    long delay, prefill, fail, lost, nan, inf, ninf, pfail;
    bool loop, flat;
} script;

static long order(const char *text, const char *name) {
    const char *at = strstr(text, name);
    return at == NULL ? -1 : strtol(at + strlen(name), NULL, 10);
}

static size_t unescape(char *s) {
    size_t n = 0;
    for (const char *p = s; *p != '\0';) {
        if (p[0] == '\\' && p[1] == 'x' && p[2] != '\0' && p[3] != '\0') {
            const char hex[] = {p[2], p[3], '\0'};
            s[n++] = (char)strtol(hex, NULL, 16);
            p += 4;
        } else {
            s[n++] = *p++;
        }
    }
    s[n] = '\0';
    return n;
}

/* Reads the orders of history[0..n), where the last <user> before the last <bot> begins them. */
static void read_script(const uint32_t *h, uint32_t n, script *s) {
    uint32_t from = 0;
    uint32_t to = n;
    for (uint32_t i = 0; i < n; i++) {
        if (h[i] == STUB_BOT) {
            to = i;
        }
    }
    for (uint32_t i = 0; i < to; i++) {
        if (h[i] == STUB_USER) {
            from = i + 1;
        }
    }
    char *text = malloc((size_t)(to - from) + 64);
    size_t len = 0;
    for (uint32_t i = from; i < to; i++) {
        if (h[i] > 0 && h[i] < 256) {
            text[len++] = (char)h[i];
        }
    }
    text[len] = '\0';
    char *say = strstr(text, "say:");
    char *answer = strdup(say == NULL ? "Hello from the stub." : say + 4);
    if (say != NULL) {
        *say = '\0';
    }
    *s = (script){.text = answer,
                  .n = unescape(answer),
                  .delay = order(text, "#delay="),
                  .prefill = order(text, "#prefill="),
                  .fail = order(text, "#fail="),
                  .lost = order(text, "#lost="),
                  .nan = order(text, "#nan="),
                  .inf = order(text, "#inf="),
                  .ninf = order(text, "#ninf="),
                  .pfail = order(text, "#pfail="),
                  .loop = strstr(text, "#loop") != NULL,
                  .flat = strstr(text, "#flat") != NULL};
    free(text);
}

/* Tokens behind the last <bot>, and behind the mark that the template puts there where thinking is
 * off (byte by byte, as the tokenizer reads it). */
static uint32_t n_answered(const uint32_t *h, uint32_t n) {
    static const char closed[] = "</think>";
    uint32_t k = 0;
    uint32_t same = 0;
    while (k < n && h[n - 1 - k] != STUB_BOT) {
        k++;
    }
    while (same < k && same < sizeof closed - 1 && h[n - k + same] == (uint8_t)closed[same]) {
        same++;
    }
    return same == sizeof closed - 1 ? k - same : k;
}

static uint32_t piece_at(const char *s, size_t n, size_t *len) {
    uint32_t best = (uint8_t)s[0];
    *len = 1;
    for (uint32_t i = 3; i < N_PIECES; i++) {
        size_t m = strlen(PIECES[i]);
        if (m <= n && m > *len && memcmp(s, PIECES[i], m) == 0) {
            best = 256 + i;
            *len = m;
        }
    }
    return best;
}

static uint32_t next_token(const script *s, uint32_t k) {
    for (size_t at = 0; s->n > 0;) {
        size_t len = 0;
        uint32_t token = piece_at(s->text + at, s->n - at, &len);
        if (k-- == 0) {
            return token;
        }
        at += len;
        if (at >= s->n) {
            if (!s->loop) {
                break;
            }
            at = 0;
        }
    }
    return STUB_EOG;
}

static void make_logits(const uint32_t *h, uint32_t n, const script *s, float *logits) {
    uint32_t hash = 2166136261U;
    uint32_t k = n_answered(h, n);
    for (uint32_t i = 0; i < n; i++) {
        hash = (hash ^ h[i]) * 16777619U;
    }
    for (uint32_t v = 0; v < N_VOCAB; v++) {
        hash = hash * 1664525U + 1013904223U;
        logits[v] = (float)(hash >> 16) / 65536.0F;
        logits[v] = s->nan == (long)k ? NAN : s->ninf == (long)k ? -INFINITY : logits[v];
    }
    if (!s->flat) {
        logits[next_token(s, k)] += 20.0F;
    }
    if (s->inf == (long)k) {
        logits[7] = INFINITY;
    }
}

/* ---- the step */

static void rest(long ms) {
    if (ms > 0) {
        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    }
}

/* Row r is the last one of its sequence in this step. */
static bool end_of_seq(const rt_step *s, uint32_t r) {
    return r + 1 == s->n_rows || s->seq_of_row[r + 1] != s->seq_of_row[r];
}

/* The rows of one sequence up to row r; logits land in `logits` if they are wanted. */
static bool run_seq(const uint32_t *h, uint32_t n, bool wanted, float *logits, lb_err *err) {
    script s;
    uint32_t k = n_answered(h, n);
    bool ok = true;
    read_script(h, n, &s);
    if (!wanted) {
        rest(s.prefill);
    } else if (s.fail == (long)k || s.lost == (long)k) {
        ok = lb_err_set(err, s.fail == (long)k ? LB_IO : LB_DEVICE_LOST, "the script says so");
    } else {
        rest(k == 0 ? s.prefill : s.delay);
        make_logits(h, n, &s, logits);
    }
    if (ok && s.pfail >= 0 && n > (uint32_t)s.pfail && k == 0) {
        ok = lb_err_set(err, LB_IO, "the script fails at position %ld", s.pfail);
    }
    free(s.text);
    return ok;
}

static uint32_t stub_ctx; /* of the only model of a process */
static rt_cache stub_cache;

static const rt_model *stub_model;

static bool step(uint8_t *const *arenas, const rt_step *s, rt_pool *pool, lb_err *err) {
    uint32_t *kv = (void *)arenas[RT_ARENA_KV];
    float *logits = (void *)arenas[RT_ARENA_IO];
    uint32_t next = 0;
    bool ok = stub_model->attn_type == NULL || s->n_prompt == 0 || s->n_prompt == s->n_rows ||
              lb_err_set(err, LB_DEVICE_LOST, "%u of %u rows are prompts'", s->n_prompt, s->n_rows);
    (void)pool;
    for (uint32_t r = 0; ok && r < s->n_rows; r++) {
        uint32_t *h = kv + (size_t)s->slot_of_seq[s->seq_of_row[r]] * stub_ctx;
        bool wanted = next < s->n_logits && s->logit_rows[next] == r;
        h[s->pos_of_row[r]] = s->token_of_row[r];
        if (wanted || end_of_seq(s, r)) {
            ok = run_seq(h, s->pos_of_row[r] + 1, wanted, logits + (size_t)next * N_VOCAB, err);
            next += wanted;
        }
    }
    return ok;
}

/* ---- the model */

extern bool stub_render(struct rt_chat_ctx *c);

static const struct rt_output_format FORMAT = {.name = "stub",
                                               .think_begin = "<think>",
                                               .think_end = "</think>",
                                               .form = RT_CALLS_JSON,
                                               .call_begin = "<tool_call>",
                                               .call_end = "</tool_call>",
                                               .turn_end = "</turn>"};
static const struct rt_chat_template CHAT = {.render = stub_render, .output = &FORMAT};

void stub_model_make(uint32_t ctx, uint32_t slots, uint32_t chunk, rt_model *out) {
    uint32_t t_max = chunk > slots ? chunk : slots;
    fill_tables();
    stub_ctx = ctx;
    stub_model = out;
    stub_cache = (rt_cache){0, 1, ctx, 0, sizeof(uint32_t)};
    *out = (rt_model){.abi_version = RT_ABI_VERSION,
                      .name = "stub",
                      .arch_row = "any-cpu",
                      .n_vocab = N_VOCAB,
                      .n_embd = 1,
                      .n_layers = 1,
                      .ctx = ctx,
                      .slots = slots,
                      .chunk = chunk, .chunk_why = "as asked",
                      .t_max = t_max,
                      .logit_rows_max = t_max,
                      .kv_type = "u32",
                      .caches = &stub_cache,
                      .n_caches = 1,
                      .cache_block = 1,
                      .arena_bytes = {0, (uint64_t)slots * ctx * sizeof(uint32_t), 0,
                                      (uint64_t)t_max * N_VOCAB * sizeof(float)},
                      .weights_linked = true,
                      .tokenizer = &TOKENIZER,
                      .chat = &CHAT,
                      .sampling = {.temperature = 0.8F,
                                   .top_p = 0.95F,
                                   .min_p = 0.05F,
                                   .repeat_penalty = 1.0F,
                                   .top_k = 40,
                                   .repeat_last_n = 64},
                      .info_json = "{\"schema\": \"lagen.manifest/1\", \"name\": \"stub\"}",
                      .step = step};
}
