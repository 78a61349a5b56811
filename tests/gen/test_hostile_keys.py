"""Hostile model files, second part: every key that lagen reads once in each wrong type (B03), mixtures of experts (B13, B17,
B24), and what must not be refused (B02, B23, B25).

Takes build/lagen, or the path given as argument. Rules of a refusal as in test_hostile.py."""
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "tests" / "gen"), str(ROOT / "tests" / "fuzz")]

import tap
from make_corpus import ARRAY, F32, SIZES, STR, U32, array, info, key, model
from test_hostile import ALIGN, EMIT, INSPECT, LAGEN, complaint, number, run, tensors, tiny

KINDS = [*SIZES, STR, ARRAY]
INT = {0, 1, 2, 3, 4, 5, 10, 11}
REAL = {6, 12}
BOOL, STRING, LIST = {7}, {8}, {9}
PLAN = ["plan", "--model", "hostile.gguf", "--arch", "x86-64-v3", "--dump", "graph"]
FROM_KEYS = ["--rope-mscale", "key", "--rope-beta", "key"]

# Keys of every architecture, behind "<arch>."; then those of one; then the others. With the types that are right.
COMMON = {
    **dict.fromkeys(("block_count", "context_length", "embedding_length", "feed_forward_length", "attention.key_length",
                     "attention.value_length", "rope.dimension_count", "expert_count",
                     "rope.scaling.original_context_length"), INT),
    **dict.fromkeys(("attention.layer_norm_rms_epsilon", "attention.scale", "rope.freq_base", "rope.scaling.factor",
                     "rope.scaling.attn_factor", "rope.scaling.yarn_attn_factor", "rope.scaling.yarn_beta_fast",
                     "rope.scaling.yarn_beta_slow"), REAL),
    "rope.scaling.type": STRING}
OWN = {
    "llama": {"attention.head_count": INT, "attention.head_count_kv": INT, "rope.scale_linear": REAL, "expert_used_count": INT,
              "attention.sliding_window": INT},
    "laguna": {
        **dict.fromkeys(("attention.head_count", "attention.head_count_kv", "attention.sliding_window_pattern"), INT | LIST),
        **dict.fromkeys(("nextn_predict_layers", "expert_group_count", "attention.key_length_swa", "attention.value_length_swa",
                         "attention.sliding_window", "leading_dense_block_count", "expert_used_count",
                         "expert_feed_forward_length", "expert_gating_func", "expert_shared_count",
                         "expert_shared_feed_forward_length", "rope.dimension_count_swa"), INT),
        **dict.fromkeys(("attn_logit_softcapping", "final_logit_softcapping", "router_logit_softcapping", "expert_weights_scale",
                         "rope.freq_base_swa"), REAL),
        "expert_weights_norm": BOOL}}
T = "tokenizer.ggml."
S = "general.sampling."
OTHERS = {
    **dict.fromkeys((S + "temp", S + "top_p", S + "min_p", S + "penalty_repeat"), REAL),
    **dict.fromkeys((S + "top_k", S + "penalty_last_n"), INT),
    "general.architecture": STRING, ALIGN: {U32}, "split.count": INT, "tokenizer.chat_template": STRING,
    **dict.fromkeys((T + "model", T + "pre"), STRING),
    **dict.fromkeys((T + "tokens", T + "scores", T + "token_type", T + "merges"), set()),  # lists, and not of what we put in them
    **dict.fromkeys((T + "bos_token_id", T + "eos_token_id", T + "eot_token_id", T + "eom_token_id", T + "unknown_token_id"), INT),
    **dict.fromkeys((T + "add_bos_token", T + "add_eos_token", T + "add_space_prefix"), BOOL)}
SHOWN = {"general.name": STRING, "general.file_type": INT, "tokenizer.chat_templates": set()}  # by `inspect` alone
SPLIT = {"split.no", "split.tensors.count"}  # read where split.count asks for it: test_gguf_split.c


def packed(name, kind):
    if kind == ARRAY and name in (T + "scores", T + "token_type"):
        return array(name, STR, ["x"])
    value = 0 if name == "llama.attention.sliding_window" else 1  # 1 has the right type, and is refused (F05)
    return array(name, U32, [1]) if kind == ARRAY else key(name, kind, "1" if kind == STR else value)


# ---- a model file taken apart and put together


class Parts:
    """Keys as packed bytes by name, directory entries (name, dims, type, offset), and the size of the data."""

    def __init__(self, data, size):
        self.at, self.data = 8, data
        n_infos, n_keys = struct.unpack_from("<QQ", data, 8)
        self.at, self.keys, self.infos = 24, {}, []
        for _ in range(n_keys):
            begin = self.at
            name = self.string()
            self.value(self.take("<I"))
            self.keys[name] = data[begin:self.at]
        for _ in range(n_infos):
            name = self.string()
            dims = [self.take("<Q") for _ in range(self.take("<I"))]
            self.infos.append((name, dims, self.take("<I"), self.take("<Q")))
        self.n_data = size - -(-self.at // 32) * 32

    def take(self, form):
        v = struct.unpack_from(form, self.data, self.at)[0]
        self.at += struct.calcsize(form)
        return v

    def string(self):
        n = self.take("<Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == STR:
            return self.string()
        if kind != ARRAY:
            return self.take(SIZES[kind])
        inner = self.take("<I")
        return [self.value(inner) for _ in range(self.take("<Q"))]

    def bent(self, change=None, drop=(), shapes=None):
        """A writer of the file with other keys (None: left out), fewer tensors, other shapes; its weights are a hole."""
        keys = {**self.keys, **(change or {})}
        infos = [info(n, (shapes or {}).get(n, d), k, o) for n, d, k, o in self.infos if n not in drop]
        head = model([k for k in keys.values() if k], infos)
        head += bytes(-len(head) % 32)

        def write(path):
            with open(path, "wb") as f:
                f.write(head)
                f.truncate(len(head) + self.n_data)
        return write


def laguna():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "l.gguf"
        subprocess.run([LAGEN, "synth", "synth/laguna-odd", "--header-only", "-o", path], check=True, capture_output=True)
        size = path.stat().st_size
        with open(path, "rb") as f:
            return Parts(f.read(1 << 16), size)


# ---- B03


def yarn(arch):
    p = f"{arch}.rope.scaling."
    return {p + "type": key(p + "type", STR, "yarn"), p + "original_context_length": key(p + "original_context_length", U32, 64),
            **{p + n: key(p + n, F32, v) for n, v in (("factor", 2.0), ("yarn_beta_fast", 2.0), ("yarn_beta_slow", 1.0))}}


def check_yarn(t, parts):
    """Numbers with which its formulas give no frequencies or a magnitude that is 0 in f32."""
    p = "laguna.rope.scaling."
    formula, nan = PLAN + ["--rope-beta", "key"], float("nan")
    for name, value, says, command in (
            *[("yarn_beta_slow", v, "yarn_beta_slow' ", PLAN + FROM_KEYS) for v in (0.0, -1.0, 2.0, 3.0, nan, float("inf"))],
            *[("yarn_beta_fast", v, "yarn_beta_fast' ", PLAN + FROM_KEYS) for v in (0.0, -1.0, 1.0, nan, float("inf"))],
            *[("yarn_attn_factor", v, f"yarn_attn_factor' is {v:g}", PLAN + FROM_KEYS) for v in (0.0, -1.0, 1e-7, 2e6, nan)],
            *[("attn_factor", v, f"rope.scaling.attn_factor' is {v:g}", formula) for v in (0.0, -1.0, 1e-7, 2e6, nan)],
            *[("factor", v, "rope.scaling.factor' is", formula) for v in (1e-9, 4.5e-5, -1.0, nan, float("inf"))]):
        bad = complaint(command, parts.bent({**yarn("laguna"), p + name: key(p + name, F32, value)}), says)
        t.check(f"YaRN with {name} {value:g}", not bad, bad)
    base = "laguna.rope.freq_base"
    bad = complaint(formula, parts.bent({**yarn("laguna"), base: key(base, F32, 1.0)}), "rope.freq_base' is 1")
    t.check("YaRN with base 1", not bad, bad)


def check_types(t, name, right, make, command):
    wrong = [k for k in KINDS if k not in right]
    bad = [complaint(command, make({name: packed(name, k)}), name) for k in wrong]
    t.check(f"B03 key {name} in each of {len(wrong)} wrong types", not any(bad), "".join(bad))


def check_keys(t, parts):
    for arch, make in (("llama", tiny), ("laguna", parts.bent)):
        for name, right in {**COMMON, **OWN[arch]}.items():
            context = yarn(arch) if "rope.scaling" in name else number("llama.expert_count", 8) if arch == "llama" and \
                name == "expert_used_count" else {}
            check_types(t, f"{arch}.{name}", right, lambda change: make({**context, **change}),
                        PLAN + (FROM_KEYS if "rope.scaling" in name else []))
    for name, right in OTHERS.items():
        check_types(t, name, right, tiny, EMIT if name.startswith((T, S)) or name.endswith("template") else PLAN)
    for name, right in SHOWN.items():
        check_types(t, name, right, tiny, INSPECT)


def check_that_all_keys_are_here(t):
    """Names of keys as they stand in the sources."""
    found = set()
    for path in (ROOT / "gen").rglob("tok*.c"):
        found |= {T + m for m in re.findall(r'KEY\("([a-z_]+)"\)', path.read_text())}
    for path in (ROOT / "gen").rglob("*.c"):
        found |= set(re.findall(r'"((?:tokenizer|general|split)\.[a-z_.]+)"', path.read_text()))
    for arch, own in OWN.items():
        text = (ROOT / "templates" / "arch" / f"{arch}.lua").read_text()
        found |= {f"{arch}.{m}" for m in re.findall(rf'"{arch}\.([a-z_.]*[a-z])"', text)}
    rope = (ROOT / "templates" / "lib" / "rope.lua").read_text()
    found |= {"llama." + m for m in re.findall(r'prefix \.\. "([a-z_.]*[a-z])"', rope)}
    here = set(OTHERS) | set(SHOWN) | SPLIT | {T} | {f"{a}.{n}" for a, own in OWN.items() for n in {**COMMON, **own}}
    t.check("B03 every key that the sources name is tried", found <= here, str(sorted(found - here)))


# ---- mixtures of experts


def check_experts(t, parts):
    for name in ("expert_count", "expert_used_count", "expert_feed_forward_length", "embedding_length", "feed_forward_length",
                 "attention.head_count", "attention.head_count_kv", "attention.key_length", "rope.dimension_count"):
        bad = complaint(PLAN, parts.bent(number(f"laguna.{name}", 0)), name)
        t.check(f"B13 mixture, key {name} is 0", not bad, bad)
    for name, v in (("expert_used_count", 8), ("expert_used_count", 2**32 - 1), ("expert_count", 1), ("expert_count", 2**32 - 1),
                    ("expert_gating_func", 3)):
        bad = complaint(PLAN, parts.bent(number(f"laguna.{name}", v)), name)
        t.check(f"B13 mixture, key {name} is {v}", not bad, bad)
    for what in ("ffn_up_exps", "ffn_gate_inp", "ffn_down_shexp"):
        name = f"blk.3.{what}.weight"
        bad = complaint(PLAN, parts.bent(drop=[name]), f"'{name}', which architecture 'laguna' requires")
        t.check(f"B17 a mixture without {what}", not bad, bad)
    name = "blk.3.ffn_up_exps.weight"
    dims = next(d for n, d, _, _ in parts.infos if n == name)
    bad = complaint(PLAN, parts.bent(shapes={name: dims[:2] + [dims[2] - 1]}), name)
    t.check("B23 a mixture with one expert too few", not bad, bad)


# ---- what must not be refused


def accepted(data, command, says=""):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "work").mkdir()
        (folder / "work" / "hostile.gguf").write_bytes(data)
        status, out, err, _, _ = run(command, folder)
        return "" if status == 0 and out and (says in err if says else not err) else f"status {status}: {err}"


def check_accepted(t):
    for a in (1, 64, 4096):
        bad = accepted(model([key(ALIGN, U32, a)], align=a), INSPECT)
        t.check(f"B02 powers of two are taken: {a}", not bad, bad)
    wide = {"llama.embedding_length": 96, "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2,
            "llama.attention.key_length": 32, "llama.attention.value_length": 32, "llama.rope.dimension_count": 32}
    shapes = {"token_embd.weight": [96, 320], "output_norm.weight": [96]}
    for i in range(2):
        shapes |= {f"blk.{i}.{n}.weight": s for n, s in (
            ("attn_norm", [96]), ("attn_q", [96, 128]), ("attn_k", [96, 64]), ("attn_v", [96, 64]), ("attn_output", [128, 96]),
            ("ffn_norm", [96]), ("ffn_gate", [96, 128]), ("ffn_up", [96, 128]), ("ffn_down", [128, 96]))}
    data = tiny({n: key(n, U32, v) for n, v in wide.items()}, shapes=shapes)
    bad = accepted(data, PLAN)
    t.check("B23 heads of another size than width / heads, and no output.weight", not bad, bad)
    shapes["blk.1.attn_output.weight"] = [96, 96]
    bad = complaint(PLAN, tiny({n: key(n, U32, v) for n, v in wide.items()}, shapes=shapes),
                    "'blk.1.attn_output.weight' is 96 x 96; its metadata asks for 128 x 96")
    t.check("B23 expected and found shape are told", not bad, bad)
    entries, n = tensors((), None, {}, {})
    keys = Parts(tiny(), len(tiny())).keys
    more = model(list(keys.values()), entries + [info("v.blk.9.odd", [64], 0, n)], n + 256)
    bad = accepted(more, [x for x in PLAN if x not in ("--dump", "graph")],
                   "warning: 1 tensor of the model file is not used: v.blk.9.odd\n")
    t.check("B23 B25 a tensor that nobody asked for is a warning", not bad, bad)


def main():
    t = tap.Tap()
    if not LAGEN.exists():
        t.skip("hostile keys", f"no {LAGEN.name} here")
        return t.done()
    parts = laguna()
    check_that_all_keys_are_here(t)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "work").mkdir()
        parts.bent()(folder / "work" / "hostile.gguf")
        status, out, err, _, _ = run(PLAN, folder)
        t.check("the mixture that is bent below is taken", status == 0 and out and not err, err)
    check_accepted(t)
    check_experts(t, parts)
    check_yarn(t, parts)
    check_keys(t, parts)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
