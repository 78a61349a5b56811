"""/v1/chat/completions: whole answers and streams, over the scripted model. Names begin with the case they hold (docs/cases.md)."""
import json
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, chat_body, named

TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}, "s": {"type": "string"}}}}}]


def call_text(arguments, name="add"):
    return f'<tool_call>{{"name": "{name}", "arguments": {arguments}}}</tool_call>'


def both(s, text, **more):
    """The answer's message, finish reason and usage, whole and streamed; they must agree."""
    whole = s.chat(text, **more)
    assert whole.status == 200, whole.body
    choice = whole.json["choices"][0]
    message = choice["message"]
    events = s.stream("/v1/chat/completions", chat_body(text, stream=True, stream_options={"include_usage": True}, **more))
    assert events.status == 200 and events.headers["Content-Type"] == "text/event-stream"
    chunks = [d for _, d in events.all()]
    assert chunks[-1] == "[DONE]", chunks[-1]
    content, reasoning, calls, reason, tokens = "", "", {}, None, []
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    for c in chunks[:-2]:
        assert c["usage"] is None and c["object"] == "chat.completion.chunk" and len(c["choices"]) == 1
        assert c["id"] == chunks[0]["id"] and c["created"] == chunks[0]["created"]
        assert reason is None  # nothing comes behind the reason
        delta, reason = c["choices"][0]["delta"], c["choices"][0]["finish_reason"]
        content += delta.get("content") or ""
        reasoning += delta.get("reasoning_content", "")
        tokens += (c["choices"][0]["logprobs"] or {"content": []})["content"]
        for call in delta.get("tool_calls", []):
            calls.setdefault(call["index"], {"id": call["id"], "name": call["function"]["name"], "arguments": ""})
            calls[call["index"]]["arguments"] += call["function"]["arguments"]
    assert chunks[-2]["choices"] == []
    usage = chunks[-2]["usage"]
    assert content == (message["content"] or ""), (content, message)
    assert reasoning == message.get("reasoning_content", "")
    want = message.get("tool_calls", [])
    assert [(c["function"]["name"], c["function"]["arguments"]) for c in want] == [
        (calls[i]["name"], calls[i]["arguments"]) for i in sorted(calls)]
    assert len({c["id"] for c in want}) == len(want) and len({c["id"] for c in calls.values()}) == len(calls)
    assert reason == choice["finish_reason"], (reason, choice)
    for key in ("prompt_tokens", "completion_tokens", "total_tokens", "completion_tokens_details"):
        assert usage[key] == whole.json["usage"][key], key
    whole_tokens = (choice["logprobs"] or {"content": []})["content"]
    assert tokens == whole_tokens
    return message, reason, usage


def test_plain(s):
    message, reason, usage = both(s, "hello")
    assert message == {"role": "assistant", "content": "Hello from the stub.", "refusal": None} and reason == "stop"
    assert usage["prompt_tokens"] == 7 and usage["completion_tokens"] == 6
    for messages in ([{"role": "user", "content": [{"type": "text", "text": "say:a"}, {"type": "text", "text": "b"}]}],
                     [{"role": "system", "content": "x"}, {"role": "user", "content": "say:ab"}],
                     [{"role": "user", "content": "q"}, {"role": "assistant", "content": None},
                      {"role": "developer", "content": "late"}, {"role": "user", "content": "say:ab"}]):
        assert both(s, messages)[0]["content"] == "ab", messages


def test_roles_and_content_refused(s):
    for messages, what in ((None, "messages"), ([], "messages"), ("x", "messages: must be an array"), ([1], "messages[0]"),
                           ([{"role": "wizard", "content": "x"}], "messages[0].role"), ([{"content": "x"}], "messages[0].role"),
                           ([{"role": "user", "content": 5}], "messages[0].content"),
                           ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}], "image_url"),
                           ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content")):
        r = s.post("/v1/chat/completions", {"messages": messages})
        assert r.status == 400 and what in r.error and r.json["error"]["type"] == "invalid_request_error", (messages, r.body)
    assert s.chat("hi").status == 200


def test_bodies_refused(s):
    for body, what in (("", "empty"), ("{", "JSON"), ("[]", "object"), ("3", "object"), ("{\"a\":1}x", "JSON"), (b"\xff\xfe", "JSON"),
                       ('{"messages": "\\ud800"}', "JSON")):
        r = s.post("/v1/chat/completions", body)
        assert r.status == 400 and what in r.error, (body, r.body)


def test_known_but_unsupported(s):
    for more in ({"functions": [{}]}, {"audio": {"voice": "x"}}, {"response_format": {"type": "x"}},
                 {"tools": TOOLS, "tool_choice": "sometimes"}, {"tool_choice": "required"}, {"modalities": ["text", "audio"]}, {"modalities": "text"},
                 {"moderation": {"model": "x"}}, {"verbosity": "low"}, {"web_search_options": {}}, {"best_of": 2}, {"echo": True}, {"chat_template": "x"},
                 {"min_tokens": 5}, {"stop_token_ids": [1]}, {"guided_choice": ["a"]}, {"json_schema": {}}, {"n_predict": 5}, {"continue_final_message": True},
                 {"tools": ["x"]}, {"tools": [{"type": "function"}]}, {"tools": [{"type": "custom", "custom": {"name": "x"}}]},
                 {"tools": [{"type": "function", "function": {"name": "", "parameters": {}}}]}, {"tools": [{"type": "function", "function": {"name": "f", "parameters": 5}}]},
                 {"tools": [{"type": "function", "function": {"name": "f", "description": 5}}]}):
        r = s.chat("hi", **more)
        assert r.status == 400 and r.json["error"]["param"] is not None, (more, r.body)
    for message in ({"function_call": {"name": "f", "arguments": "{}"}}, {"audio": {"id": "x"}}, {"refusal": "no"}):
        r = s.chat([{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, **message}, {"role": "user", "content": "hi"}])
        assert r.status == 400 and r.json["error"]["param"] == "messages[1]", (message, r.body)
    for more in ({"functions": []}, {"audio": None}, {"response_format": {"type": "text"}}, {"unheard_of": {"x": [1]}},
                 {"store": True}, {"user": "u"}, {"metadata": {}}, {"service_tier": "auto"}, {"tool_choice": "none"},
                 {"tools": [], "tool_choice": "auto"}, {"parallel_tool_calls": True},
                 {"modalities": ["text"]}, {"verbosity": "medium"}, {"reasoning_effort": "max"}, {"min_tokens": 0}, {"best_of": 1}, {"prediction": {"type": "content", "content": "x"}}):
        assert s.chat("hi", **more).status == 200, more


@named("E01 stop strings are cut out and never leak")
def test_stop_strings(s):
    for text, stops, want in (
            ("The quick brown fox", ["own fox"], "The quick br"), ("a\nUser: b", ["\nUser:"], "a"),
            ("xDEFGHIJy", ["DEFGHIJ"], "x"), ("xDEFGHI?", ["DEFGHIJ"], "xDEFGHI?"), ("why?", ["?!"], "why?"),
            ("abc", ["c"], "ab"), ("abcd", ["bc", "bcd"], "a"), ("abcd", ["bcd", "bc"], "a"), ("abab", "b", "a"),
            ("aaab", ["aab"], "a"), ("nothing", ["zz"], "nothing"), ("stop", ["stop"], "")):
        message, reason, _ = both(s, f"say:{text}", stop=stops)
        assert message["content"] == want and reason == "stop", (text, stops, message)
    message, reason, _ = both(s, "say:<think>a STOP b</think>c STOP d", stop="STOP")
    assert message["content"] == "c " and message["reasoning_content"] == "a STOP b"
    call = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    for text in ("STO" + call + "P", "STO" + call[:20], "STO" + call + "STO"):  # what was held back comes in front of a call
        message, _, _ = both(s, f"say:{text}", stop=["STOP"], tools=TOOLS)
        assert message["content"] == text.replace(call, ""), message
    m = s.post("/v1/messages", {"max_tokens": 99, "messages": [{"role": "user", "content": "say:STO" + call}], "stop_sequences": ["STOP"],
                                "tools": [{"name": "add", "input_schema": {"type": "object"}}]}).json
    assert [b["type"] for b in m["content"]] == ["text", "tool_use"], m
    for bad in ([""], [1], "", ["x" * 5000], ["x"] * 65):
        assert s.chat("hi", stop=bad).status == 400, bad


@named("E02 characters are whole in streams")
def test_characters_are_whole(s):
    for text, want in (("\\xF0\\x9F\\x8C\\x8D.", "\U0001F30D."), ("\\xE4\\xBD\\xA0", "\u4F60"), ("\\xFF\\xFF\\xFF", "\uFFFD" * 3),
                       ("a\\xF0\\x9F", "a\uFFFD"), ("\\xE4x", "\uFFFDx")):
        message, _, _ = both(s, f"say:{text}")
        assert message["content"] == want, (text, message)
    message, _, _ = both(s, "say:" + call_text('{"s": "\\xF0\\x9F\\x8C\\x8D"}'), tools=TOOLS)
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"s": "\U0001F30D"}


@named("E03 usage in streams")
def test_usage_in_streams(s):
    for options, n_usage in (({"include_usage": True}, 1), ({"include_usage": False}, 0), ({}, 0), (None, 0)):
        chunks = [d for _, d in s.stream("/v1/chat/completions", chat_body("hi", stream=True, stream_options=options)).all()]
        assert chunks[-1] == "[DONE]"
        usage = [c for c in chunks[:-1] if c.get("usage")]
        assert len(usage) == n_usage and all(c["choices"] == [] for c in usage)
        finish = [i for i, c in enumerate(chunks[:-1]) if c["choices"] and c["choices"][0]["finish_reason"]]
        assert finish == [len(chunks) - 2 - n_usage]
    assert s.chat("hi", stream_options={"include_usage": True}).status == 400


@named("E04 max_completion_tokens is max_tokens")
def test_max_completion_tokens(s):
    for more in ({"max_completion_tokens": 3}, {"max_tokens": 3}, {"max_completion_tokens": 3, "max_tokens": 3}):
        _, reason, usage = both(s, "hi", **more)
        assert usage["completion_tokens"] == 3 and reason == "length"
    assert s.chat("hi", max_completion_tokens=3, max_tokens=4).status == 400


@named("E05 max_tokens at its edges")
def test_max_tokens(s):
    for value in (0, -2, "5", 1.5, 10**9, 2**64):
        r = s.chat("#loop say:x", max_tokens=value)
        assert r.status == 400, value
        assert str(value) in r.error or value in ("5", 1.5), r.error
    with Server(stub_args=["ctx=128"]) as small:
        for more in ({}, {"max_tokens": None}):
            _, reason, usage = both(small, "#loop say:x", **more)
            assert reason == "length" and usage["total_tokens"] == 128
        _, reason, usage = both(small, "#loop say:x", max_tokens=1)
        assert reason == "length" and usage["completion_tokens"] == 1


@named("E06 length wins over calls")
def test_length_wins(s):
    text = "say:" + call_text('{"a": 12}')
    whole = both(s, text, tools=TOOLS)
    n = whole[2]["completion_tokens"] - 1  # the end of the answer is a token of its own
    assert whole[1] == "tool_calls"
    for k in (5, n - 2):
        message, reason, _ = both(s, text, tools=TOOLS, max_tokens=k)
        assert reason == "length" and "tool_calls" not in message, (k, message)
    for k in (n - 1, n):  # the arguments are whole, with or without the closing mark
        message, reason, _ = both(s, text, tools=TOOLS, max_tokens=k)
        assert reason == "length" and len(message["tool_calls"]) == 1
    assert both(s, text, tools=TOOLS, max_tokens=n + 1)[1] == "tool_calls"


@named("E08 logprobs of chats")
def test_logprobs(s):
    message, _, usage = both(s, "say:a\\xF0\\x9F\\x8C\\x8D", logprobs=True, top_logprobs=3)
    r = s.chat("say:a\\xF0\\x9F\\x8C\\x8D", logprobs=True, top_logprobs=3).json["choices"][0]["logprobs"]["content"]
    assert len(r) == usage["completion_tokens"] - 1
    assert bytes(b for t in r for b in t["bytes"]).decode() == message["content"]
    for t in r:
        assert len(t["top_logprobs"]) == 3 and t["top_logprobs"][0]["bytes"] == t["bytes"] and -0.01 < t["logprob"] <= 0
        assert t["top_logprobs"][0]["logprob"] >= t["top_logprobs"][1]["logprob"]
    r = s.chat("hi", logprobs=True).json["choices"][0]["logprobs"]["content"]
    assert r[0]["token"] == "Hello" and r[0]["top_logprobs"] == []
    assert s.chat("hi", logprobs=False).json["choices"][0]["logprobs"] is None
    for bad in ({"logprobs": True, "top_logprobs": 21}, {"top_logprobs": 2}, {"logprobs": 1}):
        assert s.chat("hi", **bad).status == 400, bad


@named("E09 logit_bias outside the vocabulary")
def test_logit_bias(s):
    n_vocab = 281
    for bad in ("-1", str(n_vocab), str(2**31), "abc", "", "1.5", " 5"):
        r = s.chat("hi", logit_bias={bad: 1})
        assert r.status == 400 and r.json["error"]["param"] == "logit_bias", (bad, r.body)
    for bad in ({"5": "x"}, {"5": 101}, {"5": -100.5}, [5], {"5": None}):
        assert s.chat("hi", logit_bias=bad).status == 400, bad
    assert s.chat("hi", logit_bias={str(n_vocab - 1): 0.0, "99": 5}).json["choices"][0]["message"]["content"] == "Hello from the stub."
    banned = s.chat("say:x", logit_bias={str(ord("x")): -100}, max_tokens=1).json["choices"][0]["message"]["content"]
    assert banned != "x"
    forced = s.chat("say:x", logit_bias={str(ord("z")): 100}, max_tokens=3).json["choices"][0]["message"]["content"]
    assert forced == "zzz"


@named("E10 sampler extremes")
def test_sampler_extremes(s):
    n_vocab = 281
    for good in ({"top_k": 0}, {"top_k": -1}, {"top_k": n_vocab + 1}, {"top_k": 9999999}, {"top_p": 0}, {"top_p": 1},
                 {"temperature": 0}, {"temperature": 2}, {"seed": -1}, {"seed": 2**32 - 1}, {"min_p": 0}, {"min_p": 1},
                 {"repeat_penalty": 1.1}, {"frequency_penalty": -2}, {"presence_penalty": 2}, {"temperature": None}):
        r = s.chat("hi", **good)
        assert r.status == 200 and r.json["choices"][0]["message"]["content"].startswith("Hello"), (good, r.body)
    for name, value in (("top_k", -2), ("top_k", 1.5), ("top_p", 1.1), ("top_p", -0.1), ("temperature", -1), ("temperature", 1e30),
                        ("temperature", "1"), ("seed", -2), ("seed", 2**64), ("seed", 2**32), ("min_p", 1.01), ("frequency_penalty", 3),
                        ("presence_penalty", -2.1), ("repeat_penalty", 0), ("n", 0), ("n", 17), ("n", "2")):
        r = s.chat("hi", **{name: value})
        assert r.status == 400 and r.json["error"]["param"] == name, (name, value, r.body)
        if not isinstance(value, str) and not (name == "top_k" and value == 1.5):
            assert ".." in r.error, r.error  # the range is told
    r = s.post("/v1/chat/completions", '{"temperature": NaN, "messages": [{"role": "user", "content": "x"}]}')
    assert r.status == 400


def test_seeds_and_choices(s):
    def text(**more):
        return [c["message"]["content"] for c in s.chat("#flat", max_tokens=8, temperature=1.0, top_k=0, top_p=1, min_p=0, **more).json["choices"]]
    assert text(seed=5) == text(seed=5) and text(seed=5) != text(seed=6)
    assert len({text()[0] for _ in range(4)}) > 1
    three = text(seed=5, n=3)
    assert len(three) == 3 and three[0] == text(seed=5)[0] and len(set(three)) == 3
    chunks = [d for _, d in s.stream("/v1/chat/completions", chat_body("hi", n=2, stream=True)).all()][:-1]
    for i in (0, 1):
        mine = [c["choices"][0] for c in chunks if c["choices"][0]["index"] == i]
        assert "".join(c["delta"].get("content", "") for c in mine) == "Hello from the stub."
        assert [c["finish_reason"] for c in mine if c["finish_reason"]] == ["stop"]


def test_ignore_eos(s):
    _, reason, usage = both(s, "say:x", ignore_eos=True, max_tokens=9, temperature=0)
    assert reason == "length" and usage["completion_tokens"] == 9


def test_tools(s):
    text = "say:<think>let me see</think>I add.\n" + call_text('{"a": 1, "b": 2}')
    message, reason, usage = both(s, text, tools=TOOLS)
    assert message["content"] == "I add." and message["reasoning_content"] == "let me see" and reason == "tool_calls"
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"a": 1, "b": 2}
    assert message["tool_calls"][0]["type"] == "function" and usage["completion_tokens_details"]["reasoning_tokens"] > 3
    message, reason, _ = both(s, "say:" + call_text('{"a": 1}'), tools=TOOLS)
    assert message["content"] is None and reason == "tool_calls"
    message, reason, _ = both(s, "say:" + call_text('{"a": 1}'))  # no tools: text
    assert "<tool_call>" in message["content"] and reason == "stop"
    message, reason, _ = both(s, "say:" + call_text('{"a": 1}'), tools=TOOLS, tool_choice="none")
    assert "<tool_call>" in message["content"] and reason == "stop"
    # the calculator loop: the answer's own words and calls come back, then the result
    answer = s.chat(text, tools=TOOLS).json["choices"][0]["message"]
    r = s.chat([{"role": "user", "content": text}, answer,
                {"role": "tool", "tool_call_id": answer["tool_calls"][0]["id"], "content": "3"}], tools=TOOLS)
    assert r.status == 200 and r.json["choices"][0]["message"]["content"] == "Hello from the stub.", r.body


@named("E23 ids of calls are unique")
def test_tool_call_ids(s):
    two = "say:" + call_text('{"a": 1}') + call_text('{"a": 2}')
    message, _, _ = both(s, two, tools=TOOLS)
    calls = message["tool_calls"]
    assert [json.loads(c["function"]["arguments"])["a"] for c in calls] == [1, 2]
    assert len({c["id"] for c in calls}) == 2 and all(c["id"] for c in calls)
    message, reason, _ = both(s, two, tools=TOOLS, parallel_tool_calls=False)
    assert len(message["tool_calls"]) == 1 and reason == "tool_calls"


def test_reasoning(s):
    message, reason, usage = both(s, "say:<think>" + "x" * 30, max_tokens=12)
    assert message["content"] == "" and message["reasoning_content"] == "x" * 11 and reason == "length"
    assert "max_tokens ended it inside its reasoning" in s.log()
    assert s.chat("hi", reasoning_effort="none").status == 200
    assert s.chat("hi", reasoning_effort="maximal").status == 400
    assert s.chat("hi", chat_template_kwargs={"enable_thinking": False}).status == 200


@named("E17 pings during a long prompt")
def test_pings_during_a_long_prompt():
    with Server("--keepalive", 1, stub_args=["chunk=16"]) as s:
        body = chat_body("#prefill=300 " + "x" * 160, stream=True)
        seen = list(s.stream("/v1/chat/completions", body))
        at = [t for _, _, t in seen]
        assert at[0] < 1.0, at
        pings = [t for e, d, t in seen if e == "comment" and d == "ping"]
        assert len(pings) >= 2, seen
        assert max(b - a for a, b in zip(at, at[1:])) < 2.0
        assert seen[-1][1] == "[DONE]"
        r = s.chat("#prefill=300 " + "x" * 160)
        assert r.status == 200 and r.json["choices"][0]["message"]["content"] == "Hello from the stub."


@named("E18 H12 prompts around the context")
def test_context_budget():
    with Server(stub_args=["ctx=64", "chunk=16"]) as s:
        for n in range(61, 67):  # tokens of the prompt: the text and two marks
            for more in ({}, {"max_tokens": 1}, {"max_tokens": 2}):
                fits = n + more.get("max_tokens", 1) <= 64
                for stream in (False, True):
                    r = s.chat("x" * (n - 2), stream=stream, **more)
                    assert r.status == (200 if fits else 400), (n, more, r.body)
                    if not fits:
                        assert "64" in r.error and str(n) in r.error and r.json["error"]["code"] == "context_length_exceeded"
        assert s.chat("x" * 100000).status == 400
        assert s.chat("hi").status == 200
        assert s.metric("answers_failed_total") == 0


@named("E19 clients that go away")
def test_gone_clients():
    with Server("--slots", 1) as s:
        def leave(text, after, stream=True):
            c, = [s.connect()]
            c.request("POST", "/v1/chat/completions", json.dumps(chat_body(text, stream=stream)))
            time.sleep(after)
            c.sock.close()
            c.close()
        for text, stream in (("#delay=20 #loop say:x", True), ("#prefill=200 " + "x" * 1000, True), ("#delay=20 #loop say:x", False)):
            leave(text, 0.3, stream)
            begin = time.monotonic()
            assert s.chat("hi").status == 200 and time.monotonic() - begin < 2, text
        # in the queue: what stands behind a dead one does not wait for it
        busy = threading.Thread(target=lambda: s.chat("#delay=50 #loop say:x", max_tokens=20))
        busy.start()
        time.sleep(0.2)
        dead = [threading.Thread(target=leave, args=("#delay=50 #loop say:x", 0.2)) for _ in range(5)]
        [t.start() for t in dead]
        time.sleep(0.1)
        begin = time.monotonic()
        assert s.chat("hi").status == 200 and time.monotonic() - begin < 3
        [t.join() for t in dead + [busy]]
        assert s.metric("answers_cancelled_total") >= 3
        assert s.metric('requests_total{status="5xx"}') == 0 and s.metric('requests_total{status="broken"}') >= 3


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
