"""What lagen makes of the tiny model, as golden text: dumps and emitted files, full for one CPU row and
digests elsewhere.

    golden.py            compares; TAP
    golden.py --update   shows the difference and takes the new text over (tests/golden/update.sh)

The model is synth/llama-tiny with one layer; a golden changes only with the output of lagen itself."""
import argparse
import difflib
import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap

LAGEN = ROOT / "build" / "lagen"
FULL_ROW = "x86-64-v3"
DIGEST_ROWS = ("x86-64-v2", "x86-64-v4-vnni", "aarch64-v8.2", "sm_89", "sm_90a")
DUMPS = ("graph", "fuse", "memory")
# of the emitted folder in full: what is not a kernel, and one kernel
FULL_FILES = ("build.ninja", "src/kernels.h", "src/step.c", "src/model.c", "src/k_quant_none_f32__64.c")
OPTIONS = ("--ctx", "256", "--slots", "2", "--chunk", "32")


def lagen(*arguments, cwd):
    p = subprocess.run([LAGEN, *map(str, arguments)], cwd=cwd, capture_output=True, text=True)
    if p.returncode != 0:
        raise RuntimeError(f"lagen {arguments[0]}: {p.stderr}")
    return p.stdout


def portable(text):
    """Versions of compilers are the machine's, not lagen's; a long one stands on a line of its own."""
    return re.sub(r'("(?:cuda_)?compiler\\?": )(?:"\n *")?(\\?")[^"\\]*', r"\1\2(any)", text)


def own(name, text):
    """build.ninja without the runtime's files, which come and go."""
    if name != "build.ninja":
        return portable(text)
    return "".join(line for line in text.splitlines(True) if "runtime/" not in line)


def digests(folder):
    """One line for each file that lagen renders: not for copies of the runtime and of headers."""
    lines = []
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_dir() or name.startswith(("runtime/", "src/lib/")):
            continue
        if name in ("manifest.json", ".weights.stamp", "build.ninja", "compiler.txt", "cuda_compiler.txt"):
            continue
        data = path.read_bytes()
        if name == "src/model.c":
            data = portable(data.decode()).encode()
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
    return "".join(lines)


def make(work):
    """All goldens as {name: text}, and {row: why} for rows that cannot be emitted here."""
    lagen("synth", "synth/llama-tiny", "--layers", 1, "-o", work / "tiny.gguf", cwd=work)
    out, absent = {}, {}
    for row in (FULL_ROW,) + DIGEST_ROWS:
        folder = f"llama-tiny-{row}"
        try:
            lagen("emit", "-m", "tiny.gguf", "--arch", row, *OPTIONS, "-o", row, cwd=work)
        except RuntimeError as why:
            if "is it installed?" not in str(why):
                raise
            absent[folder] = str(why).strip()
            continue
        out[f"{folder}/digests.txt"] = digests(work / row)
        if row != FULL_ROW:
            continue
        for step in DUMPS:
            out[f"{folder}/{step}.txt"] = lagen("plan", "-m", "tiny.gguf", "--arch", row, *OPTIONS, "--dump", step,
                                                cwd=work)
        for name in FULL_FILES:
            out[f"{folder}/{name.split('/')[-1]}"] = own(name, (work / row / name).read_text())
    return out, absent


def kept():
    return {str(p.relative_to(HERE)): p.read_text() for p in sorted(HERE.rglob("llama-*/*"))}


def difference(old, new, name):
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"old/{name}", f"new/{name}", n=2)
    return "".join(lines)


def update(new, absent):
    old = kept()
    for name in sorted(old.keys() | new.keys()):
        if name.split("/")[0] in absent:
            print(f"{name} is left as it is: {absent[name.split('/')[0]]}")
            continue
        sys.stdout.write(difference(old.get(name, ""), new.get(name, ""), name))
        path = HERE / name
        if name not in new:
            path.unlink()
        elif new[name] != old.get(name):
            path.parent.mkdir(exist_ok=True)
            path.write_text(new[name])


def compare(new, absent):
    t = tap.Tap()
    old = kept()
    for name in sorted(old.keys() | new.keys()):
        if name.split("/")[0] in absent:
            t.skip(f"golden {name}", absent[name.split("/")[0]])
            continue
        diff = difference(old.get(name, ""), new.get(name, ""), name).splitlines()
        note = "\n".join(diff[:40] + ["... tests/golden/update.sh takes the new text over"])
        t.check(f"golden {name}", not diff, note)
    return t.done()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    if not LAGEN.exists():
        print("ok 1 - goldens # SKIP no build/lagen here\n1..1")
        return 0
    with tempfile.TemporaryDirectory() as work:
        new, absent = make(pathlib.Path(work))
    return update(new, absent) if arguments.update else compare(new, absent)


if __name__ == "__main__":
    sys.exit(main())
