"""/v1/responses over the scripted model: items, numbered events, previous_response_id within a bounded store."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server

try:
    import openai
except ImportError:
    openai = None

TOOLS = [{"type": "function", "name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}]
CALL = '<tool_call>{"name": "add", "arguments": {"a": 7}}</tool_call>'


def ask(s, given, **more):
    r = s.post("/v1/responses", {"model": "stub", "input": given, **more})
    assert r.status == 200, r.body
    return r.json


def texts(response):
    return [(i["type"], i.get("name") or i["content"][0]["text"]) for i in response["output"]]


def test_items(s):
    r = ask(s, "hi")
    assert r["status"] == "completed" and texts(r) == [("message", "Hello from the stub.")] and r["usage"]["output_tokens"] == 6
    r = ask(s, "say:<think>so</think>yes" + CALL, tools=TOOLS)
    assert texts(r) == [("reasoning", "so"), ("message", "yes"), ("function_call", "add")]
    assert json.loads(r["output"][2]["arguments"]) == {"a": 7} and r["output"][2]["call_id"] and len({i["id"] for i in r["output"]}) == 3
    assert texts(ask(s, "hi", n=2, include=["reasoning.encrypted_content"])) == [("message", "Hello from the stub.")]  # there is no n here
    r = ask(s, "#loop say:<think>so</think>x", max_output_tokens=14)
    assert [i["status"] for i in r["output"]] == ["completed", "incomplete"]
    done = [d["item"]["status"] for e, d in s.stream("/v1/responses", {"input": "#loop say:<think>so</think>x", "max_output_tokens": 14, "stream": True}).all()
            if e == "response.output_item.done"]
    assert done == ["completed", "incomplete"]
    thought = lambda *parts: [{"role": "user", "content": "hi"}, {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": t} for t in parts]},
                              {"role": "assistant", "content": "x"}, {"role": "user", "content": "hi"}]
    assert ask(s, thought("one\0", "two"))["usage"]["input_tokens"] == ask(s, thought("one\0\ntwo"))["usage"]["input_tokens"]  # no part is lost
    r = ask(s, "#loop say:x", max_output_tokens=3)
    assert r["status"] == "incomplete" and r["incomplete_details"] == {"reason": "max_output_tokens"}
    r = ask(s, [{"role": "user", "content": [{"type": "input_text", "text": "say:a"}]}], instructions="Be brief.")
    assert texts(r) == [("message", "a")] and r["instructions"] == "Be brief."
    r = ask(s, "say:no", text={"format": {"type": "json_schema", "name": "x", "schema": {"enum": ["yes", "never"]}}})
    assert json.loads(texts(r)[0][1]) in ("yes", "never")
    assert texts(ask(s, "say:no", tools=TOOLS, tool_choice={"type": "function", "name": "add"}))[0] == ("function_call", "add")


def test_events(s):
    events = s.stream("/v1/responses", {"input": "say:<think>so</think>yes" + CALL, "tools": TOOLS, "stream": True}).all()
    assert [d["sequence_number"] for _, d in events] == list(range(len(events))) and all(e == d["type"] for e, d in events)
    kinds = [e.removeprefix("response.") for e, _ in events]
    assert kinds[:2] == ["created", "in_progress"] and kinds[-1] == "completed"
    items, parts = {}, {}
    for e, d in events:
        if e == "response.output_item.added":
            assert d["output_index"] == len(items) and d["item"]["status"] == "in_progress"
            items[d["output_index"]] = d["item"]["id"]
        if e.endswith(".delta"):
            assert d["item_id"] == items[d["output_index"]]
            parts[d["item_id"]] = parts.get(d["item_id"], "") + d["delta"]
        if e in ("response.output_text.done", "response.reasoning_text.done"):
            assert parts[d["item_id"]] == d["text"]
        if e == "response.function_call_arguments.done":
            assert parts[d["item_id"]] == d["arguments"]
    final = events[-1][1]["response"]
    assert [i["id"] for i in final["output"]] == list(items.values()) and texts(final) == [("reasoning", "so"), ("message", "yes"), ("function_call", "add")]
    done = [d["item"] for e, d in events if e == "response.output_item.done"]
    assert done == final["output"]
    failed = s.stream("/v1/responses", {"input": "#fail=2", "stream": True}).all()[-1]
    assert failed[0] == "response.failed" and "script" in failed[1]["response"]["error"]["message"]


def test_previous_responses(s):
    first = ask(s, "say:<think>t</think>one" + CALL, tools=TOOLS)
    call = first["output"][-1]
    second = ask(s, [{"type": "function_call_output", "call_id": call["call_id"], "output": "say:seven"}], previous_response_id=first["id"], tools=TOOLS)
    assert texts(second)[0][1].startswith("seven") and second["usage"]["input_tokens"] > first["usage"]["input_tokens"]
    third = ask(s, "say:three", previous_response_id=second["id"])
    # the same conversation as items gives the same prompt
    items = [{"role": "user", "content": "say:<think>t</think>one" + CALL}, *first["output"],
             {"type": "function_call_output", "call_id": call["call_id"], "output": "say:seven"}, *second["output"], {"role": "user", "content": "say:three"}]
    again = ask(s, items)
    assert again["usage"]["input_tokens"] == third["usage"]["input_tokens"] and texts(again) == texts(third)
    streamed = s.stream("/v1/responses", {"input": "say:s", "stream": True}).all()[-1][1]["response"]["id"]
    assert texts(ask(s, "say:t", previous_response_id=streamed)) == [("message", "t")]
    unstored = ask(s, "hi", store=False)["id"]
    for unknown in (unstored, "resp_0", "", "x" * 500):
        r = s.post("/v1/responses", {"input": "hi", "previous_response_id": unknown})
        assert r.status == 404 and "previous_response_id" in r.error, r.body
    for _ in range(257):
        ask(s, "say:x")
    assert s.post("/v1/responses", {"input": "hi", "previous_response_id": first["id"]}).status == 404


def test_refused(s):
    for body, what in (({}, "input"), ({"input": 5}, "input"), ({"input": []}, "messages"), ({"input": [{"type": "item_reference", "id": "x"}]}, "item_reference"),
                       ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "text"), ({"input": [{"content": "x"}]}, "role"),
                       ({"input": [{"type": "function_call", "name": "f"}]}, "call_id"), ({"input": [{"type": "function_call_output", "output": "x"}]}, "call_id"),
                       ({"input": "x", "tools": [{"type": "web_search"}]}, "tools[0]"), ({"input": "x", "background": True}, "background"),
                       ({"input": "x", "truncation": "auto"}, "truncation"), ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
                       ({"input": "x", "max_output_tokens": 10**6}, "4096"), ({"input": "x", "tool_choice": "required"}, "tool_choice"),
                       ({"input": "x", "reasoning": {"effort": "endless"}}, "effort"), ({"input": "x", "top_logprobs": 2}, "top_logprobs"),
                       ({"input": [{"role": "user", "content": 5}]}, "content"), ({"input": [{"type": "function_call_output", "call_id": "x"}]}, "output"),
                       ({"input": "x", "text": {"verbosity": "high"}}, "verbosity"), ({"input": "x", "include": ["message.output_text.logprobs"]}, "include"),
                       ({"input": "x", "context_management": [{"type": "compaction"}]}, "context_management"), ({"input": "x", "store": "x"}, "store"),
                       ({"input": "x", "tools": TOOLS, "tool_choice": {"type": "mcp", "name": "add"}}, "tool_choice"),
                       ({"input": "x", "tools": [{"type": "function", "name": "f", "parameters": 5}]}, "tools[0]")):
        r = s.post("/v1/responses", body)
        assert r.status == 400 and what in r.error, (body, r.body)


def test_sdk(s):
    if openai is None:
        raise client.tap.Skip("the Python package openai is not installed")
    c = openai.OpenAI(base_url=f"http://127.0.0.1:{s.port}/v1", api_key="x", max_retries=0)
    assert c.responses.create(model="stub", input="hi").output_text == "Hello from the stub."
    with c.responses.stream(model="stub", input="say:<think>so</think>yes" + CALL, tools=TOOLS) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == "yes" and final.output_text == "yes" and final.output[-1].name == "add"
    r = c.responses.create(model="stub", previous_response_id=final.id, tools=TOOLS, input=[
        {"type": "function_call_output", "call_id": final.output[-1].call_id, "output": "say:7."}])
    assert r.output_text.startswith("7.")


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
