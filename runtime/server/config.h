/* config.h -- the server's options: one table, checked before anything is loaded. */
#ifndef RT_SERVER_CONFIG_H
#define RT_SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/options.h"
#include "model_abi.h"

typedef struct rt_server_config {
    const char *host;
    uint64_t port; /* 0: any that is free */
    const char *api_key_file;
    const char *name; /* the model's name in answers */
    lb_opt_list origins, hosts;
    const char *log;
    uint64_t n_threads, slots, chunk, prompt_rows;
    const char *device;
    uint64_t store_bytes;  /* of the prefix store; 0: none */
    const char *kv_dir;    /* where its pages are kept as files; NULL: nowhere */
    uint64_t think_budget; /* UINT32_MAX: none */
    uint64_t queue, connections, body_max_bytes, header_s, rate_bytes, ping_s, drain_s;
    bool no_self_test;
    bool keep_billing;

    bool log_json;
    const char *const *keys; /* from api_key_file, NULL-ended; NULL: no key is asked for */
} rt_server_config;

/* Parses argv[0..argc) (without the program's name). `*help` is the text of --help, or NULL. Reads
 * the key file. LB_USAGE; LB_IO and LB_BAD_VALUE for the key file. */
bool rt_server_configure(const rt_model *model, const char *prog, int argc, char **argv,
                         lb_arena *arena, rt_server_config *out, const char **help, lb_err *err);

#endif
