"""docs/cases.md against the tests: every test that it names exists under that name and that id; and of each class that has a
heading there, every test whose name begins with an id stands in it and no id is missing (by ../shared/cases.md, where that is
there). A name that a test makes of parts stands there up to its first part that varies."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

TABLE = ROOT / "docs" / "cases.md"
SHARED = ROOT.parent / "shared" / "cases.md"
IDS = re.compile(r"^((?:[A-HX]\d\d )+)\S")
# How a test gets its name: a macro of named.h, or a quoted text at the head of a call or a row.
REGISTERED = {
    ".c": re.compile(r'named_test(?:_fixture)?\(\s*"((?:[A-HX]\d\d )+[^"]+)"'),
    ".py": re.compile(r'''"((?:[A-HX]\d\d )+[^"{]+)|'((?:[A-HX]\d\d )+[^'{]+)'''),
    ".sh": re.compile(r'''"((?:[A-HX]\d\d )+[^"$]+)|'((?:[A-HX]\d\d )+[^'$]+)'''),
}


def rows(text):
    """(id, file, name of the test) of every row, and the classes that have a heading."""
    found, classes, problems = [], [], []
    for line in text.splitlines():
        heading = re.match(r"## ([A-HX])\. ", line)
        if heading:
            classes.append(heading.group(1))
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if not line.startswith("|") or len(cells) != 3 or not re.fullmatch(r"[A-HX]\d\d", cells[0]):
            if line.startswith("|") and not re.match(r"\|(---| id )", line):
                problems.append(f"no row of three cells that begins with an id: {line}")
            continue
        file, _, name = cells[2].partition(": ")
        found.append((cells[0], file, name))
    return found, classes, problems


def registered():
    """Names of all tests that begin with an id, by file."""
    names = {}
    for path in sorted((ROOT / "tests").rglob("*")):
        pattern = REGISTERED.get(path.suffix)
        if pattern and path != pathlib.Path(__file__).resolve() and path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            found = set("".join(m.groups(default="")).strip() for m in pattern.finditer(text))
            if found:
                names[str(path.relative_to(ROOT))] = found
    return names


def main():
    t = tap.Tap()
    table, classes, problems = rows(TABLE.read_text(encoding="utf-8"))
    names = registered()
    t.check("rows of docs/cases.md", table and not problems, "\n".join(problems))
    wrong = []
    for case, file, name in table:
        ids = IDS.match(name)
        if not ids or case not in ids.group(1).split():
            wrong.append(f"{case}: the name '{name}' does not begin with the id")
        elif name not in names.get(file, ()):
            wrong.append(f"{case}: {file} has no test '{name}'")
        elif case[0] not in classes:
            wrong.append(f"{case}: class {case[0]} has no heading")
    t.check(f"{len(table)} tests that docs/cases.md names exist", not wrong, "\n".join(wrong))
    listed = set((case, file, name) for case, file, name in table)
    missing = [f"{case} | {file}: {name}" for file, found in names.items() for name in sorted(found)
               for case in IDS.match(name).group(1).split() if case[0] in classes and (case, file, name) not in listed]
    t.check("every test of a case stands in docs/cases.md", not missing, "\n".join(missing))
    if not SHARED.exists():
        t.skip("all ids of the classes covered", "../shared/cases.md is not there")
        return t.done()
    ids = re.findall(r"^([A-HX]\d\d) \|", SHARED.read_text(encoding="utf-8"), re.M)
    covered = set(case for case, _, _ in table)
    absent = [i for i in ids if i[0] in classes and i not in covered]
    unknown = sorted(covered - set(ids))
    t.check(f"all {sum(i[0] in classes for i in ids)} ids of classes {' '.join(classes)} are covered",
            not absent and not unknown, f"absent: {absent}\nunknown: {unknown}")
    return t.done()


sys.exit(main())
