import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { FUNCTIONS } from "jindou:functions";
import { coined, KEYWORDS } from "../src/editor/complete.ts";
import { unitAt, unitOf } from "../src/editor/places.ts";
import { isCode } from "../src/editor/tokens.ts";
import { Prefixes } from "../src/rdf/prefixes.ts";
import { formOf } from "../src/query-form.ts";

test("bytes and columns are places in the text", () => {
  const text = "SELECT 'ä😀' ?x\nWHERE";
  for (const [byte, unit] of [[0, 0], [8, 8], [10, 9], [14, 11], [15, 12], [99, text.length]] as const) assert.equal(unitAt(text, byte), unit, `${byte}`);
  assert.equal(unitOf(text, 2, 1), text.indexOf("WHERE"));
  assert.equal(unitOf(text, 1, 11), text.indexOf("'", 9));
  assert.equal(unitOf(text, 9, 9), text.length);
});

test("nothing is offered inside of strings and comments", () => {
  for (const [text, expected] of [
    ["", true], ["SELECT * { ?x ", true], ["# ?x", false], ["# ?x\n", true], ["?x a \"b", false], ["?x a \"b\"", true], ["?x a \"\"\"b\nc ", false],
  ] as const) assert.equal(isCode(text, text.length), expected, text);
});

test("names with prefixes that the page made up are told by their IRIs", () => {
  const names = new Prefixes([["ub", "http://u#"]]);
  assert.deepEqual(coined("SELECT * { ?x a ub:Stu", names, []), { from: 16, iri: "http://u#Stu" });
  assert.deepEqual(coined("SELECT * { ?x ^ub:", names, []), { from: 15, iri: "http://u#" });
  assert.equal(coined("SELECT * { ?x a ub:Stu", names, [["ub", "http://other#"]]), undefined);
  assert.equal(coined("SELECT * { ?x a nope:Stu", names, []), undefined);
  assert.equal(coined("SELECT * { ?x a <http://u", names, []), undefined);
});

test("functions are those of the reference, and not kept by hand", async () => {
  // The tests are run in web/.
  const reference = await readFile("../docs/functions.md", "utf8");
  const names = reference.split("\n").filter((line) => line.startsWith("### ")).flatMap((line) => line.slice(4).split(", "));
  assert.deepEqual(FUNCTIONS, names);
  for (const name of ["STR", "isURI", "STRLANGDIR", "hasLANG", "TRIPLE"]) assert.ok(FUNCTIONS.includes(name), name);
  const known = new Set(FUNCTIONS.map((name) => name.toUpperCase()));
  assert.deepEqual(KEYWORDS.filter((word) => known.has(word.toUpperCase())), []);
});

test("the kind of a request", () => {
  for (const [text, form] of [
    ["# INSERT\nPREFIX insert: <http://delete/> SELECT * {}", "select"],
    ["base <http://e/> prefix a: <b> construct where {}", "construct"],
    ["ASK {}", "ask"], ["DESCRIBE <a>", "describe"], ["insert data {}", "update"], ["WITH <g> DELETE {} WHERE {}", "update"], ["", "unknown"], ["nonsense SELECT", "unknown"],
  ] as const) assert.equal(formOf(text), form, text);
});
