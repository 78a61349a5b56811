/* size_text.c -- see size_text.h. */
#include "size_text.h"

#include <stdio.h>

const char *lg_size_text(uint64_t bytes, char buffer[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    int u = 0;
    while (u < 6 && v >= (u == 0 ? 1024.0 : 1023.995)) { /* which would read 1024.00 */
        v /= 1024.0;
        u++;
    }
    snprintf(buffer, 32, u == 0 ? "%.0f %s" : "%.2f %s", v, units[u]);
    return buffer;
}
