// A drawing of the rows of a SELECT: the columns of resources are its nodes, and the query's patterns its edges.

import { SparqlLanguage } from "codemirror-lang-sparql";
import { declared, type Prefixes } from "../rdf/prefixes.ts";
import { RDF_TYPE, type Term } from "../rdf/term.ts";
import type { Triple } from "./model.ts";

type Row = (Term | null)[];

/** An edge of each row: from one column to another, named by an IRI, a text, or the value of a third column. */
interface Join {
  from: number;
  to: number;
  name: string | number;
  /** If any: columns of which a row has to bind one, or else it has no such edge. */
  needs: number[];
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
  /** Names of the variables of which a row has to bind one, or else the pattern may not hold in it; `undefined`: it holds in each row. */
  shownBy: string[] | undefined;
}

type Node = ReturnType<typeof SparqlLanguage.parser.parse>["topNode"];

/** Parts of a query that bind no variable, except by AS, and whose patterns hold in no row. */
const APART = /^(?:Filter|Expression|MinusGraphPattern|SolutionModifier)$/;
const VARIABLE = /^[?$]/;

/**
 * The triple patterns that hold in the rows of a SELECT. Those of an OPTIONAL, a branch of a UNION or a SERVICE, which may be SILENT,
 * hold in rows that bind a variable which occurs nowhere else. A query that the grammar does not know gives none.
 */
export function patterns(text: string): Pattern[] {
  const triples: Node[] = [];
  const variables: Node[] = [];
  const read = ({ from, to }: Node) => text.slice(from, to);
  const nameAt = (variable: Node) => read(variable).slice(1);
  let apart = 0;
  let known = true;
  SparqlLanguage.parser.parse(text).iterate({
    enter({ node }) {
      const { name } = node;
      if (node.type.isError) known = false;
      if (APART.test(name)) apart++;
      if (name === "TriplesSameSubjectPath" && apart === 0) triples.push(node);
      if (name === "Var" && (node.prevSibling?.name === "AS" || (apart === 0 && node.parent?.name !== "SelectClause"))) variables.push(node);
    },
    leave({ name }) {
      if (APART.test(name)) apart--;
    },
  });
  if (!known) return [];
  return triples.flatMap((triple) => {
    /** The innermost part that a row need not match. */
    let part: Node | undefined;
    /** Variables that leave each sub-select around it. */
    const projected: string[][] = [];
    for (let node = triple, parent = node.parent; parent; node = parent, parent = node.parent) {
      if (/^(?:Optional|Service)/.test(parent.name) || parent.getChild("UNION")) part ??= node;
      const head = parent.name === "SubSelect" && parent.getChild("SelectClause");
      if (head && !read(head).endsWith("*")) projected.push(head.getChildren("Var").map(nameAt));
    }
    let shownBy: string[] | undefined;
    if (part) {
      const { from, to } = part;
      const isInside = (v: Node) => v.from >= from && v.to <= to;
      const outside = new Set(variables.filter((v) => !isInside(v)).map(nameAt));
      shownBy = variables.filter(isInside).map(nameAt).filter((name) => !outside.has(name));
    }
    const found: Pattern[] = [];
    const subject = triple.firstChild ? read(triple.firstChild) : "";
    let predicate = "";
    for (let node = triple.getChild("PropertyListPathNotEmpty")?.firstChild; node; node = node.nextSibling) {
      if (node.name.startsWith("Verb")) predicate = read(node).replace(/\s+/g, "");
      else for (const object of ["ObjectPath", "Object"].flatMap((kind) => node?.getChildren(kind) ?? []).map(read)) {
        if ([subject, predicate, object].every((word) => !VARIABLE.test(word) || projected.every((names) => names.includes(word.slice(1))))) found.push({ subject, predicate, object, shownBy });
      }
    }
    return found;
  });
}

/** The name of an edge: an IRI, the column of a variable, or a path as it is written. */
function nameOf(predicate: string, columns: string[], prefixes: Prefixes, own: Map<string, string>): string | number {
  if (predicate === "a") return RDF_TYPE;
  if (/^<[^<>]*>$/.test(predicate)) return predicate.slice(1, -1);
  if (VARIABLE.test(predicate)) {
    const at = columns.indexOf(predicate.slice(1));
    return at < 0 ? predicate : at;
  }
  const colon = predicate.indexOf(":");
  if (/^[^/|^!*+?()<>]*:[^/|^!*+?()<>\\]*$/.test(predicate)) {
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
  const column = (word: string) => (VARIABLE.test(word) ? columns.indexOf(word.slice(1)) : -1);
  for (const { subject, predicate, object, shownBy } of patterns(query)) {
    const [from, to] = [column(subject), column(object)];
    const name = nameOf(predicate, columns, prefixes, own);
    const needs = columns.flatMap((c, i) => (shownBy?.includes(c) ? [i] : []));
    if (from < 0 || to < 0 || !nodes.includes(from) || (shownBy && needs.length === 0)) continue;
    // With the predicate in a column, its literals are nodes; else they are left to the table.
    if (nodes.includes(to) || typeof name === "number") joins.push({ from, to, name, needs });
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
    joins.push({ from: first, to: rest, name: `?${columns[rest] ?? ""}`, needs: [] });
    grew = true;
  }
  return { nodes, joins };
}

/** What a row draws: triples, and resources that stand alone. */
export function drawn(row: Row, { nodes, joins }: Plan): { triples: Triple[]; alone: Term[] } {
  const triples: Triple[] = [];
  const used = new Set<number>();
  for (const { from, to, name, needs } of joins) {
    if (needs.length > 0 && needs.every((i) => !row[i])) continue;
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
