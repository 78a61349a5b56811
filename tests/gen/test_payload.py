"""Random weights of the types in payload.def, decoded by the gguf package: their deviation is what the recipe asks
for, their mean 0, every scale finite, and scales differ."""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402

LAGEN = ROOT / os.environ.get("LAGEN_BUILD", "build") / "lagen"
TYPES = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S", "IQ1_M"]


def synth(types, folder):
    path = pathlib.Path(folder) / f"{types}.gguf"
    command = [LAGEN, "synth", "synth/llama-wide", "--types", types, "--layers", "1", "--out", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return path


def check_tensor(t, tensor):
    x = dequantize(tensor.data, tensor.tensor_type).astype(np.float64)
    gain = 1.6 if "attn_q" in tensor.name or "attn_k" in tensor.name else 1.0
    ratio = x.std() / (gain / np.sqrt(x.shape[1]))
    far = abs(x.mean()) / x.std() * np.sqrt(x.size)
    top = np.abs(x.reshape(-1, 256)).max(axis=1)
    good = bool(np.isfinite(x).all()) and abs(ratio - 1) < 0.06 and far < 5 and top.std() > 0.1 * top.mean()
    t.check(f"{tensor.tensor_type.name} {tensor.name}: deviation {ratio:.4f} of what was asked for", good,
            f"mean is {far:.1f} of its deviations off, largest of a qblock {top.mean():.3g} +- {top.std():.2g}")
    return tensor.tensor_type.name


def main():
    t = tap.Tap()
    if not LAGEN.exists():
        t.skip("random weights", f"{LAGEN.relative_to(ROOT)} is not built")
        return t.done()
    with tempfile.TemporaryDirectory() as folder:
        path = synth("mixed_iq", folder)
        seen = [check_tensor(t, x) for x in GGUFReader(path).tensors if x.tensor_type.name in TYPES]
        t.check("every type is there", sorted(seen) == sorted(TYPES), f"{seen}")
        again = path.rename(path.with_suffix(".first"))
        t.check("the same bytes again", synth("mixed_iq", folder).read_bytes() == again.read_bytes())
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
