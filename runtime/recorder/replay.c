/* replay.c -- makes the launches of a list on the recorder, linked in: `lagen verify --replay` runs
 * it. Nothing is executed.
 *
 *   lagen-replay LIST        settings as for the recorder (LAGEN_RECORDER)
 * Lines of the list:
 *   alloc BYTES
 *   module PATH KERNEL       modules count from 0
 *   launch MODULE X Y Z BLOCK SMEM LABEL
 * Exit status 1 with the refused line and the driver's code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/entry.h"

enum { MODULES_MAX = 4096, LINE_BYTES = 8192 };

typedef struct replay {
    void *images[MODULES_MAX]; /* stay until the end, as embedded ones do */
    rt_cu_module modules[MODULES_MAX];
    rt_cu_function functions[MODULES_MAX];
    unsigned n_functions;
    unsigned char params[REC_PARAM_BYTES_MAX]; /* no kernel runs: any bytes do */
} replay;

static int refused(const char *line, const char *call, rt_cu_result r) {
    const char *name = NULL;
    if (cuGetErrorName(r, &name) != RT_CU_SUCCESS) {
        name = "?";
    }
    fprintf(stderr, "%s: %s (%u)\n  %s\n", call, name, r, line);
    return 1;
}

static void *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    if (f != NULL && fseek(f, 0, SEEK_END) == 0) {
        long n = ftell(f);
        data = n < 64 ? NULL : malloc((size_t)n);
        rewind(f);
        if (data != NULL && fread(data, 1, (size_t)n, f) != (size_t)n) {
            free(data);
            data = NULL;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return data;
}

static int add_module(replay *p, const char *line) {
    static char path[LINE_BYTES];
    static char kernel[LINE_BYTES];
    unsigned at = p->n_functions;
    if (sscanf(line, "module %8000s %8000s", path, kernel) != 2 || p->n_functions == MODULES_MAX) {
        return refused(line, "module", RT_CU_INVALID_VALUE);
    }
    p->images[at] = read_file(path);
    rt_cu_result r = p->images[at] == NULL ? RT_CU_INVALID_IMAGE
                                           : cuModuleLoadData(&p->modules[at], p->images[at]);
    if (r != RT_CU_SUCCESS) {
        return refused(line, "cuModuleLoadData", r);
    }
    r = cuModuleGetFunction(&p->functions[p->n_functions++], p->modules[at], kernel);
    return r == RT_CU_SUCCESS ? 0 : refused(line, "cuModuleGetFunction", r);
}

static int make_launch(replay *p, const char *line) {
    unsigned module = 0;
    rt_cu_launch_config c = {.block = {0, 1, 1}};
    if (sscanf(line, "launch %u %u %u %u %u %u", &module, &c.grid[0], &c.grid[1], &c.grid[2],
               &c.block[0], &c.smem_bytes) != 6 ||
        module >= p->n_functions) {
        return refused(line, "launch", RT_CU_INVALID_VALUE);
    }
    rt_cu_result r = RT_CU_SUCCESS;
    if (c.smem_bytes > 48 * 1024) {
        r = cuFuncSetAttribute(p->functions[module], RT_CU_FUNC_DYNAMIC_SHARED_BYTES,
                               (int)c.smem_bytes);
    }
    if (r != RT_CU_SUCCESS) {
        return refused(line, "cuFuncSetAttribute", r);
    }
    void *list[] = {p->params};
    r = cuLaunchKernelEx(&c, p->functions[module], list, NULL);
    return r == RT_CU_SUCCESS ? 0 : refused(line, "cuLaunchKernelEx", r);
}

static int make_alloc(const char *line) {
    rt_cu_ptr at = 0;
    rt_cu_result r = cuMemAlloc_v2(&at, strtoull(line + 6, NULL, 10));
    return r == RT_CU_SUCCESS ? 0 : refused(line, "cuMemAlloc_v2", r);
}

static int one_line(replay *p, const char *line) {
    if (strncmp(line, "launch ", 7) == 0) {
        return make_launch(p, line);
    }
    if (strncmp(line, "module ", 7) == 0) {
        return add_module(p, line);
    }
    return strncmp(line, "alloc ", 6) == 0 ? make_alloc(line)
                                           : refused(line, "a line", RT_CU_INVALID_VALUE);
}

static void clean_up(replay *p, rt_cu_context context) {
    for (unsigned i = 0; i < MODULES_MAX; i++) {
        if (p->modules[i] != NULL) {
            cuModuleUnload(p->modules[i]);
        }
        free(p->images[i]);
    }
    cuCtxDestroy_v2(context);
}

int main(int argc, char **argv) {
    static replay p;
    static char line[LINE_BYTES];
    rt_cu_context context = NULL;
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (f == NULL) {
        fprintf(stderr, "usage: lagen-replay LIST\n");
        return 2;
    }
    rt_cu_result r = cuInit(0);
    r = r != RT_CU_SUCCESS ? r : cuCtxCreate_v4(&context, NULL, 0, 0);
    int status = r == RT_CU_SUCCESS ? 0 : refused("the first device", "cuCtxCreate_v4", r);
    while (status == 0 && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        status = one_line(&p, line);
    }
    fclose(f);
    if (context != NULL) {
        clean_up(&p, context);
    }
    return status;
}
