/* memory.h -- the program's arenas: their sizes are known before it exists, they are mapped once,
 * at start, and every page is there before the first request. Nothing grows later. */
#ifndef RT_MEMORY_H
#define RT_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/digest.h"
#include "base/err.h"
#include "model_abi.h"
#include "pool.h"

typedef struct rt_memory {
    uint8_t *arenas[RT_N_PLACES]; /* 2 MiB aligned, zeroed; NULL when the size is 0. A GPU
                                     program's: model_abi.h */
    void *maps[RT_N_ARENAS];      /* the mappings, unreadable guard pages on both sides included */
    uint64_t map_bytes[RT_N_ARENAS];
    const rt_device_ops *device; /* of a GPU program */
} rt_memory;

/* Maps all arenas of `model` and asks for huge pages. Fails with LB_RESOURCES, naming need and
 * limit, if their sum passes what the machine can give now (MemAvailable; the control group's
 * limit) or a mapping is refused. Release with rt_memory_unmap, which allows a zeroed rt_memory. */
bool rt_memory_map(const rt_model *model, rt_memory *out, lb_err *err);

/* The same for a GPU program on the device that `wanted` names (index, UUID or PCI address; NULL:
 * the only one that fits). A CPU program, or what has the form of no name: LB_USAGE. Fails with
 * LB_WRONG_BOX and LB_RESOURCES. */
bool rt_memory_map_on(const rt_model *model, const char *wanted, rt_memory *out, lb_err *err);
void rt_memory_unmap(rt_memory *m);

/* Makes every page of all arenas present, on all threads. Fails with LB_RESOURCES. */
bool rt_memory_touch(const rt_model *model, rt_memory *m, rt_pool *pool, lb_err *err);

/* Host memory for step_plain of a GPU program: all arenas, the weights copied from the device.
 * Fails with LB_RESOURCES like rt_memory_map. Release with rt_memory_unmap. */
bool rt_memory_twin(const rt_model *model, const rt_memory *device, rt_memory *out, lb_err *err);

/* Where the CPU can read n_bytes at `offset` of an arena: there, or in `room` (of n_bytes), where a
 * device's are brought. NULL on failure. Between steps. */
const uint8_t *rt_memory_read(const rt_memory *m, rt_arena_kind kind, uint64_t offset, void *room,
                              uint64_t n_bytes, lb_err *err);

/* The other way: where to write, and then that it is written. */
uint8_t *rt_memory_room(const rt_memory *m, rt_arena_kind kind, uint64_t offset, void *room);
bool rt_memory_write(const rt_memory *m, rt_arena_kind kind, uint64_t offset, const void *room,
                     uint64_t n_bytes, lb_err *err);

/* Zeros in an arena, wherever it lies. */
bool rt_memory_clear(const rt_model *model, const rt_memory *m, rt_arena_kind kind, lb_err *err);

/* The tree digest (base/digest.h) of an arena, wherever it lies. `tmp` gives room for a piece of
 * it. */
bool rt_memory_digest(const rt_model *model, const rt_memory *m, rt_arena_kind kind, lb_arena *tmp,
                      uint8_t out[LB_DIGEST_BYTES], lb_err *err);

/* Bytes that this process can be given now; UINT64_MAX if the system does not tell. */
uint64_t rt_memory_available(void);

const char *rt_arena_name(rt_arena_kind kind);

#endif
