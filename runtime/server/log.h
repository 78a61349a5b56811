/* log.h -- one line an event on stderr, as text or as JSON. Any thread may write. */
#ifndef RT_SERVER_LOG_H
#define RT_SERVER_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rt_log {
    pthread_mutex_t lock;
    int fd;
    bool json;
} rt_log;

typedef enum rt_log_kind { RT_LOG_TEXT, RT_LOG_UINT, RT_LOG_MS } rt_log_kind;

typedef struct rt_log_field {
    const char *key; /* a plain word */
    rt_log_kind kind;
    const char *text; /* cut where the line is full */
    uint64_t number;
    double seconds; /* RT_LOG_MS: printed as milliseconds */
} rt_log_field;

#define RT_LOG_S(k, v) ((rt_log_field){.key = (k), .kind = RT_LOG_TEXT, .text = (v)})
#define RT_LOG_U(k, v) ((rt_log_field){.key = (k), .kind = RT_LOG_UINT, .number = (v)})
#define RT_LOG_T(k, v) ((rt_log_field){.key = (k), .kind = RT_LOG_MS, .seconds = (v)})

bool rt_log_init(rt_log *l, int fd, bool json);
void rt_log_free(rt_log *l);

/* `level` is info, warning or error; `event` a word or two. Fields whose text is NULL are left out.
 */
void rt_log_write(rt_log *l, const char *level, const char *event, const rt_log_field *fields,
                  size_t n_fields);
#define RT_LOG(l, level, event, ...)                                                               \
    rt_log_write((l), (level), (event), (const rt_log_field[]){__VA_ARGS__},                       \
                 sizeof((const rt_log_field[]){__VA_ARGS__}) / sizeof(rt_log_field))

#endif
