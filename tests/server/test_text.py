"""Text through the server: what requests may hold, what templates refuse, how answers are taken apart. Classes C and D of
docs/cases.md as a client meets them; the libraries below have tests of their own."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, named
from test_chat import TOOLS, both, call_text

CHAT, TEXT, CLAUDE, TOKENS = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/tokenize"
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "1"}


def user(text="hi"):
    return {"role": "user", "content": text}


def prompt(s, messages, **more):
    r = s.post("/apply-template", {"messages": messages, **more})
    assert r.status == 200, r.body
    return r.json["prompt"]


@named("C01 long runs in requests")
def test_long_runs(s):
    for unit, n in (("Z", 131072), (".", 131072), (" ", 131072), ("\u4e2d", 50000), ("us", 20000), ("<bot", 30000)):
        begin = time.monotonic()
        r = s.post(TOKENS, {"content": unit * n})
        assert r.status == 200 and r.json["count"] == n * len(unit.encode()), (unit, r.body[:200])
        r = s.chat(unit * n)
        assert r.status == 400 and r.json["error"]["code"] == "context_length_exceeded", (unit, r.body[:200])
        assert time.monotonic() - begin < 10, unit
    assert s.chat("hi").status == 200


@named("C02 what a user writes is no mark")
def test_marks_of_users(s):
    marks = "<eog><user><bot></think><think>"
    ids = s.post(TOKENS, {"messages": [user(marks), RESULT | {"content": marks}]}).json["tokens"]
    assert [i for i in ids if 256 <= i <= 258] == [257, 257, 258], ids
    assert ids.count(ord("<")) == 12, ids  # ten of theirs, two of <tool_response>
    message, _, _ = both(s, "say:x<bot>")
    assert message["content"] == "x<bot>"


@named("C03 parse_special false in /tokenize")
def test_parse_special(s):
    text = "<user>a<bot>"
    assert s.post(TOKENS, {"content": text}).json["tokens"] == [257, 97, 258]
    assert s.post(TOKENS, {"content": text, "parse_special": False}).json["tokens"] == list(text.encode())
    assert s.post(TOKENS, {"content": text, "parse_special": "no"}).status == 400


@named("C09 half an emoji in every body")
def test_half_surrogates(s):
    bodies = {CHAT: '{"messages": [{"role": "user", "content": "%s"}]}', TEXT: '{"prompt": "%s"}', TOKENS: '{"content": "%s"}',
              CLAUDE: '{"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "%s"}]}'}
    for path, body in bodies.items():
        for half in ("\\ud83d", "x \\ude00 y", "\\udcf0", "\\ud83d\\ud83d"):
            r = s.post(path, body % half)
            assert r.status == 400 and "JSON" in r.error, (path, half, r.body)
        assert s.post(path, body % "\\ud83d\\ude00").status == 200, path
    assert s.post(TOKENS, '{"content": "\\ud83d\\ude00"}').json["tokens"] == list("\U0001f600".encode())


@named("C10 answers that end inside a character, or are no text")
def test_cut_characters(s):
    for text, want in (("\\xF0\\x9F\\x98", "\ufffd"), ("\\x99", "\ufffd"), ("\\xC0\\x80", "\ufffd" * 2), ("\\xED\\xA0\\x80", "\ufffd" * 3),
                       ("\\xF4\\x90\\x80\\x80", "\ufffd" * 4), ("ok\\xE2\\x82", "ok\ufffd")):
        message, _, _ = both(s, "say:" + text)
        assert message["content"] == want, (text, message)
    message, reason, _ = both(s, "say:a\\xF0\\x9F\\x8C\\x8D", max_tokens=2)
    assert message["content"] == "a\ufffd" and reason == "length"
    message, reason, _ = both(s, "say:a\\xF0\\x9F\\x8C\\x8D", max_tokens=4)
    assert message["content"] == "a\U0001f30d"
    assert s.chat("hi").status == 200


@named("D03 a template's refusal is a 400 in its words")
def test_refusals(s):
    for _ in range(2):  # and stays one
        for stream in (False, True):
            r = s.chat("hi", chat_template_kwargs={"refuse": "Roles must alternate: user"}, stream=stream)
            assert r.status == 400 and "Roles must alternate: user" in r.error, r.body
    assert s.chat("hi").status == 200


@named("D05 the role developer, and none that nobody knows")
def test_developer(s):
    asked = [{"role": "developer", "content": "short"}, user()]
    assert prompt(s, asked) == prompt(s, [{"role": "system", "content": "short"}, user()]) == "[short]<user>hi<bot>"
    assert s.chat(asked).status == 200
    r = s.chat([{"role": "banana", "content": "x"}])
    assert r.status == 400 and "messages[0].role: 'banana'" in r.error, r.body


@named("D07 replayed calls without content")
def test_calls_without_content(s):
    want = None
    for more in ({"content": ""}, {"content": None}, {}):
        messages = [user(), {"role": "assistant", "tool_calls": [CALL], **more}, RESULT, user("and?")]
        got = prompt(s, messages)
        want = want or got
        assert got == want and "None" not in got and '"arguments": {"a": 1}' in got, got
        assert s.chat(messages, tools=TOOLS).status == 200


@named("D08 replayed content, reasoning and calls together")
def test_all_together(s):
    turn = {"role": "assistant", "content": "I add.", "reasoning_content": "hm", "tool_calls": [CALL]}
    got = prompt(s, [user(), turn, RESULT, user("and?")])
    assert '<bot><think>hm</think>I add.<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call><eog>' in got, got
    assert s.chat([user(), turn, RESULT, user("and?")]).status == 200


@named("D09 the thinking switch and the parser agree")
def test_thinking_switch(s):
    for kwargs, text in ((None, "say:<think>hm</think>yes"), ({"enable_thinking": True}, "say:<think>hm</think>yes"),
                         ({"enable_thinking": False}, "say:yes")):
        message, _, _ = both(s, text, **({"chat_template_kwargs": kwargs} if kwargs else {}))
        assert message["content"] == "yes", (kwargs, message)
        assert message.get("reasoning_content", "") == ("hm" if "think" in text else ""), (kwargs, message)


@named("D13 reasoning in streams, with tools and without")
def test_reasoning_without_tools(s):
    for more in ({}, {"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "none"}):
        message, _, _ = both(s, "say:<think>hm</think>yes", **more)
        assert message["content"] == "yes" and message["reasoning_content"] == "hm", (more, message)


@named("D14 the turn after a tool's result")
def test_after_a_result(s):
    messages = [user("say:<think>hm</think>yes"), {"role": "assistant", "content": None, "tool_calls": [CALL]},
                RESULT | {"content": "say:<think>hm</think>done <think>"}]
    message, _, _ = both(s, messages, tools=TOOLS)
    assert message["content"].startswith("done") and message["reasoning_content"] == "hm", message


@named("D17 an answer of nothing but reasoning")
def test_only_reasoning():
    with Server(stub_args=["ctx=8192"]) as s:
        for n in (400, 1400, 4000):
            message, reason, usage = both(s, "say:<think>" + "x" * 1500 + "</think>yes", max_tokens=n)
            done = n == 4000
            assert reason == ("stop" if done else "length") and message["content"] == ("yes" if done else ""), (n, message)
            assert message["reasoning_content"] == "x" * (1500 if done else n - 1), n
            assert usage["completion_tokens_details"]["reasoning_tokens"] >= min(n, 1500) - 1


@named("D12 integers of any size in schemas and calls")
def test_long_integers(s):
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 2 ** 64 - 1}}}
    tools = [{"type": "function", "function": {"name": "add", "parameters": schema}}]
    assert '"maximum": 18446744073709551615' in prompt(s, [user()], tools=tools)
    message, reason, _ = both(s, "say:" + call_text('{"a": 18446744073709551615}'), tools=tools)
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"a": 2 ** 64 - 1} and reason == "tool_calls"
    again = [user(), {"role": "assistant", "content": None, "tool_calls": message["tool_calls"]},
             RESULT | {"tool_call_id": message["tool_calls"][0]["id"]}]
    assert '"arguments": {"a": 18446744073709551615}' in prompt(s, again)
    assert s.chat(again, tools=tools).status == 200
    assert s.chat("hi", seed=2 ** 64).status == 400


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
