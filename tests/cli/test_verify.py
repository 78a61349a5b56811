"""`lagen verify` believes no scalar of memory.json and launches.json: of every distinct path of keys one is bent, all digests made
right again, and it is refused: the first for a CPU, one from the middle for a GPU. Those of manifest.json are in test_lagen.py.

    test_verify.py [LAGEN] [--all]     --all: every scalar, in every way here (an hour)"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))

import forge
import tap

ALL = "--all" in sys.argv[1:]
NAMED = [a for a in sys.argv[1:] if a != "--all"]
LAGEN = pathlib.Path(NAMED[0] if NAMED else ROOT / os.environ.get("LAGEN_BUILD", "build") / "lagen").resolve()
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[\[\]{},:]')

# Words and numbers that stand once, from which nothing is derived and that no program reads; by path, each with its reason.
FREE = {
    "kernels.descriptor.features": "which instructions a kernel is written with, for softgpu's list of what it covers",
    "kernels.descriptor.operands.indexed": "why an index that data decide is in range, in words; its range is proved (max_index, below)",
    "kernels.descriptor.covers.scattered": "why each element is written once where data say by whom, in words",
    "kernels.descriptor.tolerance": "what tests of kernels allow against float64; nothing that is built or run takes it",
    "kernels.descriptor.smem.name": "what a message calls a piece of shared memory; its place and bytes are compared with the kernel's head",
}


def scalars(text):
    """(path, begin, end, value, where) of each scalar: path of keys, place in the text, and the map that holds it."""
    path, found, key = [], [], None
    for m in TOKEN.finditer(text):
        t = m[0]
        if t in "{[":
            path.append((key, {} if t == "{" else None))
            key = None
        elif t in "}]":
            path.pop()
            key = None
        elif t == ",":
            key = None
        elif t == ":":
            continue
        elif path[-1][1] is not None and key is None:
            key = json.loads(t)
        else:
            name = ".".join(k for k, _ in path + [(key, None)] if k is not None)
            value = json.loads(t)
            if path[-1][1] is not None:
                path[-1][1][key] = value
            found.append((name, m.start(), m.end(), value, next(map_of for _, map_of in reversed(path) if map_of is not None)))
    return found


EXPRESSIONS = ("bound", "bytes", "flops", "max_index", "grid", "n")


def bends(name, value):
    """Other values for one of this path."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value + 1]
    return [f"({value}) + 1", value + "x"] if name.split(".")[-1] in EXPRESSIONS else [value + "x", "x" + value]


def same_in_effect(name, value, other, of):
    """A cta's share of columns that makes as many ctas (the only one has all of them, or the last has fewer) is the descriptor's word;
    an axis on a loop lies inside the cta, where nothing is derived from it. That kernels do as they declare is softgpu's."""
    if name == "kernels.descriptor.covers.cols.tile":
        return -(-of["n"] // value) == -(-of["n"] // other)
    return name in ("kernels.descriptor.axes.name", "kernels.descriptor.axes.tile") and of["on"] == "loop"


class Program:
    """Copies of an emitted program, one for each thread, with what need not be hashed each time left out."""

    def __init__(self, folder, model, arch):
        self.one = folder / arch
        done = subprocess.run([LAGEN, "emit", "-m", model, "--arch", arch, "--ctx", "300", "--chunk", "7", "--slots", "2", "--weights",
                               "link", "-o", self.one], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        shutil.rmtree(self.one / "runtime")
        (self.one / "runtime").mkdir()
        manifest = json.loads((self.one / "manifest.json").read_text())
        manifest["emitted"] = [f for f in manifest["emitted"] if not f["path"].startswith(("runtime/", "src/lib/", "src/plain/"))]
        for name in ("lib", "plain"):
            shutil.rmtree(self.one / "src" / name, ignore_errors=True)
        forge.seal(self.one, text=json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        self.texts = {n: (self.one / n).read_text() for n in ("memory.json", "launches.json")}
        self.local = threading.local()
        self.lock = threading.Lock()
        self.copies = 0

    def folder(self):
        if not hasattr(self.local, "folder"):
            with self.lock:
                self.copies += 1
                n = self.copies
            self.local.folder = self.one.with_name(f"{self.one.name}-{n}")
            shutil.copytree(self.one, self.local.folder)
        return self.local.folder

    def verify(self, name=None, text=None):
        """The program with `text` as its file `name`, and the digests of that."""
        folder = self.folder()
        for n, good in self.texts.items():
            (folder / n).write_text(text if n == name else good)
        forge.seal(folder, *self.texts)
        return subprocess.run([LAGEN, "verify", folder], capture_output=True, text=True)


def sample(found, middle):
    """(scalar, other value): of each path the first or one from the middle, bent in one way, the ways by turns."""
    by_path = {}
    for s in found:
        by_path.setdefault(s[0], []).append(s)
    for at, (name, list_) in enumerate(by_path.items()):
        for s in list_ if ALL else [list_[len(list_) // 2 if middle else 0]]:
            ways = bends(name, s[3])
            for other in ways if ALL else [ways[at % len(ways)]]:
                yield s, other


def complaint(program, file, scalar, other):
    name, begin, end, value, of = scalar
    text = program.texts[file]
    p = program.verify(file, text[:begin] + json.dumps(other, ensure_ascii=False) + text[end:])
    took = p.returncode == 0 and p.stderr == ""
    found = p.returncode == 3 and p.stderr.count("\n") == 1
    if took if name in FREE else found or (took and same_in_effect(name, value, other, of)):
        return ""
    return f"{file}: {name} {value!r} as {other!r}: status {p.returncode}: {p.stderr}\n"


def bend(program, file, middle, least):
    found = scalars(program.texts[file])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        bad = list(pool.map(lambda b: complaint(program, file, *b), sample(found, middle)))
    assert len(bad) >= least and not any(bad), f"{len(bad)} of {len(found)}:\n" + "".join(bad)


def windows(program):
    """Of every state, where its ring would be as long as before too."""
    bad, n = "", 0
    for s in scalars(program.texts["memory.json"]):
        if s[0] == "values.window" and s[3] > 0 and (n := n + 1) <= 2:
            bad += "".join(complaint(program, "memory.json", s, s[3] + by) for by in (1, -1, -s[3]))
    assert n >= 2 and not bad, f"{n}: {bad}"


def main():
    t = tap.Tap()
    if not LAGEN.exists():
        t.skip("bent plans", f"no {LAGEN.name} here")
        return t.done()
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "m.gguf" # the paths of laguna-tiny, in 2 of its 8 layers
        subprocess.run([LAGEN, "synth", "synth/laguna-w8", "--layers", "2", "-o", model], check=True, capture_output=True, cwd=ROOT)
        for arch in ("x86-64-v3", "sm_90a"):
            program = Program(pathlib.Path(folder), model, arch)
            p = program.verify()
            t.check(f"{arch}: as it is", p.returncode == 0, p.stderr)
            for name, test in (("every path of memory.json", lambda: bend(program, "memory.json", "sm" in arch, 35)),
                               ("every path of launches.json", lambda: bend(program, "launches.json", "sm" in arch, 70)),
                               ("windows of states", lambda: windows(program))):
                test.__name__ = f"{arch}: {name}"
                t.run(test)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
