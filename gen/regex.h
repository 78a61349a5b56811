/* regex.h -- the dialect in which pre-tokenizers are written, parsed to a tree.
 *
 *   a  \x{1F600}  \n \r \t  \. \$ ...   one character; '.' and other metacharacters only escaped
 *   [a-z\p{L}]  [^\s\p{N}]             a class; \p{L} \p{Lu} \s \S \d also stand alone
 *   [\p{L}&&[^a-z\p{Han}]]             a class without some characters, ranges or that script
 *   (?:a|b)  (a|b)                      groups are for grouping only, nothing is captured
 *   (?=a)  (?!a)                        look ahead
 *   $                                   end of the segment, nothing else
 *   ? * + {m} {m,n}                     greedy; behind a character, class or group
 * Alternatives are ordered: the first that matches wins. Anything else is LB_SYNTAX with the place
 * in the expression; nothing is skipped. Classes are Unicode (base/unicode.def); \d is Nd. */
#ifndef LG_REGEX_H
#define LG_REGEX_H

#include "base/arena.h"
#include "charset.h"

#define LG_REGEX_ENDLESS UINT32_MAX
enum { LG_REGEX_DEPTH_MAX = 16, LG_REGEX_REPEAT_MAX = 1000 };

/* A class as it was written, for rendering, and as a set, for reasoning. */
typedef struct lg_class {
    const char *source;
    uint32_t mask;          /* LB_UC bits */
    const lg_range *ranges; /* beside the mask; ascending and apart */
    size_t n_ranges;
    const lg_range *except; /* taken out again; ascending and apart */
    size_t n_except;
    bool negated;
    lg_charset set;
} lg_class;

typedef enum lg_regex_kind {
    LG_REGEX_CLASS,
    LG_REGEX_GROUP,
    LG_REGEX_LOOK,
    LG_REGEX_END
} lg_regex_kind;

typedef struct lg_regex_item lg_regex_item;

typedef struct lg_regex_seq {
    lg_regex_item *items;
    size_t n;
    const char *source;
} lg_regex_seq;

typedef struct lg_regex {
    lg_regex_seq *alts; /* in order; an alternative may be empty */
    size_t n;
    const char *source;
} lg_regex;

struct lg_regex_item {
    lg_regex_kind kind;
    lg_class cls;      /* CLASS */
    lg_regex body;     /* GROUP, LOOK */
    bool negative;     /* LOOK: (?!...) */
    uint32_t min, max; /* CLASS, GROUP: 0 <= min <= max, max > 0 */
    const char *source;
};

/* Parses `text` (UTF-8) into the arena. */
bool lg_regex_parse(const char *text, lb_arena *arena, lg_regex *out, lb_err *err);

#endif
