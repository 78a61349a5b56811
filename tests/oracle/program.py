"""Builds and runs emitted programs for the tests of numbers: paths, commands, raw logits."""
import os
import pathlib
import subprocess

import numpy as np

import emitted

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("LAGEN_BUILD", "build")
LAGEN = BUILD / "lagen"
LAGUNA_TINY = ROOT / "models" / "laguna-tiny" / "laguna-tiny.gguf"
SMOLLM2 = ROOT / "build" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
WORK = BUILD / "oracle"  # models and programs of these tests


class Failed(Exception):
    """A command that should work did not; the text is its last line of error."""


def run(args, **options):
    done = subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          cwd=ROOT, **options)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["(no message)"]
        raise Failed(f"{pathlib.Path(args[0]).name} {args[1]}: exit {done.returncode}: {lines[-1]}")
    return done.stdout


def synth(recipe, types=None, seed=0, name=None):
    """Makes a synthetic model and returns its path; one name holds one model at a time."""
    WORK.mkdir(parents=True, exist_ok=True)
    path = WORK / f"{name or recipe}.gguf"
    extra = ["--types", types] if types else []
    run([LAGEN, "synth", f"synth/{recipe}", "-o", path, "--seed", seed, *extra])
    return path


def build(model, arch="native", ctx=2048, chunk=512, kv="f16"):
    """Builds a model's program; the path of its command line. A second build compiles nothing."""
    out = WORK / f"{pathlib.Path(model).stem}-{arch}{'' if kv == 'f16' else '-' + kv}"
    return build_in(out, "--model", model, "--arch", arch, "--ctx", ctx, "--chunk", chunk, "--kv", kv)


def build_in(out, *options):
    """`lagen build` with these options into the folder `out`; the path of the program's command line."""
    with emitted.ready(out):
        made = run([LAGEN, "build", *options, "--out", out])
    return pathlib.Path(made.decode().strip().splitlines()[-1])


def build_laguna_tiny():
    """The program of models/laguna-tiny in the folder and with the options that demo.sh gives it."""
    with emitted.ready(emitted.demo_folder()):
        made = run([LAGEN, "build", "--model", LAGUNA_TINY.relative_to(ROOT), "--arch", "native"])
    return ROOT / made.decode().strip().splitlines()[-1]


def logits(cli, tokens, chunk=None, threads=None):
    """float32 [len(tokens), vocab] of the program, all positions from an empty context."""
    raw = WORK / f"logits.{os.getpid()}"
    extra = (["--chunk", chunk] if chunk else []) + (["--threads", threads] if threads else [])
    try:
        run([cli, "logits", "--ids", ",".join(map(str, tokens)), "--all", "--raw", raw, *extra])
        return np.fromfile(raw, np.float32).reshape(len(tokens), -1)
    finally:
        raw.unlink(missing_ok=True)
