"""What the GPU tests need of the CUDA toolkit, or the reason to skip."""

import os
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import tap  # noqa: E402,F401


def include_dir():
    """The folder with cuda.h, or Skip."""
    nvcc = shutil.which("nvcc")
    homes = [
        os.environ.get("CUDA_HOME"),
        nvcc and str(pathlib.Path(nvcc).resolve().parents[1]),
        "/usr/local/cuda",
    ]
    for home in homes:
        if home and (pathlib.Path(home) / "include" / "cuda.h").exists():
            return pathlib.Path(home) / "include"
    raise tap.Skip("no CUDA toolkit here (cuda.h)")


def nvcc():
    """The compiler's path, or Skip."""
    path = shutil.which("nvcc")
    if path is None:
        raise tap.Skip("no nvcc on PATH")
    return path


BUILD = ROOT / os.environ.get("LAGEN_BUILD", "build")


def recorder():
    """The driver look-alike that ninja builds; not the sanitized one, as programs are not either."""
    path = ROOT / "build" / "liblagen_recorder.so"
    assert path.exists(), f"{path} is not built: ninja tests"
    return path


def nvrtc():
    """Skip unless libnvrtc.so.13 lies where lagen looks for it."""
    import ctypes

    for name in ("libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise tap.Skip("no libnvrtc.so.13 here")
