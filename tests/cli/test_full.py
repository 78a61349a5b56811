"""A full disk at every write of `lagen` and of an emitted program: exit status 1, one line that names the file and
the reason, nothing left under the final name, an older program untouched.

Three ways to fill a disk: tests/cli/fail.c fails the n-th call, for every n; RLIMIT_FSIZE; a small tmpfs where one can
be mounted. Takes the build folder as argument (default: build)."""
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
LAGEN = BUILD / "lagen"
PROGRAM = BUILD / "tests" / "runtime" / "fake_cli"
FAIL = BUILD / "tests" / "cli" / "libfail.so"
ALL = bool(os.environ.get("LAGEN_TEST_ALL"))
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
REASONS = ("No space left on device", "File too large")


def run(command, size=None, fail_at=None):
    """`size` limits each file's bytes; fail_at counts calls."""
    env = dict(os.environ, PATH=f"{FOLDER / 'tools'}:{os.environ['PATH']}")
    if fail_at is not None:
        env.update(LD_PRELOAD=str(FAIL), FAIL_AT=str(fail_at), FAIL_LOG=str(FOLDER / "log"))
        (FOLDER / "log").unlink(missing_ok=True)
    limit = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))) if size is not None else None
    return subprocess.run(list(map(str, command)), cwd=FOLDER, env=env, preexec_fn=limit, capture_output=True, text=True)


def failed_call():
    log = FOLDER / "log"
    return log.read_text().split() if log.exists() else []


def puts_in_place(call):
    """One of the renames with which the folder changes."""
    return call[0] == "rename" and ".staged" not in call[1]


def refusal(p, what):
    """What is wrong with the way in which a command failed."""
    lines = [x for x in p.stderr.splitlines() if not x.endswith(" %")]
    ok = p.returncode == 1 and p.stdout == "" and len(lines) == 1 and any(r in lines[0] for r in REASONS)
    assert ok and len(lines[0].split(": ")) >= 4, f"{what}: status {p.returncode}: {p.stderr}{p.stdout}"
    told = lines[0].split(": ")[1]  # what was asked for, not where it waits meanwhile
    assert not any(x in told for x in (".tmp", ".staged", ".lock")) and ": cannot " in lines[0], f"{what}: {lines[0]}"


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")} \
        if folder.exists() else None


def model():
    path = FOLDER / "m.gguf"
    if not path.exists():
        assert run([LAGEN, "synth", "synth/llama-tiny", "-o", path]).returncode == 0
    return path


def emit(out, ctx=512):
    return [LAGEN, "emit", "-m", model(), "--arch", "x86-64-v3", "--ctx", ctx, "-o", out]


def each_failing_call(command, folder, calls, after):
    """Runs with the n-th call failing until one run does not fail; `after(p, what)` looks at each failure."""
    n, kinds = 1, set()
    while True:
        p = run(command, fail_at=n)
        call = failed_call()
        if p.returncode == 0 and not call:
            return n - 1, kinds
        kinds.add(call[0])
        after(p, f"call {n}, {' '.join(call)}")
        n = calls(n)
        assert n < 5000


def every(n):
    return n + 1


def some(n):
    """Each call of the beginning, then one in many: a whole emission has hundreds."""
    return n + (1 if ALL or n < 10 else 17)


def synth_at_every_call():
    def after(p, what):
        refusal(p, what)
        assert content(FOLDER / "s") == {"s.gguf": b"old"}, f"{what}: {content(FOLDER / 's').keys()}"

    (FOLDER / "s").mkdir()
    for more in ([], ["--header-only"]):
        (FOLDER / "s" / "s.gguf").write_bytes(b"old")
        n, kinds = each_failing_call([LAGEN, "synth", "synth/llama-tiny", *more, "-o", "s/s.gguf"], FOLDER, every, after)
        assert n >= 4 and {"open", "write", "fsync", "rename"} <= kinds, (n, kinds)


def logits_at_every_call():
    def after(p, what):
        refusal(p, what)
        assert content(FOLDER / "l") == {}, what

    (FOLDER / "l").mkdir()
    n, _ = each_failing_call([PROGRAM, "logits", "-p", "x" * 200, "--all", "--raw", "l/raw"], FOLDER, every, after)
    assert n >= 5 and (FOLDER / "l" / "raw").stat().st_size == 200 * 4 * 259
    (FOLDER / "l" / "raw").unlink()
    n, _ = each_failing_call([PROGRAM, "logits", "-p", "x", "--raw", "/dev/null", "--trace", "l/trace"], FOLDER, every, after)
    assert n >= 4 and (FOLDER / "l" / "trace").exists()


def a_new_program_at_many_calls():
    """Nothing is left, unless the very renames fail: then `verify` says so, and the next emission repairs it."""
    def after(p, what):
        refusal(p, what)
        if not puts_in_place(failed_call()):
            assert not (FOLDER / "new").exists(), f"{what}: {sorted(content(FOLDER / 'new'))}"
            return
        assert run([LAGEN, "verify", "new/deep"]).returncode == 3, what
        assert run(emit("new/deep")).returncode == 0, what
        assert content(FOLDER / "new" / "deep") == want, what
        shutil.rmtree(FOLDER / "new")

    assert run(emit("want")).returncode == 0
    want = content(FOLDER / "want")
    n, kinds = each_failing_call(emit("new/deep"), FOLDER, some, after)
    assert n > 300 and kinds >= {"mkdir", "open", "write", "rename"}, (n, kinds)


def an_old_program_at_many_calls():
    def after(p, what):
        refusal(p, what)
        if puts_in_place(failed_call()):
            assert run(emit("old")).returncode == 0, what
            return
        assert content(FOLDER / "old") == old, what

    assert run(emit("old")).returncode == 0
    old = content(FOLDER / "old")
    n, _ = each_failing_call(emit("old", ctx=256), FOLDER, lambda n: n + (1 if ALL else 3), after)
    assert n > 20 and content(FOLDER / "old") != old


def files_that_may_not_grow():
    """ulimit -f: the signal that says so is no reason to die."""
    assert run(emit("limited")).returncode == 0
    old = content(FOLDER / "limited")
    largest = max(len(x) for x in old.values() if x is not None)
    for size in (0, 1, 4095, 4096, largest // 2, largest - 1):
        refusal(run(emit("fresh"), size=size), f"emit, {size} bytes")
        assert not (FOLDER / "fresh").exists(), size
        refusal(run(emit("limited", ctx=256), size=min(size, 5000)), f"emit again, {size} bytes")
        assert content(FOLDER / "limited") == old, size
        refusal(run([LAGEN, "synth", "synth/llama-tiny", "-o", "x.gguf"], size=min(size, 100000)), f"synth, {size} bytes")
        refusal(run([PROGRAM, "logits", "-p", "x" * 200, "--all", "--raw", "x.raw"], size=size), f"logits, {size} bytes")
        assert not list(FOLDER.glob("x.*")), size
    assert run(emit("fresh"), size=largest).returncode == 0


# What gcc does on a full disk, in a hundredth of the time.
CC = """#!/bin/sh
[ "$1" != --version ] || { echo "cc (stand-in) 1.0"; exit 0; }
while [ "$1" != -o ]; do shift; done
head -c 9999 /dev/zero > "$2" || { rm -f "$2"; exit 1; }
"""
MOUNT = """mount -t tmpfs -o size=$2 tmpfs "$1" || exit 77
shift 2
mkdir out || exit 78
"$@"
status=$?
find out -name .staged -o -name .lock -o -name '*.tmp*' -o -name '*.new' | sed 's/^/left: /'
find out -name '*.o' | while read -r f; do
    [ "$(stat -c %s "$f")" = 9999 ] || readelf -SW "$f" > /dev/null 2>&1 || echo "half: $f"
done
[ ! -e out/p/manifest.json ] || "$0" verify out/p > /dev/null || echo "damaged"
ls out | sed 's/^/there: /'
exit $status
"""


def a_small_file_system():
    """Sizes at which the image, the sources, the objects do not fit."""
    at = FOLDER / "tmpfs"
    at.mkdir()
    (FOLDER / "tools").mkdir()
    if not ALL:
        (FOLDER / "tools" / "cc").write_text(CC)
        (FOLDER / "tools" / "cc").chmod(0o755)
    seen = set()
    assert run(emit("whole", ctx=256)).returncode == 0
    sources = sum(-(-len(x) // 4096) * 4 for x in content(FOLDER / "whole").values() if x is not None)
    for kib in (16, 300, sources - 100, sources + 200):
        command = ["unshare", "-rm", "sh", "-c", f"cd '{at}'; {MOUNT.replace('mkdir out', f'cd {at}; mkdir out', 1)}", str(LAGEN),
                   at, f"{kib}k", LAGEN, "build", "-m", model(), "--arch", "x86-64-v3", "--ctx", "256", "-o", "out/p"]
        p = run(command)
        if p.returncode == 77 or "unshare" in p.stderr:
            raise tap.Skip("no tmpfs can be mounted here")
        assert p.returncode == 1 and any(r in p.stderr for r in REASONS), f"{kib} KiB: {p.returncode} {p.stderr}"
        assert p.stdout in ("", "there: p\n"), f"{kib} KiB: {p.stdout}"
        assert p.stderr.count("lagen: ") == 1, p.stderr
        seen.add(p.stdout)
    assert len(seen) == 2, seen


def main():
    t = tap.Tap()
    missing = [p.name for p in (LAGEN, PROGRAM, FAIL) if not p.exists()]
    if missing or "san" in BUILD.parts:
        t.skip("full disks", f"no {missing[0]} here" if missing else "a sanitized program takes no LD_PRELOAD")
        return t.done()
    for test in (synth_at_every_call, logits_at_every_call, a_new_program_at_many_calls, an_old_program_at_many_calls,
                 files_that_may_not_grow, a_small_file_system):
        t.run(test)
    WORK.cleanup()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
