"""An emitted program beside llama.cpp on the same file, in one run: a prompt of 512 tokens, and 128
tokens one by one, as llama-bench does. The two take turns, so that both meet the same machine;
medians count.

    compare.py [--model FILE] [--cli PROGRAM] [--threads N] [--reps N] [--check]

Without --cli the program is built from the model. --check fails when a ratio is below 1.0. Needs
llama-cpp-python; pip builds it from source for the machine at hand, and the features that it was
compiled with are printed. Nothing else should run meanwhile.
"""
import argparse
import json
import pathlib
import platform
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))
import llamacpp  # noqa: E402
import program  # noqa: E402

TESTS = ("pp", "tg")


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def ours(cli, a):
    """Seconds of one repetition of each test, {"pp": s, "tg": s}, and the whole report."""
    report = json.loads(program.run([cli, "bench", "-p", a.prompt, "-n", a.generate, "-r", 1,
                                     "--threads", a.threads, "--json"]))
    seconds = {t["name"][:2]: t["seconds"][0] for t in report["tests"]}
    return seconds, report


def theirs(model, a):
    tokens = [(i * 2654435761 + 12345) % model.n_vocab for i in range(max(a.prompt, a.generate))]
    model.time_decode(tokens[:4])
    model.time_prefill(tokens[:a.prompt])
    return {"pp": model.time_prefill(tokens[:a.prompt]),
            "tg": model.time_decode(tokens[:a.generate])}


def collect(cli, model, a):
    rounds = []
    for i in range(a.reps):
        mine, report = ours(cli, a)
        rounds.append((mine, theirs(model, a)))
        print(f"round {i + 1} of {a.reps} done", file=sys.stderr, flush=True)
    return rounds, report


def table(rounds, a):
    """Prints the medians; returns the ratios."""
    ratios = []
    print(f"{'test':8} {'lagen t/s':>10} {'llama.cpp t/s':>14} {'ratio':>6}   each round's ratio")
    for test in TESTS:
        n = a.prompt if test == "pp" else a.generate
        mine = [n / r[0][test] for r in rounds]
        other = [n / r[1][test] for r in rounds]
        ratio = statistics.median(mine) / statistics.median(other)
        each = " ".join(f"{m / o:.2f}" for m, o in zip(mine, other))
        print(f"{test + str(n):8} {statistics.median(mine):10.1f} {statistics.median(other):14.1f} "
              f"{ratio:6.2f}   {each}")
        ratios.append(ratio)
    return ratios


def main():
    ap = argparse.ArgumentParser(description="an emitted program beside llama.cpp")
    ap.add_argument("--model", default=program.SMOLLM2)
    ap.add_argument("--cli", help="the emitted program; built from the model if absent")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--reps", type=int, default=7)
    ap.add_argument("--prompt", type=int, default=512)
    ap.add_argument("--generate", type=int, default=128)
    ap.add_argument("--check", action="store_true", help="exit 1 if a ratio is below 1.0")
    a = ap.parse_args()
    if not llamacpp.available():
        print(f"compare.py: {llamacpp.WHY_NOT}", file=sys.stderr)
        return 2
    cli = a.cli or program.build(a.model)
    model = llamacpp.Model(a.model, n_threads=a.threads, n_ctx=1024, chunk=512)
    rounds, report = collect(cli, model, a)
    print(f"model    {pathlib.Path(a.model).name}, {a.threads} threads, {a.reps} rounds")
    print(f"machine  {cpu_name()}")
    print(f"lagen    {report['arch_row']}, chunk {report['chunk']}, kv {report['kv_type']}")
    print(f"other    {llamacpp.version()}, flash attention, kv f16, n_batch = n_ubatch = 512")
    ratios = table(rounds, a)
    return 1 if a.check and min(ratios) < 1.0 else 0


if __name__ == "__main__":
    sys.exit(main())
