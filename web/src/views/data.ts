// The data at a glance, and ways to add to it.

import { failure, h } from "../dom.ts";
import { count, counted } from "../format.ts";
import { graphs, graphsParameter, isFitted } from "../graphs.ts";
import { ProblemError } from "../net/http.ts";
import { select } from "../net/select.ts";
import { bar } from "../pieces.ts";
import type { Counted } from "../rdf/description.ts";
import { iriText } from "../rdf/term.ts";
import { iriLink, prefixes, queryHash } from "../show.ts";
import { counts, data } from "../state.ts";
import { Connections } from "./connections.ts";
import { HOW_TO_WRITE, type Loader, loader } from "./load.ts";
import { PrefixList } from "./prefix-list.ts";
import type { View } from "./view.ts";

/** Graphs that are listed. */
const GRAPHS = 1000;
/** A list that is longer has a field to filter it. */
const SHORT = 15;

export class DataView implements View {
  readonly title = "Data";
  readonly element = h("section", { class: "data" });
  private facts = h("div");
  private adding = h("div");
  private connections = new Connections();
  private prefixList = new PrefixList();
  private loader: Loader | undefined;
  private round = 0;

  constructor() {
    this.element.append(h("h1", {}, "Data"), this.facts, this.connections.element, this.adding, this.prefixList.element);
  }

  show(): void {
    void this.fill();
  }

  refresh(): void {
    void this.fill();
  }

  hide(): void {
    this.connections.stop();
  }

  private async fill(): Promise<void> {
    const round = ++this.round;
    const about = await data();
    const found = await counts();
    if (round !== this.round) return;
    if (!about || !found) {
      this.facts.replaceChildren(failure("No description of the data: the server requires a token, or cannot be reached."));
      return;
    }
    const named = h("div", {}, "…");
    const which = graphsParameter();
    const link = (text: string) => queryHash(text, which);
    this.facts.replaceChildren(
      h(
        "dl", { class: "facts" },
        fact("Triples", found.triples), fact("Subjects", about.subjects), fact("Predicates", found.predicateCount), fact("Classes", found.classCount), fact("Named graphs", about.graphs),
      ),
      h("p", { class: "soft" }, isFitted()
        ? "The default graph is empty, so the page reads all graphs together."
        : found.ofAll ? "The counts are those of all graphs; the default graph is too large to be counted by itself."
        : about.namedQuads > 0 ? (graphs() === "all" ? "All graphs together." : `The default graph alone; ${counted(about.namedQuads, "triple")} are in named graphs.`) : ""),
      h(
        "div", { class: "columns" },
        list("Classes", "instances", found.classes, found.classCount, (iri) => link(`SELECT ?x WHERE {\n  ?x a ${iriText(iri)}\n}\nLIMIT 1000\n`)),
        list("Predicates", "triples", found.predicates, found.predicateCount, (iri) => link(`SELECT ?s ?o WHERE {\n  ?s ${iriText(iri)} ?o\n}\nLIMIT 1000\n`)),
        named,
      ),
    );
    // What someone is about to load stays as it is.
    if (about.writable) {
      this.loader ??= loader("Load files");
      if (!this.loader.element.isConnected) this.adding.replaceChildren(this.loader.element);
    } else this.adding.replaceChildren(h("h2", {}, "Adding data"), h("p", { class: "soft" }, `This server is read-only. To add data, ${HOW_TO_WRITE}.`));
    void this.prefixList.show(about.writable);
    void this.connections.show(found.classes);
    try {
      const rows = await select(`SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g ORDER BY DESC(?n) LIMIT ${GRAPHS}`, { timeout: 20 });
      if (round !== this.round) return;
      const all = rows.flatMap(([g, n]): Counted[] => (g ? [{ iri: g.value, count: Number(n?.value ?? 0) }] : []));
      const note = about.unionDefault ? "The default graph is the union of them all." : `${counted(about.defaultTriples, "triple")} in the default graph.`;
      named.replaceWith(list(
        "Named graphs", "triples", all, Math.max(about.graphs, all.length), (iri) => queryHash(`SELECT * WHERE {\n  GRAPH ${iriText(iri)} { ?s ?p ?o }\n}\nLIMIT 1000\n`), `${note}${all.length === GRAPHS ? ` The ${count(GRAPHS)} largest named ones are listed.` : ""}`,
      ));
    } catch (error) {
      named.replaceChildren(failure(error instanceof ProblemError ? error.problem.detail : String(error)));
    }
  }
}

function fact(name: string, value: number): HTMLElement {
  return h("div", {}, h("dt", {}, name), h("dd", {}, count(value)));
}

function list(title: string, unit: string, all: Counted[], whole: number, query: (iri: string) => string, note = ""): HTMLElement {
  const most = Math.max(1, ...all.map((c) => c.count));
  const rows = all.map(({ iri, count: n }) => h(
    "tr", {}, h("td", { class: "what" }, iriLink(iri)), h("td", { class: "n" }, count(n)), h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, bar(n / most)),
    h("td", {}, h("a", { class: "ask", title: "Query", attrs: { href: query(iri), "aria-label": `Query ${iri}` } }, "Query")),
  ));
  const listed = whole > all.length ? `The ${count(all.length)} most frequent of ${count(whole)}.` : "";
  return h(
    "div", { class: "list" },
    h("h2", {}, title, " ", h("span", { class: "count" }, count(whole))),
    note || listed ? h("p", { class: "soft" }, [note, listed].filter(Boolean).join(" ")) : null,
    all.length > SHORT ? filter(title, all, rows) : null,
    all.length > 0
      ? h("div", { class: "wide tall", attrs: { tabindex: 0, role: "region", "aria-label": title } }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { attrs: { scope: "col" } }, title), h("th", { class: "n", attrs: { scope: "col" } }, unit), h("td"), h("td"))), h("tbody", {}, ...rows)))
      : h("p", { class: "soft" }, "None."),
  );
}

/** A field that hides the rows whose IRI, short name or label has not all of the words. */
function filter(title: string, all: Counted[], rows: HTMLElement[]): HTMLElement {
  const field = h("input", { attrs: { type: "search", placeholder: `Filter ${title.toLowerCase()}`, "aria-label": `Filter ${title.toLowerCase()}` } });
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter((w) => w !== "");
    all.forEach(({ iri }, i) => {
      const row = rows[i];
      if (!row) return;
      const text = `${iri} ${prefixes.shown(iri)} ${row.firstElementChild?.textContent ?? ""}`.toLowerCase();
      row.hidden = !words.every((w) => text.includes(w));
    });
  });
  return h("p", { class: "list-filter" }, field);
}
