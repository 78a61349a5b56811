"""The server as a process: options, health, models, errors of both vendors, keys, origins, signals, exit statuses."""
import hashlib
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, named


def call(*args):
    p = subprocess.run([client.stub(), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def test_help():
    status, out, err = call("--help")
    assert status == 0 and err == "" and out.startswith("usage: stub_server")
    for option in ("--host", "--port", "--api-key-file", "--slots", "--queue", "--drain", "--log"):
        assert option in out, option
    assert all(len(line) <= 100 for line in out.splitlines()), out


def test_usage_errors():
    for what, args in {
        "unknown option '--frobnicate'": ["--frobnicate"], "unexpected argument": ["more"],
        "--port": ["--port", "65536"], "1 to 4": ["--slots", "5"], "1 to 64": ["--chunk", "65"],
        "'xml' is none of text, json": ["--log", "xml"], "no numeric": ["--host", "localhost"],
        "--name": ["--name", ""], "--drain": ["--drain", "-1"]}.items():
        status, out, err = call(*args)
        assert status == 2 and out == "" and err.count("\n") == 1 and what in err, (args, status, err)


def test_key_files():
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "keys"
        status, _, err = call("--api-key-file", str(path))
        assert status == 1 and str(path) in err, err
        for text, what in (("", "holds no key"), ("# none\n\n", "holds no key"), ("short\n", "bytes")):
            path.write_text(text)
            status, _, err = call("--api-key-file", str(path))
            assert status == 1 and what in err, (text, err)


def test_exit_statuses():
    status, _, err = call("big")
    assert status == 5 and "ended" in err, (status, err)
    status, _, err = call("wordless")
    assert status == 1 and "no tokenizer" in err, (status, err)
    with Server() as s:
        status, _, err = call("--port", str(s.port))
        assert status == 1 and f"port {s.port}" in err and "model loaded" not in err, err


def test_health_models_metrics():
    with Server("--name", "a \"name\"") as s:
        r = s.get("/health")
        assert r.status == 200 and r.json == {"status": "ok", "running": 0, "waiting": 0}
        r = s.get("/v1/models")
        model = r.json["data"][0]
        assert r.json["object"] == "list" and model["id"] == "a \"name\"" and model["max_model_len"] == 4096
        r = s.get("/v1/models", headers={"anthropic-version": "2023-06-01"})
        assert r.json["has_more"] is False and r.json["data"][0]["type"] == "model"
        ids = {s.get("/health").headers["x-request-id"] for _ in range(20)}
        assert len(ids) == 20
        text = s.get("/metrics").body.decode()
        assert 'lagen_requests_total{status="2xx"} 23\n' in text, text
        assert "# TYPE lagen_steps_total counter" in text


def test_page():
    with Server() as s:
        r = s.get("/")
        text = r.body.decode()
        assert r.status == 200 and r.headers["Content-Type"].startswith("text/html") and "default-src 'none'" in r.headers["Content-Security-Policy"]
        assert text.startswith("<!doctype html>") and "http://" not in text and "https://" not in text and "innerHTML" not in text


def test_errors_have_the_vendors_shape():
    with Server() as s:
        r = s.get("/v1/nothing")
        assert r.status == 404 and r.json["error"]["type"] == "not_found_error" and r.json["error"]["param"] is None
        r = s.get("/v1/messages/nothing")
        assert r.status == 404 and r.json["type"] == "error" and r.json["error"]["type"] == "not_found_error"
        assert r.json["request_id"] == r.headers["request-id"]
        r = s.post("/health", {})
        assert r.status == 405 and r.headers["Allow"] == "GET"
        c, r, _ = s.open("HEAD", "/health")
        assert r.status == 200 and r.read() == b""
        c.close()


def test_keys():
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "keys"
        path.write_text("# ours\nfirst-key-1\r\nsecond-key\n")
        with Server("--api-key-file", path) as s:
            assert s.get("/health").status == 200
            for headers in ({}, {"Authorization": "Bearer nonsense"}, {"x-api-key": "first-key-"},
                            {"Authorization": "first-key-1"}, {"x-api-key": ""}):
                r = s.get("/v1/models", headers=headers)
                assert r.status == 401 and r.json["error"]["code"] == "invalid_api_key", headers
                assert s.get("/nothing", headers=headers).status == 401  # what is there is not told
            for headers in ({"Authorization": "Bearer first-key-1"}, {"x-api-key": "second-key"},
                            {"authorization": "bearer  second-key"}):
                assert s.get("/v1/models", headers=headers).status == 200, headers
            r = s.post("/v1/messages", {}, headers={"anthropic-version": "2023-06-01"})
            assert r.status == 401 and r.json["error"]["type"] == "authentication_error"


@named("E12 browsers: preflight, keys, origins")
def test_browsers():
    with tempfile.TemporaryDirectory() as d:
        path = pathlib.Path(d) / "keys"
        path.write_text("the-only-key\n")
        with Server("--api-key-file", path, "--allow-origin", "https://app.example") as s:
            for origin in ("http://localhost:5173", "https://app.example", f"http://127.0.0.1:{s.port}"):
                r = s.ask("OPTIONS", "/v1/chat/completions", headers={
                    "Origin": origin, "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": "authorization,x-api-key,anthropic-version"})
                assert r.status == 204 and r.headers["Access-Control-Allow-Origin"] == origin
                allowed = r.headers["Access-Control-Allow-Headers"].lower()
                assert "x-api-key" in allowed and "authorization" in allowed and "anthropic-version" in allowed
                assert "POST" in r.headers["Access-Control-Allow-Methods"]
                for status, headers in ((401, {}), (200, {"x-api-key": "the-only-key"})):
                    r = s.get("/v1/models", headers={"Origin": origin, **headers})
                    assert r.status == status and r.headers["Access-Control-Allow-Origin"] == origin
            for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example", "http://localhost.evil"):
                r = s.ask("OPTIONS", "/v1/models", headers={"Origin": origin})
                assert r.status == 403 and r.headers["Access-Control-Allow-Origin"] is None, origin
                assert s.get("/health", headers={"Origin": origin}).status == 403, origin
    with Server("--allow-origin", "*") as s:
        assert s.get("/health", headers={"Origin": "null"}).headers["Access-Control-Allow-Origin"] == "null"


def test_hosts():
    with Server() as s:
        for host in ("localhost", f"localhost:{s.port}", "127.0.0.1", "127.1.2.3:80", "[::1]:1"):
            assert s.get("/health", headers={"Host": host}).status == 200, host
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[::2]"):
            assert s.get("/health", headers={"Host": host}).status == 403, host
        assert b" 200 OK" in s.raw(b"GET /health HTTP/1.0\r\n\r\n")
        assert b" 400 " in s.raw(b"GET /health HTTP/1.1\r\n\r\n").split(b"\r\n")[0]
    with Server("--allow-host", "box.example") as s:
        assert s.get("/health", headers={"Host": "box.example:1234"}).status == 200
        assert s.get("/health", headers={"Host": "localhost"}).status == 403


def test_log_forms():
    with Server("--log", "json") as s:
        s.get("/nothing\"%22")
        s.wait_log("/nothing")
        lines = [json.loads(line) for line in s.log().splitlines()]
        assert [x["event"] for x in lines[:5]] == ["model loaded", "self-test passed", "prefix store", "memory", "listening"]
        assert lines[-1]["path"] == "/nothing\"\"" and lines[-1]["status"] == 404 and lines[-1]["took_ms"] >= 0


def test_golden_tokens():
    with tempfile.TemporaryDirectory() as d:
        copy = pathlib.Path(d) / "stub"
        shutil.copy(client.stub(), copy)
        for tokens, status in (([256] * 16, 0), ([256] * 15 + [255], 1)):
            text = ('{"schema": "lagen.golden/1",\n "model": "stub",\n "row": "any-cpu",\n "weights": "linked",\n '
                    f'"prompt": {list(range(1, 25))},\n "tokens": {tokens}')
            digest = hashlib.sha256(text.encode()).hexdigest()
            (pathlib.Path(d) / "golden.json").write_text(f'{text},\n "sha256": "{digest}"}}\n')
            s = Server(program=str(copy), wait=status == 0)
            if status == 0:
                assert "golden_tokens=yes" in s.log()
                s.stop()
            else:
                assert s.process.wait(30) == 1 and "token 15 is 256 and was 255" in s.log(), s.log()
                assert "listening" not in s.log()


def test_signals():
    for how in (signal.SIGTERM, signal.SIGINT):
        s = Server()
        idle = socket.create_connection(("127.0.0.1", s.port))
        begin = time.monotonic()
        assert s.stop(how) == 0 and time.monotonic() - begin < 5
        idle.close()
        assert "stopping" in s.log() and s.log().rstrip().endswith("ended")


def test_ipv6():
    s = Server("--host", "::1", wait=False)
    s.wait_log("listening")
    assert "http://[::1]:" in s.log() or "ended" in s.log()
    s.stop()


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
