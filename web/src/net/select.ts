// Small tables for the page itself: counts, one page of values.

import { type Graphs, inGraphs, withParameter } from "../graphs.ts";
import { parseTerm, type Term } from "../rdf/term.ts";
import { query, send } from "./http.ts";

export type Row = (Term | null)[];

interface Options {
  signal?: AbortSignal | undefined;
  /** Seconds. */
  timeout?: number;
  /** Characters of a value. */
  most?: number;
  /** Without it, what the page reads. */
  graphs?: Graphs;
}

/** All rows of a SELECT that has few. */
export async function select(text: string, options: Options = {}): Promise<Row[]> {
  const path = inGraphs(withParameter("query", "timeout", options.timeout), options.graphs);
  const response = await send(path, query(text, "text/tab-separated-values", options.signal));
  return rows(await response.text(), options.most);
}

export function rows(tsv: string, most?: number): Row[] {
  const lines = tsv.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.slice(1).map((line) => line.split("\t").map((cell) => parseTerm(cell, most)));
}
