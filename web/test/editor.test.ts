import assert from "node:assert/strict";
import { test } from "node:test";
import { about, context, suggestionQuery } from "../src/editor/context.ts";
import { unitAt, unitOf } from "../src/editor/places.ts";
import { formOf } from "../src/query-form.ts";

/** The context at `¦`. */
function at(text: string) {
  return context(text.replace("¦", ""), text.indexOf("¦"));
}

function slot(text: string): string {
  const c = at(text);
  return c ? [c.slot, c.slot === "predicate" || c.slot === "object" ? c.subject : undefined, c.slot === "object" ? c.predicate : undefined].filter((x) => x !== undefined).join(" ") : "null";
}

test("bytes and columns are places in the text", () => {
  const text = "SELECT 'ä😀' ?x\nWHERE";
  for (const [byte, unit] of [[0, 0], [8, 8], [10, 9], [14, 11], [15, 12], [99, text.length]] as const) assert.equal(unitAt(text, byte), unit, `${byte}`);
  assert.equal(unitOf(text, 2, 1), text.indexOf("WHERE"));
  assert.equal(unitOf(text, 1, 11), text.indexOf("'", 9));
  assert.equal(unitOf(text, 9, 9), text.length);
});

test("the slot that is being written", () => {
  for (const [text, expected] of [
    ["¦", "other"],
    ["SEL¦", "other"],
    ["SELECT * { ¦", "subject"],
    ["SELECT * { ?x ¦", "predicate ?x"],
    ["SELECT * { ?x foaf:na¦", "predicate ?x"],
    ["SELECT * { ?x foaf:name ¦", "object ?x foaf:name"],
    ["SELECT * { ?x a foaf:P¦ }", "object ?x a"],
    ["SELECT * { ?x a foaf:Person . ¦", "subject"],
    ["SELECT * { ?x a foaf:Person ; ¦", "predicate ?x"],
    ["SELECT * { ?x a foaf:Person , ¦", "object ?x a"],
    ["SELECT * { ?x ^foaf:knows/¦", "predicate ?x"],
    ["SELECT * { ?x foaf:knows/foaf:name ¦", "object ?x foaf:knows/foaf:name"],
    ["SELECT * { ?x foaf:knows* ¦", "object ?x foaf:knows*"],
    ["SELECT * { ?x (a|b) ¦", "other"],
    ["SELECT * { ?x (foaf:a|foaf:b)+ ¦", "object ?x (foaf:a|foaf:b)+"],
    ["SELECT * { ?x a ?c FILTER(?c = ¦", "other"],
    ["SELECT * { ?x a ?c FILTER(STRLEN(?c) > 3) ¦", "subject"],
    ["SELECT * { ?x a ?c FILTER(STRLEN(?c) > 3) ?x ¦", "predicate ?x"],
    ["SELECT * { ?x a ?c OPTIONAL { ?x ¦", "predicate ?x"],
    ["SELECT * { ?x a ?c OPTIONAL { ?x ?p ?o } ?y ¦", "predicate ?y"],
    ["SELECT * { BIND(1 AS ?z) ?y ¦", "predicate ?y"],
    ["SELECT * { VALUES ?z { 1 2 } ?y ¦", "predicate ?y"],
    ["SELECT * { GRAPH ?g { ?x ¦", "predicate ?x"],
    ["SELECT * { SERVICE <http://e/> { ?x ¦", "null"],
    ["SELECT * { SERVICE <http://e/> { ?x ?y ?z } ?x ¦", "predicate ?x"],
    ["SELECT * { ?x foaf:name \"¦", "null"],
    ["SELECT * { # ?x ¦", "null"],
    ["SELECT * { ?x foaf:name \"a\"@en ; ¦", "predicate ?x"],
    ["SELECT * { ?x foaf:age \"1\"^^xsd:int ; ¦", "predicate ?x"],
    ["SELECT * { ?x foaf:knows [ ¦", "predicate"],
    ["SELECT * { ?x foaf:knows [ a foaf:Person ] ; ¦", "predicate ?x"],
    ["SELECT * { ?x <http://e/p> ¦", "object ?x <http://e/p>"],
    ["SELECT * { ?x <http://e¦", "predicate ?x"],
    ["SELECT * { { ?x a ?y } UNION { ?z ¦", "predicate ?z"],
    ["SELECT * { ?x a ?y } ORDER BY ¦", "other"],
    ["INSERT DATA { <a:a> ¦", "predicate <a:a>"],
    ["SELECT * { ?x } } } ¦", "other"],
  ] as const) assert.equal(slot(text), expected, text);
});

test("only what is said of the variable is asked", () => {
  const c = at("SELECT * { ?x a ub:Student ; ub:advisor ?y . ?y ub:worksFor ?d . ?other a ub:Course . ?x ¦");
  assert.ok(c);
  assert.deepEqual(about("?x", c.patterns).map((p) => [p.subject, p.predicate, p.object].join(" ")), ["?x a ub:Student", "?x ub:advisor ?y", "?y ub:worksFor ?d"]);
});

test("queries for suggestions", () => {
  const query = (text: string) => {
    const c = at(text);
    return c && suggestionQuery(c, [["ub", "http://u/"]]);
  };
  assert.equal(
    query("SELECT * { ?x a ub:Student . ?x ¦"),
    "PREFIX ub: <http://u/>\nSELECT ?_p (COUNT(*) AS ?_n) WHERE { { SELECT ?x WHERE { ?x a ub:Student . } LIMIT 1000 } ?x ?_p ?_o . } GROUP BY ?_p ORDER BY DESC(?_n) LIMIT 100",
  );
  assert.match(query("SELECT * { ?x a ub:Student . ?x ub:advisor ¦") ?? "", /\?x ub:advisor \?_o \. } GROUP BY \?_o/);
  assert.match(query("SELECT * { GRAPH <g:g> { ?x a ub:Student . ?x ¦") ?? "", /GRAPH <g:g> \{ \?x a ub:Student \. \} } LIMIT 1000 } GRAPH <g:g> \{ \?x \?_p \?_o \. }/);
  assert.equal(query("SELECT * { ?x ¦"), null);
  assert.match(query("SELECT * { <u:u> ¦") ?? "", /\{ <u:u> \?_p \?_o \. }/);
});

test("the kind of a request", () => {
  for (const [text, form] of [
    ["# INSERT\nPREFIX insert: <http://delete/> SELECT * {}", "select"],
    ["base <http://e/> prefix a: <b> construct where {}", "construct"],
    ["ASK {}", "ask"], ["DESCRIBE <a>", "describe"], ["insert data {}", "update"], ["WITH <g> DELETE {} WHERE {}", "update"], ["", "unknown"], ["nonsense SELECT", "unknown"],
  ] as const) assert.equal(formOf(text), form, text);
});
