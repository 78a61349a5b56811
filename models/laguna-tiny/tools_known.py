"""tools_known.py -- well-known tools with natural requests: each function draws
(name, description, parameters, request, arguments, result, answer). See tools.py."""

import json

import world as w
from words import any_word, cap, fake_word, join

def clock(rng):
    return f"{rng.randint(0, 23):02d}:{rng.choice(['00', '15', '30', '45', '10', '05'])}"


def date(rng):
    return f"20{rng.randint(20, 39)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"


def phrase(rng, low=2, high=5):
    return " ".join(any_word(rng) for _ in range(rng.randint(low, high)))


def email(rng):
    return f"{rng.choice(w.NAMES).lower()}@{fake_word(rng)}.{rng.choice(['com', 'org', 'net'])}"


def path(rng):
    return (
        rng.choice(["/tmp/", "/home/", "data/", "", "src/"])
        + rng.choice(w.NOUNS)
        + rng.choice([".txt", ".md", ".json", ".py", ".c"])
    )


CURRENCIES = ["USD", "EUR", "GBP", "JPY", "CHF", "SEK"]


ROOMS = ["kitchen", "bedroom", "living room", "bathroom", "office", "garage", "hall"]


SKIES = ["sunny", "cloudy", "rainy", "windy", "snowy", "foggy"]


def weather(rng):
    city, t, sky = rng.choice(w.CITIES), rng.randint(-10, 38), rng.choice(SKIES)
    pname = rng.choice(["city", "city", "location"])
    params = [(pname, "string", rng.choice(["Name of the city", "The city", ""]), True)]
    args = {pname: city}
    q = rng.choice(
        [
            "What is the weather in {}?",
            "How is the weather in {}?",
            "Weather in {}?",
            "Is it nice in {} today?",
            "What's the weather like in {}?",
            "Do I need a coat in {}?",
            "Tell me the weather in {}.",
        ]
    ).format(city)
    if rng.random() < 0.4:
        params.append(("unit", ["celsius", "fahrenheit"], "", False))
        if rng.random() < 0.5:
            args["unit"] = rng.choice(["celsius", "fahrenheit"])
            q = q.rstrip("?.") + f" in {args['unit']}?"
    result = rng.choice(
        [
            json.dumps({"temperature": t, "condition": sky}),
            json.dumps({"city": city, "temp": t, "sky": sky}),
            f"{t} degrees, {sky}",
            f"{sky}, {t} degrees",
        ]
    )
    name = rng.choice(
        ["get_weather", "get_weather", "weather", "get_current_weather", "weather_lookup"]
    )
    return (
        name,
        rng.choice(
            [
                "Get the weather in a city",
                "Current weather of a city",
                "Returns the current weather",
            ]
        ),
        params,
        q,
        args,
        result,
        f"It is {t} degrees and {sky} in {city}.",
    )


def time_in(rng):
    city, t = rng.choice(w.CITIES), clock(rng)
    q = rng.choice(
        ["What time is it in {}?", "Tell me the time in {}.", "What is the local time in {}?"]
    ).format(city)
    return (
        rng.choice(["get_time", "get_current_time", "local_time"]),
        "Get the current time in a city",
        [("city", "string", "", True)],
        q,
        {"city": city},
        rng.choice([t, json.dumps({"time": t})]),
        f"It is {t} in {city}.",
    )


def calculator(rng):
    a, b = rng.randint(10, 9999), rng.randint(2, 999)
    op, word, c = rng.choice([("+", "plus", a + b), ("*", "times", a * b), ("-", "minus", a - b)])
    q = rng.choice(
        [
            "What is {a} {op} {b}?",
            "How much is {a} {word} {b}?",
            "Calculate {a} {op} {b}.",
            "Compute {a} {word} {b}.",
        ]
    )
    if rng.random() < 0.6:
        return (
            rng.choice(["calculator", "calculate", "calc"]),
            "Evaluate an arithmetic expression",
            [("expression", "string", "for example 2 + 3", True)],
            q.format(a=a, b=b, op=op, word=word),
            {"expression": f"{a} {op} {b}"},
            rng.choice([str(c), json.dumps({"result": c})]),
            f"{a} {op} {b} = {c}.",
        )
    name = {"+": "add", "*": "multiply", "-": "subtract"}[op]
    return (
        rng.choice([name, name + "_numbers"]),
        f"{cap(name)} two numbers",
        [("a", "number", "", True), ("b", "number", "", True)],
        q.format(a=a, b=b, op=op, word=word),
        {"a": a, "b": b},
        rng.choice([str(c), json.dumps({"result": c})]),
        f"{a} {op} {b} = {c}.",
    )


def search(rng):
    text = phrase(rng)
    found = phrase(rng, 3, 6)
    q = rng.choice(
        [
            "Search for {}.",
            "Search the web for {}.",
            "Look up {}.",
            "Find information about {}.",
            "Can you search {}?",
        ]
    ).format(text)
    return (
        rng.choice(["search", "web_search", "search_web"]),
        "Search the web",
        [("query", "string", "What to search for", True)],
        q,
        {"query": text},
        found,
        f"I found this: {found}.",
    )


def send_email(rng):
    to, subject, body = email(rng), phrase(rng, 1, 3), phrase(rng, 2, 6)
    q = rng.choice(
        [
            "Send an email to {t} with the subject {s} and the text {b}.",
            "Write to {t}: subject {s}, text {b}.",
            "Email {t}, subject '{s}', body '{b}'.",
        ]
    ).format(t=to, s=subject, b=body)
    return (
        "send_email",
        "Send an email",
        [
            ("to", "string", "Address", True),
            ("subject", "string", "", True),
            ("body", "string", "", True),
        ],
        q,
        {"to": to, "subject": subject, "body": body},
        rng.choice(["sent", "ok", '{"status": "sent"}']),
        f"I sent the email to {to}.",
    )


def timer(rng):
    n = rng.randint(1, 90)
    unit = rng.choice(["minutes", "seconds", "hours"])
    q = rng.choice(
        [
            "Set a timer for {n} {u}.",
            "Start a timer of {n} {u}.",
            "Timer, {n} {u} please.",
            "Wake me in {n} {u}.",
        ]
    ).format(n=n, u=unit)
    return (
        "set_timer",
        "Set a timer",
        [(unit, "integer", "", True)],
        q,
        {unit: n},
        rng.choice(["ok", '{"status": "started"}']),
        f"The timer is set for {n} {unit}.",
    )


def alarm(rng):
    t = clock(rng)
    q = rng.choice(["Set an alarm for {}.", "Wake me up at {}.", "I need an alarm at {}."]).format(
        t
    )
    return (
        "set_alarm",
        "Set an alarm",
        [("time", "string", "HH:MM", True)],
        q,
        {"time": t},
        "ok",
        f"The alarm is set for {t}.",
    )


def todo(rng):
    item = rng.choice(["buy ", "call ", "clean ", "find ", "read ", ""]) + phrase(rng, 1, 3)
    q = rng.choice(["Add '{}' to my list.", "Put {} on my todo list.", "Remind me to {}."]).format(
        item
    )
    return (
        rng.choice(["add_todo", "add_task", "create_reminder"]),
        "Add an item to the list",
        [(rng.choice(["item", "text", "task"]), "string", "", True)],
        q,
        item,
        rng.choice(["ok", "added"]),
        f"I added '{item}'.",
    )


def currency(rng):
    a, b = rng.sample(CURRENCIES, 2)
    n, m = rng.randint(1, 999), rng.randint(1, 9999)
    q = rng.choice(
        ["Convert {n} {a} to {b}.", "How much is {n} {a} in {b}?", "What are {n} {a} in {b}?"]
    ).format(n=n, a=a, b=b)
    return (
        rng.choice(["convert_currency", "exchange"]),
        "Convert money",
        [("amount", "number", "", True), ("from", "string", "", True), ("to", "string", "", True)],
        q,
        {"amount": n, "from": a, "to": b},
        rng.choice([str(m), json.dumps({"result": m}), f"{m} {b}"]),
        f"{n} {a} are {m} {b}.",
    )


def translation(rng):
    text, language = phrase(rng, 1, 4), rng.choice(
        ["French", "German", "Spanish", "Italian", "Polish", "Japanese"]
    )
    out = " ".join(fake_word(rng) for _ in text.split())
    q = rng.choice(
        ["Translate '{t}' into {l}.", "How do you say '{t}' in {l}?", "Translate to {l}: {t}"]
    ).format(t=text, l=language)
    return (
        rng.choice(["translate", "translate_text"]),
        "Translate a text",
        [("text", "string", "", True), ("target_language", "string", "", True)],
        q,
        {"text": text, "target_language": language},
        out,
        f"In {language}: {out}",
    )


def light(rng):
    room, on = rng.choice(ROOMS), rng.random() < 0.5
    q = rng.choice(
        [
            "Turn the light in the {r} {s}.",
            "Switch {s} the {r} light.",
            "Light {s} in the {r}, please.",
        ]
    ).format(r=room, s="on" if on else "off")
    return (
        rng.choice(["set_light", "switch_light"]),
        "Switch a light on or off",
        [("room", "string", "", True), ("on", "boolean", "", True)],
        q,
        {"room": room, "on": on},
        "ok",
        f"The light in the {room} is {'on' if on else 'off'}.",
    )


def heating(rng):
    room, n = rng.choice(ROOMS), rng.randint(12, 28)
    q = rng.choice(
        [
            "Set the {r} to {n} degrees.",
            "Make the {r} {n} degrees warm.",
            "Heat the {r} to {n} degrees.",
        ]
    ).format(r=room, n=n)
    return (
        "set_temperature",
        "Set the temperature of a room",
        [("room", "string", "", True), ("degrees", "integer", "", True)],
        q,
        {"room": room, "degrees": n},
        "ok",
        f"The {room} is set to {n} degrees.",
    )


def read_file(rng):
    p, text = path(rng), phrase(rng, 3, 7)
    q = rng.choice(["Read the file {}.", "What is in {}?", "Show me {}.", "Open {}."]).format(p)
    return (
        "read_file",
        "Read a file",
        [("path", "string", "", True)],
        q,
        {"path": p},
        text,
        f"{p} says: {text}",
    )


def write_file(rng):
    p, text = path(rng), phrase(rng, 2, 5)
    q = rng.choice(["Write '{t}' to {p}.", "Save '{t}' in the file {p}."]).format(t=text, p=p)
    return (
        "write_file",
        "Write a file",
        [("path", "string", "", True), ("content", "string", "", True)],
        q,
        {"path": p, "content": text},
        "ok",
        f"I wrote the text to {p}.",
    )


def event(rng):
    title, d, t = phrase(rng, 1, 3), date(rng), clock(rng)
    q = rng.choice(
        [
            "Add {x} to my calendar on {d} at {t}.",
            "Plan '{x}' for {d}, {t}.",
            "Create an event {x} on {d} at {t}.",
        ]
    ).format(x=title, d=d, t=t)
    return (
        "create_event",
        "Create a calendar event",
        [
            ("title", "string", "", True),
            ("date", "string", "YYYY-MM-DD", True),
            ("time", "string", "", True),
        ],
        q,
        {"title": title, "date": d, "time": t},
        rng.choice(["ok", '{"status": "created"}']),
        f"I added {title} on {d} at {t}.",
    )


def flights(rng):
    a, b = rng.sample(w.CITIES, 2)
    price, d = rng.randint(40, 900), date(rng)
    q = rng.choice(
        ["Find a flight from {a} to {b} on {d}.", "I want to fly from {a} to {b} on {d}."]
    ).format(a=a, b=b, d=d)
    return (
        "find_flights",
        "Find flights",
        [
            ("from_city", "string", "", True),
            ("to_city", "string", "", True),
            ("date", "string", "", True),
        ],
        q,
        {"from_city": a, "to_city": b, "date": d},
        json.dumps({"price": price, "departure": "09:30"}),
        f"There is a flight from {a} to {b} at 09:30 for {price}.",
    )


def stock(rng):
    s, n = "".join(
        rng.choice("ABCDEFGHIKLMNOPRSTUV") for _ in range(rng.randint(3, 4))
    ), rng.randint(2, 900)
    q = rng.choice(
        ["What is the price of {}?", "How is the stock {} doing?", "Stock price of {}?"]
    ).format(s)
    return (
        "get_stock_price",
        "Get the price of a stock",
        [("symbol", "string", "", True)],
        q,
        {"symbol": s},
        rng.choice([str(n), json.dumps({"price": n})]),
        f"The price of {s} is {n}.",
    )


def dice(rng):
    n, s = rng.randint(1, 5), rng.choice([6, 8, 10, 12, 20])
    rolls = [rng.randint(1, s) for _ in range(n)]
    q = rng.choice(["Roll {n} dice with {s} sides.", "Throw {n} dice, {s} sides each."]).format(
        n=n, s=s
    )
    return (
        "roll_dice",
        "Roll dice",
        [("count", "integer", "", True), ("sides", "integer", "", True)],
        q,
        {"count": n, "sides": s},
        json.dumps(rolls),
        f"The dice show {join(rolls)}.",
    )


KNOWN = [
    weather,
    weather,
    weather,
    time_in,
    calculator,
    search,
    send_email,
    timer,
    alarm,
    todo,
    currency,
    translation,
    light,
    heating,
    read_file,
    write_file,
    event,
    flights,
    stock,
    dice,
]
