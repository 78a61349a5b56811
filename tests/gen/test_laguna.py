"""Recipes shaped like Laguna: they have the sizes of the published files, to the byte where those are known, and are
planned quickly, whatever their tensor types; hostile shapes and keys are refused by name."""
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

LAGEN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "lagen").resolve()
SANITIZED = "san" in LAGEN.parts
WORK = tempfile.TemporaryDirectory()
GIB = 1 << 30


def lagen(*arguments, ok=True):
    p = subprocess.run([LAGEN, *map(str, arguments)], capture_output=True, text=True)
    assert (p.returncode == 0) == ok, f"{arguments}: {p.stderr}"
    return p.stdout if ok else p.stderr


def header(recipe, types):
    path = pathlib.Path(WORK.name) / f"{recipe}-{types}.gguf"
    lagen("synth", f"synth/{recipe}", "--types", types, "--header-only", "-o", path)
    return path


# recipe, types: tensors, of them F32, bytes of data (exact) or GiB (to two places). Sources: published files' lengths
# and listings; M.1 itself is not known, so of it only the numbers of tensors that its layout has.
SIZES = [
    ("laguna-s", "q4_k_m", 814, 287, 71159321600), ("laguna-s", "routed_q2_k", 814, 287, 48260803968 - 3733888),
    ("laguna-s", "ud_q3_k_m", 814, 287, 50.01), ("laguna-s", "ud_iq2_m", 814, 287, 34.74),
    ("laguna-s", "ud_iq4_xs", 814, 287, 53.25), ("laguna-s", "ud_q2_k_xl", 814, 287, 36.95),
    ("laguna-xs", "q4_k_m", 678, 239, 18.88), ("laguna-m1-like", "q4_k_m", 1178, 415, None),
]


def recipes_have_the_sizes_of_published_files():
    for recipe, types, n, n_f32, size in SIZES:
        seen = json.loads(lagen("inspect", "--json", header(recipe, types)))
        by_type = {t["type"]: t for t in seen["types"]}
        data = sum(t["bytes"] for t in seen["types"])
        assert (sum(t["tensors"] for t in seen["types"]), by_type["f32"]["tensors"]) == (n, n_f32), recipe
        right = size is None or (data == size if isinstance(size, int) else round(data / GIB, 2) == size)
        assert right, f"{recipe} {types}: {data} bytes, {data / GIB:.2f} GiB"


# ---- what a file may say

EMBD, HD, LAYERS, VOCAB = 64, 32, 5, 80


def keys(**changes):
    """Keys of a small model without experts; a change of None leaves the key out."""
    base = {
        "block_count": LAYERS, "context_length": 4096, "embedding_length": EMBD, "feed_forward_length": 96,
        "leading_dense_block_count": LAYERS, "attention.head_count": [2, 4, 4, 4, 2], "attention.head_count_kv": 2,
        "attention.key_length": HD, "attention.value_length": HD, "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.sliding_window": 16, "expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 32,
        "rope.dimension_count": 16, "rope.dimension_count_swa": HD, "rope.freq_base": 5e5, "rope.freq_base_swa": 1e4,
    }
    base.update({name.replace("__", "."): value for name, value in changes.items()})
    return {name: value for name, value in base.items() if value is not None}


def write(name, meta, heads=(2, 4, 4, 4, 2), gates=None, leave_out=(), size=HD):
    """A model file without weights worth anything; gates: rows of attn_gate of each layer."""
    path = pathlib.Path(WORK.name) / f"{name}.gguf"
    w = gguf.GGUFWriter(str(path), "laguna")
    for key, value in meta.items():
        add = {bool: w.add_bool, int: w.add_uint32, float: w.add_float32, list: w.add_array, str: w.add_string}
        add[type(value)]("laguna." + key, value)
    w.add_string("tokenizer.ggml.model", "none")

    def put(tensor, *shape):
        if tensor not in leave_out:
            w.add_tensor(tensor, np.zeros(shape, np.float32))

    put("token_embd.weight", VOCAB, EMBD)
    put("output_norm.weight", EMBD)
    for i, n in enumerate(heads):
        for part in ("attn_norm", "ffn_norm"):
            put(f"blk.{i}.{part}.weight", EMBD)
        for part in ("attn_q_norm", "attn_k_norm"):
            put(f"blk.{i}.{part}.weight", size)
        rows = {"attn_q": n * size, "attn_k": 2 * size, "attn_v": 2 * size, "attn_gate": gates[i] if gates else n,
                "ffn_gate": 96, "ffn_up": 96}
        for part, k in rows.items():
            put(f"blk.{i}.{part}.weight", k, EMBD)
        put(f"blk.{i}.attn_output.weight", EMBD, n * size)
        put(f"blk.{i}.ffn_down.weight", EMBD, 96)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return path


def plan(path, *options, ok=True):
    return lagen("plan", "-m", path, "--ctx", 256, *options, ok=ok)


def windows_of(path):
    dump = plan(path, "--dump", "fuse")
    return [int(n) for n in re.findall(r" attn .* window:(\d+)", dump)]


def right_files_plan():
    n = 16
    rows = (
        ("plain", {}, [0, n, n, n, 0]), ("every_second", {"attention__sliding_window_pattern": 2}, [0, n, 0, n, 0]),
        ("all_slide", {"attention__sliding_window_pattern": 0}, [n] * 5),
        ("none_slides", {"attention__sliding_window": 0}, [0] * 5), ("no_window", {"attention__sliding_window": None}, [0] * 5),
        ("said_again", {"attention__sliding_window_pattern": [False, True, True, True, False]}, [0, n, n, n, 0]),
        ("kv_of_layers", {"attention__head_count_kv": [2] * 5}, [0, n, n, n, 0]),
        ("long_window", {"attention__sliding_window": 1 << 20}, [0] + [1 << 20] * 3 + [0]),
    )
    for name, changes, want in rows:
        assert windows_of(write(name, keys(**changes))) == want, name
    dump = plan(write("gates", keys(), gates=[2, 4 * HD, 4, 4 * HD, 2 * HD]), "--dump", "fuse")
    got = re.findall(r" attn .* gate:(\w+)", dump)
    assert got == ["head", "element", "head", "element", "element"], got


def wrong_files_are_refused():
    name = 0
    for changes, says in (
        ({"attention__head_count": [2, 4, 4]}, "laguna.attention.head_count' has 3 numbers for 5 layers"),
        ({"attention__head_count": [2] * 2000}, "has 2000 numbers for 5 layers"),
        ({"attention__head_count": [2, 3, 4, 4, 2]}, "of layer 1 is 3, not a multiple of its head_count_kv 2"),
        ({"attention__head_count": [2, 0, 4, 4, 2]}, "of layer 1 is 0; lagen takes 1 to"),
        ({"attention__head_count": [2.0] * 5}, "of layer 0 is no integer"),
        ({"attention__head_count": None}, "has no key 'laguna.attention.head_count'"),
        ({"attention__head_count": "many"}, "must be int"),
        ({"attention__sliding_window_pattern": [True] * 5}, "sliding_window_pattern' says otherwise of layer 0"),
        ({"attention__value_length": 16}, "value_length' differs from key_length, 32"),
        ({"attention__key_length_swa": 64}, "key_length_swa' differs from key_length, 32"),
        ({"attention__key_length": 512}, "'laguna.attention.key_length' is 512; lagen takes 1 to 256"),
        ({"attention__scale": 0.5}, "attention.scale' is 0.5, not 1 / sqrt(32)"),
        ({"rope__dimension_count": 15}, "rope.dimension_count' is 15; it must be even"),
        ({"rope__dimension_count_swa": 34}, "rope.dimension_count_swa' is 34; lagen takes 2 to 32"),
        ({"rope__scaling__type": "longrope"}, "rope.scaling.type' is 'longrope'"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping' is not 0"),
        ({"router_logit_softcapping": 30.0}, "router_logit_softcapping' is not 0"),
        ({"nextn_predict_layers": 1}, "nextn_predict_layers' is not 0"),
        ({"expert_group_count": 2}, "expert_group_count' is above 1"),
        ({"leading_dense_block_count": 4, "expert_used_count": 5}, "expert_used_count 5"),
        ({"leading_dense_block_count": 4, "expert_count": 0}, "'laguna.expert_count' 0"),
        ({"leading_dense_block_count": 4, "expert_gating_func": 3}, "expert_gating_func' is 3"),
        ({"leading_dense_block_count": 4}, "no tensor 'blk.4.ffn_gate_inp.weight'"),
        ({"leading_dense_block_count": None}, "has no key 'laguna.leading_dense_block_count'"),
    ):
        name += 1
        got = plan(write(f"bad{name}", keys(**changes)), ok=False)
        assert says in got, f"{changes}: {got}"


def wrong_tensors_are_refused():
    for gates, says in (([2, 5, 4, 4, 2], "'blk.1.attn_gate.weight' has 5 rows; a gate for each of 4 heads has 4, "
                         "one for each element 128"), ([2, 4, 4, 4, 3], "'blk.4.attn_gate.weight' has 3 rows")):
        got = plan(write("gate", keys(), gates=gates), ok=False)
        assert says in got, got
    got = plan(write("heads", keys(), heads=(2, 2, 4, 4, 2), gates=[2, 4, 4, 4, 2]), ok=False)
    assert "tensor 'blk.1.attn_q.weight' is 64 x 64; its metadata asks for 64 x 128" in got, got
    for tensor in ("blk.2.attn_q_norm.weight", "blk.3.attn_gate.weight", "output_norm.weight"):
        got = plan(write("absent", keys(), leave_out=(tensor,)), ok=False)
        assert f"'{tensor}'" in got, got


# ---- rings

def ring_bytes(path, *options):
    """Bytes of the caches of each layer: K and V."""
    dump = lagen("plan", "-m", path, "--dump", "fuse", *options)
    return [int(n) for n in re.findall(r"value \d+ kv\.\d+\.k .*bytes=(\d+)", dump)]


def rings_hold_window_and_step():
    path, cell = write("rings", keys()), 2 * 2 * HD  # bytes of a position: two heads of halves
    for ctx, chunk, slots, ring in (
        (4096, 1, 1, 256), (4096, 241, 1, 256), (4096, 242, 1, 512), (4096, 497, 1, 512), (4096, 498, 1, 768),
        (4096, 4096, 1, 4096), (300, 300, 1, 512), (200, 200, 1, 256), (4096, 1, 242, 512),
    ):
        full = -(-ctx // 256) * 256
        got = ring_bytes(path, "--ctx", ctx, "--chunk", chunk, "--slots", slots)
        want = [slots * cell * min(n, full) for n in (full, ring, ring, ring, full)]
        assert got == want, (ctx, chunk, slots, got, want)
    q8 = ring_bytes(path, "--ctx", 4096, "--chunk", 1, "--kv", "q8_0")
    assert q8 == [n * 17 // 32 for n in ring_bytes(path, "--ctx", 4096, "--chunk", 1)], q8


def contexts_are_what_the_file_says():
    path = write("context", keys())
    text = lagen("plan", "-m", path)
    assert "ctx 4096" in text, text
    got = lagen("plan", "-m", path, "--ctx", 4097, ok=False)
    assert "--ctx is 4097; the model file says context_length 4096, the largest that would do" in got, got
    long = write("million", keys(context_length=1048576))
    assert "ctx 1048576" in lagen("plan", "-m", long)
    assert ring_bytes(long)[:2] == [1048576 * 2 * 2 * HD, 768 * 2 * 2 * HD]


# ---- launches

def launches(path, *options):
    return json.loads(lagen("plan", "-m", path, "--arch", "sm_121a", "--dump", "launch", *options))["kernels"]


@tap.named("A06 heads and sequences make no threads")
def heads_make_no_threads():
    """64 heads and 17 sequences: the same threads as with 2 heads and one."""
    few = {k["descriptor"]["block"] for k in launches(write("few", keys()), "--ctx", 256)}
    many = keys(attention__head_count=[64] * LAYERS)
    path = write("many", many, heads=(64,) * LAYERS)
    got = {k["descriptor"]["block"] for k in launches(path, "--ctx", 256, "--slots", 17)}
    assert got == few and max(got) <= 1024, (got, few)


@tap.named("A10 A11 what grows stands on x or is cut")
def what_grows_is_on_x():
    """Caches of a million positions, chunks of 65,536: on y and z only the model's own widths, which the row allows."""
    for options in (["--chunk", 65536], ["--slots", 64]):
        for k in launches(write("million", keys(context_length=1048576)), *options):
            for axis in k["descriptor"]["axes"]:
                fixed = axis["kind"] == "dim" or "base" in axis
                assert axis["on"] in ("x", "loop") or fixed, (k["name"], axis)


@tap.named("A13 A15 every index has 64 bits")
def indexes_are_wide():
    """A million positions, and places beyond 2^31 in the caches."""
    for k in launches(write("million", keys(context_length=1048576)), "--slots", 64):
        for o in k["descriptor"]["operands"]:
            assert o["index_bits"] == 64, (k["name"], o)


@tap.named("G12 heads that no kernel takes are refused")
def heads_are_refused():
    for changes, options, says in (
        ({"attention__key_length": 72, "attention__value_length": 72}, [], "head size 72"),
        ({"attention__key_length": 48, "attention__value_length": 48}, ["--kv", "q8_0"], "48"),
        ({}, ["--kv", "q4_0"], "--kv: 'q4_0' is none of f16, q8_0"),
    ):
        size = changes.get("attention__key_length", HD)
        meta = keys(**changes, rope__dimension_count_swa=size)
        got = plan(write("size", meta, size=size), *options, ok=False)
        assert says in got, (changes, got)


@tap.named("A22 programs of one GPU: two are refused")
def one_gpu():
    got = lagen("plan", "-m", write("plain", keys()), "--arch", "sm_90,sm_89", ok=False)
    assert "sm_90,sm_89" in got, got


# ---- full size, from directories alone

POSITION, WINDOW = 2 * 8 * 128 * 2, 512  # bytes of a position of one layer
# recipe: layers that see everything, others; context
PLANS = {"laguna-s": (12, 36, 262144), "laguna-s-1m": (12, 36, 1048576), "laguna-xs": (10, 30, 262144),
         "laguna-m1-like": (70, 0, 262144)}


def full_size_models_are_planned_at_once():
    """Whole contexts, nothing cut; by the planner's own processor time."""
    for recipe, (full, near, ctx) in PLANS.items():
        path = header(recipe, "q4_k_m")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        p = json.loads(lagen("plan", "-m", path, "--arch", "sm_121a", "--json"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert p["limits"]["ctx"] == ctx and p["facts"] > 20000, (recipe, p)
        ring = WINDOW + p["limits"]["chunk"]
        assert p["limits"]["chunk"] % 256 == 0, p["limits"]
        assert p["memory"]["kv"] == POSITION * (full * ctx + near * ring), (recipe, p["memory"])
        assert seconds < (10 if SANITIZED else 1), f"{recipe}: {seconds:.3f} s"
    p = json.loads(lagen("plan", "-m", header("laguna-s", "q4_k_m"), "--arch", "sm_121a", "--json", "--kv", "q8_0",
                         "--chunk", 512))
    assert p["memory"]["kv"] == POSITION * (12 * 262144 + 36 * 1024) * 17 // 32, p["memory"]


def recipes_of_full_size_models_are_found():
    for recipe, name in (("laguna-s", "laguna-s"), ("laguna-xs", "laguna-xs"), ("laguna-m1-like", "laguna-m1")):
        p = json.loads(lagen("plan", "-m", header(recipe, "q4_k_m"), "--arch", "sm_121a", "--json"))
        assert p["recipe"] == name and p["unused_tensors"] == [], (recipe, p)


def types_that_published_files_mix_are_planned():
    """Attention in F16 or Q8_0 beside K-quant experts, types that change from layer to layer."""
    for types in ("q4_k_m_f16", "q8_0_q4_k", "routed_q2_k"):
        p = json.loads(lagen("plan", "-m", header("laguna-s", types), "--arch", "sm_121a", "--json"))
        assert p["facts"] > 20000, types


tap.main([recipes_have_the_sizes_of_published_files, right_files_plan, wrong_files_are_refused,
          wrong_tensors_are_refused, rings_hold_window_and_step, contexts_are_what_the_file_says,
          heads_make_no_threads, what_grows_is_on_x, indexes_are_wide, heads_are_refused, one_gpu,
          full_size_models_are_planned_at_once, recipes_of_full_size_models_are_found,
          types_that_published_files_mix_are_planned])
