"""Answers of a demanded form: JSON, schemas, calls. The model is noise (#flat) or says something else; what comes out fits all the same,
and what cannot be guaranteed is refused before any work."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import Server, chat_body, named

S5 = {"type": "string", "maxLength": 5}
SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": S5, "c": {"type": "boolean"}}, "required": ["a", "c"], "additionalProperties": False},
    {"type": "object", "properties": {"list": {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": 3}}, "required": ["list"]},
    {"type": "array", "items": {"enum": ["red", "green", "greenish", 1, None, {"x": [1]}]}, "minItems": 1, "maxItems": 4},
    {"anyOf": [{"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]}, {"type": "null"}, {"type": ["boolean", "integer"]}]},
    {"$defs": {"n": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}, "required": ["v", "next"]}},
     "$ref": "#/$defs/n"},
    {"type": "string", "minLength": 2, "maxLength": 4},
    {"type": "object", "properties": {"o": {"type": "object", "additionalProperties": {"type": "null"}}}, "required": []},
    {"type": "object", "properties": {"we\"ird k\u00e9y": {"type": "null"}}, "required": ["we\"ird k\u00e9y"]},
    {"allOf": [{"$ref": "#/definitions/a~1b"}], "definitions": {"a/b": {"type": "boolean"}}, "title": "t", "description": "d"},
]


def valid(v, s, root):
    """Whether `v` fits the schema, for what these schemas use."""
    if s is True or s == {}:
        return True
    if "$ref" in s:
        at = root
        for part in s["$ref"].split("/")[1:]:
            at = at[part.replace("~1", "/").replace("~0", "~")]
        return valid(v, at, root)
    if "allOf" in s:
        return all(valid(v, x, root) for x in s["allOf"])
    if "anyOf" in s:
        return any(valid(v, x, root) for x in s["anyOf"])
    if "const" in s:
        return v == s["const"] and type(v) is type(s["const"])
    if "enum" in s:
        return any(v == x and type(v) is type(x) for x in s["enum"])
    types = s["type"] if isinstance(s["type"], list) else [s["type"]]
    for t in types:
        if t == "null" and v is None or t == "boolean" and isinstance(v, bool):
            return True
        if t in ("integer", "number") and not isinstance(v, bool) and isinstance(v, int if t == "integer" else (int, float)):
            return v >= s.get("minimum", -1e99)
        if t == "string" and isinstance(v, str):
            return s.get("minLength", 0) <= len(v) <= s.get("maxLength", 1e9)
        if t == "array" and isinstance(v, list):
            return s.get("minItems", 0) <= len(v) <= s.get("maxItems", 1e9) and all(valid(x, s.get("items", True), root) for x in v)
        if t == "object" and isinstance(v, dict):
            p, more = s.get("properties", {}), s.get("additionalProperties", not s.get("properties"))
            return all(k in v for k in s.get("required", [])) and all(
                valid(x, p[k], root) if k in p else more is not False and valid(x, more, root) for k, x in v.items())
    return False


def of_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


def content(r):
    assert r.status == 200, r.body
    return r.json["choices"][0]["message"]["content"], r.json["choices"][0]["finish_reason"]


def test_noise_fits(s):
    seen = set()
    for i, schema in enumerate(SCHEMAS):
        whole = 0
        for seed in range(12):
            text, reason = content(s.chat("#flat", response_format=of_schema(schema), temperature=1, top_k=0, top_p=1, min_p=0, seed=seed, max_tokens=900))
            if reason == "stop":
                assert valid(json.loads(text), schema, schema), (schema, text)
                whole += 1
                seen.add((i, text))
        assert whole >= 6, (schema, whole)
    assert len(seen) > 60  # not always the same


def test_json_object(s):
    whole = 0
    for seed in range(12):
        text, reason = content(s.chat("#flat", response_format={"type": "json_object"}, temperature=1, top_k=0, top_p=1, min_p=0, seed=seed, max_tokens=2000))
        if reason == "stop":
            assert isinstance(json.loads(text), dict), text
            whole += 1
    assert whole >= 3, whole
    r = s.post("/v1/completions", {"prompt": "<user>say:no json<bot>", "response_format": of_schema({"enum": ["yes", "no"]})})
    assert json.loads(r.json["choices"][0]["text"]) in ("yes", "no")


def test_what_fits_is_left_alone(s):
    said = '{"a": 5, "b": "\u00e9x", "c": true}'
    text, reason = content(s.chat("say:" + said, response_format=of_schema(SCHEMAS[0]), temperature=0))
    assert text == said and reason == "stop"
    r = s.chat("say:<think>I think.</think>" + said, response_format=of_schema(SCHEMAS[0]), temperature=0,
               chat_template_kwargs={"enable_thinking": False}).json["choices"][0]["message"]
    assert valid(json.loads(r["content"]), SCHEMAS[0], SCHEMAS[0])
    text, reason = content(s.chat("say:" + said, response_format=of_schema(SCHEMAS[0]), temperature=0, max_tokens=4))
    assert reason == "length" and said.startswith(text)
    m = s.post("/v1/messages", {"max_tokens": 400, "messages": [{"role": "user", "content": "say:" + said}],
                                "output_config": {"format": {"type": "json_schema", "schema": SCHEMAS[0]}}})
    assert m.json["content"] == [{"type": "text", "text": said}] and m.json["stop_reason"] == "end_turn", m.body


TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "s": S5},
                                                                         "required": ["a"]}}} for name in ("add", "adder", "sub")]


def test_calls_are_made(s):
    names = set()
    for seed in range(16):
        for choice in ("required", {"type": "function", "function": {"name": "sub"}}):
            r = s.chat("#flat", tools=TOOLS, tool_choice=choice, parallel_tool_calls=False, temperature=1, top_k=0, top_p=1, min_p=0, seed=seed, max_tokens=600)
            c = r.json["choices"][0]
            if c["finish_reason"] == "length":
                continue
            call, = c["message"]["tool_calls"]
            names.add((str(choice)[:8], call["function"]["name"]))
            assert valid(json.loads(call["function"]["arguments"]), TOOLS[0]["function"]["parameters"], {}), call
            assert c["message"]["content"] is None and c["finish_reason"] == "tool_calls"
    assert {n for c, n in names if c == "required"} >= {"add", "sub"} and {n for c, n in names if c != "required"} == {"sub"}, names
    m = s.post("/v1/messages", {"max_tokens": 900, "messages": [{"role": "user", "content": "say:no call"}], "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
                                "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]}}]}).json
    assert m["content"][0]["type"] == "tool_use" and m["content"][0]["input"]["x"] in (1, 2) and m["stop_reason"] == "tool_use", m
    text = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'
    r = s.chat("say:" + text * 2, tools=TOOLS, tool_choice="required", temperature=0).json["choices"][0]
    assert len(r["message"]["tool_calls"]) == 2 and r["finish_reason"] == "tool_calls"
    r = s.chat("say:" + text, tools=TOOLS, response_format=of_schema(SCHEMAS[0]), temperature=0).json["choices"][0]
    assert len(r["message"]["tool_calls"]) == 1
    r = s.chat('say:{"a": 1, "c": false}', tools=TOOLS, response_format=of_schema(SCHEMAS[0]), temperature=0).json["choices"][0]
    assert r["message"]["content"] == '{"a": 1, "c": false}'


def strict(*names):
    return [{"type": "function", "function": {**t["function"], "strict": t["function"]["name"] in names}} for t in TOOLS]


def test_strict_tools_where_the_model_chooses(s):
    def said(text, tools, **more):
        r = s.chat("say:" + text, tools=tools, **{"temperature": 0, "max_tokens": 300, **more})
        assert r.status == 200, r.body
        return r.json["choices"][0]
    wrong = '<tool_call>{"name": "add", "arguments": {"a": "five", "z": []}}</tool_call>'
    loose = said("Well." + wrong, TOOLS)["message"]
    assert json.loads(loose["tool_calls"][0]["function"]["arguments"]) == {"a": "five", "z": []}
    n_calls = 0
    for seed in range(6):
        c = said("Well." + wrong, strict("add"), temperature=1, seed=seed)
        assert c["message"]["content"].startswith("Well.")
        for call in c["message"].get("tool_calls", []):
            assert call["function"]["name"] != "add" or valid(json.loads(call["function"]["arguments"]), TOOLS[0]["function"]["parameters"], {}), call
            n_calls += 1
    assert n_calls >= 2, n_calls
    # what is right is left alone: text, marks that begin and are none, several calls, others' arguments
    right = '<tool_call>{"name": "add", "arguments": {"a": 5}}</tool_call>'
    other = '<tool_call>{"name": "sub", "arguments": {"z": [1]}}</tool_call>'
    for text in ("Hello \u00e9.", "a < b <tool_ <tool_cal <<tool", "One." + right + right, right + other):
        assert said(text, strict("add"))["message"].get("content") == said(text, TOOLS)["message"].get("content"), text
        calls = [[(k["function"]["name"], k["function"]["arguments"]) for k in said(text, t)["message"].get("tool_calls", [])] for t in (TOOLS, strict("add"))]
        assert calls[0] == calls[1] and len(calls[0]) == text.count("</tool_call>"), (text, calls)
    c = said(right, strict("add"), max_tokens=8)
    assert c["finish_reason"] == "length" and "tool_calls" not in c["message"]
    m = s.post("/v1/messages", {"max_tokens": 300, "messages": [{"role": "user", "content": "say:" + wrong}], "tools": [
        {"name": "add", "input_schema": {"type": "object", "properties": {"a": {"enum": [7]}}, "required": ["a"], "additionalProperties": False}, "strict": True}]})
    assert [b["input"] for b in m.json["content"] if b["type"] == "tool_use"] == [{"a": 7}], m.body
    cannot = [{"type": "function", "function": {"name": "f", "strict": True, "parameters": {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}}}]
    r = s.chat("hi", tools=cannot)
    assert r.status == 400 and "pattern" in r.error and s.chat("hi", tools=cannot, tool_choice="none").status == 200


def test_refused_before_work(s):
    before = s.metric("answers_total")
    for schema, what in (({"type": "string", "pattern": "a+"}, "pattern"), ({"type": "integer", "maximum": 3}, "maximum"), ({"type": "integer", "minimum": 1}, "minimum"),
                         ({"not": {}}, "not"), ({"type": "array", "uniqueItems": True}, "uniqueItems"), ({"$ref": "#/nowhere"}, "refers"), ({"$ref": "http://x"}, "refers"),
                         ({"type": "thing"}, "type"), ({"type": 5}, "type"), ({"enum": []}, "enum"), (False, "schema"), (5, "schema"), ({"anyOf": []}, "anyOf"),
                         ({"type": "object", "required": ["x"]}, "requires"), ({"allOf": [{}, {}]}, "allOf"), ({"anyOf": [{}], "type": "object"}, "alone"),
                         ({"type": "string", "maxLength": 10**6}, "repetitions"), ({"type": "string", "minLength": 5, "maxLength": 2}, "repetitions"),
                         ({"type": "array", "minItems": -1}, "count"), ({"properties": {"a": {"if": {}}}}, "'if'")):
        r = s.chat("hi", response_format=of_schema(schema))
        assert r.status == 400 and what in r.error, (schema, r.body)
    for bad in ({"type": "json_schema"}, {"type": "json_schema", "json_schema": {}}, {"type": "xml"}, {}, {"type": None}, 5):
        assert s.chat("hi", response_format=bad).status == 400, bad
    for bad in ("sometimes", {"type": "function"}, {"type": "function", "function": {"name": "none"}}, {"type": "tool", "name": "add"}):
        assert s.chat("hi", tools=TOOLS, tool_choice=bad).status == 400, bad
    assert s.metric("answers_total") == before


@named("H03 schemas that nest, loop or explode")
def test_hostile_schemas(s):
    deep = {}
    for _ in range(100):
        deep = {"type": "array", "items": deep}
    assert s.chat("hi", response_format=of_schema(deep), max_tokens=5).status in (200, 400)
    loops = [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
             {"anyOf": [{"$ref": "#"}, {"type": "null"}]}]
    for schema in loops:
        assert s.chat("hi", response_format=of_schema(schema), max_tokens=5).status == 400, schema
    wide = {"anyOf": [{"const": f"{i}" + "x" * (i % 50)} for i in range(2000)]}
    assert s.chat("hi", response_format=of_schema(wide), max_tokens=5).status in (200, 400)
    many = {"enum": [f"word {i}" for i in range(5000)]}
    text, _ = content(s.chat("hi", response_format=of_schema(many)))
    assert re.fullmatch(r'"word \d+"', text), text
    assert s.chat("hi", response_format=of_schema({"type": "string", "maxLength": 9999}), max_tokens=5).status == 200
    long = {"type": "object", "properties": {**{f"p{i}": {"type": "null"} for i in range(4000)}, "z": {"type": "null"}}, "required": ["z"] * 500_000}
    r = s.post("/v1/chat/completions", chat_body("hi", response_format=of_schema(long), max_tokens=5), timeout=30)  # minutes, if each looked through the list
    assert r.status == 400 and "200 optional" in r.error, r.body
    many = {"type": "object", "properties": {f"p{i}": {"type": "null"} for i in range(200)}, "additionalProperties": False}
    for seed in range(3):
        text, reason = content(s.chat("#flat", response_format=of_schema(many), temperature=1, top_k=0, top_p=1, min_p=0, seed=seed, max_tokens=2500))
        assert reason == "length" or valid(json.loads(text), many, many), text
    for wide in ({"anyOf": [{**many, "title": "x"}, {**many, "title": "y"}]}, {"type": "array", "items": {"anyOf": [{"const": i} for i in range(400)]}},
                 {"type": "object", "properties": {"a": {"anyOf": [{**many, "title": "x"}, {**many, "title": "y"}]}}, "required": ["a"]}):
        r = s.chat("hi", response_format=of_schema(wide))
        assert r.status == 400 and "ways" in r.error, r.body  # before any work, not on the way
    nested = {"type": "string", "maxLength": 1000}
    for _ in range(4):
        nested = {"type": "array", "items": nested, "minItems": 100, "maxItems": 9000}
    assert s.chat("hi", response_format=of_schema(nested), max_tokens=5).status in (200, 400)
    r = s.post("/v1/chat/completions", '{"messages": [{"role": "user", "content": "x"}], "response_format": {"type": "json_schema", "json_schema": {"schema": %s}}}'
               % ('{"items":' * 60000 + "{}" + "}" * 60000))
    assert r.status == 400
    assert s.chat("hi").status == 200


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
