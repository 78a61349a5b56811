"""conversations.py -- conversations that chat templates get wrong: systems in odd places, tools, parallel calls, results,
thinking on and off, parts, null content, empty texts, long Unicode. Each is (name, variables of the template)."""
import json
import random

UNICODE = ("Größe 日本語 नमस्ते 🦙🇩🇪👩‍👩‍👧 e\u0301 \u200b\u00a0\u2028 <b>&amp;'\"</b> \\n \x7f\u0085 ΑΣ ÇA ﬁ ŉ ẞ "
           "{{ x }} {% if %} <|im_end|> </s> [INST] ")

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather at a place & time, e.g. <b>\"Köln\"</b>",
    "parameters": {"type": "object", "properties": {
        "place": {"type": "string", "description": "City, 'state'"},
        "days": {"type": "integer", "default": 3, "minimum": 0, "maximum": 1.5e300},
        "id": {"type": "integer", "minimum": -9223372036854775809, "maximum": 18446744073709551615},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "exact": {"type": "boolean", "nullable": True},
        "points": {"type": "array", "items": {"type": "number"}, "description": "numbers"},
        "options": {"type": "object", "properties": {"deep": {"type": "array", "items": {"type": "object"}}},
                    "required": ["deep"]},
        "either": {"oneOf": [{"type": "string", "description": "a"}, {"type": "number", "default": 1}]},
        "kind": {"type": ["string", "null"]}}, "required": ["place", "unit"]},
    "strict": True}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "Looks something up.\nSecond line of it.",
    "parameters": {"type": "object", "properties": {}}}}
BARE = {"type": "function", "function": {"name": "now", "description": "Time"}}


def user(text="Hello, who are you?"):
    return {"role": "user", "content": text}


def system(text="Be brief."):
    return {"role": "system", "content": text}


def assistant(text="I am a program.", **more):
    return {"role": "assistant", "content": text, **more}


def call(name="get_weather", arguments=None, n=0):
    if arguments is None:
        arguments = {"place": "Köln", "days": 2}
    return {"id": "call%05d" % n, "type": "function", "function": {"name": name, "arguments": arguments}}


def result(text='{"temp": 21.5}', n=0, **more):
    return {"role": "tool", "content": text, "tool_call_id": "call%05d" % n, **more}


def plain():
    yield "user only", [user()]
    yield "system and user", [system(), user()]
    yield "three turns", [system(), user(), assistant(), user("And now?")]
    yield "ends with assistant", [user(), assistant()]
    yield "system in the middle", [user(), assistant(), system("Now be rude."), user("Go.")]
    yield "system twice", [system(), system("And polite."), user()]
    yield "system last", [user(), system("late")]
    yield "empty system", [system(""), user()]
    yield "blank system", [system("  \n\t "), user()]
    yield "developer", [{"role": "developer", "content": "Short."}, user()]
    yield "user twice", [user("One."), user("Two.")]
    yield "assistant first", [assistant(), user()]
    yield "assistant twice", [user(), assistant("a"), assistant("b"), user("c")]
    yield "empty texts", [system(""), user(""), assistant(""), user("")]
    yield "white space", [system("  s \n"), user("\n\n u\t"), assistant("\n a \n\n"), user(" \r\n x ")]
    yield "long unicode", [system(UNICODE), user(UNICODE * 40), assistant(UNICODE), user("ok " + UNICODE)]
    yield "no messages", []


def thinking():
    yield "think tags in content", [user(), assistant("<think>\nLet me see.\n</think>\n\nIt is 4."), user("Sure?")]
    yield "open think tag", [user(), assistant("<think>cut"), user("?")]
    yield "end tag only", [user(), assistant("plan</think>answer"), user("?")]
    yield "two end tags", [user(), assistant("a</think>b</think>c"), user("?")]
    yield "reasoning_content", [user(), assistant("4", reasoning_content="2+2\n"), user("?")]
    yield "reasoning", [user(), assistant("4", reasoning="carry the one"), user("?")]
    yield "thinking key", [user(), assistant("4", thinking="hm"), user("?")]
    yield "empty reasoning", [user(), assistant("4", reasoning_content=""), user("?")]
    yield "null reasoning", [user(), assistant("4", reasoning_content=None), user("?")]


def tools():
    yield "tools, no call", [user("Weather?")]
    yield "system and tools", [system(), user("Weather?")]
    yield "one call", [user("Weather?"), assistant("", tool_calls=[call()]), result()]
    yield "call and answer", [user("W?"), assistant("", tool_calls=[call()]), result(), assistant("Warm."), user("Thanks")]
    yield "null content", [user("W?"), assistant(None, tool_calls=[call()]), result(), user("and?")]
    yield "absent content", [user("W?"), {"role": "assistant", "tool_calls": [call()]}, result()]
    yield "content and call", [user("W?"), assistant("Let me look.", tool_calls=[call()]), result()]
    yield "parallel calls", [user("W?"), assistant("", tool_calls=[call(n=1), call("search", {"q": UNICODE}, 2)]),
                             result("a", 1), result(UNICODE, 2)]
    yield "call, think, content", [user("W?"), assistant("Hm.", reasoning_content="must look", tool_calls=[call()]), result()]
    yield "string arguments", [user("W?"), assistant("", tool_calls=[call(arguments='{"place": "Bonn"}')]), result()]
    yield "no arguments", [user("W?"), assistant("", tool_calls=[call("now", {})]), result("")]
    yield "odd arguments", [user("W?"), assistant("", tool_calls=[call(arguments={
        "t": True, "n": None, "f": 1.0, "e": 1e22, "s": 1e-7, "i": -5, "big": 123456789012345678901234567890, "low": -9223372036854775808, "l": [1, [2, {"x": []}]], "o": {"a": {"b": "c"}},
        "z": 0.1, "q": "\"quoted\" \\ \n\t\b\f\r\x00\x1f"})]), result("[1, 2]")]
    yield "result is parts", [user("W?"), assistant("", tool_calls=[call()]),
                              result([{"type": "text", "text": "warm"}, {"type": "text", "text": "dry"}])]
    yield "named result", [user("W?"), assistant("", tool_calls=[call()]), result(name="get_weather")]
    yield "result alone", [user("W?"), result()]
    yield "two rounds", [user("W?"), assistant("", tool_calls=[call(n=1)]), result("a", 1),
                         assistant("", tool_calls=[call(n=2)]), result("b", 2), assistant("Done."), user("More"),
                         assistant("", tool_calls=[call(n=3)]), result("c", 3)]
    yield "empty calls", [user(), assistant("x", tool_calls=[]), user("y")]
    yield "call as last", [user("W?"), assistant("", tool_calls=[call()])]


def parts():
    yield "text parts", [{"role": "user", "content": [{"type": "text", "text": "One "}, {"type": "text", "text": "two"}]}]
    yield "system parts", [{"role": "system", "content": [{"type": "text", "text": "Brief."}]}, user()]
    yield "image part", [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": UNICODE}]}]
    yield "assistant parts", [user(), {"role": "assistant", "content": [{"type": "text", "text": "A"}]}, user("B")]
    yield "empty parts", [{"role": "user", "content": []}]


TEXTS = ["", " ", "\n", "Hi", " Hi ", "a\n\nb\n", "<think>x</think>y", "</think>", "<think>", "<tool_call>{}</tool_call>", "[TOOL_CALLS]", "None",
         "{'a': 1}", '{"a": 1}', "<|im_end|>", UNICODE, "\u2028\u0085x", "ß ﬁ İ", "\\n \\", "'\"", "0", "x" * 300, "[THINK]a[/THINK]b", "$(a)`b`",
         "<|channel|>analysis<|message|>a", "\t\ttab", "\r\n", "{{ 1 }}", "&lt;&#39;"]
VALUES = [None, True, False, 0, 1, -1, 1.5, 1e300, 1e-9, 10 ** 25, "", "s", " s ", UNICODE, [], {}, [1, "a", None], {"k": [{"z": 1.0}]}]


class Random:
    """Conversations of random turns; a fixed seed gives the same ones everywhere."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def text(self):
        return self.r.choice(TEXTS)

    def content(self):
        kind = self.r.random()
        if kind < 0.8:
            return self.text()
        if kind < 0.85:
            return None
        return [{"type": "text", "text": self.text()} for _ in range(self.r.randrange(3))]

    def arguments(self):
        object = {self.r.choice(["a", "b c", "ü", "items", "0"]): self.r.choice(VALUES) for _ in range(self.r.randrange(4))}
        return object if self.r.random() < 0.8 else json.dumps(object)

    def message(self, i):
        role = self.r.choice(["user", "user", "assistant", "assistant", "assistant", "tool", "tool", "system"])
        m = {"role": role}
        if self.r.random() < 0.95 or role != "assistant":
            m["content"] = self.content()
        if role == "assistant":
            if self.r.random() < 0.4:
                m["tool_calls"] = [call(self.r.choice(["f", "get_weather", "a.b"]), self.arguments(), i + k)
                                   for k in range(self.r.randrange(3))]
            if self.r.random() < 0.3:
                m[self.r.choice(["reasoning_content", "reasoning", "thinking"])] = self.r.choice([None, *TEXTS])
        if role == "tool":
            m["tool_call_id"] = "call%05d" % self.r.randrange(i + 1)
            if self.r.random() < 0.4:
                m["name"] = self.r.choice(["f", "get_weather"])
        return m

    def tool(self, depth=0):
        properties = {}
        for _ in range(self.r.randrange(4)):
            schema = {"type": self.r.choice(["string", "integer", "object", "array", "boolean", ["string", "null"], "number"])}
            for key, values in (("description", TEXTS), ("default", VALUES), ("enum", [["a", "b"], [1], []]), ("nullable", [True])):
                if self.r.random() < 0.3:
                    schema[key] = self.r.choice(values)
            if depth < 2 and schema["type"] == "object" and self.r.random() < 0.6:
                schema["properties"] = self.tool(depth + 1)["function"]["parameters"]["properties"]
            if schema["type"] == "array" and self.r.random() < 0.6:
                schema["items"] = {"type": self.r.choice(["string", "object", "number"])}
            properties[self.r.choice(["a", "b", "größe", "type", "items"])] = schema
        parameters = {"type": "object", "properties": properties}
        if self.r.random() < 0.5:
            parameters["required"] = sorted(properties)[:2]
        return {"type": "function", "function": {"name": self.r.choice(["f", "g"]), "description": self.text(), "parameters": parameters}}

    def variables(self):
        v = {"messages": [self.message(i) for i in range(self.r.randrange(7))], "bos_token": "<s>", "eos_token": "</s>"}
        if self.r.random() < 0.7:  # what most templates take: a user's turn first, and turn about
            v["messages"] = [self.message(0) | {"role": "user"}] + [m for m in v["messages"] if m["role"] != "system"]
        if self.r.random() < 0.3:
            v["messages"].insert(0, system(self.text()))
        if self.r.random() < 0.4:
            v["tools"] = [self.tool() for _ in range(self.r.randrange(3))]
        for key in ("add_generation_prompt", "enable_thinking", "thinking", "preserve_thinking", "clear_thinking"):
            if self.r.random() < (0.8 if key == "add_generation_prompt" else 0.3):
                v[key] = self.r.random() < 0.6
        return v


def random_conversations(n, seed):
    maker = Random(seed)
    for i in range(n):
        yield f"random {i}", maker.variables()


def all_conversations():
    base = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "functions": "[]", "datetime": "today"}
    for name, messages in list(plain()) + list(parts()) + list(thinking()):
        yield name, {**base, "messages": messages}
    for name, messages in tools():
        yield name, {**base, "messages": messages, "tools": [WEATHER, SEARCH]}
    yield "tools without parameters", {**base, "messages": [user()], "tools": [BARE]}
    turns = [user("W?"), assistant("", reasoning_content="look", tool_calls=[call()]), result(), assistant(
        "Warm.", reasoning_content="it is"), user("Thanks")]
    for switch in (True, False):
        for with_tools in (True, False):
            v = {**base, "messages": [system()] + turns, "enable_thinking": switch, "thinking": switch}
            yield f"thinking {switch}, tools {with_tools}", {**v, **({"tools": [WEATHER]} if with_tools else {})}
        yield f"fresh thinking {switch}", {**base, "messages": [user()], "enable_thinking": switch}
    yield "no generation prompt", {**base, "messages": turns[:3], "add_generation_prompt": False}
    yield "no variables", {"messages": [user()]}
    yield "reasoning effort", {**base, "messages": [user()], "reasoning_effort": "high", "model_identity": "You are X."}
    yield "documents", {**base, "messages": [user()], "documents": [{"title": "T", "text": "Body\nof it", "content": "c"}],
                        "controls": ["thinking"], "citations": True, "date_string": "1 Jan 2030", "builtin_tools": ["browser"]}
    yield "functions", {**base, "messages": [system(), user()], "functions": "[]", "datetime": "today", "available_tools": [WEATHER],
                        "custom_tools": [SEARCH], "tools_in_user_message": False, "preserve_thinking": True, "clear_thinking": False}
