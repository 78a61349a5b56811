"""The emitted server of laguna-tiny under the official openai and anthropic packages: a whole calculator loop, plain and streamed, demanded calls and
schemas, eight at once, and turns that reuse what was read, past the windows of its layers."""
import asyncio
import json
import os
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import laguna
from client import Server, tap

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
OPENAI_TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds two numbers.", "parameters": PARAMETERS}}]
ANTHROPIC_TOOLS = [{"name": "add", "description": "Adds two numbers.", "input_schema": PARAMETERS}]
SUM = "What is 17 plus 25?"


def user(text):
    return [{"role": "user", "content": text}]


def openai_calculator(c, stream):
    def ask(messages):
        more = dict(model="x", messages=messages, tools=OPENAI_TOOLS, temperature=0, max_tokens=300)
        if not stream:
            return c.chat.completions.create(**more).choices[0]
        with c.chat.completions.stream(**more) as events:
            return events.get_final_completion().choices[0]
    messages = user(SUM)
    first = ask(messages)
    assert first.finish_reason == "tool_calls" and len(first.message.tool_calls) == 1, first
    call = first.message.tool_calls[0]
    assert call.function.name == "add" and json.loads(call.function.arguments) == {"a": 17, "b": 25}
    second = ask(messages + [first.message, {"role": "tool", "tool_call_id": call.id, "content": "42"}])
    assert second.finish_reason == "stop" and "42" in second.message.content, second


def anthropic_calculator(c, stream):
    def ask(messages):
        more = dict(model="x", messages=messages, tools=ANTHROPIC_TOOLS, max_tokens=300, extra_body={"temperature": 0})
        if not stream:
            return c.messages.create(**more)
        with c.messages.stream(**more) as events:
            return events.get_final_message()
    messages = user(SUM)
    first = ask(messages)
    call = first.content[-1]
    assert first.stop_reason == "tool_use" and call.name == "add" and call.input == {"a": 17, "b": 25}, first
    second = ask(messages + [{"role": "assistant", "content": first.content}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": "42"}]}])
    assert second.stop_reason == "end_turn" and "42" in second.content[-1].text, second


def demanded(c):
    r = c.chat.completions.create(model="x", messages=user("Hello!"), tools=OPENAI_TOOLS, tool_choice="required", parallel_tool_calls=False,
                                  temperature=0, max_tokens=400).choices[0]
    assert r.finish_reason == "tool_calls" and set(json.loads(r.message.tool_calls[0].function.arguments)) == {"a", "b"}, r
    def tool(strict, **properties):
        return [{"type": "function", "function": {"name": "add", "description": "Adds two numbers.", "strict": strict, "parameters": {
            "type": "object", "properties": properties, "required": [*properties], "additionalProperties": False} if properties else {"type": "object"}}}]
    few = tool(True, a={"enum": [1, 2]}, b={"type": "string", "enum": ["x", "y"]}, c={"type": "string", "const": "so"})
    r = c.chat.completions.create(model="x", messages=user(SUM), tools=few, temperature=0, max_tokens=300).choices[0]
    args = json.loads(r.message.tool_calls[0].function.arguments)
    assert r.finish_reason == "tool_calls" and args["a"] in (1, 2) and args["b"] in ("x", "y") and args["c"] == "so", r
    r = c.chat.completions.create(model="x", messages=user(SUM), tools=tool(False), tool_choice="required", temperature=0, max_tokens=300).choices[0]
    assert all("<" not in key for key in json.loads(r.message.tool_calls[0].function.arguments)), r
    for word in ({"pattern": "x"}, {"maxLength": 3}):
        try:
            c.chat.completions.create(model="x", messages=user(SUM), tools=tool(True, a={"type": "string", **word}), max_tokens=1)
            raise AssertionError(word)
        except Exception as e:
            assert getattr(e, "status_code", 0) == 400 and [*word][0] in str(e), e
    schema = {"type": "object", "properties": {"sum": {"type": "integer", "minimum": 0}, "sure": {"type": "boolean"}}, "required": ["sum", "sure"]}
    r = c.chat.completions.create(model="x", messages=user(SUM), temperature=0, max_tokens=300, response_format={
        "type": "json_schema", "json_schema": {"name": "s", "schema": schema}}).choices[0]
    got = json.loads(r.message.content)
    assert set(got) == {"sum", "sure"} and isinstance(got["sum"], int) and r.message.reasoning_content, r


def eight_at_once(s, openai):
    questions = [f"What is {a} plus {a + 3}?" for a in range(10, 18)]

    async def go():
        async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{s.port}/v1", api_key="x", max_retries=0) as c:
            async def one(q):
                text = ""
                async for chunk in await c.chat.completions.create(model="x", messages=user(q), temperature=0, max_tokens=200, stream=True):
                    text += chunk.choices[0].delta.content or ""
                return text
            return await asyncio.gather(*[one(q) for q in questions])
    together = asyncio.run(go())
    for a, q, text in zip(range(10, 18), questions, together):
        alone = s.chat(q, temperature=0, max_tokens=200).json["choices"][0]["message"]["content"]
        assert text == alone and re.search(rf"\b{2 * a + 3}\b", text), (q, text, alone)


def long_turns(s, program):
    messages = [{"role": "system", "content": "Notes. " + "The cat sees the dog. " * 900}, {"role": "user", "content": SUM}]
    def ask(s):
        r = s.post("/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 40})
        assert r.status == 200, r.body
        return r.json
    first = ask(s)
    assert first["usage"]["prompt_tokens"] > 4000, first["usage"]
    messages.extend([first["choices"][0]["message"], {"role": "user", "content": "The dog sees the cat. " * 80 + SUM}])
    second = ask(s)
    u = second["usage"]
    assert u["prompt_tokens"] - u["prompt_tokens_details"]["cached_tokens"] < 1200, u
    s.chat("Tell a story.", n=8, max_tokens=8)  # every slot gets something else; the store has the conversation
    third = ask(s)
    assert 0 <= u["prompt_tokens"] - third["usage"]["prompt_tokens_details"]["cached_tokens"] < 32, third["usage"]
    assert third["choices"][0]["message"] == second["choices"][0]["message"]
    messages[2:] = [{"role": "user", "content": "Another question: " + SUM}]  # parts within the first answer's prompt, or before it
    parted = ask(s)
    with Server("--prefix-store", 0, program=program) as plain:  # from nothing: the same words
        for n, got in ((2, parted), (1, first)):
            del messages[n + 1:]
            assert ask(plain)["choices"][0]["message"] == got["choices"][0]["message"], n


def test_laguna_tiny():
    try:
        import anthropic
        import openai
    except ImportError as e:
        raise tap.Skip(f"the Python package {e.name} is not installed")
    program = laguna.build()
    with Server(program=program) as s:
        oa = openai.OpenAI(base_url=f"http://127.0.0.1:{s.port}/v1", api_key="x", max_retries=0)
        an = anthropic.Anthropic(base_url=f"http://127.0.0.1:{s.port}", api_key="x", max_retries=0)
        for stream in (False, True):
            openai_calculator(oa, stream)
            anthropic_calculator(an, stream)
        demanded(oa)
        eight_at_once(s, openai)
        long_turns(s, program)


def test_long_prompt():
    """A first request of 24,438 tokens and a turn that adds 500; then the same after another talk took the only slot, and after a new start."""
    if not os.environ.get("LAGEN_TEST_ALL"):
        raise tap.Skip("long; check.sh --all runs it")
    sentence, added = "The cat sees the dog. ", "The dog sees the cat. "
    with tempfile.TemporaryDirectory() as kv:
        def start():
            return Server("--slots", 1, "--kv-dir", kv, program=laguna.build(65536, 2))

        def ask(s, messages):
            r = s.post("/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 60}, timeout=600)
            assert r.status == 200, r.body
            u = r.json["usage"]
            print("#", u["prompt_tokens"], "tokens,", u["prompt_tokens_details"]["cached_tokens"], "of them cached")
            return r.json["choices"][0]["message"], u["prompt_tokens"], u["prompt_tokens_details"]["cached_tokens"]
        with start() as s:
            count = lambda m: len(s.post("/tokenize", {"content": s.post("/apply-template", {"messages": m}).json["prompt"]}).json["tokens"])
            messages = [{"role": "system", "content": sentence * 4000}, {"role": "user", "content": SUM}]
            messages[0]["content"] = sentence * (4000 - (count(messages) - 24438) // 6 - 1)
            while count(messages) < 24438:
                messages[0]["content"] += " a"
            first, n, cached = ask(s, messages)
            assert n == 24438 and cached < 20, n
            messages += [first, {"role": "user", "content": added * 83}]
            second, n, cached = ask(s, messages)
            assert 24438 + 500 < n and n - cached < 1200, (n, cached)
            ask(s, [{"role": "system", "content": "Other notes. " + sentence * 300}, {"role": "user", "content": SUM}])
            again, n, cached = ask(s, messages)
            assert again == second and n - cached < 32, (n, cached)
        with start() as s:
            again, n, cached = ask(s, messages)
            assert again == second and n - cached < 32, (n, cached)


if __name__ == "__main__":
    tap.main([test_laguna_tiny, test_long_prompt])
