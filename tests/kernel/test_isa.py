"""The instruction layer by itself: every function of every header gives the bits of the plain one,
and the plain one is right: fma against exact fractions, halves against numpy, exp, SiLU, sine and
cosine against float64."""
import fractions
import pathlib
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402
from rows import ROWS, SANITIZED, WORK, command_for, compile_one, why_not  # noqa: E402

N = 768 * 4  # floats in each of the three arrays


def inputs():
    """Three arrays: a wide range of exponents, near ties and cancellations for fma."""
    rng = np.random.default_rng(3)

    def wide(n, low, high):
        return rng.standard_normal(n) * 2.0 ** rng.integers(low, high, n)

    a, b = wide(N, -130, 100).astype(np.float32), wide(N, -60, 26).astype(np.float32)
    a[:1000], b[:1000] = wide(1000, -3, 7), wide(1000, -10, 10)
    c = (-(a.astype(np.float64) * b) * (1 + wide(N, -60, 2))).astype(np.float32)
    step = np.float32(2.0 ** -12)
    a[8:1000:8], b[8:1000:8], c[8:1000:8] = 1 + step, 1 + step, 2.0 ** -24
    c[16:1000:16] = 2.0 ** -60
    a[:8] = [0, -0.0, 1e-40, -1e-45, 88.1, -87.1, 3e38, -3e38]
    return a, b, c


def build_and_run(row, data):
    folder = WORK / row
    folder.mkdir(parents=True, exist_ok=True)
    command = command_for(row) + [f'-DISA_HEADER="{ROWS[row][0]}"']
    obj = compile_one(command, ROOT / "tests" / "kernel" / "isa_probe.c", folder)
    program = folder / "isa_probe"
    subprocess.run([*command, obj, "-o", program, "-lm"], check=True)
    data.tofile(folder / "isa_in.bin")
    subprocess.run([*ROWS[row][5], program, folder / "isa_in.bin", folder / "isa_out.bin"],
                   check=True)
    return (folder / "isa_out.bin").read_bytes()


class Results:
    """The plain results, taken apart function after function."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n, dtype=np.float32):
        a = np.frombuffer(self.data, dtype, n, self.at)
        self.at += a.nbytes
        return a


def round_to_f32(x):
    """A fraction to the nearest float32, ties to even."""
    if x == 0:
        return 0.0
    exponent = max(abs(x.numerator).bit_length() - x.denominator.bit_length() - 24, -149)
    if abs(x) >= fractions.Fraction(2) ** (exponent + 24):
        exponent += 1
    unit = fractions.Fraction(2) ** exponent
    rounded = round(x / unit) * unit  # round() of a fraction: ties to even
    return float(rounded) if abs(rounded) < 2 ** 128 else np.inf * (1 if x > 0 else -1)


def fma_is_exact(a, b, c, got):
    for i in range(0, N):
        exact = fractions.Fraction(float(a[i])) * fractions.Fraction(float(b[i]))
        exact += fractions.Fraction(float(c[i]))
        if float(got[i]) != round_to_f32(exact):
            return False
    return True


def ulp_error(got, want):
    """Largest error in units of the last place of a float32."""
    size = np.maximum(np.abs(want), 2.0 ** -126)
    return np.max(np.abs(got.astype(np.float64) - want) / 2.0 ** (np.floor(np.log2(size)) - 23))


def check_plain(t, a, b, c, data):
    r = Results(data)
    wide = a.astype(np.float64)
    t.check("fma_is_exact", fma_is_exact(a, b, c, r.take(N)))
    for name, want in (("add", a + b), ("sub", a - b), ("mul", a * b), ("div", a / b)):
        t.check(f"{name}_is_ieee", bool(np.all(r.take(N) == want)))
    r.take(2 * N)  # neg and max: compared between rows only
    error = ulp_error(r.take(N), np.where(a < -87, 0.0, np.exp(np.clip(wide, -800, 88))))
    t.check("exp_within_2_ulp", error < 2, f"{error} ulp")
    silu = np.where(wide > -87, wide / (1.0 + np.exp(np.clip(-wide, -800, 88))), 0.0)
    got = r.take(N)
    error = ulp_error(got[wide > -80], silu[wide > -80])
    t.check("silu_within_4_ulp", error < 4, f"{error} ulp")
    got, want = r.take(N), np.maximum(wide, 0) + np.log1p(np.exp(-np.abs(wide)))
    error = ulp_error(got[wide > -80], want[wide > -80])
    t.check("softplus_within_4_ulp", error < 4, f"{error} ulp")
    t.check("softplus_far_below_is_0", bool(np.all(got[wide < -87] == 0)))
    fma1, root = r.take(2 * N).reshape(N, 2).T
    t.check("sqrt_is_ieee", bool(np.all(root == np.sqrt(np.abs(a)))))
    t.check("scalar_fma_is_exact", fma_is_exact(a, b, c, fma1))
    bits = np.arange(65536).astype(np.uint16)
    want = bits.view(np.float16).astype(np.float32)
    real = ~np.isnan(want)
    t.check("halves_are_exact", bool(np.all(r.take(65536)[real] == want[real])))
    t.check("halves_come_back", bool(np.all(r.take(65536, np.uint16)[real] == bits[real])))
    t.check("scalar_halves_are_exact", bool(np.all(r.take(65536)[real] == want[real])))
    want = (bits.astype(np.uint32) << 16).view(np.float32)
    t.check("bfloat16_is_exact", bool(np.all((r.take(65536) == want) | np.isnan(want))))
    t.check("to_half_rounds_to_even",
            bool(np.all(r.take(N, np.uint16) == a.astype(np.float16).view(np.uint16))))
    angles = np.frombuffer(data, np.float64, 2 * N, len(data) - 16 * N).reshape(N, 2)
    phi = np.arange(N) * 16.0 + np.arange(N) / 7.0
    error = np.abs(angles - np.stack([np.cos(phi), np.sin(phi)], 1)).max()
    t.check("sine_and_cosine_within_1e-15", error < 1e-15, f"{error}")


def main():
    t = tap.Tap()
    np.seterr(all="ignore")
    a, b, c = inputs()
    data = np.concatenate([a, b, c])
    plain = build_and_run("plain", data)
    check_plain(t, a, b, c, plain)
    for row in list(ROWS)[1:]:
        why = why_not(row)
        if SANITIZED and row == "aarch64-v8.2":
            why = "the sanitizers do not run under qemu"
        if why:
            t.skip(f"{row}_layer_gives_the_bits_of_plain", why)
            continue
        got = build_and_run(row, data)
        first = next((k for k, (x, y) in enumerate(zip(got, plain)) if x != y), None)
        t.check(f"{row}_layer_gives_the_bits_of_plain", got == plain,
                f"byte {first}; {len(got)} bytes for {len(plain)}")
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
