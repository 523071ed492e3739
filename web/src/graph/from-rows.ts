// A drawing of the rows of a SELECT: the columns of resources are its nodes, and the query's patterns its edges.

import { type Kind, tokens } from "../editor/tokens.ts";
import { declared, type Prefixes } from "../rdf/prefixes.ts";
import { RDF_TYPE, type Term } from "../rdf/term.ts";
import type { Triple } from "./model.ts";

type Row = (Term | null)[];

/** An edge of each row: from one column to another, named by an IRI, a text, or the value of a third column. */
export interface Join {
  from: number;
  to: number;
  name: string | number;
}

export interface Plan {
  /** Columns whose values are nodes. */
  nodes: number[];
  joins: Join[];
}

/** Columns that have a resource in one of these rows, and no literal in most of them. */
export function nodeColumns(columns: string[], rows: Row[]): number[] {
  return columns.map((_, i) => i).filter((i) => {
    const terms = rows.flatMap((row) => row[i] ?? []);
    const nodes = terms.filter(({ type }) => type === "iri" || type === "blank").length;
    return nodes > 0 && nodes * 2 > terms.length;
  });
}

interface Pattern {
  subject: string;
  predicate: string;
  object: string;
}

const TERMS: Kind[] = ["variable", "iri", "name", "blank", "string", "number"];
/** Words that begin something else than a triple. */
const WORDS = /^(?:optional|union|minus|graph|filter|bind|values|service|exists|not|select|where|construct|ask|describe|from|named|distinct|reduced|order|group|having|limit|offset|by|as|asc|desc|prefix|base|silent|undef|lateral|true|false)$/i;

/** The triple patterns of a query's text: as far as they are terms, paths and lists of them. What is not understood is left out. */
export function patterns(text: string): Pattern[] {
  const found: Pattern[] = [];
  let subject: string | undefined;
  let path: string[] = [];
  let depth = 0;
  let nested = 0;
  let braces = 0;
  /** Between a word like SELECT and the next brace there are no patterns. */
  let head = false;
  const reset = () => {
    subject = undefined;
    path = [];
  };
  for (const { kind, text: word } of tokens(text)) {
    if (kind === "comment") continue;
    if (word === "{" || word === "}") {
      braces = Math.max(0, braces + (word === "{" ? 1 : -1));
      head = false;
    } else if (kind === "word" && /^(?:select|construct|group|order|having|limit|offset)$/i.test(word)) head = true;
    if (head || braces === 0) {
      reset();
      continue;
    }
    // Expressions of FILTER and BIND, and property lists of nameless nodes, are passed over; a path has its own brackets.
    if (word === "(" || word === ")") {
      if (subject !== undefined && depth === 0 && nested === 0) path.push(word);
      else depth = Math.max(0, depth + (word === "(" ? 1 : -1));
    } else if (word === "[" || word === "]") nested = Math.max(0, nested + (word === "[" ? 1 : -1));
    else if (depth > 0 || nested > 0) continue;
    else if (kind === "word" && WORDS.test(word)) {
      if (/^(?:filter|bind|values|having)$/i.test(word)) reset();
    } else if (word === "{" || word === "}" || word === ".") reset();
    else if (word === ";") path = [];
    else if (word === ",") continue;
    else if (subject === undefined) subject = TERMS.includes(kind) ? word : undefined;
    else if (path.length === 0 || ["/", "|", "^", "!", "("].includes(path.at(-1) ?? "") || ["/", "|", "*", "+", "?", "^", ")"].includes(word) || word === "!") path.push(word);
    else if (TERMS.includes(kind)) found.push({ subject, predicate: path.join(""), object: word });
  }
  return found;
}

/** The name of an edge: an IRI, the column of a variable, or a path as it is written. */
function nameOf(predicate: string, columns: string[], prefixes: Prefixes, own: Map<string, string>): string | number {
  if (predicate === "a") return RDF_TYPE;
  if (/^<[^<>]*>$/.test(predicate)) return predicate.slice(1, -1);
  if (/^[?$]/.test(predicate)) {
    const at = columns.indexOf(predicate.slice(1));
    return at < 0 ? predicate : at;
  }
  const colon = predicate.indexOf(":");
  if (/^[^/|^!*+?()<>]*:[^/|^!*+?()<>]*$/.test(predicate)) {
    const space = own.get(predicate.slice(0, colon)) ?? prefixes.space(predicate.slice(0, colon));
    if (space !== undefined) return space + predicate.slice(colon + 1);
  }
  return predicate;
}

/** How the rows are drawn; `undefined` where no column is of resources. */
export function planOf(query: string, columns: string[], rows: Row[], prefixes: Prefixes): Plan | undefined {
  let nodes = nodeColumns(columns, rows);
  if (nodes.length === 0) return undefined;
  const own = new Map(declared(query));
  const joins: Join[] = [];
  const column = (word: string) => (/^[?$]/.test(word) ? columns.indexOf(word.slice(1)) : -1);
  for (const { subject, predicate, object } of patterns(query)) {
    const [from, to] = [column(subject), column(object)];
    const name = nameOf(predicate, columns, prefixes, own);
    if (from < 0 || to < 0 || !nodes.includes(from) || joins.some((j) => j.from === from && j.to === to && j.name === name)) continue;
    // With the predicate in a column, its literals are nodes; else they are left to the table.
    if (nodes.includes(to) || typeof name === "number") joins.push({ from, to, name });
  }
  // A column that names edges is no node itself.
  const names = new Set(joins.flatMap(({ name }) => (typeof name === "number" ? [name] : [])));
  const ends = new Set(joins.flatMap(({ from, to }) => [from, to]));
  nodes = nodes.filter((i) => !names.has(i) || ends.has(i));
  // What no pattern joins hangs on the first column, by its own name.
  const [first] = nodes;
  const joined = new Set<number>(first === undefined ? [] : [first]);
  for (let grew = true; grew; ) {
    grew = false;
    for (const { from, to } of joins) {
      if (joined.has(from) === joined.has(to)) continue;
      joined.add(from).add(to);
      grew = true;
    }
    const rest = grew ? undefined : nodes.find((i) => !joined.has(i));
    if (rest === undefined || first === undefined) continue;
    joins.push({ from: first, to: rest, name: `?${columns[rest] ?? ""}` });
    grew = true;
  }
  return { nodes, joins };
}

/** What a row draws: triples, and resources that stand alone. */
export function drawn(row: Row, { nodes, joins }: Plan): { triples: Triple[]; alone: Term[] } {
  const triples: Triple[] = [];
  const used = new Set<number>();
  for (const { from, to, name } of joins) {
    const [s, o] = [row[from], row[to]];
    const p: Term | null | undefined = typeof name === "number" ? row[name] : { type: "iri", value: name };
    if (!s || !o || !p || s.type === "literal") continue;
    triples.push([s, p, o]);
    used.add(from).add(to);
  }
  const alone = nodes.flatMap((i) => {
    const term = row[i];
    return !used.has(i) && term && term.type !== "literal" ? [term] : [];
  });
  return { triples, alone };
}
