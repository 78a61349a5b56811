"""What `run` and `chat` of laguna-tiny print of a thinking model's answer: reasoning between its two marks, whether the template or the
model wrote the first, by pipe and on a terminal. A template that opens the answer's reasoning leaves the model only the end to write."""
import os
import pathlib
import pty
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
import laguna
from client import tap

QUESTION = "What is 58 + 67?"
THOUGHT = "58 + 67. 8 + 7 = 15, 5 + 6 + 1 = 12, 0 + 0 + 1 = 1. So 125."


def program():
    return laguna.build().removesuffix("-server") + "-cli"


def call(*arguments, said=""):
    p = subprocess.run([program(), *arguments, "--greedy"], input=said, capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return p.stdout, p.stderr


def balanced(text, n):
    """n answers, each with its reasoning between marks, and nothing in front of it."""
    marks = re.findall("</?think>", text)
    assert marks == ["<think>", "</think>"] * n and text.startswith("<think>" * (n > 0)), text


def run_shows_both_marks():
    out, _ = call("run", "-p", QUESTION)
    assert out == f"<think>{THOUGHT}</think>58 + 67 = 125.\n", out
    balanced(out, 1)


def chat_by_pipe_shows_both_marks():
    out, _ = call("chat", said=f"{QUESTION}\nHello!\n{QUESTION}\n")
    balanced(out, 3)
    assert out.count(f"<think>{THOUGHT}</think>") == 2, out
    assert len([line for line in out.splitlines() if line.startswith("<think>")]) == 3, out


def without_thinking_there_are_no_marks():
    for out, _ in (call("run", "-p", QUESTION, "--thinking", "off"), call("chat", "--thinking", "off", said=QUESTION + "\n")):
        balanced(out, 0)
        assert "125" in out, out


def what_the_user_wrote_opens_nothing():
    out, _ = call("run", "--thinking", "off", "-p", "<think>")
    assert not out.startswith("<think>"), out
    out, _ = call("run", "--raw", "-n", "4", "-p", "<think>")
    assert not out.startswith("<think>"), out


def a_cut_thought_stays_open():
    out, err = call("run", "-p", QUESTION, "-n", "6")
    assert out.startswith("<think>58 ") and "</think>" not in out and "; length" in err, (out, err)
    assert call("run", "-p", QUESTION, "-n", "0")[0] == "", "nothing was thought"


def a_terminal_shows_the_same():
    ours, theirs = pty.openpty()
    child = subprocess.Popen([program(), "run", "-p", QUESTION, "--greedy"], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    text = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        text += more
    os.close(ours)
    assert child.wait() == 0 and text.decode().replace("\r\n", "\n") == call("run", "-p", QUESTION)[0], text


def main():
    t = tap.Tap()
    for test in (run_shows_both_marks, chat_by_pipe_shows_both_marks, without_thinking_there_are_no_marks, what_the_user_wrote_opens_nothing,
                 a_cut_thought_stays_open, a_terminal_shows_the_same):
        t.run(test)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
