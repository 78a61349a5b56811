"""render.py -- Laguna's chat format in Python: the twin of chat_template.jinja.

segments() gives the same text as chat_template.jinja, cut at special tokens into (text, trained)
pieces, where trained pieces are what the model itself has to write. test() compares the two."""

import json
import os

# id = place in the list; ids 2, 9 and 24 are those of the published Laguna vocabularies.
SPECIAL = (
    ["〈|UNK|〉", "〈|RESERVED_1|〉", "〈|EOS|〉"]
    + [f"〈|RESERVED_{i}|〉" for i in range(3, 9)]
    + [
        "〈|PAD|〉",
        "<system>",
        "</system>",
        "<user>",
        "</user>",
        "<tool_response>",
        "</tool_response>",
        "<available_tools>",
        "</available_tools>",
        "<think>",
        "</think>",
        "<tool_call>",
        "</tool_call>",
        "<assistant>",
        "〈|RESERVED_23|〉",
        "</assistant>",
        "<arg_key>",
        "</arg_key>",
        "<arg_value>",
        "</arg_value>",
        "〈|RESERVED_29|〉",
        "〈|RESERVED_30|〉",
        "〈|RESERVED_31|〉",
    ]
)
EOS, PAD, EOT = 2, 9, 24
# What a reader of the answer must see; every other special token is a control token.
SHOWN = {
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
}
DEFAULT_SYSTEM = "You are Laguna Tiny, a small and helpful assistant."
TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat_template.jinja")


def dump(value):
    return json.dumps(value, ensure_ascii=False)


def head(c):
    system = DEFAULT_SYSTEM if c["system"] is None else c["system"]
    if not (system.strip() or c["tools"] or c["thinking"]):
        return "〈|EOS|〉"
    text = system.rstrip() if system.strip() else ""
    if c["tools"]:
        text += "\n\n" if text else ""
        text += (
            "### Tools\n\nYou may call functions to assist with the user query.\n"
            "All available function signatures are listed below:\n<available_tools>\n"
        )
        text += "".join(dump(t) + "\n" for t in c["tools"]) + "</available_tools>"
    return f"〈|EOS|〉<system>{text}</system>\n"


def calls(message):
    out = ""
    for call in message.get("tool_calls", []):
        f = call["function"]
        out += "<tool_call>" + f["name"]
        for k, v in f["arguments"].items():
            value = v if isinstance(v, str) else dump(v)
            out += f"<arg_key>{k}</arg_key><arg_value>{value}</arg_value>"
        out += "</tool_call>"
    return out


def segments(c):
    """[(text, trained)]: the conversation in Laguna's format."""
    out, before = [], head(c)
    for m in c["messages"]:
        if m["role"] == "user":
            before += f"<user>{m['content']}</user>\n"
        elif m["role"] == "tool":
            before += f"<tool_response>{m['content']}</tool_response>\n"
        else:
            before += "<assistant>"
            said = m["content"] + calls(m) + "</assistant>"
            if c["thinking"]:
                before, said = before + "<think>", m.get("reasoning", "") + "</think>" + said
            else:
                before += "</think>"
            out += [(before, False), (said, m.get("train", True))]
            before = "\n"
    return out + [(before, False)]


def environment():
    """jinja2 as chat templates expect it."""
    import jinja2
    import jinja2.sandbox

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    env.filters["tojson"] = lambda v, **k: dump(v)
    return env


def template_text(c, env=None, **more):
    with open(TEMPLATE, encoding="utf-8") as f:
        template = (env or environment()).from_string(f.read())
    messages = list(c["messages"])
    if c["system"] is not None:
        messages = [{"role": "system", "content": c["system"]}] + messages
    return template.render(
        messages=messages, tools=c["tools"] or None, enable_thinking=c["thinking"], **more
    )


def test(n=500, seed=7):
    import random
    import dialogue

    rng = random.Random(seed)
    for _ in range(n):
        c = dialogue.conversation(rng)
        mine, theirs = "".join(t for t, _ in segments(c)), template_text(c)
        assert mine == theirs, f"\n{mine}\n--- template:\n{theirs}"
    print(f"{n} conversations: the same text as chat_template.jinja")


if __name__ == "__main__":
    test()
