/* nvrtc.c -- NVRTC, opened at run time and called in process; the only file that knows its
 * interface. POSIX (dlopen), and dladdr, which glibc and musl have. */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cuda_compiler.h"

enum { OPTIONS_MAX = 32, HEADERS_MAX = 64, LOG_BYTES_MAX = 1 << 20 };

typedef struct _nvrtcProgram *lg_nvrtc_program; /* the toolkit's tag */

struct lg_nvrtc {
    void *library;
#define LG_NVRTC(name, parameters) unsigned(*name) parameters;
#include "nvrtc.def"
};

/* From the loader's own path, else from where a toolkit lies. */
static void *open_library(void) {
    static const char NAME[] = "libnvrtc.so.13";
    const char *const homes[] = {getenv("CUDA_HOME"), "/usr/local/cuda"};
    void *library = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library == NULL && i < sizeof homes / sizeof *homes; i++) {
        char path[1024];
        if (homes[i] != NULL &&
            snprintf(path, sizeof path, "%s/lib64/%s", homes[i], NAME) < (int)sizeof path) {
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    }
    return library;
}

static bool find(void *library, const char *name, void *to, lb_err *err) {
    void *at = dlsym(library, name);
    if (at == NULL) {
        return lb_err_set(err, LB_MISSING, "libnvrtc.so.13 has no %s", name);
    }
    memcpy(to, &at, sizeof at);
    return true;
}

static bool find_all(lg_nvrtc *n, lb_err *err) {
    return true
#define LG_NVRTC(name, parameters) &&find(n->library, #name, &n->name, err)
#include "nvrtc.def"
        ;
}

bool lg_nvrtc_open(lg_nvrtc **out, int *major, int *minor, lb_err *err) {
    lg_nvrtc *n = calloc(1, sizeof *n);
    if (n == NULL) {
        return lb_err_set(err, LB_NO_MEMORY, "no memory for NVRTC");
    }
    n->library = open_library();
    bool ok = n->library != NULL ||
              lb_err_set(err, LB_MISSING,
                         "libnvrtc.so.13 is not here; it comes with the CUDA toolkit 13");
    ok = ok && find_all(n, err) &&
         (n->nvrtcVersion(major, minor) == 0 ||
          lb_err_set(err, LB_UNSUPPORTED, "libnvrtc.so.13 tells no version"));
    if (!ok) {
        lg_nvrtc_close(n);
        return false;
    }
    *out = n;
    return true;
}

bool lg_nvrtc_file(const lg_nvrtc *n, lb_arena *arena, const char **out, lb_err *err) {
    Dl_info info;
    struct stat st;
    char path[PATH_MAX];
    void *entry = NULL;
    memcpy(&entry, &n->nvrtcVersion, sizeof entry);
    if (dladdr(entry, &info) == 0 || realpath(info.dli_fname, path) == NULL ||
        stat(path, &st) != 0) {
        return lb_err_set(err, LB_MISSING, "the file of libnvrtc.so.13 is not to be found");
    }
    const char *slash = strrchr(path, '/');
    *out = lb_format(arena, err, "%s, %" PRIu64 " bytes", slash == NULL ? path : slash + 1,
                     (uint64_t)st.st_size);
    return *out != NULL;
}

void lg_nvrtc_close(lg_nvrtc *n) {
    if (n != NULL) {
        if (n->library != NULL) {
            dlclose(n->library);
        }
        free(n);
    }
}

/* The compiler's first message, in the error. */
static bool tell(lg_nvrtc *n, lg_nvrtc_program program, const char *name, lb_arena *arena,
                 lb_err *err) {
    size_t size = 0;
    char *log = NULL;
    if (n->nvrtcGetProgramLogSize(program, &size) == 0 && size > 0 && size <= LOG_BYTES_MAX) {
        log = lb_alloc(arena, size + 1, NULL);
    }
    if (log == NULL || n->nvrtcGetProgramLog(program, log) != 0) {
        return lb_err_set(err, LB_SYNTAX, "%s: NVRTC refuses it and says nothing", name);
    }
    const char *first = strstr(log, "error");
    first = first == NULL ? log : first;
    while (first > log && first[-1] != '\n') {
        first--;
    }
    return lb_err_set(err, LB_SYNTAX, "%.*s", (int)strcspn(first, "\n"), first);
}

static bool take_cubin(lg_nvrtc *n, lg_nvrtc_program program, const char *name, lb_arena *arena,
                       void **cubin, size_t *n_bytes, lb_err *err) {
    size_t size = 0;
    if (n->nvrtcGetCUBINSize(program, &size) != 0 || size == 0) {
        return lb_err_set(err, LB_SYNTAX, "%s: NVRTC made no cubin; is its -arch a real one?",
                          name);
    }
    void *to = lb_alloc(arena, size, err);
    if (to == NULL) {
        return false;
    }
    *cubin = to;
    *n_bytes = size;
    return n->nvrtcGetCUBIN(program, to) == 0 ||
           lb_err_set(err, LB_SYNTAX, "%s: NVRTC gives no cubin", name);
}

bool lg_nvrtc_compile(lg_nvrtc *n, const lg_cuda_source *s, lb_arena *arena, void **cubin,
                      size_t *n_bytes, lb_err *err) {
    static const char *const own[] = {"-std=c++17", "-fmad=false"};
    const char *options[OPTIONS_MAX];
    const char *texts[HEADERS_MAX];
    const char *names[HEADERS_MAX];
    int n_options = 0;
    if (s->n_flags > OPTIONS_MAX - 2 || s->n_headers > HEADERS_MAX) {
        return lb_err_set(err, LB_LIMIT, "%s: too many flags or headers for NVRTC", s->name);
    }
    for (uint32_t i = 0; i < 2; i++) {
        options[n_options++] = own[i];
    }
    for (uint32_t i = 0; i < s->n_flags; i++) {
        options[n_options++] = s->flags[i];
    }
    for (uint32_t i = 0; i < s->n_headers; i++) {
        texts[i] = s->headers[i].text;
        names[i] = s->headers[i].name;
    }
    lg_nvrtc_program program = NULL;
    if (n->nvrtcCreateProgram(&program, s->text, s->name, (int)s->n_headers, texts, names) != 0) {
        return lb_err_set(err, LB_NO_MEMORY, "%s: NVRTC cannot begin", s->name);
    }
    bool ok = n->nvrtcCompileProgram(program, n_options, options) == 0 ||
              tell(n, program, s->name, arena, err);
    ok = ok && take_cubin(n, program, s->name, arena, cubin, n_bytes, err);
    n->nvrtcDestroyProgram(&program);
    return ok;
}
