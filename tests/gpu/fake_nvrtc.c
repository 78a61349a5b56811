/* fake_nvrtc.c -- stands in for libnvrtc.so.13 where there is no toolkit, as fake_nvcc does for nvcc, which it
 * calls: `nvcc` on PATH. FAKE_NVRTC_MINOR is the minor version that it tells. One program at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

typedef struct fake {
    char name[256];
    char *text, *cubin;
    size_t n_bytes;
} *lg_nvrtc_program;

#define LG_NVRTC(name, parameters) unsigned name parameters;
#include "nvrtc.def"

unsigned nvrtcVersion(int *major, int *minor) {
    const char *told = getenv("FAKE_NVRTC_MINOR");
    *major = 13;
    *minor = told == NULL ? 0 : atoi(told);
    return 0;
}

unsigned nvrtcCreateProgram(lg_nvrtc_program *program, const char *text, const char *name, int n_headers,
                            const char *const *headers, const char *const *header_names) {
    lg_nvrtc_program p = calloc(1, sizeof *p);
    (void)headers;
    (void)header_names;
    if (p == NULL || n_headers == 0) {
        free(p);
        return 1;
    }
    snprintf(p->name, sizeof p->name, "%s", name);
    p->text = strdup(text);
    *program = p;
    return p->text == NULL;
}

unsigned nvrtcDestroyProgram(lg_nvrtc_program *program) {
    free((*program)->text);
    free((*program)->cubin);
    free(*program);
    *program = NULL;
    return 0;
}

static unsigned put(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    return f == NULL || fputs(text, f) < 0 || fclose(f) != 0;
}

static unsigned get(lg_nvrtc_program p, const char *path) {
    enum { MOST = 1 << 20 };
    FILE *f = fopen(path, "rb");
    p->cubin = malloc(MOST);
    p->n_bytes = f == NULL || p->cubin == NULL ? 0 : fread(p->cubin, 1, MOST, f);
    return f == NULL || fclose(f) != 0 || p->n_bytes == 0;
}

unsigned nvrtcCompileProgram(lg_nvrtc_program p, int n_options, const char *const *options) {
    char folder[] = "/tmp/lagen-nvrtc-XXXXXX";
    char path[64];
    char command[1024];
    const char *arch = "";
    for (int i = 0; i < n_options; i++) {
        arch = strncmp(options[i], "-arch=", 6) == 0 ? options[i] : arch;
    }
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/k.cu", folder);
    snprintf(command, sizeof command, "nvcc %s -MF %s/d -cubin %s/k.cu -o %s/k", arch, folder, folder, folder);
    unsigned bad = put(path, p->text) || system(command) != 0;
    snprintf(path, sizeof path, "%s/k", folder);
    bad = bad || get(p, path);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0 || bad;
}

unsigned nvrtcGetCUBINSize(lg_nvrtc_program p, size_t *n_bytes) {
    *n_bytes = p->n_bytes;
    return 0;
}

unsigned nvrtcGetCUBIN(lg_nvrtc_program p, char *cubin) {
    memcpy(cubin, p->cubin, p->n_bytes);
    return 0;
}

unsigned nvrtcGetProgramLogSize(lg_nvrtc_program p, size_t *n_bytes) {
    *n_bytes = strlen(p->name) + 1;
    return 0;
}

unsigned nvrtcGetProgramLog(lg_nvrtc_program p, char *log) {
    strcpy(log, p->name);
    return 0;
}
