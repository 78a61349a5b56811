"""qa.py -- single questions of the small world: each family draws (question, answer, thought).

A family takes a random.Random and returns three texts; the thought is what stands between the
think tags when thinking is on. FAMILIES lists (weight, function)."""
import world as w

SYLLABLES = "ba be bi bo da do du fa fi ga go ka ki lo lu ma mo na ni po ra ri sa so ta tu va vo za zu".split()

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


def smalltalk(rng):
    questions = rng.choice(list(w.SMALLTALK))
    q, a = rng.choice(questions), rng.choice(w.SMALLTALK[questions])
    return q, a, "The user is only talking with me. I answer kindly."


def about(rng):
    questions, answers = w.ABOUT[rng.choice(list(w.ABOUT))]
    return rng.choice(questions), rng.choice(answers), "The user asks about me or lagen. I know that."


def column_sum(a, b):
    """The thought of an addition: from the last digit to the first, with the carry."""
    steps, carry, x, y = [], 0, a, b
    while x or y or carry:
        dx, dy = x % 10, y % 10
        total = dx + dy + carry
        steps.append(f"{dx} + {dy}" + (" + 1" if carry else "") + f" = {total}")
        carry, x, y = total // 10, x // 10, y // 10
    return f"{a} + {b}. " + ", ".join(steps) + f". So {a + b}."


def number(rng):
    return rng.choice([rng.randint(0, 9), rng.randint(0, 20), rng.randint(0, 99), rng.randint(0, 99)])


def add(rng):
    a, b = number(rng), number(rng)
    if rng.random() < 0.15:
        a, b = rng.randint(100, 999), rng.randint(10, 999)
    q = rng.choice(["What is {a} + {b}?", "{a} + {b} = ?", "{a} + {b}", "How much is {a} plus {b}?",
                    "What is {a} plus {b}?", "Add {a} and {b}.", "Compute {a} + {b}.", "{a}+{b}",
                    "What is the sum of {a} and {b}?"]).format(a=a, b=b)
    answer = rng.choice(["{a} + {b} = {c}.", "{a} + {b} = {c}", "It is {c}."] if rng.random() < .1 else
                        ["{a} + {b} = {c}."]).format(a=a, b=b, c=a + b)
    return q, answer, column_sum(a, b) if a + b > 9 else f"{a} + {b} = {a + b}."


def subtract(rng):
    a, b = sorted((number(rng), number(rng)), reverse=True)
    q = rng.choice(["What is {a} - {b}?", "{a} - {b} = ?", "{a} - {b}", "How much is {a} minus {b}?",
                    "What is {a} minus {b}?", "Subtract {b} from {a}.", "Compute {a} - {b}."])
    thought = f"{a} - {b}: {b} + {a - b} = {a}, so the result is {a - b}."
    return q.format(a=a, b=b), f"{a} - {b} = {a - b}.", thought


def multiply(rng):
    a, b = rng.randint(0, 12), rng.randint(0, 12)
    q = rng.choice(["What is {a} x {b}?", "What is {a} * {b}?", "{a} * {b}", "How much is {a} times {b}?",
                    "What is {a} times {b}?", "Multiply {a} by {b}.", "Compute {a} * {b}."])
    return q.format(a=a, b=b), f"{a} x {b} = {a * b}.", f"{a} times {b} is {a * b}."


def divide(rng):
    b, c = rng.randint(1, 12), rng.randint(0, 12)
    q = rng.choice(["What is {a} / {b}?", "How much is {a} divided by {b}?", "Divide {a} by {b}.", "{a} / {b}"])
    return q.format(a=b * c, b=b), f"{b * c} / {b} = {c}.", f"{b} times {c} is {b * c}, so the result is {c}."


def word_problem(rng):
    name, thing = rng.choice(w.NAMES), plural(rng.choice(w.THINGS + w.GROUPS["fruits"]))
    a, b = rng.randint(2, 20), rng.randint(1, 15)
    if rng.random() < 0.5:
        other = rng.choice(w.NAMES)
        q = f"{name} has {a} {thing}. {other} gives {name} {b} more. How many {thing} does {name} have now?"
        return q, f"{name} has {a + b} {thing}.", f"{a} + {b} = {a + b}."
    a, b = max(a, b), min(a, b)
    verb = rng.choice(["loses", "gives away", "sells"])
    q = f"{name} has {a} {thing} and {verb} {b}. How many {thing} are left?"
    return q, f"{a - b} {thing} are left.", f"{a} - {b} = {a - b}."


def compare(rng):
    a, b = rng.sample(range(100), 2)
    word, pick = rng.choice([("larger", max), ("bigger", max), ("smaller", min), ("greater", max)])
    q = rng.choice([f"Which is {word}, {a} or {b}?", f"Which number is {word}: {a} or {b}?"])
    c = pick(a, b)
    return q, f"{c} is {word}.", f"I compare {a} and {b}. {max(a, b)} > {min(a, b)}, so {c} is {word}."


def neighbour(rng):
    n = rng.randint(1, 99)
    word, d = rng.choice([("after", 1), ("before", -1)])
    return f"What number comes {word} {n}?", f"{n + d} comes {word} {n}.", f"The number {word} {n} is {n + d}."


def parity(rng):
    n = rng.randint(0, 200)
    word = "even" if n % 2 == 0 else "odd"
    q = rng.choice([f"Is {n} even or odd?", f"Is the number {n} odd or even?"])
    return q, f"{n} is {word}.", f"The last digit of {n} is {n % 10}, so {n} is {word}."


def times(rng):
    n = rng.randint(1, 50)
    if rng.random() < 0.5:
        return f"What is double {n}?", f"Double {n} is {2 * n}.", f"2 times {n} is {2 * n}."
    return f"What is half of {2 * n}?", f"Half of {2 * n} is {n}.", f"{n} + {n} = {2 * n}, so half is {n}."


def count_to(rng):
    a = rng.randint(0, 30)
    b, step = a + rng.randint(3, 10), 1
    if rng.random() < 0.3:
        step = rng.choice([2, 3, 5, 10])
        b = a + step * rng.randint(3, 7)
    q = f"Count from {a} to {b}" + (f" by {step}s." if step > 1 else ".")
    if rng.random() < 0.2 and step == 1:
        return f"Count down from {b} to {a}.", ", ".join(map(str, range(b, a - 1, -1))) + ".", f"I go from {b} down to {a}."
    return q, ", ".join(map(str, range(a, b + 1, step))) + ".", f"I start at {a} and stop at {b}."


def number_list(rng):
    xs = rng.sample(range(100), rng.randint(3, 6))
    text = ", ".join(map(str, xs))
    kind = rng.randrange(4)
    if kind == 0:
        q = rng.choice([f"Sort these numbers: {text}", f"Sort {text}.", f"Put {text} in order."])
        return q, ", ".join(map(str, sorted(xs))), f"The smallest is {min(xs)}, the largest is {max(xs)}."
    if kind == 1:
        return f"What is the largest of {text}?", f"The largest is {max(xs)}.", f"I look for the largest number: {max(xs)}."
    if kind == 2:
        return f"What is the smallest of {text}?", f"The smallest is {min(xs)}.", f"I look for the smallest number: {min(xs)}."
    return f"How many numbers are in this list: {text}?", f"There are {len(xs)} numbers.", f"I count: {len(xs)}."


def capital(rng):
    country = rng.choice(list(w.COUNTRIES))
    city, continent, language = w.COUNTRIES[country]
    kind = rng.randrange(6)
    if kind < 3:
        q = rng.choice(["What is the capital of {}?", "Capital of {}?", "Which city is the capital of {}?",
                        "Tell me the capital of {}.", "What's the capital of {}?", "Name the capital of {}."])
        return q.format(country), f"The capital of {country} is {city}.", f"The capital of {country} is {city}."
    if kind == 3:
        return f"{city} is the capital of which country?", f"{city} is the capital of {country}.", f"{city} belongs to {country}."
    if kind == 4:
        q = rng.choice([f"On which continent is {country}?", f"Where is {country}?"])
        return q, f"{country} is in {continent}.", f"{country} is in {continent}."
    return f"What language do people speak in {country}?", f"People in {country} speak {language}.", f"{country}: {language}."


def animal(rng):
    name = rng.choice(list(w.ANIMALS))
    sound, legs, home, baby, food = w.ANIMALS[name]
    a = article(name)
    kind = rng.randrange(6)
    if kind == 0:
        return f"What sound does {a} make?", f"{cap(a)} {sound}.", f"{cap(a)} {sound}."
    if kind == 1:
        return f"How many legs does {a} have?", f"{cap(a)} has {legs} legs." if legs else f"{cap(a)} has no legs.", f"{cap(name)}: {legs} legs."
    if kind == 2:
        return f"Where does {a} live?", f"{cap(a)} lives in {home}.", f"{cap(name)}: {home}."
    if kind == 3:
        return f"What is a baby {name} called?", f"A baby {name} is called {article(baby)}.", f"The young of {a} is {article(baby)}."
    if kind == 4:
        return f"What does {a} eat?", f"{cap(a)} eats {food}.", f"{cap(name)}: {food}."
    can = name in w.FLY
    return f"Can {a} fly?", f"Yes, {a} can fly." if can else f"No, {a} cannot fly.", f"{cap(a)} has wings and flies." if can else f"{cap(a)} does not fly."


def colour(rng):
    if rng.random() < 0.3:
        (a, b), c = rng.choice(list(w.MIX.items()))
        if rng.random() < 0.5:
            a, b = b, a
        return f"What do you get when you mix {a} and {b}?", f"{cap(a)} and {b} make {c}.", f"{a} + {b} = {c}."
    thing = rng.choice(list(w.COLOUR_OF))
    q = rng.choice(["What colour is {}?", "What color is {}?", "Which colour does {} have?"]).format(thing)
    return q, f"{cap(thing)} is {w.COLOUR_OF[thing]}.", f"{cap(thing)} is {w.COLOUR_OF[thing]}."


def calendar(rng):
    days, months = w.GROUPS["days"], w.GROUPS["months"]
    kind = rng.randrange(6)
    xs = days if kind < 3 else months
    i, d = rng.randrange(len(xs)), rng.choice([1, -1])
    here, there = xs[i], xs[(i + d) % len(xs)]
    word = "after" if d == 1 else "before"
    if kind == 0 and rng.random() < 0.5:
        n = rng.randint(2, 6)
        return f"Today is {here}. What day is it in {n} days?", f"In {n} days it is {days[(i + n) % 7]}.", \
            "I count: " + ", ".join(days[(i + k) % 7] for k in range(1, n + 1)) + "."
    if kind < 2 or kind == 3:
        unit = "day" if kind < 2 else "month"
        return f"Which {unit} comes {word} {here}?", f"{there} comes {word} {here}.", f"{cap(word)} {here}: {there}."
    if kind == 2:
        when, d = rng.choice([("tomorrow", 1), ("yesterday", -1)])
        day = days[(i + d) % 7]
        verb = "is" if d == 1 else "was"
        return f"If today is {here}, what day {verb} {when}?", f"{cap(when)} {verb} {day}.", f"{here} {d:+d} day is {day}."
    if kind == 4:
        return f"How many days are in {here}?", f"{here} has {w.MONTH_DAYS[here]} days.", f"{here}: {w.MONTH_DAYS[here]}."
    return f"In which season is {here}?", f"{here} is in {w.SEASON_OF[here]}.", f"{here} is in {w.SEASON_OF[here]}."


def units(rng):
    many, one, n = rng.choice(w.UNITS)
    verb = "are in" if one not in ("a spider", "a triangle", "a square", "a hexagon", "a bicycle", "a car",
                                   "a violin", "a football team", "a hand", "a rainbow") else None
    q = f"How many {many} {verb} {one}?" if verb else f"How many {many} does {one} have?"
    a = f"There are {n} {many} in {one}." if verb else f"{cap(one)} has {n} {many}."
    return q, a, f"I know this: {n}."


def opposite(rng):
    a, b = rng.choice(w.OPPOSITES)
    if rng.random() < 0.5:
        a, b = b, a
    q = rng.choice(["What is the opposite of {}?", "Opposite of {}?", "Tell me the opposite of {}.", "What is the opposite of '{}'?"])
    return q.format(a), f"The opposite of {a} is {b}.", f"{cap(a)} and {b} are opposites."


def grammar(rng):
    if rng.random() < 0.5:
        word = rng.choice(w.THINGS + [p[0] for p in w.IRREGULAR] + w.GROUPS["fruits"] + w.GROUPS["tools"][:8])
        if word in ("pliers",):
            word = "hammer"
        return f"What is the plural of {word}?", f"The plural of {word} is {plural(word)}.", f"One {word}, two {plural(word)}."
    a, b = rng.choice(w.PAST)
    return f"What is the past tense of {a}?", f"The past tense of {a} is {b}.", f"Today I {a}, yesterday I {b}."


def translate(rng):
    word = rng.choice(list(w.WORDS))
    i = rng.randrange(3)
    language = ("French", "Spanish", "German")[i]
    there = w.WORDS[word][i]
    kind = rng.randrange(3)
    if kind == 0:
        q = rng.choice([f"How do you say '{word}' in {language}?", f"Translate '{word}' to {language}.",
                        f"What is {word} in {language}?"])
        return q, f"'{word}' in {language} is '{there}'.", f"{language} for {word}: {there}."
    if kind == 1:
        return f"What does the {language} word '{there}' mean?", f"'{there}' means '{word}'.", f"{there} is {language} for {word}."
    n = rng.randrange(len(w.NUMBER_WORDS))
    return rng.choice([f"Write {n} as a word.", f"Spell out the number {n}."]), f"{n} is '{w.NUMBER_WORDS[n]}'.", f"{n}: {w.NUMBER_WORDS[n]}."


def any_word(rng):
    return rng.choice([rng.choice(w.NOUNS), rng.choice(w.THINGS), rng.choice(w.ADJECTIVES), rng.choice(list(w.ANIMALS)),
                       rng.choice(w.COLOURS), fake_word(rng)])


def spelling(rng):
    word = any_word(rng)
    dashed = "-".join(word)
    kind = rng.randrange(5)
    if kind == 0:
        return f"Spell the word {word}.", f"{dashed}.", f"The letters are {dashed}."
    if kind == 1:
        return f"How many letters does the word {word} have?", f"The word {word} has {len(word)} letters.", f"{dashed}: {len(word)} letters."
    if kind == 2:
        return f"What is the first letter of {word}?", f"The first letter of {word} is {word[0]}.", f"{dashed}: {word[0]}."
    if kind == 3:
        return f"What is the last letter of {word}?", f"The last letter of {word} is {word[-1]}.", f"{dashed}: {word[-1]}."
    i = rng.randrange(25)
    return f"Which letter comes after {chr(97 + i)}?", f"{chr(98 + i)} comes after {chr(97 + i)}.", f"The next letter is {chr(98 + i)}."


def member(rng):
    group = rng.choice(list(w.GROUP_ONE))
    one = w.GROUP_ONE[group]
    yes = rng.random() < 0.5
    word = rng.choice(w.GROUPS[group] if yes else w.GROUPS[rng.choice([g for g in w.GROUP_ONE if g != group])])
    yes = word in w.GROUPS[group]
    if rng.random() < 0.4 and yes:
        return f"What is {article(word) if word[0].islower() else word}?" , f"{cap(article(word)) if word[0].islower() else word} is {article(one)}.", f"{cap(word)}: {article(one)}."
    subject = article(word) if word[0].islower() and group not in ("colours",) else word
    q = f"Is {subject} {article(one)}?"
    a = f"Yes, {subject} is {article(one)}." if yes else f"No, {subject} is not {article(one)}."
    return q, a, a


def lists(rng):
    group = rng.choice([g for g in w.GROUPS])
    n = min(rng.randint(2, 6), len(w.GROUPS[group]) - 1)
    count = rng.choice([str(n), w.NUMBER_WORDS[n]])
    q = rng.choice(["Name {n} {g}.", "List {n} {g}.", "Give me {n} {g}.", "Can you name {n} {g}?", "Tell me {n} {g}.", "Write a list of {n} {g}."])
    name = "programming languages" if group == "languages" else "days of the week" if group == "days" else group
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
        q, a = q + rng.choice([" Use a bullet list.", " Use bullets."]), "\n".join(f"- {cap(x)}" for x in items)
    else:
        q, a = q + rng.choice([" In one line.", " Separate them with commas."]), ", ".join(items)
    return q, a, f"I need {n} {name}: {', '.join(items)}."


def explain(rng):
    topic = rng.choice(list(w.EXPLAIN))
    q = rng.choice(["What is {}?", "Explain {}.", "Tell me about {}.", "What is {}", "Can you explain {}?", "Describe {}."])
    name = {"gpu": "GPU", "cpu": "CPU", "gguf": "GGUF", "python": "Python", "lua": "Lua", "c": "C", "kv": "KV"}
    shown = " ".join(name.get(x, x) for x in topic.split())
    text = w.EXPLAIN[topic]
    if rng.random() < 0.15:
        q = q.rstrip("?. ") + rng.choice([" in one sentence.", " briefly."])
        text = text.split(". ")[0].rstrip(".") + "."
    return q.format(shown), text, f"The user asks about {shown}. I explain it in simple words."


def tips(rng):
    topic = rng.choice(list(w.TIPS))
    n = rng.randint(2, 5)
    q = rng.choice(["Give me {n} tips for {t}.", "Give me {n} tips for {t}", "What are {n} tips for {t}?", "Tell me {n} tips for {t}.",
                    "Name {n} tips for {t}."])
    items = rng.sample(w.TIPS[topic], n)
    a = "\n".join(f"{i}. {x}" for i, x in enumerate(items, 1))
    return q.format(n=rng.choice([str(n), w.NUMBER_WORDS[n]]), t=topic), a, f"{n} tips for {topic}."


def code(rng):
    task = rng.choice(list(w.CODE))
    i = rng.randrange(3)
    language = ("Python", "C", "Lua")[i]
    verb = {"multiplies": "multiply", "tells": "is_even"}.get(task.split()[0], task.split()[0].rstrip("s"))
    name = rng.choice([verb, rng.choice(["f", "run", "calc", "work", "func"]),
                       rng.choice(w.NOUNS) + "_" + rng.choice(w.NOUNS), fake_word(rng)])
    named = rng.random() < 0.5
    if not named:
        name = {"adds": "add", "multiplies": "multiply", "subtracts": "subtract", "squares": "square", "doubles": "double_it",
                "tells": "is_even", "computes": "factorial", "sums": "sum_list", "prints": "hello",
                "returns": task.split()[2] if task.split()[2] in ("larger", "smaller") else "absolute"}[task.split()[0]]
    body = w.CODE[task][i].replace("F(", name + "(").replace("A", "a").replace("B", "b")
    q = rng.choice(["Write a {l} function that {t}", "Give me a {l} function that {t}", "Show me a {l} function that {t}",
                    "Can you write a function in {l} that {t}"]).format(l=language, t=task)
    q += rng.choice([f". Call it {name}.", f". The name is {name}."]) if named else "."
    return q, f"```{language.lower()}\n{body}\n```", f"A {language} function that {task}. I call it {name}."


def evaluate(rng):
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    op, c = rng.choice([("+", a + b), ("*", (a % 10) * (b % 10))])
    if op == "*":
        a, b = a % 10, b % 10
    q = rng.choice(["What does print({} {} {}) print in Python?", "What is the output of print({} {} {})?"])
    return q.format(a, op, b), f"It prints {c}.", f"{a} {op} {b} = {c}."


def unknown(rng):
    word, name = fake_word(rng, 2, 4), cap(fake_word(rng)) + " " + cap(fake_word(rng))
    q, a = rng.choice([
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
        (f"What is the weather in {rng.choice(w.CITIES)}?", "I do not know the current weather."),
        (f"Is it raining in {rng.choice(w.CITIES)}?", "I do not know the current weather."),
        ("What is my name?", "I do not know your name. You have not told me."),
        ("How old am I?", "I do not know. You have not told me."),
        ("What is my favourite colour?", "I do not know. You have not told me."),
        ("Where do I live?", "I do not know. You have not told me."),
    ])
    return q, a, "I do not know this, so I say so."


def repeat(rng):
    words = [any_word(rng) for _ in range(rng.randint(1, 6))]
    text = " ".join(words)
    kind = rng.randrange(7)
    if kind < 2:
        text = rng.choice([text, cap(text) + ".", str(rng.randint(0, 99999)), text + " " + str(rng.randint(0, 999)), random_id(rng)])
        q = rng.choice(["Repeat after me: {}", "Say: {}", "Repeat: {}", "Write this: {}", "Echo {}", "Please repeat this text: {}"])
        return q.format(text), text, "I repeat the text."
    if kind == 2:
        return f"Write '{text}' in capital letters.", text.upper(), "I write it with capital letters."
    if kind == 3:
        return f"Reverse the order of these words: {text}", " ".join(reversed(words)), "I start with the last word."
    if kind == 4:
        return f"How many words are in '{text}'?", f"There are {len(words)} words." if len(words) > 1 else "There is 1 word.", \
            ", ".join(f"{i} {x}" for i, x in enumerate(words, 1)) + "."
    if kind == 5:
        i = rng.randrange(len(words))
        nth = ("first", "second", "third", "fourth", "fifth", "sixth")[i]
        return f"What is the {nth} word of '{text}'?", f"The {nth} word is '{words[i]}'.", \
            ", ".join(f"{i} {x}" for i, x in enumerate(words[:i + 1], 1)) + "."
    word = rng.choice(words)
    return f"Put {', '.join(words)} in alphabetical order.", ", ".join(sorted(words)), f"I sort by the first letter."


def random_id(rng):
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghkmnpqrstuvwxyz0123456789"
    return "".join(rng.choice(letters) for _ in range(rng.randint(3, 10)))


def as_json(rng):
    name, age, city = rng.choice(w.NAMES), rng.randint(1, 90), rng.choice(w.CITIES)
    q = rng.choice([f"Give me JSON with name {name}, age {age} and city {city}.",
                    f"Write a JSON object with the name {name}, the age {age} and the city {city}."])
    return q, f'{{"name": "{name}", "age": {age}, "city": "{city}"}}', "A JSON object with three keys."


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
    opening = rng.choice(["Once upon a time there was {}.", "There once was {}.", "Long ago there lived {}."]).format(who)
    middle = rng.choice([
        f"One day {name} lost a {colour_} {thing} in the {place}. {name} looked everywhere but could not find it.",
        f"One morning {name} walked to the {place} and found a {colour_} {thing}. Nobody knew whose {thing} it was.",
        f"{name} wanted to see the {place}, but the way was long and dark. So {name} took a {colour_} {thing} along.",
        f"Every day {name} went to the {place} to play with a {colour_} {thing}. But one day the {thing} was gone.",
    ])
    turn = rng.choice([
        f"Then {name} met {article(helper)} named {other}. \"Can I help you?\" asked {other}.",
        f"On the way {name} met {other} the {helper}. \"Do not worry,\" said {other}.",
        f"{cap(article(helper))} named {other} came by. \"I saw that {thing},\" said {other}.",
    ])
    ending = rng.choice([
        f"Together they found the {thing} under a tree. {name} was very happy, and they became friends.",
        f"They shared the {thing} and went home before the night. From that day on they were friends.",
        f"They laughed and played in the {place} until the evening. The end.",
        f"{name} said thank you and gave {other} the {colour_} {thing}. They stayed friends for ever.",
    ])
    text = " ".join([opening, middle, turn, ending])
    if ask < 0.35:
        q = rng.choice(["Tell me a story about {}.", "Write a short story about {}.", "Can you tell me a story about {}?"]).format(article(kind))
    elif ask < 0.7:
        q = rng.choice(["Tell me a story about {} named {}.", "Write a short story about {} called {}."]).format(article(kind), name)
    else:
        q = rng.choice(["Tell me a story.", "Tell me a short story.", "Write a story.", "Once upon a time", "I want to hear a story."])
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
    values = [rng.choice([str(rng.randint(10, 9999)), random_id(rng), fake_word(rng)]) for _ in keys]
    i = rng.randrange(len(keys))
    style = rng.choice(["{k}: {v}", "The code of {k} is {v}.", "{k} = {v}"])
    text = "\n".join(style.format(k=k, v=v) for k, v in zip(keys, values))
    q = rng.choice(["What is the value of {}?", "What is the code of {}?", "Which value belongs to {}?"]).format(keys[i])
    return text + "\n" + q, f"It is {values[i]}.", f"{keys[i]} has {values[i]}."


FAMILIES = [
    (3, smalltalk), (5, about), (7, add), (4, subtract), (4, multiply), (2, divide), (3, word_problem), (2, compare),
    (1, neighbour), (1, parity), (1, times), (2, count_to), (2, number_list), (7, capital), (6, animal), (3, colour),
    (5, calendar), (4, units), (4, opposite), (3, grammar), (3, translate), (3, spelling), (3, member), (6, lists),
    (8, explain), (4, tips), (5, code), (1, evaluate), (6, unknown), (6, repeat), (1, as_json), (6, story), (6, reading),
    (3, secret),
]
