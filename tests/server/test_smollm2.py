"""The emitted server of SmolLM2: its answers are the command line's, alone and beside others; turns reuse what slots hold; what
selftest --bless recorded is what it compares with."""
import concurrent.futures
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, chat_body, tap
import program

QUESTION = "Name three rivers of Europe, and say where they end."


def build():
    if not program.SMOLLM2.exists() or not program.LAGEN.exists():
        raise tap.Skip("build/lagen or the model is not there")
    out = program.WORK / "smollm2-server"
    return program.build_in(out, "--model", program.SMOLLM2, "--arch", "native", "--ctx", 2048, "--slots", 4, "--chunk", 128)


def content(r):
    assert r.status == 200, r.body
    return r.json["choices"][0]["message"]["content"]


def test_smollm2():
    cli = build()
    server = str(cli)[:-4] + "-server"
    golden = cli.parent / "golden.json"
    golden.unlink(missing_ok=True)
    assert "recorded" in program.run([cli, "selftest", "--bless"]).decode()
    try:
        with Server(program=server) as s:
            assert "golden_tokens=yes" in s.log()
            check(s, cli)
    finally:
        golden.unlink(missing_ok=True)


def check(s, cli):
    want = program.run([cli, "run", "--greedy", "-n", 60, "-p", QUESTION]).decode().rstrip("\n")
    alone = content(s.chat(QUESTION, temperature=0, max_tokens=60))
    assert alone.rstrip("\n") == want, (alone, want)
    seeded = content(s.chat("Tell a story.", seed=7, temperature=1, max_tokens=40))
    long = "Repeat after me: " + "the quick brown fox jumps over the lazy dog. " * 30
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # neighbours, some of them reading long prompts
        same = [pool.submit(s.chat, QUESTION, temperature=0, max_tokens=60) for _ in range(3)]
        other = [pool.submit(s.chat, f"{i} {long}", max_tokens=5) for i in range(2)]
        again = pool.submit(s.chat, "Tell a story.", seed=7, temperature=1, max_tokens=40)
        assert all(content(f.result()) == alone for f in same)
        assert content(again.result()) == seeded and all(f.result().status == 200 for f in other)
    messages = [{"role": "user", "content": long}]
    first = s.post("/v1/chat/completions", chat_body(messages, temperature=0, max_tokens=16)).json
    messages += [first["choices"][0]["message"], {"role": "user", "content": "Thanks. And again?"}]
    second = s.post("/v1/chat/completions", chat_body(messages, temperature=0, max_tokens=16)).json
    n, kept = second["usage"]["prompt_tokens"], second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert kept > first["usage"]["prompt_tokens"] - 8 and n - kept < 60, second["usage"]
    for i in range(5):  # push the conversation out of its slot, then compare: from nothing and from a prefix, the same words
        s.chat(f"{i} something else entirely {i}", max_tokens=1)
    fresh = s.post("/v1/chat/completions", chat_body(messages, temperature=0, max_tokens=16)).json
    assert fresh["choices"][0]["message"] == second["choices"][0]["message"]
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "minimum": 0}}, "required": ["name", "age"]}
    r = s.chat("A person as JSON, please.", temperature=0, max_tokens=200, response_format={"type": "json_schema", "json_schema": {"schema": schema}})
    person = json.loads(content(r))
    assert set(person) == {"name", "age"} and isinstance(person["age"], int), person
    r = s.chat("x " * 4000)
    assert r.status == 400 and "2048" in r.error
    assert content(s.chat(QUESTION, temperature=0, max_tokens=60)) == alone


if __name__ == "__main__":
    tap.main([test_smollm2])
