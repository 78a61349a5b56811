"""export.py -- weights.npz and tokenizer.json to GGUF, with the official converter's keys.

python3 export.py --weights DIR/weights.npz --tokenizer tokenizer.json --out laguna-tiny.gguf
"""

import argparse
import json

import gguf
import numpy as np

import quant
import render
from config import Config, shapes, tensor_type

CONTROL, USER_DEFINED, NORMAL = 3, 4, 1


def keys(w, c):
    w.add_name("Laguna Tiny")
    w.add_description("A small Laguna, trained on generated dialogues for lagen")
    w.add_quantization_version(2)
    w.add_file_type(15)
    w.add_context_length(c.context)
    w.add_embedding_length(c.embd)
    w.add_block_count(c.layers)
    w.add_feed_forward_length(c.ffn)
    w.add_head_count([c.heads(i) for i in range(c.layers)])
    w.add_head_count_kv(c.kv_heads)
    w.add_key_length(c.head_dim)
    w.add_value_length(c.head_dim)
    w.add_layer_norm_rms_eps(c.eps)
    w.add_sliding_window(c.window)
    w.add_vocab_size(c.vocab)
    w.add_expert_count(c.experts)
    w.add_expert_used_count(c.used)
    w.add_expert_shared_count(1)
    w.add_expert_feed_forward_length(c.expert_ffn)
    w.add_expert_shared_feed_forward_length(c.shared_ffn)
    w.add_expert_weights_scale(c.scale)
    w.add_expert_weights_norm(True)
    w.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    w.add_leading_dense_block_count(c.dense)
    rope = f"{w.arch}.rope."
    w.add_uint32(rope + "dimension_count", c.rot_full)
    w.add_uint32(rope + "dimension_count_swa", c.rot_swa)
    w.add_float32(rope + "freq_base", c.base_full)
    w.add_float32(rope + "freq_base_swa", c.base_swa)
    w.add_string(rope + "scaling.type", "yarn")
    w.add_float32(rope + "scaling.factor", c.factor)
    w.add_uint32(rope + "scaling.original_context_length", c.original)
    w.add_float32(rope + "scaling.yarn_attn_factor", 1.0)
    w.add_float32(rope + "scaling.yarn_beta_fast", c.beta_fast)
    w.add_float32(rope + "scaling.yarn_beta_slow", c.beta_slow)


def vocabulary(w, tokenizer_file):
    with open(tokenizer_file, encoding="utf-8") as f:
        model = json.load(f)["model"]
    ids = sorted(model["vocab"], key=model["vocab"].get)
    types = [NORMAL] * len(ids)
    for i, text in enumerate(render.SPECIAL):
        assert ids[i] == text
        types[i] = USER_DEFINED if text in render.SHOWN else CONTROL
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("laguna")
    w.add_token_list(ids)
    w.add_token_types(types)
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in model["merges"]])
    w.add_bos_token_id(render.EOS)
    w.add_eos_token_id(render.EOS)
    w.add_eot_token_id(render.EOT)
    w.add_pad_token_id(render.PAD)
    w.add_unk_token_id(0)
    w.add_add_bos_token(True)
    with open(render.TEMPLATE, encoding="utf-8") as f:
        w.add_chat_template(f.read())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--weights", required=True)
    p.add_argument("--tokenizer", required=True)
    p.add_argument("--out", required=True)
    a = p.parse_args()
    c = Config()
    w = gguf.GGUFWriter(a.out, "laguna")
    keys(w, c)
    vocabulary(w, a.tokenizer)
    weights = np.load(a.weights)
    for name, shape in shapes(c).items():
        kind = tensor_type(name, c)
        assert weights[name].shape == shape, name
        data = quant.pack(weights[name], kind)
        w.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[kind])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


if __name__ == "__main__":
    main()
