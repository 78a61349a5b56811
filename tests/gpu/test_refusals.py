"""The recorder answers to what must be refused as its table says (runtime/recorder/refusals.def), and the table says what a
card answered (refusals.<row>.txt, what `tests/gpu/run --refusals` printed there). The same program run on a GPU
says whether the table is right, and is seen to say where it is not."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import toolkit  # noqa: E402
from toolkit import ROOT, tap  # noqa: E402

HERE = ROOT / "tests" / "gpu"
RECORDING = HERE / "refusals.sm_90.txt"
SETTINGS = (
    "compute_major 9\ncompute_minor 0\ncluster_ctas_max 8\n"
    "smem_per_cta_bytes 232448\nsmem_per_sm_bytes 233472\n"
)


def build(folder, table=None):
    """The program and two cubins in `folder`; returns the command. `table`: text in place of refusals.def."""
    nvcc = toolkit.nvcc()
    if table is not None:
        (pathlib.Path(folder) / "recorder").mkdir()
        (pathlib.Path(folder) / "recorder/refusals.def").write_text(table)
    for name, arch in (("own", "sm_90"), ("other", "sm_80")):
        subprocess.run(
            [nvcc, "-cubin", f"-arch={arch}", HERE / "refusals.cu", "-o", f"{folder}/{name}.cubin"],
            check=True,
        )
    subprocess.run(
        [
            "cc",
            "-std=c11",
            f"-I{folder}",
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


def on_the_recorder(table=None):
    """The program's exit status and lines."""
    with tempfile.TemporaryDirectory() as folder:
        command = build(folder, table)
        (pathlib.Path(folder) / "recorder.txt").write_text(SETTINGS)
        env = dict(
            os.environ,
            LAGEN_CUDA_DRIVER=str(toolkit.recorder()),
            LAGEN_RECORDER=f"{folder}/recorder.txt",
        )
        p = subprocess.run(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        return p.returncode, p.stdout.splitlines()


def rows():
    """{case: name of its code} of the table."""
    text = (ROOT / "runtime/recorder/refusals.def").read_text()
    return dict(re.findall(r"^REC_REFUSAL\((\w+), RT_CU_(\w+)\)$", text, re.M))


def name_of(code):
    return "CUDA_" + ("SUCCESS" if code == "SUCCESS" else f"ERROR_{code}")


def differences(recording, table):
    """Each case whose code is not that of the table, and those that one of them lacks."""
    said = dict(re.findall(r"^(?:ok |DIFFERS) (\w+) \d+ (CUDA_\w+)", recording, re.M))
    wanted = {case: name_of(code) for case, code in table.items()}
    return [
        f"{case}: recorded {said.get(case, 'nothing')}, the table has {wanted.get(case, 'nothing')}"
        for case in sorted({*said, *wanted})
        if said.get(case) != wanted.get(case)
    ]


def table_is_what_a_card_answered():
    recording = RECORDING.read_text()
    assert differences(recording, rows()) == [], differences(recording, rows())
    taken = re.findall(r"^ok  (.+): 0 CUDA_SUCCESS$", recording, re.M)
    assert taken == ["65535 rows on y", "1024 threads", "49152 bytes of shared memory"], taken
    assert "ok  after all of them the context is sound (0)\n" in recording


def a_row_unlike_the_recording_is_named():
    recording, table = RECORDING.read_text(), rows()
    for case, code in table.items():
        other = "SUCCESS" if code != "SUCCESS" else "INVALID_VALUE"
        less = {k: v for k, v in table.items() if k != case}
        shorter = re.sub(rf"^.* {case} .*\n", "", recording, flags=re.M)
        for bent in ((recording, {**table, case: other}), (recording, less), (shorter, table)):
            found = differences(*bent)
            assert len(found) == 1 and found[0].startswith(f"{case}: "), (case, found)


def recorder_follows_its_table():
    status, lines = on_the_recorder()
    assert status == 0 and all(line.startswith("ok ") for line in lines) and len(lines) == len(rows()) + 4, lines
    said = {line.split()[1]: line.split()[3] for line in lines[: len(rows())]}
    assert said == {case: name_of(code) for case, code in rows().items()}, said


def every_row_that_is_wrong_is_found():
    """The program with a table of which each code is another than what it is answered with."""
    text = (ROOT / "runtime/recorder/refusals.def").read_text()
    wrong, n = re.subn(r"^(REC_REFUSAL\(\w+, RT_CU_\w+)\)$", r"\1 + 1)", text, flags=re.M)
    status, lines = on_the_recorder(wrong)
    differ = [line.split()[1] for line in lines if line.startswith("DIFFERS") and "the table says" in line]
    assert status == 1 and n == len(rows()) and differ == list(rows()), lines


if __name__ == "__main__":
    tap.main([table_is_what_a_card_answered, a_row_unlike_the_recording_is_named, recorder_follows_its_table,
              every_row_that_is_wrong_is_found])
