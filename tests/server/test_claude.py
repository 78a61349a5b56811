"""The `claude` command that the Python package claude-agent-sdk carries, against the server over the scripted model: its real first request is
answered and streamed, its tool call runs, and the turn after it reads nothing again. (pip install claude-agent-sdk; skipped without it.)"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
import laguna
from client import Server, named


def command():
    found = importlib.util.find_spec("claude_agent_sdk")
    path = pathlib.Path(found.origin).parent / "_bundled" / "claude" if found else None
    if path is None or not path.exists():
        raise client.tap.Skip("the Python package claude-agent-sdk is not installed, or carries no command")
    return path


def run(program, s, home, *args):
    """The command's events, asking this server."""
    env = {"PATH": os.environ["PATH"], "HOME": home, "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{s.port}", "ANTHROPIC_API_KEY": "a-key-that-nobody-checks",
           "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1"}
    p = subprocess.run([str(program), *args, "--output-format", "stream-json", "--verbose"], env=env, cwd=home, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert p.returncode == 0, (p.stdout[-2000:], p.stderr[-2000:])
    return [json.loads(line) for line in p.stdout.decode().splitlines()]


def answers_of(s):
    """Log lines of long prompts' answers; every request to the API was answered with 200."""
    log = [json.loads(line) for line in s.log().splitlines()]
    assert all(x["status"] == 200 for x in log if x["event"] == "request" and x["path"].startswith("/v1/messages")), log
    return [x for x in log if x["event"] == "answer" and x["prompt"] > 10000]


@named("E25 the claude command: first request, tool call, second turn from the prefix")
def test_claude():
    program = command()
    call = '<tool_call>{"name": "Bash", "arguments": {"command": "echo from-the-tool", "description": "Say so"}}</tool_call>'
    with Server("--log", "json", stub_args=["ctx=262144", "slots=4", "chunk=512"]) as s, tempfile.TemporaryDirectory() as home:
        events = run(program, s, home, "-p", "say:I run it." + call, "--model", "stub", "--allowedTools", "Bash")
        blocks = [b for e in events if e["type"] in ("assistant", "user") for b in e["message"]["content"]]
        assert any(b["type"] == "tool_use" and b["input"]["command"] == "echo from-the-tool" for b in blocks)
        assert any(b["type"] == "tool_result" and "from-the-tool" in json.dumps(b["content"]) for b in blocks)
        assert any(b["type"] == "text" and b["text"] == "Hello from the stub." for b in blocks)
        answers = answers_of(s)
        assert len(answers) >= 2 and answers[-1]["cached"] >= answers[-2]["prompt"] - 8, answers


@named("the claude command looks for a tool, and goes on with all that was read")
def test_claude_tool_search():
    program = command()
    call = '<tool_call>{"name": "ToolSearch", "arguments": {"query": "select:WebFetch", "max_results": 5}}</tool_call>'
    with Server("--log", "json", stub_args=["ctx=262144", "slots=4", "chunk=512"]) as s, tempfile.TemporaryDirectory() as home:
        events = run(program, s, home, "-p", "say:I look." + call, "--model", "stub")
        blocks = [b for e in events if e["type"] == "user" for b in e["message"]["content"]]
        if not any("tool_reference" in json.dumps(b) for b in blocks):
            raise client.tap.Skip("this command has no tools to look for")
        answers = answers_of(s)  # none was refused, so none was sent anew with every tool in it
        assert len(answers) == 2 and answers[-1]["cached"] >= answers[-2]["prompt"] - 8, answers


@named("the claude command and laguna-tiny: first request, and a second turn from the prefix")
def test_claude_laguna():
    program = command()
    if not os.environ.get("LAGEN_TEST_ALL"):
        raise client.tap.Skip("long; check.sh --all runs it")
    question = ["-p", "What is 17 plus 25?", "--model", "laguna-tiny"]
    with Server("--log", "json", program=laguna.build(65536, 2)) as s, tempfile.TemporaryDirectory() as home:
        texts = []
        for turn in (question, ["-c", *question]):
            events = run(program, s, home, *turn)
            texts.append(events[-1]["result"])
            print("#", turn[0], texts[-1])
        answers = answers_of(s)
        print("#", [(a["prompt"], a["cached"], a["generated"]) for a in answers])
        assert all(texts) and len(answers) >= 2 and answers[-1]["prompt"] - answers[-1]["cached"] < 1200, answers


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
