"""tools.py -- conversations with tools: offers as JSON schemas, requests, calls, results, answers.

Half of the tools are well-known ones with natural requests; the other half are made up from random
verbs, nouns and parameters, so that a model has to read the schema and copy the values."""

import json

import tools_known as known
import words
import world as w


def schema(name, description, params, rng):
    """params: (name, type or list of choices, description, required)."""
    props = {}
    for pname, ptype, pdesc, _ in params:
        prop = {"type": "string", "enum": ptype} if isinstance(ptype, list) else {"type": ptype}
        if ptype == "array":
            prop["items"] = {"type": "string"}
        if pdesc:
            prop["description"] = pdesc
        props[pname] = prop
    function = {"name": name}
    if description:
        function["description"] = description
    function["parameters"] = {"type": "object", "properties": props}
    required = [p[0] for p in params if p[3]]
    if required or rng.random() < 0.5:
        function["parameters"]["required"] = required
    return {"type": "function", "function": function}


def value(rng, ptype):
    """A random argument: (what the user says, what the call holds)."""
    if isinstance(ptype, list):
        v = rng.choice(ptype)
        return v, v
    if ptype == "integer":
        v = rng.choice([rng.randint(0, 20), rng.randint(0, 999), rng.randint(1000, 99999)])
        return str(v), v
    if ptype == "number":
        v = rng.choice([rng.randint(0, 999), rng.randint(0, 9999) / 100, rng.randint(1, 99) / 10])
        return json.dumps(v), v
    if ptype == "boolean":
        v = rng.random() < 0.5
        return rng.choice(["true", "yes", "on"] if v else ["false", "no", "off"]), v
    if ptype == "array":
        items = [rng.choice(w.NOUNS) for _ in range(rng.randint(2, 4))]
        return words.join(items), items
    v = rng.choice(
        [
            words.any_word,
            words.any_word,
            words.random_id,
            known.email,
            known.path,
            known.date,
            known.clock,
            known.phrase,
            lambda r: r.choice(w.NAMES),
            lambda r: r.choice(w.CITIES),
            lambda r: r.choice(w.NAMES) + " " + words.cap(words.fake_word(r)),
            words.fake_word,
        ]
    )(rng)
    return v, v


def tool_name(rng, verb, noun):
    style = rng.randrange(8)
    if style < 4:
        return f"{verb}_{noun}"
    if style == 4:
        return verb + words.cap(noun)
    if style == 5:
        return f"{noun}_{verb}"
    if style == 6:
        return noun
    return words.fake_word(rng) + rng.choice(["", "_" + noun])


def made_up(rng):
    verb, noun = rng.choice(w.VERBS), rng.choice(w.NOUNS)
    name = tool_name(rng, verb, noun)
    params, args, said = [], {}, []
    for pname in rng.sample(w.PARAMS, rng.choice([1, 1, 2, 2, 3, 4])):
        if rng.random() < 0.15:
            pname = rng.choice(w.NOUNS) + "_" + pname
        if pname in args:
            continue
        ptype = rng.choice(
            ["string"] * 6 + ["integer"] * 3 + ["number", "boolean", "array", "enum"]
        )
        if ptype == "enum":
            ptype = rng.sample(w.ADJECTIVES + w.COLOURS, rng.randint(2, 4))
        required = rng.random() < 0.8
        params.append(
            (
                pname,
                ptype,
                rng.choice(["", "", f"The {pname.replace('_', ' ')}", known.phrase(rng, 2, 4)]),
                required,
            )
        )
        if required or rng.random() < 0.5 or not args:
            text, args[pname] = value(rng, ptype)
            said.append((pname.replace("_", " "), text))
    q = request(rng, name, verb, noun, said)
    description = rng.choice(
        [
            f"{words.cap(verb)} {words.article(noun)}",
            f"{words.cap(verb)} the {noun}",
            f"Use this to {verb} {words.article(noun)}",
            "",
        ]
    )
    result, answer = outcome(rng, verb, noun)
    return name, description, params, q, args, result, answer


def request(rng, name, verb, noun, said):
    style = rng.randrange(7)
    if rng.random() < 0.3:
        said = rng.sample(said, len(said))
    pairs = {0: "{} {}", 1: "{} is {}", 2: "{}={}", 3: "{}: {}"}[rng.randrange(4)]
    told = [pairs.format(p, v) for p, v in said]
    listed = ", ".join(told) if rng.random() < 0.4 or pairs == "{}: {}" else words.join(told)
    if style < 2:
        return (
            f"{rng.choice(['', 'Please ', 'Can you '])}{verb} {rng.choice(['the', 'a'])} {noun}"
            f" with {listed}."
        )
    if style == 2:
        return f"Use {name} with {listed}."
    if style == 3:
        return f"Call {name}: {listed}"
    if style == 4 and len(said) == 1:
        return f"{words.cap(verb)} the {noun} {said[0][1]}."
    if style == 5:
        return f"I want to {verb} {words.article(noun)}. {words.cap(listed)}."
    return f"{words.cap(verb)} {noun}, {listed}."


def outcome(rng, verb, noun):
    """A made-up tool's result and the answer that uses it."""
    kind = rng.randrange(6)
    if kind == 0:
        key, (_, v) = rng.choice(w.NOUNS + w.PARAMS), value(
            rng, rng.choice(["string", "integer", "number"])
        )
        return json.dumps({key: v}), f"The {key.replace('_', ' ')} is {v}."
    if kind == 1:
        keys = rng.sample(w.PARAMS, 2)
        vals = [value(rng, rng.choice(["string", "integer"]))[1] for _ in keys]
        return json.dumps(dict(zip(keys, vals))), " ".join(
            f"The {k.replace('_', ' ')} is {v}." for k, v in zip(keys, vals)
        )
    if kind == 2:
        return (
            rng.choice(["ok", "done", '{"status": "ok"}', '{"success": true}']),
            f"Done. The request to {verb} the {noun} worked.",
        )
    if kind == 3:
        why = rng.choice(
            ["not found", "no permission", "timeout", "not available", known.phrase(rng, 1, 3)]
        )
        return (
            rng.choice([json.dumps({"error": why}), f"error: {why}"]),
            f"The tool gave an error: {why}.",
        )
    if kind == 4:
        text = known.phrase(rng, 2, 6)
        return text, f"The result is: {text}."
    n = rng.choice([str(rng.randint(0, 99999)), words.random_id(rng)])
    return rng.choice([n, json.dumps({"result": n}), json.dumps({"id": n})]), f"The result is {n}."


def draw(rng):
    """One tool with a request: dict of tool, name, q, args, result, answer."""
    name, description, params, q, args, result, answer = (
        rng.choice(known.KNOWN)(rng) if rng.random() < 0.5 else made_up(rng)
    )
    if not isinstance(args, dict):
        args = {params[0][0]: args}
    return {
        "tool": schema(name, description, params, rng),
        "name": name,
        "q": q,
        "args": args,
        "params": params,
        "result": result,
        "answer": answer,
    }


def spoken(args):
    return words.join(
        [
            f"{k} {json.dumps(v, ensure_ascii=False) if not isinstance(v, str) else v}"
            for k, v in args.items()
        ]
    )


def call_message(calls, rng, content=""):
    thought = " ".join(f"I call {c['name']} with {spoken(c['args'])}." for c in calls)
    return {
        "role": "assistant",
        "content": content,
        "reasoning": rng.choice(["", "The user needs a tool. "]) + thought,
        "tool_calls": [
            {"type": "function", "function": {"name": c["name"], "arguments": c["args"]}}
            for c in calls
        ],
    }


def results(calls):
    return [{"role": "tool", "content": c["result"]} for c in calls]


def final(calls):
    return {
        "role": "assistant",
        "content": " ".join(c["answer"] for c in calls),
        "reasoning": told(calls),
    }


def told(calls):
    return "The tool says: " + "; ".join(c["result"] for c in calls) + ". I tell the user."


def offer(rng, wanted, extra=None):
    """The wanted tools among others with other names, in random order."""
    tools, names = [c["tool"] for c in wanted], {c["name"] for c in wanted}
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 4]) if extra is None else extra):
        other = draw(rng)
        if other["name"] not in names:
            names.add(other["name"])
            tools.append(other["tool"])
    rng.shuffle(tools)
    return tools


def again(rng, call):
    """The same tool with other arguments, or None where it cannot be asked for."""
    if call["name"] not in (
        "get_weather",
        "weather",
        "get_current_weather",
        "weather_lookup",
        "get_time",
        "get_current_time",
        "local_time",
    ):
        return None
    pname = call["params"][0][0]
    city, t = rng.choice([c for c in w.CITIES if c != call["args"][pname]]), rng.randint(-10, 38)
    if "time" in call["name"]:
        at = known.clock(rng)
        return {**call, "args": {pname: city}, "result": at, "answer": f"It is {at} in {city}."}
    sky = rng.choice(known.SKIES)
    return {
        **call,
        "args": {pname: city},
        "result": json.dumps({"temperature": t, "condition": sky}),
        "answer": f"It is {t} degrees and {sky} in {city}.",
    }


def parallel(rng):
    first = draw(rng)
    for _ in range(10):
        if again(rng, first):
            break
        first = draw(rng)
    second = again(rng, first)
    if second is None or rng.random() < 0.5:
        second = draw(rng)
        while second["name"] == first["name"]:
            second = draw(rng)
        q = first["q"] + rng.choice([" And: ", " Also: ", " Then: ", " "]) + second["q"]
        calls = [first, second]
    else:
        pname = first["params"][0][0]
        first = {**first, "args": {pname: first["args"][pname]}}
        calls = [first, second]
        if rng.random() < 0.3:
            third = again(rng, second)
            calls += [third] if third["args"] != first["args"] else []
        what = (
            "What time is it in {}?"
            if "time" in first["name"]
            else rng.choice(
                [
                    "What is the weather in {}?",
                    "How is the weather in {}?",
                    "Compare the weather in {}.",
                ]
            )
        )
        q = what.format(words.join([c["args"][pname] for c in calls]))
    names = {c["name"]: c for c in calls}
    return offer(rng, list(names.values())), [
        {"role": "user", "content": q},
        call_message(calls, rng),
    ] + results(calls) + [final(calls)]


def missing(rng):
    """A request that leaves out what the tool needs: the model asks back, then calls."""
    call = made_draw(rng)
    need = [p for p in call["params"] if p[3]]
    if len(call["args"]) != 1 or len(need) != 1 or len(call["params"]) != 1:
        return None
    word = need[0][0].replace("_", " ")
    verb_noun = call["tool"]["function"].get("description") or f"Use {call['name']}"
    said = call["q_value"]
    return offer(rng, [call]), [
        {"role": "user", "content": verb_noun + rng.choice([".", ", please."])},
        {
            "role": "assistant",
            "content": f"Which {word} should I use?",
            "reasoning": f"The tool {call['name']} needs {word}. I ask.",
        },
        {
            "role": "user",
            "content": rng.choice([f"{said}", f"{said}, please", f"The {word} is {said}."]),
        },
        call_message([call], rng),
    ] + results([call]) + [final([call])]


def made_draw(rng):
    while True:
        verb, noun = rng.choice(w.VERBS), rng.choice(w.NOUNS)
        pname, ptype = rng.choice(w.PARAMS), rng.choice(["string", "string", "integer"])
        text, v = value(rng, ptype)
        name = tool_name(rng, verb, noun)
        params = [(pname, ptype, "", True)]
        result, answer = outcome(rng, verb, noun)
        return {
            "tool": schema(name, f"{words.cap(verb)} {words.article(noun)}", params, rng),
            "name": name,
            "args": {pname: v},
            "q_value": text,
            "params": params,
            "result": result,
            "answer": answer,
        }


def chain(rng):
    """A call whose argument is the result of the one before."""
    verb, noun = rng.choice(w.VERBS), rng.choice(w.NOUNS)
    ident = rng.choice([words.random_id(rng), str(rng.randint(100, 99999))])
    who = rng.choice(w.NAMES)
    first = {
        "name": f"find_{noun}",
        "args": {"name": who},
        "result": json.dumps({"id": ident}),
        "answer": "",
        "tool": schema(
            f"find_{noun}",
            f"Find {words.article(noun)} by name",
            [("name", "string", "", True)],
            rng,
        ),
    }
    result, answer = outcome(rng, verb, noun)
    second = {
        "name": f"{verb}_{noun}",
        "args": {"id": ident},
        "result": result,
        "answer": answer,
        "tool": schema(
            f"{verb}_{noun}",
            f"{words.cap(verb)} {words.article(noun)} by id",
            [("id", "string", "", True)],
            rng,
        ),
    }
    if first["name"] == second["name"]:
        return None
    q = f"{words.cap(verb)} the {noun} of {who}."
    return offer(rng, [first, second]), [
        {"role": "user", "content": q},
        call_message([first], rng),
    ] + results([first]) + [call_message([second], rng)] + results([second]) + [final([second])]


def simple(rng):
    call = draw(rng)
    return offer(rng, [call]), [
        {"role": "user", "content": call["q"]},
        call_message([call], rng),
    ] + results([call]) + [final([call])]


def refuse(rng):
    """Tools are there, but none fits the request."""
    call = draw(rng)
    tools = [t for t in offer(rng, [draw(rng)]) if t["function"]["name"] != call["name"]]
    if (
        "weather" in call["name"]
        and any("weather" in t["function"]["name"] for t in tools)
        or not tools
        or call["name"] in ("search", "web_search", "search_web", "calculator", "calculate", "calc")
    ):
        return None
    fixed = set(
        "set_timer set_alarm send_email create_event set_light switch_light set_temperature"
        " find_flights convert_currency".split()
    )
    if call["name"] not in fixed:
        return None
    return tools, [
        {"role": "user", "content": call["q"]},
        {
            "role": "assistant",
            "content": "I have no tool for that.",
            "reasoning": "None of the tools fits. I say so.",
        },
    ]


SHAPES = [(10, simple), (3, parallel), (1.5, missing), (2, chain), (1.5, refuse)]


def conversation(rng):
    """(tools, messages) of one exchange."""
    while True:
        got = rng.choices([s for _, s in SHAPES], [n for n, _ in SHAPES])[0](rng)
        if got:
            return got
