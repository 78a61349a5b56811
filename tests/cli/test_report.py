"""`lagen report`: one page that is well formed, asks nothing of the outside, shows what hostile files say as text, is the same twice,
and whose drawings are the plan's numbers. Takes build/lagen as argument."""
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import forge  # noqa: E402
import tap  # noqa: E402

LAGEN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "lagen").resolve()
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
UNITS = 1000000


def lagen(*arguments, status=0):
    p = subprocess.run([LAGEN, *map(str, arguments)], capture_output=True)
    assert p.returncode == status, f"{arguments}: {p.returncode} {p.stderr.decode()}"
    return (p.stdout if status == 0 else p.stderr).decode()


def program(recipe, arch, *options):
    out = FOLDER / f"{recipe}-{arch}"
    if not out.exists():
        model = FOLDER / f"{recipe}.gguf"
        lagen("synth", f"synth/{recipe}", "--header-only", "-o", model)
        lagen("emit", "-m", model, "--arch", arch, "--weights", "link", "-o", out, *options)
    return out


def page(out, *options):
    """The page's text and, parsed as XML, its elements; anything but one well-formed document is an error here."""
    text = lagen("report", out, *options)
    assert text.startswith("<!DOCTYPE html>\n<html") and text.endswith("</html>\n")
    return text, xml.fromstring(text.replace("<!DOCTYPE html>\n", ""))


def classes(root, tag, name):
    return [e for e in root.iter(tag) if name in e.get("class", "").split()]


PROGRAMS = (("laguna-w8", "sm_120a"), ("laguna-s", "sm_121a"), ("llama-tiny", "x86-64-v3"), ("llama-tiny", "sm_100a"))


def pages_stand_alone_and_are_equal_twice():
    for recipe, arch in PROGRAMS:
        out = program(recipe, arch)
        text, root = page(out)
        assert text == lagen("report", out)
        lagen("report", out, "-o", FOLDER / "page.html")
        assert (FOLDER / "page.html").read_text() == text
        tags = {e.tag for e in root.iter()}
        assert not tags & {"script", "link", "img", "iframe", "object", "embed", "a", "form", "base"}, tags
        assert not re.search(r"https?:|url\(|@import|src=|href=|\bon[a-z]+=", text), recipe
        assert "prefers-color-scheme: dark" in text and 'charset="utf-8"' in text
        assert str(FOLDER) not in text and not re.search(r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}\b", text)
        for e in root.iter("rect"):
            assert all(re.fullmatch(r"-?\d+(\.\d+)?", e.get(k)) for k in ("x", "y", "width", "height")), e.attrib


def a_terminal_gets_no_page():
    """HTML on a terminal helps nobody: refused with what would do; a pipe, a file and -o are taken, a terminal's stderr or not."""
    out = program("llama-tiny", "x86-64-v3")
    ours, theirs = pty.openpty()
    p = subprocess.run([LAGEN, "report", out], stdout=theirs, stderr=subprocess.PIPE, text=True)
    assert p.returncode == 2 and p.stderr == "lagen: the page is HTML, and standard output is a terminal; -o FILE or > FILE takes it\n", p
    p = subprocess.run([LAGEN, "report", out, "-o", FOLDER / "page.html"], stdout=theirs, stderr=theirs)
    assert p.returncode == 0 and (FOLDER / "page.html").read_text() == lagen("report", out)
    p = subprocess.run([LAGEN, "report", out], stdout=subprocess.PIPE, stderr=theirs, text=True)
    assert p.returncode == 0 and p.stdout == (FOLDER / "page.html").read_text()
    os.set_blocking(ours, False)
    try:
        said = os.read(ours, 100)
    except BlockingIOError:
        said = b""
    os.close(ours)
    os.close(theirs)
    assert said == b"", said


def what_is_drawn_is_the_plan():
    for recipe, arch in PROGRAMS:
        out = program(recipe, arch)
        text, root = page(out)
        memory = json.loads((out / "memory.json").read_text())
        launches = json.loads((out / "launches.json").read_text())
        bar = classes(root, "svg", "bar")[0]
        widths = {r.find("title").text: int(r.get("width")) for r in bar.iter("rect")}
        used, have = pools_of(out, arch)
        assert abs(sum(widths.values()) - used * UNITS // have) <= 1, widths
        kv = sum(w for n, w in widths.items() if n.startswith("keys and values"))
        assert abs(kv - memory["arenas"]["kv"] * UNITS // have) <= 3
        shown = [r for r in classes(root, "svg", "tall")[1].iter("rect")]
        scratch = [v for v in memory["values"] if v["arena"] == "scratch" and v["bytes"] > 0]
        assert len(shown) == len(scratch)
        total = memory["arenas"]["scratch"]
        for r, v in zip(shown, scratch):
            assert int(r.get("x")) == v["first"] and int(r.get("width")) == v["last"] - v["first"] + 1
            assert int(r.get("y")) == v["offset"] * UNITS // total, v
        kernels = [e.text for e in classes(root, "span", "mono")]
        assert kernels == [k["name"] for k in launches["kernels"]]
        facts = sum(len(x["facts"]) for x in launches["launches"]) + len(launches["facts"])
        assert f"<b>{facts:,}</b>".replace(",", "\u202f") in text.replace("&#8239;", "\u202f")
        cells = [len(list(s.iter("rect"))) for s in classes(root, "svg", "cells")]
        assert sum(cells) == len(memory["weights"])


def pools_of(out, arch):
    """What plan says of the pool that holds the arenas, and how large the first board of that kind is."""
    limits = json.loads((out / "manifest.json").read_text())["limits"]
    model = out.parent / f"{out.name[:-len(arch) - 1]}.gguf"
    options = [x for k in ("ctx", "slots", "chunk") for x in (f"--{k}", limits[k])]
    pools = json.loads(lagen("plan", "-m", model, "--arch", arch, "--json", *options))["pools"]
    used = pools.get("vram", pools["ram"])
    rows = {r["name"]: r for r in json.loads(lagen("targets", "--json"))}
    cc = lambda r: (r.get("compute_major"), r.get("compute_minor"))  # noqa: E731
    boards = [r for r in rows.values() if r["kind"] == "device" and cc(rows[r["row"]]) == cc(rows[arch])]
    return used, max(used, boards[0]["memory_bytes"] if boards else 0)


def steps_are_whole():
    """Each launch that takes place stands in the strip; strips are full; times only where a board is known."""
    for recipe, arch in PROGRAMS:
        out = program(recipe, arch)
        text, root = page(out)
        launches = json.loads((out / "launches.json").read_text())["launches"]
        t_max = json.loads((out / "launches.json").read_text())["limits"]["t_max"]
        strips = [s for s in classes(root, "svg", "strip") if "wide" not in s.get("class")]
        assert len(strips) == 2
        for strip, few in zip(strips, (True, t_max <= 8)):
            rects = list(strip.iter("rect"))
            here = [l for l in launches if l.get("when", "any") in ("any", "few" if few else "many")]
            assert [r.find("title").text.split(" · ")[0] for r in rects] == [l["name"] for l in here]
            end = 0
            for r in rects:
                assert int(r.get("x")) == end
                end += int(r.get("width"))
            assert end == UNITS
        assert ("at least" in text) == (arch in ("sm_120a", "sm_121a")), arch


def a_board_by_name():
    out = program("laguna-w8", "sm_120a")
    assert "the board rtx5060ti-16" in page(out)[0] and "the board rtx5090" in page(out, "--device", "rtx5090")[0]
    text = lagen("report", out, "--device", "gb10", status=1)
    assert "--device: gb10 is no board for a program of sm_120a" in text
    assert "--device: no device 'nosuch'; there are " in lagen("report", out, "--device", "nosuch", status=2)


HOSTILE = ["<script>alert(1)</script>", "\"' onload=x &amp; <b", "]]> --> </title></svg>", "caf\u00e9 \u202egnp.exe \u2066", "${x} %d"]


def hostile_names_are_text():
    """Whatever stands where names stand: nothing of it becomes markup."""
    out = program("llama-tiny", "sm_89")
    files = {n: (out / n).read_text() for n in ("launches.json", "memory.json", "manifest.json")}
    bare = page(out)[1]
    for evil in HOSTILE:
        quoted = json.dumps(evil, ensure_ascii=False)[1:-1]
        for old in ("output_norm.weight", "blk.1.ffn_up.weight", "embed (token_embd.weight)"):
            for name in ("memory.json", "launches.json"):  # facts of the plan name tensors too
                text = (out / name).read_text()
                assert f'"{old}"' in text or name[0] == "m", old
                (out / name).write_text(text.replace(f'"{old}"', f'"{quoted} {old[-8:]}"'))
        manifest = files["manifest.json"].replace('"compiler": "', f'"compiler": "{quoted}')
        forge.seal(out, text=manifest)
        text, root = page(out)
        assert {e.tag for e in root.iter()} == {e.tag for e in bare.iter()}, evil
        assert "<script" not in text and "\u202e" not in text and "\u2066" not in text, evil
        shown = " ".join(root.itertext())
        want = evil.replace("\u202e", r"\xe2\x80\xae").replace("\u2066", r"\xe2\x81\xa6")
        assert shown.count(want) >= 3, (evil, shown.count(want))
        for n, t in files.items():
            (out / n).write_text(t)


def what_is_no_program_is_refused():
    out = program("llama-tiny", "sm_89")
    assert "No such file" in lagen("report", FOLDER / "nosuch", status=1)
    assert "not a folder" in lagen("report", FOLDER / "llama-tiny.gguf", status=1)
    (FOLDER / "empty").mkdir()
    assert "no program that lagen made" in lagen("report", FOLDER / "empty", status=1)
    text = (out / "launches.json").read_text()
    (out / "launches.json").write_text(text.replace('"block": 128', '"block": 96'))
    lagen("report", out, "-o", FOLDER / "none.html", status=3)
    assert not (FOLDER / "none.html").exists()
    (out / "launches.json").write_text(text)
    assert "/nosuch/x.html" in lagen("report", out, "-o", "/nosuch/x.html", status=1)


TESTS = (pages_stand_alone_and_are_equal_twice, a_terminal_gets_no_page, what_is_drawn_is_the_plan, steps_are_whole, a_board_by_name, hostile_names_are_text,
         what_is_no_program_is_refused)


if __name__ == "__main__":
    tap.main(TESTS)
