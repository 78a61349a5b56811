"""What a model file says of its text, through `lagen emit`: chat templates that cannot be used, others in their place, and
pre-tokenizers that are missing or unknown. Exit status 1, one line that says why and how to mend it; or a program's sources."""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "oracle"), str(ROOT / "tests" / "fuzz"), str(ROOT / "tests" / "gen")]

import tap  # noqa: E402
from make_corpus import STR, U32, key  # noqa: E402
from test_hostile import tiny  # noqa: E402

LAGEN = ROOT / os.environ.get("LAGEN_BUILD", "build") / "lagen"
TEMPLATE, PRE = "tokenizer.chat_template", "tokenizer.ggml.pre"


def emit(change, *options, template=None):
    """(exit status, stderr, chat.c or None, chat_template.c or None) of one run."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "m.gguf").write_bytes(tiny(change))
        if template is not None:
            (folder / "t.jinja").write_bytes(template)
            options += ("--template", "t.jinja")
        p = subprocess.run([LAGEN, "emit", "--model", "m.gguf", "--arch", "x86-64-v3", "--out", "o", *options], cwd=folder,
                           capture_output=True)
        sources = [(folder / "o" / "src" / n) for n in ("chat.c", "chat_template.c")]
        texts = [s.read_text(encoding="utf-8") if s.exists() else None for s in sources]
        return p.returncode, p.stderr.decode(), *texts


def refusal(got, *says):
    """What is wrong with a refusal: it must name all of `says`, in one line, and leave nothing."""
    status, err, chat, _ = got
    good = status == 1 and err.count("\n") == 1 and chat is None and all(s in err for s in says)
    return "" if good else f"status {status}, {err[:300]!r}, wanted {says}"


def templated(text):
    return {TEMPLATE: key(TEMPLATE, STR, text)}


def unusable_templates():
    yield emit(templated("a\n{% foo %}")), (f"key '{TEMPLATE}'", "line 2, column 4", "foo")
    yield emit(templated("")), (f"key '{TEMPLATE}' is empty", "--template FILE")
    yield emit(templated(" \n\t")), (f"key '{TEMPLATE}' is empty",)
    yield emit({TEMPLATE: key(TEMPLATE, U32, 7)}), (f"key '{TEMPLATE}'", "string")
    yield emit(templated("{{ unk_token")), (f"key '{TEMPLATE}'", "line 1")
    yield emit(templated("x" * (3 << 20))), (f"key '{TEMPLATE}'", "2097152")
    yield emit(templated("{% for i in range(1000000000) %}x{% endfor %}")), ("range of 1000000000 items",)
    yield emit(templated("{{ range(100000000000) }}")), ("range",)
    yield emit(templated("{{ '-' * 10000000000 }}")), ("10000000000",)


def main():
    t = tap.Tap()
    if not LAGEN.exists():
        t.skip("text keys of model files", f"no {LAGEN.name} here")
        return t.done()
    wrong = [w for w in (refusal(got, *says) for got, says in unusable_templates()) if w]
    t.check("D02 templates that cannot be used", not wrong, "\n".join(wrong))
    big = "{{ unk_token }}" + "x" * (1 << 20)
    status, err, chat, _ = emit(templated(big))
    t.check("D02 a template of 1 MiB", status == 0 and len(chat) > 1 << 20, err)
    status, err, chat, about = emit(templated("{% foo %}"), template=b"{{ '<arg_key>' }}{{ messages }}")
    t.check("D02 another template", status == 0 and "v_messages" in chat and '"laguna"' in about, err)
    status, err, chat, about = emit({}, template=b"{{ bos_token }}")
    t.check("D02 a template where the file has none", status == 0 and '"bos_token"' in chat, err)
    wrong = [refusal(emit(templated("ok"), template=b"{% foo %}"), "--template t.jinja", "line 1, column 4", "foo"),
             refusal(emit(templated("ok"), template=b""), "--template t.jinja is empty"),
             refusal(emit(templated("ok"), "--template", "nosuch.jinja"), "nosuch.jinja"),
             refusal(emit(templated("ok"), template=b"\xff"), "--template t.jinja", "byte 0")]
    t.check("D02 another template that cannot be used", not any(wrong), "\n".join(wrong))
    wrong = [refusal(emit({PRE: None}), f"key '{PRE}' is missing", "--pre NAME"),
             refusal(emit({PRE: key(PRE, STR, "default")}), "--pre default"),
             refusal(emit({PRE: key(PRE, STR, "nosuch")}), "'nosuch'", "--pre NAME"),
             refusal(emit({PRE: key(PRE, STR, "")}), "''", "--pre NAME"),
             refusal(emit({PRE: key(PRE, U32, 1)}), f"key '{PRE}'")]
    t.check("C07 no pre-tokenizer by guess", not any(wrong), "\n".join(wrong))
    wrong = [err for status, err, _, _ in (emit({PRE: None}, "--pre", "gpt-2"), emit({PRE: key(PRE, STR, "x")}, "--pre", "qwen2"))
             if status != 0]
    t.check("C07 --pre says which", not wrong, "\n".join(wrong))
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
