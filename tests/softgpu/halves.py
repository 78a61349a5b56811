"""A CPU program whose attention of prompts is the GPU program's: f16 on tensor cores, the emitted CUDA text run by softgpu.

All other kernels of the two have the same bits, so it computes what the default program of `--arch sm_90a` computes
(tests/gpu/test_program.py compares the bits), many times as fast as softgpu runs the whole of that: fast enough to count KL over
many positions where there is no GPU (tests/oracle/count.py --halves).
"""
import json
import pathlib
import shlex
import subprocess

import emitted  # tests/oracle

ROOT = emitted.ROOT
HERE = pathlib.Path(__file__).resolve().parent
CXX = ["g++", "-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fno-strict-aliasing", "-Wno-unknown-pragmas"]
SUFFIX = "xprefillf16"
HEAD = """#include "isa_cuda.h"
#include <stdio.h>
#include <stdlib.h>
extern "C" {
#include "softgpu.h"
}
#define ceil_div(a, b) (((a) + (b) - 1) / (b))
"""
# The CPU's kernel by its name. One thread runs all ctas; rows that are no prompt's have the CPU's bits in it.
WRAPPER = """namespace k%(i)d {
#include "%(gpu)s.cu"
}
static void run_%(i)d(const void *p) {
    k%(i)d::%(gpu)s(*(const k%(i)d::%(gpu)s_params *)p);
}
extern "C" void %(cpu)s(k%(i)d::%(gpu)s_params p, uint32_t begin, uint32_t end) {
    const uint32_t T = p.step->n_rows;
    soft_launch l = {};
    lb_err err = {};
    l.kernel = run_%(i)d;
    l.params = &p;
    l.grid[0] = %(x)s, l.grid[1] = %(y)s, l.grid[2] = %(z)s;
    l.block = %(block)d;
    l.smem_bytes = %(smem)d;
    if (begin == 0 && end > 0 && !soft_run(&l, &err)) {
        fprintf(stderr, "%(gpu)s: %%s\\n", err.text);
        abort();
    }
}
"""


def kernels(folder):
    return {k["name"]: k["descriptor"] for k in json.loads((folder / "launches.json").read_text())["kernels"]}


def wrappers(cpu, gpu):
    """The source, and the kernels of the CPU program that it stands for."""
    theirs = kernels(gpu)
    pairs = [(k, k + SUFFIX) for k in kernels(cpu) if k + SUFFIX in theirs]
    assert pairs, "no attention of prompts in f16"
    text = HEAD
    for i, (ours, name) in enumerate(pairs):
        d = theirs[name]
        text += WRAPPER % {"i": i, "cpu": ours, "gpu": name, "block": d["block"], "smem": emitted.smem_bytes(d),
                           **dict(zip("xyz", d["grid"]))}
    return text, [k for k, _ in pairs]


def run(*command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr}")
    return done.stdout


def build(out, *options):
    """`lagen build` of a model with these options into the folder `out`; the path of the command line to run, with one thread."""
    with emitted.ready(out):
        cli = pathlib.Path(run(emitted.LAGEN, "build", *options, "--arch", "native", "-o", out, cwd=ROOT).splitlines()[-1])
    gpu, here = out / "gpu", out / "halves"
    run(emitted.LAGEN, "emit", *options, "--arch", "sm_90a", "--weights", "link", "-o", gpu, cwd=ROOT)
    text, names = wrappers(out, gpu)
    here.mkdir(exist_ok=True)
    (here / "attn.cpp").write_text(text)
    includes = [f"-I{d}" for d in (gpu / "src", gpu / "src" / "lib", HERE, ROOT / "runtime")]
    run(*CXX, *includes, "-c", here / "attn.cpp", "-o", here / "attn.o")
    run("cc", "-std=gnu11", "-O2", *includes, "-c", HERE / "softgpu.c", "-o", here / "softgpu.o")
    run("cc", "-c", HERE / "switch.S", "-o", here / "switch.o")
    link = shlex.split(run("ninja", "-C", out, "-t", "commands", cli.name).splitlines()[-1])
    words = [x for x in link if x not in [f"obj/src/{k}.o" for k in names]]
    words[words.index("-o") + 1] = made = f"{cli.name}-halves"
    run("g++", *(here / f"{n}.o" for n in ("attn", "softgpu", "switch")), *words[1:], cwd=out)
    return out / made
