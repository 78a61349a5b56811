/* digest.h -- SHA-256 (FIPS 180-4, by libcrypto) of whole files, in a form that threads can share.
 *
 * The digest of n bytes is
 *     SHA-256("lagen.tree/1\n" || n as 8 bytes little-endian || d_0 || d_1 || ...)
 * with d_i the plain SHA-256 of piece i; pieces are 16 MiB, the last one shorter, none when n is 0.
 * So pieces can be hashed in any order, by any number of threads, while they are being read. It is
 * written where a weight image is made and checked where it is loaded. */
#ifndef LB_DIGEST_H
#define LB_DIGEST_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    LB_DIGEST_BYTES = 32,
    LB_DIGEST_HEX_BYTES = 2 * LB_DIGEST_BYTES + 1, /* with the NUL */
    LB_DIGEST_PIECE_BYTES = 16 * 1024 * 1024
};

/* Plain SHA-256. Fails with LB_NO_MEMORY if libcrypto cannot work. */
bool lb_sha256(const void *data, size_t n_bytes, uint8_t out[LB_DIGEST_BYTES], lb_err *err);

/* ceil(n_bytes / 16 MiB). */
uint64_t lb_digest_n_pieces(uint64_t n_bytes);

/* The tree's digest from `pieces`: lb_digest_n_pieces(n_bytes) SHA-256 digests, one after the other. */
bool lb_digest_root(const uint8_t *pieces, uint64_t n_bytes, uint8_t out[LB_DIGEST_BYTES], lb_err *err);

/* The tree's digest of data in memory, by the calling thread alone. */
bool lb_digest_tree(const void *data, uint64_t n_bytes, uint8_t out[LB_DIGEST_BYTES], lb_err *err);

/* The same, given up with LB_CANCELLED at the next piece once *stop is set: of tens of gigabytes. */
bool lb_digest_tree_until(const void *data, uint64_t n_bytes, const volatile sig_atomic_t *stop,
                          uint8_t out[LB_DIGEST_BYTES], lb_err *err);

/* One more piece into a chain that begins as zeros: chain = SHA-256(chain || its length as 8 bytes
 * little-endian || its first and its last 64 bytes, or all of it). Tells files of equal size apart
 * without reading them. */
bool lb_digest_sample(uint8_t chain[LB_DIGEST_BYTES], const uint8_t *data, uint64_t n_bytes,
                      lb_err *err);

/* 64 lower-case hex digits and a NUL. */
void lb_digest_hex(const uint8_t digest[LB_DIGEST_BYTES], char out[LB_DIGEST_HEX_BYTES]);

#endif
