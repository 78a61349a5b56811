/* config.c -- see config.h. */
#include "server/config.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "prefix.h"

enum { KEY_FILE_MAX_BYTES = 1 << 20, KEYS_MAX = 1024, KEY_MIN_BYTES = 8 };

#define FLAG(name, out, help)                                                                      \
    { name, NULL, LB_OPT_FLAG, out, 0, 0, false, NULL, NULL, help }
#define NAME(name, out, value, help)                                                               \
    { name, NULL, LB_OPT_NAME, out, 0, 0, false, NULL, value, help }
#define UINT(name, out, least, most, value, help)                                                  \
    { name, NULL, LB_OPT_UINT, out, least, most, false, NULL, value, help }
#define BYTES(name, out, least, most, help)                                                        \
    { name, NULL, LB_OPT_UINT, out, least, most, true, NULL, "BYTES", help }
#define WORD(name, out, words, help)                                                               \
    { name, NULL, LB_OPT_WORD, out, 0, 0, false, NULL, words, help }
#define LIST(name, out, value, help)                                                               \
    { name, NULL, LB_OPT_REPEAT, out, 0, 0, false, NULL, value, help }

static rt_server_config defaults(const rt_model *m) {
    uint32_t rows = m->chunk < 64 ? m->chunk : 64;
    return (rt_server_config){.host = "127.0.0.1",
                              .port = 8080,
                              .log = "text",
                              .name = m->name,
                              .slots = m->slots,
                              .chunk = m->chunk,
                              .prompt_rows = rows,
                              .store_bytes = rt_prefix_default_bytes(m),
                              .think_budget = UINT32_MAX,
                              .queue = 64,
                              .connections = LB_CONNECTIONS,
                              .body_max_bytes = 32 << 20,
                              .header_s = 60,
                              .rate_bytes = 1024,
                              .ping_s = 10,
                              .drain_s = 30};
}

static bool parse(const rt_model *m, const char *prog, int argc, char **argv, lb_arena *arena,
                  rt_server_config *c, const char **help, lb_err *err) {
    const lb_opt rows[] = {
        NAME("--host", &c->host, "ADDRESS",
             "numeric IPv4 or IPv6 address to listen on (127.0.0.1)"),
        UINT("--port", &c->port, 0, 65535, "N", "port (8080); 0: any that is free, see the log"),
        NAME("--api-key-file", &c->api_key_file, "FILE",
             "one key a line; requests must carry one of them"),
        LIST("--allow-host", &c->hosts, "NAME",
             "a Host header to answer; may be repeated (default: those\nof this machine when "
             "listening on a loopback address,\nelse all)"),
        LIST("--allow-origin", &c->origins, "ORIGIN",
             "a web page's origin that may ask, or *; may be repeated\n(default: pages of this "
             "server and of this machine)"),
        NAME("--name", &c->name, "NAME", "the model's name in answers"),
        WORD("--log", &c->log, "text|json", "form of the log on stderr (text)"),
        UINT("--threads", &c->n_threads, 1, RT_POOL_MAX_THREADS, "N",
             "threads (default: the CPUs this process may run on)"),
        NAME("--device", &c->device, "NAME",
             "the GPU, where several would do: index, UUID or PCI\naddress"),
        UINT("--slots", &c->slots, 1, m->slots, "N",
             "answers made at the same time (default: as the program\nwas made)"),
        UINT("--chunk", &c->chunk, 1, m->chunk, "N",
             "rows of a prompt in one step (default: the most)"),
        UINT("--prompt-rows", &c->prompt_rows, 1, m->chunk, "N",
             "rows of prompts in a step, or between two, while answers\nare being made (64, or the most)"),
        BYTES("--prefix-store", &c->store_bytes, 0, UINT64_C(1) << 50,
              "bytes of memory for beginnings of conversations that\nslots no longer hold (as many as "
              "the KV cache has, at\nmost 1GiB); 0: none"),
        NAME("--kv-dir", &c->kv_dir, "DIR",
             "keeps them in files there too, to go on from them after\na new start; never more than "
             "--prefix-store, and 1KiB\nfor 64 tokens"),
        UINT("--think-budget", &c->think_budget, 0, UINT32_MAX, "N",
             "tokens of reasoning after which it is brought to its\nend, unless a request says "
             "otherwise (default: no end)"),
        UINT("--queue", &c->queue, 0, 65536, "N", "answers that may wait for a slot (64)"),
        UINT("--connections", &c->connections, 1, 65536, "N", "open connections at most (1024)"),
        BYTES("--body-limit", &c->body_max_bytes, 1024, 1 << 30, "bytes of a request (32MiB)"),
        UINT("--header-timeout", &c->header_s, 1, 86400, "SECONDS",
             "a connection has so long for the head of its next\nrequest (60)"),
        BYTES("--min-rate", &c->rate_bytes, 0, 1 << 30,
              "bytes a second that a request must come with, after\n5 seconds (1KiB)"),
        UINT("--keepalive", &c->ping_s, 1, 3600, "SECONDS",
             "a stream sends at least a ping so often (10)"),
        UINT("--drain", &c->drain_s, 0, 86400, "SECONDS",
             "SIGTERM lets answers go on for so long (30)"),
        FLAG("--no-self-test", &c->no_self_test,
             "open the port without checking the kernels first"),
        FLAG("--keep-billing-header", &c->keep_billing,
             "leave a system block that begins with\nx-anthropic-billing-header in the prompt"),
    };
    const lb_command cmd = {
        .name = prog,
        .summary = "serves the model over HTTP, as OpenAI and Anthropic do",
        .details = "Endpoints: / (a chat page), /v1/chat/completions, /v1/completions,\n"
                   "/v1/responses, /v1/messages, /v1/messages/count_tokens, /v1/models,\n"
                   "/tokenize, /detokenize, /apply-template, /health, /metrics.\n"
                   "TLS is the work of a proxy in front.",
        .options = rows,
        .n_options = sizeof rows / sizeof rows[0]};
    bool wanted = false;
    lb_text t;
    if (!lb_options_parse(&cmd, argc, argv, &wanted, err)) {
        return false;
    }
    if (wanted) {
        lb_text_init(&t, arena);
        lb_options_help(&cmd, &t);
        if (!lb_text_done(&t, err)) {
            return false;
        }
        *help = t.data;
    }
    return true;
}

/* Keys of a file, one a line; empty lines and those with # in front do not count. */
static bool read_keys(rt_server_config *c, lb_arena *arena, lb_err *err) {
    char *text = NULL;
    size_t n_bytes = 0;
    uint32_t n = 0;
    const char **keys = lb_alloc_n(arena, KEYS_MAX + 1, sizeof *keys, err);
    if (keys == NULL ||
        !lb_read_file(c->api_key_file, KEY_FILE_MAX_BYTES, arena, &text, &n_bytes, err)) {
        return false;
    }
    for (char *line = text; *line != '\0';) {
        size_t len = strcspn(line, "\r\n");
        char *next = line + len + (line[len] != '\0');
        line[len] = '\0';
        if (len > 0 && line[0] != '#') {
            if (len < KEY_MIN_BYTES || n == KEYS_MAX) {
                return lb_err_set(err, LB_BAD_VALUE,
                                  "%s: a key of %zu bytes, the least is %d; at "
                                  "most %d keys",
                                  c->api_key_file, len, KEY_MIN_BYTES, KEYS_MAX);
            }
            keys[n++] = line;
        }
        line = next;
    }
    if (n == 0) {
        return lb_err_set(err, LB_BAD_VALUE, "%s holds no key", c->api_key_file);
    }
    c->keys = keys;
    return true;
}

static bool check(rt_server_config *c, lb_err *err) {
    uint8_t address[16];
    if (inet_pton(AF_INET, c->host, address) != 1 && inet_pton(AF_INET6, c->host, address) != 1) {
        return lb_err_set(err, LB_USAGE, "--host: '%s' is no numeric IPv4 or IPv6 address",
                          c->host);
    }
    if (c->kv_dir != NULL && c->store_bytes == 0) {
        return lb_err_set(err, LB_USAGE, "--kv-dir keeps what --prefix-store holds, which is 0 bytes");
    }
    if (c->name[0] == '\0') {
        return lb_err_set(err, LB_USAGE, "--name: the text is empty");
    }
    c->log_json = c->log[0] == 'j';
    return true;
}

bool rt_server_configure(const rt_model *m, const char *prog, int argc, char **argv,
                         lb_arena *arena, rt_server_config *out, const char **help, lb_err *err) {
    rt_server_config c = defaults(m);
    *help = NULL;
    if (!parse(m, prog, argc, argv, arena, &c, help, err)) {
        return false;
    }
    if (*help == NULL &&
        (!check(&c, err) || (c.api_key_file != NULL && !read_keys(&c, arena, err)))) {
        return false;
    }
    *out = c;
    return true;
}
