"""Jindou as a store of RDFLib: `rdflib.Graph(store="Jindou")`, `rdflib.Dataset(store="Jindou")`.

Graphs are the store's named graphs. A graph without an IRI, as `Graph(store="Jindou")` makes one, is the store's default graph. Queries and
updates run in the engine, not in RDFLib; but for those with blank nodes as `initBindings`, and updates with `initBindings`.

Triples that are added one by one are collected and written together: before the next read, query, update or removal, by
`commit()` and `close()`, or when there are many of them.
"""

from __future__ import annotations

import re
import threading
import weakref

from rdflib.graph import DATASET_DEFAULT_GRAPH_ID, Graph
from rdflib.query import Result
from rdflib.store import VALID_STORE, NO_STORE, Store
from rdflib.term import BNode, Literal as RdflibLiteral, URIRef, Variable

from . import _jindou
from ._convert import term_of
from ._jindou import BlankNode, Database, IRI, Literal, Quad, Solutions, Triples
from .errors import NoStoreError

_MANY = 1 << 16


def to_rdflib(term):
    """RDFLib's term for one of ours."""
    if isinstance(term, IRI):
        return URIRef(term.value)
    if isinstance(term, BlankNode):
        return BNode(term.value)
    if isinstance(term, Literal):
        if term.language:
            return RdflibLiteral(term.value, lang=term.language)
        datatype = term.datatype.value
        if datatype == "http://www.w3.org/2001/XMLSchema#string":
            # RDFLib distinguishes "a" from "a"^^xsd:string; RDF 1.1 does not.
            return RdflibLiteral(term.value)
        return RdflibLiteral(term.value, datatype=URIRef(datatype), normalize=False)
    raise ValueError(f"RDFLib has no term for {term}")


def graph_of(triples):
    """An `rdflib.Graph` in memory with these triples."""
    graph = Graph()
    for s, p, o in triples:
        graph.add((to_rdflib(s), to_rdflib(p), to_rdflib(o)))
    return graph


class _Pending:
    """Quads that wait to be added, and the database they are for."""

    def __init__(self, db):
        self.db = db
        self.quads = []
        self.lock = threading.Lock()

    def add(self, quad):
        with self.lock:
            self.quads.append(quad)
            full = len(self.quads) >= _MANY
        if full:
            self.flush()

    def flush(self):
        with self.lock:
            quads, self.quads = self.quads, []
            if quads:
                try:
                    self.db.add_all(quads)
                except BaseException:
                    self.quads = quads + self.quads
                    raise


class JindouStore(Store):
    """A store of RDFLib over a `jindou.Database`.

    `Graph(store="Jindou")` is in memory; `graph.open("my.store")` opens a store directory, `create=True` makes an empty one where
    there is none; `Graph(store=JindouStore(db=db))` uses a database that is open.
    """

    context_aware = True
    graph_aware = True
    formula_aware = False
    transaction_aware = False

    def __init__(self, configuration=None, identifier=None, db=None):
        self._prefixes = {}
        self._namespaces = {}
        self._blank_graphs = set()
        self._pending = None
        if db is not None:
            self._use(db)
        elif not configuration:
            self._use(_jindou.memory())
        super().__init__(configuration, identifier)

    def _use(self, db):
        self.close()
        self._pending = _Pending(db)
        # Writes pending changes even if the program does not close the store.
        self._finalizer = weakref.finalize(self, self._pending.flush)

    @property
    def db(self) -> Database:
        """The database, with all that was added."""
        if self._pending is None:
            raise ValueError("the store is not open: call open() first")
        self._pending.flush()
        return self._pending.db

    # Opening and closing.

    def open(self, configuration, create=False):
        """Opens the store directory of that name."""
        if isinstance(configuration, Database):
            self._use(configuration)
            return VALID_STORE
        try:
            self._use(_jindou.open(configuration))
        except NoStoreError:
            if not create:
                return NO_STORE
            _jindou.load(configuration, text="", format="ntriples")
            self._use(_jindou.open(configuration))
        return VALID_STORE

    def close(self, commit_pending_transaction=False):
        """Writes what waits, and closes the database."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._finalizer.detach()
            pending.flush()
            pending.db.close()

    def destroy(self, configuration):
        raise NotImplementedError("a store directory is removed by whoever made it")

    def commit(self):
        """Writes what waits."""
        _ = self.db

    def rollback(self):
        """Forgets what was added and was not written yet."""
        if self._pending is not None:
            with self._pending.lock:
                self._pending.quads = []

    def gc(self):
        """Does nothing: merging is `store.db.merge()`."""

    # Triples.

    def _graph(self, context):
        """Our name of a context: `None` is the default graph, `...` all graphs."""
        if context is None:
            return ...
        identifier = getattr(context, "identifier", context)
        if identifier == DATASET_DEFAULT_GRAPH_ID:
            return None
        if isinstance(identifier, BNode):
            return BlankNode(str(identifier)) if str(identifier) in self._blank_graphs else None
        return term_of(identifier)

    def _context(self, name):
        if name is None:
            return Graph(store=self, identifier=DATASET_DEFAULT_GRAPH_ID)
        if isinstance(name, BlankNode):
            self._blank_graphs.add(name.value)
        return Graph(store=self, identifier=to_rdflib(name))

    def add(self, triple, context, quoted=False):
        if quoted:
            raise ValueError("Jindou has no formulae")
        if self._pending is None:
            raise ValueError("the store is not open: call open() first")
        graph = self._graph(context)
        s, p, o = map(term_of, triple)
        self._pending.add(Quad(s, p, o, None if graph is ... else graph))
        super().add(triple, context, quoted)

    def addN(self, quads):
        for s, p, o, context in quads:
            self.add((s, p, o), context)

    def remove(self, triple, context=None):
        s, p, o = (None if t is None else term_of(t) for t in triple)
        db = self.db
        db.remove_all(db.quads(s, p, o, self._graph(context)))
        super().remove(triple, context)

    def triples(self, triple_pattern, context=None):
        s, p, o = (None if t is None else term_of(t) for t in triple_pattern)
        graph = self._graph(context)
        found = {}
        for quad in self.db.quads(s, p, o, graph):
            found.setdefault(quad.triple, []).append(quad.graph_name)
        for (s, p, o), graphs in found.items():
            yield (to_rdflib(s), to_rdflib(p), to_rdflib(o)), (self._context(name) for name in graphs)

    def __len__(self, context=None):
        graph = self._graph(context)
        if graph is ...:
            return sum(1 for _ in self.triples((None, None, None)))
        if isinstance(graph, IRI):
            rows = self.db.query("SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }", {"g": graph})
        elif graph is None:
            rows = self.db.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }", union_default_graph=False)
        else:
            return len(self.db.quads(graph_name=graph))
        return next(iter(rows)).n.to_python()

    def contexts(self, triple=None):
        if triple is None or triple == (None, None, None):
            names = [None, *self.db.graphs()]
        else:
            s, p, o = (None if t is None else term_of(t) for t in triple)
            names = dict.fromkeys(quad.graph_name for quad in self.db.quads(s, p, o))
        for name in names:
            yield self._context(name)

    def add_graph(self, graph):
        """Does nothing: a graph is there while it has a quad."""

    def remove_graph(self, graph):
        self.remove((None, None, None), graph)

    # SPARQL.

    def query(self, query, initNs, initBindings, queryGraph, **kwargs):
        text, prefixes, base = _text(query)
        text = _prologue(text, {**(initNs or {}), **prefixes}, base)
        bindings = {
            str(name): value
            for name, value in (initBindings or {}).items()
            if re.search(rf"[?$]{re.escape(str(name))}(?!\w)", text)
        }
        options = {}
        if queryGraph == "__UNION__":
            options["union_default_graph"] = True
        else:
            graph = self._graph(queryGraph)
            if isinstance(graph, IRI):
                options["default_graphs"] = [graph]
                if re.search(r"\bGRAPH\b", text, re.IGNORECASE):
                    options["named_graphs"] = [g for g in self.db.graphs() if isinstance(g, IRI)]
            elif isinstance(graph, BlankNode):
                # RDFLib then evaluates the query itself.
                raise NotImplementedError("a query over a graph whose name is a blank node")
            else:
                options["union_default_graph"] = False
        if "timeout" in kwargs:
            options["timeout"] = kwargs["timeout"]
        if any(isinstance(term_of(value), BlankNode) for value in bindings.values()):
            # In SPARQL a blank node is a variable, in RDFLib's bindings it is not, so RDFLib must evaluate the query
            # itself.
            raise NotImplementedError("a blank node as the binding of a variable")
        return _result(self.db.query(text, bindings or None, **options))

    def update(self, update, initNs, initBindings, queryGraph, **kwargs):
        text, prefixes, base = _text(update)
        if initBindings:
            # RDFLib then evaluates the query itself.
            raise NotImplementedError("initBindings of an update")
        options = {}
        graph = self._graph(queryGraph) if queryGraph != "__UNION__" else None
        if queryGraph == "__UNION__":
            options["union_default_graph"] = True
        elif isinstance(graph, IRI):
            options["graph"] = graph
        if "timeout" in kwargs:
            options["timeout"] = kwargs["timeout"]
        self.db.update(_prologue(text, {**(initNs or {}), **prefixes}, base), **options)

    # Namespaces are kept in RDFLib, not in the store's files.

    def bind(self, prefix, namespace, override=True):
        if not override and (prefix in self._namespaces or namespace in self._prefixes):
            return
        old = self._namespaces.get(prefix)
        if old is not None and old != namespace:
            self._prefixes.pop(old, None)
        before = self._prefixes.get(namespace)
        if before is not None and before != prefix:
            self._namespaces.pop(before, None)
        self._namespaces[prefix] = namespace
        self._prefixes[namespace] = prefix

    def namespace(self, prefix):
        return self._namespaces.get(prefix)

    def prefix(self, namespace):
        return self._prefixes.get(namespace)

    def namespaces(self):
        yield from list(self._namespaces.items())


def _text(query):
    """Text, prefixes and base of a query, which may be one that RDFLib has prepared."""
    if isinstance(query, str):
        return query, {}, None
    original = getattr(query, "_original_args", None)
    if original is None:
        raise ValueError("a query is text, or what rdflib.plugins.sparql.prepareQuery gave")
    text, prefixes, base = original
    return text, prefixes or {}, base


def _prologue(text, prefixes, base):
    """The text with declarations of the prefixes that it uses and does not declare: on its first line, so that lines stay what they are."""
    out = []
    if base:
        out.append(f"BASE <{base}>")
    for prefix, iri in prefixes.items():
        name = re.escape(prefix)
        used = re.search(rf"(?<![\w.-]){name}:", text)
        declared = re.search(rf"\bPREFIX\s+{name}:", text, re.IGNORECASE)
        if used and not declared:
            out.append(f"PREFIX {prefix}: <{iri}>")
    return " ".join([*out, text])


def _result(answer):
    if isinstance(answer, bool):
        result = Result("ASK")
        result.askAnswer = answer
    elif isinstance(answer, Triples):
        result = Result("CONSTRUCT")
        result.graph = graph_of(answer)
    else:
        result = Result("SELECT")
        result.vars = [Variable(name) for name in answer.variables]
        result.bindings = _bindings(answer, result.vars)
    return result


def _bindings(solutions: Solutions, variables):
    # The same terms recur as the same objects, so conversions are cached.
    known: dict = {}
    for row in solutions:
        out = {}
        for variable, term in zip(variables, row):
            if term is not None:
                value = known.get(term)
                if value is None:
                    if len(known) >= _MANY:
                        known.clear()
                    value = known[term] = to_rdflib(term)
                out[variable] = value
        yield out


