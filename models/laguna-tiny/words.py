"""words.py -- words out of nothing and their forms: what qa*.py and tools*.py share."""

import world as w

SYLLABLES = (
    "ba be bi bo da do du fa fi ga go ka ki lo lu ma mo na ni po ra ri sa so ta tu va vo za zu"
    .split()
)
UNIQUE_NOUNS = list(dict.fromkeys(w.NOUNS))


def fake_word(rng, low=2, high=3):
    """A word that means nothing: models must copy it, they cannot know it."""
    word = "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(low, high)))
    return word + rng.choice(["", "n", "r", "l", "x", "m", "s"])


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def plural(word):
    for one, many in w.IRREGULAR:
        if word == one:
            return many
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"


def cap(text):
    return text[:1].upper() + text[1:]


def join(items, last="and"):
    items = [str(i) for i in items]
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + f" {last} " + items[-1]


def any_word(rng):
    return rng.choice(
        [
            rng.choice(w.NOUNS),
            rng.choice(w.THINGS),
            rng.choice(w.ADJECTIVES),
            rng.choice(list(w.ANIMALS)),
            rng.choice(w.COLOURS),
            fake_word(rng),
        ]
    )


def random_id(rng):
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghkmnpqrstuvwxyz0123456789"
    return "".join(rng.choice(letters) for _ in range(rng.randint(3, 10)))
