#!/usr/bin/env python3
"""Chat templates, compiled to C, against jinja2: every template of tests/jinja/fixtures and models/, and of
../shared/chat-templates where that is there, over every conversation of conversations.py, byte for byte.

Without jinja2 the fixtures are compared with the digests in fixtures/expected.json (--bless writes them).
"""
import glob
import hashlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
EXPECTED = os.path.join(HERE, "fixtures", "expected.json")

sys.path.insert(0, HERE)
from compiled import BUILD, answers, compile_all, first_difference, link  # noqa: E402
from conversations import all_conversations, random_conversations  # noqa: E402

try:
    from oracle import Oracle
except ImportError:
    Oracle = None

count = 0
failed = 0


def report(ok, name, why=""):
    global count, failed
    count += 1
    failed += not ok
    print(("ok" if ok else "not ok") + f" {count} - {name}")
    for line in why.splitlines():
        print("#   " + line)


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}")


def compare(name, conversation, want, got):
    """Empty, or what is wrong."""
    kind, text = want
    if kind == "error":
        return "" if "error" in got else f"{conversation}: jinja2 fails ({text}), C gives {got['text'][:100]!r}"
    if "error" in got:
        return f"{conversation}: {got['error']}"
    return "" if got["text"] == text else f"{conversation}: " + first_difference(text, got["text"])


def private(value, text=""):
    """The same conversation with all its texts spelled in private-use characters; roles and types stay."""
    if isinstance(value, dict):
        return {k: v if k in ("role", "type") else private(v) for k, v in value.items()}
    if isinstance(value, list):
        return [private(v) for v in value]
    return "".join(chr(0xE000 + ord(c) % 0x1000) for c in value) if isinstance(value, str) else value


def check_marks(paths, program, objects, conversations):
    """No byte that the request wrote is taken for the template's, in any template: the tokenizer relies on it."""
    names = ("two rounds", "parallel calls", "system and user", "reasoning", "text parts", "thinking True, tools True")
    chosen = [(n, {k: private(v) if k in ("messages", "tools") else v for k, v in c.items()})
              for n, c in conversations if n in names]
    lines, seen = [], 0
    for index in objects:
        lines += [{"template": index, "vars": v, "bos": "<s>", "eos": "</s>"} for _, v in chosen]
    wrong = []
    for line, got in zip(lines, answers(program, lines)):
        if "error" in got:
            continue
        text = got["text"].encode()
        marked = bytearray(len(text))
        for at, n in got["user"]:
            marked[at:at + n] = b"\1" * n
        secret = [i for i, b in enumerate(text) if b == 0xEE]  # U+E000 to U+EFFF
        seen += len(secret)
        if not all(marked[i] for i in secret):
            wrong.append(os.path.basename(paths[line["template"]]))
        if text and all(marked) and "fixtures" not in paths[line["template"]]:
            wrong.append(os.path.basename(paths[line["template"]]) + " (all marked)")
    print(f"# {seen} characters of requests are marked")
    report(not wrong and seen > 0, "C02 texts of the request are marked in all templates", ", ".join(wrong))


ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool", "function": "tool"}


def content_for(m, caps):
    """A message's content as a template of these abilities gets it."""
    content = m.get("content")
    if isinstance(content, list):
        texts = [p.get("text") if p.get("type") == "text" else None for p in content]
        if content and (caps["parts_only"] or (caps["parts"] and None in texts)):
            return content
        return "".join(t for t in texts if t is not None)
    if caps["null_content"] and m.get("tool_calls") and not content:
        return None
    return [{"type": "text", "text": content}] if caps["parts_only"] and content is not None else content or ""


def call_for(c, caps):
    arguments = c["function"].get("arguments")
    if caps["object_arguments"] and not isinstance(arguments, dict):
        arguments = json.loads(arguments) if arguments else {}
    function = {"name": c["function"]["name"], "arguments": "" if arguments is None else arguments}
    return {"type": "function", **({"id": c["id"]} if "id" in c else {}), "function": function}


def message_for(m, caps):
    """One message of a request as the template is to see it: what docs/chat.md says, a second time."""
    out = {"role": ROLES[m["role"]], "content": content_for(m, caps)}
    keys = ("reasoning_content", "reasoning", "thinking")
    reasoning = next((m[k] for k in keys if isinstance(m.get(k), str)), None)
    if reasoning is not None:
        out[caps["reasoning_key"] or "reasoning_content"] = reasoning
    if m.get("tool_calls"):
        out["tool_calls"] = [call_for(c, caps) for c in m["tool_calls"]]
    out.update({k: m[k] for k in ("tool_call_id", "name") if m.get(k) is not None})
    known = {"role", "content", "tool_calls", "tool_call_id", "name", *keys}
    return {**out, **{k: v for k, v in m.items() if k not in known and v is not None}}


def variables_for(v, caps):
    out = {"messages": [message_for(m, caps) for m in v["messages"]]}
    if v.get("tools"):
        out["tools"] = v["tools"]
    dates = {"date_string": "26 Jul 2026", "datetime": "Jul 26 2026"}
    return {"bos_token": "<s>", "eos_token": "</s>", **out, "add_generation_prompt": True,
            "enable_thinking": caps["thinking"], **dates}


def check_messages(paths, program, objects, conversations):
    """The way of a request: messages as C structs, shaped by what a template was found to take."""
    wrong, rendered = [], 0
    lines = [{"template": i, "probe": True, "bos": "<s>", "eos": "</s>"} for i in objects]
    for index, caps in zip(objects, answers(program, lines)):
        oracle = Oracle(open(paths[index], newline="", encoding="utf-8").read())
        lines = [{"template": index, "messages": v["messages"], "tools": v.get("tools"), "options": {}, "bos": "<s>", "eos": "</s>"}
                 for _, v in conversations]
        for (name, v), got in zip(conversations, answers(program, lines)):
            want = oracle.render(variables_for(v, caps))
            rendered += want[0] == "text"
            bad = compare("", name, want, got)
            if bad:
                wrong.append(f"{os.path.basename(paths[index])}, {bad}")
    print(f"# {rendered} renderings of requests")
    report(not wrong and rendered > 0, "requests are shaped as each template takes them", "\n".join(wrong[:12]))


def check_random(paths, program, objects):
    """Conversations of random turns, tools and switches."""
    conversations = list(random_conversations(2000 if os.environ.get("LAGEN_TEST_ALL") else 40, 11))
    wrong, rendered = [], 0
    for index in objects:
        oracle = Oracle(open(paths[index], newline="", encoding="utf-8").read())
        got = answers(program, [{"template": index, "vars": v} for _, v in conversations])
        for (name, v), g in zip(conversations, got):
            want = oracle.render(v)
            rendered += want[0] == "text"
            bad = compare("", name, want, g)
            if bad:
                wrong.append(f"{os.path.basename(paths[index])}, {bad}")
    print(f"# {rendered} of {len(objects) * len(conversations)} random conversations render")
    report(not wrong and rendered > 0, "random conversations are byte-equal", "\n".join(wrong[:12]))


def digest(kind, text):
    return hashlib.sha256(text.encode()).hexdigest()[:16] if kind == "text" else "error"


def run_with_oracle(paths, program, objects, conversations):
    digests = {}
    for index, path in enumerate(paths):
        name = os.path.basename(path)
        if index not in objects:
            continue
        oracle = Oracle(open(path, newline="", encoding="utf-8").read())
        want = [oracle.render(v) for _, v in conversations]
        got = answers(program, [{"template": index, "vars": v} for _, v in conversations])
        wrong = [compare(name, c, w, g) for (c, _), w, g in zip(conversations, want, got)]
        wrong = [w for w in wrong if w]
        rendered = sum(kind == "text" for kind, _ in want)
        report(not wrong, f"{name}: {rendered} of {len(want)} conversations render, byte-equal", "\n".join(wrong[:6]))
        digests[name] = [digest(*w) for w in want]
    return digests


def run_with_digests(paths, program, objects, conversations):
    expected = json.load(open(EXPECTED))
    for index, path in enumerate(paths):
        name = os.path.basename(path)
        if index not in objects or name not in expected:
            continue
        got = answers(program, [{"template": index, "vars": v} for _, v in conversations])
        have = [digest("error" if "error" in g else "text", g.get("text", "")) for g in got]
        wrong = [c for (c, _), a, b in zip(conversations, expected[name], have) if a != b]
        report(not wrong, f"{name}: equal to the stored digests", ", ".join(wrong[:6]))


def main():
    os.chdir(ROOT)
    work = os.path.join(BUILD, "tests", "jinja", "templates")
    fixtures = sorted(glob.glob("tests/jinja/fixtures/*.jinja") + glob.glob("models/*/chat_template.jinja"))
    shared = sorted(glob.glob("../shared/chat-templates/*.jinja"))
    paths = fixtures + shared
    conversations = list(all_conversations())
    objects, refused = compile_all(paths, work)
    for index, why in refused.items():
        broken = Oracle is not None and Oracle(open(paths[index], newline="", encoding="utf-8").read()).broken
        report(bool(broken) and "line " in why, os.path.basename(paths[index]) + ": refused as jinja2 does", why)
    program = link(objects, work)
    if Oracle is None:
        skip("templates against jinja2", "the Python package jinja2 is not installed")
        run_with_digests(paths, program, objects, conversations)
    else:
        digests = run_with_oracle(paths, program, objects, conversations)
        if "--bless" in sys.argv:
            keep = {os.path.basename(p): digests[os.path.basename(p)] for p in fixtures if os.path.basename(p) in digests}
            with open(EXPECTED, "w") as f:
                json.dump(keep, f, indent=0)
                f.write("\n")
    check_marks(paths, program, objects, conversations)
    if Oracle is not None:
        check_messages(paths, program, objects, conversations)
        check_random(paths, program, objects)
    if not shared:
        skip("templates of ../shared/chat-templates", "the folder is not there")
    return failed != 0


sys.exit(main())
