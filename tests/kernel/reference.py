"""What each kernel must compute: numpy in float64, written from the formulas, not from the kernels.

Weights are decoded by the gguf package. For a case and a step: `inputs` makes operands from a seed,
`check` compares what came out. Tolerances: fp32 sums over K columns are compared with 4e-6 of the
sum of magnitudes (about 64 roundings of 2^-24); stricter ones stand beside their checks."""
import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import dequantize

SUM_TOLERANCE = 4e-6


class Step:
    """rt_step's arrays from a list of (slot, first position, rows)."""

    def __init__(self, seqs, rng, n_vocab):
        self.seq = np.array([i for i, s in enumerate(seqs) for _ in range(s[2])], np.uint32)
        self.pos = np.array([s[1] + r for s in seqs for r in range(s[2])], np.uint32)
        self.slot = np.array([s[0] for s in seqs], np.uint32)
        self.n_rows = len(self.pos)
        self.token = rng.integers(0, n_vocab, self.n_rows).astype(np.uint32)
        self.token[0] = n_vocab - 1
        self.logit = np.unique(np.array([0, self.n_rows // 2, self.n_rows - 1], np.uint32))


def random_rows(name, layout, n_rows, n_cols, rng):
    """Rows of random payload bytes with finite, moderate scales: uint8 [n_rows, row bytes]."""
    if name in ("f32", "f16", "bf16"):
        x = rng.standard_normal((n_rows, n_cols)).astype(np.float32)
        if name == "f32":
            return x.view(np.uint8)
        if name == "f16":
            return x.astype(np.float16).view(np.uint8)
        return np.ascontiguousarray(x.view(np.uint16)[:, 1::2]).view(np.uint8)
    n_qblocks = n_cols // layout["qblock_elems"]
    raw = rng.integers(0, 256, (n_rows * n_qblocks, layout["qblock_bytes"])).astype(np.uint8)
    for plane in layout["planes"]:
        if plane["half_scale"]:
            scale = (0.05 * rng.standard_normal(len(raw))).astype(np.float16)
            scale[::7] = [0.0, -6e-8, 3e-5][n_rows % 3]  # zero and subnormal halves
            at = plane["src_offset"]
            raw[:, at:at + 2] = scale.view(np.uint8).reshape(-1, 2)
    raw[0, -16:] = 255
    raw[-1, -16:] = 128
    for plane in layout["planes"]:  # the extremes above may have met a scale
        if plane["half_scale"] and plane["src_offset"] + 16 > layout["qblock_bytes"]:
            for row in (0, -1):
                raw[row, plane["src_offset"]:plane["src_offset"] + 2] = [0, 0x3c]
    return raw.reshape(n_rows, -1)


def decode(name, rows):
    return dequantize(rows, GGMLQuantizationType[name.upper()]).astype(np.float64)


def pack(layout, rows, n_cols):
    """The weight image of docs/kernels.md, by reshaping."""
    n_rows, elems, size = len(rows), layout["qblock_elems"], layout["qblock_bytes"]
    padded = np.zeros(((n_rows + 15) // 16 * 16, rows.shape[1]), np.uint8)
    padded[:n_rows] = rows
    qblocks = padded.reshape(-1, 16, n_cols // elems, size)
    out = []
    for strip in qblocks:
        for at in range(0, n_cols // elems, 256 // elems):
            atom = strip[:, at:at + 256 // elems]
            for p in layout["planes"]:
                part = atom[:, :, p["src_offset"]:p["src_offset"] + p["n_bytes"]]
                words = part.reshape(16, atom.shape[1], -1, p["word_bytes"])
                out.append(words.transpose(1, 2, 0, 3).reshape(-1))
    return np.concatenate(out)


def quantise(x):
    """Activations to q, d, s in float32 arithmetic."""
    x = x.astype(np.float32).reshape(len(x), -1, 32)
    amax = np.abs(x).max(2)
    with np.errstate(divide="ignore", over="ignore"):
        inv = np.where(amax > np.float32(2.0 ** -100), np.float32(127) / amax, np.float32(0))
    q = np.rint(x * inv[:, :, None].astype(np.float32)).astype(np.int8)
    s = q.reshape(len(x), -1, 2, 16).astype(np.int16).sum(3, dtype=np.int16)
    return q.reshape(len(x), -1), amax / np.float32(127), s.reshape(len(x), -1)


def silu(x):
    with np.errstate(over="ignore"):  # far below zero it is zero
        return x / (1.0 + np.exp(-x))


class Matmul:
    def __init__(self, op, step, layouts, rng):
        self.op, K = op, op["K"]
        self.rows = len(step.logit) if op["rows"] == "L" else step.n_rows
        x = rng.standard_normal((self.rows, K)).astype(np.float32)
        x[:, ::50] *= 30
        q, d, s = quantise(x) if K % 32 == 0 else (None, None, None)
        self.operands, self.sums, self.sizes = {"x": x, "x_q": q, "x_d": d, "x_s": s}, [], []
        for i, part in enumerate(op["parts"]):
            name, n = part["type"], part["n"]
            rows = random_rows(name, layouts[name], n, K, rng)
            w = decode(name, rows)
            self.operands[f"w{i}"] = pack(layouts[name], rows, K)
            plain = name in ("f32", "f16", "bf16")
            a = x.astype(np.float64) if plain else q * np.repeat(d.astype(np.float64), 32, 1)
            y, size = a @ w.T, np.abs(a) @ np.abs(w).T
            if part["bias"]:
                bias = rng.standard_normal(n).astype(np.float32)
                self.operands[f"b{i}"] = bias
                y, size = y + bias, size + np.abs(bias)
            self.sums.append(y)
            self.sizes.append(size)
        n_out = op["parts"][0]["n"] if op["epilogue"] == "swiglu" else sum(
            p["n"] for p in op["parts"])
        self.operands["y"] = rng.standard_normal((self.rows, n_out)).astype(np.float32)

    def check(self, got):
        y = got["y"].view(np.float32).reshape(self.rows, -1).astype(np.float64)
        if self.op["epilogue"] == "swiglu":
            (gate, up), (gate_size, up_size) = self.sums, self.sizes
            want = silu(gate) * up
            size = 1.1 * gate_size * np.abs(up) + np.abs(silu(gate)) * up_size + np.abs(want)
        else:
            want, size = np.concatenate(self.sums, 1), np.concatenate(self.sizes, 1)
        if self.op["epilogue"] == "add":
            want = want + self.operands["y"]
            size = size + np.abs(want)
        return np.abs(y - want) <= SUM_TOLERANCE * size + 1e-30


class Embed:
    def __init__(self, op, step, layouts, rng):
        rows = random_rows(op["wtype"], layouts[op["wtype"]], op["V"], op["H"], rng)
        self.want = decode(op["wtype"], rows)[step.token]
        self.operands = {"w": pack(layouts[op["wtype"]], rows, op["H"]),
                         "y": np.zeros((step.n_rows, op["H"]), np.float32)}

    def check(self, got):  # dequantisation is exact: the same f32 operations
        return got["y"].view(np.float32) == self.want.astype(np.float32).reshape(-1)


def check_q8(y, got, prefix="y"):
    """q, d, s of rows y (float64) whose last bits the kernel may round otherwise."""
    q = got[prefix + "_q"].view(np.int8).reshape(len(y), -1, 32)
    d = got[prefix + "_d"].view(np.float32).reshape(len(y), -1).astype(np.float64)
    s = got[prefix + "_s"].view(np.int16).reshape(len(y), -1, 2)
    groups = y.reshape(len(y), -1, 32)
    amax = np.abs(groups).max(2)
    near = np.abs(q * d[:, :, None] - groups) <= 0.5001 * d[:, :, None] + 1e-6 * np.abs(groups)
    return np.concatenate([(np.abs(d - amax / 127) <= 1e-6 * amax / 127).reshape(-1),
                           near.reshape(-1),
                           (q.reshape(len(y), -1, 2, 16).sum(3) == s).reshape(-1)])


class Norm:
    def __init__(self, op, step, layouts, rng):
        H, self.op = op["H"], op
        x = rng.standard_normal((step.n_rows, H)).astype(np.float32)
        x[-1, :32] = 0
        w = rng.standard_normal(H).astype(np.float32)
        rows = x[step.logit] if op["rows"] == "L" else x
        r = 1.0 / np.sqrt((rows.astype(np.float64) ** 2).mean(1) + op["eps"])
        self.want = rows * r[:, None] * w
        self.operands = {"x": x, "w": w, **q8_zeros("y", self.want),
                         "y": np.zeros(rows.shape, np.float32)}

    def check(self, got):
        good = []
        if "y" in got:
            y = got["y"].view(np.float32).reshape(self.want.shape)
            good.append((np.abs(y - self.want) <= 1e-6 * np.abs(self.want)).reshape(-1))
        if "y_q" in got:
            good.append(check_q8(self.want, got))
        return np.concatenate(good)


def q8_zeros(prefix, like):
    n, k = like.shape
    return {prefix + "_q": np.zeros((n, k), np.int8),
            prefix + "_d": np.zeros((n, k // 32), np.float32),
            prefix + "_s": np.zeros((n, k // 16), np.int16)}


class Quant:
    def __init__(self, op, step, layouts, rng):
        x = rng.standard_normal((step.n_rows, op["K"])).astype(np.float32)
        x[0, :32] = 0
        x[-1, -32:] *= np.float32(2.0 ** -115)  # the reciprocal of the scale would overflow
        self.want = quantise(x)
        self.operands = {"x": x, **q8_zeros("y", x)}

    def check(self, got):  # exact
        return np.concatenate([got[n].view(w.dtype) == w.reshape(-1)
                               for n, w in zip(("y_q", "y_d", "y_s"), self.want)])


class RopeTable:
    def __init__(self, op, step, layouts, rng):
        phi = step.pos[:, None].astype(np.float64) * np.array(op["freq"])
        self.want = np.stack([np.cos(phi), np.sin(phi)], 2) * op["mscale"]
        self.operands = {"y": np.zeros(self.want.shape, np.float32)}

    def check(self, got):  # two roundings to f32
        y = got["y"].view(np.float32).reshape(self.want.shape)
        return np.abs(y - self.want) <= 1.3e-7 * np.abs(self.want) + 1e-13


class RopeKv:
    def __init__(self, op, step, layouts, rng):
        self.op, self.step = op, step
        n_head, n_kv, hd = op["n_head"], op["n_kv"], op["hd"]
        self.qkv = rng.standard_normal((step.n_rows, (n_head + 2 * n_kv) * hd)).astype(np.float32)
        phi = step.pos[:, None] * 0.37 ** np.arange(op["n_rot"] // 2)
        self.table = np.stack([np.cos(phi), np.sin(phi)], 2).astype(np.float32)
        cells = (op["slots"], n_kv, op["cap"] // 16, hd, 16)
        self.k = rng.integers(0, 2 ** 16, cells).astype(np.uint16)
        self.v = rng.integers(0, 2 ** 16, (op["slots"], n_kv, op["cap"], hd)).astype(np.uint16)
        self.operands = {"qkv": self.qkv, "table": self.table, "k": self.k, "v": self.v}

    def rotated(self, x):
        """x [rows, heads, hd] in float64."""
        n_rot, half = self.op["n_rot"], self.op["n_rot"] // 2
        c, s = (self.table[:, None, :, i].astype(np.float64) for i in (0, 1))
        x = x.astype(np.float64).copy()
        first = np.arange(half) * 2 if self.op["pairing"] == "norm" else np.arange(half)
        second = first + 1 if self.op["pairing"] == "norm" else first + half
        assert second.max() < n_rot
        a, b = x[:, :, first], x[:, :, second]
        x[:, :, first], x[:, :, second] = a * c - b * s, a * s + b * c
        return x

    def check(self, got):
        op, n = self.op, self.step.n_rows
        heads = self.qkv.reshape(n, -1, op["hd"])
        q_end, k_end = op["n_head"], op["n_head"] + op["n_kv"]
        qkv = got["qkv"].view(np.float32).reshape(heads.shape)
        want_q, want_k = self.rotated(heads[:, :q_end]), self.rotated(heads[:, q_end:k_end])
        good = [np.abs(qkv[:, :q_end] - want_q) <= 1e-6, qkv[:, q_end:] == heads[:, q_end:]]
        k, v = self.k.copy(), self.v.copy()
        new_k = got["k"].view(np.uint16).reshape(k.shape)
        for t in range(n):
            slot, at = self.step.slot[self.step.seq[t]], self.step.pos[t] % op["cap"]
            v[slot, :, at] = heads[t, k_end:].astype(np.float16).view(np.uint16)
            stored = new_k[slot, :, at // 16, :, at % 16].view(np.float16)
            good.append(np.abs(stored - want_k[t]) <= 1e-6 + 2.0 ** -11 * np.abs(want_k[t]))
            k[slot, :, at // 16, :, at % 16] = stored.view(np.uint16)
        good += [new_k == k, got["v"].view(np.uint16).reshape(v.shape) == v]
        return np.concatenate([g.reshape(-1) for g in good])


class Attn:
    def __init__(self, op, step, layouts, rng):
        self.op, self.step = op, step
        n_head, n_kv, hd, cap = op["n_head"], op["n_kv"], op["hd"], op["cap"]
        self.qkv = rng.standard_normal((step.n_rows, (n_head + 2 * n_kv) * hd)).astype(np.float32)
        # What no row may see holds NaN: a kernel that touches it with arithmetic shows.
        self.k = np.full((op["slots"], n_kv, cap, hd), np.nan, np.float16)
        self.v = self.k.copy()
        for i, slot in enumerate(step.slot):
            pos = step.pos[step.seq == i].astype(int)
            seen = np.arange(self.first(pos[0]), pos[-1] + 1) % cap
            for cache in (self.k, self.v):
                cache[slot][:, seen] = 2 * rng.standard_normal((n_kv, len(seen), hd))
        k = self.k.reshape(op["slots"], n_kv, cap // 16, 16, hd).transpose(0, 1, 2, 4, 3)
        self.operands = {"qkv": self.qkv, "k": np.ascontiguousarray(k), "v": self.v,
                         "y": np.zeros((step.n_rows, n_head * hd), np.float32)}

    def first(self, pos):
        return max(0, pos - self.op["window"] + 1) if self.op["window"] else 0

    def check(self, got):
        op, step = self.op, self.step
        y = got["y"].view(np.float32).reshape(step.n_rows, op["n_head"], op["hd"])
        want = np.zeros(y.shape)
        for t in range(step.n_rows):
            slot, pos = step.slot[step.seq[t]], int(step.pos[t])
            seen = np.arange(self.first(pos), pos + 1) % op["cap"]
            q = self.qkv[t].reshape(-1, op["hd"])[:op["n_head"]].astype(np.float64)
            for h in range(op["n_head"]):
                kv = h * op["n_kv"] // op["n_head"]
                score = self.k[slot, kv, seen].astype(np.float64) @ q[h] * op["scale"]
                p = np.exp(score - score.max())
                want[t, h] = p @ self.v[slot, kv, seen].astype(np.float64) / p.sum()
        return np.abs(y - want) <= 1e-5  # |v| is about 2; scores reach 40, exp costs 40 * 2^-24


FAMILIES = {"matmul": Matmul, "embed": Embed, "norm_quant": Norm, "quant": Quant,
            "rope_table": RopeTable, "rope_kv": RopeKv, "attn": Attn}
