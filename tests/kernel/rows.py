"""The CPU rows that kernel tests compile for: header, flags, whether this machine can run them."""
import hashlib
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("LAGEN_BUILD", "build")
WORK = BUILD / "tests" / "kernel"
SANITIZED = BUILD.name == "san"
INCLUDES = [ROOT / "templates" / "lib", ROOT / "runtime", ROOT / "tests" / "kernel"]
FLAGS = ("-std=c11 -O3 -ffp-contract=off -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes "
         "-Wmissing-prototypes -Werror").split()
SAN = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all".split()

# name: instruction header, lanes, compiler, flags, /proc/cpuinfo flags it needs, how to run it
ROWS = {
    "plain": ("isa_plain.h", 16, "cc", [], [], []),
    "x86-64-v2": ("isa_sse42.h", 4, "cc", ["-march=x86-64-v2"], ["sse4_2"], []),
    "x86-64-v3": ("isa_avx2.h", 8, "cc", ["-march=x86-64-v3"], ["avx2", "fma", "f16c"], []),
    "x86-64-v4": ("isa_avx512.h", 16, "cc", ["-march=x86-64-v4"],
                  ["avx512f", "avx512bw", "avx512dq", "avx512vl"], []),
    "x86-64-v4-vnni": ("isa_avx512.h", 16, "cc", ["-march=x86-64-v4", "-mavx512vnni"],
                       ["avx512bw", "avx512dq", "avx512vl", "avx512_vnni"], []),
    "aarch64-v8.2": ("isa_neon.h", 4, "aarch64-linux-gnu-gcc",
                     ["-march=armv8.2-a+dotprod", "-static"], [], ["qemu-aarch64", "-cpu", "max"]),
}


def why_not(row):
    """Why this machine cannot run a row, or None."""
    header, lanes, compiler, flags, needs, runner = ROWS[row]
    for tool in [compiler] + runner[:1]:
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if needs or row == "plain":
        have = pathlib.Path("/proc/cpuinfo").read_text().split()
        missing = [n for n in needs if n not in have]
        return f"this processor lacks {' '.join(missing)}" if missing else None
    return None


def command_for(row):
    """The compiler command of a row, with the flags of emitted code."""
    _, _, compiler, flags, _, _ = ROWS[row]
    return [compiler, *FLAGS, *flags, *(SAN if SANITIZED else []), "-D_DEFAULT_SOURCE",
            *[f"-I{i}" for i in INCLUDES]]


def with_headers_ready(row, command, folder):
    """The command for many sources of a row: with the headers that all of them include compiled beforehand. To read those of
    the compiler for vectors is half of what a kernel takes. Not for `plain`, which shows that a kernel names what it needs."""
    if row == "plain":
        return command
    header = folder / "ready.h"
    names = ["<stdbool.h>", "<stddef.h>", "<stdint.h>", "<string.h>", '"model_abi.h"', f'"{ROWS[row][0]}"', '"isa_math.h"']
    header.write_text("".join(f"#include {n}\n" for n in names))
    subprocess.run([*command, "-x", "c-header", header, "-o", f"{header}.gch"], check=True)
    return [*command, "-include", header]


def compile_one(command, source, out_dir):
    """The object of a source, from the cache if nothing that it sees has changed."""
    seen = hashlib.sha256(" ".join(map(str, command)).encode() + source.read_bytes())
    for folder in INCLUDES:
        for header in sorted(folder.glob("*.h")):
            seen.update(header.read_bytes())
    obj = out_dir / f"{source.stem}.{seen.hexdigest()[:16]}.o"
    if not obj.exists():
        for old in out_dir.glob(f"{source.stem}.????????????????.o"):
            old.unlink()
        part = obj.with_suffix(".part")
        subprocess.run(command + ["-c", source, "-o", part], check=True)
        part.rename(obj)
    return obj
