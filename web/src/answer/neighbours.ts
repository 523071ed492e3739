// What is around a resource, and of which class resources are: for drawings.

import { select } from "../net/select.ts";
import { iriText, RDF_TYPE, type Term } from "../rdf/term.ts";

export type Triple = [Term, Term, Term];

/** Neighbours of a resource in a picture. */
const NEIGHBOURS = 40;
/** Seconds. */
const PATIENCE = 20;
/** Seconds that classes, which only colour a picture, may take. */
const SHORT = 3;

/** Triples around a resource, some of each way. */
export async function neighbours(iri: string, signal?: AbortSignal): Promise<Triple[]> {
  const name = iriText(iri);
  const me: Term = { type: "iri", value: iri };
  const options = { signal, timeout: PATIENCE, most: 100, graphs: "all" as const };
  const [out, into] = await Promise.all([
    select(`SELECT DISTINCT ?p ?o { ${name} ?p ?o } LIMIT ${NEIGHBOURS}`, options),
    select(`SELECT DISTINCT ?s ?p { ?s ?p ${name} } LIMIT ${NEIGHBOURS / 2}`, options),
  ]);
  return [
    ...out.flatMap(([p, o]): Triple[] => (p && o ? [[me, p, o]] : [])),
    ...into.flatMap(([s, p]): Triple[] => (s && p ? [[s, p, me]] : [])),
  ];
}

/** A class of each of these resources that has one; of several, the one that fewest of them share. */
export async function classesOf(iris: string[], signal?: AbortSignal): Promise<Map<string, string>> {
  const made = new Map<string, string>();
  if (iris.length === 0) return made;
  try {
    const rows = await select(`SELECT ?x ?c { VALUES ?x { ${iris.map(iriText).join(" ")} } ?x ${iriText(RDF_TYPE)} ?c } LIMIT 2000`, { signal, timeout: SHORT, graphs: "all" });
    const times = new Map<string, number>();
    const pairs = rows.flatMap(([x, c]): [string, string][] => (x?.type === "iri" && c?.type === "iri" ? [[x.value, c.value]] : []));
    for (const [, c] of pairs) times.set(c, (times.get(c) ?? 0) + 1);
    for (const [x, c] of pairs) {
      const before = made.get(x);
      if (before === undefined || (times.get(c) ?? 0) < (times.get(before) ?? 0)) made.set(x, c);
    }
  } catch {
    // A picture without colours is one, too.
  }
  return made;
}
