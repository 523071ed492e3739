// Terms, and their texts in TSV (SPARQL 1.1 Query Results TSV) and N-Triples, which differ by numbers and booleans only.

export const XSD = "http://www.w3.org/2001/XMLSchema#";
export const RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

export type Term =
  | { type: "iri"; value: string }
  | { type: "blank"; value: string }
  | { type: "literal"; value: string; language?: string; datatype?: string; cut?: number; hash?: number }
  | { type: "triple"; value: string; cut?: number; hash?: number };

/** Characters of one value that are shown before someone asks for more. */
export const SHOWN = 300;

const ESCAPES: Record<string, string> = { t: "\t", n: "\n", r: "\r", b: "\b", f: "\f" };

function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  return text.replace(/\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[\s\S])/g, (all, code: string) => {
    if (code.length > 1) {
      const point = parseInt(code.slice(1), 16);
      return point <= 0x10ffff ? String.fromCodePoint(point) : all;
    }
    return ESCAPES[code] ?? code;
  });
}

/**
 * The term that a cell says; `null` for an empty cell, which is an unbound variable. `most`: characters of a literal that are kept;
 * `cut` says how many there were, and `hash` tells whole texts apart.
 */
export function parseTerm(cell: string, most = Infinity): Term | null {
  const first = cell[0];
  if (first === undefined) return null;
  if (first === "<") {
    if (cell.startsWith("<<")) return shortened({ type: "triple", value: cell }, most, cell);
    return { type: "iri", value: unescaped(cell.slice(1, -1)) };
  }
  if (first === "_") return { type: "blank", value: cell.slice(2) };
  if (first !== '"') {
    const datatype = cell === "true" || cell === "false"
      ? "boolean"
      : /[eE]/.test(cell) ? "double" : cell.includes(".") ? "decimal" : "integer";
    return { type: "literal", value: cell, datatype: XSD + datatype };
  }
  // The last quote: what stands after it has none, for `>` ends a datatype and a language is letters.
  const end = cell.lastIndexOf('"');
  const inner = cell.slice(1, end);
  // An escape has at most ten characters, so more than enough of the text is looked at.
  const value = inner.length > most * 10 ? unescaped(inner.slice(0, most * 10)) : unescaped(inner);
  const term: Term = { type: "literal", value };
  const behind = cell.slice(end + 1);
  if (behind.startsWith("@")) term.language = behind.slice(1);
  else if (behind.startsWith("^^<")) term.datatype = unescaped(behind.slice(3, -1));
  if (inner.length > value.length && inner.length > most * 10) term.cut = inner.length;
  return shortened(term, most, cell);
}

function shortened(term: Term, most: number, cell: string): Term {
  if ((term.type === "literal" || term.type === "triple") && term.value.length > most) {
    term.cut ??= term.value.length;
    term.value = term.value.slice(0, most);
    let hash = 0;
    for (const c of cell) hash = (hash * 1_114_129 + (c.codePointAt(0) ?? 0)) % 4_294_967_291;
    term.hash = hash;
  }
  return term;
}

/** As SPARQL and N-Triples write it. A blank node has no such text: in a query its label would be a variable. */
export function written(term: Term): string {
  switch (term.type) {
    case "iri":
      return iriText(term.value);
    case "blank":
      return `_:${term.value}`;
    case "triple":
      return term.value;
    case "literal": {
      const text = `"${term.value.replace(/[\\"\n\r\t\b\f\u0000-\u001f]/g, escaped)}"`;
      if (term.language) return `${text}@${term.language}`;
      return term.datatype ? `${text}^^${iriText(term.datatype)}` : text;
    }
  }
}

/** An IRI in angle brackets. What may not stand there is escaped, so that no IRI ends its own brackets. */
export function iriText(iri: string): string {
  return `<${iri.replace(/[\u0000-\u0020<>"{}|^`\\]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)}>`;
}

function escaped(c: string): string {
  const short = Object.entries(ESCAPES).find(([, value]) => value === c);
  if (short) return `\\${short[0]}`;
  return c === "\\" || c === '"' ? `\\${c}` : `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

const NUMBERS = new Set(
  ("integer decimal float double int long short byte nonNegativeInteger nonPositiveInteger positiveInteger negativeInteger " +
    "unsignedInt unsignedLong unsignedShort unsignedByte").split(" ").map((name) => XSD + name),
);

/** The number that a term is; `undefined` for what is none. */
export function numberOf(term: Term | null): number | undefined {
  if (term?.type !== "literal" || !term.datatype || !NUMBERS.has(term.datatype)) return undefined;
  const text = term.value.trim();
  if (text === "INF" || text === "+INF") return Infinity;
  if (text === "-INF") return -Infinity;
  const n = Number(text);
  return Number.isNaN(n) ? undefined : n;
}

/**
 * Makes characters visible that would change how others are read: controls, and those that turn the direction of writing. For IRIs,
 * where no one expects them.
 */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0").toUpperCase()}`,
  );
}

/** True for an address that a browser may be led to: never `javascript:` or `data:`. */
export function isWeb(iri: string): boolean {
  return /^https?:\/\/[^\s/]/i.test(iri) && URL.canParse(iri);
}
