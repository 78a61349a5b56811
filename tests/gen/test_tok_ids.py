"""Ids of whole vocabularies against other programs, over texts of every kind.

Byte-level BPE: the `tokenizers` package gets the same expressions, vocabulary and merges and runs
code of its own on them. All of them, SPM too: llama.cpp, from its Python package. Where a model or a package is not
there, the test is skipped by name.
"""
import functools
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
    "laguna-tiny": ROOT / "models" / "laguna-tiny" / "laguna-tiny.gguf",
    "smollm2": ROOT / "build" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf",
    "gpt-2": SHARED / "ggml-vocab-gpt-2.gguf",
    "falcon": SHARED / "ggml-vocab-falcon.gguf",
    "starcoder": SHARED / "ggml-vocab-starcoder.gguf",
    "refact": SHARED / "ggml-vocab-refact.gguf",
}
ALL = bool(os.environ.get("LAGEN_TEST_ALL"))
N_TEXTS = 10000 if ALL else 1500
BITS = ["the ", "Hello", " world", "don't", " I'LL", "\n", "\r\n", "\n\n\n", "\t", "    ", "  ",
        "123", " 4567", "3.14", "...", "!?", "#include <x.h>", "{}",
        "==", "_", "naïve café", "Größe", "élan",
        "e\u0301", "नमस्ते", "中文字符", "ひらがな", "한국어", "😀", "🦙", "👩‍👩‍👧", "½", "Ⅷ", "٣",
        "\u00a0", "\u3000", "\u200b", "<|im_start|>", "</s>", "ied 4 ½ months", " this is 🦙.cpp",
        "Привет", "ελληνικά", "שלום", "ไทย", "'s", "'ve", "aB", "ABC", "x" * 40, "=" * 70]


def special_tokens(model):
    """Texts of the control and user-defined tokens, and the ids of BOS and EOS where they are added."""
    fields = fields_of(model)

    def added(end, default):
        return [fields[f"{end}_token_id"]] if fields.get(f"add_{end}_token", default) else []
    names = [t for t, kind in zip(fields["tokens"], fields.get("token_type", [])) if kind in (3, 4) and t]
    return names, added("bos", fields["model"] == "llama"), added("eos", False)


def random_text(rng, names=()):
    parts = []
    for _ in range(rng.randrange(12)):
        kind = rng.randrange(6)
        if names and rng.random() < 0.2:
            parts.append(rng.choice(names))
        elif kind < 4:
            parts.append(rng.choice(BITS))
        elif kind == 4:
            parts.append("".join(chr(rng.randrange(32, 127)) for _ in range(rng.randrange(1, 9))))
        else:
            # characters of long standing, so that both sides know their category
            low, high = rng.choice([(0xA1, 0x250), (0x391, 0x3CA), (0x4E00, 0x9FA5),
                                    (0x1F600, 0x1F640)])
            parts.append(chr(rng.randrange(low, high)))
    return "".join(parts)


def ours(model, texts, special):
    data = b"".join(b"%d\n%s" % (len(t), t) for t in (x.encode() for x in texts))
    done = subprocess.run([TOOL, *(["--special"] if special else []), model], input=data, stdout=subprocess.PIPE, check=True)
    return [[int(i) for i in line.split()] for line in done.stdout.decode().split("\n")[:-1]]


@functools.lru_cache(maxsize=1)
def fields_of(model):
    from gguf import GGUFReader
    names = ("tokens", "merges", "token_type", "model", "add_bos_token", "add_eos_token", "bos_token_id", "eos_token_id")
    fields = GGUFReader(model).fields
    return {n: fields[f"tokenizer.ggml.{n}"].contents() for n in names if f"tokenizer.ggml.{n}" in fields}


@functools.lru_cache(maxsize=1)
def reference(model):
    from tokenizers import Regex, Tokenizer, pre_tokenizers
    from tokenizers.models import BPE
    tokens = fields_of(model)["tokens"]
    merges = [(m[:m.index(" ", 1)], m[m.index(" ", 1) + 1:]) for m in fields_of(model)["merges"]]
    lines = subprocess.run([TOOL, "--stages", model], stdout=subprocess.PIPE, check=True)
    *stages, flags = lines.stdout.decode().split("\n")[:-1]
    vocab = {t: i for i, t in enumerate(tokens)}
    tokenizer = Tokenizer(BPE(vocab, merges, ignore_merges=flags == "flags=WHOLE"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(s), "isolated") for s in stages] +
        [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return tokenizer


def by_tokenizers(model, texts, special):
    from tokenizers import AddedToken
    tokenizer = reference(model)
    names, bos, eos = special_tokens(model) if special else ([], [], [])
    tokenizer.add_special_tokens([AddedToken(n, normalized=False, special=True) for n in names])
    encoded = tokenizer.encode_batch(texts, add_special_tokens=False)
    return [bos + e.ids + eos for e in encoded]


def by_llama_cpp(model, texts, special):
    from llama_cpp import Llama
    bos = special_tokens(model)[1] if special else []
    sys.stderr.flush()
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)  # it says for every text that starts with a BOS that it does
    try:
        llama = Llama(str(model), vocab_only=True, verbose=False)
        return [llama.tokenize(t.encode(), add_bos=special, special=special) if t else bos for t in texts]
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)


def check_model(t, name, path, other, special=False):
    if not TOOL.exists():
        t.skip(name, f"{TOOL.relative_to(ROOT)} is not built")
        return
    if not path.exists():
        t.skip(name, f"{path.name} is not there")
        return
    rng = random.Random(name)
    try:
        names = special_tokens(path)[0] if special else []
        texts = [random_text(rng, names) for _ in range(N_TEXTS)]
        want = other(path, texts, special)
    except ImportError as missing:
        t.skip(name, str(missing))
        return
    got = ours(path, texts, special)
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
        check_model(t, name + ", special tokens", path, by_tokenizers, True)
    for name, path in [("llama-spm", SPM), *(MODELS.items() if ALL else [])]:
        check_model(t, name + ", llama.cpp", path, by_llama_cpp)
        check_model(t, name + ", llama.cpp, special tokens", path, by_llama_cpp, True)
    return t.done()


sys.exit(main())
