import assert from "node:assert/strict";
import { test } from "node:test";
import { arranged } from "../src/answer/captions.ts";
import { extremes, greatest, sample } from "../src/answer/choice.ts";
import { leftOut } from "../src/answer/chart.ts";
import { Rows } from "../src/answer/rows.ts";
import { statistics } from "../src/answer/statistics.ts";
import { formatted } from "../src/editor/format.ts";
import { grouped, number } from "../src/format.ts";
import { summary } from "../src/history.ts";
import { choose, namingRank } from "../src/labels.ts";
import { cleared } from "../src/losses.ts";
import { guess, refusal } from "../src/net/upload.ts";
import { kept, type Line, tree } from "../src/views/class-tree.ts";
import { looked } from "../src/views/class-view.ts";
import { lines, off, renamer, slowest, type Step, treeOf } from "../src/views/estimate.ts";
import { markdown } from "../src/views/markdown.ts";
import { wordsFor } from "../src/views/trouble.ts";

const XSD = "http://www.w3.org/2001/XMLSchema#";

test("queries are laid out, and nothing but space and the case of keywords changes", () => {
  const cases: [string, string][] = [
    ["prefix a: <http://a/> select ?x where { ?x a a:B; a:c ?d , 5 . filter(?d > 3) { ?a ?b ?c } union { ?d ?e ?f } } order by desc(?x) limit 5",
      "PREFIX a: <http://a/>\n\nSELECT ?x WHERE {\n  ?x a a:B ;\n    a:c ?d, 5 .\n  FILTER(?d > 3)\n  { ?a ?b ?c } UNION { ?d ?e ?f }\n}\nORDER BY DESC(?x)\nLIMIT 5\n"],
    ["SELECT * {?s ?p 'it''s {' # why } not\n. ?s <a>/<b>*|^<c> \"5\"^^xsd:int }", "SELECT * {\n  ?s ?p 'it''s {' # why } not\n  .\n  ?s <a>/<b>*|^<c> \"5\"^^xsd:int\n}\n"],
    ["insert data { graph <g> { <a> <b> <c> } }", "INSERT DATA {\n  GRAPH <g> { <a> <b> <c> }\n}\n"],
    ["SELECT (COUNT(*) AS ?n) { { select ?x { ?x ?p 4 } limit 1 } values (?a ?b) { (1 2) } }", "SELECT (COUNT(*) AS ?n) {\n  {\n    SELECT ?x { ?x ?p 4 }\n    LIMIT 1\n  }\n  VALUES (?a ?b) { (1 2) }\n}\n"],
  ];
  for (const [text, wanted] of cases) {
    assert.equal(formatted(text), wanted);
    assert.equal(formatted(wanted), wanted, "it is laid out already");
  }
  // Whatever is unfinished keeps all that it has.
  for (const text of ["SELECT * { ?s \"open", "}}}} {", "SELECT ((((", "# only a comment", "", "select ?x { ?x a [ ; ] . }", "a ; b . c } # x"]) {
    assert.equal(formatted(text).replace(/\s/g, "").toLowerCase(), text.replace(/\s/g, "").toLowerCase());
  }
});

const TEXT = [
  "SELECT, native, heavy: about 2.0 ms on one core", "gives ?c ?n",
  "  skip 0, take 5  (~5.0 rows, ~1.1 ms)",
  "    ?n = count of rows by ?c  (~308 rows, ~1.0 ms)",
  "      hash left join on ?c  (~94580 rows, ~951.6 µs)",
  "        explore  (~19822 rows, ~41.7 µs)",
  "           1. start: ?c from the objects of <…type>", "              keep if not ?c = 3", "              ~353 rows, ~706 ns; fewest starting points; keeps ?c",
  "           2. expand: (s inside 2) <…type> ?c", "              ~198 rows, ~41.0 µs; about 59.11 of ?s inside 2 a row",
  "        explore  (~44.2M rows, ~691 ns)",
  "           1. start: one empty row", "              ~1.0 rows, ~0 ns; keeps no column",
  "", "operator rows in",
];
const step = (name: string, rows_out: number, ...inputs: Step[]): Step => ({ name, rows_in: rows_out === 0 ? 0 : 1, rows_out, ms: 1, bytes: null, bytes_held: null, place: "cpu", inputs });

test("a plan's lines and its measured steps are one tree, numbered alike", () => {
  const tree = step("slice", 5, step("count", 0, step("left join", 40797, step("explore", 20581, step("step 1", 20581, step("step 0", 353))), step("explore", 3, step("step 0", 1)))));
  const all = lines(TEXT, tree);
  assert.deepEqual(all.map((l) => [l.depth, l.number ?? 0, l.name, l.measured?.rows_out ?? null]), [
    [0, 0, "skip 0, take 5", 5], [1, 0, "?n = count of rows by ?c", null], [2, 0, "hash left join on ?c", 40797],
    [3, 0, "explore", 20581], [4, 1, "start: ?c from the objects of <…type>", 353], [4, 2, "expand: ?s <…type> ?c", 20581],
    [3, 0, "explore", 3], [4, 1, "start: one empty row", 1],
  ]);
  assert.deepEqual(all[4]?.notes, ["keep if not ?c = 3", "fewest starting points; keeps ?c"]);
  assert.equal(all[6]?.expected, 44.2e6);
  // More than expected is far off; few rows are not, and neither is what has no count of its own.
  assert.ok((off(all[5]!) ?? 0) > 100);
  assert.equal(off(all[7]!), undefined);
  assert.equal(off(all[1]!), undefined);
  assert.ok((off(all[6]!) ?? 1) < 0.1);
  // Without measurements there is the text alone.
  assert.deepEqual(lines(TEXT, null).map((l) => l.depth), [0, 1, 2, 3, 4, 4, 3, 4]);
});

test("what a LIMIT ended is not far off", () => {
  const text = ["SELECT", "gives", "  skip 0, take 5  (~5 rows, ~1 ms)", "    explore  (~144426 rows, ~1 ms)"];
  assert.equal(off(lines(text, step("slice", 5, step("explore", 1344)))[1]!), undefined);
});

test("the best label: by the reader's languages, then by predicate", () => {
  const all = [{ predicate: 1, text: "Tree", lang: "en" }, { predicate: 1, text: "Baum", lang: "de-CH" }, { predicate: 0, text: "Gehölz", lang: "de" }, { predicate: 0, text: "T", lang: "" }, { predicate: 0, text: "arbre", lang: "fr" }];
  assert.equal(choose(all, ["de", "en"])?.text, "Gehölz");
  assert.equal(choose(all, ["en"])?.text, "Tree");
  assert.equal(choose(all, ["ja"])?.text, "T");
  assert.equal(choose([{ predicate: 0, text: "  ", lang: "" }], ["en"]), undefined);
});

test("the format of a pasted text", () => {
  for (const [text, media] of [
    ["<?xml version='1.0'?><rdf:RDF/>", "application/rdf+xml"], ["{\"@id\": \"a\"}", "application/ld+json"], ["[{\"@id\": \"a\"}]", "application/ld+json"],
    ["@prefix a: <b> .\na:x a a:y .", "text/turtle"], ["<a> <b> \"x { y }\" .", "text/turtle"], ["[] a <b> .", "text/turtle"], ["<a> <b> <c> <g> .", "application/n-quads"],
    ["<a> <b> <c> .", "text/turtle"], ["@prefix a: <b> .\na:g { a:x a:y 1 }", "application/trig"], ["GRAPH <g> { <a> <b> 1 }", "application/trig"],
  ] as const) assert.equal(guess(text), media, text);
});

test("a query is told from others by what is its own", () => {
  assert.equal(summary("PREFIX a: <b>\nPREFIX c: <d>\nSELECT ?x { ?x a c:D }"), "SELECT ?x { ?x a c:D }");
  assert.match(summary("# Planets\nSELECT ?x {}"), /^Planets · SELECT/);
  assert.equal(summary("SELECT ".repeat(50), 20).length, 20);
});

test("properties that end in name, title or label give names, whole ones first", () => {
  const all = ["http://u/lastName", "http://u/courseTitle", "http://u/name", "http://www.w3.org/2004/02/skos/core#prefLabel", "http://u/filename", "http://u#label"];
  assert.deepEqual(all.filter((iri) => namingRank(iri) < Infinity).sort((a, b) => namingRank(a) - namingRank(b)), ["http://www.w3.org/2004/02/skos/core#prefLabel", "http://u/name", "http://u#label", "http://u/courseTitle", "http://u/lastName", "http://u/filename"]);
  for (const iri of ["http://u/names", "http://u/nameOf", "http://name/", "http://u/age", ""]) assert.equal(namingRank(iri), Infinity, iri);
});

test("a table in Markdown is text, whatever the values are", () => {
  const made = markdown(["a|b"], [[{ type: "literal", value: "x|y\n<b>*z*</b>" }], [null], [{ type: "literal", value: "é", language: "fr" }]]);
  assert.equal(made, "| a\\|b |\n| --- |\n| x\\|y<br>\\<b\\>\\*z\\*\\</b\\> |\n|  |\n| é @fr |\n");
});

test("statistics of a column", () => {
  const rows = new Rows();
  rows.append("?a\t?n\n<http://e/a>\t1\n<http://e/a>\t\n\"x\"@en\t4\n_:b\t1.5\n");
  rows.finish();
  const a = statistics(rows, 0, 4, (i) => i);
  assert.deepEqual([a.iris, a.literals, a.blanks, a.distinct, a.unbound], [2, 1, 1, 3, 0]);
  assert.deepEqual(a.top[0], [{ type: "iri", value: "http://e/a" }, 2]);
  assert.deepEqual(a.languages, [["en", 1]]);
  const n = statistics(rows, 1, 4, (i) => i);
  assert.deepEqual(n.numbers, { count: 3, least: 1, most: 4, mean: 6.5 / 3, median: 1.5 });
  assert.equal(n.unbound, 1);
  const long = new Rows();
  long.append(`?a\n"${"x".repeat(400)}1"\n"${"x".repeat(400)}2"\n`);
  assert.deepEqual([statistics(long, 0, 2, (i) => i)].map(({ distinct, more }) => [distinct, more]), [[1, true]], "at least one");
  assert.equal(n.top[0]?.[0]?.type === "literal" && n.top[0][0].datatype, `${XSD}integer`);
});

test("captions lie on nothing", () => {
  const one = { width: 20, height: 10, places: [{ x: 0, y: 0 }, { x: 0, y: 12 }] };
  assert.deepEqual(arranged([one, one, one], []), [{ x: 0, y: 0 }, { x: 0, y: 12 }, undefined]);
  assert.deepEqual(arranged([one], [{ x: 0, y: 0, width: 8, height: 8 }]), [{ x: 0, y: 12 }]);
});

test("each state has words of its own", () => {
  const title = (kind: string, detail = "x", rows = 0) => wordsFor({ status: 503, kind, detail }, rows)?.title;
  assert.equal(title("timeout"), "Time limit reached");
  assert.equal(title("limit", "the query needs more memory than its limit"), "Out of memory");
  assert.equal(title("network"), "The server does not answer");
  assert.equal(title("network", "x", 5), "The answer was cut off");
  assert.equal(title("read-only", "this server is read-only; restart it"), "The server is read-only");
  assert.equal(title("read-only", "this token may read only"), undefined);
  assert.equal(title("syntax"), undefined);
});

test("a refused upload says how the rest is loaded, unless that was chosen", () => {
  const problem = { status: 400, kind: "syntax", detail: "<body>:2:5: no\n    in: x\nhelp: the parameter lenient=true skips malformed statements and lists them" };
  assert.equal(refusal(problem, false), "<body>:2:5: no\n    in: x\nTo load the rest, choose “skip statements that are malformed” and load it again.");
  assert.equal(refusal(problem, true), problem.detail);
  const other = { status: 507, kind: "limit", detail: "too much" };
  assert.equal(refusal(other, false), "too much");
});

test("classes stand below their superclasses, each of them, and circles end", () => {
  const text = ({ lines, all }: { lines: Line[]; all: number }): string => `${lines.map(({ iri, depth }) => `${">".repeat(depth)}${iri}`).join(" ")} of ${all}`;
  assert.equal(text(tree(["a", "b", "c"], [])), "a b c of 3");
  assert.equal(text(tree(["cat", "dog"], [["dog", "animal"], ["cat", "animal"], ["cat", "pet"]])), "animal >cat >dog pet >cat of 4");
  assert.equal(text(tree([], [["a", "b"], ["b", "a"], ["c", "b"]])), "a >b >>c of 3");
  assert.equal(text(tree([], [["b", "a"], ["c", "a"], ["d", "a"]], 3)), "a >b >c of 4");
  const chain = tree([], Array.from({ length: 5000 }, (_, i) => [`c${i + 1}`, `c${i}`]));
  assert.deepEqual([chain.lines.length, chain.lines.at(-1)?.depth, chain.all], [1500, 1499, 5001]);
});

test("a filter of classes leaves those that fit, and what they stand below", () => {
  const { lines } = tree(["a", "b", "c", "d", "e", "f"], [["b", "a"], ["c", "b"], ["d", "a"], ["f", "e"]]);
  const text = (wanted: string) => kept(lines, (i) => wanted.includes(lines[i]?.iri ?? "")).map((keeps, i) => (keeps ? lines[i]?.iri : "")).join("");
  assert.deepEqual(["", "a", "c", "d", "bf", "ce", "f", "cdx"].map(text), ["", "a", "abc", "ad", "abef", "abce", "ef", "abcd"]);
});

test("of the classes' connections it is said what was looked at", () => {
  assert.match(looked(30, 24, false), /^Of the 24 largest classes, .* 24 of 24 took too long and are left out\.$/);
  assert.match(looked(3, 1, false), /^Of the classes, .* 1 of 3 took too long and are left out\. None of the others is connected\.$/);
  assert.match(looked(3, 0, false), /each\. No class is connected to another\.$/);
  assert.match(looked(3, 0, true), /1,000 instances and 20 connections each\. Nodes are/);
});

test("what an update clears", () => {
  for (const [text, all] of [
    ["DROP ALL", ["ALL"]], ["clear silent graph <http://e/g>", ["<http://e/g>"]], ["PREFIX e: <http://e/> DROP GRAPH e:g; CLEAR DEFAULT", ["e:g", "DEFAULT"]],
    ["MOVE GRAPH <a> TO <b>", ["<b>"]], ["COPY SILENT DEFAULT TO GRAPH <b>", ["<b>"]], ["COPY <a> TO DEFAULT", ["DEFAULT"]], ["ADD <a> TO <b>", []],
    ["INSERT DATA { <a> <b> 'DROP ALL' } # CLEAR ALL", []], ["DROP", []], ["MOVE", []],
  ] as const) assert.deepEqual(cleared(text), all, text);
});

test("a chart draws the greatest values, the greatest first, or the least and the greatest of each stretch in their order", () => {
  assert.deepEqual([...greatest(Float64Array.of(1, 5, NaN, 9, 5, 2), 3)], [3, 1, 4]);
  assert.deepEqual([...greatest(Float64Array.of(NaN, 1, -Infinity), 5)], [1, 2]);
  assert.deepEqual([...extremes(Float64Array.of(1, 9, 2, 3, 3, 4, NaN, NaN), 4)], [0, 1, 4, 5]);
});

test("a chart says which rows it leaves out", () => {
  const data = (values: number[], across = values.map((_, i) => i)) => ({ values: [Float64Array.from(values)], across: Float64Array.from(across), texts: [values.map(String)], names: ["n"] });
  const forty = Array.from({ length: 40 }, (_, i) => 100 - i);
  assert.deepEqual(leftOut("bars", data([1, NaN]), 2), []);
  assert.deepEqual(leftOut("bars", data(forty), 1000), ["The 40 rows with the greatest n of 1,000; the others have 61 or less, or no number."]);
  assert.deepEqual(leftOut("bars", data([3, 2]), 1000), ["The 2 rows with the greatest n of 1,000; the others have no number."]);
  assert.deepEqual(leftOut("points", data([1, 2]), 2), []);
  assert.deepEqual(leftOut("points", data([1, NaN, 2, Infinity, 3], [1, 2, NaN, 4, 5]), 5), ["2 of 5 rows are drawn; rows without a finite number are left out."]);
  assert.deepEqual(leftOut("lines", data([1, 2]), 9), ["2 of 9 rows are drawn, with the least and the greatest n of each stretch; rows without a finite number are left out."]);
});

test("numbers are written with all digits", () => {
  assert.deepEqual([1234567, 0.1 + 0.2, -1234.5, 0, 1e15, 1.25e-7].map(number), ["1,234,567", "0.30000000000000004", "-1,234.5", "0", "1e+15", "1.25e-7"]);
  assert.deepEqual(["1234567", "12345678901234567890", "-5", "3.14159265358979323846", "1.0E6", "INF"].map(grouped), ["1,234,567", "12,345,678,901,234,567,890", "-5", "3.14159265358979323846", "1.0E6", "INF"]);
});

test("a sample of rows has values of columns that are bound late", () => {
  const rows = (n: number, cell: (i: number) => string[]) => sample(cell, n, 2);
  assert.deepEqual(rows(50, () => ["a", ""]).length, 50);
  const late = rows(100_000, (i) => ["a", i >= 70_000 ? "b" : ""]);
  assert.deepEqual(late, [...Array(100).keys(), ...Array.from({ length: 10 }, (_, i) => 70_000 + i)]);
  let read = 0;
  sample(() => { read++; return ["a", "b"]; }, 100_000, 2);
  assert.equal(read, 100, "no row is read when all is known");
});

test("a plan's slowest line is told by its own time, and its steps stand one after the other", () => {
  const step = (name: string, ms: number, inputs: Step[] = []): Step => ({ name, rows_in: 1, rows_out: 1, ms, bytes: null, bytes_held: null, place: "cpu", inputs });
  const text = [
    "SELECT, native, light: about 1 µs on one core", "  each row (OPTIONAL)  (~2 rows, ~1 µs)", "    go on  (~2 rows, ~1 µs)", "       1. restrict: ?a", "       2. expand: ?a <…advisor> ?b",
    "      values ?x: 1 rows  (~1 rows, ~1 ns)", "    explore  (~2 rows, ~1 ns)",
  ];
  const tree = step("apply", 3, [step("explore on", 10, [step("step 1", 6, [step("step 0", 3)]), step("values", 0)]), step("explore", 2)]);
  const all = lines(text, tree);
  assert.deepEqual(all.map(({ own }) => own), [3, 1, 3, 6, 0, 2]);
  const slow = slowest(all);
  assert.equal(slow?.line.number, 2);
  assert.equal(Math.round((slow?.part ?? 0) * 100), 40);
  const root = treeOf(all);
  assert.deepEqual(root?.inputs.map(({ line }) => line.name), ["go on", "explore"]);
  const chain = [];
  for (let node = root?.inputs[0]; node; node = node.inputs[0]) chain.push(node.line.number ?? node.line.name);
  assert.deepEqual(chain, ["go on", 2, 1, "values ?x: 1 rows"]);
  assert.equal(treeOf([]), undefined);
  assert.equal(slowest([]), undefined);
});

test("a plan's IRIs get prefixes where it is clear which IRI is meant", () => {
  const shown = (iri: string) => iri.replace(/^http:\/\/(?:e|f)\//, "e:");
  const rename = renamer([["http://e/advisor", "http://e/two", "http://f/two"], ["http://e/name", "http://x/advisor", "http://nowhere/other"]], shown);
  assert.equal(rename("expand: ?s <…advisor> ?a"), "expand: ?s e:advisor ?a");
  assert.equal(rename("<…name> <…two> <…other> <…unknown>"), "e:name <…two> <…other> <…unknown>");
  assert.equal(rename("<http://e/advisor> and ?a < ?b"), "e:advisor and ?a < ?b");
});
