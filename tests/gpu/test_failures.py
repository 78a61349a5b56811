"""Failures of a device under a whole program, at every call of a request: that request fails and says which launch, grid
and T, the next one is served with the same bits; a device that is gone ends the program with 70. Through the
command line (run, chat) and through the engine as a server uses it (request.c), emulated by softgpu."""

import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import program  # noqa: E402
import toolkit  # noqa: E402
from program import OPTIONS, WORK, run  # noqa: E402
from toolkit import BUILD, tap  # noqa: E402

INVALID_VALUE, ILLEGAL_ADDRESS = 1, 700
RUN = ["run", "--raw", "-p", "abc", "--greedy", "-n", 2, "--chunk", 2]
CHAT = ["chat", "--greedy", "-n", 2]


def gpu_program():
    folder = program.build("gpu", "sm_90", *OPTIONS)[0]
    kernels = json.loads((folder / "launches.json").read_text())["kernels"]
    return folder, program.softgpu(folder, kernels)


def call(folder, driver, command, text="", **settings):
    env = program.driver_env(driver, program.settings("failures", **settings))
    return subprocess.run(
        [str(c) for c in [folder / "tiny-cli", *command]],
        input=text,
        env=env,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )


def calls_of_requests(folder, driver, command, text=""):
    """{number: name} of the driver calls between the program's start and its end; the finished process."""
    log = WORK / "failures.log"
    p = call(folder, driver, command, text, log=log, log_calls=1)
    assert p.returncode == 0, p.stderr
    lines = [m.groups() for m in re.finditer(r"^call (\d+) (\w+)$", log.read_text(), re.M)]
    names = [name for _, name in lines]
    ready = len(names) - 1 - names[::-1].index("cuMemGetInfo_v2")  # the last call of the start
    end = len(names) - 1 - names[::-1].index("cuStreamSynchronize")  # of the last step
    return {int(n): name for n, name in lines[ready + 1 : end + 1]}, p


def says_where(name, text):
    """What an error must say, by the call that failed."""
    if name == "cuLaunchKernelEx":
        return re.search(r"launch \w+.*, grid \d+ x \d+ x \d+, T=\d+: cuLaunchKernelEx: CUDA_ERROR_", text)
    if name == "cuGraphLaunch":
        return re.search(r"graph of decode, \d+ launches, T=\d+: cuGraphLaunch: CUDA_ERROR_", text)
    return name in text and (name == "cuCtxSetCurrent" or "T=" in text)


def an_engine_survives_every_failed_call():
    folder, driver = gpu_program()
    for d in (driver, toolkit.recorder()):
        env = program.driver_env(d, program.settings("gpu"))
        p = run([program.request(folder), "failures", folder], env=env)
        made, named = map(int, re.findall(r"\d+", p.stdout))
        assert made > 100 and named > 60, p.stdout


def run_fails_at_every_call_and_says_where():
    folder, driver = gpu_program()
    calls, _ = calls_of_requests(folder, driver, RUN)
    assert {"cuLaunchKernelEx", "cuGraphLaunch"} <= set(calls.values()), calls
    for k, name in calls.items():
        p = call(folder, driver, RUN, fail_call=k, fail_code=INVALID_VALUE)
        assert p.returncode == 1 and says_where(name, p.stderr), (k, name, p.returncode, p.stderr)


def a_lost_device_ends_run_with_70():
    folder, driver = gpu_program()
    calls, _ = calls_of_requests(folder, driver, RUN)
    for k, name in calls.items():
        p = call(folder, driver, RUN, fail_call=k, fail_code=ILLEGAL_ADDRESS)
        assert p.returncode == 70, (k, name, p.returncode, p.stderr)
        assert f"{name}: CUDA_ERROR_ILLEGAL_ADDRESS" in p.stderr, (k, name, p.stderr)
        assert says_where(name, p.stderr), (k, name, p.stderr)


def chat_answers_the_next_line_after_every_failed_call():
    folder, driver = gpu_program()
    calls, alone = calls_of_requests(folder, driver, CHAT, "b\n")
    for k, name in calls.items():
        p = call(folder, driver, CHAT, "a\nb\n", fail_call=k, fail_code=INVALID_VALUE)
        assert p.returncode == 0 and says_where(name, p.stderr), (k, name, p.returncode, p.stderr)
        assert p.stdout.endswith(alone.stdout), (k, name, p.stdout, alone.stdout)


def a_lost_device_ends_chat_with_70():
    folder, driver = gpu_program()
    calls, _ = calls_of_requests(folder, driver, CHAT, "b\n")
    for k, name in calls.items():
        p = call(folder, driver, CHAT, "a\nb\n", fail_call=k, fail_code=ILLEGAL_ADDRESS)
        assert p.returncode == 70 and says_where(name, p.stderr), (k, name, p.returncode, p.stderr)


TESTS = [
    an_engine_survives_every_failed_call,
    run_fails_at_every_call_and_says_where,
    a_lost_device_ends_run_with_70,
    chat_answers_the_next_line_after_every_failed_call,
    a_lost_device_ends_chat_with_70,
]

if __name__ == "__main__":
    if BUILD.name == "san":
        t = tap.Tap()
        t.skip("failures of a device", "emitted programs are not sanitized; the plain run has them")
        sys.exit(t.done())
    tap.main(TESTS)
