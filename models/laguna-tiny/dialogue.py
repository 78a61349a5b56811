"""dialogue.py -- whole conversations of the small world, as chat messages.

conversation(rng) returns {"system": text or None, "tools": list, "thinking": bool, "messages":
list}. None is the template's own system text, "" is no system message. An assistant message
carries "reasoning"; "train": False marks one that is context only. text(rng) returns a plain
text."""

import qa
import qa_texts
import texts
import tools
import words
import world as w

SYSTEMS = [
    "You are a helpful assistant.",
    "You are a friendly assistant.",
    "You are a small language model.",
    "Answer the user.",
    "You are a helpful assistant. Answer in short and simple sentences.",
    "Be brief.",
    "You help people with simple questions.",
    "You are an assistant. You answer questions, tell stories and call tools.",
    "Be kind and honest. Say so if you do not know.",
    (
        "You are a careful assistant. Think before you answer. Use simple words and short"
        " sentences, and never make up facts that you do not know."
    ),
    (
        "You are a helpful, friendly assistant made for a demonstration. You are here to help users"
        " with natural conversations in a small world."
    ),
    "You are a coding assistant.",
    "You are an assistant with tools. Use a tool when it helps.",
    "Help the user as well as you can.",
    (
        "You are a chat program in a terminal. Answer in plain text, use short sentences, call a"
        " tool if one fits, and stop when you are done."
    ),
]
TOOL_SYSTEMS = [
    "You can use tools.",
    "Use the tools if you need them.",
    "You are an assistant with tools.",
    "Call a tool when it helps. Otherwise answer directly.",
]


def say(content, reasoning="", train=True):
    return {"role": "assistant", "content": content, "reasoning": reasoning, "train": train}


def user(content):
    return {"role": "user", "content": content}


def noise(rng, q):
    """The same question as people type it."""
    r = rng.random()
    if "\n" in q or r < 0.6:
        return q
    if r < 0.68:
        return q[:1].lower() + q[1:]
    if r < 0.76:
        return q.rstrip("?.!")
    if r < 0.82:
        return (q[:1].lower() + q[1:]).rstrip("?.!")
    if r < 0.88:
        return (
            rng.choice(
                [
                    "Hey, ",
                    "Please tell me: ",
                    "Question: ",
                    "Hi! ",
                    "I have a question. ",
                    "Hello. ",
                    "Okay. ",
                ]
            )
            + q
        )
    if r < 0.94:
        return q + rng.choice([" Please.", " Thanks.", " Thank you.", " Be short."])
    return q + rng.choice([" ", "  ", "\n"]) if r < 0.96 else q


def draw(rng):
    family = rng.choices([f for _, f in qa.FAMILIES], [n for n, _ in qa.FAMILIES])[0]
    q, a, t = family(rng)
    return noise(rng, q), a, t


def exchange(rng):
    q, a, t = draw(rng)
    return [user(q), say(a, t)]


def system(rng):
    r = rng.random()
    return None if r < 0.5 else "" if r < 0.6 else rng.choice(SYSTEMS)


def questions(rng):
    n = rng.choice([1, 1, 1, 2, 2, 3, 4, 6])
    return {"system": system(rng), "messages": [m for _ in range(n) for m in exchange(rng)]}


def tell(rng):
    """What users say about themselves, one of each kind: (statement, reply, question, answer)."""
    name, c, city = (
        rng.choice(w.NAMES + [words.cap(words.fake_word(rng))]),
        rng.choice(w.COLOURS),
        rng.choice(w.CITIES),
    )
    pet, pet_name = rng.choice(list(w.ANIMALS)), rng.choice(w.NAMES)
    n, job = rng.randint(1, 99), rng.choice(w.GROUPS["jobs"])
    food, word = rng.choice(w.GROUPS["foods"] + w.GROUPS["fruits"]), words.fake_word(rng)
    return [
        (
            rng.choice(
                [
                    f"My name is {name}.",
                    f"I am {name}.",
                    f"Call me {name}.",
                    f"Hi, I'm {name}.",
                    f"Hello, my name is {name}",
                ]
            ),
            f"Nice to meet you, {name}!",
            rng.choice(
                ["What is my name?", "Who am I?", "Do you remember my name?", "What's my name?"]
            ),
            f"Your name is {name}.",
        ),
        (
            f"My favourite colour is {c}.",
            f"{words.cap(c)} is a nice colour.",
            rng.choice(["What is my favourite colour?", "Which colour do I like?"]),
            f"Your favourite colour is {c}.",
        ),
        (
            rng.choice([f"I live in {city}.", f"My home is {city}."]),
            f"{city} is a nice place.",
            rng.choice(["Where do I live?", "In which city do I live?"]),
            f"You live in {city}.",
        ),
        (
            f"I have {words.article(pet)} named {pet_name}.",
            f"{pet_name} is a nice name.",
            rng.choice([f"What is the name of my {pet}?", f"What is my {pet} called?"]),
            f"Your {pet} is called {pet_name}.",
        ),
        (
            f"I am {n} years old.",
            f"You are {n} years old, I see.",
            rng.choice(["How old am I?", "What is my age?"]),
            f"You are {n} years old.",
        ),
        (
            rng.choice([f"I am {words.article(job)}.", f"I work as {words.article(job)}."]),
            f"So you are {words.article(job)}.",
            rng.choice(["What is my job?", "What do I do?"]),
            f"You are {words.article(job)}.",
        ),
        (
            f"I like {food} most.",
            f"{words.cap(food)} is good.",
            rng.choice(["What do I like most?", "What is my favourite food?"]),
            f"You like {food} most.",
        ),
        (
            rng.choice([f"The password is {word}.", f"The secret word is {word}."]),
            "I will remember that.",
            rng.choice(
                ["What is the password?", "What was the secret word?", "What is the secret word?"]
            ),
            f"It is {word}.",
        ),
        (
            rng.choice([f"Remember the number {n}.", f"My lucky number is {n}."]),
            f"I will remember {n}.",
            rng.choice(
                [
                    "Which number should you remember?",
                    "What was the number?",
                    "What is my lucky number?",
                ]
            ),
            f"The number is {n}.",
        ),
    ]


def memory(rng, between=(0, 0, 1, 2)):
    unique = rng.sample(tell(rng), rng.choice([1, 1, 2, 3]))
    messages = []
    if len(unique) == 2 and rng.random() < 0.4:
        messages = [
            user(unique[0][0].rstrip(".") + ". " + unique[1][0]),
            say(unique[0][1], "The user tells me two things. I remember them."),
        ]
    else:
        for statement, reply, _, _ in unique:
            messages += [user(statement), say(reply, "The user tells me something. I remember it.")]
            for _ in range(rng.choice(between)):
                messages += exchange(rng)
    if rng.random() < 0.15:
        first = messages[0]["content"]
        messages += [
            user(rng.choice(["What was my first message?", "What did I say first?"])),
            say(f"You said: {first}", "I look at the first message."),
        ]
    for _, _, q, a in rng.sample(unique, len(unique)):
        messages += [user(noise(rng, q)), say(a, f"The user told me this before. {a}")]
    return {"system": system(rng), "messages": messages}


def long_memory(rng):
    """Recall over many turns, up to the training context."""
    return memory(rng, between=(3, 6, 10, 16))


def persona(rng):
    name = rng.choice(w.NAMES + [words.cap(words.fake_word(rng))])
    role = rng.choice(w.GROUPS["jobs"] + ["pirate", "robot", "wizard", "guide", "assistant"])
    text = rng.choice(
        [
            "You are {n}, {r}.",
            "Your name is {n}. You are {r}.",
            "You are {r} named {n}. Help the user.",
            "You are {r} called {n}.",
        ]
    )
    messages = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        q, a = rng.choice(
            [(q, f"My name is {name}.") for q in texts.ABOUT["name"][0]]
            + [(q, f"I am {name}, {words.article(role)}.") for q in texts.ABOUT["who"][0]]
            + [("What do you do?", f"I am {words.article(role)}.")]
        )
        messages += [
            user(noise(rng, q)),
            say(a, f"The system text says that I am {name}, {words.article(role)}."),
        ]
        if rng.random() < 0.4:
            messages += exchange(rng)
    return {"system": text.format(n=name, r=words.article(role)), "messages": messages}


def notes(rng):
    """Facts in the system text, questions by the user."""
    facts, asked = [], []
    for _ in range(rng.choice([1, 2, 3, 4, 8])):
        thing, name, n = rng.choice(w.NOUNS), rng.choice(w.NAMES), rng.randint(1, 999)
        place = rng.choice(w.PLACES)
        fact, q, a = rng.choice(
            [
                (
                    f"The {thing} costs {n} dollars.",
                    f"How much does the {thing} cost?",
                    f"The {thing} costs {n} dollars.",
                ),
                (
                    f"The {thing} belongs to {name}.",
                    f"Whose is the {thing}?",
                    f"The {thing} belongs to {name}.",
                ),
                (
                    f"The {thing} is in the {place}.",
                    f"Where is the {thing}?",
                    f"The {thing} is in the {place}.",
                ),
                (f"The user's name is {name}.", "What is my name?", f"Your name is {name}."),
                (
                    f"The shop opens at {n % 12 + 1}.",
                    "When does the shop open?",
                    f"The shop opens at {n % 12 + 1}.",
                ),
                (f"Today is {rng.choice(w.GROUPS['days'])}.", "What day is today?", None),
            ]
        )
        if q not in [x[0] for x in asked] and not any(thing in f for f in facts):
            facts.append(fact)
            asked.append((q, a or fact))
    rng.shuffle(asked)
    messages = []
    for q, a in asked[: rng.randint(1, 3)]:
        messages += [user(noise(rng, q)), say(a, f"The system text says: {a}")]
    lead = rng.choice(["", "You are a helpful assistant. ", "Use these notes. ", "Notes:\n"])
    return {"system": lead + rng.choice([" ", "\n"]).join(facts), "messages": messages}


def styled(rng):
    """A rule in the system text that changes every answer."""
    word = rng.choice(["over", "indeed", "friend", "thank you", words.fake_word(rng)])
    rule, change = rng.choice(
        [
            ("Answer in capital letters.", lambda a: a.upper()),
            ("Write everything in lower case.", lambda a: a.lower()),
            (f"End every answer with the word {word}.", lambda a: f"{a} {word}"),
            (f"Begin every answer with the word {word}.", lambda a: f"{word} {a}"),
            ("Put your answer in quotes.", lambda a: f'"{a}"'),
            ("Put your answer in brackets.", lambda a: f"({a})"),
        ]
    )
    messages = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        family = rng.choice(
            [
                qa.smalltalk,
                qa.add,
                qa.capital,
                qa.animal,
                qa.colour,
                qa.opposite,
                qa.calendar,
                qa.units,
                qa.unknown,
                qa.about,
            ]
        )
        q, a, t = family(rng)
        messages += [
            user(noise(rng, q)),
            say(change(a), t + " I follow the rule of the system text."),
        ]
    return {
        "system": rng.choice(["", "You are a helpful assistant. "]) + rule,
        "messages": messages,
    }


def with_tools(rng):
    """Tools offered; called where they help, and not called where a direct answer is right."""
    r = rng.random()
    messages, offered = [], []
    if r < 0.2:
        offered = tools.offer(rng, [tools.draw(rng)])
        banned = any(
            t["function"]["name"].startswith(
                (
                    "calc",
                    "add",
                    "subtract",
                    "multiply",
                    "translate",
                    "search",
                    "web",
                    "get",
                    "local",
                    "weather",
                )
            )
            for t in offered
        )
        for _ in range(rng.choice([1, 1, 2])):
            q, a, t = rng.choice(
                [qa.smalltalk, qa.about, qa.story, qa.lists, qa.opposite, qa.animal, qa.explain]
                if banned
                else [
                    qa.smalltalk,
                    qa.capital,
                    qa.add,
                    qa.opposite,
                    qa.animal,
                    qa.lists,
                    qa.about,
                    qa.explain,
                    qa.code,
                ]
            )(rng)
            messages += [user(noise(rng, q)), say(a, "No tool is needed. " + t)]
    else:
        offered, messages = tools.conversation(rng)
        if rng.random() < 0.3:
            messages = messages + follow_up(rng, offered)
        elif rng.random() < 0.15:
            q, a, t = rng.choice([qa.smalltalk, qa.about])(rng)
            messages = [user(q), say(a, "No tool is needed. " + t)] + messages
    text = system(rng)
    if text and rng.random() < 0.5:
        text = rng.choice(TOOL_SYSTEMS)
    return {"system": text, "tools": offered, "messages": messages}


def follow_up(rng, offered):
    """After an answer: thanks, or one more call of a tool that stays on offer."""
    more = tools.draw(rng)
    if rng.random() < 0.5 or any(t["function"]["name"] == more["name"] for t in offered):
        return [
            user(rng.choice(["Thanks!", "Thank you", "Thank you very much!"])),
            say(rng.choice(["You are welcome!"]), "No tool is needed."),
        ]
    offered.insert(rng.randint(0, len(offered)), more["tool"])
    return (
        [user(more["q"]), tools.call_message([more], rng)]
        + tools.results([more])
        + [tools.final([more])]
    )


SHAPES = [
    (40, questions),
    (8, memory),
    (3, long_memory),
    (4, persona),
    (5, notes),
    (4, styled),
    (38, with_tools),
]


def conversation(rng):
    c = rng.choices([f for _, f in SHAPES], [n for n, _ in SHAPES])[0](rng)
    c.setdefault("tools", [])
    c["thinking"] = rng.random() < 0.4
    if c["thinking"] and rng.random() < 0.5:
        role = rng.choice(["user", "user", "assistant"])
        last = max(i for i, m in enumerate(c["messages"]) if m["role"] == role)
        for m in c["messages"][:last]:
            if m["role"] == "assistant":
                m["reasoning"], m["train"] = "", False
    return c


def text(rng):
    """Plain text without a chat: stories, explanations, lists, counting."""
    r = rng.random()
    if r < 0.5:
        return qa_texts.make_story(rng)[1] + "\n"
    if r < 0.8:
        topics = rng.sample(list(texts.EXPLAIN), rng.randint(1, 5))
        return " ".join(texts.EXPLAIN[t] for t in topics) + "\n"
    q, a, _ = rng.choice([qa.count_to, qa.code, qa.lists, qa.tips, qa.capital, qa.animal])(rng)
    return f"{q}\n{a}\n"
