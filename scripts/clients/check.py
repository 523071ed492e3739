"""Clients of Python: SPARQLWrapper, RDFLib's stores, LangChain. Arguments: a server that all may write to, one with tokens, a token."""

import sys
import traceback
from importlib.metadata import version

import SPARQLWrapper as sw
from rdflib import ConjunctiveGraph, Graph, Literal, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

open_base, token_base, token = sys.argv[1:4]
sky, v = "http://example.org/sky/", "http://example.org/sky/vocabulary#"
mars = URIRef("http://example.org/systems/Mars")
moons = f"SELECT ?m WHERE {{ GRAPH <{mars}> {{ ?m a <{v}Moon> }} }} ORDER BY ?m"
expected = [sky + "Deimos", sky + "Phobos"]
construct = f"CONSTRUCT {{ ?m a <{v}Moon> }} WHERE {{ GRAPH ?g {{ ?m a <{v}Moon> }} }}"


def insert(name, number):
    return f"INSERT DATA {{ GRAPH <http://example.org/clients/{name}> {{ <http://example.org/a> <http://example.org/b> {number} }} }}"


def there(name, number):
    return f"ASK {{ GRAPH <http://example.org/clients/{name}> {{ ?s ?p {number} }} }}"


def refuses(act, *errors):
    try:
        act()
    except errors:
        return
    raise AssertionError("an error was not seen as one")


def wrapper(query, form=sw.JSON, method=None, base=open_base, path="/sparql", login=None):
    w = sw.SPARQLWrapper(base + path)
    w.setQuery(query)
    w.setReturnFormat(form)
    w.setTimeout(60)
    if login:
        w.setCredentials("anybody", login)
    if method:
        w.setMethod(sw.POST)
        if method == "direct":
            w.setRequestMethod(sw.POSTDIRECTLY)
    return w.query().convert()


def sparqlwrapper():
    for path in ("/query", "/sparql"):
        for method in (None, "form", "direct"):
            got = [b["m"]["value"] for b in wrapper(moons, method=method, path=path)["results"]["bindings"]]
            assert got == expected, got
    xml = wrapper(moons, sw.XML)
    assert [n.firstChild.data for n in xml.getElementsByTagName("uri")] == expected
    assert wrapper(moons, sw.CSV).decode().split() == ["m"] + expected
    assert wrapper(moons, sw.TSV).decode().split() == ["?m"] + [f"<{m}>" for m in expected]
    assert wrapper("ASK { ?s ?p ?o }")["boolean"] is True
    for form in (sw.TURTLE, sw.N3):
        assert len(Graph().parse(data=wrapper(construct, form), format="turtle")) == 14
    assert len(wrapper(construct, sw.RDFXML)) == 14
    assert len(wrapper(construct, sw.JSONLD)) == 14
    w = sw.SPARQLWrapper(open_base + "/query")
    w.addDefaultGraph(str(mars))
    w.setQuery(f"SELECT (COUNT(*) AS ?n) {{ ?m a <{v}Moon> }}")
    w.setReturnFormat(sw.JSON)
    assert w.query().convert()["results"]["bindings"][0]["n"]["value"] == "2"
    for i, (path, method) in enumerate((p, m) for p in ("/update", "/sparql") for m in ("form", "direct")):
        wrapper(insert("sparqlwrapper", i), method=method, path=path)
        assert wrapper(there("sparqlwrapper", i))["boolean"] is True
    bad = sw.SPARQLExceptions.QueryBadFormed
    refuses(lambda: wrapper("SELECT * {"), bad)
    refuses(lambda: wrapper("INSERT DATA {", method="form"), bad)
    # Basic is all the authentication that it knows.
    assert wrapper("ASK {}", base=token_base, login=token)["boolean"] is True
    wrapper(insert("sparqlwrapper", 9), method="form", base=token_base, login=token)
    refuses(lambda: wrapper("ASK {}", base=token_base, login="wrong-0123456789"), sw.SPARQLExceptions.Unauthorized)


def rdflib():
    kind = URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    for method in ("GET", "POST", "POST_FORM"):
        for path in ("/query", "/sparql"):
            store = SPARQLStore(open_base + path, method=method)
            g = Graph(store, identifier=mars)
            assert sorted(str(s) for s in g.subjects(kind, URIRef(v + "Moon"))) == expected
            whole = ConjunctiveGraph(store)
            assert [str(r.m) for r in whole.query(moons)] == expected
            assert bool(whole.query("ASK { ?s ?p ?o }"))
            assert len(whole.query(construct).graph) == 14
            rows = list(whole.query(f"SELECT ?p ?r {{ ?p <{v}radiusKm> ?r }} ORDER BY DESC(?r) LIMIT 2"))
            assert len(rows) == 2 and float(rows[0].r) > float(rows[1].r), rows
            if method == "GET":
                refuses(lambda: whole.query("SELECT * {"), Exception)
            else:
                # RDFLib hands an error of a POST out as a result that begins with its status.
                assert whole.query("SELECT * {")[0] == 400
    for base, auth in ((open_base, None), (token_base, ("anybody", token))):
        for ends in (("/query", "/update"), ("/sparql", "/sparql")):
            store = SPARQLUpdateStore(*(base + end for end in ends), auth=auth)
            g = Graph(store, identifier=URIRef("http://example.org/clients/rdflib"))
            triple = (URIRef("http://example.org/a"), URIRef("http://example.org/b"), Literal(1))
            g.add(triple)
            assert triple in g and len(g) == 1
            g.remove(triple)
            assert triple not in g
            refuses(lambda: store.update("INSERT DATA {"), Exception)


def langchain():
    from langchain_community.graphs import RdfGraph

    graph = RdfGraph(
        query_endpoint=open_base + "/sparql",
        update_endpoint=open_base + "/sparql",
        standard="rdf",
    )
    # Its schema is that of the default graph.
    assert "vocabulary#" in graph.get_schema, graph.get_schema
    assert [str(row[0]) for row in graph.query(moons)] == expected
    # What its wrapper gives for ASK and CONSTRUCT are RDFLib's results.
    assert bool(graph.graph.query("ASK { ?s ?p ?o }"))
    assert len(graph.graph.query(construct).graph) == 14
    # Its own update() names the graph by a blank node when it works on an endpoint, which RDFLib refuses: its store can.
    graph.graph.store.update(insert("langchain", 1))
    assert bool(graph.graph.query(there("langchain", 1)))
    refuses(lambda: graph.query("SELECT * {"), Exception)
    refuses(lambda: graph.graph.store.update("INSERT DATA {"), Exception)


failed = False
for check, package in ((sparqlwrapper, "SPARQLWrapper"), (rdflib, "rdflib"), (langchain, "langchain-community")):
    try:
        check()
        print(f"ok      {package} {version(package)}", flush=True)
    except BaseException:
        traceback.print_exc()
        print(f"FAILED  {package} {version(package)}", flush=True)
        failed = True
sys.exit(failed)
