"""What an editor shows: stubs that are what is there, and docstrings everywhere."""

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import jindou

PACKAGE = Path(jindou.__file__).parent


@pytest.mark.slow
def test_the_stubs_are_what_is_there(tmp_path):
    pytest.importorskip("mypy")
    # Aliases are the stubs' own; the two methods are slots of the types, and no attributes.
    names = "Answer|Binding|FrameLike|Path|ProgressLike|QuadLike|Syntax|Term|TermLike|Row.__getattr__|Triples.__iter__"
    allowed = tmp_path / "allowed"
    allowed.write_text("".join(rf"jindou\._jindou\.{name}" + "\n" for name in names.split("|")))
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "jindou", "--ignore-missing-stub", "--ignore-disjoint-bases", "--allowlist", str(allowed)],
        capture_output=True, text=True, cwd=tmp_path, env={"PYTHONPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_program_checks(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(
        "import jindou, typing as t\n"
        "db: jindou.Database = jindou.open('x', read_only=True)\n"
        "added: int = db.add((jindou.IRI('a:a'), jindou.IRI('a:a'), 1)).added\n"
        "text: str = jindou.Literal(1).value\n"
        "data: bytes = db.serialize('ASK {}')\n"
        "rows: int = db.serialize('ASK {}', to='file')\n"
        "wrong: int = jindou.Literal(1).value\n"
        "answer: t.Union[jindou.Solutions, jindou.Triples, bool] = db.query('ASK {}', {'x': [1, 2], 'y': jindou.IRI('a:a')})\n"
        "names: list[object] = [row['x'] for row in db.select('SELECT ?x {}')]\n"
        "yes: bool = db.ask('ASK {}')\n"
        "graph: bytes = db.construct('DESCRIBE <a:a>').serialize()\n"
        "added = db.add_frame(None, {'x': jindou.IRI('a:a')}, subject='y').added\n"
        "if jindou.check('x'): print(jindou.restore('x', 'y', at='2026-01-01T00:00:00Z').quads, db.backup('z').time.year)\n"
        "async def ask() -> bool:\n"
        "    found = await db.query_async('ASK {}')\n"
        "    return found if isinstance(found, bool) else found[0] is None\n"
        "wrong = db.query('ASK {}')[0]\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(program)],
        capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    # Line 7, and the last one, where the answer may be a `bool` (and the variable is an `int`).
    places = {line.split(":")[1] for line in errors}
    assert places == {"7", "17"}, done.stdout


def test_everything_is_described():
    for name in jindou.__all__:
        item = getattr(jindou, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(item), name
        if inspect.isclass(item):
            for member, value in vars(item).items():
                if not member.startswith("_") and member not in ("subject", "predicate", "object", "graph_name", "kind"):
                    assert inspect.getdoc(value), f"{name}.{member}"


def test_signatures_name_their_keywords():
    for call in (jindou.load, jindou.Database.load, jindou.Database.query, jindou.Database.update, jindou.Transaction.load):
        names = inspect.signature(call).parameters
        assert "cancel" in names and "keywords" not in names, call
    # Each keyword that a signature names is taken.
    db = jindou.memory()
    for name in ("query", "select", "ask", "construct", "query_async", "explain", "why_empty", "profile", "serialize", "update", "load", "transaction"):
        given = inspect.signature(getattr(db, name)).parameters.values()
        keywords = {p.name: p.default for p in given if p.kind is p.KEYWORD_ONLY}
        text = {"update": ["INSERT DATA { <a:a> <a:a> 1 }"], "load": [], "transaction": []}.get(name, ["ASK {}"])
        if name == "load":
            keywords.update(text="<a:a> <a:a> 1 .", format="turtle")
        if name in ("select", "construct"):
            text = ["SELECT * {}" if name == "select" else "CONSTRUCT WHERE {}"]
        done = getattr(db, name)(*text, **keywords)
        if name == "transaction":
            done.rollback()
        elif name == "query_async":
            assert asyncio.run(done) is True
