"""Makes the folder that tests/gpu/run builds and runs on a machine with a GPU and a CUDA toolkit, and little else:
build/gpu, or what --out names, has every emitted kernel, CUDA and plain C, the headers they include, and operands for all cases, or, with
names of families as arguments, for theirs (all of them are more than 100 MB)."""
import argparse
import gzip
import pathlib
import shutil
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "softgpu"))
import numpy as np  # noqa: E402

import soft  # noqa: E402
import test_attn_f16  # noqa: E402
from soft import cpu  # noqa: E402

KERNELS_PER_UNIT = 4


def plain_table(descriptors):
    text = cpu.table_source(descriptors).replace('#include "harness.h"', '#include "model_abi.h"\n#include "kernels.h"')
    text = text[:text.index("const kernel_entry")] + "const plain_entry plain_kernels[] = {\n"
    text += "".join(f'    {{"{d["name"]}", call_{d["name"]}}},\n' for d in descriptors)
    return text + f"}};\nconst uint32_t n_plain_kernels = {len(descriptors)};\n"


def gpu_unit(some):
    """Some kernels, each in a namespace of its own, with a function that launches it."""
    text = '#include "isa_cuda.h"\n'
    for i, d in some:
        smem = soft.smem_bytes(d)
        text += f"""namespace k{i} {{
#include "{d['name']}.cu"
}}
extern "C" int launch_{i}(const void *p, const uint32_t grid[3]) {{
    cudaFuncSetAttribute(k{i}::{d['name']}, cudaFuncAttributeMaxDynamicSharedMemorySize, {smem});
    k{i}::{d['name']}<<<dim3(grid[0], grid[1], grid[2]), {d['block']}, {smem}>>>(*(const k{i}::{d['name']}_params *)p);
    return cudaGetLastError();
}}
"""
    return text


def gpu_table(descriptors):
    text = '#include "kernels.h"\n'
    text += "".join(f"int launch_{i}(const void *p, const uint32_t grid[3]);\n" for i in range(len(descriptors)))
    text += "const gpu_entry gpu_kernels[] = {\n"
    text += "".join(f'    {{"{d["name"]}", launch_{i}}},\n' for i, d in enumerate(descriptors))
    return text + f"}};\nconst uint32_t n_gpu_kernels = {len(descriptors)};\n"


def shared_operands(variants, step, op, family):
    """What only CUDA kernels have, by name: bytes at the beginning, and whether they are counters."""
    more = {}
    for _, v in variants:
        for o in v["operands"]:
            if o["param"] not in family.operands:
                more[o["param"]] = (soft.all_operands(v, step, op, family)[o["param"]].tobytes(), o["access"] == "both")
    return more


def record(plain, d, step, op, family, variants):
    """One record of kernels.cu; variants: (kernel, descriptor, whether its rows are a prompt's in f16)."""
    operands, more = family.operands, shared_operands([v[:2] for v in variants], step, op, family)
    names = [o["param"] for o in d["operands"]] + list(more)
    out = [struct.pack("<5I", plain, cpu.n_ctas(d, step), step.n_rows, len(step.slot), len(step.logit))]
    out += [a.tobytes() for a in (step.token, step.seq, step.pos, step.slot, step.logit)]
    out.append(struct.pack("<I", len(variants)))
    for i, v, prompt in variants:
        mine = [names.index(o["param"]) for o in v["operands"]]
        out.append(struct.pack(f"<{6 + len(mine)}I", i, prompt, *soft.grid_of(v, step), len(mine), *mine))
    limits = family.limits(test_attn_f16.ERROR).astype(np.float32).tobytes() if any(v[2] for v in variants) else b""
    out.append(struct.pack("<I", len(limits) // 4) + limits)
    out.append(struct.pack("<2I", len(names), len(d["operands"])))
    for o in d["operands"]:
        data = operands[o["param"]].tobytes()
        out.append(struct.pack("<2I", o["access"] != "read", len(data)) + data + bytes(-len(data) % 4))
    for data, counts in more.values():
        out.append(struct.pack("<2I", 2 + counts, len(data)) + data + bytes(-len(data) % 4))
    return b"".join(out)


def write_records(plain, layouts, cases, gpu, out):
    ran = set()
    with gzip.GzipFile(out / "in.bin.gz", "wb", compresslevel=1, mtime=0) as f:
        for index, op, step, family in cpu.runs_of(plain, layouts):
            if op["family"] == "matmul" and op["parts"][0]["n"] > 30000 and step.n_rows == 1:
                continue  # the largest operands once only: the folder has to travel
            variants = [(i, gpu[i], o.get("prompt") == "f16") for i, (of, o, _) in enumerate(cases) if of == index and
                        (o.get("role") != "decode" or (len(step.logit) if op.get("rows") == "L" else step.n_rows)
                         <= soft.DECODE_ROWS)]
            f.write(record(index, plain[index], step, op, family, variants))
            ran.update(i for i, _, _ in variants)
    idle = [d["name"] for i, d in enumerate(gpu) if i not in ran]
    if idle:
        sys.exit(f"prepare: no operands for {', '.join(idle)}")


def copy_headers(out):
    folder = out / "include"
    for name in ("model_abi.h", "pool.h"):
        (folder / "base").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "runtime" / name, folder / name)
    for path in (ROOT / "runtime" / "base").glob("*.h"):
        shutil.copy(path, folder / "base" / path.name)
    for path in (ROOT / "templates" / "lib").glob("*.h"):
        shutil.copy(path, folder / path.name)
    for name in ("kernels.h", "kernels.cu"):
        shutil.copy(ROOT / "tests" / "gpu" / name, out / name)


def keep(families):
    known = {op["family"] for op, _ in cpu.CASES}
    for name in families:
        if name not in known:
            sys.exit(f"prepare: no kernel family '{name}': {', '.join(sorted(known))}")
    cpu.CASES[:] = [case for case in cpu.CASES if not families or case[0]["family"] in families]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build" / "gpu")
    parser.add_argument("families", nargs="*")
    a = parser.parse_args()
    out = a.out
    keep(a.families)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    plain, layouts, folder = cpu.render("plain")
    for d in plain:
        shutil.copy(folder / f"{d['name']}.c", out / f"{d['name']}.c")
    cases = soft.cases() + test_attn_f16.cases()
    gpu = soft.render([op for _, op, _ in cases], out)
    (out / "plain_table.c").write_text(plain_table(plain))
    # nvcc's host stubs are C functions with the kernels' names: the twins get others
    (out / "plain_names.h").write_text("".join(f"#define {d['name']} plain_{d['name']}\n" for d in plain))
    (out / "gpu_table.c").write_text(gpu_table(gpu))
    listed = list(enumerate(gpu))
    for at in range(0, len(listed), KERNELS_PER_UNIT):
        (out / f"unit{at // KERNELS_PER_UNIT}.cu").write_text(gpu_unit(listed[at:at + KERNELS_PER_UNIT]))
    write_records(plain, layouts, cases, gpu, out)
    copy_headers(out)
    size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    print(f"{out}: {len(gpu)} kernels, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
