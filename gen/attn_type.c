/* attn_type.c -- see attn_type.h. */
#include "attn_type.h"

#include <string.h>

bool lg_attn_weights_exact(const lg_gguf *file) {
    for (uint64_t i = 0; i < lg_gguf_n_tensors(file); i++) {
        if (lg_gguf_tensor_at(file, i)->type != LG_QTYPE_F32) {
            return false;
        }
    }
    return true;
}

bool lg_attn_choose(const char *asked, const lg_hw_row *hw, const char *kv, bool exact_weights,
                    const char **out, lb_err *err) {
    bool units = hw->gpu && lg_hw_has(hw, LG_HW_MMA) && lg_hw_has(hw, LG_HW_CP_ASYNC);
    bool halves = strcmp(kv, "f16") == 0;
    if (asked == NULL) {
        *out = units && halves && !exact_weights ? "f16" : "f32";
        return true;
    }
    if (strcmp(asked, "f32") != 0 && strcmp(asked, "f16") != 0) {
        return lb_err_set(err, LB_USAGE,
                          "'%.40s' is nothing that attention computes with; there are f16, f32",
                          asked);
    }
    if (strcmp(asked, "f16") == 0 && !units) {
        return lb_err_set(err, LB_USAGE,
                          "f16 needs tensor cores, and row %s has none; it computes in f32",
                          lg_hw_name(hw));
    }
    if (strcmp(asked, "f16") == 0 && !halves) {
        return lb_err_set(err, LB_USAGE,
                          "f16 reads keys and values that are f16; with --kv %s it is f32", kv);
    }
    *out = strcmp(asked, "f16") == 0 ? "f16" : "f32";
    return true;
}
