/* unicode.h -- general categories of code points, and UTF-8 in and out.
 *
 * A class of code points is a mask of categories, one bit each: L is LB_UC_L, white space is
 * LB_UC_SPACE (the Unicode property White_Space, which is every Z and six control characters that
 * have a category of their own here, CW). Source: unicode.def. */
#ifndef LB_UNICODE_H
#define LB_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LB_UNICODE_END = 0x110000, LB_REPLACEMENT = 0xFFFD };

typedef enum lb_category {
    LB_LU, LB_LL, LB_LT, LB_LM, LB_LO,
    LB_MN, LB_MC, LB_ME,
    LB_ND, LB_NL, LB_NO,
    LB_PC, LB_PD, LB_PS, LB_PE, LB_PI, LB_PF, LB_PO,
    LB_SM, LB_SC, LB_SK, LB_SO,
    LB_ZS, LB_ZL, LB_ZP,
    LB_CC, LB_CF, LB_CS, LB_CO, LB_CN,
    LB_CW,
    LB_N_CATEGORIES
} lb_category;

#define LB_UC(c) (UINT32_C(1) << (c))
#define LB_UC_L (LB_UC(LB_LU) | LB_UC(LB_LL) | LB_UC(LB_LT) | LB_UC(LB_LM) | LB_UC(LB_LO))
#define LB_UC_M (LB_UC(LB_MN) | LB_UC(LB_MC) | LB_UC(LB_ME))
#define LB_UC_N (LB_UC(LB_ND) | LB_UC(LB_NL) | LB_UC(LB_NO))
#define LB_UC_P                                                                                  \
    (LB_UC(LB_PC) | LB_UC(LB_PD) | LB_UC(LB_PS) | LB_UC(LB_PE) | LB_UC(LB_PI) | LB_UC(LB_PF) |   \
     LB_UC(LB_PO))
#define LB_UC_S (LB_UC(LB_SM) | LB_UC(LB_SC) | LB_UC(LB_SK) | LB_UC(LB_SO))
#define LB_UC_Z (LB_UC(LB_ZS) | LB_UC(LB_ZL) | LB_UC(LB_ZP))
#define LB_UC_C                                                                                  \
    (LB_UC(LB_CC) | LB_UC(LB_CF) | LB_UC(LB_CS) | LB_UC(LB_CO) | LB_UC(LB_CN) | LB_UC(LB_CW))
#define LB_UC_SPACE (LB_UC_Z | LB_UC(LB_CW))
#define LB_UC_ALL ((UINT32_C(1) << LB_N_CATEGORIES) - 1)

/* Category of a code point below LB_UNICODE_END; LB_CN from there on. */
lb_category lb_unicode_category(uint32_t code);

/* One past the last code point of the run that holds `code`: all of [code, end) share its
 * category. `code` must be below LB_UNICODE_END. */
uint32_t lb_unicode_run_end(uint32_t code);

/* Two letters, "Lu"; CW is "Cc". */
const char *lb_category_name(lb_category c);

/* Length (1..4) of the well-formed character that `s` begins with, its code point in *code; 0 if
 * the bytes are ill-formed or cut off, *code untouched then. Surrogates, overlong forms and what
 * lies above U+10FFFF are ill-formed (Unicode, table 3-7). n_bytes may be 0. */
size_t lb_utf8_decode(const char *s, size_t n_bytes, uint32_t *code);

/* True if `s` is the beginning of a well-formed character that is not complete within n_bytes:
 * more bytes could complete it. */
bool lb_utf8_is_cut(const char *s, size_t n_bytes);

/* Length of a scalar value in UTF-8. */
static inline size_t lb_utf8_bytes(uint32_t code) {
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

/* Writes `code` and returns its length, 1..4; what is no scalar value is written as U+FFFD. */
size_t lb_utf8_encode(uint32_t code, char out[4]);

/* Bytes of well-formed text that `s` begins with; equal to n_bytes if all of it is. */
size_t lb_utf8_valid_bytes(const char *s, size_t n_bytes);

#endif
