"""fake.py -- what a matrix becomes in each tensor type, in PyTorch.

ROUND[type](w) gives the values that a file of that type would decode to (test_quant.py compares).
"""

import torch


def half(x):
    return x.half().float()


def safe(x):
    return torch.where(x == 0, torch.ones_like(x), x)


def affine(w, sub, qmax, smax):
    """Q4_K and Q5_K: 256 weights in sub-blocks with a scale and a minimum of 6 bits each."""
    x = w.float().reshape(-1, 256 // sub, sub)
    low = x.amin(-1).clamp(max=0)
    scale = (x.amax(-1) - low).clamp(min=0) / qmax
    d, dmin = half(scale.amax(-1, keepdim=True) / smax), half((-low).amax(-1, keepdim=True) / smax)
    ls = torch.where(d == 0, torch.zeros_like(scale), torch.round(scale / safe(d)).clamp(0, smax))
    lm = torch.where(
        dmin == 0, torch.zeros_like(low), torch.round(-low / safe(dmin)).clamp(0, smax)
    )
    step, base = (d * ls).unsqueeze(-1), (dmin * lm).unsqueeze(-1)
    q = torch.where(
        step == 0, torch.zeros_like(x), torch.round((x + base) / safe(step)).clamp(0, qmax)
    )
    return (step * q - base).reshape(w.shape)


def q6_k(w):
    x = w.float().reshape(-1, 16, 16)
    top = x.gather(-1, x.abs().argmax(-1, keepdim=True)).squeeze(-1)
    s = -top / 32
    d = half(-s.gather(-1, s.abs().argmax(-1, keepdim=True)) / 128)
    l = torch.where(d == 0, torch.zeros_like(s), torch.round(s / safe(d)).clamp(-128, 127))
    step = (d * l).unsqueeze(-1)
    q = torch.where(step == 0, torch.zeros_like(x), torch.round(x / safe(step)).clamp(-32, 31))
    return (step * q).reshape(w.shape)


def q8_0(w):
    x = w.float().reshape(-1, 32)
    d = x.abs().amax(-1, keepdim=True) / 127
    q = torch.where(d == 0, torch.zeros_like(x), torch.round(x / safe(d)))
    return (half(d) * q).reshape(w.shape)


ROUND = {
    "Q4_K": lambda w: affine(w, 32, 15, 63),
    "Q5_K": lambda w: affine(w, 32, 31, 63),
    "Q6_K": q6_k,
    "Q8_0": q8_0,
    "F16": half,
}
