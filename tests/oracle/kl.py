"""The acceptance rule of an emitted program's numbers: mean KL(reference || program) over the
positions of three seeds is at most 1.10 x that of llama.cpp on the same file and tokens, or at most
1e-6. The reference is oracle.py; keys and values have one type in both programs, f16 unless a case
says otherwise.

    kl.py [--all] [--case NAME]... [--record]

A mean can be known too badly for that: where the pick of an expert hangs on the last bits, another pick can cost some nats, and a
few such places of either program decide the mean (docs/numerics.md, "Models with experts"). So where the means' ratio is above
1.10, and by less than two of its own standard errors, the same is asked of what can be known, for any model: of the means of
KL cut at the 99 % quantile of llama.cpp's, and of how many positions lie beyond that cut, within two standard deviations of
chance. What was decided so says it.

Without llama-cpp-python the bound is the one in bounds.json, which --record writes. Cases are a
recipe of models/synth with a tensor type or mix, and SmolLM2. The quick set has some of them; --all
has every one, and some with 3 x 1,024 positions in place of 3 x 352.
"""
import argparse
import collections
import functools
import json
import pathlib
import sys

import numpy as np

import llamacpp
import oracle
import program
import requantize
import tap

HERE = pathlib.Path(__file__).resolve().parent
BOUNDS = HERE / "bounds.json"
FACTOR, FLOOR = 1.10, 1e-6
CUT = 0.99  # quantile of llama.cpp's KL at which both are cut
POSITIONS, LONG_POSITIONS = 352, 1024
SEEDS = (0, 1, 2)
LONGER = ("SmolLM2", "laguna-odd", "laguna-tiny")  # with --all; few experts: one pick on an edge weighs much

# recipe, types (None = the recipe's own), whether the quick set has it; type of keys and values
CASES = [
    ("llama-576", "f32", False), ("llama-576", "f16", False), ("llama-576", "bf16", False),
    ("llama-576", "q4_0", False), ("llama-576", "q4_1", True), ("llama-576", "q5_0", False),
    ("llama-576", "q5_1", False), ("llama-576", "q8_0", False), ("llama-576", "q4_k_m", False),
    ("llama-576", "q5_k_m", False), ("llama-576", "mixed_32", True),
    ("llama-576", "iq4_nl", False), ("llama-576", "mxfp4", False), ("llama-576", "nvfp4", False),
    ("llama-wide", "q2_k", False), ("llama-wide", "q3_k", False), ("llama-wide", "q4_k", False), ("llama-wide", "q5_k", False), ("llama-wide", "q6_k", False),
    ("llama-wide", "q4_k_m", False), ("llama-wide", "mixed_k", True), ("llama-wide", "q4_0", False),
    ("llama-wide", "iq4_xs", False), ("llama-wide", "mixed_iq", True),
    ("llama-wide", "iq1_s", False), ("llama-wide", "iq1_m", False), ("llama-wide", "iq2_xxs", False),
    ("llama-wide", "iq2_xs", False), ("llama-wide", "iq2_s", False), ("llama-wide", "iq3_xxs", False),
    ("llama-wide", "iq3_s", False),
    ("llama-wide", "bf16", False), ("llama-tiny", "f32", False), ("llama-tiny", "q8_0", False),
    ("llama-spm", None, True), ("llama-freqs", None, False), ("llama-linear", None, False),
    ("llama-yarn", None, True), ("llama-nvfp4", None, True), ("SmolLM2", None, True),
    ("llama-wide", "bf16", False, "q8_0"), ("laguna-dense", None, True), ("laguna-dense", "f32", False),
    ("laguna-dense", "f32", True, "q8_0"),
    ("laguna-w8", None, True), ("laguna-w8", "q8_0", False), ("laguna-odd", None, False),
    ("laguna-odd", "mixed_32", False), ("laguna-w64", None, False),
    ("laguna-w64", "mixed_k", False), ("laguna-w64", "q4_k_m_f16", False), ("laguna-w64", "q8_0_q4_k", False),
    ("laguna-w64", "routed_q2_k", False), ("laguna-w64", "bf16", False, "q8_0"),
    ("laguna-w64", "ud_q3_k_m", False), ("laguna-w64", "ud_iq2_m", False),
    ("laguna-tiny", None, True), ("laguna-tiny", None, False, "q8_0"),
    *[("laguna-tiny", types, False) for types in requantize.TYPES],
]


def log_softmax(x):
    x = x - x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def kl_rows(reference, logits):
    """KL divergence of each row, float64 [n]; both arguments are logits [n, vocab]."""
    p = log_softmax(reference)
    q = log_softmax(logits.astype(np.float64))
    return np.sum(np.exp(p) * (p - q), axis=1)


def random_tokens(seed, n, n_vocab):
    """Token ids, the same everywhere: SplitMix64."""
    mask, out, state = (1 << 64) - 1, [], seed
    for _ in range(n):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out.append((z ^ (z >> 31)) % n_vocab)
    return out


@functools.cache
def requantised(types, name):
    return requantize.requantize(program.LAGUNA_TINY, types, program.WORK / f"{name.replace(' ', '-')}.gguf")


class Case:
    def __init__(self, recipe, types, kv="f16"):
        self.recipe, self.types, self.kv = recipe, types, kv
        self.name = " ".join([recipe] + ([types] if types else []) + ([f"kv-{kv}"] if kv != "f16" else []))

    def file(self, seed):
        if self.recipe == "SmolLM2":
            return program.SMOLLM2
        if self.recipe == "laguna-tiny":
            return requantised(self.types, self.name) if self.types else program.LAGUNA_TINY
        return program.synth(self.recipe, self.types, seed, self.name.replace(" ", "-"))

    def program(self, path):
        if path == program.LAGUNA_TINY and self.kv == "f16":
            return program.build_laguna_tiny()
        return program.build(path, kv=self.kv)

    def tokens(self, seed, n, n_vocab):
        texts = {"SmolLM2": "smollm2_tokens.json", "laguna-tiny": "laguna_tiny_tokens.json"}
        if self.recipe in texts:
            return json.loads((HERE / texts[self.recipe]).read_text())["sequences"][seed][:n]
        return random_tokens(seed, n, n_vocab)


# Of the KL of all n positions: mean, its standard error; the 99 % quantile, and the mean of what is cut there.
Sample = collections.namedtuple("Sample", "mean error cut cut_mean n")


def sample(k):
    cut = float(np.quantile(k, CUT))
    return Sample(float(k.mean()), float(k.std() / len(k) ** 0.5), cut, float(np.minimum(k, cut).mean()), len(k))


def measure(case, n_positions, with_program, with_other):
    """KL at the positions of all seeds, float64 [n], of the program and of llama.cpp, None for what was not asked for."""
    ours, others = [], []
    for seed in SEEDS:
        path = case.file(seed)
        reference = oracle.Oracle(path)
        tokens = case.tokens(seed, n_positions, reference.n_vocab)
        got = program.logits(case.program(path), tokens) if with_program else None
        other = other_logits(path, tokens, case.kv) if with_other else None
        for at, rows in reference.logit_blocks(tokens):
            if got is not None:
                ours.append(kl_rows(rows, got[at:at + len(rows)]))
            if other is not None:
                others.append(kl_rows(rows, other[at:at + len(rows)]))
    return tuple(np.concatenate(k) if k else None for k in (ours, others))


def decide(k, other):
    """Whether the rule holds for KL `k` beside the Sample of llama.cpp, and the numbers that say so."""
    ours = sample(k)
    ratio = ours.mean / other.mean
    error = ratio * ((ours.error / ours.mean) ** 2 + (other.error / other.mean) ** 2) ** 0.5
    cut_ratio = float(np.minimum(k, other.cut).mean()) / other.cut_mean
    beyond, expected = int((k > other.cut).sum()), (1 - CUT) * other.n
    told = f"ratio {ratio:.3f} +- {error:.2f}, cut {cut_ratio:.3f}, beyond the cut {beyond} and {expected:.0f}"
    if ours.mean <= max(FACTOR * other.mean, FLOOR):
        return True, told
    unknown = ratio - 2 * error <= FACTOR
    holds = unknown and cut_ratio <= FACTOR and beyond <= FACTOR * expected + 2 * (beyond + expected) ** 0.5
    return holds, told + (": the means do not tell, the cut decides" if unknown else "")


def other_logits(path, tokens, kv):
    model = llamacpp.Model(path, n_threads=1, n_ctx=LONG_POSITIONS, chunk=512, kv=kv)
    try:
        return model.logits(tokens)
    finally:
        model.close()


def load_bounds():
    return json.loads(BOUNDS.read_text()) if BOUNDS.exists() else {"cases": {}}


def bound_of(bounds, case, n_positions):
    known = bounds["cases"].get(case.name, {}).get(str(n_positions))
    if isinstance(known, float):  # no tail was looked at: the mean alone
        known = [known, 0.0, float("inf"), known]
    return Sample(*known, len(SEEDS) * n_positions) if known else None


def check(t, case, n_positions, bounds):
    live = llamacpp.available()
    name = f"KL of {case.name}"
    try:
        ours, other = measure(case, n_positions, True, live)
    except (program.Failed, oracle.Refused, RuntimeError) as why:
        t.check(name, False, why)
        return
    other = sample(other) if live else bound_of(bounds, case, n_positions)
    if other is None:
        t.check(name, False, "no bound is recorded for this case")
        return
    holds, told = decide(ours, other)
    t.check(f"{name}: {ours.mean():.3e}, llama.cpp {other.mean:.3e}, {len(ours)} positions, {told}", holds)


def record(cases):
    """Writes llama.cpp's own KL of each case, at each length that is used, to bounds.json."""
    bounds = load_bounds()
    bounds["how"] = (f"kl.py --record with {llamacpp.version()}; seeds 0 1 2, KV as the case says: mean, its standard error, "
                     "99 % quantile, mean of what is cut there")
    for case, _ in cases:
        longest = LONG_POSITIONS if case.recipe in LONGER else POSITIONS
        _, other = measure(case, longest, False, True)
        by_seed = other.reshape(len(SEEDS), longest)  # of a longer text, its beginning is the shorter one
        for n in sorted({POSITIONS, longest}):
            of = sample(by_seed[:, :n].ravel())
            bounds["cases"].setdefault(case.name, {})[str(n)] = [float(f"{x:.4g}") for x in of[:4]]
        print(case.name, bounds["cases"][case.name], flush=True)
    bounds["cases"] = dict(sorted(bounds["cases"].items()))
    BOUNDS.write_text(json.dumps(bounds, indent=1) + "\n")


def selected(names, everything):
    cases = [(Case(recipe, types, *kv), quick) for recipe, types, quick, *kv in CASES]
    if names:
        return [c for c in cases if c[0].name in names]
    return [c for c in cases if everything or c[1]]


def main(argv):
    ap = argparse.ArgumentParser(description="KL of emitted programs beside llama.cpp")
    ap.add_argument("--all", action="store_true", help="all cases, and some with more positions")
    ap.add_argument("--case", action="append", help="only this case, as in 'llama-576 q4_1'")
    ap.add_argument("--record", action="store_true", help="measure llama.cpp and write bounds.json")
    args = ap.parse_args(argv)
    cases = selected(args.case, args.all)
    t = tap.Tap()
    if not program.LAGEN.exists():
        t.skip("KL of emitted programs", f"{program.LAGEN.relative_to(program.ROOT)} is not built")
        return t.done()
    if args.record:
        record(cases)
        return 0
    bounds = load_bounds()
    if not llamacpp.available():
        t.skip("KL beside a live llama.cpp", f"{llamacpp.WHY_NOT}; bounds.json is used")
    for case, _ in cases:
        if case.recipe == "SmolLM2" and not program.SMOLLM2.exists():
            t.skip("KL of SmolLM2", f"{program.SMOLLM2.relative_to(program.ROOT)} is not there")
            continue
        longer = args.all and case.recipe in LONGER
        check(t, case, LONG_POSITIONS if longer else POSITIONS, bounds)
    return t.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
