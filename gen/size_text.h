/* size_text.h -- bytes for people. */
#ifndef LG_SIZE_TEXT_H
#define LG_SIZE_TEXT_H

#include <stdint.h>

/* "1.50 GiB": for reading, never for reckoning. Returns `buffer`. */
const char *lg_size_text(uint64_t bytes, char buffer[32]);

#endif
