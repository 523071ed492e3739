// Queries for a drawing: neighbours, classes and captions of its resources.

import { select } from "../net/select.ts";
import { iriText, SHOWN, type Term } from "../rdf/term.ts";
import { nameOf } from "../show.ts";
import type { Triple } from "./model.ts";

/** Triples from a resource that are added at once, and triples to it. */
const OUT = 40;
const INTO = 20;
/** Predicates that are listed in each direction. */
export const PREDICATES = 60;
/** Seconds that neighbours may take. */
const PATIENCE = 20;
/** Seconds that classes, captions and counts may take. */
const SHORT = 5;
/** Resources of one request. */
const PART = 500;

/** Some triples from a resource and to it; `cut` says that there are more. */
export async function neighbours(iri: string, signal?: AbortSignal): Promise<{ triples: Triple[]; cut: string }> {
  const name = iriText(iri);
  const me: Term = { type: "iri", value: iri };
  const options = { signal, timeout: PATIENCE, most: SHOWN, graphs: "all" as const };
  const [out, into] = await Promise.all([
    select(`SELECT DISTINCT ?p ?o { ${name} ?p ?o } LIMIT ${OUT + 1}`, options),
    select(`SELECT DISTINCT ?s ?p { ?s ?p ${name} } LIMIT ${INTO + 1}`, options),
  ]);
  const cut = [out.length > OUT && `${OUT} from it`, into.length > INTO && `${INTO} to it`].filter(Boolean).join(" and ");
  return {
    triples: [
      ...out.slice(0, OUT).flatMap(([p, o]): Triple[] => (p && o ? [[me, p, o]] : [])),
      ...into.slice(0, INTO).flatMap(([s, p]): Triple[] => (s && p ? [[s, p, me]] : [])),
    ],
    cut: cut && `${nameOf(iri)} has more triples than the ${cut} that were read.`,
  };
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

/** The first neighbours by one predicate. */
export async function along(iri: string, { predicate, out }: Way, most: number, signal?: AbortSignal): Promise<Triple[]> {
  const [name, by] = [iriText(iri), iriText(predicate)];
  const me: Term = { type: "iri", value: iri };
  const p: Term = { type: "iri", value: predicate };
  const rows = await select(`SELECT DISTINCT ?x { ${out ? `${name} ${by} ?x` : `?x ${by} ${name}`} } ORDER BY ?x LIMIT ${most}`, { signal, timeout: PATIENCE, most: SHOWN, graphs: "all" });
  return rows.flatMap(([x]): Triple[] => (x ? [out ? [me, p, x] : [x, p, me]] : []));
}

/** A class of each of these resources that has one; of several, the one that fewest of them share. `whole` is false if some were not read. */
export async function classesOf(iris: string[], signal?: AbortSignal): Promise<{ classes: Map<string, string>; whole: boolean }> {
  let whole = true;
  const made = new Map<string, string>();
  const pairs: [string, string][] = [];
  const times = new Map<string, number>();
  try {
    for (let at = 0; at < iris.length; at += PART) {
      const rows = await select(`SELECT ?x ?c { VALUES ?x { ${iris.slice(at, at + PART).map(iriText).join(" ")} } ?x a ?c } LIMIT ${PART * 10}`, { signal, timeout: SHORT, graphs: "all" });
      whole &&= rows.length < PART * 10;
      for (const [x, c] of rows) if (x?.type === "iri" && c?.type === "iri") pairs.push([x.value, c.value]);
    }
  } catch {
    whole = false;
  }
  for (const [, c] of pairs) times.set(c, (times.get(c) ?? 0) + 1);
  for (const [x, c] of pairs) {
    const before = made.get(x);
    if (before === undefined || (times.get(c) ?? 0) < (times.get(before) ?? 0)) made.set(x, c);
  }
  return { classes: made, whole };
}

/** Predicates by which these resources have literals, the most frequent first. */
export async function captionPredicates(iris: string[], signal?: AbortSignal): Promise<string[]> {
  const rows = await select(`SELECT ?p (COUNT(*) AS ?n) { VALUES ?x { ${iris.map(iriText).join(" ")} } ?x ?p ?v FILTER(ISLITERAL(?v)) } GROUP BY ?p ORDER BY DESC(?n) ?p LIMIT 30`, { signal, timeout: SHORT, graphs: "all" });
  return rows.flatMap(([p]) => (p ? [p.value] : []));
}

/** A value of a predicate for each of these resources. */
export async function valuesOf(iris: string[], predicate: string, signal?: AbortSignal): Promise<Map<string, string>> {
  const rows = await select(`SELECT ?x (MIN(?v) AS ?w) { VALUES ?x { ${iris.map(iriText).join(" ")} } ?x ${iriText(predicate)} ?v } GROUP BY ?x`, { signal, timeout: SHORT, most: 200, graphs: "all" });
  return new Map(rows.flatMap(([x, v]): [string, string][] => (x && v ? [[x.value, v.value]] : [])));
}
