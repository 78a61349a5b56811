"""Words of every pre-tokenizer against the `tokenizers` package, whose engine of expressions is another one than PCRE2 (test_split.c):
the expressions as they stand in the models' own files, also where gen/pretok.def has to write them in another way."""
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "tests" / "gen")]
import tap  # noqa: E402

TOOL = ROOT / os.environ.get("LAGEN_BUILD", "build") / "tests" / "gen" / "tok_ids"
N_TEXTS = 10000 if os.environ.get("LAGEN_TEST_ALL") else 1500

# Expressions that gen/pretok.def does not have word for word: by id and stage.
ORIGINAL = {("tiny_aya", 0): r"\d{1,3}(?=(?:\d{3})*\b)", ("chameleon", 1): r"(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
            ("chameleon", 2): r"([\t\n]|    |  )"}
BITS = ["the", "Hello", " world", "don't", "I'LL", "we'Ve", "'s", "\n", "\r\n", "\n\n", "\t", "    ", "  ", " ", "123", "1234567",
        "9", "12a", "7_", "3.14", "...", "!?", "#include <x.h>", "{}", "==", "naïve", "Größe", "e\u0301", "नमस्ते", "中文", "々〇⺀",
        "ひらカナ", "한국어", "ㄱㄴ", "ㄅㄆ", "！…", "、。", "😀", "½", "²", "Ⅷ", "٣٤٥٦", "ⓐ", "ไทย", "ລາວ", "ខ្មែរ", "မြန်", "ﾊﾟ",
        "\u00a0", "\u3000", "\u2028", "<sentinel:12>", "<sentinel:", "IMGIMGABZ", "IMGIMGAIBCDZ", "IMGIMGZ", "/", "//\n", "ABC", "aBc",
        "Привет", "ΕΛΛ", "ελλ", "שלום", "ǅ", "ʰ", "$", "|", "`", "_", "a b c"]


def random_text(rng):
    few = rng.sample(BITS, 4) if rng.random() < 0.3 else BITS
    return "".join(rng.choice(few) * (rng.randrange(1, 5) if rng.random() < 0.1 else 1) for _ in range(rng.randrange(16)))


def expressions():
    """{id: expressions in order}"""
    found = {}
    for line in subprocess.run([TOOL, "--splits"], stdout=subprocess.PIPE, check=True).stdout.decode().split("\n")[:-1]:
        if line.startswith("\t"):
            found[name].append(line[1:])
        else:
            name = line
            found[name] = []
    return found


def ours(name, texts):
    data = b"".join(b"%d\n%s" % (len(t), t) for t in (x.encode() for x in texts))
    done = subprocess.run([TOOL, "--split", name], input=data, stdout=subprocess.PIPE, check=True)
    return [[int(i) for i in line.split()] for line in done.stdout.decode().split("\n")[:-1]]


def theirs(name, stages, texts):
    from tokenizers import Regex, pre_tokenizers
    splits = [pre_tokenizers.Split(Regex(ORIGINAL.get((name, i), s)), "isolated") for i, s in enumerate(stages)]
    cut = pre_tokenizers.Sequence(splits)
    return [[len(word) for word, _ in cut.pre_tokenize_str(t)] for t in texts]


def main():
    t = tap.Tap()
    try:
        import tokenizers  # noqa: F401
    except ImportError as missing:
        t.skip("words against the tokenizers package", str(missing))
        return t.done()
    if not TOOL.exists():
        t.skip("words against the tokenizers package", f"{TOOL.relative_to(ROOT)} is not built")
        return t.done()
    rng = random.Random(4)
    texts = [random_text(rng) for _ in range(N_TEXTS)]
    for name, stages in expressions().items():
        got, want = ours(name, texts), theirs(name, stages, texts)
        wrong = [i for i in range(N_TEXTS) if got[i] != want[i]]
        note = f"{len(wrong)} differ, first on {texts[wrong[0]]!r}\nwanted {want[wrong[0]]}\ngot    {got[wrong[0]]}" if wrong else ""
        t.check(f"{name}: {sum(map(len, want))} words", not wrong, note)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
