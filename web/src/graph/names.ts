// Names of nodes and edges in a drawing.

import { labelOf } from "../labels.ts";
import { isOwn, nameOf, prefixes } from "../show.ts";
import type { GraphEdge } from "./model.ts";

/** Characters of a node's caption, and of an edge's. */
export const LONGEST = 32;
export const LONGEST_NAME = 28;

/** A short name without its prefix if the page made the prefix up. */
function withoutOwn(short: string): string {
  return isOwn(short) ? short.slice(short.indexOf(":") + 1) || short : short;
}

/** What a resource is called, where no other one is called so. */
export function plainName(iri: string): string {
  return labelOf(iri)?.text ?? withoutOwn(nameOf(iri));
}

export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A long name shortened to its end, which says more than its beginning. */
function tail(name: string): string {
  return name.length > LONGEST_NAME ? `…${name.slice(1 - LONGEST_NAME)}` : name;
}

export function edgeText({ names }: GraphEdge): string {
  const all = [...names].map((name) => tail(withoutOwn(prefixes.shown(name))));
  return all.slice(0, 3).join(", ") + (all.length > 3 ? ", …" : "");
}
