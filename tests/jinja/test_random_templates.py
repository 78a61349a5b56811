#!/usr/bin/env python3
"""Random templates against jinja2: statements nested at random, with names set, read and hidden in every scope, loops that
look ahead, captures, white space control. What jinja2 renders, compiled C renders byte for byte; what it refuses fails.

A fixed seed; LAGEN_TEST_ALL=1 tries ten times as many.
"""
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

sys.path.insert(0, HERE)
from compiled import BUILD, answers, compile_all, link  # noqa: E402
try:
    from oracle import Oracle
except ImportError:
    print("ok 1 - random templates # SKIP the Python package jinja2 is not installed")
    sys.exit(0)

NAMES = ["a", "b", "c", "q"]
CONTEXTS = [{}, {"a": 1, "q": "mn"}, {"b": [1], "c": "", "q": [7, 8]}, {"a": "A", "b": "B", "c": "C", "q": {}}]
LOOP = ["loop.index", "loop.index0", "loop.first", "loop.last", "loop.length", "loop.revindex", "loop.previtem",
        "loop.nextitem", 'loop.cycle("x", "y")', "loop.changed(a)"]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def tag(self, text):
        begin = self.r.choice(["{%", "{%", "{%", "{%", "{%-", "{%+"])
        end = self.r.choice(["%}", "%}", "%}", "-%}", "+%}"])
        return f"{begin} {text} {end}"

    def text(self):
        return self.r.choice(["", "", " ", "\n", "\n  ", "x", "y\n", "  z  ", "\n\n", "\t"])

    def expression(self, in_loop):
        kind = self.r.random()
        if in_loop and kind < 0.25:
            return self.r.choice(LOOP)
        if kind < 0.6:
            return self.r.choice(NAMES)
        if kind < 0.7:
            return self.r.choice(NAMES) + " ~ " + self.r.choice(NAMES)
        if kind < 0.8:
            return self.r.choice(NAMES) + " is defined"
        if kind < 0.85:
            return "ns.v"
        if kind < 0.9:
            return "m(%s)" % self.r.choice(NAMES + ['"z", y=1', "x=a", "", "1, 2"])
        return self.r.choice(["'s'", "1", "[1, 2]", "''", "none", "true"])

    def body(self, depth, in_loop):
        return "".join(self.statement(depth, in_loop) for _ in range(self.r.randrange(0, 4)))

    def if_statement(self, depth, in_loop):
        s = self.tag("if " + self.expression(in_loop)) + self.body(depth - 1, in_loop)
        if self.r.random() < 0.4:
            s += self.tag("elif " + self.expression(in_loop)) + self.body(depth - 1, in_loop)
        if self.r.random() < 0.5:
            s += self.tag("else") + self.body(depth - 1, in_loop)
        return s + self.tag("endif")

    def for_statement(self, depth, in_loop):
        target = self.r.choice(NAMES + ["i", "i"])
        sequence = self.r.choice(["[1, 2, 3]", "'xy'", "range(2)", "[]", "q", "{'k': 1}", "[a, b]"])
        condition = self.r.choice([" if " + self.r.choice([target, target + " is defined", "ns.v", "a", "true"]), "", "", ""])
        s = self.tag(f"for {target} in {sequence}{condition}") + self.body(depth - 1, True)
        if self.r.random() < 0.15:
            s += self.tag("if " + self.expression(True)) + self.tag(self.r.choice(["break", "continue"])) + self.tag("endif")
        if self.r.random() < 0.3:
            s += self.tag("else") + self.body(depth - 1, in_loop)
        return s + self.tag("endfor")

    def block(self, head, end, depth, in_loop):
        return self.tag(head) + self.body(depth - 1, in_loop) + self.tag(end)

    def statement(self, depth, in_loop):
        kind = self.r.randrange(14)
        if kind < 4 or depth <= 0:
            return (self.text() + self.r.choice(["{{ ", "{{- "]) + self.expression(in_loop) +
                    self.r.choice([" }}", " -}}"]) + self.text())
        if kind == 4:
            return self.text() + self.tag(f"set {self.r.choice(NAMES)} = {self.expression(in_loop)}")
        if kind == 5:
            return self.text() + self.tag(f"set ns.v = {self.expression(in_loop)}")
        if kind < 8:
            return self.text() + self.if_statement(depth, in_loop)
        if kind < 11:
            return self.text() + self.for_statement(depth, in_loop)
        if kind == 11:
            return self.text() + self.block("set " + self.r.choice(NAMES) + self.r.choice([" | upper", ""]), "endset", depth, in_loop)
        if kind == 12:
            return self.text() + self.block("generation", "endgeneration", depth, in_loop)
        return self.text() + self.block("filter " + self.r.choice(["upper", "trim", "length"]), "endfilter", depth, in_loop)

    def template(self):
        while True:
            macro = self.tag("macro m(x, y=a)") + self.body(1, False).replace("m(", "(") + self.tag("endmacro")
            s = "{% set ns = namespace(v=0) %}" + macro + "".join(self.body(d, False) for d in (4, 3, 3))
            if len(s) < 6000:
                return s


def main():
    os.chdir(ROOT)
    work = os.path.join(BUILD, "tests", "jinja", "random")
    maker = Maker(7)
    sources = [maker.template() for _ in range(240 if os.environ.get("LAGEN_TEST_ALL") else 24)]
    os.makedirs(work, exist_ok=True)
    paths = [os.path.join(work, f"t{i}.jinja") for i in range(len(sources))]
    for path, source in zip(paths, sources):
        with open(path, "w", newline="") as f:
            f.write(source)
    objects, refused = compile_all(paths, work, "-O0")
    if refused:
        print(f"not ok 1 - random templates: refused: {refused}")
        return True
    program = link(objects, work)
    runs = [(i, v) for i in range(len(sources)) for v in CONTEXTS]
    out = answers(program, [{"template": i, "vars": v} for i, v in runs])
    oracles = [Oracle(s) for s in sources]
    wrong, rendered = [], 0
    for (i, v), got in zip(runs, out):
        kind, want = oracles[i].render(v)
        rendered += kind == "text"
        if (kind == "error") != ("error" in got) or (kind == "text" and got["text"] != want):
            wrong.append(f"{work}/t{i}.jinja with {v}: want {want[:200]!r}, got {str(got)[:200]}")
    print(("not ok" if wrong else "ok") + f" 1 - random templates: {rendered} of {len(runs)} renderings, equal to jinja2")
    for w in wrong[:4]:
        print("#   " + w)
    return bool(wrong)


sys.exit(main())
