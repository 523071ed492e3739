// Queries made of what the data has: its classes, its predicates, its graphs. Each of them has rows.

import { namingRank } from "./labels.ts";
import { select } from "./net/select.ts";
import { declaration } from "./rdf/prefixes.ts";
import { iriText, RDF_TYPE } from "./rdf/term.ts";
import { prefixes } from "./show.ts";
import { type Counts, data } from "./state.ts";

export interface Example {
  title: string;
  text: string;
  /** How its answer is shown first. */
  tab?: "graph";
}

/** Instances of a class that are looked at. */
const SAMPLE = 200;
/** Seconds for that. */
const PATIENCE = 2;

/** Vocabularies that describe others: their classes say little of what the data is about. */
const META = ["http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#", "http://www.w3.org/ns/shacl#"];

interface Use {
  predicate: string;
  count: number;
  /** What its values mostly are. */
  iris: number;
}

/** The predicates that some instances of a class have, frequent first. */
async function usesOf(iri: string): Promise<Use[]> {
  const rows = await select(
    `SELECT ?p (COUNT(*) AS ?n) (SUM(IF(ISIRI(?o), 1, 0)) AS ?i) { { SELECT ?x { ?x a ${iriText(iri)} } LIMIT ${SAMPLE} } ?x ?p ?o } GROUP BY ?p ORDER BY DESC(?n) LIMIT 40`,
    { timeout: PATIENCE },
  );
  return rows.flatMap(([p, n, i]) => (p?.type === "iri" ? [{ predicate: p.value, count: Number(n?.value ?? 0), iris: Number(i?.value ?? 0) }] : []));
}

/** Writes an IRI by its prefix, and remembers that one. */
class Names {
  private used = new Map<string, string>();

  of(iri: string): string {
    const short = prefixes.short(iri);
    const name = short?.slice(0, short.indexOf(":"));
    const space = name === undefined ? undefined : prefixes.space(name);
    if (short === undefined || name === undefined || space === undefined) return iriText(iri);
    this.used.set(name, space);
    return short;
  }

  /** The query with its prologue. */
  query(text: string): string {
    let made = text;
    for (const [name, iri] of this.used) {
      const { at, insert } = declaration(made, name, iri);
      made = made.slice(0, at) + insert + made.slice(at);
    }
    return made;
  }
}

function example(title: string, make: (n: (iri: string) => string) => string, tab?: "graph"): Example {
  const names = new Names();
  return { title, text: names.query(make((iri) => names.of(iri))), ...(tab ? { tab } : {}) };
}

/** The last word of a class's name, for a title. */
function word(iri: string): string {
  return (prefixes.short(iri) ?? iri).replace(/^.*[:/#]/, "") || iri;
}

/** The largest class that says something about the data, or the largest. */
export function telling(counts: Counts): string | undefined {
  return (counts.classes.find(({ iri }) => !META.some((space) => iri.startsWith(space))) ?? counts.classes[0])?.iri;
}

function candidates(counts: Counts): string[] {
  const telling = counts.classes.filter(({ iri }) => !META.some((space) => iri.startsWith(space)));
  return (telling.length > 0 ? telling : counts.classes).slice(0, 4).map(({ iri }) => iri);
}

export async function examples(counts: Counts): Promise<Example[]> {
  const made: Example[] = [];
  const about = await data();
  if (counts.classes.length > 0) made.push(example("Which classes are there?", () => "SELECT ?class (COUNT(*) AS ?things) WHERE {\n  ?thing a ?class\n}\nGROUP BY ?class\nORDER BY DESC(?things)\n"));
  // The first of some large classes whose instances have names: its table says most.
  let main = telling(counts);
  let uses: Use[] = [];
  for (const one of candidates(counts)) {
    const found = await usesOf(one).catch(() => []);
    if (uses.length === 0 && found.length > 0) [main, uses] = [one, found];
    if (!found.some((u) => namingRank(u.predicate) < Infinity)) continue;
    [main, uses] = [one, found];
    break;
  }
  if (main !== undefined && uses.length > 0) {
    const name = word(main);
    const label = uses.map((u) => u.predicate).filter((p) => namingRank(p) < Infinity).sort((a, b) => namingRank(a) - namingRank(b))[0];
    const facts = uses.filter((u) => u.predicate !== RDF_TYPE && u.predicate !== label).slice(0, 2);
    const link = uses.find((u) => u.predicate !== RDF_TYPE && u.iris * 2 > u.count);
    made.push(example(`Instances of ${name} as a table`, (n) => {
      const lines = [`  ?x a ${n(main)} .`];
      if (label) lines.push(`  ?x ${n(label)} ?label .`);
      facts.forEach((f, i) => lines.push(label || i > 0 ? `  OPTIONAL { ?x ${n(f.predicate)} ?${variable(f.predicate)} }` : `  ?x ${n(f.predicate)} ?${variable(f.predicate)} .`));
      return `SELECT * WHERE {\n${lines.join("\n")}\n}\nLIMIT 100\n`;
    }));
    made.push(example(`Which predicates do instances of ${name} have?`, (n) => `SELECT ?predicate (COUNT(*) AS ?triples) WHERE {\n  ?x a ${n(main)} .\n  ?x ?predicate ?value\n}\nGROUP BY ?predicate\nORDER BY DESC(?triples)\n`));
    if (link) made.push(example(`Most frequent values of ${word(link.predicate)} for ${name}`, (n) => `SELECT ?value (COUNT(*) AS ?times) WHERE {\n  ?x a ${n(main)} .\n  ?x ${n(link.predicate)} ?value\n}\nGROUP BY ?value\nORDER BY DESC(?times)\nLIMIT 20\n`));
    made.push(example(`Five instances of ${name} as a graph`, (n) => `CONSTRUCT { ?x ?p ?o } WHERE {\n  { SELECT ?x WHERE { ?x a ${n(main)} } LIMIT 5 }\n  ?x ?p ?o\n}\nLIMIT 100\n`, "graph"));
  } else if (counts.predicates.length > 0) {
    const [first] = counts.predicates;
    if (first) made.push(example(`Triples with ${word(first.iri)}`, (n) => `SELECT * WHERE {\n  ?s ${n(first.iri)} ?o\n}\nLIMIT 100\n`));
  }
  if (about && about.namedQuads > 0) made.push(example("How large is each named graph?", () => "SELECT ?graph (COUNT(*) AS ?triples) WHERE {\n  GRAPH ?graph { ?s ?p ?o }\n}\nGROUP BY ?graph\nORDER BY DESC(?triples)\n"));
  if (counts.triples > 0) made.push(example("How many triples are there?", () => "SELECT (COUNT(*) AS ?triples) WHERE {\n  ?s ?p ?o\n}\n"));
  return made;
}

/** A query for instances of a class with some of their properties: those that all of them have first, the others optional. */
export function classExample(iri: string, properties: { predicate: string; always: boolean }[]): string {
  const named = [...properties].sort((a, b) => Number(namingRank(b.predicate) < Infinity) - Number(namingRank(a.predicate) < Infinity));
  const used = new Set(["x"]);
  return example("", (n) => {
    const lines = named.slice(0, 4).map(({ predicate, always }) => {
      let name = variable(predicate);
      for (let i = 2; used.has(name); i++) name = `${variable(predicate)}${i}`;
      used.add(name);
      return always ? `  ?x ${n(predicate)} ?${name} .` : `  OPTIONAL { ?x ${n(predicate)} ?${name} }`;
    });
    return `SELECT * WHERE {\n  ?x a ${n(iri)} .\n${lines.sort().reverse().map((line) => `${line}\n`).join("")}}\nLIMIT 100\n`;
  }).text;
}

function variable(iri: string): string {
  const made = word(iri).replace(/[^A-Za-z0-9_]/g, "");
  return /^[A-Za-z]/.test(made) ? made : `v${made}`;
}
