"""train.py -- trains laguna-tiny: bf16, fused AdamW, a schedule by the clock.

    python3 train.py --tokenizer tokenizer.json --out DIR [--seconds 480] [--rows 32]

Writes DIR/weights.npz (float32, GGUF names and orders), DIR/log.csv (seconds, step, tokens, loss of
written tokens, loss of read tokens, learning rate, load of the fullest expert over the mean) and
DIR/eval.json. Worker processes make the data meanwhile. `--device cpu` works
for trying things out."""

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

ROUNDING_FROM = 0.75  # of the training: from here on, weights are what the file's types can hold
LOG_EVERY = 50
WARM_STEPS = 5  # the clock of the training starts behind them, when the compiler has run


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, tokenizer, size, seed):
        self.arguments = (tokenizer, size, seed)

    def __iter__(self):
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        tokenizer, size, seed = self.arguments
        info = torch.utils.data.get_worker_info()
        for batch in data.batches(tokenizer, f"{seed}/{info.id if info else 0}", size):
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
    """The weighted mean loss; sums and counts of written and of read tokens."""
    w = weights[:, 1:] * (docs[:, 1:] == docs[:, :-1])
    flat = logits[:, :-1].float().flatten(0, 1)
    each = F.cross_entropy(flat, tokens[:, 1:].flatten(), reduction="none").view_as(w)
    written, read = w == 1, (w > 0) & (w < 1)
    sums = [(each * written).sum(), written.sum(), (each * read).sum(), read.sum()]
    return (each * w).sum() / w.sum(), torch.stack(sums).detach()


def rate(progress, peak, warmup=0.02):
    """Warm-up, a plateau, then a straight line to zero."""
    if progress < warmup:
        return peak * max(progress, 1e-4) / warmup
    return peak * min(1.0, (1 - progress) / 0.6)


def optimizer(model, peak, device):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": 0.05},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        groups, lr=peak, betas=(0.9, 0.95), eps=1e-10, fused=device == "cuda"
    )


class Trainer:
    def __init__(self, a):
        self.a, self.begin, self.c = a, time.time(), Config()
        kind = a.attention or ("flex" if a.device == "cuda" else "sdpa")
        attend, self.make_mask = flex() if kind == "flex" else (sdpa, dense_mask)
        self.model = Laguna(self.c, attend, a.seed).to(a.device)
        self.opt = optimizer(self.model, a.peak, a.device)
        self.forward = torch.compile(self.plain_forward) if a.compile else self.plain_forward
        self.log_file = open(os.path.join(a.out, "log.csv"), "w")
        self.log = csv.writer(self.log_file)
        self.log.writerow("seconds step tokens written_loss read_loss rate fullest".split())
        self.steps, self.tokens, self.window = 0, 0, []
        n = sum(x.numel() for x in self.model.parameters())
        print(f"{n} parameters, {kind} attention, {a.rows} rows of {data.LENGTH}", flush=True)

    def plain_forward(self, tokens, weights, docs, pos, masks):
        with torch.autocast(self.a.device, torch.bfloat16, enabled=self.a.device == "cuda"):
            logits, counts = self.model(tokens, pos, masks)
        return *losses(logits, tokens, weights, docs), counts

    def run_forward(self, batch):
        docs = batch[2]
        masks = (self.make_mask(docs, 0), self.make_mask(docs, self.c.window))
        return self.forward(*batch, masks)

    def move(self, batch):
        return [torch.as_tensor(x).to(self.a.device, non_blocking=True) for x in batch]

    def step(self, batch, progress):
        lr = rate(progress, self.a.peak)
        for g in self.opt.param_groups:
            g["lr"] = lr
        self.model.rounding.fill_(1.0 if progress > ROUNDING_FROM else 0.0)
        loss, sums, counts = self.run_forward(batch)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.opt.step()
        self.model.balance(counts, 2e-3 if progress < 0.7 else 2e-3 * (1 - progress))
        self.steps, self.tokens = self.steps + 1, self.tokens + batch[0].numel()
        self.window.append(sums)
        if self.steps % LOG_EVERY == 0 or self.steps <= WARM_STEPS:
            self.write_log(lr, counts)

    def write_log(self, lr, counts):
        w = torch.stack(self.window).sum(0).tolist()
        self.window = []
        fullest = (counts.max(1).values / counts.float().mean(1)).max().item()
        row = [f"{time.time() - self.begin:.1f}", self.steps, self.tokens]
        row += [f"{w[0] / w[1]:.4f}", f"{w[2] / w[3]:.4f}", f"{lr:.2e}", f"{fullest:.2f}"]
        self.log.writerow(row)
        self.log_file.flush()
        print(*row, flush=True)

    def train(self, loader):
        """Returns the seconds that the training took."""
        start, seconds = None, self.a.seconds
        while True:
            batch, now = self.move(next(loader)), time.time()
            if self.steps == WARM_STEPS:
                if self.a.device == "cuda":
                    torch.cuda.synchronize()
                start = now = time.time()
                if self.a.deadline:
                    seconds = max(1.0, min(seconds, self.a.deadline - (now - self.begin)))
                print(f"compiled after {now - self.begin:.1f} s, {seconds:.0f} s to go", flush=True)
            progress = (now - start) / seconds if start else 0.0
            if progress >= 1:
                return time.time() - start
            self.step(batch, progress)

    def evaluate(self, stream, n):
        """Losses on n batches; with gradients, so that the compiled step serves as it is."""
        total = torch.zeros(4, device=self.a.device, dtype=torch.float64)
        for _ in range(n):
            total += self.run_forward(self.move(next(stream)))[1].double()
        a, n, b, m = total.tolist()
        return {
            "written_loss": a / n,
            "written_tokens": int(n),
            "read_loss": b / m,
            "read_tokens": int(m),
            "written_perplexity": float(np.exp(a / n)),
            "all_perplexity": float(np.exp((a + b) / (n + m))),
        }

    def save(self):
        arrays = {k: v.float().cpu().numpy() for k, v in self.model.tensors().items()}
        np.savez(os.path.join(self.a.out, "weights.npz"), **arrays)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--tokenizer", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--seconds", type=float, default=480, help="of training, behind the compiler")
    p.add_argument("--deadline", type=float, default=0, help="seconds after the start, 0 = none")
    p.add_argument("--rows", type=int, default=32)
    p.add_argument("--peak", type=float, default=2e-3)
    p.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--attention", default="", choices=["", "flex", "sdpa"])
    p.add_argument("--compile", type=int, default=1)
    p.add_argument("--held-rows", type=int, default=256)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def main():
    a = arguments()
    os.makedirs(a.out, exist_ok=True)
    torch.manual_seed(a.seed)
    torch.set_float32_matmul_precision("high")
    trainer = Trainer(a)
    loader = torch.utils.data.DataLoader(
        Stream(a.tokenizer, a.rows, a.seed),
        batch_size=None,
        num_workers=a.workers,
        prefetch_factor=4 if a.workers else None,
        pin_memory=a.device == "cuda",
    )
    spent = trainer.train(iter(loader))
    trainer.model.rounding.fill_(1.0)
    trainer.save()
    held = data.batches(a.tokenizer, "held out", a.rows, held=True)
    report = trainer.evaluate(held, max(1, a.held_rows // a.rows))
    report.update(steps=trainer.steps, tokens=trainer.tokens, training_seconds=spent)
    with open(os.path.join(a.out, "eval.json"), "w") as f:
        json.dump(report, f, indent=1)
    print(json.dumps(report), flush=True)
    os._exit(0)  # the workers make data without end


if __name__ == "__main__":
    main()
