"""model.py -- Laguna in plain PyTorch, from the formulas; parameters carry their GGUF names.

Parameters have GGUF's orders: a matrix [rows, columns] with y = W x, experts [expert, rows,
columns]. All experts are computed and the unselected ones weighted with 0: exact, and at this
size faster than sorting rows. `rounding` (0 or 1) replaces each matrix by what its type in the
file can hold."""

import torch
import torch.nn.functional as F
from torch import nn

import fake
from config import Config, rope_frequencies, shapes, tensor_type


def rms(x, weight, eps):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotate(x, cos, sin):
    """NEOX pairs (i, i + n/2) of the first n = 2 * cos.size(-1) elements; x [B, T, heads, hd]."""
    half = cos.size(-1)
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
    return torch.cat([a * cos - b * sin, a * sin + b * cos, rest], -1)


def dense_mask(doc, window):
    """[B, 1, T, T]: causal, within a document, within the window (0 = everything)."""
    i = torch.arange(doc.size(1), device=doc.device)
    near = (i[:, None] >= i[None, :]) & ((i[:, None] - i[None, :] < window) if window else True)
    return (near & (doc[:, :, None] == doc[:, None, :])).unsqueeze(1)


def sdpa(q, k, v, mask):
    n = q.size(1) // k.size(1)
    return F.scaled_dot_product_attention(
        q, k.repeat_interleave(n, 1), v.repeat_interleave(n, 1), mask
    )


class Laguna(nn.Module):
    def __init__(self, c=Config(), attend=sdpa, seed=0):
        super().__init__()
        self.c, self.attend = c, attend
        self.table = {}
        generator = torch.Generator().manual_seed(seed)
        for name, shape in shapes(c).items():
            if name.endswith("_norm.weight"):
                value = torch.ones(shape)
            elif name.endswith(".bias"):
                value = torch.zeros(shape)
            else:
                std = 0.02 if name == "token_embd.weight" else 0.5 * shape[-1] ** -0.5
                if "attn_output" in name or "down" in name:
                    std /= (2 * c.layers) ** 0.5
                value = torch.randn(shape, generator=generator) * std
            key = name.replace(".", "/")
            self.table[name] = key
            if name.endswith(".bias"):
                self.register_buffer(key, value)
            else:
                self.register_parameter(key, nn.Parameter(value))
        for kind, full in (("full", True), ("swa", False)):
            theta, m = rope_frequencies(c, full)
            angle = torch.arange(c.context, dtype=torch.float64)[:, None] * torch.tensor(
                theta, dtype=torch.float64
            )
            self.register_buffer("cos_" + kind, (angle.cos() * m).float(), persistent=False)
            self.register_buffer("sin_" + kind, (angle.sin() * m).float(), persistent=False)
        self.register_buffer("rounding", torch.zeros(()), persistent=False)

    def get(self, name):
        """A tensor by its GGUF name, rounded to its type where rounding is on."""
        value = getattr(self, self.table[name])
        kind = tensor_type(name, self.c)
        if kind == "F32":
            return value
        return value + self.rounding * (fake.ROUND[kind](value.detach()) - value.detach())

    def tensors(self):
        return {name: getattr(self, key).detach() for name, key in self.table.items()}

    def forward(self, tokens, pos, masks):
        """tokens, pos [B, T]; masks (full, window). Returns logits and the experts' row counts."""
        x = F.embedding(tokens, self.get("token_embd.weight"))
        rope = {
            kind: (getattr(self, "cos_" + kind)[pos], getattr(self, "sin_" + kind)[pos])
            for kind in ("full", "swa")
        }
        counts = []
        for i in range(self.c.layers):
            full = self.c.full(i)
            x = x + self.attention(i, x, rope["full" if full else "swa"], masks[0 if full else 1])
            h = rms(x, self.get(f"blk.{i}.ffn_norm.weight"), self.c.eps)
            if i < self.c.dense:
                x = x + self.swiglu(f"blk.{i}.ffn_%s.weight", h)
            else:
                y, n = self.experts(i, h)
                x = x + y + self.swiglu(f"blk.{i}.ffn_%s_shexp.weight", h)
                counts.append(n)
        x = rms(x, self.get("output_norm.weight"), self.c.eps)
        return F.linear(x, self.get("output.weight")), torch.stack(counts)

    def attention(self, i, x, rope, mask):
        c, name = self.c, f"blk.{i}.attn_%s.weight"
        b, t, _ = x.shape
        h = rms(x, self.get(name % "norm"), c.eps)
        q = F.linear(h, self.get(name % "q")).view(b, t, c.heads(i), c.head_dim)
        k = F.linear(h, self.get(name % "k")).view(b, t, c.kv_heads, c.head_dim)
        v = F.linear(h, self.get(name % "v")).view(b, t, c.kv_heads, c.head_dim)
        gate = F.softplus(F.linear(h, self.get(name % "gate")).float())
        q = rotate(rms(q, self.get(name % "q_norm"), c.eps), *rope).to(v.dtype)
        k = rotate(rms(k, self.get(name % "k_norm"), c.eps), *rope).to(v.dtype)
        o = self.attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), mask).transpose(
            1, 2
        )
        o = o * gate.to(o.dtype).unsqueeze(-1)
        return F.linear(o.reshape(b, t, -1), self.get(name % "output"))

    def swiglu(self, name, h):
        a = F.silu(F.linear(h, self.get(name % "gate"))) * F.linear(h, self.get(name % "up"))
        return F.linear(a, self.get(name % "down"))

    def experts(self, i, h):
        c, name = self.c, f"blk.{i}.ffn_%s_exps.weight"
        with torch.autocast(h.device.type, enabled=False):
            probs = torch.sigmoid(F.linear(h.float(), self.get(f"blk.{i}.ffn_gate_inp.weight")))
        picked = (probs + self.get(f"blk.{i}.exp_probs_b.bias")).topk(c.used, -1).indices
        mask = F.one_hot(picked, c.experts).sum(-2)
        weight = probs * mask
        weight = weight / weight.sum(-1, keepdim=True).clamp(min=6.103515625e-5) * c.scale
        gate = F.linear(h, self.get(name % "gate").reshape(-1, c.embd))
        up = F.linear(h, self.get(name % "up").reshape(-1, c.embd))
        a = (F.silu(gate) * up).unflatten(-1, (c.experts, c.expert_ffn)) * weight.to(
            gate.dtype
        ).unsqueeze(-1)
        down = self.get(name % "down").transpose(1, 2).reshape(-1, c.embd)
        return a.flatten(-2) @ down.to(a.dtype), mask.sum((0, 1))

    @torch.no_grad()
    def balance(self, counts, rate):
        """Experts with too few rows get a higher bias, those with too many a lower one."""
        for n, i in zip(counts.float(), range(self.c.dense, self.c.layers)):
            self.get(f"blk.{i}.exp_probs_b.bias").add_(rate * torch.sign(n.mean() - n))
