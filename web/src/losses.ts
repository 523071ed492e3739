// What an update clears as a whole, and how much that is: for a question before it runs.

import { type Token, tokens } from "./editor/tokens.ts";
import { counted } from "./format.ts";
import { select } from "./net/select.ts";

/** Seconds that counting may take. */
const PATIENCE = 5;

/** Graphs that an update clears: ALL, DEFAULT, NAMED, or a graph's name as the update writes it. */
export function cleared(text: string): string[] {
  const all = tokens(text).filter(({ kind }) => kind !== "comment");
  const word = (at: number) => (all[at]?.kind === "word" ? (all[at]?.text.toUpperCase() ?? "") : "");
  const skip = (at: number, ...words: string[]) => (words.includes(word(at)) ? at + 1 : at);
  const target = (at: number) => word(at) || (all[at]?.text ?? "");
  return all.flatMap((_, at): string[] => {
    const first = skip(skip(at + 1, "SILENT"), "GRAPH");
    switch (word(at)) {
      case "CLEAR": case "DROP": return [target(first)];
      // What is moved or copied takes the place of what was there.
      case "MOVE": case "COPY": return word(first + 1) === "TO" ? [target(skip(first + 2, "GRAPH"))] : [];
      default: return [];
    }
  }).filter((name) => name !== "");
}

/** The declarations of an update, with which names of graphs are read. */
function prologue(all: Token[]): string {
  return all.flatMap(({ kind, text }, i) => {
    const length = kind !== "word" ? 0 : /^prefix$/i.test(text) ? 3 : /^base$/i.test(text) ? 2 : 0;
    return length === 0 ? [] : [all.slice(i, i + length).map((t) => t.text).join(" ")];
  }).join("\n");
}

/** What is lost, in words with numbers; empty for an update that clears nothing, or only what is empty. */
export async function losses(text: string): Promise<string[]> {
  const declarations = prologue(tokens(text));
  const found = await Promise.all([...new Set(cleared(text))].map(async (name) => {
    const own = "{ ?s ?p ?o }";
    const named = `{ GRAPH ?g ${own} }`;
    const [pattern, where] = name === "ALL" ? [`${own} UNION ${named}`, "of the store, in all its graphs"]
      : name === "DEFAULT" ? [own, "of the default graph"]
      : name === "NAMED" ? [named, "of all named graphs"]
      : [`GRAPH ${name} ${own}`, `of the graph ${name}`];
    try {
      const [row] = await select(`${declarations}\nSELECT (COUNT(*) AS ?n) { ${pattern} }`, { timeout: PATIENCE, graphs: "default" });
      const n = Number(row?.[0]?.value ?? 0);
      return n === 0 ? "" : `${n === 1 ? "the" : "all"} ${counted(n, "triple")} ${where}`;
    } catch {
      return `all triples ${where}`;
    }
  }));
  return found.filter((said) => said !== "");
}
