// What several views know together: the server's description of its data, and its counts in the graphs that are read.

import { fit, graphs, type Graphs } from "./graphs.ts";
import { send } from "./net/http.ts";
import { loadPrefixes } from "./net/prefixes.ts";
import { select } from "./net/select.ts";
import { written } from "./rdf/term.ts";
import { description, type Counted, type Description } from "./rdf/description.ts";
import { prefixes } from "./show.ts";

let described: Promise<Description | undefined> | undefined;

/** What the server says about its data, asked for once; `undefined` where it does not say. */
export function data(): Promise<Description | undefined> {
  described ??= Promise.all([send("query", { headers: { Accept: "application/n-triples" } }).then((r) => r.text()), loadPrefixes()])
    .then(([text]) => {
      const about = description(text);
      fit(about);
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
  counted.clear();
}

/** The classes and predicates of the graphs that are read. */
export interface Counts {
  triples: number;
  subjects: number;
  /** The most frequent ones, frequent first. */
  classes: Counted[];
  predicates: Counted[];
  /** How many there are. */
  classCount: number;
  predicateCount: number;
  /** True where the default graph alone was too large to be counted: all but its triples are of all graphs. */
  ofAll: boolean;
}

/** Most classes, predicates or graphs that are listed, as in the server's own description. */
export const LISTED = 1000;
/** Seconds that counting may take. */
const PATIENCE = 5;

const counted = new Map<Graphs, Promise<Counts>>();

export async function counts(): Promise<Counts | undefined> {
  const asked = data();
  const about = await asked;
  if (!about) return undefined;
  // The data has changed meanwhile.
  if (asked !== described) return counts();
  // Which graphs are read may be another since the description came.
  const which = graphs();
  let found = counted.get(which);
  if (!found) {
    found = count(about, which);
    counted.set(which, found);
  }
  return found;
}

/** How often each IRI is the `?k` of a pattern, frequent first: of those that have all words, or that a prefixed name among them stands for. */
export async function listed(pattern: string, { words = [], timeout = PATIENCE, which = graphs() }: { words?: string[]; timeout?: number; which?: Graphs } = {}): Promise<Counted[]> {
  const has = words.map((word) => {
    const texts = [word, prefixes.full(word) ?? word].map((text) => written({ type: "literal", value: text.toLowerCase() }));
    return `FILTER(CONTAINS(LCASE(STR(?k)), ${texts[0]}) || CONTAINS(LCASE(STR(?k)), ${texts[1]}))`;
  });
  const rows = await select(`SELECT ?k (COUNT(*) AS ?n) { ${pattern} ${has.join(" ")} } GROUP BY ?k ORDER BY DESC(?n) ?k LIMIT ${LISTED}`, { timeout, graphs: which });
  return rows.flatMap(([k, n]) => (k && k.type !== "literal" ? [{ iri: k.value, count: Number(n?.value ?? 0), ...(k.type === "iri" ? {} : { blank: true }) }] : []));
}

async function count(about: Description, which: Graphs): Promise<Counts> {
  const all: Counts = {
    triples: about.triples, subjects: about.subjects, classes: about.classList, predicates: about.predicates, classCount: about.classes, predicateCount: about.properties, ofAll: false,
  };
  // The description counts all graphs; the default graph is counted where it is something else.
  if (which === "all" || about.namedQuads === 0 || about.unionDefault) return all;
  if (about.defaultTriples === 0) return { ...all, triples: 0, subjects: 0, classes: [], predicates: [], classCount: 0, predicateCount: 0 };
  try {
    const number = async (what: string, pattern: string) => Number((await select(`SELECT (COUNT(DISTINCT ${what}) AS ?n) { ${pattern} }`, { timeout: PATIENCE, graphs: which }))[0]?.[0]?.value ?? 0);
    const iris = async (pattern: string) => (await listed(pattern, { which })).filter(({ blank }) => !blank);
    const [classes, predicates, subjects] = await Promise.all([iris("?s a ?k"), iris("?s ?k ?o"), number("?s", "?s ?p ?o")]);
    // A list that is full may not be all.
    const whole = (found: Counted[], pattern: string) => (found.length < LISTED ? found.length : number("?k", pattern));
    const [classCount, predicateCount] = await Promise.all([whole(classes, "?s a ?k"), whole(predicates, "?s ?k ?o")]);
    return { triples: about.defaultTriples, subjects, classes, predicates, classCount, predicateCount, ofAll: false };
  } catch {
    return { ...all, triples: about.defaultTriples, ofAll: true };
  }
}
