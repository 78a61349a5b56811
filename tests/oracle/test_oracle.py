"""The float64 reference against a second one in plain loops, known RoPE numbers, and llama.cpp."""
import math
import pathlib
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as T
from gguf.quants import dequantize, quantize

import kl
import llamacpp
import oracle
import tap
import tiny

TOKENS = [3, 66, 0, 17, 17, 42, 9, 51, 5]
FOLDER = tempfile.TemporaryDirectory()


def model(**options):
    path = pathlib.Path(FOLDER.name) / f"{len(list(pathlib.Path(FOLDER.name).iterdir()))}.gguf"
    return path, tiny.write(path, **options)


# A second forward pass, one number at a time, from the formulas: no numpy in the arithmetic.

def loop_norm(x, w):
    mean = math.fsum(v * v for v in x) / len(x)
    return [v / math.sqrt(mean + float(np.float32(1e-5))) * float(g) for v, g in zip(x, w)]


def loop_linear(t, name, x):
    y = [math.fsum(float(a) * b for a, b in zip(row, x)) for row in t[name + ".weight"]]
    if name + ".bias" in t:
        y = [a + float(b) for a, b in zip(y, t[name + ".bias"])]
    return y


def loop_rope(head, pos, angle_of_pair, magnitude):
    out = list(head)
    for i, angle in enumerate(angle_of_pair):
        c, s = math.cos(pos * angle) * magnitude, math.sin(pos * angle) * magnitude
        out[2 * i] = head[2 * i] * c - head[2 * i + 1] * s
        out[2 * i + 1] = head[2 * i] * s + head[2 * i + 1] * c
    return out


def loop_forward(t, tokens, angles, magnitude, scale):
    """Logits of each position, list of lists. The cache holds one list per layer."""
    cache = [[] for _ in range(tiny.LAYERS)]
    result = []
    for pos, token in enumerate(tokens):
        x = [float(v) for v in t["token_embd.weight"][token]]
        for i in range(tiny.LAYERS):
            b = f"blk.{i}."
            h = loop_norm(x, t[b + "attn_norm.weight"])
            q, k, v = (loop_linear(t, b + "attn_" + p, h) for p in "qkv")
            heads = [loop_rope(q[n * 8:n * 8 + 8], pos, angles, magnitude) for n in range(4)]
            keys = [loop_rope(k[n * 8:n * 8 + 8], pos, angles, magnitude) for n in range(2)]
            cache[i].append((keys, [v[:8], v[8:]]))
            joined = []
            for n, head in enumerate(heads):
                s = [scale * math.fsum(a * c for a, c in zip(head, ks[n // 2]))
                     for ks, _ in cache[i]]
                p = [math.exp(a - max(s)) for a in s]
                total = math.fsum(p)
                joined += [math.fsum(a * vs[n // 2][d] for a, (_, vs) in zip(p, cache[i])) / total
                           for d in range(8)]
            x = [a + c for a, c in zip(x, loop_linear(t, b + "attn_output", joined))]
            h = loop_norm(x, t[b + "ffn_norm.weight"])
            gate, up = loop_linear(t, b + "ffn_gate", h), loop_linear(t, b + "ffn_up", h)
            act = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
            x = [a + c for a, c in zip(x, loop_linear(t, b + "ffn_down", act))]
        h = loop_norm(x, t["output_norm.weight"])
        result.append(loop_linear(t, "output" if "output.weight" in t else "token_embd", h))
    return result


def plain_angles(n_rot=8, base=10000.0, divide=1.0):
    return [base ** (-2.0 * i / n_rot) / divide for i in range(n_rot // 2)]


def same(path, t, angles=None, magnitude=1.0, scale=1 / math.sqrt(8)):
    got = oracle.Oracle(path).logits(TOKENS)
    want = np.array(loop_forward(t, TOKENS, angles or plain_angles(), magnitude, scale))
    error = np.abs(got - want).max()
    assert error < 1e-12 * max(1.0, np.abs(want).max()), f"largest difference {error}"


def untied_equals_the_loops():
    same(*model())


def tied_with_biases_equals_the_loops():
    same(*model(tied=True, bias=True))


def linear_scaling_equals_the_loops():
    path, t = model(keys={"rope.scaling.type": "linear", "rope.scaling.factor": 4.0,
                          "rope.freq_base": 500000.0})
    same(path, t, plain_angles(base=500000.0, divide=4.0))


def frequency_factors_equal_the_loops():
    path, t = model(freqs=True)
    same(path, t, [a / float(f) for a, f in zip(plain_angles(), t["rope_freqs.weight"])])


def yarn_equals_the_loops():
    path, t = model(keys={"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0,
                          "rope.scaling.original_context_length": 64})
    # n_rot 8, base 1e4, 64 tokens: corr(32) < 0, corr(1) = 1.008, so low 0, high 2
    ramp = [1.0, 0.5, 0.0, 0.0]
    angles = [a / 8 * (1 - r) + a * r for a, r in zip(plain_angles(), ramp)]
    same(path, t, angles, 1 + 0.1 * math.log(8))


def partial_rotation_and_scale_equal_the_loops():
    path, t = model(keys={"rope.dimension_count": 4, "attention.scale": 0.25})
    same(path, t, plain_angles(4), scale=0.25)


def quantised_weights_equal_the_loops():
    path, t = model(qtype=T.Q5_1)
    for name, value in t.items():
        if value.ndim == 2 and value.shape[1] % 32 == 0:
            t[name] = dequantize(quantize(value, T.Q5_1), T.Q5_1)
    same(path, t)


def fused_qkv_equals_split():
    path, t = model(fused=True, bias=True)
    for i in range(tiny.LAYERS):
        for kind in ("weight", "bias"):
            qkv = t[f"blk.{i}.attn_qkv.{kind}"]
            for part, rows in zip("qkv", np.split(qkv, [32, 48])):
                t[f"blk.{i}.attn_{part}.{kind}"] = rows
    same(path, t)


def known_yarn_numbers():
    freq, m = oracle.rope_frequencies(64, 5e5, {"type": "yarn", "factor": 32.0, "n_ctx_orig": 8192})
    plain, _ = oracle.rope_frequencies(64, 5e5, {"type": "none", "factor": 32.0})
    ratio = freq / plain
    assert abs(m - 1.3465736) < 1e-7
    assert np.allclose(ratio[:10], 1, atol=1e-12) and np.allclose(ratio[18:], 1 / 32, atol=1e-12)
    for pair, want in ((10, 0.892361), (13, 0.569444), (17, 0.138889)):
        assert abs(ratio[pair] - want) < 1e-6, (pair, ratio[pair])
    assert abs(plain[10] - 0.0165604401) < 1e-10


def steps_equal_one_pass():
    path, _ = model(bias=True)
    o = oracle.Oracle(path, keep=True)
    s = o.session()
    parts = [s.feed(TOKENS[:1]), s.feed(TOKENS[1:5]), s.feed(TOKENS[5:])]
    got = o.output(np.concatenate(parts))
    want = o.logits(TOKENS)
    assert np.abs(got - want).max() < 1e-12
    blocks = list(o.logit_blocks(TOKENS, rows=4))
    assert [at for at, _ in blocks] == [0, 4, 8]
    assert np.abs(np.concatenate([b for _, b in blocks]) - want).max() < 1e-12


def refuses_what_it_does_not_compute():
    path, _ = model(keys={"rope.scaling.type": "longrope"})
    other = pathlib.Path(FOLDER.name) / "other.gguf"
    other.write_bytes(path.read_bytes().replace(b"blk.1.ffn_up.weight", b"blk.1.ffn_uq.weight"))
    for bad in (path, other):
        try:
            oracle.Oracle(bad)
        except oracle.Refused:
            continue
        raise AssertionError(f"{bad} was accepted")
    good, _ = model()
    for tokens in ([-1], [tiny.VOCAB]):
        try:
            oracle.Oracle(good).logits(tokens)
        except oracle.Refused:
            continue
        raise AssertionError(f"{tokens} was accepted")


def llama_cpp_agrees_on_f32():
    if not llamacpp.available():
        raise tap.Skip(llamacpp.WHY_NOT)
    cases = [{}, {"tied": True, "bias": True}, {"freqs": True},
             {"keys": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}},
             {"keys": {"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0,
                       "rope.scaling.original_context_length": 64}}]
    for options in cases:
        path, _ = model(**options)
        other = llamacpp.Model(path, n_threads=1, n_ctx=64, chunk=64, flash=False, kv_f32=True)
        got = other.logits(TOKENS)
        other.close()
        error = np.abs(got - oracle.Oracle(path).logits(TOKENS)).max()
        assert error < 2e-5, f"{options}: largest difference {error}"


def the_kl_rule_tells_chance_from_arithmetic():
    """Positions whose KL is of one size, with some costly ones: what a mean decides, and what it cannot."""
    draw = np.random.default_rng(3)

    def positions(bulk, n_costly, cost=4.0, n=3072):
        k = bulk * draw.gamma(2.0, 0.5, n)
        k[draw.permutation(n)[:n_costly]] = cost
        return k

    other = kl.sample(positions(1e-4, 0))
    for bulk, n_costly, cost, holds in ((1e-4, 0, 0, True), (1.2e-4, 0, 0, False), (1e-4, 1, 4.0, True), (1.2e-4, 1, 4.0, False),
                                        (1e-4, 3, 8.0, True), (1e-4, 100, 4.0, False)):
        got, told = kl.decide(positions(bulk, n_costly, cost), other)
        assert got == holds, f"{bulk} {n_costly} x {cost}: {told}"
        assert ("the cut decides" in told) == (holds and n_costly > 0) or not holds, told
    tailed = kl.sample(positions(1e-4, 31, 0.5))  # of llama.cpp; twice as many costly ones are no chance
    for n_costly, holds in ((20, True), (33, True), (90, False)):
        got, told = kl.decide(positions(1e-4, n_costly, 0.5), tailed)
        assert got == holds, f"{n_costly} beside 31: {told}"
    exact = kl.Sample(2e-5, 0.0, float("inf"), 2e-5, 3072)  # a recorded mean alone
    assert kl.decide(np.full(3072, 2.1e-5), exact)[0] and not kl.decide(np.full(3072, 2.3e-5), exact)[0]


tap.main([
    untied_equals_the_loops, tied_with_biases_equals_the_loops, linear_scaling_equals_the_loops,
    frequency_factors_equal_the_loops, yarn_equals_the_loops,
    partial_rotation_and_scale_equal_the_loops, quantised_weights_equal_the_loops,
    fused_qkv_equals_split, known_yarn_numbers, steps_equal_one_pass,
    refuses_what_it_does_not_compute, the_kl_rule_tells_chance_from_arithmetic, llama_cpp_agrees_on_f32])
