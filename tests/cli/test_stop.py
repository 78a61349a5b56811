"""Signals at any moment of `lagen build`: children end, nothing half-written stands under its final name, the
folder holds the old program or the new one, the next build works.

Compilers are stand-ins that write their output in two halves with a pause between, so that a half would show.
Takes build/lagen, or the path given as argument."""
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap

LAGEN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "lagen").resolve()
MOMENTS = 100 if os.environ.get("LAGEN_TEST_ALL") else 20
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HALF = "half of it\n"
CC = f"""#!/bin/sh
case "$1" in
--version) echo "cc (stand-in) 1.0"; exit 0 ;;
-print-file-name=*) echo "$0"; exit 0 ;;
esac
while [ "$1" != -o ]; do shift; done
printf '{HALF[:-1]}\\n' > "$2"
sleep 0.01
printf '{HALF[:-1]}\\n' >> "$2"
"""


def environment():
    """PATH begins with a folder that has a quick `cc`."""
    tools = FOLDER / "tools"
    if not tools.exists():
        tools.mkdir()
        (tools / "cc").write_text(CC)
        (tools / "cc").chmod(0o755)
    return dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")


def lagen(*arguments, status=0):
    p = subprocess.run([LAGEN, *map(str, arguments)], cwd=FOLDER, env=environment(), capture_output=True, text=True)
    assert p.returncode == status, f"{arguments}: status {p.returncode}: {p.stderr}"
    return p


def model():
    path = FOLDER / "m.gguf"
    if not path.exists():
        lagen("synth", "synth/llama-576", "-o", path)
    return path


def arguments(out, ctx):
    return ["build", "-m", model(), "--arch", "x86-64-v3", "--ctx", ctx, "--jobs", 8, "-o", out]


def processes_of(session):
    """Ids and command lines of what still runs in a session."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
                state, _, _, sid = stat[stat.rindex(")") + 2:].split()[:4]
                if int(sid) == session and state != "Z":
                    found.append(f"{entry.name} {(entry / 'cmdline').read_text()[:100]!r}")
            except (OSError, ValueError):
                pass
    return found


def all_ended(session):
    """ninja waits for the shells that it started, and not for what those did: it has had the signal, and is ending."""
    end = time.monotonic() + 3
    while processes_of(session) and time.monotonic() < end:
        time.sleep(0.005)
    assert not processes_of(session), processes_of(session)


def stopped(out, ctx, moment, sign, group):
    """Starts a build, sends a signal at a moment; its status and stderr."""
    p = subprocess.Popen([LAGEN, *map(str, arguments(out, ctx))], cwd=FOLDER, env=environment(), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while p.poll() is None and not moment.seen(out):
        time.sleep(0.004)
    time.sleep(moment.wait)
    if p.poll() is None:
        (os.killpg if group else os.kill)(p.pid, sign)
    begin = time.monotonic()
    output, err = p.communicate(timeout=60)
    assert time.monotonic() - begin < 10, f"went on for {time.monotonic() - begin:.1f} s"
    all_ended(p.pid)
    assert p.returncode == -sign and output == "" or p.returncode == 0 and output, f"{p.returncode}: {err}"
    return p.returncode, err


def emitted(folder):
    """What the program's folder has of the files that lagen writes, with their content."""
    made = ("obj", "lib", f"{model().stem}-cli", f"{model().stem}-server", ".ninja_log", ".ninja_deps")
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*")
            if p.is_file() and p.relative_to(folder).parts[0] not in made and p.name != ".weights.stamp"}


def no_halves(folder):
    for path in folder.rglob("*"):
        assert path.name not in (".lock", ".staged", ".new") and ".tmp" not in path.name, path
        if path.suffix == ".o" or path.name.endswith(("-cli", "-server")):
            assert path.read_text() == 2 * HALF, f"{path} is half-written"


class Moment:
    """So long after a number of objects, or the first staged file, is there; or after the start."""

    def __init__(self, i, draw, seconds):
        self.kind = ("start", "staged", "objects")[i % 3]
        self.objects = draw.randrange(1, 90)
        self.wait = {"start": draw.random() * seconds, "staged": (i % 2) * draw.random() / 20, "objects": 0}[self.kind]

    def seen(self, out):
        if self.kind == "objects":
            return len(list(out.glob("obj/**/*.o"))) >= self.objects
        return self.kind == "start" or (out / ".staged").exists()

    def __str__(self):
        return f"{self.wait:.3f} s after {self.objects if self.kind == 'objects' else ''} {self.kind}"


def a_build_may_be_stopped_at_any_moment():
    """Every other time the folder holds a program already, of another context."""
    begin = time.monotonic()
    lagen(*arguments("new", 512))
    seconds = time.monotonic() - begin
    lagen(*arguments("old", 256))
    linked = time.time()
    old, new = emitted(FOLDER / "old"), emitted(FOLDER / "new")
    assert old.keys() != new.keys()  # names of kernels hold the context
    seed = int(time.time())
    seen = {"nothing": 0, "old": 0, "new": 0, "ended": 0}
    out = FOLDER / "out"
    draw = random.Random(seed)
    for i in range(MOMENTS):
        moment = Moment(i, draw, seconds)
        name = f"seed {seed}, {i}: {moment}"
        shutil.rmtree(out, ignore_errors=True)
        if i % 2 == 1:
            shutil.copytree(FOLDER / "old", out, ignore=shutil.ignore_patterns("*.o"))
        try:
            status, _ = stopped(out, 512, moment, draw.choice(SIGNALS), i % 5 == 0)
            there = emitted(out) if out.exists() else {}
            seen["ended" if status == 0 else "nothing" if not there else "old" if there == old else "new"] += 1
            assert there == new or (there == old if i % 2 == 1 else not there and not out.exists()), sorted(there)[:9]
            if out.exists():
                no_halves(out)
                lagen("verify", out)
            if there == new:  # what was linked from the old files is not left beside them
                assert all(p.stat().st_mtime > linked for p in (*out.glob("*-cli"), *out.glob("*-server")))
            if i % 4 == 3:
                lagen(*arguments(out, 512))
                assert emitted(out) == new
                no_halves(out)
        except AssertionError as e:
            raise AssertionError(f"{name}: {e}") from e
    assert seen["new"] and seen["nothing"] + seen["old"], seen


def a_slow_compiler_does_not_hold_up():
    """The signal goes to lagen alone; what it runs is told, whatever that is doing."""
    hang = FOLDER / "hang"
    hang.mkdir()
    (hang / "cc").write_text(CC.replace("sleep 0.01", "exec sleep 1000"))
    (hang / "ask").mkdir()
    (hang / "ask" / "cc").write_text("#!/bin/sh\nexec sleep 1000\n")
    for folder in (hang, hang / "ask"):
        (folder / "cc").chmod(0o755)
        env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}")
        p = subprocess.Popen([LAGEN, *map(str, arguments("slow", 512))], cwd=FOLDER, env=env, start_new_session=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        end = time.monotonic() + 30
        while not any("sleep" in x for x in processes_of(p.pid)) and time.monotonic() < end:
            time.sleep(0.01)
        p.terminate()
        out, err = p.communicate(timeout=20)
        assert p.returncode == -signal.SIGTERM and out == "" and err.endswith(": stopped\n"), f"{p.returncode}: {err}"
        all_ended(p.pid)
    assert (FOLDER / "slow").exists()
    no_halves(FOLDER / "slow")
    lagen(*arguments("slow", 512))


def a_shell_sees_128_and_the_number():
    for sign in SIGNALS:
        script = f"'{LAGEN}' synth synth/llama-576 --types f32 -o s.gguf; echo $?"
        p = subprocess.Popen(["sh", "-c", script], cwd=FOLDER, start_new_session=True, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not list(FOLDER.glob("s.gguf.tmp*")):
            assert p.poll() is None
            time.sleep(0.002)
        os.kill(int(next(x for x in processes_of(p.pid) if "synth\\x00" in x).split()[0]), sign)
        out, err = p.communicate(timeout=20)
        assert out == f"{128 + sign}\n" and "lagen: stopped; s.gguf was not written\n" in err, out + err
        assert not list(FOLDER.glob("s.gguf*"))


def an_ignored_signal_stays_ignored():
    """As nohup leaves it."""
    p = subprocess.Popen(["sh", "-c", f"trap '' HUP; exec '{LAGEN}' synth synth/llama-576 -o h.gguf"], cwd=FOLDER,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.05)
    p.send_signal(signal.SIGHUP)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0 and out.startswith("h.gguf: "), err


# ---- one writer


def a_folder_has_one_writer():
    """While one build runs, others into its folder are refused and name it; then they work."""
    waits = FOLDER / "waits"
    waits.mkdir()
    (waits / "cc").write_text(CC.replace("sleep 0.01", f"while [ ! -e '{waits}/go' ]; do sleep 0.02; done"))
    (waits / "cc").chmod(0o755)
    p = subprocess.Popen([LAGEN, *map(str, arguments("one", 256))], cwd=FOLDER, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, env=dict(os.environ, PATH=f"{waits}:{os.environ['PATH']}"))
    end = time.monotonic() + 20
    while not (FOLDER / "one" / "obj").exists() and time.monotonic() < end:
        time.sleep(0.005)
    emit = ["emit", *(x for x in arguments("one", 512)[1:] if x not in ("--jobs", 8))]
    for command in (arguments("one", 512), emit, ["verify", "one"]):
        err = lagen(*command, status=1).stderr
        assert err.endswith(f"lagen: one: process {p.pid} is writing into this folder; wait until it has ended\n"), err
    (waits / "go").touch()
    out, err = p.communicate(timeout=60)
    assert p.returncode == 0, err
    assert json.loads((FOLDER / "one" / "manifest.json").read_text())["limits"]["ctx"] == 256
    lagen("verify", "one")
    lagen(*arguments("one", 512))


def many_at_once_leave_one_program():
    """Ten builds started together: at least one works, the others are refused, the folder is one program."""
    shutil.rmtree(FOLDER / "many", ignore_errors=True)
    ps = [subprocess.Popen([LAGEN, *map(str, arguments("many", c))], cwd=FOLDER, env=environment(), text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE) for c in 5 * (256, 512)]
    done = 0
    for p in ps:
        out, err = p.communicate(timeout=120)
        done += p.returncode == 0
        assert p.returncode == 0 or p.returncode == 1 and re.search(r"process \d+ is writing into this", err), err
    assert done > 0
    no_halves(FOLDER / "many")
    lagen("verify", "many")


def killed_builds_can_be_followed():
    """SIGKILL leaves what was staged; the next build takes it away and works."""
    for after in (0.05, 0.3):
        p = subprocess.Popen([LAGEN, *map(str, arguments("killed", 512))], cwd=FOLDER, env=environment(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(after)
        p.kill()
        p.wait()
        for left in processes_of(p.pid):
            with contextlib.suppress(ProcessLookupError):  # ended by itself meanwhile
                os.kill(int(left.split()[0]), signal.SIGKILL)
        lagen(*arguments("killed", 512))
        no_halves(FOLDER / "killed")
        lagen("verify", "killed")
        shutil.rmtree(FOLDER / "killed")


def main():
    t = tap.Tap()
    if not LAGEN.exists() or not shutil.which("ninja"):
        t.skip("signals", f"no {LAGEN.name} or no ninja here")
        return t.done()
    for test in (a_build_may_be_stopped_at_any_moment, a_slow_compiler_does_not_hold_up, a_shell_sees_128_and_the_number,
                 an_ignored_signal_stays_ignored, a_folder_has_one_writer, many_at_once_leave_one_program,
                 killed_builds_can_be_followed):
        t.run(test)
    WORK.cleanup()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
