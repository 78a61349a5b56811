/* op_rule.h -- what shape rules are written with (op.c, op_attn.c): they read a node's operands and
 * attributes and refuse with the op, the layer, the operand, its size and the right one. */
#ifndef LG_OP_RULE_H
#define LG_OP_RULE_H

#include "at.h"
#include "op.h"

/* The checks of one node, with what they need for their messages. */
typedef struct lg_rule {
    const lg_graph *g;
    const lg_gnode *n;
    lb_err *err;
} lg_rule;

/* Both fail with LB_BAD_SHAPE and return false. */
bool lg_rule_refuse(const lg_rule *r, const char *role, const char *what, uint64_t got,
                    uint64_t want);
bool lg_rule_refuse_text(const lg_rule *r, const char *role, const char *got, const char *want);

/* The value or tensor behind `role`; NULL if there is none, or one of the other kind. */
const lg_gvalue *lg_rule_value(const lg_rule *r, const char *role);
const lg_gtensor *lg_rule_tensor(const lg_rule *r, const char *role);

/* The value at `role` has this width and elements, or these rows; an absent optional one passes. */
bool lg_rule_width(const lg_rule *r, const char *role, uint64_t width, lg_elem elem);
bool lg_rule_rows(const lg_rule *r, const char *role, lg_rows rows);

/* An activation of floats with a row for each token; *width receives its width. */
bool lg_rule_floats_over_T(const lg_rule *r, const char *role, uint64_t *width);

/* One matrix of this shape; an absent optional one passes. */
bool lg_rule_matrix(const lg_rule *r, const char *role, uint64_t cols, uint64_t rows);

/* Two float activations of equal width and kind of rows. */
bool lg_rule_same_shape(const lg_rule *r, const char *a, const char *b);

/* Attributes: all of them; an integer; whether a number is there (fails if not). */
lg_at lg_rule_attrs(const lg_rule *r);
bool lg_rule_attr(const lg_rule *r, const char *key, uint64_t *out);
bool lg_rule_has_number(const lg_rule *r, const char *key);

/* All three planes <prefix>_q, _d and _s of a quantised activation of width k, or none. */
bool lg_rule_q8_planes(const lg_rule *r, const char *prefix, uint64_t k, lg_rows rows);

/* Rules of op_attn.c. */
bool lg_rule_attention(const lg_rule *r, const char *in, const char *k, const char *v);
bool lg_rule_kv_store(const lg_rule *r);
bool lg_rule_rope_kv(const lg_rule *r);
bool lg_rule_rope(const lg_rule *r);
bool lg_rule_head_norm(const lg_rule *r);
bool lg_rule_gate(const lg_rule *r);

/* Rules of op_moe.c. */
bool lg_rule_router(const lg_rule *r);
bool lg_rule_expert_linear(const lg_rule *r);
bool lg_rule_expert_sum(const lg_rule *r);
bool lg_rule_router_parts(const lg_rule *r);
bool lg_rule_router_topk(const lg_rule *r);
bool lg_rule_moe_sort(const lg_rule *r);
bool lg_rule_moe_gated(const lg_rule *r);
bool lg_rule_moe_down(const lg_rule *r);
bool lg_rule_moe_sum(const lg_rule *r);

#endif
