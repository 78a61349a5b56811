"""A model file with its matrices in another tensor type: dequantised by the gguf package, quantised by lagen's simple
quantisers (gen/quantize.h). Norms, biases and the router stay as they are, and matrices whose rows are not whole
qblocks of the type.

    requantize.py MODEL TYPE OUT
"""
import pathlib
import subprocess
import sys

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

import program

TYPES = ("f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl",
         "iq4_xs", "mxfp4", "nvfp4")  # all that have a simple quantiser
TOOL = program.BUILD / "tests" / "gen" / "quantize_rows"


def quantised(values, name):
    """float32 [..., cols] as bytes [..., row bytes]."""
    done = subprocess.run([TOOL, name, str(values.shape[-1])], input=values.tobytes(), stdout=subprocess.PIPE, check=True)
    return np.frombuffer(done.stdout, np.uint8).reshape(values.shape[:-1] + (-1,))


def changes(tensor, name):
    cols = int(tensor.shape[0])
    return (len([n for n in tensor.shape if n > 1]) > 1 and "ffn_gate_inp" not in tensor.name
            and cols % GGML_QUANT_SIZES[GGMLQuantizationType[name.upper()]][0] == 0)


def copy_keys(reader, writer):
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        writer.add_key_value(field.name, field.contents(), kind,
                             sub_type=field.types[-1] if kind == GGUFValueType.ARRAY else None)


def requantize(source, name, out):
    reader = GGUFReader(str(source))
    writer = GGUFWriter(str(out), reader.fields["general.architecture"].contents())
    copy_keys(reader, writer)
    for t in reader.tensors:
        if changes(t, name):
            values = dequantize(t.data, t.tensor_type).astype(np.float32)
            values = np.ascontiguousarray(values.reshape([int(n) for n in reversed(t.shape)]))
            writer.add_tensor(t.name, quantised(values, name), raw_dtype=GGMLQuantizationType[name.upper()])
        else:
            writer.add_tensor(t.name, t.data, raw_dtype=t.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return pathlib.Path(out)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    requantize(*sys.argv[1:])
