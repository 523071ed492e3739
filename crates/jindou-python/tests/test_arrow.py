"""Arrow, pandas, polars: the same values as the rows have, types, nulls, text, big answers, memory."""

import datetime as dt
import decimal
import gc

import pytest

import jindou
from conftest import EX, iri
from jindou import Literal

pa = pytest.importorskip("pyarrow")
XSD = "http://www.w3.org/2001/XMLSchema#"


def column(db, *lexicals, typed=True, syntax="plain", unbound=False):
    """The column of some literals in an order that VALUES gives, or of any terms in SPARQL's syntax."""
    rows = " ".join(f"({i} {text})" for i, text in enumerate(lexicals))
    text = f"PREFIX xsd: <{XSD}> SELECT ?x {{ VALUES (?i ?x) {{ {rows} }} }} ORDER BY ?i"
    table = db.query(text).arrow(typed=typed, syntax=syntax)
    table.validate(full=True)
    return table.column("x")


@pytest.mark.parametrize(
    "values, kind, expected",
    [
        (["1", "-2", '"3"^^xsd:byte', "1"], pa.int64(), [1, -2, 3, 1]),
        (["9223372036854775807", "UNDEF"], pa.int64(), [2**63 - 1, None]),
        (["1", "2.5", "1e3", '"1.5"^^xsd:float'], pa.float64(), [1.0, 2.5, 1000.0, 1.5]),
        (['"INF"^^xsd:double', "1.0"], pa.float64(), [float("inf"), 1.0]),
        (["true", "false", "UNDEF", '"1"^^xsd:boolean'], pa.bool_(), [True, False, None, True]),
        (['"2020-02-29"^^xsd:date', '"-0001-01-01"^^xsd:date'], pa.date32(), None),
        (['"2020-02-29"^^xsd:date', '"1969-12-31"^^xsd:date'], pa.date32(), [dt.date(2020, 2, 29), dt.date(1969, 12, 31)]),
        (
            ['"2020-02-29T12:00:00.5Z"^^xsd:dateTime', '"2020-02-29T12:00:00+02:00"^^xsd:dateTime'],
            pa.timestamp("us", "UTC"),
            [dt.datetime(2020, 2, 29, 12, 0, 0, 500000, dt.timezone.utc), dt.datetime(2020, 2, 29, 10, tzinfo=dt.timezone.utc)],
        ),
        (['"1969-12-31T23:59:59.999999"^^xsd:dateTime'], pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]),
    ],
)
def test_typed_columns(db, values, kind, expected):
    found = column(db, *values)
    assert found.type == kind
    if expected is not None:
        assert found.to_pylist() == expected


@pytest.mark.parametrize(
    "values, expected",
    [
        (["1", '"text"'], ["1", "text"]),
        (["9223372036854775808"], ["9223372036854775808"]),
        (["9007199254740993", "1.5"], ["9007199254740993", "1.5"]),
        (['"abc"^^xsd:integer', "1"], ["abc", "1"]),
        (['"2020-02-29Z"^^xsd:date'], ["2020-02-29Z"]),
        (['"2020-02-29T12:00:00Z"^^xsd:dateTime', '"2020-02-29T12:00:00"^^xsd:dateTime'], ["2020-02-29T12:00:00Z", "2020-02-29T12:00:00"]),
        (['"2020-02-29T12:00:00.1234567Z"^^xsd:dateTime'], ["2020-02-29T12:00:00.1234567Z"]),
        (["UNDEF", "UNDEF"], [None, None]),
        (["<http://e/a>", '"a"@en', '"a"@de', '"a"', "UNDEF", '"a"^^<d:d>'], ["http://e/a", "a", "a", "a", None, "a"]),
        (['""', '"ünï 🚀 \\n\\t"'], ["", "ünï 🚀 \n\t"]),
    ],
)
def test_text_columns(db, values, expected):
    found = column(db, *values)
    assert found.type == pa.dictionary(pa.int32(), pa.string())
    assert found.to_pylist() == expected
    # pandas needs each category exactly once.
    dictionary = found.chunk(0).dictionary.to_pylist()
    assert len(dictionary) == len(set(dictionary))
    pytest.importorskip("pandas")
    assert [None if v != v else v for v in found.to_pandas()] == expected


def test_ntriples_keeps_everything(db):
    values = ["<http://e/a>", '"a"@en', "1", '"quote \\" \\n"', "UNDEF"]
    found = column(db, *values, syntax="ntriples")
    assert found.to_pylist() == ["<http://e/a>", '"a"@en', f'"1"^^<{XSD}integer>', '"quote \\" \\n"', None]
    assert column(db, "1", typed=False).to_pylist() == ["1"]
    with pytest.raises(ValueError):
        column(db, "1", syntax="parchment")


def test_shapes(db):
    none = db.query("SELECT ?a ?b { ?a <a:a> ?b }").arrow()
    assert none.num_rows == 0 and none.column_names == ["a", "b"]
    assert db.query("SELECT * { }").arrow().num_rows == 1
    db.update("INSERT DATA { <a:a> <a:a> 1, 2 }")
    triples = db.query("CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }")
    table = triples.arrow()
    assert table.column_names == ["subject", "predicate", "object"]
    assert sorted(table.column("object").to_pylist()) == [1, 2]
    assert pa.table(triples).equals(table)
    answer = db.query("SELECT ?s ?o { ?s ?p ?o }")
    # Any library that supports the interface can read the answer, several times.
    assert pa.table(answer).equals(pa.table(answer)) and pa.table(answer).equals(answer.arrow())
    reader = pa.RecordBatchReader.from_stream(answer)
    assert sum(batch.num_rows for batch in reader) == 2
    with pytest.raises(TypeError):
        answer.arrow(True)


def test_the_same_as_the_rows(turtle, db):
    db.load(text=turtle, format="turtle")
    answer = db.query("SELECT ?s ?p ?o ?n { ?s ?p ?o OPTIONAL { ?o a ?n } }")
    rows = list(answer)
    table = answer.arrow(syntax="ntriples")
    for i, name in enumerate(answer.variables):
        assert table.column(name).to_pylist() == [None if r[i] is None else r[i].n3() for r in rows]
    plain = answer.arrow(typed=False)
    for i, name in enumerate(answer.variables):
        assert plain.column(name).to_pylist() == [
            None if r[i] is None else str(r[i]) for r in rows
        ]


def test_pandas_and_polars(db):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    db.add_all((iri(f"v{i}"), iri("p"), i) for i in range(1000))
    answer = db.query(f"SELECT ?v ?n {{ ?v <{EX}p> ?n }} ORDER BY ?n")
    frame = answer.pandas()
    assert frame["n"].sum() == 499_500 and frame["n"].dtype == "int64"
    assert isinstance(frame["v"].dtype, pandas.CategoricalDtype) and frame["v"][5] == EX + "v5"
    other = answer.polars()
    assert other["n"].sum() == 499_500 and other["v"].dtype == polars.Categorical
    assert other.filter(polars.col("v") == EX + "v7")["n"].to_list() == [7]
    assert list(answer.polars(typed=False)["n"].cast(polars.String)[:3]) == ["0", "1", "2"]
    # The names of these methods in DuckDB.
    assert answer.df().equals(frame) and answer.pl().equals(other)
    graph = db.query(f"CONSTRUCT WHERE {{ ?s <{EX}p> ?o }} LIMIT 3")
    assert graph.df().equals(graph.pandas()) and graph.pl().equals(graph.polars())


def test_rows_as_tuples(db):
    rows = db.query("SELECT * { VALUES (?a ?b ?c) { (1 'x' UNDEF) (2.5 <http://e/i> true) } } ORDER BY ?a").fetchall()
    assert rows[0] == (1, "x", None)
    assert rows[1][0] == decimal.Decimal("2.5") and rows[1][2] is True and len(rows) == 2
    assert db.query("SELECT * { FILTER(false) }").fetchall() == []


def test_a_million_rows(db):
    db.add_all((iri(f"v{i}"), iri("p"), i) for i in range(1000))
    answer = db.query(f"SELECT ?a ?x ?b {{ ?a <{EX}p> ?x . ?b <{EX}p> ?y }}")
    table = answer.arrow()
    assert table.num_rows == len(answer) == 1_000_000
    a = table.column("a")
    # A thousand distinct terms, each of which is stored once.
    assert len(a.chunk(0).dictionary) == 1000 and a.combine_chunks().nbytes < 5_000_000
    import pyarrow.compute as pc

    assert pc.sum(table.column("x")).as_py() == 499_500 * 1000
    counts = pc.value_counts(table.column("b").chunk(0).dictionary_decode()).field("counts")
    assert set(counts.to_pylist()) == {1000}


def test_arrays_outlive_the_answer(db):
    db.add_all((iri(f"v{i}"), iri("p"), i) for i in range(1000))
    table = db.query("SELECT ?s ?o { ?s ?p ?o }").arrow()
    db.close()
    del db
    gc.collect()
    assert sorted(table.column("o").to_pylist()) == list(range(1000))
    assert len(set(table.column("s").to_pylist())) == 1000


def test_streams_that_nobody_reads_are_freed(db):
    import resource

    db.add_all((iri(f"v{i}"), iri("p"), i) for i in range(300))
    answer = db.query(f"SELECT ?a ?b {{ ?a <{EX}p> ?x . ?b <{EX}p> ?y }}")
    answer.arrow()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(70):
        answer.__arrow_c_stream__()
        pa.table(answer)
    # 70 times 720 kB, twice, would be 100 MB.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000


def test_without_the_libraries():
    """What is missing is named, with the remedy."""
    import subprocess
    import sys

    code = """
import sys
for name in ("pyarrow", "pandas", "polars"): sys.modules[name] = None
import jindou
answer = jindou.memory().query("SELECT * {}")
for method, extra in ((answer.arrow, "arrow"), (answer.pandas, "pandas"), (answer.polars, "polars")):
    try: method()
    except ImportError as e: assert f"jindou[{extra}]" in str(e), e
    else: raise AssertionError(extra)
assert "arrow_array_stream" in repr(answer.__arrow_c_stream__())
"""
    subprocess.run([sys.executable, "-c", code], check=True)
