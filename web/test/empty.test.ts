import assert from "node:assert/strict";
import { test } from "node:test";
import { countsNothing, placed, type Reason } from "../src/views/empty.ts";

test("a lone aggregate over nothing is an empty answer", () => {
  const number = (value: string) => ({ type: "literal" as const, value, datatype: "http://www.w3.org/2001/XMLSchema#integer" });
  assert.equal(countsNothing(1, [[number("0")]]), true);
  assert.equal(countsNothing(1, [[null]]), true);
  assert.equal(countsNothing(1, [[number("5")]]), false);
  assert.equal(countsNothing(2, [[number("0"), number("0")]]), false);
  assert.equal(countsNothing(1, []), false);
  assert.equal(countsNothing(1, [[{ type: "iri", value: "http://e/0" }]]), false);
});

test("reasons with a place are underlined", () => {
  const whole: Reason = { kind: "empty-default-graph", message: "the default graph is empty", suggestions: [] };
  const one: Reason = { kind: "unknown-term", message: "no", suggestions: [], start: 3, end: 5, line: 1, column: 4 };
  assert.deepEqual(placed([whole, one]), [one]);
});
