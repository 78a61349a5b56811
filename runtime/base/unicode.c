/* unicode.c -- categories by binary search over the runs of unicode.def; UTF-8 by table 3-7. */
#include "base/unicode.h"

/* One run: first code point above, category in the low 5 bits. */
#define RUN(first, category) ((uint32_t)(first) << 5 | (uint32_t)(category))

static const uint32_t runs[] = {
#define X(first, category) RUN(first, LB_##category),
#include "base/unicode.def"
#undef X
};

enum { N_RUNS = sizeof runs / sizeof runs[0] };

/* Index of the run that holds `code`: the last that begins at or before it. */
static size_t run_of(uint32_t code) {
    size_t low = 0;
    size_t n = N_RUNS;
    while (n > 1) {
        size_t half = n / 2;
        if (runs[low + half] >> 5 <= code) {
            low += half;
            n -= half;
        } else {
            n = half;
        }
    }
    return low;
}

lb_category lb_unicode_category(uint32_t code) {
    if (code >= LB_UNICODE_END) {
        return LB_CN;
    }
    return (lb_category)(runs[run_of(code)] & 31);
}

uint32_t lb_unicode_run_end(uint32_t code) {
    size_t next = run_of(code) + 1;
    return next < N_RUNS ? runs[next] >> 5 : (uint32_t)LB_UNICODE_END;
}

const char *lb_category_name(lb_category c) {
    static const char names[][3] = {
        "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No",
        "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So",
        "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn", "Cc",
    };
    return names[c];
}

/* Length that the lead byte announces, and the range that its second byte must lie in; 0 for a byte
 * that begins no character. */
static size_t lead(uint8_t byte, uint8_t *low, uint8_t *high) {
    *low = 0x80;
    *high = 0xBF;
    if (byte < 0x80) {
        return 1;
    }
    if (byte < 0xC2 || byte > 0xF4) {
        return 0;
    }
    if (byte < 0xE0) {
        return 2;
    }
    if (byte < 0xF0) {
        *low = byte == 0xE0 ? 0xA0 : 0x80;
        *high = byte == 0xED ? 0x9F : 0xBF;
        return 3;
    }
    *low = byte == 0xF0 ? 0x90 : 0x80;
    *high = byte == 0xF4 ? 0x8F : 0xBF;
    return 4;
}

/* Bytes of `s` that fit the announced length, `*want`; 0 if already the first does not fit. */
static size_t well_formed(const char *s, size_t n_bytes, size_t *want) {
    uint8_t low, high;
    *want = n_bytes == 0 ? 0 : lead((uint8_t)s[0], &low, &high);
    if (*want == 0) {
        return 0;
    }
    size_t n = 1;
    while (n < *want && n < n_bytes && (uint8_t)s[n] >= low && (uint8_t)s[n] <= high) {
        low = 0x80;
        high = 0xBF;
        n++;
    }
    return n;
}

size_t lb_utf8_decode(const char *s, size_t n_bytes, uint32_t *code) {
    static const uint8_t lead_bits[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    size_t want;
    size_t n = well_formed(s, n_bytes, &want);
    if (n == 0 || n < want) {
        return 0;
    }
    uint32_t c = (uint8_t)s[0] & lead_bits[n];
    for (size_t i = 1; i < n; i++) {
        c = c << 6 | ((uint8_t)s[i] & 0x3F);
    }
    *code = c;
    return n;
}

bool lb_utf8_is_cut(const char *s, size_t n_bytes) {
    size_t want;
    size_t n = well_formed(s, n_bytes, &want);
    return n > 0 && n == n_bytes && n < want;
}

size_t lb_utf8_encode(uint32_t code, char out[4]) {
    if (code >= LB_UNICODE_END || (code >= 0xD800 && code <= 0xDFFF)) {
        code = LB_REPLACEMENT;
    }
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = lb_utf8_bytes(code);
    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)(0xF00 >> n | code); /* 0xC0, 0xE0, 0xF0 in the low byte for 2, 3, 4 */
    return n;
}

size_t lb_utf8_valid_bytes(const char *s, size_t n_bytes) {
    size_t at = 0;
    while (at < n_bytes) {
        if ((uint8_t)s[at] < 0x80) {
            at++;
            continue;
        }
        uint32_t code;
        size_t n = lb_utf8_decode(s + at, n_bytes - at, &code);
        if (n == 0) {
            break;
        }
        at += n;
    }
    return at;
}
