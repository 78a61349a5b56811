/* err.h -- the one error type of lagen: a code, one line of text, and where it arose.
 *
 * Fallible functions return bool and take `lb_err *err` last; on failure they set it once and
 * leave their outputs untouched. The text names the object, the value and the limit, and says what
 * would work when a user can mend it. Callers may put context in front with lb_err_prefix. */
#ifndef LB_ERR_H
#define LB_ERR_H

#include <stdbool.h>

typedef enum lb_code {
    LB_OK = 0,
    LB_USAGE,       /* the command line is wrong */
    LB_BAD_FORMAT,  /* bytes that are not what they claim to be */
    LB_BAD_VALUE,   /* a value outside its range */
    LB_BAD_TYPE,    /* a value of the wrong type */
    LB_BAD_SHAPE,   /* dimensions that do not fit */
    LB_MISSING,     /* something required is absent */
    LB_DUPLICATE,   /* something that must be unique is not */
    LB_OVERFLOW,    /* a size or count does not fit its integer */
    LB_LIMIT,       /* a documented limit is exceeded */
    LB_UNSUPPORTED, /* understood, and not supported */
    LB_SYNTAX,      /* text in a template, recipe or expression does not parse */
    LB_NO_MEMORY,
    LB_IO,
    LB_REFUSED,     /* a device refused a call: what was asked fails, the next may not */
    LB_PROOF,       /* the prover could not show a fact */
    LB_CANCELLED,   /* stopped by the user */
    LB_CLOSED,      /* nobody reads what is written: exit status 1, and no message */
    LB_DAMAGED,     /* an artifact's hash differs: exit status 3 */
    LB_WRONG_BOX,   /* not the machine the program was made for: exit status 4 */
    LB_RESOURCES,   /* planned resources are not there at start: exit status 5 */
    LB_DEVICE_LOST  /* exit status 70 */
} lb_code;

enum { LB_ERR_TEXT_BYTES = 240 };

typedef struct lb_err {
    lb_code code;
    char text[LB_ERR_TEXT_BYTES]; /* one line, no newline, NUL-terminated */
    const char *file;             /* source file and line where the error arose */
    int line;
} lb_err;

/* Sets `err` (may be NULL) and returns false, so that `return lb_err_set(err, LB_IO, ...)` reads
 * well. Text longer than the buffer is cut at a character boundary and ends in "...". Control
 * characters in the formatted text become '?', so hostile names cannot break the line. */
#define lb_err_set(err, code, ...) lb_err_set_at((err), (code), __FILE__, __LINE__, __VA_ARGS__)
bool lb_err_set_at(lb_err *err, lb_code code, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* Puts "<formatted text>: " in front of err's text; keeps code and origin. Returns false. */
bool lb_err_prefix(lb_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The process exit status that stands for `code`: contracts section "The rest" (0 1 2 3 4 5 70). */
int lb_err_exit_status(lb_code code);

#endif
