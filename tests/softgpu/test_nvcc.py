"""Emitted CUDA text through nvcc for rows of each class: no warning, registers within the cap that the
descriptor promises, no local memory, no static shared memory, and the same cubin from two folders."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import soft
import test_attn_f16
from soft import cpu

ROWS = ["sm_80", "sm_90a", "sm_100a", "sm_121a"]
FLAGS = "-cubin -std=c++17 -fmad=false -Werror all-warnings -Xptxas -v".split()
MORE_ROWS = ["sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_103a", "sm_110", "sm_110a", "sm_120", "sm_120a", "sm_121"]
PER_FAMILY = 2
# With --all every kernel, and products in every type, for the first rows; for the others some of each family, and what had no more than this to spare.
ALL = "LAGEN_TEST_ALL" in os.environ
SPARE_REGISTERS = 16


def picked(cases):
    """Some cases of each family and role, those of most types last in the table among them."""
    groups = {}
    for i, (_, op, _) in enumerate(cases):
        groups.setdefault((op["family"], op.get("role"), op.get("prompt")), []).append(i)
    return sorted({i for g in groups.values() for i in (g[0], *g[len(g) * 3 // 4:][:PER_FAMILY - 1])})


def of_each_type():
    """Products of one and of two atoms in every quantised type: a model file may have any."""
    for path in sorted((soft.ROOT / "templates" / "quant").glob("*.lua")):
        if 'module.kind = "int"' not in path.read_text():
            continue
        for K in (256, 512):
            one, two = [[{"type": path.stem, "n": 256, "bias": False}] * n for n in (1, 2)]
            for role in ("decode", "prefill"):
                yield {"family": "matmul", "role": role, "rows": "T", "K": K, "parts": one, "epilogue": "add"}
                yield {"family": "matmul", "role": role, "rows": "T", "K": K, "parts": two, "epilogue": "swiglu"}
            experts = {"K": K, "n": 256, "E": 12, "n_used": 4, "shared": [{"type": path.stem}] * 2}
            for family in ("matvec_moe", "moe_matmul"):
                yield {"family": family, "stage": "gated", "parts": [{"type": path.stem}] * 2, "outputs": {"q8": True}, **experts}
                yield {"family": family, "stage": "down", "parts": [{"type": path.stem}], **experts, "shared": [{"type": path.stem}]}


def cap_of(d):
    """The register cap of docs/kernels.md for the rows above: 65536 registers, given in units of 256."""
    warps = d["ctas_per_sm"] * d["block"] // 32
    return min(255, 65536 // warps // 256 * 256 // 32)


def compile_kernel(d, row, folder, out):
    """What is wrong with the kernel's cubin, or None; registers to spare."""
    source = folder / f"{d['name']}.cu"
    out.mkdir(parents=True, exist_ok=True)
    cubin = out / f"{d['name']}.{row}.cubin"
    command = ["nvcc", *FLAGS, f"-arch={row}", f"-I{soft.ROOT / 'templates' / 'lib'}", "-o", cubin, source]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        return done.stdout, 0
    used = int(re.search(r"Used (\d+) registers", done.stdout).group(1))
    spare = cap_of(d) - used
    if spare < 0:
        return f"{used} registers, the cap is {cap_of(d)}", spare
    if not re.search(r"\b0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", done.stdout):
        return "local memory: " + done.stdout, spare
    return "static shared memory" if re.search(r"bytes smem", done.stdout) else None, spare


def check_rows(t, rows, kernels, folder):
    """Checks the kernels on the rows; those that have little to spare on one of them."""
    jobs = [(d, row) for row in rows for d in kernels]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda j: compile_kernel(*j, folder, folder / "a"), jobs))
    for row in rows:
        bad = [f"{d['name']}: {why}" for (d, r), (why, _) in zip(jobs, found) if r == row and why]
        t.check(f"{row}_takes_the_kernels", not bad, "\n".join(bad))
    return list({d["name"]: d for (d, _), (_, spare) in zip(jobs, found) if spare <= SPARE_REGISTERS}.values())


def main():
    t = cpu.tap.Tap()
    if shutil.which("nvcc") is None or cpu.SANITIZED:
        t.skip("nvcc_takes_the_kernels", "nvcc is not installed" if not cpu.SANITIZED else "the plain run has it")
        return t.done()
    cases = soft.cases() + test_attn_f16.cases()
    folder = soft.WORK / "nvcc"
    ops = [op for _, op, _ in cases] + ([dict(op, hw=soft.HW) for op in of_each_type()] if ALL else [])
    rendered = soft.render(ops, folder)
    descriptors = list({d["name"]: d for d in rendered}.values())
    some = [rendered[i] for i in picked(cases)]
    full = check_rows(t, ROWS, descriptors if ALL else some, folder)
    if ALL:
        check_rows(t, MORE_ROWS, some + [d for d in full if d not in some], folder)
    d = descriptors[0]
    compile_kernel(d, ROWS[1], folder, folder / "another folder")
    a, b = ((folder / f / f"{d['name']}.{ROWS[1]}.cubin").read_bytes() for f in ("a", "another folder"))
    t.check("two_folders_give_the_same_cubin", a == b)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
