"""train.py -- trains laguna-tiny: bf16, fused AdamW, a schedule by the clock.

    python3 train.py --tokenizer tokenizer.json --out DIR [--seconds 500] [--rows 32]

Writes DIR/weights.npz (float32, GGUF names and orders), DIR/log.csv (seconds, step, tokens, loss of
written tokens, loss of read tokens, learning rate) and DIR/eval.json. Data is made by worker
processes meanwhile. `--device cpu` works for trying things out."""

import argparse
import csv
import json
import os
import time

import numpy as np
import torch
import torch.nn.functional as F

import data
from config import Config
from model import Laguna, dense_mask, sdpa


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, tokenizer, size, seed):
        self.arguments = (tokenizer, size, seed)

    def __iter__(self):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        tokenizer, size, seed = self.arguments
        info = torch.utils.data.get_worker_info()
        worker = info.id if info else 0
        for batch in data.batches(tokenizer, f"{seed}/{worker}", size):
            yield [torch.from_numpy(x) for x in batch]


def flex():
    """(attend, mask maker) on block-sparse attention for the GPU."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    make = torch.compile(create_block_mask)

    def mask(doc, window):
        def allowed(b, h, q, k):
            near = (q >= k) & (doc[b, q] == doc[b, k])
            return near & (q - k < window) if window else near

        return make(allowed, doc.size(0), None, doc.size(1), doc.size(1), device=doc.device)

    def attend(q, k, v, m):
        return flex_attention(q, k, v, block_mask=m, enable_gqa=True)

    return attend, mask


def losses(logits, tokens, weights, docs):
    """Sum of weighted losses, sums and counts of written and of read tokens."""
    same = docs[:, 1:] == docs[:, :-1]
    w = weights[:, 1:] * same
    each = F.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
    ).view_as(w)
    written, read = w == 1, (w > 0) & (w < 1)
    return (each * w).sum() / w.sum(), torch.stack(
        [(each * written).sum(), written.sum(), (each * read).sum(), read.sum()]
    ).detach()


def rate(progress, peak, warmup=0.02):
    """Warm-up, a plateau, then a straight line to zero."""
    if progress < warmup:
        return peak * progress / warmup
    return peak * min(1.0, (1 - progress) / 0.6)


def optimizer(model, peak, device):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=peak, betas=(0.9, 0.95), eps=1e-10, fused=device == "cuda")


def evaluate(step, batches):
    """Losses on batches; with gradients, so that the compiled step serves as it is."""
    total = torch.zeros(4, device=batches[0][0].device, dtype=torch.float64)
    for batch in batches:
        total += step(*batch)[1].double()
    a, n, b, m = total.tolist()
    return {
        "written_loss": a / n,
        "written_tokens": int(n),
        "read_loss": b / m,
        "read_tokens": int(m),
        "written_perplexity": float(np.exp(a / n)),
        "all_perplexity": float(np.exp((a + b) / (n + m))),
    }


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tokenizer", required=True)
    p.add_argument("--out", required=True)
    p.add_argument(
        "--seconds", type=float, default=500, help="of training, after the warm-up of the compiler"
    )
    p.add_argument(
        "--deadline",
        type=float,
        default=0,
        help="seconds after the start at which training must have ended",
    )
    p.add_argument("--rows", type=int, default=32)
    p.add_argument("--peak", type=float, default=2e-3)
    p.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--attention", default="", choices=["", "flex", "sdpa"])
    p.add_argument("--compile", type=int, default=1)
    p.add_argument("--held-rows", type=int, default=256)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    begin = time.time()
    os.makedirs(a.out, exist_ok=True)
    torch.manual_seed(a.seed)
    torch.set_float32_matmul_precision("high")
    kind = a.attention or ("flex" if a.device == "cuda" else "sdpa")
    attend, make_mask = flex() if kind == "flex" else (sdpa, dense_mask)
    c = Config()
    model = Laguna(c, attend, a.seed).to(a.device)
    print(
        f"{sum(x.numel() for x in model.parameters())} parameters, {kind} attention, {a.rows} rows"
        f" of {data.LENGTH}",
        flush=True,
    )
    opt = optimizer(model, a.peak, a.device)

    def forward(tokens, weights, docs, pos, masks):
        with torch.autocast(a.device, torch.bfloat16, enabled=a.device == "cuda"):
            logits, counts = model(tokens, pos, masks)
        loss, sums = losses(logits, tokens, weights, docs)
        return loss, sums, counts

    compiled = torch.compile(forward) if a.compile else forward

    def step(tokens, weights, docs, pos):
        return compiled(tokens, weights, docs, pos, (make_mask(docs, 0), make_mask(docs, c.window)))

    loader = iter(
        torch.utils.data.DataLoader(
            Stream(a.tokenizer, a.rows, a.seed),
            batch_size=None,
            num_workers=a.workers,
            prefetch_factor=4 if a.workers else None,
            pin_memory=a.device == "cuda",
        )
    )
    held_stream = data.batches(a.tokenizer, "held out", a.rows, held=True)

    def move(batch):
        return [torch.as_tensor(x).to(a.device, non_blocking=True) for x in batch]

    log = csv.writer(open(os.path.join(a.out, "log.csv"), "w"))
    log.writerow("seconds step tokens written_loss read_loss rate experts_max".split())
    start, steps, tokens, window, seconds = None, 0, 0, [], a.seconds
    while True:
        batch = move(next(loader))
        now = time.time()
        if steps == 5:  # the compiler has run
            if a.device == "cuda":
                torch.cuda.synchronize()
            start = now = time.time()
            seconds = min(a.seconds, a.deadline - (now - begin)) if a.deadline else a.seconds
            print(
                f"first steps after {now - begin:.1f} s; training for {seconds:.0f} s", flush=True
            )
        progress = (now - start) / seconds if start else 0.0
        if progress >= 1:
            break
        lr = rate(max(progress, 1e-4), a.peak)
        for g in opt.param_groups:
            g["lr"] = lr
        model.rounding.fill_(1.0 if progress > 0.75 else 0.0)
        loss, sums, counts = step(*batch)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        model.balance(counts, 2e-3 if progress < 0.7 else 2e-3 * (1 - progress))
        steps, tokens = steps + 1, tokens + batch[0].numel()
        window.append(sums)
        if steps % 50 == 0 or steps <= 5:
            w = torch.stack(window).sum(0).tolist()
            window = []
            spread = (counts.max(1).values / counts.float().mean(1)).max().item()
            row = [
                f"{time.time() - begin:.1f}",
                steps,
                tokens,
                f"{w[0] / w[1]:.4f}",
                f"{w[2] / w[3]:.4f}",
                f"{lr:.2e}",
                f"{spread:.2f}",
            ]
            log.writerow(row)
            print(*row, flush=True)
    model.rounding.fill_(1.0)
    spent = time.time() - start
    np.savez(
        os.path.join(a.out, "weights.npz"),
        **{k: v.float().cpu().numpy() for k, v in model.tensors().items()},
    )
    held = [move(next(held_stream)) for _ in range(max(1, a.held_rows // a.rows))]
    report = evaluate(step, held)
    report.update(steps=steps, tokens=tokens, seconds=time.time() - begin, training_seconds=spent)
    json.dump(report, open(os.path.join(a.out, "eval.json"), "w"), indent=1)
    print(json.dumps(report), flush=True)
    os._exit(0)  # the workers make data without end


if __name__ == "__main__":
    main()
