"""The Test Anything Protocol for Python tests: numbered lines, skips with reasons, exit status."""
import sys
import traceback


class Skip(Exception):
    """Raised in a test that cannot run here; the text says why."""


class Tap:
    def __init__(self):
        self.n = 0
        self.failed = 0

    def _line(self, state, name, tail=""):
        self.n += 1
        print(f"{state} {self.n} - {name}{tail}", flush=True)

    def note(self, text):
        for line in str(text).splitlines():
            print(f"# {line}", flush=True)

    def check(self, name, good, note=""):
        self._line("ok" if good else "not ok", name)
        self.failed += not good
        if note and not good:
            self.note(note)

    def skip(self, name, why):
        self._line("ok", name, f" # SKIP {why}")

    def run(self, function):
        """Runs a test function under its name: it returns, raises Skip, or fails."""
        name = function.__name__
        try:
            function()
        except Skip as why:
            self.skip(name, why)
        except Exception:
            self.check(name, False, traceback.format_exc())
        else:
            self.check(name, True)

    def done(self):
        """Prints the plan; the process exit status."""
        print(f"1..{self.n}", flush=True)
        return 1 if self.failed else 0


def named(name):
    """Gives a test a name of words, with the ids of its cases in front (docs/cases.md)."""
    def name_it(function):
        function.__name__ = name
        return function
    return name_it


def main(tests):
    tap = Tap()
    for test in tests:
        tap.run(test)
    sys.exit(tap.done())
