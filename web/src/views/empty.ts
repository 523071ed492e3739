// Why an answer has no rows: the server's reasons, with buttons that repair the query.

import { button, h } from "../dom.ts";
import type { Editor } from "../editor/editor.ts";
import { inGraphs } from "../graphs.ts";
import { type Fault, json, query } from "../net/http.ts";
import type { Term } from "../rdf/term.ts";

/** A reason; one about the whole query has no place. */
export type Reason = Pick<Fault, "kind" | "message" | "suggestions"> & Partial<Pick<Fault, "line" | "column" | "start" | "end">>;

/** True for the one row of a lone aggregate over nothing. */
export function countsNothing(columns: number, rows: (Term | null)[][]): boolean {
  const cell = rows[0]?.[0];
  return columns === 1 && rows.length === 1 && (cell === null || (cell?.type === "literal" && Number(cell.value) === 0));
}

/** Asks the server. No reasons where it has none to give: the answer stands without them. */
export async function whyEmpty(text: string): Promise<Reason[]> {
  try {
    return (await json<{ reasons: Reason[] }>(inGraphs("query?why-empty=true"), query(text, "application/json"))).reasons;
  } catch {
    return [];
  }
}

/** True where all graphs together may have an answer that the graphs that were read lack. */
export function hasMoreElsewhere(reasons: Reason[]): boolean {
  const kinds = new Set(reasons.map(({ kind }) => kind));
  return (kinds.has("other-graphs") || kinds.has("empty-default-graph")) && !kinds.has("unknown-term");
}

/** A reason with a place, as the editor underlines it. */
export function placed(reasons: Reason[]): Fault[] {
  return reasons.filter((r): r is Fault => r.start !== undefined && r.end !== undefined && r.line !== undefined && r.column !== undefined);
}

/** The reasons as a list; a suggestion repairs the query in the editor. */
export function list(reasons: Reason[], editor: Editor, repaired: () => void): HTMLElement {
  const items = reasons.map((reason) => {
    const [fault] = placed([reason]);
    const at = fault ? [button(`Line ${fault.line}, column ${fault.column}`, () => editor.goTo(fault), { class: "link" }), ": "] : [];
    const helps = reason.suggestions.map(({ text, replacement }) =>
      replacement
        ? button(text, () => { editor.replace(replacement); repaired(); editor.focus(); }, { class: "help" })
        : h("span", { class: "help" }, text));
    return h("li", {}, ...at, `${reason.message} `, ...helps);
  });
  return h("div", { class: "why", attrs: { role: "status" } }, h("h2", {}, "Why this answer is empty"), h("ul", { class: "faults" }, ...items));
}
