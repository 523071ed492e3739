// Brings the rows of an answer into a drawing, some at a time: however many there are, the page stays quick.

import type { Answer } from "../answer/answer.ts";
import { count, counted } from "../format.ts";
import { drawn, type Plan } from "./from-rows.ts";
import type { Graph } from "./graph.ts";
import { MOST_NODES, type Triple } from "./model.ts";

/** Rows that are fetched from the worker at once, and in all. */
const BLOCK = 1000;
const MOST_ROWS = 100_000;

/** Draws an answer: triples, or with a plan the rows of a table. */
export async function drawAnswer(answer: Answer, graph: Graph, plan: Plan | undefined, wanted: () => boolean): Promise<void> {
  const all = answer.shown;
  const read = Math.min(all, MOST_ROWS);
  let full = 0;
  let empty = 0;
  for (let from = 0; from < read; from += BLOCK) {
    const rows = await answer.firstRows(Math.min(BLOCK, read - from), from);
    if (!wanted()) return;
    for (const row of rows) {
      const [s, p, o] = row;
      const { triples, alone } = plan ? drawn(row, plan) : { triples: s && p && o ? [[s, p, o] as Triple] : [], alone: [] };
      if (triples.length + alone.length === 0) empty++;
      else if (!graph.fill(triples, alone)) full++;
    }
  }
  graph.begin(notDrawn(all, read, full, empty, plan ? "row" : "triple"));
}

/** What is not drawn of an answer, in words. */
export function notDrawn(all: number, read: number, full: number, empty: number, unit: "row" | "triple"): string {
  const parts: string[] = [];
  const are = (n: number) => (n === 1 ? "is" : "are");
  if (read < all) parts.push(`Only the first ${count(read)} of ${count(all)} ${unit}s were read.`);
  if (full > 0) parts.push(`${counted(full, unit)} of ${count(read)} ${are(full)} not shown: the drawing is limited to ${count(MOST_NODES)} nodes.`);
  if (empty > 0) parts.push(`${counted(empty, unit)} of ${count(read)} ${empty === 1 ? "has" : "have"} no resource to draw.`);
  return parts.join(" ");
}
