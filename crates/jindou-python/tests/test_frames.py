"""DataFrames and Arrow tables: as triples, and of answers with missing values."""

import datetime as dt
import decimal

import pytest

import jindou
from conftest import EX, iri
from jindou import IRI, BlankNode, Literal, errors

pa = pytest.importorskip("pyarrow")
XSD = "http://www.w3.org/2001/XMLSchema#"


def objects(db, predicate):
    return {quad.subject.value: quad.object for quad in db.quads(None, iri(predicate))}


def test_rows_as_triples(db):
    table = pa.table({"subject": [EX + "a", "_:b", EX + "a"], "predicate": [EX + "p", EX + "p", EX + "q"], "object": ["x", "y", None]})
    assert db.add_frame(table).added == 2
    assert (iri("a"), iri("p"), Literal("x")) in db and (BlankNode("b"), iri("p"), Literal("y")) in db
    # Names of columns, IRIs as objects, a graph.
    other = pa.table({"from": [EX + "a"], "to": [EX + "c"], "how": [EX + "knows"]})
    db.add_frame(other, subject="from", predicate="how", object="to", iris=["to"], graph_name=iri("g"))
    assert (iri("a"), iri("knows"), iri("c"), iri("g")) in db


def test_every_type_of_column(db):
    when = dt.datetime(2020, 2, 29, 12, 0, 0, 500000)
    columns = {
        "int": ([1, None, -3], pa.int16(), [Literal(1), Literal(-3)]),
        "unsigned": ([2**64 - 1, None, 0], pa.uint64(), [Literal(2**64 - 1), Literal(0)]),
        "float": ([1.5, float("nan"), 1e-7], pa.float64(), [Literal(1.5), Literal(1e-7)]),
        "large": ([1e22, None, float("-inf")], pa.float64(), [Literal(1e22), Literal(float("-inf"))]),
        "bool": ([True, None, False], pa.bool_(), [Literal(True), Literal(False)]),
        "day": ([dt.date(2020, 2, 29), None, dt.date(1, 1, 1)], pa.date32(), [Literal(dt.date(2020, 2, 29)), Literal(dt.date(1, 1, 1))]),
        "time": ([when, None, dt.datetime(1969, 12, 31, 23, 59, 59)], pa.timestamp("us"), [Literal(when), Literal(dt.datetime(1969, 12, 31, 23, 59, 59))]),
        "zoned": (
            [when, None, when.replace(microsecond=0)], pa.timestamp("ns", "Europe/Berlin"),
            [Literal("2020-02-29T12:00:00.500000Z", datatype=XSD + "dateTime"), Literal("2020-02-29T12:00:00Z", datatype=XSD + "dateTime")],
        ),
        "decimal": ([decimal.Decimal("1.50"), None, decimal.Decimal(-2)], pa.decimal128(5, 2), [Literal(decimal.Decimal("1.50")), Literal(decimal.Decimal("-2.00"))]),
        "text": (["ünï", None, ""], pa.large_string(), [Literal("ünï"), Literal("")]),
        "nothing": ([None, None, None], pa.null(), []),
    }
    table = pa.table({"id": [EX + str(i) for i in range(3)], **{name: pa.array(v, t) for name, (v, t, _) in columns.items()}})
    db.add_frame(table, {name: iri(name) for name in columns}, subject="id")
    for name, (_, _, expected) in columns.items():
        found = objects(db, name)
        assert [found[EX + str(i)] for i in (0, 2) if EX + str(i) in found] == expected, name
        assert EX + "1" not in found
    # Dictionary-encoded columns, and a type for which there are no literals.
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    db.add_frame(pa.table({"id": table["id"], "word": words}), {"word": iri("word")}, subject="id")
    assert objects(db, "word")[EX + "2"] == Literal("a")
    nothing = pa.array([None, None, None], pa.string()).dictionary_encode()
    assert db.add_frame(pa.table({"id": table["id"], "word": nothing}), {"word": iri("word")}, subject="id").added == 0
    with pytest.raises(errors.UsageError, match="column 'list' of the type"):
        db.add_frame(pa.table({"id": [EX + "a"], "list": [[1]]}), {"list": iri("list")}, subject="id")


def test_frames_come_back(turtle, db):
    db.load(text=turtle, format="turtle")
    triples = db.construct("CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }")
    for frame in (triples.arrow(syntax="ntriples"), triples.pandas(syntax="ntriples"), triples.polars(typed=False, syntax="ntriples")):
        again = jindou.memory()
        assert again.add_frame(frame, syntax="ntriples").added == len(db)
        assert sorted(again.dump().splitlines()) == sorted(db.dump().splitlines())


def test_frames_of_pandas_and_polars(db):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    data = {"id": [EX + "a", EX + "b"], "age": [30, None], "friend": [EX + "b", None]}
    for frame in (pandas.DataFrame(data, index=[7, 9]), polars.DataFrame(data)):
        db = jindou.memory()
        db.add_frame(frame, {"age": iri("age"), "friend": iri("friend")}, subject="id", iris={"friend"})
        assert objects(db, "friend") == {EX + "a": iri("b")} and len(db) == 2
    # NaT is an empty cell, too.
    times = pandas.DataFrame({"id": [EX + "a", EX + "b"], "at": [pandas.Timestamp("2020-01-01"), pandas.NaT]})
    with db.transaction() as tx:
        assert tx.add_frame(times, {"at": iri("at")}, subject="id").added == 1
        assert tx.query("ASK { ?s <http://example.org/at> ?o }") is True
    assert objects(db, "at") == {EX + "a": Literal(dt.datetime(2020, 1, 1))}


@pytest.mark.parametrize(
    "data, keywords, message",
    [
        ({"subject": ["no iri"], "predicate": [EX + "p"], "object": ["x"]}, {}, "row 0 of the table, column 'subject': 'no iri' is not an IRI"),
        ({"subject": [EX], "predicate": ["_:b"], "object": ["x"]}, {}, "'_:b' is not an IRI"),
        ({"subject": [EX, None], "predicate": [EX, EX], "object": ["x", "y"]}, {}, "row 1 of the table has no value in the column 'subject'"),
        ({"subject": ["x y" * 1000], "predicate": [EX], "object": ["x"]}, {}, "…' is not an IRI"),
        ({"subject": [f"<{EX}>"], "predicate": [f"<{EX}>"], "object": ["<<( <a:a> <a:a> " * 9999]}, {"syntax": "ntriples"}, "…' is not a term"),
        ({"subject": [EX], "predicate": [None], "object": ["x"]}, {}, "has no value in the column 'predicate'"),
        ({"subject": [1], "predicate": [EX], "object": ["x"]}, {}, "column 'subject' of the type Int64 has to be text"),
        ({"s": [EX]}, {}, "no column 'subject'; its columns are s"),
        ({"subject": ['"x"'], "predicate": [f"<{EX}>"], "object": ["1"]}, {"syntax": "ntriples"}, "cannot stand there|not a term"),
    ],
)
def test_mistakes_in_frames(db, data, keywords, message):
    with pytest.raises(errors.UsageError, match=message):
        db.add_frame(pa.table(data), **keywords)
    assert len(db) == 0


def test_what_is_no_frame(db):
    for bad in (5, "x", [1, 2]):
        with pytest.raises(TypeError, match="neither a DataFrame nor a table"):
            db.add_frame(bad)
    with pytest.raises(TypeError):
        db.add_frame(pa.table({"subject": [], "x": []}), {"x": iri("x")}, colour=1)


def test_many_rows(db):
    n = 100_000
    table = pa.table({"subject": [f"{EX}s{i}" for i in range(n)], "predicate": [EX + "p"] * n, "object": range(n)})
    assert db.add_frame(table).added == n == len(db)
    assert db.query(f"ASK {{ <{EX}s{n - 1}> <{EX}p> {n - 1} }}") is True
    token = jindou.CancelToken()
    token.cancel()
    with pytest.raises(errors.CancelledError):
        db.add_frame(table, cancel=token)


def test_long_texts(db):
    """More text than is handed over at a time, and rows that are alone longer than that."""
    texts = [str(i) * (3 << 20) for i in range(8)] + ["x" * (20 << 20)]
    table = pa.table({"subject": [f"{EX}s{i}" for i in range(9)], "text": texts})
    assert db.add_frame(table, {"text": iri("text")}).added == 9
    lengths = db.query(f"SELECT ?s (STRLEN(?o) AS ?n) {{ ?s <{EX}text> ?o }} ORDER BY ?s").fetchall()
    assert [n for _, n in lengths] == [len(text) for text in texts]
    with pytest.raises(errors.LimitError):
        db.add_frame(table, {"text": iri("again")}, memory=1 << 20)


def test_integers_with_missing_cells_stay_integers(db):
    pandas = pytest.importorskip("pandas")
    rows = "VALUES (?n ?b ?t) { (9007199254740993 true 'x') (UNDEF UNDEF UNDEF) (9223372036854775807 false 'y') }"
    frame = db.query(f"SELECT ?n ?b ?t {{ {rows} }} ORDER BY ?t").pandas()
    assert list(frame.columns) == ["n", "b", "t"]
    assert str(frame["n"].dtype) == "Int64" and str(frame["b"].dtype) == "boolean"
    assert frame["n"].dropna().tolist() == [9007199254740993, 9223372036854775807]
    assert frame["n"].isna().sum() == frame["b"].isna().sum() == frame["t"].isna().sum() == 1
    # Without missing cells, columns have numpy's types. A frame that has only a column with missing cells has all rows.
    assert db.query("SELECT ?n { VALUES ?n { 1 2 } }").pandas()["n"].dtype == "int64"
    alone = db.query("SELECT ?n { VALUES ?n { 1 UNDEF } }").pandas()
    assert len(alone) == 2 and alone["n"].sum() == 1 and isinstance(alone, pandas.DataFrame)


def test_untyped_columns_are_plain_strings(db):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    answer = db.query("SELECT ?x { VALUES ?x { 'a' 1 UNDEF 'a' <http://e/i> } }")
    expected = ["a", "1", None, "a", "http://e/i"]
    assert answer.arrow(typed=False)["x"].type == pa.string() and answer.arrow(typed=False)["x"].to_pylist() == expected
    frame = answer.pandas(typed=False)
    assert not isinstance(frame["x"].dtype, pandas.CategoricalDtype)
    assert [None if v != v else v for v in frame["x"]] == expected
    assert answer.polars(typed=False)["x"].dtype == polars.String and answer.polars(typed=False)["x"].to_list() == expected
    assert answer.arrow(typed=False, syntax="ntriples")["x"].to_pylist()[:2] == ['"a"', f'"1"^^<{XSD}integer>']
    # Text is dictionary-encoded unless typed=False.
    assert pa.types.is_dictionary(answer.arrow(syntax="ntriples")["x"].type)
    assert db.query("SELECT ?x { VALUES ?x { UNDEF } }").arrow(typed=False)["x"].to_pylist() == [None]
