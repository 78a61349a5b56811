"""qa_texts.py -- questions whose answers are texts: lists, explanations, code, stories, copies,
reading, and what is not known. See qa.py."""

import texts
import world as w
from words import UNIQUE_NOUNS, any_word, article, cap, fake_word, random_id


def smalltalk(rng):
    questions = rng.choice(list(texts.SMALLTALK))
    q, a = rng.choice(questions), rng.choice(texts.SMALLTALK[questions])
    return q, a, "The user is only talking with me. I answer kindly."


def about(rng):
    questions, answers = texts.ABOUT[rng.choice(list(texts.ABOUT))]
    return (
        rng.choice(questions),
        rng.choice(answers),
        "The user asks about me or lagen. I know that.",
    )


def lists(rng):
    group = rng.choice([g for g in w.GROUPS])
    n = min(rng.randint(2, 6), len(w.GROUPS[group]) - 1)
    count = rng.choice([str(n), w.NUMBER_WORDS[n]])
    q = rng.choice(
        [
            "Name {n} {g}.",
            "List {n} {g}.",
            "Give me {n} {g}.",
            "Can you name {n} {g}?",
            "Tell me {n} {g}.",
            "Write a list of {n} {g}.",
        ]
    )
    name = (
        "programming languages"
        if group == "languages"
        else "days of the week" if group == "days" else group
    )
    q = q.format(n=count, g=name)
    if group in ("days", "months", "planets", "seasons"):
        items = w.GROUPS[group][:n]
    else:
        items = rng.sample(w.GROUPS[group], n)
    style = rng.randrange(3)
    if style == 0:
        a = "\n".join(f"{i}. {cap(x)}" for i, x in enumerate(items, 1))
        q += rng.choice(["", " Number them."])
    elif style == 1:
        q, a = q + rng.choice([" Use a bullet list.", " Use bullets."]), "\n".join(
            f"- {cap(x)}" for x in items
        )
    else:
        q, a = q + rng.choice([" In one line.", " Separate them with commas."]), ", ".join(items)
    return q, a, f"I need {n} {name}: {', '.join(items)}."


def explain(rng):
    topic = rng.choice(list(texts.EXPLAIN))
    q = rng.choice(
        [
            "What is {}?",
            "Explain {}.",
            "Tell me about {}.",
            "What is {}",
            "Can you explain {}?",
            "Describe {}.",
        ]
    )
    name = {
        "gpu": "GPU",
        "cpu": "CPU",
        "gguf": "GGUF",
        "python": "Python",
        "lua": "Lua",
        "c": "C",
        "kv": "KV",
    }
    shown = " ".join(name.get(x, x) for x in topic.split())
    text = texts.EXPLAIN[topic]
    if rng.random() < 0.15:
        q = q.rstrip("?. ") + rng.choice([" in one sentence.", " briefly."])
        text = text.split(". ")[0].rstrip(".") + "."
    return q.format(shown), text, f"The user asks about {shown}. I explain it in simple words."


def tips(rng):
    topic = rng.choice(list(texts.TIPS))
    n = rng.randint(2, 5)
    q = rng.choice(
        [
            "Give me {n} tips for {t}.",
            "Give me {n} tips for {t}",
            "What are {n} tips for {t}?",
            "Tell me {n} tips for {t}.",
            "Name {n} tips for {t}.",
        ]
    )
    items = rng.sample(texts.TIPS[topic], n)
    a = "\n".join(f"{i}. {x}" for i, x in enumerate(items, 1))
    return q.format(n=rng.choice([str(n), w.NUMBER_WORDS[n]]), t=topic), a, f"{n} tips for {topic}."


def code(rng):
    task = rng.choice(list(texts.CODE))
    i = rng.randrange(3)
    language = ("Python", "C", "Lua")[i]
    verb = {"multiplies": "multiply", "tells": "is_even"}.get(
        task.split()[0], task.split()[0].rstrip("s")
    )
    name = rng.choice(
        [
            verb,
            rng.choice(["f", "run", "calc", "work", "func"]),
            rng.choice(w.NOUNS) + "_" + rng.choice(w.NOUNS),
            fake_word(rng),
        ]
    )
    named = rng.random() < 0.5
    if not named:
        name = {
            "adds": "add",
            "multiplies": "multiply",
            "subtracts": "subtract",
            "squares": "square",
            "doubles": "double_it",
            "tells": "is_even",
            "computes": "factorial",
            "sums": "sum_list",
            "prints": "hello",
            "returns": task.split()[2] if task.split()[2] in ("larger", "smaller") else "absolute",
        }[task.split()[0]]
    body = texts.CODE[task][i].replace("F(", name + "(").replace("A", "a").replace("B", "b")
    q = rng.choice(
        [
            "Write a {l} function that {t}",
            "Give me a {l} function that {t}",
            "Show me a {l} function that {t}",
            "Can you write a function in {l} that {t}",
        ]
    ).format(l=language, t=task)
    q += rng.choice([f". Call it {name}.", f". The name is {name}."]) if named else "."
    return (
        q,
        f"```{language.lower()}\n{body}\n```",
        f"A {language} function that {task}. I call it {name}.",
    )


def unknown(rng):
    word, name = fake_word(rng, 2, 4), cap(fake_word(rng)) + " " + cap(fake_word(rng))
    q, a = rng.choice(
        [
            (f"What is {article(word)}?", f"I do not know what {article(word)} is."),
            (f"What is the capital of {cap(word)}?", f"I do not know {cap(word)}."),
            (f"Who is {name}?", f"I do not know who {name} is."),
            (f"Who was {name}?", f"I do not know who {name} was."),
            (f"Tell me about {name}.", f"I do not know anything about {name}."),
            (f"Explain {word}.", f"I do not know what {word} means."),
            (f"What does {word} mean?", f"I do not know what {word} means."),
            (f"When was {name} born?", f"I do not know when {name} was born."),
            (f"How old is {name}?", f"I do not know how old {name} is."),
            (f"Where is {cap(word)}?", f"I do not know where {cap(word)} is."),
            (f"What will happen in {rng.randint(2030, 2300)}?", "I do not know the future."),
            ("Who will win the election?", "I do not know the future."),
            (f"Who won the match of {name}?", "I do not know that."),
            ("What is the stock price today?", "I do not know that. I have no current data."),
            ("What time is it?", "I do not know the time. I have no clock."),
            ("What is the date today?", "I do not know the date. I have no calendar."),
            (
                f"What is the weather in {rng.choice(w.CITIES)}?",
                "I do not know the current weather.",
            ),
            (f"Is it raining in {rng.choice(w.CITIES)}?", "I do not know the current weather."),
            ("What is my name?", "I do not know your name. You have not told me."),
            ("How old am I?", "I do not know. You have not told me."),
            ("What is my favourite colour?", "I do not know. You have not told me."),
            ("Where do I live?", "I do not know. You have not told me."),
        ]
    )
    return q, a, "I do not know this, so I say so."


def repeat(rng):
    words = [any_word(rng) for _ in range(rng.randint(1, 6))]
    text = " ".join(words)
    kind = rng.randrange(7)
    if kind < 2:
        text = rng.choice(
            [
                text,
                cap(text) + ".",
                str(rng.randint(0, 99999)),
                text + " " + str(rng.randint(0, 999)),
                random_id(rng),
            ]
        )
        q = rng.choice(
            [
                "Repeat after me: {}",
                "Say: {}",
                "Repeat: {}",
                "Write this: {}",
                "Echo {}",
                "Please repeat this text: {}",
            ]
        )
        return q.format(text), text, "I repeat the text."
    if kind == 2:
        return (
            f"Write '{text}' in capital letters.",
            text.upper(),
            "I write it with capital letters.",
        )
    if kind == 3:
        return (
            f"Reverse the order of these words: {text}",
            " ".join(reversed(words)),
            "I start with the last word.",
        )
    if kind == 4:
        return (
            f"How many words are in '{text}'?",
            f"There are {len(words)} words." if len(words) > 1 else "There is 1 word.",
            ", ".join(f"{i} {x}" for i, x in enumerate(words, 1)) + ".",
        )
    if kind == 5:
        i = rng.randrange(len(words))
        nth = ("first", "second", "third", "fourth", "fifth", "sixth")[i]
        return (
            f"What is the {nth} word of '{text}'?",
            f"The {nth} word is '{words[i]}'.",
            ", ".join(f"{i} {x}" for i, x in enumerate(words[: i + 1], 1)) + ".",
        )
    rng.choice(words)  # a draw without use: the trained file's data had it
    return (
        f"Put {', '.join(words)} in alphabetical order.",
        ", ".join(sorted(words)),
        "I sort by the first letter.",
    )


def as_json(rng):
    name, age, city = rng.choice(w.NAMES), rng.randint(1, 90), rng.choice(w.CITIES)
    q = rng.choice(
        [
            f"Give me JSON with name {name}, age {age} and city {city}.",
            f"Write a JSON object with the name {name}, the age {age} and the city {city}.",
        ]
    )
    return (
        q,
        f'{{"name": "{name}", "age": {age}, "city": "{city}"}}',
        "A JSON object with three keys.",
    )


def story(rng):
    q, a = make_story(rng)
    return q, a, "I tell a short story with a beginning, a problem and a good end."


def make_story(rng):
    name, other = rng.sample(w.NAMES, 2)
    kind = rng.choice(list(w.ANIMALS))
    adj, place, thing = rng.choice(w.ADJECTIVES), rng.choice(w.PLACES), rng.choice(w.THINGS)
    colour_, helper = rng.choice(w.COLOURS), rng.choice(list(w.ANIMALS))
    ask = rng.random()
    who = f"{article(adj)} {kind} named {name}"
    opening = rng.choice(
        ["Once upon a time there was {}.", "There once was {}.", "Long ago there lived {}."]
    ).format(who)
    middle = rng.choice(
        [
            (
                f"One day {name} lost a {colour_} {thing} in the {place}. {name} looked everywhere"
                " but could not find it."
            ),
            (
                f"One morning {name} walked to the {place} and found a {colour_} {thing}. Nobody"
                f" knew whose {thing} it was."
            ),
            (
                f"{name} wanted to see the {place}, but the way was long and dark. So {name} took a"
                f" {colour_} {thing} along."
            ),
            (
                f"Every day {name} went to the {place} to play with a {colour_} {thing}. But one"
                f" day the {thing} was gone."
            ),
        ]
    )
    turn = rng.choice(
        [
            f'Then {name} met {article(helper)} named {other}. "Can I help you?" asked {other}.',
            f'On the way {name} met {other} the {helper}. "Do not worry," said {other}.',
            f'{cap(article(helper))} named {other} came by. "I saw that {thing}," said {other}.',
        ]
    )
    ending = rng.choice(
        [
            (
                f"Together they found the {thing} under a tree. {name} was very happy, and they"
                " became friends."
            ),
            (
                f"They shared the {thing} and went home before the night. From that day on they"
                " were friends."
            ),
            f"They laughed and played in the {place} until the evening. The end.",
            (
                f"{name} said thank you and gave {other} the {colour_} {thing}. They stayed friends"
                " for ever."
            ),
        ]
    )
    text = " ".join([opening, middle, turn, ending])
    if ask < 0.35:
        q = rng.choice(
            [
                "Tell me a story about {}.",
                "Write a short story about {}.",
                "Can you tell me a story about {}?",
            ]
        ).format(article(kind))
    elif ask < 0.7:
        q = rng.choice(
            ["Tell me a story about {} named {}.", "Write a short story about {} called {}."]
        ).format(article(kind), name)
    else:
        q = rng.choice(
            [
                "Tell me a story.",
                "Tell me a short story.",
                "Write a story.",
                "Once upon a time",
                "I want to hear a story.",
            ]
        )
    return q, text


def reading(rng):
    """Facts first, then a question on one of them; the length varies from one line to a page."""
    n = rng.choice([2, 3, 4, 6, 8, 12, 20, 40]) if rng.random() < 0.7 else rng.randint(2, 60)
    n = min(n, 60)
    names = rng.sample(w.NAMES, n)
    things = [(rng.choice(w.COLOURS), rng.choice(w.THINGS)) for _ in names]
    places = [rng.choice(w.CITIES) for _ in names]
    kind = rng.randrange(3)
    i = rng.randrange(n)
    who, (col, thing), city = names[i], things[i], places[i]
    if kind == 0:
        facts = [f"{a} has {article(c)} {t}." for a, (c, t) in zip(names, things)]
        q, a = f"What does {who} have?", f"{who} has {article(col)} {thing}."
    elif kind == 1:
        facts = [f"{a} lives in {p}." for a, p in zip(names, places)]
        q, a = f"Where does {who} live?", f"{who} lives in {city}."
    else:
        ages = [rng.randint(3, 90) for _ in names]
        facts = [f"{a} is {x} years old." for a, x in zip(names, ages)]
        q, a = f"How old is {who}?", f"{who} is {ages[i]} years old."
    lead = rng.choice(["", "Read this: ", "Here are some facts. ", "Text: "])
    sep = rng.choice([" ", "\n"])
    text = lead + " ".join(facts) + sep + q if rng.random() < 0.8 else q + sep + " ".join(facts)
    return text, a, f"The text says: {facts[i]}"


def secret(rng):
    """A code hidden between other lines: recall over a long distance."""
    keys = rng.sample(UNIQUE_NOUNS, rng.choice([2, 4, 8, 16, 32, 60]))
    values = [
        rng.choice([str(rng.randint(10, 9999)), random_id(rng), fake_word(rng)]) for _ in keys
    ]
    i = rng.randrange(len(keys))
    style = rng.choice(["{k}: {v}", "The code of {k} is {v}.", "{k} = {v}"])
    text = "\n".join(style.format(k=k, v=v) for k, v in zip(keys, values))
    q = rng.choice(
        ["What is the value of {}?", "What is the code of {}?", "Which value belongs to {}?"]
    ).format(keys[i])
    return text + "\n" + q, f"It is {values[i]}.", f"{keys[i]} has {values[i]}."
