"""Folders of emitted programs for tests, which run side by side: one builder at a time, and the runtime compiled once.

Most of what a program compiles is its runtime: the same files with the same flags in every program. So a new folder begins with
the runtime of one that has been compiled, its objects and ninja's notes about them. lagen leaves files that are what it
would write as they are, and ninja compiles again whatever differs, by command and by time: a folder can begin with
objects too old for it, never end with them.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("LAGEN_BUILD", "build")
LAGEN = BUILD / "lagen"
WORK = BUILD / "programs"
RUNTIME = WORK / "runtime"  # a program of which only the runtime is compiled


@contextlib.contextmanager
def locked(path):
    """Nobody else is in a `with locked` of this path meanwhile; for tests that use one folder or file."""
    WORK.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9._-]", "-", os.path.relpath(path, ROOT))
    with open(WORK / f"{name}.locked", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def compile_runtime():
    """Brings RUNTIME up to date. Quick where it is."""
    model = WORK / "runtime.gguf"
    if not model.exists():
        subprocess.run([LAGEN, "synth", "synth/llama-tiny", "-o", model], check=True, capture_output=True)
    subprocess.run([LAGEN, "emit", "-m", model, "--arch", "native", "--ctx", "256", "-o", RUNTIME], check=True, capture_output=True)
    objects = re.findall(r"^build (obj/runtime/\S+):", (RUNTIME / "build.ninja").read_text(), re.M)
    subprocess.run(["ninja", "-C", RUNTIME, "--quiet", *objects], check=True, stdout=subprocess.DEVNULL)


def demo_folder():
    """Where demo.sh builds models/laguna-tiny."""
    with locked(RUNTIME):
        compile_runtime()
        return ROOT / "out" / f"laguna-tiny-{json.loads((RUNTIME / 'manifest.json').read_text())['target']}"


def begin(folder):
    """Makes the folder with the runtime's files, its objects, and the manifest by which lagen knows the folder for its own."""
    with locked(RUNTIME):
        compile_runtime()
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        (part / "obj").mkdir(parents=True)
        for name in ("runtime", "obj/runtime"):
            shutil.copytree(RUNTIME / name, part / name)  # with their times
        for name in ("manifest.json", "obj/.ninja_log", "obj/.ninja_deps"):
            shutil.copy2(RUNTIME / name, part / name)
        part.rename(folder)


@contextlib.contextmanager
def ready(folder):
    """The folder is there for a `lagen build`, and nobody else's meanwhile."""
    folder = pathlib.Path(folder)
    with locked(folder):
        if not folder.exists():
            begin(folder)
        yield


def smem_bytes(descriptor):
    """Dynamic shared memory of a cta, from the pieces that its descriptor carves out of it."""
    end = 0
    for s in descriptor.get("smem", []):
        end = -(-end // s["align"]) * s["align"] + s["bytes"]
    return end
