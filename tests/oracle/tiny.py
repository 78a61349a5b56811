"""Tiny llama models written with the gguf package alone: 32 wide, 4 heads of 8 over 2 KV heads.

For tests of the reference; models of any other size come from `lagen synth`.
"""
import numpy as np
from gguf import GGMLQuantizationType as T
from gguf import GGUFWriter
from gguf.quants import quantize

EMBD, HEADS, KV, HD, FF, VOCAB, LAYERS = 32, 4, 2, 8, 48, 67, 2


def write(path, seed=1, keys=None, tied=False, bias=False, freqs=False, fused=False, qtype=None):
    """Writes a model. keys: metadata under `llama.` as {name: value}; qtype: type of matrices whose
    rows are whole qblocks. Returns the tensors as written before quantisation, {name: float32}."""
    rng = np.random.default_rng(seed)
    w = GGUFWriter(str(path), "llama")
    w.add_uint32("llama.block_count", LAYERS)
    w.add_uint32("llama.context_length", 256)
    w.add_uint32("llama.embedding_length", EMBD)
    w.add_uint32("llama.feed_forward_length", FF)
    w.add_uint32("llama.attention.head_count", HEADS)
    w.add_uint32("llama.attention.head_count_kv", KV)
    w.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    w.add_uint32("llama.vocab_size", VOCAB)
    w.add_string("tokenizer.ggml.model", "none")
    for name, value in (keys or {}).items():
        add = {str: w.add_string, int: w.add_uint32, float: w.add_float32}[type(value)]
        add("llama." + name, value)
    tensors = {}

    def put(name, *shape):
        if name.endswith("norm.weight"):
            value = 1.0 + 0.1 * rng.standard_normal(shape)
        elif name.endswith("bias"):
            value = 0.3 * rng.standard_normal(shape)
        else:
            value = rng.standard_normal(shape) * (1.5 / np.sqrt(shape[-1]))
        tensors[name] = value.astype(np.float32)
        if qtype is not None and len(shape) == 2 and shape[-1] % 32 == 0:
            w.add_tensor(name, quantize(tensors[name], qtype), raw_dtype=qtype)
        else:
            w.add_tensor(name, tensors[name], raw_dtype=T.F32)

    put("token_embd.weight", VOCAB, EMBD)
    put("output_norm.weight", EMBD)
    if not tied:
        put("output.weight", VOCAB, EMBD)
    if freqs:
        tensors["rope_freqs.weight"] = np.linspace(1, 8, HD // 2, dtype=np.float32)
        w.add_tensor("rope_freqs.weight", tensors["rope_freqs.weight"])
    for i in range(LAYERS):
        rows = {"attn_q": (HEADS * HD, EMBD), "attn_k": (KV * HD, EMBD), "attn_v": (KV * HD, EMBD)}
        if fused:
            rows = {"attn_qkv": ((HEADS + 2 * KV) * HD, EMBD)}
        rows |= {"attn_output": (EMBD, HEADS * HD), "ffn_gate": (FF, EMBD), "ffn_up": (FF, EMBD),
                 "ffn_down": (EMBD, FF)}
        put(f"blk.{i}.attn_norm.weight", EMBD)
        put(f"blk.{i}.ffn_norm.weight", EMBD)
        for part, shape in rows.items():
            put(f"blk.{i}.{part}.weight", *shape)
            if bias:
                put(f"blk.{i}.{part}.bias", shape[0])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return tensors
