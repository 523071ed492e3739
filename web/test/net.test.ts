import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { bytes, milliseconds } from "../src/format.ts";
import { DATASET_FORMATS, GRAPH_STORE_FORMATS, isDataset, mediaOf } from "../src/net/formats.ts";
import { problemOf, wantsToken } from "../src/net/http.ts";
import { metrics } from "../src/net/metrics.ts";
import { rows } from "../src/net/select.ts";
import { curl, python, quoted } from "../src/net/snippets.ts";
import { fileName } from "../src/views/download.ts";
import { expected } from "../src/views/estimate.ts";

const AWKWARD = ["SELECT * { ?s ?p 'it''s' }", `a"b\\c\n"""x""" 'y' $HOME \`id\` \\`, "ends with a quote\n\"", "tab\there\r\n漢😀"];

test("a shell reads the query that was copied", () => {
  for (const text of AWKWARD) assert.equal(execFileSync("sh", ["-c", `printf %s ${quoted(text)}`], { encoding: "utf8" }), text);
  assert.match(curl("http://h/query", "ASK {}", { hasToken: false, isUpdate: false }), /^curl 'http:\/\/h\/query' .*--data-binary 'ASK \{\}'$/);
  assert.match(curl("http://h/query", "ASK {}", { hasToken: true, isUpdate: false }), /"Authorization: Bearer \$JINDOU_TOKEN"/);
});

test("an update that was copied is sent as one", () => {
  const about = { hasToken: false, isUpdate: true };
  assert.match(curl("http://h/update", "CLEAR ALL", about), /Content-Type: application\/sparql-update/);
  assert.match(python("http://h/update", "CLEAR ALL", about), /"application\/sparql-update"[^]*answer\.read/);
  assert.doesNotMatch(python("http://h/update", "CLEAR ALL", about), /csv/);
});

test("Python reads the query that was copied", (t) => {
  try {
    execFileSync("python3", ["-c", ""]);
  } catch {
    t.diagnostic("no python3 here: its part was left out");
    return;
  }
  for (const text of AWKWARD) {
    const program = python("http://h/query", text, { hasToken: true, isUpdate: false }).split("\nrequest =")[0] ?? "";
    const made = execFileSync("python3", ["-c", `${program}\nimport sys\nsys.stdout.buffer.write(query.encode())`], { encoding: "utf8" });
    assert.equal(made, text);
  }
});

test("problems", async () => {
  const made = (status: number, body: string, type: string) => problemOf(new Response(body, { status, headers: { "content-type": type } }));
  const document = { type: "urn:jindou:problem:syntax", detail: "wrong", line: 2, column: 3, faults: [] };
  assert.deepEqual(await made(400, JSON.stringify(document), "application/problem+json"), { status: 400, kind: "syntax", detail: "wrong", line: 2, column: 3, faults: [] });
  assert.equal((await made(502, "<h1>proxy</h1>", "text/html")).detail, "<h1>proxy</h1>");
  assert.equal((await made(500, "{", "application/json")).detail, "{");
  assert.ok(wantsToken({ status: 401, kind: "token", detail: "" }));
  assert.ok(wantsToken({ status: 403, kind: "read-only", detail: "" }));
  assert.ok(!wantsToken({ status: 403, kind: "origin", detail: "" }));
});

test("files by their names", () => {
  assert.equal(mediaOf("A.TTL"), "text/turtle");
  assert.equal(mediaOf("a.nq.gz"), "application/n-quads");
  assert.equal(mediaOf("a.b.jsonld"), "application/ld+json");
  assert.equal(mediaOf("a.gz"), undefined);
  assert.equal(mediaOf("a"), undefined);
  assert.ok(isDataset("application/trig") && !isDataset("text/turtle"));
});

test("small tables, metrics, numbers, plans", () => {
  assert.deepEqual(rows("?a\t?b\n<x:y>\t1\n"), [[{ type: "iri", value: "x:y" }, { type: "literal", value: "1", datatype: "http://www.w3.org/2001/XMLSchema#integer" }]]);
  const of = metrics('# HELP x\nx{class="a",outcome="ok"} 2\nx{class="b",outcome="ok"} 3\nx{outcome="no"} 9\ny 1.5e3\n');
  assert.deepEqual([of("x", 'outcome="ok"'), of("x"), of("y"), of("z")], [5, 14, 1500, 0]);
  assert.deepEqual([bytes(10), bytes(2048), bytes(5 << 20)], ["10 B", "2.0 KiB", "5.0 MiB"]);
  assert.deepEqual([milliseconds(0.25), milliseconds(12.4), milliseconds(1500), milliseconds(150_000)], ["250 µs", "12 ms", "1.50 s", "2 min 30 s"]);
  assert.deepEqual(expected(["a", "b", "", "operator"]), ["a", "b"]);
});

test("files are called by the end of an IRI or of a title, whatever is in it", () => {
  assert.equal(fileName("http://example.org/systems/Mars", "graph"), "Mars");
  assert.equal(fileName("http://example.org/systems/Mars/", "graph"), "Mars");
  assert.equal(fileName("http://example.org/v#", "graph"), "v");
  assert.equal(fileName("urn:uuid:12-34", "graph"), "12-34");
  assert.equal(fileName("http://e/Größe 1", "graph"), "Größe_1");
  assert.equal(fileName("http://e/..", "graph"), "graph");
  assert.equal(fileName("", "store"), "store");
  assert.equal(fileName(`http://e/${"x".repeat(500)}`, "graph").length, 80);
});

test("one graph is downloaded in formats of triples, the whole store in those that say the graph", () => {
  assert.deepEqual(GRAPH_STORE_FORMATS.map((f) => f.name), ["ttl", "nt", "jsonld", "rdf"]);
  assert.deepEqual(DATASET_FORMATS.map((f) => f.name), ["nq", "trig", "jsonld"]);
});
