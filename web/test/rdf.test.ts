import assert from "node:assert/strict";
import { test } from "node:test";
import { description } from "../src/rdf/description.ts";
import { triples } from "../src/rdf/ntriples.ts";
import { declaration, declared, Prefixes } from "../src/rdf/prefixes.ts";
import { iriText, isWeb, numberOf, parseTerm, visible, written } from "../src/rdf/term.ts";

test("cells of TSV are terms", () => {
  assert.equal(parseTerm(""), null);
  assert.deepEqual(parseTerm("<http://e/a\\u00e4>"), { type: "iri", value: "http://e/aä" });
  assert.deepEqual(parseTerm("_:b1"), { type: "blank", value: "b1" });
  assert.deepEqual(parseTerm('"a\\tb\\n\\\\\\"c\\""@en-GB'), { type: "literal", value: 'a\tb\n\\"c"', language: "en-GB" });
  assert.deepEqual(parseTerm('"x"^^<http://e/d>'), { type: "literal", value: "x", datatype: "http://e/d" });
  assert.deepEqual(parseTerm('"\\U0001F600"'), { type: "literal", value: "😀" });
  for (const [cell, type] of [["7", "integer"], ["-1.5", "decimal"], ["1e3", "double"], ["true", "boolean"]] as const) {
    assert.deepEqual(parseTerm(cell), { type: "literal", value: cell, datatype: `http://www.w3.org/2001/XMLSchema#${type}` });
  }
  assert.equal(parseTerm('<<( <a:a> <a:b> "x" )>>')?.type, "triple");
});

test("long literals are cut and say how long they are", () => {
  const long = parseTerm(`"${"x".repeat(1_000_000)}"@en`, 300);
  assert.equal(long?.value.length, 300);
  assert.equal(long?.type === "literal" && long.cut, 1_000_000);
  assert.equal(long?.type === "literal" && long.language, "en");
});

test("what is written is read as the same term", () => {
  for (const cell of ['"a\\tb\\n\\\\\\"c\\""@en', '"x"^^<http://e/d>', "<http://e/a>", '"\\u0001\\u0008"']) {
    const term = parseTerm(cell);
    assert.ok(term);
    assert.deepEqual(parseTerm(written(term)), term);
  }
});

test("no IRI ends its own brackets", () => {
  assert.equal(iriText("http://e/> . ?s ?p ?o } DROP ALL #"), "<http://e/\\u003e\\u0020.\\u0020?s\\u0020?p\\u0020?o\\u0020\\u007d\\u0020DROP\\u0020ALL\\u0020#>");
});

test("only http and https are addresses of the web", () => {
  for (const iri of ["http://e.org/a", "HTTPS://e.org"]) assert.ok(isWeb(iri), iri);
  for (const iri of ["javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "http:javascript", "http:///x", "urn:a", "java\nscript:x", "vbscript:x", "file:///etc/passwd"]) assert.ok(!isWeb(iri), iri);
});

test("characters that turn the writing around are seen", () => {
  assert.equal(visible("a\u202eb\u200fc\u0007"), "a\\u202Eb\\u200Fc\\u0007");
  assert.equal(visible("ä 漢字 שלום"), "ä 漢字 שלום");
});

test("numbers", () => {
  const x = "http://www.w3.org/2001/XMLSchema#";
  assert.equal(numberOf(parseTerm(`"INF"^^<${x}double>`)), Infinity);
  assert.equal(numberOf(parseTerm(`"12"^^<${x}int>`)), 12);
  assert.equal(numberOf(parseTerm('"12"')), undefined);
  assert.equal(numberOf(parseTerm(`"x"^^<${x}int>`)), undefined);
});

test("IRIs get short names that SPARQL reads", () => {
  const p = new Prefixes([["e", "http://e/"], ["ed", "http://e/d#"], ["f", "http://f/x"]]);
  assert.equal(p.short("http://e/d#a"), "ed:a");
  assert.equal(p.short("http://e/a"), "e:a");
  assert.equal(p.short("http://e/a/b"), undefined);
  assert.equal(p.short("http://e/"), "e:");
  assert.equal(p.short("http://e/a."), undefined);
  assert.equal(p.short("http://g/a"), undefined);
  assert.equal(p.short("http://e/a\u202eb"), undefined);
  assert.equal(p.shown("http://e/a\u202eb"), "http://e/a\\u202Eb");
  assert.equal(p.full("ed:a"), "http://e/d#a");
  p.learn([["own", "http://e/"]]);
  assert.equal(p.short("http://e/a"), "own:a");
  p.learn([["own", "http://other/"]]);
  assert.equal(p.short("http://other/a"), "own:a");
  assert.equal(p.short("http://e/a"), undefined);
});

test("the parser's own list of prefixes is in the bundle", () => {
  assert.equal(new Prefixes().short("http://xmlns.com/foaf/0.1/name"), "foaf:name");
});

test("namespaces without a prefix get one of their own words", () => {
  const p = new Prefixes([]);
  p.coin("http://swat.cse.lehigh.edu/onto/univ-bench.owl#advisor");
  assert.equal(p.short("http://swat.cse.lehigh.edu/onto/univ-bench.owl#name"), "univ-bench:name");
  p.coin("http://other/univ-bench#x");
  assert.equal(p.short("http://other/univ-bench#x"), "univ-bench2:x");
  p.coin("urn:uuid:1");
  assert.equal(p.short("urn:uuid:1"), undefined);
  p.coin("http://e/ a> <b/x");
  assert.equal(p.all.size, 2);
});

test("namespaces of instances get prefixes that are known as made up", () => {
  const p = new Prefixes([["e", "http://e/"]]);
  p.coinFor(["http://www.Department0.University0.edu/Student1", "http://www.Department12.University0.edu/Lecturer3", "http://one.example.org/deep/once/x", "http://two.example.org/deep/both/x", "http://two.example.org/deep/both/y", "http://e/z", "nothing", "urn:a:b", "http://127.0.0.1:80/x", "http://z/\u202Ex/y"]);
  assert.equal(p.short("http://www.Department0.University0.edu/Student1"), "department0.university0:Student1");
  assert.equal(p.short("http://www.Department12.University0.edu/Lecturer3"), "department12.university0:Lecturer3");
  // A namespace with a single resource keeps it whole, unless it is a host.
  assert.equal(p.short("http://one.example.org/deep/once/x"), undefined);
  assert.equal(p.short("http://two.example.org/deep/both/x"), "both:x");
  assert.equal(p.short("http://127.0.0.1:80/x"), "ns:x");
  assert.deepEqual(["e", "both", "ns", "department0.university0", "unknown"].map((name) => p.isMade(name)), [false, true, true, true, false]);
  p.coinFor(["http://other/both/x", "http://other/both/y"]);
  assert.equal(p.short("http://other/both/x"), "both2:x");
  p.coinFor(["http://www.department0.university0.edu/x"]);
  assert.equal(p.short("http://www.department0.university0.edu/x"), "department0.university0-2:x");
  // What the server learns in the meantime is no longer made up.
  p.learn([["both", "http://two.example.org/deep/both/"]]);
  assert.equal(p.isMade("both"), false);
  p.coinFor(Array.from({ length: 5000 }, (_, i) => `http://h${i}.org/x`));
  assert.ok(p.all.size < 2100);
});

test("declarations are found, and new ones put behind them", () => {
  const text = "# PREFIX no: <http://no/> is a remark\nPREFIX a: <http://a/>\nprefix : <http://b/>\nSELECT * {}";
  assert.deepEqual(declared(text).filter(([n]) => n !== "no"), [["a", "http://a/"], ["", "http://b/"]]);
  const { at, insert } = declaration(text, "c", "http://c/");
  assert.equal(text.slice(0, at) + insert + text.slice(at), text.replace("SELECT", "PREFIX c: <http://c/>\nSELECT"));
  assert.deepEqual(declaration("SELECT * {}", "c", "http://c/"), { at: 0, insert: "PREFIX c: <http://c/>\n" });
});

test("the service description", () => {
  const V = "http://rdfs.org/ns/void#";
  const text = [
    `_:service <http://www.w3.org/ns/sparql-service-description#supportedLanguage> <http://www.w3.org/ns/sparql-service-description#SPARQL11Update> .`,
    `_:dataset <${V}triples> "12"^^<http://www.w3.org/2001/XMLSchema#integer> .`,
    `_:p0 <${V}property> <http://e/rare> .`, `_:p0 <${V}triples> "2"^^<http://www.w3.org/2001/XMLSchema#integer> .`,
    `_:p1 <${V}property> <http://e/p> .`, `_:p1 <${V}triples> "10"^^<http://www.w3.org/2001/XMLSchema#integer> .`,
    `_:c0 <${V}class> <http://e/C> .`, `_:c0 <${V}entities> "3"^^<http://www.w3.org/2001/XMLSchema#integer> .`,
  ].join("\n");
  const about = description(text);
  assert.equal(about.triples, 12);
  assert.ok(about.writable);
  assert.deepEqual(about.predicates, [{ iri: "http://e/p", count: 10 }, { iri: "http://e/rare", count: 2 }]);
  assert.deepEqual(about.classList, [{ iri: "http://e/C", count: 3 }]);
  assert.equal(triples('<a:a> <a:b> "x . y" .\n')[0]?.[2].value, "x . y");
});
