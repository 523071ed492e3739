import assert from "node:assert/strict";
import { test } from "node:test";
import { Rows } from "../src/answer/rows.ts";
import { ticks } from "../src/answer/ticks.ts";

/** The same text in pieces of every length up to 7, and whole. */
function* pieces(text: string): Generator<Rows> {
  for (const length of [1, 2, 3, 5, 7, text.length]) {
    const rows = new Rows();
    for (let at = 0; at < text.length; at += length) rows.append(text.slice(at, at + length));
    rows.append("");
    rows.finish();
    yield rows;
  }
}

test("rows are the same however the text comes", () => {
  const text = '?a\t?b\n<http://e/1>\t"x"\n\t2\n"ä\\n"@de\t\n';
  for (const rows of pieces(text)) {
    assert.deepEqual(rows.columns, ["a", "b"]);
    assert.equal(rows.count, 3);
    assert.deepEqual([0, 1, 2].map((i) => rows.cells(i)), [["<http://e/1>", '"x"'], ["", "2"], ['"ä\\n"@de', ""]]);
  }
});

test("a single unbound variable is an empty line, and still a row", () => {
  for (const rows of pieces("?a\n\n\n")) assert.equal(rows.count, 2);
});

test("ASK, no rows, no columns", () => {
  for (const rows of pieces("true\n")) assert.deepEqual([rows.truth, rows.count], [true, 0]);
  for (const rows of pieces("?a\n")) assert.deepEqual([rows.truth, rows.count, rows.columns], [undefined, 0, ["a"]]);
});

test("a filter finds rows whatever their case, in order and once", () => {
  const text = "?a\n" + Array.from({ length: 100 }, (_, i) => `"Row ${i} row."\n`).join("");
  for (const rows of pieces(text)) {
    assert.equal(rows.matching(["ROW"]).length, 100);
    assert.deepEqual([...rows.matching(["w 7"])], [7, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79]);
    assert.deepEqual([...rows.matching(["row 3 ", "row 5 "])], [3, 5]);
    assert.deepEqual([...rows.matching(["."])].length, 100);
    assert.equal(rows.matching(["?a"]).length, 0);
    assert.equal(rows.matching(["(x"]).length, 0);
  }
});

test("sorting: kinds apart, numbers as numbers, equal ones as they came", () => {
  const cells = ['"b"', "10", "", "<http://e/a>", "9", "_:x", '"a"', "1e1", "9.5"];
  for (const rows of pieces("?a\n" + cells.map((c) => `${c}\n`).join(""))) {
    const all = Uint32Array.from(cells, (_, i) => i);
    const shown = (descending: boolean) => [...rows.sorted(all, { column: 0, descending })].map((i) => cells[i]);
    assert.deepEqual(shown(false), ["", "_:x", "<http://e/a>", "9", "9.5", "10", "1e1", '"a"', '"b"']);
    assert.deepEqual(shown(true), ['"b"', '"a"', "10", "1e1", "9.5", "9", "<http://e/a>", "_:x", ""]);
    assert.deepEqual([...rows.numbers(0, all)].map(String), ["NaN", "10", "NaN", "NaN", "9", "NaN", "NaN", "10", "9.5"]);
  }
});

test("a million rows are taken, filtered and sorted in seconds", () => {
  const rows = new Rows();
  rows.append("?s\t?n\n");
  for (let i = 0; i < 1000; i++) {
    let chunk = "";
    for (let j = 0; j < 1000; j++) chunk += `<http://e/s${(i * 1000 + j) ^ 0x5555}>\t${(i * 7919 + j * 104729) % 1_000_003}\n`;
    rows.append(chunk);
  }
  assert.equal(rows.count, 1_000_000);
  const started = performance.now();
  assert.equal(rows.matching(["s99999>"]).length, 1);
  const all = Uint32Array.from({ length: rows.count }, (_, i) => i);
  const sorted = rows.sorted(all, { column: 1, descending: false });
  const numbers = rows.numbers(1, sorted);
  for (let i = 1; i < numbers.length; i++) assert.ok((numbers[i - 1] ?? 0) <= (numbers[i] ?? 0));
  assert.ok(performance.now() - started < 20_000);
});

test("axes have round numbers around their values", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0.13, 0.97, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  for (const [a, b] of [[5, 5], [-3, -3], [0, 0], [-1e9, 1e12]] as const) {
    const t = ticks(a, b, 6);
    assert.ok((t[0] ?? NaN) <= a && (t.at(-1) ?? NaN) >= b && t.length < 15, `${a} ${b}: ${t}`);
  }
  assert.deepEqual(ticks(Infinity, -Infinity, 5), [0, 1]);
});
