"""qa.py -- single questions of the small world: each family draws (question, answer, thought).

A family takes a random.Random and returns three texts; the thought is what stands between the
think tags when thinking is on. FAMILIES lists (weight, function)."""

import world as w
from qa_numbers import (
    add,
    calendar,
    compare,
    count_to,
    divide,
    evaluate,
    multiply,
    neighbour,
    number_list,
    parity,
    subtract,
    times,
    units,
    word_problem,
)
from qa_texts import (
    about,
    as_json,
    code,
    explain,
    lists,
    reading,
    repeat,
    secret,
    smalltalk,
    story,
    tips,
    unknown,
)
from words import any_word, article, cap, plural


def capital(rng):
    country = rng.choice(list(w.COUNTRIES))
    city, continent, language = w.COUNTRIES[country]
    kind = rng.randrange(6)
    if kind < 3:
        q = rng.choice(
            [
                "What is the capital of {}?",
                "Capital of {}?",
                "Which city is the capital of {}?",
                "Tell me the capital of {}.",
                "What's the capital of {}?",
                "Name the capital of {}.",
            ]
        )
        return (
            q.format(country),
            f"The capital of {country} is {city}.",
            f"The capital of {country} is {city}.",
        )
    if kind == 3:
        return (
            f"{city} is the capital of which country?",
            f"{city} is the capital of {country}.",
            f"{city} belongs to {country}.",
        )
    if kind == 4:
        q = rng.choice([f"On which continent is {country}?", f"Where is {country}?"])
        return q, f"{country} is in {continent}.", f"{country} is in {continent}."
    return (
        f"What language do people speak in {country}?",
        f"People in {country} speak {language}.",
        f"{country}: {language}.",
    )


def animal(rng):
    name = rng.choice(list(w.ANIMALS))
    sound, legs, home, baby, food = w.ANIMALS[name]
    a = article(name)
    kind = rng.randrange(6)
    if kind == 0:
        return f"What sound does {a} make?", f"{cap(a)} {sound}.", f"{cap(a)} {sound}."
    if kind == 1:
        return (
            f"How many legs does {a} have?",
            f"{cap(a)} has {legs} legs." if legs else f"{cap(a)} has no legs.",
            f"{cap(name)}: {legs} legs.",
        )
    if kind == 2:
        return f"Where does {a} live?", f"{cap(a)} lives in {home}.", f"{cap(name)}: {home}."
    if kind == 3:
        return (
            f"What is a baby {name} called?",
            f"A baby {name} is called {article(baby)}.",
            f"The young of {a} is {article(baby)}.",
        )
    if kind == 4:
        return f"What does {a} eat?", f"{cap(a)} eats {food}.", f"{cap(name)}: {food}."
    can = name in w.FLY
    return (
        f"Can {a} fly?",
        f"Yes, {a} can fly." if can else f"No, {a} cannot fly.",
        f"{cap(a)} has wings and flies." if can else f"{cap(a)} does not fly.",
    )


def colour(rng):
    if rng.random() < 0.3:
        (a, b), c = rng.choice(list(w.MIX.items()))
        if rng.random() < 0.5:
            a, b = b, a
        return (
            f"What do you get when you mix {a} and {b}?",
            f"{cap(a)} and {b} make {c}.",
            f"{a} + {b} = {c}.",
        )
    thing = rng.choice(list(w.COLOUR_OF))
    q = rng.choice(
        ["What colour is {}?", "What color is {}?", "Which colour does {} have?"]
    ).format(thing)
    return q, f"{cap(thing)} is {w.COLOUR_OF[thing]}.", f"{cap(thing)} is {w.COLOUR_OF[thing]}."


def opposite(rng):
    a, b = rng.choice(w.OPPOSITES)
    if rng.random() < 0.5:
        a, b = b, a
    q = rng.choice(
        [
            "What is the opposite of {}?",
            "Opposite of {}?",
            "Tell me the opposite of {}.",
            "What is the opposite of '{}'?",
        ]
    )
    return q.format(a), f"The opposite of {a} is {b}.", f"{cap(a)} and {b} are opposites."


def grammar(rng):
    if rng.random() < 0.5:
        word = rng.choice(
            w.THINGS + [p[0] for p in w.IRREGULAR] + w.GROUPS["fruits"] + w.GROUPS["tools"][:8]
        )
        if word in ("pliers",):
            word = "hammer"
        return (
            f"What is the plural of {word}?",
            f"The plural of {word} is {plural(word)}.",
            f"One {word}, two {plural(word)}.",
        )
    a, b = rng.choice(w.PAST)
    return (
        f"What is the past tense of {a}?",
        f"The past tense of {a} is {b}.",
        f"Today I {a}, yesterday I {b}.",
    )


def translate(rng):
    word = rng.choice(list(w.WORDS))
    i = rng.randrange(3)
    language = ("French", "Spanish", "German")[i]
    there = w.WORDS[word][i]
    kind = rng.randrange(3)
    if kind == 0:
        q = rng.choice(
            [
                f"How do you say '{word}' in {language}?",
                f"Translate '{word}' to {language}.",
                f"What is {word} in {language}?",
            ]
        )
        return q, f"'{word}' in {language} is '{there}'.", f"{language} for {word}: {there}."
    if kind == 1:
        return (
            f"What does the {language} word '{there}' mean?",
            f"'{there}' means '{word}'.",
            f"{there} is {language} for {word}.",
        )
    n = rng.randrange(len(w.NUMBER_WORDS))
    return (
        rng.choice([f"Write {n} as a word.", f"Spell out the number {n}."]),
        f"{n} is '{w.NUMBER_WORDS[n]}'.",
        f"{n}: {w.NUMBER_WORDS[n]}.",
    )


def spelling(rng):
    word = any_word(rng)
    dashed = "-".join(word)
    kind = rng.randrange(5)
    if kind == 0:
        return f"Spell the word {word}.", f"{dashed}.", f"The letters are {dashed}."
    if kind == 1:
        return (
            f"How many letters does the word {word} have?",
            f"The word {word} has {len(word)} letters.",
            f"{dashed}: {len(word)} letters.",
        )
    if kind == 2:
        return (
            f"What is the first letter of {word}?",
            f"The first letter of {word} is {word[0]}.",
            f"{dashed}: {word[0]}.",
        )
    if kind == 3:
        return (
            f"What is the last letter of {word}?",
            f"The last letter of {word} is {word[-1]}.",
            f"{dashed}: {word[-1]}.",
        )
    i = rng.randrange(25)
    return (
        f"Which letter comes after {chr(97 + i)}?",
        f"{chr(98 + i)} comes after {chr(97 + i)}.",
        f"The next letter is {chr(98 + i)}.",
    )


def member(rng):
    group = rng.choice(list(w.GROUP_ONE))
    one = w.GROUP_ONE[group]
    yes = rng.random() < 0.5
    word = rng.choice(
        w.GROUPS[group] if yes else w.GROUPS[rng.choice([g for g in w.GROUP_ONE if g != group])]
    )
    yes = word in w.GROUPS[group]
    if rng.random() < 0.4 and yes:
        return (
            f"What is {article(word) if word[0].islower() else word}?",
            f"{cap(article(word)) if word[0].islower() else word} is {article(one)}.",
            f"{cap(word)}: {article(one)}.",
        )
    subject = article(word) if word[0].islower() and group not in ("colours",) else word
    q = f"Is {subject} {article(one)}?"
    a = f"Yes, {subject} is {article(one)}." if yes else f"No, {subject} is not {article(one)}."
    return q, a, a


FAMILIES = [
    (3, smalltalk),
    (5, about),
    (7, add),
    (4, subtract),
    (4, multiply),
    (2, divide),
    (3, word_problem),
    (2, compare),
    (1, neighbour),
    (1, parity),
    (1, times),
    (2, count_to),
    (2, number_list),
    (7, capital),
    (6, animal),
    (3, colour),
    (5, calendar),
    (4, units),
    (4, opposite),
    (3, grammar),
    (3, translate),
    (3, spelling),
    (3, member),
    (6, lists),
    (8, explain),
    (4, tips),
    (5, code),
    (1, evaluate),
    (6, unknown),
    (6, repeat),
    (1, as_json),
    (6, story),
    (6, reading),
    (3, secret),
]
