/* digest.c -- see digest.h. */
#include "base/digest.h"

#include <openssl/evp.h>
#include <string.h>

static const char TREE_TAG[] = "lagen.tree/1\n";

static bool crypto_failed(lb_err *err) {
    return lb_err_set(err, LB_NO_MEMORY, "SHA-256: libcrypto failed");
}

bool lb_sha256(const void *data, size_t n_bytes, uint8_t out[LB_DIGEST_BYTES], lb_err *err) {
    if (EVP_Digest(data, n_bytes, out, NULL, EVP_sha256(), NULL) != 1) {
        return crypto_failed(err);
    }
    return true;
}

uint64_t lb_digest_n_pieces(uint64_t n_bytes) {
    return n_bytes / LB_DIGEST_PIECE_BYTES + (n_bytes % LB_DIGEST_PIECE_BYTES != 0);
}

static bool begin_root(EVP_MD_CTX *c, uint64_t n_bytes) {
    uint8_t size[8];
    for (int i = 0; i < 8; i++) {
        size[i] = (uint8_t)(n_bytes >> (8 * i));
    }
    return EVP_DigestInit_ex(c, EVP_sha256(), NULL) == 1 &&
           EVP_DigestUpdate(c, TREE_TAG, sizeof TREE_TAG - 1) == 1 &&
           EVP_DigestUpdate(c, size, sizeof size) == 1;
}

/* The root over given piece digests, or (pieces NULL) over pieces of `data` hashed on the way, until
 * *stop (which may be NULL) is set. */
static bool root(const uint8_t *pieces, const uint8_t *data, uint64_t n_bytes,
                 const volatile sig_atomic_t *stop, uint8_t out[LB_DIGEST_BYTES]) {
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = c != NULL && begin_root(c, n_bytes);
    uint64_t n_pieces = lb_digest_n_pieces(n_bytes);
    for (uint64_t i = 0; ok && i < n_pieces && (stop == NULL || *stop == 0); i++) {
        uint8_t own[LB_DIGEST_BYTES];
        const uint8_t *d = own;
        if (pieces != NULL) {
            d = pieces + i * LB_DIGEST_BYTES;
        } else {
            uint64_t left = n_bytes - i * LB_DIGEST_PIECE_BYTES;
            size_t n = left < LB_DIGEST_PIECE_BYTES ? left : LB_DIGEST_PIECE_BYTES;
            ok = lb_sha256(data + i * LB_DIGEST_PIECE_BYTES, n, own, NULL);
        }
        ok = ok && EVP_DigestUpdate(c, d, LB_DIGEST_BYTES) == 1;
    }
    ok = ok && EVP_DigestFinal_ex(c, out, NULL) == 1;
    EVP_MD_CTX_free(c);
    return ok;
}

bool lb_digest_root(const uint8_t *pieces, uint64_t n_bytes, uint8_t out[LB_DIGEST_BYTES],
                  lb_err *err) {
    return root(pieces != NULL ? pieces : (const uint8_t *)"", NULL, n_bytes, NULL, out) ||
           crypto_failed(err);
}

bool lb_digest_tree(const void *data, uint64_t n_bytes, uint8_t out[LB_DIGEST_BYTES], lb_err *err) {
    return lb_digest_tree_until(data, n_bytes, NULL, out, err);
}

bool lb_digest_tree_until(const void *data, uint64_t n_bytes, const volatile sig_atomic_t *stop,
                          uint8_t out[LB_DIGEST_BYTES], lb_err *err) {
    uint8_t got[LB_DIGEST_BYTES];
    if (!root(NULL, data, n_bytes, stop, got)) {
        return crypto_failed(err);
    }
    if (stop != NULL && *stop != 0) {
        return lb_err_set(err, LB_CANCELLED, "stopped");
    }
    memcpy(out, got, sizeof got);
    return true;
}

bool lb_digest_sample(uint8_t chain[LB_DIGEST_BYTES], const uint8_t *data, uint64_t n_bytes,
                      lb_err *err) {
    enum { EDGE = 64 };
    uint8_t text[LB_DIGEST_BYTES + 8 + 2 * EDGE];
    size_t n = LB_DIGEST_BYTES;
    memcpy(text, chain, LB_DIGEST_BYTES);
    for (int i = 0; i < 8; i++) {
        text[n++] = (uint8_t)(n_bytes >> (8 * i));
    }
    size_t head = n_bytes < 2 * EDGE ? (size_t)n_bytes : EDGE;
    size_t tail = n_bytes < 2 * EDGE ? 0 : EDGE;
    if (n_bytes > 0) {
        memcpy(text + n, data, head);
        memcpy(text + n + head, data + (n_bytes - tail), tail);
    }
    return lb_sha256(text, n + head + tail, chain, err);
}


void lb_digest_hex(const uint8_t digest[LB_DIGEST_BYTES], char out[LB_DIGEST_HEX_BYTES]) {
    static const char HEX[] = "0123456789abcdef";
    for (int i = 0; i < LB_DIGEST_BYTES; i++) {
        out[2 * i] = HEX[digest[i] >> 4];
        out[2 * i + 1] = HEX[digest[i] & 15];
    }
    out[2 * LB_DIGEST_BYTES] = '\0';
}
