/* server.c -- the program: options, model, port, signals; see server.h. */
#define _GNU_SOURCE
#include "server/server.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/budget.h"
#include "base/console.h"
#include "chat/probe.h"
#include "heap.h"
#include "load.h"
#include "server/selftest.h"

enum { LOST_GRACE_MS = 2000, DRAIN_LOOK_MS = 50 };
static const uint64_t CONFIG_BYTES = UINT64_C(64) << 20;

static void write_all(int fd, const char *s, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t done = write(fd, s + at, n - at);
        if (done < 0 && errno != EINTR) {
            return;
        }
        at += done > 0 ? (size_t)done : 0;
    }
}

/* ---- start */

static bool init(rt_server *s, lb_err *err) {
    atomic_init(&s->health, RT_HEALTH_OK);
    s->quiet_fd = -1;
    s->started = (int64_t)time(NULL);
    s->wake_fd = eventfd(0, EFD_CLOEXEC);
    json_object_seed(0); /* once, before threads */
    if (s->wake_fd < 0 || getrandom(&s->salt, sizeof s->salt, 0) != (ssize_t)sizeof s->salt ||
        pthread_mutex_init(&s->large, NULL) != 0 || !rt_history_init(&s->history)) {
        return lb_err_set(err, LB_RESOURCES, "cannot start: %s", strerror(errno));
    }
    return true;
}

static bool self_test(rt_server *s, const char *dir, lb_err *err) {
    bool golden = false;
    double begin_s = rt_seconds();
    if (s->config->no_self_test) {
        RT_LOG(&s->log, "warning", "self-test left out", RT_LOG_S("option", "--no-self-test"));
        return true;
    }
    if (!rt_server_selftest(s->engine, dir, &golden, err)) {
        return false;
    }
    RT_LOG(&s->log, "info", "self-test passed", RT_LOG_S("golden_tokens", golden ? "yes" : "none"),
           RT_LOG_T("took", rt_seconds() - begin_s));
    return true;
}

static bool start_engine(rt_server *s, const char *dir, lb_err *err) {
    const rt_server_config *c = s->config;
    double begin_s = rt_seconds();
    rt_engine_opts o = {
        .n_threads = (uint32_t)c->n_threads, .device = c->device, .load = {.dir = dir}};
    if (s->model->tokenizer == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED, "%s has no tokenizer: it cannot be served",
                          s->model->name);
    }
    if (s->model->chat != NULL && !rt_chat_probe(s->model->chat, &s->caps, err)) {
        return false;
    }
    if (!rt_engine_start(s->model, &o, &s->engine, err)) {
        return false;
    }
    s->engine->chunk = (uint32_t)c->chunk;
    RT_LOG(&s->log, "info", "model loaded", RT_LOG_S("model", s->model->name),
           RT_LOG_S("row", s->model->arch_row), RT_LOG_U("ctx", s->model->ctx),
           RT_LOG_U("slots", c->slots), RT_LOG_T("took", rt_seconds() - begin_s));
    return self_test(s, dir, err);
}

static void say(void *arg, const char *event, const char *file, const char *reason) {
    rt_server *s = arg;
    RT_LOG(&s->log, "warning", event, RT_LOG_S("file", file), RT_LOG_S("reason", reason));
}

static bool start_disk(rt_server *s, lb_err *err) {
    const rt_disk_opts o = {.dir = s->config->kv_dir, .say = say, .say_arg = s};
    rt_disk_stats st;
    double begin_s = rt_seconds();
    if (o.dir == NULL) {
        return true;
    }
    if (!rt_disk_open(s->store, &o, &s->disk, err)) {
        return lb_err_prefix(err, "--kv-dir");
    }
    rt_disk_stats_of(s->disk, &st);
    atomic_store(&s->metrics.files_read, st.n_read);
    RT_LOG(&s->log, "info", "prefixes read", RT_LOG_U("pages", st.n_read),
           RT_LOG_T("took", rt_seconds() - begin_s));
    return true;
}

/* Beginnings of conversations beside the slots. */
static bool start_store(rt_server *s, lb_err *err) {
    const rt_server_config *c = s->config;
    rt_prefix_stats st;
    if (c->store_bytes == 0) {
        return true;
    }
    if (!rt_prefix_open(s->engine, c->store_bytes, &s->store, err)) {
        return lb_err_prefix(err, "--prefix-store");
    }
    rt_prefix_stats_of(s->store, &st);
    RT_LOG(&s->log, "info", "prefix store", RT_LOG_U("bytes", st.size_bytes),
           RT_LOG_U("tokens", st.size_bytes / st.position_bytes));
    return start_disk(s, err);
}

/* On the scheduler's thread. */
static void on_lost(void *arg) {
    rt_server *s = arg;
    atomic_store(&s->health, RT_HEALTH_LOST);
    eventfd_write(s->wake_fd, 1);
}

/* What connections, requests and answers may take together. */
static uint64_t heap_bytes(const rt_server_config *c) {
    uint64_t more = c->connections > LB_CONNECTIONS ? c->connections - LB_CONNECTIONS : 0;
    return LB_HEAP_BYTES + more * LB_CONNECTION_BYTES; /* at most 65,536 connections */
}

static bool start(rt_server *s, lb_err *err) {
    char dir[PATH_MAX];
    const rt_server_config *c = s->config;
    rt_sched_opts o = {.n_slots = (uint32_t)c->slots,
                             .prompt_rows = (uint32_t)c->prompt_rows,
                             .queue = (uint32_t)c->queue,
                             .lost = on_lost,
                             .lost_arg = s};
    /* the port is looked at first: loading a large model takes minutes */
    if (!rt_http_try(c, err) || !rt_program_dir(dir, sizeof dir, err) ||
        !start_engine(s, dir, err) || !start_store(s, err)) {
        return false;
    }
    o.store = s->store;
    o.disk = s->disk;
    if (!rt_sched_start(s->engine, &o, &s->log, &s->metrics, &s->sched, err) ||
        !rt_watch_start(&s->watch, (double)c->header_s, (double)c->rate_bytes, err)) {
        return false;
    }
    uint64_t in_force = 0;
    uint64_t heap = heap_bytes(c);
    if (!rt_heap_limit(heap, &in_force, err) || !rt_http_start(s, err)) {
        rt_watch_stop(&s->watch);
        return false;
    }
    const char *open = strchr(c->host, ':') != NULL ? "[" : "";
    char url[128];
    snprintf(url, sizeof url, "http://%s%s%s:%u", open, c->host, open[0] != '\0' ? "]" : "",
             s->port);
    RT_LOG(&s->log, "info", "memory", RT_LOG_U("heap_at_most", heap),
           RT_LOG_U("data_limit", in_force));
    RT_LOG(&s->log, "info", "listening", RT_LOG_S("url", url),
           RT_LOG_S("key", c->keys == NULL ? "none asked for" : "asked for"));
    return true;
}

/* ---- end */

/* Answers go on for --drain seconds, or until a second signal; one is over when its last byte was
 * sent. */
static void drain(rt_server *s, int signal_fd) {
    double until = rt_seconds() + (double)s->config->drain_s;
    struct pollfd p[2] = {{.fd = signal_fd, .events = POLLIN},
                          {.fd = s->wake_fd, .events = POLLIN}};
    while (rt_sched_load(s->sched) + atomic_load(&s->n_owed) > 0 && rt_seconds() < until) {
        if (poll(p, 2, DRAIN_LOOK_MS) > 0) {
            RT_LOG(&s->log, "warning", "stopping at once",
                   RT_LOG_S("reason", (p[0].revents & POLLIN) != 0 ? "signal" : "device lost"));
            return;
        }
    }
}

/* Until a signal comes or the device is lost; then everything ends. */
static bool serve(rt_server *s, int signal_fd, lb_err *err) {
    struct signalfd_siginfo info;
    struct pollfd p[2] = {{.fd = signal_fd, .events = POLLIN},
                          {.fd = s->wake_fd, .events = POLLIN}};
    while (poll(p, 2, -1) < 0 && errno == EINTR) {
    }
    if ((p[0].revents & POLLIN) != 0 && read(signal_fd, &info, sizeof info) == sizeof info) {
        int expected = RT_HEALTH_OK;
        atomic_compare_exchange_strong(&s->health, &expected, RT_HEALTH_STOPPING);
        RT_LOG(&s->log, "info", "stopping", RT_LOG_U("signal", info.ssi_signo),
               RT_LOG_U("answers", rt_sched_load(s->sched)));
        rt_sched_close(s->sched);
        rt_http_quiesce(s);
        drain(s, signal_fd);
    } else { /* the health check shows red for a moment, and what was being answered gets its error
              */
        RT_LOG(&s->log, "error", "device lost", RT_LOG_S("exit", "70"));
        poll(p, 1, LOST_GRACE_MS);
    }
    bool lost = atomic_load(&s->health) == RT_HEALTH_LOST;
    return !lost || lb_err_set(err, LB_DEVICE_LOST, "the device was lost");
}

static void stop(rt_server *s) {
    atomic_store(&s->abort, true);
    if (s->daemon != NULL) {
        rt_http_quiesce(s);
        rt_sched_stop(s->sched); /* every answer ends, so every connection's thread can */
        rt_http_stop(s);
        rt_watch_stop(&s->watch);
    } else {
        rt_sched_stop(s->sched);
    }
    rt_disk_close(s->disk);
    rt_prefix_close(s->store);
    rt_engine_stop(s->engine);
    rt_history_free(&s->history);
    pthread_mutex_destroy(&s->large);
}

static bool run(rt_server *s, lb_err *err) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* threads inherit it: signals come to the descriptor */
    int signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    if (signal_fd < 0) {
        return lb_err_set(err, LB_RESOURCES, "cannot take signals: %s", strerror(errno));
    }
    bool ok = init(s, err) && start(s, err) && serve(s, signal_fd, err);
    stop(s);
    close(signal_fd);
    close(s->wake_fd);
    return ok;
}

static const char *prog_name(const rt_model *m, int argc, char **argv) {
    if (argc == 0 || argv[0][0] == '\0') {
        return m->name;
    }
    const char *slash = strrchr(argv[0], '/');
    return slash == NULL ? argv[0] : slash + 1;
}

int rt_server_main(const rt_model *model, int argc, char **argv) {
    lb_err err = {0};
    lb_arena arena;
    rt_server_config config;
    const char *help = NULL;
    rt_server s = {.model = model, .config = &config, .wake_fd = -1};
    const char *prog = prog_name(model, argc, argv);
    lb_arena_init(&arena, "options", CONFIG_BYTES);
    bool ok = lb_console_init(&err) &&
              rt_server_configure(model, prog, argc - 1, argv + 1, &arena, &config, &help, &err);
    if (help != NULL) {
        write_all(STDOUT_FILENO, help, strlen(help));
    } else if (!ok) {
        char text[LB_ERR_TEXT_BYTES + 256];
        snprintf(text, sizeof text, "%s: %s\n", prog, err.text);
        write_all(STDERR_FILENO, text, strlen(text));
    } else {
        rt_log_init(&s.log, STDERR_FILENO, config.log_json);
        ok = run(&s, &err);
        RT_LOG(&s.log, ok ? "info" : "error", "ended", RT_LOG_S("reason", ok ? NULL : err.text));
        rt_log_free(&s.log);
    }
    lb_arena_reset(&arena);
    return ok ? 0 : lb_err_exit_status(err.code);
}
