// Short names of IRIs.

import { COMMON_PREFIXES } from "jindou:prefixes";
import { visible } from "./term.ts";

/** What may follow the colon without an escape: less than SPARQL allows, and enough. */
const LOCAL = /^(?:[A-Za-z0-9_\u00c0-\ufffd](?:[A-Za-z0-9_\-.\u00c0-\ufffd]*[A-Za-z0-9_\-\u00c0-\ufffd])?)?$/;

/** Prefixes that are made up at most, their length, and that of IRIs they are made up for. */
const MOST_MADE = 2000;
const LONGEST_MADE = 24;
const LONGEST_IRI = 2000;

/** The namespace of an IRI: up to its last `#` or `/`, where that is one that can be declared. */
function spaceOf(iri: string): string | undefined {
  const space = iri.slice(0, Math.max(iri.lastIndexOf("#"), iri.lastIndexOf("/")) + 1);
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/]+\//i.test(space) && !space.endsWith("#")) return undefined;
  return /[<>"{}|^`\\\u0000-\u0020]/.test(space) || visible(space) !== space ? undefined : space;
}

/** A host's name without what all have: `department0.university0` for `www.Department0.University0.edu`. */
function hostName(host: string): string {
  const parts = host.replace(/:\d+$/, "").replace(/^www\./i, "").split(".").filter((part) => /^[A-Za-z0-9-]+$/.test(part));
  if (parts.length > 1) parts.pop();
  const name = parts.join(".");
  return /^[A-Za-z][A-Za-z0-9.-]+$/.test(name) ? name : "";
}

export class Prefixes {
  /** IRI of each prefix. */
  readonly all = new Map<string, string>();
  /** Prefix of each namespace. */
  private readonly names = new Map<string, string>();
  /** Prefixes that were made up. */
  private readonly made = new Set<string>();
  /** What the query whose answer is seen declares, and the same by namespace. */
  private declared = new Map<string, string>();
  private declaredNames = new Map<string, string>();

  constructor(pairs: Iterable<[string, string]> = COMMON_PREFIXES) {
    for (const [name, iri] of pairs) {
      this.all.set(name, iri);
      // The first one of a namespace is its name.
      if (!this.names.has(iri)) this.names.set(iri, name);
    }
  }

  /** Takes the declarations of the query whose answer is seen, in place of another one's: no query names what others answer. */
  show(pairs: [string, string][]): void {
    this.declared = new Map(pairs);
    this.declaredNames = new Map([...this.declared].map(([name, iri]) => [iri, name]));
  }

  /** The prefix of a namespace. */
  private nameOf(space: string): string | undefined {
    const name = this.names.get(space);
    return this.declaredNames.get(space) ?? (name !== undefined && this.declared.has(name) ? undefined : name);
  }

  /** The namespace of a prefix. */
  space(name: string): string | undefined {
    return this.declared.get(name) ?? this.all.get(name);
  }

  /** Learns what the server declares; the last one counts. */
  learn(pairs: Iterable<[string, string]>): void {
    for (const [name, iri] of pairs) {
      const before = this.all.get(name);
      if (before !== undefined && before !== iri && this.names.get(before) === name) this.names.delete(before);
      this.all.set(name, iri);
      this.names.set(iri, name);
      this.made.delete(name);
    }
  }

  /** Forgets a prefix. */
  forget(name: string): void {
    const iri = this.all.get(name);
    this.all.delete(name);
    if (iri === undefined || this.names.get(iri) !== name) return;
    this.names.delete(iri);
    // Another prefix of the same namespace takes its place.
    for (const [other, space] of this.all) if (space === iri) this.names.set(iri, other);
  }

  /** Makes up a prefix for the namespace of an IRI that has none, of the namespace's own last word. */
  coin(iri: string): void {
    const space = spaceOf(iri);
    if (space === undefined || this.names.has(space) || this.made.size >= MOST_MADE) return;
    const [host = "", ...path] = space.replace(/^[a-z]+:\/\//i, "").split(/[/#]/).filter((w) => w !== "");
    const word = path.reverse().map((w) => w.replace(/\.[a-z]{2,5}$/i, "").replace(/[^A-Za-z0-9-]/g, "")).find((w) => /^[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$/.test(w)) ?? hostName(host);
    const base = (word || "ns").toLowerCase().slice(0, LONGEST_MADE).replace(/[-.]+$/, "");
    let name = base;
    for (let i = 2; this.all.has(name); i++) name = `${base}${/\d$/.test(base) ? "-" : ""}${i}`;
    this.all.set(name, space);
    this.names.set(space, name);
    this.made.add(name);
  }

  /** Makes up prefixes for namespaces that several of these IRIs share, or that are a whole host. */
  coinFor(iris: Iterable<string>): void {
    const firsts = new Map<string, string>();
    for (const iri of iris) {
      if (iri.length > LONGEST_IRI) continue;
      const space = spaceOf(iri);
      if (space === undefined || space === iri || this.names.has(space)) continue;
      const first = firsts.get(space);
      if (first === undefined) firsts.set(space, iri);
      if ((first !== undefined && first !== iri) || /^[a-z]+:\/\/[^/]*\/$/i.test(space)) this.coin(iri);
    }
  }

  /** True for a prefix that was made up here: neither the server nor a query knows it. */
  isMade(name: string): boolean {
    return this.made.has(name) && !this.declared.has(name);
  }

  /** `foaf:name` for an IRI; `undefined` where no prefix fits. */
  short(iri: string): string | undefined {
    // The longest namespace: cut after each place where one may end, from the back.
    for (let at = iri.length; at > 0; at--) {
      const c = iri[at - 1];
      if (c !== "#" && c !== "/" && c !== ":" && c !== "_" && at !== iri.length) continue;
      const name = this.nameOf(iri.slice(0, at));
      if (name === undefined) continue;
      const local = iri.slice(at);
      // What cannot be seen, or turns the writing around, is shown in the whole IRI, escaped.
      return LOCAL.test(local) && visible(local) === local ? `${name}:${local}` : undefined;
    }
    return undefined;
  }

  /** An IRI as people read it. */
  shown(iri: string): string {
    return this.short(iri) ?? visible(iri);
  }

  /** The IRI of a prefixed name; `undefined` where the prefix is unknown. */
  full(name: string): string | undefined {
    const at = name.indexOf(":");
    const space = at < 0 ? undefined : this.space(name.slice(0, at));
    return space === undefined ? undefined : space + name.slice(at + 1).replace(/\\(.)/g, "$1");
  }
}

/** The prefixes that a query's text declares. */
export function declared(text: string): [string, string][] {
  const all: [string, string][] = [];
  for (const m of text.matchAll(/(?:^|[\s>.])(?:@?prefix)\s+([^\s:<>"]*):\s*<([^\s<>"{}|^`]*)>/gi)) {
    all.push([m[1] ?? "", m[2] ?? ""]);
  }
  return all;
}

/** Puts a declaration on top, after the other ones. Returns what to insert, and where. */
export function declaration(text: string, prefix: string, iri: string): { at: number; insert: string } {
  let at = 0;
  const lead = /^(?:\s*(?:#[^\n]*\n)|\s*(?:prefix\s+[^\s:]*:\s*<[^>\n]*>|base\s*<[^>\n]*>)[^\S\n]*(?:\n|(?=\S)))/i;
  for (let rest = text; ;) {
    const found = lead.exec(rest);
    if (!found) break;
    if (!/^\s*#/.test(found[0])) at = text.length - rest.length + found[0].length;
    rest = rest.slice(found[0].length);
  }
  return { at, insert: `PREFIX ${prefix}: <${iri}>\n` };
}
