/* prefix_disk_int.h -- a page's file; private to prefix_disk*.c. */
#ifndef RT_PREFIX_DISK_INT_H
#define RT_PREFIX_DISK_INT_H

#include "base/digest.h"
#include "prefix_disk.h"
#include "prefix_int.h"

#define RT_DISK_MAGIC "lagen.kv/1\n\0\0\0\0\0"
enum { RT_DISK_NAME_BYTES = 2 * LB_DIGEST_BYTES + 6 }; /* digits, ".page", NUL */

/* In front of the parts' bytes, whole part first; behind them the SHA-256 of all that. Numbers as
 * this machine has them: the identity is of its program. */
typedef struct rt_disk_head {
    char magic[16];
    uint8_t identity[LB_DIGEST_BYTES], parent[LB_DIGEST_BYTES]; /* parent: zeros for none */
    uint32_t begin, n_tokens, n_held[RT_N_PARTS], ring_from, pad;
    uint64_t part_bytes[RT_N_PARTS]; /* in this file: 0 or the store's */
    uint32_t tokens[RT_PAGE];
} rt_disk_head;

struct rt_disk {
    rt_prefix *store;
    rt_disk_opts o;
    int dir, lock; /* descriptors */
    uint8_t identity[LB_DIGEST_BYTES];
    uint8_t *room; /* [room_bytes]: a file */
    uint64_t room_bytes;
    uint32_t look; /* where the search for a changed page goes on */
    double retry_s;
    rt_disk_stats stats;
};

void rt_disk_tell(const rt_disk *d, const char *event, const char *file, const char *reason);

/* The name of the page's file, and the digest of its tokens and those before it. */
void rt_disk_name(const uint8_t digest[LB_DIGEST_BYTES], char out[RT_DISK_NAME_BYTES]);
bool rt_disk_digest(const uint8_t parent[LB_DIGEST_BYTES], const uint32_t *tokens, uint32_t n,
                    uint8_t out[LB_DIGEST_BYTES], lb_err *err);

/* Reads all files into the store; removes those that are of no use. LB_IO, LB_NO_MEMORY. */
bool rt_disk_read(rt_disk *d, lb_err *err);

#endif
