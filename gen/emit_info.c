/* emit_info.c -- the facts about an emitted program that travel with it. */
#include <inttypes.h>
#include <string.h>

#include "emit_parts.h"

/* Tensor types with counts and bytes, in the order of their first tensor. */
static const lg_value *types(lg_builder *b, const lg_graph *g) {
    lg_value *list = lg_build_array(b);
    bool seen[LG_QTYPE_LIMIT] = {0};
    for (uint32_t i = 0; i < g->n_tensors; i++) {
        lg_qtype type = g->tensors[i].file->type;
        if (seen[type]) {
            continue;
        }
        seen[type] = true;
        uint64_t count = 0;
        uint64_t bytes = 0;
        for (uint32_t j = i; j < g->n_tensors; j++) {
            if (g->tensors[j].file->type == type) {
                count++;
                bytes += g->tensors[j].file->n_bytes;
            }
        }
        lg_value *v = lg_build_map(b);
        lg_build_set_string(b, v, "type", lg_qtype_get(type)->name);
        lg_build_set_uint(b, v, "tensors", count);
        lg_build_set_uint(b, v, "bytes", bytes);
        lg_build_push(b, list, v);
    }
    return list;
}

bool lg_emit_info(lg_emitter *e, const lg_value *all, const lg_value **out, lb_err *err) {
    static const char *const keys[] = {"dims", "limits", "arenas", "weights_linked", "kv", "attn"};
    lg_builder b;
    lg_build_init(&b, e->arena);
    lg_value *root = lg_build_map(&b);
    lg_build_set_string(&b, root, "schema", "lagen.manifest/1");
    lg_build_set_string(&b, root, "model", e->o->name);
    lg_build_set_string(&b, root, "architecture", e->plan->graph->arch);
    lg_build_set_string(&b, root, "target", lg_hw_name(e->plan->hw));
    lg_build_set_string(&b, root, "compiler", e->o->compiler);
    if (e->plan->hw->gpu) {
        lg_build_set_string(&b, root, "host", lg_hw_name(e->o->host));
        lg_build_set_string(&b, root, "cuda_compiler", lg_cuda_identity(e->o->cuda));
    }
    lg_build_set_uint(&b, root, "ctx_train", e->plan->graph->ctx_train);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        lg_build_set(&b, root, keys[i], lg_value_find(all, keys[i]));
    }
    if (e->o->recipe->name != NULL) {
        lg_value *recipe = lg_build_map(&b);
        lg_build_set_string(&b, recipe, "name", e->o->recipe->name);
        lg_build_set_string(&b, recipe, "why", e->o->recipe->why);
        lg_build_set(&b, root, "recipe", recipe);
    }
    if (e->plan->graph->notes != NULL) {
        lg_build_set(&b, root, "notes", e->plan->graph->notes);
    }
    lg_build_set(&b, root, "types", types(&b, e->plan->graph));
    lg_build_set_uint(&b, root, "launches", e->plan->n_launches);
    lg_build_set_uint(&b, root, "kernels", e->plan->n_kernels);
    if (e->image_digest[0] != '\0') {
        lg_build_set_string(&b, root, "image_sha256_tree", e->image_digest);
    }
    *out = root;
    return lg_build_done(&b, err);
}
