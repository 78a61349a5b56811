/* hw_text.c -- rows as values, as a table and as JSON; see hw.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hw.h"
#include "hw_rows.h"
#include "value_text.h"

static void set_numbers(lg_builder *b, lg_value *map, const lg_hw_row *row) {
    for (const lg_hw_number *n = lg_hw_numbers; n->name != NULL; n++) {
        uint64_t v = lg_hw_number_of(row, n);
        if (v != 0) {
            lg_build_set_uint(b, map, n->name, v);
        }
    }
}

static void set_caps(lg_builder *b, lg_value *map, const lg_hw_row *row) {
    for (uint32_t i = 0; lg_hw_cap_names[i] != NULL; i++) {
        lg_build_set_bool(b, map, lg_hw_cap_names[i], (row->caps >> i & 1) != 0);
    }
}

lg_value *lg_hw_value(const lg_hw_row *row, lg_builder *b) {
    lg_value *map = lg_build_map(b);
    lg_build_set_string(b, map, "isa", row->isa);
    if (!row->gpu) {
        lg_build_set_uint(b, map, "vec_f32", row->vector_bits / 32);
    }
    set_numbers(b, map, row);
    set_caps(b, map, row);
    return b->failed ? NULL : map;
}

static lg_value *row_object(const lg_hw_row *row, lg_builder *b) {
    lg_value *map = lg_build_map(b);
    lg_build_set_string(b, map, "name", row->name);
    lg_build_set_string(b, map, "kind", row->gpu ? "gpu" : "cpu");
    lg_build_set_string(b, map, "host", row->host);
    lg_build_set_string(b, map, "flags", row->flags);
    lg_build_set_string(b, map, "isa", row->isa);
    if (!row->gpu) {
        lg_build_set_string(b, map, "machine", row->machine);
        lg_build_set_string(b, map, "triple", row->triple);
        lg_build_set_string(b, map, "features", row->features);
    }
    set_numbers(b, map, row);
    if (row->gpu && row->compute_minor == 0) { /* the one number of which 0 means something */
        lg_build_set_uint(b, map, "compute_minor", 0);
    }
    if (row->gpu) {
        set_caps(b, map, row);
    }
    return map;
}

static lg_value *device_object(const lg_hw_device *d, lg_builder *b) {
    lg_value *map = lg_build_map(b);
    lg_build_set_string(b, map, "name", d->name);
    lg_build_set_string(b, map, "kind", "device");
    lg_build_set_string(b, map, "row", d->row);
    lg_build_set_uint(b, map, "sms", d->sms);
    lg_build_set_uint(b, map, "l2_bytes", d->l2_bytes);
    lg_build_set_uint(b, map, "bandwidth_bytes", d->bandwidth_bytes);
    lg_build_set_uint(b, map, "memory_bytes", d->memory_bytes);
    lg_build_set_uint(b, map, "int8_ops", d->int8_ops);
    return map;
}

static bool targets_json(lb_text *out, lb_err *err) {
    lg_builder b;
    lg_build_init(&b, out->arena);
    lg_value *list = lg_build_array(&b);
    size_t n = 0;
    const lg_hw_row *rows = lg_hw_rows(&n);
    for (size_t i = 0; i < n; i++) {
        lg_build_push(&b, list, row_object(&rows[i], &b));
    }
    const lg_hw_device *devices = lg_hw_devices(&n);
    for (size_t i = 0; i < n; i++) {
        lg_build_push(&b, list, device_object(&devices[i], &b));
    }
    return lg_build_done(&b, err) && lg_value_to_json(list, out, err);
}

static void put_cpu(const lg_hw_row *r, lb_text *out) {
    lb_text_printf(out, "%-15s %-8s %6" PRIu64 "  %s\n", r->name, r->machine, r->vector_bits,
                   r->flags);
}

static void put_caps(uint32_t caps, lb_text *out) {
    for (uint32_t i = 0; lg_hw_cap_names[i] != NULL; i++) {
        if ((caps >> i & 1) != 0) {
            lb_text_printf(out, " %s", lg_hw_cap_names[i]);
        }
    }
    lb_text_add(out, "\n");
}

/* The capabilities that every GPU row has. */
static uint32_t common_caps(void) {
    size_t n = 0;
    uint32_t caps = UINT32_MAX;
    const lg_hw_row *rows = lg_hw_rows(&n);
    for (size_t i = 0; i < n; i++) {
        caps &= rows[i].gpu ? rows[i].caps : UINT32_MAX;
    }
    return caps;
}

static void put_gpu(const lg_hw_row *r, lb_text *out) {
    char cc[24];
    snprintf(cc, sizeof cc, "%" PRIu64 ".%" PRIu64, r->compute_major, r->compute_minor);
    lb_text_printf(out, "%-8s %4s %8" PRIu64 " %7" PRIu64 " %9" PRIu64 " %9" PRIu64 "  %s",
                   r->name, cc, r->threads_per_sm, r->ctas_per_sm, r->smem_per_cta_bytes,
                   r->smem_per_sm_bytes, r->host);
    uint32_t caps = r->caps & ~common_caps();
    int pad = caps == 0 ? 0 : 13 - (int)strlen(r->host);
    lb_text_printf(out, "%*s", pad, "");
    put_caps(caps, out);
}

static void put_rows(bool gpu, lb_text *out) {
    size_t n = 0;
    const lg_hw_row *rows = lg_hw_rows(&n);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].gpu != gpu) {
            continue;
        }
        if (gpu) {
            put_gpu(&rows[i], out);
        } else {
            put_cpu(&rows[i], out);
        }
    }
}

static void put_devices(lb_text *out) {
    size_t n = 0;
    const lg_hw_device *d = lg_hw_devices(&n);
    for (size_t i = 0; i < n; i++) {
        lb_text_printf(out, "%-13s %-8s %4" PRIu64 " %7" PRIu64 " %6" PRIu64 " %10" PRIu64 "\n",
                       d[i].name, d[i].row, d[i].sms, d[i].l2_bytes >> 20,
                       d[i].bandwidth_bytes / 1000000000, d[i].memory_bytes >> 20);
    }
}

static bool targets_table(lb_text *out, lb_err *err) {
    lb_text_add(out, "CPU rows\nname            machine   vector  compiler flags\n");
    put_rows(false, out);
    lb_text_add(out, "\nGPU rows (all: grid 2147483647 x 65535 x 65535, 1024 threads a CTA, 255 "
                     "registers a thread)\nall have");
    put_caps(common_caps(), out);
    lb_text_add(out, "name       cc  thr/SM  CTAs/SM  smem/CTA   smem/SM  host          "
                     "capabilities\n");
    put_rows(true, out);
    lb_text_add(out, "\nDevices\nname          row       SMs  L2 MiB   GB/s memory MiB\n");
    put_devices(out);
    const lg_hw_row *here = NULL;
    bool known = lg_hw_find("native", &here, NULL);
    lb_text_printf(out, "\nnative is %s here\n", known ? here->name : "no CPU row");
    return lb_text_done(out, err);
}

bool lg_targets(bool json, lb_text *out, lb_err *err) {
    return json ? targets_json(out, err) : targets_table(out, err);
}
