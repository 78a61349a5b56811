"""Standard output that nobody reads, that is full, that is closed: every command of lagen and of an emitted program ends
at the first write that fails, with 1; without a word where the reader has gone. And descriptors 0 to 2 that are not there.

Takes the build folder as argument (default: build)."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
LAGEN = BUILD / "lagen"
PROGRAM = BUILD / "tests" / "runtime" / "fake_cli"
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
IDS = ",".join("7" for _ in range(200))


def commands():
    """Each with what it reads from standard input."""
    yield "lagen --help", [LAGEN, "--help"], b""
    yield "lagen targets", [LAGEN, "targets", "--json"], b""
    for name in ("synth", "inspect", "targets", "plan", "emit", "build", "verify"):
        yield f"lagen {name} --help", [LAGEN, name, "--help"], b""
    yield "lagen inspect", [LAGEN, "inspect", "m.gguf"], b""
    yield "lagen plan", [LAGEN, "plan", "-m", "m.gguf", "--arch", "x86-64-v3", "--dump", "prove"], b""
    yield "lagen emit", [LAGEN, "emit", "-m", "m.gguf", "--arch", "x86-64-v3", "-o", "p"], b""
    yield "lagen verify", [LAGEN, "verify", "p"], b""
    yield "lagen synth", [LAGEN, "synth", "synth/llama-tiny", "-o", "s.gguf"], b""
    yield "--help", [PROGRAM, "--help"], b""
    yield "run --help", [PROGRAM, "run", "--help"], b""
    yield "run", [PROGRAM, "run", "-p", "forever", "--greedy"], b""
    yield "run of one token", [PROGRAM, "run", "-p", "hi", "--greedy", "-n", "1"], b""
    yield "chat", [PROGRAM, "chat", "--greedy"], b"forever\n" * 50
    yield "tokenize", [PROGRAM, "tokenize", "-f", "-"], b"many words " * 20000
    yield "tokenize --ids", [PROGRAM, "tokenize", "--ids", "-f", "-"], b"many words " * 20000
    yield "tokenize --json", [PROGRAM, "tokenize", "--json", "-p", "x"], b""
    yield "logits", [PROGRAM, "logits", "--ids", IDS, "--all"], b""
    yield "eval", [PROGRAM, "eval", "-", "--ctx", "64"], b"some text " * 1000
    yield "eval --json", [PROGRAM, "eval", "-", "--ctx", "64", "--json"], b"some text " * 1000
    yield "bench", [PROGRAM, "bench", "-r", "2"], b""
    yield "bench --json", [PROGRAM, "bench", "-r", "2", "--json"], b""
    yield "info", [PROGRAM, "info"], b""
    yield "info --json", [PROGRAM, "info", "--json"], b""
    yield "selftest", [PROGRAM, "selftest"], b""


def run(command, stdin, stdout, ignored=False):
    """SIGPIPE as a shell leaves it, or ignored as some callers do."""
    def prepare():
        if ignored:
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    p = subprocess.Popen(command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, preexec_fn=prepare)
    try:
        _, err = p.communicate(stdin, timeout=60)
    except BrokenPipeError:
        err = p.stderr.read()
        p.wait(60)
    return p.returncode, err.decode()


def words(err):
    """Lines that are neither progress nor what is told of a choice."""
    return [x for x in err.splitlines() if not x.endswith(" %") and " launches of " not in x and " by choice: " not in x]


def gone():
    """The writing end of a pipe that nobody reads."""
    r, w = os.pipe()
    os.close(r)
    return w


def nobody_reads():
    for name, command, stdin in commands():
        for ignored in (False, True):
            end = gone()
            status, err = run(command, stdin, end, ignored)
            os.close(end)
            assert status == 1 and words(err) == [], f"{name}: status {status}: {err}"


def the_disk_is_full():
    for name, command, stdin in commands():
        with open("/dev/full", "wb") as full:
            status, err = run(command, stdin, full)
        lines = words(err)
        assert status == 1 and len(lines) == 1, f"{name}: status {status}: {err}"
        assert "standard output: cannot be written: " in lines[0] and ("No space left" in lines[0] or "not all of it" in lines[0]), f"{name}: {err}"


def standard_output_is_closed():
    for name, command, stdin in commands():
        p = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *map(str, command)], cwd=FOLDER, input=stdin, capture_output=True)
        lines = words(p.stderr.decode())
        assert p.returncode == 1 and len(lines) == 1 and "standard output: " in lines[0], f"{name}: {p.returncode} {p.stderr}"


def nothing_is_open():
    """What is written goes where it should, and not into the first file that was opened."""
    def content(name):
        return (FOLDER / name).read_bytes()

    synth = [str(LAGEN), "synth", "synth/llama-tiny", "-o"]
    subprocess.run([*synth, "one.gguf"], cwd=FOLDER, check=True, capture_output=True)
    p = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *synth, "two.gguf"], cwd=FOLDER)
    assert p.returncode == 1 and content("one.gguf") == content("two.gguf")
    raw = [str(PROGRAM), "logits", "--ids", IDS, "--all", "--raw"]
    subprocess.run([*raw, "one.raw"], cwd=FOLDER, check=True, capture_output=True)
    p = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *raw, "two.raw"], cwd=FOLDER)
    assert p.returncode == 0 and content("one.raw") == content("two.raw")
    p = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", str(PROGRAM), "run", "-f", "-"], cwd=FOLDER, capture_output=True)
    assert p.returncode == 1 and b"standard input: cannot be read: Bad file descriptor" in p.stderr, p.stderr


def long_work_ends_with_its_reader():
    """bench and eval print at their end: they look whether anybody is there."""
    text = b"some text " * 10000
    for name, command, stdin in (("bench", ["bench", "-t", "1", "-r", "1000", "-p", "0", "-n", "256,255", "--json"], b""),
                                 ("eval", ["eval", "-", "-t", "1", "--ctx", "64", "--json"], text)):
        begin = time.monotonic()
        status, err = run([PROGRAM, *command], stdin, subprocess.DEVNULL)
        whole = time.monotonic() - begin
        assert status == 0, f"{name}: {err}"
        end = gone()
        begin = time.monotonic()
        status, err = run([PROGRAM, *command], stdin, end)
        os.close(end)
        assert status == 1 and err == "", f"{name}: status {status}: {err}"
        assert time.monotonic() - begin < 0.5 * whole, f"{name}: {time.monotonic() - begin:.2f} s, {whole:.2f} s with a reader"


def logits_go_to_pipes_and_devices():
    raw = [str(PROGRAM), "logits", "--ids", IDS, "--all", "--raw"]
    whole = 200 * 259 * 4
    p = subprocess.run([*raw, "/dev/stdout"], cwd=FOLDER, capture_output=True)
    assert p.returncode == 0 and len(p.stdout) == whole, p.stderr
    with open(FOLDER / "out.raw", "wb") as f:
        assert subprocess.run([*raw, "/dev/stdout"], cwd=FOLDER, stdout=f).returncode == 0
    assert (FOLDER / "out.raw").stat().st_size == whole and pathlib.Path("/dev/stdout").is_symlink()
    p = subprocess.run([*raw, "/dev/full"], cwd=FOLDER, capture_output=True, text=True)
    assert p.returncode == 1 and p.stderr == "fake_cli: /dev/full: cannot be written: No space left on device\n", p.stderr
    assert pathlib.Path("/dev/full").is_char_device()
    (FOLDER / "link").symlink_to("target")
    p = subprocess.run([*raw, "link"], cwd=FOLDER, capture_output=True, text=True)
    assert p.returncode == 1 and "link: a symbolic link that cannot be followed" in p.stderr, p.stderr
    (FOLDER / "target").write_bytes(b"old")
    assert subprocess.run([*raw, "link"], cwd=FOLDER).returncode == 0
    assert (FOLDER / "link").is_symlink() and (FOLDER / "target").stat().st_size == whole


def logits_may_be_stopped():
    """At any moment: the file is whole, or the old one is there."""
    folder = FOLDER / "stopped"
    folder.mkdir()
    ids = ",".join("7" for _ in range(256))
    ended = 0
    for i in range(30):
        (folder / "raw").write_bytes(b"old")
        sign = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)[i % 3]
        p = subprocess.Popen([PROGRAM, "logits", "--ids", ids, "--all", "--chunk", "1", "--raw", folder / "raw"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.0007 * i)
        p.send_signal(sign)
        _, err = p.communicate(timeout=20)
        size = (folder / "raw").stat().st_size
        assert p.returncode in (0, -sign) and os.listdir(folder) == ["raw"], f"{p.returncode} {os.listdir(folder)} {err}"
        assert size == 256 * 259 * 4 or size == 3 and p.returncode != 0, f"{size} bytes, status {p.returncode}"
        ended += p.returncode == 0
    assert ended < 30


def main():
    t = tap.Tap()
    missing = [p.name for p in (LAGEN, PROGRAM) if not p.exists()]
    if missing:
        t.skip("standard streams", f"no {missing[0]} here")
        return t.done()
    subprocess.run([LAGEN, "synth", "synth/llama-tiny", "-o", "m.gguf"], cwd=FOLDER, check=True, capture_output=True)
    subprocess.run([LAGEN, "emit", "-m", "m.gguf", "--arch", "x86-64-v3", "-o", "p"], cwd=FOLDER, check=True, capture_output=True)
    for test in (nobody_reads, the_disk_is_full, standard_output_is_closed, nothing_is_open, long_work_ends_with_its_reader,
                 logits_go_to_pipes_and_devices, logits_may_be_stopped):
        t.run(test)
    WORK.cleanup()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
