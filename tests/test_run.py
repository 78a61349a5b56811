"""tests/run.py over folders of small tests: counts, skips, failures and what ends without a word, tests that take too long, order,
tests alone, signals. Takes seconds."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

WORK = tempfile.TemporaryDirectory()
# Says when it began and ended, so that tests which ran together are seen.
SLOW = """import time
begin = time.monotonic()
time.sleep(0.3)
open(__file__ + ".times", "w").write(f"{begin} {time.monotonic()}")
print("ok 1 - slow")
"""
# Notes its own id and that of a child, and waits for both to be ended.
WAITS = """import os, subprocess, sys
child = subprocess.Popen(["sleep", "60"])
with open(__file__ + ".part", "w") as f:
    f.write(f"{os.getpid()} {child.pid}")
os.rename(__file__ + ".part", __file__ + ".ids")
child.wait()
"""
TESTS = {
    "test_crash.py": "import os\nprint('ok 1 - before', flush=True)\nos.abort()",
    "test_fail.py": "print('ok 1 - a\\nnot ok 2 - b\\n# why b\\nok 3 - c')\nraise SystemExit(1)",
    "test_mute.py": "",
    "test_pass.py": "print('ok 1 - a\\nok 2 - b\\n1..2')",
    "test_shell.sh": "echo 'ok 1 - a'; exit 3",
    "test_skip.py": "print('ok 1 - a # SKIP no moon here\\nok 2 - b')",
    "test_cmocka.py": "print('# SKIP c: no sun here\\nok 1 # SKIP c')",
}


def folder(name, tests, schedule=""):
    """A project that has run.py and these tests."""
    root = pathlib.Path(WORK.name) / name
    (root / "tests").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "run.py", root / "tests")
    for test, text in tests.items():
        (root / "tests" / test).write_text(text)
    (root / "tests" / "schedule.txt").write_text(schedule)
    return root


def run(root, *arguments, status=0):
    p = subprocess.run([sys.executable, root / "tests" / "run.py", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert p.returncode == status, (p.returncode, p.stdout, p.stderr)
    return p.stdout + p.stderr


def without_times(text):
    return re.sub(r"\(?[\d.]+ s, cpu [\d.]+ s\)?", "TIME", text)


def what_each_says():
    root = folder("says", TESTS)
    want = """ok   tests/test_cmocka.py: 0 passed, 1 skipped TIME
FAIL tests/test_crash.py: 1 passed TIME
     | ok 1 - before
FAIL tests/test_fail.py: 2 passed TIME
     | not ok 2 - b
     | # why b
FAIL tests/test_mute.py: 0 passed TIME

ok   tests/test_pass.py: 2 passed TIME
FAIL tests/test_shell.sh: 1 passed TIME
     | ok 1 - a
ok   tests/test_skip.py: 1 passed, 1 skipped TIME
skipped tests/test_cmocka.py: c: no sun here
skipped tests/test_skip.py: a: no moon here
TIME
7 passed, 4 failed, 2 skipped
"""
    for jobs in (1, 2, 7):
        got = without_times(run(root, "--python", "--jobs", jobs, status=1))
        assert got == want, got


def programs_of_every_build():
    root = folder("builds", {"test_pass.py": TESTS["test_pass.py"]})
    for build in ("build", "build/san"):
        path = root / build / "tests" / "gen" / "test_thing"
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\necho 'ok 1 - thing'\n")
        path.chmod(0o755)
        (path.parent / "test_thing.o").write_text("")
    text = run(root, root / "build", root / "build/san")
    assert "build/tests/gen/test_thing: 1 passed" in text and "build/san/tests/gen/test_thing: 1 passed" in text, text
    assert text.endswith("\n2 passed, 0 failed, 0 skipped\n"), text
    assert run(root, root / "build", "--python").endswith("\n3 passed, 0 failed, 0 skipped\n")


def nothing_to_run_is_a_failure():
    assert run(folder("nothing", {}), "--python", status=1).endswith("0 passed, 0 failed, 0 skipped\n")


def what_takes_too_long_is_ended():
    root = folder("limit", {"test_long.py": "print('ok 1 - a', flush=True)\n" + WAITS, "test_pass.py": TESTS["test_pass.py"]})
    text = run(root, "--python", "--limit", 1, status=1)
    assert "FAIL tests/test_long.py: 1 passed" in text and "ran longer than 1 s" in text, text
    assert text.endswith("3 passed, 1 failed, 0 skipped\n"), text
    assert ended(root / "tests" / "test_long.py.ids")


def the_long_form_is_asked_for():
    text = "import os\nprint('ok 1 - ' + os.environ.get('LAGEN_TEST_ALL', '-'))\nraise SystemExit(1)"
    root = folder("all", {"test_a.py": text})
    assert "| ok 1 - -" in run(root, "--python", status=1)
    assert "| ok 1 - 1" in run(root, "--python", "--all", status=1)


def spans(root):
    """{name: (begin, end)} of what SLOW has noted."""
    return {p.name.split(".")[0]: tuple(map(float, p.read_text().split())) for p in (root / "tests").glob("*.times")}


def apart(a, b):
    return a[1] <= b[0] or b[1] <= a[0]


def long_ones_begin_first_and_some_are_alone():
    tests = {f"test_{n}.py": SLOW for n in "abcd"}
    schedule = "# a comment\n\ntests/test_b.py 9 alone: it measures\ntests/test_c.py 20\ntests/test_a.py 3 alone: a port\n"
    root = folder("alone", tests, schedule)
    text = run(root, "--python", "--jobs", 4)
    assert re.findall(r"test_(\w)", text) == ["c", "d", "b", "a"], text
    at = spans(root)
    assert not apart(at["test_c"], at["test_d"]), at
    for name in ("test_a", "test_b"):
        assert all(apart(at[name], at[other]) for other in at if other != name), at
    root = folder("one by one", tests, schedule)
    run(root, "--python", "--jobs", 1)
    at = spans(root)
    assert all(apart(at[a], at[b]) for a in at for b in at if a < b), at


def a_schedule_says_what_is_there():
    for number, line in enumerate(("tests/test_gone.py 3", "tests/test_a.py", "tests/test_a.py 3 alone:", "tests/test_a.py 3\ntests/test_a.py 3")):
        text = run(folder(f"schedule{number}", {"test_a.py": SLOW}, line), "--python", status=1)
        assert "schedule.txt:" in text and "ok " not in text, text


def ended(path):
    """Whether the processes whose ids the file holds have ended, or do so soon."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        states = []
        for pid in path.read_text().split():
            try:
                states.append(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass
        if all(s == "Z" for s in states):
            return True
        time.sleep(0.02)
    return False


def signals_end_the_tests_too():
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WAITS.replace("child.wait()", "while True: child.wait(); signal.pause()")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        root = folder(f"signal{number}", {"test_a.py": WAITS, "test_b.py": WAITS if number != signal.SIGINT else deaf, "test_c.py": WAITS})
        p = subprocess.Popen([sys.executable, root / "tests" / "run.py", "--python", "--jobs", "2"], stdout=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        ids = [root / "tests" / f"test_{n}.py.ids" for n in "ab"]
        end = time.monotonic() + 20
        while not all(i.exists() for i in ids) and time.monotonic() < end:
            time.sleep(0.02)
        p.send_signal(number)
        text, _ = p.communicate(timeout=30)
        assert p.returncode == -number and f"stopped by signal {number}" in text, (p.returncode, text)
        assert all(ended(i) for i in ids) and not (root / "tests" / "test_c.py.ids").exists()


def tests_find_signals_as_usual():
    text = "import signal\nfor s in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):\n"
    text += "    print('not ok' if signal.getsignal(s) is signal.SIG_IGN else 'ok', '1 -', s.name)"
    root = folder("ignored", {"test_a.py": text})
    p = subprocess.run(["sh", "-c", "trap '' INT HUP TERM QUIT; exec \"$0\" \"$@\"", sys.executable, root / "tests" / "run.py", "--python"],
                       capture_output=True, text=True)
    assert p.returncode == 0 and "4 passed, 0 failed" in p.stdout, p.stdout


def what_a_test_leaves_running_is_ended():
    left = "import subprocess, sys\np = subprocess.Popen(['sleep', '60'])\nopen(__file__ + '.ids', 'w').write(str(p.pid))\nprint('ok 1 - a')"
    root = folder("left", {"test_a.py": left})
    begin = time.monotonic()
    run(root, "--python")
    assert time.monotonic() - begin < 30 and ended(root / "tests" / "test_a.py.ids")


tap.main([
    what_each_says, programs_of_every_build, nothing_to_run_is_a_failure, what_takes_too_long_is_ended, the_long_form_is_asked_for,
    long_ones_begin_first_and_some_are_alone, a_schedule_says_what_is_there, signals_end_the_tests_too, tests_find_signals_as_usual,
    what_a_test_leaves_running_is_ended])
