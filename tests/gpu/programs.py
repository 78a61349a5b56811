#!/usr/bin/env python3
"""Whole programs on a real GPU against the CPU programs of the same models: layers and logits to the bit at
several chunk sizes (with --attn f32; with the f16 of prompts to each other's bits, and near the CPU's), slots together and alone, greedy texts, speed. One table.

    programs.py prepare [--arch sm_90] [--host x86-64-v3] [--requantised q4_0,q6_k]    where lagen and nvcc are
    programs.py run [--sanitize] [--requests 1000]           where the GPU is; needs Python, a driver

Models: synthetic ones, laguna-tiny (with --requantised also in those tensor types, which needs numpy and gguf), SmolLM2.
`prepare` makes build/gpu-programs; weights of more than 40 MiB lie in pieces in build/gpu-parts/<n>,
so that a folder can travel in several loads. --requests: so many through laguna-tiny's server (soak.py). Exit status of `run`: 0 all equal, 1 something differs,
77 no GPU here."""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "gpu-programs"
PARTS = ROOT / "build" / "gpu-parts"
PART_BYTES = 40 << 20
SMOLLM2 = ROOT / "build" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
LAGUNA_TINY = ROOT / "models" / "laguna-tiny" / "laguna-tiny.gguf"
RECIPES = ["llama-tiny", "llama-576"]
CHUNKS = [512, 64, 7, 1]
EVERY_CHUNKS = [64, 1]  # no step has logits of more rows
TOKENS = 577  # odd; past the edge of every chunk, and one row past it at 64
RANDOM_IDS = [1 + 37 * i % 311 for i in range(TOKENS)]
# Mean KL between two arithmetics: what 8-bit activations cost each of them, twice. Of models of random weights over random
# tokens; of trained ones over a text, for with other tokens one pick of an expert weighs more than all else.
MOST_KL = 1e-2
TEXTS = {"laguna-tiny": ("laguna_tiny_tokens.json", 2e-3), "SmolLM2": ("smollm2_tokens.json", 7e-3)}
NEAR_TIE = 0.5  # between two logits; the same activations move one of SmolLM2's by a tenth
CHATML = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n" \
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"  # SmolLM2's


def sh(command, **options):
    return subprocess.run(
        [str(c) for c in command], check=True, stdin=subprocess.DEVNULL, **options
    )


# ---- prepare


def models(types):
    made = OUT / "models"
    made.mkdir(parents=True, exist_ok=True)
    for recipe in RECIPES:
        path = made / f"{recipe}.gguf"
        sh([ROOT / "build/lagen", "synth", f"synth/{recipe}", "-o", path])
        yield path
    yield LAGUNA_TINY
    for name in types:
        path = made / f"laguna-tiny-{name}.gguf"
        sh([sys.executable, ROOT / "tests/oracle/requantize.py", LAGUNA_TINY, name, path])
        yield path
    if SMOLLM2.exists():
        yield SMOLLM2
    else:
        print(f"without SmolLM2: {SMOLLM2} is not here")


def one_program(model, side, arch, options):
    """Builds a program and keeps what running it takes, and the slots test; the folder."""
    full = ROOT / "build" / "gpu-full" / f"{model.stem}-{side}"
    sh(
        [
            ROOT / "build/lagen",
            "build",
            "-m",
            model,
            "--arch",
            arch,
            "--ctx",
            "2048",
            "--chunk",
            "512",
            "--slots",
            "3",
            "-o",
            full,
            *options,
        ],
        stdout=subprocess.DEVNULL,
    )
    sys.path.insert(0, str(ROOT / "tests" / "gpu"))
    import program

    request = program.request(full)
    keep = OUT / model.stem / side
    keep.mkdir(parents=True, exist_ok=True)
    shutil.copy(full / f"{model.stem}-cli", keep / "cli")
    shutil.copy(full / request.name, keep / request.name)
    if side == "prompt" and model == LAGUNA_TINY:
        shutil.copy(full / f"{model.stem}-server", keep / "server")
    shutil.copytree(full / "lib", OUT / "lib", dirs_exist_ok=True)  # the same for all
    (keep / "lib").symlink_to("../../lib")
    shutil.copy(full / "weights.bin", keep / "weights.bin")
    return keep


def share_weights(folder):
    """All programs have the same image; a large one lies in parts."""
    cpu = folder / "cpu/weights.bin"
    for other in (folder / "gpu/weights.bin", folder / "prompt/weights.bin"):
        assert cpu.read_bytes() == other.read_bytes(), f"{folder}: two images of one model differ"
        other.unlink()
        other.symlink_to("../cpu/weights.bin")
    size, parts = cpu.stat().st_size, 0
    if size > PART_BYTES:
        with open(cpu, "rb") as f:
            while piece := f.read(PART_BYTES):
                parts += 1
                to = PARTS / str(parts)
                to.mkdir(parents=True, exist_ok=True)
                (to / f"{folder.name}.weights").write_bytes(piece)
        cpu.unlink()
    return {"name": folder.name, "weight_bytes": size, "parts": parts, "text": text_of(folder.name)}


def text_of(name):
    """{ ids: token ids of a text, most: the most that the mean KL may be }, if the model was trained on any."""
    for beginning, (file, most) in TEXTS.items():
        if name.startswith(beginning):
            return {"ids": json.loads((ROOT / "tests/oracle" / file).read_text())["sequences"][0][:TOKENS], "most": most}
    return None


def prepare(a):
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.rmtree(PARTS, ignore_errors=True)
    listed = []
    for model in models(a.requantised.split(",") if a.requantised else []):
        one_program(model, "cpu", a.host, [])
        one_program(model, "gpu", a.arch, ["--host", a.host, "--attn", "f32"])
        one_program(model, "prompt", a.arch, ["--host", a.host, "--attn", "f16"])
        listed.append(share_weights(OUT / model.stem))
    shutil.rmtree(OUT / "models")
    greedy = json.loads((ROOT / "tests/oracle/greedy.json").read_text())["prompts"]
    (OUT / "plan.json").write_text(json.dumps({"models": listed, "greedy": greedy, "arch": a.arch}))
    for folder in (OUT, *sorted(PARTS.glob("*"))):
        size = sum(
            p.stat().st_size for p in folder.rglob("*") if p.is_file() and not p.is_symlink()
        )
        print(f"{folder.relative_to(ROOT)}: {size / 1e6:.1f} MB")
    return 0


# ---- run


class Table:
    def __init__(self):
        self.bad = 0

    def row(self, model, what, good, detail):
        self.bad += not good
        print(f"{'ok     ' if good else 'DIFFERS'}  {model:<32} {what:<34} {detail}", flush=True)


def output(command, limit=300, env=None):
    start = time.monotonic()
    p = subprocess.run(
        [str(c) for c in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=limit,
        env=env,
    )
    return (
        p.returncode,
        p.stdout,
        p.stderr.decode(errors="replace").strip(),
        time.monotonic() - start,
    )


def join_weights(model):
    """The image from its parts, if they are here."""
    path = OUT / model["name"] / "cpu/weights.bin"
    if not path.exists():
        with open(path, "wb") as f:
            for i in range(1, model["parts"] + 1):
                f.write((PARTS / str(i) / f"{model['name']}.weights").read_bytes())


def numbers(cli, chunk, every, tokens=RANDOM_IDS):
    """Logits of all positions; or, in steps of as many rows as a chunk has, the last one's and what every layer leaves. A text
    if it fails."""
    files = [OUT / f"{what}.{os.getpid()}" for what in ("logits", "layers")]
    ids = ",".join(map(str, tokens))
    more = ["--all"] if every else ["--trace", files[1]]
    code, _, text, _ = output([cli, "logits", "--ids", ids, "--raw", files[0], "--chunk", chunk, *more])
    data = [f.read_bytes() if f.exists() else b"" for f in files]
    for f in files:
        f.unlink(missing_ok=True)
    rows = [TOKENS, 1] if every else [1, TOKENS]
    if code == 0 and len(data[0]) > 0 and all(len(d) % (4 * n) == 0 for d, n in zip(data, rows)) and (every or data[1]):
        return data[0] + data[1]
    return text or f"{len(data[0])} bytes of logits and {len(data[1])} of layers for {TOKENS} positions"


def compare_numbers(t, model, cpu, gpu):
    for every, what, chunks in ((False, "layers", CHUNKS), (True, "all logits", EVERY_CHUNKS)):
        want = numbers(cpu, CHUNKS[0], every)
        if not isinstance(want, bytes):
            t.row(model, f"{what} of the CPU program", False, want)
            continue
        for chunk in chunks:
            got = numbers(gpu, chunk, every)
            if not isinstance(got, bytes):
                t.row(model, f"{what}, chunk {chunk}", False, got)
                continue
            wrong = [i // 4 for i in range(0, len(want), 4) if want[i : i + 4] != got[i : i + 4]] if got != want else []
            detail = f"{len(wrong)} of {len(want) // 4} numbers, the first is {wrong[0]}" if wrong else f"{len(want) // 4} numbers"
            t.row(model, f"{what}, chunk {chunk}", got == want, detail)


def mean_kl(wanted, got, n_rows):
    """Mean KL divergence of every eighth row of logits."""
    n, total, rows = len(wanted) // 4 // n_rows, 0.0, range(0, n_rows, 8)
    for i in rows:
        p, q = (log_softmax(struct.unpack_from(f"<{n}f", data, 4 * n * i)) for data in (wanted, got))
        total += sum(math.exp(a) * (a - b) for a, b in zip(p, q))
    return total / len(rows)


def log_softmax(x):
    top = max(x)
    norm = top + math.log(sum(math.exp(v - top) for v in x))
    return [v - norm for v in x]


def compare_prompts(t, model, cpu, prompt, text):
    """The program whose attention of prompts is in f16: the same bits at every chunk, and not far from the CPU's."""
    for every, what, chunks in ((False, "layers", CHUNKS), (True, "all logits", EVERY_CHUNKS)):
        got = [numbers(prompt, chunk, every) for chunk in chunks]
        for chunk, numbers_of in zip(chunks[1:], got[1:]):
            t.row(model, f"{what} in f16, chunk {chunk}", isinstance(numbers_of, bytes) and numbers_of == got[0], f"as chunk {chunks[0]}")
    tokens, what, most = (text["ids"], "a text", text["most"]) if text else (RANDOM_IDS, "random tokens", MOST_KL)
    wanted, got = (numbers(cli, EVERY_CHUNKS[0], True, tokens) for cli in (cpu, prompt))
    there = isinstance(wanted, bytes) and isinstance(got, bytes) and len(wanted) == len(got)
    kl = mean_kl(wanted, got, TOKENS) if there else math.inf
    t.row(model, f"f16 beside the CPU, {what}", kl < most, f"mean KL {kl:.2e}" if there else "one of them has none")


def compare_texts(t, model, gpu, greedy):
    same = 0
    for entry in greedy:
        code, out, err, _ = output([gpu, "run", "-p", entry["prompt"], "--greedy", "-n", 48])
        good = code == 0 and out.decode(errors="replace") == entry["text"]
        same += good
        if not good:
            t.row(model, "greedy text", False, repr(out.decode(errors="replace")[:60]) + err[:100])
    t.row(model, "greedy texts", same == len(greedy), f"{same} of {len(greedy)}")


def candidates(cli, prompt, answer):
    """The most likely next tokens behind the beginning of an answer: [(text, logit)]."""
    code, out, err, _ = output([cli, "logits", "--special", "--top", 3, "-p", CHATML.format(prompt) + answer])
    found = re.findall(r"^ +\d+ +(-?[\d.]+) .*?(\".*\")$", out.decode(errors="replace"), re.M)
    return [(json.loads(text), float(logit)) for logit, text in found]


def compare_near_texts(t, model, cpu, prompt, greedy):
    """Greedy texts with prompts in f16: the same at two chunks; where one parts from the CPU's, that one's candidates are a near-tie."""
    same = near = 0
    for entry in greedy:
        a, b = (output([prompt, "run", "-p", entry["prompt"], "--greedy", "-n", 48, "--chunk", c])[1].decode() for c in (512, 7))
        if a != b:
            t.row(model, "greedy text in f16, chunk 7", False, repr(b[:60]))
        elif a == entry["text"]:
            same += 1
        else:
            n = len(os.path.commonprefix([a, entry["text"]]))
            begin = max(a.rfind(" ", 0, n + 1), a.rfind("\n", 0, n + 1), 0)  # where its token begins
            next_ones = candidates(cpu, entry["prompt"], a[:begin])
            both = [max(((len(c), logit) for c, logit in next_ones if x[begin:].startswith(c)), default=None) for x in (a, entry["text"])]
            tie = None not in both and abs(both[0][1] - both[1][1]) < NEAR_TIE
            near += tie
            if not tie:
                t.row(model, "greedy text in f16", False, f"{a[begin:begin + 30]!r} {next_ones}")
    t.row(model, "greedy texts in f16", same + near == len(greedy), f"{same} of {len(greedy)} the CPU's, {near} part at a near-tie")


WAYS = (
    ["--greedy"],
    ["--temp", 0.8, "--top-k", 40, "--top-p", 0.95, "--min-p", 0.05],
    ["--temp", 1, "--top-k", 0, "--top-p", 1, "--min-p", 0],
    ["--temp", 1.2, "--top-k", 0, "--top-p", 0.8, "--min-p", 0],
    ["--temp", 0.9, "--top-k", 64, "--repeat-penalty", 1.3],
)


def compare_answers(t, model, cpu, gpu):
    """Texts drawn on the device and on the host, with the same seeds."""
    good = said = 0  # an answer may be empty, not all of them
    runs = [["run", "--raw", "-p", p, "-n", 24, *way] for way in WAYS for p in ("hello", "Once upon a time")]
    for i, command in enumerate(runs):
        seed = [] if "--greedy" in command else ["--seed", i]
        a, b = (output([cli, *command, *seed]) for cli in (cpu, gpu))
        same = a[0] == b[0] == 0 and a[1] == b[1]
        good += same
        said += len(b[1].strip()) > 0
        if not same:
            t.row(model, "answer " + " ".join(map(str, command[6:])), False, repr(b[1][:60]) + b[2][:100])
    t.row(model, "answers drawn on the device", good == len(runs) and said > 0, f"{good} of {len(runs)}, {said} with words")


def one_model(t, model, greedy, a):
    name = model["name"]
    folder = OUT / name
    cpu, gpu = folder / "cpu/cli", folder / "gpu/cli"
    join_weights(model)
    code, out, err, seconds = output([gpu, "selftest"])
    t.row(
        name,
        "selftest, plain twins on the CPU",
        code == 0,
        f"{seconds:.1f} s" if code == 0 else err,
    )
    if code != 0:
        return
    compare_numbers(t, name, cpu, gpu)
    prompt = folder / "prompt/cli"
    compare_prompts(t, name, cpu, prompt, model["text"])
    for side in ("cpu", "gpu", "prompt"):
        code, out, err, _ = output([folder / side / "request", "slots", folder / side])
        t.row(name, f"slots ({side})", code == 0, (out.decode().strip() + err)[:100])
    compare_answers(t, name, cpu, gpu)
    if "SmolLM2" in name:
        compare_texts(t, name, gpu, greedy)
        compare_near_texts(t, name, cpu, prompt, greedy)
    for side, cli in (("cpu", cpu), ("gpu", gpu), ("prompt", prompt)):
        _, out, err, _ = output([cli, "bench", "-r", 3, "-p", "512", "-n", "128"])
        print(
            f"speed    {name:<32} {side:<34} {' | '.join(out.decode().splitlines()[:2])}{err[:80]}",
            flush=True,
        )
    if a.sanitize and "tiny" in name:
        sanitize_program(t, name, prompt)
    server = folder / "prompt/server"
    if a.requests and server.exists():
        code, out, err, _ = output([sys.executable, ROOT / "tests/gpu/soak.py", server, "--requests", a.requests], limit=600)
        t.row(name, "requests without growth", code == 0, (out.decode() + err).strip()[:200])


def sanitize_program(t, name, gpu):
    ids = ",".join(str(i) for i in range(1, 30))
    draws = ["run", "--raw", "-p", "hello", "-n", 6, "--temp", 1, "--top-k", 0, "--top-p", 0.9, "--seed", 1]
    for what, command in (("a prompt", ["logits", "--ids", ids, "--chunk", 16]), ("an answer", draws)):
        for tool in ("memcheck", "racecheck", "synccheck"):
            code, out, err, _ = output(["compute-sanitizer", "--tool", tool, "--error-exitcode", 3, gpu, *command])
            text = (out.decode(errors="replace") + err).splitlines()
            last = [line for line in text if "SUMMARY" in line or "rror" in line]
            t.row(name, f"compute-sanitizer {tool}, {what}", code == 0, (last or ["?"])[-1][:100])


def run(a):
    plan = json.loads((OUT / "plan.json").read_text())
    first = OUT / plan["models"][0]["name"] / "gpu/cli"
    code, out, _, _ = output([first, "info"])
    lines = out.decode().splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith("gpu ")), len(lines))
    print("\n".join(lines[at:]), flush=True)
    if not any(line.startswith("  device ") and "not of this" not in line for line in lines[at:]):
        print("tests/gpu/programs.py: SKIP: no GPU of the programs' kind here")
        return 77
    t = Table()
    for model in plan["models"]:
        one_model(t, model, plan["greedy"], a)
    print(f"{t.bad} rows differ")
    return 1 if t.bad else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sub = parser.add_subparsers(dest="what", required=True)
    p = sub.add_parser("prepare")
    p.add_argument("--arch", default="sm_90")
    p.add_argument("--host", default="x86-64-v3")
    p.add_argument("--requantised", default="", help="tensor types, a comma between them")
    p = sub.add_parser("run")
    p.add_argument("--sanitize", action="store_true")
    p.add_argument("--requests", type=int, default=0)
    a = parser.parse_args()
    return {"prepare": prepare, "run": run}[a.what](a)


if __name__ == "__main__":
    sys.exit(main())
