/* state.c -- the recorder's one state: settings, counting, failures on order, the log. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "recorder/recorder.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recorder/control.h"

rec_state rec = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = ""};
_Thread_local bool rec_has_context;

rt_cu_result rec_refuse(enum rec_refusal why) {
    static const rt_cu_result CODES[] = {
#define REC_REFUSAL(name, code) code,
#include "recorder/refusals.def"
    };
    return CODES[why];
}

static void set_number(rec_settings *s, const char *key, const char *value) {
#define REC_NUMBER(name, otherwise)                                                                \
    if (strcmp(key, #name) == 0) {                                                                 \
        s->name = strtoull(value, NULL, 10);                                                       \
        return;                                                                                    \
    }
#include "recorder/settings.def"
    fprintf(stderr, "recorder: unknown setting '%s'\n", key);
}

static void set(rec_settings *s, const char *key, const char *value) {
    if (strcmp(key, "name") == 0) {
        snprintf(s->name, sizeof s->name, "%s", value);
    } else if (strcmp(key, "log") == 0) {
        snprintf(s->log, sizeof s->log, "%s", value);
    } else if (strcmp(key, "orders") == 0) {
        snprintf(s->orders, sizeof s->orders, "%s", value);
    } else {
        set_number(s, key, value);
    }
}

/* False: there is no such file. */
static bool read_file(rec_settings *s, const char *path) {
    char line[640];
    FILE *f = fopen(path, "r");
    *s = (rec_settings){
        .name = "lagen recorder",
#define REC_NUMBER(key, otherwise) .key = otherwise,
#include "recorder/settings.def"
    };
    if (f == NULL) {
        return false;
    }
    while (fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *value = strchr(line, ' ');
        if (line[0] != '\0' && line[0] != '#' && value != NULL) {
            *value = '\0';
            set(s, line, value + 1);
        }
    }
    fclose(f);
    return true;
}

void rec_settings_load(rec_settings *s) {
    const char *path = getenv("LAGEN_RECORDER");
    if (!read_file(s, path == NULL ? "/dev/null" : path)) {
        fprintf(stderr, "recorder: %s cannot be read; its defaults hold\n", path);
    }
}

void rec_note(const char *format, ...) {
    if (rec.log == NULL) {
        return;
    }
    va_list args;
    va_start(args, format);
    vfprintf(rec.log, format, args);
    va_end(args);
    fputc('\n', rec.log);
    fflush(rec.log);
}

/* Calls are counted from `base`. */
static void order(const rec_settings *s, unsigned base) {
    if (s->fail_call != 0) {
        rec.fail = (rec_failure){.at = base + (unsigned)s->fail_call,
                                 .code = (rt_cu_result)s->fail_code,
                                 .again = (unsigned)s->fail_again,
                                 .again_code = (rt_cu_result)s->fail_again_code,
                                 .times = (unsigned)s->fail_times};
    }
}

/* `base`: calls that were counted before this one. */
static void read_orders(unsigned base) {
    rec_settings s;
    if (rec.s.orders[0] != '\0' && read_file(&s, rec.s.orders)) {
        order(&s, base);
        unlink(rec.s.orders);
    }
}

static void load_settings(void) {
    rec_settings_load(&rec.s);
    order(&rec.s, 0);
    if (rec.log != NULL) {
        fclose(rec.log);
    }
    rec.log = rec.s.log[0] == '\0' ? NULL : fopen(rec.s.log, "w");
    rec.loaded = true;
}

void rec_begin(void) {
    if (rec.contexts == 0) {
        load_settings();
    }
}

/* Codes after which every later call fails alike. Source: comments of CUresult in cuda.h 13.0. */
static bool takes_context(rt_cu_result r) {
    return r == RT_CU_ECC_UNCORRECTABLE || r == RT_CU_ILLEGAL_ADDRESS ||
           r == RT_CU_LAUNCH_TIMEOUT ||
           (r >= RT_CU_HARDWARE_STACK_ERROR && r <= RT_CU_LAUNCH_FAILED) || r == RT_CU_ASSERT;
}

/* The failure that is due now; the next one takes its place. */
static rt_cu_result fail_now(rec_failure *f) {
    rt_cu_result code = f->code;
    f->at = f->again == 0 || f->times == 1 ? 0 : f->at + f->again;
    f->times -= f->times > 0;
    f->code = f->again_code;
    return code;
}

rt_cu_result rec_enter(const char *call, rec_needs needs) {
    pthread_mutex_lock(&rec.lock);
    if (!rec.loaded) {
        load_settings();
    }
    read_orders(rec.calls++);
    rec.last = call;
    if (rec.s.log_calls != 0) {
        rec_note("call %u %s", rec.calls, call);
    }
    if (rec.lost != RT_CU_SUCCESS) {
        return rec.lost;
    }
    if (rec.fail.at != 0 && rec.calls == rec.fail.at) {
        rt_cu_result code = fail_now(&rec.fail);
        rec.lost = takes_context(code) ? code : RT_CU_SUCCESS;
        return code;
    }
    if (needs != REC_NOTHING && !rec.initialized) {
        return rec_refuse(REC_not_initialized);
    }
    return needs == REC_CONTEXT && !rec_has_context ? rec_refuse(REC_no_context) : RT_CU_SUCCESS;
}

rt_cu_result rec_leave(const char *call, rt_cu_result result) {
    if (takes_context(result)) {
        rec.lost = result;
    }
    if (result != RT_CU_SUCCESS) {
        rec_note("call %u %s: %u", rec.calls, call, result);
    }
    pthread_mutex_unlock(&rec.lock);
    return result;
}

/* ---- control.h */

lagen_recorder_calls_fn lagen_recorder_calls;
lagen_recorder_fail_fn lagen_recorder_fail;
lagen_recorder_fail_again_fn lagen_recorder_fail_again;
lagen_recorder_launches_fn lagen_recorder_launches;
lagen_recorder_bytes_fn lagen_recorder_bytes;
lagen_recorder_last_fn lagen_recorder_last;

unsigned lagen_recorder_calls(void) {
    return rec.calls;
}

void lagen_recorder_fail(unsigned k, unsigned code) {
    pthread_mutex_lock(&rec.lock);
    if (!rec.loaded) {
        load_settings();
    }
    rec.fail = (rec_failure){.at = k == 0 ? 0 : rec.calls + k, .code = code};
    pthread_mutex_unlock(&rec.lock);
}

void lagen_recorder_fail_again(unsigned after, unsigned code, unsigned times) {
    pthread_mutex_lock(&rec.lock);
    rec.fail.again = after;
    rec.fail.again_code = code;
    rec.fail.times = times;
    pthread_mutex_unlock(&rec.lock);
}

unsigned long long lagen_recorder_launches(void) {
    return rec.launches;
}

unsigned long long lagen_recorder_bytes(void) {
    return rec.device_bytes;
}

const char *lagen_recorder_last(void) {
    return rec.last;
}
