"""Missing values of Python, numpy and pandas are no terms, except for NaN, which is an xsd:double."""

import datetime as dt

import pytest

import jindou
from conftest import EX, iri
from jindou import Literal


def missing():
    values = [None]
    try:
        import numpy
        import pandas
    except ImportError:
        return values
    return [*values, pandas.NaT, pandas.NA, numpy.datetime64("NaT"), numpy.timedelta64("NaT", "ns")]


@pytest.mark.parametrize("value", missing(), ids=repr)
def test_missing_values_are_refused(db, value):
    for call in (
        lambda: Literal(value),
        lambda: db.add((iri("a"), iri("p"), value)),
        lambda: db.add_all([(iri("a"), iri("p"), value)]),
        lambda: db.query("SELECT ?s { ?s ?p ?o }", {"o": value}),
        lambda: db.query("SELECT ?s { ?s ?p ?o }", {"o": [1, value]}),
    ):
        with pytest.raises(TypeError, match="is a missing value, and no term: leave it out"):
            call()
    with pytest.raises(TypeError, match=r"the binding of \?o"):
        db.query("SELECT ?s { ?s ?p ?o }", {"o": value})
    assert len(db) == 0


def test_nan_is_a_double(db):
    numpy = pytest.importorskip("numpy")
    for nan in (float("nan"), numpy.float64("nan"), numpy.float32("nan")):
        assert Literal(nan) == Literal("NaN", datatype="http://www.w3.org/2001/XMLSchema#double")


def test_times_of_numpy():
    numpy = pytest.importorskip("numpy")
    day, noon = dt.date(2020, 2, 29), dt.datetime(2020, 2, 29, 12)
    assert Literal(numpy.datetime64("2020-02-29")) == Literal(day)
    for unit in ("s", "us", "ns"):
        assert Literal(numpy.datetime64("2020-02-29T12:00", unit)) == Literal(noon)
        assert Literal(numpy.timedelta64(90, "s").astype(f"timedelta64[{unit}]")) == Literal(dt.timedelta(seconds=90))
    with pytest.raises(TypeError, match=r"list\(values\)"):
        Literal(numpy.array([1, 2]))
