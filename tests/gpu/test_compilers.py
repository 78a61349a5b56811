"""Who compiles is an input of a build: another nvcc, NVRTC or cc compiles again what it compiles, and nothing else; the same
one compiles nothing. With stand-ins, so that no toolkit is needed."""

import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import program  # noqa: E402
import toolkit  # noqa: E402
from program import OPTIONS, WORK, run  # noqa: E402
from toolkit import BUILD, ROOT, tap  # noqa: E402

TOOLS = WORK / "compilers"
CC = """#!/bin/sh
[ "$1" != --version ] || { echo "cc (stand-in) ${FAKE_CC_VERSION:-1}"; exit 0; }
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
[ $# -gt 1 ] && : > "$2" && chmod +x "$2"
exit 0
"""


def env(**more):
    """Every C compiler makes empty files; nvcc and NVRTC are stand-ins."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    for name in ("cc", "gcc", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-gcc"):
        (TOOLS / name).write_text(CC)
        (TOOLS / name).chmod(0o755)
    base = program.fake_env()
    return dict(base, PATH=f"{TOOLS}:{base['PATH']}", LD_LIBRARY_PATH=str(TOOLS), **more)


def times(folder):
    """{path: time} of what compilers made: cubins, objects, programs."""
    made = [*folder.glob("cubin/*.cubin"), *folder.rglob("*.o"), folder / "tiny-cli"]
    return {str(p.relative_to(folder)): p.stat().st_mtime_ns for p in made if p.exists()}


def made_anew(name, arch, options, environment):
    """The folder, and what of it a build with this environment makes."""
    before = times(WORK / name)
    folder = program.build(name, arch, *OPTIONS, *options, env=environment)[0]
    return folder, {path for path, time in times(folder).items() if before.get(path) != time}


def kernels(folder):
    listed = json.loads((folder / "cubins.json").read_text())["kernels"]
    return {f"cubin/{k['name']}.cubin" for k in listed}, {k["registers"] for k in listed}


def told(folder, key):
    return json.loads((folder / "manifest.json").read_text())[key]


def another_nvcc_compiles_all_kernels_again():
    shutil.rmtree(WORK / "by_nvcc", ignore_errors=True)
    folder, _ = made_anew("by_nvcc", "sm_90", [], env())
    cubins, registers = kernels(folder)
    assert len(cubins) > 10 and registers == {32}, registers
    assert told(folder, "cuda_compiler") == "nvcc 13.0.0 (fake)"
    folder, anew = made_anew("by_nvcc", "sm_90", [], env())
    assert anew == set(), anew
    folder, anew = made_anew("by_nvcc", "sm_90", [], env(FAKE_NVCC_VERSION="88", FAKE_NVCC_REGS="40"))
    assert kernels(folder) == (cubins, {40}) and told(folder, "cuda_compiler") == "nvcc 13.0.88 (fake)"
    # what says who compiled, what embeds the cubins, and the program: nothing else
    assert anew == cubins | {"obj/src/cubins.o", "obj/src/model.o", "tiny-cli"}, anew - cubins


def another_nvrtc_compiles_all_kernels_again():
    shutil.rmtree(WORK / "by_nvrtc", ignore_errors=True)
    first, other = TOOLS / "libnvrtc.so.13", TOOLS / "libnvrtc.so.13.0.99"
    environment = env()
    includes = [f"-I{ROOT}/gen", f"-I{ROOT}/runtime"]
    for p in (first, other):
        p.unlink(missing_ok=True)
    run(["cc", "-shared", "-fPIC", "-w", "-D_GNU_SOURCE", *includes, ROOT / "tests/gpu/fake_nvrtc.c", "-o", other])
    shutil.copy(other, first)
    options = ["--compiler", "nvrtc"]
    folder, _ = made_anew("by_nvrtc", "sm_90", options, environment)
    cubins, registers = kernels(folder)
    size = first.stat().st_size
    assert len(cubins) > 10 and registers == {32}, registers
    assert told(folder, "cuda_compiler") == f"NVRTC 13.0 (libnvrtc.so.13, {size} bytes)", told(folder, "cuda_compiler")
    folder, anew = made_anew("by_nvrtc", "sm_90", options, environment)
    assert anew == set(), anew
    first.unlink()
    first.symlink_to(other.name)  # an update that tells the same version
    folder, anew = made_anew("by_nvrtc", "sm_90", options, environment)
    assert told(folder, "cuda_compiler") == f"NVRTC 13.0 (libnvrtc.so.13.0.99, {size} bytes)"
    assert anew == {"obj/src/model.o", "tiny-cli"}, anew  # it has made the same cubins
    folder, anew = made_anew("by_nvrtc", "sm_90", options, env(FAKE_NVRTC_MINOR="1", FAKE_NVCC_REGS="40"))
    assert kernels(folder) == (cubins, {40}) and told(folder, "cuda_compiler").startswith("NVRTC 13.1 (")
    assert anew == cubins | {"obj/src/cubins.o", "obj/src/model.o", "tiny-cli"}, anew - cubins


def another_cc_compiles_all_objects_again():
    shutil.rmtree(WORK / "by_cc", ignore_errors=True)
    folder, first = made_anew("by_cc", "native", [], env())
    objects = {path for path in first if path.endswith(".o")}
    assert len(objects) > 60 and told(folder, "compiler") == "cc (stand-in) 1"
    assert made_anew("by_cc", "native", [], env())[1] == set()
    folder, anew = made_anew("by_cc", "native", [], env(FAKE_CC_VERSION="2"))
    assert anew == objects | {"tiny-cli"} and told(folder, "compiler") == "cc (stand-in) 2", objects - anew


TESTS = [
    another_nvcc_compiles_all_kernels_again,
    another_nvrtc_compiles_all_kernels_again,
    another_cc_compiles_all_objects_again,
]

if __name__ == "__main__":
    if BUILD.name == "san":
        t = tap.Tap()
        t.skip("who compiles", "lagen is not sanitized here; the plain run has it")
        sys.exit(t.done())
    tap.main(TESTS)
