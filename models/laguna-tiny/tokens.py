"""tokens.py -- the tokenizer of laguna-tiny: byte-level BPE, 4,096 tokens, pre-tokenizer `laguna`.

python3 tokens.py OUT/tokenizer.json      trains it on conversations of the small world
"""

import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

import dialogue
import render

VOCAB = 4096
# Two stages: runs of newlines stand alone, then the splitter that is known as qwen2's.
LINES = r"[^\n]+|[\n]+"
WORDS = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def splitter():
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(LINES), "isolated"),
            pre_tokenizers.Split(Regex(WORDS), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def pieces(n, seed):
    """The raw fragments between special tokens of n documents."""
    rng = random.Random(seed)
    for _ in range(n):
        c = dialogue.conversation(rng)
        yield dialogue.text(rng)
        text = "".join(t for t, _ in render.segments(c))
        for special in render.SPECIAL:
            text = text.replace(special, "\0")
        yield from filter(None, text.split("\0"))


def train(n=30000, seed=1):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = splitter()
    tokenizer.decoder = decoders.ByteLevel()
    special = [AddedToken(t, normalized=False, special=True) for t in render.SPECIAL]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=special,
        show_progress=False,
        min_frequency=1,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(pieces(n, seed), trainer)
    assert [tokenizer.id_to_token(i) for i in range(len(render.SPECIAL))] == render.SPECIAL
    assert tokenizer.get_vocab_size() == VOCAB, tokenizer.get_vocab_size()
    return tokenizer


if __name__ == "__main__":
    train().save(sys.argv[1])
