"""The store of RDFLib: against RDFLib's own store in memory, doing the same."""

import random

import pytest

rdflib = pytest.importorskip("rdflib")

from rdflib import BNode, ConjunctiveGraph, Dataset, Graph, Literal, Namespace, URIRef  # noqa: E402
from rdflib.compare import isomorphic  # noqa: E402
from rdflib.namespace import RDF, XSD  # noqa: E402
from rdflib.plugins.sparql import prepareQuery  # noqa: E402

import jindou  # noqa: E402
from jindou.rdflib_store import JindouStore  # noqa: E402

EX = Namespace("http://example.org/")


@pytest.fixture(autouse=True)
def registered():
    """What the entry point does where the package is installed."""
    rdflib.plugin.register("Jindou", rdflib.store.Store, "jindou.rdflib_store", "JindouStore")


def terms(rng):
    subject = rng.choice([EX.a, EX.b, EX.c, BNode("x"), BNode("y")])
    predicate = rng.choice([EX.p, EX.q, RDF.type])
    value = rng.choice([EX.a, BNode("x"), Literal(1), Literal("1"), Literal("un", lang="fr"), Literal("2020-01-01", datatype=XSD.date), Literal(2.5)])
    return subject, predicate, value


def test_a_graph_does_what_rdflib_s_does():
    rng = random.Random(7)
    ours, theirs = Graph(store="Jindou"), Graph()
    for step in range(400):
        triple = terms(rng)
        pattern = tuple(t if rng.random() < 0.5 else None for t in triple)
        match rng.randrange(5):
            case 0 | 1:
                ours.add(triple)
                theirs.add(triple)
            case 2:
                if rng.random() < 0.3:
                    ours.remove(pattern)
                    theirs.remove(pattern)
            case 3:
                assert set(ours.triples(pattern)) == set(theirs.triples(pattern)), pattern
            case _:
                assert (triple in ours) == (triple in theirs)
        assert len(ours) == len(theirs)
    assert set(ours) == set(theirs) and len(theirs) > 0


def test_parsing_and_serializing(turtle):
    ours, theirs = Graph(store="Jindou"), Graph()
    ours.parse(data=turtle, format="turtle")
    theirs.parse(data=turtle, format="turtle")
    assert isomorphic(Graph().parse(data=ours.serialize(format="nt"), format="nt"), theirs)
    assert isomorphic(Graph().parse(data=ours.serialize(format="turtle"), format="turtle"), theirs)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s ?o { ?s ex:p1 ?o }",
        "SELECT ?c (COUNT(?s) AS ?n) { ?s a ?c } GROUP BY ?c",
        "SELECT ?s { ?s a ex:Class1 FILTER NOT EXISTS { ?s ex:p0 ?o } }",
        "ASK { ?s a ex:Class1 }",
        "ASK { ?s a ex:Nothing }",
        "CONSTRUCT { ?c ex:has ?s } { ?s a ?c }",
        "DESCRIBE ex:thing1",
    ],
)
def test_queries(turtle, query):
    ours, theirs = Graph(store="Jindou"), Graph()
    for graph in (ours, theirs):
        graph.parse(data=turtle, format="turtle")
        graph.bind("ex", EX)
    one, other = ours.query(query), theirs.query(query)
    assert (one.type, one.askAnswer) == (("CONSTRUCT" if other.type == "DESCRIBE" else other.type), other.askAnswer)
    if one.type == "SELECT":
        # Blank nodes have labels of their own in each.
        key = lambda row: sorted((str(v), "_" if isinstance(row[v], BNode) else row[v].n3()) for v in row.labels)  # noqa: E731
        assert sorted(map(key, one)) == sorted(map(key, other)) and one.vars == other.vars
    elif one.type == "CONSTRUCT":
        assert isomorphic(one.graph, other.graph)


def test_bindings_and_prefixes():
    graph = Graph(store="Jindou")
    graph.bind("ex", EX)
    graph.add((EX.a, EX.p, Literal(1)))
    graph.add((EX.b, EX.p, Literal(2)))
    for text in ("SELECT ?o { ?s ex:p ?o }", "PREFIX ex: <http://example.org/>\nSELECT ?o { ?s ex:p ?o }"):
        assert [r.o for r in graph.query(text, initBindings={"s": EX.b, "unused": EX.c})] == [Literal(2)]
    prepared = prepareQuery("SELECT ?o { ?s ns:p ?o }", initNs={"ns": EX})
    assert {r.o.toPython() for r in graph.query(prepared)} == {1, 2}
    # Text that looks like a prefixed name inside a string is not expanded.
    assert len(graph.query('SELECT ?s { ?s ex:p ?o FILTER(STR(?o) != "xsd:x") }')) == 2
    with pytest.raises(jindou.errors.SparqlSyntaxError) as e:
        graph.query("SELECT ?s\n{ ?s ex:p ?o FILTR }")
    assert e.value.line == 2


def test_updates():
    graph = Graph(store="Jindou")
    graph.bind("ex", EX)
    graph.update("INSERT DATA { ex:a ex:p 1, 2 }")
    graph.update("DELETE { ?s ?p ?o } INSERT { ?s ?p ?n } WHERE { ?s ?p ?o BIND(?o + 10 AS ?n) }")
    assert set(graph.objects()) == {Literal(11), Literal(12)}
    # These are RDFLib's own evaluation, over the store's triples.
    graph.update("DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }", initBindings={"o": Literal(11)})
    assert set(graph.objects()) == {Literal(12)}
    blank = BNode()
    graph.add((blank, EX.p, Literal(5)))
    found = graph.query("SELECT ?o { ?s ?p ?o }", initBindings={"s": next(graph.subjects(EX.p, Literal(5)))})
    assert [r.o for r in found] == [Literal(5)]


def quads(dataset):
    return {(s, p, o, None if c == rdflib.graph.DATASET_DEFAULT_GRAPH_ID else c) for s, p, o, c in dataset.quads()}


def test_datasets():
    ours, theirs = Dataset(store="Jindou"), Dataset()
    rng = random.Random(3)
    for _ in range(150):
        triple = terms(rng)
        name = rng.choice([None, EX.g, EX.h])
        for dataset in (ours, theirs):
            graph = dataset.default_context if name is None else dataset.graph(name)
            graph.add(triple)
    for dataset in (ours, theirs):
        dataset.graph(EX.h).remove((None, EX.p, None))
        dataset.remove_graph(EX.none)
    assert quads(ours) == quads(theirs)
    for name in (EX.g, EX.h):
        assert set(ours.graph(name)) == set(theirs.graph(name)) and len(ours.graph(name)) == len(theirs.graph(name))
    names = {g.identifier for g in ours.contexts()}
    assert {EX.g, EX.h} <= names
    query = "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g"
    assert {(r.g, r.n) for r in ours.query(query)} == {(r.g, r.n) for r in theirs.query(query)}
    in_default = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    assert [r.n for r in ours.query(in_default)] == [r.n for r in theirs.query(in_default)]
    assert [r.n for r in ours.graph(EX.g).query(in_default)] == [Literal(len(theirs.graph(EX.g)))]
    assert isomorphic(
        Dataset().parse(data=ours.serialize(format="nquads"), format="nquads").graph(EX.g), theirs.graph(EX.g)
    )


def test_the_union_of_all_graphs():
    for make in (lambda: Dataset(store="Jindou", default_union=True), lambda: ConjunctiveGraph(store="Jindou")):
        dataset = make()
        for name in (EX.g, EX.h):
            dataset.get_context(name).add((EX.a, EX.p, Literal(1)))
        assert len(dataset) == 1 and list(dataset.triples((EX.a, None, None))) == [(EX.a, EX.p, Literal(1))]
        assert [r.n.toPython() for r in dataset.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")] == [1]
        names = {c.identifier for c in dataset.contexts((EX.a, EX.p, Literal(1)))}
        assert names - {rdflib.graph.DATASET_DEFAULT_GRAPH_ID} == {EX.g, EX.h}


def test_updates_of_a_named_graph_stay_in_it():
    dataset = Dataset(store="Jindou")
    dataset.add((EX.a, EX.p, Literal(0)))
    graph = dataset.graph(EX.g)
    graph.update("INSERT DATA { <http://example.org/a> <http://example.org/p> 1 }")
    graph.update("INSERT { ?s ?p 2 } WHERE { ?s ?p 1 }")
    assert set(graph.objects()) == {Literal(1), Literal(2)}
    assert set(dataset.default_context.objects()) == {Literal(0)}


def test_a_store_directory(tmp_path):
    where = str(tmp_path / "my.store")
    graph = Graph(store="Jindou")
    assert graph.open(where) == rdflib.store.NO_STORE
    assert graph.open(where, create=True) == rdflib.store.VALID_STORE
    graph.parse(data="@prefix ex: <http://example.org/> . ex:a ex:p 1, 2, 3 .", format="turtle")
    graph.close()
    again = Graph(store="Jindou")
    again.open(where)
    assert {o.toPython() for o in again.objects(EX.a, EX.p)} == {1, 2, 3}
    again.close()
    with jindou.open(where) as db:
        assert len(db) == 3
        shared = Graph(store=JindouStore(db=db))
        shared.add((EX.a, EX.p, Literal(4)))
        assert len(shared) == 4 == len(db)


def test_what_waits_is_written_at_the_end(tmp_path):
    import subprocess
    import sys

    where = str(tmp_path / "my.store")
    code = f"""
import rdflib
from jindou.rdflib_store import JindouStore
graph = rdflib.Graph(store=JindouStore())
graph.open({where!r}, create=True)
for i in range(100): graph.add((rdflib.URIRef("http://e/a"), rdflib.URIRef("http://e/p"), rdflib.Literal(i)))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with jindou.open(where) as db:
        assert len(db) == 100


def test_rollback_forgets_what_waits():
    graph = Graph(store="Jindou")
    graph.add((EX.a, EX.p, Literal(1)))
    graph.commit()
    graph.add((EX.a, EX.p, Literal(2)))
    graph.rollback()
    assert set(graph.objects()) == {Literal(1)}


def test_literals_keep_their_lexical_forms():
    graph = Graph(store="Jindou")
    graph.update('INSERT DATA { <http://example.org/a> <http://example.org/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> }')
    (value,) = graph.objects()
    assert str(value) == "01" and value.datatype == XSD.integer
    graph.remove((None, None, value))
    assert len(graph) == 0
    assert URIRef("http://example.org/a") not in graph.all_nodes()
