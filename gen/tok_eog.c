/* tok_eog.c -- which tokens end a generation: by the file's keys, and by text (eog.def). */
#include <stdio.h>
#include <string.h>

#include "tok_parts.h"

enum { EOT, EOM, FIM_PRE, FIM_SUF, FIM_MID, FIM_PAD, FIM_REP, FIM_SEP, N_ROLES };

typedef struct row {
    uint32_t role;
    const char *text;
} row;

#define ROLE_eot EOT
#define ROLE_eom EOM
#define ROLE_fim_pre FIM_PRE
#define ROLE_fim_suf FIM_SUF
#define ROLE_fim_mid FIM_MID
#define ROLE_fim_pad FIM_PAD
#define ROLE_fim_rep FIM_REP
#define ROLE_fim_sep FIM_SEP

static const char *const role_names[N_ROLES] = {"eot",     "eom",     "fim_pre", "fim_suf",
                                                "fim_mid", "fim_pad", "fim_rep", "fim_sep"};

#define END(text)
#define ROLE(role, text)
#define SHOWN(text)

static const row roles[] = {
#undef ROLE
#define ROLE(role, text) {ROLE_##role, text},
#include "eog.def"
#undef ROLE
#define ROLE(role, text)
};

static const char *const ends[] = {
#undef END
#define END(text) text,
#include "eog.def"
#undef END
#define END(text)
};

static const char *const shown[] = {
#undef SHOWN
#define SHOWN(text) text,
#include "eog.def"
};

static uint32_t find(const lg_tok_build *b, const char *text) {
    return lg_tok_find_raw(b, text, strlen(text));
}

/* The token of a role: by key, else by text. */
static bool find_role(lg_tok_build *b, uint32_t role, uint32_t *out, lb_err *err) {
    char key[64];
    snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", role_names[role]);
    *out = LG_TOK_NONE;
    if (lg_gguf_find(b->g, key) != NULL) {
        return lg_gguf_u32_in(b->g, key, NULL, 0, b->t->n_tokens - 1, out, err);
    }
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        uint32_t id = roles[i].role == role ? find(b, roles[i].text) : LG_TOK_NONE;
        if (id != LG_TOK_NONE) {
            b->type[id] = LG_TOK_CONTROL;
            *out = id;
            return true;
        }
    }
    return true;
}

static void mark(bool *ends_here, uint32_t id) {
    if (id != LG_TOK_NONE) {
        ends_here[id] = true;
    }
}

static bool ends_with(const lg_tok_build *b, const bool *ends_here, const char *text) {
    uint32_t id = find(b, text);
    return id != LG_TOK_NONE && ends_here[id];
}

/* Two formats use an end token inside a turn: harmony's <|end|> ends a message where <|return|> or
 * <|call|> ends the turn; beside <|tool_response>, </s> is ordinary text. */
static void mend_formats(lg_tok_build *b, bool *ends_here) {
    bool calls = ends_with(b, ends_here, "<|call|>") || ends_with(b, ends_here, "<|calls|>");
    bool returns = ends_with(b, ends_here, "<|return|>") || ends_with(b, ends_here, "<|flush|>");
    if (ends_with(b, ends_here, "<|end|>") && calls && returns) {
        ends_here[find(b, "<|end|>")] = false;
        b->type[find(b, "<|end|>")] = LG_TOK_USER;
    }
    if (ends_with(b, ends_here, "<|tool_response>") && ends_with(b, ends_here, "</s>")) {
        ends_here[find(b, "</s>")] = false;
        b->type[find(b, "</s>")] = LG_TOK_NORMAL;
    }
}

static bool list_marked(lg_tok_build *b, const bool *ends_here, lb_err *err) {
    uint32_t n = 0;
    for (uint32_t id = 0; id < b->t->n_tokens; id++) {
        n += ends_here[id];
    }
    uint32_t *list = lb_alloc_n(b->arena, n, sizeof *list, err);
    if (list == NULL) {
        return false;
    }
    b->t->eog = list;
    for (uint32_t id = 0; id < b->t->n_tokens; id++) {
        if (ends_here[id]) {
            list[b->t->n_eog++] = id;
        }
    }
    return true;
}

/* A text of eog.def or of a recipe: its token, where there is one, ends an answer. */
static void mark_text(lg_tok_build *b, bool *ends_here, const char *text) {
    uint32_t id = find(b, text);
    mark(ends_here, id);
    if (id != LG_TOK_NONE) {
        b->type[id] = LG_TOK_CONTROL;
    }
}

bool lg_tok_find_eog(lg_tok_build *b, const lg_tok_options *options, lb_err *err) {
    bool *ends_here = lb_alloc(b->arena, b->t->n_tokens, err);
    uint32_t role[N_ROLES];
    if (ends_here == NULL) {
        return false;
    }
    for (uint32_t r = 0; r < N_ROLES; r++) {
        if (!find_role(b, r, &role[r], err)) {
            return false;
        }
    }
    mark(ends_here, role[FIM_PAD]);
    mark(ends_here, role[FIM_REP]);
    mark(ends_here, role[FIM_SEP]);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        mark_text(b, ends_here, ends[i]);
    }
    for (uint32_t i = 0; i < options->n_ends; i++) {
        mark_text(b, ends_here, options->ends[i]);
    }
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        uint32_t id = find(b, shown[i]);
        if (id != LG_TOK_NONE) {
            b->type[id] = LG_TOK_USER;
        }
    }
    mark(ends_here, b->t->eos);
    mark(ends_here, role[EOT]);
    mark(ends_here, role[EOM]);
    mend_formats(b, ends_here);
    return list_marked(b, ends_here, err);
}
