"""What must not harm the server: failing steps, hostile bytes, slow and vanishing clients, too much of everything. After each of
them it answers as before."""
import concurrent.futures
import json
import pathlib
import re
import signal
import socket
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, chat_body, named

HELLO = "Hello from the stub."


def fine(s):
    r = s.chat("hi")
    assert r.status == 200 and r.json["choices"][0]["message"]["content"] == HELLO, r.body


def post_bytes(body, *headers, path="/v1/chat/completions", version="1.1"):
    head = f"POST {path} HTTP/{version}\r\nHost: localhost\r\n" + "".join(h + "\r\n" for h in headers)
    return head.encode() + b"\r\n" + body


BODY = json.dumps(chat_body("hi")).encode()


def memory_of(s):
    status = pathlib.Path(f"/proc/{s.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) << 10


@named("bodies beyond the memory budget fail alone")
def test_memory_budget():
    """60 bodies of 31 MiB at once are more than the budget: some are refused or cut off, none of the others harmed, and the process
    stays within what it said at its start. (Sanitizers need the address space: their builds have no limit.)"""
    plain = client.ROOT / "build/tests/server/stub_server"
    if not plain.exists():
        raise client.tap.Skip("build/tests/server/stub_server is not built")
    with Server(program=str(plain)) as s:
        limit = int(re.search(r"heap_at_most=(\d+)", s.log()).group(1))
        size, before = 31 << 20, memory_of(s)
        assert limit == 1 << 30 and 60 * size > limit
        piece, conns, most = b" " * (1 << 20), [], 0
        for _ in range(60):
            c = socket.create_connection(("127.0.0.1", s.port), 20)
            c.settimeout(20)
            c.sendall(post_bytes(b"", f"Content-Length: {size + 1}"))
            conns.append(c)
        cut = 0
        for c in conns:
            try:
                for _ in range(31):
                    c.sendall(piece)
            except OSError:
                cut += 1
            most = max(most, memory_of(s))
        assert cut > 0 and most <= before + limit, (cut, most)
        fine(s)
        for c in conns:
            c.close()
        fine(s)


@named("E24 HTTP framing")
def test_framing(s):
    def chunked(parts):
        return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"
    end = "Connection: close"
    for version in ("1.1",):
        got = s.raw(post_bytes(chunked([BODY[:5], BODY[5:6], BODY[6:]]), "Transfer-Encoding: chunked", end, version=version))
        assert got.startswith(b"HTTP/1.1 200") and HELLO.encode() in got, got
    got = s.raw(post_bytes(BODY, f"Content-Length: {len(BODY)}", version="1.0"))
    assert b" 200 " in got[:20] and HELLO.encode() in got, got
    big = json.dumps(chat_body("x", padding="y" * 2_000_000)).encode()
    with socket.create_connection(("127.0.0.1", s.port), 20) as c:
        c.sendall(post_bytes(b"", f"Content-Length: {len(big)}", "Expect: 100-continue", end))
        assert c.recv(100).startswith(b"HTTP/1.1 100"), "no 100"
        c.sendall(big)
        got = b"".join(iter(lambda: c.recv(65536), b""))
        assert got.startswith(b"HTTP/1.1 200") and HELLO.encode() in got
    one = post_bytes(BODY, f"Content-Length: {len(BODY)}")
    got = s.raw(one + post_bytes(BODY, f"Content-Length: {len(BODY)}", end))  # two at once
    assert got.count(HELLO.encode()) == 2, got
    got = s.raw(post_bytes(chunked([BODY]), f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked"))
    assert got.startswith(b"HTTP/1.1 400") and b"onnection: close" in got and got.count(b"HTTP/1.1") == 1, got
    for headers in ([f"Content-Length: {len(BODY)}", "Content-Length: 5"], [f"Content-Length: {len(BODY)}", "Host: other"], ["Transfer-Encoding: chunked, chunked"],
                    ["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"], ["Transfer-Encoding: identity"]):
        got = s.raw(post_bytes(chunked([BODY]) if "Trans" in headers[0] else BODY, *headers))
        assert got.startswith(b"HTTP/1.1 400") and b"onnection: close" in got and got.count(b"HTTP/1.1") == 1, (headers, got)
    got = s.raw(post_bytes(b"", end))
    assert got.startswith(b"HTTP/1.1 400") and b"empty" in got, got
    for bad in (b"G\r\n\r\n", b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET /health\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\nzz\r\n",
                b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n", b"GET /%00/%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", s.port), 5) as c:
            c.sendall(bad)
            c.shutdown(socket.SHUT_WR)
            got = b"".join(iter(lambda: c.recv(65536), b""))
        assert b" 200 " not in got[:20], (bad, got)
    fine(s)


@named("H01 a lost device turns the health red and ends the process with 70")
def test_lost():
    s = Server("--slots", 2)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        other = pool.submit(lambda: s.stream("/v1/chat/completions", chat_body("#delay=5 #loop say:x", stream=True)).all())
        time.sleep(0.2)
        r = s.chat("#lost=3 say:abcdef")
        assert r.status == 503 and "lost" in r.error, r.body
        h = s.get("/health")
        assert h.status == 503 and h.json["status"] == "device lost"
        assert s.chat("hi").status == 503
        last = other.result()[-1][1]
        assert "lost" in last["error"]["message"], last
    assert s.process.wait(20) == 70 and "device lost" in s.log()


@named("H02 nesting that kills parsers is refused, in fields that nobody reads too")
def test_depth(s):
    def ask(text):
        return s.post("/v1/chat/completions", '{"messages": [{"role": "user", "content": "hi"}], "x": %s}' % text)
    for n in (63, 64, 65, 126, 127):
        assert ask("[" * n + "]" * n).status == 200, n
        assert ask('{"a":' * n + "1" + "}" * n).status == 200, n
    for n in (128, 129, 10_000, 1_000_000):
        for text in ("[" * n + "]" * n, '{"a":' * n + "1" + "}" * n, "[" * n, '[{"a":' * n):
            r = ask(text)
            assert r.status == 400 and "JSON" in r.error, (n, r.body)
    fine(s)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    for n in (100, 3000):
        r = s.chat("say:<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": " + "[" * n + "]" * n + "}}</tool_call>", tools=tools)
        assert r.status in (200, 400), r.body
        deep = [{"type": "function", "function": {"name": "f", "parameters": json.loads('{"a":' * 50 + "{}" + "}" * 50)}}]
    assert s.chat("hi", tools=deep).status in (200, 400)
    assert s.post("/v1/chat/completions", "[" * 3000).status == 400
    fine(s)


@named("H04 a step that fails while a prompt is read costs that request alone")
def test_failing_prompt(s):
    r = s.chat("#pfail=100 " + "x" * 500)
    assert r.status == 500 and r.json["error"]["type"] == "server_error" and "position 100" in r.error, r.body
    fine(s)
    events = s.stream("/v1/chat/completions", chat_body("#pfail=100 " + "x" * 500, stream=True)).all()
    assert "position 100" in events[-1][1]["error"]["message"] and events[-1][1]["error"]["type"] == "server_error"
    events = s.stream("/v1/messages", {**chat_body("#pfail=100 " + "x" * 500, stream=True), "max_tokens": 5}).all()
    assert events[-1][0] == "error" and events[-1][1]["error"]["type"] == "api_error"
    fine(s)


@named("rows of prompts and of answers take turns where they are computed otherwise")
def test_turns():
    with Server("--prompt-rows", 4, stub_args=["chunk=16", "apart"]) as s:
        text = "#delay=2 say:" + "the quick brown fox " * 40
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = [pool.submit(lambda: s.chat(text).status) for _ in range(2)]
            time.sleep(0.1)
            steps = s.metric("steps_total")
            assert s.chat("#prefill=1 " + "x" * 400).status == 200
            steps = s.metric("steps_total") - steps
            assert [f.result() for f in answers] == [200, 200]
        assert steps >= 2 * 400 // 4 - 20, steps  # a step of answers between any two of the prompt's
        fine(s)


def test_failures_beside_others(s):
    """Streams beside failing requests say what they say alone."""
    text = "#delay=2 say:" + "the quick brown fox " * 20
    want = s.chat(text).json["choices"][0]["message"]["content"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        streams = [pool.submit(lambda: s.chat(text).json["choices"][0]["message"]["content"]) for _ in range(3)]
        time.sleep(0.1)
        for _ in range(4):
            assert s.chat("#fail=2 say:abcdef").status == 500
            assert s.chat("#nan=1 say:abcdef").status == 500
        assert all(f.result() == want for f in streams)
    assert s.metric("answers_failed_total") == 8


@named("A01 H04 24,438 tokens, then 500 more: the second prompt is not read again")
def test_long_prompts():
    with Server(stub_args=["ctx=32768", "slots=2", "chunk=512"]) as s:
        messages = [{"role": "user", "content": "y" * 24400 + "say:first"}]
        first = s.post("/v1/chat/completions", chat_body(messages))
        assert first.status == 200 and first.json["usage"]["prompt_tokens"] > 24400
        messages += [first.json["choices"][0]["message"], {"role": "user", "content": "z" * 490 + "say:second"}]
        s.chat("something short beside it")
        second = s.post("/v1/chat/completions", chat_body(messages)).json
        usage = second["usage"]
        assert second["choices"][0]["message"]["content"] == "second"
        assert usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"] < 1200, usage


@named("H14 logits that are no numbers fail the request")
def test_no_numbers(s):
    for what in ("nan", "inf", "ninf"):
        for k in (0, 2):
            r = s.chat(f"#{what}={k} say:abcdef")
            assert r.status == 500, (what, r.body)
            r = s.chat(f"#{what}={k} say:abcdef", temperature=0, logprobs=True, top_logprobs=2)
            assert r.status == 500, (what, r.body)
    fine(s)


@named("H06 nobody starves: first in, first out")
def test_order():
    with Server("--slots", 1) as s:
        waits = []
        def work():
            for _ in range(50):
                begin = time.monotonic()
                assert s.chat("#delay=1 say:abc").status == 200
                waits.append(time.monotonic() - begin)
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert len(waits) == 200 and max(waits) < 4 * statistics.median(waits) + 0.2, (max(waits), statistics.median(waits))


def test_queue_is_bounded():
    with Server("--slots", 1, "--queue", 2) as s:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(s.chat, "#delay=50 say:abcdefgh") for _ in range(6)]
            statuses = sorted(a.result().status for a in answers)
            assert statuses == [200] * 3 + [429] * 3, statuses
            refused = next(a.result() for a in answers if a.result().status == 429)
            assert refused.headers["Retry-After"] == "1" and refused.json["error"]["type"] == "rate_limit_error"
            busy = [pool.submit(s.chat, "#delay=100 say:abcdefgh") for _ in range(3)]
            end = time.monotonic() + 5
            while s.get("/health").json["waiting"] < 2:
                assert time.monotonic() < end, [b.result().status for b in busy]
                time.sleep(0.01)
            r = s.post("/v1/messages", {**chat_body("hi"), "max_tokens": 5})
            assert r.status == 429 and r.json["error"]["type"] == "rate_limit_error"
            assert s.chat("hi", n=4).status == 429  # all or none
            [b.result() for b in busy]
        fine(s)
        assert s.metric("queue_full_total") == 5


@named("H09 idle and slow connections, few descriptors")
def test_connections():
    with Server("--header-timeout", 1, limit_files=64) as s:
        base = s.n_files()
        idle = []
        for _ in range(100):
            c = socket.socket()
            c.settimeout(5)
            c.connect(("127.0.0.1", s.port))
            idle.append(c)
        slow = socket.create_connection(("127.0.0.1", s.port))
        begin = time.monotonic()
        gone = False
        for ch in b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100:
            try:
                slow.send(bytes([ch]))
                slow.settimeout(0.05)
                if slow.recv(10) == b"":
                    gone = True
                    break
            except TimeoutError:
                pass
            except OSError:
                gone = True
                break
        assert gone and time.monotonic() - begin < 5
        [c.close() for c in idle]
        end = time.monotonic() + 10
        while s.n_files() > base and time.monotonic() < end:
            time.sleep(0.05)
        assert s.n_files() <= base, (s.n_files(), base)
        fine(s)
        times = pathlib.Path(f"/proc/{s.process.pid}/stat").read_text().split()
        assert int(times[13]) + int(times[14]) < 400  # hundredths of a second: nothing spins


def test_500_idle_connections():
    with Server() as s:
        idle = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(500)]
        begin = time.monotonic()
        fine(s)
        assert time.monotonic() - begin < 2 and s.metric("connections") >= 500
        [c.close() for c in idle]
        fine(s)


def test_slow_bodies():
    with Server("--header-timeout", 1) as s:
        c = socket.create_connection(("127.0.0.1", s.port))
        c.sendall(post_bytes(b"{", "Content-Length: 1000"))
        begin = time.monotonic()
        c.settimeout(0.2)
        while time.monotonic() - begin < 15:
            try:
                c.send(b" ")
                if c.recv(100) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        assert 4 < time.monotonic() - begin < 9
        fine(s)


def test_clients_that_do_not_read():
    with Server("--header-timeout", 1, "--min-rate", 0) as s:
        base = s.n_files()
        c = socket.socket()
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect(("127.0.0.1", s.port))
        body = json.dumps(chat_body("say:" + "x" * 3000, stream=True, n=16)).encode()
        c.sendall(post_bytes(body, f"Content-Length: {len(body)}"))
        time.sleep(0.3)
        fine(s)  # slots do not wait for it
        end = time.monotonic() + 10
        while s.n_files() > base and time.monotonic() < end:
            time.sleep(0.05)
        assert s.n_files() <= base
        c.close()
        fine(s)


@named("H15 oversized fields of HTTP")
def test_oversized(s):
    line = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
    for data, statuses in (
            (line + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n", b"431 413 400"), (line + b"X: y\r\n" * 100_000 + b"\r\n", b"431 413 400"),
            (b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"414 431 400"),
            (post_bytes(BODY, f"Content-Length: {2**63}"), b"413 400"), (post_bytes(BODY, f"Content-Length: {2**64 + 5}"), b"413 400"),
            (post_bytes(BODY, "Content-Length: -1"), b"400 413"), (post_bytes(BODY, "Content-Length: 5 5"), b"400 413"),
            (post_bytes(BODY, "Content-Length: 0x10"), b"400 413"), (post_bytes(BODY, "Content-Length: " + "9" * 100), b"400 413")):
        got = s.raw(data)
        assert got == b"" or got.split(b" ")[1] in statuses.split(), (data[:80], got[:200])
        fine(s)


def test_body_limit():
    with Server("--body-limit", "1MiB") as s:
        big = b'{"x": "' + b"y" * (1 << 20) + b'"}'
        r = s.post("/v1/chat/completions", big)
        assert r.status == 413 and r.json["error"]["type"] == "invalid_request_error" and "1048576" in r.error
        r = s.post("/v1/messages", big)
        assert r.status == 413 and r.json["error"]["type"] == "request_too_large"
        got = s.raw(post_bytes(b"%x\r\n%s\r\n0\r\n\r\n" % (len(big), big), "Transfer-Encoding: chunked"))
        assert got.split(b" ")[1] == b"413", got
        fine(s)
    with Server() as s:
        got = b""
        with socket.create_connection(("127.0.0.1", s.port), 20) as c:
            try:
                c.sendall(post_bytes(b"x" * (64 << 20), f"Content-Length: {64 << 20}"))
            except OSError:
                pass
            try:
                got = c.recv(1000)
            except OSError:
                pass
        assert got == b"" or b" 413 " in got
        fine(s)
        text = "word " * 400_000  # 2 MB that is read, rendered and encoded, and does not fit
        r = s.chat(text)
        assert r.status == 400 and "4096" in r.error
        fine(s)


def test_termination():
    s = Server("--slots", 1, "--drain", 5)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = pool.submit(s.chat, "#delay=50 say:abcdefghij")
        queued = pool.submit(s.chat, "say:waited")
        time.sleep(0.2)
        idle = s.connect()
        idle.request("GET", "/health")
        assert idle.getresponse().read()
        s.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        idle.request("GET", "/health")  # a connection that is open sees it
        r = idle.getresponse()
        assert r.status == 503 and json.loads(r.read())["status"] == "stopping"
        idle.request("POST", "/v1/chat/completions", json.dumps(chat_body("hi")))
        r = idle.getresponse()
        assert r.status == 503 and r.headers["Retry-After"]
        r.read()
        try:
            socket.create_connection(("127.0.0.1", s.port), 2)
            raise AssertionError("a new connection was taken")
        except OSError:
            pass
        assert running.result().json["choices"][0]["message"]["content"] == "abcdefghij"
        assert queued.result().json["choices"][0]["message"]["content"] == "waited"
    assert s.process.wait(10) == 0
    s = Server("--drain", 20)  # what was made is sent to its end, to slow readers too
    with socket.socket() as c:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.connect(("127.0.0.1", s.port))
        body = json.dumps(chat_body("say:" + "x" * 1000, stream=True, n=16)).encode()
        c.sendall(post_bytes(body, f"Content-Length: {len(body)}"))
        while s.metric("answer_tokens_total") < 16000:
            time.sleep(0.01)
        s.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        c.settimeout(10)
        got = b""
        while not got.endswith(b"0\r\n\r\n"):
            part = c.recv(1 << 20)
            assert part, got[-300:]
            got += part
        assert b"data: [DONE]\n\n" in got[-40:]
    assert s.process.wait(10) == 0
    for second in (False, True):  # the drain ends by itself, or by a second signal
        s = Server("--drain", 1 if not second else 60)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            endless = pool.submit(lambda: s.stream("/v1/chat/completions", chat_body("#delay=10 #loop say:x", stream=True)).all())
            time.sleep(0.2)
            begin = time.monotonic()
            s.process.send_signal(signal.SIGTERM)
            if second:
                time.sleep(0.2)
                s.process.send_signal(signal.SIGTERM)
            assert s.process.wait(10) == 0 and time.monotonic() - begin < 4
            try:
                assert endless.result()[-1][1] != "[DONE]"
            except Exception:  # cut off in the middle is as good
                pass


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
