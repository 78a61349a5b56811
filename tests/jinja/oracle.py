"""oracle.py -- what jinja2 makes of a chat template with Hugging Face's settings.

The settings are those of transformers' apply_chat_template: the immutable sandbox, trim_blocks, lstrip_blocks, loop
controls, a generation tag, json.dumps for tojson, raise_exception, strftime_now. `relaxed` is the same without what only
that environment forbids and real templates use: list.append and list.pop, and a from_json filter.
"""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2026, 7, 26, 9, 5, 3)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(line)

    def _support(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment(relaxed=False):
    kind = jinja2.sandbox.SandboxedEnvironment if relaxed else jinja2.sandbox.ImmutableSandboxedEnvironment
    env = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: NOW.strftime(form)
    if relaxed:
        env.filters["from_json"] = json.loads
    return env


class Oracle:
    """One template in both environments. `broken` says why jinja2 refuses to compile it, or is None."""

    def __init__(self, source):
        self.broken = None
        self.templates = []
        for relaxed in (False, True):
            try:
                self.templates.append(environment(relaxed).from_string(source))
            except jinja2.exceptions.TemplateError as e:
                self.broken = self.broken or f"line {getattr(e, 'lineno', '?')}: {e}"

    def render(self, variables):
        """("text", text), or ("error", message). Falls back on the relaxed environment where only that forbids."""
        result = ("error", self.broken)
        for template in self.templates:
            try:
                return ("text", template.render(**json.loads(json.dumps(variables))))
            except jinja2.exceptions.SecurityError as e:
                result = ("error", str(e))
            except Exception as e:  # whatever Python raises inside a template is a failed rendering
                result = ("error", f"{type(e).__name__}: {e}")
                if "from_json" not in str(e):
                    return result
        return result
