"""reference.py -- Laguna's forward pass in numpy float64 from a GGUF file, with greedy answers.

Shares nothing with model.py: sizes come from the file's keys, weights from the gguf package.
    python3 reference.py MODEL.gguf [--think] PROMPT...        answers each prompt on its own
"""

import argparse
import sys

import gguf
import numpy as np
from gguf.quants import dequantize


def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


class Model:
    def __init__(self, path, dtype=np.float64):
        reader = gguf.GGUFReader(path)
        self.keys = {name: field.contents() for name, field in reader.fields.items()}
        assert self.keys["general.architecture"] == "laguna"
        self.w = {t.name: dequantize(t.data, t.tensor_type).astype(dtype) for t in reader.tensors}
        self.n, self.dtype = self.key("block_count"), dtype
        self.cache = [([], []) for _ in range(self.n)]
        self.at = 0

    def key(self, name, default=None):
        return self.keys.get("laguna." + name, default)

    def full(self, i):
        return i % self.key("attention.sliding_window_pattern", 4) == 0

    def reset(self):
        self.cache, self.at = [([], []) for _ in range(self.n)], 0

    def rope(self, x, pos, full):
        n = self.key("rope.dimension_count" + ("" if full else "_swa"))
        base = self.key("rope.freq_base" + ("" if full else "_swa"))
        i = np.arange(n // 2)
        theta, m = base ** (-2.0 * i / n), 1.0
        if full:
            f, ctx = self.key("rope.scaling.factor"), self.key(
                "rope.scaling.original_context_length"
            )
            low, high = (
                n * np.log(ctx / (2 * np.pi * b)) / (2 * np.log(base)) for b in (32.0, 1.0)
            )
            low, high = max(0, np.floor(low)), min(n - 1, np.ceil(high))
            ramp = 1 - np.clip((i - low) / max(0.001, high - low), 0, 1)
            theta, m = theta / f * (1 - ramp) + theta * ramp, 1 + 0.1 * np.log(f)
        angle = pos[:, None] * theta
        cos, sin = np.cos(angle)[:, None] * m, np.sin(angle)[:, None] * m
        a, b = x[..., : n // 2], x[..., n // 2 : n]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos, x[..., n:]], -1)

    def attention(self, i, x, pos):
        w, eps = self.w, self.key("attention.layer_norm_rms_epsilon")
        p, hd, nkv = (
            f"blk.{i}.attn_",
            self.key("attention.key_length"),
            self.key("attention.head_count_kv"),
        )
        nh = self.key("attention.head_count")[i]
        h = rms(x, w[p + "norm.weight"], eps)
        q, k, v = (
            (h @ w[p + s + ".weight"].T).reshape(len(x), n, hd)
            for s, n in (("q", nh), ("k", nkv), ("v", nkv))
        )
        gate = np.log1p(np.exp(h @ w[p + "gate.weight"].T))
        assert gate.shape[-1] == nh
        q = self.rope(rms(q, w[p + "q_norm.weight"], eps), pos, self.full(i))
        k = self.rope(rms(k, w[p + "k_norm.weight"], eps), pos, self.full(i))
        ks, vs = self.cache[i]
        ks.append(k)
        vs.append(v)
        k, v = np.concatenate(ks), np.concatenate(vs)
        far = pos[:, None] - np.arange(len(k))[None, :]
        hidden = (far < 0) | (
            far >= (10**9 if self.full(i) else self.key("attention.sliding_window"))
        )
        out = np.empty_like(q)
        for head in range(nh):
            j = head // (nh // nkv)
            s = np.where(hidden, -np.inf, q[:, head] @ k[:, j].T / np.sqrt(hd))
            s = np.exp(s - s.max(-1, keepdims=True))
            out[:, head] = s / s.sum(-1, keepdims=True) @ v[:, j] * gate[:, head : head + 1]
        return out.reshape(len(x), -1) @ w[p + "output.weight"].T

    def ffn(self, i, h):
        w, p = self.w, f"blk.{i}.ffn_"

        def swiglu(h, gate, up, down):
            return (silu(h @ gate.T) * (h @ up.T)) @ down.T

        if i < self.key("leading_dense_block_count"):
            return swiglu(h, w[p + "gate.weight"], w[p + "up.weight"], w[p + "down.weight"])
        y = swiglu(
            h, w[p + "gate_shexp.weight"], w[p + "up_shexp.weight"], w[p + "down_shexp.weight"]
        )
        probs = sigmoid(h @ w[p + "gate_inp.weight"].T)
        picked = np.argsort(-(probs + w[f"blk.{i}.exp_probs_b.bias"]), -1, kind="stable")[
            :, : self.key("expert_used_count")
        ]
        weight = np.take_along_axis(probs, picked, -1)
        weight = (
            weight
            / np.maximum(weight.sum(-1, keepdims=True), 6.103515625e-5)
            * self.key("expert_weights_scale")
        )
        for e in np.unique(picked):
            row, slot = np.nonzero(picked == e)
            y[row] += weight[row, slot, None] * swiglu(
                h[row], *(w[p + s + "_exps.weight"][e] for s in ("gate", "up", "down"))
            )
        return y

    def forward(self, tokens):
        """Logits [n, vocab] of tokens that follow those seen since reset()."""
        pos = np.arange(self.at, self.at + len(tokens))
        self.at += len(tokens)
        eps = self.key("attention.layer_norm_rms_epsilon")
        x = self.w["token_embd.weight"][np.asarray(tokens)]
        for i in range(self.n):
            x = x + self.attention(i, x, pos)
            x = x + self.ffn(i, rms(x, self.w[f"blk.{i}.ffn_norm.weight"], eps))
        return rms(x, self.w["output_norm.weight"], eps) @ self.w["output.weight"].T

    def greedy(self, tokens, limit=200, stop=(2, 24)):
        """Tokens until a stop token (included) or the limit."""
        self.reset()
        out, row = [], self.forward(tokens)[-1]
        while len(out) < limit:
            out.append(int(row.argmax()))
            if out[-1] in stop:
                break
            row = self.forward(out[-1:])[-1]
        return out


def tokenizer_of(keys):
    """A tokenizers.Tokenizer from the keys of the file."""
    from tokenizers import AddedToken, Tokenizer, decoders, models
    import tokens as t

    texts = keys["tokenizer.ggml.tokens"]
    merges = [tuple(m.split(" ")) for m in keys["tokenizer.ggml.merges"]]
    tok = Tokenizer(models.BPE({x: i for i, x in enumerate(texts)}, merges))
    tok.pre_tokenizer, tok.decoder = t.splitter(), decoders.ByteLevel()
    tok.add_special_tokens(
        [
            AddedToken(x, normalized=False)
            for x, k in zip(texts, keys["tokenizer.ggml.token_type"])
            if k != 1
        ]
    )
    return tok


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("prompts", nargs="+")
    p.add_argument("--think", action="store_true")
    a = p.parse_args()
    import render

    model = Model(a.model, np.float32)
    tok = tokenizer_of(model.keys)
    for prompt in a.prompts:
        c = {
            "system": None,
            "tools": [],
            "thinking": a.think,
            "messages": [{"role": "user", "content": prompt}],
        }
        text = render.template_text(c, add_generation_prompt=True)
        out = model.greedy(tok.encode(text, add_special_tokens=False).ids)
        sys.stdout.write(f"> {prompt}\n{tok.decode(out, skip_special_tokens=False)}\n")


if __name__ == "__main__":
    main()
