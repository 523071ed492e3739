// Classes under those that they are declared subclasses of.

import { button, h } from "../dom.ts";
import { count } from "../format.ts";
import { select } from "../net/select.ts";
import type { Counted } from "../rdf/description.ts";
import { visible } from "../rdf/term.ts";
import { nameOf, prefixes, termNode } from "../show.ts";

/** Declarations that are read, and lines that are drawn. */
const MOST_READ = 5000;
const MOST_LINES = 1500;
/** Lines from which on there is a field to filter them. */
const SHORT = 15;
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

/** Names that are equal up to the case of their letters are told apart by their whole IRIs. */
function twins(iris: string[]): Set<string> {
  const seen = new Map<string, string>();
  const found = new Set<string>();
  for (const iri of iris) {
    const name = nameOf(iri).toLowerCase();
    const other = seen.get(name);
    if (other !== undefined && other !== iri) found.add(iri).add(other);
    seen.set(name, iri);
  }
  return found;
}

/** The classes as a tree where subclasses are declared, by use where there are none. */
export class ClassTree {
  readonly element = h("section", { class: "class-tree tall", attrs: { tabindex: 0, role: "region", "aria-label": "Class tree" } });
  private body = h("div");
  private heading = document.createTextNode("By use");
  private buttons = new Map<string, HTMLElement[]>();
  private counts: Map<string, number>;

  constructor(private classes: Counted[], whole: number, private chosen: (iri: string) => void) {
    this.counts = new Map(classes.map((c) => [c.iri, c.count]));
    const filter = h("input", { attrs: { type: "search", placeholder: "Filter classes", "aria-label": "Filter classes of the tree" } });
    filter.addEventListener("input", () => this.filter(filter.value));
    const note = whole > classes.length ? h("p", { class: "soft" }, `The ${count(classes.length)} largest of ${count(whole)}.`) : null;
    this.element.append(h("h3", {}, this.heading), ...(classes.length > SHORT ? [filter] : []), ...(note ? [note] : []), this.body);
    this.draw([]);
  }

  /** Reads which classes are subclasses of which. */
  async load(): Promise<void> {
    const rows = await select(`PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\nSELECT DISTINCT ?c ?d { ?c rdfs:subClassOf ?d FILTER(ISIRI(?c) && ISIRI(?d) && ?c != ?d) } LIMIT ${MOST_READ}`, { timeout: PATIENCE }).catch(() => []);
    const pairs = rows.flatMap(([c, d]): [string, string][] => (c && d ? [[c.value, d.value]] : []));
    if (pairs.length === 0) return;
    this.heading.data = "Class tree";
    this.draw(pairs);
  }

  private draw(pairs: [string, string][]): void {
    this.buttons.clear();
    const lines = tree(this.classes.map((c) => c.iri), pairs);
    const same = twins([...new Set([...this.classes.map((c) => c.iri), ...pairs.flat()])]);
    const items = (some: Line[]): HTMLElement => h("ul", {}, ...some.map(({ iri, below }) => h("li", {}, this.line(iri, same.has(iri)), below.length > 0 ? items(below) : null)));
    this.body.replaceChildren(items(lines));
  }

  private line(iri: string, whole: boolean): HTMLElement {
    const n = this.counts.get(iri);
    const one = button("", () => this.chosen(iri), { class: "class-item" });
    one.append(termNode({ type: "iri", value: iri }, { link: false }));
    if (whole && prefixes.short(iri) !== undefined) one.append(h("span", { class: "soft small" }, ` ${visible(iri)}`));
    if (n !== undefined) one.append(h("span", { class: "count", title: "instances" }, count(n)));
    const all = this.buttons.get(iri) ?? [];
    all.push(one);
    this.buttons.set(iri, all);
    return one;
  }

  mark(iri: string | undefined): void {
    for (const [one, all] of this.buttons) {
      for (const made of all) {
        if (one === iri) made.setAttribute("aria-current", "true");
        else made.removeAttribute("aria-current");
      }
    }
    if (iri !== undefined) this.buttons.get(iri)?.[0]?.scrollIntoView({ block: "nearest" });
  }

  /** Leaves the lines that have all words, and what they stand below. */
  private filter(text: string): void {
    const words = text.toLowerCase().split(/\s+/).filter((w) => w !== "");
    for (const item of [...this.body.querySelectorAll("li")].reverse()) {
      const own = item.querySelector(":scope > .class-item");
      const said = `${own?.textContent ?? ""} ${own?.querySelector<HTMLElement>("[title]")?.title ?? ""}`.toLowerCase();
      item.hidden = !words.every((w) => said.includes(w)) && !item.querySelector(":scope > ul > li:not([hidden])");
    }
  }
}
