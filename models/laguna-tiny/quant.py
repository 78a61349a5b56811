"""quant.py -- float32 rows to GGUF blocks: the simple quantisers that fake.py imitates in training.

pack(w, type) gives uint8 rows for gguf.GGUFWriter. K-quants: scales from the extremes of each
sub-block, no search; layouts as in ggml's block_q4_K, block_q5_K and block_q6_K."""

import numpy as np


def half(x):
    return x.astype(np.float16).astype(np.float32)


def divide(a, b):
    return np.where(b == 0, np.float32(0), a / np.where(b == 0, np.float32(1), b))


def bytes_of(x):
    return np.ascontiguousarray(x.astype(np.float16)).view(np.uint8)


def affine(x, qmax, smax=63):
    """x [n, 8, 32]: codes, 6-bit scales and minima, the two super-scales."""
    low = np.minimum(x.min(-1), 0)
    scale = np.maximum(x.max(-1) - low, 0) / np.float32(qmax)
    d, dmin = half(scale.max(-1, keepdims=True) / smax), half((-low).max(-1, keepdims=True) / smax)
    ls = np.clip(np.rint(divide(scale, d)), 0, smax)
    lm = np.clip(np.rint(divide(-low, dmin)), 0, smax)
    step, base = (d * ls)[..., None], (dmin * lm)[..., None]
    q = np.clip(np.rint(divide(x + base, step)), 0, qmax)
    return q.astype(np.uint8), ls.astype(np.uint8), lm.astype(np.uint8), d, dmin


def six_bits(ls, lm):
    """The 12 bytes that hold eight pairs of 6-bit scale and minimum."""
    s = np.zeros((len(ls), 12), np.uint8)
    s[:, 0:4] = ls[:, :4] | (ls[:, 4:] >> 4) << 6
    s[:, 4:8] = lm[:, :4] | (lm[:, 4:] >> 4) << 6
    s[:, 8:12] = (ls[:, 4:] & 15) | (lm[:, 4:] & 15) << 4
    return s


def nibbles(q):
    """q [n, 8, 32] -> [n, 128]: sub-blocks 2c and 2c + 1 share 32 bytes."""
    return ((q[:, 0::2] & 15) | (q[:, 1::2] & 15) << 4).reshape(len(q), 128)


def q4_k(x):
    q, ls, lm, d, dmin = affine(x.reshape(-1, 8, 32), 15)
    return np.concatenate([bytes_of(d), bytes_of(dmin), six_bits(ls, lm), nibbles(q)], -1)


def q5_k(x):
    q, ls, lm, d, dmin = affine(x.reshape(-1, 8, 32), 31)
    high = np.zeros((len(q), 32), np.uint8)
    for g in range(8):
        high |= (q[:, g] >> 4) << g
    return np.concatenate([bytes_of(d), bytes_of(dmin), six_bits(ls, lm), high, nibbles(q)], -1)


def q6_k(x):
    x = x.reshape(-1, 16, 16)
    top = np.take_along_axis(x, np.abs(x).argmax(-1)[..., None], -1)[..., 0]
    s = -top / np.float32(32)
    d = half(-np.take_along_axis(s, np.abs(s).argmax(-1)[..., None], -1) / 128)
    scales = np.clip(np.rint(divide(s, d)), -128, 127)
    q = np.clip(np.rint(divide(x, (d * scales)[..., None])), -32, 31) + 32
    q = q.astype(np.uint8).reshape(-1, 2, 4, 32)
    low = np.stack(
        [(q[:, :, 0] & 15) | (q[:, :, 2] & 15) << 4, (q[:, :, 1] & 15) | (q[:, :, 3] & 15) << 4], 2
    )
    high = (
        q[:, :, 0] >> 4 | (q[:, :, 1] >> 4) << 2 | (q[:, :, 2] >> 4) << 4 | (q[:, :, 3] >> 4) << 6
    )
    return np.concatenate(
        [
            low.reshape(-1, 128),
            high.reshape(-1, 64),
            scales.astype(np.int8).view(np.uint8),
            bytes_of(d),
        ],
        -1,
    )


def q8_0(x):
    x = x.reshape(-1, 32)
    d = np.abs(x).max(-1, keepdims=True) / np.float32(127)
    q = np.rint(divide(x, d)).astype(np.int8)
    return np.concatenate([bytes_of(d), q.view(np.uint8)], -1)


PACK = {"Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k, "Q8_0": q8_0}


def pack(w, kind):
    w = np.ascontiguousarray(w, np.float32)
    if kind == "F32":
        return w
    if kind == "F16":
        return w.astype(np.float16)
    blocks = PACK[kind](w)
    return blocks.reshape(*w.shape[:-1], -1)
