/* fake_model.c -- see fake_model.h. */
#define _POSIX_C_SOURCE 200809L
#include "fake_model.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "token/token.h"

/* ---- tokenizer ---- */

#define BYTES_4(b) (char)(b), (char)((b) + 1), (char)((b) + 2), (char)((b) + 3)
#define BYTES_16(b) BYTES_4(b), BYTES_4((b) + 4), BYTES_4((b) + 8), BYTES_4((b) + 12)
#define BYTES_64(b) BYTES_16(b), BYTES_16((b) + 16), BYTES_16((b) + 32), BYTES_16((b) + 48)
#define U32_4(b) (b), (b) + 1, (b) + 2, (b) + 3
#define U32_16(b) U32_4(b), U32_4((b) + 4), U32_4((b) + 8), U32_4((b) + 12)
#define U32_64(b) U32_16(b), U32_16((b) + 16), U32_16((b) + 32), U32_16((b) + 48)

static const char TEXT[] = {BYTES_64(0), BYTES_64(64), BYTES_64(128), BYTES_64(192),
                            '<', 'e', 'o', 'g', '>', '<', 'u', 's', 'e', 'r', '>',
                            '<', 'b', 'o', 't', '>'};
static const uint32_t TEXT_AT[] = {U32_64(0), U32_64(64), U32_64(128), U32_64(192),
                                   256, 261, 267, 272};
#define NORMAL_16                                                                                 \
    RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL,          \
        RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL,      \
        RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL, RT_TOKEN_NORMAL,      \
        RT_TOKEN_NORMAL
static const uint8_t TYPE[] = {
    NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16,
    NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16, NORMAL_16,
    RT_TOKEN_CONTROL, RT_TOKEN_CONTROL, RT_TOKEN_CONTROL};
static const uint32_t NO_SLOTS[] = {0};
static const rt_special SPECIALS[] = {
    {FAKE_BOT, RT_TOKEN_NONE, 0}, {FAKE_EOG, RT_TOKEN_NONE, 0}, {FAKE_USER, RT_TOKEN_NONE, 0}};
static const uint32_t SPECIAL_BYTES[] = {6, 5};
static const uint32_t EOG[] = {FAKE_EOG};

static const struct rt_tokenizer TOKENIZER = {
    .kind = RT_TOKENIZER_BYTES, .n_tokens = FAKE_N_VOCAB, .text = TEXT, .text_at = TEXT_AT,
    .type = TYPE, .text_max_bytes = 6, .byte_id = TEXT_AT, .merge_slots = NO_SLOTS,
    .specials = SPECIALS, .n_specials = 3, .special_bytes = SPECIAL_BYTES, .n_special_bytes = 2,
    .bos = RT_TOKEN_NONE, .eos = FAKE_EOG, .unknown = RT_TOKEN_NONE,
    .eog = EOG, .n_eog = 1};

/* ---- the script ---- */

/* True if the bytes of `text` occur in h[0..n). */
static bool has(const uint32_t *h, uint32_t n, const char *text) {
    uint32_t len = (uint32_t)strlen(text);
    for (uint32_t at = 0; at + len <= n; at++) {
        uint32_t i = 0;
        while (i < len && h[at + i] == (uint8_t)text[i]) {
            i++;
        }
        if (i == len) {
            return true;
        }
    }
    return false;
}

/* How many bytes of `answer` the history ends with. */
static uint32_t n_said(const uint32_t *h, uint32_t n, const char *answer) {
    for (uint32_t k = (uint32_t)strlen(answer); k > 0; k--) {
        uint32_t i = 0;
        while (k <= n && i < k && h[n - k + i] == (uint8_t)answer[i]) {
            i++;
        }
        if (i == k) {
            return k;
        }
    }
    return 0;
}

static uint32_t next_token(const uint32_t *h, uint32_t n) {
    char answer[64] = FAKE_ANSWER;
    uint32_t begin = 0;
    uint32_t turns = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (h[i] == FAKE_USER) {
            begin = i;
            turns++;
        }
    }
    if (has(h + begin, n - begin, "forever")) { /* slowly: a loaded machine must find it at work */
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        uint32_t k = n_said(h + begin, n - begin, "tick ");
        return (uint8_t)"tick "[k % 5];
    }
    if (has(h + begin, n - begin, "turns")) {
        snprintf(answer, sizeof answer, "%u user turns", turns);
    }
    uint32_t k = n_said(h + begin, n - begin, answer);
    return answer[k] == '\0' ? FAKE_EOG : (uint8_t)answer[k];
}

void fake_logits(const uint32_t *history, uint32_t n, float *logits) {
    uint32_t hash = 2166136261U;
    for (uint32_t i = 0; i < n; i++) {
        hash = (hash ^ history[i]) * 16777619U;
    }
    for (uint32_t v = 0; v < FAKE_N_VOCAB; v++) {
        hash = hash * 1664525U + 1013904223U;
        logits[v] = (float)(hash >> 16) / 65536.0F;
    }
    logits[next_token(history, n)] += 20.0F;
}

/* ---- the step ---- */

typedef struct job {
    uint8_t *const *arenas;
    const rt_step *step;
} job;

static void work(void *arg, rt_pool *pool, uint32_t worker, uint32_t n_workers) {
    const job *j = arg;
    const rt_step *s = j->step;
    uint32_t (*kv)[FAKE_CTX] = (void *)j->arenas[RT_ARENA_KV];
    float (*logits)[FAKE_N_VOCAB] = (void *)j->arenas[RT_ARENA_IO];
    uint32_t begin = 0;
    uint32_t end = 0;
    rt_share(s->n_rows, worker, n_workers, &begin, &end);
    for (uint32_t r = begin; r < end; r++) {
        kv[s->slot_of_seq[s->seq_of_row[r]]][s->pos_of_row[r]] = s->token_of_row[r];
    }
    rt_pool_barrier(pool, worker);
    while (rt_pool_take(pool, worker, s->n_logits, 1, &begin, &end)) {
        uint32_t r = s->logit_rows[begin];
        fake_logits(kv[s->slot_of_seq[s->seq_of_row[r]]], s->pos_of_row[r] + 1, logits[begin]);
    }
    rt_pool_close(pool, worker, s->n_logits);
}

uint32_t fake_prompt_rows;

static bool step(uint8_t *const *arenas, const rt_step *s, rt_pool *pool, lb_err *err) {
    for (uint32_t r = 1; r < s->n_rows; r++) {
        if (s->token_of_row[r - 1] == 0 && s->token_of_row[r] == 0) {
            return lb_err_set(err, LB_DEVICE_LOST, "the step met token 0 twice");
        }
    }
    fake_prompt_rows = s->n_prompt;
    job j = {.arenas = arenas, .step = s};
    rt_pool_run(pool, work, &j);
    return true;
}

const rt_model lagen_model = {
    .abi_version = RT_ABI_VERSION, .name = "fake", .arch_row = "any-cpu", .n_vocab = FAKE_N_VOCAB,
    .n_embd = 1, .n_layers = 1, .ctx = FAKE_CTX, .slots = FAKE_SLOTS, .chunk = FAKE_CHUNK, .chunk_why = "as asked",
    .t_max = FAKE_CHUNK, .logit_rows_max = FAKE_CHUNK, .kv_type = "u32",
    .arena_bytes = {0, FAKE_SLOTS * FAKE_CTX * sizeof(uint32_t), 0,
                    FAKE_CHUNK * FAKE_N_VOCAB * sizeof(float)},
    .weights_linked = true, .tokenizer = &TOKENIZER,
    .sampling = {.temperature = 0.8F, .top_p = 0.95F, .min_p = 0.05F, .repeat_penalty = 1.0F,
                 .top_k = 40, .repeat_last_n = 64},
    .info_json = "{\"schema\": \"lagen.manifest/1\", \"name\": \"fake\"}",
    .step = step, .step_plain = step};
