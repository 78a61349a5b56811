/* hw.h -- the hardware rows of hw.def: row classes (an instruction set and its limits) and device
 * rows (real boards). C and templates ask a row for numbers and capabilities, not for its name. */
#ifndef LG_HW_H
#define LG_HW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "value.h"

enum lg_hw_cap_index {
#define HW_CAP(cap, field) LG_HW_INDEX_##cap,
#include "hw.def"
    LG_HW_N_CAPS
};

typedef enum lg_hw_cap {
#define HW_CAP(cap, field) LG_HW_##cap = 1U << LG_HW_INDEX_##cap,
#include "hw.def"
    LG_HW_NO_CAP = 0
} lg_hw_cap;

/* Numbers that a row does not have are 0, texts "". */
typedef struct lg_hw_row {
    const char *name;
    bool gpu;
    const char *machine;  /* uname -m of the box that runs the program's host side */
    const char *triple;   /* of the cross compiler for that box, as in "<triple>-gcc" */
    const char *isa;      /* header of the instruction layer in templates/lib */
    const char *flags;    /* for cc, or for nvcc */
    const char *features; /* names in /proc/cpuinfo that a CPU must have, one blank apart */
    const char *host;     /* default CPU row of the host side; a CPU row's own name */
    uint32_t caps;        /* of lg_hw_cap */
#define HW_NUMBER(field) uint64_t field;
#include "hw.def"
} lg_hw_row;

typedef struct lg_hw_device {
    const char *name;
    const char *row; /* name of its row class */
    uint64_t sms;
    uint64_t l2_bytes;
    uint64_t bandwidth_bytes; /* per second, data sheet */
    uint64_t memory_bytes;
    uint64_t int8_ops; /* per second, data sheet: tensor operations, two for a multiply-add */
} lg_hw_device;

/* The row of this name; "native" is the best CPU row that this machine can run. LB_MISSING with the
 * known names for others; "native" fails with LB_UNSUPPORTED on a machine that no row fits. */
bool lg_hw_find(const char *name, const lg_hw_row **out, lb_err *err);
bool lg_hw_find_device(const char *name, const lg_hw_device **out, lb_err *err);

/* The first board of hw.def that has the row's compute capability; NULL if none has. */
const lg_hw_device *lg_hw_board_of(const lg_hw_row *row);

/* All rows and devices, in the order of hw.def. */
const lg_hw_row *lg_hw_rows(size_t *n);
const lg_hw_device *lg_hw_devices(size_t *n);

/* The best CPU row for a machine (uname -m) with the given text of /proc/cpuinfo, or NULL. A
 * feature counts only if every "flags" or "Features" line lists it: cores may differ. */
const lg_hw_row *lg_hw_best(const char *machine, const char *cpuinfo);

/* Whether this machine can run the CPU row's programs itself. False for GPU rows. */
bool lg_hw_runs_here(const lg_hw_row *row);

const char *lg_hw_name(const lg_hw_row *row);

/* "c" or "cu": which kernel files, kernel/<family>.<language>.lua, serve the row. */
const char *lg_hw_language(const lg_hw_row *row);

bool lg_hw_has(const lg_hw_row *row, lg_hw_cap cap);

/* The largest grid on x, y and z. */
void lg_hw_grid_max(const lg_hw_row *row, uint64_t out[3]);

/* What kernels may see of a row: isa, vec_f32 (CPU), every number that is not 0, every capability
 * as a bool; not its name. NULL if the builder has failed. */
lg_value *lg_hw_value(const lg_hw_row *row, lg_builder *b);

/* All rows and devices: a table for people, or a JSON list of objects with `name`, `kind` ("cpu",
 * "gpu", "device"), every text, number and capability. The same on every machine, but for the last
 * line of the table, which says what native is here. */
bool lg_targets(bool json, lb_text *out, lb_err *err);

#endif
