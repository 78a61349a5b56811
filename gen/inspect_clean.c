/* inspect_clean.c -- makes strings of any bytes fit to be shown; see inspect_data.h. */
#include <stdio.h>
#include <string.h>

#include "inspect_data.h"

/* Length of the UTF-8 character at s, whose code point goes to *cp, or 0 if it is none: no overlong
 * forms, no surrogates, nothing above U+10FFFF (table 3-7 of the Unicode standard). */
static uint64_t decode(const unsigned char *s, uint64_t left, uint32_t *cp) {
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80) {
        *cp = s[0];
        return 1;
    }
    uint64_t n = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n > left) {
        return 0;
    }
    uint32_t c = s[0] & (0xFFU >> (n + 1));
    for (uint64_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0U) != 0x80U) {
            return 0;
        }
        c = c << 6 | (s[i] & 0x3FU);
    }
    *cp = c;
    return c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF) ? 0 : n;
}

/* The escape of a character that does not stand for itself on a line, or NULL. */
static const char *escape(uint32_t c, char buffer[8]) {
    if (c == '\n') {
        return "\\n";
    }
    if (c == '\t') {
        return "\\t";
    }
    if (c == '"' || c == '\\') {
        snprintf(buffer, 8, "\\%c", (char)c);
        return buffer;
    }
    bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
    /* U+2028, U+2029 and the marks that turn the direction of writing */
    bool moves = (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
    if (!control && !moves) {
        return NULL;
    }
    snprintf(buffer, 8, control ? "\\x%02x" : "\\u%04x", (unsigned)(c & 0xFFFFU));
    return buffer;
}

size_t lg_inspect_clean(lg_gguf_str s, uint64_t max_bytes, bool one_line,
                        char out[LG_INSPECT_CLEAN_BYTES], bool *cut) {
    uint64_t n = s.n_bytes < max_bytes ? s.n_bytes : max_bytes;
    char *to = out;
    uint64_t i = 0;
    while (i < n) {
        const unsigned char *at = (const unsigned char *)s.data + i;
        char buffer[8];
        uint32_t cp = 0;
        uint64_t used = decode(at, s.n_bytes - i, &cp);
        if (used > n - i) {
            break; /* the limit falls inside a character */
        }
        const char *put = used == 0 ? "\xEF\xBF\xBD" : one_line ? escape(cp, buffer) : NULL;
        uint64_t n_put = put == NULL ? used : strlen(put);
        memcpy(to, put == NULL ? (const char *)at : put, n_put);
        to += n_put;
        i += used == 0 ? 1 : used;
    }
    *to = '\0';
    *cut = i < s.n_bytes;
    return (size_t)(to - out);
}
