// Finds resources by words of their labels and by parts of their IRIs.

import { graphsOfNames } from "../graphs.ts";
import { choose, LABELS, languages } from "../labels.ts";
import { iriText, written } from "../rdf/term.ts";
import { prefixes } from "../show.ts";
import { data } from "../state.ts";
import { dressed, token } from "./http.ts";
import { select } from "./select.ts";

export interface Hit {
  iri: string;
  label?: string;
  lang?: string;
  /** What the words were found in. */
  matched?: string;
  class?: string;
}

export interface Found {
  results: Hit[];
  /** False if there may be more. */
  complete: boolean;
  /** What would make such a search complete, where the server knows something. */
  hint?: string;
}

/** Results that are asked for. */
const MOST = 20;
/** Labels that are looked through where the server cannot search. */
const LOOKED = 200_000;
/** Seconds that a search may take. */
export const PATIENCE = 2;

let canSearch = true;

export async function search(words: string, signal: AbortSignal): Promise<Found> {
  if (canSearch) {
    const parameters = new URLSearchParams({ q: words, limit: String(MOST), lang: languages().join(","), graphs: graphsOfNames(), timeout: String(PATIENCE) });
    const response = await fetch(`search?${parameters}`, dressed({ signal }, token()));
    if (response.ok) return (await response.json()) as Found;
    if (response.status !== 501) return { results: [], complete: false };
    canSearch = false;
  }
  return scan(words, signal);
}

/** Looks through names of the vocabulary and a bounded number of labels: for stores that the server cannot search. */
async function scan(text: string, signal: AbortSignal): Promise<Found> {
  const words = text.toLowerCase().split(/\s+/).filter((w) => w !== "");
  const results = new Map<string, Hit>();
  if (/^[a-z][a-z0-9+.-]*:\/\/\S+$/i.test(text)) results.set(text, { iri: text });
  const full = /^[^\s:]*:\S+$/.test(text) ? prefixes.full(text) : undefined;
  if (full) results.set(full, { iri: full });
  const about = await data();
  for (const { iri } of [...(about?.classList ?? []), ...(about?.predicates ?? [])]) {
    if (results.size >= MOST / 2) break;
    const name = prefixes.shown(iri).toLowerCase();
    if (words.every((w) => name.includes(w))) results.set(iri, { iri, matched: iri });
  }
  const has = words.map((w) => `CONTAINS(LCASE(STR(?l)), ${written({ type: "literal", value: w })})`).join(" && ");
  const query = `SELECT ?x ?l { { SELECT ?x ?l { VALUES ?p { ${LABELS.map(iriText).join(" ")} } ?x ?p ?l } LIMIT ${LOOKED} } FILTER(ISIRI(?x) && ${has}) } LIMIT ${MOST * 10}`;
  try {
    const texts = new Map<string, { predicate: number; text: string; lang: string }[]>();
    for (const [x, l] of await select(query, { signal, timeout: PATIENCE, most: 200, graphs: graphsOfNames() })) {
      if (x?.type !== "iri" || l?.type !== "literal") continue;
      texts.set(x.value, [...(texts.get(x.value) ?? []), { predicate: 0, text: l.value, lang: l.language ?? "" }]);
    }
    const labelled = [...texts].map(([iri, all]): Hit => {
      const best = choose(all);
      return { iri, matched: all[0]?.text ?? "", ...(best ? { label: best.text, lang: best.lang } : {}) };
    });
    // A short label has more of what was asked for.
    labelled.sort((a, b) => (a.label?.length ?? 0) - (b.label?.length ?? 0));
    for (const hit of labelled.slice(0, MOST - results.size)) results.set(hit.iri, { ...results.get(hit.iri), ...hit });
  } catch (error) {
    if (signal.aborted) throw error;
  }
  return { results: [...results.values()], complete: false };
}
