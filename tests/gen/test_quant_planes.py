"""A quant file whose planes leave bytes of a qblock out, hold some twice or end past it makes no program: for every type,
each plane in turn a word shorter and longer, a byte early and late, or called like another (test_image.c has every other
way). What no check can see is how a decode reads words and the bits in them: the dequantisation vectors hold that."""
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
HOLDS = r"plane '\w+', bytes \d+ to \d+,"
SAYS = re.compile(rf"(no plane holds bytes \d+ to \d+|{HOLDS} and {HOLDS} both hold byte \d+|{HOLDS} ends past) ?.*qblock")


def bent(text):
    """Yields (what was done, the file's text) for each plane and change."""
    for m in PLANE.finditer(text):
        name, at, n, word = m[1], int(m[2]), int(m[3]), int(m[4])
        for new_at, new_n in ((at, n - word), (at, n + word), (at + 1, n), (at - 1, n)):
            if new_at < 0:
                continue
            plane = f'{{ name = "{name}", src_offset = {new_at}, n_bytes = {new_n}, word_bytes = {word},'
            yield f"{name} {at}+{n} as {new_at}+{new_n}", text[:m.start()] + plane + text[m.end():]


def renamed(text):
    """The second plane with the first one's name; None where there is one plane."""
    names = [m[1] for m in PLANE.finditer(text)]
    return text.replace(f'name = "{names[1]}"', f'name = "{names[0]}"') if len(names) > 1 else None


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
    if renamed(good):
        file.write_text(renamed(good))
        done = plan(root, model)
        if done.returncode != 1 or "is the name of plane 0 too" not in done.stderr:
            bad.append(f"two planes of one name: status {done.returncode}, {done.stderr.strip()}")
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
