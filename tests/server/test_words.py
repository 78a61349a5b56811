"""/v1/completions, /tokenize, /detokenize, /apply-template over the scripted model."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import client
from client import named


def both(s, prompt, **more):
    whole = s.post("/v1/completions", {"prompt": prompt, **more})
    assert whole.status == 200, whole.body
    choice = whole.json["choices"][0]
    chunks = [d for _, d in s.stream("/v1/completions", {"prompt": prompt, "stream": True, "stream_options": {"include_usage": True}, **more}).all()]
    assert chunks[-1] == "[DONE]" and chunks[-2]["choices"] == []
    assert chunks[-2]["usage"]["completion_tokens"] == whole.json["usage"]["completion_tokens"]
    parts = [c["choices"][0] for c in chunks[:-2]]
    assert "".join(p["text"] for p in parts) == choice["text"], (parts, choice)
    assert [p["finish_reason"] for p in parts if p["finish_reason"]] == [choice["finish_reason"]]
    if choice["logprobs"]:
        for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            assert sum((p["logprobs"][key] for p in parts if p["logprobs"]), []) == choice["logprobs"][key], key
    return choice


def test_completions(s):
    c = both(s, "<user>say:once upon<bot>")
    assert c["text"] == "once upon" and c["finish_reason"] == "stop" and c["logprobs"] is None
    assert both(s, ["<user>say:once upon<bot>"], max_tokens=2) == {"index": 0, "text": "on", "logprobs": None, "finish_reason": "length"}
    ids = s.post("/tokenize", {"content": "<user>say:once<bot>"}).json["tokens"]
    assert both(s, ids)["text"] == "once" and both(s, [ids])["text"] == "once"
    assert both(s, "<user>say:<think>x</think>y<bot>", stop="y")["text"] == "<think>x</think>"  # plain text: nothing is taken apart
    r = s.post("/v1/completions", {"prompt": "<user>say:x<bot>", "n": 3})
    assert [c["index"] for c in r.json["choices"]] == [0, 1, 2] and r.json["object"] == "text_completion"


@named("E08 logprobs of completions")
def test_logprobs(s):
    c = both(s, "<user>say:a\\xF0\\x9F\\x8C\\x8D!<bot>", logprobs=2)
    p = c["logprobs"]
    assert p["tokens"] == ["a", "bytes:\\xf0\\x9f", "bytes:\\x8c\\x8d", "!"] and p["text_offset"] == [0, 1, 2, 2]
    assert all(len(t) == 2 for t in p["top_logprobs"]) and all(-0.01 < x <= 0 for x in p["token_logprobs"])
    assert both(s, "<user>say:ab<bot>", logprobs=0)["logprobs"]["top_logprobs"] == [{}, {}]
    assert both(s, "<user>say:ab<bot>", logprobs=1)["logprobs"]["tokens"] == ["a", "b"]


def test_completions_refused(s):
    for more, what in (({"prompt": None}, "prompt"), ({"prompt": 5}, "prompt"), ({"prompt": ""}, "empty"), ({"prompt": []}, "prompt"),
                       ({"prompt": ["a", "b"]}, "prompt"), ({"prompt": [1, 281]}, "prompt"), ({"prompt": [1, -1]}, "prompt"),
                       ({"suffix": "x"}, "suffix"), ({"echo": True}, "echo"), ({"best_of": 2}, "best_of"), ({"logprobs": 21}, "logprobs"),
                       ({"logprobs": True}, "logprobs"), ({"max_tokens": 0}, "max_tokens"), ({"prompt": "x" * 5000}, "4096")):
        r = s.post("/v1/completions", {"prompt": "x", **more})
        assert r.status == 400 and what in r.error, (more, r.body)
    assert s.post("/v1/completions", {"prompt": "<bot>", "best_of": 1, "echo": False, "suffix": None}).status == 200


def test_words(s):
    r = s.post("/tokenize", {"content": "a<user>\u00e9"}).json
    assert r == {"tokens": [97, 257, 195, 169], "count": 4, "max_model_len": 4096}
    r = s.post("/tokenize", {"content": "a<bot>", "with_pieces": True}).json["tokens"]
    assert r == [{"id": 97, "piece": "a"}, {"id": 258, "piece": "<bot>"}]
    chat = {"messages": [{"role": "user", "content": "<bot>"}]}  # what a user writes is no mark
    assert s.post("/tokenize", chat).json["tokens"] == [257, *b"<bot>", 258]
    assert s.post("/tokenize", {**chat, "add_generation_prompt": False}).json["tokens"] == [257, *b"<bot>"]
    assert s.post("/apply-template", chat).json == {"prompt": "<user><bot><bot>"}
    assert s.post("/detokenize", {"tokens": [97, 257, 195, 169, 240]}).json == {"content": "a<user>\u00e9\ufffd"}
    assert s.post("/detokenize", {"tokens": []}).json == {"content": ""} and s.post("/tokenize", {"prompt": ""}).json["tokens"] == []
    for path, body in (("/tokenize", {}), ("/tokenize", {"content": 5}), ("/detokenize", {}), ("/detokenize", {"tokens": [281]}),
                       ("/detokenize", {"tokens": ["a"]}), ("/apply-template", {"content": "x"}), ("/apply-template", {"messages": []})):
        assert s.post(path, body).status == 400, (path, body)
    assert s.get("/v1/models/stub").json["id"] == "stub"
    assert s.get("/v1/models/other").status == 404 and s.get("/v1/models/").status == 404


if __name__ == "__main__":
    client.main(client.tests_of(globals()))
