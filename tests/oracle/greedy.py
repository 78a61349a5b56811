"""Greedy answers of SmolLM2 to ten prompts: the recorded texts, whatever the chunk, the CPU row,
and with or without sanitizers.

    greedy.py [--all] [--record]

Texts are in greedy.json, recorded from an emitted program and read by a person. All programs
compute the same bits, so texts must be equal to the byte. The quick set checks all prompts at chunk
512, three of them at chunks 1, 7 and 64; --all adds the others, a sanitized program and every CPU
row that this machine can run.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

import program
import tap

EXPECTED = pathlib.Path(__file__).resolve().parent / "greedy.json"
TOKENS = 48
CHUNKS = (1, 7, 64, 512)
QUICK_PROMPTS = 3
ROW_PROMPTS, ROW_TOKENS = 3, 32
EMULATED_PROMPTS = 1  # under qemu a prompt takes minutes
WRONG_BOX = 4  # exit status of a program on a machine that it was not made for


def answer(cli, prompt, n_tokens=TOKENS, chunk=None, runner=()):
    extra = ["--chunk", chunk] if chunk else []
    text = program.run([*runner, cli, "run", "-p", prompt, "--greedy", "-n", n_tokens, *extra])
    return text.decode()


def load():
    return json.loads(EXPECTED.read_text())


def record(cli):
    known = load()
    for entry in known["prompts"]:
        entry["text"] = answer(cli, entry["prompt"])
        print(f"--- {entry['prompt'][:70]}\n{entry['text']}")
    EXPECTED.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n")


def check_chunks(t, cli, prompts, everything):
    for number, entry in enumerate(prompts):
        for chunk in reversed(CHUNKS):
            if chunk != 512 and number >= QUICK_PROMPTS and not everything:
                continue
            got = answer(cli, entry["prompt"], chunk=chunk)
            t.check(f"greedy text of prompt {number}, chunk {chunk}", got == entry["text"],
                    f"got      {got!r}\nexpected {entry['text']!r}")


def check_shorter(t, name, cli, prompts, runner=()):
    """The first prompts with fewer tokens, against what the program of this machine says."""
    native = program.build(program.SMOLLM2)
    for number, entry in enumerate(prompts[:EMULATED_PROMPTS if runner else ROW_PROMPTS]):
        want = answer(native, entry["prompt"], ROW_TOKENS)
        got = answer(cli, entry["prompt"], ROW_TOKENS, runner=runner)
        t.check(f"greedy text of prompt {number}, {name}", got == want,
                f"got      {got!r}\nexpected {want!r}")


def sanitized(cli):
    """A copy of the program's folder, compiled with the sanitizers; its command line."""
    folder = cli.parent.with_name(cli.parent.name + "-san")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cli.parent, folder, ignore=shutil.ignore_patterns("obj", cli.name, ".ninja*"))
    script = folder / "build.ninja"
    flags = " -fsanitize=address,undefined -fno-sanitize-recover=all\n"
    lines = [line.rstrip("\n") + flags if line.startswith("cc = ") else line
             for line in script.read_text().splitlines(keepends=True)]
    script.write_text("".join(lines))
    program.run(["ninja", "-C", folder, "--quiet", cli.name])
    return folder / cli.name


def cpu_rows():
    rows = json.loads(program.run([program.LAGEN, "targets", "--json"]))
    return [r["name"] for r in rows if r["name"].startswith(("x86-64", "aarch64"))]


def check_rows(t, prompts):
    for row in cpu_rows():
        name = f"row {row}"
        runner = ("qemu-aarch64",) if row[0] == "a" else ()
        try:
            cli = program.build(program.SMOLLM2, arch=row)
            done = subprocess.run([*runner, cli, "info"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE)
        except (program.Failed, OSError) as why:
            t.check(f"greedy text, {name}", False, why)
            continue
        if done.returncode == WRONG_BOX:
            t.skip(f"greedy text, {name}", "this machine cannot run it")
            continue
        check_shorter(t, name, cli, prompts, runner)


def main(argv):
    ap = argparse.ArgumentParser(description="greedy texts of SmolLM2")
    ap.add_argument("--all", action="store_true")
    ap.add_argument("--record", action="store_true", help="write the texts to greedy.json")
    a = ap.parse_args(argv)
    t = tap.Tap()
    for needed in (program.LAGEN, program.SMOLLM2):
        if not needed.exists():
            t.skip("greedy texts of SmolLM2", f"{needed.relative_to(program.ROOT)} is not there")
            return t.done()
    try:
        cli = program.build(program.SMOLLM2)
        if a.record:
            record(cli)
            return 0
        prompts = load()["prompts"]
        check_chunks(t, cli, prompts, a.all)
        if a.all:
            check_shorter(t, "sanitized", sanitized(cli), prompts)
            check_rows(t, prompts)
    except program.Failed as why:
        t.check("greedy texts of SmolLM2", False, why)
    return t.done()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
