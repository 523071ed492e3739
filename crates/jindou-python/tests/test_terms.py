"""Terms: equality, hashes, pickles, values."""

import copy
import datetime as dt
import pickle
from decimal import Decimal

import pytest

import jindou
from jindou import BlankNode, IRI, Literal, Quad, Triple

XSD = "http://www.w3.org/2001/XMLSchema#"
A, P, B = IRI("http://e/a"), IRI("http://e/p"), BlankNode("b")
ALL = [
    A,
    B,
    Literal("text"),
    Literal("Mars", language="en"),
    Literal("Mars", language="ar--rtl"),
    Literal("1", datatype=IRI(XSD + "byte")),
    Literal('a "quote" \\ and\nline ü 🚀'),
    Triple(A, P, Literal(1)),
    Triple(A, P, Triple(A, P, B)),
    Quad(A, P, B, IRI("http://e/g")),
    Quad(A, P, B),
]


@pytest.mark.parametrize("term", ALL, ids=repr)
def test_terms_are_values(term):
    for again in (pickle.loads(pickle.dumps(term)), copy.copy(term), copy.deepcopy(term), eval(repr(term))):
        assert again == term and hash(again) == hash(term) and type(again) is type(term)
        assert {term: 1}[again] == 1
    assert [t for t in ALL if t == term] == [term]
    with pytest.raises(AttributeError):
        term.value = "other"


def test_n3_is_what_pyoxigraph_reads(db):
    pyoxigraph = pytest.importorskip("pyoxigraph")
    for term in (t for t in ALL if not isinstance(t, (Quad, Triple))):
        text = f"<http://e/s> <http://e/p> {term.n3()} ."
        (quad,) = pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_TRIPLES)
        assert quad.object.value == term.value
        assert str(quad.object) == term.n3()


@pytest.mark.parametrize(
    "value, lexical, datatype",
    [
        (1, "1", "integer"),
        (-(10**30), "-1" + "0" * 30, "integer"),
        (True, "true", "boolean"),
        (1.5, "1.5", "double"),
        (float("inf"), "INF", "double"),
        (Decimal("1.50"), "1.50", "decimal"),
        (Decimal("1E+3"), "1000", "decimal"),
        (dt.date(2020, 2, 29), "2020-02-29", "date"),
        (dt.datetime(2020, 2, 29, 12, 0, 0, 500000, dt.timezone.utc), "2020-02-29T12:00:00.500000+00:00", "dateTime"),
        (dt.datetime(2020, 2, 29, 12), "2020-02-29T12:00:00", "dateTime"),
        (dt.time(1, 2, 3), "01:02:03", "time"),
        (dt.timedelta(days=1, seconds=2, microseconds=500000), "P1DT2.5S", "dayTimeDuration"),
        (-dt.timedelta(seconds=1), "-P0DT1S", "dayTimeDuration"),
        (b"\x00\xff", "AP8=", "base64Binary"),
        ("text", "text", "string"),
    ],
)
def test_values_of_python_there_and_back(value, lexical, datatype):
    literal = Literal(value)
    assert (literal.value, literal.datatype.value) == (lexical, XSD + datatype)
    back = literal.to_python()
    assert back == value and type(back) is type(value)


@pytest.mark.parametrize(
    "lexical, datatype",
    [
        ("abc", "integer"),
        ("1_000", "integer"),
        ("١", "integer"),
        ("9" * 5000, "integer"),
        ("2020-02-30", "date"),
        ("2020-02-29Z", "date"),
        ("-0044-03-15", "date"),
        ("2020-01-01T24:00:00", "dateTime"),
        ("2020-01-01T00:00:00.1234567Z", "dateTime"),
        ("yes", "boolean"),
        ("1,5", "decimal"),
        ("infinity", "double"),
        ("P", "dayTimeDuration"),
        ("P1Y", "duration"),
        ("===", "base64Binary"),
    ],
)
def test_what_python_has_no_value_for_stays_text(lexical, datatype):
    assert Literal(lexical, datatype=IRI(XSD + datatype)).to_python() == lexical


def test_what_is_no_term_is_refused():
    for bad in ("no iri", "http://e/ a", "<http://e/>", ""):
        with pytest.raises(ValueError) as e:
            IRI(bad)
        assert isinstance(e.value, jindou.Error) and e.value.kind == "term"
    with pytest.raises(ValueError):
        BlankNode("with space")
    with pytest.raises(ValueError):
        Literal("x", language="not a language")
    with pytest.raises(ValueError):
        Literal("x", language="en", datatype=IRI(XSD + "string"))
    with pytest.raises(TypeError):
        Literal(object())
    with pytest.raises(TypeError):
        Triple(Literal(1), P, B)
    with pytest.raises(TypeError):
        Quad(A, B, B)


def test_parts_and_unpacking():
    s, p, o = Triple(A, P, B)
    assert (s, p, o) == (A, P, B) and Triple(A, P, B)[-1] == B
    *spo, g = Quad(A, P, B, A)
    assert g == A and Quad(A, P, B, A).triple == Triple(*spo)
    with pytest.raises(IndexError):
        Triple(A, P, B)[3]
    assert BlankNode() != BlankNode()


def test_terms_of_other_libraries():
    rdflib = pytest.importorskip("rdflib")
    pyoxigraph = pytest.importorskip("pyoxigraph")
    db = jindou.memory()
    others = [
        (rdflib.URIRef("http://e/a"), A),
        (rdflib.Literal("x", lang="en"), Literal("x", language="en")),
        (rdflib.Literal(5), Literal(5)),
        (rdflib.BNode("b"), B),
        (pyoxigraph.NamedNode("http://e/a"), A),
        (pyoxigraph.Literal("x", language="en"), Literal("x", language="en")),
        (pyoxigraph.Literal(5), Literal(5)),
        (pyoxigraph.BlankNode("b"), B),
        (5, Literal(5)),
        ("http://e/a", Literal("http://e/a")),
    ]
    for i, (other, ours) in enumerate(others):
        subject = IRI(f"http://e/s{i}")
        db.add((subject, P, other))
        assert [q.object for q in db.quads(subject)] == [ours]


def test_numbers_and_texts_of_literals():
    assert float(Literal(2)) == 2.0 and int(Literal("07", datatype=IRI(XSD + "byte"))) == 7
    assert float(Literal(Decimal("1.5"))) == 1.5 and int(Literal(2.7)) == 2
    for no_number in (Literal("7"), Literal("x", datatype=IRI(XSD + "integer")), Literal("Mars", language="en")):
        for of in (float, int):
            with pytest.raises(ValueError, match="is not a number"):
                of(no_number)
    # Equal terms are the same term, so that they can be keys of a dict.
    assert Literal("Mars") != "Mars" and Literal("Mars").value == "Mars"
