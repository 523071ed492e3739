// What is around a resource, and of which class resources are: for drawings.

import { select } from "../net/select.ts";
import { iriText, RDF_TYPE, type Term } from "../rdf/term.ts";
import type { Triple } from "./model.ts";

/** Neighbours of a resource that are added at once. */
export const NEIGHBOURS = 40;
/** Neighbours by one predicate that are added at once. */
const BY_PREDICATE = 100;
/** Predicates that are listed. */
const PREDICATES = 60;
/** Seconds. */
const PATIENCE = 20;
/** Seconds that classes, captions and counts may take. */
const SHORT = 5;
/** Resources of one request. */
const PART = 500;

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

export interface Way {
  predicate: string;
  /** From the resource, or to it. */
  out: boolean;
  /** Neighbours by the predicate. */
  count: number;
}

/** The predicates that lead from a resource and to it, with how many neighbours each has. */
export async function ways(iri: string, signal?: AbortSignal): Promise<{ ways: Way[]; more: boolean }> {
  const name = iriText(iri);
  const options = { signal, timeout: SHORT, graphs: "all" as const };
  const ask = async (pattern: string, out: boolean) =>
    (await select(`SELECT ?p (COUNT(DISTINCT ?x) AS ?n) { ${pattern} } GROUP BY ?p ORDER BY DESC(?n) ?p LIMIT ${PREDICATES}`, options)).flatMap(([p, n]): Way[] => (p ? [{ predicate: p.value, out, count: Number(n?.value ?? 0) }] : []));
  const [from, to] = await Promise.all([ask(`${name} ?p ?x`, true), ask(`?x ?p ${name}`, false)]);
  return { ways: [...from, ...to], more: from.length === PREDICATES || to.length === PREDICATES };
}

/** The next neighbours by one predicate: those after the first `from`. */
export async function along(iri: string, { predicate, out }: Way, from: number, signal?: AbortSignal): Promise<Triple[]> {
  const [name, by] = [iriText(iri), iriText(predicate)];
  const me: Term = { type: "iri", value: iri };
  const p: Term = { type: "iri", value: predicate };
  const rows = await select(`SELECT DISTINCT ?x { ${out ? `${name} ${by} ?x` : `?x ${by} ${name}`} } ORDER BY ?x LIMIT ${BY_PREDICATE} OFFSET ${from}`, { signal, timeout: PATIENCE, most: 100, graphs: "all" });
  return rows.flatMap(([x]): Triple[] => (x ? [out ? [me, p, x] : [x, p, me]] : []));
}

/** A class of each of these resources that has one; of several, the one that fewest of them share. */
export async function classesOf(iris: string[], signal?: AbortSignal): Promise<Map<string, string>> {
  const made = new Map<string, string>();
  const pairs: [string, string][] = [];
  const times = new Map<string, number>();
  try {
    for (let at = 0; at < iris.length; at += PART) {
      const rows = await select(`SELECT ?x ?c { VALUES ?x { ${iris.slice(at, at + PART).map(iriText).join(" ")} } ?x ${iriText(RDF_TYPE)} ?c } LIMIT ${PART * 10}`, { signal, timeout: SHORT, graphs: "all" });
      for (const [x, c] of rows) if (x?.type === "iri" && c?.type === "iri") pairs.push([x.value, c.value]);
    }
  } catch {
    // A drawing without colours is one, too.
  }
  for (const [, c] of pairs) times.set(c, (times.get(c) ?? 0) + 1);
  for (const [x, c] of pairs) {
    const before = made.get(x);
    if (before === undefined || (times.get(c) ?? 0) < (times.get(before) ?? 0)) made.set(x, c);
  }
  return made;
}

/** Predicates by which these resources have literals, the most frequent first: what could be read at them. */
export async function captionPredicates(iris: string[], signal?: AbortSignal): Promise<string[]> {
  const rows = await select(`SELECT ?p (COUNT(*) AS ?n) { VALUES ?x { ${iris.slice(0, 50).map(iriText).join(" ")} } ?x ?p ?v FILTER(ISLITERAL(?v)) } GROUP BY ?p ORDER BY DESC(?n) ?p LIMIT 30`, { signal, timeout: SHORT, graphs: "all" });
  return rows.flatMap(([p]) => (p ? [p.value] : []));
}

/** A value of a predicate for each of these resources. */
export async function valuesOf(iris: string[], predicate: string, signal?: AbortSignal): Promise<Map<string, string>> {
  const made = new Map<string, string>();
  for (let at = 0; at < iris.length; at += PART) {
    const rows = await select(`SELECT ?x (MIN(?v) AS ?w) { VALUES ?x { ${iris.slice(at, at + PART).map(iriText).join(" ")} } ?x ${iriText(predicate)} ?v } GROUP BY ?x`, { signal, timeout: SHORT, most: 200, graphs: "all" });
    for (const [x, v] of rows) if (x && v) made.set(x.value, v.value);
  }
  return made;
}
