"""Layer by layer beside the reference (trace.py), and what is traced does not depend on how it is run."""
import numpy as np

import kl
import oracle
import program
import tap
import trace

RECIPES = ("llama-tiny", "laguna-dense", "laguna-w8", "laguna-odd")
TOKENS = 60  # more than four windows of 8


def model(recipe):
    path = program.synth(recipe, "f32", 2, f"{recipe}-trace")
    cli = program.build(path, ctx=256, chunk=32)
    o = oracle.Oracle(path)
    return cli, o, kl.random_tokens(1, TOKENS, o.n_vocab)


def layers_are_the_reference_s():
    """Plain weights: what differs is keys and values in halves, 2^-11 at most, some times each layer."""
    for recipe in RECIPES:
        cli, o, tokens = model(recipe)
        got = trace.errors(trace.of_program(cli, tokens, o.n_layers), trace.of_oracle(o, tokens))
        assert (got < 2e-3).all() and got[0] < 8e-4, f"{recipe}: {got}"


def traces_do_not_depend_on_chunk_and_threads():
    cli, o, tokens = model(RECIPES[1])
    want = trace.of_program(cli, tokens, o.n_layers)
    for options in (["--chunk", 1], ["--chunk", 7, "--threads", 1], ["--threads", 5, "--all"]):
        assert np.array_equal(trace.of_program(cli, tokens, o.n_layers, *options), want), options


def logits_are_those_of_an_untraced_run():
    cli, o, tokens = model(RECIPES[1])
    want = program.logits(cli, tokens)
    raw, path = program.WORK / "traced.raw", program.WORK / "traced.bin"
    program.run([cli, "logits", "--ids", ",".join(map(str, tokens)), "--all", "--raw", raw, "--trace", path])
    assert np.fromfile(raw, np.float32).tobytes() == want.tobytes()
    assert path.stat().st_size == 4 * o.n_layers * TOKENS * o.n_embd


tap.main([layers_are_the_reference_s, traces_do_not_depend_on_chunk_and_threads, logits_are_those_of_an_untraced_run])
