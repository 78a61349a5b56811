"""Mean KL of laguna-tiny in one tensor type over many texts of its own small world, beside llama.cpp.

    count.py TYPE [--texts N] [--seed S] [--first I] [--halves | --cli PROGRAM] [--jobs J]

kl.py's 3 x 1,024 positions cannot tell a mean where an expert's pick hangs on the last bits (docs/numerics.md, "Models with
experts"); this counts as many as there is time for, 1,024 a text, held out from training, three seconds of one core each.
--halves: prompts in f16, as the default program of a GPU has them (tests/softgpu/halves.py); --cli: a program that is there,
for example on a GPU. --first: texts before are left out. Prints after every 16 texts: the ratio of means with what lies between
2.5 and 97.5 % of resampled texts; the ratio of means cut at the 99 % quantile of llama.cpp's; how many positions
lie beyond that, 0.1 and 1 nats, of the program and of llama.cpp.
"""
import argparse
import itertools
import multiprocessing
import os
import pathlib
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a job is a core's; read when numpy is imported
import numpy as np  # noqa: E402
from gguf import GGUFReader  # noqa: E402
from tokenizers import AddedToken, Tokenizer, models  # noqa: E402

import kl  # noqa: E402
import llamacpp  # noqa: E402
import oracle  # noqa: E402
import program  # noqa: E402
import requantize  # noqa: E402

TEXT, GROUP, RESAMPLES = 1024, 16, 4000
CONTROL, OWN = 3, 4  # types of tokens in a GGUF: control, user-defined
sys.path += [str(program.ROOT / "models" / "laguna-tiny"), str(program.ROOT / "tests" / "softgpu")]


def tokenizer():
    """As models/laguna-tiny/tokens.py trains it, from the model file."""
    import tokens
    fields = GGUFReader(program.LAGUNA_TINY).fields
    names, kinds, merges = (fields[f"tokenizer.ggml.{n}"].contents() for n in ("tokens", "token_type", "merges"))
    t = Tokenizer(models.BPE({x: i for i, x in enumerate(names)}, [tuple(m.split(" ")) for m in merges]))
    t.pre_tokenizer = tokens.splitter()
    t.add_special_tokens([AddedToken(x, special=True, normalized=False) for x, k in zip(names, kinds) if k == CONTROL])
    t.add_tokens([AddedToken(x, normalized=False) for x, k in zip(names, kinds) if k == OWN])
    return t


def texts(seed):
    """Endless lists of TEXT tokens: documents one after the other."""
    import data
    rest = []
    for ids, _ in data.documents(tokenizer(), seed, held=True):
        rest += ids.tolist()
        while len(rest) >= TEXT:
            yield rest[:TEXT]
            rest = rest[TEXT:]


def measure(job):
    """KL of all positions of a few texts, of the program and of llama.cpp: arrays [texts, TEXT]."""
    path, cli, group = job
    reference, other = oracle.Oracle(path), llamacpp.Model(path, n_threads=1, n_ctx=TEXT, chunk=512)
    ours, theirs = [], []
    for tokens in group:
        other.clear()
        got, want = program.logits(cli, tokens, threads=1), other.logits(tokens)
        for at, rows in reference.logit_blocks(tokens):
            ours.append(kl.kl_rows(rows, got[at:at + len(rows)]))
            theirs.append(kl.kl_rows(rows, want[at:at + len(rows)]))
    return [np.concatenate(x).reshape(-1, TEXT) for x in (ours, theirs)]


def report(name, ours, theirs):
    """Prints a line; arrays [texts, TEXT]."""
    a, b, rng = ours.mean(1), theirs.mean(1), np.random.default_rng(1)
    picks = [rng.integers(0, len(a), len(a)) for _ in range(RESAMPLES)]
    low, high = np.quantile([a[p].mean() / b[p].mean() for p in picks], (0.025, 0.975))
    cut = np.quantile(theirs, kl.CUT)
    beyond = ", ".join(f"{(ours > x).sum()} and {(theirs > x).sum()} beyond {x:.2g}" for x in (cut, 0.1, 1))
    print(f"{name}: {ours.size} positions, {a.mean():.3e} and llama.cpp {b.mean():.3e}, ratio {a.mean() / b.mean():.3f} "
          f"({low:.2f} to {high:.2f}), cut {np.minimum(ours, cut).mean() / np.minimum(theirs, cut).mean():.3f}; {beyond}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("type", choices=requantize.TYPES)
    for name, default in (("--texts", 32), ("--seed", 4712), ("--first", 0), ("--jobs", os.cpu_count())):
        p.add_argument(name, type=int, default=default)
    how = p.add_mutually_exclusive_group()
    how.add_argument("--halves", action="store_true")
    how.add_argument("--cli", type=pathlib.Path)
    o = p.parse_args()
    if not llamacpp.available():
        sys.exit(llamacpp.WHY_NOT)
    program.WORK.mkdir(parents=True, exist_ok=True)
    path = requantize.requantize(program.LAGUNA_TINY, o.type, program.WORK / f"laguna-tiny-{o.type}.gguf")
    cli = o.cli or (halves(path) if o.halves else program.build(path, ctx=TEXT))
    mine = list(itertools.islice(texts(o.seed), o.first, o.first + o.texts))
    groups = [(path, cli, mine[i:i + GROUP]) for i in range(0, len(mine), GROUP)]
    ours, theirs = np.empty((0, TEXT)), np.empty((0, TEXT))
    with multiprocessing.get_context("spawn").Pool(o.jobs) as pool:
        for a, b in pool.imap(measure, groups):
            ours, theirs = np.concatenate([ours, a]), np.concatenate([theirs, b])
            report(f"laguna-tiny {o.type}", ours, theirs)


def halves(path):
    import halves as soft
    return soft.build(program.WORK / f"{path.stem}-halves", "--model", path, "--ctx", TEXT, "--chunk", 512)


if __name__ == "__main__":
    main()
