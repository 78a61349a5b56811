"""Servers of laguna-tiny: as it is, with a longer context, under a sanitizer."""
import pathlib
import struct
import subprocess

from client import ROOT, tap
import emitted

MODEL = ROOT / "models" / "laguna-tiny" / "laguna-tiny.gguf"


def longer(ctx):
    """A copy of the model that says it was made for `ctx` tokens. Its words then prove nothing about the model; where they come from does."""
    import program
    key = b"laguna.context_length"
    data = bytearray(MODEL.read_bytes())
    at = data.index(key) + len(key)
    assert struct.unpack_from("<I", data, at) == (4,), "not a u32"
    struct.pack_into("<I", data, at + 4, ctx)
    program.WORK.mkdir(parents=True, exist_ok=True)
    path = program.WORK / "laguna-tiny.gguf"
    with emitted.locked(path):
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
    return path


def build(ctx=8192, slots=8, sanitizer=None):
    """Path of the server. A second build compiles nothing."""
    import program
    if not MODEL.exists() or not program.LAGEN.exists():
        raise tap.Skip("build/lagen or the model is not there")
    usual = (ctx, slots) == (8192, 8)
    out = program.WORK / ("laguna-tiny-server" if usual else f"laguna-tiny-{ctx}-{slots}")
    model = MODEL if ctx <= 8192 else longer(ctx)
    program.build_in(out, "--model", model, "--arch", "native", "--ctx", ctx, "--slots", slots)
    if sanitizer:
        with emitted.locked(f"{out}-{sanitizer}"):
            out = sanitized(out, sanitizer)
    return str(out / "laguna-tiny-server")


def sanitized(plain, sanitizer):
    """The emitted folder once more, compiled with -fsanitize=...; but for the plain twins of kernels, which `selftest` alone runs."""
    out = pathlib.Path(f"{plain}-{sanitizer.replace(',', '-')}")
    out.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", "--update", *[plain / n for n in ("src", "runtime", "bundle.sh", "compiler.txt", "weights.bin")], out], check=True)
    build = out / "build.ninja"
    text = (plain / "build.ninja").read_text()
    text = text.replace("command = $cc $warn -Og", "command = cc $warn -Og")
    build.write_text(text.replace("\ncc = cc\n", f"\ncc = cc -g -fsanitize={sanitizer} -Wno-tsan -fno-sanitize-recover=undefined\n"))
    subprocess.run(["ninja", "-C", out, "-j2", "--quiet", "laguna-tiny-server"], check=True, stdout=subprocess.DEVNULL)
    return out
