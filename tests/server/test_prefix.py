"""Prompts go on from what slots and the prefix store hold: what is counted as cached, in both APIs and in /metrics; that answers are the same with
and without; a long first request and its next turn. On the scripted model, whose logits show any token out of place."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, chat_body, named


def talk(name, n):
    return [{"role": "system", "content": f"{name}. " + "rule " * (n // 5)}, {"role": "user", "content": "#flat hello"}]


def openai(s, messages, **more):
    r = s.post("/v1/chat/completions", chat_body(messages, temperature=1, seed=3, max_tokens=8, **more))
    assert r.status == 200, r.body
    u = r.json["usage"]
    return r.json["choices"][0]["message"], u["prompt_tokens"], u["prompt_tokens_details"]["cached_tokens"]


def anthropic(s, messages):
    body = {"model": "x", "max_tokens": 8, "temperature": 0, "system": messages[0]["content"], "messages": messages[1:]}
    r = s.post("/v1/messages", body)
    assert r.status == 200, r.body
    u = r.json["usage"]
    return u["input_tokens"], u["cache_read_input_tokens"]


def found(s, what):
    return s.metric(rf'prefix_lookups_total\{{found="{what}"\}}')


@named("two talks take turns in one slot, and each goes on")
def test_turns():
    with Server(stub_args=["ctx=8192", "slots=1"]) as s, Server("--prefix-store", 0, stub_args=["ctx=8192", "slots=1"]) as plain:
        talks = {n: talk(n, 3000) for n in "ab"}
        for turn in range(3):
            for name, messages in talks.items():
                answer, n, cached = openai(s, messages)
                assert cached < 20 if turn == 0 else n - cached < 120, (turn, name, n, cached)
                again, _, none = openai(plain, messages)
                assert again == answer and none < 20, (turn, again, answer, none)
                messages += [answer, {"role": "user", "content": f"#flat and {turn}?"}]
        assert (found(s, "nothing"), found(s, "store"), found(s, "slot")) == (1, 4, 1)
        assert s.metric("prompt_tokens_restored_total") > 4 * 3000 and s.metric("prefix_store_bytes") > 0
        read, cached = anthropic(s, talks["a"])
        assert cached > 3000 and read < 120, (read, cached)


@named("a first request of 24,438 tokens, another one, and a turn that adds 500")
def test_long():
    with Server(stub_args=["ctx=32768", "slots=1", "chunk=512"]) as s:
        messages = talk("long", 24000)
        n = openai(s, messages)[1]
        messages[0]["content"] += "x" * (24438 - n)
        answer, n, cached = openai(s, messages)
        assert n == 24438, n
        openai(s, talk("other", 2000))
        answer, n, cached = openai(s, messages + [answer, {"role": "user", "content": "y" * 470}])
        assert n > 24438 + 470 and n - cached < 1200, (n, cached)
        assert found(s, "store") == 1


@named("a prompt takes what another slot holds, busy or not")
def test_borrowed():
    with Server(stub_args=["ctx=8192", "slots=3"]) as s:
        first = talk("shared", 3000)
        openai(s, first)
        busy = s.stream("/v1/chat/completions", chat_body(
            first[:1] + [{"role": "user", "content": "#delay=20 #loop say:word "}], stream=True, max_tokens=400))
        next(iter(busy))
        for i in range(2):
            _, n, cached = openai(s, first[:1] + [{"role": "user", "content": f"#flat question {i}"}])
            assert n - cached < 120, (i, n, cached)
        busy.close()


@named("answers that begin together compute what they share once")
def test_together():
    with Server(stub_args=["ctx=8192", "slots=4"]) as s:
        before = s.metric("step_rows_total")
        r = s.post("/v1/chat/completions", chat_body(talk("together", 3000), n=4, max_tokens=8, temperature=1, seed=1))
        assert r.status == 200 and r.json["usage"]["prompt_tokens_details"]["cached_tokens"] == 0, r.json
        assert s.metric("step_rows_total") - before < 3000 + 4 * 200, s.metric("step_rows_total")
        alone = [openai(s, talk("together", 3000))[0]["content"]]
        assert len({c["message"]["content"] for c in r.json["choices"]}) > 1 and alone


@named("without a store, and with one that is too small or too large")
def test_sizes():
    with Server("--prefix-store", 0) as s:
        openai(s, talk("a", 500))
        assert s.metric("prefix_store_bytes") == 0 and "prefix store" not in s.log()
    for size, part in (("1KiB", "the least is"), ("500000GiB", "the most")):
        s = Server("--prefix-store", size, wait=False)
        assert s.process.wait(30) == 5 and "--prefix-store" in s.log() and part in s.log(), s.log()
    s = Server("--prefix-store", "-1", wait=False)
    assert s.process.wait(30) == 2, s.log()


@named("a store that is full forgets the oldest talk")
def test_full():
    with Server("--prefix-store", 150000, stub_args=["ctx=4096", "slots=1"]) as s:
        for i in range(8):
            openai(s, talk(f"{i} talk", 2000))
        assert s.metric("prefix_store_evicted_total") > 0 and s.metric("prefix_store_bytes") <= 150000
        assert openai(s, talk("6 talk", 2000))[2] > 1900
        assert openai(s, talk("0 talk", 2000))[2] < 50


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
