"""Properties of proved plans over random dims, experts, picks, slots, contexts, chunks and rows: what is proved holds when it is
reckoned again here, from launches.json and memory.json alone and in other words: grids at random T within the row's limits and never
fewer ctas than rows need, places apart, rings long enough. What is not planned is refused with a reason that is the user's.
Takes build/lagen as argument; LAGEN_TEST_ALL=1 tries many more."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

BUILT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "lagen").resolve()
WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
N = 400 if os.environ.get("LAGEN_TEST_ALL") else 24
ROWS = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_110a", "sm_120a", "sm_121a", "x86-64-v3")


def own_root():
    """lagen with a folder of recipes that takes ours too."""
    shutil.copytree(ROOT / "models", FOLDER / "models", ignore=shutil.ignore_patterns("*.gguf"))
    (FOLDER / "templates").symlink_to(ROOT / "templates")
    (FOLDER / "bin").mkdir()
    shutil.copy(BUILT, FOLDER / "bin" / "lagen")
    return FOLDER / "bin" / "lagen"


LAGEN = own_root()


def run(*arguments):
    return subprocess.run([LAGEN, *map(str, arguments)], capture_output=True, text=True)


def draw_model(d):
    """Dims as a recipe's text; heads, experts and widths of odd sizes among them."""
    hd = d.choice([16, 32, 48, 64, 80, 96, 128])
    kv = d.choice([1, 2, 3, 8])
    embd = 32 * d.randint(1, 24)
    experts = d.choice([1, 2, 7, 16, 31, 33, 64, 257])
    dims = {
        "layers": d.randint(1, 6), "embd": embd, "head_dim": hd, "heads": (kv * d.randint(1, 9), kv * d.randint(1, 9)), "kv": kv,
        "ffn": 32 * d.randint(1, 40), "dense": d.randint(0, 2), "experts": experts, "used": d.randint(1, min(experts, 16)),
        "expert_ffn": 32 * d.randint(1, 9), "vocab": d.randint(320, 3000), "window": d.choice([0, 1, 7, 8, 64, 255, 256, 257, 600]),
        "n_rot": 2 * d.randint(1, hd // 2), "n_rot_swa": 2 * d.randint(1, hd // 2), "ctx": d.choice([300, 4096, 70000, 1 << 20])}
    lua = ", ".join(f"{k} = {{ {v[0]}, {v[1]} }}" if isinstance(v, tuple) else f"{k} = {v}" for k, v in dims.items())
    whole = all(hd * n % 32 == 0 for n in dims["heads"])  # rows of quantised tensors are whole qblocks
    types, gate, tied = d.choice(["q8_0", "q4_0", "f16", "f32"] if whole else ["f16", "f32"]), d.choice(["head", "element"]), d.choice(["true", "false"])
    return dims, f'name = "random", types = "{types}", gate = "{gate}", tied = {tied}, {lua}'


def value_of(expression, **names):
    """A launch expression by Python's integers."""
    functions = {"ceil_div": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b, "min": min, "max": max}
    return eval(expression.replace("/", "//"), {"__builtins__": {}}, {**functions, **names})


def check_launches(d, plan, dims):
    limits = plan["limits"]
    kernels = {k["name"]: k for k in plan["kernels"]}
    ts = {1, limits["t_max"], *(d.randint(1, limits["t_max"]) for _ in range(6))}
    for launch in plan["launches"]:
        k = kernels[launch["kernel"]]
        for t in ts:
            names = {"T": t, "L": min(t, limits["logit_rows_max"]), "ctx": limits["ctx"], "slots": limits["slots"], "chunk": limits["chunk"]}
            whole = [value_of(x, **names) for x in launch["grid"]]
            cut = k.get("per_launch", [0, 0, 0])
            grid = [min(n, c) if c else n for n, c in zip(whole, cut)]
            assert all(1 <= n <= m for n, m in zip(grid, launch["limit"])), (launch["name"], t, grid)
            assert all(n <= m for n, m in zip(grid, launch["grid_max"])), (launch["name"], t, grid)
        if k["family"] == "matvec_moe" and "gated" in k["name"]:  # a cta or more for each token x pick
            assert whole[0] >= t * dims["used"], (launch["name"], t, whole)
        if "limit" in launch and plan["target"].startswith("sm_"):
            assert launch["block"] <= 1024 and launch["block"] % 32 == 0 and launch["shared_bytes"] <= 232448, launch["name"]


def check_memory(plan, limits):
    """Values that live together lie apart; caches hold what rows see; arenas hold what is placed in them."""
    arenas = plan["arenas"]
    values = [v for v in plan["values"] if v["bytes"] > 0]
    for v in values + [{**w, "arena": "weights"} for w in plan["weights"]]:
        assert v["offset"] % 64 == 0 and v["offset"] + v["bytes"] <= arenas[v["arena"]], v["name"]
        if v.get("rows") == "state":
            seen = min(limits["ctx"], v["window"] + limits["chunk"] - 1) if v["window"] else limits["ctx"]
            assert v["positions"] >= seen and v["slots"] == limits["slots"], v
    for a in range(len(values)):
        for b in range(a):
            x, y = values[a], values[b]
            together = x["arena"] == y["arena"] and x["first"] <= y["last"] and y["first"] <= x["last"]
            apart = x["offset"] + x["bytes"] <= y["offset"] or y["offset"] + y["bytes"] <= x["offset"]
            assert apart or not together, (x["name"], y["name"])
    at = 0
    for w in sorted(plan["weights"], key=lambda w: w["offset"]):
        assert w["offset"] >= at, w["name"]
        at = w["offset"] + w["bytes"]


# Refusals that a user can mend by other options or another model; a plan that its own prover refuses is none of these.
USERS = re.compile(r"lagen: (--\w+ is \d+|.*kv q8_0: head size \d+ is no multiple of 32).*")


def one(seed):
    d = random.Random(seed)
    dims, text = draw_model(d)
    (FOLDER / "models" / "synth" / "random.lua").write_text(
        f'local laguna = import("lib/laguna.lua")\nreturn laguna.recipe({{ {text} }})\n')
    p = run("synth", "synth/random", "--header-only", "-o", FOLDER / "m.gguf")
    assert p.returncode == 0, f"{text}: {p.stderr}"
    ctx = d.randint(1, dims["ctx"])
    slots = d.choice([1, 1, 2, 3, 40])
    ctx = min(ctx, 8192) if slots > 3 else ctx
    options = ["--ctx", ctx, "--slots", slots, "--chunk", d.randint(1, min(ctx, 700)), "--kv", d.choice(["f16", "q8_0"])]
    arch = d.choice(ROWS)
    base = ["plan", "-m", FOLDER / "m.gguf", "--arch", arch, *options]
    p = run(*base, "--dump", "launch")
    if p.returncode != 0:
        assert p.returncode == 1 and USERS.match(p.stderr), f"{arch} {options} {text}: {p.stderr}"
        return False
    launches = json.loads(p.stdout)
    memory = json.loads(run(*base, "--dump", "memory").stdout)
    try:
        check_launches(d, launches, dims)
        check_memory(memory, launches["limits"])
    except AssertionError as e:
        raise AssertionError(f"seed {seed}: {arch} {options} {text}: {e}") from e
    return True


def main():
    t = tap.Tap()
    wrong, planned = [], 0
    for seed in range(N):
        try:
            planned += one(seed)
        except AssertionError as e:
            wrong.append(str(e)[:1500])
    t.check(f"{N} random plans hold when reckoned again", not wrong, "\n".join(wrong[:5]))
    t.check("most of them are planned", planned > N * 2 // 3, f"{planned} of {N}")
    WORK.cleanup()
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
