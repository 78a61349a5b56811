"""The test of the test: bugs planted in emitted CUDA text are caught on softgpu, each in the way named."""
import sys

import soft
from soft import cpu
from test_softgpu import plain_results

# name, how it must show (a word of what the harness says, or "bits"), family, role, old text, new text. A case
# of the family is taken that has the old text, and what else is named behind the new one; what is replaced must stand there.
SEEDS = [
    ("tail_one_row_too_many", "AddressSanitizer", "matmul", "decode", "left < 8 ? left : 8;", "left < 8 ? left + 1 : 8;"),
    ("tail_one_column_too_many", "AddressSanitizer", "matmul", "prefill", "n_cols = 17;", "n_cols = 18;"),
    ("tail_of_a_row_left_out", "bits", "norm_quant", None, "if (col >= 100) {\n            break;", "if (col >= 99) {\n            break;"),
    ("barrier_missing_behind_a_row", "", "norm_quant", None, "    isa_barrier();\n    if (isa_thread() < 256) {", "    if (isa_thread() < 256) {"),
    ("lane_sums_that_were_not_waited_for", "", "norm_quant", None, "    isa_barrier();\n    const float sum", "    const float sum"),
    ("heads_of_a_neighbour_rotated", "bits", "rope_kv", None, "float *q = row + piece *", "float *q = row + 1 + piece *"),
    ("counters_of_one_key_head_set_for_all", "bits", "rope_kv", None, "p.count[(size_t)t * 3 + piece + i]", "p.count[(size_t)t * 3 + i]"),
    ("barrier_missing_before_sums", "order of threads", "matmul", "decode", "        isa_barrier();\n#pragma unroll\n        for", "#pragma unroll\n        for"),
    ("barrier_missing_in_the_stream", "", "matmul", "prefill", "isa_copy_wait<1>();\n        isa_barrier();", "isa_copy_wait<1>();"),
    ("stream_waits_for_one_atom_too_few", "copies", "matmul", "prefill", "isa_copy_wait<1>();", "isa_copy_wait<2>();"),
    ("lanes_not_together_after_scales", "order of threads", "matmul", "prefill", " = r[j];\n        }\n    }\n    isa_warp_sync();", " = r[j];\n        }\n    }"),
    ("scales_of_a_row_behind_the_last", "AddressSanitizer", "matmul", "prefill", "if (my_t < n_tokens && my_g", "if (my_g"),
    ("copied_rows_one_off", "", "moe_matmul", None, "copied[k] = row_of[my_row + ", "copied[k] = row_of[my_row + 1 + ", "288x32"),
    ("scales_in_the_place_in_use", "", "matmul", "prefill", " + (a + 1) % 2 * ", " + a % 2 * "),
    ("rows_left_out_of_a_tile", "bits", "moe_matmul", None, "n_eights = (n_pairs + 7) / 8", "n_eights = (n_pairs + 6) / 8"),
    ("barrier_missing_after_chains", "order of threads", "attn", "decode", "dim + i] = acc[h][i];\n        }\n    }\n    isa_barrier();", "dim + i] = acc[h][i];\n        }\n    }"),
    ("barrier_missing_before_chains", "order of threads", "attn", "decode", "    isa_barrier();\n    float *chain", "    float *chain"),
    ("barrier_missing_after_scores", "order of threads", "attn", "decode", "    isa_barrier();\n    for (uint32_t h = isa_warp()", "    for (uint32_t h = isa_warp()"),
    ("barrier_missing_before_the_next_split", "order of threads", "attn", "decode", "        }\n    }\n    isa_barrier();\n}\n\n/* Element", "        }\n    }\n}\n\n/* Element", "j += 2)", "__260x260"),
    ("splits_skipped", "bits", "attn", "decode", "j += 2)", "j += 3)", "__260x260"),
    ("barrier_missing_before_the_join", "order of threads", "attn", "decode", "        factors(part, begin, n_splits, run);\n        isa_barrier();", "        factors(part, begin, n_splits, run);"),
    ("barrier_not_reached_by_all", "waits at a barrier", "attn", "decode", "    isa_barrier();\n\n    float mid", "    if (me < 100) {\n        isa_barrier();\n    }\n\n    float mid"),
    ("first_arriver_joins", "", "attn", "decode", "    if (*before + 1 ==", "    if (*before + 2 =="),
    ("last_split_missed", "bits", "attn", "decode", "for (uint32_t begin = 0; begin < n_splits; begin += 32) {\n        const uint32_t n =", "for (uint32_t begin = 0; begin < n_splits; begin += 32) {\n        n_splits -= n_splits > 2;\n        const uint32_t n ="),
    ("split_kept_in_its_neighbours_place", "", "attn", "decode", "part + (size_t)j * ", "part + (size_t)(j ^ 1) * "),
    ("counter_of_another_row", "", "attn", "decode", "p.count + (size_t)row * 3 + group", "p.count + group"),
    ("shared_memory_outgrown", "AddressSanitizer", "attn", "decode", "chain[(number", "chain[4096 + (number"),
    ("shared_memory_not_written", "", "attn", "decode", "of_head[h] = top;", "of_head[h] += top;"),
    ("lane_missing_in_a_warp_sum", "warp-wide", "quant", None, "if (g < 48)", "if (g < 48 && isa_lane() != 5)"),
    ("activations_read_behind_the_last_row", "AddressSanitizer", "matmul", "prefill", "k < n_tokens) {", "k < n_tokens + 8) {"),
    ("weights_read_behind_the_last_strip", "AddressSanitizer", "matmul", "prefill", "n_cols = 33;", "n_cols = 64;"),
    ("lanes_not_together_after_weights", "order of threads", "attn", "prefill", "            }\n        }\n        isa_warp_sync();\n    }\n", "            }\n        }\n    }\n"),
    ("lanes_not_together_after_queries", "order of threads", "attn", "prefill", "    isa_warp_sync();\n    float out", "    float out"),
    ("row_sees_its_successor", "bits", "attn", "prefill", "sees(s, r, t + e)", "sees(s, r + 1, t + e)"),
    ("chains_in_another_order", "bits", "attn", "prefill", "isa_lane() / 8 % 2 * 2 + isa_lane() / 16)", "isa_lane() / 8 % 2 + isa_lane() / 16 * 2)"),
    ("ring_slot_of_another_round", "bits", "attn", "decode", "(size_t)(split % 512 /", "(size_t)((split + 256) % 512 /"),
    ("position_behind_the_row_seen", "bits", "attn", "decode", "pos - split + 1 : 256", "pos - split + 2 : 256"),
    ("counters_not_set_to_0", "bits", "rope_kv", None, " = 0; /* for the attention", " += 0; /* for the attention"),
    ("key_stored_one_cell_on", "bits", "rope_kv", None, "at / 16) * 1024 + at % 16", "at / 16) * 1024 + (at + 1) % 16"),
    ("token_row_of_a_neighbour", "bits", "embed", None, "row = token % 16", "row = token % 8"),
    ("atoms_summed_in_another_order", "bits", "matmul", "decode", "sums[s * 128 + i]", "sums[(n_here - 1 - s) * 128 + i]"),
    ("activations_read_before_the_wait", "AddressSanitizer", "norm_quant", None, "    isa_wait_launch();\n    isa_let_launch();\n",
     "    float early = p.x[row];\n    isa_wait_launch();\n    isa_let_launch();\n    if (early > 1e30f) {\n        return;\n    }\n"),
    ("step_read_before_the_wait", "AddressSanitizer", "embed", None, "    isa_wait_launch();", "    if (p.step->n_rows == 0) {\n        return;\n    }\n    isa_wait_launch();"),
    ("weights_read_early_that_are_not_declared", "AddressSanitizer", "rope_kv", None, "    isa_wait_launch();", "    float early = p.k_norm[0];\n    isa_wait_launch();\n    if (early > 1e30f) {\n        return;\n    }", "p.k_norm"),
    ("next_launch_let_go_before_the_wait", "lets a launch begin", "quant", None, "    isa_wait_launch();\n    isa_let_launch();", "    isa_let_launch();\n    isa_wait_launch();"),
    ("a_thread_does_not_wait", "waits for the launch in front", "rope_kv", None, "    isa_wait_launch();", "    if (isa_thread() != 7) {\n        isa_wait_launch();\n    }"),
    ("no_wait_at_all", "AddressSanitizer", "rope_table", None, "    isa_wait_launch();\n    isa_let_launch();\n", ""),
    ("operand_written_that_is_read", "has changed", "norm_quant", None, "    const float r =", "    ((float *)p.w)[0] = 1.0f;\n    const float r ="),
    # tail, barrier, range and ring of those families that have no such seed above
    ("embedding_one_piece_too_long", "AddressSanitizer", "embed", None, "at < 72; at", "at < 73; at"),
    ("strip_behind_the_vocabulary", "AddressSanitizer", "embed", None, "(token / 16) * 9792", "(token / 16 + 1) * 9792"),
    ("norm_weights_behind_the_row", "AddressSanitizer", "norm_quant", None, "col >= 288 ? 0.0f : p.w[col]", "col > 288 ? 0.0f : p.w[col]"),
    ("group_behind_the_row", "AddressSanitizer", "quant", None, "if (g < 1)", "if (g < 2)"),
    ("angle_too_many", "out of bounds", "rope_table", None, "i < 12; i", "i < 13; i"),
    ("position_of_the_next_row", "", "rope_table", None, "pos_of_row[t]", "pos_of_row[t + 1]"),
    ("ring_half_as_long", "bits", "rope_kv", None, "pos_of_row[t] % 512", "pos_of_row[t] % 256"),
    ("barrier_missing_before_keys_are_stored", "order of threads", "rope_kv", None, "    isa_barrier();\n    store_keys", "    store_keys"),
    ("slot_of_a_neighbour", "", "rope_kv", None, "((size_t)slot * ", "((size_t)(slot + 1) * "),
    ("ring_slot_of_another_round_by_many", "bits", "attn", "prefill", "(size_t)(split % 512 /", "(size_t)((split + 256) % 512 /"),
    ("router_row_too_many", "AddressSanitizer", "router_parts", "decode", "left_rows < 8 ? left_rows : 8;", "left_rows < 8 ? left_rows + 1 : 8;"),
    ("router_expert_too_many", "", "router_parts", "decode", "e < 65) {", "e < 66) {"),
    ("router_half_begun_anew", "bits", "router_parts", "decode", "acc = upper ? handed : 0.0f;", "acc = 0.0f * handed;"),
    ("router_tile_row_too_many", "AddressSanitizer", "router_parts", "prefill", "left < 64 ? left : 64", "left < 64 ? left + 1 : 64"),
    ("barrier_missing_before_the_next_columns", "order of threads", "router_parts", "prefill", "        isa_barrier();\n    #pragma unroll 4", "    #pragma unroll 4"),
    ("barrier_missing_after_the_columns", "", "router_parts", "prefill", "        isa_barrier();\n        if (here)", "        if (here)"),
    ("router_weights_behind_the_matrix", "AddressSanitizer", "router_parts", "prefill", "const bool here = 16 * strip < 65;", "const bool here = true;"),
    ("row_behind_the_step_routed", "AddressSanitizer", "router_topk", None, "row >= p.step->n_rows", "row > p.step->n_rows"),
    ("logit_behind_the_row", "AddressSanitizer", "router_topk", None, "lane < 33 ? 32 * i + lane : 0;", "lane < 34 ? 32 * i + lane : 0;"),
    ("expert_picked_twice", "bits", "router_topk", None, "                key[i] = 0;\n", "", "j < 8; j++"),
    ("lane_missing_in_a_warp_maximum", "warp-wide", "router_topk", None, "best = isa_warp_umax(best);", "if (lane != 3) {\n            best = isa_warp_umax(best);\n        }"),
    ("barrier_missing_before_counting", "order of threads", "moe_sort", None, "        count[i] = 0;\n    }\n    isa_barrier();", "        count[i] = 0;\n    }"),
    ("barrier_missing_after_counting", "order of threads", "moe_sort", None, "    isa_barrier();\n    if (e >= ", "    if (e >= "),
    ("pick_behind_the_last", "AddressSanitizer", "moe_sort", None, "n = n_rows * 10;", "n = n_rows * 10 + 1;"),
    ("surplus_tile_left_as_it_was", "", "moe_sort", None, "i = tile + my_tiles + lane; i < n_tiles", "i = tile + my_tiles + lane + 1; i < n_tiles"),
    ("columns_behind_the_sum", "AddressSanitizer", "moe_sum", None, "if (at >= 100)", "if (at > 100)"),
    ("last_pick_not_summed", "bits", "moe_sum", None, "j < 10; j++) {\n            sum", "j < 9; j++) {\n            sum"),
    ("barrier_missing_before_the_gate", "", "matvec_moe", None, "    isa_barrier();\n    if (isa_thread() >= 32)", "    if (isa_thread() >= 32)", "288x32"),
    ("matrix_of_the_next_expert", "", "matvec_moe", None, "p.w0 + (size_t)(uint32_t)p.ids[row * 2 + j] * 9792", "p.w0 + (size_t)((uint32_t)p.ids[row * 2 + j] + 1) * 9792"),
    ("column_behind_the_row", "AddressSanitizer", "matvec_moe", None, "16 * strip + r >= 33", "16 * strip + r > 33"),
    ("barrier_missing_after_the_pairs", "", "moe_matmul", None, "    isa_barrier();\n    /* The same of x.", "    /* The same of x.", "288x32"),
    ("pair_behind_the_tile", "AddressSanitizer", "moe_matmul", None, "isa_thread() < n_pairs ? isa_thread() : 0", "isa_thread()", "288x32"),
    ("barrier_missing_before_the_gate_of_pairs", "", "moe_matmul", None, "    isa_barrier();\n\n    /* A warp 32 columns", "\n    /* A warp 32 columns", "288x32"),
]


def mutate(seed, number, cases, descriptors, folder):
    """The descriptor and case of a kernel with the bug in it; its text is written beside the others."""
    _, _, family, role, old, new, *besides = seed
    for d, case in zip(descriptors, cases):
        op = case[1]
        text = (folder / f"{d['name']}.cu").read_text()
        if op["family"] != family or op.get("role") != role or any(part not in text for part in (old, *besides)):
            continue
        name = f"{d['name']}_seed{number}"
        text = text.replace(old, new).replace(d["name"], name)
        (folder / f"{name}.cu").write_text(text)
        return dict(d, name=name), case
    raise AssertionError(f"{seed[0]}: no kernel has the text that is to be replaced")


def caught(seed, op, results, why, wanted):
    """None, or how the bug got away."""
    how = seed[1]
    if results is None:
        return None if how in why else f"it showed as: {why}"
    same = all(soft.equal(op, a, b) for a, b in zip(results, wanted))
    return "not at all" if same else None if how in ("bits", "") else "as other bits"


def main():
    t = cpu.tap.Tap()
    if soft.why_not() or cpu.SANITIZED:
        t.skip("softgpu_catches_planted_bugs", soft.why_not() or "always built with sanitizers: the plain run has it")
        return t.done()
    plain = plain_results()
    cases = soft.cases()
    folder = soft.WORK / "seeds"
    rendered = soft.render([op for _, op, _ in cases], folder)
    mutants = [mutate(s, i, cases, rendered, folder) for i, s in enumerate(SEEDS)]
    descriptors = [d for d, _ in mutants]
    program = soft.build(descriptors, folder)
    for i, (seed, (_, (index, op, steps))) in enumerate(zip(SEEDS, mutants)):
        picked = [plain[index, k] for k in steps]
        runs = [(i, op, run[2], run[3]) for run, _ in picked]
        results, why = soft.execute(program, descriptors, runs)
        escaped = caught(seed, op, results, why, [got for _, got in picked])
        t.check(f"caught_{seed[0]}", escaped is None, f"caught: {escaped}")
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
