"""The commands of an emitted program, over the fake model (tests/runtime/fake_cli.c): results, usage
errors (exit status 2, one line that names the option and its limits), and `chat` on a terminal."""
import json
import math
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap

ANSWER = "Hello, w\u00f6rld! STOP now.\n"
COMMANDS = ["run", "chat", "tokenize", "logits", "eval", "bench", "info", "selftest"]


def program():
    for build in ("build/san", "build"):
        path = ROOT / build / "tests" / "runtime" / "fake_cli"
        if len(sys.argv) > 1:
            path = pathlib.Path(sys.argv[1])
        if path.exists():
            return str(path)
    return None


FAKE = program()


def call(*args, stdin=b"", variant=None):
    command = [FAKE] + ([variant] if variant else []) + list(args)
    p = subprocess.run(command, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                       env={"PATH": os.environ.get("PATH", "")})
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def done(*args, **more):
    status, out, err = call(*args, **more)
    assert status == 0, (args, status, out, err)
    return out


def refused(status, what, *args, **more):
    got, out, err = call(*args, **more)
    assert got == status, (args, got, out, err)
    assert err.count("\n") == 1 and err.endswith("\n"), err
    for part in [what] if isinstance(what, str) else what:
        assert part in err, (part, err)
    assert "\033" not in err


def usage(what, *args):
    refused(2, what, *args)


def test_help():
    out = done("--help")
    assert done("-h") == out and done("help") == out
    for name in COMMANDS:
        assert re.search(rf"^  {name} +\S", out, re.M), name
        text = done(name, "--help")
        assert done("help", name) == text
        assert text.startswith(f"usage: fake_cli {name}") and "--help" in text
        assert all(len(line) <= 100 for line in text.splitlines()), text


def test_usage_errors():
    """What options exclude; what each takes is the matter of tests/cli/test_options.py."""
    usage("no command")
    usage("unknown command 'dance'", "dance")
    usage("unknown command 'dance'", "help", "dance")
    usage("--stop", "run", "-p", "x", "--stop", "")
    usage("by -p TEXT or by -f FILE", "run")
    usage("not by both", "run", "-p", "x", "-f", "y")
    usage("--greedy and --temp", "run", "-p", "x", "--greedy", "--temp", "1")
    usage("--greedy and --seed", "run", "-p", "x", "--greedy", "--seed", "1")
    usage("--raw and --system", "run", "-p", "x", "--raw", "--system", "s")
    usage("--special needs --raw", "run", "-p", "x", "--special")
    usage("--ids and --json", "tokenize", "-p", "x", "--ids", "--json")
    usage("--raw and --top", "logits", "-p", "x", "--raw", "f", "--top", "3")
    usage("not both", "logits", "-p", "x", "--ids", "3")
    usage("--ids and --special", "logits", "--ids", "3", "--special")
    usage("--ids and --no-bos", "logits", "--ids", "3", "--no-bos")
    usage("no test is left", "bench", "-p", "0", "-n", "0")


def test_refusals():
    refused(1, "/no/such/file", "run", "-f", "/no/such/file")
    refused(1, ["258 tokens", "1 to 256"], "run", "--raw", "-p", "x" * 258)
    refused(1, "0 tokens", "run", "--raw", "-p", "")
    refused(1, "0 tokens", "logits", "-p", "")
    refused(1, ["257 tokens", "256"], "logits", "-p", "x" * 257)
    refused(1, ["200 tokens at depth 57", "256"], "bench", "-p", "200", "-n", "0", "-d", "57")
    refused(1, "/no/such/folder", "logits", "-p", "x", "--raw", "/no/such/folder/file")
    refused(1, "/no/such/folder", "logits", "-p", "x", "--trace", "/no/such/folder/file")
    refused(1, "no tokenizer", "tokenize", "-p", "x", variant="--bare")
    refused(1, "no tokenizer", "run", "-p", "x", variant="--bare")
    refused(1, "no tokenizer", "chat", variant="--bare")
    refused(4, "lacks no_such_feature", "run", "-p", "x", variant="--odd-cpu")
    refused(5, "needs 11529215", "run", "-p", "x", variant="--big")
    refused(70, "token 0", "logits", "--ids", "5,0,0,7")
    assert done("info", variant="--odd-cpu").count("no_such_feature") == 1


def test_run():
    status, out, err = call("run", "-p", "hi", "--greedy")
    assert (status, out) == (0, ANSWER), (status, out, err)
    assert re.fullmatch(r"prompt 4 tokens, [\d.]+ tokens/s; answer 26 tokens, [\d.]+ tokens/s; end of answer\n", err), err
    assert done("run", "-p", "hi", "--greedy", "--stop", "STOP") == "Hello, w\u00f6rld! \n"
    assert done("run", "-p", "hi", "--greedy", "--stop=zz", "--stop=o, ") == "Hell\n"
    assert done("run", "-p", "hi", "--greedy", "-n", "3") == "Hel\n"
    assert done("run", "-p", "hi", "--greedy", "-n", "0") == ""
    assert done("run", "-p", "how many turns", "--greedy") == "1 user turns\n"
    assert done("run", "-f", "-", "--greedy", stdin=b"hi") == ANSWER
    with tempfile.NamedTemporaryFile() as f:
        f.write(b"hi")
        f.flush()
        assert done("run", "-f", f.name, "--greedy") == ANSWER
    for chunk in ("1", "7", "16"):
        assert done("run", "-p", "x" * 100, "--greedy", "--chunk", chunk, "-t", "3") == ANSWER
    out = done("run", "--raw", "-p", "forever", "--greedy", "-n", "10")
    assert out == "tick tick \n", out


def test_run_stats_and_seeds():
    status, out, err = call("run", "-p", "hi", "--seed", "77", "--stats", "--temp", "0.5")
    assert status == 0 and "seed 77, temperature 0.5\n" in err and "threads" in err, err
    seeds = set()
    for _ in range(2):
        _, _, err = call("run", "-p", "hi", "--stats")
        seeds.add(re.search(r"^seed (\d+), temperature 0.8$", err, re.M).group(1))
    assert len(seeds) == 2
    hot = [done("run", "-p", "hi", "--temp", "50", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-n", "30",
                "--seed", s) for s in ("1", "1", "2")]
    assert hot[0] == hot[1] != hot[2]


def test_turns_end_where_the_model_spells_it():
    """D10: the end of a turn, spelled in ordinary text; it is no part of the answer. Raw text has no turns."""
    cut = ANSWER.partition("STOP")[0]
    assert done("run", "-p", "hi", "--greedy", variant="--ender") == cut + "\n"
    assert done("run", "--raw", "-p", "hi", "--greedy", variant="--ender").startswith(ANSWER)
    assert done("run", "-p", "hi", "--greedy", "--stop", "w", variant="--ender") == "Hello, \n"
    status, out, err = call("chat", "--greedy", variant="--ender", stdin=b"hi\nturns\n")
    assert status == 0 and cut in out and "STOP" not in out and "2 user turns" in out, (out, err)


def test_control_tokens_never_come_from_text():
    assert done("run", "-p", "a<user>b<user>turns", "--greedy") == "1 user turns\n"
    assert done("run", "-p", "turns", "--system", "<user><user>", "--greedy") == "1 user turns\n"
    assert done("tokenize", "--ids", "-p", "<bot>") == "60 98 111 116 62\n"
    assert done("tokenize", "--ids", "--special", "-p", "a<bot>") == "97 258\n"
    assert done("run", "--raw", "--special", "-p", "<user><user>turns", "--greedy") == "2 user turns\n"
    assert done("run", "--raw", "-p", "<user><user>turns", "--greedy") == "0 user turns\n"


def test_tokenize():
    assert done("tokenize", "-p", 'a"\n\\') == '      97  "a"\n      34  "\\""\n      10  "\\n"\n      92  "\\\\"\n'
    got = json.loads(done("tokenize", "--json", "-f", "-", stdin=b"xy"))
    assert got == {"schema": "lagen.tokens/1", "ids": [120, 121]}
    assert done("tokenize", "--ids", "-p", "") == "\n"


def test_logits():
    out = done("logits", "-p", "hi", "--top", "2")
    assert re.fullmatch(r'after position 1 \(token 105\)\n +72 +2\d\.\d+ +99\.\d+ %  "H"\n +\d+ .*\n', out), out
    assert done("logits", "--ids", "104,105", "--top", "2") == out
    out = done("logits", "-p", "hi", "--all")
    assert out.count("after position") == 2 and len(out.splitlines()) == 22
    with tempfile.TemporaryDirectory() as folder:
        one, all_ = os.path.join(folder, "one"), os.path.join(folder, "all")
        done("logits", "-p", "abc" * 20, "--raw", one)
        done("logits", "-p", "abc" * 20, "--raw", all_, "--all", "--chunk", "7")
        one, all_ = open(one, "rb").read(), open(all_, "rb").read()
    assert len(one) == 4 * 259 and len(all_) == 60 * len(one) and all_.endswith(one)
    values = struct.unpack("<259f", one)
    assert max(range(259), key=lambda i: values[i]) == ord("H")
    assert "position" in done("logits", "--ids", "5", variant="--bare")


def log_softmax(values, i):
    top = max(values)
    return values[i] - top - math.log(sum(math.exp(v - top) for v in values))


def test_eval():
    text = ("The quick brown fox jumps over the lazy dog. " * 9).encode()
    with tempfile.TemporaryDirectory() as folder:
        path, raw = os.path.join(folder, "text"), os.path.join(folder, "raw")
        open(path, "wb").write(text)
        got = json.loads(done("eval", path, "--ctx", "64", "--json"))
        plain = done("eval", path, "--ctx", "64", "--chunk", "5")
        nll = []
        for w in range(len(text) // 64):
            ids = list(text[64 * w:64 * w + 64])
            done("logits", "--ids", ",".join(map(str, ids)), "--all", "--raw", raw)
            rows = struct.unpack(f"<{64 * 259}f", open(raw, "rb").read())
            nll += [-log_softmax(rows[259 * i:259 * i + 259], ids[i + 1]) for i in range(32, 63)]
        limited = json.loads(done("eval", path, "--ctx", "64", "--json", "--windows", "2"))
    refused(1, "0 tokens; a window has 256", "eval", "-")
    mean = sum(nll) / len(nll)
    error = math.sqrt((sum(x * x for x in nll) / len(nll) - mean * mean) / (len(nll) - 1))
    assert got["schema"] == "lagen.eval/1" and got["windows"] == 6 and got["scored_tokens"] == len(nll) == 186
    for key, want in (("mean_nll", mean), ("stderr_nll", error), ("perplexity", math.exp(mean)),
                      ("stderr_perplexity", math.exp(mean) * error)):
        assert abs(got[key] - want) < 1e-6 * abs(want), (key, got[key], want)
    shown = float(re.search(r"perplexity ([\d.]+)", plain).group(1))
    assert abs(shown - got["perplexity"]) < 1e-6 * shown
    assert limited["windows"] == 2 and limited["scored_tokens"] == 62


def test_bench():
    out = json.loads(done("bench", "--json", "-p", "16,40", "-n", "5", "-d", "0,100", "-r", "3", "-t", "2"))
    assert out["schema"] == "lagen.bench/1" and out["n_threads"] == 2 and out["model"] == "fake"
    assert [t["name"] for t in out["tests"]] == ["pp16", "pp40", "tg5", "pp16@d100", "pp40@d100", "tg5@d100"]
    for t in out["tests"]:
        rates = [(t["n_prompt"] + t["n_gen"]) / s for s in t["seconds"]]
        mean = sum(rates) / 3
        assert len(rates) == 3 and abs(t["avg_ts"] - mean) < 1e-3 * mean
        deviation = math.sqrt(sum((r - mean) ** 2 for r in rates) / 2)
        assert abs(t["stddev_ts"] - deviation) < 1e-2 * deviation + 1e-3 * mean
    out = done("bench", "-r", "1", "--no-warmup")
    assert re.fullmatch(r"pp256 +[\d.]+ \+- 0\.00 tokens/s\ntg128 +[\d.]+ \+- 0\.00 tokens/s\n", out), out


def test_info_and_selftest():
    assert json.loads(done("info", "--json")) == {"schema": "lagen.manifest/1", "name": "fake"}
    out = done("info")
    for part in ("any-cpu", "256 tokens in each of 3 slots", "u32", "3072 bytes", "temperature 0.8"):
        assert part in out, (part, out)
    sizes = [int(n) for n in re.findall(r"^  (?:weights|kv|scratch|io|KV cache|logits) .*?(\d+) bytes$", out, re.M)]
    assert "together" not in out and int(re.search(r"^  total +(\d+) bytes$", out, re.M)[1]) == sum(sizes), out
    assert done("selftest").count("ok  ") >= 3


def test_golden_tokens():
    with tempfile.TemporaryDirectory() as d:
        copy = pathlib.Path(d) / "fake"
        shutil.copy(FAKE, copy)
        def run(*args):
            p = subprocess.run([copy, "selftest", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            return p.returncode, p.stdout.decode() + p.stderr.decode()
        assert "no golden tokens" in run()[1]
        assert run("--bless")[0] == 0
        golden = pathlib.Path(d) / "golden.json"
        text = golden.read_text()
        assert run() == (0, run()[1]) and "are those" in run()[1]
        damaged = {"token": text.replace('"tokens": [72', '"tokens": [73'), "model": text.replace('"fake"', '"fame"'),
                   "cut": text[:-3], "empty": "", "none": text.replace('"prompt": [93', '"prompt": [-1'),
                   "more": text + " "}
        for name, bad in damaged.items():
            assert bad != text, name
            golden.write_text(bad)
            status, out = run()
            assert status == 3 and "golden.json" in out, (name, status, out)


test_golden_tokens.__name__ = "H10 a state file that is cut, changed or of another program"


def test_the_heap_has_a_limit():
    """1 GiB beside the arenas, as `info` says: a text that would take more is refused, and the system holds a running command to it."""
    said = int(re.search(r"all else, at most +(\d+) bytes", done("info"))[1])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "long"
        with open(path, "wb") as f:
            f.truncate(255 << 20)
        for command in (["tokenize"], ["run", "--raw"], ["logits"]):
            refused(1, f"would pass the arena's limit of {said}", *command, "-f", str(path))
    if "/san/" in FAKE:
        return  # their allocator ends the process where malloc fails
    p = subprocess.Popen([FAKE, "chat", "--greedy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdin.write(b"hi\n")
    p.stdin.flush()
    assert p.stdout.read(1)
    of = {name: pathlib.Path(f"/proc/{p.pid}/{name}").read_text() for name in ("limits", "status")}
    limit = int(re.search(r"Max data size +(\d+)", of["limits"])[1])
    now = int(re.search(r"VmData:\s+(\d+)", of["status"])[1]) << 10
    p.communicate()
    assert 0 < limit - now <= said, (limit, now, said)


def test_full_output_is_an_error():
    if not os.path.exists("/dev/full"):
        raise tap.Skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        p = subprocess.run([FAKE, "info"], stdout=full, stderr=subprocess.PIPE)
    assert p.returncode == 1 and b"standard output" in p.stderr


def test_chat_over_a_pipe():
    lines = b"hi\nturns\n\n/stats\n/nonsense\n//turns\n/reset\nturns\nturns \\\nagain\n/quit\nnot read\n"
    status, out, err = call("chat", "--greedy", stdin=lines)
    assert status == 0, err
    assert out == ANSWER + "2 user turns\n3 user turns\n1 user turns\n2 user turns\n", out
    assert "unknown command /nonsense" in err and "end of answer" in err and "begins anew" in err
    status, out, err = call("chat", "--greedy", stdin=b"x" * 300 + b"\nturns\n")
    assert status == 0 and "/reset begins anew" in err and out == "1 user turns\n", (out, err)
    status, out, err = call("chat", "--greedy", "-n", "2", stdin=b"hi\n/system [s]\nturns\n")
    assert out == "He\n1 \n" and "[length]" in err, (out, err)


def test_end_of_input():
    assert call("chat", "--greedy") == (0, "", call("chat", "--greedy")[2])
    assert call("chat", "--greedy", stdin=b"hi")[1] == ANSWER  # a last line without an end
    for closed in ("<&-", ">&-", "<&- >&- 2>&-"):  # streams that are not there
        p = subprocess.run(["sh", "-c", f'"$1" chat --greedy {closed}', "sh", FAKE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=20)
        assert p.returncode in (0, 1), (closed, p)
    p = subprocess.run(["sh", "-c", '"$1" run -p "go on forever" | head -c 5', "sh", FAKE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
    assert p.stdout == b"tick ", p


test_end_of_input.__name__ = "H08 chat at the end of its input, and with nowhere to write"


class Terminal:
    """The program on a pseudo terminal."""

    def __init__(self, *args):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(FAKE, [FAKE, *args], {"TERM": "dumb", "PATH": ""})
        self.text = ""
        self.seen = 0

    def expect(self, pattern, seconds=20):
        """Waits until `pattern` shows behind what was expected before."""
        end = time.monotonic() + seconds
        while True:
            m = re.compile(pattern).search(self.text, self.seen)
            if m:
                self.seen = m.end()
                return m
            left = end - time.monotonic()
            assert left > 0, (pattern, self.text[self.seen:])
            if select.select([self.fd], [], [], left)[0]:
                try:
                    data = os.read(self.fd, 4096)
                except OSError:
                    data = b""
                assert data, (pattern, "ended", self.text[self.seen:])
                self.text += data.decode("utf-8", "replace")

    def prompt(self, seconds=20):
        """Waits for a prompt, and for the line editor behind it: what comes before is not edited."""
        self.expect("> ", seconds)
        end = time.monotonic() + seconds
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            assert time.monotonic() < end, "no line editor"
            time.sleep(0.01)

    def send(self, text):
        os.write(self.fd, text.encode() if isinstance(text, str) else text)

    def status(self, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    self.text += os.read(self.fd, 4096).decode("utf-8", "replace")
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError("does not end: " + self.text)


def test_chat_on_a_terminal():
    t = Terminal("chat", "--greedy")
    t.prompt()
    t.send("go on forever\r")
    t.expect("tick tick tick")
    t.send("\x03")  # ends the answer
    t.expect(r"\[interrupted\]")
    t.prompt()
    t.send("turns\r")  # and not the conversation
    t.expect("2 user turns")
    t.prompt()
    t.send("half a line\x03")  # ends the line
    t.expect(r"leaves\]")
    t.prompt()
    t.send("/help\r")
    t.expect("/system TEXT")
    t.prompt()
    t.send("/sta\x7f\x7f\x7freset\r")  # editing
    t.expect("begins anew")
    t.prompt()
    t.send("turns\r")
    t.expect("1 user turns")
    t.prompt()
    t.send("\x10\r")  # Ctrl-P: the line before
    t.expect("2 user turns")
    t.prompt()
    t.send("\u00f6\u4e2d\r")  # characters of several bytes
    t.expect("Hello, w\u00f6rld!")
    t.prompt()
    t.send("\x04")
    assert t.status() == 0
    t = Terminal("chat", "--greedy")
    t.prompt()
    t.send("/quit\r")
    assert t.status() == 0


def test_chat_ends_by_signals_and_tidies_the_terminal():
    for sign in (signal.SIGTERM, signal.SIGHUP):
        for busy in (False, True):
            t = Terminal("chat", "--greedy")
            t.prompt()
            if busy:
                t.send("go on forever\r")
                t.expect("tick tick tick")
            os.kill(t.pid, sign)
            end = time.monotonic() + 20
            while not termios.tcgetattr(t.fd)[3] & termios.ICANON:
                assert time.monotonic() < end, "the line editor's terminal was left behind"
                time.sleep(0.01)
            assert t.status() == -sign, t.text
    p = subprocess.Popen([FAKE, "chat", "--greedy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdin.write(b"turns\n")
    p.stdin.flush()
    assert p.stdout.readline() == b"1 user turns\n"
    p.terminate()
    assert p.wait(20) == -signal.SIGTERM


def test_interrupts_while_the_prompt_is_read():
    t = Terminal("run", "-p", "forever", "--greedy")
    t.expect("tick tick")
    t.send("\x03")  # `run` ends
    assert t.status() == -signal.SIGINT


def tests():
    found = [f for name, f in globals().items() if name.startswith("test_")]
    if FAKE is not None:
        return found

    def skipped(f):
        def why():
            raise tap.Skip("build/tests/runtime/fake_cli is not built")
        why.__name__ = f.__name__
        return why
    return [skipped(f) for f in found]


if __name__ == "__main__":
    tap.main(tests())
