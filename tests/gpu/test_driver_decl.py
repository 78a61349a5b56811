"""Our declarations of the CUDA driver API and of NVRTC against the toolkit's headers: decl.c and
decl_nvrtc.c are made of static assertions. That they can fail is shown by bending one row of each
kind."""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import toolkit  # noqa: E402
from toolkit import ROOT, tap  # noqa: E402

DECL = ROOT / "tests" / "gpu" / "decl.c"


def compile_decl(include, runtime):
    command = ["cc", "-std=gnu11", "-fsyntax-only", f"-I{runtime}", f"-I{include}", str(DECL)]
    p = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return p.returncode == 0, p.stderr


def declarations_agree():
    ok, text = compile_decl(toolkit.include_dir(), ROOT / "runtime")
    assert ok, text


def nvrtc_declarations_agree():
    include = toolkit.include_dir()
    if not (include / "nvrtc.h").exists():
        raise tap.Skip("no nvrtc.h here")
    p = subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-fsyntax-only",
            f"-I{ROOT}/gen",
            f"-I{include}",
            ROOT / "tests/gpu/decl_nvrtc.c",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert p.returncode == 0, p.stderr


BENDS = [
    ("driver.def", "cuMemAlloc_v2", "cuMemAlloc", "cuMemAlloc is not the versioned name"),
    (
        "driver.def",
        "cuMemFree_v2, (rt_cu_ptr at)",
        "cuMemFree_v2, (void *at)",
        "cuMemFree_v2 differs",
    ),
    ("driver.def", "cuCtxCreate_v4", "cuCtxCreate_v3", "cuCtxCreate_v3"),
    ("abi.h", "unsigned smem_bytes;", "", "smem_bytes"),
    (
        "abi.h",
        "RT_CU_ILLEGAL_ADDRESS = 700",
        "RT_CU_ILLEGAL_ADDRESS = 701",
        "RT_CU_ILLEGAL_ADDRESS is not",
    ),
]


def bent_declarations_are_found():
    include = toolkit.include_dir()
    for name, old, new, message in BENDS:
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "cuda").mkdir()
            for f in ("driver.def", "abi.h"):
                text = (ROOT / "runtime" / "cuda" / f).read_text()
                assert f != name or old in text, old
                (pathlib.Path(folder) / "cuda" / f).write_text(
                    text.replace(old, new) if f == name else text
                )
            ok, text = compile_decl(include, folder)
            assert (
                not ok and message in text
            ), f"{name}: '{old}' -> '{new}': {text or 'it compiled'}"


if __name__ == "__main__":
    tap.main([declarations_agree, nvrtc_declarations_agree, bent_declarations_are_found])
