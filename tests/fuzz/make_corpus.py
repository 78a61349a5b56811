#!/usr/bin/env python3
"""Writes the kept inputs of fuzz_gguf into tests/fuzz/corpus/gguf: one small file per shape of
model file, right and wrong, so that fuzzing starts where the branches are. Needs Python only. Run it
after changing it, and commit what it writes; files of other names (found by fuzzing) stay there."""
import os
import struct

U32, F32, BOOL, STR, ARRAY, U64 = 4, 6, 7, 8, 9, 10
SIZES = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q",
         11: "<q", 12: "<d"}


def string(s):
    b = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(b)) + b


def scalar(kind, v):
    return string(v) if kind == STR else struct.pack(SIZES[kind], v)


def key(name, kind, v):
    return string(name) + struct.pack("<I", kind) + scalar(kind, v)


def array(name, kind, values, count=None):
    n = len(values) if count is None else count
    return (string(name) + struct.pack("<IIQ", ARRAY, kind, n)
            + b"".join(scalar(kind, v) for v in values))


def info(name, dims, kind, offset):
    return (string(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
            + struct.pack("<IQ", kind, offset))


def model(keys, infos=(), data=0, version=3, n_keys=None, n_infos=None, align=32):
    head = b"GGUF" + struct.pack("<IQQ", version, len(infos) if n_infos is None else n_infos,
                                 len(keys) if n_keys is None else n_keys)
    head += b"".join(keys) + b"".join(infos)
    return head + bytes(-len(head) % align) + bytes(data) if data else head


def llama():
    keys = [key("general.architecture", STR, "llama"), key("general.name", STR, "tiny"),
            key("general.file_type", U32, 15), key("llama.block_count", U32, 1),
            key("llama.context_length", U32, 64), key("tokenizer.ggml.model", STR, "gpt2"),
            array("tokenizer.ggml.tokens", STR, ["a", "b", "ab"]),
            array("tokenizer.ggml.scores", F32, [0.0, 1.0, 2.0]),
            array("tokenizer.ggml.token_type", 5, [3, 1, 1]),
            array("tokenizer.ggml.merges", STR, ["a b"]),
            key("tokenizer.ggml.bos_token_id", U32, 0),
            key("tokenizer.chat_template", STR, "{{ x }}")]
    infos = [info("token_embd.weight", [32, 3], 8, 0), info("blk.0.attn_q.weight", [32, 2], 2, 128),
             info("blk.0.ffn_up_exps.weight", [4, 2, 2], 1, 192),
             info("output_norm.weight", [8], 0, 224)]
    return model(keys, infos, 256)


def all_kinds():
    keys = [key(f"k{k}", k, 1) for k in SIZES] + [key("s", STR, b"\xff\x00\n\xe2\x82\xac")]
    keys += [array(f"a{k}", k, [0, 1]) for k in SIZES] + [array("as", STR, ["", "x"])]
    return model(keys)


FILES = {
    "empty": b"",
    "header": model([]),
    "version2": model([], version=2),
    "big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "llama": llama(),
    "all_kinds": all_kinds(),
    "aligned": model([key("general.alignment", U32, 64)],
                     [info("t", [1], 24, 0), info("u", [1], 24, 64)], 65, align=64),
    "zero_dim": model([], [info("t", [1, 0], 0, 0)]),
    "alignment_0": model([key("general.alignment", U32, 0)]),
    "huge_counts": model([], n_keys=500_000_000, n_infos=2**63),
    "huge_string": model([string("k") + struct.pack("<IQ", STR, 2**64 - 1)]),
    "huge_array": model([array("k", 0, [], 2**64 - 1)]),
    "nested_array": model([array("k", ARRAY, [], 1)]),
    "huge_dims": model([], [info("t", [2**63 - 1, 2], 24, 0)]),
    "wrapping_size": model([], [info("t", [2**62 - 8], 0, 0), info("u", [8], 0, 0)], 64),
    "removed_type": model([], [info("t", [256], 36, 0)], 64),
    "twice": model([key("k", BOOL, 1), key("k", U64, 1)],
                   [info("t", [8], 0, 0), info("t", [8], 0, 32)], 64),
    "split": model([key("split.no", 2, 0), key("split.count", 2, 3),
                    key("split.tensors.count", 5, 0)]),
}


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus", "gguf")
    os.makedirs(folder, exist_ok=True)
    for name, data in FILES.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)


if __name__ == "__main__":
    main()
