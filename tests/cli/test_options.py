"""Every option of every command of lagen, of an emitted program and of its server, as a hostile user gives them: out
of range, 0, -1, huge, no number, empty, twice, without a value, cut short, behind `--`.

The options are read from --help; one that has no row in COMMANDS below, or a row that no --help shows, fails. A usage
error is status 2 and one line that names the option, the value and what would do; nothing is clamped.
What is wrong whatever files and machine hold is usage, so an unknown word is 2 for every option that takes words
(Word); a file that cannot be read, or an input that does not suit, is 1 (Name).
Takes the build folder as argument (default: build)."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
PROGRAMS = {"lagen": BUILD / "lagen", "cli": BUILD / "tests" / "runtime" / "fake_cli",
            "server": BUILD / "tests" / "server" / "stub_server"}


class Flag:
    pass


class Uint:
    def __init__(self, least, most, size=False, auto=False):
        self.least, self.most, self.size, self.auto = least, most, size, auto


class Real:
    def __init__(self, least, most):
        self.least, self.most = least, most


class Text:
    """Any text, also an empty one."""


class Repeat:
    """Any text; the option may be given several times."""


class Name:
    """A path, or a name that somebody else gives. `bad`: a value, the status, what the refusal says; tried behind
    the command's BASE."""

    def __init__(self, *bad):
        self.bad = bad


class Word(Name):
    """One of a list of words: those between | in --help, or of a list told elsewhere, and `says` is what a refusal
    says behind the option's name. `bad` as of Name."""

    def __init__(self, *bad, says=None):
        super().__init__(*bad)
        self.says = says


NO_FILE = ("nosuch", 1, "nosuch: cannot be read: No such file")
NOT_A_FILE = (str(FOLDER), 1, "not a regular file")
THREADS = {"--threads": Uint(1, 1024), "--chunk": Uint(1, 16),
           "--device": Word(says="this program runs on the CPU")}
TEXT = {"--prompt": Text(), "--file": Name(NO_FILE, NOT_A_FILE), "--special": Flag()}
SAMPLING = {
    "--n-predict": Uint(0, 1 << 30), "--temp": Real(0, 1000), "--top-k": Uint(0, 259), "--top-p": Real(0, 1),
    "--min-p": Real(0, 1), "--repeat-penalty": Real(0.01, 100), "--repeat-last-n": Uint(0, 256),
    "--seed": Uint(0, 2**32 - 1), "--greedy": Flag(), "--stop": Repeat(),
    "--thinking": Word()}
LIST = ("x", 2, "'x' does not begin with a number in 0..256"), ("1,,2", 2, "',2' does not begin with a number"), \
    ("257", 2, "'257' does not begin with a number in 0..256"), ("-1", 2, "'-1' does not"), ("1,", 2, "'' does not"), \
    ("99999999999999999999", 2, "does not begin with a number in 0..256")
MODEL = {
    "--model": Name(NO_FILE, NOT_A_FILE, ("/dev/zero", 1, "/dev/zero: not a regular file")),
    "--arch": Word(says="; `lagen targets` lists those there are"),
    "--ctx": Uint(1, 16777216), "--slots": Uint(1, 1024), "--chunk": Uint(1, 131072, auto=True),
    "--ram": Uint(2**20, 2**50, size=True), "--vram": Uint(2**20, 2**50, size=True),
    "--attn": Word(("f16", 2, "--attn: f16 needs tensor cores, and row x86-64-v3 has none")), "--kv": Word(),
    "--pre": Word(("gpt", 2, "--pre: 'gpt' is not known"), says=" is not known; docs/tokenizers.md lists names"),
    "--rope-mscale": Word(*[(v, 2, f"'{v}' is neither formula") for v in
                            ("nan", "1e999", "-1", "0", "9.9e-7", "1.01e6")],
                          ("key", 1, "--rope-mscale and --rope-beta say how YaRN is read; this model's"),
                          says=" is neither formula nor key nor a number from 1e-6 to 1e6"),
    "--rope-beta": Word(*[(v, 2, f"'{v}' is neither fixed") for v in ("1", "1,2,3", "1,nan", "1,2", "1000001,1", "9" * 30 + ",1")],
                        ("key", 1, "--rope-mscale and --rope-beta say how YaRN is read; this model's"),
                        says=" is neither fixed nor key nor FAST,SLOW")}
EMIT = {
    **MODEL, "--out": Name(("/dev/null", 1, "/dev/null: cannot make this directory"), ("/proc/x", 1, "/proc/x: cannot make")),
    "--weights": Word(), "--compiler": Word(("nvcc", 2, "is for GPU kernels; x86-64-v3 is a CPU")),
    "--host": Word(("x86-64-v3", 2, "--host names the CPU beside a GPU; x86-64-v3 is a CPU itself"),
                   says="; `lagen targets` lists those there are"),
    "--template": Name(NO_FILE, NOT_A_FILE)}

# By program and command ("" where there is but one); what the command needs beside an option; its options.
COMMANDS = {
    ("lagen", "synth"): (["synth/llama-tiny", "-o", "x.gguf"], {
        "--out": Name(("nosuch/x", 1, "nosuch/x: cannot be made: No such file"), (str(FOLDER), 1, "is not a regular file")),
        "--types": Word(says="is not the name of a tensor type"), "--layers": Uint(1, 512), "--seed": Uint(0, 2**32 - 1),
        "--distinct-rows": Uint(1, 2**32 - 1), "--header-only": Flag()}),
    ("lagen", "inspect"): (["m.gguf"], {"--json": Flag()}),
    ("lagen", "targets"): ([], {"--json": Flag()}),
    ("lagen", "verify"): (["p"], {"--replay": Flag()}),
    ("lagen", "report"): (["q"], {
        "--out": Name(("/nosuch/x", 1, "/nosuch/x: cannot be made: No such file")),
        "--device": Word(("gb10", 1, "is no board for a program of x86-64-v3"), says="; there are a100-80, ")}),
    ("lagen", "plan"): (["-m", "m.gguf", "--arch", "x86-64-v3"], {
        **MODEL, "--json": Flag(), "--dump": Word()}),
    ("lagen", "emit"): (["-m", "m.gguf", "--arch", "x86-64-v3", "-o", "e"], EMIT),
    ("lagen", "build"): (["-m", "m.gguf", "--arch", "x86-64-v3", "-o", "e"], {**EMIT, "--jobs": Uint(1, 1024)}),
    ("cli", "run"): (["-p", "hi"], {**TEXT, **SAMPLING, **THREADS, "--system": Text(), "--raw": Flag(), "--stats": Flag()}),
    ("cli", "chat"): ([], {**SAMPLING, **THREADS, "--system": Text(), "--stats": Flag()}),
    ("cli", "tokenize"): (["-p", "hi"], {**TEXT, "--no-bos": Flag(), "--ids": Flag(), "--json": Flag()}),
    ("cli", "logits"): (["-p", "hi"], {
        **TEXT, **THREADS, "--no-bos": Flag(), "--all": Flag(), "--top": Uint(1, 259),
        "--ids": Name(("259", 2, "--ids: '259' does not begin with a token id in 0..258"), ("-1", 2, "'-1' does not begin"),
                      ("1,", 2, "'' does not"), ("x", 2, "'x' does not")),
        "--raw": Name(("nosuch/x", 1, "nosuch/x: cannot be made: No such file")), "--trace": Name(("nosuch/x", 1, "nosuch/x: cannot be made: No such file"))}),
    ("cli", "eval"): (["text"], {
        **THREADS, "--ctx": Uint(4, 256), "--windows": Uint(1, 10**9), "--special": Flag(), "--json": Flag()}),
    ("cli", "bench"): ([], {
        **THREADS, "--n-prompt": Name(*LIST), "--n-gen": Name(*LIST), "--n-depth": Name(*LIST),
        "--repetitions": Uint(1, 1000), "--no-warmup": Flag(), "--json": Flag()}),
    ("cli", "info"): ([], {"--json": Flag(), "--measure": Flag(), "--device": Name(("0", 2, "--device is for --measure"))}),
    ("cli", "selftest"): ([], {**THREADS, "--bless": Flag(), "--launches": Flag()}),
    ("server", ""): ([], {
        "--host": Name(("nosuch.", 2, "nosuch.")), "--port": Uint(0, 65535), "--api-key-file": Name(NO_FILE),
        "--allow-host": Repeat(), "--allow-origin": Repeat(), "--name": Name(), "--log": Word(),
        "--threads": Uint(1, 1024), "--device": Word(says="this program runs on the CPU"), "--slots": Uint(1, None), "--chunk": Uint(1, None),
        "--prompt-rows": Uint(1, None), "--queue": Uint(0, 65536), "--connections": Uint(1, 65536),
        "--body-limit": Uint(1024, 1 << 30, size=True), "--header-timeout": Uint(1, 86400),
        "--min-rate": Uint(0, 1 << 30, size=True), "--keepalive": Uint(1, 3600), "--drain": Uint(0, 86400),
        "--prefix-store": Uint(0, 1 << 50, size=True), "--kv-dir": Name(),
        "--think-budget": Uint(0, 2**32 - 1), "--no-self-test": Flag(), "--keep-billing-header": Flag()}),
}
POSITIONAL = {("lagen", "synth"): "RECIPE", ("lagen", "inspect"): "FILE", ("lagen", "verify"): "DIR", ("lagen", "report"): "DIR", ("cli", "eval"): "FILE"}


def run(program, *arguments):
    return subprocess.run([PROGRAMS[program], *arguments], cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=30)


def refused(where, status, says, *arguments):
    """What is wrong with a refusal, or nothing."""
    program, command = where
    p = run(program, *([command] if command else []), *arguments)
    shown = " ".join([program, command, *arguments])[:200]
    lines = [x for x in p.stderr.splitlines() if not x.endswith(" %")]
    if p.returncode != status or len(lines) != 1 or p.stdout:
        return [f"{shown}: status {p.returncode}, not {status}: {p.stderr}{p.stdout}"]
    missing = [part for part in ([says] if isinstance(says, str) else says) if part not in lines[0]]
    return [f"{shown}: does not say {missing}: {lines[0]}"] if missing else []


def help_of(where):
    program, command = where
    p = run(program, *([command] if command else []), "--help")
    assert p.returncode == 0 and p.stderr == "", f"{where}: {p.returncode} {p.stderr}"
    return p.stdout


def options_of(text):
    """(short name or "", name, what its value is called or "") of a help text."""
    return [(m[1] or "", m[2], m[3] or "") for m in
            re.finditer(r"^  (?:(-\w), )?(--[a-z-]+)(?: ([^\s]+))?(?:$|  )", text, re.M)]


def uint_errors(where, option, kind):
    most = kind.most
    limits = f"it may be {kind.least} to " + ("" if most is None else str(most))
    bad = [(str(10**30), limits)] + ([(str(most + 1), limits)] if most is not None else [])
    bad += [(str(kind.least - 1), limits)] if kind.least > 0 else []
    bad += [(v, f"'{v}' is not a ") for v in ("", "-1", "+1", "x", "1x", "1.5", "1e3", "0x10", " 1", "1 ", "nan", "1,2")]
    bad += [("Auto", "'Auto' is not a whole number, nor auto"), ("automatic", "'automatic' is not")] if kind.auto else [("auto", "'auto' is not a ")]
    if kind.size and kind.least == 2**20:  # of a number that small the unit was forgotten
        bad += [(n, f"{n} bytes is out of range; {limits}; did you mean {n}{unit}?")
                for n, unit in (("16", "GiB"), ("1", "GiB"), ("1023", "GiB"), ("1024", "MiB"), ("16384", "MiB"), ("1048575", "MiB"))]
        bad += [("512KiB", f"512KiB is out of range; {limits}")]
    bad += [("5QiB", "'5QiB' is not a size"), ("99999999999GiB", limits)] if kind.size else [("1KiB", "'1KiB' is not a ")]
    return [e for v, says in bad for e in refused(where, 2, [f"{option}: ", says], option, v)]


def real_errors(where, option, kind):
    limits = f"it may be {kind.least:g} to {kind.most:g}"
    bad = [(v, limits) for v in (f"{kind.most + 1:g}", f"{kind.least - 1:g}", "1e999", "-1e999", "1e-300")]
    bad += [(v, f"'{v}' is not a number") for v in ("", "x", "nan", "inf", "-inf", "1x", "0x1", " 1", "1,5", "1e")]
    return [e for v, says in bad for e in refused(where, 2, [f"{option}: ", says], f"{option}={v}")]


def without(base, option, short):
    """What the command needs, less this option."""
    at = next((i for i, x in enumerate(base) if x in (option, short) and x), None)
    alike = [i for i, x in enumerate(base) if option in ("--ids", "--file") and x == "-p"]  # another source of text
    at = alike[0] if at is None and alike else at
    return base if at is None else base[:at] + base[at + 2:]


def name_errors(where, option, short, kind, base):
    other = "--help" if where[1] == "targets" else next(o for _, o, v in options_of(help_of(where)) if o != option)
    found = refused(where, 2, f"{option} needs a value", option, "")
    found += refused(where, 2, f"{option} needs a value", f"{option}=")
    found += refused(where, 2, [f"{option} needs a value", f"'{other}' is an option"], option, other)
    for value, status, says in kind.bad:
        found += refused(where, status, says, *without(base, option, short), option, value)
    return found


def word_errors(where, option, short, value, kind, base):
    """The one rule: a word that no list has is usage, whatever its option."""
    words = value.split("|") if "|" in value else []
    says = kind.says or "is none of " + ", ".join(words)
    bad = ["nosuch", "nosuch" * 100, " " + (words or ["f16"])[0]] + [w[:-1] for w in words if w[:-1] not in words]
    bad += [w.upper() for w in words] + [value] * bool(words) + [",".join(words)] * bool(words)
    return [e for w in bad for e in refused(where, 2, [option, w[:20], "" if len(w) > 40 and not words else says],
                                            *without(base, option, short), option, w)]


def errors_of(where, short, option, value, kind, base):
    """Everything that is wrong with one option."""
    found = refused(where, 2, f"unknown option '{option}x'", f"{option}x")
    cut = option[:-1]
    if len(cut) > 2 and cut not in COMMANDS[where][1]:
        found += refused(where, 2, f"unknown option '{cut}", f"{cut}=1")
    if isinstance(kind, Flag):
        assert value == "", f"{where} {option}: --help gives it a value"
        found += refused(where, 2, f"{option} takes no value", f"{option}=1")
        return found + refused(where, 2, f"{option} is given twice", option, short or option)
    assert value, f"{where} {option}: --help names no value"
    found += refused(where, 2, f"{option} needs a value ({value})", option)
    if short:
        found += refused(where, 2, f"{option} needs a value ({value})", short)
    found += refused(where, 2, f"unknown option '{option[1:]}=x'; {option} has two dashes", f"{option[1:]}=x")
    if not isinstance(kind, Repeat):
        good = str(kind.least if isinstance(kind, Uint) else kind.most if isinstance(kind, Real) else value.split("|")[0] if isinstance(kind, Word) else "x")
        found += refused(where, 2, f"{option} is given twice", f"{option}={good}", short or option, good)
        if short:  # a value may stand right behind a short name, there and nowhere else
            found += refused(where, 2, f"{option} is given twice", short + good, option, good)
    if isinstance(kind, Uint):
        found += uint_errors(where, option, kind)
    elif isinstance(kind, Real):
        found += real_errors(where, option, kind)
    elif isinstance(kind, Name):
        found += name_errors(where, option, short, kind, base)
        if isinstance(kind, Word):
            found += word_errors(where, option, short, value, kind, base)
        else:
            assert re.fullmatch("FILE|DIR|ADDRESS|ID,.*|N,.*", value) or option in ("--name", "--device"), f"{where} {option}: words?"
    return found


def positional_errors(where):
    name, base = POSITIONAL.get(where), COMMANDS[where][0]
    if name is None:
        return refused(where, 2, "unexpected argument 'x'", "x") + refused(where, 2, "unexpected argument '--json'", "--", "--json")
    found = refused(where, 2, f"needs {name}") + refused(where, 2, f"{name} is empty", "")
    found += refused(where, 2, f"needs {name}", "--") + refused(where, 2, f"{name} is empty", "--", "")
    found += refused(where, 2, "unexpected argument 'more'", *base, "more")
    return found + refused(where, 2, "unexpected argument '--json'", base[0], "--", "--json")


def make_files():
    assert run("lagen", "synth", "synth/llama-tiny", "-o", "m.gguf").returncode == 0
    assert run("lagen", "emit", "-m", "m.gguf", "--arch", "x86-64-v3", "--weights", "link", "-o", "q").returncode == 0
    (FOLDER / "text").write_text("x" * 300)


def check_command(t, where):
    base, table = COMMANDS[where]
    seen = {}
    for short, option, value in options_of(help_of(where)):
        if option != "--help":
            seen[option] = (short, value)
    name = " ".join(where).strip()
    t.check(f"{name}: each option has a row here, and each row an option", seen.keys() == table.keys(),
            f"only one of both: {sorted(seen.keys() ^ table.keys())}")
    found = positional_errors(where) + refused(where, 2, "unknown option '--nosuch'", "--nosuch")
    found += refused(where, 2, "unknown option '-Z'", "-Z") + refused(where, 2, "unknown option '--=1'", "--=1")
    t.check(f"{name}: arguments", not found, "\n".join(found[:20]))
    for option, (short, value) in seen.items():
        if option in table:
            found = errors_of(where, short, option, value, table[option], base)
            t.check(f"{name} {option}", not found, "\n".join(found[:20]))


def check_all_commands_are_here(t):
    for program in ("lagen", "cli"):
        listed = set(re.findall(r"^  (\w+) +\S", run(program, "--help").stdout, re.M))
        here = {c for p, c in COMMANDS if p == program}
        t.check(f"{program}: each command has a table here", listed == here, str(listed ^ here))


def check_yarn(t):
    """Of a model with YaRN the same is refused."""
    where = ("lagen", "plan")
    assert run("lagen", "synth", "synth/llama-yarn", "-o", "yarn.gguf").returncode == 0
    found = []
    for option, values in (("--rope-mscale", ("x", "nan", "1e999", "-1")), ("--rope-beta", ("x", "1", "1,2,3", "1,nan", "1,2"))):
        for v in values:
            found += refused(where, 2, [option, v], "-m", "yarn.gguf", "--arch", "x86-64-v3", f"{option}={v}")
    t.check("lagen plan --rope-mscale and --rope-beta of a model with YaRN", not found, "\n".join(found))


def check_no_tokenizer_option_is_ignored(t):
    assert run("lagen", "synth", "synth/llama-spm", "-o", "spm.gguf").returncode == 0
    found = refused(("lagen", "emit"), 1, "--pre gpt-2: this model's tokenizer (SPM)", "-m", "spm.gguf", "--arch", "x86-64-v3",
                    "--pre", "gpt-2", "-o", "spm")
    t.check("lagen emit --pre for a tokenizer that has none", not found, "\n".join(found))


def main():
    t = tap.Tap()
    for program, path in PROGRAMS.items():
        if not path.exists():
            t.skip(f"options of {program}", f"no {path.name} here")
    if "san" in BUILD.parts or not all(p.exists() for p in PROGRAMS.values()):
        return t.done()
    make_files()
    check_all_commands_are_here(t)
    for where in COMMANDS:
        check_command(t, where)
    check_yarn(t)
    check_no_tokenizer_option_is_ignored(t)
    left = sorted(p.name for p in FOLDER.iterdir())
    t.check("no refusal leaves a file", left == ["m.gguf", "q", "spm.gguf", "text", "yarn.gguf"], str(left))
    WORK.cleanup()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
