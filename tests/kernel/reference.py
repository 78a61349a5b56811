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
    set_scales(layout, raw, lambda n: 0.05 * rng.standard_normal(n), [0.0, -6e-8, 3e-5][n_rows % 3])
    raw[0, -16:] = 255
    raw[-1, -16:] = 128
    for row in (0, -1):  # the extremes may have met a scale
        set_scales(layout, raw[row:][:1], np.ones, 1.0)
    return raw.reshape(n_rows, -1)


def set_scales(layout, raw, draw, small):
    """Puts scales draw(n) into qblocks [n][bytes], and a zero or subnormal one into every seventh."""
    for plane in layout["planes"]:
        at, scale = plane["src_offset"], draw(len(raw))
        halves = scale.astype(np.float16)
        halves[::7] = small
        halves = halves.view(np.uint16)
        if plane["check"] == 1:
            raw[:, at:at + 2] = halves.view(np.uint8).reshape(-1, 2)
        if plane["check"] == 2:
            raw[:, at] = np.clip(np.log2(np.abs(scale) + 1e-9) + 127, 0, 254).astype(np.uint8)
            raw[::7, at] = 0 if small == 0.0 else 1
        for i in range(4 if plane["check"] == 3 else 0):
            raw[:, at + 2 * i + 1] = raw[:, at + 2 * i + 1] & 15 | (halves >> 4 * i & 15) << 4


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
            if part["factor"]:
                factor = rng.standard_normal(1).astype(np.float32)
                self.operands[f"f{i}"] = factor
                y, size = y * factor, size * np.abs(factor)
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


# Caches, as float arrays [slot][kv head][position][d] and as a kernel lays them out (templates/kv).

def blocks_of(x, transpose):
    """[slots][n_kv][cap][n] in blocks of 16 positions, those of keys transposed."""
    x = x.reshape(*x.shape[:2], x.shape[2] // 16, 16, x.shape[3])
    return np.ascontiguousarray(x.swapaxes(3, 4) if transpose else x)


def positions_of(blocks, transpose):
    x = blocks.swapaxes(3, 4) if transpose else blocks
    return x.reshape(*x.shape[:2], -1, x.shape[4])


def cache_bytes(kv, codes, scales, transpose):
    """codes: halves or bytes [slots][n_kv][cap][hd]; scales: halves [..][hd / 32] or None."""
    codes = blocks_of(codes, transpose)
    if kv == "f16":
        return codes
    scales = blocks_of(scales, transpose)
    flat = codes.shape[:3] + (-1,)
    parts = [a.reshape(flat).view(np.int8) for a in (codes, scales)]
    return np.ascontiguousarray(np.concatenate(parts, 3))


def cache_parts(kv, data, op, transpose):
    """The reverse: codes and scales by position; of a cache of halves the halves and None."""
    n_kv, cap, hd = op["n_kv"], op["cap"], op["hd"]
    shape = (op["slots"], n_kv, cap // 16)
    block = (hd, 16) if transpose else (16, hd)
    groups = (hd // 32, 16) if transpose else (16, hd // 32)
    if kv == "f16":
        return positions_of(data.view(np.float16).reshape(shape + block), transpose), None
    data = data.view(np.int8).reshape(shape + (17 * hd,))
    codes = data[..., :16 * hd].reshape(shape + block)
    scales = np.ascontiguousarray(data[..., 16 * hd:]).view(np.float16).reshape(shape + groups)
    return positions_of(codes, transpose), positions_of(scales, transpose)


def cache_values(kv, codes, scales):
    """What a cache means, in float64."""
    if kv == "f16":
        return codes.astype(np.float64)
    return codes * np.repeat(scales.astype(np.float64), 32, axis=-1)


def row_width(op):
    gates = {"none": 0, "head": op["n_head"], "element": op["n_head"] * op["hd"]}
    return (op["n_head"] + 2 * op["n_kv"]) * op["hd"] + gates[op["gate"]]


class RopeKv:
    def __init__(self, op, step, layouts, rng):
        self.op, self.step = op, step
        n_kv, hd = op["n_kv"], op["hd"]
        self.qkv = rng.standard_normal((step.n_rows, row_width(op))).astype(np.float32)
        self.qkv[0, :hd] *= np.float32(1e-3)  # eps counts
        phi = step.pos[:, None] * 0.37 ** np.arange(op["n_rot"] // 2)
        self.table = np.stack([np.cos(phi), np.sin(phi)], 2).astype(np.float32)
        self.norms = (1 + 0.2 * rng.standard_normal((2, hd))).astype(np.float32)
        cells = op["slots"] * n_kv * op["cap"]
        per = 2 * hd if op["kv"] == "f16" else hd + hd // 16
        self.k, self.v = (rng.integers(0, 256, cells * per).astype(np.uint8) for _ in "kv")
        self.operands = {"qkv": self.qkv, "q_norm": self.norms[0], "k_norm": self.norms[1],
                         "table": self.table, "k": self.k, "v": self.v}

    def rotated(self, x, norm):
        """x [rows, heads, hd] in float64, normed if the op says so."""
        n_rot, half = self.op["n_rot"], self.op["n_rot"] // 2
        c, s = (self.table[:, None, :, i].astype(np.float64) for i in (0, 1))
        x = x.astype(np.float64).copy()
        if "eps" in self.op:
            x = x / np.sqrt((x * x).mean(2, keepdims=True) + self.op["eps"]) * norm
        first = np.arange(half) * 2 if self.op["pairing"] == "norm" else np.arange(half)
        second = first + 1 if self.op["pairing"] == "norm" else first + half
        assert second.max() < n_rot
        a, b = x[:, :, first], x[:, :, second]
        x[:, :, first], x[:, :, second] = a * c - b * s, a * s + b * c
        return x

    def stored(self, data, was, want, transpose, exact):
        """The rows' cells hold `want` [rows, n_kv, hd] as well as the type can; others are as before."""
        op, kv = self.op, self.op["kv"]
        new, old = (cache_parts(kv, d, op, transpose) for d in (data, was))
        slot, at = self.step.slot[self.step.seq], self.step.pos % op["cap"]
        good = []
        for i, part in enumerate(new):
            if part is not None:
                mine = part[slot, :, at]
                back = part.copy()
                back[slot, :, at] = old[i][slot, :, at]
                good.append(back.view(np.uint8) == old[i].view(np.uint8))
        codes = new[0][slot, :, at]
        if kv == "f16":
            error = 1e-6 * (not exact) + np.maximum(2.0 ** -25, 2.0 ** -11 * np.abs(want))  # the least halves are subnormal
            good.append(np.abs(codes.astype(np.float64) - want) <= error)
            return good
        scales = new[1][slot, :, at].astype(np.float64)
        amax = np.abs(want).reshape(*want.shape[:2], -1, 32).max(3)
        good.append(np.abs(scales - amax / 127) <= 2.0 ** -10 * amax / 127)
        got = codes * np.repeat(scales, 32, axis=-1)
        good.append(np.abs(got - want) <= 0.501 * np.repeat(scales, 32, axis=-1) + 2e-6)
        good.append(np.abs(codes.astype(int)) <= 127)
        return good

    def check(self, got):
        op, n = self.op, self.step.n_rows
        q_end, k_end = op["n_head"], op["n_head"] + op["n_kv"]
        qkv = got["qkv"].view(np.float32).reshape(n, -1)
        heads = self.qkv[:, :(k_end + op["n_kv"]) * op["hd"]].reshape(n, -1, op["hd"])
        q = qkv[:, :q_end * op["hd"]].reshape(n, q_end, -1)
        want_q = self.rotated(heads[:, :q_end], self.norms[0])
        want_k = self.rotated(heads[:, q_end:k_end], self.norms[1])
        good = [np.abs(q - want_q) <= 2e-6, qkv[:, q_end * op["hd"]:] == self.qkv[:, q_end * op["hd"]:]]
        good += self.stored(got["k"], self.k, want_k, True, False)
        good += self.stored(got["v"], self.v, heads[:, k_end:].astype(np.float64), False, True)
        return np.concatenate([g.reshape(-1) for g in good])


def softplus(x):
    return np.logaddexp(0.0, x.astype(np.float64))


class Attn:
    def __init__(self, op, step, layouts, rng):
        self.op, self.step = op, step
        n_kv, hd, cap, kv = op["n_kv"], op["hd"], op["cap"], op["kv"]
        self.qkv = rng.standard_normal((step.n_rows, row_width(op))).astype(np.float32)
        self.qkv[:, (op["n_head"] + 2 * n_kv) * hd:] *= 12  # gates, shut and wide open
        # What no row may see holds NaN: a kernel that touches it with arithmetic shows.
        shape = (op["slots"], n_kv, cap)
        kind = np.float16 if kv == "f16" else np.int8
        self.codes = [np.full(shape + (hd,), np.nan if kv == "f16" else 99, kind) for _ in "kv"]
        self.scales = [np.full(shape + (hd // 32,), np.nan, np.float16) for _ in "kv"]
        for i, slot in enumerate(step.slot):
            pos = step.pos[step.seq == i].astype(int)
            seen = np.arange(self.first(pos[0]), pos[-1] + 1) % cap
            for codes, scales in zip(self.codes, self.scales):
                size = (n_kv, len(seen), hd)
                codes[slot][:, seen] = (2 * rng.standard_normal(size) if kv == "f16"
                                        else rng.integers(-127, 128, size))
                scales[slot][:, seen] = 0.03 * rng.random((n_kv, len(seen), hd // 32))
                if "flat" in op:
                    codes[slot][:, seen] = 0 if codes is self.codes[0] else op["flat"]
            if "steep" in op:  # from first to last position: of odd key heads up, of even ones down
                ramp = op["steep"] * np.linspace(1, -1, len(seen))
                for h in range(n_kv):
                    self.codes[0][slot, h, seen, 0] = -ramp if h % 2 else ramp
        if "steep" in op:
            self.qkv[:, :op["n_head"] * hd:hd] = 8
        self.k, self.v = (cache_values(kv, c, s) for c, s in zip(self.codes, self.scales))
        self.operands = {"qkv": self.qkv, "y": np.zeros((step.n_rows, op["n_head"] * hd), np.float32)}
        for name, i in (("k", 0), ("v", 1)):
            self.operands[name] = cache_bytes(kv, self.codes[i], self.scales[i], name == "k")

    def first(self, pos):
        return max(0, pos - self.op["window"] + 1) if self.op["window"] else 0

    def gates(self, t):
        """softplus of row t's gates, [n_head, hd] or [n_head, 1]."""
        op = self.op
        if op["gate"] == "none":
            return np.ones((op["n_head"], 1))
        return softplus(self.qkv[t, (op["n_head"] + 2 * op["n_kv"]) * op["hd"]:]).reshape(op["n_head"], -1)

    def check(self, got, error=1e-5):
        op, step = self.op, self.step
        y = got["y"].view(np.float32).reshape(step.n_rows, op["n_head"], op["hd"])
        want = np.zeros(y.shape)
        for t in range(step.n_rows):
            slot, pos = step.slot[step.seq[t]], int(step.pos[t])
            seen = np.arange(self.first(pos), pos + 1) % op["cap"]
            q = self.qkv[t, :op["n_head"] * op["hd"]].reshape(-1, op["hd"]).astype(np.float64)
            open_ = self.gates(t)
            for h in range(op["n_head"]):
                kv = h * op["n_kv"] // op["n_head"]
                score = self.k[slot, kv, seen] @ q[h] * op["scale"]
                p = np.exp(score - score.max())
                want[t, h] = p @ self.v[slot, kv, seen] / p.sum() * open_[h]
        return np.abs(y - want) <= self.limits(error)

    def limits(self, error):
        """How far each number of y may be off, float64 [rows, n_head, hd]."""
        op = self.op
        # |v| is about 2; scores reach 40, exp costs 40 * 2^-24
        size = max(1.0, op.get("flat", 0.0) / 2, op.get("steep", 0.0) / 10)
        open_ = np.stack([self.gates(t) for t in range(self.step.n_rows)])
        return np.broadcast_to(error * np.maximum(open_, 1e-3) * size, (self.step.n_rows, op["n_head"], op["hd"]))


FAMILIES = {"matmul": Matmul, "embed": Embed, "norm_quant": Norm, "quant": Quant,
            "rope_table": RopeTable, "rope_kv": RopeKv, "attn": Attn}
