/* metrics.c -- see metrics.h. */
#include "server/metrics.h"

#include <inttypes.h>

static void row(lb_text *out, const char *name, const char *type, const char *help, uint64_t n) {
    lb_text_printf(out, "# HELP lagen_%s %s\n# TYPE lagen_%s %s\nlagen_%s %" PRIu64 "\n", name,
                   help, name, type, name, n);
}

static void requests(rt_metrics *m, lb_text *out) {
    static const char *const classes[RT_STATUS_CLASSES] = {"broken", "1xx", "2xx",
                                                           "3xx",    "4xx", "5xx"};
    lb_text_add(out, "# HELP lagen_requests_total requests by class of HTTP status\n"
                     "# TYPE lagen_requests_total counter\n");
    for (int i = 0; i < RT_STATUS_CLASSES; i++) {
        lb_text_printf(out, "lagen_requests_total{status=\"%s\"} %" PRIu64 "\n", classes[i],
                       atomic_load(&m->requests[i]));
    }
}

void rt_metrics_print(rt_metrics *m, lb_text *out) {
    requests(m, out);
    row(out, "answers_total", "counter", "answers that were begun", atomic_load(&m->answers));
    row(out, "answers_failed_total", "counter", "answers that ended in an error",
        atomic_load(&m->answers_failed));
    row(out, "answers_cancelled_total", "counter", "answers whose client went away",
        atomic_load(&m->answers_cancelled));
    row(out, "queue_full_total", "counter", "requests refused because the queue was full",
        atomic_load(&m->refused_full));
    row(out, "prompt_tokens_total", "counter", "tokens of prompts", atomic_load(&m->prompt_tokens));
    row(out, "prompt_tokens_cached_total", "counter",
        "of them, tokens that were not computed again", atomic_load(&m->cached_tokens));
    row(out, "prompt_tokens_restored_total", "counter",
        "of these, tokens that came from the prefix store",
        atomic_load(&m->restored_tokens));
    lb_text_printf(out,
                   "# HELP lagen_prefix_lookups_total prompts by what was known of them\n"
                   "# TYPE lagen_prefix_lookups_total counter\n"
                   "lagen_prefix_lookups_total{found=\"slot\"} %" PRIu64 "\n"
                   "lagen_prefix_lookups_total{found=\"store\"} %" PRIu64 "\n"
                   "lagen_prefix_lookups_total{found=\"nothing\"} %" PRIu64 "\n",
                   atomic_load(&m->prefix_hits_slot), atomic_load(&m->prefix_hits_store),
                   atomic_load(&m->prefix_misses));
    row(out, "prefix_store_bytes", "gauge", "bytes of the prefix store in use",
        atomic_load(&m->store_bytes));
    row(out, "prefix_store_pages", "gauge", "pages of tokens in the prefix store",
        atomic_load(&m->store_pages));
    row(out, "prefix_store_evicted_total", "counter", "parts of pages that made room for others",
        atomic_load(&m->store_evicted));
    row(out, "prefix_files_read_total", "counter", "pages that were read from --kv-dir",
        atomic_load(&m->files_read));
    row(out, "prefix_files_written_total", "counter", "pages that were written there",
        atomic_load(&m->files_written));
    row(out, "prefix_files_failed_total", "counter", "pages that could not be written",
        atomic_load(&m->files_failed));
    row(out, "answer_tokens_total", "counter", "tokens of answers", atomic_load(&m->answer_tokens));
    row(out, "steps_total", "counter", "steps of the engine", atomic_load(&m->steps));
    row(out, "step_rows_total", "counter", "rows of those steps", atomic_load(&m->step_rows));
    row(out, "step_microseconds_total", "counter", "time in those steps", atomic_load(&m->step_us));
    row(out, "answers_running", "gauge", "answers being made", atomic_load(&m->running));
    row(out, "answers_waiting", "gauge", "answers waiting for a slot", atomic_load(&m->waiting));
    row(out, "connections", "gauge", "open connections", atomic_load(&m->connections));
}
