"""Starts the server over the scripted model (or an emitted one) and talks to it: JSON, event streams, raw sockets."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402  (the tests take it from here)


def stub():
    for build in ("build/san", "build"):
        path = ROOT / build / "tests" / "server" / "stub_server"
        if path.exists():
            return str(path)
    return None


class Reply:
    """A whole answer."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """Message of an error in either API's shape."""
        return self.json["error"]["message"]


class Events:
    """A stream of server-sent events as it arrives: (event or None, data) with seconds since the request."""

    def __init__(self, connection, response, begin):
        self.connection, self.response, self.begin = connection, response, begin
        self.status, self.headers = response.status, response.headers
        self.raw = b""

    def __iter__(self):
        event, data = None, []
        while True:
            line = self.response.readline()
            if not line:
                return
            self.raw += line
            line = line.decode().rstrip("\n")
            if line.startswith(":"):
                yield "comment", line[1:].strip(), time.monotonic() - self.begin
            elif line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data.append(line[6:])
            elif line == "" and data:
                yield event, "\n".join(data), time.monotonic() - self.begin
                event, data = None, []

    def all(self):
        """Data of every event, parsed where it is JSON; comments left out."""
        out = [(e, d) for e, d, _ in self if e != "comment"]
        return [(e, d if d == "[DONE]" else json.loads(d)) for e, d in out]

    def close(self):
        self.response.close()
        self.connection.close()


class Server:
    def __init__(self, *args, program=None, stub_args=(), env=None, wait=True, limit_files=None, key=None):
        self.log_file = tempfile.NamedTemporaryFile("w+", suffix=".log")
        command = [program or stub(), *map(str, stub_args), "--port", "0", *map(str, args)]
        if limit_files:
            command = ["sh", "-c", f"ulimit -n {limit_files}; exec \"$@\"", "sh", *command]
        self.key = key
        self.process = subprocess.Popen(command, stderr=self.log_file, stdout=subprocess.DEVNULL,
                                        env=dict(os.environ, **(env or {})))
        self.port = None
        if wait:
            self.wait_port()

    def log(self):
        return pathlib.Path(self.log_file.name).read_text()

    def wait_port(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = re.search(r"http://\S+?:(\d+)", self.log())
            if found:
                self.port = int(found.group(1))
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        raise AssertionError(f"the server did not start: {self.log()}")

    def wait_log(self, text, seconds=10):
        end = time.monotonic() + seconds
        while text not in self.log():
            assert time.monotonic() < end, (text, self.log())
            time.sleep(0.01)

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def open(self, method, path, body=None, headers=None, timeout=60):
        c = self.connect(timeout)
        headers = dict(headers or {})
        if self.key and "Authorization" not in headers:
            headers["Authorization"] = f"Bearer {self.key}"
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            headers.setdefault("Content-Type", "application/json")
        begin = time.monotonic()
        with contextlib.suppress(BrokenPipeError):  # an answer may come before all of a body is sent
            c.request(method, path, body=body, headers=headers)
        return c, c.getresponse(), begin

    def ask(self, method, path, body=None, headers=None, timeout=60):
        c, r, _ = self.open(method, path, body, headers, timeout)
        with contextlib.closing(c):
            return Reply(r.status, r.headers, r.read())

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body, **more):
        return self.ask("POST", path, body, **more)

    def stream(self, path, body, **more):
        c, r, begin = self.open("POST", path, body, **more)
        return Events(c, r, begin)

    def chat(self, text, **more):
        return self.post("/v1/chat/completions", chat_body(text, **more))

    def raw(self, data, timeout=20):
        """Sends bytes, returns all that comes until the server closes or says nothing for a while."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            s.sendall(data)
            got = b""
            with contextlib.suppress(ConnectionError, TimeoutError):
                while True:
                    part = s.recv(65536)
                    if not part:
                        break
                    got += part
            return got

    def metric(self, name):
        text = self.get("/metrics").body.decode()
        return int(re.search(rf"^lagen_{name} (\d+)$", text, re.M).group(1))

    def n_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self, how=signal.SIGTERM, seconds=30):
        """Ends the server; its exit status, which is 0 for a server that a signal ends."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(seconds)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            sys.stdout.write("".join(f"# log: {line}\n" for line in self.log().splitlines()[-30:]))
            self.process.kill()
            self.process.wait()
            return
        status = self.stop()
        assert status in (0, 70), (status, self.log()[-3000:])
        assert "Sanitizer" not in self.log(), self.log()[-3000:]


def chat_body(text, **more):
    messages = text if isinstance(text, list) else [{"role": "user", "content": text}]
    return {"model": "stub", "messages": messages, **more}


def named(name):
    """The name that a test prints: the ids of its cases (docs/cases.md) and what it shows."""
    def give(f):
        f.__name__ = name
        return f
    return give


def tests_of(module):
    """Tests of a module in their order; those with a parameter get a server of their own."""
    def with_server(f):
        def run():
            with Server() as s:
                f(s)
        run.__name__ = f.__name__
        return run
    found = [f for n, f in module.items() if n.startswith("test_")]
    return [with_server(f) if f.__code__.co_argcount else f for f in found]


def main(tests):
    if stub() is None:
        tap.Tap().skip("server", "build/tests/server/stub_server is not built")
        print("1..1")
        sys.exit(0)
    tap.main(tests)
