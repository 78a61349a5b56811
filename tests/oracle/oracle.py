"""The float64 reference: a numpy forward pass of the architectures `llama` and `laguna` from a GGUF file.

Takes a model file and token ids, gives logits of every position in float64; weights come from the
gguf package's dequantisation, so nothing is shared with lagen or with what it emits. Everything is
computed in float64 with no rounding in between: K and V stay float64, activations are never
quantised. Refuses other architectures and tensors it does not know.

What differs between architectures stands in a Layer for each layer (archs.py); the rest of a layer is
told by the tensors that it has: norms of heads, an output gate, experts.

Weights are dequantised one tensor at a time, used for all positions and dropped (keep=True holds
them, for decoding step by step). Logits of long texts are made in blocks of rows.

    oracle.py MODEL --tokens 1,2,3 [--out logits.npy]
"""
import argparse
import sys

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

import archs
from archs import Refused, rope_frequencies  # noqa: F401: part of what tests use

ROWS_PER_BLOCK = 128  # rows of logits made at a time: 128 x 49152 float64 are 50 MB

def rotate(x, angle, magnitude, pairing):
    """RoPE on [rows, heads, hd]; angle is [rows, n_rot/2]. Pairs are elements (2i, 2i+1), "norm", or
    (i, i + n_rot/2), "neox"."""
    half = angle.shape[1]
    cos = np.cos(angle)[:, None, :] * magnitude
    sin = np.sin(angle)[:, None, :] * magnitude
    first = slice(0, 2 * half, 2) if pairing == "norm" else slice(0, half)
    second = slice(1, 2 * half, 2) if pairing == "norm" else slice(half, 2 * half)
    a, b, out = x[:, :, first], x[:, :, second], x.copy()
    out[:, :, first] = a * cos - b * sin
    out[:, :, second] = a * sin + b * cos
    return out


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def silu(x):
    return x / (1.0 + np.exp(-np.maximum(x, -700.0)))


class Oracle:
    """One model file. `logits(tokens)` starts at position 0; `session()` continues step by step."""

    def __init__(self, path, keep=False, **rope):
        """rope: what archs.py takes to read YaRN otherwise, `magnitude`, `beta_fast`, `beta_slow`."""
        reader = GGUFReader(str(path))
        self._meta = {name: field.contents() for name, field in reader.fields.items()
                      if not name.startswith("tokenizer.")}
        self.arch = self._meta.get("general.architecture")
        if self.arch not in archs.ARCHS:
            raise Refused(f"architecture {self.arch!r} is not one of {', '.join(archs.ARCHS)}")
        known, read = archs.ARCHS[self.arch]
        self._tensors = {t.name: t for t in reader.tensors}
        unknown = [n for n in self._tensors if not known.fullmatch(n)]
        if unknown:
            raise Refused(f"tensor {unknown[0]!r} is not part of this reference")
        self._kept = {} if keep else None
        self.n_layers = self.key("block_count")
        self.n_embd = self.key("embedding_length")
        self.eps = float(np.float32(self.key("attention.layer_norm_rms_epsilon")))
        self.n_vocab = int(self._tensors["token_embd.weight"].shape[1])
        self.layers = read(self, rope)

    def key(self, name, default=None):
        value = self._meta.get(f"{self.arch}.{name}", default)
        if value is None:
            raise Refused(f"key {self.arch}.{name} is absent")
        return value

    def has(self, name):
        return name in self._tensors

    def shape(self, name):
        """[cols, rows, ..], as the file says it."""
        return [int(n) for n in self._tensors[name].shape]

    def weight(self, name):
        """A tensor as float64, [rows, cols] or [n]."""
        if self._kept is not None and name in self._kept:
            return self._kept[name]
        t = self._tensors[name]
        value = dequantize(t.data, t.tensor_type).astype(np.float64)
        value = value.reshape([int(n) for n in reversed(t.shape)])
        scale = name.removesuffix(".weight") + ".scale"
        if name.endswith(".weight") and scale in self._tensors:  # one number for each matrix
            value = value * self.weight(scale).reshape([-1] + [1] * (value.ndim - 1))
        if self._kept is not None:
            self._kept[name] = value
        return value

    def _linear(self, x, name):
        y = x @ self.weight(name + ".weight").T
        if name + ".bias" in self._tensors:
            y += self.weight(name + ".bias")
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
        weight = self.weight(name + ".weight")
        bias = self.weight("output.bias") if "output.bias" in self._tensors else 0.0
        for at in range(0, len(hidden), rows):
            yield at, hidden[at:at + rows] @ weight.T + bias


class Session:
    """Keys and values of one sequence; feed() appends tokens to it."""

    def __init__(self, oracle):
        self._o = oracle
        self._k = [np.zeros((0, y.n_kv, y.hd)) for y in oracle.layers]
        self._v = [np.zeros((0, y.n_kv, y.hd)) for y in oracle.layers]
        self.n_past = 0

    def feed(self, tokens, trace=None):
        """Runs the tokens at the next positions; normed hidden states, float64 [n, n_embd]. trace: a
        list that gets the hidden states behind each layer."""
        o = self._o
        x = o._embed(tokens)
        for layer in range(o.n_layers):
            blk = f"blk.{layer}."
            h = rms_norm(x, o.weight(blk + "attn_norm.weight"), o.eps)
            x = x + o._linear(self._attention(h, layer), blk + "attn_output")
            h = rms_norm(x, o.weight(blk + "ffn_norm.weight"), o.eps)
            if o.has(blk + "ffn_gate_inp.weight"):
                x = x + self._experts(h, layer)
            for suffix in ("", "_shexp"):
                if o.has(f"{blk}ffn_gate{suffix}.weight"):
                    act = silu(o._linear(h, f"{blk}ffn_gate{suffix}"))
                    x = x + o._linear(act * o._linear(h, f"{blk}ffn_up{suffix}"), f"{blk}ffn_down{suffix}")
            if trace is not None:
                trace.append(x)
        self.n_past += len(tokens)
        return rms_norm(x, o.weight("output_norm.weight"), o.eps)

    def _qkv(self, h, layer):
        o, y, blk = self._o, self._o.layers[layer], f"blk.{layer}."
        if o.has(blk + "attn_qkv.weight"):
            qkv = o._linear(h, blk + "attn_qkv")
            cuts = [y.n_head * y.hd, (y.n_head + y.n_kv) * y.hd]
            return np.split(qkv, cuts, axis=1)
        return [o._linear(h, blk + "attn_" + part) for part in "qkv"]

    def _heads(self, h, layer):
        """q, k, v [n, heads, hd], q and k normed and rotated."""
        o, y, n = self._o, self._o.layers[layer], len(h)
        q, k, v = (m.reshape(n, -1, y.hd) for m in self._qkv(h, layer))
        angle = (self.n_past + np.arange(n, dtype=np.float64))[:, None] * y.freq[None, :]
        turned = []
        for part, x in (("q", q), ("k", k)):
            norm = f"blk.{layer}.attn_{part}_norm.weight"
            x = rms_norm(x, o.weight(norm), o.eps) if o.has(norm) else x
            turned.append(rotate(x, angle, y.magnitude, y.pairing))
        return turned[0], turned[1], v

    def _attention(self, h, layer):
        """Attention of the new rows over what they see of all past and new positions; [n, n_head * hd]."""
        o, y, n = self._o, self._o.layers[layer], len(h)
        q, k, v = self._heads(h, layer)
        keys = self._k[layer] = np.concatenate([self._k[layer], k])
        values = self._v[layer] = np.concatenate([self._v[layer], v])
        back = self.n_past + np.arange(n)[:, None] - np.arange(len(keys))[None, :]
        visible = (back >= 0) & (back < (y.window or len(keys)))
        out = np.empty((n, y.n_head, y.hd))
        for head in range(y.n_head):
            kv = head // (y.n_head // y.n_kv)
            s = np.where(visible, q[:, head] @ keys[:, kv].T * y.scale, -np.inf)
            p = np.exp(s - s.max(axis=1, keepdims=True))
            out[:, head] = p @ values[:, kv] / p.sum(axis=1, keepdims=True)
        if o.has(f"blk.{layer}.attn_gate.weight"):
            gate = np.logaddexp(0.0, o._linear(h, f"blk.{layer}.attn_gate"))
            out = out * gate.reshape(n, y.n_head, -1)
        return out.reshape(n, -1)

    def _experts(self, h, layer):
        """The weighted outputs of each row's picked experts; the lowest numbers among equals."""
        o, blk = self._o, f"blk.{layer}."
        m, logits = o.layers[layer].mixture, o._linear(h, blk + "ffn_gate_inp")
        if m.gating == "sigmoid":
            probs = 1.0 / (1.0 + np.exp(-logits))
        else:
            probs = np.exp(logits - logits.max(axis=1, keepdims=True))
            probs /= probs.sum(axis=1, keepdims=True)
        bias = blk + "exp_probs_b.bias"
        chosen = probs + (o.weight(bias) if o.has(bias) else 0.0)
        picks = np.argsort(-chosen, axis=1, kind="stable")[:, :m.used]
        weights = np.take_along_axis(probs, picks, axis=1)
        if m.norm:
            weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 6.103515625e-5)
        weights = weights * m.scale
        gate, up, down = (o.weight(f"{blk}ffn_{part}_exps.weight") for part in ("gate", "up", "down"))
        out = np.zeros_like(h)
        for e in np.unique(picks):
            row, pick = np.nonzero(picks == e)
            act = silu(h[row] @ gate[e].T) * (h[row] @ up[e].T)
            out[row] += weights[row, pick][:, None] * (act @ down[e].T)
        return out


def main():
    ap = argparse.ArgumentParser(description="float64 logits of a GGUF file")
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
