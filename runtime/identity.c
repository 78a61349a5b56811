/* identity.c -- see identity.h. */
#define _GNU_SOURCE
#include "identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#if defined(__aarch64__)

/* Bits of AT_HWCAP and AT_HWCAP2: Linux, arch/arm64/include/uapi/asm/hwcap.h; the names are those
 * of /proc/cpuinfo. Read from the auxiliary vector because an emulator answers there for the CPU
 * that it emulates. */
static const struct hwcap {
    const char *name;
    unsigned type;
    unsigned bit;
} HWCAPS[] = {
    {"fp", AT_HWCAP, 0},         {"asimd", AT_HWCAP, 1},    {"aes", AT_HWCAP, 3},
    {"sha2", AT_HWCAP, 6},       {"crc32", AT_HWCAP, 7},    {"atomics", AT_HWCAP, 8},
    {"fphp", AT_HWCAP, 9},       {"asimdhp", AT_HWCAP, 10}, {"asimdrdm", AT_HWCAP, 12},
    {"asimddp", AT_HWCAP, 20},   {"sve", AT_HWCAP, 22},     {"asimdfhm", AT_HWCAP, 23},
    {"sve2", AT_HWCAP2, 1},      {"svei8mm", AT_HWCAP2, 9}, {"svebf16", AT_HWCAP2, 12},
    {"i8mm", AT_HWCAP2, 13},     {"bf16", AT_HWCAP2, 14},
};

bool rt_cpu_flags(char *out, size_t size, lb_err *err) {
    size_t at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < sizeof HWCAPS / sizeof HWCAPS[0]; i++) {
        if ((getauxval(HWCAPS[i].type) >> HWCAPS[i].bit & 1U) == 0) {
            continue;
        }
        size_t n = strlen(HWCAPS[i].name);
        if (n + 2 > size - at) {
            return lb_err_set(err, LB_LIMIT, "CPU features: more than %zu bytes of names", size);
        }
        memcpy(out + at, HWCAPS[i].name, n);
        at += n;
        out[at++] = ' ';
        out[at] = '\0';
    }
    return true;
}

#else

/* The first "flags" line; it is longer than one fgets when the buffer is small. */
bool rt_cpu_flags(char *out, size_t size, lb_err *err) {
    FILE *f = fopen("/proc/cpuinfo", "re");
    if (f == NULL) {
        return lb_err_set(err, LB_IO, "/proc/cpuinfo: cannot be read: %s", strerror(errno));
    }
    bool found = false;
    while (!found && fgets(out, size > INT32_MAX ? INT32_MAX : (int)size, f) != NULL) {
        found = strncmp(out, "flags", 5) == 0;
    }
    fclose(f);
    if (!found) {
        return lb_err_set(err, LB_IO, "/proc/cpuinfo: no line 'flags'");
    }
    if (strchr(out, '\n') == NULL) {
        return lb_err_set(err, LB_LIMIT, "/proc/cpuinfo: a line of more than %zu bytes", size);
    }
    const char *names = strchr(out, ':');
    names = names == NULL ? out : names + 1;
    memmove(out, names, strlen(names) + 1);
    return true;
}

#endif

/* True if `name` is one of the words of `flags`. */
static bool has_word(const char *flags, const char *name) {
    size_t n = strlen(name);
    const char *p = flags;
    while (*p != '\0') {
        p += strspn(p, " \t\n");
        size_t word = strcspn(p, " \t\n");
        if (word == n && strncmp(p, name, n) == 0) {
            return true;
        }
        p += word;
    }
    return false;
}

bool rt_identity_compare(const rt_model *m, const char *flags, lb_err *err) {
    char missing[LB_ERR_TEXT_BYTES] = "";
    size_t at = 0;
    for (size_t i = 0; m->cpu_features != NULL && m->cpu_features[i] != NULL; i++) {
        if (has_word(flags, m->cpu_features[i])) {
            continue;
        }
        int n = snprintf(missing + at, sizeof missing - at, "%s%s", at == 0 ? "" : ", ",
                         m->cpu_features[i]);
        at += n < 0 ? 0 : (size_t)n;
        if (at >= sizeof missing) {
            break;
        }
    }
    if (at == 0) {
        return true;
    }
    return lb_err_set(err, LB_WRONG_BOX,
                      "this CPU is not one that the program was made for (%s); it lacks %s",
                      m->arch_row, missing);
}

/* What this CPU calls itself; "this CPU" where it does not say. */
static const char *cpu_name(char *line, size_t size) {
    FILE *f = fopen("/proc/cpuinfo", "re");
    const char *name = NULL;
    line[0] = '\0'; /* where nothing can be read */
    while (f != NULL && name == NULL && fgets(line, (int)size, f) != NULL) {
        name = strncmp(line, "model name", 10) == 0 ? strchr(line, ':') : NULL;
    }
    if (f != NULL) {
        fclose(f);
    }
    line[strcspn(line, "\n")] = '\0';
    return name == NULL ? "this CPU" : name + 1 + strspn(name + 1, " ");
}

bool rt_identity_check(const rt_model *m, lb_err *err) {
    if (m->abi_version != RT_ABI_VERSION) {
        return lb_err_set(err, LB_DAMAGED,
                          "the emitted code speaks version %u of the model ABI, the runtime %d; "
                          "build the folder again",
                          m->abi_version, RT_ABI_VERSION);
    }
    char flags[RT_CPU_FLAGS_BYTES];
    char line[128];
    return rt_cpu_flags(flags, sizeof flags, err) &&
           (rt_identity_compare(m, flags, err) ||
            lb_err_prefix(err, "%s", cpu_name(line, sizeof line)));
}
