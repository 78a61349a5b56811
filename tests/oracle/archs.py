"""What the reference (oracle.py) must know of an architecture: its tensors' names and a Layer for each layer.

ARCHS: name -> (pattern of the tensors that are part of it, function(oracle, rope) -> [Layer]).
"""
import collections
import math
import re

import numpy as np

# freq, magnitude, pairing: rotation (oracle.rotate); window 0: every earlier position is seen
Layer = collections.namedtuple("Layer", "n_head n_kv hd scale window freq magnitude pairing mixture")
Mixture = collections.namedtuple("Mixture", "used gating norm scale")


class Refused(Exception):
    """The file holds something that this reference does not compute."""


def rope_frequencies(n_rot, base, scaling, factors=None):
    """Angle per position of each pair, float64 [n_rot/2], and the magnitude of cos and sin.

    scaling: {"type": "none"|"linear"|"yarn", "factor": f, "attn_factor": a, "n_ctx_orig": n,
    "beta_fast": 32, "beta_slow": 1, "magnitude": instead of (1 + 0.1 ln f) a}. factors: divisors per
    pair (rope_freqs.weight) or None.
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
    magnitude = scaling.get("magnitude", (1.0 + 0.1 * math.log(factor)) * magnitude)
    return theta / factor * (1.0 - ramp) + theta * ramp, magnitude


LLAMA = re.compile(
    r"(token_embd|output|output_norm|rope_freqs)\.weight|output\.bias|"
    r"blk\.\d+\.(attn|ffn)_norm\.weight|"
    r"blk\.\d+\.(attn_(q|k|v|qkv|output)|ffn_(gate|up|down))\.(weight|bias|scale)")

LAGUNA = re.compile(
    r"(token_embd|output|output_norm)\.weight|blk\.\d+\.exp_probs_b\.bias|"
    r"blk\.\d+\.(attn_(norm|q|k|v|q_norm|k_norm|gate|output)|ffn_(norm|gate_inp)|"
    r"ffn_(gate|up|down)(_exps|_shexp)?)\.weight|"
    r"blk\.\d+\.(attn_(q|k|v|gate|output)|ffn_(gate|up|down)(_exps|_shexp)?)\.scale")


def scaling_of(o, rope):
    """The keys rope.scaling.*, with `rope`'s magnitude and betas in place of llama.cpp's."""
    s = {
        "type": o.key("rope.scaling.type", "linear"),
        "factor": o.key("rope.scaling.factor", o.key("rope.scale_linear", 1.0)),
        "attn_factor": o.key("rope.scaling.attn_factor", 1.0),
        "n_ctx_orig": o.key("rope.scaling.original_context_length", o.key("context_length")),
        **rope,
    }
    if s["type"] not in ("none", "linear", "yarn"):
        raise Refused(f"rope scaling {s['type']!r}")
    return s


def llama(o, rope):
    n_head = o.key("attention.head_count")
    n_kv = o.key("attention.head_count_kv", n_head)
    if isinstance(n_head, list) or isinstance(n_kv, list):
        raise Refused("per-layer head counts")
    hd = o.key("attention.key_length", o.n_embd // n_head)
    if o.key("attention.value_length", hd) != hd:
        raise Refused("value_length differs from key_length")
    scale = float(o.key("attention.scale", 0.0)) or 1.0 / math.sqrt(hd)
    name = "rope_freqs.weight"
    factors = o.weight(name) if o.has(name) else None
    freq, magnitude = rope_frequencies(
        o.key("rope.dimension_count", hd), float(o.key("rope.freq_base", 10000.0)), scaling_of(o, rope), factors)
    return [Layer(n_head, n_kv, hd, scale, 0, freq, magnitude, "norm", None)] * o.n_layers


def per_layer(value, n):
    return list(value) if isinstance(value, list) else [value] * n


def mixture(o):
    gating = o.key("expert_gating_func", 0) or 2
    if gating not in (1, 2):
        raise Refused(f"gating function {gating}")
    scale = float(o.key("expert_weights_scale", 0.0)) or 1.0
    return Mixture(o.key("expert_used_count"), "softmax" if gating == 1 else "sigmoid",
                   o.key("expert_weights_norm", False), scale)


def laguna(o, rope):
    heads = per_layer(o.key("attention.head_count"), o.n_layers)
    kv = per_layer(o.key("attention.head_count_kv", heads), o.n_layers)
    hd = o.key("attention.key_length", o.n_embd // heads[0])
    window = o.key("attention.sliding_window", 0)
    period = o.key("attention.sliding_window_pattern", 4)
    n_rot = o.key("rope.dimension_count", hd)
    base = float(o.key("rope.freq_base", 10000.0))
    full = rope_frequencies(n_rot, base, scaling_of(o, rope))
    near = rope_frequencies(o.key("rope.dimension_count_swa", n_rot),
                                   float(o.key("rope.freq_base_swa", base)), {"type": "none"})
    out = []
    for i in range(o.n_layers):
        slides = window > 0 and (period == 0 or i % period != 0)
        gate = o.shape(f"blk.{i}.attn_gate.weight")[1]
        if gate not in (heads[i], heads[i] * hd):
            raise Refused(f"a gate of {gate} rows")
        freq, magnitude = near if slides else full
        out.append(Layer(heads[i], kv[i], hd, 1.0 / math.sqrt(hd), window if slides else 0, freq, magnitude,
                         "neox", mixture(o)))
    return out


ARCHS = {"llama": (LLAMA, llama), "laguna": (LAGUNA, laguna)}
