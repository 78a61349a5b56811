"""Emitted CUDA text through nvcc for rows of each class: no warning, registers within the cap that the
descriptor promises, no local memory, no static shared memory, and the same cubin from two folders."""
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

import soft
from soft import cpu

ROWS = ["sm_80", "sm_90a", "sm_100a", "sm_121a"]
FLAGS = "-cubin -std=c++17 -fmad=false -Werror all-warnings -Xptxas -v".split()
MORE_ROWS = ["sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_103a", "sm_110", "sm_110a", "sm_120", "sm_120a", "sm_121"]
PER_FAMILY = 2
ALL = "LAGEN_TEST_ALL" in os.environ  # every kernel for the first rows, some of each family for the others


def picked(cases):
    """Some cases of each family and role, those of most types last in the table among them."""
    groups = {}
    for i, (_, op, _) in enumerate(cases):
        groups.setdefault((op["family"], op.get("role")), []).append(i)
    return sorted({i for g in groups.values() for i in (g[0], *g[len(g) * 3 // 4:][:PER_FAMILY - 1])})


def cap_of(d):
    """The register cap of docs/kernels.md for the rows above: 65536 registers, given in units of 256."""
    warps = d["ctas_per_sm"] * d["block"] // 32
    return min(255, 65536 // warps // 256 * 256 // 32)


def compile_kernel(d, row, folder, out):
    """What is wrong with the kernel's cubin, or None."""
    source = folder / f"{d['name']}.cu"
    out.mkdir(parents=True, exist_ok=True)
    cubin = out / f"{d['name']}.{row}.cubin"
    command = ["nvcc", *FLAGS, f"-arch={row}", f"-I{soft.ROOT / 'templates' / 'lib'}", "-o", cubin, source]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        return done.stdout
    used = int(re.search(r"Used (\d+) registers", done.stdout).group(1))
    if used > cap_of(d):
        return f"{used} registers, the cap is {cap_of(d)}"
    if not re.search(r"\b0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", done.stdout):
        return "local memory: " + done.stdout
    return "static shared memory" if re.search(r"bytes smem", done.stdout) else None


def main():
    t = cpu.tap.Tap()
    if shutil.which("nvcc") is None or cpu.SANITIZED:
        t.skip("nvcc_takes_the_kernels", "nvcc is not installed" if not cpu.SANITIZED else "the plain run has it")
        return t.done()
    cases = soft.cases()
    folder = soft.WORK / "nvcc"
    descriptors = soft.render([op for _, op, _ in cases], folder)
    some, rows = picked(cases), ROWS + MORE_ROWS if ALL else ROWS
    jobs = [(descriptors[i], row) for row in rows for i in (range(len(cases)) if ALL and row in ROWS else some)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = list(pool.map(lambda j: compile_kernel(*j, folder, folder / "a"), jobs))
    for row in rows:
        bad = [f"{d['name']}: {why}" for (d, r), why in zip(jobs, wrong) if r == row and why]
        t.check(f"{row}_takes_the_kernels", not bad, "\n".join(bad))
    d = descriptors[0]
    compile_kernel(d, ROWS[1], folder, folder / "another folder")
    a, b = ((folder / f / f"{d['name']}.{ROWS[1]}.cubin").read_bytes() for f in ("a", "another folder"))
    t.check("two_folders_give_the_same_cubin", a == b)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
