/* json_out.c -- see json_out.h. */
#include "server/json_out.h"

#include <math.h>
#include <string.h>

#include "base/unicode.h"

static void escape(lb_text *t, unsigned char b) {
    switch (b) {
    case '"': lb_text_add(t, "\\\""); break;
    case '\\': lb_text_add(t, "\\\\"); break;
    case '\n': lb_text_add(t, "\\n"); break;
    case '\r': lb_text_add(t, "\\r"); break;
    case '\t': lb_text_add(t, "\\t"); break;
    default: lb_text_printf(t, "\\u%04x", b);
    }
}

/* Bytes at the front that stand as they are. */
static size_t plain_bytes(const char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        uint32_t code = 0;
        unsigned char b = (unsigned char)s[i];
        size_t len = b < 0x80 ? 1 : lb_utf8_decode(s + i, n - i, &code);
        if (len == 0 || b < 0x20 || b == '"' || b == '\\' || b == 0x7F) {
            break;
        }
        i += len;
    }
    return i;
}

void rt_jo_chars(lb_text *t, const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        size_t plain = plain_bytes(s + i, n - i);
        lb_text_add_n(t, s + i, plain);
        i += plain;
        if (i < n) {
            unsigned char b = (unsigned char)s[i++];
            if (b < 0x80) {
                escape(t, b);
            } else {
                lb_text_add(t, "\xEF\xBF\xBD");
            }
        }
    }
}

void rt_jo_string(lb_text *t, const char *s, size_t n) {
    lb_text_add(t, "\"");
    rt_jo_chars(t, s, n);
    lb_text_add(t, "\"");
}

void rt_jo_text(lb_text *t, const char *s) {
    if (s == NULL) {
        lb_text_add(t, "null");
    } else {
        rt_jo_string(t, s, strlen(s));
    }
}

void rt_jo_real(lb_text *t, double x) {
    if (isfinite(x)) {
        lb_text_printf(t, "%.9g", x);
    } else {
        lb_text_add(t, "null");
    }
}
