"""Speed of the kernels of one model on this machine, in decode (1 row) and prefill (512 rows).

    bench.py [--row ROW] [--threads N] [--seconds S] [--only TEXT]

The shapes are those of SmolLM2-135M (576 wide, 30 layers, Q4_1 with a Q8_0 head). Every kernel is
rendered, compiled and timed alone; weights of all layers are walked, so decode reads memory. The last
lines add up one token and one prompt: without barriers and launches, so a bound for the program.
With --specialised the matrix product 1536 -> 576 is also compiled with its dims as run-time values,
and the ratio of the two is printed."""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "kernel"), str(ROOT / "tests" / "oracle")]
import test_kernels as kernels  # noqa: E402
from rows import BUILD, ROWS, command_for, compile_one  # noqa: E402

HEADS = {"n_head": 9, "n_kv": 3, "hd": 64, "cap": 8192, "slots": 1, "kv": "f16", "gate": "none"}
ROTATE = {"n_rot": 64, "pairing": "norm"}
FREQ = [1e5 ** (-2.0 * i / 64) for i in range(32)]


def matmul(K, *n, epilogue="none", rows="T", wtype="q4_1"):
    return {"family": "matmul", "K": K, "parts": [{"type": wtype, "n": x} for x in n],
            "epilogue": epilogue, "rows": rows}


def norm(rows="T"):
    return {"family": "norm_quant", "H": 576, "eps": 1e-5, "outputs": {"q8": True}, "rows": rows}


# (op, calls for each token or prompt)
MODEL = [
    ({"family": "embed", "H": 576, "V": 49152, "wtype": "q8_0"}, 1),
    ({"family": "rope_table", "n_rot": 64, "freq": FREQ, "mscale": 1.0}, 1),
    (norm(), 60),
    (matmul(576, 576, 192, 192), 30),
    ({"family": "rope_kv", **HEADS, **ROTATE}, 30),
    ({"family": "attn", **HEADS, "scale": 0.125, "window": 0}, 30),
    ({"family": "quant", "K": 576}, 30),
    (matmul(576, 576, epilogue="add"), 30),
    (matmul(576, 1536, 1536, epilogue="swiglu"), 30),
    ({"family": "quant", "K": 1536}, 30),
    (matmul(1536, 576, epilogue="add"), 30),
    (matmul(576, 49152, rows="L", wtype="q8_0"), 1),
]


def build(row, folder):
    """Renders, compiles and links all kernels with bench.c: (descriptors, program)."""
    header, lanes = ROWS[row][:2]
    folder.mkdir(parents=True, exist_ok=True)
    ops = [dict(op, hw={"isa": header, "vec_f32": lanes}) for op, _ in MODEL]
    (folder / "ops.json").write_text(json.dumps({"ops": ops, "types": [], "language": "c"}))
    render = BUILD / "tests" / "kernel" / "render"
    subprocess.run([render, ROOT / "templates", folder / "ops.json", folder], check=True)
    descriptors = json.loads((folder / "index.json").read_text())
    (folder / "table.c").write_text(kernels.table_source(descriptors))
    sources = [folder / f"{d['name']}.c" for d in descriptors] + [folder / "table.c"]
    return descriptors, link(row, folder, sources)


def link(row, folder, sources):
    command = command_for(row)
    sources = sources + [ROOT / "tests" / "bench" / "kernels" / "bench.c", ROOT / "runtime" / "pool.c",
                         ROOT / "runtime" / "base" / "err.c"]
    objects = [compile_one(command, s, folder) for s in sources]
    subprocess.run([*command, *objects, "-o", folder / "bench", "-lpthread"], check=True)
    return folder / "bench"


def evaluate(text, n_rows):
    names = {"T": n_rows, "L": n_rows, "slots": 1, "ctx": 8192,
             "ceil_div": lambda a, b: -(-a // b), "min": min}
    return eval(text, {"__builtins__": {}}, names)


def time_kernel(program, index, d, n_rows, pos, a):
    """Best seconds of one call."""
    n_ctas = 1
    for axis in d["grid"]:
        n_ctas *= evaluate(axis, n_rows)
    operands = [("w" if o["param"][0] == "w" else "") + str(evaluate(o["bytes"], n_rows))
                for o in d["operands"]]
    weights = sum(int(o[1:]) for o in operands if o[0] == "w")
    copies = max(1, min(400, (96 << 20) // max(weights, 1))) if weights > 4096 and n_rows == 1 else 1
    args = [index, n_ctas, n_rows, pos, a.threads, copies, a.seconds, *operands]
    out = subprocess.run([program, *map(str, args)], check=True, stdout=subprocess.PIPE, text=True)
    return float(out.stdout.split()[0]), weights


def macs_of(op, n_rows):
    if op["family"] != "matmul":
        return 0
    return op["K"] * sum(p["n"] for p in op["parts"]) * n_rows


def report(program, descriptors, n_rows, pos, a):
    total = 0.0
    for index, ((op, calls), d) in enumerate(zip(MODEL, descriptors)):
        if a.only and a.only not in d["name"]:
            continue
        rows = 1 if op.get("rows") == "L" else n_rows
        seconds, weights = time_kernel(program, index, d, rows, pos, a)
        total += calls * seconds
        rate = f"{weights / seconds * 1e-9:6.1f} GB/s" if weights > 4096 else " " * 11
        macs = macs_of(op, rows)
        rate += f" {macs / seconds * 1e-9:7.1f} GMAC/s" if macs else ""
        print(f"{d['name'][:58]:58} {calls:3} x {seconds * 1e6:9.1f} us {rate}")
    print(f"{n_rows} rows from position {pos}: {total * 1e3:.2f} ms, {n_rows / total:.0f} tokens/s")


# The literals of the 1536 -> 576 product that become run-time values, as they stand in its text.
RUN_TIME = [("* 15360", "* STRIP_BYTES"), ("* 1536", "* K"), ("* 48", "* K_32"),
            ("* 96", "* K_16"), (" += 48", " += K_32"), (" += 96", " += K_16"),
            ("a < 6;", "a < ATOMS;"), ("* 576", "* N"), (" += 576", " += N"), ("576 - at", "N - at"),
            ("strip < 36", "strip < N_STRIPS")]
DIMS = "extern const uint32_t K, K_32, K_16, ATOMS, STRIP_BYTES, N, N_STRIPS;\n"
VALUES = (f"#include <stdint.h>\n{DIMS}"
          "const uint32_t K = 1536, K_32 = 48, K_16 = 96, ATOMS = 6, STRIP_BYTES = 15360, N = 576,\n"
          "               N_STRIPS = 36;\n")


def specialised(row, folder, descriptors, a):
    """The same product with literal and with run-time dims, taking turns."""
    index = next(i for i, (op, _) in enumerate(MODEL) if op.get("K") == 1536 and "parts" in op)
    d = descriptors[index]
    other = folder / "run_time"
    other.mkdir(exist_ok=True)
    text = (folder / f"{d['name']}.c").read_text()
    head, body = text.split("/* q4_1: group g", 1)
    for literal, name in RUN_TIME:
        assert literal in body, literal
        body = body.replace(literal, name)
    (other / "kernel.c").write_text(head + DIMS + "\n/* q4_1: group g" + body)
    (other / "dims.c").write_text(VALUES)
    (other / "table.c").write_text(kernels.table_source([d]))
    run_time = link(row, other, [other / n for n in ("kernel.c", "dims.c", "table.c")])
    for n_rows, pos in ((1, 512), (512, 0)):
        best = [1e9, 1e9]
        for _ in range(5):
            for k, (program, at) in enumerate(((folder / "bench", index), (run_time, 0))):
                best[k] = min(best[k], time_kernel(program, at, d, n_rows, pos, a)[0])
        print(f"{n_rows} rows: literal {best[0] * 1e6:.1f} us, run-time {best[1] * 1e6:.1f} us, "
              f"ratio {best[1] / best[0]:.2f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--row", default="x86-64-v4-vnni", choices=list(ROWS))
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--only", default="")
    p.add_argument("--specialised", action="store_true")
    a = p.parse_args()
    folder = BUILD / "bench" / "kernels" / a.row
    descriptors, program = build(a.row, folder)
    if a.specialised:
        return specialised(a.row, folder, descriptors, a)
    report(program, descriptors, 1, 512, a)
    report(program, descriptors, 512, 0, a)


if __name__ == "__main__":
    main()
