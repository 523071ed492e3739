// Which kind of request a text is, by its first word after the prologue.

import { tokens } from "./editor/tokens.ts";

export type Form = "select" | "ask" | "construct" | "describe" | "update" | "unknown";

const UPDATES = new Set(["insert", "delete", "load", "clear", "drop", "create", "add", "move", "copy", "with"]);

export function formOf(text: string): Form {
  for (const token of tokens(text)) {
    if (token.kind !== "word") continue;
    const word = token.text.toLowerCase();
    if (word === "select" || word === "ask" || word === "construct" || word === "describe") return word;
    if (UPDATES.has(word)) return "update";
    if (word !== "prefix" && word !== "base" && word !== "version") return "unknown";
  }
  return "unknown";
}
