import assert from "node:assert/strict";
import { test } from "node:test";
import { drawn, nodeColumns, patterns, planOf } from "../src/graph/from-rows.ts";
import { firstPlaces, simulationOf, spacing } from "../src/graph/layout.ts";
import { notDrawn } from "../src/graph/load.ts";
import { GraphModel, KINDS, type Triple } from "../src/graph/model.ts";
import { SvgPen } from "../src/graph/paint.ts";
import { Prefixes } from "../src/rdf/prefixes.ts";
import { parseTerm, RDF_TYPE, SHOWN, type Term } from "../src/rdf/term.ts";

const iri = (name: string): Term => ({ type: "iri", value: `http://e/${name}` });
const text = (value: string): Term => ({ type: "literal", value });
const triple = (s: string, p: string, o: string): Triple => [iri(s), iri(p), iri(o)];

test("patterns of a query are read as far as they are terms, lists and paths", () => {
  const read = (query: string) => patterns(query).map(({ subject, predicate, object }) => `${subject} ${predicate} ${object}`);
  assert.deepEqual(read("PREFIX a: <http://a/> SELECT ?x ?y { ?x a:p ?y ; a:q ?z, 5 . OPTIONAL { ?z a <http://c> } }"), ["?x a:p ?y", "?x a:q ?z", "?x a:q 5", "?z a <http://c>"]);
  assert.deepEqual(read("SELECT * { ?x a:p / a:q* ?y . # ?a ?b ?c\n ?x (a:p|^a:q)+ ?z FILTER(?x != ?y && ?a) ?u ?p ?v }"), ["?x a:p/a:q* ?y", "?x (a:p|^a:q)+ ?z", "?u ?p ?v"]);
  assert.deepEqual(read("SELECT * { [ a:p ?x ] a:q ?y . ?x a:p ?u, ?v ; ; a:q ?w . ?s a:r [ a:s ?o ] . (?l) a:t (?m ?n) }").filter((p) => /^[?]\w+ \S+ [?]\w+$/.test(p)), ["?x a:p ?u", "?x a:p ?v", "?x a:q ?w"]);
  // What the grammar does not know gives none.
  for (const odd of ["", "SELECT", "}}}{{{", "SELECT * { ?x [ a:p ?y ] }", "# ?a ?b ?c", "((((", 'SELECT * { "x" ?p', "SELECT * { ?x a:p ?y {| a:s ?t |} }", "SELECT * { << ?x a:p ?y >> a:q ?z }", "SELECT * { ?x a:p ?y ~ ?r . ?x a:q ?z }", "SELECT * { ?x a:p <<( ?a ?b ?c )>> }", "SELECT * { ?x a:p ?y LATERAL { ?x a:q ?y } }"]) assert.deepEqual(patterns(odd), [], odd);
});

test("an edge is drawn only where its pattern is certain to hold in the row", () => {
  const [a, b, c] = [iri("a"), iri("b"), iri("c")];
  /** The edges of a row of the columns, without those that hang on the first column. */
  const edges = (query: string, row: Record<string, Term | null>) => {
    const made = planOf(query, Object.keys(row), [Object.values(row).map((t) => t ?? a)], new Prefixes([]));
    assert.ok(made, query);
    return drawn(Object.values(row), made).triples.filter(([, p]) => !p.value.startsWith("?")).map((t) => t.map(({ value }) => value.replace("http://e/", "")).join(" "));
  };
  const all = { x: a, y: b, z: c };
  const certain = (query: string, row: Record<string, Term | null> = all) => edges(`SELECT * { ?x a <t> . ?y a <t> . ?z a <t> ${query} }`, row);
  // Not in the data.
  assert.deepEqual(certain("FILTER NOT EXISTS { ?x <p> ?y }"), []);
  assert.deepEqual(certain("FILTER(?x = ?y || EXISTS { ?x <p> ?y }) BIND(EXISTS { ?x <q> ?y } AS ?e)"), []);
  assert.deepEqual(certain("MINUS { ?x <p> ?y . { ?y <p> ?z } }"), []);
  assert.deepEqual(edges("SELECT ?x ?y { ?x a <t> ; a ?y } GROUP BY ?x ?y HAVING(EXISTS { ?x <p> ?y }) ORDER BY EXISTS { ?y <p> ?x }", { x: a, y: b }), [`a ${RDF_TYPE} b`]);
  // All parts of these hold.
  assert.deepEqual(certain("GRAPH ?g { ?x <p> ?y } { { ?y <p> ?z } }"), ["a p b", "b p c"]);
  // Of an OPTIONAL and a UNION only what the row shows.
  assert.deepEqual(certain("OPTIONAL { ?x <p> ?y }"), []);
  assert.deepEqual(certain("OPTIONAL { ?x <p> ?y . ?y <n> ?n }", { ...all, n: text("n") }), ["a p b"]);
  assert.deepEqual(certain("OPTIONAL { ?x <p> ?y . ?y <n> ?n }", { ...all, n: null }), []);
  assert.deepEqual(certain("OPTIONAL { ?x <p> ?y . ?y <n> ?n } OPTIONAL { ?x <m> ?n }", { ...all, n: text("n") }), []);
  assert.deepEqual(certain("OPTIONAL { ?x <p> ?y OPTIONAL { ?y <p> ?v } }", { ...all, v: c }), ["a p b", "b p c"]);
  assert.deepEqual(certain("OPTIONAL { ?x <p> ?y OPTIONAL { ?y <p> ?v } FILTER(BOUND(?v)) }", { ...all, v: null }), []);
  assert.deepEqual(certain("{ ?x <p> ?y } UNION { ?x <q> ?y }"), []);
  assert.deepEqual(certain("{ ?x <p> ?v } UNION { ?x <q> ?w } UNION { ?y <q> ?w }", { ...all, v: b, w: null }), ["a p b"]);
  assert.deepEqual(certain("{ ?x <p> ?v } UNION { ?x <q> ?w } UNION { ?y <q> ?u }", { ...all, v: null, w: c, u: null }), ["a q c"]);
  assert.deepEqual(certain("SERVICE SILENT <s> { ?x <p> ?y }"), []);
  assert.deepEqual(edges("SELECT * { ?x a <t> OPTIONAL { ?x <p> ?y } } VALUES ?y { <b> }", { x: a, y: b }), []);
  assert.deepEqual(edges("SELECT ?x ?y { ?x a <t> BIND(<b> AS ?y) OPTIONAL { ?x <p> ?y } }", { x: a, y: b }), []);
  assert.deepEqual(edges("SELECT ?x ?y { ?x a <t> OPTIONAL { ?x <p> ?y } FILTER(!BOUND(?y) || ?y != ?x) } GROUP BY ?x ?y ORDER BY ?y", { x: a, y: b }), ["a p b"]);
  // Variables of a sub-select are others than those around it, unless it projects them.
  assert.deepEqual(certain("{ SELECT ?x { ?x <p> ?y } }"), []);
  assert.deepEqual(certain("{ SELECT ?x (COUNT(?y) AS ?n) { ?x <p> ?y } GROUP BY ?x }"), []);
  assert.deepEqual(certain("{ SELECT ?x ?y { ?x ?z ?y } }"), []);
  assert.deepEqual(certain("{ SELECT ?y $x { ?x <p> ?y } LIMIT 5 } { SELECT DISTINCT * { ?y <p> ?z } }"), ["a p b", "b p c"]);
});

test("rows of a table become nodes and edges by the query's patterns, or by their columns", () => {
  const names = new Prefixes([["e", "http://e/"]]);
  const plan = (query: string, columns: string[], rows: (Term | null)[][]) => planOf(query, columns, rows, names);
  const rows = [[iri("a"), iri("b"), text("A")], [iri("c"), null, text("C")]];
  assert.deepEqual(nodeColumns(["x", "y", "n"], rows), [0, 1]);
  assert.deepEqual(plan("SELECT * { ?x e:knows ?y ; e:name ?n }", ["x", "y", "n"], rows), { nodes: [0, 1], joins: [{ from: 0, to: 1, name: "http://e/knows", needs: [] }] });
  // Nothing joins them: the first column does.
  assert.deepEqual(plan("SELECT * { ?x e:name ?n . ?y e:name ?n }", ["x", "y", "n"], rows)?.joins, [{ from: 0, to: 1, name: "?y", needs: [] }]);
  // A column of predicates names edges, and values are nodes.
  const all = plan("SELECT * { ?s ?p ?o }", ["s", "p", "o"], [[iri("a"), iri("p"), text("A")], [iri("a"), iri("q"), iri("b")]]);
  assert.deepEqual(all, { nodes: [0, 2].filter((i) => all?.nodes.includes(i)), joins: [{ from: 0, to: 2, name: 1, needs: [] }] });
  assert.equal(plan("SELECT (COUNT(*) AS ?n) {}", ["n"], [[text("5")]]), undefined);
  assert.deepEqual(plan("SELECT ?x { ?x a ?c }", ["x"], [[iri("a")]]), { nodes: [0], joins: [] });
  const one = { nodes: [0, 1], joins: [{ from: 0, to: 1, name: "http://e/knows", needs: [] }] };
  assert.deepEqual(drawn([iri("a"), iri("b"), null], one), { triples: [triple("a", "knows", "b")], alone: [] });
  assert.deepEqual(drawn([iri("a"), null, null], one), { triples: [], alone: [iri("a")] });
  assert.deepEqual(drawn([null, null, null], one), { triples: [], alone: [] });
});

test("a model counts what it has no room for, and undoes each step", () => {
  const model = new GraphModel(4);
  model.add([triple("a", "p", "b"), triple("a", "q", "b"), triple("a", "p", "a"), [iri("a"), { type: "iri", value: RDF_TYPE }, iri("C")], [iri("a"), { type: "iri", value: RDF_TYPE }, iri("C")]], true);
  // The answer has a triple twice: it is one.
  assert.deepEqual([model.nodes.size, model.edges.size, model.left, model.types.size], [2, 2, 0, 1]);
  const a = model.nodes.get("<http://e/a>");
  const b = model.nodes.get("<http://e/b>");
  assert.ok(a && b);
  assert.deepEqual([a.kind, b.kind, a.degree, b.degree], ["http://e/C", KINDS.none, 1, 1]);
  model.addAsStep("neighbours", [triple("b", "p", "c"), triple("b", "p", "d"), triple("b", "p", "e"), triple("b", "p", "a"), triple("a", "r", "b"), [iri("b"), { type: "iri", value: RDF_TYPE }, iri("D")]], true);
  const names = () => [...(model.edges.get("<http://e/a>\n<http://e/b>")?.names ?? [])].map((name) => name.slice(9));
  assert.deepEqual([names(), b.kind, model.types.size, model.has(triple("a", "r", "b")), model.has(triple("b", "r", "a"))], [["p", "q", "r"], "http://e/D", 2, true, false]);
  assert.deepEqual([model.nodes.size, model.edges.size, model.left, b.degree, a.degree], [4, 5, 1, 4, 2]);
  model.hide([b]);
  assert.deepEqual(model.shown().nodes.length, 3);
  assert.equal(model.shown().edges.length, 1);
  model.toggleKind("http://e/C");
  assert.equal(model.shown().nodes.length, 2);
  model.showAll();
  assert.equal(model.shown().nodes.length, 4);
  model.pin(a, true, { x: 1, y: 2 });
  assert.deepEqual([model.undo(), a.pinned, a.x], ["pinning", false, 1]);
  for (let i = 0; i < 4; i++) model.undo();
  assert.deepEqual([model.nodes.size, model.edges.size, b.degree, a.degree, b.hidden, model.undo()], [2, 2, 1, 1, false, undefined]);
  assert.deepEqual([names(), b.kind, model.types.size], [["p", "q"], KINDS.none, 1]);
  // Where there is nothing but classes, they are drawn.
  const types = new GraphModel();
  types.add([[iri("a"), { type: "iri", value: RDF_TYPE }, iri("C")]], true);
  types.drawTypes();
  assert.deepEqual([types.nodes.size, types.edges.size, types.types.size], [2, 1, 0]);
});

test("long literals that begin alike are nodes of their own, and the same one from two requests is one", () => {
  const model = new GraphModel();
  const long = (end: string) => `"${"x".repeat(5000)}${end}"`;
  const add = (cell: string, subject = "a") => {
    const o = parseTerm(cell, SHOWN);
    assert.ok(o);
    model.add([[iri(subject), iri("p"), o]]);
    return [model.nodes.size, model.has([iri(subject), iri("p"), o])];
  };
  assert.deepEqual(add(long("1")), [2, true]);
  assert.deepEqual(add(long("2")), [3, true]);
  assert.deepEqual(add(long("1")), [3, true]);
  assert.deepEqual(add(`${long("1")}@en`), [4, true]);
  assert.deepEqual(add(long("1"), "b"), [6, true]);
  assert.ok([...model.nodes.values()].every(({ term }) => term.value.length <= SHOWN));
});

test("what is not drawn is said with its number", () => {
  assert.equal(notDrawn(10, 10, 0, 0, "row"), "");
  assert.equal(notDrawn(10, 10, 3, 1, "row"), "3 rows of 10 are not shown: the drawing is limited to 20,000 nodes. 1 row of 10 has no resource to draw.");
  assert.equal(notDrawn(200_000, 100_000, 1, 0, "triple"), "Only the first 100,000 of 200,000 triples were read. 1 triple of 100,000 is not shown: the drawing is limited to 20,000 nodes.");
});

test("each node has a first place of its own, and the layout keeps neighbours near", () => {
  const n = 400;
  const edges = Uint32Array.from(Array.from({ length: n - 1 }, (_, i) => [i, i + 1]).flat());
  const positions = new Float32Array(2 * n).fill(NaN);
  [positions[0], positions[1]] = [5, 7];
  firstPlaces(positions, edges, 50);
  assert.deepEqual([positions[0], positions[1]], [5, 7]);
  assert.ok(positions.every((p) => Number.isFinite(p)));
  assert.equal(new Set(Array.from({ length: n }, (_, i) => `${positions[2 * i]} ${positions[2 * i + 1]}`)).size, n);
  const bodies = Array.from({ length: n }, (_, index) => ({ index, x: positions[2 * index] ?? 0, y: positions[2 * index + 1] ?? 0 }));
  const simulation = simulationOf(bodies, edges, new Float32Array(n).fill(8));
  for (let i = 0; i < 100; i++) simulation.alpha(0.002 ** (i / 100)).tick();
  const mean = bodies.slice(1).reduce((sum, { x, y }, i) => sum + Math.hypot(x - (bodies[i]?.x ?? 0), y - (bodies[i]?.y ?? 0)), 0) / (n - 1);
  assert.ok(mean < spacing(n) * 2.5, String(mean));
  // Self-loops and nodes without edges are no trouble.
  const alone = new Float32Array(6).fill(NaN);
  firstPlaces(alone, Uint32Array.of(1, 1), 50);
  assert.ok(alone.every((p) => Number.isFinite(p)));
});

test("a drawing's SVG keeps what data says as text", () => {
  const pen = new SvgPen('"A" & B');
  pen.label('<script>"&\u0000\ud800', 1, 2, 12, "#000", "#fff");
  pen.fillStyle = '"><x';
  pen.fillRect(0, 0, 1, 1);
  const made = pen.text(10, 10);
  assert.match(made, /&lt;script&gt;&quot;&amp;\ufffd\ufffd</);
  assert.ok(!/<script|<x|\u0000/.test(made), made);
});
