/* cubin_check.c -- see cubin_check.h. */
#include "cubin_check.h"

#include <inttypes.h>

#include "base/cubin.h"
#include "base/digest.h"
#include "base/file.h"
#include "prove.h"
#include "value_text.h"

static bool at_most(const char *kernel, const char *what, uint64_t value, uint64_t limit,
                    lb_err *err) {
    return value <= limit ||
           lb_err_set(err, LB_PROOF,
                      "kernel '%s', compiled: %s is %" PRIu64 ", the limit is %" PRIu64, kernel,
                      what, value, limit);
}

static bool equal(const char *kernel, const char *what, uint64_t value, uint64_t want,
                  lb_err *err) {
    return value == want ||
           lb_err_set(err, LB_PROOF,
                      "kernel '%s', compiled: %s is %" PRIu64 ", proved was %" PRIu64, kernel, what,
                      value, want);
}

static bool check(const lg_plan *plan, const lg_kernel *k, const lb_cubin *c,
                  const lb_cubin_kernel *f, uint64_t cap, lb_err *err) {
    uint64_t params = 0;
    return equal(k->name, "architecture", c->arch,
                 plan->hw->compute_major * 10 + plan->hw->compute_minor, err) &&
           at_most(k->name, "registers of a thread", f->regs, cap, err) &&
           at_most(k->name, "local memory of a thread in bytes", f->local_bytes, 0, err) &&
           at_most(k->name, "static shared memory in bytes", f->static_smem_bytes, 0, err) &&
           lg_prove_param_bytes(k, &params, err) &&
           equal(k->name, "parameter bytes", f->param_bytes, params, err) &&
           equal(k->name, "threads of its launch bounds", f->max_threads, k->block, err);
}

static const lg_value *entry(lg_builder *b, const char *name, const lb_map *map,
                             const lb_cubin_kernel *f, uint64_t cap, lb_err *err) {
    uint8_t digest[LB_DIGEST_BYTES];
    char hex[LB_DIGEST_HEX_BYTES];
    if (!lb_sha256(map->data, map->n_bytes, digest, err)) {
        return NULL;
    }
    lb_digest_hex(digest, hex);
    lg_value *v = lg_build_map(b);
    lg_build_set_string(b, v, "name", name);
    lg_build_set_uint(b, v, "bytes", map->n_bytes);
    lg_build_set_string(b, v, "sha256", hex);
    lg_build_set_uint(b, v, "registers", f->regs);
    lg_build_set_uint(b, v, "register_cap", cap);
    lg_build_set_uint(b, v, "local_bytes", f->local_bytes);
    lg_build_set_uint(b, v, "static_shared_bytes", f->static_smem_bytes);
    lg_build_set_uint(b, v, "param_bytes", f->param_bytes);
    lg_build_set_uint(b, v, "threads", f->max_threads);
    return v;
}

static bool check_one(const lg_plan *plan, const lg_kernel *k, const char *dir, lb_arena *arena,
                      lg_builder *b, lg_value *list, lb_err *err) {
    lb_map map = {0};
    lb_cubin c;
    lb_cubin_kernel f;
    uint64_t cap = lg_prove_reg_cap(plan->hw, k->block, k->ctas_per_sm);
    const char *path = lb_format(arena, err, "%s/cubin/%s.cubin", dir, k->name);
    if (path == NULL || !lb_map_file(path, &map, err)) {
        return false;
    }
    bool ok =
        (lb_cubin_open(map.data, map.n_bytes, &c, err) && lb_cubin_find(&c, k->name, &f, err)) ||
        lb_err_prefix(err, "%s", path);
    const lg_value *v =
        ok && check(plan, k, &c, &f, cap, err) ? entry(b, k->name, &map, &f, cap, err) : NULL;
    if (v != NULL) {
        lg_build_push(b, list, v);
    }
    lb_unmap(&map);
    return v != NULL;
}

bool lg_cubins_check(const lg_plan *plan, const char *dir, lb_arena *arena, lb_text *json,
                     lb_err *err) {
    lg_builder b;
    lg_build_init(&b, arena);
    lg_value *root = lg_build_map(&b);
    lg_value *list = lg_build_array(&b);
    lg_build_set_string(&b, root, "schema", "lagen.cubins/1");
    lg_build_set_string(&b, root, "target", lg_hw_name(plan->hw));
    for (uint32_t i = 0; i < plan->n_kernels; i++) {
        if (!check_one(plan, &plan->kernels[i], dir, arena, &b, list, err)) {
            return false;
        }
    }
    lg_build_set(&b, root, "kernels", list);
    return lg_build_done(&b, err) && lg_value_to_json(root, json, err);
}
