"""Every kernel case as CUDA text on softgpu, under AddressSanitizer and UBSan, in three orders of threads and
ctas: the same bits as the plain C twin of the CPU kernel."""
import sys

import soft
from soft import cpu


def plain_results():
    """Runs of the CPU cases by (case, step), with the plain twin's results."""
    descriptors, layouts, program = cpu.build("plain")
    runs = cpu.runs_of(descriptors, layouts)
    results = cpu.execute("plain", program, descriptors, runs)
    keys, seen = [], {}
    for index, *_ in runs:
        keys.append((index, seen.setdefault(index, 0)))
        seen[index] += 1
    return {k: (run, got) for k, run, got in zip(keys, runs, results)}


def check_case(t, name, op, runs, wanted, results):
    wrong = [cpu.describe_run(r[1], r[2]) for r, a, b in zip(runs, results, wanted)
             if not soft.equal(op, a, b)]
    t.check(name, not wrong, "\n".join(wrong[:5]))
    return not wrong


def main():
    t = cpu.tap.Tap()
    if soft.why_not() or cpu.SANITIZED:
        t.skip("softgpu_gives_the_bits_of_plain", soft.why_not() or "always built with sanitizers: the plain run has it")
        return t.done()
    plain = plain_results()
    cases = soft.cases()
    folder = soft.WORK / "kernels"
    descriptors = soft.render([op for _, op, _ in cases], folder)
    program = soft.build(descriptors, folder)
    named = []
    for i, (index, op, steps) in enumerate(cases):
        name = f"{op['family']}_{index}{'_' + op['role'] if 'role' in op else ''}_gives_the_bits_of_plain"
        picked = [plain[index, k] for k in steps]
        runs = [(i, op, run[2], run[3]) for run, _ in picked]
        results, why = soft.execute(program, descriptors, runs)
        if results is None:
            t.check(name, False, why)
            right = False
        else:
            right = check_case(t, name, op, runs, [got for _, got in picked], results)
        named += [(run, right) for run in runs]
    cpu.check_named(t, [run for run, _ in named], [right for _, right in named])
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
