"""Cubins of whole programs, by NVRTC in lagen and by nvcc: as many as there are different kernels, whatever the number of
layers; the same bytes from two folders; every row of a GPU compiles what was proved for it."""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import program  # noqa: E402
import toolkit  # noqa: E402
from program import LAGEN, OPTIONS, WORK, run  # noqa: E402
from toolkit import BUILD, tap  # noqa: E402

ALL = "LAGEN_TEST_ALL" in os.environ


def model(recipe, layers):
    path = WORK / f"{recipe}-{layers}.gguf"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        run([LAGEN, "synth", f"synth/{recipe}", "--layers", layers, "-o", path])
    return path


def cubins(folder):
    """{name: digest} of the program's cubins, all of which were checked."""
    listed = json.loads((folder / "cubins.json").read_text())["kernels"]
    planned = json.loads((folder / "launches.json").read_text())["kernels"]
    assert len(listed) == len(planned) == len(list((folder / "cubin").glob("*.cubin")))
    assert all(k["registers"] <= k["register_cap"] and k["local_bytes"] == 0 for k in listed), listed
    return {k["name"]: k["sha256"] for k in listed}


def by_nvrtc(name, row, gguf):
    folder = WORK / name
    run(["rm", "-rf", folder])
    return cubins(program.build(name, row, *OPTIONS, "--compiler", "nvrtc", gguf=gguf, command="emit")[0])


def by_nvcc(name, row, gguf):
    run(["rm", "-rf", WORK / name])
    return cubins(program.build(name, row, *OPTIONS, gguf=gguf, env=dict(os.environ))[0])


def layers_add_no_cubins():
    toolkit.nvrtc()
    two = by_nvrtc("layers2", "sm_120a", model("llama-tiny", 2))
    five = by_nvrtc("layers5", "sm_120a", model("llama-tiny", 5))
    assert two == five and len(two) > 15, (two, five)


def nvcc_makes_the_same_in_two_folders():
    toolkit.nvcc()
    if not ALL:
        raise tap.Skip("two builds of a whole program by nvcc: with --all; one kernel: test_nvcc.py")
    one = by_nvcc("here", "sm_90a", model("llama-tiny", 2))
    other = by_nvcc("a longer folder/there", "sm_90a", model("llama-tiny", 5))
    assert one == other


def every_row_compiles_by_nvrtc():
    toolkit.nvrtc()
    listed = json.loads(run([LAGEN, "targets", "--json"]).stdout)
    rows = [r["name"] for r in listed if r["name"].startswith("sm_")]
    assert len(rows) >= 16, rows
    # in short, the first and the last of them: what has least, and what is newest
    for row in rows if ALL else (rows[0], rows[-1]):
        by_nvrtc("row", row, model("llama-wide", 2))


TESTS = [layers_add_no_cubins, nvcc_makes_the_same_in_two_folders, every_row_compiles_by_nvrtc]

if __name__ == "__main__":
    if BUILD.name == "san":
        t = tap.Tap()
        t.skip("cubins of programs", "emitted programs are not sanitized; the plain run has them")
        sys.exit(t.done())
    tap.main(TESTS)
