"""Emitted programs for the GPU tests: built into the build folder, with nvcc or its stand-in
(fake_nvcc), and run on the recorder or on softgpu in the driver's place."""

import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import toolkit
from toolkit import BUILD, ROOT

import emitted

# each test's own: some change a program's files, and tests run side by side
WORK = BUILD / "tests" / "gpu" / pathlib.Path(sys.argv[0]).stem
LAGEN = ROOT / "build" / "lagen"
OPTIONS = ["--ctx", "512", "--chunk", "64", "--slots", "3", "--attn", "f32"]  # the CPU program's bits
SETTINGS = {
    "name": "NVIDIA H200",
    "compute_major": 9,
    "compute_minor": 0,
    "sms": 132,
    "memory_bytes": 4 << 30,
    "smem_per_cta_bytes": 232448,
    "smem_per_sm_bytes": 233472,
    "cluster_ctas_max": 8,
}


def run(command, env=None, check=True, cwd=None):
    p = subprocess.run(
        [str(c) for c in command],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert (
        not check or p.returncode == 0
    ), f"{' '.join(map(str, command))}: {p.returncode}\n{p.stdout}{p.stderr}"
    return p


def fake_env(**bends):
    """An environment in which nvcc is the stand-in."""
    env = dict(os.environ, PATH=f"{ROOT / 'tests/gpu/fake_nvcc'}:{os.environ['PATH']}")
    env.update({f"FAKE_NVCC_{k.upper()}": str(v) for k, v in bends.items()})
    return env


def model():
    path = WORK / "tiny.gguf"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        run([LAGEN, "synth", "synth/llama-tiny", "-o", path])
    return path


def long_model():
    """The same with a context of 262,144 tokens in its header."""
    path = WORK / "tiny-long.gguf"
    data = bytearray(model().read_bytes())
    at = data.index(b"llama.context_length") + len("llama.context_length") + 4
    data[at : at + 4] = struct.pack("<I", 1 << 18)
    path.write_bytes(data)
    return path


def build(name, arch, *options, env=None, lagen=LAGEN, command="build", check=True, gguf=None):
    """`lagen build` (or emit) of a model into WORK/name; the folder and the finished process."""
    folder = WORK / name
    with emitted.ready(folder) if command == "build" else emitted.locked(folder):
        p = run(
            [lagen, command, "-m", gguf or model(), "--arch", arch, "-o", folder, *options],
            env=env or fake_env(),
            check=check,
        )
    return folder, p


def settings(name, **changes):
    """A settings file of the recorder."""
    path = WORK / f"{name}.recorder"
    path.write_text("".join(f"{k} {v}\n" for k, v in {**SETTINGS, **changes}.items()))
    return path


def driver_env(driver, settings_file, **more):
    return dict(
        os.environ, LAGEN_CUDA_DRIVER=str(driver), LAGEN_RECORDER=str(settings_file), **more
    )


def request(folder):
    """tests/gpu/request.c linked with the program's objects in place of its CLI."""
    out = folder / "request"
    objects = sorted(
        p
        for p in (folder / "obj").rglob("*.o")
        if "main_cli" not in p.name and "server" not in str(p.relative_to(folder))
    )
    run(
        [
            "cc",
            "-std=c11",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            f"-I{folder}/runtime",
            f"-I{ROOT}/runtime",
            ROOT / "tests/gpu/request.c",
            *objects,
            "-o",
            out,
            "-lcrypto",
            "-ledit",
            "-ljansson",
            "-lpthread",
            "-ldl",
            "-lm",
        ]
    )
    return out


# ---- softgpu in the driver's place

CXX = (
    "g++ -std=c++17 -O1 -fPIC -ffp-contract=off -fno-strict-aliasing -Wno-unknown-pragmas"
).split()


def soft_sources(folder, kernels, bend):
    """One source with all kernels of the program, each in a namespace of its own, and a table. A bend is (family, [(old
    text, new text), ..]): the first kernel of the family that has all of the texts gets others."""
    bent = bend is not None
    text = '#include "isa_cuda.h"\n#include "harness.h"\n'
    rows = ""
    (folder / "soft").mkdir(exist_ok=True)
    for i, k in enumerate(kernels):
        d = k["descriptor"]
        path = f"../src/{k['name']}.cu"
        own = (folder / "src" / f"{k['name']}.cu").read_text()
        if bend is not None and k["family"] == bend[0] and all(old in own for old, _ in bend[1]):
            for old, new in bend[1]:
                own = own.replace(old, new)
            (folder / "soft" / f"bent_{k['name']}.cu").write_text(own)
            path, bend = f"bent_{k['name']}.cu", None
        text += f'namespace k{i} {{\n#include "{path}"\n}}\n'
        text += (
            f"static void soft_{i}(const void *p) {{\n"
            f'    k{i}::{k["name"]}(*(const k{i}::{k["name"]}_params *)p);\n}}\n'
        )
        n_operands = len(d["params"]) - 1
        rows += f'    {{"{k["name"]}", soft_{i}, {n_operands}, {d["block"]}, {emitted.smem_bytes(d)}, 0}},\n'
    text += f"const soft_entry soft_kernels[] = {{\n{rows}}};\n"
    text += f"const uint32_t n_soft_kernels = {len(kernels)};\n"
    assert not bent or bend is None, "no kernel has the text that is to be replaced"
    source = folder / "soft" / ("bent.cpp" if bent else "kernels.cpp")
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    return source


def softgpu(folder, kernels, bend=None, san=()):
    """A driver that executes the kernels of the program in `folder` on this machine, or Skip."""
    if shutil.which("g++") is None:
        raise toolkit.tap.Skip("g++ is not installed")
    here = ROOT / "tests" / "softgpu"
    source = soft_sources(folder, kernels, bend)
    out = folder / "soft" / ("libcuda_soft.so" if bend is None else "libcuda_bent.so")
    newest = max(
        p.stat().st_mtime
        for p in [
            source,
            ROOT / "build/librec.a",
            *here.glob("*"),
            *(folder / "src").glob("*.cu"),
            *(folder / "src/lib").glob("*"),
        ]
    )
    if out.exists() and out.stat().st_mtime > newest:
        return out
    includes = [f"-I{folder}/src/lib", f"-I{here}", f"-I{ROOT}/runtime"]
    recorder = ROOT / ("build/san/librec.a" if san else "build/librec.a")
    run([*CXX, *san, *includes, "-c", source, "-o", source.with_suffix(".o")])
    for name in ("softgpu.c", "driver.c", "switch.S"):
        run(
            [
                "cc",
                "-std=gnu11",
                "-O2",
                "-fPIC",
                *san,
                *includes,
                "-c",
                here / name,
                "-o",
                folder / f"soft/{name}.o",
            ]
        )
    objects = [folder / "soft" / f"{n}.o" for n in ("softgpu.c", "driver.c", "switch.S")]
    objects.append(source.with_suffix(".o"))
    run(
        [
            "g++",
            "-shared",
            *san,
            *objects,
            "-Wl,--whole-archive",
            recorder,
            "-Wl,--no-whole-archive",
            "-o",
            out,
            "-lpthread",
        ]
    )
    return out


def without_tiles(folder):
    """The test hook: one launch gets all positions of an axis that the planner had cut."""
    step = folder / "src" / "step.c"
    text, n = re.subn(r"base \+= 65535\b", "base += 4294967295", step.read_text())
    text = re.sub(
        r"- base < 65535 \? (n_\w+) - base : 65535",
        r"- base < 4294967295 ? \1 - base : 4294967295",
        text,
    )
    assert n > 0, "nothing was cut"
    step.write_text(text)
