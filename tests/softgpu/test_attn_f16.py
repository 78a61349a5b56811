"""Attention of prompts in f16, on softgpu: near the float64 reference, the same bits however a prompt is cut into steps and
whatever stands beside it, NaN and infinity in values that other rows see included; rows that are no prompt's have the bits
of the plain twin. Devices sum in another way than the twin of their instruction: what is exact here is exact there too, what is
near is near."""
import sys

import numpy as np

import soft
from soft import cpu
from reference import FAMILIES, Step

ERROR = 4e-3  # queries and weights are rounded to halves: 2^-12 each, times scores that reach some tens
CHUNKS = (1, 7, 64)


def cases():
    """(index of the CPU case, op, steps) of all attention over halves."""
    return [(i, dict(op, hw=soft.HW, prompt="f16"), steps[-4:]) for i, (op, steps) in enumerate(cpu.CASES)
            if op["family"] == "attn" and op["kv"] == "f16"]


def run_of(number, index, op, k, seqs, n_prompt=None):
    """A run with operands of the CPU's case; all rows are a prompt's unless told otherwise."""
    rng = np.random.default_rng([index, k])
    step = Step(seqs, rng, 7)
    step.n_prompt = step.n_rows if n_prompt is None else n_prompt
    return number, op, step, FAMILIES["attn"](op, step, None, rng)


class Part:
    """Rows [begin, end) of another run's step, over the same memory."""

    def __init__(self, run, begin, end):
        number, op, whole, family = run
        self.n_rows = self.n_prompt = end - begin
        for name in ("token", "seq", "pos"):
            setattr(self, name, getattr(whole, name)[begin:end])
        self.slot, self.logit = whole.slot, np.zeros(1, np.uint32)
        self.operands = dict(family.operands, qkv=family.qkv[begin:end],
                             y=np.zeros((end - begin, op["n_head"] * op["hd"]), np.float32))
        self.run = number, op, self, self


def bits_of(got, op):
    """y as rows, every NaN alike."""
    y = np.frombuffer(got["y"], np.float32).reshape(-1, op["n_head"] * op["hd"])
    return np.where(np.isnan(y), np.float32(np.nan), y).view(np.uint32)


def with_odd_values(run, at):
    """Values of some positions get NaN and infinities of both signs."""
    _, op, step, family = run
    for i, (pos, odd) in enumerate(zip(at, (np.nan, np.inf, -np.inf, np.inf))):
        family.codes[1][step.slot[0]][:, pos % op["cap"], i::5] = odd
    family.operands["v"] = family.codes[1].reshape(-1).view(np.uint8)
    return run


def execute(t, name, program, descriptors, runs):
    results, why = soft.execute(program, descriptors, runs)
    t.check(name, results is not None, why)
    return results


def check_near(t, program, descriptors, all_cases):
    for number, (index, op, steps) in enumerate(all_cases):
        runs = [run_of(number, index, op, k, seqs) for k, seqs in enumerate(steps)]
        results = execute(t, f"attn_{index}_runs_in_every_order", program, descriptors, runs)
        wrong = [cpu.describe_run(op, r[2]) for r, got in zip(runs, results or [])
                 if not r[3].check({"y": np.frombuffer(got["y"], np.uint8)}, ERROR).all()]
        t.check(f"attn_{index}_is_near_float64", results is not None and not wrong, "\n".join(wrong[:5]))


def check_chunks(t, program, descriptors, all_cases, name, number, rows, odd):
    index, op, _ = all_cases[number]
    whole = run_of(number, index, op, 99, [(0, *rows)])
    if odd:
        with_odd_values(whole, [rows[0] + r for r in odd])
    parts = [Part(whole, a, min(a + n, rows[1])) for n in CHUNKS for a in range(0, rows[1], n)]
    results = execute(t, f"{name}_runs", program, descriptors, [whole] + [p.run for p in parts])
    if results is None:
        return
    want, at = bits_of(results[0], op), 0
    for n in CHUNKS:
        got = []
        while sum(map(len, got)) < rows[1]:
            at += 1
            got.append(bits_of(results[at], op))
        same = np.concatenate(got) == want
        t.check(f"{name}_in_steps_of_{n}_has_the_same_bits", same.all(), f"rows {np.unique(np.nonzero(~same)[0])[:9]}")
    nan = np.isnan(want.view(np.float32)).any(1)
    t.check(f"{name}_only_rows_that_see_them_are_odd", (nan == (np.arange(rows[1]) >= odd[0] if odd else False)).all(),
            f"rows {np.nonzero(nan)[0]}")


def check_others(t, program, descriptors, all_cases, number, seqs, n_prompt):
    """Generated rows in front of a prompt's: the plain twin's bits, and the prompt's as without them."""
    index, op, _ = all_cases[number]
    mixed = run_of(number, index, op, 98, seqs, n_prompt)
    n = mixed[2].n_rows - n_prompt
    exact = run_of(number, index, op, 98, seqs, 0)
    alone = Part(mixed, n, mixed[2].n_rows)
    plain = soft.render([dict(op, prompt="f32")], soft.WORK / "attn_f32")[0]
    other = soft.build([plain], soft.WORK / "attn_f32")
    results = execute(t, "a_mixed_step_runs", program, descriptors, [mixed, exact, alone.run])
    wanted = execute(t, "its_f32_text_runs", other, [plain], [(0, *exact[1:])])
    if results is None or wanted is None:
        return
    mixed, exact, alone, wanted = (bits_of(r, op) for r in (*results, wanted[0]))
    t.check("rows_of_no_prompt_have_the_bits_of_f32", (mixed[:n] == wanted[:n]).all() and (exact == wanted).all())
    t.check("a_prompt_has_the_same_bits_beside_them", (mixed[n:] == alone).all() and (mixed[n:] != wanted[n:]).any())


# Bugs planted in the text of one kernel, as in test_seeds.py: name, how it must show ("": in any way), old text, new text.
SEEDS = [
    ("ring_slot_of_another_round", "bits", "(size_t)(block % 512)", "(size_t)((block + 256) % 512)"),
    ("barrier_missing_between_blocks", "", "        isa_copy_wait<0>();\n        isa_barrier();\n", "        isa_copy_wait<0>();\n"),
    ("block_not_waited_for", "", "        isa_copy_wait<0>();\n", "        isa_copy_wait<1>();\n"),
    ("result_behind_the_last_row", "AddressSanitizer", "        if (place / 1 >= run.n) {", "        if (place / 1 > run.n) {"),
    ("query_behind_the_last_row", "AddressSanitizer", "(run.row + (there ? row : 0))", "(run.row + row)"),
    ("row_sees_its_successor", "bits", "row_sees(pos[e / 2], t)", "row_sees(pos[e / 2] + 1, t)"),
]


def check_seeds(t, program, descriptors, all_cases, number):
    folder = soft.WORK / "attn_f16_seeds"
    index, op, steps = all_cases[number]
    own, mutants = soft.render([op], folder)[0], []
    text = (folder / f"{own['name']}.cu").read_text()
    for i, (name, _, old, new) in enumerate(SEEDS):
        assert old in text, f"{name}: the kernel has no such text"
        mutants.append(dict(own, name=f"{own['name']}_seed{i}"))
        (folder / f"{mutants[-1]['name']}.cu").write_text(text.replace(old, new).replace(own["name"], mutants[-1]["name"]))
    bent = soft.build(mutants, folder)
    runs = [run_of(number, index, op, k, seqs) for k, seqs in enumerate(steps)]
    wanted = execute(t, "what_is_bent_runs_as_it_is", program, descriptors, runs)
    for i, (name, how, _, _) in enumerate(SEEDS):
        results, why = soft.execute(bent, mutants, [(i, *run[1:]) for run in runs])
        same = results is not None and all(bytes(a["y"]) == bytes(b["y"]) for a, b in zip(results, wanted))
        caught = how in why if results is None else not same and how in ("bits", "")
        t.check(f"caught_{name}", caught, f"it showed as: {'nothing' if same else why or 'other bits'}")


def main():
    t = cpu.tap.Tap()
    if soft.why_not() or cpu.SANITIZED:
        t.skip("attn_f16_on_softgpu", soft.why_not() or "always built with sanitizers: the plain run has it")
        return t.done()
    all_cases = cases()
    folder = soft.WORK / "attn_f16"
    descriptors = soft.render([op for _, op, _ in all_cases], folder)
    program = soft.build(descriptors, folder)
    check_near(t, program, descriptors, all_cases)
    window = next(i for i, (_, op, _) in enumerate(all_cases) if op["window"] == 100)
    small = next(i for i, (_, op, _) in enumerate(all_cases) if op["window"] == 8)
    for name, number, rows in (("a_prompt", 0, (37, 66)), ("in_a_window", window, (250, 66)),
                               ("in_a_small_window", small, (20, 40))):
        check_chunks(t, program, descriptors, all_cases, name, number, rows, [])
    check_chunks(t, program, descriptors, all_cases, "odd_values", 0, (37, 66), [10, 40, 41, 63])
    check_others(t, program, descriptors, all_cases, 0, [(1, 300, 1), (2, 70, 1), (0, 5, 60)], 60)
    check_seeds(t, program, descriptors, all_cases, window)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
