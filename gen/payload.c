/* payload.c -- see payload.h. */
#include "payload.h"

#include <stddef.h>

#include "base/image.h"
#include "half.h"
#include "synth_random.h"

typedef struct payload {
    lg_qtype type;
    double rms;
    lb_check check;
    uint32_t offset;
} payload;

static const payload rows[] = {
#define PAYLOAD(NAME, rms, check, offset) {LG_QTYPE_##NAME, rms, LB_CHECK_##check, offset},
#include "payload.def"
};

static const payload *find(lg_qtype t) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].type == t) {
            return &rows[i];
        }
    }
    return NULL;
}

bool lg_payload_has(lg_qtype t) {
    return find(t) != NULL;
}

static void put_scale(const payload *p, uint16_t half, uint8_t *qblock) {
    uint8_t *at = qblock + p->offset;
    if (p->check == LB_CHECK_NIBBLES) {
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t nibble = (uint32_t)half >> (4 * i) & 15U;
            at[2 * i + 1] = (uint8_t)((at[2 * i + 1] & 15U) | nibble << 4);
        }
        return;
    }
    at[0] = (uint8_t)(half & 255U);
    at[1] = (uint8_t)(half >> 8);
}

bool lg_payload_row(lg_qtype t, uint64_t stream, uint64_t row, uint64_t n_elems, double std,
                    uint8_t *out, lb_err *err) {
    const payload *p = find(t);
    const lg_qtype_row *q = lg_qtype_get(t);
    uint64_t n_bytes = 0;
    if (p == NULL) {
        return lb_err_set(err, LB_UNSUPPORTED, "type %s has no random payload in lagen", q->name);
    }
    if (!lg_qtype_row_bytes(t, n_elems, &n_bytes, err)) {
        return false;
    }
    /* Factors from 1/2 to 3/2 have mean square 13/12. */
    const double unit = std / p->rms / 0x1.0a74080e737b1p+0;
    if (!(std >= 0.0 && unit * 1.5 <= 65504.0)) {
        return lb_err_set(err, LB_BAD_VALUE, "deviation %g does not fit type %s", std, q->name);
    }
    const uint64_t n_draws = q->qblock_bytes / 8 + 2; /* for the bytes, and one for the scale */
    const uint64_t n_qblocks = n_elems / q->qblock_elems;
    for (uint64_t i = 0; i < n_qblocks; i++) {
        uint64_t first = (row * n_qblocks + i) * n_draws;
        for (uint32_t b = 0; b < q->qblock_bytes; b++) {
            out[b] = (uint8_t)(lg_synth_bits(stream, first + b / 8) >> (b % 8 * 8) & 255U);
        }
        uint64_t draw = lg_synth_bits(stream, first + n_draws - 1) >> 40;
        put_scale(p, lg_half_bits((float)(unit * (0.5 + (double)draw * 0x1p-24))), out);
        out += q->qblock_bytes;
    }
    return true;
}
