/* env.c -- the variables of the environment that libcuda reads by itself. They are shown or
 * refused, never obeyed in silence. Source: CUDA C++ Programming Guide 13.0, "CUDA Environment
 * Variables". */
#include "cuda/cuda.h"

#include <stdio.h>
#include <string.h>

extern char **environ;

/* Read by build tools, not by the driver. */
static const char *const OTHERS[] = {"CUDA_HOME", "CUDA_PATH",    "CUDA_ROOT",
                                     "CUDA_DIR",  "CUDA_VERSION", "CUDA_PKG_"};

/* With it libcuda compiles PTX and ignores the cubins that were proved. */
static const char REFUSED[] = "CUDA_FORCE_PTX_JIT=";

static bool is_drivers(const char *var) {
    if (strncmp(var, "CUDA_", 5) != 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        if (strncmp(var, OTHERS[i], strlen(OTHERS[i])) == 0) {
            return false;
        }
    }
    return true;
}

bool rt_cuda_env(char *shown, size_t size, lb_err *err) {
    size_t at = 0;
    shown[0] = '\0';
    for (char **v = environ; *v != NULL; v++) {
        if (!is_drivers(*v)) {
            continue;
        }
        if (strncmp(*v, REFUSED, sizeof REFUSED - 1) == 0 &&
            strcmp(*v + sizeof REFUSED - 1, "0") != 0) {
            return lb_err_set(
                err, LB_BAD_VALUE,
                "the environment has %s: the driver would replace the proved kernels; unset it",
                *v);
        }
        int n = snprintf(shown + at, size - at, "%s%s", at == 0 ? "" : " ", *v);
        if (n < 0 || (size_t)n >= size - at) {
            return lb_err_set(err, LB_BAD_VALUE,
                              "the environment has more than %zu bytes of CUDA_ variables", size);
        }
        at += (size_t)n;
    }
    return true;
}
