/* err.c -- formats errors into their fixed buffer; see err.h. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Cuts `text` (which was formatted with `wanted` bytes) to whole UTF-8 characters plus "...", and
 * replaces control characters. */
static void tidy(char *text, int wanted) {
    if (wanted >= LB_ERR_TEXT_BYTES) {
        size_t end = LB_ERR_TEXT_BYTES - 4;
        while (end > 0 && ((unsigned char)text[end] & 0xC0U) == 0x80U) {
            end--;
        }
        memcpy(text + end, "...", 4);
    }
    for (char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20U || *p == 0x7F) {
            *p = '?';
        }
    }
}

bool lb_err_set_at(lb_err *err, lb_code code, const char *file, int line, const char *fmt, ...) {
    if (err == NULL) {
        return false;
    }
    va_list ap;
    va_start(ap, fmt);
    int wanted = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    tidy(err->text, wanted);
    err->code = code;
    err->file = file;
    err->line = line;
    return false;
}

bool lb_err_prefix(lb_err *err, const char *fmt, ...) {
    if (err == NULL) {
        return false;
    }
    char old[LB_ERR_TEXT_BYTES];
    memcpy(old, err->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    int wanted = n;
    if (n >= 0 && n < LB_ERR_TEXT_BYTES) {
        size_t left = sizeof err->text - (size_t)n;
        wanted = n + snprintf(err->text + n, left, ": %s", old);
    }
    tidy(err->text, wanted);
    return false;
}

int lb_err_exit_status(lb_code code) {
    switch (code) {
    case LB_OK: return 0;
    case LB_USAGE: return 2;
    case LB_DAMAGED: return 3;
    case LB_WRONG_BOX: return 4;
    case LB_RESOURCES: return 5;
    case LB_DEVICE_LOST: return 70;
    default: return 1;
    }
}
