#!/usr/bin/env python3
"""Runs test programs and counts: every cmocka program under BUILD/tests and, with --python, every tests/**/test_*.py and .sh.

Each test prints TAP (ok / not ok / # SKIP). A program that dies, or prints no result, counts as one failure. Skips are named
with their reason. The closing line is `N passed, N failed, N skipped`, for all builds together.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINE = re.compile(r"^(ok|not ok)\s+\d*\s*-?\s*(.*)$")


def programs(build):
    found = []
    for folder, _, names in sorted(os.walk(os.path.join(build, "tests"))):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.startswith("test_") and "." not in name and os.access(path, os.X_OK):
                found.append([path])
    return found


def scripts():
    found = []
    for folder, dirs, names in sorted(os.walk(os.path.join(ROOT, "tests"))):
        dirs.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name.startswith("test_") and name.endswith(".py"):
                found.append([sys.executable, path])
            if name == "rules.sh" or name.startswith("test_") and name.endswith(".sh"):
                found.append(["bash", path])
    return found


def run(command, limit, env):
    """Returns (list of (passed, name), list of skips, output, seconds)."""
    start = time.monotonic()
    try:
        p = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=limit)
        output, code = p.stdout.decode("utf-8", "replace"), p.returncode
    except subprocess.TimeoutExpired as e:
        output, code = (e.stdout or b"").decode("utf-8", "replace") + f"\nran longer than {limit} s\n", 124
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
    return results, skips, output, time.monotonic() - start


def telling(lines):
    """Of a test's output, what failed with the notes behind it; the end of it where nothing is marked."""
    picked, inside = [], False
    for line in lines:
        inside = line.startswith("not ok") or inside and line.startswith("#")
        if inside:
            picked.append(line)
    return picked[:200] or lines[-60:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("builds", nargs="*", help="build folders whose tests/ to run")
    parser.add_argument("--python", action="store_true", help="also run tests/**/test_*.py and .sh")
    parser.add_argument("--all", action="store_true", help="the long form of tests that have one (LAGEN_TEST_ALL=1)")
    parser.add_argument("--limit", type=int, default=900, help="seconds for one program")
    a = parser.parse_args()
    # who runs this in the background ignores SIGINT, and programs keep a signal that they find ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    env = dict(os.environ, UBSAN_OPTIONS="print_stacktrace=1", ASAN_OPTIONS="detect_leaks=1")
    if a.all:
        env["LAGEN_TEST_ALL"] = "1"
    todo = [(c, os.path.relpath(c[-1], ROOT)) for b in a.builds for c in programs(b)]
    if a.python:
        todo += [(c, os.path.relpath(c[-1], ROOT)) for c in scripts()]
    passed = failed = 0
    skipped = []
    for command, name in todo:
        results, skips, output, seconds = run(command, a.limit, env)
        bad = [n for ok, n in results if not ok]
        passed += len(results) - len(bad)
        failed += len(bad)
        skipped += [(name, n, r) for n, r in skips]
        print(f"{'FAIL' if bad else 'ok  '} {name}: {len(results) - len(bad)} passed"
              + (f", {len(skips)} skipped" if skips else "") + f" ({seconds:.1f} s)", flush=True)
        if bad:
            print("\n".join("     | " + line for line in telling(output.splitlines())), flush=True)
    for name, test, reason in skipped:
        print(f"skipped {name}: {test}: {reason}")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped", flush=True)
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
