"""Makes <type>.txt here: blocks of bytes and the floats that they stand for.

Decoded from the format descriptions alone, in exact fractions rounded once where the format's own
arithmetic (f32 products of scale and code, then one sum) rounds; shares nothing with the kernels or
with the gguf package. Four blocks a type: random payload, all bits set, no bits set, and signs and
subnormal scales. Run it from anywhere; the files are committed."""
import pathlib
import re
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


# Grids as (levels, entries): the templates keep them, tests/kernel/test_books.py checks them.
def grid(name):
    text = (HERE.parents[1] / "templates" / "quant" / "grid" / f"{name}.lua").read_text()
    levels = [int(x) for x in re.search(r"M.levels = {(.*?)}", text)[1].split(",")]
    entries = [int(x, 16) for x in re.search(r"\[\[(.*?)\]\]", text, re.S)[1].split()]
    n = int(re.search(r"M.elems = (\d)", text)[1])
    return [[levels[x >> 16 // n * i & 2 ** (16 // n) - 1] for i in range(n)] for x in entries]


GRID = {name: grid(name) for name in ("iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1_s")}


def even(signs):
    """The 8 signs that 7 stand for."""
    return signs | signs.bit_count() % 2 << 7


def u16(b, at):
    return b[at] | b[at + 1] << 8


def u32(b, at):
    return u16(b, at) | u16(b, at + 2) << 16


def nib(byte, k):
    return byte >> 4 * k & 15


def signed(d, value, signs, j):
    return f32(d) * f32(-value if signs >> j & 1 else value)


def iq2_xxs(b, e):
    g, l, j = e // 32, e % 32 // 8, e % 8
    a, s = u32(b, 2 + 8 * g), u32(b, 6 + 8 * g)
    db = half(b, 0) * f32(0.5 + (s >> 28)) * f32(0.25)
    return signed(db, GRID["iq2_xxs"][a >> 8 * l & 255][j], even(s >> 7 * l & 127), j)


def iq2_xs(b, e):
    g, l, j = e // 32, e % 32 // 8, e % 8
    v = u16(b, 2 + 2 * (4 * g + l))
    db = half(b, 0) * f32(0.5 + nib(b[66 + g], l // 2)) * f32(0.25)
    return signed(db, GRID["iq2_xs"][v & 511][j], even(v >> 9), j)


def iq2_s(b, e):
    g, l, j = e // 32, e % 32 // 8, e % 8
    number = b[2 + 4 * g + l] | (b[66 + g] >> 2 * l & 3) << 8
    db = half(b, 0) * f32(0.5 + nib(b[74 + g], l // 2)) * f32(0.25)
    return signed(db, GRID["iq2_s"][number][j], b[34 + 4 * g + l], j)


def iq3_xxs(b, e):
    g, l, j = e // 32, e % 32 // 8, e % 8
    s = u32(b, 66 + 4 * g)
    db = half(b, 0) * f32(0.5 + (s >> 28)) * f32(0.5)
    value = GRID["iq3_xxs"][b[2 + 8 * g + 2 * l + j // 4]][j % 4]
    return signed(db, value, even(s >> 7 * l & 127), j)


def iq3_s(b, e):
    g, l, j = e // 32, e % 32 // 8, e % 8
    k = 2 * l + j // 4
    number = b[2 + 8 * g + k] | (b[66 + g] >> k & 1) << 8
    db = half(b, 0) * f32(1 + 2 * nib(b[106 + g // 2], g % 2))
    return signed(db, GRID["iq3_s"][number][j % 4], b[74 + 4 * g + l], j)


def iq1_s(b, e):
    g, l, j = e // 32, e % 32 // 8, e % 8
    h = u16(b, 34 + 2 * g)
    number = b[2 + 4 * g + l] | (h >> 3 * l & 7) << 8
    delta = -0.125 if h & 0x8000 else 0.125
    return half(b, 0) * f32(2 * (h >> 12 & 7) + 1) * f32(GRID["iq1_s"][number][j] + delta)


def iq1_m(b, e):
    g, l, j = e // 32, e % 32 // 8, e % 8
    bits = sum((u16(b, 48 + 2 * i) >> 12) << 4 * i for i in range(4))
    d = f32(struct.unpack("<e", struct.pack("<H", bits))[0])
    s = u16(b, 48 + 2 * (g // 2)) >> 6 * (g % 2) + 3 * (l // 2) & 7
    h = nib(b[32 + 2 * g + l // 2], l % 2)
    delta = -0.125 if h & 8 else 0.125
    return d * f32(2 * s + 1) * f32(GRID["iq1_s"][b[4 * g + l] | (h & 7) << 8][j] + delta)


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
    "iq2_xxs": (256, 66, [0], iq2_xxs),
    "iq2_xs": (256, 74, [0], iq2_xs),
    "iq2_s": (256, 82, [0], iq2_s),
    "iq3_xxs": (256, 98, [0], iq3_xxs),
    "iq3_s": (256, 110, [0], iq3_s),
    "iq1_s": (256, 50, [0], iq1_s),
    "iq1_m": (256, 56, [], iq1_m),
}


def blocks(elems, size, scales, rng):
    """Payloads with scales 0.0113 and others put in."""
    payloads = [rng.integers(0, 256, size).astype(np.uint8), np.full(size, 255, np.uint8),
                np.zeros(size, np.uint8), rng.integers(0, 256, size).astype(np.uint8)]
    for payload, d in zip(payloads, (0.0113, 1.0, 0.25, -6e-6)):
        for i, at in enumerate(scales):
            payload[at:at + 2] = np.array([d * (1 - 3 * i)], np.float16).view(np.uint8)
        if size == 56:  # the scale's nibbles
            bits = int(np.array(d, np.float16).view(np.uint16))
            for i in range(4):
                payload[49 + 2 * i] = payload[49 + 2 * i] & 15 | (bits >> 4 * i & 15) << 4
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
