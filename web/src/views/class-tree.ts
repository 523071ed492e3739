// The tree of classes by rdfs:subClassOf.

import { button, h } from "../dom.ts";
import { count } from "../format.ts";
import { select } from "../net/select.ts";
import type { Counted } from "../rdf/description.ts";
import { visible } from "../rdf/term.ts";
import { nameOf, prefixes, termNode } from "../show.ts";

/** Declarations that are read, lines that are drawn, and steps that a line is indented at most. */
const MOST_READ = 5000;
const MOST_LINES = 1500;
const MOST_STEPS = 12;
/** Longer lists have a field to filter them. */
const SHORT = 15;
/** Seconds that reading the declarations may take. */
const PATIENCE = 3;

export interface Line {
  iri: string;
  /** The number of its ancestors in the tree. */
  depth: number;
}

/**
 * The tree of pairs of a class and its superclass as lines, in the order of `classes`, and the number of all classes. A class with several
 * superclasses stands below each of them; a circle is cut.
 */
export function tree(classes: string[], pairs: [string, string][], most = MOST_LINES): { lines: Line[]; all: number } {
  const below = new Map<string, Set<string>>();
  for (const [sub, above] of pairs) below.set(above, (below.get(above) ?? new Set()).add(sub));
  const place = new Map(classes.map((iri, i) => [iri, i]));
  const sorted = (iris: Iterable<string>) => [...iris].sort((a, b) => (place.get(a) ?? Infinity) - (place.get(b) ?? Infinity) || (a < b ? -1 : 1));
  const subs = new Set(pairs.map(([sub]) => sub));
  const seen = new Set<string>();
  const above = new Set<string>();
  const lines: Line[] = [];
  const add = (iri: string) => {
    if (above.has(iri) || lines.length === most) return;
    seen.add(iri);
    lines.push({ iri, depth: above.size });
    above.add(iri);
    sorted(below.get(iri) ?? []).forEach(add);
    above.delete(iri);
  };
  const all = sorted(new Set([...classes, ...pairs.flat()]));
  for (const iri of all) if (!subs.has(iri)) add(iri);
  // What is left is in a circle, or below one.
  for (const iri of all) if (!seen.has(iri)) add(iri);
  return { lines, all: all.length };
}

/** Which lines a filter keeps: those that fit, and their ancestors. */
export function kept(lines: Line[], fits: (i: number) => boolean): boolean[] {
  const keeps: boolean[] = [];
  lines.reduceRight((below, { depth }, i) => ((keeps[i] = depth < below || fits(i)) ? depth : below), 0);
  return keeps;
}

/** IRIs whose short names differ by case only: their lines show the whole IRI. */
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

/** The list of classes: a tree if subclasses are declared, else by use. */
export class ClassTree {
  readonly element = h("section", { class: "class-tree tall", attrs: { tabindex: 0, role: "region", "aria-label": "Class tree" } });
  private body = h("ul");
  private note = h("p", { class: "soft" });
  private heading = document.createTextNode("By use");
  private lines: Line[] = [];
  private items: HTMLElement[] = [];
  private counts: Map<string, number>;

  constructor(private classes: Counted[], private whole: number, private chosen: (iri: string) => void) {
    this.counts = new Map(classes.map((c) => [c.iri, c.count]));
    const filter = h("input", { attrs: { type: "search", placeholder: "Filter classes", "aria-label": "Filter classes of the tree" } });
    filter.addEventListener("input", () => this.filter(filter.value));
    this.element.append(h("h3", {}, this.heading), ...(classes.length > SHORT ? [filter] : []), this.note, this.body);
    this.draw([]);
  }

  async load(): Promise<void> {
    const rows = await select(`PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\nSELECT DISTINCT ?c ?d { ?c rdfs:subClassOf ?d FILTER(ISIRI(?c) && ISIRI(?d) && ?c != ?d) } LIMIT ${MOST_READ}`, { timeout: PATIENCE }).catch(() => undefined);
    if (!rows) this.note.append(" Which are subclasses of which could not be read in time.");
    const pairs = (rows ?? []).flatMap(([c, d]): [string, string][] => (c && d ? [[c.value, d.value]] : []));
    if (pairs.length === 0) return;
    this.heading.data = "Class tree";
    this.draw(pairs);
    if (pairs.length === MOST_READ) this.note.append(` Only ${count(MOST_READ)} declarations of subclasses were read.`);
  }

  private draw(pairs: [string, string][]): void {
    const iris = this.classes.map((c) => c.iri);
    const { lines, all } = tree(iris, pairs);
    const same = twins([...new Set([...iris, ...pairs.flat()])]);
    this.lines = lines;
    this.items = lines.map(({ iri, depth }) => {
      const item = h("li", { attrs: { "aria-level": depth + 1 } }, this.line(iri, same.has(iri)));
      item.style.paddingInlineStart = `${Math.min(depth, MOST_STEPS) * 0.9}rem`;
      return item;
    });
    this.body.replaceChildren(...this.items);
    const shown = new Set(lines.map(({ iri }) => iri)).size;
    const { length } = iris;
    this.note.textContent = `${this.whole > length ? `The ${count(length)} largest of ${count(this.whole)}.` : ""}${shown < all ? ` The tree is cut after ${count(lines.length)} lines, with ${count(shown)} of ${count(all)} classes.` : ""}`;
  }

  private line(iri: string, whole: boolean): HTMLElement {
    const n = this.counts.get(iri);
    const one = button("", () => this.chosen(iri), { class: "class-item" });
    one.append(termNode({ type: "iri", value: iri }, { link: false }));
    if (whole && prefixes.short(iri) !== undefined) one.append(h("span", { class: "soft small" }, ` ${visible(iri)}`));
    if (n !== undefined) one.append(h("span", { class: "count", title: "instances" }, count(n)));
    return one;
  }

  mark(iri: string | undefined): void {
    for (const item of this.body.querySelectorAll("[aria-current]")) item.removeAttribute("aria-current");
    const marked = this.items.flatMap((item, i) => (this.lines[i]?.iri === iri ? (item.firstElementChild ?? []) : []));
    for (const item of marked) item.setAttribute("aria-current", "true");
    marked[0]?.scrollIntoView({ block: "nearest" });
  }

  private filter(text: string): void {
    const words = text.toLowerCase().split(/\s+/).filter((w) => w !== "");
    const keeps = kept(this.lines, (i) => {
      const item = this.items[i];
      const said = `${item?.textContent} ${item?.querySelector<HTMLElement>("[title]")?.title}`.toLowerCase();
      return words.every((w) => said.includes(w));
    });
    for (const [i, item] of this.items.entries()) item.hidden = !keeps[i];
  }
}
