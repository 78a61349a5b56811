"""config.py -- the sizes of laguna-tiny and the tensor type of each of its matrices."""

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    layers: int = 8
    embd: int = 256
    vocab: int = 4096
    head_dim: int = 64
    heads_full: int = 4
    heads_swa: int = 8
    kv_heads: int = 2
    window: int = 64
    period: int = 4  # layer i attends to everything iff i % period == 0
    dense: int = 3  # leading layers without experts
    ffn: int = 512
    experts: int = 12
    used: int = 4
    expert_ffn: int = 256
    shared_ffn: int = 256
    scale: float = 2.5  # of the routed sum
    eps: float = 1e-6
    rot_full: int = 32  # partial rope on full layers, YaRN
    rot_swa: int = 64
    base_full: float = 500000.0
    base_swa: float = 10000.0
    factor: float = 4.0
    original: int = 2048  # context of the training
    context: int = 8192
    beta_fast: float = 32.0
    beta_slow: float = 1.0

    def full(self, i):
        return i % self.period == 0

    def heads(self, i):
        return self.heads_full if self.full(i) else self.heads_swa


def rope_frequencies(c, full):
    """(angle per position of each pair, factor on cos and sin): YaRN on full layers, plain else."""
    n, base = (c.rot_full, c.base_full) if full else (c.rot_swa, c.base_swa)
    theta = [base ** (-2 * i / n) for i in range(n // 2)]
    if not full:
        return theta, 1.0

    def corr(beta):
        return n * math.log(c.original / (2 * math.pi * beta)) / (2 * math.log(base))

    low, high = max(0, math.floor(corr(c.beta_fast))), min(n - 1, math.ceil(corr(c.beta_slow)))
    out = []
    for i, t in enumerate(theta):
        ramp = 1 - min(1, max(0, (i - low) / max(0.001, high - low)))
        out.append(t / c.factor * (1 - ramp) + t * ramp)
    return out, 1 + 0.1 * math.log(c.factor)


def tensor_type(name, c=Config()):
    """The type that a tensor has in the file; training rounds to it near its end."""
    layer = re.match(r"blk\.(\d+)\.", name)
    full = layer and c.full(int(layer[1]))
    if name.endswith(("_norm.weight", ".bias")) or "ffn_gate_inp" in name:
        return "F32"
    if name == "token_embd.weight":
        return "Q4_K"
    if name == "output.weight":
        return "Q6_K"
    if "attn" in name:
        if full:
            return "F16"
        return "Q5_K" if "attn_q" in name or "attn_output" in name else "Q8_0"
    if "shexp" in name:
        return "Q8_0" if "down" in name else "Q6_K"
    if name == f"blk.{c.layers - 1}.ffn_down_exps.weight":
        return "Q6_K"
    return "Q4_K"


def shapes(c):
    """GGUF name -> shape, outermost first, in the order of the file."""
    out = {
        "token_embd.weight": (c.vocab, c.embd),
        "output_norm.weight": (c.embd,),
        "output.weight": (c.vocab, c.embd),
    }
    for i in range(c.layers):
        p, n, kv = f"blk.{i}.", c.heads(i) * c.head_dim, c.kv_heads * c.head_dim
        out.update(
            {
                p + "attn_norm.weight": (c.embd,),
                p + "attn_q.weight": (n, c.embd),
                p + "attn_k.weight": (kv, c.embd),
                p + "attn_v.weight": (kv, c.embd),
                p + "attn_q_norm.weight": (c.head_dim,),
                p + "attn_k_norm.weight": (c.head_dim,),
                p + "attn_gate.weight": (c.heads(i), c.embd),
                p + "attn_output.weight": (c.embd, n),
                p + "ffn_norm.weight": (c.embd,),
            }
        )
        if i < c.dense:
            out.update(
                {
                    p + "ffn_gate.weight": (c.ffn, c.embd),
                    p + "ffn_up.weight": (c.ffn, c.embd),
                    p + "ffn_down.weight": (c.embd, c.ffn),
                }
            )
            continue
        e, f, s = c.experts, c.expert_ffn, c.shared_ffn
        out.update(
            {
                p + "ffn_gate_inp.weight": (e, c.embd),
                p + "exp_probs_b.bias": (e,),
                p + "ffn_gate_exps.weight": (e, f, c.embd),
                p + "ffn_up_exps.weight": (e, f, c.embd),
                p + "ffn_down_exps.weight": (e, c.embd, f),
                p + "ffn_gate_shexp.weight": (s, c.embd),
                p + "ffn_up_shexp.weight": (s, c.embd),
                p + "ffn_down_shexp.weight": (c.embd, s),
            }
        )
    return out
