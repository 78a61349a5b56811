"""Whole steps of GPU programs on softgpu, the host's side, the emulated kernels and their plain twins all under
AddressSanitizer and UBSan: odd numbers of rows, tiles and chunks more or less by one, several sequences, a vocabulary of
32,001 and rows 576 wide. The same bits as the twins (steps.c)."""

import concurrent.futures
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import program  # noqa: E402
import toolkit  # noqa: E402
from program import LAGEN, WORK, run  # noqa: E402
from toolkit import BUILD, ROOT, tap  # noqa: E402

SAN = "-g1 -fsanitize=address,undefined -fno-sanitize-recover=all".split()
LIBRARIES = [ROOT / "build/san" / f"{n}.a" for n in ("librt", "libcuda_host", "libbase")]
CHUNK = 66  # above a tile of 64 rows
LENGTHS = [1, 2, 5, 6, 7, 8, 9, 31, 32, 33, 63, 64, 65, 66, 67]


def needed():
    for path in (*LIBRARIES, ROOT / "build/san/librec.a"):
        if not path.exists():
            raise tap.Skip(f"{path.relative_to(ROOT)} is not built: ninja tests-san")


def model(recipe, *options):
    path = WORK / f"steps-{recipe}.gguf"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        run([LAGEN, "synth", f"synth/{recipe}", *options, "-o", path])
    return path


def steps_program(folder):
    """steps.c with what lagen emitted for the program, compiled with sanitizers; tables, and the plain twins, which
    test_kernels.py has under sanitizers, are the program's own objects."""
    command = ["cc", "-std=c11", "-O1", *SAN, "-D_DEFAULT_SOURCE", f"-I{folder}/src", f"-I{ROOT}/runtime", "-c"]
    out = folder / "steps"
    out.mkdir(exist_ok=True)
    sources = [*sorted((folder / "src").glob("*.c")), ROOT / "tests/gpu/steps.c"]
    objects = [out / f"{p.stem}.o" for p in sources]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda pair: run([*command, pair[0], "-o", pair[1]]), zip(sources, objects)))
    own = folder / "obj/src"
    objects += [*sorted((own / "plain").glob("*.o")), own / "cubins.o", own / "tokenizer_tables.o"]
    libraries = ["-Wl,--start-group", *LIBRARIES, "-Wl,--end-group"]
    run(["cc", *SAN, *objects, *libraries, "-lcrypto", "-ljansson", "-lpthread", "-ldl", "-lm", "-o", out / "steps"])
    return out / "steps"


def same_bits(name, gguf, lengths, *more):
    needed()
    options = ["--ctx", "512", "--chunk", str(CHUNK), "--slots", "3", *more]
    folder = program.build(name, "sm_90", *options, gguf=gguf)[0]
    driver = program.softgpu(folder, json.loads((folder / "launches.json").read_text())["kernels"], san=SAN)
    env = program.driver_env(driver, program.settings("steps"))
    env["ASAN_OPTIONS"] = "detect_leaks=0:detect_stack_use_after_return=0"
    p = run([steps_program(folder), folder, *lengths], env=env)
    assert p.stdout == "the same bits\n", p.stdout


def small_models_at_every_length():
    same_bits("steps_tiny", model("llama-tiny"), ["several", *LENGTHS])


def rows_of_576_and_a_vocabulary_of_32001():
    long = "LAGEN_TEST_ALL" in os.environ
    same_bits("steps_576", model("llama-576", "--layers", 2), ["several", *LENGTHS] if long else ["several", 5, 33])


def windows_gates_and_experts():
    """Laguna: windows of 13 and 8 more and less by one, chunks longer than the window, experts of which some get no rows."""
    if "LAGEN_TEST_ALL" not in os.environ:
        raise tap.Skip("LAGEN_TEST_ALL is not set: minutes")
    for recipe, kv in (("laguna-odd", "f16"), ("laguna-w8", "f16"), ("laguna-w8", "q8_0")):  # q8_0 wants heads of whole 32s
        same_bits(f"steps_{recipe}_{kv}", model(recipe), ["several", *LENGTHS, 12, 13, 14], "--kv", kv)


TESTS = [small_models_at_every_length, rows_of_576_and_a_vocabulary_of_32001, windows_gates_and_experts]

if __name__ == "__main__":
    if BUILD.name == "san":
        t = tap.Tap()
        t.skip("steps on softgpu", "always built with sanitizers: the plain run has it")
        sys.exit(t.done())
    tap.main(TESTS)
