"""Values that halves do not hold, between the products of experts and of dense layers: the reference's logits."""
import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFReader

import kl
import oracle
import program
import tap

TOKENS = 40
GAIN = 256.0  # of gate and up: their product is 65,536 times as large


def scaled(recipe, types):
    """A model whose gates and ups are GAIN times as large and whose downs are as much smaller again as halves allow."""
    path = program.synth(recipe, types, 1, f"{recipe}-extremes")
    for t in GGUFReader(str(path), "r+").tensors:
        part = t.name.split(".")[2] if t.name.startswith("blk.") else ""
        if not part.startswith(("ffn_gate", "ffn_up", "ffn_down")) or part == "ffn_gate_inp":
            continue
        factor = 1 / 64.0 if part.startswith("ffn_down") else GAIN
        if t.tensor_type == T.F32:
            t.data[...] *= np.float32(factor)
        else:  # Q8_0: the scale stands first in a block of 34 bytes
            assert t.tensor_type == T.Q8_0, t.tensor_type
            blocks = t.data.reshape(-1, 34)
            scale = blocks[:, :2].copy().view(np.float16) * np.float16(factor)
            blocks[:, :2] = scale.view(np.uint8)
    return path


@tap.named("G03 products of gate and up beyond 65,504 stay finite")
def gated_products_beyond_halves():
    for recipe, types, bound in (("laguna-w8", "f32", 2e-3), ("laguna-odd", "q8_0", 0.2), ("llama-tiny", "q8_0", 0.05)):
        path = scaled(recipe, types)
        o = oracle.Oracle(path)
        tokens = kl.random_tokens(3, TOKENS, o.n_vocab)
        got = program.logits(program.build(path, ctx=256, chunk=32), tokens)
        assert np.isfinite(got).all(), recipe
        mean = float(kl.kl_rows(o.logits(tokens), got).mean())
        assert mean < bound, f"{recipe} {types}: mean KL {mean}"


@tap.named("G17 the context is an end, nothing moves")
def contexts_end():
    """No shift of the context: an answer ends where the context does, and says so."""
    path = program.synth("llama-peaked", None, 0, "context-end")
    cli = program.build(path, ctx=64, chunk=64)
    full = "a" * 200
    try:
        program.run([cli, "run", "--raw", "-p", full, "--greedy"])
    except program.Failed as why:
        assert "exit 1" in str(why) and "64" in str(why), why
    else:
        raise AssertionError("a prompt longer than the context was taken")
    ids = program.run([cli, "tokenize", "-p", "a b c d e f g h i j k l m n o p q r s t", "--ids"]).split()
    assert len(ids) < 64
    done = program.subprocess.run([str(cli), "run", "--raw", "-p", "a b c d e f g h i j k l m n o p q r s t", "--temp", "2",
                                   "--seed", "3", "--stats"], capture_output=True, text=True)
    assert done.returncode == 0 and "context full" in done.stderr, (done.returncode, done.stderr)


tap.main([gated_products_beyond_halves, contexts_end])
