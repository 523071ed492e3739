// Names that people gave to IRIs: asked for in batches, of what is on the screen, and kept.

import { tell } from "./events.ts";
import { dressed, token } from "./net/http.ts";
import { graphsOfNames, inGraphs } from "./graphs.ts";
import { select } from "./net/select.ts";
import { iriText } from "./rdf/term.ts";
import { data } from "./state.ts";

/** Predicates that give a name, the best first: those that the server takes unless it is told otherwise. */
export const LABELS = [
  "http://www.w3.org/2000/01/rdf-schema#label", "http://www.w3.org/2004/02/skos/core#prefLabel", "http://schema.org/name", "https://schema.org/name",
  "http://xmlns.com/foaf/0.1/name", "http://purl.org/dc/terms/title",
];

/** The last word of predicates that give a name, too; those of a part of a name come last. */
const NAMING = /(?:name|title|label)$/i;
const PART_OF_NAME = /(?:first|last|given|family|middle|sur|nick|user|file|host|alternative|alt|short|sub)[-_]?(?:name|title|label)$/i;
/** Predicates of the data's own that are read for labels. */
const MOST_OWN = 8;

/** How well a predicate names things: less is better, `Infinity` for one that does not. */
export function namingRank(predicate: string): number {
  const at = LABELS.indexOf(predicate);
  if (at >= 0) return at;
  const word = /[^/#:]*$/.exec(predicate)?.[0] ?? "";
  if (!NAMING.test(word)) return Infinity;
  return LABELS.length + (/^(?:label|name|title)$/i.test(word) ? 0 : PART_OF_NAME.test(word) ? 2 : 1);
}

/** Predicates of the data that give names and that the server does not look at for labels. */
async function ownNaming(): Promise<string[]> {
  const all = (await data())?.predicates ?? [];
  return all.map(({ iri }) => iri).filter((iri) => !LABELS.includes(iri) && namingRank(iri) < Infinity).sort((a, b) => namingRank(a) - namingRank(b)).slice(0, MOST_OWN);
}

export interface Label {
  text: string;
  lang: string;
}

/** Most IRIs of one request. */
const MOST = 500;
/** Milliseconds that a batch waits for more. */
const PAUSE = 40;
/** Labels that are kept. */
const KEPT = 20_000;
/** Seconds that names of the data's own may take. */
const PATIENCE = 2;
/** Characters of a label that are shown. */
export const LONGEST = 120;

const KEY = "jindou-labels";
/** `null`: there is none. */
let known = new Map<string, Label | null>();
/** The IRIs that have a text as their label. */
let named = new Map<string, Set<string>>();
let wanted = new Map<string, ((label: Label | null) => void)[]>();
let timer: ReturnType<typeof setTimeout> | undefined;
let on = read();
/** Of which graphs the known ones are. */
let of = "";

function read(): boolean {
  try {
    return localStorage.getItem(KEY) !== "off";
  } catch {
    return true;
  }
}

export function labelsOn(): boolean {
  return on;
}

export function switchLabels(to: boolean): void {
  on = to;
  try {
    localStorage.setItem(KEY, to ? "on" : "off");
  } catch {
    // It holds for this visit.
  }
  tell("labels");
}

/** Forgets all labels: the data has changed. */
export function forgetLabels(): void {
  known = new Map();
  named = new Map();
}

/** True if another IRI has the same label: alone, it does not tell which of them is meant. */
export function isShared({ text }: Label): boolean {
  return (named.get(text)?.size ?? 0) > 1;
}

/** The languages of the browser, the most wanted first, without their regions. */
export function languages(): string[] {
  return [...new Set([...navigator.languages.map((l) => l.split("-")[0]?.toLowerCase() ?? ""), "en"])].filter((l) => l !== "");
}

/** The label if it is known; `null` where there is none, `undefined` where it has not been asked for. */
export function labelOf(iri: string): Label | null | undefined {
  return on ? known.get(iri) : null;
}

/** Gives the label when it is there. */
export function label(iri: string): Promise<Label | null> {
  if (of !== graphsOfNames()) {
    of = graphsOfNames();
    forgetLabels();
  }
  const found = known.get(iri);
  if (found !== undefined) return Promise.resolve(found);
  return new Promise((resolve) => {
    wanted.set(iri, [...(wanted.get(iri) ?? []), resolve]);
    timer ??= setTimeout(() => void flush(), PAUSE);
  });
}

/** Shows labels in elements whose IRIs they are, as far as these are still on the screen when the batch goes. */
const waiting = new Map<HTMLElement, (label: Label) => void>();

export function labelled(element: HTMLElement, iri: string, show: (label: Label) => void): void {
  if (!on) return;
  const found = known.get(iri);
  if (found) show(found);
  if (found !== undefined) return;
  element.dataset["labelOf"] = iri;
  waiting.set(element, show);
  timer ??= setTimeout(() => void flush(), PAUSE);
}

async function flush(): Promise<void> {
  timer = undefined;
  for (const [element, show] of waiting) {
    const iri = element.dataset["labelOf"];
    // What was scrolled away is not asked for.
    if (!element.isConnected || iri === undefined) continue;
    void label(iri).then((found) => found && show(found));
  }
  waiting.clear();
  clearTimeout(timer);
  timer = undefined;
  const all = [...wanted];
  wanted = new Map();
  let shares = false;
  for (let i = 0; i < all.length; i += MOST) {
    const part = all.slice(i, i + MOST);
    const found = await fetchLabels(part.map(([iri]) => iri));
    for (const [iri, resolves] of part) {
      const one = found?.get(iri) ?? null;
      // What could not be asked is asked again the next time.
      if (found) known.set(iri, one);
      if (one) {
        const owners = named.get(one.text) ?? new Set();
        named.set(one.text, owners.add(iri));
        shares ||= owners.size === 2;
      }
      for (const resolve of resolves) resolve(one);
    }
  }
  for (const oldest of known.keys()) {
    if (known.size <= KEPT) break;
    const text = known.get(oldest)?.text ?? "";
    const owners = named.get(text);
    if (owners?.delete(oldest) && owners.size === 0) named.delete(text);
    known.delete(oldest);
  }
  // What is on the screen already now needs more than its label.
  if (shares) tell("labels");
}

/** The labels of those that have one; `undefined` where the server gave no answer. No one is asked for a token, and no error is shown. */
async function fetchLabels(iris: string[]): Promise<Map<string, Label> | undefined> {
  try {
    // Only the description says which graphs the server reads by itself.
    await data();
    const body = new URLSearchParams([...iris.map((iri): [string, string] => ["iri", iri]), ["lang", languages().join(",")]]);
    const response = await fetch(inGraphs("labels", graphsOfNames()), dressed({ method: "POST", body }, token()));
    if (!response.ok) return undefined;
    const { labels } = (await response.json()) as { labels: Record<string, { text: string; lang?: string }> };
    const found = new Map(Object.entries(labels).map(([iri, l]) => [iri, { text: l.text, lang: l.lang ?? "" }]));
    return new Map([...(await namesOf(iris.filter((iri) => !found.has(iri)))), ...found]);
  } catch {
    return undefined;
  }
}

/** The names that the data's own predicates give. */
async function namesOf(iris: string[]): Promise<Map<string, Label>> {
  const own = iris.length > 0 ? await ownNaming() : [];
  if (own.length === 0) return new Map();
  const values = (name: string, all: string[]) => `VALUES ${name} { ${all.map(iriText).join(" ")} }`;
  const text = `SELECT ?x ?p ?v { ${values("?x", iris)} ${values("?p", own)} ?x ?p ?v FILTER(ISLITERAL(?v)) } LIMIT ${iris.length * 10}`;
  const found = new Map<string, { predicate: number; text: string; lang: string }[]>();
  const rows = await select(text, { timeout: PATIENCE, most: LONGEST, graphs: graphsOfNames() }).catch(() => []);
  for (const [x, p, v] of rows) {
    if (!x || !p || v?.type !== "literal") continue;
    const names = found.get(x.value) ?? [];
    names.push({ predicate: own.indexOf(p.value), text: v.value, lang: v.language ?? "" });
    found.set(x.value, names);
  }
  return new Map([...found].flatMap(([iri, names]) => {
    const best = choose(names);
    return best ? [[iri, best] as [string, Label]] : [];
  }));
}

/** The best of several: by language, then by predicate. */
export function choose(all: { predicate: number; text: string; lang: string }[], own = languages()): Label | undefined {
  const rank = ({ lang }: { lang: string }) => {
    if (lang === "") return own.length;
    const at = own.indexOf(lang.split("-")[0]?.toLowerCase() ?? "");
    return at < 0 ? own.length + 1 : at;
  };
  const [best] = [...all].filter(({ text }) => text.trim() !== "").sort((a, b) => rank(a) - rank(b) || a.predicate - b.predicate || (a.text < b.text ? -1 : 1));
  return best && { text: best.text.trim(), lang: best.lang };
}
