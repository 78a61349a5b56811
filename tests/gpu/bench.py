"""Makes build/gpu-bench, which tests/gpu/bench builds and runs on a machine with a GPU: experts and attention of the
sizes that Laguna S and XS have, as CUDA text, and the list of launches to time."""
import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "softgpu"), str(ROOT / "tests" / "kernel")]
import soft  # noqa: E402
import reference_moe  # noqa: E402
from soft import cpu  # noqa: E402

OUT = ROOT / "build" / "gpu-bench"
# What a data centre's GPU has.
HW = dict(soft.HW, smem_per_cta_bytes=227 * 1024, smem_per_sm_bytes=228 * 1024, threads_per_sm=2048)
FEW, MANY = (1, 2, 4, 8), (16, 64, 256, 512, 2048, 8192)
# name: width, experts' width, experts, picks
MODELS = {"S": (3072, 1024, 256, 10), "XS": (2048, 512, 256, 8)}


def mixture(name, types, shared):
    """(label, op, numbers of rows) of one layer's experts."""
    H, n, E, k = MODELS[name]
    gate, down = types
    with_shared = {"shared": True} if shared else {}
    kinds = {"E": E, "n_used": k}

    def product(family, stage):
        op = {"family": family, "stage": stage, **kinds, "K": H if stage == "gated" else n, "n": n if stage == "gated" else H,
              "parts": [{"type": t} for t in ([gate, gate] if stage == "gated" else [down])]}
        if shared:
            op["shared"] = [{"type": t} for t in ([gate, gate] if stage == "gated" else [down])]
        return dict(op, outputs={"q8": True}) if stage == "gated" else op

    router = {"family": "router_topk", **kinds, "gating": "sigmoid", "bias": True, "norm": True, "scale": 2.5, "parts": H // 256}
    parts = {"family": "router_parts", "K": H, "E": E, "wtype": "f32"}
    what = f"{name} {gate}/{down}{' + shared' if shared else ''}"
    return [(f"{what} router logits", dict(parts, role="decode"), FEW), (f"{what} router logits", dict(parts, role="prefill"), MANY),
            (f"{what} router", router, FEW + MANY), (f"{what} sort", {"family": "moe_sort", **kinds, **with_shared}, MANY),
            (f"{what} gate, up", product("matvec_moe", "gated"), FEW), (f"{what} gate, up", product("moe_matmul", "gated"), MANY),
            (f"{what} down, sum", product("matvec_moe", "down"), FEW), (f"{what} down", product("moe_matmul", "down"), MANY),
            (f"{what} sum", {"family": "moe_sum", "H": H, **kinds, **with_shared}, MANY)]


def dense(name):
    """Products of a layer: gate and up of the shared expert alone, to compare with; attention's output; queries, keys and values."""
    H, n, _, _ = MODELS[name]

    def parts(*pairs):
        return [{"type": wtype, "n": rows, "bias": False} for wtype, rows in pairs]

    for what, K, of, epilogue in (("one gated product", H, parts(("q4_k", n), ("q4_k", n)), "swiglu"),
                                  ("output", 3 * H, parts(("q4_k", H)), "add"),
                                  ("q, k, v", H, parts(("q4_k", 3 * H), ("q4_k", 1024), ("q6_k", 1024)), "none")):
        op = {"family": "matmul", "K": K, "parts": of, "epilogue": epilogue, "rows": "T"}
        yield f"{name} dense {what}", dict(op, role="decode"), FEW
        yield f"{name} dense {what}", dict(op, role="prefill"), MANY


def around(name):
    """What stands between a layer's products: the norm in front of them, norms and rotation of heads."""
    H = MODELS[name][0]
    norm = {"family": "norm_quant", "H": H, "eps": 1e-6, "rows": "T", "outputs": {"q8": True}}
    heads = {"family": "rope_kv", "n_head": 3 * H // 128, "n_kv": 8, "hd": 128, "n_rot": 128, "pairing": "neox", "cap": 2560, "slots": 1,
             "kv": "f16", "gate": "head", "eps": 1e-6, "count": 8}
    return [(f"{name} norm", norm, FEW + MANY), (f"{name} norm of heads, rotation", heads, FEW + MANY)]


# name: heads, key heads, size of a head, window, ring, gate
ATTENTION = {"S full": (48, 8, 128, 0, 131072, "head"), "S window": (72, 8, 128, 512, 2560, "head"),
             "llama-576": (9, 3, 64, 0, 66048, "none")}
DEPTHS = (0, 512, 1500, 3500, 16000, 64000, 130000)


def attention(name, kv):
    """Attention of steps that begin at a depth: (label, op, numbers of rows, depth)."""
    n_head, n_kv, hd, window, cap, gate = ATTENTION[name]
    op = {"family": "attn", "n_head": n_head, "n_kv": n_kv, "hd": hd, "scale": hd ** -0.5, "window": window, "cap": cap, "slots": 1,
          "kv": kv, "gate": gate, **({"act": "softplus"} if gate != "none" else {})}
    for depth in DEPTHS:
        if window == 0 and depth < cap - 1000 or depth <= 1500:
            yield f"attention {name} {kv} at {depth}", dict(op, split=True), (1, 8), depth
            yield f"attention {name} {kv} at {depth}", op, (512,), depth


def all_cases():
    for name in ATTENTION:
        yield from attention(name, "f16")
    yield from attention("S full", "q8_0")
    for types, shared in ((("q4_k", "q6_k"), True), (("q4_k", "q4_k"), False)):
        for name in MODELS:
            yield from mixture(name, types, shared)
    for name in MODELS:
        yield from dense(name)
        yield from around(name)


class Rows:
    def __init__(self, n):
        self.n_rows, self.logit = n, []


def work_of(op, T, depth):
    """(bytes of weights that must be read at least, multiply-adds): of all experts where there are enough rows."""
    if op["family"] == "attn":
        seen = min(depth + T, op["window"] + T - 1) if op["window"] else depth + T
        per_row = min(depth + (T + 1) / 2, op["window"]) if op["window"] else depth + (T + 1) / 2
        per_cell = {"f16": 2, "q8_0": 34 / 32}[op["kv"]]
        return 2 * per_cell * seen * op["n_kv"] * op["hd"], 2 * T * per_row * op["n_head"] * op["hd"]
    if op["family"] == "router_parts":
        return 4 * op["K"] * op["E"], T * op["K"] * op["E"]
    if not isinstance(op.get("parts"), list):
        return 0, 0
    per_type = {"q4_k": 144 / 256, "q6_k": 210 / 256, "f32": 4}
    pairs = T * reference_moe.n_pairs_of(op) if "E" in op else T
    rows = op.get("n") or sum(p["n"] for p in op["parts"])
    one = sum(op["K"] * (op["n"] if "n" in op else p["n"]) * per_type[p["type"]] for p in op["parts"])
    n_mats = (op["E"] * (1 - (1 - op["n_used"] / op["E"]) ** T) + ("shared" in op)) if "E" in op else 1
    return one * n_mats, pairs * op["K"] * rows * (len(op["parts"]) if "n" in op else 1)


def operand_kind(op, o):
    """How bench.cu fills it: w weights or keys and values (every turn another copy), i ids, p pairs, m map, z counters (a copy each
    turn), x anything."""
    if op["family"] == "attn":
        return {"k": "w", "v": "w", "count": "z"}.get(o["param"], "x")
    kinds = {"ids": "i", "pairs": "p", "map": "m"}
    if o["access"] != "read" or o["param"] not in kinds:
        return "w" if o["param"] == "w" or o["param"][0] in "ws" and o["param"][1:].isdigit() else "x"
    return kinds[o["param"]]


def line(number, label, op, d, T, depth):
    rows = Rows(T)
    grid = soft.grid_of(d, rows)
    n_bytes, macs = work_of(op, T, depth)
    head = [number, *grid, T, op.get("E", 0), op.get("n_used", 0), int("shared" in op), int(n_bytes), macs, depth]
    operands = [f"{operand_kind(op, o)}{cpu.evaluate(o['bytes'], rows)}" for o in d["operands"]]
    return f"{label}\t{' '.join(map(str, head))}\t{' '.join(operands)}\n"


def table(descriptors):
    text = '#include "bench.h"\n'
    for i, d in enumerate(descriptors):
        text += f'int launch_{i}(const void *params, const uint32_t grid[3], void *stream);\n'
    text += "const bench_entry bench_kernels[] = {\n"
    text += "".join(f'    {{"{d["name"]}", {len(d["params"]) - 1}, launch_{i}}},\n' for i, d in enumerate(descriptors))
    return text + f"}};\nconst uint32_t n_bench_kernels = {len(descriptors)};\n"


def unit(i, d):
    """A kernel and its launch, which may begin before the one in front ends."""
    name, smem = d["name"], soft.smem_bytes(d)
    return f"""#include "isa_cuda.h"
#include "{name}.cu"
#include <cuda_runtime.h>
extern "C" int launch_{i}(const void *params, const uint32_t grid[3], void *stream) {{
    cudaLaunchAttribute overlap = {{}};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t c = {{}};
    c.gridDim = dim3(grid[0], grid[1], grid[2]);
    c.blockDim = dim3({d["block"]});
    c.dynamicSmemBytes = {smem};
    c.stream = (cudaStream_t)stream;
    c.attrs = &overlap;
    c.numAttrs = BENCH_OVERLAPS;
    cudaFuncSetAttribute({name}, cudaFuncAttributeMaxDynamicSharedMemorySize, {smem});
    return cudaLaunchKernelEx(&c, {name}, *({name}_params *)params);
}}
"""


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir(parents=True)
    cases, ops = [(*case, 0)[:4] for case in all_cases()], []
    for _, op, _, _ in cases:
        if op not in ops:
            ops.append(op)
    descriptors = soft.render([dict(op, hw=HW) for op in ops], OUT)
    (OUT / "table.c").write_text(table(descriptors))
    for i, d in enumerate(descriptors):
        (OUT / f"unit{i}.cu").write_text(unit(i, d))
    lines = [line(ops.index(op), label, op, descriptors[ops.index(op)], T, depth) for label, op, Ts, depth in cases for T in Ts]
    (OUT / "launches.txt").write_text("".join(lines))
    for path in (ROOT / "templates" / "lib").glob("*.h"):
        shutil.copy(path, OUT / path.name)
    for name in ("bench.cu", "bench.h"):
        shutil.copy(ROOT / "tests" / "gpu" / name, OUT / name)
    print(f"build/gpu-bench: {len(descriptors)} kernels, {len(lines)} launches")


if __name__ == "__main__":
    main()
