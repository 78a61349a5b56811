"""Windows and rings in whole programs: any chunk, any neighbours, any history give the same bits, and those of a program
whose rings hold the whole context. The model sees a window of 8 in two of three layers."""
import functools
import json
import subprocess

import numpy as np

import kl
import oracle
import program
import tap

RECIPE = "laguna-dense"
CHUNKS = (1, 7, 8, 9, 16, 17)
TOKENS = 560  # twice around a ring of 256, and more


@functools.cache
def model():
    return program.synth(RECIPE, None, 4, f"{RECIPE}-windows")


def build(name, *options):
    """The program's command line."""
    out = program.WORK / f"windows-{name}"
    return program.build_in(out, "--model", model(), *options)


@functools.cache
def small():
    return build("small", "--ctx", 1024, "--chunk", 17, "--slots", 4)


@functools.cache
def driver(cli):
    """sequences.c with the objects of the program."""
    folder = cli.parent
    out = folder / "sequences"
    objects = [p for p in sorted((folder / "obj").rglob("*.o"))
               if "main_cli" not in p.name and "server" not in str(p.relative_to(folder))]
    source = program.ROOT / "tests" / "oracle" / "sequences.c"
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{folder}/runtime", f"-I{program.ROOT}/runtime"]
    libs = ["-lcrypto", "-ledit", "-ljansson", "-lpthread", "-ldl", "-lm"]
    program.run(["cc", *flags, source, *objects, "-o", out, *libs])
    return out


def play(lines):
    """What a script prints: [(slot, tokens, kept, digest)]."""
    cli = small()
    done = subprocess.run([driver(cli), cli.parent], input="\n".join(lines) + "\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [tuple(line.split()) for line in done.stdout.splitlines()]


def tokens_of(n=TOKENS):
    return kl.random_tokens(2, n, oracle.Oracle(model()).n_vocab)


def ring_of(cli):
    return json.loads((cli.parent / "manifest.json").read_text())["limits"]["ring"]


@tap.named("G06 chunks longer than the window")
def chunks_longer_than_the_window():
    """Chunks shorter and longer than the window, rings that wrap: the bits of one token at a time."""
    cli, tokens = small(), tokens_of()
    assert ring_of(cli) == 256
    want = program.logits(cli, tokens, chunk=1)
    for chunk in CHUNKS[1:]:
        assert np.array_equal(program.logits(cli, tokens, chunk=chunk), want), f"chunk {chunk}"
    whole = build("whole", "--ctx", 1024, "--chunk", 1024)
    assert ring_of(whole) == 0 and np.array_equal(program.logits(whole, tokens), want), "one chunk"


@tap.named("G07 decode across the window")
def decode_across_the_window():
    """From 5 to 12 one by one, and a prompt of 9 with one behind it: rows of the whole text."""
    cli, tokens = small(), tokens_of(20)
    want = program.logits(cli, tokens)
    for n in range(5, 13):
        assert np.array_equal(program.logits(cli, tokens[:n], chunk=1)[-1], want[n - 1]), n
    lines = ["text 0 3", "step 0:9", "step 0:1", "text 1 3", "step 1:10"]
    assert play(lines)[1][3] == play(lines)[2][3]


@tap.named("G02 prompts of 63, 64 and 65 tokens")
def prompts_of_63_64_and_65():
    cli, tokens = small(), tokens_of(65)
    want = program.logits(cli, tokens)
    for n in (63, 64):
        assert np.array_equal(program.logits(cli, tokens[:n]), want[:n]), n


@tap.named("G08 sequences side by side are as alone")
def sequences_side_by_side():
    """Four sequences at depths of their own, rows of all in one step, as each alone."""
    depths = {0: 5, 1: 300, 2: 19, 3: 541}
    alone, lines = {}, []
    for slot, depth in depths.items():
        script = [f"text {slot} {slot + 1}"] + [f"step {slot}:17"] * (depth // 17) + [f"step {slot}:{depth % 17}"]
        lines += script
        alone[slot] = play(script + [f"step {slot}:1"] * 3 + [f"step {slot}:2"])[-4:]
    got = play(lines + ["step 0:1 1:1 2:1 3:1"] * 3 + ["step 3:2 1:2 0:2 2:2"])[-16:]
    for slot, want in alone.items():
        assert [g for g in got if g[0] == str(slot)] == want, slot


@tap.named("G11 equal requests have equal answers")
def equal_requests_have_equal_answers():
    prompt = [f"step {{0}}:{n}" for n in (17, 17, 9)]
    one = play(["text 0 7"] + [p.format(0) for p in prompt] + ["step 0:1"] * 8)
    lines = [f"text {s} 7" for s in range(4)]
    lines += [p.format(s) for s in range(4) for p in prompt] + ["step 0:1 1:1 2:1 3:1"] * 8
    got = play(lines)
    for s in range(4):
        mine = [g[3] for g in got if g[0] == str(s)]
        assert mine == [g[3] for g in one], s


@tap.named("G14 a long request leaves nothing behind")
def a_long_request_leaves_nothing_behind():
    lines = ["text 0 1", "prompt 0 20", "other 0 2", "prompt 0 1000", "other 0 1", "prompt 0 20"]
    got = play(lines)
    assert got[0][3] == got[2][3] and got[2][2] == "0", got


def rewound_rings_hold_what_is_seen():
    """Prompts that share a beginning, cut back by less and by more than a ring can give."""
    fresh = {n: play(["text 0 5", f"prompt 0 {n}"])[0][3] for n in (40, 300, 550, 560, 700)}
    got = play(["text 0 5", "prompt 0 300", "prompt 0 40", "prompt 0 700", "prompt 0 560", "prompt 0 550", "prompt 0 300",
                "prompt 0 700"])
    # 256 cells, of which the window needs 7 before a row: 249 may be stored behind it
    assert [g[2] for g in got] == ["0", "0", "40", "559", "549", "0", "300"], got
    for g in got:
        assert g[3] == fresh[int(g[1])], g


tap.main([
    chunks_longer_than_the_window, decode_across_the_window, prompts_of_63_64_and_65, sequences_side_by_side,
    equal_requests_have_equal_answers, a_long_request_leaves_nothing_behind, rewound_rings_hold_what_is_seen])
