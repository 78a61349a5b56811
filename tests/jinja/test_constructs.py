#!/usr/bin/env python3
"""One small template for each construct that real chat templates use and that engines have failed on: compiled C prints what
stands here, and so does jinja2 where it is installed. The clock stands at 2026-07-26 09:05:03."""
import datetime
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.append(os.path.join(ROOT, "tests", "oracle"))
import tap  # noqa: E402
from compiled import BUILD, answers, compile_all, link  # noqa: E402

try:
    from oracle import Oracle
except ImportError:
    Oracle = None

FAILS = None  # in place of a text: the rendering fails
NOW = datetime.datetime(2026, 7, 26, 9, 5, 3)
LETTERS = "".join(NOW.strftime(f"%{c}|%-{c}|") for c in "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZf%") + "%100 %é"
MESSAGES = [{"role": "system", "content": "S"}, {"role": "user", "content": "Größe <b>"}, {"role": "tool", "content": ""}]
TOOL = {"name": "f", "parameters": {"max": 18446744073709551615, "x": 1.0, "n": None, "s": "é'\"<"}}

# name, template, variables, text; names that end in a star are refused on purpose, where Python goes on
CONSTRUCTS = [
    ("rejectattr", "{% for m in messages | rejectattr('role', 'equalto', 'system') %}{{ m.role }} {% endfor %}",
     {"messages": MESSAGES}, "user tool "),
    ("selectattr", "{{ messages | selectattr('content') | map(attribute='role') | join('+') }}", {"messages": MESSAGES},
     "system+user"),
    ("break", "{% for m in messages %}{% if m.role == 'user' %}{% break %}{% endif %}{{ m.role }}{% endfor %}.",
     {"messages": MESSAGES}, "system."),
    ("continue", "{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.role }},{% endfor %}",
     {"messages": MESSAGES}, "user,tool,"),
    ("generation", "a{% generation %}\n{{ x }}{% endgeneration %}\nb", {"x": 1}, "a1b"),
    ("tojson, ensure_ascii", "{{ t | tojson(ensure_ascii=False) }}\n{{ 'é' | tojson(ensure_ascii=True) }}", {"t": TOOL},
     '{"name": "f", "parameters": {"max": 18446744073709551615, "x": 1.0, "n": null, "s": "é\'\\"<"}}\n"\\u00e9"'),
    ("tojson, indent", "{{ {'a': [1, {}], 'b': []} | tojson(indent=2) }}", {},
     '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}'),
    ("number as a name", "{{ x.0 }}{{ x.1.a }}", {"x": ["p", {"a": "q"}]}, "pq"),
    ("namespace", "{% set ns = namespace(n=0, s='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
     "{% set ns.s = ns.s ~ m.role[0] %}{% endfor %}{{ ns.n }}{{ ns.s }}", {"messages": MESSAGES}, "3sut"),
    ("set in a loop is local", "{% set x = 1 %}{% for i in [5] %}{% set x = i %}{% endfor %}{{ x }}", {}, "1"),
    ("macro", "{% macro m(a, b='d', c=a) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c=2) }}", {}, "[1d1][1d2]"),
    ("loop variables", "{% for x in 'abc' %}{{ loop.index0 }}{{ loop.index }}{{ loop.first }}{{ loop.last }}"
     "{{ loop.previtem }}{{ loop.nextitem }}{{ loop.length }};{% endfor %}", {},
     "01TrueFalseb3;12FalseFalseac3;23FalseTrueb3;"),
    ("slices", "{{ x[1:] }}{{ x[:-1] }}{{ x[::-1] }}{{ 'héllo'[1:3] }}{{ x[-1] }}", {"x": [1, 2, 3]},
     "[2, 3][1, 2][3, 2, 1]él3"),
    ("is defined", "{{ x is defined }}{{ y is defined }}{{ x.a is undefined }}{{ y is not defined }}", {"x": {}},
     "TrueFalseTrueTrue"),
    ("tests", "{{ a is string }}{{ a is mapping }}{{ b is mapping }}{{ b is iterable }}{{ c is none }}{{ d is sequence }}"
     "{{ e is boolean }}{{ e is true }}{{ 1 is false }}", {"a": "x", "b": {}, "c": None, "d": [], "e": True},
     "TrueFalseTrueTrueTrueTrueTrueTrueFalse"),
    ("strftime_now", "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S') }}", {},
     "26 Jul 2026 2026-07-26 09:05:03"),
    ("strftime_now, every letter", "{% for c in 'aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZf%' %}{{ strftime_now('%' ~ c ~ '|%-' ~ c ~ '|') }}"
     "{% endfor %}{{ strftime_now('%') }}{{ strftime_now('100 %é') }}", {}, LETTERS),
    ("strftime_now, width *", "{{ strftime_now('%5000000d') }}", {}, FAILS),
    ("raise_exception", "{{ raise_exception('Roles must alternate ' ~ x) }}", {"x": "!"}, FAILS),
    ("white space control", "a\n  {%- if true -%}  \n b {% endif %}\n  {# c #}\n  {{- ' d' }}\n {%+ if true %}e{% endif +%}\nf",
     {}, "ab  d\n e\nf"),
    ("filter block", "{% filter upper %}a{{ x }}{% endfilter %}", {"x": "é"}, "AÉ"),
    ("block set", "{% set x %}a{{ 1 }}\n{% endset %}[{{ x | trim }}]", {}, "[a1]"),
    ("tuple unpacking", "{% for k, v in x.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in x | dictsort %}{{ k }}{% endfor %}",
     {"x": {"b": 1, "a": 2}}, "b=1;a=2;ab"),
    ("for with a condition", "{% for x in [1, 2, 3, 4] if x % 2 == 0 %}{{ loop.index }}:{{ x }} {% else %}none{% endfor %}", {},
     "1:2 2:4 "),
    ("inline if", "{{ 'a' if x }}{{ 'b' if not x else 'c' }}", {"x": 0}, "b"),
    ("string methods", "{{ x.split('</think>')[-1].lstrip('\\n') }}|{{ x.startswith('a') }}|{{ ' b '.strip() }}|"
     "{{ 'a-b-c'.split('-', 1) }}|{{ '{} {}'.format(1, 'z') }}", {"x": "a</think>\n\nb"}, "b|True|b|['a', 'b-c']|1 z"),
    ("dict methods", "{{ x.get('a') }}{{ x.get('b', 'd') }}{{ x.get('b') }}{{ 'a' in x }}", {"x": {"a": 1}}, "1dNoneTrue"),
    ("default", "{{ x | default('d') }}{{ y | default('d', true) }}{{ y | default('d') }}.", {"y": ""}, "dd."),
    ("undefined prints nothing", "[{{ x }}{{ y.z }}]", {"y": {}}, "[]"),
    ("attribute of undefined", "{{ x.y.z }}", {"x": {}}, FAILS),
    ("str and int", "{{ 'a' + 1 }}", {}, FAILS),
    ("tilde", "{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1, 'x'] }}", {}, "a1NoneTrue1.5[1, 'x']"),
    ("and, or, not", "{{ '' or 'a' }}{{ 'b' and 0 }}{{ not none }}", {}, "a0True"),
    ("comparisons", "{{ 1 < 2 <= 2 != 3 }}{{ 'a' not in 'bc' }}{{ 7 // 2 }}{{ 7 % 3 }}{{ -7 // 2 }}{{ 1 / 2 }}", {},
     "TrueTrue31-40.5"),
    ("literals", "{{ [1, (2, 3), {'a': none}] }}{{ {'x': 1}['x'] }}", {}, "[1, (2, 3), {'a': None}]1"),
    ("raw", "{% raw %}{{ x }}{% endraw %}", {}, "{{ x }}"),
    ("filters", "{{ [3, 1, 2] | sort | first }}{{ ['a', 'b'] | last }}{{ x | upper }}{{ x | length }}{{ '5' | int + 1 }}"
     "{{ [1, 1, 2] | unique | list }}{{ x | replace('e', 'E') }}{{ x | string | safe }}", {"x": "heß"}, "1bHESS36[1, 2]hEßheß"),
    ("from_json", "{% set x = t | from_json %}{{ x.a[1] }}{{ '18446744073709551616' | from_json }}", {"t": '{"a": [1, 2.0]}'},
     "2.018446744073709551616"),
    ("append, pop", "{% set x = [1, 2] %}{% if x.append(3) %}{% endif %}{{ x.pop(0) }}{{ x.pop() }}{{ x }}", {}, "13[2]"),
    ("subscripts", "{{ x[n - 1] }}{{ x[n + 1] }}{{ x[m.i] }}{{ m[k] }}{{ m['i'] }}{{ x[-1] }}", {"x": "abc", "n": 1, "m": {"i": 0}, "k": "i"},
     "aca00c"),
    ("macro without arguments", "{% macro m() %}a{{ x }}{% endmacro %}{{ m() }}{{ m() }}", {"x": 1}, "a1a1"),
    ("long integers", "{{ x }}{{ x | tojson }}{{ x == x }}{{ x > 1 }}{{ x is number }}{{ x is integer }}{{ x | int }}{{ '-' ~ x }}{{ [x] }}",
     {"x": 10 ** 20}, "1" + "0" * 20 + "1" + "0" * 20 + "TrueTrueTrueTrue1" + "0" * 20 + "-1" + "0" * 20 + "[1" + "0" * 20 + "]"),
    ("long integers compared", "{{ [x, 3, y, 2.5] | sort }}{{ y < x }}{{ x < y }}{{ x == x + 0.0 if false else 1 }}{{ x | float }}{{ y | abs }}",
     {"x": 10 ** 20, "y": -10 ** 20}, f"[-1{'0' * 20}, 2.5, 3, 1{'0' * 20}]TrueFalse11e+201{'0' * 20}"),
    ("long integers made", "{{ '18446744073709551616' | int }}{{ 1e30 | int }}{{ '1e20' | int }}{{ '-9223372036854775809' | int }}", {},
     "184467440737095516161000000000000000019884624838656100000000000000000000-9223372036854775809"),
    ("unknown variables", "{{ unk_token }}{{ bos_token }}", {}, ""),
]


def compare(constructs, got):
    """The names of those that print something else, with what they print."""
    wrong = []
    for (name, _, _, want), g in zip(constructs, got):
        if g.get("text") != want:
            wrong.append(f"{name}: want {want!r}, got {g}")
    return wrong


def check_inventory(t):
    """Everything that the templates of ../shared use is tried here or in fixtures/, so that CI tries it too."""
    shared = sorted(glob.glob("../shared/chat-templates/*.jinja"))
    if not shared or Oracle is None:
        t.skip("constructs of ../shared/chat-templates", "the folder is not there" if Oracle else "jinja2 is not installed")
        return
    from inventory import constructs
    sources = [source for _, source, _, _ in CONSTRUCTS]
    sources += [open(p, newline="", encoding="utf-8").read() for p in glob.glob("tests/jinja/fixtures/*.jinja")]
    own = set().union(*map(constructs, sources))
    used = set().union(*(constructs(open(p, newline="", encoding="utf-8").read()) for p in shared))
    missing = sorted(map(str, used - own))
    t.check(f"all {len(used)} constructs of {len(shared)} real templates are tried without them", not missing, "\n".join(missing))


def main():
    os.chdir(ROOT)
    t = tap.Tap()
    work = os.path.join(BUILD, "tests", "jinja", "constructs")
    os.makedirs(work, exist_ok=True)
    paths = [os.path.join(work, f"t{i}.jinja") for i in range(len(CONSTRUCTS))]
    for path, (_, source, _, _) in zip(paths, CONSTRUCTS):
        with open(path, "w", encoding="utf-8", newline="") as f:
            f.write(source)
    objects, refused = compile_all(paths, work, "-O0")
    t.check("D01 every construct compiles", not refused, "\n".join(f"{CONSTRUCTS[i][0]}: {why}" for i, why in refused.items()))
    if refused:
        return t.done()
    got = answers(link(objects, work), [{"template": i, "vars": v} for i, (_, _, v, _) in enumerate(CONSTRUCTS)])
    wrong = compare(CONSTRUCTS, got)
    t.check("D01 every construct renders", not wrong, "\n".join(wrong))
    refusal = next(g["error"] for (name, _, _, _), g in zip(CONSTRUCTS, got) if name == "raise_exception")
    t.check("D03 raise_exception says its words", "Roles must alternate !" in refusal, refusal)
    check_inventory(t)
    if Oracle is None:
        t.skip("jinja2 prints the same", "the Python package jinja2 is not installed")
        return t.done()
    alike = [c for c in CONSTRUCTS if not c[0].endswith("*")]
    theirs = [Oracle(source).render(v) for _, source, v, _ in alike]
    wrong = compare(alike, [{"text": text} if kind == "text" else {} for kind, text in theirs])
    t.check("jinja2 prints the same", not wrong, "\n".join(wrong))
    return t.done()


sys.exit(main())
