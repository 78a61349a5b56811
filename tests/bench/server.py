"""What the server adds to the engine: python3 tests/bench/server.py [PROGRAM-server]; laguna-tiny's without an argument. An idle machine, please.

First byte and first token of short streamed requests, one after another; then the cost of a token beyond the engine's step: the time of an answer less
what /metrics counts as time in steps, whole and streamed, alone and eight at once (there, per token of any answer)."""
import json
import pathlib
import statistics
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from client import Server

N_SHORT, N_LONG = 30, 600


def short(s):
    """Milliseconds to the first byte of the reply's body, and to the first token's event."""
    body = {"messages": [{"role": "user", "content": "Hello!"}], "stream": True, "max_tokens": 4, "temperature": 0}
    c = s.connect()
    c.connect()
    begin = time.monotonic()
    c.request("POST", "/v1/chat/completions", json.dumps(body))
    r = c.getresponse()
    r.read(1)
    first, token = time.monotonic() - begin, None
    for line in r:
        if token is None and (b"reasoning_content" in line or b'"content":"' in line and b'"content":""' not in line):
            token = time.monotonic() - begin
    c.close()
    return 1000 * first, 1000 * (token or 0)


def long(s, stream, seed):
    body = {"prompt": "The cat", "max_tokens": N_LONG, "ignore_eos": True, "temperature": 1, "seed": seed, "stream": stream}
    if not stream:
        assert s.post("/v1/completions", body).status == 200
        return
    for _ in s.stream("/v1/completions", body):
        pass


def cost(s, stream, n):
    """Microseconds a token beyond the steps, and in them."""
    before, begin = s.metric("step_microseconds_total"), time.monotonic()
    threads = [threading.Thread(target=long, args=(s, stream, i)) for i in range(n)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    wall, steps = 1e6 * (time.monotonic() - begin), s.metric("step_microseconds_total") - before
    return (wall - steps) / (N_LONG * n), steps / (N_LONG * n)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else None
    if program is None:
        import laguna
        program = laguna.build()
    with Server(program=program) as s:
        short(s)
        times = [short(s) for _ in range(N_SHORT)]
        for name, values in zip(("first byte", "first token"), zip(*times)):
            print(f"{name:12} ms: median {statistics.median(values):.2f}, worst {max(values):.2f}  ({N_SHORT} short streamed requests)")
        for n in (1, 8):
            for stream in (False, True):
                cost(s, stream, n)
                beyond, step = cost(s, stream, n)
                print(f"{n} at once, {'streamed' if stream else 'whole':8}: {beyond:6.1f} us a token beyond {step:.1f} us in steps")


if __name__ == "__main__":
    main()
