"""200 requests by 16 clients, a third of them given up at random points: nothing leaks (descriptors, slots, memory), and every text
that was finished is the one that the request gives alone. Under AddressSanitizer always; under ThreadSanitizer with check.sh --all."""
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, chat_body

N_REQUESTS, N_CLIENTS = 200, 16


def request(i, rng):
    text = f"#delay={rng.randrange(3)} #prefill={rng.randrange(3)} {'pad ' * rng.randrange(60)}say:answer {i} " + "word " * rng.randrange(30)
    return chat_body(text, stream=rng.random() < 0.5, temperature=rng.choice([0, 1]), seed=i,
                     max_tokens=rng.randrange(1, 60), n=rng.choice([1, 1, 1, 2]))


def text_of(s, body):
    if not body["stream"]:
        r = s.post("/v1/chat/completions", body)
        assert r.status == 200, r.body
        return [c["message"]["content"] for c in r.json["choices"]]
    texts = [""] * body["n"]
    for _, d in s.stream("/v1/chat/completions", body).all():
        for c in d["choices"] if d != "[DONE]" else []:
            texts[c["index"]] += c["delta"].get("content", "")
    return texts


def give_up(s, body, rng):
    """Begins a request and leaves at a random point of it."""
    c = s.connect()
    data = json.dumps(body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode()
    c.connect()
    whole = head + data
    c.sock.sendall(whole[: rng.randrange(1, len(whole))] if rng.random() < 0.3 else whole)
    time.sleep(rng.random() * 0.05)
    if rng.random() < 0.5:
        c.sock.setblocking(False)
        try:
            c.sock.recv(rng.randrange(1, 2000))
        except OSError:
            pass
    c.sock.close()


def ask(s, bodies, n_clients):
    """Some clients share the requests and give a third of them up. The texts of those that they finished, by number."""
    got, work, lock = {}, list(enumerate(bodies)), threading.Lock()

    def run(k):
        mine = random.Random(k)
        while True:
            with lock:
                if not work:
                    return
                i, body = work.pop()
            if mine.random() < 0.33:
                give_up(s, body, mine)
            else:
                got[i] = text_of(s, body)
    with concurrent.futures.ThreadPoolExecutor(n_clients) as pool:
        [f.result() for f in [pool.submit(run, k) for k in range(n_clients)]]
    return got


def soak(s):
    rng = random.Random(7)
    bodies = [request(i, rng) for i in range(N_REQUESTS)]
    base, got = s.n_files(), ask(s, bodies, N_CLIENTS)
    assert len(got) > N_REQUESTS / 2
    for i in sorted(got)[::3]:
        assert text_of(s, bodies[i]) == got[i], i
    end = time.monotonic() + 10
    files, health = s.n_files(), s.get("/health").json
    while (files > base or health["running"] > 0) and time.monotonic() < end:
        time.sleep(0.1)
        files, health = s.n_files(), s.get("/health").json  # in this order: to ask is a connection that takes a while to be closed
    assert health["running"] == health["waiting"] == 0 and files <= base, (health, files, base)
    assert all(s.chat("hi", n=1).status == 200 for _ in range(8))


def test_soak():
    with Server("--queue", 400) as s:
        soak(s)


def test_soak_under_thread_sanitizer():
    if not os.environ.get("LAGEN_TEST_ALL"):
        raise client.tap.Skip("long; check.sh --all runs it")
    root = client.ROOT
    out = root / "build" / "tsan"
    out.mkdir(parents=True, exist_ok=True)
    skip = ("cuda/", "cli/", "recorder/", "main_")
    sources = [p for p in sorted((root / "runtime").rglob("*.c")) if not str(p.relative_to(root / "runtime")).startswith(skip)]
    sources += [root / "tests/server/stub_model.c", root / "tests/server/stub_server.c"]
    flags = ["-std=c11", "-O1", "-g", "-fsanitize=thread", f"-I{root}/runtime", f"-I{root}/tests"]
    template = root / "build/tests/server/stub_template.c"
    objects = []
    for p in sources + [template]:
        o = out / (str(p.relative_to(root)).replace("/", "_") + ".o")
        more = ["-Dlagen_chat_render=stub_render"] if p == template else []
        subprocess.run(["cc", *flags, *more, "-c", str(p), "-o", str(o)], check=True)
        objects.append(str(o))
    program = out / "stub_server"
    subprocess.run(["cc", "-fsanitize=thread", *objects, "-o", str(program), "-lmicrohttpd", "-ljansson", "-lcrypto", "-lm"], check=True)
    with Server("--queue", 400, program=str(program), env={"TSAN_OPTIONS": "exitcode=66"}) as s:
        soak(s)
    assert "ThreadSanitizer" not in s.log(), s.log()[:4000]


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
