"""qa_numbers.py -- questions with numbers: sums, lists, dates, units. See qa.py."""

import world as w
from words import cap, plural


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
    return rng.choice(
        [rng.randint(0, 9), rng.randint(0, 20), rng.randint(0, 99), rng.randint(0, 99)]
    )


def add(rng):
    a, b = number(rng), number(rng)
    if rng.random() < 0.15:
        a, b = rng.randint(100, 999), rng.randint(10, 999)
    q = rng.choice(
        [
            "What is {a} + {b}?",
            "{a} + {b} = ?",
            "{a} + {b}",
            "How much is {a} plus {b}?",
            "What is {a} plus {b}?",
            "Add {a} and {b}.",
            "Compute {a} + {b}.",
            "{a}+{b}",
            "What is the sum of {a} and {b}?",
        ]
    ).format(a=a, b=b)
    answer = rng.choice(
        ["{a} + {b} = {c}.", "{a} + {b} = {c}", "It is {c}."]
        if rng.random() < 0.1
        else ["{a} + {b} = {c}."]
    ).format(a=a, b=b, c=a + b)
    return q, answer, column_sum(a, b) if a + b > 9 else f"{a} + {b} = {a + b}."


def subtract(rng):
    a, b = sorted((number(rng), number(rng)), reverse=True)
    q = rng.choice(
        [
            "What is {a} - {b}?",
            "{a} - {b} = ?",
            "{a} - {b}",
            "How much is {a} minus {b}?",
            "What is {a} minus {b}?",
            "Subtract {b} from {a}.",
            "Compute {a} - {b}.",
        ]
    )
    thought = f"{a} - {b}: {b} + {a - b} = {a}, so the result is {a - b}."
    return q.format(a=a, b=b), f"{a} - {b} = {a - b}.", thought


def multiply(rng):
    a, b = rng.randint(0, 12), rng.randint(0, 12)
    q = rng.choice(
        [
            "What is {a} x {b}?",
            "What is {a} * {b}?",
            "{a} * {b}",
            "How much is {a} times {b}?",
            "What is {a} times {b}?",
            "Multiply {a} by {b}.",
            "Compute {a} * {b}.",
        ]
    )
    return q.format(a=a, b=b), f"{a} x {b} = {a * b}.", f"{a} times {b} is {a * b}."


def divide(rng):
    b, c = rng.randint(1, 12), rng.randint(0, 12)
    q = rng.choice(
        ["What is {a} / {b}?", "How much is {a} divided by {b}?", "Divide {a} by {b}.", "{a} / {b}"]
    )
    return (
        q.format(a=b * c, b=b),
        f"{b * c} / {b} = {c}.",
        f"{b} times {c} is {b * c}, so the result is {c}.",
    )


def word_problem(rng):
    name, thing = rng.choice(w.NAMES), plural(rng.choice(w.THINGS + w.GROUPS["fruits"]))
    a, b = rng.randint(2, 20), rng.randint(1, 15)
    if rng.random() < 0.5:
        other = rng.choice(w.NAMES)
        q = (
            f"{name} has {a} {thing}. {other} gives {name} {b} more. How many {thing} does {name}"
            " have now?"
        )
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
    return (
        q,
        f"{c} is {word}.",
        f"I compare {a} and {b}. {max(a, b)} > {min(a, b)}, so {c} is {word}.",
    )


def neighbour(rng):
    n = rng.randint(1, 99)
    word, d = rng.choice([("after", 1), ("before", -1)])
    return (
        f"What number comes {word} {n}?",
        f"{n + d} comes {word} {n}.",
        f"The number {word} {n} is {n + d}.",
    )


def parity(rng):
    n = rng.randint(0, 200)
    word = "even" if n % 2 == 0 else "odd"
    q = rng.choice([f"Is {n} even or odd?", f"Is the number {n} odd or even?"])
    return q, f"{n} is {word}.", f"The last digit of {n} is {n % 10}, so {n} is {word}."


def times(rng):
    n = rng.randint(1, 50)
    if rng.random() < 0.5:
        return f"What is double {n}?", f"Double {n} is {2 * n}.", f"2 times {n} is {2 * n}."
    return (
        f"What is half of {2 * n}?",
        f"Half of {2 * n} is {n}.",
        f"{n} + {n} = {2 * n}, so half is {n}.",
    )


def count_to(rng):
    a = rng.randint(0, 30)
    b, step = a + rng.randint(3, 10), 1
    if rng.random() < 0.3:
        step = rng.choice([2, 3, 5, 10])
        b = a + step * rng.randint(3, 7)
    q = f"Count from {a} to {b}" + (f" by {step}s." if step > 1 else ".")
    if rng.random() < 0.2 and step == 1:
        return (
            f"Count down from {b} to {a}.",
            ", ".join(map(str, range(b, a - 1, -1))) + ".",
            f"I go from {b} down to {a}.",
        )
    return q, ", ".join(map(str, range(a, b + 1, step))) + ".", f"I start at {a} and stop at {b}."


def number_list(rng):
    xs = rng.sample(range(100), rng.randint(3, 6))
    text = ", ".join(map(str, xs))
    kind = rng.randrange(4)
    if kind == 0:
        q = rng.choice([f"Sort these numbers: {text}", f"Sort {text}.", f"Put {text} in order."])
        return (
            q,
            ", ".join(map(str, sorted(xs))),
            f"The smallest is {min(xs)}, the largest is {max(xs)}.",
        )
    if kind == 1:
        return (
            f"What is the largest of {text}?",
            f"The largest is {max(xs)}.",
            f"I look for the largest number: {max(xs)}.",
        )
    if kind == 2:
        return (
            f"What is the smallest of {text}?",
            f"The smallest is {min(xs)}.",
            f"I look for the smallest number: {min(xs)}.",
        )
    return (
        f"How many numbers are in this list: {text}?",
        f"There are {len(xs)} numbers.",
        f"I count: {len(xs)}.",
    )


def calendar(rng):
    days, months = w.GROUPS["days"], w.GROUPS["months"]
    kind = rng.randrange(6)
    xs = days if kind < 3 else months
    i, d = rng.randrange(len(xs)), rng.choice([1, -1])
    here, there = xs[i], xs[(i + d) % len(xs)]
    word = "after" if d == 1 else "before"
    if kind == 0 and rng.random() < 0.5:
        n = rng.randint(2, 6)
        return (
            f"Today is {here}. What day is it in {n} days?",
            f"In {n} days it is {days[(i + n) % 7]}.",
            "I count: " + ", ".join(days[(i + k) % 7] for k in range(1, n + 1)) + ".",
        )
    if kind < 2 or kind == 3:
        unit = "day" if kind < 2 else "month"
        return (
            f"Which {unit} comes {word} {here}?",
            f"{there} comes {word} {here}.",
            f"{cap(word)} {here}: {there}.",
        )
    if kind == 2:
        when, d = rng.choice([("tomorrow", 1), ("yesterday", -1)])
        day = days[(i + d) % 7]
        verb = "is" if d == 1 else "was"
        return (
            f"If today is {here}, what day {verb} {when}?",
            f"{cap(when)} {verb} {day}.",
            f"{here} {d:+d} day is {day}.",
        )
    if kind == 4:
        return (
            f"How many days are in {here}?",
            f"{here} has {w.MONTH_DAYS[here]} days.",
            f"{here}: {w.MONTH_DAYS[here]}.",
        )
    return (
        f"In which season is {here}?",
        f"{here} is in {w.SEASON_OF[here]}.",
        f"{here} is in {w.SEASON_OF[here]}.",
    )


def units(rng):
    many, one, n = rng.choice(w.UNITS)
    verb = (
        "are in"
        if one not in (
            "a spider",
            "a triangle",
            "a square",
            "a hexagon",
            "a bicycle",
            "a car",
            "a violin",
            "a football team",
            "a hand",
            "a rainbow",
        )
        else None
    )
    q = f"How many {many} {verb} {one}?" if verb else f"How many {many} does {one} have?"
    a = f"There are {n} {many} in {one}." if verb else f"{cap(one)} has {n} {many}."
    return q, a, f"I know this: {n}."


def evaluate(rng):
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    op, c = rng.choice([("+", a + b), ("*", (a % 10) * (b % 10))])
    if op == "*":
        a, b = a % 10, b % 10
    q = rng.choice(
        ["What does print({} {} {}) print in Python?", "What is the output of print({} {} {})?"]
    )
    return q.format(a, op, b), f"It prints {c}.", f"{a} {op} {b} = {c}."
