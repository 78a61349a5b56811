"""Anthropic's /v1/messages and count_tokens over the scripted model: blocks, events, refusals."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, named

TOOLS = [{"name": "add", "description": "adds", "input_schema": {"type": "object", "properties": {
    "a": {"type": "integer"}, "s": {"type": "string"}}}}]
CALL = '<tool_call>{"name": "add", "arguments": {"a": %d}}</tool_call>'


def body(content, **more):
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return {"model": "stub", "max_tokens": 400, "messages": messages, **more}


class Grammar:
    """The grammar of Anthropic's events, as a state machine; gathers the message."""

    def __init__(self):
        self.message, self.open, self.ended, self.pings = None, None, False, 0

    def take(self, event, d):
        assert event == d["type"] and not self.ended, (event, d)
        if event == "ping":
            self.pings += 1
        elif event == "message_start":
            assert self.message is None
            self.message = d["message"]
            assert self.message["content"] == [] and self.message["stop_reason"] is None
        elif event == "content_block_start":
            assert self.open is None and d["index"] == len(self.message["content"])
            self.open = dict(d["content_block"])
            if self.open["type"] == "tool_use":
                assert self.open["input"] == {} and self.open["id"].startswith("toolu_")
                self.open["input"] = ""
            else:
                assert self.open[self.open["type"]] == ""
        elif event == "content_block_delta":
            assert d["index"] == len(self.message["content"])
            kind, delta = self.open["type"], d["delta"]
            want = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking"),
                    "tool_use": ("input_json_delta", "partial_json")}[kind]
            if delta["type"] == "signature_delta":
                assert kind == "thinking" and self.open["signature"] == "" and delta["signature"]
                self.open["signature"] = delta["signature"]
                return
            assert delta["type"] == want[0], delta
            assert kind != "thinking" or self.open["signature"] == ""
            self.open["input" if kind == "tool_use" else kind] += delta[want[1]]
        elif event == "content_block_stop":
            assert d["index"] == len(self.message["content"])
            if self.open["type"] == "tool_use":
                self.open["input"] = json.loads(self.open["input"])
            assert self.open["type"] != "thinking" or self.open["signature"]
            self.message["content"].append(self.open)
            self.open = None
        elif event == "message_delta":
            assert self.open is None
            self.message.update(d["delta"])
            self.message["usage"] = d["usage"]
        elif event == "message_stop":
            assert self.message["stop_reason"]
            self.ended = True
        else:
            raise AssertionError(event)


def strip(message):
    """Without what differs from request to request."""
    out = {k: v for k, v in message.items() if k not in ("id", "usage")}
    out["content"] = [{k: v for k, v in b.items() if k not in ("id", "signature")} for b in message["content"]]
    return out


def both(s, content, **more):
    """The message, whole and streamed; they must agree."""
    whole = s.post("/v1/messages", body(content, **more))
    assert whole.status == 200, whole.body
    events = s.stream("/v1/messages?beta=true", body(content, stream=True, **more))
    g = Grammar()
    for e, d in events.all():
        g.take(e, d)
    assert g.ended and strip(g.message) == strip(whole.json), (g.message, whole.json)
    assert g.message["usage"]["output_tokens"] == whole.json["usage"]["output_tokens"]
    for u in (g.message["usage"], whole.json["usage"]):
        assert u["input_tokens"] + u["cache_read_input_tokens"] == s.post("/v1/messages/count_tokens", body(content, **more)).json["input_tokens"]
    return whole.json


def test_plain(s):
    m = both(s, "hello")
    assert m["content"] == [{"type": "text", "text": "Hello from the stub."}] and m["stop_reason"] == "end_turn"
    assert m["role"] == "assistant" and m["type"] == "message" and m["id"].startswith("msg_")
    assert both(s, [{"type": "text", "text": "say:a"}] and [{"role": "user", "content": [{"type": "text", "text": "say:a"}, {"type": "text", "text": "b"}]}]
                )["content"][0]["text"] == "a\nb"
    assert both(s, "#loop say:x", max_tokens=3)["stop_reason"] == "max_tokens"
    m = both(s, "say:one STOP two", stop_sequences=["zz", "STOP"])
    assert m["stop_reason"] == "stop_sequence" and m["stop_sequence"] == "STOP" and m["content"][0]["text"] == "one "


@named("E15 E23 the events of messages: thinking, text, two calls")
def test_blocks(s):
    m = both(s, "say:<think>abc</think>xyz" + CALL % 1 + CALL % 2, tools=TOOLS)
    assert [b["type"] for b in m["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert m["content"][0]["thinking"] == "abc" and m["content"][0]["signature"] and m["stop_reason"] == "tool_use"
    assert [b["input"] for b in m["content"][2:]] == [{"a": 1}, {"a": 2}] and m["content"][2]["id"] != m["content"][3]["id"]
    m = both(s, "say:" + CALL % 1 + CALL % 2, tools=TOOLS, tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert len(m["content"]) == 1
    assert both(s, "say:" + CALL % 1, tools=TOOLS, tool_choice={"type": "none"})["content"][0]["type"] == "text"


@named("E21 history is what the client sends: a turn goes on after a restart")
def test_history():
    first = "say:<think>hm</think>I add." + CALL % 1
    with Server() as s:
        turn = s.post("/v1/messages", body(first, tools=TOOLS)).json["content"]
    with Server() as s:
        messages = [{"role": "user", "content": first}, {"role": "assistant", "content": turn}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": turn[-1]["id"], "content": [{"type": "text", "text": "1"}]},
            {"type": "text", "text": "say:done"}]}]
        m = both(s, messages, tools=TOOLS)
        assert m["content"] == [{"type": "text", "text": "done"}]
        prompt = s.post("/apply-template", {"messages": [{"role": "user", "content": "x"}]}).json["prompt"]
        assert prompt == "<user>x<bot>"
        for content in (None, "", "text", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]):
            messages[2]["content"][0]["content"] = content
            assert s.post("/v1/messages", body(messages, tools=TOOLS)).status == 200, content


@named("E13 count_tokens counts what messages reads")
def test_counting(s):
    big = body([{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"},
                {"type": "text", "text": "a"}]}, {"role": "user", "content": "say:x"}],
               system=[{"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "two"}],
               tools=TOOLS + [{"name": "sub", "input_schema": {"type": "object"}}])
    counted = s.post("/v1/messages/count_tokens?beta=true", {k: v for k, v in big.items() if k != "max_tokens"})
    assert counted.status == 200
    used = s.post("/v1/messages?beta=true", big).json["usage"]
    assert used["input_tokens"] == counted.json["input_tokens"] and used["cache_read_input_tokens"] == 0
    assert counted.json["input_tokens"] > s.post("/v1/messages/count_tokens", body("say:x")).json["input_tokens"] + 100


@named("E25 a billing header that changes does not keep prompts from being reused")
def test_billing():
    def system(cch):
        return [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=1; cch={cch};"}, {"type": "text", "text": "You help. " * 40}]
    for options, reused in (((), True), (("--keep-billing-header",), False)):
        with Server(*options) as s:
            s.post("/v1/messages", body("hi", system=system("fa690")))
            u = s.post("/v1/messages", body("hi", system=system("b1234"))).json["usage"]
            assert (u["cache_read_input_tokens"] > 400) == reused and (u["input_tokens"] < 10) == reused, u


@named("E18 prompts of messages that are too long")
def test_too_long():
    with Server(stub_args=["ctx=64"]) as s:
        for n in range(61, 66):
            for max_tokens in (1, 2):
                fits = n + max_tokens <= 64
                for stream in (False, True):
                    r = s.post("/v1/messages", body("x" * (n - 2), max_tokens=max_tokens, stream=stream))
                    assert r.status == (200 if fits else 400), (n, r.body)
                    if n >= 64:
                        assert r.error == f"prompt is too long: {n} tokens > 63 maximum"
                    elif not fits:
                        assert f"{n} + {max_tokens} > 64" in r.error
        assert s.post("/v1/messages", body("hi", max_tokens=9)).status == 200


@named("E17 pings of messages")
def test_pings():
    with Server("--keepalive", 1, stub_args=["chunk=16"]) as s:
        seen = list(s.stream("/v1/messages", body("#prefill=300 " + "x" * 160, stream=True)))
        assert seen[0][0] == "message_start" and seen[0][2] < 1.0
        assert sum(e == "ping" for e, _, _ in seen) >= 3 and not any(e == "comment" for e, _, _ in seen)
        assert seen[-1][0] == "message_stop"


def test_thinking_budget(s):
    text = "say:<think>" + "y" * 60 + "</think>" + "z" * 60
    m = both(s, text, thinking={"type": "enabled", "budget_tokens": 10})
    assert m["content"][0]["thinking"] == "y" * 10
    assert m["content"][1]["text"].endswith("z" * 20)
    m = both(s, text)
    assert m["content"][0]["thinking"] == "y" * 60 and m["content"][1]["text"] == "z" * 60
    m = both(s, "say:" + "y" * 30, thinking={"type": "disabled"})
    assert m["content"] == [{"type": "text", "text": "y" * 30}]
    with Server("--think-budget", 10) as limited:
        assert both(limited, text)["content"][0]["thinking"] == "y" * 10
        assert both(limited, text, thinking={"type": "enabled", "budget_tokens": 20})["content"][0]["thinking"] == "y" * 20


@named("tools that are loaded later come into the conversation where they were found")
def test_tool_search(s):
    later = {"name": "later", "description": "Found \u00e9.", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}, "defer_loading": True}
    call = {"type": "tool_use", "id": "a", "name": "add", "input": {"a": 1}}
    found = {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "tool_reference", "tool_name": "later"}, {"type": "text", "text": "say:ok."}]}
    def ask(messages, tools, **more):
        r = s.post("/v1/messages", {"max_tokens": 200, "messages": messages, "tools": tools, "temperature": 0, **more})
        assert r.status == 200, r.body
        u = r.json["usage"]
        return r.json["content"], u["input_tokens"] + u["cache_read_input_tokens"], u["cache_read_input_tokens"]
    first = [{"role": "user", "content": "say:Looking."}]
    _, plain, _ = ask(first, TOOLS)
    _, n, _ = ask(first, [*TOOLS, later])
    assert n == plain  # it is not in the prompt, so finding it changes nothing in front
    turn = [*first, {"role": "assistant", "content": [{"type": "text", "text": "Looking."}, call]}, {"role": "user", "content": [found]}]
    content, n, cached = ask(turn, [*TOOLS, later])
    assert content[0]["text"].startswith("ok.") and n > plain + 100 and cached >= plain - 8, (content, n, cached)
    ask(turn, [*TOOLS, later], tool_choice={"type": "none"})
    turn.append({"role": "user", "content": 'say:<tool_call>{"name": "later", "arguments": {"q": "x"}}</tool_call>'})
    content, _, _ = ask(turn, [*TOOLS, later])
    assert content[0]["type"] == "tool_use" and content[0]["name"] == "later" and content[0]["input"] == {"q": "x"}


def test_refused(s):
    user = {"role": "user", "content": "x"}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
    for more, what in (
            ({"max_tokens": None}, "max_tokens"), ({"max_tokens": 0}, "max_tokens"), ({"messages": []}, "messages"), ({"messages": None}, "messages"),
            ({"messages": [user, {"role": "assistant", "content": "Sure,"}]}, "assistant"), ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
            ({"messages": [{"role": "user", "content": [image]}]}, "image"), ({"messages": [{"role": "user", "content": []}]}, "content"),
            ({"messages": [{"role": "user", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}]}]}, "tool_use"),
            ({"messages": [user, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "x"}]}, user]}, "redacted_thinking"),
            ({"messages": [user, {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}, user]}, "tool_use"),
            ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [image]}]}]}, "results"),
            ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "tool_use_id"),
            ({"system": 5}, "system"), ({"system": [image]}, "system[0]"), ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, "web_search"),
            ({"tools": [{"name": "x"}]}, "tools[0]"), ({"tool_choice": {"type": "any"}}, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "sub"}}, "tool_choice"), ({"tools": TOOLS, "tool_choice": {"type": "tool"}}, "tool_choice"), ({"thinking": {"type": "maybe"}}, "type"),
            ({"thinking": {"type": "enabled", "budget_tokens": 0}}, "budget_tokens"), ({"temperature": 2.5}, "temperature"),
            ({"stop_sequences": [""]}, "stop_sequences"), ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
            ({"output_config": {"format": {"type": "json_schema"}}}, "output_config"), ({"stream": 1}, "stream"),
            ({"output_config": {"effort": "endless"}}, "effort"), ({"output_config": {"task_budget": {"type": "tokens", "total": 9}}}, "task_budget"),
            ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "clear_tool_uses"), ({"fallbacks": [{}]}, "fallbacks"),
            ({"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}]}}, "keeps all"),
            ({"tools": [{"name": "", "input_schema": {}}]}, "tools[0]"), ({"tools": [{**TOOLS[0], "defer_loading": 1}]}, "defer_loading"),
            ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": 5}]}]}, "result"),
            ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "tool_reference", "tool_name": "x"}]}]}]}, "tools")):
        r = s.post("/v1/messages", {**body("hi"), **more})
        assert r.status == 400 and r.json["type"] == "error" and r.json["error"]["type"] == "invalid_request_error", (more, r.body)
        assert what in r.error, (more, r.error)
    for more in ({"metadata": {"user_id": "u"}}, {"service_tier": "auto"}, {"thinking": {"type": "adaptive"}}, {"output_config": {"effort": "high"}},
                 {"system": ""}, {"system": []}, {"context_management": {"edits": []}}, {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}},
                 {"messages": [user, {"role": "system", "content": "late"}, user]}):
        assert s.post("/v1/messages", {**body("hi"), **more}).status == 200, more


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
