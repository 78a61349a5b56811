/* hw.c -- finding rows, and what they tell; see hw.h. POSIX. */
#define _POSIX_C_SOURCE 200809L
#include "hw.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>

#include "hw_rows.h"

enum { CPUINFO_BYTES_MAX = 4 << 20, NAMES_BYTES = 200 };

static const lg_hw_row rows[] = {
#define HW_CPU(name_, machine_, triple_, isa_, bits, flags_, features_) \
    {.name = name_, .machine = machine_, .triple = triple_, .isa = isa_, .flags = flags_, \
     .features = features_, .host = name_, .vector_bits = bits, HW_CPU_LIMITS},
#include "hw.def"
#define HW_GPU(name_, major, minor, threads, ctas, smem, cluster, host_, caps_) \
    {.name = name_, .gpu = true, .machine = "", .triple = "", .isa = "isa_cuda.h", \
     .flags = "-arch=" name_, .features = "", .host = host_, .caps = caps_, \
     .compute_major = major, .compute_minor = minor, .threads_per_sm = threads, \
     .ctas_per_sm = ctas, .smem_per_sm_bytes = smem * 1024, \
     .smem_per_cta_bytes = smem * 1024 - 1024, .cluster_ctas_max = cluster, HW_GPU_LIMITS},
#include "hw.def"
};

static const lg_hw_device devices[] = {
#define HW_DEVICE(name_, row_, sms_, l2, bandwidth, memory, tops) \
    {.name = name_, .row = row_, .sms = sms_, .l2_bytes = (uint64_t)l2 << 20, \
     .bandwidth_bytes = bandwidth * 1000000000ULL, .memory_bytes = (uint64_t)memory << 20, \
     .int8_ops = tops * 1000000000000ULL},
#include "hw.def"
};

enum {
    N_ROWS = sizeof rows / sizeof *rows,
    N_DEVICES = sizeof devices / sizeof *devices
};

const lg_hw_number lg_hw_numbers[] = {
#define HW_NUMBER(field) {#field, offsetof(lg_hw_row, field)},
#include "hw.def"
    {NULL, 0}};

const char *const lg_hw_cap_names[] = {
#define HW_CAP(cap, field) #field,
#include "hw.def"
    NULL};

const lg_hw_row *lg_hw_rows(size_t *n) {
    *n = N_ROWS;
    return rows;
}

const lg_hw_device *lg_hw_devices(size_t *n) {
    *n = N_DEVICES;
    return devices;
}

uint64_t lg_hw_number_of(const lg_hw_row *row, const lg_hw_number *number) {
    uint64_t v = 0;
    memcpy(&v, (const char *)row + number->offset, sizeof v);
    return v;
}

/* Whether `word` (n bytes) is one of the blank-separated words of the line. */
static bool has_word(const char *line, size_t n_line, const char *word, size_t n) {
    for (size_t at = 0; at + n <= n_line; at++) {
        bool starts = at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t' || line[at - 1] == ':';
        bool ends = at + n == n_line || line[at + n] == ' ';
        if (starts && ends && memcmp(line + at, word, n) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_feature_line(const char *line) {
    return strncmp(line, "flags\t", 6) == 0 || strncmp(line, "Features\t", 9) == 0;
}

/* Whether there is a feature line and all of them have the word. */
static bool every_core_has(const char *cpuinfo, const char *word, size_t n) {
    bool seen = false;
    for (const char *line = cpuinfo; *line != '\0';) {
        size_t len = strcspn(line, "\n");
        if (is_feature_line(line)) {
            seen = true;
            if (!has_word(line, len, word, n)) {
                return false;
            }
        }
        line += len + (line[len] == '\n');
    }
    return seen;
}

static bool fits(const lg_hw_row *row, const char *machine, const char *cpuinfo) {
    if (row->gpu || strcmp(row->machine, machine) != 0) {
        return false;
    }
    for (const char *word = row->features; *word != '\0';) {
        size_t n = strcspn(word, " ");
        if (!every_core_has(cpuinfo, word, n)) {
            return false;
        }
        word += n + (word[n] == ' ');
    }
    return true;
}

const lg_hw_row *lg_hw_best(const char *machine, const char *cpuinfo) {
    const lg_hw_row *best = NULL;
    for (size_t i = 0; i < N_ROWS; i++) {
        if (fits(&rows[i], machine, cpuinfo)) {
            best = &rows[i];
        }
    }
    return best;
}

/* This machine's name and /proc/cpuinfo (which tells no size, so it is read to its end). */
static bool read_machine(struct utsname *name, lb_arena *arena, char **cpuinfo, lb_err *err) {
    static const char path[] = "/proc/cpuinfo";
    if (uname(name) < 0) {
        return lb_err_set(err, LB_IO, "uname failed");
    }
    char *text = lb_alloc(arena, CPUINFO_BYTES_MAX, err);
    if (text == NULL) {
        return false;
    }
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        return lb_err_set(err, LB_IO, "%s: cannot be opened, so 'native' is not known; name a row",
                          path);
    }
    size_t n = fread(text, 1, CPUINFO_BYTES_MAX - 1, f);
    bool bad = ferror(f) != 0;
    fclose(f);
    text[n] = '\0';
    *cpuinfo = text;
    return !bad || lb_err_set(err, LB_IO, "%s: cannot be read", path);
}

static bool find_native(const lg_hw_row **out, lb_err *err) {
    lb_arena arena;
    struct utsname name;
    char *cpuinfo = NULL;
    lb_arena_init(&arena, "cpuinfo", 2ULL * CPUINFO_BYTES_MAX);
    bool ok = read_machine(&name, &arena, &cpuinfo, err);
    const lg_hw_row *best = ok ? lg_hw_best(name.machine, cpuinfo) : NULL;
    lb_arena_reset(&arena);
    if (ok && best == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED, "this machine (%s) has the features of no CPU row",
                          name.machine);
    }
    if (ok) {
        *out = best;
    }
    return ok;
}

bool lg_hw_runs_here(const lg_hw_row *row) {
    lb_arena arena;
    struct utsname name;
    char *cpuinfo = NULL;
    lb_arena_init(&arena, "cpuinfo", 2ULL * CPUINFO_BYTES_MAX);
    bool yes = read_machine(&name, &arena, &cpuinfo, NULL) && fits(row, name.machine, cpuinfo);
    lb_arena_reset(&arena);
    return yes;
}

/* Appends ", name" to a list of at most NAMES_BYTES. */
static void add_name(char *list, size_t *n, const char *name) {
    int put = snprintf(list + *n, NAMES_BYTES - *n, "%s%s", *n == 0 ? "" : ", ", name);
    *n += put < 0 ? 0 : (size_t)put;
    *n = *n < NAMES_BYTES ? *n : NAMES_BYTES - 1;
}

/* The only device whose name has `part` in it, whatever the case of letters; NULL: none or several. */
static const lg_hw_device *device_like(const char *part) {
    enum { LEAST = 4 };
    const lg_hw_device *found = NULL;
    size_t n = strlen(part);
    for (size_t i = 0; n >= LEAST && i < N_DEVICES; i++) {
        for (const char *at = devices[i].name; *at != '\0'; at++) {
            if (strncasecmp(at, part, n) == 0) {
                if (found != NULL && found != &devices[i]) {
                    return NULL;
                }
                found = &devices[i];
            }
        }
    }
    return found;
}

bool lg_hw_find(const char *name, const lg_hw_row **out, lb_err *err) {
    if (strcmp(name, "native") == 0) {
        return find_native(out, err);
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            *out = &rows[i];
            return true;
        }
    }
    const lg_hw_device *board = device_like(name);
    if (board != NULL) {
        return lb_err_set(err, LB_MISSING,
                          "no target '%.40s', which is a board: --arch %s is its row, and `lagen report "
                          "--device %s` shows its times",
                          name, board->row, board->name);
    }
    return lb_err_set(err, LB_MISSING, "no target '%.40s'; `lagen targets` lists those there are",
                      name);
}

const lg_hw_device *lg_hw_board_of(const lg_hw_row *row) {
    for (size_t i = 0; i < N_DEVICES; i++) {
        const lg_hw_row *r = NULL;
        if (lg_hw_find(devices[i].row, &r, NULL) && row->gpu &&
            r->compute_major == row->compute_major && r->compute_minor == row->compute_minor) {
            return &devices[i];
        }
    }
    return NULL;
}

bool lg_hw_find_device(const char *name, const lg_hw_device **out, lb_err *err) {
    char known[NAMES_BYTES] = "";
    size_t n = 0;
    for (size_t i = 0; i < N_DEVICES; i++) {
        if (strcmp(devices[i].name, name) == 0) {
            *out = &devices[i];
            return true;
        }
        add_name(known, &n, devices[i].name);
    }
    return lb_err_set(err, LB_MISSING, "no device '%.40s'; there are %s", name, known);
}

const char *lg_hw_name(const lg_hw_row *row) {
    return row->name;
}

const char *lg_hw_language(const lg_hw_row *row) {
    return row->gpu ? "cu" : "c";
}

bool lg_hw_has(const lg_hw_row *row, lg_hw_cap cap) {
    return (row->caps & (uint32_t)cap) != 0;
}

void lg_hw_grid_max(const lg_hw_row *row, uint64_t out[3]) {
    out[0] = row->grid_x_max;
    out[1] = row->grid_y_max;
    out[2] = row->grid_z_max;
}
