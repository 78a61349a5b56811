/* pretok.c -- the tables of pretok.def. */
#include "pretok.h"

#include <string.h>

/* Parts of expressions. SPACES: newlines with what is before them, runs up to the space that
 * belongs to the next word, what is left. */
#define CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define GPT2                                                                                     \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define QWEN2(number)                                                                            \
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" number "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" SPACES
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define HAN "\\x{800}-\\x{4E00}\\x{4E00}-\\x{9FA5}\\x{AC00}-\\x{D7FF}"
#define UPPER_NOT_HAN "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define LOWER_NOT_HAN "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
/* What \w is to Oniguruma, which the tokenizers package uses: behind a digit, \b is that none of
 * these follows. */
#define WORD                                                                                     \
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}"                     \
    "\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}]"
/* Words cut where lower case ends, contractions with them; numbers; symbols and their trail. */
#define CASED_WORDS(number, upper, lower, trail)                                                 \
    "[^\\r\\n\\p{L}\\p{N}]?" upper "*" lower "+(" CONTRACTIONS ")?|"                             \
    "[^\\r\\n\\p{L}\\p{N}]?" upper "+" lower "*(" CONTRACTIONS ")?|"                             \
    number "| ?[^\\s\\p{L}\\p{N}]+" trail "*|" SPACES
/* Words with the punctuation mark before them, runs of symbols. */
#define DEEPSEEK_WORDS                                                                           \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"                                      \
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"                                               \
    " ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
/* Anything but spaces and the punctuation of several scripts. */
#define POROS                                                                                    \
    " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"
/* Letters that have case, and their like, as the tokenizer of DeepSeek LLM lists them. */
#define CASED                                                                                    \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}"               \
    "\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}"       \
    "\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}"                \
    "\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}"                     \
    "\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}"               \
    "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}"               \
    "\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}"      \
    "\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}"       \
    "\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}"               \
    "\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}"                \
    "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}"                 \
    "\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}"      \
    "\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}"       \
    "\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"                \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}"               \
    "\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"             \
    "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"       \
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"

#define SPLIT(id, ...) static const char *const stages_##id[] = {__VA_ARGS__};
#define NAME(name, split, flags)
#include "pretok.def"
#undef SPLIT

enum {
#define SPLIT(id, ...) SPLIT_##id,
#include "pretok.def"
#undef SPLIT
    N_SPLITS
};

static const lg_split splits[N_SPLITS] = {
#define SPLIT(id, ...) {#id, stages_##id, sizeof stages_##id / sizeof stages_##id[0]},
#include "pretok.def"
#undef SPLIT
};
#undef NAME

static const lg_pretok rows[] = {
#define SPLIT(id, ...)
#define NAME(name, split, flags) {name, &splits[SPLIT_##split], flags},
#include "pretok.def"
#undef SPLIT
#undef NAME
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

const lg_pretok *lg_pretok_find(const char *name, size_t n_bytes) {
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strlen(rows[i].name) == n_bytes && memcmp(rows[i].name, name, n_bytes) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

const lg_pretok *lg_pretok_rows(size_t *n) {
    *n = N_ROWS;
    return rows;
}

const lg_split *lg_split_rows(size_t *n) {
    *n = N_SPLITS;
    return splits;
}
