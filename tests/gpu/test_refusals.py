"""The recorder answers to what must be refused as its table says (runtime/recorder/refusals.def); the
same program run on a GPU says whether the table is right."""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import toolkit  # noqa: E402
from toolkit import ROOT, tap  # noqa: E402

HERE = ROOT / "tests" / "gpu"
SETTINGS = (
    "compute_major 9\ncompute_minor 0\ncluster_ctas_max 8\n"
    "smem_per_cta_bytes 232448\nsmem_per_sm_bytes 233472\n"
)


def build(folder):
    """The program and two cubins in `folder`; returns the command."""
    nvcc = toolkit.nvcc()
    for name, arch in (("own", "sm_90"), ("other", "sm_80")):
        subprocess.run(
            [nvcc, "-cubin", f"-arch={arch}", HERE / "refusals.cu", "-o", f"{folder}/{name}.cubin"],
            check=True,
        )
    subprocess.run(
        [
            "cc",
            "-std=c11",
            f"-I{ROOT}/runtime",
            HERE / "refusals.c",
            ROOT / "runtime/cuda/driver.c",
            ROOT / "runtime/base/err.c",
            "-o",
            f"{folder}/refusals",
            "-ldl",
        ],
        check=True,
    )
    return [f"{folder}/refusals", f"{folder}/own.cubin", f"{folder}/other.cubin"]


def recorder_follows_its_table():
    with tempfile.TemporaryDirectory() as folder:
        command = build(folder)
        (pathlib.Path(folder) / "recorder.txt").write_text(SETTINGS)
        env = dict(
            os.environ,
            LAGEN_CUDA_DRIVER=str(toolkit.recorder()),
            LAGEN_RECORDER=f"{folder}/recorder.txt",
        )
        p = subprocess.run(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert p.returncode == 0 and "DIFFERS" not in p.stdout, p.stdout
        assert p.stdout.count("ok ") == 33, p.stdout


if __name__ == "__main__":
    tap.main([recorder_follows_its_table])
