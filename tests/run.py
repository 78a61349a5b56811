#!/usr/bin/env python3
"""Runs test programs and counts: every cmocka program under BUILD/tests and, with --python, every tests/**/test_*.py and .sh.

Each test prints TAP (ok / not ok / # SKIP). A program that dies, or prints no result, counts as one failure. Skips are named
with their reason. The closing line is `N passed, N failed, N skipped`, for all builds together.

Tests run side by side (--jobs). tests/schedule.txt names the long ones, which begin first, and those that must be alone,
which run one by one when the others have ended. A test is told of when all that began before it have been, so that order and
text do not depend on who was quicker. A signal ends the tests that run, and then this program.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEDULE = os.path.join(ROOT, "tests", "schedule.txt")
LINE = re.compile(r"^(ok|not ok)\s+\d*\s*-?\s*(.*)$")
SIGNALS = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)
GRACE = 3  # seconds for a test to end when it is told to

# command; name as printed; seconds of one core, if it is long; why it must be alone, or ""
Job = collections.namedtuple("Job", "command name seconds alone")
# [(passed, name)], [(name, why skipped)], output, seconds by the clock and of all cores
Outcome = collections.namedtuple("Outcome", "results skips output seconds cpu")


class Stopped(Exception):
    """A signal came; its number."""


def programs(build):
    found = []
    for folder, _, names in sorted(os.walk(os.path.join(build, "tests"))):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.startswith("test_") and "." not in name and os.access(path, os.X_OK):
                found.append(([path], os.path.join("tests", os.path.relpath(path, os.path.join(build, "tests")))))
    return found


def scripts():
    found = []
    for folder, dirs, names in sorted(os.walk(os.path.join(ROOT, "tests"))):
        dirs.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.startswith("test_") and name.endswith(".py"):
                found.append(([sys.executable, path], os.path.relpath(path, ROOT)))
            if name == "rules.sh" or name.startswith("test_") and name.endswith(".sh"):
                found.append((["bash", path], os.path.relpath(path, ROOT)))
    return found


def read_schedule():
    """{name: (seconds, why alone)}; a line that says nothing of a test that is there is an error."""
    known = {}
    with open(SCHEDULE, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("#") or not line.strip():
                continue
            m = re.fullmatch(r"(\S+)\s+(\d+)(?:\s+alone: (\S.*))?", line.strip())
            if not m or m.group(1) in known:
                sys.exit(f"{SCHEDULE}:{number}: not 'NAME SECONDS [alone: WHY]', or said twice")
            if not any(os.path.exists(os.path.join(ROOT, m.group(1) + end)) for end in ("", ".c")):
                sys.exit(f"{SCHEDULE}:{number}: there is no {m.group(1)}")
            known[m.group(1)] = (int(m.group(2)), m.group(3) or "")
    return known


def jobs_of(found, known):
    """Jobs in the order in which they begin and are told of: long ones first, those alone last."""
    jobs = [Job(c, os.path.relpath(c[-1], ROOT), *known.get(name, (0, ""))) for c, name in found]
    return sorted(jobs, key=lambda j: (j.alone != "", -j.seconds))


class Runner:
    """Runs jobs, each in a session of its own, so that all it has started can be ended with it."""

    def __init__(self, limit, env):
        self.limit, self.env = limit, env
        self.lock, self.running, self.stopped = threading.Lock(), set(), False

    def _start(self, command, output):
        with self.lock:
            if self.stopped:
                raise Stopped
            p = subprocess.Popen(command, cwd=ROOT, env=self.env, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, start_new_session=True)
            self.running.add(p.pid)
            return p

    def _kill(self, pid, number):
        """Signals what runs, or has just ended, under this id, which nobody else has meanwhile."""
        with self.lock:
            if pid in self.running:
                os.killpg(pid, number)

    def _wait(self, p):
        """The exit status and the seconds of all cores; what the test has left running is ended."""
        os.waitid(os.P_PID, p.pid, os.WEXITED | os.WNOWAIT)
        self._kill(p.pid, signal.SIGKILL)
        with self.lock:
            self.running.remove(p.pid)
            _, status, used = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
        return p.returncode, used.ru_utime + used.ru_stime

    def run(self, job):
        start, late = time.monotonic(), threading.Event()
        with tempfile.TemporaryFile() as output:
            p = self._start(job.command, output)

            def end():
                late.set()
                self._kill(p.pid, signal.SIGKILL)
            timer = threading.Timer(self.limit, end)
            timer.start()
            code, cpu = self._wait(p)
            timer.cancel()
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        if late.is_set():
            text, code = text + f"\nran longer than {self.limit} s\n", 124
        return Outcome(*judge(text, code), text, time.monotonic() - start, cpu)

    def stop(self):
        """Ends what runs; nothing begins any more."""
        with self.lock:
            self.stopped = True
            pids = set(self.running)
        for number, seconds in ((signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
            for pid in pids:
                self._kill(pid, number)
            end = time.monotonic() + seconds
            while pids & self.running and time.monotonic() < end:
                time.sleep(0.02)


def judge(output, code):
    """What a test's output and exit status say: [(passed, name)], [(name, why skipped)]."""
    results, skips, notes = [], [], []
    for line in output.splitlines():
        note = re.match(r"^# SKIP\s+(.*)$", line)
        if note:
            notes.append(note.group(1))
            continue
        m = LINE.match(line)
        if not m:
            continue
        name, _, reason = m.group(2).partition("# SKIP")
        if reason or line.rstrip().endswith("# SKIP"):
            # cmocka writes the test's name behind the mark, and its reason is a note before it
            skips.append((name.strip(), reason.strip()) if name.strip() else (reason.strip(), ""))
        elif m.group(1) == "ok":
            results.append((True, name.strip()))
        else:
            results.append((False, name.strip()))
    skips = [(n, r or next((x.split(":", 1)[-1].strip() for x in notes if x.startswith(n)), "no reason given")) for n, r in skips]
    if code != 0 and all(ok for ok, _ in results):
        results.append((False, f"exit status {code}"))
    if not results and not skips:
        results.append((False, "no test ran"))
    return results, skips


def telling(lines):
    """Of a test's output, what failed with the notes behind it; the end of it where nothing is marked."""
    picked, inside = [], False
    for line in lines:
        inside = line.startswith("not ok") or inside and line.startswith("#")
        if inside:
            picked.append(line)
    return picked[:200] or lines[-60:]


class Report:
    """Tells of each test, and counts."""

    def __init__(self):
        self.passed = self.failed = 0
        self.cpu = 0.0
        self.skipped = []

    def tell(self, job, outcome):
        bad = [n for ok, n in outcome.results if not ok]
        self.passed += len(outcome.results) - len(bad)
        self.failed += len(bad)
        self.cpu += outcome.cpu
        self.skipped += [(job.name, n, r) for n, r in outcome.skips]
        print(f"{'FAIL' if bad else 'ok  '} {job.name}: {len(outcome.results) - len(bad)} passed"
              + (f", {len(outcome.skips)} skipped" if outcome.skips else "")
              + f" ({outcome.seconds:.1f} s, cpu {outcome.cpu:.1f} s)", flush=True)
        if bad:
            print("\n".join("     | " + line for line in telling(outcome.output.splitlines())), flush=True)

    def close(self, seconds):
        for name, test, reason in self.skipped:
            print(f"skipped {name}: {test}: {reason}")
        print(f"{seconds:.0f} s, cpu {self.cpu:.0f} s")
        print(f"{self.passed} passed, {self.failed} failed, {len(self.skipped)} skipped", flush=True)
        return 1 if self.failed or not self.passed else 0


def run_all(runner, report, jobs, n):
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        waiting = [(job, pool.submit(runner.run, job)) for job in jobs]
        try:
            for job, outcome in waiting:
                report.tell(job, outcome.result())
        except BaseException:
            runner.stop()
            raise


def on_signal(number, _):
    raise Stopped(number)


def catch_signals():
    """Whoever runs this in the background ignores SIGINT, and programs keep a signal that they find ignored: here it is
    caught, and what is caught is as usual again in a program that is begun."""
    for number in SIGNALS:
        signal.signal(number, on_signal)


def end_by(number):
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="*", help="build folders whose tests/ to run")
    parser.add_argument("--python", action="store_true", help="also run tests/**/test_*.py and .sh")
    parser.add_argument("--all", action="store_true", help="the long form of tests that have one (LAGEN_TEST_ALL=1)")
    parser.add_argument("--limit", type=int, default=900, help="seconds for one program")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="tests side by side; one for each core")
    a = parser.parse_args()
    if a.jobs < 1 or a.limit < 1:
        parser.error("--jobs and --limit are at least 1")
    env = dict(os.environ, UBSAN_OPTIONS="print_stacktrace=1", ASAN_OPTIONS="detect_leaks=1")
    if a.all:
        env["LAGEN_TEST_ALL"] = "1"
    found = [p for b in a.builds for p in programs(b)] + (scripts() if a.python else [])
    jobs = jobs_of(found, read_schedule())
    runner, report, start = Runner(a.limit, env), Report(), time.monotonic()
    try:
        catch_signals()
        run_all(runner, report, [j for j in jobs if not j.alone], a.jobs)
        run_all(runner, report, [j for j in jobs if j.alone], 1)
    except Stopped as stopped:
        print(f"stopped by signal {stopped}", flush=True)
        end_by(stopped.args[0])
    sys.exit(report.close(time.monotonic() - start))


if __name__ == "__main__":
    main()
