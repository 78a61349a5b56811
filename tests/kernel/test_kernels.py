"""Every kernel case on every CPU row that runs here: against float64, and the bits of the plain C
twin. Rows that need another processor run under qemu, or are skipped by name.

The real templates are rendered by tests/kernel/render, compiled with the flags of emitted code, and
run by harness.c between guard pages. Compiled programs are kept in the build folder by the hash of
all that went into them."""
import concurrent.futures
import json
import os
import pathlib
import struct
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402
import cases  # noqa: E402
import cases_moe  # noqa: E402
import reference  # noqa: E402
import reference_moe  # noqa: E402
from reference import Step  # noqa: E402
import emitted  # noqa: E402
from rows import ROWS, SANITIZED, WORK, command_for, compile_one, why_not, with_headers_ready  # noqa: E402

FAMILIES = {**reference.FAMILIES, **reference_moe.FAMILIES}
TYPES = ["f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k",
         "iq4_nl", "iq4_xs", "mxfp4", "nvfp4", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s",
         "iq1_s", "iq1_m"]
SHARED = ROOT.parent / "shared" / "facts" / "dequant_vectors.txt"  # made by another decoder

# Sanitized kernels compile slowly: a third of the cases, on the first of these rows that runs.
ALL = cases.CASES + cases_moe.CASES
CASES = ALL[1::3] if SANITIZED else ALL
SANITIZED_ROWS = ["x86-64-v3", "aarch64-v8.2", "plain"]


def render(row):
    """Renders all cases for a row: (descriptors, layouts by type, folder)."""
    header, lanes = ROWS[row][:2]
    folder = WORK / row
    folder.mkdir(parents=True, exist_ok=True)
    ops = [dict(op, hw={"isa": header, "vec_f32": lanes}) for op, _ in CASES]
    (folder / "ops.json").write_text(json.dumps({"ops": ops, "types": TYPES, "language": "c"}))
    subprocess.run([WORK / "render", ROOT / "templates", folder / "ops.json", folder], check=True)
    layouts = json.loads((folder / "layouts.json").read_text())
    return json.loads((folder / "index.json").read_text()), dict(zip(TYPES, layouts)), folder


def table_source(descriptors):
    """table.c: each kernel's parameter struct filled from an array of pointers."""
    lines = ['#include "harness.h"']
    for d in descriptors:
        fields = "".join(f"    {p['ctype']} {p['name']};\n" for p in d["params"])
        casts = ", ".join(f"params[{i}]" for i in range(len(d["params"])))
        lines += [f"typedef struct {d['name']}_params {{\n{fields}}} {d['name']}_params;",
                  f"void {d['name']}({d['name']}_params p, uint32_t cta_begin, uint32_t cta_end);",
                  f"static void call_{d['name']}(void *const *params, uint32_t a, uint32_t b) {{",
                  f"    {d['name']}(({d['name']}_params){{{casts}}}, a, b);\n}}"]
    lines.append("const kernel_entry kernels[] = {")
    for d in descriptors:
        lines.append(f'    {{"{d["name"]}", {len(d["params"]) - 1}, call_{d["name"]}}},')
    lines += ["};", f"const uint32_t n_kernels = {len(descriptors)};"]
    return "\n".join(lines) + "\n"


def build(row):
    """The harness program of a row: (descriptors, layouts, program). Other tests build that of `plain` too."""
    with emitted.locked(WORK / row):
        return build_alone(row)


def build_alone(row):
    """A program that is as it should be stays: another test may be running it."""
    descriptors, layouts, folder = render(row)
    (folder / "table.c").write_text(table_source(descriptors))
    command = command_for(row)
    command += ["-Og"] if row == "plain" else []  # -O1 takes six times as long; what the twin computes does not depend on it
    names = {d["name"] for d in descriptors}
    assert len(names) == len(descriptors), "two cases share a kernel symbol"
    command = with_headers_ready(row, command, folder)
    sources = [folder / f"{n}.c" for n in sorted(names)]
    sources += [folder / "table.c", ROOT / "tests" / "kernel" / "harness.c"]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda s: compile_one(command, s, folder), sources))
    program = folder / "harness"
    if not program.exists() or program.stat().st_mtime < max(o.stat().st_mtime for o in objects):
        subprocess.run([*command, *objects, "-o", program, "-lm"], check=True)
    return descriptors, layouts, program


def evaluate(expression, step):
    names = {"T": step.n_rows, "L": len(step.logit), "ceil_div": lambda a, b: -(-a // b), "min": min}
    return eval(expression, {"__builtins__": {}}, names)


def n_ctas(d, step):
    total = 1
    for axis in d["grid"]:
        total *= evaluate(axis, step)
    return total


def n_bytes(d, operand, step, op):
    return evaluate(operand["bytes"], step)


def record(index, d, step, op, operands):
    """One record of harness.c; operands must have the size that the descriptor declares."""
    out = [struct.pack("<5I", index, n_ctas(d, step), step.n_rows, len(step.slot), len(step.logit))]
    out += [a.tobytes() for a in (step.token, step.seq, step.pos, step.slot, step.logit)]
    out.append(struct.pack("<I", len(d["operands"])))
    for o in d["operands"]:
        data = operands[o["param"]].tobytes()
        assert len(data) == n_bytes(d, o, step, op), f"{d['name']}: size of {o['param']}"
        out.append(struct.pack("<2I", o["access"] != "read", len(data)))
        out.append(data + bytes(-len(data) % 4))
    return b"".join(out)


def runs_of(descriptors, layouts):
    """All (index, case, descriptor) with operands and expectations, the same for every row."""
    runs = []
    for index, (d, (op, steps)) in enumerate(zip(descriptors, CASES)):
        for k, seqs in enumerate(steps):
            rng = np.random.default_rng([index, k])
            step = Step(seqs, rng, op.get("V", 7))
            runs.append((index, op, step, FAMILIES[op["family"]](op, step, layouts, rng)))
    return runs


def execute(row, program, descriptors, runs):
    """Runs a harness on all runs; the written operands by name, for each run."""
    folder = program.parent
    files = folder / f"in.{os.getpid()}", folder / f"out.{os.getpid()}"
    with open(files[0], "wb") as f:
        for index, op, step, family in runs:
            f.write(record(index, descriptors[index], step, op, family.operands))
    subprocess.run([*ROWS[row][5], program, *files], check=True)
    data, at, results = np.fromfile(files[1], np.uint8), 0, []
    for index, op, step, family in runs:
        got = {}
        for o in descriptors[index]["operands"]:
            if o["access"] != "read":
                n = family.operands[o["param"]].nbytes
                got[o["param"]] = data[at:at + n]
                at += n
        results.append(got)
    assert at == len(data)
    for file in files:
        file.unlink()
    return results


def describe_run(op, step):
    short = {k: v for k, v in op.items() if k not in ("freq",)}
    return f"{json.dumps(short)} positions {step.pos[:1]}..{step.pos[-1:]} rows {step.n_rows}"


def check_float64(t, runs, results):
    """The first row against float64, one test for each case."""
    bad, right = {}, []
    for (index, op, step, family), got in zip(runs, results):
        good = family.check(got)
        right.append(good.all())
        if not good.all():
            bad.setdefault(index, f"{describe_run(op, step)}: {(~good).sum()} of {good.size} wrong")
    check_named(t, runs, right)
    for index, (op, _) in enumerate(CASES):
        name = op.get("case", f"{op['family']}_{index}_matches_float64")
        t.check(name, index not in bad, bad.get(index, ""))


# Cases of docs/cases.md, and which runs show them.
NAMED = {
    "A08 experts with no rows, and with all of them": lambda op, n: "E" in op and op["family"] != "router_topk" and n % 3,
    "A16 routers of 31, 32, 33, 128, 160, 256, 257 and 512 experts": lambda op, n: op["family"] == "router_topk",
    "A19 A21 rows of 64, 96, 192 and 320 columns": lambda op, n: op["family"] == "matmul" and op["K"] in (64, 96, 192, 320),
    "A20 vocabularies that are no whole number of strips": lambda op, n: op["family"] == "matmul"
    and op["parts"][0]["n"] in cases.VOCABULARIES,
    "A25 rows of several sequences that cross a tile together": lambda op, n: op["family"] == "moe_sort" and n == 67,
    "A24 A26 equal logits, -1e5, infinities and NaN": lambda op, n: op["family"] == "router_topk" and n > 8,
}


def check_named(t, runs, good):
    """good: for each run whether it was right."""
    for name, shows in NAMED.items():
        mine = [(run, ok) for run, ok in zip(runs, good) if shows(run[1], run[2].n_rows)]
        wrong = [describe_run(run[1], run[2]) for run, ok in mine if not ok]
        if mine or not SANITIZED:
            t.check(name, mine and not wrong, "\n".join(wrong[:5]))


def check_row(t, row, runs, results, plain):
    wrong = [describe_run(r[1], r[2]) for r, a, b in zip(runs, results, plain)
             if any(a[k].tobytes() != b[k].tobytes() for k in a)]
    t.check(f"{row}_gives_the_bits_of_plain", not wrong, "\n".join(wrong[:20]))


def check_alone(t, program, descriptors, runs, results):
    """Rows alone give the bits that they have among others: results do not depend on T."""
    single, places = [], []
    for i, (index, op, step, family) in enumerate(runs):
        if op["family"] in ("rope_kv", "moe_sort", "moe_matmul") or op.get("rows") == "L" or step.n_rows < 15:
            continue
        for row in (0, step.n_rows // 2, step.n_rows - 1):
            alone = Alone(descriptors[index], family, step, row)
            single.append((index, op, OneRow(step, row), alone))
            places.append((i, row))
    alone = execute(program.parent.name, program, descriptors, single)
    wrong = []
    for (i, row), got, run in zip(places, alone, single):
        for name, value in got.items():
            many = results[i][name].reshape(runs[i][2].n_rows, -1)[row]
            if value.tobytes() != many.tobytes():
                wrong.append(describe_run(run[1], run[2]) + f" {name}")
    t.check(f"{program.parent.name}_row_alone_has_the_same_bits", not wrong, "\n".join(wrong[:20]))


class OneRow:
    """A step of one row of another."""

    def __init__(self, step, row):
        self.seq, self.n_rows = np.zeros(1, np.uint32), 1
        self.pos, self.token = step.pos[row:row + 1], step.token[row:row + 1]
        self.slot, self.logit = step.slot[step.seq[row]:][:1], np.zeros(1, np.uint32)


class Alone:
    """The operands of one row: those whose size goes with T are cut."""

    def __init__(self, d, family, step, row):
        self.operands = {}
        for o in d["operands"]:
            a = family.operands[o["param"]]
            cut = "T" in o["bytes"]
            self.operands[o["param"]] = a.reshape(step.n_rows, -1)[row:row + 1] if cut else a


def check_products_agree(t, program, descriptors, layouts):
    """The two families that multiply experts, one by ids and one by sorted pairs, give the same bits."""
    pairs = [i for i, (op, _) in enumerate(CASES[:-1])
             if op["family"] == "matvec_moe" and CASES[i + 1][0]["family"] == "moe_matmul"]
    runs = []
    for index in pairs:
        for T in (1, 3, 8, 33):
            step = Step([(0, 0, T)], np.random.default_rng(T), 7)
            for i in (index, index + 1):
                made = FAMILIES["moe_matmul"](CASES[i][0], step, layouts, np.random.default_rng([index, T]))
                runs.append((i, CASES[i][0], step, made))
    results = execute(program.parent.name, program, descriptors, runs)
    wrong = []
    for (_, op, step, made), few, many in zip(runs[::2], results[::2], results[1::2]):
        if op["stage"] == "down":
            many = {"y": reference_moe.summed(op, made, many["y"])}
        if any(few[k].tobytes() != many[k].tobytes() for k in few):
            wrong.append(describe_run(op, step))
    t.check("experts_by_ids_and_by_tiles_give_the_same_bits", not wrong, "\n".join(wrong[:20]))


def read_vectors(path):
    """Blocks and their values, by type: {name: [(bytes, float32 bits)]}; "[name]" lines or the
    file's own name say which type."""
    name, found = path.stem, {}
    for line in path.read_text().splitlines():
        if line.startswith("["):
            name = line[1:line.index("]")].lower()
        elif line.startswith("block="):
            found.setdefault(name, []).append([bytes.fromhex(line[6:]), []])
        elif line and line[0] != "#" and "=" not in line and name in found:
            found[name][-1][1] += [int(word, 16) for word in line.split()]
    return found


class Vectors:
    """embed's operands with every row made of known blocks, and the values that must come out."""

    def __init__(self, op, step, layout, blocks):
        per_row = op["H"] // layout["qblock_elems"]
        which = np.arange(op["V"] * per_row) % len(blocks)
        rows = np.array([list(b) for b, _ in blocks], np.uint8)[which].reshape(op["V"], -1)
        values = np.array([v for _, v in blocks], np.uint32)[which].reshape(op["V"], -1)
        self.want = values[step.token]
        self.operands = {"w": reference.pack(layout, rows, op["H"]),
                         "y": np.zeros((step.n_rows, op["H"]), np.float32)}


def check_vectors(t, program, descriptors, layouts, files, ulps):
    """Dequantisation against files of known blocks, to some units of the last place."""
    vectors = {}
    for path in files:
        vectors.update(read_vectors(path))
    runs = []
    for index, (op, _) in enumerate(CASES):
        if op["family"] == "embed" and op["wtype"] in vectors:
            step = Step([(0, 0, op["V"])], np.random.default_rng(1), op["V"])
            known = Vectors(op, step, layouts[op["wtype"]], vectors[op["wtype"]])
            runs.append((index, op, step, known))
    results = execute(program.parent.name, program, descriptors, runs)
    for (index, op, step, known), got in zip(runs, results):
        bits = got["y"].view(np.int32).astype(np.int64).reshape(known.want.shape)
        off = np.abs(bits - known.want.view(np.int32)).max()
        t.check(f"{op['wtype']}_decodes_{files[0].parent.name}", off <= ulps, f"{off} ulp")


def first_row():
    """The row that is compared with float64, and that the others are compared with."""
    if not SANITIZED:
        return "plain"
    return next(row for row in SANITIZED_ROWS if why_not(row) is None)


def main():
    t = tap.Tap()
    first = first_row()
    descriptors, layouts, program = build(first)
    runs = runs_of(descriptors, layouts)
    plain = execute(first, program, descriptors, runs)
    check_float64(t, runs, plain)
    check_alone(t, program, descriptors, runs, plain)
    check_products_agree(t, program, descriptors, layouts)
    own = sorted((ROOT / "tests" / "vectors").glob("*.txt"))
    check_vectors(t, program, descriptors, layouts, own, 0)
    if SHARED.exists():
        check_vectors(t, program, descriptors, layouts, [SHARED], 1)
    else:
        t.skip("decodes_shared_vectors", f"{SHARED.name} is not beside the repository")
    for row in [] if SANITIZED else list(ROWS)[1:]:
        why = why_not(row)
        if why:
            t.skip(f"{row}_gives_the_bits_of_plain", why)
            continue
        descriptors, _, program = build(row)
        results = execute(row, program, descriptors, runs)
        check_row(t, row, runs, results, plain)
        check_alone(t, program, descriptors, runs, results)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
