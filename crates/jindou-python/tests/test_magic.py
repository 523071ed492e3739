"""The notebook magic in a real IPython shell; hostile data stays text."""

import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("IPython")

from IPython.core.error import UsageError  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402

import jindou  # noqa: E402
from conftest import EX, iri  # noqa: E402
from jindou import IRI, Literal  # noqa: E402

EVIL = '<script>alert(1)</script><img src=x onerror="alert(1)">"\'&</td></table>'


@pytest.fixture
def shell():
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "jindou")
    shell.user_ns["db"] = jindou.memory()
    return shell


class Elements(HTMLParser):
    """Elements and attributes of a document, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


def harmless(html):
    """Only elements that make tables and drawings, and no link that is not one to a page."""
    seen = Elements(html)
    known = "table thead tbody tr th td a small span p svg line polygon text title circle pre".split()
    assert set(seen.tags) <= set(known), set(seen.tags) - set(known)
    for name, value in seen.attributes:
        assert not name.startswith("on") and name not in ("src", "xlink:href")
        if name == "href":
            assert value.startswith(("http://", "https://"))
    assert "url(" not in html
    return seen


def test_tables(shell):
    db = shell.user_ns["db"]
    db.add_all((iri(f"v{i}"), iri("p"), i) for i in range(150))
    shown = shell.run_cell_magic("sparql", "", f"SELECT ?v ?n {{ ?v <{EX}p> ?n }} ORDER BY ?n").data
    seen = harmless(shown)
    assert seen.tags.count("tr") == 101 and "the first 100 rows" in shown and EX + "v7" in seen.text
    shown = shell.run_cell_magic("sparql", "db --rows 5 --out answer --timeout 10", f"SELECT ?v {{ ?v <{EX}p> 3 }}").data
    assert "1 row<" in shown and len(shell.user_ns["answer"]) == 1
    assert db.query(f"SELECT ?v {{ ?v <{EX}p> 3 }}")._repr_html_().count("<tr>") == 2
    assert shell.run_cell_magic("sparql", "", "ASK { ?s ?p 5 }") is True


def test_forms(shell, capsys):
    pytest.importorskip("pandas")
    db = shell.user_ns["db"]
    report = shell.run_cell_magic("sparql", "", "INSERT DATA { <a:a> <a:p> 1, 2 }")
    assert report.added == 2
    frame = shell.run_cell_magic("sparql", "--as pandas", "SELECT ?o { ?s ?p ?o } ORDER BY ?o")
    assert frame["o"].tolist() == [1, 2]
    shell.run_cell_magic("sparql", "--explain", "SELECT * { ?s ?p ?o }")
    shell.run_cell_magic("sparql", "--profile", "SELECT * { ?s ?p ?o }")
    assert "explore" in capsys.readouterr().out
    shell.user_ns["two"] = 2
    shown = shell.run_cell_magic("sparql", "--bind o=two", "SELECT ?s { ?s ?p ?o }").data
    assert "1 row<" in shown
    assert len(db) == 2


def test_which_database(shell):
    del shell.user_ns["db"]
    with pytest.raises(UsageError):
        shell.run_cell_magic("sparql", "", "ASK {}")
    shell.user_ns["store"] = jindou.memory()
    assert shell.run_cell_magic("sparql", "", "ASK {}") is True
    shell.user_ns["other"] = jindou.memory()
    with pytest.raises(UsageError):
        shell.run_cell_magic("sparql", "", "ASK {}")
    assert shell.run_cell_magic("sparql", "other", "ASK {}") is True
    for bad in ("nobody", "--bind x=nobody other"):
        with pytest.raises(UsageError):
            shell.run_cell_magic("sparql", bad, "SELECT ?x {}")


def test_errors_show_the_place(shell, capsys):
    result = shell.run_cell("%%sparql\nSELECT ?x WHERE { ?x foaff:name ?y }")
    assert isinstance(result.error_in_exec, jindou.errors.SparqlSyntaxError)
    out = capsys.readouterr().out
    assert "foaff" in out and "^" in out and "magic.py" not in out


def test_hostile_data_stays_text(shell):
    db = shell.user_ns["db"]
    db.add((iri("a"), iri("p"), EVIL))
    db.add((iri("a"), iri("p"), Literal(EVIL, datatype=IRI("http://e/%22onclick=%22x"))))
    db.add((iri("a"), iri("p"), IRI("javascript:alert(1)")))
    db.add((IRI("http://e/'onclick='alert(1)"), iri("p"), IRI("data:text/html,x")))
    shown = shell.run_cell_magic("sparql", "", "SELECT ?s ?o { ?s ?p ?o }").data
    seen = harmless(shown)
    assert EVIL in "".join(seen.text)
    shown = shell.run_cell_magic("sparql", "", "CONSTRUCT WHERE { ?s ?p ?o }").data
    seen = harmless(shown)
    assert EVIL in "".join(seen.text) and "svg" in seen.tags
    # Names of variables can be odd, too, and long texts are cut.
    db.add((iri("b"), iri("long"), "x" * 100_000))
    assert len(shell.run_cell_magic("sparql", "", "SELECT ?ünï { ?s ?p ?ünï }").data) < 10_000


def test_drawings(shell):
    db = shell.user_ns["db"]
    db.add_all((iri(f"n{i}"), iri("next"), iri(f"n{(i + 1) % 12}")) for i in range(12))
    shown = shell.run_cell_magic("sparql", "", "CONSTRUCT WHERE { ?s ?p ?o }").data
    seen = harmless(shown)
    assert seen.tags.count("circle") == 12 and seen.tags.count("line") == 12
    # All nodes are inside of the picture, and apart from each other.
    places = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', shown)]
    assert all(0 <= x <= 720 and 0 <= y <= 480 for x, y in places)
    assert min(abs(a[0] - b[0]) + abs(a[1] - b[1]) for i, a in enumerate(places) for b in places[:i]) > 10
    # Too many nodes for a picture, so there is only a table. Then one node, and none.
    db.add_all((iri(f"n{i}"), iri("next"), iri(f"m{i}")) for i in range(100))
    shown = shell.run_cell_magic("sparql", "", "CONSTRUCT WHERE { ?s ?p ?o }").data
    assert "<svg" not in shown and "the first 100 of 112 triples" in shown
    assert "<circle" in shell.run_cell_magic("sparql", "", "CONSTRUCT { ?s ?p ?s } WHERE { ?s ?p ?o } LIMIT 1").data
    assert "0 triples" in shell.run_cell_magic("sparql", "", "CONSTRUCT WHERE { ?s <a:a> ?o }").data
