"""A quant file whose planes leave bytes of a qblock out, hold some twice or end past it makes no program: for every type,
each plane in turn a word shorter and a byte late (test_image.c has every other way)."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

LAGEN = ROOT / os.environ.get("LAGEN_BUILD", "build") / "lagen"
PLANE = re.compile(r'\{ name = "(\w+)", src_offset = (\d+), n_bytes = (\d+), word_bytes = (\d+),')
SAYS = re.compile(r"(no plane holds byte \d+|planes \d+ and \d+ both hold byte \d+|ends past) ?.*qblock")


def bent(text):
    """Yields (what was done, the file's text) for each plane and change."""
    for m in PLANE.finditer(text):
        name, at, n, word = m[1], int(m[2]), int(m[3]), int(m[4])
        for new_at, new_n in ((at, n - word), (at + 1, n)):
            plane = f'{{ name = "{name}", src_offset = {new_at}, n_bytes = {new_n}, word_bytes = {word},'
            yield f"{name} {at}+{n} as {new_at}+{new_n}", text[:m.start()] + plane + text[m.end():]


def plan(root, model):
    return subprocess.run([root / "lagen", "plan", "-m", model, "--arch", "x86-64-v3", "--ctx", "256"], text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def check_type(t, name, root, folder):
    model = pathlib.Path(folder) / f"{name}.gguf"
    subprocess.run([LAGEN, "synth", "synth/llama-wide", "--types", name, "--layers", "1", "--header-only", "--out", model],
                   check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    file = root / "templates" / "quant" / f"{name}.lua"
    good = file.read_text()
    bad = [] if plan(root, model).returncode == 0 else ["as it is: refused"]
    tried = 0
    for what, text in bent(good):
        file.write_text(text)
        done = plan(root, model)
        # A length of 0 or one that no longer makes whole words is refused for that.
        right = SAYS.search(done.stderr) or " bytes in words of " in done.stderr
        if done.returncode != 1 or not right or f"templates/quant/{name}.lua" not in done.stderr:
            bad.append(f"{what}: status {done.returncode}, {done.stderr.strip()}")
        tried += 1
    file.write_text(good)
    t.check(f"{name}: {tried} bent planes are refused", tried > 0 and not bad, "\n".join(bad))


def main():
    t = tap.Tap()
    if not LAGEN.exists():
        t.skip("planes of quant files", f"{LAGEN.relative_to(ROOT)} is not built")
        return t.done()
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "lagen"
        root.mkdir()
        shutil.copy(LAGEN, root / "lagen")
        for name in ("templates", "models"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("*.gguf"))
        for file in sorted((ROOT / "templates" / "quant").glob("*.lua")):
            if PLANE.search(file.read_text()):
                check_type(t, file.stem, root, folder)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
