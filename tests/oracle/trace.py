"""What every layer leaves, of an emitted program beside the reference: root mean square error of the hidden states over
their root mean square, layer by layer. The first layer that is far off holds the fault.

    trace.py MODEL [--tokens N] [--ctx N] [OPTION...]     builds the program with the options and prints a line a layer
"""
import argparse
import os
import sys

import numpy as np

import kl
import oracle
import program


def of_program(cli, tokens, n_layers, *options):
    """float32 [layers][positions][width]."""
    path = program.WORK / f"trace.{os.getpid()}"
    try:
        program.run([cli, "logits", "--ids", ",".join(map(str, tokens)), "--trace", path, *options])
        return np.fromfile(path, np.float32).reshape(n_layers, len(tokens), -1)
    finally:
        path.unlink(missing_ok=True)


def of_oracle(o, tokens):
    layers = []
    o.session().feed(tokens, layers)
    return np.stack(layers)


def errors(got, want):
    """Of each layer."""
    return np.sqrt(((got - want) ** 2).mean(axis=(1, 2)) / (want ** 2).mean(axis=(1, 2)))


def main():
    ap = argparse.ArgumentParser(description="layer by layer beside the reference")
    ap.add_argument("model")
    ap.add_argument("--tokens", type=int, default=128)
    ap.add_argument("--ctx", type=int, default=1024)
    args, options = ap.parse_known_args()
    cli = program.build_in(program.WORK / "trace-program", "--model", args.model, "--ctx", args.ctx, *options)
    o = oracle.Oracle(args.model)
    tokens = kl.random_tokens(0, args.tokens, o.n_vocab)
    for i, e in enumerate(errors(of_program(cli, tokens, o.n_layers), of_oracle(o, tokens))):
        print(f"layer {i:3}  {e:.3e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
