// What several views know together: the data's description, and what this browser remembers.

import { send } from "./net/http.ts";
import { description, type Description } from "./rdf/description.ts";
import { prefixes } from "./show.ts";

let described: Promise<Description | undefined> | undefined;

/** What the server says about its data, asked for once; `undefined` where it does not say. */
export function data(): Promise<Description | undefined> {
  described ??= send("query", { headers: { Accept: "application/n-triples" } })
    .then(async (response) => {
      const about = description(await response.text());
      // Prefixes for the data's own vocabulary, frequent first.
      for (const { iri } of [...about.predicates, ...about.classList].slice(0, 300)) prefixes.coin(iri);
      return about;
    })
    .catch(() => {
      described = undefined;
      return undefined;
    });
  return described;
}

/** Forgets it: the data has changed. */
export function stale(): void {
  described = undefined;
}

const KEY = "jindou-queries";
const MOST = 30;

/** Queries that ran in this browser, the last one first. */
export function recent(): string[] {
  try {
    const all: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(all) ? all.filter((q): q is string => typeof q === "string") : [];
  } catch {
    return [];
  }
}

export function remember(query: string): void {
  if (query.length > 20_000) return;
  try {
    localStorage.setItem(KEY, JSON.stringify([query, ...recent().filter((q) => q !== query)].slice(0, MOST)));
  } catch {
    // A browser that keeps nothing is fine.
  }
}

export function forgetQueries(): void {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
}
