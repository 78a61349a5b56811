"""Ids of whole vocabularies against other programs, over texts of every kind.

Byte-level BPE: the `tokenizers` package gets the same expressions, vocabulary and merges and runs
code of its own on them. SPM: llama.cpp, from its Python package. Where a model or a package is not
there, the test is skipped by name.
"""
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

TOOL = ROOT / os.environ.get("LAGEN_BUILD", "build") / "tests" / "gen" / "tok_ids"
SHARED = ROOT.parent / "shared" / "vocab"
SPM = SHARED / "ggml-vocab-llama-spm.gguf"
MODELS = {
    "smollm2": ROOT / "build" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gpt-2": SHARED / "ggml-vocab-gpt-2.gguf",
    "falcon": SHARED / "ggml-vocab-falcon.gguf",
    "starcoder": SHARED / "ggml-vocab-starcoder.gguf",
    "refact": SHARED / "ggml-vocab-refact.gguf",
}
N_TEXTS = 3000
BITS = ["the ", "Hello", " world", "don't", " I'LL", "\n", "\r\n", "\n\n\n", "\t", "    ", "  ",
        "123", " 4567", "3.14", "...", "!?", "#include <x.h>", "{}",
        "==", "_", "naïve café", "Größe", "élan",
        "e\u0301", "नमस्ते", "中文字符", "ひらがな", "한국어", "😀", "🦙", "👩‍👩‍👧", "½", "Ⅷ", "٣",
        "\u00a0", "\u3000", "\u200b", "<|im_start|>", "</s>", "ied 4 ½ months", " this is 🦙.cpp",
        "Привет", "ελληνικά", "שלום", "ไทย", "'s", "'ve", "aB", "ABC", "x" * 40, "=" * 70]


def random_text(rng):
    parts = []
    for _ in range(rng.randrange(12)):
        kind = rng.randrange(6)
        if kind < 4:
            parts.append(rng.choice(BITS))
        elif kind == 4:
            parts.append("".join(chr(rng.randrange(32, 127)) for _ in range(rng.randrange(1, 9))))
        else:
            # characters of long standing, so that both sides know their category
            low, high = rng.choice([(0xA1, 0x250), (0x391, 0x3CA), (0x4E00, 0x9FA5),
                                    (0x1F600, 0x1F640)])
            parts.append(chr(rng.randrange(low, high)))
    return "".join(parts)


def ours(model, texts):
    data = b"".join(b"%d\n%s" % (len(t), t) for t in (x.encode() for x in texts))
    done = subprocess.run([TOOL, model], input=data, stdout=subprocess.PIPE, check=True)
    return [[int(i) for i in line.split()] for line in done.stdout.decode().split("\n")[:-1]]


def reference(model):
    from gguf import GGUFReader
    from tokenizers import Regex, Tokenizer, pre_tokenizers
    from tokenizers.models import BPE
    fields = GGUFReader(model).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [(m[:m.index(" ", 1)], m[m.index(" ", 1) + 1:])
              for m in fields["tokenizer.ggml.merges"].contents()]
    lines = subprocess.run([TOOL, "--stages", model], stdout=subprocess.PIPE, check=True)
    *stages, flags = lines.stdout.decode().split("\n")[:-1]
    vocab = {t: i for i, t in enumerate(tokens)}
    tokenizer = Tokenizer(BPE(vocab, merges, ignore_merges=flags == "flags=WHOLE"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(s), "isolated") for s in stages] +
        [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return tokenizer


def by_tokenizers(model, texts):
    encoded = reference(model).encode_batch(texts, add_special_tokens=False)
    return [e.ids for e in encoded]


def by_llama_cpp(model, texts):
    from llama_cpp import Llama
    llama = Llama(str(model), vocab_only=True, verbose=False)
    return [llama.tokenize(t.encode(), add_bos=False, special=False) if t else [] for t in texts]


def check_model(t, name, path, other):
    if not TOOL.exists():
        t.skip(name, f"{TOOL.relative_to(ROOT)} is not built")
        return
    if not path.exists():
        t.skip(name, f"{path.name} is not there")
        return
    rng = random.Random(name)
    texts = [random_text(rng) for _ in range(N_TEXTS)]
    try:
        want = other(path, texts)
    except ImportError as missing:
        t.skip(name, str(missing))
        return
    got = ours(path, texts)
    wrong = [i for i in range(N_TEXTS) if got[i] != want[i]]
    note = ""
    if wrong:
        i = wrong[0]
        note = f"{len(wrong)} differ, first on {texts[i]!r}\nwanted {want[i]}\ngot    {got[i]}"
    t.check(f"{name}: {N_TEXTS} texts, {sum(map(len, want))} ids", not wrong, note)


def main():
    t = tap.Tap()
    for name, path in MODELS.items():
        check_model(t, name, path, by_tokenizers)
    check_model(t, "llama-spm", SPM, by_llama_cpp)
    return t.done()


sys.exit(main())
