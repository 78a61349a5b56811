"""Laguna on a GPU, emulated: windows, gates, experts and both kinds of caches give the CPU program's bits, logits and every
layer, so its KL is the CPU's. LAGEN_TEST_ALL adds a second model, and laguna-tiny past four windows: its own types and every
type that has a simple quantiser."""
import json
import os
import sys

import program
import toolkit
from program import WORK, run

sys.path.insert(0, str(toolkit.ROOT / "tests" / "oracle"))
import kl  # noqa: E402
import requantize  # noqa: E402
import tap  # noqa: E402

N = 100  # tokens: many windows of 8 and 13
OPTIONS = ["--ctx", "512", "--chunk", "64", "--attn", "f32"]  # the CPU program's bits
# recipe, vocabulary, options
MODELS = [("laguna-odd", 353, []), ("laguna-w8", 337, ["--kv", "q8_0"])]


TINY = toolkit.ROOT / "models" / "laguna-tiny" / "laguna-tiny.gguf"
TINY_TEXT = toolkit.ROOT / "tests" / "oracle" / "laguna_tiny_tokens.json"
TINY_TOKENS = 264  # four windows of 64, and more


def outputs(cli, tokens, env, *options):
    files = WORK / "laguna.logits", WORK / "laguna.layers"
    for file in files:
        file.unlink(missing_ok=True)
    ids = ",".join(map(str, tokens))
    run([cli, "logits", "--all", "--ids", ids, "--raw", files[0], "--trace", files[1], *options], env=env)
    return [f.read_bytes() for f in files]


def same_bits(name, gguf, tokens, options, ways):
    gpu = program.build(f"{name}-gpu", "sm_90", *OPTIONS, *options, gguf=gguf)[0]
    cpu = program.build(f"{name}-cpu", "native", *OPTIONS, *options, gguf=gguf)[0]
    driver = program.softgpu(gpu, json.loads((gpu / "launches.json").read_text())["kernels"])
    want = outputs(next(cpu.glob("*-cli")), tokens, None)
    for chunk, order in ways:
        env = program.driver_env(driver, program.settings(name), LAGEN_SOFTGPU_ORDER=order)
        got = outputs(next(gpu.glob("*-cli")), tokens, env, "--chunk", chunk)
        for what, a, b in zip(("logits", "layers"), got, want):
            assert a == b, f"{name}, chunk {chunk}, {order}: {sum(x != y for x, y in zip(a, b))} bytes of {what} differ"


@tap.named("G16 layers of a GPU are those of the CPU, to the bit")
def every_layer_is_the_cpu_s():
    WORK.mkdir(parents=True, exist_ok=True)
    for recipe, vocabulary, options in MODELS if os.environ.get("LAGEN_TEST_ALL") else MODELS[:1]:
        gguf = WORK / f"{recipe}.gguf"
        run([program.LAGEN, "synth", f"synth/{recipe}", "-o", gguf])
        same_bits(recipe, gguf, kl.random_tokens(6, N, vocabulary), options, ((64, "forward"), (7, "shuffled")))


def laguna_tiny_in_every_type():
    if not os.environ.get("LAGEN_TEST_ALL"):
        raise tap.Skip("LAGEN_TEST_ALL is not set: some minutes")
    tokens = json.loads(TINY_TEXT.read_text())["sequences"][0][:TINY_TOKENS]
    same_bits("tiny", TINY, tokens, [], ((64, "forward"),))
    for types in requantize.TYPES:
        gguf = requantize.requantize(TINY, types, WORK / f"tiny-{types}.gguf")
        same_bits(f"tiny-{types}", gguf, tokens, [], ((64, "forward"),))


if __name__ == "__main__":
    tap.main([every_layer_is_the_cpu_s, laguna_tiny_in_every_type])
