"""measure.py -- held-out conversations: perplexity, answers, calls, stopping.

    python3 measure.py MODEL.gguf [--conversations 8] [--only EXPRESSION]

Each turn that the model would have to write is answered greedily after the true text before it. A
turn that calls is right if the names and arguments of all its calls are, an answer if it is the
expected text. Stories, lists, tips and small talk have many right answers: there only the end
token counts."""

import argparse
import collections
import random
import re

import numpy as np

import data
import dialogue
import qa
import reference
import render
import tools

OPEN = {qa.smalltalk, qa.about, qa.lists, qa.tips, qa.story}


def held(make, seed):
    """Endless conversations of one kind that training has not seen."""
    rng = random.Random(seed)
    while True:
        c = make(rng)
        c.setdefault("tools", [])
        c["thinking"] = rng.random() < 0.4
        if data.held_out(render.segments(c)):
            yield c


def single(family):
    def make(rng):
        q, a, t = family(rng)
        return {
            "system": dialogue.system(rng),
            "messages": [dialogue.user(dialogue.noise(rng, q)), dialogue.say(a, t)],
        }

    return make


def use(shape):
    def make(rng):
        while True:
            got = shape(rng)
            if got:
                return {"system": dialogue.system(rng), "tools": got[0], "messages": got[1]}

    return make


KINDS = {f.__name__: single(f) for _, f in qa.FAMILIES}
KINDS.update({f"tool {f.__name__}": use(f) for _, f in tools.SHAPES})
KINDS.update(
    {
        "tool not needed, or mixed": dialogue.with_tools,
        "memory": dialogue.memory,
        "long memory": dialogue.long_memory,
        "persona": dialogue.persona,
        "notes": dialogue.notes,
        "style": dialogue.styled,
    }
)
OPEN_NAMES = {f.__name__ for f in OPEN}


def split(text):
    """Reasoning, content and calls of a written turn."""
    body = text.split("</think>")[-1].removesuffix("</assistant>")
    calls = re.findall(r"<tool_call>(.*?)</tool_call>", body, re.S)
    return body.split("<tool_call>")[0], calls


def normal(content, kind):
    """Sums have answers in several forms: their last number counts."""
    return re.findall(r"\d+", content)[-1:] if kind == "add" else content


def judge(model, tok, c, limit, kind):
    """(stopped, right, calls expected, calls right) of each written turn."""
    before = ""
    for text, trained in render.segments(c):
        if trained and text:
            ids = tok.encode(before, add_special_tokens=False).ids
            if len(ids) > 2048:
                return
            out = model.greedy(ids, limit)
            got, want = split(tok.decode(out, skip_special_tokens=False)), split(text)
            same = (normal(got[0], kind), got[1]) == (normal(want[0], kind), want[1])
            yield out[-1] == render.EOT, same, bool(want[1]), got[1] == want[1]
        before += text


def perplexity(model, tok, n):
    stream = data.documents(tok, "held out", held=True)
    total = collections.Counter()
    for _ in range(n):
        ids, weights = next(stream)
        model.reset()
        x = model.forward(ids)[:-1]
        x = x - x.max(-1, keepdims=True)
        loss = -(x[np.arange(len(ids) - 1), ids[1:]] - np.log(np.exp(x).sum(-1)))
        written = weights[1:] == 1
        total.update(written=loss[written].sum(), n=written.sum(), all=loss.sum(), m=len(loss))
    return np.exp(total["written"] / total["n"]), np.exp(total["all"] / total["m"]), total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("model")
    p.add_argument("--conversations", type=int, default=8, help="of each kind")
    p.add_argument("--perplexity", type=int, default=100, help="documents")
    p.add_argument("--only", default="", help="kinds whose name has this expression")
    p.add_argument("--limit", type=int, default=300)
    a = p.parse_args()
    model = reference.Model(a.model, np.float32)
    tok = reference.tokenizer_of(model.keys)
    w, e, t = perplexity(model, tok, a.perplexity)
    print(
        f"held-out perplexity {w:.4f} on {t['n']} written tokens, {e:.4f} on all {t['m']}",
        flush=True,
    )
    print("| kind | turns | stopped | right answers | right calls |\n|---|---|---|---|---|")
    sums = collections.Counter()
    for kind, make in KINDS.items():
        if not re.search(a.only, kind):
            continue
        stream, got = held(make, "measure"), []
        for _ in range(a.conversations):
            got += judge(model, tok, next(stream), a.limit, kind)
        calls = [g for g in got if g[2]]
        texts = [g for g in got if not g[2]]
        right = (
            f"{sum(g[1] for g in texts)} of {len(texts)}"
            if texts and kind not in OPEN_NAMES
            else "-"
        )
        called = f"{sum(g[3] for g in calls)} of {len(calls)}" if calls else "-"
        print(
            f"| {kind} | {len(got)} | {sum(g[0] for g in got)} | {right} | {called} |", flush=True
        )
        sums.update(
            turns=len(got),
            stopped=sum(g[0] for g in got),
            calls=len(calls),
            called=sum(g[3] for g in calls),
        )
        if kind not in OPEN_NAMES:
            sums.update(texts=len(texts), right=sum(g[1] for g in texts))
    print(
        f"| all | {sums['turns']} | {sums['stopped']} | {sums['right']} of {sums['texts']} |"
        f" {sums['called']} of {sums['calls']} |"
    )


if __name__ == "__main__":
    main()
