"""Kernel cases of mixtures of experts."""


def steps_of(T):
    return [[(0, 0, t)] for t in T]


def router(E, n_used, gating="sigmoid", bias=True, norm=True, scale=2.5, parts=1, T=(1, 2, 10)):
    return {"family": "router_topk", "E": E, "n_used": n_used, "gating": gating, "bias": bias, "norm": norm,
            "scale": scale, "parts": parts}, steps_of(T)


def router_parts(K, E, wtype="f32", T=(1, 2, 8, 9, 65)):
    return {"family": "router_parts", "K": K, "E": E, "wtype": wtype}, steps_of(T)


def sort(E, n_used, shared=False, T=(1, 2, 7, 8, 31, 33, 130)):
    op = {"family": "moe_sort", "E": E, "n_used": n_used}
    several = [[(0, 0, 30), (1, 5, 3), (2, 0, 34)]]  # none has a full tile of pairs alone where picks are few
    return dict(op, shared=[{"type": "f32"}]) if shared else op, steps_of(T) + several


def summed(H, E, n_used, shared=False, T=(1, 5)):
    op = {"family": "moe_sum", "H": H, "E": E, "n_used": n_used}
    return dict(op, shared=[{"type": "f32"}]) if shared else op, steps_of(T)


def matrix(t):
    return {"type": t.rstrip("*"), "factor": t.endswith("*")}


def product(family, E, n_used, K, n, types, shared=(), T=(1, 2, 5, 8, 33), **outputs):
    """types: of gate and up, or of down; one that ends with "*" has factors. `outputs` of a gated product: f32, q8."""
    op = {"family": family, "stage": "gated" if len(types) == 2 else "down", "E": E, "n_used": n_used, "K": K, "n": n,
          "parts": [matrix(t) for t in types]}
    if shared:
        op["shared"] = [matrix(t) for t in shared]
    if len(types) == 2:
        op["outputs"] = outputs
    return op, steps_of(T)


# (experts, picks, K, n, types, types of the shared expert, outputs)
PRODUCTS = [
    (16, 10, 1280, 64, ("q4_k", "q4_k"), ("q4_k", "q4_k"), {"q8": True}),
    (5, 2, 288, 32, ("q8_0", "q8_0"), (), {"q8": True}),
    (3, 3, 576, 96, ("q4_1", "q5_0"), ("q8_0", "q8_0"), {"q8": True, "f32": True}),
    (6, 3, 256, 64, ("iq2_xxs", "iq2_xxs"), ("iq3_xxs", "iq3_xxs"), {"q8": True}),
    (5, 2, 512, 33, ("iq4_xs",), ("q3_k",), {}),
    (5, 3, 192, 32, ("nvfp4*", "q8_0"), ("nvfp4", "q8_0*"), {"q8": True, "f32": True}),
    (6, 2, 64, 33, ("nvfp4*",), ("nvfp4*",), {}),
    (4, 1, 300, 33, ("f16", "f32"), (), {"f32": True}),
    (16, 10, 768, 100, ("q6_k",), ("q6_k",), {}),
    (5, 2, 64, 33, ("q8_0",), ("f16",), {}),
    (4, 4, 259, 17, ("bf16",), (), {}),
]

# Rows that one case of each family has, as ODD in cases.py; parts of routers have tiles of 64 rows.
ODD = (1, 2, 5, 6, 7, 8, 31, 32, 33)

# Rows for many; where every expert gets all of them, a tile of 32 and one more or less.
MANY = {False: (1, 2, 7, 33, 130), True: (*ODD, 65)}
CASES = [
    router_parts(768, 65, T=(*ODD, 63, 64, 65)), router_parts(300, 16), router_parts(64, 7, "bf16"), router_parts(300, 17, "bf16", T=(1, 3)),
    router(31, 1), router(32, 4, parts=2), router(33, 8, T=ODD), router(128, 1, scale=1.0), router(160, 10, norm=False),
    router(256, 10, parts=12), router(257, 16, bias=False, scale=0.0), router(512, 16),
    router(33, 8, "softmax", bias=False, norm=False, scale=1.0), router(256, 8, "softmax"), router(257, 4, "softmax"),
    sort(16, 10, T=(*ODD, 100)), sort(3, 1, T=(1, 63, 64, 65, 200)), sort(256, 8, shared=True),
    summed(100, 16, 10, T=ODD), summed(259, 4, 1, shared=True), summed(576, 8, 4, shared=True),
    *[product(family, E, k, K, n, types, shared, (1, 2, 5, 6, 7, 8) if family == "matvec_moe" else MANY[E == k], **outputs)
      for E, k, K, n, types, shared, outputs in PRODUCTS for family in ("matvec_moe", "moe_matmul")],
]
