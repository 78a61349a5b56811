"""Whole GPU programs without a GPU: built by `lagen build`, run on the recorder (limits) and
on softgpu (the same bits as the CPU program). With a stand-in for nvcc, so that no toolkit is needed;
what the real one makes is checked where it is."""

import array
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import program  # noqa: E402
import toolkit  # noqa: E402
import forge  # noqa: E402
from program import LAGEN, OPTIONS, WORK, run  # noqa: E402
from toolkit import BUILD, ROOT, tap  # noqa: E402

sys.path[:0] = [str(ROOT / "tests" / n) for n in ("server", "softgpu")]
import client  # noqa: E402
import halves  # noqa: E402

HALVES = OPTIONS[: OPTIONS.index("--attn")]  # without --attn: f16
IDS = [1 + 37 * i % 311 for i in range(75)]


def gpu_program():
    return program.build("gpu", "sm_90", *OPTIONS)[0]


def kernels_of(folder):
    return json.loads((folder / "launches.json").read_text())


def n_launches(folder, n_rows):
    """Launches of a step."""
    skipped = "many" if n_rows <= 8 else "few"
    return sum(launch.get("when", "any") != skipped for launch in kernels_of(folder)["launches"])


def logits(cli, env, *options):
    """All logits of the prompt and what every layer leaves, as bytes."""
    files = WORK / "logits.raw", WORK / "layers.raw"
    for file in files:
        file.unlink(missing_ok=True)
    command = [cli, "logits", "--all", "--ids", ",".join(map(str, IDS)), *options]
    run([*command, "--raw", files[0], "--trace", files[1]], env=env)
    traced = files[0].read_bytes()
    run([*command, "--raw", files[0]], env=env)
    assert files[0].read_bytes() == traced, "a trace changes the logits"
    return traced + files[1].read_bytes()


def logits_alone(cli, env, *options):
    """The same without a trace, which is made call by call."""
    raw = WORK / "alone.raw"
    raw.unlink(missing_ok=True)
    run([cli, "logits", "--all", "--ids", ",".join(map(str, IDS)), "--raw", raw, *options], env=env)
    return raw.read_bytes()


def every_launch_is_taken():
    folder = gpu_program()
    ts = [1, 2, 7, 8, 9, 31, 32, 33, 63, 64]
    env = program.driver_env(toolkit.recorder(), program.settings("gpu"))
    p = run([program.request(folder), "edges", folder, *ts], env=env)
    want = [f"T={t}: {n_launches(folder, t)} launches" for t in ts]
    assert p.stdout.splitlines() == want, p.stdout


def every_kernel_has_run_before_the_first_request():
    folder = gpu_program()
    log = WORK / "start.log"
    env = program.driver_env(toolkit.recorder(), program.settings("start", log=log))
    run([program.request(folder), "edges", folder], env=env)
    seen = {line.split()[1] for line in log.read_text().splitlines() if line.startswith("launch ")}
    assert seen == {k["name"] for k in kernels_of(folder)["kernels"]}


def launches_overlap_where_the_row_has_it():
    """Programmatic dependent launch: in the emitted table and in every launch of the start, on sm_90 and not on sm_89."""
    gpu, older = gpu_program(), WORK / "gpu89"
    rows = {r["name"]: r for r in json.loads(run([LAGEN, "targets", "--json"]).stdout)}
    if not older.exists():
        shutil.copytree(gpu, older, symlinks=True)  # the objects that differ are made anew
    program.build("gpu89", "sm_89", *OPTIONS)
    log = WORK / "overlaps.log"
    for folder, name in ((gpu, "sm_90"), (older, "sm_89")):
        waits = {k["name"]: "early" in k["descriptor"] for k in kernels_of(folder)["kernels"]}
        want = {kernel: rows[name]["pdl"] and waits[kernel] for kernel in waits}
        assert any(waits.values()) and rows[name]["pdl"] == (name == "sm_90")
        text = (folder / "src/gpu.c").read_text()
        told = dict(re.findall(r'\.name = "(\w+)"[^}]*?\.overlaps = (\w+)', text))
        assert told == {k: "true" if v else "false" for k, v in want.items()}, (name, told)
        keys = ("compute_minor", "compute_major", "smem_per_cta_bytes", "smem_per_sm_bytes", "threads_per_sm", "ctas_per_sm")
        limits = {k: rows[name][k] for k in keys}
        env = program.driver_env(toolkit.recorder(), program.settings("overlaps", log=log, **limits))
        run([folder / "tiny-cli", "logits", "--ids", "1,2"], env=env)
        seen = {m[1]: bool(m[2]) for m in re.finditer(r"^launch (\w+) grid .*?( overlaps)?$", log.read_text(), re.M)}
        assert seen == want, (name, seen)


def other_machines_are_refused():
    folder = gpu_program()
    for what, code, changes in (
        ("compute 9.0", 4, {"compute_major": 8}),
        ("none", 4, {"devices": 0}),
        ("2 devices would do", 4, {"devices": 2}),
        ("bytes on device 0", 5, {"reserve_bytes": (4 << 30) - 1000}),
    ):
        env = program.driver_env(toolkit.recorder(), program.settings("other", **changes))
        p = run([folder / "tiny-cli", "logits", "--ids", "1,2"], env=env, check=False)
        ok = p.returncode == code and (what in p.stderr or "NO_DEVICE" in p.stderr)
        assert ok, (what, p.returncode, p.stderr)
    env = program.driver_env(toolkit.recorder(), program.settings("other", devices=2))
    run([folder / "tiny-cli", "logits", "--ids", "1,2", "--device", "0000:02:00.0"], env=env)
    p = run([folder / "tiny-cli", "info"], env=env)
    assert "device 1  NVIDIA H200, compute 9.0" in p.stdout, p.stdout


def emulated_bits_are_those_of_the_cpu_program():
    gpu = gpu_program()
    cpu = program.build("cpu", "native", *OPTIONS)[0]
    driver = program.softgpu(gpu, kernels_of(gpu)["kernels"])
    want = logits(cpu / "tiny-cli", None)
    for chunk, order in ((64, "forward"), (7, "reversed"), (1, "shuffled")):
        env = program.driver_env(driver, program.settings("gpu"), LAGEN_SOFTGPU_ORDER=order)
        got = logits(gpu / "tiny-cli", env, "--chunk", chunk)
        assert (
            got == want
        ), f"chunk {chunk}, turns {order}: {sum(a != b for a, b in zip(got, want))} bytes differ"
    program.build("gpu", "sm_90", *OPTIONS, "--weights", "link")
    got = logits(gpu / "tiny-cli", program.driver_env(driver, program.settings("gpu")))
    gpu_program()
    assert got == want, "weights linked to the model file"
    p = run(
        [program.request(gpu), "slots", gpu],
        env=program.driver_env(driver, program.settings("gpu")),
    )
    assert "3 slots together and alone: the same bits" in p.stdout, p.stdout
    p = run([gpu / "tiny-cli", "selftest"], env=program.driver_env(driver, program.settings("gpu")))
    assert (
        "same bits at once and token by token" in p.stdout
        and "the device chooses the host's tokens" in p.stdout
        and "same bits as their plain twins" in p.stdout
    ), p.stdout
    p = run(
        [gpu / "tiny-cli", "selftest"],
        env=program.driver_env(toolkit.recorder(), program.settings("gpu")),
        check=False,
    )
    assert (
        p.returncode == 1 and "the device chose token 0, the host" in p.stderr
    ), p.stderr  # it executes nothing


def a_launch_begins_before_the_one_in_front_has_run():
    """A kernel that reads activations before its wait gets old ones, in every way of calling it."""
    gpu = gpu_program()
    cpu = program.build("cpu", "native", *OPTIONS)[0]
    wait = "    isa_wait_launch();\n    isa_let_launch();\n"
    bend = ("norm_quant", [(wait, ""), ("    const float r =", wait + "    const float r =")])
    driver = program.softgpu(gpu, kernels_of(gpu)["kernels"], bend)
    want = logits_alone(cpu / "tiny-cli", None)
    for chunk in (64, 1):  # call by call, and as graphs
        got = logits_alone(gpu / "tiny-cli", program.driver_env(driver, program.settings("gpu")), "--chunk", chunk)
        assert got != want, chunk


# What the device does itself, what it leaves to the host, and what it leaves to it now and then.
WAYS = [
    ["--greedy"],
    ["--temp", 0.8, "--top-k", 40, "--top-p", 0.95, "--min-p", 0.05],
    ["--temp", 1.3, "--top-k", 0, "--top-p", 0.7, "--min-p", 0],
    ["--temp", 1, "--top-k", 0, "--top-p", 1, "--min-p", 0],
    ["--temp", 0.9, "--top-k", 64, "--repeat-penalty", 1.3],
]


def floats(data):
    got = array.array("f")
    got.frombytes(data)
    return got


def prompts_in_f16_are_the_same_however_they_are_cut():
    gpu = program.build("gpu16", "sm_90", *HALVES)[0]
    cpu = program.build("cpu", "native", *OPTIONS)[0]
    driver = program.softgpu(gpu, kernels_of(gpu)["kernels"])
    env = program.driver_env(driver, program.settings("gpu16"))
    want, got = logits(cpu / "tiny-cli", None), logits(gpu / "tiny-cli", env, "--chunk", 64)
    apart = sum((a - b) ** 2 for a, b in zip(floats(got), floats(want), strict=True))
    length = sum(a * a for a in floats(want))
    assert 0 < apart < 0.05**2 * length, (apart, length)  # other roundings, which change some bytes of activations
    for chunk in (7, 1):
        assert logits(gpu / "tiny-cli", env, "--chunk", chunk) == got, chunk
    soft = halves.build(WORK / "halves", "-m", program.model(), *HALVES)
    assert logits(soft, None, "--threads", 1) == got, "the CPU program with this attention"
    p = run([gpu / "tiny-cli", "selftest"], env=env)
    assert (
        "same bits as their plain twins" in p.stdout  # rows of no prompt are the CPU's
        and "a prompt in f16 gives the same bits at once and token by token" in p.stdout
    ), p.stdout
    assert "of prompts in f16 on tensor cores" in run([gpu / "tiny-cli", "info"], env=env).stdout
    p = run([program.request(gpu), "edges", gpu, 1, 8, 9, 64], env=program.driver_env(toolkit.recorder(), program.settings("gpu16")))
    assert p.stdout.splitlines() == [f"T={t}: {n_launches(gpu, t)} launches" for t in (1, 8, 9, 64)], p.stdout


def answers_are_those_of_the_cpu_program():
    gpu = gpu_program()
    cpu = program.build("cpu", "native", *OPTIONS)[0]
    driver = program.softgpu(gpu, kernels_of(gpu)["kernels"])
    env = program.driver_env(driver, program.settings("gpu"))
    copies = WORK / "copies.log"
    for seed in (1, 2):
        for way in WAYS:
            more = [] if way == ["--greedy"] else ["--seed", seed]
            command = ["run", "--raw", "-p", "hello", "-n", 12, *way, *more]
            want = run_bytes([cpu / "tiny-cli", *command], None)
            got = run_bytes([gpu / "tiny-cli", *command], env)
            assert got == want, (command, got, want)
    env = program.driver_env(driver, program.settings("copies", log=copies, log_calls=1))
    run_bytes([gpu / "tiny-cli", "run", "--raw", "-p", "hello", "-n", 12, *WAYS[1], "--seed", 1], env)
    text = copies.read_text()
    calls = re.findall(r"^call \d+ (\w+)$", text[text.rindex("cuMemGetInfo_v2") :], re.M)
    decode = calls[calls.index("cuGraphLaunch") :]
    steps = decode.count("cuGraphLaunch")
    assert "cuMemcpyDtoHAsync_v2" not in decode, decode  # no logits: choices come with the graph
    assert decode.count("cuStreamSynchronize") == steps, decode


def the_server_goes_on_from_stored_prefixes():
    """Two talks take turns in one slot: what is restored to the device gives the texts of the CPU's server, which stores nothing."""
    gpu = gpu_program()
    cpu = program.build("cpu", "native", *OPTIONS)[0]
    driver = program.softgpu(gpu, kernels_of(gpu)["kernels"])
    soft = program.driver_env(driver, program.settings("server"))
    talks = [4 * "the cat sees the dog and the bird. ", 4 * "a tree stands on the green hill. "]
    with client.Server("--slots", 1, program=str(gpu / "tiny-server"), env=soft) as s:
        with client.Server("--slots", 1, "--prefix-store", 0, program=str(cpu / "tiny-server")) as plain:
            for turn in range(3):
                for i, text in enumerate(talks):
                    body = {"prompt": text, "max_tokens": 6, "temperature": 0.8, "seed": turn, "logprobs": 2}
                    got, want = s.post("/v1/completions", body).json, plain.post("/v1/completions", body).json
                    assert got["choices"] == want["choices"], (turn, i, got, want)
                    cached = got["usage"]["prompt_tokens_details"]["cached_tokens"]
                    n = got["usage"]["prompt_tokens"]
                    assert cached >= max(64, n - 40) if turn > 0 else cached < 16, (turn, i, got["usage"])
                    talks[i] = text + got["choices"][0]["text"].encode("ascii", "ignore").decode() + " and a word more"
        assert s.metric(r'prefix_lookups_total\{found="store"\}') == 4


def run_bytes(command, env):
    p = subprocess.run([str(c) for c in command], env=env, stdin=subprocess.DEVNULL, capture_output=True)
    assert p.returncode == 0, p.stderr
    return p.stdout


def root_with_rows_on_y():
    """A copy of lagen whose embed kernel has its rows on y."""
    root = WORK / "root"
    shutil.rmtree(root, ignore_errors=True)
    (root / "bin").mkdir(parents=True)
    shutil.copytree(ROOT / "templates", root / "templates")
    (root / "runtime").symlink_to(ROOT / "runtime")
    shutil.copy(ROOT / "tests/gpu/embed_on_y.cu.lua", root / "templates/kernel/embed.cu.lua")
    shutil.copy(LAGEN, root / "bin/lagen")
    return root / "bin/lagen"


def rows_on_y_end_at_65535_without_a_tile():
    lagen = root_with_rows_on_y()
    folder, _ = program.build(
        "on_y",
        "sm_90",
        "--ctx",
        "131072",
        "--chunk",
        "131072",
        lagen=lagen,
        gguf=program.long_model(),
    )
    n = n_launches(folder, 9)
    env = program.driver_env(toolkit.recorder(), program.settings("on_y", memory_bytes=64 << 30))
    ts = [65535, 65536, 131070, 131072]
    p = run([program.request(folder), "edges", folder, *ts], env=env)
    want = [f"T={t}: {n + extra} launches" for t, extra in zip(ts, (0, 1, 1, 2))]
    assert p.stdout.splitlines() == want, p.stdout
    program.without_tiles(folder)
    run(["ninja", "-C", folder, "--quiet"], env=program.fake_env())
    p = run([program.request(folder), "edges", folder, 65535, 65536], env=env)
    lines = p.stdout.splitlines()
    assert lines[0] == f"T=65535: {n} launches", p.stdout
    assert (
        "launch embed of token_embd_weight, grid 1 x 65536 x 1, T=65536: cuLaunchKernelEx: "
        "CUDA_ERROR_INVALID_VALUE"
        in lines[1]
    ), p.stdout


def bent_cubins_are_not_linked():
    shutil.rmtree(WORK / "bent", ignore_errors=True)
    for bend, words in (
        ({"regs": 255}, "registers of a thread is 255"),
        ({"local": 16}, "local memory of a thread in bytes is 16"),
        ({"smem": 64}, "static shared memory in bytes is 64"),
        ({"arch": 89}, "architecture is 89, proved was 90"),
    ):
        shutil.rmtree(WORK / "bent/cubin", ignore_errors=True)
        folder, p = program.build(
            "bent", "sm_90", *OPTIONS, env=program.fake_env(**bend), check=False
        )
        assert p.returncode == 1 and words in p.stderr, p.stderr
        assert not (folder / "tiny-cli").exists()


def other_cubins_are_found_by_verify():
    folder = gpu_program()
    p = run([LAGEN, "verify", "--replay", folder])
    assert (
        "cubins proved again" in p.stdout
        and "different launches on the recorder of a sm_90: all taken" in p.stdout
        and "its own steps ran there, of every number of rows from 1 to 64: no launch was refused" in p.stdout
        and "steps without weights: every number of rows from 1 to 64, sequences 1 2 3," in p.stderr
    ), p.stdout
    path = sorted((folder / "cubin").glob("*.cubin"))[0]
    good = path.read_bytes()
    path.write_bytes(good + b"\0")
    try:
        p = run([LAGEN, "verify", folder], check=False)
        assert p.returncode == 3 and "others than those that were proved" in p.stderr, p.stderr
    finally:
        path.write_bytes(good)


def what_replay_lacks_is_named():
    """A lagen beside which nothing else was built: one command makes all that --replay runs, and it is ninja's default."""
    folder, root = gpu_program(), WORK / "bare"
    shutil.rmtree(root, ignore_errors=True)
    (root / "build").mkdir(parents=True)
    (root / "templates").symlink_to(ROOT / "templates")
    shutil.copy(LAGEN, root / "build" / "lagen")
    default = re.search(r"^default (.*)$", (ROOT / "build.ninja").read_text(), re.M)[1].split()
    for part in ("lagen-replay", "liblagen_recorder.so"):
        p = run([root / "build" / "lagen", "verify", "--replay", folder], check=False)
        says = f"--replay needs {root}/build/{part}; `ninja` in lagen's folder makes all that it needs"
        assert p.returncode == 1 and says in p.stderr and p.stdout == "", p.stderr
        assert f"build/{part}" in default, default
        (root / "build" / part).symlink_to(ROOT / "build" / part)
    assert "its own steps ran there" in run([root / "build" / "lagen", "verify", "--replay", folder]).stdout


def steps_of_another_cpu_are_not_run():
    """The host side is for a CPU that this machine is not: verify says so, and what could run it."""
    folder = gpu_program()
    path, source = folder / "manifest.json", folder / "src" / "model.c"
    good, model = path.read_text(), source.read_bytes()
    other, machine = ("x86-64-v3", "x86_64") if platform.machine() == "aarch64" else ("aarch64-v8.2", "aarch64")
    text = re.sub(r'"host": "[^"]*"', f'"host": "{other}"', good)
    quoted = f'\\"host\\": \\"{other}\\"'.encode()  # in the program's own copy
    bent = re.sub(rb'\\"host\\": \\"[^"]*\\"', lambda m: quoted, model)
    assert bent != model
    try:
        source.write_bytes(bent)
        forge.seal(folder, "src/model.c", text=text)
        p = run([LAGEN, "verify", "--replay", folder])
    finally:
        path.write_text(good)
        source.write_bytes(model)
    assert f"its own steps were not run: its host side is for {machine}, this is {platform.machine()}; qemu-user" in p.stdout, p.stdout


def sources_can_be_emitted_without_nvcc():
    env = dict(program.fake_env(), PATH="/nonexistent")
    run(["rm", "-rf", WORK / "no_nvcc"])
    empty = WORK / "empty_path"
    empty.mkdir(parents=True, exist_ok=True)
    for tool in ("cc", "sh"):
        link = empty / tool
        link.unlink(missing_ok=True)
        link.symlink_to(shutil.which(tool))
    env["PATH"] = str(empty)
    folder, _ = program.build("no_nvcc", "sm_90", *OPTIONS, env=env, command="emit")
    assert "not known where this was emitted" in (folder / "manifest.json").read_text()
    _, p = program.build("no_nvcc", "sm_90", *OPTIONS, env=env, check=False)
    assert p.returncode == 1 and "nvcc" in p.stderr and "--compiler nvrtc" in p.stderr, p.stderr


def nvcc_makes_what_was_proved():
    toolkit.nvcc()
    env = dict(program.os.environ)
    folder, p = program.build("nvcc", "sm_90", *OPTIONS, env=env)
    kernels = json.loads((folder / "cubins.json").read_text())["kernels"]
    assert len(kernels) == len(kernels_of(folder)["kernels"])
    assert all(
        k["registers"] <= k["register_cap"] and k["local_bytes"] == 0 for k in kernels
    ), kernels


def nvrtc_makes_the_same_twice():
    toolkit.nvrtc()
    digests = []
    for name in ("nvrtc_a", "a_longer_folder/nvrtc_b"):
        run(["rm", "-rf", WORK / name])
        folder, _ = program.build(name, "sm_90a", *OPTIONS, "--compiler", "nvrtc", command="emit")
        listed = json.loads((folder / "manifest.json").read_text())
        assert listed["cuda_compiler"].startswith("NVRTC "), listed["cuda_compiler"]
        digests.append(
            {f["path"]: f["sha256"] for f in listed["emitted"] if f["path"].endswith(".cubin")}
        )
        assert len(digests[-1]) == listed["kernels"]
    assert digests[0] == digests[1]


TESTS = [
    every_launch_is_taken,
    every_kernel_has_run_before_the_first_request,
    launches_overlap_where_the_row_has_it,
    other_machines_are_refused,
    emulated_bits_are_those_of_the_cpu_program,
    prompts_in_f16_are_the_same_however_they_are_cut,
    a_launch_begins_before_the_one_in_front_has_run,
    answers_are_those_of_the_cpu_program,
    the_server_goes_on_from_stored_prefixes,
    rows_on_y_end_at_65535_without_a_tile,
    bent_cubins_are_not_linked,
    other_cubins_are_found_by_verify,
    what_replay_lacks_is_named,
    steps_of_another_cpu_are_not_run,
    sources_can_be_emitted_without_nvcc,
    nvcc_makes_what_was_proved,
    nvrtc_makes_the_same_twice,
]

if __name__ == "__main__":
    if BUILD.name == "san":
        t = tap.Tap()
        t.skip("gpu programs", "emitted programs are not sanitized; the plain run has them")
        sys.exit(t.done())
    tap.main(TESTS)
