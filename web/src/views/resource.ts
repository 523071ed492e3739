// A resource's page: what the data says about it, and what points at it, a page at a time.

import { Graph, type Triple } from "../answer/graph.ts";
import { button, failure, h } from "../dom.ts";
import { count, counted } from "../format.ts";
import { ProblemError } from "../net/http.ts";
import { type Row, select } from "../net/select.ts";
import { iriText, isWeb, RDF_TYPE, type Term, visible } from "../rdf/term.ts";
import { copyText, iriLink, prefixes, queryHash, showValue, termNode } from "../show.ts";
import type { View } from "./view.ts";

/** Values of one predicate on a page. */
const PAGE = 20;
/** Groups of values that are fetched as the page opens; the others when they are opened. */
const OPENED = 25;
/** Predicates that are listed. */
const LISTED = 500;
/** Neighbours of a resource in a picture. */
const NEIGHBOURS = 40;
/** Seconds. */
const PATIENCE = 20;

const LABELS = [
  "http://www.w3.org/2004/02/skos/core#prefLabel", "http://www.w3.org/2000/01/rdf-schema#label", "http://schema.org/name", "https://schema.org/name",
  "http://xmlns.com/foaf/0.1/name", "http://purl.org/dc/terms/title", "http://purl.org/dc/elements/1.1/title",
];

type Way = "out" | "in";

interface Group {
  way: Way;
  graph: string | null;
  predicate: string;
  count: number;
}

export class ResourceView implements View {
  title = "Resource";
  readonly element = h("section", { class: "resource" });
  private iri = "";
  private stop = new AbortController();
  private graph: Graph | undefined;

  show(parameters: URLSearchParams): void {
    const iri = parameters.get("iri") ?? "";
    if (iri === this.iri && this.element.childElementCount > 0) return;
    this.hide();
    this.iri = iri;
    this.stop = new AbortController();
    this.title = prefixes.shown(iri);
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
    const label = h("p", { class: "label" });
    const out = h("div", { attrs: { "aria-busy": true } }, "…");
    const into = h("div", { attrs: { "aria-busy": true } }, "…");
    const also = h("p", { class: "also" });
    const picture = h("div");
    const copied = h("span", { attrs: { role: "status" } });
    const web = isWeb(iri) ? h("a", { class: "button", attrs: { href: iri, rel: "noreferrer noopener", target: "_blank" } }, "On the web ↗") : null;
    const ask = h("a", { class: "button", attrs: { href: queryHash(`SELECT * WHERE {\n  ${name} ?p ?o\n}\nLIMIT 1000\n`) } }, "Query");
    this.element.replaceChildren(
      h("h1", { attrs: { dir: "ltr" } }, prefixes.shown(iri)), label,
      h("p", { class: "tools" }, h("code", { attrs: { dir: "ltr" } }, visible(iri)), " ", button("Copy", () => void copyText(iri).then((d) => (copied.textContent = d ? "copied" : "not allowed"))), copied, " ", ask, " ", web, " ", button("Neighbourhood", () => void this.draw(picture), { title: "Draws what is around it" })),
      also, picture,
      h("h2", {}, "Outgoing triples"), out,
      h("h2", {}, "Incoming triples"), into,
    );
    document.title = `${prefixes.shown(iri)} · Jindou`;
    await Promise.all([
      this.groups("out", name, out, signal, label),
      this.groups("in", name, into, signal, label),
      this.also(name, also, signal),
    ]);
  }

  /** Other parts it plays. */
  private async also(name: string, place: HTMLElement, signal: AbortSignal): Promise<void> {
    const predicate = `{ SELECT (COUNT(*) AS ?n) { { ?s ${name} ?o } UNION { GRAPH ?g { ?s ${name} ?o } } } }`;
    const graph = `{ SELECT (COUNT(*) AS ?m) { GRAPH ${name} { ?s ?p ?o } } }`;
    try {
      const [row] = await select(`SELECT ?n ?m { ${predicate} ${graph} }`, { signal, timeout: PATIENCE });
      const [n, m] = [Number(row?.[0]?.value ?? 0), Number(row?.[1]?.value ?? 0)];
      if (n > 0) place.append(`It is the predicate of ${counted(n, "triple")}: `, h("a", { attrs: { href: queryHash(`SELECT * WHERE {\n  ?s ${name} ?o\n}\nLIMIT 1000\n`) } }, "show them"), ". ");
      if (m > 0) place.append(`It is a graph of ${counted(m, "triple")}: `, h("a", { attrs: { href: queryHash(`SELECT * WHERE {\n  GRAPH ${name} { ?s ?p ?o }\n}\nLIMIT 1000\n`) } }, "show them"), ".");
    } catch {
      // The rest of the page stands without it; whatever is wrong is said there.
    }
  }

  private async groups(way: Way, name: string, place: HTMLElement, signal: AbortSignal, label: HTMLElement): Promise<void> {
    const pattern = way === "out" ? `${name} ?p ?v` : `?v ?p ${name}`;
    const text = `SELECT ?g ?p (COUNT(*) AS ?n) { { ${pattern} } UNION { GRAPH ?g { ${pattern} } } } GROUP BY ?g ?p ORDER BY DESC(?n) LIMIT ${LISTED}`;
    try {
      const found = await select(text, { signal, timeout: PATIENCE });
      const groups = found.flatMap(([g, p, n]): Group[] => (p ? [{ way, graph: g?.value ?? null, predicate: p.value, count: Number(n?.value ?? 0) }] : []));
      // What says what it is comes first, then few before many: a hub's millions are not what one reads first.
      const rank = ({ predicate }: Group) => (predicate === RDF_TYPE ? 0 : LABELS.includes(predicate) ? 1 : 2);
      groups.sort((a, b) => rank(a) - rank(b) || (way === "out" ? a.count - b.count : 0));
      place.removeAttribute("aria-busy");
      if (groups.length === 0) {
        place.replaceChildren(h("p", { class: "soft" }, way === "out" ? "None: no triple has this subject." : "None: no triple has this object."));
        return;
      }
      const listed = groups.length === LISTED ? h("p", { class: "soft" }, `The ${LISTED} most frequent predicates are listed.`) : "";
      place.replaceChildren(...groups.map((group, i) => this.section(group, name, i < OPENED, signal, label)), listed);
    } catch (error) {
      if (signal.aborted) return;
      place.removeAttribute("aria-busy");
      place.replaceChildren(failure(error instanceof ProblemError ? error.problem.detail : String(error)));
    }
  }

  private section(group: Group, name: string, open: boolean, signal: AbortSignal, label: HTMLElement): HTMLElement {
    const values = h("div", { class: "values" });
    const where = group.graph === null ? "" : h("span", { class: "soft" }, ` in ${prefixes.shown(group.graph)}`);
    const ways = h("p", { class: "ways" }, "Predicate ", iriLink(group.predicate), group.graph === null ? null : " in graph ", group.graph === null ? null : iriLink(group.graph));
    const made = h(
      "details", { class: "group", attrs: { open } },
      h("summary", {}, h("span", { class: "iri", title: visible(group.predicate), attrs: { dir: "ltr" } }, prefixes.shown(group.predicate)), " ", h("span", { class: "count" }, count(group.count)), where),
      values, ways,
    );
    let filled = false;
    const fill = () => {
      if (filled || !made.open) return;
      filled = true;
      void this.page(group, name, values, 0, signal, label);
    };
    made.addEventListener("toggle", fill);
    fill();
    return made;
  }

  private async page(group: Group, name: string, place: HTMLElement, from: number, signal: AbortSignal, label: HTMLElement): Promise<void> {
    const predicate = iriText(group.predicate);
    const triple = group.way === "out" ? `${name} ${predicate} ?v` : `?v ${predicate} ${name}`;
    const pattern = group.graph === null ? triple : `GRAPH ${iriText(group.graph)} { ${triple} }`;
    place.setAttribute("aria-busy", "true");
    try {
      const found = await select(`SELECT ?v { ${pattern} } LIMIT ${PAGE} OFFSET ${from}`, { signal, timeout: PATIENCE });
      const items = found.map(([value]) => h("li", {}, valueNode(value ?? null)));
      place.replaceChildren(h("ul", {}, ...items), this.pager(group, name, place, from, signal, label));
      if (group.way === "out" && group.graph === null && LABELS.includes(group.predicate)) this.name(found, label);
    } catch (error) {
      if (!signal.aborted) place.replaceChildren(failure(error instanceof ProblemError ? error.problem.detail : String(error)));
    }
    place.removeAttribute("aria-busy");
  }

  /** Puts a name that people gave it under its IRI, in their language if there is one. */
  private name(values: Row[], label: HTMLElement): void {
    const texts = values.flatMap(([t]) => (t?.type === "literal" ? [t] : []));
    const own = navigator.languages.map((l) => l.split("-")[0]);
    const best = own.map((l) => texts.find((t) => t.language?.split("-")[0] === l)).find((t) => t) ?? texts.find((t) => !t.language) ?? texts[0];
    if (best && label.childElementCount === 0) label.replaceChildren(termNode(best, { most: 200 }));
  }

  private pager(group: Group, name: string, place: HTMLElement, from: number, signal: AbortSignal, label: HTMLElement): HTMLElement | string {
    if (group.count <= PAGE) return "";
    const last = Math.floor((group.count - 1) / PAGE) * PAGE;
    const to = (text: string, at: number, what: string) =>
      button(text, () => void this.page(group, name, place, at, signal, label), { title: what, attrs: { "aria-label": what, disabled: at < 0 || at > last || at === from } });
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
    const graph = new Graph((around) => neighbours(around, this.stop.signal));
    this.graph = graph;
    place.replaceChildren(graph.element);
    try {
      const found = await neighbours(iri, this.stop.signal);
      if (found.length === 0) place.replaceChildren(h("p", { class: "soft" }, "There are no neighbours to draw."));
      else graph.add(found, iri);
    } catch (error) {
      if (!this.stop.signal.aborted) place.replaceChildren(failure(error instanceof ProblemError ? error.problem.detail : String(error)));
    }
  }
}

/** A value, and a way to see all of it if it is long. */
function valueNode(term: Term | null): HTMLElement {
  const node = termNode(term);
  if (term?.type !== "literal" || term.value.length <= 300) return node;
  node.append(" ", button("Show all", () => showValue(term), { class: "link" }));
  return node;
}

/** Triples around a resource, some of each way. */
async function neighbours(iri: string, signal: AbortSignal): Promise<Triple[]> {
  const name = iriText(iri);
  const me: Term = { type: "iri", value: iri };
  const [out, into] = await Promise.all([
    select(`SELECT DISTINCT ?p ?o { { ${name} ?p ?o } UNION { GRAPH ?g { ${name} ?p ?o } } } LIMIT ${NEIGHBOURS}`, { signal, timeout: PATIENCE, most: 100 }),
    select(`SELECT DISTINCT ?s ?p { { ?s ?p ${name} } UNION { GRAPH ?g { ?s ?p ${name} } } } LIMIT ${NEIGHBOURS / 2}`, { signal, timeout: PATIENCE, most: 100 }),
  ]);
  return [
    ...out.flatMap(([p, o]): Triple[] => (p && o ? [[me, p, o]] : [])),
    ...into.flatMap(([s, p]): Triple[] => (s && p ? [[s, p, me]] : [])),
  ];
}
