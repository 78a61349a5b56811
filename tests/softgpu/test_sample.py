"""Sampling on a device: the CUDA kernels on softgpu, under sanitizers and in three orders, their plain twins, and the
sampler of runtime/, one test of one specification for all (device_sample.c). The tests of the test bend the kernels' text."""
import json
import os
import subprocess
import sys

import soft
from soft import ROOT, cpu

STAGES = ("tiles", "total", "pick")
# vocabulary: rows. Tiles are of 1,024 tokens up to 65,536, then of 2,048.
VOCABULARIES = {1: 24, 64: 26, 65: 26, 320: 70, 1025: 26, 2100: 50, 32001: 8, 65537: 4}
if "LAGEN_TEST_ALL" in os.environ:
    VOCABULARIES = {1: 60, 2: 60, 63: 60, 64: 60, 65: 60, 320: 400, 1023: 60, 1024: 60, 1025: 60, 2100: 200, 32001: 60,
                    49152: 30, 65536: 26, 65537: 26, 262144: 4}
SOURCES = ["runtime/sample.c", "runtime/sample_params.c", "runtime/cands.c", "runtime/rng.c", "runtime/pick.c",
           "runtime/base/arena.c", "runtime/base/err.c", "tests/softgpu/device_sample.c", "tests/softgpu/softgpu.c",
           "tests/softgpu/switch.S"]

# name, what it must show, stage, old text, new text; in the kernels for one vocabulary
SEEDS = [
    ("a_tile_of_one_token_too_many", "AddressSanitizer", "tiles", "2100 - first < 1024 ? 2100 - first : 1024;",
     "2100 - first < 1024 ? 2101 - first : 1024;"),
    ("barrier_missing_after_loading", "other words", "tiles", "        l[i] = logits[first + i];\n    }\n    isa_barrier();",
     "        l[i] = logits[first + i];\n    }"),
    ("barrier_missing_between_lists", "other words", "tiles", "half /= 2) {\n        isa_barrier();", "half /= 2) {"),
    ("order_of_equal_logits", "other words", "tiles", "isa_sample_key(l[i], first + i)", "isa_sample_key(l[i], first + (i ^ 1))"),
    ("barrier_missing_in_the_scan", "other words", "pick", "        c->sums[isa_warp()] = here;\n    }\n    isa_barrier();",
     "        c->sums[isa_warp()] = here;\n    }"),
    ("barrier_missing_in_the_merge", "other words", "pick", "s /= 2) {\n            isa_barrier();", "s /= 2) {"),
    ("a_known_candidate_too_many", "other words", "pick", "return key <= limit &&", "return key <= limit + 4096 &&"),
]


def ops(vocabularies):
    return [{"family": "sample", "rows": "L", "V": V, "stage": s, "hw": None} for V in vocabularies for s in STAGES]


def render(vocabularies, language, hw, folder):
    folder.mkdir(parents=True, exist_ok=True)
    listed = [dict(op, hw=hw) for op in ops(vocabularies)]
    (folder / "ops.json").write_text(json.dumps({"ops": listed, "types": [], "language": language}))
    subprocess.run([soft.BUILD / "tests/kernel/render", ROOT / "templates", folder / "ops.json", folder], check=True)
    return json.loads((folder / "index.json").read_text())


def plain_unit(folder, d):
    """The plain twin under a name of its own, and a function that calls it with parameters from an array."""
    name = d["name"]
    # the parameters' own types differ in const only
    casts = ", ".join(f"(void *)(uintptr_t)params[{i}]" for i in range(len(d["params"])))
    text = (f'#define {name} plain_{name}\n#include "{name}.c"\n'
            f"void call_{name}(const void *const *params, uint32_t a, uint32_t b);\n"
            f"void call_{name}(const void *const *params, uint32_t a, uint32_t b) {{\n"
            f"    plain_{name}(({name}_params){{{casts}}}, a, b);\n}}\n")
    path = folder / f"plain_{name}.c"
    path.write_text(text)
    return path


def cuda_unit(folder, some):
    text = '#include "isa_cuda.h"\n'
    for d in some:
        name = d["name"]
        text += (f'namespace n_{name} {{\n#include "{name}.cu"\n}}\nextern "C" void soft_{name}(const void *p);\n'
                 f"void soft_{name}(const void *p) {{\n    n_{name}::{name}(*(const n_{name}::{name}_params *)p);\n}}\n")
    path = folder / f"unit_{some[0]['name']}.cpp"
    path.write_text(text)
    return path


def table(folder, vocabularies, c, cu):
    text = '#include "device_sample.h"\nextern "C" {\n'
    text += "".join(f"void call_{d['name']}(const void *const *, uint32_t, uint32_t);\n" for d in c)
    text += "".join(f"void soft_{d['name']}(const void *);\n" for d in cu) + "}\n"
    text += "const sample_case sample_cases[] = {\n"
    for i, V in enumerate(vocabularies):
        three = range(3 * i, 3 * i + 3)
        tiles = int(cu[3 * i]["grid"][1])
        words = cu[3 * i]["covers"][0]["cols"][0]["tile"]
        text += (f"    {{{V}, {vocabularies[V]}, {tiles}, {words}, {{{', '.join('call_' + c[k]['name'] for k in three)}}},\n"
                 f"     {{{', '.join('soft_' + cu[k]['name'] for k in three)}}},\n"
                 f"     {{{', '.join(str(cu[k]['block']) for k in three)}}},\n"
                 f"     {{{', '.join(str(soft.smem_bytes(cu[k])) for k in three)}}}}},\n")
    text += f"}};\nconst uint32_t n_sample_cases = {len(vocabularies)};\n"
    path = folder / "cases.cpp"
    path.write_text(text)
    return path


def build(folder, vocabularies, seed=None):
    """The program for some vocabularies; a seed bends the text of one stage's kernels."""
    c = render(vocabularies, "c", {"isa": "isa_plain.h", "vec_f32": 16}, folder / "c")
    cu = render(vocabularies, "cu", soft.HW, folder / "cu")
    if seed is not None:
        for d in cu[STAGES.index(seed[2])::3]:
            path = folder / "cu" / f"{d['name']}.cu"
            text = path.read_text()
            assert seed[3] in text, f"{seed[0]}: {path.name} has no such text"
            path.write_text(text.replace(seed[3], seed[4]))
    own, san = soft.headers(), soft.SAN
    includes = [f"-I{i}" for i in [folder / "cu", *soft.INCLUDES]]
    cc, cxx = ["gcc", *soft.CC, *san, *includes], ["g++", *soft.CXX, *san, *includes]
    jobs = [(cc, ROOT / s, (ROOT / s).read_bytes()) for s in SOURCES]
    for d in c:
        unit = plain_unit(folder / "c", d)
        jobs.append((cc, unit, unit.read_bytes() + (folder / "c" / f"{d['name']}.c").read_bytes()))
    for at in range(0, len(cu), 3):
        unit = cuda_unit(folder, cu[at:at + 3])
        jobs.append((cxx, unit, unit.read_bytes() + b"".join((folder / "cu" / f"{d['name']}.cu").read_bytes() for d in cu[at:at + 3])))
    listed = table(folder, vocabularies, c, cu)
    jobs.append((cxx, listed, listed.read_bytes()))
    with soft.concurrent.futures.ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(lambda j: soft.compile_one(j[0], j[1], folder, own + j[2]), jobs))
    program = folder / "sample"
    subprocess.run(["g++", *san, *objects, "-o", program, "-lm"], check=True)
    return program


def run(program):
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0:detect_stack_use_after_return=0")
    return subprocess.run([program], env=env, capture_output=True, text=True)


def main():
    t = cpu.tap.Tap()
    if soft.why_not() or cpu.SANITIZED:
        t.skip("sampling on a device", soft.why_not() or "always built with sanitizers: the plain run has it")
        return t.done()
    (soft.WORK / "sample").mkdir(parents=True, exist_ok=True)
    p = run(build(soft.WORK / "sample", VOCABULARIES))
    t.check("A17 a device chooses the tokens of the host, vocabularies of any size", p.returncode == 0, p.stdout + p.stderr)
    t.note(p.stdout)
    for seed in SEEDS:
        p = run(build(soft.WORK / "sample_seed", {2100: 100}, seed))
        caught = p.returncode != 0 and seed[1] in p.stderr
        t.check(f"caught_{seed[0]}", caught, f"showed as {p.returncode}: {p.stderr[-400:]}")
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
