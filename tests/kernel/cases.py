"""The table of kernel cases: op tables as docs/kernels.md describes them, and the steps of each.

A step is a list of (slot, first position, rows), one for each of its sequences. An op's `case` is the name
under which its numbers are tested; kernels do not see it."""
import archs


def matmul(K, *parts, epilogue="none", rows="T", T=(1, 2, 7, 16, 17, 33)):
    """parts: (type, n) or (type, n, letters): "b" with a bias, "f" with a factor."""
    table = [{"type": p[0], "n": p[1], "bias": "b" in "".join(p[2:]), "factor": "f" in "".join(p[2:])} for p in parts]
    op = {"family": "matmul", "K": K, "parts": table, "epilogue": epilogue, "rows": rows}
    return op, [[(0, 0, t)] for t in T]


# Rows of a step that one case of each family has: few, a warp and a tile, more and less by one; slots at depths of their own.
ODD = (1, 2, 5, 6, 7, 8, 31, 32, 33)
ODD_STEPS = [[(0, 0, t)] for t in ODD] + [[(2, 40, 3), (0, 300, 31), (1, 0, 1)]]


def embed(wtype, H, V=33, steps=None):
    return {"family": "embed", "H": H, "V": V, "wtype": wtype}, steps or [[(0, 0, 1)], [(0, 0, 19)]]


def norm(H, rows="T", steps=None, **outputs):
    op = {"family": "norm_quant", "H": H, "eps": 1e-5, "outputs": outputs, "rows": rows}
    return op, steps or [[(0, 0, 1)], [(0, 0, 5)]]


def quant(K, steps=None):
    return {"family": "quant", "K": K}, steps or [[(0, 0, 1)], [(0, 0, 9)]]


def rope_table(n_rot, base, mscale=1.0, steps=None, **more):
    freq = [float(base) ** (-2.0 * i / n_rot) for i in range(n_rot // 2)]
    op = {"family": "rope_table", "n_rot": n_rot, "freq": freq, "mscale": mscale, **more}
    return op, steps or [[(0, 0, 4)], [(0, 131064, 8), (1, 1000000, 1)]]


def laguna_table(name, freq, mscale):
    """Angles as Laguna-S has them, at the ends of its original and of its extended context."""
    op = {"family": "rope_table", "n_rot": 2 * len(freq), "freq": [float(f) for f in freq], "mscale": mscale,
          "case": name}
    return op, [[(0, 0, 2)], [(0, 8191, 2)], [(1, 262143, 1)]]


YARN = {"type": "yarn", "factor": 32.0, "n_ctx_orig": 8192}


def rope_kv(n_head, n_kv, hd, n_rot, pairing, cap=512, slots=3, kv="f16", gate="none", steps=None, **more):
    """more: eps, the norm of heads in front."""
    op = {"family": "rope_kv", "n_head": n_head, "n_kv": n_kv, "hd": hd, "n_rot": n_rot,
          "pairing": pairing, "cap": cap, "slots": slots, "kv": kv, "gate": gate, **more}
    return op, steps or [[(1, 0, 1)], [(2, 250, 20), (0, 1020, 9)]]


def attn(n_head, n_kv, hd, window=0, cap=768, slots=3, steps=None, kv="f16", gate="none", **more):
    """more: case, a name; flat, a value that all cells have, with equal scores; steep, scores from
    one end of the positions to the other, plus and minus twice that."""
    op = {"family": "attn", "n_head": n_head, "n_kv": n_kv, "hd": hd, "scale": hd ** -0.5,
          "window": window, "cap": cap, "slots": slots, "kv": kv, "gate": gate, **more}
    if gate != "none":
        op["act"] = "softplus"
    return op, steps or ATTN_STEPS


ATTN_STEPS = [[(0, 0, 1)], [(1, 254, 3)], [(1, 255, 1)], [(1, 256, 1)], [(2, 257, 1)],
              [(0, 100, 5)], [(0, 0, 33)], [(2, 240, 40)], [(1, 600, 2), (0, 15, 1), (2, 511, 17)]]
# Few rows, whose splits lie on ctas of their own: depths 0 and 1, around a split's ends, slots at different depths.
FEW_STEPS = [[(0, 1, 1)], [(0, 511, 2)], [(2, 508, 6)], [(1, 512, 7)], [(0, 255, 2), (1, 511, 3), (2, 0, 3)],
             [(2, 767, 1), (0, 256, 1), (1, 1, 1)], [(1, 0, 31)], [(0, 0, 32)]]
WINDOW_STEPS = [[(0, 0, 33)], [(1, 99, 3)], [(2, 350, 20)], [(1, 1000, 17), (0, 255, 1)],
                [(0, 2047, 2)]]

# Windows of 8 and 64 in rings of 256: rows at window - 1, window, window + 1, around the ring's end.
SMALL_WINDOW_STEPS = [[(0, 0, 9)], [(1, 6, 1)], [(1, 7, 1)], [(1, 8, 1)], [(2, 62, 3)], [(0, 250, 17)],
                      [(1, 1021, 5), (2, 511, 2)]]

VOCABULARIES = (320, 321, 383, 511, 513)

CASES = [
    matmul(576, ("q4_1", 576), ("q4_1", 192), ("q4_1", 192), T=(1, 2, 5, 6, 7, 8, 16, 17, 31, 32, 33, 130)),
    matmul(288, ("q4_1", 17), epilogue="add"),
    matmul(32, ("q4_1", 1), T=(1, 15)),
    matmul(64, ("q4_1", 33, "b"), ("q4_1", 33, "b"), epilogue="swiglu"),
    matmul(1536, ("q4_0", 15), ("q8_0", 15), epilogue="swiglu"),
    matmul(576, ("q8_0", 32001), rows="L", T=(1, 3)),
    matmul(64, ("q4_0", 15, "b"), epilogue="add"),
    matmul(288, ("q5_0", 16)),
    matmul(1536, ("q5_1", 17)),
    matmul(512, ("q4_k", 33), epilogue="add", T=(1, 5, 16, 33, 64, 65)),
    matmul(256, ("q5_k", 15)),
    matmul(768, ("q6_k", 17)),
    matmul(256, ("q4_k", 16), ("q6_k", 17), ("f16", 5, "b")),
    matmul(768, ("q2_k", 33), T=(1, 5, 16, 33, 65)),
    matmul(512, ("q3_k", 17), ("q2_k", 16, "b"), epilogue="add"),
    matmul(256, ("q2_k", 15), ("q3_k", 15), epilogue="swiglu"),
    matmul(288, ("iq4_nl", 17), ("mxfp4", 15, "b"), epilogue="add"),
    matmul(512, ("iq4_xs", 16), ("nvfp4", 17)),
    matmul(448, ("nvfp4", 33, "bf"), ("nvfp4", 16), T=(1, 5, 33)),
    matmul(128, ("nvfp4", 17, "f"), ("q8_0", 17, "bf"), epilogue="swiglu", T=(1, 9)),
    matmul(64, ("nvfp4", 15, "f"), epilogue="add", T=(1, 17)),
    matmul(512, ("iq2_xxs", 17), ("iq2_xs", 16), T=(1, 5, 16, 33)),
    matmul(256, ("iq2_s", 15, "b"), ("iq3_s", 17), epilogue="add", T=(1, 5, 33)),
    matmul(768, ("iq3_xxs", 33), T=(1, 5, 33)),
    matmul(512, ("iq1_s", 15), ("iq1_m", 15), epilogue="swiglu", T=(1, 5, 33)),
    matmul(300, ("f32", 17, "b")),
    matmul(64, ("f16", 16)),
    matmul(259, ("bf16", 3), epilogue="add"),
    matmul(96, ("q4_0", 33)), matmul(192, ("q8_0", 17), epilogue="add"), matmul(320, ("q4_0", 16), ("q8_0", 17)),
    *[matmul(64, ("q8_0", V), rows="L", T=(1, 3)) for V in VOCABULARIES],
    embed("f32", 259), embed("f16", 64), embed("bf16", 300), embed("q4_0", 288),
    embed("q4_1", 576), embed("q5_0", 32), embed("q5_1", 288), embed("q8_0", 576, steps=ODD_STEPS),
    embed("q2_k", 512),
    embed("q3_k", 256), embed("q4_k", 512), embed("q5_k", 256), embed("q6_k", 768),
    embed("iq4_nl", 288), embed("iq4_xs", 512), embed("mxfp4", 96), embed("nvfp4", 576),
    embed("iq2_xxs", 512), embed("iq2_xs", 256), embed("iq2_s", 256), embed("iq3_xxs", 512),
    embed("iq3_s", 256), embed("iq1_s", 256), embed("iq1_m", 512),
    norm(576, q8=True, steps=ODD_STEPS), norm(288, f32=True, q8=True), norm(100, rows="L", f32=True),
    norm(1536, rows="L", q8=True),
    quant(32), quant(1536, steps=ODD_STEPS),
    rope_table(64, 10000.0, steps=ODD_STEPS), rope_table(24, 500000.0, 1.3465736),
    rope_kv(9, 3, 64, 64, "norm", steps=ODD_STEPS), rope_kv(2, 1, 32, 24, "neox"), rope_kv(2, 2, 48, 20, "norm"),
    rope_kv(3, 1, 128, 64, "neox", eps=1e-6, gate="head"),
    rope_kv(4, 2, 80, 80, "neox", eps=1e-6, gate="element"),
    rope_kv(2, 1, 256, 48, "norm", eps=1e-5), rope_kv(3, 1, 64, 32, "neox", kv="q8_0"),
    rope_kv(6, 2, 128, 128, "neox", kv="q8_0", eps=1e-6, gate="head"),
    attn(9, 3, 64, steps=ATTN_STEPS + FEW_STEPS), attn(4, 4, 16, window=100, cap=512, steps=WINDOW_STEPS),
    attn(8, 1, 128), attn(2, 1, 256, steps=ATTN_STEPS[1:8:2]),
    attn(20, 1, 16, window=300, cap=512, steps=WINDOW_STEPS[1:4]),
    attn(6, 1, 128, window=8, cap=256, steps=SMALL_WINDOW_STEPS, gate="head"),
    attn(4, 2, 48, gate="element", steps=ATTN_STEPS[1:8:2]),
    attn(4, 2, 64, kv="q8_0"), attn(9, 1, 128, kv="q8_0", gate="head", steps=ATTN_STEPS[2:8:2]),
    attn(2, 1, 32, window=64, cap=256, steps=SMALL_WINDOW_STEPS, kv="q8_0", gate="element"),
    laguna_table("G09 angles where every position is seen", *archs.rope_frequencies(64, 5e5, YARN)),
    laguna_table("G09 angles in windows", *archs.rope_frequencies(128, 1e4, {"type": "none"})),
    attn(2, 2, 16, steps=[[(1, 600, 2), (0, 511, 17)], [(2, 300, 1)]], steep=100.0,
         case="G04 scores that fall or rise by hundreds from split to split"),
    attn(1, 1, 16, cap=70144, slots=1, flat=60000.0, case="G04 long and large sums stay finite",
         steps=[[(0, 69999, 2)]]),
    attn(260, 260, 16, slots=1, steps=[[(0, 700, 1)]]), # more splits of a row than lanes of ctas
    attn(3, 1, 32, window=257, cap=512, gate="head", steps=[[(0, p, 1)] for p in (255, 256, 257, 511, 512, 513)]),
    attn(2, 1, 16, cap=4096, slots=2, steps=[[(1, 2046, 4)], [(0, 4095, 1), (1, 2048, 1)]],
         case="F13 slots of 4,096 positions around 2,048"),
    attn(2, 2, 96, steps=ATTN_STEPS[2:5], case="G12 heads of 96 and halves"),
    attn(2, 2, 96, steps=ATTN_STEPS[2:5], kv="q8_0", case="G12 heads of 96 and bytes"),
    attn(2, 1, 80, steps=ATTN_STEPS[2:5], case="G12 heads of 80 and halves"),
    attn(2, 1, 256, steps=ATTN_STEPS[2:5], kv="q8_0", case="G12 heads of 256 and bytes"),
]
