"""CUDA kernels on softgpu: renders ops, compiles the emitted text for this machine with its sanitizers, and
runs it on records of operands. Cases and operands are those of tests/kernel."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "kernel"), str(ROOT / "tests" / "oracle")]
from emitted import smem_bytes  # noqa: E402
import test_kernels as cpu  # noqa: E402

from rows import BUILD  # noqa: E402
WORK = BUILD / "tests" / "softgpu"
DECODE_ROWS = 8  # most rows of the "decode" role
# Most multiply-adds of experts in one step: 130 rows of the two largest products took a seventh of the time of all runs, and
# have their tiles at 33 rows; other products keep 130.
EXPERTS_MOST = float("inf") if os.environ.get("LAGEN_TEST_ALL") else 60e6
# What kernels may see of a GPU row: the least of what any has.
HW = {"isa": "isa_cuda.h", "smem_per_cta_bytes": 99 * 1024, "smem_per_sm_bytes": 100 * 1024,
      "smem_reserved_bytes": 1024, "regs_per_sm": 65536, "threads_per_sm": 1536,
      "warp_threads": 32, "dp4a": True, "cp_async": True, "mma": True}
SAN = "-g1 -fsanitize=address,undefined -fno-sanitize-recover=all".split()
CXX = ("-std=c++17 -O1 -ffp-contract=off -fno-strict-aliasing -Wall -Wextra -Wno-unknown-pragmas "
       "-Wno-unused-function -Werror").split()
CC = "-std=c11 -O1 -ffp-contract=off -Wall -Wextra -Werror".split()
INCLUDES = [ROOT / "templates" / "lib", ROOT / "runtime", ROOT / "tests" / "softgpu"]


def why_not():
    """Why this machine cannot run softgpu, or None."""
    return None if shutil.which("g++") else "g++ is not installed"


def roles(op):
    """The op tables that a GPU program makes of one: two where a family has roles."""
    op = dict(op, hw=HW)
    if op["family"] == "attn":
        return [dict(op, role="decode", split=True), dict(op, role="prefill")]
    if op["family"] == "rope_kv":
        return [dict(op, count=3)]
    return [dict(op, role=r) for r in ("decode", "prefill")] if op["family"] in ("matmul", "router_parts") else [op]


def cases():
    """(index of the CPU case, op table, steps) for each kernel; decode takes steps of few rows only."""
    out = []
    for index, (op, steps) in enumerate(cpu.CASES):
        for variant in roles(op):
            few = variant.get("role") == "decode"
            picked = [k for k, seqs in enumerate(steps) if experts_work(op, seqs) <= EXPERTS_MOST
                      and (not few or rows_of(op, seqs) <= DECODE_ROWS)]
            out.append((index, variant, picked))
    return out


def experts_work(op, seqs):
    """Multiply-adds of a step of a product of experts; 0 of other ops."""
    return rows_of(op, seqs) * op["n_used"] * op["K"] * op["n"] * len(op["parts"]) if "stage" in op else 0


def rows_of(op, seqs):
    n = sum(s[2] for s in seqs)
    return min(n, 3) if op.get("rows") == "L" else n


def render(ops, folder):
    """Descriptors of the ops; their text lies in folder/<name>.cu."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ops.json").write_text(json.dumps({"ops": ops, "types": [], "language": "cu"}))
    subprocess.run([BUILD / "tests/kernel/render", ROOT / "templates", folder / "ops.json", folder], check=True)
    return json.loads((folder / "index.json").read_text())


def early(d):
    """A bit for each operand that the kernel may read before its wait."""
    names = [p["name"] for p in d["params"]]
    return sum(1 << names.index(name) for name in d["early"])


def unit(folder, number, descriptors):
    """A source that holds some kernels, each in a namespace of its own."""
    text = '#include "isa_cuda.h"\n#include "harness.h"\n'
    for i, d in descriptors:
        text += f'namespace k{i} {{\n#include "{d["name"]}.cu"\n}}\n'
        text += (f'extern "C" void soft_{i}(const void *p);\n'
                 f'void soft_{i}(const void *p) {{\n'
                 f'    k{i}::{d["name"]}(*(const k{i}::{d["name"]}_params *)p);\n}}\n')
    path = folder / f"unit{number}.cpp"
    path.write_text(text)
    return path


def table(folder, descriptors):
    text = '#include "harness.h"\n'
    text += "".join(f'extern "C" void soft_{i}(const void *p);\n' for i in range(len(descriptors)))
    text += "const soft_entry soft_kernels[] = {\n"
    for i, d in enumerate(descriptors):
        text += f'    {{"{d["name"]}", soft_{i}, {len(d["params"]) - 1}, {d["block"]}, {smem_bytes(d)}, {early(d)}}},\n'
    text += f"}};\nconst uint32_t n_soft_kernels = {len(descriptors)};\n"
    path = folder / "table.cpp"
    path.write_text(text)
    return path


def compile_one(command, source, folder, seen):
    """The object of a source, from the cache if the text in `seen` has not changed."""
    digest = hashlib.sha256(" ".join(map(str, command)).encode() + seen).hexdigest()[:16]
    obj = folder / f"{source.name}.{digest}.o"
    if not obj.exists():
        for old in folder.glob(f"{source.name}.????????????????.o"):
            old.unlink()
        part = obj.with_suffix(".part")
        subprocess.run([*command, "-c", source, "-o", part], check=True)
        part.rename(obj)
    return obj


def headers():
    paths = [p for folder in INCLUDES for p in sorted(folder.glob("*.h"))]
    return b"".join(p.read_bytes() for p in paths)


def build(descriptors, folder, per_unit=4):
    """The harness program with these kernels."""
    own, jobs = headers(), []
    includes = [f"-I{i}" for i in [folder, *INCLUDES]]
    for at in range(0, len(descriptors), per_unit):
        some = list(enumerate(descriptors))[at:at + per_unit]
        source = unit(folder, at // per_unit, some)
        seen = source.read_bytes() + b"".join((folder / f"{d['name']}.cu").read_bytes() for _, d in some)
        jobs.append((["g++", *CXX, *SAN, *includes], source, seen))
    source = table(folder, descriptors)
    jobs.append((["g++", *CXX, *SAN, *includes], source, source.read_bytes()))
    for name in ("tests/softgpu/harness.c", "tests/softgpu/softgpu.c", "tests/softgpu/switch.S",
                 "runtime/base/err.c"):
        jobs.append((["gcc", *CC, *SAN, *includes], ROOT / name, (ROOT / name).read_bytes()))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda j: compile_one(j[0], j[1], folder, own + j[2]), jobs))
    program = folder / "harness"
    subprocess.run(["g++", *SAN, *objects, "-o", program], check=True)
    return program


def grid_of(d, step):
    return [cpu.evaluate(e, step) for e in d["grid"]]


def all_operands(d, step, op, family):
    """The family's operands, and what only CUDA kernels have: what ctas share, counters from 0 on, all else unset."""
    more = {o["param"]: np.full(cpu.n_bytes(d, o, step, op), 0 if o["access"] == "both" else 255, np.uint8)
            for o in d["operands"] if o["param"] not in family.operands}
    return dict(family.operands, **more)


def record(index, d, step, op, operands):
    """One record of harness.c; operands must have the size that the descriptor declares."""
    n_prompt = getattr(step, "n_prompt", 0)
    out = [struct.pack("<8I", index, *grid_of(d, step), step.n_rows, len(step.slot), len(step.logit), n_prompt)]
    out += [a.tobytes() for a in (step.token, step.seq, step.pos, step.slot, step.logit)]
    out.append(struct.pack("<I", len(d["operands"])))
    for o in d["operands"]:
        data = operands[o["param"]].tobytes()
        assert len(data) == cpu.n_bytes(d, o, step, op), f"{d['name']}: size of {o['param']}"
        out.append(struct.pack("<2I", o["access"] != "read", len(data)))
        out.append(data + bytes(-len(data) % 4))
    return b"".join(out)


def split_output(data, runs, descriptors):
    """The written operands by name, for each run (index, op, step, family)."""
    at, results = 0, []
    for index, op, step, family in runs:
        got = {}
        for o in descriptors[index]["operands"]:
            if o["access"] != "read":
                n = cpu.n_bytes(descriptors[index], o, step, op)
                got[o["param"]] = data[at:at + n]
                at += n
        results.append(got)
    assert at == len(data)
    return results


def equal(op, got, plain):
    """What the kernel has written is what the twin has; rows begin to be counted at 0."""
    counts = np.frombuffer(got["count"], np.int32) if op["family"] == "rope_kv" else np.zeros(1)
    return not counts.any() and all(bytes(got[k]) == plain[k].tobytes() for k in plain)


def execute(program, descriptors, runs):
    """Runs a harness: (results, None), or (None, what it said) if it ended with an error."""
    folder = program.parent
    (folder / "in.bin").write_bytes(b"".join(
        record(i, descriptors[i], s, op, all_operands(descriptors[i], s, op, f)) for i, op, s, f in runs))
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0")
    done = subprocess.run([program, folder / "in.bin", folder / "out.bin"], env=env, stderr=subprocess.PIPE, text=True)
    (folder / "in.bin").unlink()
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line or "harness:" in line or "runtime error" in line]
        return None, (lines or ["exit %d" % done.returncode])[0]
    return split_output((folder / "out.bin").read_bytes(), runs, descriptors), None
