"""Large models on every GPU row from files without weights: planned, proved, emitted, and the emitted step function run on the
recorder of that row, a step of every size (`selftest --launches`). On every push Laguna-S on three rows; with --all also an
M.1-like model and a context of 1 M, on all of them. The host side is compiled for this machine, kernels are cubins without code."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

LAGEN = ROOT / "build" / "lagen"
RECORDER = ROOT / "build" / "liblagen_recorder.so"
ALL = bool(os.environ.get("LAGEN_TEST_ALL"))
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
CC = ["cc", "-std=c11", "-O1", "-I."]
SECONDS = 60
# What a rehearsal does not call: the model's text, and the plain twins of its kernels.
OTHERS = """const long lagen_tokenizer[512] = {0}, lagen_chat_template[512] = {0};
_Bool lagen_step_plain(void);
_Bool lagen_step_plain(void) { return 0; }
"""


def run(*command, **more):
    p = subprocess.run([str(x) for x in command], capture_output=True, text=True, **more)
    assert p.returncode == 0, f"{' '.join(map(str, command))[:300]}: {p.returncode}\n{p.stdout[-500:]}{p.stderr[-900:]}"
    return p.stdout


def stand_in():
    """tests/gpu/fake_nvcc/nvcc as a module."""
    path = str(ROOT / "tests" / "gpu" / "fake_nvcc" / "nvcc")
    loader = importlib.machinery.SourceFileLoader("fake_nvcc", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fake_nvcc", loader))
    loader.exec_module(module)
    return module


NVCC = stand_in()


def rows():
    return {r["name"]: r for r in json.loads(run(LAGEN, "targets", "--json")) if r["kind"] == "gpu"}


def settings(row, path, log=None, memory=None):
    """The recorder as a board of this row, with memory for anything; it may log what is asked of it."""
    skip = ("param_bytes_max", "regs_per_thread_max", "memory_bytes")
    numbers = {k: v for k, v in row.items() if isinstance(v, int) and not isinstance(v, bool) and k not in skip}
    path.write_text(f"name {row['name']}\nmemory_bytes {memory or 1 << 46}\n" + "".join(f"{k} {v}\n" for k, v in numbers.items())
                    + (f"log {log}\n" if log else ""))


def program(model, arch, *options, bend=None):
    """An emitted folder with its host side compiled: the step, its tables, cubins that hold numbers alone. `bend`: a text of
    step.c and another in its place."""
    out = FOLDER / "p"
    host = {"x86_64": "x86-64-v2", "aarch64": "aarch64-v8.2"}[platform.machine()]
    run("rm", "-rf", out)
    run(LAGEN, "emit", "-m", model, "--arch", arch, "--host", host, "--weights", "link", "-o", out, *options)
    (out / "cubin").mkdir(exist_ok=True)
    for source in (out / "src").glob("*.cu"):
        name, threads, params = NVCC.facts(source.read_text())
        (out / "cubin" / f"{name}.cubin").write_bytes(NVCC.cubin(arch_number(arch), name, threads, params, 32, 0, 0))
    if bend:
        step = out / "src" / "step.c"
        assert bend[0] in step.read_text()
        step.write_text(step.read_text().replace(*bend))
    sources = [p for p in ("step.c", "gpu.c", "model.c", "cubins.S") if (out / "src" / p).exists()]
    (out / "others.c").write_text(OTHERS)
    run(*CC, "-I", "src", "-I", "src/lib", "-I", ROOT / "runtime", *(f"src/{s}" for s in sources), ROOT / "runtime/main_cli.c",
        "others.c", *(ROOT / f"build/lib{x}.a" for x in ("rtcli", "cuda_host", "rt", "base")), "-o", "cli", "-lcrypto", "-ledit",
        "-ljansson", "-lpthread", "-ldl", "-lm", cwd=out)
    return out


def arch_number(arch):
    return int("".join(c for c in arch if c.isdigit()))


def rehearse(recipe, arch, table, *options):
    out = program(FOLDER / f"{recipe}.gguf", arch, *options)
    settings(table[arch], FOLDER / "device")
    env = dict(os.environ, LAGEN_CUDA_DRIVER=str(RECORDER), LAGEN_RECORDER=str(FOLDER / "device"))
    begin = time.monotonic()
    text = run(out / "cli", "selftest", "--launches", env=env)
    seconds = time.monotonic() - begin
    limits = json.loads((out / "manifest.json").read_text())["limits"]
    assert text.startswith("ok  ") and f"every number of rows from 1 to {limits['t_max']}," in text, text
    return text, limits, seconds


def check(t, recipe, arch, table, *options):
    def test():
        text, limits, seconds = rehearse(recipe, arch, table, *options)
        contexts = text.split("contexts ")[1].split()
        assert contexts[0] == "1" and contexts[-1] == str(limits["ctx"]), text
        assert recipe == "laguna-m1-like" or contexts[1:-1] == ["511", "512", "513"], text
        assert seconds < SECONDS, f"{seconds:.0f} s"

    test.__name__ = " ".join([recipe, arch, *map(str, options)])
    t.run(test)


def a_refusal_is_seen_and_named(t, table):
    """A grid that is too high for one number of rows alone: the rehearsal finds it."""
    def test():
        bend = ("(uint32_t)(48ull)", "(uint32_t)(T == 61ull ? 65536ull : 48ull)")
        out = program(FOLDER / "laguna-s.gguf", "sm_90a", "--chunk", 64, bend=bend)
        settings(table["sm_90a"], FOLDER / "device")
        env = dict(os.environ, LAGEN_CUDA_DRIVER=str(RECORDER), LAGEN_RECORDER=str(FOLDER / "device"))
        p = subprocess.run([out / "cli", "selftest", "--launches"], env=env, capture_output=True, text=True)
        assert p.returncode == 1 and "61 rows of 1 sequences at context 511: launch " in p.stderr, p.stderr
        assert "x 65536 x 1, T=61: cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE" in p.stderr, p.stderr

    test.__name__ = "a refusal is seen and named"
    t.run(test)


def picks_on_y(step, k):
    """The sorted experts' first launch in step.c, and what stands there with rows times picks on axis y: the seeds' tiling."""
    begin = step.index("static bool run_k_moe_matmul")
    body = step[begin:step.index("return rt_cuda_launch", begin)]
    return body, re.sub(r"\(uint32_t\)\(\d+ull\),", f"(uint32_t)(T * {k}ull),", body, count=1)


def rows_times_picks_fail_at_their_edge(t, table, recipe, k, edge):
    """Ten or eight picks a row, untiled on y: `edge` rows are refused as hardware refuses them, one row less is not; as planned
    all are taken."""
    def test():
        options = ["--chunk", edge + 8, "--ctx", 16384]
        settings(table["sm_121a"], FOLDER / "device")
        env = dict(os.environ, LAGEN_CUDA_DRIVER=str(RECORDER), LAGEN_RECORDER=str(FOLDER / "device"))
        out = program(FOLDER / f"{recipe}.gguf", "sm_121a", *options)
        assert f"every number of rows from 1 to {edge + 8}," in run(out / "cli", "selftest", "--launches", env=env)
        bend = picks_on_y((out / "src" / "step.c").read_text(), k)
        assert bend[0] != bend[1]
        out = program(FOLDER / f"{recipe}.gguf", "sm_121a", *options, bend=bend)
        p = subprocess.run([out / "cli", "selftest", "--launches"], env=env, capture_output=True, text=True)
        assert p.returncode == 1 and f"{edge} rows of 1 sequences" in p.stderr, p.stderr
        assert f"x {edge * k} x 1, T={edge}: cuLaunchKernelEx: CUDA_ERROR_INVALID_VALUE" in p.stderr, p.stderr

    test.__name__ = f"{recipe}: {k} picks a row on axis y fail at {edge} rows and not at {edge - 1}"
    t.run(test)


def planned_bytes_are_allocated(t, table):
    """What plan says is what the program asks the driver for, before its first launch and never again: for contexts and chunks
    far apart, for both types of caches."""
    def test(ctx, chunk, kv):
        options = ["--ctx", ctx, "--chunk", chunk, "--kv", kv, "--slots", 2]
        out = program(FOLDER / "laguna-w8.gguf", "sm_90a", *options)
        settings(table["sm_90a"], FOLDER / "device", FOLDER / "log")
        (FOLDER / "log").unlink(missing_ok=True)
        env = dict(os.environ, LAGEN_CUDA_DRIVER=str(RECORDER), LAGEN_RECORDER=str(FOLDER / "device"))
        run(out / "cli", "selftest", "--launches", env=env)
        lines = [x.split() for x in (FOLDER / "log").read_text().splitlines()]
        first = next(i for i, x in enumerate(lines) if x[0] == "launch")
        took = [int(x[2]) for x in lines[:first] if x[:2] == ["alloc", "device"]]
        memory = json.loads(run(LAGEN, "plan", "-m", FOLDER / "laguna-w8.gguf", "--arch", "sm_90a", "--json", *options))["memory"]
        assert took == [memory[k] for k in ("weights", "kv", "scratch", "io")], (took, memory)
        assert not [x for x in lines[first:] if x[0] == "alloc"], "it grows after the start"
        assert len(lines) - first > 100, len(lines)
        text = run(out / "cli", "info", "--measure", env=env)
        seen = {k.strip(): int(v) for k, v in re.findall(r"^  (\S.*?)  +(\d+) bytes$", text, re.M)}
        assert (seen["total"], seen["taken since"], seen["of it arenas"]) == (memory["total"],) * 3, text
        assert seen["of it code, graphs"] <= seen["driver, at most"] and seen["pinned in the host"] == memory["io"], text

    run(LAGEN, "synth", "synth/laguna-w8", "--header-only", "-o", FOLDER / "laguna-w8.gguf")
    wrong = []
    for asked in ((32, 8, "f16"), (4096, 33, "q8_0")):
        try:
            test(*asked)
        except AssertionError as e:
            wrong.append(f"{asked}: {e}")
    t.check("F01 F03 planned bytes are allocated, once", not wrong, "\n".join(wrong))


OTHER_BOXES = (
    (4, {"compute_minor": 1}, "no device here is one for this program (compute 9.0, "),
    (4, {"driver_version": 12080}, "is a driver for CUDA 12.8; this program needs one for 13.0 or newer"),
    (4, {"smem_per_cta_bytes": 101376}, "shared bytes of a cta is 101376; the program was proved for 232448"),
    (4, {"regs_per_sm": 32768}, "registers of an SM is 32768; the program was proved for 65536"),
    (4, {"grid_y_max": 1000}, "grid y is 1000; the program was proved for 65535"),
    (4, {"memory_bytes": 1 << 20}, "no device here is one for this program (compute 9.0, "),
    (5, {"memory_bytes": 1 << 33, "reserve_bytes": (1 << 33) - 4096}, "4096 of 8589934592 are free"))


def other_boxes_say_what_is_there_and_what_was_expected(t, table):
    """The last program, one number of the board at a time another one."""
    wrong = []
    for status, changes, says in OTHER_BOXES:
        settings({**table["sm_90a"], **changes}, FOLDER / "device", memory=changes.get("memory_bytes"))
        env = dict(os.environ, LAGEN_CUDA_DRIVER=str(RECORDER), LAGEN_RECORDER=str(FOLDER / "device"))
        for command in (("selftest", "--launches"), ("info", "--measure")):
            p = subprocess.run([FOLDER / "p" / "cli", *command], env=env, capture_output=True, text=True)
            if p.returncode != status or says not in p.stderr:
                wrong.append(f"{changes} {command}: {p.returncode} {p.stderr}")
    t.check("other boxes say what is there and what was expected", not wrong, "\n".join(wrong))


def main():
    t = tap.Tap()
    missing = [str(p) for p in (LAGEN, RECORDER) if not p.exists()]
    if missing or platform.machine() not in ("x86_64", "aarch64"):
        t.skip("large models on every row", f"no {missing}" if missing else "no row for this machine")
        return t.done()
    table = rows()
    recipes = ("laguna-s", "laguna-m1-like", "laguna-s-1m") if ALL else ("laguna-s",)
    for recipe in recipes:
        run(LAGEN, "synth", f"synth/{recipe}", "--header-only", "-o", FOLDER / f"{recipe}.gguf")
    for arch in table if ALL else ("sm_89", "sm_90a", "sm_121a"):
        for recipe in recipes:
            check(t, recipe, arch, table, *(() if ALL or arch == "sm_121a" else ("--chunk", 64, "--slots", 3)))
    a_refusal_is_seen_and_named(t, table)
    run(LAGEN, "synth", "synth/laguna-xs", "--header-only", "-o", FOLDER / "laguna-xs.gguf")
    for recipe, picks, edge in (("laguna-s", 10, 6554), ("laguna-xs", 8, 8192)):
        rows_times_picks_fail_at_their_edge(t, table, recipe, picks, edge)
    planned_bytes_are_allocated(t, table)
    other_boxes_say_what_is_there_and_what_was_expected(t, table)
    WORK.cleanup()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
