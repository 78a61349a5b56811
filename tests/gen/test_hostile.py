"""Hostile model files through the program itself (cases B01 to B25): exit status 1, one line on
stderr that names the culprit, nothing on stdout, nothing left behind, under 5 s and 200 MiB.

Takes build/lagen, or the path given as argument. What a command that is not built yet would have to
refuse is skipped by name."""
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "tests" / "fuzz")]

import tap
from make_corpus import ARRAY, F32, SIZES, STR, U32, array, info, key, model, string

LAGEN = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "lagen").resolve()
SANITIZED = "san" in LAGEN.parts
MAX_SECONDS, MAX_KIB = 5, 200 * 1024
F16, I8 = 1, 24
BYTES = {0: (1, 4), 1: (1, 2), 2: (32, 18), 8: (32, 34), 24: (1, 1), 39: (32, 17), 42: (64, 18)}


def limit_memory():
    """ulimit -v for runs on small files: a claimed count must not even be tried."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_KIB * 1024, MAX_KIB * 1024))


def run(arguments, folder, small=True):
    """Exit status, stdout, stderr, seconds and peak KiB of one run in `folder`."""
    start = time.monotonic()
    with open(folder / "out", "w+b") as out, open(folder / "err", "w+b") as err:
        process = subprocess.Popen([LAGEN, *arguments], cwd=folder / "work", stdout=out, stderr=err,
                                   preexec_fn=limit_memory if small and not SANITIZED else None)
        timer = time.monotonic() + 2 * MAX_SECONDS
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > timer:
                process.kill()
            time.sleep(0.001)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return (process.returncode, out.read().decode("utf-8", "replace"),
                err.read().decode("utf-8", "replace"), time.monotonic() - start, usage.ru_maxrss)


def complaint(arguments, data, says, small=True):
    """What is wrong with the refusal of `data` by one command, or nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "work").mkdir()
        path = folder / "work" / "hostile.gguf"
        if callable(data):
            data(path)
        else:
            path.write_bytes(data)
        status, out, err, seconds, kib = run(arguments, folder, small)
        left = sorted(str(p.relative_to(folder / "work")) for p in (folder / "work").rglob("*"))
    problems = []
    if status != 1:
        problems.append(f"exit status {status}, not 1")
    lines = [x for x in err.splitlines() if not re.fullmatch(r"[a-z ]+ \d+ %", x)]  # progress
    if len(lines) != 1 or not err.endswith(lines[0] + "\n") or len(lines[0]) > 400:
        problems.append("stderr is not one line")
    if says not in err:
        problems.append(f"stderr does not say '{says}'")
    if out:
        problems.append("stdout is not empty")
    if left != ["hostile.gguf"]:
        problems.append(f"left behind: {left}")
    if seconds > MAX_SECONDS:
        problems.append(f"{seconds:.1f} s")
    if kib > MAX_KIB and not SANITIZED:
        problems.append(f"{kib} KiB")
    return f"{arguments[0]}: {'; '.join(problems)}\n{err[:500]}" if problems else ""


LAYERS = "llama.block_count"
ALIGN = "general.alignment"
INSPECT = ["inspect", "hostile.gguf"]
EMIT = ["emit", "--model", "hostile.gguf", "--arch", "x86-64-v3", "--out", "program"]


def has_command(name):
    return subprocess.run([LAGEN, name, "--help"], capture_output=True).returncode == 0


def tiny(change=None, drop=(), rename=None, shapes=None, types=None, arch="llama"):
    """A small valid model of architecture llama, 64 wide, 2 layers, 320 tokens, weights zero.
    change: keys by name, as packed bytes, or None to leave one out; shapes, types: of tensors."""
    p = arch + "."
    keys = {"general.architecture": key("general.architecture", STR, arch)}
    for name, v in (("block_count", 2), ("context_length", 128), ("embedding_length", 64),
                    ("feed_forward_length", 128), ("attention.head_count", 4),
                    ("attention.head_count_kv", 2), ("rope.dimension_count", 16),
                    ("vocab_size", 320)):
        keys[p + name] = key(p + name, U32, v)
    keys[p + "rope.freq_base"] = key(p + "rope.freq_base", F32, 10000.0)
    eps = p + "attention.layer_norm_rms_epsilon"
    keys[eps] = key(eps, F32, 1e-5)
    t = "tokenizer.ggml."
    tokens = ["<s>", "</s>"] + [f"t{i}" for i in range(62)] + [chr(0x100 + i) for i in range(256)]
    keys[t + "model"] = key(t + "model", STR, "gpt2")
    keys[t + "pre"] = key(t + "pre", STR, "gpt-2")
    keys[t + "tokens"] = array(t + "tokens", STR, tokens)
    keys[t + "token_type"] = array(t + "token_type", 5, [3, 3] + [1] * 318)
    keys[t + "merges"] = array(t + "merges", STR, [])
    keys[t + "bos_token_id"] = key(t + "bos_token_id", U32, 0)
    keys[t + "eos_token_id"] = key(t + "eos_token_id", U32, 1)
    for name, packed in (change or {}).items():
        keys[name] = packed
    return model([k for k in keys.values() if k], *tensors(drop, rename, shapes or {}, types or {}))


def tensors(drop, rename, shapes, types):
    """Directory entries and the size of the data part."""
    want = [("token_embd.weight", [64, 320], F16), ("output_norm.weight", [64], 0)]
    for i in range(2):
        want += [(f"blk.{i}.{n}.weight", s, F16 if len(s) == 2 else 0) for n, s in (
            ("attn_norm", [64]), ("attn_q", [64, 64]), ("attn_k", [64, 32]), ("attn_v", [64, 32]),
            ("attn_output", [64, 64]), ("ffn_norm", [64]), ("ffn_gate", [64, 128]),
            ("ffn_up", [64, 128]), ("ffn_down", [128, 64]))]
    entries, at = [], 0
    for name, shape, kind in want:
        if name in drop:
            continue
        shape, kind = shapes.get(name, shape), types.get(name, kind)
        elems, size = BYTES[kind]
        count = 1
        for n in shape:
            count *= n
        entries.append(info(rename(name) if rename else name, shape, kind, at))
        at += -(-(count // elems * size) // 32) * 32
    return entries, at


def one(*dims, kind=0, offset=0, data=4096, keys=()):
    return model(list(keys), [info("t", dims, kind, offset)], data)


def number(name, v, kind=U32):
    return {name: key(name, kind, v)}


def header_cases():
    """Name, bytes, what the message must name: refused by whatever opens the file."""
    for dims in ([1, 0], [0], [4, 0], [0, 0, 0, 0]):
        yield f"B01 dimensions {dims}", one(*dims), "tensor 't': dimension"
    for a in (0, 3, 24, 33, 2**31):
        yield f"B02 alignment {a}", model([key(ALIGN, U32, a)]), f"key '{ALIGN}': {a}"
    for kind in list(SIZES) + [STR]:
        if kind != U32:
            data = model([key(ALIGN, kind, "1" if kind == STR else 1)])
            yield f"B03 alignment of type {kind}", data, f"key '{ALIGN}'"
    yield "B03 alignment an array", model([array(ALIGN, U32, [32])]), f"key '{ALIGN}'"
    for n in (60, 61, 2**30, 2**63, 2**64 - 1):
        data = model([string("k") + struct.pack("<IQ", STR, n) + b"12345678"])
        yield f"B04 string of {n} bytes", data, "key 'k'"
        yield f"B04 key of {n} bytes", model([struct.pack("<Q", n) + bytes(16)]), "key 0"
    for n in (500_000_000, 2**32, 2**63, 2**64 - 1):
        yield f"B05 a count of {n} keys", model([], n_keys=n), f"key count {n}"
        yield f"B05 a count of {n} tensors", model([], n_infos=n), f"tensor count {n}"
    for kind in list(SIZES) + [STR, ARRAY]:
        for n in (2**64 - 1, 0x40000000):
            yield f"B06 array of {n} of type {kind}", model([array("k", kind, [], n)]), "key 'k'"
    for n in (2**64 // 56, 2**64 // 64 - 1, 2**64 // 80 + 1):  # times the bytes of an entry in memory, it wraps
        yield f"B10 a count near the wrap, {n} tensors", model([], n_infos=n), f"tensor count {n}"
    for dims in ([2**63 - 1, 2], [2**32, 2**32], [2**62, 4]):
        yield f"B08 dimensions {dims}", one(*dims, kind=I8), "tensor 't': dimension 1"
    for n in (2**64 // 4 - 1, (2**64 - 31) // 4, (2**64 - 64) // 4):
        yield (f"B09 a tensor of {n} floats", model([], [info("t", [n], 0, 0), info("u", [8], 0, 32)], 64),
               "tensor 't'")
    for kind in (4, 5, 36, 1000, 2**32 - 1):
        yield f"B20 type {kind}", one(256, kind=kind), f"tensor 't': type {kind}"
    yield "B16 an HTML page", b"<!DOCTYPE html>\n<html>Not found</html>\n", "not a GGUF file"
    yield "B16 an empty file", b"", "not a GGUF file"
    whole = tiny()
    yield "B16 the last tensor less a byte", whole[:-1], "truncated"
    yield ("B19 a key twice", model([key("k", U32, 1), key("k", STR, "x")]), "key 'k' occurs twice")
    yield ("B19 a tensor twice", model([], [info("t", [8], 0, 0), info("t", [8], 0, 32)], 64),
           "tensor 't' occurs twice")
    many = [info(f"t{i}", [1], I8, 32 * i) for i in range(10**5)]
    many.append(info("t7", [1], I8, 32 * 10**5))
    yield "B19 one of 100,000 tensors twice", model([], many, 32 * 10**5 + 1), "'t7'"
    for n in (0, 1, 513, 2**32 - 1):
        yield f"B12 block_count {n}", tiny(number(LAYERS, n)), f"key '{LAYERS}'"
    yield "B12 a layer without tensors", tiny(number(LAYERS, 3)), "blk.2."


def plan_cases():
    """The same for what only planning finds."""
    for name in ("context_length", "embedding_length", "feed_forward_length",
                 "attention.head_count", "attention.head_count_kv", "attention.key_length",
                 "rope.dimension_count"):
        full = "llama." + name
        yield f"B13 key {name} is 0", tiny(number(full, 0)), full
    yield "B13 4 heads over 3", tiny(number("llama.attention.head_count_kv", 3)), "head_count"
    n_rot = "llama.rope.dimension_count"
    yield "B13 odd rope dimensions", tiny(number(n_rot, 15)), n_rot
    for name in ("llama.context_length", "llama.embedding_length", "llama.attention.head_count",
                 "general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.tokens"):
        yield f"B25 no {name}", tiny({name: None}), name
    yield from tokenizer_cases("tokenizer.ggml.")
    up = "blk.1.ffn_up.weight"
    yield "B17 no ffn_up of layer 1", tiny(drop=[up]), up
    yield "B25 other names", tiny(rename=lambda n: n.replace("blk.", "model.layers.")), "blk.0."
    gate = "blk.0.ffn_gate.weight"
    yield "B23 ffn_gate of another width", tiny(shapes={gate: [64, 96]}), "ffn_gate"
    yield "B23 attn_q of other heads", tiny(number("llama.attention.key_length", 32)), "attn_q"
    yield "B20 q2_0", tiny(types={up: 42}), "q2_0"
    for bits in (0x7C00, 0x7E00):
        yield f"B24 a scale of 0x{bits:04x}", with_scale(bits), "token_embd.weight"
    yield "unknown architecture", tiny(arch="../../etc/passwd"), "general.architecture"
    yield "unsupported architecture", tiny(arch="nosuch"), "nosuch"


def with_scale(bits):
    """The model with q8_0 embeddings, one qblock of row 7 scaled by infinity or NaN."""
    types = {"token_embd.weight": 8}
    data = bytearray(tiny(types=types))
    start = len(data) - tensors((), None, {}, types)[1]
    struct.pack_into("<H", data, start + 7 * 2 * 34, bits)
    return bytes(data)


def tokenizer_cases(t):
    scores, types = array(t + "scores", F32, [0.0] * 319), array(t + "token_type", 5, [1])
    yield "B14 319 scores", tiny({t + "scores": scores}), t + "scores"
    yield "B14 1 token_type", tiny({t + "token_type": types}), t + "token_type"
    merges = array(t + "merges", STR, ["nope nix"])
    yield "B14 merges of unknown tokens", tiny({t + "merges": merges}), "merge"
    for n in (320, 2**32 - 1):
        yield f"B14 bos {n}", tiny(number(t + "bos_token_id", n)), t + "bos_token_id"


def truncations(commands):
    """A small valid file cut at every byte."""
    whole = model([key("general.architecture", STR, "llama"), array("a", STR, ["x", "yz"]),
                   key("f", F32, 1.0)], [info("t", [8, 2], 0, 0), info("u", [3], F16, 64)], 70)
    for n in range(len(whole)):
        for command in commands:
            bad = complaint(command, whole[:n], "hostile.gguf")
            if bad:
                return f"cut to {n} bytes: {bad}"
    return ""


def sparse(size):
    """A hole of `size` bytes: zero keys would be read from it if counts were believed."""
    def write(path):
        with open(path, "wb") as f:
            f.write(b"GGUF" + struct.pack("<IQQ", 3, 2**18, 2**16))
            f.truncate(size)
    return write


def check_cases(t, cases, commands):
    for name, data, says in cases:
        bad = "".join(complaint(c, data, says) for c in commands)
        t.check(name, not bad, bad)


def check_valid(t):
    """The file that the cases above bend is good: else they would be refused for another reason."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "work").mkdir()
        (folder / "work" / "hostile.gguf").write_bytes(tiny())
        for command in [INSPECT] + ([["plan"] + EMIT[1:-2]] if has_command("plan") else []):
            status, out, err, _, _ = run(command, folder)
            t.check(f"{command[0]} takes the model that is bent below", status == 0 and out, err)


def main():
    t = tap.Tap()
    if not LAGEN.exists():
        t.skip("hostile model files", f"no {LAGEN.name} here")
        return t.done()
    emits = has_command("emit")
    commands = [INSPECT] + ([EMIT] if emits else [])
    check_valid(t)
    check_cases(t, header_cases(), commands)
    bad = truncations([INSPECT])
    t.check("B16 cut at every byte", not bad, bad)
    bad = complaint(INSPECT, sparse(66 << 30), "key 0", small=False)
    t.check("B05 a header of zeros over 66 GiB", not bad, bad)
    if emits:
        check_cases(t, plan_cases(), [EMIT])
    else:
        t.skip("plan-level cases B13 to B25", "no `lagen emit` yet")
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
