/* metrics.h -- what the server counts, for /metrics. Any thread may count. */
#ifndef RT_SERVER_METRICS_H
#define RT_SERVER_METRICS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/text.h"

enum { RT_STATUS_CLASSES = 6 }; /* HTTP 1xx..5xx, and connections that broke */

typedef struct rt_metrics {
    _Atomic uint64_t requests[RT_STATUS_CLASSES];
    _Atomic uint64_t answers, answers_failed, answers_cancelled, refused_full;
    _Atomic uint64_t prompt_tokens, cached_tokens, answer_tokens;
    _Atomic uint64_t prefix_hits_slot, prefix_hits_store, prefix_misses, restored_tokens;
    _Atomic uint64_t store_bytes, store_pages, store_evicted;
    _Atomic uint64_t files_read, files_written, files_failed;
    _Atomic uint64_t steps, step_rows, step_us;
    _Atomic uint32_t running, waiting, connections;
} rt_metrics;

/* Prometheus text, version 0.0.4. */
void rt_metrics_print(rt_metrics *m, lb_text *out);

#endif
