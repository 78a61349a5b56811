"""--kv-dir: prefixes outlive the program, an end by kill -9 at any moment included; files that are cut, changed, another's or no files are never
read into an answer; a full disk costs nothing but what was to be written. On the scripted model."""
import hashlib
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, chat_body, named

ARGS = ["ctx=4096", "slots=2"]


def folder():
    return tempfile.TemporaryDirectory(prefix="kv")


def ask(s, i, n=1500):
    messages = [{"role": "system", "content": f"{i}. " + "rule " * (n // 5)}, {"role": "user", "content": "#flat hello"}]
    r = s.post("/v1/chat/completions", chat_body(messages, temperature=1, seed=3, max_tokens=8))
    assert r.status == 200, r.body
    u = r.json["usage"]
    return r.json["choices"][0]["message"]["content"], u["prompt_tokens"] - u["prompt_tokens_details"]["cached_tokens"]


def start(dir, *args, stub_args=ARGS, **more):
    return Server("--kv-dir", dir, *args, stub_args=stub_args, **more)


def written(s, seconds=10):
    """Waits until nothing more is written."""
    end, last = time.monotonic() + seconds, -1
    while time.monotonic() < end:
        n = s.metric("prefix_files_written_total")
        if n == last and n > 0:
            return n
        last = n
        time.sleep(0.05)
    raise AssertionError(s.log())


def pages(dir):
    return sorted(pathlib.Path(dir).glob("*/*.page"))


def truth():
    with Server("--prefix-store", 0, stub_args=ARGS) as s:
        return [ask(s, i)[0] for i in range(4)]


@named("H10 what was asked before a new start goes on after it")
def test_restart():
    want = truth()
    with folder() as dir:
        with start(dir) as s:
            assert [ask(s, i)[0] for i in range(4)] == want
        n = len(pages(dir))
        assert n >= 4 * 1500 // 64, n
        with start(dir) as s:
            assert s.metric("prefix_files_read_total") == n
            for i in range(4):
                text, computed = ask(s, i)
                assert text == want[i] and computed < 20, (i, text, computed)
        with start(dir, "--prefix-store", 70000) as s:  # less room than before: the latest, and their files alone
            assert 0 < s.metric("prefix_files_read_total") < n and "the store is full" in s.log()
            assert sum(p.stat().st_size for p in pages(dir)) <= 70000 + 1024 * len(pages(dir))


@named("H10 killed at any moment, the next start reads what is whole")
def test_kill():
    want, rng = truth(), random.Random(5)
    with folder() as dir:
        cached = 0
        for _ in range(10):
            s = start(dir)
            for i in rng.sample(range(4), 2):
                text, computed = ask(s, i)
                assert text == want[i], (i, s.log())
                cached += computed < 1450
            time.sleep(rng.random() * 0.05)
            s.process.send_signal(signal.SIGKILL)
            s.process.wait()
            assert "removed" not in s.log(), s.log()
        assert cached > 4, cached


def spoil(dir, rng, other):
    """Each file in one of several ways; how many."""
    found = pages(dir)
    for k, p in enumerate(found):
        data = bytearray(p.read_bytes())
        way = k % 7
        if way == 0:
            p.write_bytes(data[: rng.randrange(len(data))])
        elif way == 1:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            p.write_bytes(data)
        elif way == 2:
            p.write_bytes(data + b"\0")
        elif way == 3:
            p.unlink()
            p.symlink_to(other[k % len(other)])
        elif way == 4:
            p.write_bytes(found[(k + 1) % len(found)].read_bytes() if k + 1 < len(found) else b"")
        elif way == 5:
            p.unlink()
            os.mkfifo(p)
        else:
            p.write_bytes(bytes(rng.randrange(256) for _ in range(len(data))))
    return len(found)


@named("H10 files that are cut, changed, another's, links and pipes are not read")
def test_spoilt():
    want, rng = truth(), random.Random(3)
    with folder() as dir, folder() as twin:
        for d in (dir, twin):
            with start(d) as s:
                [ask(s, i) for i in range(4)]
        n = spoil(dir, rng, pages(twin))
        program = next(pathlib.Path(dir).iterdir())
        (program / "notes.txt").write_text("mine")
        (program / ("0" * 64 + ".page")).mkdir()
        with start(dir) as s:
            assert s.metric("prefix_files_read_total") == 0, s.log()
            log = s.log()
            assert log.count("prefix file") >= n and "notes.txt" in log
            for what in ("its size is wrong", "it is damaged", "its name is not that of its tokens", "no regular file", "Too many levels"):
                assert what in log or what == "it is damaged", (what, log[-3000:])
            assert [ask(s, i)[0] for i in range(4)] == want
            written(s)
        assert (program / "notes.txt").read_text() == "mine" and all(p.exists() for p in pages(twin))
        one = pages(twin)[:1]
        data = bytearray(one[0].read_bytes())
        data[-40] ^= 1  # in the last part's bytes: the digest alone tells
        one[0].write_bytes(data)
        with start(twin) as s:
            assert "it is damaged" in s.log(), s.log()
            assert [ask(s, i)[0] for i in range(4)] == want


HEAD = struct.Struct("<16s32s32s6I2Q64I")


def forge(data, rng):
    """A file with one number of its head changed and all digests made anew: (name, bytes)."""
    values = list(HEAD.unpack_from(data))
    field = rng.choice([2, *range(3, 11), *range(11, 75)])
    if field == 2:
        values[2] = rng.randbytes(32)
    else:
        values[field] = rng.choice([0, 1, 15, 63, 64, 65, 4096, 2**31, 2**32 - 1, values[field] + 1])
    n = values[4] if values[4] <= 64 else 64
    tokens = values[11: 11 + n] + [0] * (64 - n)
    name = hashlib.sha256(values[2] + struct.pack("<I64I", values[4], *tokens)).hexdigest() + ".page"
    body = HEAD.pack(*values) + data[HEAD.size:-32]
    return name, body + hashlib.sha256(body).digest()


@named("H10 files with wrong numbers and right digests")
def test_forged():
    want, rng = truth(), random.Random(9)
    with folder() as dir:
        with start(dir) as s:
            assert [ask(s, i)[0] for i in range(4)] == want
        program = next(pathlib.Path(dir).iterdir())
        whole = [p.read_bytes() for p in pages(dir)]
        for p in pages(dir):
            p.unlink()
        for _ in range(300):
            name, data = forge(rng.choice(whole), rng)
            (program / name).write_bytes(data)
        with start(dir) as s:
            assert s.log().count("prefix file removed") > 100, s.log()
            for _ in range(2):
                got = [ask(s, i)[0] for i in range(4)]
                assert got == want, s.log()


@named("H10 another program's files, and a folder that another process has")
def test_foreign():
    want = truth()
    with folder() as dir:
        with start(dir, stub_args=["ctx=4096", "slots=2"]) as s:
            [ask(s, i) for i in range(2)]
        mine = next(pathlib.Path(dir).iterdir())
        other = tempfile.mkdtemp(prefix="kvprog")
        program = pathlib.Path(other) / "stub_server"
        shutil.copy(client.stub(), program)
        with program.open("ab") as f:
            f.write(b"another build")
        with Server("--kv-dir", dir, program=str(program), stub_args=ARGS) as s:
            assert s.metric("prefix_files_read_total") == 0
            assert ask(s, 0)[0] == want[0]
        theirs = [p for p in pathlib.Path(dir).iterdir() if p != mine]
        assert len(theirs) == 1
        for p in theirs[0].glob("*.page"):  # under our name now
            shutil.copy(p, mine / p.name)
        with start(dir) as s:
            assert s.log().count("another program") >= 20, s.log()
            assert [ask(s, i)[0] for i in range(4)] == want
            second = start(dir, wait=False)
            assert second.process.wait(20) == 5 and "another process uses it" in second.log(), second.log()
        shutil.rmtree(other)


@named("H10 a folder that cannot be, and a disk that is full")
def test_full_disk():
    want = truth()
    with folder() as dir:
        blocked = pathlib.Path(dir) / "file"
        blocked.write_text("")
        for path, status in ((blocked, 1), (blocked / "x", 1)):
            s = start(path, wait=False)
            assert s.process.wait(20) == status and "--kv-dir" in s.log(), s.log()
        s = start(dir, "--prefix-store", 0, wait=False)
        assert s.process.wait(20) == 2, s.log()
    with folder() as dir:  # a limit on files' sizes is as good as a full disk; the log must not be a file then
        limited = ["sh", "-c", 'trap "" XFSZ; ulimit -f 1; exec "$@"', "sh", client.stub(), *ARGS, "--port", "0", "--kv-dir", dir]
        process = subprocess.Popen(limited, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        log = b""
        while b"listening" not in log:
            log += process.stderr.readline()
        s = Server.__new__(Server)
        s.key, s.port = None, int(log.split(b"http://127.0.0.1:")[1].split()[0])
        assert [ask(s, i)[0] for i in range(4)] == want
        end = time.monotonic() + 10
        while s.metric("prefix_files_failed_total") == 0:
            assert time.monotonic() < end
            time.sleep(0.02)
        process.terminate()
        assert process.wait(20) == 0
        assert b"prefix not written" in process.stderr.read()
        assert not pages(dir) and not list(pathlib.Path(dir).glob("*/*.tmp"))


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
