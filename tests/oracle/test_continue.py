"""llama.cpp, where its package knows Laguna, continues laguna-tiny greedily with the tokens of lagen's program; where the two
part, the float64 reference says whether that is rounding or a fault.

Both continue assistants' turns of the recorded conversations. At the first token that differs the reference's logits of
the two candidates must be a near-tie: no further apart than what rounding explains. That is measured on the conversations
themselves, where the two greatest logits are less than 1 apart: how far off their difference is, as a root mean square.
Programs part where the gap is below what both errors, which do not know each other, add up to; NOISES times that spread is
allowed. Only llama.cpp's is in the bound, and lagen's must not be larger than the KL rule's factor allows.
"""
import json
import pathlib

import numpy as np

import kl
import llamacpp
import oracle
import program
import tap

TEXTS = pathlib.Path(__file__).resolve().parent / "laguna_tiny_tokens.json"
START, OPEN, THINK, END = 2, 22, (18, 19), 24  # of a conversation; <assistant>, <think> or </think>, </assistant>
STEPS, N_CTX = 48, 1152
NOISES = 3.0
CLOSE = 1.0  # apart: where a difference of two logits decides something


def texts():
    return json.loads(TEXTS.read_text())["sequences"]


def prompts():
    """Where an assistant begins to write, every other turn, from the start of its conversation; and three of many."""
    for text in texts():
        turns = [i for i in range(2, len(text)) if text[i - 1] == OPEN and text[i] in THINK]
        for i in turns[::2]:
            start = max(k for k in range(i) if text[k] == START and text[k + 1] != START)
            yield text[start:i + 1]
        yield text[:turns[-1] + 1]


def spreads(cli, o, other):
    """Of lagen's program and of llama.cpp: how far off the difference of two close logits is; and in how many places."""
    ours, theirs = [], []
    for text in texts():
        exact = o.logits(text)
        order = np.argsort(-exact, axis=1)
        first, second, at = order[:, 0], order[:, 1], np.arange(len(text))
        gap = exact[at, first] - exact[at, second]
        for errors, rows in ((ours, program.logits(cli, text)), (theirs, other.logits(text))):
            wide = rows.astype(np.float64)
            errors.append((wide[at, first] - wide[at, second] - gap)[gap < CLOSE])
    rms = [float(np.sqrt(np.mean(np.concatenate(e) ** 2))) for e in (ours, theirs)]
    return *rms, sum(map(len, ours))


def compare(cli, o, other, prompt):
    """Tokens in common, and of the place where the programs part: (how far apart its candidates are, what it is), or None."""
    tokens = other.greedy(prompt, STEPS, END)
    text = prompt + tokens[:-1]
    ours = program.logits(cli, text)[len(prompt) - 1:].argmax(axis=1)
    differ = np.flatnonzero(ours != tokens)
    if not len(differ):
        return len(tokens), None
    n = int(differ[0])
    a, b = int(ours[n]), tokens[n]
    exact = o.logits(text[:len(prompt) + n])[-1]
    return n, (abs(exact[a] - exact[b]), f"token {n} behind {len(prompt)}, {a} and {b}")


def llama_cpp_continues_with_the_same_tokens():
    if not llamacpp.available():
        raise tap.Skip(llamacpp.WHY_NOT)
    try:
        other = llamacpp.Model(program.LAGUNA_TINY, n_threads=1, n_ctx=N_CTX)
    except RuntimeError as why:
        raise tap.Skip(f"{llamacpp.version()}: {why}")
    cli, o = program.build_laguna_tiny(), oracle.Oracle(program.LAGUNA_TINY, keep=True)
    ours, theirs, places = spreads(cli, o, other)
    done = [compare(cli, o, other, prompt) for prompt in prompts()]
    other.close()
    parted, bound = [place for _, place in done if place], NOISES * 2 ** 0.5 * theirs
    print(f"# {llamacpp.version()}")
    print(f"# {places} close places: off by {ours:.4f} here, {theirs:.4f} there; near-ties are within {bound:.3f}")
    print(f"# {len(done)} turns, {sum(n for n, _ in done)} tokens in common, {len(parted)} parted")
    for gap, place in parted:
        print(f"# parted, {gap:.4f} apart: {place}")
    assert places > 100 and ours <= kl.FACTOR * theirs
    assert all(gap <= bound for gap, _ in parted)
    assert 5 * len(parted) <= len(done), "parted too often for near-ties"


tap.main([llama_cpp_continues_with_the_same_tokens])
