/* inspect_data.h -- what inspect*.c hand each other: counted first, then written in either form. */
#ifndef LG_INSPECT_DATA_H
#define LG_INSPECT_DATA_H

#include "base/text.h"
#include "gguf_value.h"

enum {
    LG_INSPECT_TYPES = 64,
    LG_INSPECT_SPECIALS = 24,
    LG_INSPECT_WARNINGS = 32,
    LG_INSPECT_STR_BYTES = 4096,
    LG_INSPECT_CLEAN_BYTES = 6 * LG_INSPECT_STR_BYTES + 1 /* no byte becomes more than six */
};

typedef enum lg_group {
    LG_GROUP_EMBEDDING,
    LG_GROUP_ATTENTION,
    LG_GROUP_FFN,     /* dense layers, shared experts, routers */
    LG_GROUP_EXPERTS, /* routed experts */
    LG_GROUP_NORMS,
    LG_GROUP_OUTPUT,
    LG_GROUP_OTHER,
    LG_N_GROUPS
} lg_group;

typedef struct lg_tally {
    uint64_t n_tensors;
    uint64_t n_elems;
    uint64_t n_bytes;
} lg_tally;

/* All tensors of one role and one type. */
typedef struct lg_role {
    const char *name; /* "blk.N.attn_q.weight" */
    lg_group group;
    lg_qtype type;
    lg_tally sum;
    const lg_gguf_tensor *first;
    bool one_shape; /* all have the first one's */
} lg_role;

typedef struct lg_special {
    const char *name; /* "bos" for tokenizer.ggml.bos_token_id */
    uint64_t id;
    bool known; /* id < n_tokens */
    lg_gguf_str text;
} lg_special;

typedef struct lg_tokenizer_info {
    bool present;
    lg_gguf_str model; /* empty if absent, as all of these */
    lg_gguf_str pre;
    uint64_t n_tokens;
    uint64_t n_merges;
    bool has_template;
    uint64_t template_bytes;
    uint64_t n_named_templates;
    lg_special specials[LG_INSPECT_SPECIALS];
    uint32_t n_specials;
} lg_tokenizer_info;

typedef struct lg_inspection {
    const lg_gguf *g;
    const char *path;
    lb_arena *arena;
    lg_gguf_str arch; /* empty if absent */
    lg_gguf_str name;
    uint32_t n_layers; /* 0 if the file does not say */
    uint64_t context;  /* 0 if the file does not say */
    uint64_t file_bytes;
    lg_tally total;
    lg_tally by_type[LG_INSPECT_TYPES];                 /* index: the type's number */
    lg_tally by_group[LG_N_GROUPS];
    lg_tally matrices[LG_N_GROUPS][LG_INSPECT_TYPES];   /* tensors of 2 and more dimensions */
    const lg_role *roles; /* sorted by group, name, type */
    uint64_t n_roles;
    lg_tokenizer_info tok;
    const char *warnings[LG_INSPECT_WARNINGS];
    uint32_t n_warnings;
} lg_inspection;

const char *lg_group_name(lg_group group);

/* part / total in tenths of a percent, and 8 * bytes / elems in hundredths; 0 if there is none. */
uint64_t lg_inspect_permille(uint64_t part, uint64_t total);
uint64_t lg_inspect_centibits(const lg_tally *t);

/* Adds a line; beyond LG_INSPECT_WARNINGS the last line says so. */
bool lg_inspect_warn(lg_inspection *in, lb_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes at most max_bytes (<= LG_INSPECT_STR_BYTES) of `s` as NUL-terminated valid UTF-8 and gives
 * the length: what is none becomes U+FFFD, and with `one_line` what would move a terminal's cursor
 * becomes \n, \t, \xNN or \uNNNN, quotes and backslashes escaped. Cut between characters; *cut says
 * whether it was. */
size_t lg_inspect_clean(lg_gguf_str s, uint64_t max_bytes, bool one_line,
                        char out[LG_INSPECT_CLEAN_BYTES], bool *cut);

/* Part of counting: claims of the file's name and of general.file_type against the types; and the
 * tokenizer's keys. */
bool lg_inspect_claims(lg_inspection *in, lb_err *err);
bool lg_inspect_tokenizer(lg_inspection *in, lb_err *err);

/* The two forms. */
void lg_inspect_text(const lg_inspection *in, lb_text *out);
bool lg_inspect_json(const lg_inspection *in, lb_text *out, lb_err *err);

#endif
