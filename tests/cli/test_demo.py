"""demo.sh --offline with every way to a network closed: it builds, answers, calls the tool on offer, stops, and plans full-size
Laguna; where something is missing it says so and installs nothing."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "oracle"))
import emitted  # noqa: E402
import tap  # noqa: E402

WORK = tempfile.TemporaryDirectory()
FOLDER = pathlib.Path(WORK.name)
GOES_OUT = ("apt", "apt-get", "pip", "pip3", "curl", "wget", "git", "sudo", "ssh")
NOWHERE = "http://127.0.0.1:9"


def environment(**commands):
    """A PATH whose first folder has commands that tell that they were called, and `commands`, each a script."""
    scripts = {name: f'echo "{name} $*" >>{FOLDER}/called\nexit 99' for name in GOES_OUT}
    for name, text in {**scripts, **commands}.items():
        path = FOLDER / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    return dict(os.environ, PATH=f"{FOLDER}:{os.environ['PATH']}", PIP_NO_INDEX="1", http_proxy=NOWHERE, https_proxy=NOWHERE)


def demo(*arguments, **commands):
    done = subprocess.run([ROOT / "demo.sh", *arguments], cwd="/", env=environment(**commands), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True)
    assert not (FOLDER / "called").exists(), (FOLDER / "called").read_text()
    return done


def offline_builds_answers_calls_and_stops():
    with emitted.ready(emitted.demo_folder()):
        done = demo("--offline")
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.split(r"^== ", done.stdout, flags=re.M)[1:]
    assert [s[:4] for s in steps] == [f"{i}/6 " for i in range(1, 7)] + ["next"], done.stdout
    assert steps[3].splitlines()[1] == "The capital of France is Paris.", steps[3]
    assert re.search(r"answer \d+ tokens, .* tokens/s; end of answer", done.stderr), done.stderr
    choice = json.loads(steps[4].splitlines()[1])["choices"][0]
    function = choice["message"]["tool_calls"][0]["function"]
    assert choice["finish_reason"] == "tool_calls" and function["name"] == "get_weather", choice
    assert json.loads(function["arguments"]) == {"city": "Paris"}, choice
    assert "for every T from 1 to 7069" in steps[5] and "index 'pairs' 77758 <= " in steps[5], steps[5]
    assert re.search(r"moe_gated .* 'grid x' \d+ <= 2147483647\n.*'grid y' \d+ <= 65535\n", steps[5]), steps[5]
    assert not (ROOT / "build" / "demo" / "laguna-s.gguf").exists()
    assert "ended" in (ROOT / "build" / "demo" / "server.log").read_text()


def what_is_missing_is_named():
    real = subprocess.run(["sh", "-c", "command -v dpkg-query"], capture_output=True, text=True).stdout.strip()
    assert real
    lacks = f'case "$*" in *libedit-dev*) exit 1 ;; esac\nexec {real} "$@"'
    done = demo("--offline", **{"dpkg-query": lacks})
    (FOLDER / "dpkg-query").unlink()
    assert done.returncode == 1 and "not installed: libedit-dev; with a network: " in done.stderr, done.stderr
    assert "2/6" not in done.stdout, done.stdout


def options_are_told():
    done = demo("--online")
    assert done.returncode == 2 and "unknown option '--online'; it takes --offline" in done.stderr and not done.stdout
    help_text = demo("--help")
    assert help_text.returncode == 0 and "--offline: nothing is installed" in help_text.stdout and "set -e" not in help_text.stdout


tap.main([offline_builds_answers_calls_and_stops, what_is_missing_is_named, options_are_told])
