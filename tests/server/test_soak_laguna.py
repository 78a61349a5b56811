"""Requests of many clients to laguna-tiny, a third of them given up, with a prefix store that is too small for them: every finished text is the one that
the request gives alone on a server without a store. check.sh --all runs 200 of 16 clients under ThreadSanitizer and AddressSanitizer."""
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import laguna
from client import Server, chat_body, tap
from test_soak import ask, text_of

RULES = "The cat sees the dog. The dog sees the bird. A tree is green. "


def request(i, rng):
    """Some begin alike, so that slots and store are used; some are longer than a window and a chunk."""
    rules = RULES * rng.choice([0, 1, 3, 12, 40]) + rng.choice(["", "Be kind. ", "Be brief. "])
    messages = [{"role": "system", "content": rules}] * bool(rules) + [{"role": "user", "content": f"What is {i} plus {rng.randrange(30)}?"}]
    if rng.random() < 0.3:
        messages += [{"role": "assistant", "content": "I do not know."}, {"role": "user", "content": "Try again."}]
    return chat_body(messages, stream=rng.random() < 0.5, temperature=rng.choice([0, 1]), seed=i, max_tokens=rng.randrange(1, 40), n=rng.choice([1, 1, 1, 2]))


def soak(s, plain, n_requests, n_clients):
    rng = random.Random(11)
    bodies = [request(i, rng) for i in range(n_requests)]
    s.chat("hi", max_tokens=1)
    base, got = s.n_files(), ask(s, bodies, n_clients)
    assert len(got) > n_requests / 2, len(got)
    for i in sorted(got):
        assert text_of(plain, bodies[i]) == got[i], (i, bodies[i], got[i])
    end = time.monotonic() + 20
    while s.get("/health").json["running"] + s.get("/health").json["waiting"] > 0 and time.monotonic() < end:
        time.sleep(0.1)
    while s.n_files() > base and time.monotonic() < end:
        time.sleep(0.1)
    health, files = s.get("/health").json, s.n_files()
    assert health["running"] == health["waiting"] == 0 and files <= base + 1, (health, files, base)  # the question's own
    assert s.metric('prefix_lookups_total\\{found="store"\\}') > 0 and s.metric("prefix_store_evicted_total") > 0
    return len(got)


def run(sanitizer, n_requests, n_clients, env=None):
    plain = laguna.build()
    program = laguna.build(sanitizer=sanitizer) if sanitizer else plain
    with Server("--prefix-store", "0", program=plain) as alone:
        with Server("--queue", 400, "--prefix-store", "2MiB", program=program, env=env) as s:
            n = soak(s, alone, n_requests, n_clients)
        print(f"# {sanitizer or 'plain'}: {n} of {n_requests} requests finished, all texts as alone")
        assert "Sanitizer" not in s.log(), s.log()[:4000]


def test_soak_laguna():
    run(None, 40, 8)


def whole(sanitizer, env):
    if not os.environ.get("LAGEN_TEST_ALL"):
        raise tap.Skip("long; check.sh --all runs it")
    run(sanitizer, 200, 16, env)


def test_soak_laguna_thread_sanitizer():
    whole("thread", {"TSAN_OPTIONS": "exitcode=66"})


def test_soak_laguna_address_sanitizer():
    whole("address,undefined", {"ASAN_OPTIONS": "detect_leaks=1"})


if __name__ == "__main__":
    tap.main([test_soak_laguna, test_soak_laguna_thread_sanitizer, test_soak_laguna_address_sanitizer])
