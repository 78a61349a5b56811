"""data.py -- rows of training tokens: conversations packed without cutting, made while training.

Document n of a stream depends on (seed, stream, n) alone, so the same arguments give the same rows.
One conversation in 64, by the checksum of its text, is held out: training never sees that text."""

import random
import zlib

import numpy as np

import dialogue
import render

LENGTH = 2048
CONTEXT_WEIGHT = 0.1  # of tokens that the model reads, beside 1 for those that it has to write


def document(rng):
    """[(text, trained)] of one conversation, or of a plain text."""
    if rng.random() < 0.04:
        return [("〈|EOS|〉", False), (dialogue.text(rng), True), ("〈|EOS|〉", True)]
    pieces = render.segments(dialogue.conversation(rng))
    if rng.random() < 0.03:
        pieces = [("〈|EOS|〉", False)] + pieces
    return pieces


def held_out(pieces):
    return zlib.crc32("".join(t for t, _ in pieces).encode()) % 64 == 0


def documents(tokenizer, seed, held=False, batch=64):
    """Endless (token ids, weights) of documents that fit into a row."""
    rng = random.Random(seed)
    while True:
        docs = []
        while len(docs) < batch:
            d = document(rng)
            if held_out(d) == held:
                docs.append(d)
        flat = tokenizer.encode_batch_fast(
            [t for d in docs for t, _ in d], add_special_tokens=False
        )
        at = 0
        for d in docs:
            ids = [e.ids for e in flat[at : at + len(d)]]
            at += len(d)
            if 0 < sum(map(len, ids)) <= LENGTH:
                weights = [
                    1.0 if trained else CONTEXT_WEIGHT for (_, trained), x in zip(d, ids) for _ in x
                ]
                yield np.array([t for x in ids for t in x], np.int64), np.array(weights, np.float32)


def rows(stream, pool=64):
    """Packs documents, the longest that fits first: tokens, weights, docs, positions."""
    waiting = []
    while True:
        tokens, weights = np.full(LENGTH, render.PAD, np.int64), np.zeros(LENGTH, np.float32)
        docs, pos, at, n = np.zeros(LENGTH, np.int64), np.zeros(LENGTH, np.int64), 0, 0
        while True:
            while len(waiting) < pool:
                waiting.append(next(stream))
            fit = [i for i, d in enumerate(waiting) if len(d[0]) <= LENGTH - at]
            if not fit:
                break
            i = fit[0] if n == 0 else max(fit, key=lambda k: len(waiting[k][0]))
            ids, w = waiting.pop(i)
            n += 1
            end = at + len(ids)
            tokens[at:end], weights[at:end], docs[at:end], pos[at:end] = (
                ids,
                w,
                n,
                np.arange(len(ids)),
            )
            weights[at] = 0
            at = end
        yield tokens, weights, docs, pos


def batches(tokenizer_file, seed, size, held=False):
    from tokenizers import Tokenizer

    stream = rows(documents(Tokenizer.from_file(tokenizer_file), seed, held))
    while True:
        yield [np.stack(x) for x in zip(*(next(stream) for _ in range(size)))]
