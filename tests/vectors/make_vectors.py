"""Makes <type>.txt here: blocks of bytes and the floats that they stand for.

Decoded from the format descriptions alone, in exact fractions rounded once where the format's own
arithmetic (f32 products of scale and code, then one sum) rounds; shares nothing with the kernels or
with the gguf package. Four blocks a type: random payload, all bits set, no bits set, and signs and
subnormal scales. Run it from anywhere; the files are committed."""
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
f32 = np.float32


def half(b, at):
    return f32(struct.unpack_from("<e", b, at)[0])


def low_high(b, at, e):
    """4-bit code of element e of 32: low nibbles first."""
    return b[at + e % 16] >> (4 if e >= 16 else 0) & 15


def fifth(b, at, e):
    return struct.unpack_from("<I", b, at)[0] >> e & 1


def pair6(s, g):
    """Scale and minimum of group g from 12 bytes."""
    if g < 4:
        return s[g] & 63, s[g + 4] & 63
    return s[g + 4] & 15 | s[g - 4] >> 6 << 4, s[g + 4] >> 4 | s[g] >> 6 << 4


def k_group(b, e, code):
    sc, m = pair6(b[4:16], e // 32)
    return half(b, 0) * f32(sc) * f32(code) - half(b, 2) * f32(m)


def q4_k(b, e):
    return k_group(b, e, b[16 + e // 64 * 32 + e % 32] >> e // 32 % 2 * 4 & 15)


def q5_k(b, e):
    code = b[48 + e // 64 * 32 + e % 32] >> e // 32 % 2 * 4 & 15
    return k_group(b, e, code | (b[16 + e % 32] >> e // 32 & 1) << 4)


def q6_k(b, e):
    n, j, low = e // 128, e % 128 // 32, e % 32
    code = b[64 * n + 32 * (j & 1) + low] >> 4 * (j >> 1) & 15
    code |= (b[128 + 32 * n + low] >> 2 * j & 3) << 4
    return half(b, 208) * f32(struct.unpack_from("b", b, 192 + e // 16)[0]) * f32(code - 32)


def q2_k(b, e):
    n, j, low = e // 128, e % 128 // 32, e % 32
    sc, code = b[e // 16], b[16 + 32 * n + low] >> 2 * j & 3
    return half(b, 80) * f32(sc & 15) * f32(code) - half(b, 82) * f32(sc >> 4)


def q3_k(b, e):
    n, j, low, k = e // 128, e % 128 // 32, e % 32, e // 16
    code = (b[32 + 32 * n + low] >> 2 * j & 3) + 4 * (b[low] >> 4 * n + j & 1) - 4
    sub = (b[96 + k] & 15 if k < 8 else b[88 + k] >> 4) | (b[104 + k % 4] >> 2 * (k // 4) & 3) << 4
    return half(b, 108) * f32(sub - 32) * f32(code)


NL = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
FP4 = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12]  # twice E2M1


def iq4_xs(b, e):
    g, sh = e // 32, b[2] | b[3] << 8
    sub = (b[4 + g // 2] >> 4 * (g % 2) & 15 | (sh >> 2 * g & 3) << 4) - 32
    return half(b, 0) * f32(sub) * f32(NL[low_high(b, 8 + 16 * g, e % 32)])


def nvfp4(b, e):
    s, r = e // 16, e % 16
    exponent, fraction = b[s] >> 3 & 15, b[s] & 7
    d = fraction * 2.0 ** -10 if exponent == 0 else (1 + fraction / 8) * 2.0 ** (exponent - 8)
    d = 0.0 if b[s] == 0x7f else d
    return f32(d) * f32(FP4[b[4 + 8 * s + r % 8] >> 4 * (r // 8) & 15])


# type: elements, bytes, offsets of half scales, decoder of one element
TYPES = {
    "f32": (1, 4, [], lambda b, e: f32(struct.unpack("<f", b)[0])),
    "f16": (1, 2, [0], lambda b, e: half(b, 0)),
    "bf16": (1, 2, [], lambda b, e: f32(struct.unpack("<f", b"\0\0" + b)[0])),
    "q4_0": (32, 18, [0], lambda b, e: half(b, 0) * f32(low_high(b, 2, e) - 8)),
    "q4_1": (32, 20, [0, 2], lambda b, e: half(b, 0) * f32(low_high(b, 4, e)) + half(b, 2)),
    "q5_0": (32, 22, [0], lambda b, e: half(b, 0) * f32(
        (low_high(b, 6, e) | fifth(b, 2, e) << 4) - 16)),
    "q5_1": (32, 24, [0, 2], lambda b, e: half(b, 0) * f32(
        low_high(b, 8, e) | fifth(b, 4, e) << 4) + half(b, 2)),
    "q8_0": (32, 34, [0], lambda b, e: half(b, 0) * f32(struct.unpack_from("b", b, 2 + e)[0])),
    "q2_k": (256, 84, [80, 82], q2_k),
    "q3_k": (256, 110, [108], q3_k),
    "q4_k": (256, 144, [0, 2], q4_k),
    "q5_k": (256, 176, [0, 2], q5_k),
    "q6_k": (256, 210, [208], q6_k),
    "iq4_nl": (32, 18, [0], lambda b, e: half(b, 0) * f32(NL[low_high(b, 2, e)])),
    "iq4_xs": (256, 136, [0], iq4_xs),
    "mxfp4": (32, 17, [], lambda b, e: f32(2.0 ** (b[0] - 128)) * f32(FP4[low_high(b, 1, e)])),
    "nvfp4": (64, 36, [], nvfp4),
}


def blocks(elems, size, scales, rng):
    """Payloads with scales 0.0113 and others put in."""
    payloads = [rng.integers(0, 256, size).astype(np.uint8), np.full(size, 255, np.uint8),
                np.zeros(size, np.uint8), rng.integers(0, 256, size).astype(np.uint8)]
    for payload, d in zip(payloads, (0.0113, 1.0, 0.25, -6e-6)):
        for i, at in enumerate(scales):
            payload[at:at + 2] = np.array([d * (1 - 3 * i)], np.float16).view(np.uint8)
        if (elems, size) == (32, 17):  # exponents: any, the largest of finite weights, the smallest, subnormal
            payload[0] = {0.25: 0, 1.0: 252}.get(d, 1 if d < 0 else payload[0])
        yield payload.tobytes()


def main():
    for name, (elems, size, scales, decode) in TYPES.items():
        lines = [f"# {name}: blocks of {size} bytes, {elems} values each as float32 bits; made by",
                 "# make_vectors.py from the format's description."]
        for b in blocks(elems, size, scales, np.random.default_rng(7)):
            if elems == 1 and not np.isfinite(decode(b, 0)):
                b = bytes(size - 2) + b"\x01\x80"  # the smallest negative half or bfloat16
            lines.append(f"block={b.hex()}")
            values = [f"{decode(b, e).view(np.uint32):08x}" for e in range(elems)]
            lines += [" ".join(values[i:i + 16]) for i in range(0, elems, 16)]
        (HERE / f"{name}.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
