// A resource's page: what the data says about it and what refers to it in two columns, each predicate once, a page of values at a time.

import { button, failure, h } from "../dom.ts";
import { count, counted } from "../format.ts";
import { neighbours } from "../graph/expand.ts";
import { Graph } from "../graph/graph.ts";
import { languages, label as labelFor, LONGEST, namingRank } from "../labels.ts";
import { messageOf } from "../net/http.ts";
import { type Row, select } from "../net/select.ts";
import { iriText, isWeb, RDF_TYPE, type Term, visible } from "../rdf/term.ts";
import { copyText, iriLink, learnNames, prefixes, queryHash, showValue, termNode } from "../show.ts";
import { entitle } from "../title.ts";
import { blankHash } from "./blank-node.ts";
import { Pictures } from "./pictures.ts";
import type { View } from "./view.ts";

/** Values of one predicate on a page. */
const PAGE = 20;
/** Values that are shown before someone opens the rest. */
const FEW = 5;
/** Groups of values that are fetched as the page opens; the others when they are opened. */
const OPENED = 25;
/** Predicates that are listed. */
const LISTED = 500;
/** Characters of a value before someone asks for all of it. */
const LONG = 300;
/** Seconds. */
const PATIENCE = 20;
const SHORT = 2;
/** Classes of neighbours that are listed. */
const CLASSES = 12;

/** Predicates that say what something is, in a few sentences. */
const DESCRIPTIONS = [
  "http://www.w3.org/2000/01/rdf-schema#comment", "http://www.w3.org/2004/02/skos/core#definition", "http://purl.org/dc/terms/description", "http://purl.org/dc/elements/1.1/description",
  "http://schema.org/description", "https://schema.org/description", "http://dbpedia.org/ontology/abstract",
];

type Way = "out" | "in";

interface Group {
  way: Way;
  predicate: string;
  count: number;
}

/** Resource pages read all graphs: someone who asks about a resource wants all that is there. */
const ALL = { graphs: "all" as const, timeout: PATIENCE };

export class ResourceView implements View {
  title = "Resource";
  readonly element = h("section", { class: "resource" });
  private iri = "";
  private stop = new AbortController();
  private graph: Graph | undefined;
  private heading = h("h1");
  private badges = h("span", { class: "badges" });
  private about = h("p", { class: "description" });
  private pictures = new Pictures();

  show(parameters: URLSearchParams): void {
    const iri = parameters.get("iri") ?? "";
    if (iri === this.iri && this.element.childElementCount > 0) return;
    this.hide();
    this.iri = iri;
    this.stop = new AbortController();
    learnNames([{ type: "iri", value: iri }]);
    this.title = prefixes.shown(iri);
    void this.fill(this.stop.signal);
  }

  refresh(): void {
    const { iri } = this;
    this.hide();
    this.iri = iri;
    this.stop = new AbortController();
    void this.fill(this.stop.signal);
  }

  hide(): void {
    this.stop.abort();
    this.graph?.stop();
    this.iri = "";
  }

  private async fill(signal: AbortSignal): Promise<void> {
    const { iri } = this;
    const name = iriText(iri);
    const out = h("div", { attrs: { "aria-busy": true } }, "…");
    const into = h("div", { attrs: { "aria-busy": true } }, "…");
    const also = h("p", { class: "also" });
    const classes = h("p", { class: "badges" });
    const picture = h("div");
    const copied = h("span", { attrs: { role: "status" } });
    const web = isWeb(iri) ? h("a", { class: "button", attrs: { href: iri, rel: "noreferrer noopener", target: "_blank" } }, "On the web ↗") : null;
    const ask = h("a", { class: "button", attrs: { href: queryHash(`SELECT * WHERE {\n  ${name} ?p ?o\n}\nLIMIT 1000\n`) } }, "Query");
    this.heading = h("h1", {}, h("bdi", { attrs: { dir: "ltr" } }, prefixes.shown(iri)));
    /** The IRI, where the heading is not the IRI itself: it is read once. */
    const whole = h("span");
    this.badges = h("span", { class: "badges" });
    this.about = h("p", { class: "description" });
    this.pictures = new Pictures();
    this.element.replaceChildren(
      h("header", { class: "resource-head" }, this.heading, this.badges),
      h("p", { class: "resource-iri" }, prefixes.short(iri) === undefined ? whole : h("code", { attrs: { dir: "ltr" } }, visible(iri)), " ", button("Copy", () => void copyText(iri).then((d) => (copied.textContent = d ? "copied" : "not allowed")), { class: "link" }), " ", copied),
      this.about, this.pictures.element,
      h("p", { class: "tools" }, ask, " ", web, " ", button("Neighbourhood", () => void this.draw(picture), { title: "Draws what is around it" })),
      also, classes, picture,
      h(
        "div", { class: "ways-both" },
        h("section", {}, h("h2", {}, "Properties"), out),
        h("section", {}, h("h2", {}, "Referenced by"), into),
      ),
    );
    entitle(this.title);
    void labelFor(iri).then((found) => {
      if (!found || signal.aborted) return;
      const text = visible(found.text.slice(0, LONGEST));
      // The heading was the IRI, and is its label now.
      whole.replaceChildren(h("code", { attrs: { dir: "ltr" } }, visible(iri)));
      this.heading.replaceChildren(h("bdi", { class: "label", attrs: { dir: "auto", ...(found.lang ? { lang: found.lang } : {}) } }, text));
      this.title = text;
      entitle(text);
    });
    await Promise.all([this.groups("out", name, out, signal), this.groups("in", name, into, signal), this.graphsOf(name, also, signal), this.around(name, classes, signal)]);
  }

  /** Says of which classes its neighbours are. */
  private async around(name: string, place: HTMLElement, signal: AbortSignal): Promise<void> {
    const pattern = `{ ${name} ?p ?x } UNION { ?x ?p ${name} }`;
    try {
      const found = await select(`SELECT ?c (COUNT(DISTINCT ?x) AS ?n) { ${pattern} FILTER(?x != ${name} && ?p != ${iriText(RDF_TYPE)}) ?x a ?c } GROUP BY ?c ORDER BY DESC(?n) LIMIT ${CLASSES}`, { ...ALL, timeout: SHORT, signal });
      const parts = found.flatMap(([c, n]) => (c?.type === "iri" ? [h("span", { class: "badge" }, iriLink(c.value), " ", h("a", { title: "Query", attrs: { href: queryHash(`SELECT DISTINCT ?x WHERE {\n  ${pattern}\n  ?x a ${iriText(c.value)}\n}\nLIMIT 1000\n`), "aria-label": `${count(Number(n?.value ?? 0))} neighbours of class ${c.value}` } }, count(Number(n?.value ?? 0))))] : []));
      if (parts.length > 0) place.replaceChildren("Neighbours: ", ...parts);
    } catch {
      // A resource with millions of neighbours is not counted.
    }
  }

  /** Says where its triples stand, and whether it is a graph or a predicate itself. */
  private async graphsOf(name: string, place: HTMLElement, signal: AbortSignal): Promise<void> {
    try {
      const [[graph], [asPredicate], inGraphs] = await Promise.all([
        select(`SELECT (COUNT(*) AS ?n) { GRAPH ${name} { ?s ?p ?o } }`, { ...ALL, signal }),
        select(`SELECT (COUNT(*) AS ?n) { ?s ${name} ?o }`, { ...ALL, signal }),
        select(`SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ${name} ?p ?o } } GROUP BY ?g ORDER BY DESC(?n) LIMIT 5`, { ...ALL, signal }),
      ]);
      const said: (Node | string)[] = [];
      const n = Number(graph?.[0]?.value ?? 0);
      if (n > 0) said.push(`It is a graph of ${counted(n, "triple")}: `, h("a", { attrs: { href: queryHash(`SELECT * WHERE {\n  GRAPH ${name} { ?s ?p ?o }\n}\nLIMIT 1000\n`) } }, "show them"), ". ");
      const m = Number(asPredicate?.[0]?.value ?? 0);
      if (m > 0) said.push(`It is the predicate of ${counted(m, "triple")}: `, h("a", { attrs: { href: queryHash(`SELECT * WHERE {\n  ?s ${name} ?o\n}\nLIMIT 1000\n`) } }, "show them"), ". ");
      inGraphs.forEach(([g, times], i) => {
        if (g) said.push(i === 0 ? "In graph " : ", ", iriLink(g.value), ` (${counted(Number(times?.value ?? 0), "triple")})`);
      });
      if (inGraphs.length > 0) said.push(".");
      place.replaceChildren(...said);
    } catch {
      // The rest of the page stands without it; whatever is wrong is said there.
    }
  }

  private async groups(way: Way, name: string, place: HTMLElement, signal: AbortSignal): Promise<void> {
    const pattern = way === "out" ? `${name} ?p ?v` : `?v ?p ${name}`;
    try {
      const found = await select(`SELECT ?p (COUNT(*) AS ?n) { ${pattern} } GROUP BY ?p ORDER BY DESC(?n) LIMIT ${LISTED}`, { ...ALL, signal });
      const groups = found.flatMap(([p, n]): Group[] => (p ? [{ way, predicate: p.value, count: Number(n?.value ?? 0) }] : []));
      // What says what it is comes first, then few before many: a hub's millions are not what one reads first.
      const rank = ({ predicate }: Group) => (predicate === RDF_TYPE ? 0 : namingRank(predicate) < Infinity ? 1 : DESCRIPTIONS.includes(predicate) ? 2 : 3);
      groups.sort((a, b) => rank(a) - rank(b) || (way === "out" ? a.count - b.count : 0));
      place.removeAttribute("aria-busy");
      if (groups.length === 0) {
        place.replaceChildren(h("p", { class: "soft" }, way === "out" ? "None: no triple has this subject." : "None: no triple has this object."));
        return;
      }
      const rows = groups.map((group, i) => this.row(group, name, i < OPENED, signal));
      const heads = h("thead", {}, h("tr", {}, h("th", { attrs: { scope: "col" } }, "Predicate"), h("th", { attrs: { scope: "col" } }, way === "out" ? "Value" : "Resource")));
      place.replaceChildren(
        h("table", { class: "properties" }, heads, h("tbody", {}, ...rows)),
        groups.length === LISTED ? h("p", { class: "soft" }, `The ${LISTED} most frequent predicates are listed.`) : "",
      );
    } catch (error) {
      if (signal.aborted) return;
      place.removeAttribute("aria-busy");
      place.replaceChildren(failure(messageOf(error)));
    }
  }

  private row(group: Group, name: string, open: boolean, signal: AbortSignal): HTMLElement {
    const values = h("div", { class: "values" });
    const many = group.count > 1 ? h("span", { class: "count" }, count(group.count)) : null;
    if (open) void this.page(group, name, values, 0, FEW, signal);
    else values.append(button(`Show ${counted(group.count, "value")}`, () => void this.page(group, name, values, 0, FEW, signal), { class: "link" }));
    return h("tr", {}, h("th", { attrs: { scope: "row" } }, iriLink(group.predicate), " ", many), h("td", {}, values));
  }

  private async page(group: Group, name: string, place: HTMLElement, from: number, size: number, signal: AbortSignal): Promise<void> {
    const predicate = iriText(group.predicate);
    const triple = group.way === "out" ? `${name} ${predicate} ?v` : `?v ${predicate} ${name}`;
    const { iri } = this;
    place.setAttribute("aria-busy", "true");
    try {
      const found = await select(`SELECT ?v { ${triple} } LIMIT ${size} OFFSET ${from}`, { ...ALL, signal });
      const step = `${group.way === "out" ? ">" : "<"}${group.predicate}`;
      learnNames(found.map(([value]) => value));
      const items = found.map(([value]) => h("li", {}, valueNode(value ?? null, (label) => blankHash(label, { from: iri, by: [step] }))));
      place.replaceChildren(h("ul", {}, ...items), this.pager(group, name, place, from, size, signal));
      if (group.way === "out") this.learn(group, found);
    } catch (error) {
      if (!signal.aborted) place.replaceChildren(failure(messageOf(error)));
    }
    place.removeAttribute("aria-busy");
  }

  /** Takes from the values what stands at the head of the page: classes, a description, pictures, a place. */
  private learn({ predicate }: Group, values: Row[]): void {
    const terms = values.flatMap(([t]) => (t ? [t] : []));
    if (predicate === RDF_TYPE) this.badges.replaceChildren(...terms.flatMap((t) => (t.type === "iri" ? [h("span", { class: "badge" }, iriLink(t.value))] : [])));
    if (DESCRIPTIONS.includes(predicate) && this.about.childElementCount === 0) {
      const own = languages();
      const texts = terms.filter((t) => t.type === "literal");
      const rank = (t: Term) => (t.type === "literal" && t.language ? (own.indexOf(t.language.split("-")[0] ?? "") + 100) % 100 : 50);
      const [best] = [...texts].sort((a, b) => rank(a) - rank(b));
      if (best) this.about.replaceChildren(termNode(best, { most: 500 }));
    }
    for (const term of terms) this.pictures.take(predicate, term);
  }

  private pager(group: Group, name: string, place: HTMLElement, from: number, size: number, signal: AbortSignal): HTMLElement | string {
    if (group.count <= size && from === 0) return "";
    if (size < PAGE) return h("p", { class: "pager" }, button(`Show ${group.count > PAGE ? `more of ${count(group.count)}` : `all ${count(group.count)}`}`, () => void this.page(group, name, place, 0, PAGE, signal), { class: "link" }));
    const last = Math.floor((group.count - 1) / PAGE) * PAGE;
    const to = (text: string, at: number, what: string) =>
      button(text, () => void this.page(group, name, place, at, PAGE, signal), { title: what, attrs: { "aria-label": what, disabled: at < 0 || at > last || at === from } });
    return h(
      "p", { class: "pager" },
      to("«", 0, "First page"), to("‹", from - PAGE, "Previous page"),
      h("span", { attrs: { role: "status" } }, `${count(from + 1)}–${count(Math.min(from + PAGE, group.count))} of ${count(group.count)}`),
      to("›", from + PAGE, "Next page"), to("»", last, "Last page"),
    );
  }

  private async draw(place: HTMLElement): Promise<void> {
    const { iri } = this;
    this.graph?.stop();
    const { signal } = this.stop;
    const graph = new Graph({ expands: true });
    this.graph = graph;
    place.replaceChildren(graph.element);
    try {
      const found = await neighbours(iri, signal);
      if (found.triples.length === 0) place.replaceChildren(h("p", { class: "soft" }, "There are no neighbours to draw."));
      else graph.draw(iri, found);
    } catch (error) {
      if (!signal.aborted) place.replaceChildren(failure(messageOf(error)));
    }
  }
}

/** A value, and a way to see all of it if it is long. */
function valueNode(term: Term | null, blank: (label: string) => string): HTMLElement {
  const node = termNode(term, { blank });
  if (term?.type !== "literal" || term.value.length <= LONG) return node;
  node.append(" ", button("Show all", () => showValue(term), { class: "link" }));
  return node;
}
