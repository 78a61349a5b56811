"""Failures of a device under a whole program, at every call of a request: that request fails and says which launch, grid
and T, the next one is served with the same bits; a device that is gone ends the program with 70. Through the
command line (run, chat), the server, and the engine (request.c); emulated by softgpu where bits are compared."""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import program  # noqa: E402
import toolkit  # noqa: E402
from program import OPTIONS, WORK, run  # noqa: E402
from toolkit import BUILD, ROOT, tap  # noqa: E402

sys.path.insert(0, str(ROOT / "tests" / "server"))
import client  # noqa: E402

INVALID_VALUE, ILLEGAL_ADDRESS = 1, 700
COPIES = ("cuMemcpyHtoD_v2", "cuCtxSynchronize")  # of what the server restores
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


def says_where(name, text, in_step=True):
    """What an error must say, by the call that failed."""
    launch = r"launch \w+[^:]*, grid \d+ x \d+ x \d+"
    first = {
        "cuLaunchKernelEx": launch,
        "cuGraphLaunch": rf"graph of decode: {launch}, to {launch}",
        "cuStreamSynchronize": rf"running: {launch}, to {launch}",
    }
    if not in_step:
        return f"{name}: CUDA_ERROR_" in text
    return re.search(rf"{first.get(name, '[^:]+')}(, | of )T=\d+: {name}: CUDA_ERROR_", text)


def an_engine_survives_every_failed_call():
    folder, driver = gpu_program()
    for d in (driver, toolkit.recorder()):
        env = program.driver_env(d, program.settings("gpu"))
        p = run([program.request(folder), "failures", folder], env=env)
        calls, failures, named, behind = map(int, re.findall(r"\d+", p.stdout))
        assert calls > 60 and failures == calls + behind and named > failures - 16 and behind > 60, p.stdout


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
    assert {"cuLaunchKernelEx", "cuGraphLaunch"} <= set(calls.values()), calls
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
    folder, driver = gpu_program()[0], toolkit.recorder()
    calls, _ = calls_of_requests(folder, driver, CHAT, "b\n")
    for k, name in calls.items():
        p = call(folder, driver, CHAT, "a\nb\n", fail_call=k, fail_code=ILLEGAL_ADDRESS)
        assert p.returncode == 70 and says_where(name, p.stderr), (k, name, p.returncode, p.stderr)


def a_refused_graph_ends_run_with_the_launch():
    """Each kind of call behind the refusal fails too (request.c has every call), or is the device's last (70); no call at all
    is taken any more (70)."""
    folder, driver = gpu_program()
    calls, _ = calls_of_requests(folder, driver, RUN)
    k = next(n for n, name in calls.items() if name == "cuGraphLaunch")
    log = WORK / "failures.log"
    call(folder, driver, RUN, log=log, log_calls=1, fail_call=k)
    made = re.findall(r"^call (\d+) (\w+)$", log.read_text(), re.M)
    names = [name for n, name in made if int(n) > k]
    behind = names[: names.index("cuStreamSynchronize") + 1]
    assert len(behind) > 20, behind
    for name in sorted(set(behind)):
        m = behind.index(name) + 1
        for code, status in ((INVALID_VALUE, 1), (ILLEGAL_ADDRESS, 70)):
            p = call(folder, driver, RUN, fail_call=k, fail_again=m, fail_again_code=code, fail_times=2)
            said = "a graph was refused, then: " in p.stderr and says_where(name, p.stderr)
            assert p.returncode == status and said, (m, name, code, p.returncode, p.stderr)
    recorder = toolkit.recorder()
    for k, name in [(k, "cuGraphLaunch"), *calls_of_requests(folder, recorder, RUN)[0].items()]:
        p = call(folder, driver if name == "cuGraphLaunch" else recorder, RUN, fail_call=k, fail_again=1)
        assert p.returncode == 70 and "device lost: " in p.stderr, (k, name, p.returncode, p.stderr)


class Talks:
    """A server of one slot, asked for two answers in turns: each restores what the other put aside, reads more rows than
    few and decodes."""

    TEXTS = [
        2 * "the cat sees the dog and the bird. " + "and the bird sees a cat at the door ",
        2 * "a tree stands on the green hill. " + "and the hill is so green in the sun ",
    ]

    def __init__(self, folder, driver, name):
        self.log, self.orders = WORK / f"{name}.log", WORK / f"{name}.orders"
        file = program.settings(name, log=self.log, log_calls=1, orders=self.orders)
        env = program.driver_env(driver, file)
        self.server = client.Server("--slots", 1, program=str(folder / "tiny-server"), env=env)
        self.turn, self.at = 0, len(self.log.read_text())
        for _ in range(4):  # until both are stored
            self.ask()
        self.want = {1: self.ask().json["choices"], 0: self.ask().json["choices"]}
        self.names()
        self.ask()
        self.undisturbed = self.names()

    def names(self):
        """Names of the calls since the last look."""
        text = self.log.read_text()[self.at :]
        self.at += len(text)
        return re.findall(r"^call \d+ (\w+)$", text, re.M)

    def ask(self):
        self.turn ^= 1
        return self.server.post("/v1/completions", {"prompt": self.TEXTS[self.turn], "max_tokens": 3, "temperature": 0})

    def order(self, **settings):
        new = self.orders.with_suffix(".new")
        new.write_text("".join(f"{k} {v}\n" for k, v in settings.items()))
        new.rename(self.orders)


def a_server_answers_after_every_failed_call():
    """Of the copies that restore, three calls each and all alike, the first and the last."""
    folder, driver = gpu_program()
    talks = Talks(folder, driver, "talks")
    with talks.server:
        restored = sum(name in COPIES for name in talks.undisturbed) // 2 * 3
        step = ("cuMemcpyHtoDAsync_v2", "cuLaunchKernelEx", "cuMemcpyDtoHAsync_v2", "cuStreamSynchronize", "cuGraphLaunch")
        assert restored == 24 and set(talks.undisturbed[restored:]) == {"cuCtxSetCurrent", *step}, talks.undisturbed
        for k in [*range(1, 4), *range(restored - 2, len(talks.undisturbed) + 1)]:
            talks.names()
            talks.order(fail_call=k)
            reply = talks.ask()
            name = talks.names()[k - 1]
            assert reply.status == 500 and says_where(name, reply.error, k > restored), (k, name, reply.body)
            reply = talks.ask()
            assert reply.status == 200 and reply.json["choices"] == talks.want[talks.turn], (k, name, reply.body)
        assert talks.server.get("/health").status == 200


def a_lost_device_ends_the_server_with_70():
    """At each kind of call: that request and the health say it, the log says where."""
    folder, driver = gpu_program()

    def lose(k):
        talks = Talks(folder, driver, f"lost_{k}")
        name, restoring = talks.undisturbed[k - 1], k <= talks.undisturbed.index("cuMemcpyHtoDAsync_v2") - 1
        talks.order(fail_call=k, fail_code=ILLEGAL_ADDRESS)
        reply = talks.ask()
        assert reply.status == 503 and "lost" in reply.error, (k, name, reply.body)
        health = talks.server.get("/health")
        assert health.status == 503 and health.json["status"] == "device lost", (k, name, health.body)
        assert talks.server.process.wait(20) == 70 and "device lost" in talks.server.log(), (k, name)
        assert says_where(name, talks.server.log(), not restoring), (k, name, talks.server.log())
        return name

    talks = Talks(folder, driver, "kinds")
    with talks.server:
        kinds = {name: k for k, name in reversed(list(enumerate(talks.undisturbed, 1)))}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lose, kinds.values())) == set(kinds) and len(kinds) == 8, kinds


TESTS = [
    an_engine_survives_every_failed_call,
    run_fails_at_every_call_and_says_where,
    a_lost_device_ends_run_with_70,
    a_refused_graph_ends_run_with_the_launch,
    chat_answers_the_next_line_after_every_failed_call,
    a_lost_device_ends_chat_with_70,
    a_server_answers_after_every_failed_call,
    a_lost_device_ends_the_server_with_70,
]

if __name__ == "__main__":
    if BUILD.name == "san":
        t = tap.Tap()
        t.skip("failures of a device", "emitted programs are not sanitized; the plain run has them")
        sys.exit(t.done())
    tap.main(TESTS)
