// What the service description (SPARQL 1.1 Service Description, VoID) says about the data.

import { triples } from "./ntriples.ts";

const SD = "http://www.w3.org/ns/sparql-service-description#";
const TERMS = "http://purl.org/dc/terms/";
const VOID = "http://rdfs.org/ns/void#";

export interface Counted {
  iri: string;
  count: number;
  /** True for the label of a blank node. */
  blank?: boolean;
}

export interface Description {
  /** Triples of the dataset. */
  triples: number;
  /** Of the default graph; of all graphs, where it is their union. */
  defaultTriples: number;
  /** Quads of the named graphs, and how many graphs these are. */
  namedQuads: number;
  graphs: number;
  /** True if the server's default graph is the union of all graphs. */
  unionDefault: boolean;
  /** The store's name, where the server gives it. */
  name: string;
  subjects: number;
  properties: number;
  classes: number;
  /** True if the server takes updates. */
  writable: boolean;
  /** The most frequent ones, frequent first. */
  predicates: Counted[];
  classList: Counted[];
}

export function description(text: string): Description {
  const nodes = new Map<string, Map<string, string>>();
  let writable = false;
  let unionDefault = false;
  for (const [s, p, o] of triples(text)) {
    if (p.value === `${SD}supportedLanguage` && o.value === `${SD}SPARQL11Update`) writable = true;
    if (p.value === `${SD}feature` && o.value === `${SD}UnionDefaultGraph`) unionDefault = true;
    const node = nodes.get(s.value) ?? new Map<string, string>();
    nodes.set(s.value, node.set(p.value, o.value));
  }
  const number = (node: string, name: string) => Number(nodes.get(node)?.get(VOID + name) ?? 0);
  const parts = (name: string, count: string): Counted[] => {
    const all: Counted[] = [];
    for (const node of nodes.values()) {
      const iri = node.get(VOID + name);
      if (iri !== undefined) all.push({ iri, count: Number(node.get(VOID + count) ?? 0) });
    }
    return all.sort((a, b) => b.count - a.count || (a.iri < b.iri ? -1 : 1));
  };
  return {
    triples: number("dataset", "triples"),
    defaultTriples: unionDefault ? number("dataset", "triples") : number("default", "triples"),
    namedQuads: number("named", "triples"),
    graphs: number("named", "documents"),
    unionDefault,
    name: nodes.get("dataset")?.get(`${TERMS}title`) ?? "",
    subjects: number("dataset", "distinctSubjects"),
    properties: number("dataset", "properties"),
    classes: number("dataset", "classes"),
    writable,
    predicates: parts("property", "triples"),
    classList: parts("class", "entities"),
  };
}
