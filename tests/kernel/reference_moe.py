"""What the kernels of a mixture of experts must compute, in numpy and float64 (see reference.py)."""
import numpy as np

from reference import SUM_TOLERANCE, decode, pack, q8_zeros, quantise, random_rows, silu

TILE = 32


def n_pairs_of(op):
    return op["n_used"] + ("shared" in op)


def n_tiles(op, T):
    n, groups = T * n_pairs_of(op), op["E"] + ("shared" in op)
    return min(n, (n + groups * (TILE - 1)) // TILE)


def picks(op, T, rng):
    """Distinct experts for each row; the step's length decides how they are spread."""
    E, k = op["E"], op["n_used"]
    ids = np.array([rng.permutation(E)[:k] for _ in range(T)], np.int32)
    if T % 3 == 1:
        ids[:] = ids[0]  # all rows to the same experts, none to the others
    elif T % 3 == 2 and E > k:
        ids = np.where(ids == E - 1, E - 1 - k, ids)  # one expert gets none
        ids = np.array([np.unique(row) if len(np.unique(row)) == k else rng.permutation(E - 1)[:k] for row in ids])
    return ids.astype(np.int32)


def sorted_pairs(op, ids):
    """(pairs in the order of their experts, tile map), by the definition."""
    T, k, P, E = len(ids), op["n_used"], n_pairs_of(op), op["E"]
    expert = np.concatenate([ids, np.full((T, P - k), E, np.int32)], 1).reshape(-1)
    pairs = np.argsort(expert, kind="stable").astype(np.int32)
    entries, first = [], 0
    for e in range(E + P - k):
        n = int((expert == e).sum())
        entries += [(e, first + i, min(TILE, n - i), 0) for i in range(0, n, TILE)]
        first += n
    empty = n_tiles(op, T) - len(entries)
    assert empty >= 0
    return pairs, np.array(entries + [(0, 0, 0, 0)] * empty, np.int32)


class RouterParts:
    def __init__(self, op, step, layouts, rng):
        name, K, E = op["wtype"], op["K"], op["E"]
        x = rng.standard_normal((step.n_rows, K)).astype(np.float32)
        rows = random_rows(name, layouts[name], E, K, rng)
        w, cuts = decode(name, rows), range(0, K, 256)
        self.want = np.stack([x[:, a:a + 256] @ w[:, a:a + 256].T for a in cuts], 1)
        self.size = np.stack([np.abs(x[:, a:a + 256]) @ np.abs(w[:, a:a + 256]).T for a in cuts], 1)
        self.operands = {"x": x, "w": pack(layouts[name], rows, K), "y": np.zeros(self.want.shape, np.float32)}

    def check(self, got):
        y = got["y"].view(np.float32).reshape(self.want.shape)
        return np.abs(y - self.want) <= SUM_TOLERANCE * self.size + 1e-30


class Router:
    """Odd rows of logits: NaN, infinities, ties, and all of one value."""

    def __init__(self, op, step, layouts, rng):
        self.op, E, T = op, op["E"], step.n_rows
        self.logits = (3 * rng.standard_normal((T, E))).astype(np.float32)
        self.bias = (0.1 * rng.standard_normal(E)).astype(np.float32)
        self.bias[E // 2] = self.bias[0]
        kinds = [lambda x: x.__setitem__(slice(None, None, 3), np.nan), lambda x: x.fill(0.25),
                 lambda x: x.fill(np.nan), lambda x: x.__setitem__(slice(1, None), np.nan),
                 lambda x: x.__setitem__(slice(0, E // 2 + 1), x[0]), lambda x: x.__setitem__(slice(0, 5), -np.inf),
                 lambda x: x.__setitem__(slice(0, 2), np.inf), lambda x: x.fill(-1e5), lambda x: x.fill(-np.inf)]
        for t in range(1, T):
            kinds[(t - 1) % len(kinds)](self.logits[t])
        parts = np.zeros((T, op["parts"], E), np.float32)
        parts[:, 0] = self.logits
        for a in range(1, op["parts"]):  # the first row has several, the odd ones must stay as they are
            parts[0, a] = rng.standard_normal(E)
            self.logits[0] += parts[0, a]
        self.operands = {"logits": parts, "bias": self.bias, "ids": np.zeros((T, op["n_used"]), np.int32),
                         "weights": np.zeros((T, op["n_used"]), np.float32)}

    def probabilities(self, x):
        x = x.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.op["gating"] == "sigmoid":
                return 1 / (1 + np.exp(np.minimum(-x, 88)))
            e = np.exp(x - x.max()) if not np.isnan(x).any() else np.full(len(x), np.nan)
            return e / e.sum()

    def check_row(self, x, ids, weights):
        """One row: distinct picks, greatest first, ties and NaN by number; then their weights."""
        op, p = self.op, self.probabilities(x)
        sel = p + self.bias.astype(np.float64) if op["bias"] else p
        rank = np.where(np.isnan(sel), -np.inf, sel)
        good = [len(set(ids)) == len(ids), ids.min() >= 0, ids.max() < op["E"]]
        left = np.ones(op["E"], bool)
        for e in ids:
            same = left & (np.isnan(sel) if np.isnan(sel[e]) else (x == x[e]) & (sel == sel[e]))
            good += [rank[e] >= rank[left].max() - 1e-6, e == np.flatnonzero(same)[0]]
            left[e] = False
        w = p[ids]
        if op["norm"]:
            total = w.sum()
            w = w / (total if total > 6.103515625e-5 else 6.103515625e-5)
        w = w * (op["scale"] or 1.0)
        near = np.abs(weights - w) <= 2e-6 * np.abs(w) + 1e-37
        return good + list(near | (np.isnan(w) & (weights.view(np.uint32) == 0x7FC00000)))

    def check(self, got):
        T, k = len(self.logits), self.op["n_used"]
        ids, w = got["ids"].view(np.int32).reshape(T, k), got["weights"].view(np.float32).reshape(T, k)
        return np.concatenate([self.check_row(*row) for row in zip(self.logits, ids, w)])


class Sort:
    def __init__(self, op, step, layouts, rng):
        ids = picks(op, step.n_rows, rng)
        self.pairs, self.map = sorted_pairs(op, ids)
        self.operands = {"ids": ids, "pairs": np.zeros_like(self.pairs), "map": np.full_like(self.map, 7)}

    def check(self, got):  # exact
        return np.concatenate([got["pairs"].view(np.int32) == self.pairs,
                               got["map"].view(np.int32) == self.map.reshape(-1)])


def has_factor(op, i, e):
    part = op["parts"][i] if e < op["E"] else op["shared"][i]
    return part.get("factor", False)


def weighted(op, weights, z):
    """[T][P][n] to [T][n], and the sum of magnitudes."""
    w = np.concatenate([weights.astype(np.float64), np.ones((len(weights), n_pairs_of(op) - op["n_used"]))], 1)
    return (w[:, :, None] * z).sum(1), np.abs(w)


def summed(op, product, z):
    """What moe_sum makes of a down product's bytes, in f32: a chain of fma (exact in float64 but for its end)."""
    z = z.view(np.float32).reshape(-1, n_pairs_of(op), op["n"])
    w, k = product.operands["weights"], op["n_used"]
    s = np.zeros_like(z[:, 0])
    for j in range(k):
        s = (w[:, j, None].astype(np.float64) * z[:, j] + s).astype(np.float32)
    if "shared" in op:
        s = s + z[:, k]
    return product.operands["first_y"] + s


class Sum:
    def __init__(self, op, step, layouts, rng):
        T, P = step.n_rows, n_pairs_of(op)
        x = rng.standard_normal((T, P, op["H"])).astype(np.float32)
        weights = rng.random((T, op["n_used"])).astype(np.float32)
        y = rng.standard_normal((T, op["H"])).astype(np.float32)
        z, w = weighted(op, weights, x)
        self.want, self.size = y + z, np.abs(y) + (w[:, :, None] * np.abs(x)).sum(1)
        self.operands = {"x": x, "weights": weights, "y": y}

    def check(self, got):
        y = got["y"].view(np.float32).reshape(self.want.shape)
        return np.abs(y - self.want) <= 1e-6 * self.size


class Product:
    """Both families: matvec_moe by ids, moe_matmul by the sorted pairs of the same ids."""

    def __init__(self, op, step, layouts, rng):
        self.op, K, T, P = op, op["K"], step.n_rows, n_pairs_of(op)
        gated = op["stage"] == "gated"
        ids = picks(op, T, rng)
        weights = rng.random((T, op["n_used"])).astype(np.float32)
        x = rng.standard_normal((T if gated else T * P, K)).astype(np.float32)
        q, d, s = quantise(x) if K % 32 == 0 else (None, None, None)
        pairs, tiles = sorted_pairs(op, ids)
        self.operands = {"x": x, "x_q": q, "x_d": d, "x_s": s, "ids": ids, "weights": weights, "pairs": pairs,
                         "map": tiles}
        self.z, self.size = self.products(op, layouts, rng, ids, x, q, d)
        if gated:
            self.gate()
            return
        y = rng.standard_normal((T, op["n"])).astype(np.float32)
        self.operands["first_y"] = y
        if op["family"] == "matvec_moe":
            z, w = weighted(op, weights, self.z[0])
            self.want, self.size = y + z, np.abs(y) + (w[:, :, None] * (self.size[0] + np.abs(self.z[0]))).sum(1)
            self.operands["y"] = y
        else:
            self.want, self.size = self.z[0], self.size[0]
            self.operands["y"] = np.zeros((T * P, op["n"]), np.float32)

    def products(self, op, layouts, rng, ids, x, q, d):
        """For each matrix of a set: y [T][P][n] of all pairs and the sums of magnitudes."""
        T, P, k = len(ids), n_pairs_of(op), op["n_used"]
        rows = np.arange(T * P) // P if op["stage"] == "gated" else np.arange(T * P)
        ys, sizes = [], []
        for i, part in enumerate(op["parts"]):
            y = np.zeros((T * P, op["n"]))
            size = np.zeros_like(y)
            image, factors = [], (rng.standard_normal(op["E"] + 1) * 0.5 + 1).astype(np.float32)
            for e in range(op["E"] + ("shared" in op)):
                name = part["type"] if e < op["E"] else op["shared"][i]["type"]
                raw = random_rows(name, layouts[name], op["n"], op["K"], rng)
                packed, w = pack(layouts[name], raw, op["K"]), decode(name, raw)
                image.append(packed)
                plain = name in ("f32", "f16", "bf16")
                mine = np.flatnonzero((ids == e).any(1)) if e < op["E"] else np.arange(T)
                at = np.array([t * P + (np.flatnonzero(ids[t] == e)[0] if e < op["E"] else k) for t in mine], int)
                if len(at):
                    r = rows[at]
                    a = x[r].astype(np.float64) if plain else q[r] * np.repeat(d[r].astype(np.float64), 32, 1)
                    f = factors[e] if has_factor(op, i, e) else np.float32(1)
                    y[at], size[at] = a @ w.T * f, np.abs(a) @ np.abs(w).T * abs(f)
            self.operands[f"w{i}"] = np.concatenate(image[:op["E"]])
            self.operands[f"f{i}"] = factors[:op["E"]]
            if "shared" in op:
                self.operands[f"s{i}"] = image[-1]
                self.operands[f"g{i}"] = factors[op["E"]:]
            ys.append(y.reshape(T, P, -1))
            sizes.append(size.reshape(T, P, -1))
        return ys, sizes

    def gate(self):
        (gate, up), (gate_size, up_size) = self.z, self.size
        self.want = silu(gate) * up
        self.size = 1.1 * gate_size * np.abs(up) + np.abs(silu(gate)) * up_size + np.abs(self.want)
        flat = self.want.reshape(-1, self.op["n"])
        self.operands["y"] = np.zeros(flat.shape, np.float32)
        if self.op["outputs"].get("q8"):
            self.operands.update(q8_zeros("y", flat))

    def check(self, got):
        good = []
        if "y" in got:
            y = got["y"].view(np.float32).reshape(self.want.shape)
            good.append((np.abs(y - self.want) <= SUM_TOLERANCE * self.size + 1e-30).reshape(-1))
        if "y_q" in got:
            good.append(self.check_bytes(got))
        return np.concatenate(good)

    def check_bytes(self, got):
        """As reference.check_q8, but the floats in front of the rounding are off by SUM_TOLERANCE of their size."""
        n = self.op["n"]
        y, size = self.want.reshape(-1, n // 32, 32), self.size.reshape(-1, n // 32, 32)
        off = SUM_TOLERANCE * size.max(2)
        q = got["y_q"].view(np.int8).reshape(y.shape)
        d = got["y_d"].view(np.float32).reshape(y.shape[:2]).astype(np.float64)
        s = got["y_s"].view(np.int16).reshape(*y.shape[:2], 2)
        near = np.abs(q * d[:, :, None] - y) <= (0.5001 * d + 2 * off + 1e-30)[:, :, None]
        scale = np.abs(d - np.abs(y).max(2) / 127) <= off / 127 + 1e-6 * d + 1e-37
        return np.concatenate([near.reshape(-1), scale.reshape(-1),
                               (q.reshape(*y.shape[:2], 2, 16).sum(3) == s).reshape(-1)])


FAMILIES = {"router_parts": RouterParts, "router_topk": Router, "moe_sort": Sort, "moe_sum": Sum, "matvec_moe": Product, "moe_matmul": Product}
