"""Laguna on a GPU, emulated: windows, gates, experts and both kinds of caches give the CPU program's bits, logits and every
layer; LAGEN_TEST_ALL adds a second model."""
import json
import os
import sys

import program
import toolkit
from program import WORK, run

sys.path.insert(0, str(toolkit.ROOT / "tests" / "oracle"))
import kl  # noqa: E402
import tap  # noqa: E402

N = 100  # tokens: many windows of 8 and 13
OPTIONS = ["--ctx", "512", "--chunk", "64"]
# recipe, vocabulary, options
MODELS = [("laguna-odd", 353, []), ("laguna-w8", 337, ["--kv", "q8_0"])]


def outputs(cli, vocabulary, env, *options):
    files = WORK / "laguna.logits", WORK / "laguna.layers"
    for file in files:
        file.unlink(missing_ok=True)
    ids = ",".join(map(str, kl.random_tokens(6, N, vocabulary)))
    run([cli, "logits", "--all", "--ids", ids, "--raw", files[0], "--trace", files[1], *options], env=env)
    return [f.read_bytes() for f in files]


def same_bits(recipe, vocabulary, options):
    WORK.mkdir(parents=True, exist_ok=True)
    gguf = WORK / f"{recipe}.gguf"
    run([program.LAGEN, "synth", f"synth/{recipe}", "-o", gguf])
    gpu = program.build(f"{recipe}-gpu", "sm_90", *OPTIONS, *options, gguf=gguf)[0]
    cpu = program.build(f"{recipe}-cpu", "native", *OPTIONS, *options, gguf=gguf)[0]
    driver = program.softgpu(gpu, json.loads((gpu / "launches.json").read_text())["kernels"])
    want = outputs(cpu / f"{recipe}-cli", vocabulary, None)
    for chunk, order in ((64, "forward"), (7, "shuffled")):
        env = program.driver_env(driver, program.settings(recipe), LAGEN_SOFTGPU_ORDER=order)
        got = outputs(gpu / f"{recipe}-cli", vocabulary, env, "--chunk", chunk)
        for what, a, b in zip(("logits", "layers"), got, want):
            assert a == b, f"{recipe}, chunk {chunk}, {order}: {sum(x != y for x, y in zip(a, b))} bytes of {what} differ"


@tap.named("G16 layers of a GPU are those of the CPU, to the bit")
def every_layer_is_the_cpu_s():
    for model in MODELS if os.environ.get("LAGEN_TEST_ALL") else MODELS[:1]:
        same_bits(*model)


tap.main([every_layer_is_the_cpu_s])
