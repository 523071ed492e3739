// Lays a query out: a line for each pattern, two spaces for each group. Only what stands between tokens changes.

import { type Token, tokens } from "./tokens.ts";

/** Words that begin a line of their own, outside of parentheses. */
const LINES = new Set("SELECT ASK CONSTRUCT DESCRIBE FROM WHERE ORDER GROUP HAVING LIMIT OFFSET VALUES INSERT DELETE WITH USING PREFIX BASE LOAD CLEAR DROP CREATE ADD MOVE COPY".split(" "));
/** Words that begin a line within a group. */
const PARTS = new Set("OPTIONAL FILTER BIND MINUS SERVICE GRAPH VALUES UNION".split(" "));
/** Words that go on with what the word before them began. */
const AFTER: Record<string, string[]> = { WHERE: ["DELETE"], NAMED: ["FROM", "USING"], DATA: ["INSERT", "DELETE"] };
const KEYWORDS = new Set([
  ...LINES, ...PARTS,
  ..."AS BY DISTINCT REDUCED NAMED SILENT IN NOT EXISTS UNDEF ASC DESC DATA INTO TO DEFAULT ALL GRAPH".split(" "),
]);

interface Open {
  sign: "{" | "(" | "[";
  /** Everything in it stands on its line. */
  inline: boolean;
}

export function formatted(text: string): string {
  const all = tokens(text);
  const out: string[] = [];
  const open: Open[] = [];
  let line = "";
  const flush = () => {
    if (line.trim() !== "") out.push(line.trimEnd());
    line = "";
  };
  const depth = () => open.filter((o) => o.sign === "{").length;
  const put = (word: string, space: boolean) => {
    if (line === "") line = "  ".repeat(depth() + hanging) + word;
    else line += (space ? " " : "") + word;
  };
  /** One step further in: the lines of a list of predicates. */
  let hanging = 0;
  let before: Token | undefined;
  let lastWord = "";
  const inParens = () => open.some((o) => o.sign !== "{");
  all.forEach((token, i) => {
    const upper = token.kind === "word" ? token.text.toUpperCase() : "";
    const keyword = KEYWORDS.has(upper);
    const word = keyword ? upper : token.text;
    const gap = before ? text.slice(before.to, token.from) : "";
    // An empty line between parts is someone's own.
    if (/\n[^\S\n]*\n/.test(gap) && !inParens()) {
      flush();
      if (out.length > 0 && out.at(-1) !== "") out.push("");
    }
    if (token.kind === "comment") {
      const own = !before || gap.includes("\n");
      if (own) flush();
      put(token.text.trimEnd(), true);
      flush();
      before = token;
      return;
    }
    const next = all[i + 1];
    const parens = inParens();
    if (token.text === "{") {
      const inline = isShort(all, i);
      // A group after a condition is a pattern of its own, not the body of what stands before it.
      if (before?.text === ")" && depth() > 0 && lastWord !== "VALUES" && !/^\s*SELECT\b/.test(line) && !open.some((o) => o.inline)) flush();
      put("{", true);
      open.push({ sign: "{", inline });
      hanging = 0;
      if (!inline) flush();
    } else if (token.text === "}") {
      const closing = lastOf(open, "{");
      hanging = 0;
      if (closing && !closing.inline) flush();
      if (closing) open.splice(open.lastIndexOf(closing));
      if (closing?.inline) put("}", true);
      else put("}", true);
      // What follows on the same line: UNION, or the end of a pattern.
      if (!(next && (next.text.toUpperCase() === "UNION" || next.text === "." || (next.kind === "comment" && !text.slice(token.to, next.from).includes("\n"))))) {
        if (!open.some((o) => o.inline)) flush();
      }
    } else if (token.text === "(" || token.text === "[") {
      put(token.text, spaced(before, token, gap));
      open.push({ sign: token.text, inline: true });
    } else if (token.text === ")" || token.text === "]") {
      const at = lastOf(open, token.text === ")" ? "(" : "[");
      if (at) open.splice(open.lastIndexOf(at));
      put(token.text, token.text === "]" && before?.text !== "[");
    } else if (token.text === "." && !parens) {
      put(".", true);
      hanging = 0;
      if (!open.some((o) => o.inline)) flush();
    } else if (token.text === ";" && !parens) {
      put(";", true);
      if (depth() > 0) hanging = 1;
      if (!open.some((o) => o.inline)) flush();
    } else if (keyword && !parens && (LINES.has(upper) || PARTS.has(upper)) && !(AFTER[upper] ?? []).includes(lastWord) && !stays(upper, lastWord, before)) {
      if (upper !== "UNION" && !open.some((o) => o.inline)) {
        hanging = 0;
        flush();
      }
      put(word, true);
    } else {
      put(word, spaced(before, token, gap));
      // A declaration ends with its IRI.
      if (token.kind === "iri" && (lastWord === "PREFIX" || lastWord === "BASE") && depth() === 0) {
        flush();
        lastWord = "";
      }
    }
    if (token.kind === "word") lastWord = upper;
    before = token;
  });
  flush();
  // The prologue stands apart.
  const body = out.findIndex((l) => l !== "" && !/^(PREFIX|BASE|#)/.test(l));
  if (body > 0 && out[body - 1] !== "" && /^(PREFIX|BASE)/.test(out[body - 1] ?? "")) out.splice(body, 0, "");
  const made = `${out.join("\n").replace(/\n{3,}/g, "\n\n").trim()}\n`;
  // Nothing but space and the case of keywords may have changed.
  return same(tokens(text), tokens(made)) ? made : text;
}

function lastOf(open: Open[], sign: string): Open | undefined {
  return open.filter((o) => o.sign === sign).at(-1);
}

/** True for keywords that go on with the line: `SELECT … WHERE {`, `GRAPH` after `INTO`, `FROM` within a statement of updates. */
function stays(upper: string, lastWord: string, before: Token | undefined): boolean {
  if (upper === "WHERE") return true;
  if (upper === "GRAPH") return ["INTO", "TO", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "SILENT", "LOAD"].includes(lastWord);
  return before?.kind === "word" && before.text.toUpperCase() === "NOT";
}

/** Groups that stand on one line: few tokens, no group or comment within. */
function isShort(all: Token[], at: number): boolean {
  let length = 0;
  for (let i = at + 1; i < all.length; i++) {
    const token = all[i] as Token;
    if (token.text === "}") return length <= 48 && all.slice(at, i).every((t) => t.text !== ";") && outer(all, at);
    if (token.text === "{" || token.kind === "comment") return false;
    length += token.text.length + 1;
  }
  return false;
}

/** True where something stands around a group: what a query's WHERE has gets lines of its own. */
function outer(all: Token[], at: number): boolean {
  return all.slice(0, at).reduce((n, t) => n + (t.text === "{" ? 1 : t.text === "}" ? -1 : 0), 0) > 0;
}

function spaced(before: Token | undefined, token: Token, gap: string): boolean {
  if (!before) return false;
  if (token.text === "," || token.text === "^^") return false;
  if (before.text === "(" || before.text === "^^" || before.text === "!" || before.text === "^" || before.text === "/") return false;
  // A path's signs, and what is called, stay close where they were.
  if (["/", "*", "+", "?", "^", "|"].includes(token.text)) return gap !== "";
  if (token.text === "(") return gap !== "";
  if (token.kind === "word" && token.text.startsWith("@")) return false;
  if (before.text === "[") return true;
  return gap !== "" || before.text === "," || before.text === ")" || before.text === "{" || before.text === "}" || before.text === "." || before.text === ";" || token.text === "{";
}

function same(a: Token[], b: Token[]): boolean {
  return a.length === b.length && a.every((token, i) => {
    const other = b[i];
    if (!other || token.kind !== other.kind) return false;
    if (token.kind === "comment") return token.text.trimEnd() === other.text.trimEnd();
    return token.text === other.text || (token.kind === "word" && token.text.toUpperCase() === other.text);
  });
}
