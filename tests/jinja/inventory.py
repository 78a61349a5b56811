"""Which constructs a chat template uses, by jinja2's own parser: statements and their forms, filters, tests, methods, operators."""
from jinja2 import nodes

from oracle import environment

PLAIN = (nodes.Output, nodes.Template, nodes.TemplateData, nodes.Name, nodes.Keyword, nodes.Pair, nodes.NSRef, nodes.Getattr, nodes.Call)
FUNCTIONS = ("namespace", "raise_exception", "range", "strftime_now", "dict")


def of_call(n):
    if isinstance(n.node, nodes.Getattr):
        return "method", n.node.attr, len(n.args)
    name = getattr(n.node, "name", "")
    return ("call", name, len(n.args), bool(n.kwargs)) if name in FUNCTIONS else ("call of a macro", bool(n.args), bool(n.kwargs))


def of_attribute(n):
    return ("loop", n.attr) if getattr(n.node, "name", "") == "loop" else None


FORMS = {
    nodes.Filter: lambda n: ("filter", n.name, len(n.args), *sorted(k.key for k in n.kwargs)),
    nodes.Test: lambda n: ("test", n.name),
    nodes.Call: of_call,
    nodes.Getattr: of_attribute,
    nodes.Slice: lambda n: ("slice", n.start is not None, n.stop is not None, n.step is not None),
    nodes.For: lambda n: ("for", type(n.target).__name__, n.test is not None, bool(n.else_)),
    nodes.Assign: lambda n: ("set", type(n.target).__name__),
    nodes.AssignBlock: lambda n: ("block set", n.filter is not None),
    nodes.Macro: lambda n: ("macro", bool(n.args), bool(n.defaults)),
    nodes.CondExpr: lambda n: ("inline if", n.expr2 is not None),
    nodes.Operand: lambda n: ("comparison", n.op),
    nodes.Getitem: lambda n: ("subscript", type(n.arg).__name__),
    nodes.Const: lambda n: ("constant", type(n.value).__name__),
}


def constructs(source):
    found = set()
    for n in environment(True).parse(source).find_all(nodes.Node):
        form = FORMS.get(type(n))
        construct = form(n) if form else None if isinstance(n, PLAIN) else (type(n).__name__,)
        found |= {construct} if construct else set()
    return found
