"""models/laguna-tiny: the file holds what its scripts say, answers, calls and stops, and the scripts still make its data."""
import hashlib
import os
import random
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "models", "laguna-tiny")
FILE = os.path.join(FOLDER, "laguna-tiny.gguf")
sys.path[:0] = [os.path.join(ROOT, "tests", "oracle"), FOLDER]

import tap

try:
    import gguf
    import jinja2
    import numpy as np
    import tokenizers
except ImportError as why:
    print(f"1..0 # SKIP {why}")
    sys.exit(0)

import config
import data
import dialogue
import oracle
import quant
import reference
import render

# Of the first 4,000 documents of seed 4: data that the model was trained on looked like this.
DOCUMENTS = "c44f18c322a5cdb9ae70d0619e85703f07e32cfc6d6de6a1b7828ea45947cd8f"
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the current weather in a given location",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
RESULT = '{"temperature": 18, "condition": "cloudy"}'
CALL = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value></tool_call></assistant>"


def user(text):
    return {"role": "user", "content": text}


def called(city):
    return {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "function": {"name": "get_weather", "arguments": {"city": city}}}]}


def test_file_holds_its_shapes_and_types():
    c, reader = config.Config(), gguf.GGUFReader(FILE)
    found = {t.name: (tuple(int(x) for x in reversed(t.shape)), t.tensor_type.name) for t in reader.tensors}
    assert found == {n: (s, config.tensor_type(n, c)) for n, s in config.shapes(c).items()}
    assert os.path.getsize(FILE) <= 12 << 20
    assert {t for _, t in found.values()} == {"F32", "F16", "Q4_K", "Q5_K", "Q6_K", "Q8_0"}


def test_template_is_the_one_in_the_file():
    with open(render.TEMPLATE, encoding="utf-8") as f:
        assert f.read() == gguf.GGUFReader(FILE).fields["tokenizer.chat_template"].contents()


def test_conversations_render_as_the_template_does():
    rng = random.Random(11)
    for _ in range(60):
        c = dialogue.conversation(rng)
        assert "".join(t for t, _ in render.segments(c)) == render.template_text(c)


def test_scripts_make_the_data_of_the_training():
    digest, rng = hashlib.sha256(), random.Random(4)
    for _ in range(4000):
        digest.update(repr(data.document(rng)).encode())
    assert digest.hexdigest() == DOCUMENTS


def test_quantisers_decode_near_to_what_they_took():
    rng = np.random.default_rng(1)
    w = (rng.standard_normal((16, 512)) * 0.02).astype(np.float32)
    w[3], w[4, :256], w[5] = 0, 0, abs(w[5])
    for kind, bound in (("Q4_K", 0.087), ("Q5_K", 0.042), ("Q6_K", 0.021), ("Q8_0", 0.006)):
        back = gguf.quants.dequantize(quant.pack(w, kind), gguf.GGMLQuantizationType[kind])
        error = np.sqrt(((back - w) ** 2).mean() / (w ** 2).mean())
        assert 0 < error < bound, (kind, error)
        assert not back[3].any() and not back[4, :256].any(), kind


class Chat:
    model = None

    @classmethod
    def answer(cls, messages, tools=(), thinking=False, system=None):
        if cls.model is None:
            cls.model = reference.Model(FILE, np.float32)
            cls.tok = reference.tokenizer_of(cls.model.keys)
        c = {"system": system, "tools": list(tools), "thinking": thinking, "messages": messages}
        text = render.template_text(c, add_generation_prompt=True)
        out = cls.model.greedy(cls.tok.encode(text, add_special_tokens=False).ids, 80)
        return cls.tok.decode(out, skip_special_tokens=False)


def same(got, want):
    assert got == want, f"got {got!r}, want {want!r}"


def test_oracle_and_the_own_reference_agree():
    Chat.answer([user("Hello")])
    ids = Chat.tok.encode(render.template_text({"system": None, "tools": [WEATHER], "thinking": False, "messages": [
        user("What is the weather in Paris?")]}), add_special_tokens=False).ids
    a, b = oracle.Oracle(FILE).logits(ids), reference.Model(FILE).forward(ids)
    assert len(ids) > 64 + 16 and np.abs(a - b).max() < 1e-9, np.abs(a - b).max()


def test_it_answers_and_stops():
    same(Chat.answer([user("What is the capital of France?")]), "The capital of France is Paris.</assistant>")
    same(Chat.answer([user("What is a florbix?")]), "I do not know what a florbix is.</assistant>")
    same(Chat.answer([user("What is 58 + 67?")], thinking=True),
         "58 + 67. 8 + 7 = 15, 5 + 6 + 1 = 12, 0 + 0 + 1 = 1. So 125.</think>58 + 67 = 125.</assistant>")


def test_it_remembers_and_reads_the_system_text():
    told = [user("My name is Zoltan."), {"role": "assistant", "content": "Nice to meet you, Zoltan!"}]
    same(Chat.answer(told + [user("What is my name?")]), "Your name is Zoltan.</assistant>")
    same(Chat.answer([user("When does the shop open?")], system="You help in a shop. The shop opens at 9."),
         "The shop opens at 9.</assistant>")


def test_it_calls_an_offered_tool_and_uses_the_result():
    q = user("What is the weather in Paris?")
    same(Chat.answer([q], [WEATHER]), CALL)
    same(Chat.answer([q], [WEATHER], thinking=True).split("</think>")[1], CALL)
    same(Chat.answer([q, called("Paris"), {"role": "tool", "content": RESULT}], [WEATHER]),
         "It is 18 degrees and cloudy in Paris.</assistant>")
    same(Chat.answer([user("How is the weather in Paris and Rome?")], [WEATHER]),
         CALL.replace("</assistant>", "") + CALL.replace("Paris", "Rome"))


def test_a_tool_on_offer_need_not_be_called():
    same(Chat.answer([user("What is the capital of Spain?")], [WEATHER]), "The capital of Spain is Madrid.</assistant>")


if __name__ == "__main__":
    tap.main([f for name, f in list(globals().items()) if name.startswith("test_")])
