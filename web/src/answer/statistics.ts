// Statistics of a column.

import { numberOf, parseTerm } from "../rdf/term.ts";
import type { Statistics } from "./protocol.ts";
import type { Rows } from "./rows.ts";

/** Different values that are counted at most. */
const DISTINCT = 500_000;
/** Frequent values that are listed. */
const TOP = 10;
/** Values are compared by this many characters at their beginning. */
const KEY = 300;

export function statistics(rows: Rows, column: number, shown: number, rowAt: (i: number) => number): Statistics {
  const times = new Map<string, number>();
  const languages = new Map<string, number>();
  const numbers: number[] = [];
  const made: Statistics = { rows: shown, unbound: 0, iris: 0, blanks: 0, literals: 0, distinct: 0, more: false, numbers: undefined, languages: [], longest: 0, top: [] };
  for (let i = 0; i < shown; i++) {
    const cell = rows.cells(rowAt(i))[column] ?? "";
    if (cell === "") {
      made.unbound++;
      continue;
    }
    const key = cell.slice(0, KEY);
    const before = times.get(key);
    if (before !== undefined) times.set(key, before + 1);
    else if (times.size < DISTINCT) times.set(key, 1);
    else made.more = true;
    // Longer values may differ behind what is compared.
    if (cell.length > KEY) made.more = true;
    if (cell.startsWith("<")) made.iris++;
    else if (cell.startsWith("_:")) made.blanks++;
    else {
      made.literals++;
      const term = parseTerm(cell);
      const number = numberOf(term);
      if (number !== undefined) {
        if (Number.isFinite(number)) numbers.push(number);
      } else if (term?.type === "literal") {
        made.longest = Math.max(made.longest, term.value.length);
        if (term.language) languages.set(term.language, (languages.get(term.language) ?? 0) + 1);
      }
    }
  }
  made.distinct = times.size;
  if (numbers.length > 0) {
    const sorted = Float64Array.from(numbers).sort();
    const sum = sorted.reduce((a, b) => a + b, 0);
    const middle = sorted.length >> 1;
    const median = sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
    made.numbers = { count: sorted.length, least: sorted[0] ?? 0, most: sorted.at(-1) ?? 0, mean: sum / sorted.length, median };
  }
  const frequent = <K>(all: Map<K, number>): [K, number][] => [...all].sort((a, b) => b[1] - a[1]).slice(0, TOP);
  made.languages = frequent(languages);
  made.top = frequent(times).map(([cell, n]) => [parseTerm(cell.length === KEY ? closed(cell) : cell, 100), n]);
  return made;
}

/** Completes a cell that was cut, so that it can be parsed. */
function closed(cell: string): string {
  return cell.startsWith('"') ? `${cell.replace(/\\[^\\]*$/, "")}…"` : cell;
}
