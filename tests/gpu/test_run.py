"""tests/gpu/run on machines that lack something: it says what, at once, and with an exit status of its own; and the folder
that it makes to be carried."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import toolkit  # noqa: E402
from toolkit import ROOT, tap  # noqa: E402

NEEDED = ("bash", "dirname", "sed", "head", "tr")
# what nvidia-smi says of an RTX 4090
SMI = """#!/bin/sh
case $1 in
-L) echo "GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-0)" ;;
*=name*) echo "NVIDIA GeForce RTX 4090, 580.95.05, 8.9" ;;
*) echo 8.9 ;;
esac
"""
NOTHING = "#!/bin/sh\nexit 1\n"


def said(tools, *options, **env):
    """Exit status and words of tests/gpu/run where these tools are: {name: text of a script, or None for the true one}."""
    with tempfile.TemporaryDirectory() as folder:
        for name in NEEDED:
            tools = {**tools, name: None}
        for name, text in tools.items():
            path = pathlib.Path(folder) / name
            if text is None:
                path.symlink_to(subprocess.run(["which", name], capture_output=True, text=True).stdout.strip())
            else:
                path.write_text(text)
                path.chmod(0o755)
        command = [ROOT / "tests/gpu/run", *options]
        p = subprocess.run(command, env={**env, "PATH": folder}, capture_output=True, text=True, timeout=60)
        return p.returncode, p.stdout + p.stderr


def no_gpu_and_no_nvcc_are_named():
    for tools, words in (({}, "needs nvcc on PATH (CUDA toolkit 13) and an NVIDIA GPU"), ({"nvcc": NOTHING}, "needs an NVIDIA GPU"),
                         ({"nvidia-smi": SMI}, "needs nvcc on PATH"), ({"nvcc": NOTHING, "nvidia-smi": NOTHING}, "needs an NVIDIA GPU")):
        for options in ([], ["--prepare"], ["--refusals"], ["--programs"]):
            code, text = said(tools, *options)
            assert code == 77 and words in text and "SKIP" in text and "--only-prepare" in text, (code, text)


def what_cannot_be_here_is_refused():
    here = {"nvcc": NOTHING, "nvidia-smi": SMI, "ninja": NOTHING, "cc": NOTHING, "python": NOTHING}
    for options, words in ((["--arch", "sm_90"], "--arch sm_90: the GPU here is sm_89"), (["--sanitize"], "no compute-sanitizer on PATH"),
                           (["--prepare", "--arch", "sm_89"], "needs Python with numpy and gguf"), (["--arch"], "--arch wants a value"),
                           (["--families", "quant"], "--families goes with --prepare"), (["--nix"], "unknown option --nix"),
                           (["--only-prepare", "--programs"], "name the GPU's row by --arch, as sm_89")):
        code, text = said(here, *options, PYTHON="python")
        assert code == 2 and words in text, (options, code, text)
    code, text = said({**here, "ninja": NOTHING, "python": "#!/bin/sh\nexit 0\n"}, "--prepare", PYTHON="python")
    assert code == 1 and "4090" in text, (code, text)  # as far as ninja, which fails here
    code, text = said({}, "--help")
    assert code == 0 and "--families A,B" in text and text.rstrip().endswith("77: no GPU or no nvcc here."), text


def a_folder_of_some_families_holds_all_it_needs():
    try:
        import gguf  # noqa: F401
        import numpy  # noqa: F401
    except ImportError:
        raise tap.Skip("numpy and gguf are not here")
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "gpu"
        render = pathlib.Path(folder) / "tests/kernel/render"  # a build folder of its own: others are at work in the usual one
        render.parent.mkdir(parents=True)
        render.symlink_to(ROOT / "build/tests/kernel/render")
        env = dict(os.environ, LAGEN_BUILD=folder)
        command = [sys.executable, ROOT / "tests/gpu/prepare.py", "--out", out]
        subprocess.run([*command, "quant", "rope_table"], env=env, check=True, capture_output=True)
        names = {p.name for p in out.iterdir()}
        assert {"unit0.cu", "kernels.cu", "kernels.h", "gpu_table.c", "plain_table.c", "plain_names.h", "in.bin.gz", "include"} <= names
        assert {p.name.split("_none_")[0] for p in out.glob("k_*.cu")} == {"k_quant", "k_rope_table"}, names
        flags = ["-std=c11", "-D_DEFAULT_SOURCE", "-fsyntax-only", "-I", out / "include", "-I", out, "-include", out / "plain_names.h"]
        subprocess.run(["cc", *flags, *sorted(out.glob("*.c"))], check=True)
        p = subprocess.run([*command, "quants"], env=env, capture_output=True, text=True)
        assert p.returncode == 1 and "no kernel family 'quants'" in p.stderr, p.stderr


TESTS = [no_gpu_and_no_nvcc_are_named, what_cannot_be_here_is_refused, a_folder_of_some_families_holds_all_it_needs]

if __name__ == "__main__":
    if os.environ.get("LAGEN_BUILD", "build").endswith("san"):
        t = tap.Tap()
        t.skip("tests/gpu/run", "nothing of it is sanitized; the plain run has it")
        sys.exit(t.done())
    tap.main(TESTS)
