"""The official openai and anthropic Python packages against the server over the scripted model: plain, streaming, tools (a whole
calculator loop), errors, and eight at once."""
import asyncio
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
try:
    import anthropic
except ImportError:
    anthropic = None

HELLO = "Hello from the stub."
CALL = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


def oa(s, **more):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{s.port}/v1", api_key="any", max_retries=0, **more)


def an(s, **more):
    return anthropic.Anthropic(base_url=f"http://127.0.0.1:{s.port}", api_key="any", max_retries=0, **more)


def user(text):
    return [{"role": "user", "content": text}]


def need(module, name):
    if module is None:
        raise client.tap.Skip(f"the Python package {name} is not installed")


def test_openai_plain_and_streams(s):
    need(openai, "openai")
    c = oa(s)
    r = c.chat.completions.create(model="stub", messages=user("hi"))
    assert r.choices[0].message.content == HELLO and r.choices[0].finish_reason == "stop" and r.usage.total_tokens == 10
    assert [m.id for m in c.models.list()] == ["stub"] and c.models.retrieve("stub").id == "stub"
    text, usage = "", None
    for chunk in c.chat.completions.create(model="stub", messages=user("hi"), stream=True, stream_options={"include_usage": True}):
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
        usage = chunk.usage or usage
    assert text == HELLO and usage.completion_tokens == 6
    with c.chat.completions.stream(model="stub", messages=user("say:<think>so</think>yes")) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == "yes"
    assert c.completions.create(model="stub", prompt="<user>say:on<bot>").choices[0].text == "on"
    assert "".join(x.choices[0].text for x in c.completions.create(model="stub", prompt="<user>say:on<bot>", stream=True)) == "on"
    r = c.chat.completions.create(model="stub", messages=user("hi"), logprobs=True, top_logprobs=2)
    assert r.choices[0].logprobs.content[0].token == "Hello" and len(r.choices[0].logprobs.content[0].top_logprobs) == 2


def test_openai_calculator(s):
    need(openai, "openai")
    c = oa(s)
    tools = [{"type": "function", "function": {"name": "add", "description": "adds", "parameters": PARAMETERS}}]
    for stream in (False, True):
        messages = user("say:<think>add them</think>Let me see." + CALL)
        if stream:
            with c.chat.completions.stream(model="stub", messages=messages, tools=tools) as events:
                message = events.get_final_completion().choices[0].message
        else:
            message = c.chat.completions.create(model="stub", messages=messages, tools=tools).choices[0].message
        call = message.tool_calls[0]
        assert call.function.name == "add" and message.content == "Let me see."
        result = sum(json.loads(call.function.arguments).values())
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": f"say:The sum is {result}."}]
        r = c.chat.completions.create(model="stub", messages=messages, tools=tools)
        assert r.choices[0].message.content == "The sum is 5.</tool_response>"  # the script goes to the turn's end


def test_openai_structured(s):
    need(openai, "openai")
    import pydantic

    class Step(pydantic.BaseModel):
        why: str
        result: int

    class Answer(pydantic.BaseModel):
        steps: list[Step]
        final: float | None
    said = '{"steps": [{"why": "2+3", "result": 5}], "final": 5.0}'
    r = oa(s).chat.completions.parse(model="stub", messages=user("say:" + said), response_format=Answer, temperature=0)
    assert r.choices[0].message.parsed == Answer.model_validate_json(said)
    r = oa(s).chat.completions.parse(model="stub", messages=user("say:" + CALL), temperature=0, tool_choice="required", tools=[
        openai.pydantic_function_tool(type("add", (pydantic.BaseModel,), {"__annotations__": {"a": int, "b": int}}))])
    assert r.choices[0].message.tool_calls[0].function.parsed_arguments.b == 3


def test_openai_errors(s):
    need(openai, "openai")
    c = oa(s)
    for wrong, kind, code in ((dict(temperature=9), openai.BadRequestError, None), (dict(max_tokens=10**6), openai.BadRequestError, "context_length_exceeded"),
                              (dict(extra_body={"functions": [1]}), openai.BadRequestError, None)):
        try:
            c.chat.completions.create(model="stub", messages=user("hi"), **wrong)
            raise AssertionError(wrong)
        except kind as e:
            assert e.status_code == 400 and e.code == code and e.body["message"], e
    try:
        c.models.retrieve("nothing")
        raise AssertionError
    except openai.NotFoundError:
        pass
    try:
        c.chat.completions.create(model="stub", messages=user("#fail=0"))
        raise AssertionError
    except openai.InternalServerError as e:
        assert "script" in str(e)
    try:
        for _ in c.chat.completions.create(model="stub", messages=user("#fail=2"), stream=True):
            pass
        raise AssertionError
    except openai.APIError as e:
        assert "script" in str(e)


def test_openai_eight_at_once(s):
    need(openai, "openai")
    async def go():
        async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{s.port}/v1", api_key="x", max_retries=0) as c:
            async def one(i):
                text = ""
                async for chunk in await c.chat.completions.create(model="stub", messages=user(f"#delay=1 say:number {i} " + "word " * 20), stream=True):
                    text += chunk.choices[0].delta.content or ""
                return text
            return await asyncio.gather(*[one(i) for i in range(8)])
    assert asyncio.run(go()) == [f"number {i} " + ("word " * 20).rstrip() for i in range(8)]


def test_anthropic_plain_and_streams(s):
    need(anthropic, "anthropic")
    c = an(s)
    r = c.messages.create(model="stub", max_tokens=50, messages=user("hi"))
    assert r.content[0].text == HELLO and r.stop_reason == "end_turn" and r.usage.output_tokens == 6
    with c.messages.stream(model="stub", max_tokens=99, messages=user("say:<think>so</think>yes")) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == "yes" and [b.type for b in final.content] == ["thinking", "text"] and final.content[0].signature
    kinds = [e.type for e in c.messages.create(model="stub", max_tokens=9, messages=user("hi"), stream=True)]
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    assert c.messages.count_tokens(model="stub", messages=user("hi")).input_tokens == 4
    assert [m.id for m in c.models.list()] == ["stub"]
    assert c.messages.create(model="stub", max_tokens=50, messages=user("say:a STOP b"), stop_sequences=["STOP"]).stop_sequence == "STOP"


def test_anthropic_calculator(s):
    need(anthropic, "anthropic")
    c = an(s)
    tools = [{"name": "add", "description": "adds", "input_schema": PARAMETERS}]
    for stream in (False, True):
        messages = user("say:<think>add them</think>Let me see." + CALL)
        if stream:
            with c.messages.stream(model="stub", max_tokens=300, messages=messages, tools=tools) as events:
                message = events.get_final_message()
        else:
            message = c.messages.create(model="stub", max_tokens=300, messages=messages, tools=tools)
        assert message.stop_reason == "tool_use" and [b.type for b in message.content] == ["thinking", "text", "tool_use"]
        call = message.content[-1]
        assert call.input == {"a": 2, "b": 3}
        messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call.id, "content": f"say:The sum is {sum(call.input.values())}."}]}]
        r = c.messages.create(model="stub", max_tokens=300, messages=messages, tools=tools)
        assert r.content[0].text == "The sum is 5.</tool_response>"


def test_anthropic_errors(s):
    need(anthropic, "anthropic")
    c = an(s)
    for wrong, kind in ((dict(extra_body={"temperature": 9}), anthropic.BadRequestError), (dict(max_tokens=5000), anthropic.BadRequestError)):
        try:
            c.messages.create(model="stub", messages=user("hi"), **{"max_tokens": 5, **wrong})
            raise AssertionError(wrong)
        except kind as e:
            assert e.status_code == 400 and e.body["error"]["type"] == "invalid_request_error" and e.request_id.startswith("req_"), e
    try:
        c.messages.create(model="stub", max_tokens=5, messages=user("#fail=0"))
        raise AssertionError
    except anthropic.InternalServerError as e:
        assert e.body["error"]["type"] == "api_error"
    try:
        for _ in c.messages.create(model="stub", max_tokens=9, messages=user("#fail=2"), stream=True):
            pass
        raise AssertionError
    except anthropic.APIStatusError as e:
        assert "script" in str(e)


def test_anthropic_eight_at_once(s):
    need(anthropic, "anthropic")
    async def go():
        async with anthropic.AsyncAnthropic(base_url=f"http://127.0.0.1:{s.port}", api_key="x", max_retries=0) as c:
            async def one(i):
                async with c.messages.stream(model="stub", max_tokens=200, messages=user(f"#delay=1 say:number {i} " + "word " * 20)) as stream:
                    return await stream.get_final_text()
            return await asyncio.gather(*[one(i) for i in range(8)])
    assert asyncio.run(go()) == [f"number {i} " + ("word " * 20).rstrip() for i in range(8)]


def test_keys_of_both(s):
    need(openai, "openai")
    need(anthropic, "anthropic")
    import tempfile
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as f:
        f.write("the-real-key\n")
        f.flush()
        with Server("--api-key-file", f.name) as locked:
            assert oa(locked).with_options(api_key="the-real-key").models.list().data
            assert an(locked).with_options(api_key="the-real-key").models.list().data
            for c, e in ((oa(locked), openai.AuthenticationError), (an(locked), anthropic.AuthenticationError)):
                try:
                    c.models.list()
                    raise AssertionError(c)
                except e:
                    pass


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
