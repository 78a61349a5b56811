"""The reference's Laguna: against transformers' LagunaForCausalLM, where transformers and torch are installed, and against
llama.cpp, where its package knows the architecture; and what lagen makes of YaRN's keys and options against the reference.
"""
import contextlib
import re
import subprocess

import numpy as np

import kl
import llamacpp
import oracle
import program
import tap

TOKENS = 90  # more than four windows of the recipes with 8 and 13
RECIPES = ("laguna-dense", "laguna-w8", "laguna-odd")


def floats(recipe):
    """A recipe's model with F32 weights: (path, oracle, tokens)."""
    path = program.synth(recipe, "f32", 3, f"{recipe}-floats")
    reference = oracle.Oracle(path)
    return path, reference, kl.random_tokens(5, TOKENS, reference.n_vocab)


# ---- transformers

def transformers_parts():
    try:
        import torch
        from transformers import LagunaConfig, LagunaForCausalLM
    except ImportError as why:
        raise tap.Skip(f"transformers with Laguna, and torch: {why}")
    return torch, LagunaConfig, LagunaForCausalLM


def config_of(o, **yarn):
    """The config that says what the file's keys say, with YaRN's own words in `yarn`."""
    _, LagunaConfig, _ = transformers_parts()
    hd = o.layers[0].hd
    slides = [y.window > 0 for y in o.layers]
    sparse = [o.has(f"blk.{i}.ffn_gate_inp.weight") for i in range(o.n_layers)]
    full = {"rope_type": "yarn", "rope_theta": o.key("rope.freq_base"),
            "partial_rotary_factor": o.key("rope.dimension_count") / hd, "factor": o.key("rope.scaling.factor"),
            "original_max_position_embeddings": o.key("rope.scaling.original_context_length"), **yarn}
    near = {"rope_type": "default", "rope_theta": o.key("rope.freq_base_swa"),
            "partial_rotary_factor": o.key("rope.dimension_count_swa") / hd}
    per_head = o.shape("blk.0.attn_gate.weight")[1] == o.layers[0].n_head
    return LagunaConfig(
        vocab_size=o.n_vocab, hidden_size=o.n_embd, intermediate_size=o.key("feed_forward_length"),
        num_hidden_layers=o.n_layers, num_attention_heads=o.layers[0].n_head, num_key_value_heads=o.layers[0].n_kv,
        num_attention_heads_per_layer=[y.n_head for y in o.layers], head_dim=hd, rms_norm_eps=o.eps,
        max_position_embeddings=o.key("context_length"), sliding_window=o.key("attention.sliding_window"),
        layer_types=["sliding_attention" if s else "full_attention" for s in slides],
        mlp_layer_types=["sparse" if s else "dense" for s in sparse], num_experts=o.key("expert_count"),
        num_experts_per_tok=o.key("expert_used_count"), moe_intermediate_size=o.key("expert_feed_forward_length"),
        shared_expert_intermediate_size=o.key("expert_shared_feed_forward_length"),
        moe_routed_scaling_factor=o.key("expert_weights_scale"), gating="per-head" if per_head else "per-element",
        rope_parameters={"full_attention": full, "sliding_attention": near},
        tie_word_embeddings=not o.has("output.weight"), attn_implementation="eager",
        experts_implementation="eager")


NAMES = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_q_norm": "self_attn.q_norm",
         "attn_k_norm": "self_attn.k_norm", "attn_gate": "self_attn.g_proj", "attn_output": "self_attn.o_proj",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate",
         "ffn_gate_shexp": "mlp.shared_experts.gate_proj", "ffn_up_shexp": "mlp.shared_experts.up_proj",
         "ffn_down_shexp": "mlp.shared_experts.down_proj"}


def state_of(o):
    """The file's weights under transformers' names, float64."""
    out = {"model.embed_tokens.weight": o.weight("token_embd.weight"), "model.norm.weight": o.weight("output_norm.weight")}
    out["lm_head.weight"] = o.weight("output.weight" if o.has("output.weight") else "token_embd.weight")
    for i in range(o.n_layers):
        blk, to = f"blk.{i}.", f"model.layers.{i}."
        for ours, theirs in NAMES.items():
            if o.has(f"{blk}{ours}.weight"):
                out[f"{to}{theirs}.weight"] = o.weight(f"{blk}{ours}.weight")
        if o.has(blk + "exp_probs_b.bias"):
            gate, up, down = (o.weight(f"{blk}ffn_{p}_exps.weight") for p in ("gate", "up", "down"))
            out[to + "mlp.gate.e_score_correction_bias"] = o.weight(blk + "exp_probs_b.bias")
            out[to + "mlp.experts.gate_up_proj"] = np.concatenate([gate, up], axis=1)
            out[to + "mlp.experts.down_proj"] = down
    return out


class Wide:
    """torch, but its float32 is float64: that model rounds norms, softmax, router and angles to float32."""

    def __init__(self, torch):
        self._torch = torch
        self.float32 = self.float = torch.float64

    def __getattr__(self, name):
        return getattr(self._torch, name)


@contextlib.contextmanager
def in_float64(torch):
    from transformers.models.laguna import modeling_laguna
    was, narrow = modeling_laguna.torch, torch.Tensor.float
    modeling_laguna.torch, torch.Tensor.float = Wide(torch), torch.Tensor.double
    try:
        yield
    finally:
        modeling_laguna.torch, torch.Tensor.float = was, narrow


def widen_angles(torch, model, o):
    """Their frequencies, which float32 rounds, are the reference's; then the reference's take their place."""
    rope = model.model.rotary_emb
    for kind, y in (("full_attention", o.layers[0]), ("sliding_attention", o.layers[1])):
        theirs = getattr(rope, kind + "_inv_freq").double().numpy()
        assert np.abs(theirs / y.freq - 1).max() < 1e-6, kind
        assert abs(getattr(rope, kind + "_attention_scaling") / y.magnitude - 1) < 1e-9, kind
        setattr(rope, kind + "_inv_freq", torch.from_numpy(y.freq.copy()))
        setattr(rope, kind + "_attention_scaling", y.magnitude)


def their_logits(o, tokens, **yarn):
    torch, _, LagunaForCausalLM = transformers_parts()
    model = LagunaForCausalLM(config_of(o, **yarn)).double().eval()
    missing, unexpected = model.load_state_dict(
        {name: torch.from_numpy(np.ascontiguousarray(w)) for name, w in state_of(o).items()}, strict=False)
    assert not missing and not unexpected, (missing, unexpected)
    widen_angles(torch, model, o)
    with torch.no_grad(), in_float64(torch):
        return model(torch.tensor([tokens])).logits[0].numpy()


def agrees_with_transformers(recipe, yarn, **rope):
    path, _, tokens = floats(recipe)
    o = oracle.Oracle(path, keep=True, **rope)
    got, want = o.logits(tokens), their_logits(o, tokens, **yarn)
    error = np.abs(got - want).max()
    assert error < 1e-9, f"{recipe}: {error}"


def transformers_agrees_on_dense_layers():
    agrees_with_transformers("laguna-dense", {})


def transformers_agrees_on_experts():
    agrees_with_transformers("laguna-w8", {})


def transformers_agrees_on_gates_of_elements():
    agrees_with_transformers("laguna-odd", {})


def transformers_agrees_on_factor_and_betas_of_the_file():
    agrees_with_transformers("laguna-w8", {"attention_factor": 1.0, "beta_fast": 64.0, "beta_slow": 1.0},
                             magnitude=1.0, beta_fast=64.0)


# ---- llama.cpp

def llama_cpp_agrees():
    if not llamacpp.available():
        raise tap.Skip(llamacpp.WHY_NOT)
    for recipe in RECIPES:
        path, o, tokens = floats(recipe)
        other = llamacpp.Model(path, n_threads=1, n_ctx=256, chunk=64, flash=False, kv_f32=True)
        got = other.logits(tokens)
        other.close()
        mean = float(kl.kl_rows(o.logits(tokens), got).mean())
        assert mean < 1e-9, f"{recipe}: mean KL {mean}"


# ---- lagen's reading of YaRN

def tables_of(path, *options):
    """Frequencies and magnitude of each rope_table that lagen plans."""
    dump = program.run([program.LAGEN, "plan", "--model", path, "--ctx", "256", "--dump", "fuse", *options]).decode()
    out = []
    for line in re.findall(r"node .* rope_table .*", dump):
        freq, m = re.search(r"freq:\[([^\]]*)\]", line).group(1), re.search(r"mscale:(\S+)", line).group(1)
        out.append((np.array([float.fromhex(x) for x in freq.split(",")]), float.fromhex(m)))
    return out


def same_tables(path, options, **rope):
    full = oracle.Oracle(path, **rope).layers
    got = tables_of(path, *options)
    want = [full[0]] + [y for y in full if y.window > 0][:1]
    assert len(got) == len(want)
    for (freq, m), y in zip(got, want):
        assert np.abs(freq / y.freq - 1).max() < 1e-14 and abs(m / y.magnitude - 1) < 1e-12, options


def options_say_how_yarn_is_read():
    path, _, _ = floats("laguna-dense")  # the file: betas 64 and 1, factor 1.0
    same_tables(path, [])
    same_tables(path, ["--rope-mscale", "formula", "--rope-beta", "fixed"])
    same_tables(path, ["--rope-mscale", "key"], magnitude=1.0)
    same_tables(path, ["--rope-mscale", "1.25"], magnitude=1.25)
    same_tables(path, ["--rope-beta", "key"], beta_fast=64.0)
    same_tables(path, ["--rope-beta", "48.5,2"], beta_fast=48.5, beta_slow=2.0)


def bad_options_are_refused():
    path, _, _ = floats("laguna-dense")
    plain = program.synth("llama-tiny", "f32", 0, "rope-plain")
    for model, options, says, status in (
            (path, ["--rope-mscale", "big"], "lagen: --rope-mscale: 'big'", 2), (path, ["--rope-mscale", "0"], "'0' is neither", 2),
            (path, ["--rope-mscale", "1e-46"], "'1e-46' is neither", 2),
            (path, ["--rope-beta", "1,32"], "lagen: --rope-beta: '1,32'", 2), (path, ["--rope-beta", "32"], "--rope-beta: '32'", 2),
            (plain, ["--rope-mscale", "1"], "rope.scaling.type is linear", 1),
            (plain, ["--rope-beta", "key"], "rope.scaling.type is linear", 1)):
        done = subprocess.run([program.LAGEN, "plan", "--model", model, "--ctx", "256", *options],
                              capture_output=True, text=True)
        assert done.returncode == status and says in done.stderr, (options, done.stderr)


def the_manifest_says_what_was_chosen():
    path, _, _ = floats("laguna-dense")
    out = program.WORK / "laguna-notes"
    for options, says in (
            ([], "magnitude 1.346574 (formula), betas 32 1 (fixed)"),
            (["--rope-beta", "key"], "magnitude 1.346574 (formula), betas 64 1 (key)"),
            (["--rope-mscale", "key", "--rope-beta", "48.5,2"], "magnitude 1 (key), betas 48.5 2 (48.5,2)"),
            (["--rope-mscale", "1.25"], "magnitude 1.25 (1.25), betas 32 1 (fixed)")):
        program.run([program.LAGEN, "emit", "--model", path, "--ctx", "256", "--out", out, *options])
        text = (out / "manifest.json").read_text()
        assert f"yarn: factor 32 of 64 positions, {says}" in text, re.findall("yarn: [^\"]*", text)


tap.main([
    transformers_agrees_on_dense_layers, transformers_agrees_on_experts, transformers_agrees_on_gates_of_elements,
    transformers_agrees_on_factor_and_betas_of_the_file, llama_cpp_agrees, options_say_how_yarn_is_read,
    bad_options_are_refused, the_manifest_says_what_was_chosen])
