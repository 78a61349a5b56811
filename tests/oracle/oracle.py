"""The float64 reference: a numpy forward pass of the `llama` architecture from a GGUF file.

Takes a model file and token ids, gives logits of every position in float64; weights come from the
gguf package's dequantisation, so nothing is shared with lagen or with what it emits. Everything is
computed in float64 with no rounding in between: K and V stay float64, activations are never
quantised. Refuses other architectures, expert tensors and tensors it does not know.

Weights are dequantised one tensor at a time, used for all positions and dropped (keep=True holds
them, for decoding step by step). Logits of long texts are made in blocks of rows.

    oracle.py MODEL --tokens 1,2,3 [--out logits.npy]
"""
import argparse
import math
import re
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

ROWS_PER_BLOCK = 128  # rows of logits made at a time: 128 x 49152 float64 are 50 MB

KNOWN = re.compile(
    r"(token_embd|output|output_norm|rope_freqs)\.weight|output\.bias|"
    r"blk\.\d+\.(attn|ffn)_norm\.weight|"
    r"blk\.\d+\.(attn_(q|k|v|qkv|output)|ffn_(gate|up|down))\.(weight|bias)")


class Refused(Exception):
    """The file holds something that this reference does not compute."""


def rope_frequencies(n_rot, base, scaling, factors=None):
    """Angle per position of each pair, float64 [n_rot/2], and the magnitude of cos and sin.

    scaling: {"type": "none"|"linear"|"yarn", "factor": f, "attn_factor": a, "n_ctx_orig": n,
    "beta_fast": 32, "beta_slow": 1}. factors: divisors per pair (rope_freqs.weight) or None.
    Sources: RoFormer (arXiv 2104.09864), YaRN (arXiv 2309.00071) with llama.cpp's conventions.
    """
    pair = np.arange(n_rot // 2, dtype=np.float64)
    theta = base ** (-2.0 * pair / n_rot)
    if factors is not None:
        theta = theta / factors
    kind = scaling.get("type", "linear")
    factor = float(scaling.get("factor", 1.0)) or 1.0
    if kind == "none":
        factor = 1.0
    magnitude = float(scaling.get("attn_factor", 1.0))
    if kind != "yarn":
        return theta / factor, magnitude

    def correction(beta):
        turns = scaling["n_ctx_orig"] / (2.0 * math.pi * beta)
        return n_rot * math.log(turns) / (2.0 * math.log(base))

    low = max(0, math.floor(correction(scaling.get("beta_fast", 32.0))))
    high = min(n_rot - 1, math.ceil(correction(scaling.get("beta_slow", 1.0))))
    ramp = 1.0 - np.clip((pair - low) / max(0.001, high - low), 0.0, 1.0)
    magnitude *= 1.0 + 0.1 * math.log(factor)
    return theta / factor * (1.0 - ramp) + theta * ramp, magnitude


def rotate_norm(x, angle, magnitude):
    """RoPE on [rows, heads, hd]: pairs are elements (2i, 2i+1); angle is [rows, n_rot/2]."""
    n_rot = 2 * angle.shape[1]
    cos = np.cos(angle)[:, None, :] * magnitude
    sin = np.sin(angle)[:, None, :] * magnitude
    a = x[:, :, 0:n_rot:2]
    b = x[:, :, 1:n_rot:2]
    out = x.copy()
    out[:, :, 0:n_rot:2] = a * cos - b * sin
    out[:, :, 1:n_rot:2] = a * sin + b * cos
    return out


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


class Oracle:
    """One model file. `logits(tokens)` starts at position 0; `session()` continues step by step."""

    def __init__(self, path, keep=False):
        reader = GGUFReader(str(path))
        self._meta = {name: field.contents() for name, field in reader.fields.items()
                      if not name.startswith("tokenizer.")}
        if self._meta.get("general.architecture") != "llama":
            raise Refused(f"architecture {self._meta.get('general.architecture')!r} is not llama")
        self._tensors = {t.name: t for t in reader.tensors}
        unknown = [n for n in self._tensors if not KNOWN.fullmatch(n)]
        if unknown:
            raise Refused(f"tensor {unknown[0]!r} is not part of this reference")
        self._kept = {} if keep else None
        self._read_dims()

    def _key(self, name, default=None):
        value = self._meta.get("llama." + name, default)
        if value is None:
            raise Refused(f"key llama.{name} is absent")
        return value

    def _read_dims(self):
        self.n_layers = self._key("block_count")
        self.n_embd = self._key("embedding_length")
        self.n_head = self._key("attention.head_count")
        self.n_kv = self._key("attention.head_count_kv", self.n_head)
        self.hd = self._key("attention.key_length", self.n_embd // self.n_head)
        if isinstance(self.n_head, list) or isinstance(self.n_kv, list):
            raise Refused("per-layer head counts")
        if self._key("attention.value_length", self.hd) != self.hd:
            raise Refused("value_length differs from key_length")
        self.eps = float(np.float32(self._key("attention.layer_norm_rms_epsilon")))
        self.scale = float(self._key("attention.scale", 0.0)) or 1.0 / math.sqrt(self.hd)
        self.n_vocab = int(self._tensors["token_embd.weight"].shape[1])
        self._read_rope()

    def _read_rope(self):
        n_rot = self._key("rope.dimension_count", self.hd)
        scaling = {
            "type": self._key("rope.scaling.type", "linear"),
            "factor": self._key("rope.scaling.factor", self._key("rope.scale_linear", 1.0)),
            "attn_factor": self._key("rope.scaling.attn_factor", 1.0),
            "n_ctx_orig": self._key("rope.scaling.original_context_length",
                                    self._key("context_length")),
        }
        if scaling["type"] not in ("none", "linear", "yarn"):
            raise Refused(f"rope scaling {scaling['type']!r}")
        name = "rope_freqs.weight"
        factors = self._weight(name) if name in self._tensors else None
        base = float(self._key("rope.freq_base", 10000.0))
        self.freq, self.magnitude = rope_frequencies(n_rot, base, scaling, factors)

    def _weight(self, name):
        """A tensor as float64, [rows, cols] or [n]."""
        if self._kept is not None and name in self._kept:
            return self._kept[name]
        t = self._tensors[name]
        value = dequantize(t.data, t.tensor_type).astype(np.float64)
        value = value.reshape([int(n) for n in reversed(t.shape)])
        if self._kept is not None:
            self._kept[name] = value
        return value

    def _linear(self, x, name):
        y = x @ self._weight(name + ".weight").T
        if name + ".bias" in self._tensors:
            y += self._weight(name + ".bias")
        return y

    def _embed(self, tokens):
        t = self._tensors["token_embd.weight"]
        if min(tokens) < 0 or max(tokens) >= self.n_vocab:
            raise Refused(f"a token outside 0..{self.n_vocab - 1}")
        return dequantize(t.data[np.asarray(tokens)], t.tensor_type).astype(np.float64)

    def session(self):
        return Session(self)

    def hidden(self, tokens):
        """Normed last hidden states, float64 [n, n_embd]: what the output matrix is applied to."""
        return self.session().feed(tokens)

    def output(self, hidden):
        name = "output" if "output.weight" in self._tensors else "token_embd"
        return self._linear(hidden, name)

    def logits(self, tokens):
        """float64 [n, n_vocab]."""
        return self.output(self.hidden(tokens))

    def logit_blocks(self, tokens, rows=ROWS_PER_BLOCK):
        """Yields (first row, float64 [up to `rows`, n_vocab]); the output matrix is held once."""
        hidden = self.hidden(tokens)
        name = "output" if "output.weight" in self._tensors else "token_embd"
        weight = self._weight(name + ".weight")
        bias = self._weight("output.bias") if "output.bias" in self._tensors else 0.0
        for at in range(0, len(hidden), rows):
            yield at, hidden[at:at + rows] @ weight.T + bias


class Session:
    """Keys and values of one sequence; feed() appends tokens to it."""

    def __init__(self, oracle):
        o = self._o = oracle
        self._k = [np.zeros((0, o.n_kv, o.hd)) for _ in range(o.n_layers)]
        self._v = [np.zeros((0, o.n_kv, o.hd)) for _ in range(o.n_layers)]
        self.n_past = 0

    def feed(self, tokens):
        """Runs the tokens at the next positions; normed hidden states, float64 [n, n_embd]."""
        o = self._o
        x = o._embed(tokens)
        angle = (self.n_past + np.arange(len(tokens), dtype=np.float64))[:, None] * o.freq[None, :]
        for layer in range(o.n_layers):
            blk = f"blk.{layer}."
            h = rms_norm(x, o._weight(blk + "attn_norm.weight"), o.eps)
            x = x + o._linear(self._attention(h, layer, angle), blk + "attn_output")
            h = rms_norm(x, o._weight(blk + "ffn_norm.weight"), o.eps)
            gate = o._linear(h, blk + "ffn_gate")
            act = gate / (1.0 + np.exp(-gate)) * o._linear(h, blk + "ffn_up")
            x = x + o._linear(act, blk + "ffn_down")
        self.n_past += len(tokens)
        return rms_norm(x, o._weight("output_norm.weight"), o.eps)

    def _qkv(self, h, layer):
        o, blk = self._o, f"blk.{layer}."
        if blk + "attn_qkv.weight" in o._tensors:
            qkv = o._linear(h, blk + "attn_qkv")
            cuts = [o.n_head * o.hd, (o.n_head + o.n_kv) * o.hd]
            return np.split(qkv, cuts, axis=1)
        return [o._linear(h, blk + "attn_" + part) for part in "qkv"]

    def _attention(self, h, layer, angle):
        """Causal attention of the new rows over all past and new positions; [n, n_head * hd]."""
        o, n = self._o, len(h)
        q, k, v = (m.reshape(n, -1, o.hd) for m in self._qkv(h, layer))
        q = rotate_norm(q, angle, o.magnitude)
        k = rotate_norm(k, angle, o.magnitude)
        keys = self._k[layer] = np.concatenate([self._k[layer], k])
        values = self._v[layer] = np.concatenate([self._v[layer], v])
        visible = np.arange(len(keys))[None, :] <= self.n_past + np.arange(n)[:, None]
        out = np.empty((n, o.n_head, o.hd))
        for head in range(o.n_head):
            kv = head // (o.n_head // o.n_kv)
            s = np.where(visible, q[:, head] @ keys[:, kv].T * o.scale, -np.inf)
            p = np.exp(s - s.max(axis=1, keepdims=True))
            out[:, head] = p @ values[:, kv] / p.sum(axis=1, keepdims=True)
        return out.reshape(n, -1)


def main():
    ap = argparse.ArgumentParser(description="float64 logits of a llama GGUF file")
    ap.add_argument("model")
    ap.add_argument("--tokens", required=True, help="comma-separated token ids")
    ap.add_argument("--out", help="write float64 [n, vocab] as .npy instead of a summary")
    args = ap.parse_args()
    tokens = [int(t) for t in args.tokens.split(",")]
    try:
        logits = Oracle(args.model).logits(tokens)
    except Refused as why:
        print(f"oracle: {args.model}: {why}", file=sys.stderr)
        return 1
    if args.out:
        np.save(args.out, logits)
        return 0
    for pos, row in enumerate(logits):
        top = np.argsort(-row)[:5]
        print(pos, " ".join(f"{t}:{row[t]:.6f}" for t in top))
    return 0


if __name__ == "__main__":
    sys.exit(main())
