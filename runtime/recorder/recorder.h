/* recorder.h -- what the recorder's files share: a libcuda look-alike that checks and records calls
 * against the limits of a chosen hardware row and answers with hardware's own error codes.
 *
 * Its settings are a text file, named by LAGEN_RECORDER: lines `key value` (limits.def's names, and
 * those of settings.c). The driver API has no handle for the driver itself, so this library keeps
 * one state, behind one mutex. */
#ifndef REC_RECORDER_H
#define REC_RECORDER_H

#include <pthread.h>
#include <stdio.h>

#include "recorder/backend.h"

enum {
    REC_DEVICES_MAX = 8,
    REC_ALLOCS_MAX = 4096,
    REC_KERNELS_MAX = 64,
    REC_PARAM_BYTES_MAX = 32764
};

typedef struct rec_settings {
    char name[96];
#define REC_NUMBER(key, otherwise) unsigned long long key;
#include "recorder/settings.def"
    char log[512]; /* path; "": none */
    char orders[512]; /* path; "": none. A file there is read at the next call, as settings of which
                         fail_* count: fail_call from that call on (1: that one); and removed */
} rec_settings;

/* Handles are addresses of these. */
typedef struct rec_function {
    lb_cubin_kernel facts;
    char name[256];
    unsigned dynamic_smem_max;
    struct rec_module *module;
} rec_function;

typedef struct rec_module {
    lb_cubin cubin;
    unsigned n_functions;
    rec_function functions[REC_KERNELS_MAX];
} rec_module;

/* A captured operation; parameters are copied behind the array. */
typedef struct rec_graph {
    unsigned n_ops, cap_ops;
    rec_op *ops;
    unsigned char **params; /* one a launch, else NULL */
} rec_graph;

typedef struct rec_alloc {
    void *at;
    size_t n_bytes; /* 0: a free entry */
    bool host;
} rec_alloc;

typedef enum rec_capture { REC_NOT, REC_CAPTURING, REC_SPOILT } rec_capture;

/* Failures on order. */
typedef struct rec_failure {
    unsigned at; /* number of the call that fails; 0: none */
    rt_cu_result code;
    unsigned again; /* calls from one failure to the next; 0: there is no other */
    rt_cu_result again_code;
    unsigned times; /* failures to come; 0: no end */
} rec_failure;

typedef struct rec_state {
    pthread_mutex_t lock;
    bool loaded;      /* settings were read */
    bool initialized; /* cuInit */
    rec_settings s;
    FILE *log;
    rec_alloc allocs[REC_ALLOCS_MAX];
    unsigned long long device_bytes, launches;
    unsigned calls;
    rec_failure fail;
    rt_cu_result lost; /* what every call returns after an error that takes the context */
    const char *last;
    unsigned contexts;
    rec_capture capture;
    rec_graph *captured;
} rec_state;

extern rec_state rec;
extern _Thread_local bool rec_has_context; /* of this thread */

/* Every entry point begins with rec_enter (which takes the lock) and returns rec_leave(code).
 * rec_enter returns the code that the call must return unmade: a failure on order, a lost context,
 * no cuInit, no context. */
typedef enum rec_needs { REC_NOTHING, REC_INIT, REC_CONTEXT } rec_needs;
rt_cu_result rec_enter(const char *call, rec_needs needs);
rt_cu_result rec_leave(const char *call, rt_cu_result result);

/* The code of refusals.def. */
enum rec_refusal {
#define REC_REFUSAL(name, code) REC_##name,
#include "recorder/refusals.def"
    REC_N_REFUSALS
};
rt_cu_result rec_refuse(enum rec_refusal why);

void rec_begin(void); /* cuInit: reads the settings again unless something runs with them */
void rec_settings_load(
    rec_settings *s); /* a file that cannot be read leaves the defaults and a note on stderr */
void rec_note(const char *format, ...)
    __attribute__((format(printf, 1, 2))); /* a line of the log */

/* memory.c: true if [at, at + n) lies in one allocation of that kind. */
bool rec_owns(rt_cu_ptr at, size_t n_bytes, bool host);
rt_cu_result rec_take(size_t n_bytes, bool host, void **out);
rt_cu_result rec_give(void *at, bool host);

/* stream.c: runs an operation, or captures it. */
rt_cu_result rec_do(const rec_op *op);

/* Does it, whether or not a capture is under way. */
rt_cu_result rec_do_now(const rec_op *op);

#endif
