// Rows as a table in Markdown.

import type { Term } from "../rdf/term.ts";
import { mark, prefixes } from "../show.ts";

export function markdown(columns: string[], rows: (Term | null)[][]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  return `${[line(columns.map(cell)), line(columns.map(() => "---")), ...rows.map((row) => line(columns.map((_, i) => value(row[i] ?? null))))].join("\n")}\n`;
}

function value(term: Term | null): string {
  if (term === null) return "";
  switch (term.type) {
    case "iri": return cell(known(term.value) ?? `<${term.value}>`);
    case "blank": return cell(`_:${term.value}`);
    case "triple": return cell(term.value);
    case "literal": return cell(term.value + (term.cut === undefined ? "" : "…") + (mark(term).startsWith("@") ? ` ${mark(term)}` : ""));
  }
}

/** A short name that is understood elsewhere, too: not by a prefix that the page made up. */
function known(iri: string): string | undefined {
  const short = prefixes.short(iri);
  return short !== undefined && prefixes.isMade(short.slice(0, short.indexOf(":"))) ? undefined : short;
}

/** What has a meaning in a table's cell is escaped, so that a value is text and nothing else. */
function cell(text: string): string {
  return text.replace(/[\\`*_[\]<>|]/g, "\\$&").replace(/\r?\n|\r/g, "<br>");
}
