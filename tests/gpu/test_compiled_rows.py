"""Where nvcc is: laguna-tiny and a dense model emitted, proved and compiled for three GPU rows, with --all for every one, each cubin
read and found to be what was proved (step 12b). The host side is left to a stand-in for cc, which other tests have no need of.
LAGEN_ROWS=sm_80,sm_86 names rows, such as one that was changed."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

LAGEN = ROOT / "build" / "lagen"
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
ON_PUSH = ("sm_89", "sm_90a", "sm_121a")
CC = """#!/bin/sh
[ "$1" != --version ] || { echo "cc (stand-in) 1.0"; exit 0; }
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
[ $# -gt 1 ] && : > "$2" && chmod +x "$2"
exit 0
"""


def stand_ins():
    """A PATH in which every C compiler makes empty files, and nvcc is itself, with a true compiler behind it."""
    tools = FOLDER / "tools"
    tools.mkdir()
    for name in ("cc", "gcc", "x86_64-linux-gnu-gcc", "aarch64-linux-gnu-gcc"):
        (tools / name).write_text(CC)
        (tools / name).chmod(0o755)
    (tools / "nvcc").write_text(f'#!/bin/sh\nexec {shutil.which("nvcc")} -ccbin {shutil.which("g++")} "$@"\n')
    (tools / "nvcc").chmod(0o755)
    return dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")


def compiled(model, arch, env):
    out = FOLDER / "p"
    shutil.rmtree(out, ignore_errors=True)
    p = subprocess.run([LAGEN, "build", "-m", model, "--arch", arch, "--ctx", "1024", "--slots", "2", "-o", out], env=env,
                       capture_output=True, text=True)
    assert p.returncode == 0 and "cubins are what was proved" in p.stderr, p.stderr[-1500:]
    cubins = json.loads((out / "cubins.json").read_text())
    assert len(list((out / "cubin").glob("*.cubin"))) == len(json.loads((out / "launches.json").read_text())["kernels"]), cubins


def main():
    t = tap.Tap()
    if shutil.which("nvcc") is None or shutil.which("g++") is None:
        t.skip("rows compiled", "no nvcc or g++ here")
        return t.done()
    env = stand_ins()
    known = json.loads(subprocess.run([LAGEN, "targets", "--json"], capture_output=True).stdout)
    rows = [r["name"] for r in known if r["kind"] == "gpu" and (os.environ.get("LAGEN_TEST_ALL") or r["name"] in ON_PUSH)]
    wanted = os.environ.get("LAGEN_ROWS")
    dense = FOLDER / "llama-576.gguf"
    subprocess.run([LAGEN, "synth", "synth/llama-576", "--layers", "1", "-o", dense], check=True, capture_output=True)
    for arch in wanted.split(",") if wanted else rows:
        for model in (ROOT / "models" / "laguna-tiny" / "laguna-tiny.gguf", dense):
            def test(model=model, arch=arch):
                compiled(model, arch, env)

            test.__name__ = f"{model.stem} {arch}"
            t.run(test)
    WORK.cleanup()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
