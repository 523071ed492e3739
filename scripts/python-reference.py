#!/usr/bin/env python3
"""Writes docs/python-reference.md, which git ignores, from the signatures and docstrings of the Python package.

Usage: scripts/python-reference.py [--check]   (--check writes nothing and fails if the page could not be written)

Only the sources are read, with Python's own parser: the package need not be built. A public name without a section, or without a docstring,
is an error.
"""
import ast
import importlib.util
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "crates/jindou-python/python/jindou"
PAGE = ROOT / "docs/python-reference.md"

HEAD = """\
<!-- Written by scripts/python-reference.py from the package's docstrings: change those. -->

# Python reference

Every function, class and method of the package `jindou`. [Python](python.md) shows how they are used together. In an
editor or a notebook, `help(jindou.Database.query)` shows the same texts.
"""

# The sections of the page, in order, with the names of the package that each describes.
SECTIONS = [
    ("Opening and loading", ["open", "load", "memory"]),
    ("Backups", ["backups", "restore", "check"]),
    ("Databases", ["Database", "Prefixes", "Transaction", "CancelToken"]),
    ("Answers", ["Solutions", "Row", "Rows", "Triples", "Quads"]),
    ("Terms", ["IRI", "BlankNode", "Literal", "Triple", "Quad"]),
    ("Reports", ["LoadReport", "UpdateReport", "Profile", "Progress", "BackupInfo", "BackupReport", "RestoreReport", "CheckReport"]),
]
NOT_DESCRIBED = {"__version__", "Error"}

# What a class can do because it has these methods.
ABILITIES = {
    "__len__": "`len()`",
    "__iter__": "iteration",
    "__getitem__": "indexing",
    "__contains__": "`in`",
    "__enter__": "`with`",
    "__hash__": "hashing",
    "__eq__": "`==`",
    "__float__": "`float()`",
    "__int__": "`int()`",
    "__arrow_c_stream__": "the Arrow C stream interface",
    "_repr_html_": "display in notebooks",
}


class Source:
    """A file of the package: its text and its definitions."""

    def __init__(self, name):
        self.text = (PACKAGE / name).read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)
        self.lines = self.text.encode().split(b"\n")

    def code(self, node):
        """The text of an expression, on one line. (`ast.unparse` differs between versions of Python.)"""
        lines = self.lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        return b" ".join(line.strip() for line in lines).decode()

    def definitions(self):
        return {n.name: n for n in self.tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}


def described(node, name):
    text = ast.get_docstring(node)
    if not text:
        sys.exit(f"{name} has no docstring")
    return text


def prose(text):
    """A docstring as Markdown: its paragraphs, without line ends within them."""
    return "\n\n".join(re.sub(r"\s+", " ", p).strip() for p in re.split(r"\n\s*\n", text))


def sentence(text):
    """A docstring as one cell of a table."""
    return prose(text).replace("\n\n", " ").replace("|", "\\|")


def parameters(source, arguments):
    """The parameters of a function as they are written, without `self` and `cls`."""
    positional = arguments.posonlyargs + arguments.args
    values = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults
    out = []

    def one(argument, value, stars=""):
        text = stars + argument.arg
        if argument.annotation:
            text += ": " + source.code(argument.annotation)
        if value is not None:
            text += (" = " if argument.annotation else "=") + source.code(value)
        out.append(text)

    for n, (argument, value) in enumerate(zip(positional, values)):
        if not (n == 0 and argument.arg in ("self", "cls")):
            one(argument, value)
    if arguments.vararg:
        one(arguments.vararg, None, "*")
    elif arguments.kwonlyargs:
        out.append("*")
    for argument, value in zip(arguments.kwonlyargs, arguments.kw_defaults):
        one(argument, value)
    if arguments.kwarg:
        one(arguments.kwarg, None, "**")
    return out


def signature(source, node, name, gives=True):
    """A call as Python: on one line, or with a line for each parameter if it would be long."""
    parts = parameters(source, node.args)
    end = f" -> {source.code(node.returns)}" if gives and node.returns else ""
    line = f"{name}({', '.join(parts)}){end}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {p},\n" for p in parts) + f"){end}"
    return line


def has(node, decorator):
    return any(isinstance(d, ast.Name) and d.id == decorator for d in node.decorator_list)


def code(*lines):
    return ["```python", *lines, "```", ""]


def function(source, node, name, title):
    return [f"### {title}", "", *code(signature(source, node, name)), prose(described(node, title)), ""]


def class_(source, node, name):
    out = [f"### {name}", ""]
    methods, attributes, abilities, overloads = [], [], [], {}
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_"):
            attributes.append((item.target.id, source.code(item.annotation), ""))
        if not isinstance(item, ast.FunctionDef):
            continue
        if item.name == "__new__":
            out += code(signature(source, item, f"jindou.{name}", gives=False))
        if item.name in ABILITIES:
            abilities.append(ABILITIES[item.name])
        elif has(item, "property"):
            attributes.append((item.name, source.code(item.returns), sentence(ast.get_docstring(item) or "")))
        elif not item.name.startswith("_"):
            overloads.setdefault(item.name, []).append(item)
            if item.name not in methods:
                methods.append(item.name)
    out += [prose(described(node, name)), ""]
    if abilities:
        out += [f"Supports {', '.join(dict.fromkeys(abilities))}.", ""]
    if attributes:
        meant = any(text for _, _, text in attributes)
        out += ["| attribute | type | meaning |", "|---|---|---|"] if meant else ["| attribute | type |", "|---|---|"]
        for attribute, kind, text in attributes:
            kind = kind.replace("|", "\\|")
            out.append(f"| `{attribute}` | `{kind}` | {text} |" if meant else f"| `{attribute}` | `{kind}` |")
        out.append("")
    for method in methods:
        forms = overloads[method]
        title = f"{name}.{method}"
        text = next((t for t in map(ast.get_docstring, forms) if t), None) or sys.exit(f"{title} has no docstring")
        out += [f"#### {title}", "", *code(*(signature(source, f, method) for f in forms)), prose(text), ""]
    return out


def errors(source):
    """A table of the classes of errors."""
    out = [
        "## Errors",
        "",
        "The classes of `jindou.errors`. `Error` is their base; each has `message` and `kind`.",
        "",
        "| class | bases | `kind` | meaning |",
        "|---|---|---|---|",
    ]
    for name, node in source.definitions().items():
        if not isinstance(node, ast.ClassDef) or not node.bases:
            continue
        bases = ", ".join(f"`{source.code(b)}`" for b in node.bases)
        kinds = [n.value for n in node.body if isinstance(n, ast.Assign) and n.targets[0].id == "kind"]
        kind = f"`{kinds[0].value}`" if kinds else ""
        out.append(f"| `{name}` | {bases} | {kind} | {sentence(described(node, name))} |")
    out.append("")
    diagnostic = class_(source, source.definitions()["Diagnostic"], "Diagnostic")
    return out + diagnostic


def aliases(source):
    """A table of the names for types that signatures use."""
    out = ["## Names of types", "", "Signatures use these names; they exist for type checkers only.", ""]
    out += ["| name | meaning |", "|---|---|"]
    lines = source.text.split("\n")
    for node in source.tree.body:
        if isinstance(node, ast.AnnAssign) and source.code(node.annotation) == "TypeAlias":
            before = lines[node.lineno - 2].strip()
            note = " " + before[2:].strip() if before.startswith("#:") else ""
            out.append(f"| `{node.target.id}` | `{source.code(node.value)}`{'.' + note if note else ''} |".replace("\\|", "|"))
    return out + [""]


def wrapped(text):
    """Wrapped as scripts/wrap-docs.py wraps all pages."""
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("wrap_docs", ROOT / "scripts/wrap-docs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.wrapped(text)


def public():
    """The names that the package exports."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    return sys.exit("__init__.py has no __all__")


def page():
    sources = [Source("_jindou.pyi"), Source("_progress.py"), Source("_reports.py")]
    known = {name: (s, node) for s in sources for name, node in s.definitions().items()}
    listed = {name for _, names in SECTIONS for name in names}
    for name in sorted(public() - listed - NOT_DESCRIBED):
        sys.exit(f"{name} is exported, and in no section of scripts/python-reference.py")
    for name in sorted(listed - public()):
        sys.exit(f"{name} has a section in scripts/python-reference.py, and is not exported")

    out = [HEAD]
    for title, names in SECTIONS:
        out += [f"## {title}", ""]
        for name in names:
            source, node = known[name]
            if isinstance(node, ast.ClassDef):
                out += class_(source, node, name)
            else:
                out += function(source, node, f"jindou.{name}", f"jindou.{name}")
    out += errors(Source("errors.py")) + aliases(sources[0])
    return wrapped("\n".join(out).rstrip() + "\n")


def main():
    text = page()
    if not sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif sys.argv[1:] != ["--check"]:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
