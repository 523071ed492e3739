// How the largest classes hang together: which predicate leads from which to which.

import { Graph, type Triple } from "../answer/graph.ts";
import { failure, h } from "../dom.ts";
import { count } from "../format.ts";
import { graphsParameter } from "../graphs.ts";
import { ProblemError } from "../net/http.ts";
import { select } from "../net/select.ts";
import type { Counted } from "../rdf/description.ts";
import { iriText, RDF_TYPE } from "../rdf/term.ts";
import { iriLink, queryHash } from "../show.ts";
import { classTree } from "./class-tree.ts";

/** Classes that are looked at, the largest. */
const CLASSES = 12;
/** Instances of each that are. */
const SAMPLE = 1000;
/** Seconds that one class may take. */
const TIME = 2;
/** Connections of one class that are listed. */
const EACH = 20;

export interface Connection {
  from: string;
  predicate: string;
  to: string;
  count: number;
  /** Instances that were looked at. */
  looked: number;
  /** Whether there are more. */
  sample: boolean;
}

/** What leads from some instances of a class to instances of which classes. */
export function connectionsQuery(iri: string): string {
  return (
    `SELECT ?p ?to (COUNT(*) AS ?n) {\n  { SELECT ?x { ?x a ${iriText(iri)} } LIMIT ${SAMPLE} }\n  ?x ?p ?y .\n  ?y a ?to\n  FILTER(?p != ${iriText(RDF_TYPE)})\n}\n` +
    `GROUP BY ?p ?to\nORDER BY DESC(?n) ?p ?to\nLIMIT ${EACH}`
  );
}

export class Connections {
  readonly element = h("div", { class: "connections" });
  private round = 0;
  private graph: Graph | undefined;

  /** Looks at the largest of these classes, one after the other. */
  async show(classes: Counted[]): Promise<void> {
    const round = ++this.round;
    const looked = classes.slice(0, CLASSES);
    if (looked.length === 0) {
      this.element.replaceChildren();
      return;
    }
    const status = h("p", { class: "soft", attrs: { role: "status" } }, "Looking…");
    this.element.replaceChildren(h("h2", {}, "Connections between classes"), status);
    const all: Connection[] = [];
    let late = 0;
    const classTreeComes = classTree(classes);
    for (const c of looked) {
      try {
        const rows = await select(connectionsQuery(c.iri), { timeout: TIME });
        if (round !== this.round) return;
        for (const [p, to, n] of rows) {
          if (p?.type !== "iri" || to?.type !== "iri") continue;
          all.push({ from: c.iri, predicate: p.value, to: to.value, count: Number(n?.value ?? 0), looked: Math.min(SAMPLE, c.count), sample: c.count > SAMPLE });
        }
      } catch (error) {
        if (round !== this.round) return;
        if (error instanceof ProblemError && error.problem.kind === "timeout") {
          late++;
          continue;
        }
        status.replaceWith(failure(error instanceof ProblemError ? error.problem.detail : String(error)));
        return;
      }
    }
    const tree = await classTreeComes;
    if (round === this.round) this.draw(all, tree, looked.length, classes.length, late);
  }

  /** Ends what is still under way. */
  stop(): void {
    this.round++;
    this.graph?.stop();
  }

  private draw(all: Connection[], tree: HTMLElement | undefined, looked: number, classes: number, late: number): void {
    const said = [`Of the ${looked === classes ? "" : `${looked} largest `}classes, up to ${count(SAMPLE)} instances each.`];
    if (late > 0) said.push(`${late} of them took more than ${TIME} s and ${late === 1 ? "is" : "are"} left out.`);
    if (all.length === 0) {
      this.element.replaceChildren(h("h2", {}, "Connections between classes"), h("p", { class: "soft" }, `${said.join(" ")} No class is connected to another.`), ...(tree ? [tree] : []));
      return;
    }
    const rows = all.map((c) => h(
      "tr", {}, h("td", { class: "what" }, iriLink(c.from)), h("td", { class: "what" }, iriLink(c.predicate)), h("td", { class: "what" }, iriLink(c.to)),
      h("td", { class: "n" }, count(c.count)), h("td", {}, c.sample ? `sample of ${count(c.looked)}` : "all"),
      h("td", {}, h("a", { title: "Query", attrs: { "aria-label": `Query ${c.from} ${c.predicate} ${c.to}`, href: queryHash(`SELECT ?x ?y WHERE {\n  ?x a ${iriText(c.from)} .\n  ?x ${iriText(c.predicate)} ?y .\n  ?y a ${iriText(c.to)}\n}\nLIMIT 1000\n`, graphsParameter()) } }, "Query")),
    ));
    const heads = ["From", "By", "To", "Times", "Counted"].map((t) => h("th", { attrs: { scope: "col" } }, t));
    this.graph?.stop();
    this.graph = new Graph({ colours: false });
    this.element.replaceChildren(
      h("h2", {}, "Connections between classes"), h("p", { class: "soft" }, said.join(" ")), h("div", { class: tree ? "diagram with-tree" : "diagram" }, this.graph.element, tree),
      h("div", { class: "wide tall", attrs: { tabindex: 0, role: "region", "aria-label": "Connections between classes" } }, h("table", {}, h("thead", {}, h("tr", {}, ...heads, h("td"))), h("tbody", {}, ...rows))),
    );
    this.graph.add(all.map((c): Triple => [{ type: "iri", value: c.from }, { type: "iri", value: c.predicate }, { type: "iri", value: c.to }]));
  }
}
