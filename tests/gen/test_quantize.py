"""The quantisers against the gguf package: equal bits where it quantises too, and the error of what
it dequantises. Thresholds: relative RMS error measured on 200 Gaussian qblocks, plus 10 %."""
import os
import pathlib
import subprocess
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
from gguf.quants import dequantize, quantize

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

TOOL = ROOT / os.environ.get("LAGEN_BUILD", "build") / "tests" / "gen" / "quantize_rows"
ERROR = {"Q4_0": .0866, "Q4_1": .0786, "Q5_0": .0422, "Q5_1": .0381, "Q8_0": .0054, "Q2_K": .3285,
         "Q3_K": .1553, "Q4_K": .0789, "Q5_K": .0383, "Q6_K": .0188, "IQ4_NL": .0799, "IQ4_XS": .0804,
         "MXFP4": .1143, "NVFP4": .1034, "F16": .00021, "BF16": .0017, "F32": 0.0}
SAME_BITS = ["F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "MXFP4"]


def run(name, rows):
    """The tool's bytes for float32 rows, [n_rows, row bytes]."""
    done = subprocess.run([TOOL, name.lower(), str(rows.shape[1])], input=rows.tobytes(),
                          stdout=subprocess.PIPE, check=True)
    return np.frombuffer(done.stdout, np.uint8).reshape(len(rows), -1)


def rows_for(name, n_qblocks=200):
    elems = GGML_QUANT_SIZES[GGMLQuantizationType[name]][0]
    rng = np.random.default_rng(20)
    return (0.02 * rng.standard_normal((20, n_qblocks // 20 * max(elems, 32)))).astype(np.float32)


def decode(name, data):
    return dequantize(data, GGMLQuantizationType[name]).astype(np.float64)


def edge_rows(name):
    """Rows that try the corners: zeros, equal values, one peak, tiny and large numbers, ties."""
    n = max(GGML_QUANT_SIZES[GGMLQuantizationType[name]][0], 32)
    peak = np.zeros(n)
    peak[n // 3] = -3.0
    ramp = np.arange(n) / 16 - 1
    rows = [np.zeros(n), np.full(n, 0.7), np.full(n, -0.7), peak, -peak, ramp, ramp * 1e-6,
            ramp * 4000, np.round(ramp * 2), ramp * 1e-38, ramp * 1e-41]
    return np.array(rows, np.float32)


def main():
    t = tap.Tap()
    if not TOOL.exists():
        t.skip("quantisers", f"{TOOL.relative_to(ROOT)} is not built")
        return t.done()
    for name, limit in ERROR.items():
        x = rows_for(name)
        error = np.sqrt(np.mean((decode(name, run(name, x)) - x) ** 2) / np.mean(x.astype(float) ** 2))
        t.check(f"{name} error {error:.5f}", error <= limit * 1.1)
        edges = edge_rows(name)
        back = decode(name, run(name, edges))
        t.check(f"{name} corners are finite", bool(np.isfinite(back).all()))
        t.check(f"{name} zeros stay zeros", not back[0].any())
    for name in SAME_BITS:
        # the last two corners are left out: the package divides by subnormal numbers there
        for label, x in (("gaussian", rows_for(name)), ("corners", edge_rows(name)[:-2])):
            want = quantize(x, GGMLQuantizationType[name]).view(np.uint8).reshape(len(x), -1)
            same = (run(name, x) == want).all(axis=1)
            t.check(f"{name} {label} bits equal", bool(same.all()),
                    f"rows {np.flatnonzero(~same)} differ")
    return t.done()


sys.exit(main())
