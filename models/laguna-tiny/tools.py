"""tools.py -- conversations with tools: offers as JSON schemas, requests, calls, results, answers.

Half of the tools are well-known ones with natural requests; the other half are made up from random
verbs, nouns and parameters, so that a model has to read the schema and copy the values."""
import json

import qa
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


def clock(rng):
    return f"{rng.randint(0, 23):02d}:{rng.choice(['00', '15', '30', '45', '10', '05'])}"


def date(rng):
    return f"20{rng.randint(20, 39)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def phrase(rng, low=2, high=5):
    return " ".join(qa.any_word(rng) for _ in range(rng.randint(low, high)))


def email(rng):
    return f"{rng.choice(w.NAMES).lower()}@{qa.fake_word(rng)}.{rng.choice(['com', 'org', 'net'])}"


def path(rng):
    return rng.choice(["/tmp/", "/home/", "data/", "", "src/"]) + rng.choice(w.NOUNS) + rng.choice([".txt", ".md", ".json", ".py", ".c"])


CURRENCIES = ["USD", "EUR", "GBP", "JPY", "CHF", "SEK"]
ROOMS = ["kitchen", "bedroom", "living room", "bathroom", "office", "garage", "hall"]
SKIES = ["sunny", "cloudy", "rainy", "windy", "snowy", "foggy"]


def weather(rng):
    city, t, sky = rng.choice(w.CITIES), rng.randint(-10, 38), rng.choice(SKIES)
    pname = rng.choice(["city", "city", "location"])
    params = [(pname, "string", rng.choice(["Name of the city", "The city", ""]), True)]
    args = {pname: city}
    q = rng.choice(["What is the weather in {}?", "How is the weather in {}?", "Weather in {}?", "Is it nice in {} today?",
                    "What's the weather like in {}?", "Do I need a coat in {}?", "Tell me the weather in {}."]).format(city)
    if rng.random() < 0.4:
        params.append(("unit", ["celsius", "fahrenheit"], "", False))
        if rng.random() < 0.5:
            args["unit"] = rng.choice(["celsius", "fahrenheit"])
            q = q.rstrip("?.") + f" in {args['unit']}?"
    result = rng.choice([json.dumps({"temperature": t, "condition": sky}), json.dumps({"city": city, "temp": t, "sky": sky}),
                         f"{t} degrees, {sky}", f"{sky}, {t} degrees"])
    name = rng.choice(["get_weather", "get_weather", "weather", "get_current_weather", "weather_lookup"])
    return name, rng.choice(["Get the weather in a city", "Current weather of a city", "Returns the current weather"]), \
        params, q, args, result, f"It is {t} degrees and {sky} in {city}."


def time_in(rng):
    city, t = rng.choice(w.CITIES), clock(rng)
    q = rng.choice(["What time is it in {}?", "Tell me the time in {}.", "What is the local time in {}?"]).format(city)
    return rng.choice(["get_time", "get_current_time", "local_time"]), "Get the current time in a city", \
        [("city", "string", "", True)], q, {"city": city}, rng.choice([t, json.dumps({"time": t})]), f"It is {t} in {city}."


def calculator(rng):
    a, b = rng.randint(10, 9999), rng.randint(2, 999)
    op, word, c = rng.choice([("+", "plus", a + b), ("*", "times", a * b), ("-", "minus", a - b)])
    q = rng.choice(["What is {a} {op} {b}?", "How much is {a} {word} {b}?", "Calculate {a} {op} {b}.", "Compute {a} {word} {b}."])
    if rng.random() < 0.6:
        return rng.choice(["calculator", "calculate", "calc"]), "Evaluate an arithmetic expression", \
            [("expression", "string", "for example 2 + 3", True)], q.format(a=a, b=b, op=op, word=word), \
            {"expression": f"{a} {op} {b}"}, rng.choice([str(c), json.dumps({"result": c})]), f"{a} {op} {b} = {c}."
    name = {"+": "add", "*": "multiply", "-": "subtract"}[op]
    return rng.choice([name, name + "_numbers"]), f"{qa.cap(name)} two numbers", [("a", "number", "", True), ("b", "number", "", True)], \
        q.format(a=a, b=b, op=op, word=word), {"a": a, "b": b}, rng.choice([str(c), json.dumps({"result": c})]), f"{a} {op} {b} = {c}."


def search(rng):
    text = phrase(rng)
    found = phrase(rng, 3, 6)
    q = rng.choice(["Search for {}.", "Search the web for {}.", "Look up {}.", "Find information about {}.", "Can you search {}?"]).format(text)
    return rng.choice(["search", "web_search", "search_web"]), "Search the web", [("query", "string", "What to search for", True)], \
        q, {"query": text}, found, f"I found this: {found}."


def send_email(rng):
    to, subject, body = email(rng), phrase(rng, 1, 3), phrase(rng, 2, 6)
    q = rng.choice(["Send an email to {t} with the subject {s} and the text {b}.", "Write to {t}: subject {s}, text {b}.",
                    "Email {t}, subject '{s}', body '{b}'."]).format(t=to, s=subject, b=body)
    return "send_email", "Send an email", [("to", "string", "Address", True), ("subject", "string", "", True), ("body", "string", "", True)], \
        q, {"to": to, "subject": subject, "body": body}, rng.choice(["sent", "ok", '{"status": "sent"}']), f"I sent the email to {to}."


def timer(rng):
    n = rng.randint(1, 90)
    unit = rng.choice(["minutes", "seconds", "hours"])
    q = rng.choice(["Set a timer for {n} {u}.", "Start a timer of {n} {u}.", "Timer, {n} {u} please.", "Wake me in {n} {u}."]).format(n=n, u=unit)
    return "set_timer", "Set a timer", [(unit, "integer", "", True)], q, {unit: n}, rng.choice(["ok", '{"status": "started"}']), \
        f"The timer is set for {n} {unit}."


def alarm(rng):
    t = clock(rng)
    q = rng.choice(["Set an alarm for {}.", "Wake me up at {}.", "I need an alarm at {}."]).format(t)
    return "set_alarm", "Set an alarm", [("time", "string", "HH:MM", True)], q, {"time": t}, "ok", f"The alarm is set for {t}."


def todo(rng):
    item = rng.choice(["buy ", "call ", "clean ", "find ", "read ", ""]) + phrase(rng, 1, 3)
    q = rng.choice(["Add '{}' to my list.", "Put {} on my todo list.", "Remind me to {}."]).format(item)
    return rng.choice(["add_todo", "add_task", "create_reminder"]), "Add an item to the list", \
        [(rng.choice(["item", "text", "task"]), "string", "", True)], q, item, rng.choice(["ok", "added"]), f"I added '{item}'."


def currency(rng):
    a, b = rng.sample(CURRENCIES, 2)
    n, m = rng.randint(1, 999), rng.randint(1, 9999)
    q = rng.choice(["Convert {n} {a} to {b}.", "How much is {n} {a} in {b}?", "What are {n} {a} in {b}?"]).format(n=n, a=a, b=b)
    return rng.choice(["convert_currency", "exchange"]), "Convert money", \
        [("amount", "number", "", True), ("from", "string", "", True), ("to", "string", "", True)], q, \
        {"amount": n, "from": a, "to": b}, rng.choice([str(m), json.dumps({"result": m}), f"{m} {b}"]), f"{n} {a} are {m} {b}."


def translation(rng):
    text, language = phrase(rng, 1, 4), rng.choice(["French", "German", "Spanish", "Italian", "Polish", "Japanese"])
    out = " ".join(qa.fake_word(rng) for _ in text.split())
    q = rng.choice(["Translate '{t}' into {l}.", "How do you say '{t}' in {l}?", "Translate to {l}: {t}"]).format(t=text, l=language)
    return rng.choice(["translate", "translate_text"]), "Translate a text", [("text", "string", "", True), ("target_language", "string", "", True)], \
        q, {"text": text, "target_language": language}, out, f"In {language}: {out}"


def light(rng):
    room, on = rng.choice(ROOMS), rng.random() < 0.5
    q = rng.choice(["Turn the light in the {r} {s}.", "Switch {s} the {r} light.", "Light {s} in the {r}, please."]).format(r=room, s="on" if on else "off")
    return rng.choice(["set_light", "switch_light"]), "Switch a light on or off", [("room", "string", "", True), ("on", "boolean", "", True)], \
        q, {"room": room, "on": on}, "ok", f"The light in the {room} is {'on' if on else 'off'}."


def heating(rng):
    room, n = rng.choice(ROOMS), rng.randint(12, 28)
    q = rng.choice(["Set the {r} to {n} degrees.", "Make the {r} {n} degrees warm.", "Heat the {r} to {n} degrees."]).format(r=room, n=n)
    return "set_temperature", "Set the temperature of a room", [("room", "string", "", True), ("degrees", "integer", "", True)], q, \
        {"room": room, "degrees": n}, "ok", f"The {room} is set to {n} degrees."


def read_file(rng):
    p, text = path(rng), phrase(rng, 3, 7)
    q = rng.choice(["Read the file {}.", "What is in {}?", "Show me {}.", "Open {}."]).format(p)
    return "read_file", "Read a file", [("path", "string", "", True)], q, {"path": p}, text, f"{p} says: {text}"


def write_file(rng):
    p, text = path(rng), phrase(rng, 2, 5)
    q = rng.choice(["Write '{t}' to {p}.", "Save '{t}' in the file {p}."]).format(t=text, p=p)
    return "write_file", "Write a file", [("path", "string", "", True), ("content", "string", "", True)], q, {"path": p, "content": text}, \
        "ok", f"I wrote the text to {p}."


def event(rng):
    title, d, t = phrase(rng, 1, 3), date(rng), clock(rng)
    q = rng.choice(["Add {x} to my calendar on {d} at {t}.", "Plan '{x}' for {d}, {t}.", "Create an event {x} on {d} at {t}."]).format(x=title, d=d, t=t)
    return "create_event", "Create a calendar event", [("title", "string", "", True), ("date", "string", "YYYY-MM-DD", True), ("time", "string", "", True)], \
        q, {"title": title, "date": d, "time": t}, rng.choice(["ok", '{"status": "created"}']), f"I added {title} on {d} at {t}."


def flights(rng):
    a, b = rng.sample(w.CITIES, 2)
    price, d = rng.randint(40, 900), date(rng)
    q = rng.choice(["Find a flight from {a} to {b} on {d}.", "I want to fly from {a} to {b} on {d}."]).format(a=a, b=b, d=d)
    return "find_flights", "Find flights", [("from_city", "string", "", True), ("to_city", "string", "", True), ("date", "string", "", True)], q, \
        {"from_city": a, "to_city": b, "date": d}, json.dumps({"price": price, "departure": "09:30"}), \
        f"There is a flight from {a} to {b} at 09:30 for {price}."


def stock(rng):
    s, n = "".join(rng.choice("ABCDEFGHIKLMNOPRSTUV") for _ in range(rng.randint(3, 4))), rng.randint(2, 900)
    q = rng.choice(["What is the price of {}?", "How is the stock {} doing?", "Stock price of {}?"]).format(s)
    return "get_stock_price", "Get the price of a stock", [("symbol", "string", "", True)], q, {"symbol": s}, \
        rng.choice([str(n), json.dumps({"price": n})]), f"The price of {s} is {n}."


def dice(rng):
    n, s = rng.randint(1, 5), rng.choice([6, 8, 10, 12, 20])
    rolls = [rng.randint(1, s) for _ in range(n)]
    q = rng.choice(["Roll {n} dice with {s} sides.", "Throw {n} dice, {s} sides each."]).format(n=n, s=s)
    return "roll_dice", "Roll dice", [("count", "integer", "", True), ("sides", "integer", "", True)], q, {"count": n, "sides": s}, \
        json.dumps(rolls), f"The dice show {qa.join(rolls)}."


KNOWN = [weather, weather, weather, time_in, calculator, search, send_email, timer, alarm, todo, currency, translation, light, heating,
         read_file, write_file, event, flights, stock, dice]


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
        return qa.join(items), items
    v = rng.choice([qa.any_word, qa.any_word, qa.random_id, email, path, date, clock, phrase, lambda r: r.choice(w.NAMES),
                    lambda r: r.choice(w.CITIES), lambda r: r.choice(w.NAMES) + " " + qa.cap(qa.fake_word(r)), qa.fake_word])(rng)
    return v, v


def tool_name(rng, verb, noun):
    style = rng.randrange(8)
    if style < 4:
        return f"{verb}_{noun}"
    if style == 4:
        return verb + qa.cap(noun)
    if style == 5:
        return f"{noun}_{verb}"
    if style == 6:
        return noun
    return qa.fake_word(rng) + rng.choice(["", "_" + noun])


def made_up(rng):
    verb, noun = rng.choice(w.VERBS), rng.choice(w.NOUNS)
    name = tool_name(rng, verb, noun)
    params, args, said = [], {}, []
    for pname in rng.sample(w.PARAMS, rng.choice([1, 1, 2, 2, 3, 4])):
        if rng.random() < 0.15:
            pname = rng.choice(w.NOUNS) + "_" + pname
        if pname in args:
            continue
        ptype = rng.choice(["string"] * 6 + ["integer"] * 3 + ["number", "boolean", "array", "enum"])
        if ptype == "enum":
            ptype = rng.sample(w.ADJECTIVES + w.COLOURS, rng.randint(2, 4))
        required = rng.random() < 0.8
        params.append((pname, ptype, rng.choice(["", "", f"The {pname.replace('_', ' ')}", phrase(rng, 2, 4)]), required))
        if required or rng.random() < 0.5 or not args:
            text, args[pname] = value(rng, ptype)
            said.append((pname.replace("_", " "), text))
    q = request(rng, name, verb, noun, said)
    description = rng.choice([f"{qa.cap(verb)} {qa.article(noun)}", f"{qa.cap(verb)} the {noun}", f"Use this to {verb} {qa.article(noun)}", ""])
    result, answer = outcome(rng, verb, noun)
    return name, description, params, q, args, result, answer


def request(rng, name, verb, noun, said):
    style = rng.randrange(7)
    if rng.random() < 0.3:
        said = rng.sample(said, len(said))
    pairs = {0: "{} {}", 1: "{} is {}", 2: "{}={}", 3: "{}: {}"}[rng.randrange(4)]
    told = [pairs.format(p, v) for p, v in said]
    listed = ", ".join(told) if rng.random() < 0.4 or pairs == "{}: {}" else qa.join(told)
    if style < 2:
        return f"{rng.choice(['', 'Please ', 'Can you '])}{verb} {rng.choice(['the', 'a'])} {noun} with {listed}."
    if style == 2:
        return f"Use {name} with {listed}."
    if style == 3:
        return f"Call {name}: {listed}"
    if style == 4 and len(said) == 1:
        return f"{qa.cap(verb)} the {noun} {said[0][1]}."
    if style == 5:
        return f"I want to {verb} {qa.article(noun)}. {qa.cap(listed)}."
    return f"{qa.cap(verb)} {noun}, {listed}."


def outcome(rng, verb, noun):
    """A made-up tool's result and the answer that uses it."""
    kind = rng.randrange(6)
    if kind == 0:
        key, (_, v) = rng.choice(w.NOUNS + w.PARAMS), value(rng, rng.choice(["string", "integer", "number"]))
        return json.dumps({key: v}), f"The {key.replace('_', ' ')} is {v}."
    if kind == 1:
        keys = rng.sample(w.PARAMS, 2)
        vals = [value(rng, rng.choice(["string", "integer"]))[1] for _ in keys]
        return json.dumps(dict(zip(keys, vals))), " ".join(f"The {k.replace('_', ' ')} is {v}." for k, v in zip(keys, vals))
    if kind == 2:
        return rng.choice(["ok", "done", '{"status": "ok"}', '{"success": true}']), f"Done. The request to {verb} the {noun} worked."
    if kind == 3:
        why = rng.choice(["not found", "no permission", "timeout", "not available", phrase(rng, 1, 3)])
        return rng.choice([json.dumps({"error": why}), f"error: {why}"]), f"The tool gave an error: {why}."
    if kind == 4:
        text = phrase(rng, 2, 6)
        return text, f"The result is: {text}."
    n = rng.choice([str(rng.randint(0, 99999)), qa.random_id(rng)])
    return rng.choice([n, json.dumps({"result": n}), json.dumps({"id": n})]), f"The result is {n}."


def draw(rng):
    """One tool with a request: dict of tool, name, q, args, result, answer."""
    name, description, params, q, args, result, answer = rng.choice(KNOWN)(rng) if rng.random() < 0.5 else made_up(rng)
    if not isinstance(args, dict):
        args = {params[0][0]: args}
    return {"tool": schema(name, description, params, rng), "name": name, "q": q, "args": args, "params": params,
            "result": result, "answer": answer}


def spoken(args):
    return qa.join([f"{k} {json.dumps(v, ensure_ascii=False) if not isinstance(v, str) else v}" for k, v in args.items()])


def call_message(calls, rng, content=""):
    thought = " ".join(f"I call {c['name']} with {spoken(c['args'])}." for c in calls)
    return {"role": "assistant", "content": content, "reasoning": rng.choice(["", "The user needs a tool. "]) + thought,
            "tool_calls": [{"type": "function", "function": {"name": c["name"], "arguments": c["args"]}} for c in calls]}


def results(calls):
    return [{"role": "tool", "content": c["result"]} for c in calls]


def final(calls):
    return {"role": "assistant", "content": " ".join(c["answer"] for c in calls),
            "reasoning": told(calls)}


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
    if call["name"] not in ("get_weather", "weather", "get_current_weather", "weather_lookup", "get_time", "get_current_time", "local_time"):
        return None
    pname = call["params"][0][0]
    city, t = rng.choice([c for c in w.CITIES if c != call["args"][pname]]), rng.randint(-10, 38)
    if "time" in call["name"]:
        at = clock(rng)
        return {**call, "args": {pname: city}, "result": at, "answer": f"It is {at} in {city}."}
    sky = rng.choice(SKIES)
    return {**call, "args": {pname: city}, "result": json.dumps({"temperature": t, "condition": sky}),
            "answer": f"It is {t} degrees and {sky} in {city}."}


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
        what = "What time is it in {}?" if "time" in first["name"] else rng.choice(
            ["What is the weather in {}?", "How is the weather in {}?", "Compare the weather in {}."])
        q = what.format(qa.join([c["args"][pname] for c in calls]))
    names = {c["name"]: c for c in calls}
    return offer(rng, list(names.values())), [{"role": "user", "content": q}, call_message(calls, rng)] + results(calls) + [final(calls)]


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
        {"role": "assistant", "content": f"Which {word} should I use?", "reasoning": f"The tool {call['name']} needs {word}. I ask."},
        {"role": "user", "content": rng.choice([f"{said}", f"{said}, please", f"The {word} is {said}."])},
        call_message([call], rng)] + results([call]) + [final([call])]


def made_draw(rng):
    while True:
        verb, noun = rng.choice(w.VERBS), rng.choice(w.NOUNS)
        pname, ptype = rng.choice(w.PARAMS), rng.choice(["string", "string", "integer"])
        text, v = value(rng, ptype)
        name = tool_name(rng, verb, noun)
        params = [(pname, ptype, "", True)]
        result, answer = outcome(rng, verb, noun)
        return {"tool": schema(name, f"{qa.cap(verb)} {qa.article(noun)}", params, rng), "name": name, "args": {pname: v}, "q_value": text,
                "params": params, "result": result, "answer": answer}


def chain(rng):
    """A call whose argument is the result of the one before."""
    verb, noun = rng.choice(w.VERBS), rng.choice(w.NOUNS)
    ident = rng.choice([qa.random_id(rng), str(rng.randint(100, 99999))])
    who = rng.choice(w.NAMES)
    first = {"name": f"find_{noun}", "args": {"name": who}, "result": json.dumps({"id": ident}), "answer": "",
             "tool": schema(f"find_{noun}", f"Find {qa.article(noun)} by name", [("name", "string", "", True)], rng)}
    result, answer = outcome(rng, verb, noun)
    second = {"name": f"{verb}_{noun}", "args": {"id": ident}, "result": result, "answer": answer,
              "tool": schema(f"{verb}_{noun}", f"{qa.cap(verb)} {qa.article(noun)} by id", [("id", "string", "", True)], rng)}
    if first["name"] == second["name"]:
        return None
    q = f"{qa.cap(verb)} the {noun} of {who}."
    return offer(rng, [first, second]), [{"role": "user", "content": q}, call_message([first], rng)] + results([first]) + \
        [call_message([second], rng)] + results([second]) + [final([second])]


def simple(rng):
    call = draw(rng)
    return offer(rng, [call]), [{"role": "user", "content": call["q"]}, call_message([call], rng)] + results([call]) + [final([call])]


def refuse(rng):
    """Tools are there, but none fits the request."""
    call = draw(rng)
    tools = [t for t in offer(rng, [draw(rng)]) if t["function"]["name"] != call["name"]]
    if "weather" in call["name"] and any("weather" in t["function"]["name"] for t in tools) or not tools or \
            call["name"] in ("search", "web_search", "search_web", "calculator", "calculate", "calc"):
        return None
    known = set("set_timer set_alarm send_email create_event set_light switch_light set_temperature find_flights convert_currency".split())
    if call["name"] not in known:
        return None
    return tools, [{"role": "user", "content": call["q"]},
                   {"role": "assistant", "content": "I have no tool for that.", "reasoning": "None of the tools fits. I say so."}]


SHAPES = [(10, simple), (3, parallel), (1.5, missing), (2, chain), (1.5, refuse)]


def conversation(rng):
    """(tools, messages) of one exchange."""
    while True:
        got = rng.choices([s for _, s in SHAPES], [n for n, _ in SHAPES])[0](rng)
        if got:
            return got
