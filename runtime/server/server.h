/* server.h -- the emitted `-server` program: its parts, and one request on its way through them.
 *
 * libmicrohttpd gives every connection a thread; a request is read, answered and forgotten there.
 * What must not wait for a client (the engine) has a thread of its own (sched.h), and one more
 * looks after connections that do not move (watch.h). */
#ifndef RT_SERVER_SERVER_H
#define RT_SERVER_SERVER_H

#include <stdatomic.h>

#include "base/text.h"
#include "chat/render.h"
#include "server/config.h"
#include "server/history.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/sched.h"
#include "server/watch.h"

struct MHD_Connection;
struct MHD_Daemon;

typedef enum rt_health { RT_HEALTH_OK, RT_HEALTH_STOPPING, RT_HEALTH_LOST } rt_health;

typedef struct rt_server {
    const rt_model *model;
    const rt_server_config *config;
    rt_engine *engine;
    rt_sched *sched;
    rt_prefix *store; /* NULL: none */
    rt_disk *disk;    /* its files; NULL: none */
    rt_log log;
    rt_metrics metrics;
    rt_watch watch;
    rt_history history;
    rt_chat_caps caps; /* of model->chat */
    int64_t started;   /* Unix time */
    uint64_t salt;     /* of ids */
    _Atomic uint64_t n_requests;
    _Atomic uint32_t n_owed; /* requests whose answers are not wholly sent */
    _Atomic int health;
    atomic_bool abort;     /* no more waiting: answers end now */
    pthread_mutex_t large; /* one at a time: prompts that take much memory to encode */
    int wake_fd;           /* an eventfd that ends the main thread's wait */
    struct MHD_Daemon *daemon;
    int quiet_fd; /* the port, once no more connections are taken; -1 before */
    uint16_t port;
} rt_server;

enum { RT_ID_BYTES = 32 };

typedef struct rt_request rt_request;
struct rt_request {
    rt_server *server;
    struct MHD_Connection *mhd;
    rt_watched *watched;
    lb_arena arena;
    char id[RT_ID_BYTES]; /* hexadecimal digits, unlike any other's */
    const char *method, *path;
    bool anthropic; /* errors in Anthropic's shape */
    double begin_s;
    char *body; /* malloc; NUL-terminated */
    size_t n_body, cap_body;
    bool too_large;

    int status;
    bool left; /* the client was gone before its answer: nobody reads the status */
    const char *type;        /* Content-Type */
    const char *retry_after; /* NULL: none */
    const char *allow;       /* methods, with 405 */
    const char *policy;      /* Content-Security-Policy; NULL: none */
    lb_text out;

    /* A reply that is a stream: appends to `out` what there is next, waiting for it; false when
     * nothing more comes. `release` is called once, whatever becomes of the request. */
    bool (*next)(rt_request *r);
    void (*release)(rt_request *r);
    void *state;
    size_t n_sent; /* of out */
};

/* Fills status, type and out, or next. On false the reply becomes an error: rt_fault. */
typedef bool (*rt_handler)(rt_request *r, lb_err *err);

/* A path that ends in "*" stands for all that begin so. */
typedef struct rt_route {
    const char *method, *path;
    rt_handler handle;
    bool open; /* answered without a key */
} rt_route;

extern const rt_route rt_routes[];
extern const size_t rt_n_routes;

/* True once nobody will read what this request answers: the client hung up, or the server ends. */
bool rt_request_gone(const rt_request *r);

/* A request's header or query argument; NULL if absent. */
const char *rt_request_header(const rt_request *r, const char *name);
const char *rt_request_query(const rt_request *r, const char *name);

/* The reply becomes an error in the shape of the request's API. status 0: what err->code means. */
void rt_fault(rt_request *r, int status, const lb_err *err);

/* Error object alone, for streams: {"type": ..., ...} as the API has it. */
void rt_fault_json(bool anthropic, int status, const char *request_id, const char *message,
                   lb_text *out);
int rt_fault_status(lb_code code);

/* The program. Returns its exit status. */
int rt_server_main(const rt_model *model, int argc, char **argv);

/* Whether the port could be opened now, without opening it. LB_IO. */
bool rt_http_try(const rt_server_config *c, lb_err *err);

/* Opens the port; its number in s->port. LB_IO. And closes it: waits for connections' threads. */
bool rt_http_start(rt_server *s, lb_err *err);
void rt_http_quiesce(rt_server *s); /* no new connections */
void rt_http_stop(rt_server *s);

#endif
