// SPARQL's tokens, as far as completion wants to know them. The text may end anywhere, so nothing here is an error.

export type Kind = "iri" | "string" | "comment" | "variable" | "name" | "word" | "number" | "blank" | "sign";

export interface Token {
  kind: Kind;
  text: string;
  from: number;
  to: number;
  /** Its end has not been written yet. */
  open: boolean;
}

const NEXT = new RegExp(
  [
    /(?<comment>#[^\n]*)/u,
    /(?<iri><[^\s<>"{}|^`]*>)/u,
    /(?<string>"""[\s\S]*?"""|'''[\s\S]*?'''|"(?!"")(?:[^"\\\n]|\\.)*"|'(?!'')(?:[^'\\\n]|\\.)*')/u,
    /(?<open>"""[\s\S]*$|'''[\s\S]*$|"[^\n]*|'[^\n]*)/u,
    /(?<variable>[?$][\p{L}\p{N}_]+)/u,
    /(?<blank>_:[\p{L}\p{N}_](?:[\p{L}\p{N}_.\-]*[\p{L}\p{N}_\-])?)/u,
    /(?<name>(?:\p{L}(?:[\p{L}\p{N}_.\-]*[\p{L}\p{N}_\-])?)?:(?:(?:[\p{L}\p{N}_:%]|\\.)(?:(?:[\p{L}\p{N}_:.%\-]|\\.)*(?:[\p{L}\p{N}_:%\-]|\\.))?)?)/u,
    /(?<number>[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)/u,
    /(?<word>@?\p{L}[\p{L}\p{N}_\-]*)/u,
    /(?<sign>\^\^|<<\(?|\)?>>|&&|\|\||!=|<=|>=|\{\||\|\}|[^\s])/u,
  ].map((r) => r.source).join("|"),
  "gu",
);

export function tokens(text: string): Token[] {
  const all: Token[] = [];
  for (const m of text.matchAll(NEXT)) {
    const groups = m.groups ?? {};
    const kind = Object.keys(groups).find((key) => groups[key] !== undefined) ?? "sign";
    const to = m.index + m[0].length;
    const open = kind === "open" || (kind === "comment" && to === text.length);
    all.push({ kind: kind === "open" ? "string" : (kind as Kind), text: m[0], from: m.index, to, open });
  }
  return all;
}

/** False inside of a comment or a string, whose end may not have been written yet. */
export function isCode(text: string, at: number): boolean {
  const last = tokens(text.slice(0, at)).at(-1);
  return !(last?.open && last.to === at);
}
