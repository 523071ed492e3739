// Classes under those that they are declared subclasses of.

import { h } from "../dom.ts";
import { count } from "../format.ts";
import { select } from "../net/select.ts";
import type { Counted } from "../rdf/description.ts";
import { iriLink } from "../show.ts";

/** Declarations that are read, and lines that are drawn. */
const MOST_READ = 5000;
const MOST_LINES = 500;
/** Seconds. */
const PATIENCE = 3;

export interface Line {
  iri: string;
  below: Line[];
}

/** The tree of pairs of a class and its superclass, in the order of `classes`. A class with several superclasses stands below each of them; a circle is cut. */
export function tree(classes: string[], pairs: [string, string][], most = MOST_LINES): Line[] {
  const below = new Map<string, Set<string>>();
  for (const [sub, above] of pairs) below.set(above, (below.get(above) ?? new Set()).add(sub));
  const place = new Map(classes.map((iri, i) => [iri, i]));
  const sorted = (iris: Iterable<string>) => [...iris].sort((a, b) => (place.get(a) ?? Infinity) - (place.get(b) ?? Infinity) || (a < b ? -1 : 1));
  const subs = new Set(pairs.map(([sub]) => sub));
  const seen = new Set<string>();
  let left = most;
  const line = (iri: string, above: string[]): Line | undefined => {
    if (above.includes(iri) || left-- <= 0) return undefined;
    seen.add(iri);
    return { iri, below: sorted(below.get(iri) ?? []).flatMap((sub) => line(sub, [...above, iri]) ?? []) };
  };
  const all = sorted(new Set([...classes, ...pairs.flat()]));
  const roots = all.filter((iri) => !subs.has(iri)).flatMap((iri) => line(iri, []) ?? []);
  // What is left hangs on a circle.
  return [...roots, ...all.flatMap((iri) => (seen.has(iri) ? [] : (line(iri, []) ?? [])))];
}

/** The tree as an element; `undefined` where no class is declared a subclass. */
export async function classTree(classes: Counted[]): Promise<HTMLElement | undefined> {
  const rows = await select(`PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\nSELECT DISTINCT ?c ?d { ?c rdfs:subClassOf ?d FILTER(ISIRI(?c) && ISIRI(?d) && ?c != ?d) } LIMIT ${MOST_READ}`, { timeout: PATIENCE }).catch(() => []);
  const pairs = rows.flatMap(([c, d]): [string, string][] => (c && d ? [[c.value, d.value]] : []));
  if (pairs.length === 0) return undefined;
  const counts = new Map(classes.map((c) => [c.iri, c.count]));
  const items = (lines: Line[]): HTMLElement => h("ul", {}, ...lines.map(({ iri, below }) => {
    const n = counts.get(iri);
    return h("li", {}, iriLink(iri), " ", n === undefined ? null : h("span", { class: "count", title: "instances" }, count(n)), below.length > 0 ? items(below) : null);
  }));
  return h("section", { class: "class-tree tall", attrs: { tabindex: 0, role: "region", "aria-label": "Class tree" } }, h("h3", {}, "Class tree"), items(tree(classes.map((c) => c.iri), pairs)));
}
