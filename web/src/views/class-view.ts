// The classes at a glance: their tree, how they connect, and what instances of the chosen one have.

import { failure, h } from "../dom.ts";
import { count, counted } from "../format.ts";
import { classExample } from "../examples.ts";
import { Graph } from "../graph/graph.ts";
import { graphsParameter } from "../graphs.ts";
import { messageOf, ProblemError } from "../net/http.ts";
import { select } from "../net/select.ts";
import type { Counted } from "../rdf/description.ts";
import { iriText, RDF_TYPE } from "../rdf/term.ts";
import { iriLink, queryHash } from "../show.ts";
import { ClassTree } from "./class-tree.ts";

/** The largest classes, whose connections are read, and requests at a time. */
const CLASSES = 24;
const AT_ONCE = 3;
/** Instances of a class that are read. */
const SAMPLE = 1000;
/** Seconds that one class may take, and all of them. */
const TIME = 2;
const TIME_IN_ALL = 8;
/** Connections of one class that are read, and properties. */
const EACH = 20;
const PROPERTIES = 60;

interface Connection {
  from: string;
  predicate: string;
  to: string;
  count: number;
  /** Instances that were read. */
  looked: number;
  /** All instances. */
  whole: number;
}

const some = (iri: string) => `{ SELECT ?x { ?x a ${iriText(iri)} } LIMIT ${SAMPLE} }`;

/** Counts the predicates and classes of what some instances of a class lead to. */
function connectionsQuery(iri: string): string {
  return (
    `SELECT ?p ?to (COUNT(*) AS ?n) {\n  ${some(iri)}\n  ?x ?p ?y .\n  ?y a ?to\n  FILTER(?p != ${iriText(RDF_TYPE)})\n}\n` +
    `GROUP BY ?p ?to\nORDER BY DESC(?n) ?p ?to\nLIMIT ${EACH}`
  );
}

export class ClassView {
  readonly element = h("div", { class: "class-view connections" });
  private round = 0;
  private graph: Graph | undefined;
  private tree: ClassTree | undefined;
  private details = h("div", { class: "class-details", attrs: { role: "region", "aria-label": "Chosen class", tabindex: 0 } });
  private chosen: string | undefined;
  private choosing = false;
  private classes: Counted[] = [];

  /** Shows the tree at once, and the connections of the largest classes when they are known. `whole`: classes that there are. */
  async show(classes: Counted[], whole: number): Promise<void> {
    const round = ++this.round;
    this.graph?.stop();
    this.graph = undefined;
    this.classes = classes;
    this.chosen = undefined;
    if (classes.length === 0) {
      this.element.replaceChildren();
      return;
    }
    const status = h("p", { class: "soft", attrs: { role: "status" } }, "Looking how the classes connect…");
    const tree = new ClassTree(classes, whole, (iri) => this.choose(iri));
    this.tree = tree;
    const diagram = h("div", { class: "diagram" });
    const below = h("div");
    this.details.replaceChildren(h("p", { class: "soft" }, "Choose a class in the tree or in the diagram to see what its instances have."));
    this.element.replaceChildren(h("h2", {}, "Classes"), status, h("div", { class: "class-columns" }, tree.element, diagram, this.details), below);
    try {
      const [{ all, late }] = await Promise.all([this.connections(classes.slice(0, CLASSES), () => round === this.round), tree.load()]);
      if (round !== this.round) return;
      tree.mark(this.chosen);
      this.draw(all, late, status, diagram, below);
    } catch (error) {
      if (round === this.round) status.replaceWith(failure(messageOf(error)));
    }
  }

  /** Requests that are under way end without effect. */
  stop(): void {
    this.round++;
    this.graph?.stop();
  }

  private async connections(classes: Counted[], wanted: () => boolean): Promise<{ all: Connection[]; late: number }> {
    const found = new Map<string, Connection[]>();
    const until = performance.now() + TIME_IN_ALL * 1000;
    const rest = [...classes];
    let late = 0;
    const look = async () => {
      for (let c = rest.shift(); c && wanted(); c = rest.shift()) {
        const { iri, count: whole } = c;
        try {
          if (performance.now() > until) throw new ProblemError({ status: 0, kind: "timeout", detail: "" });
          const rows = await select(connectionsQuery(iri), { timeout: TIME });
          found.set(iri, rows.flatMap(([p, to, n]): Connection[] => (p?.type === "iri" && to?.type === "iri" ? [{ from: iri, predicate: p.value, to: to.value, count: Number(n?.value ?? 0), looked: Math.min(SAMPLE, whole), whole }] : [])));
        } catch (error) {
          if (!(error instanceof ProblemError && error.problem.kind === "timeout")) throw error;
          late++;
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, look));
    return { all: classes.flatMap(({ iri }) => found.get(iri) ?? []), late };
  }

  private draw(all: Connection[], late: number, status: HTMLElement, diagram: HTMLElement, below: HTMLElement): void {
    status.textContent = looked(this.classes.length, late, all.length > 0);
    if (all.length === 0) {
      diagram.remove();
      return;
    }
    const graph = new Graph({ colours: false, namesOnSelection: true, selected: (node) => !this.choosing && this.choose(node?.term.value) });
    this.graph = graph;
    const sizes = new Map(this.classes.map((c) => [c.iri, c.count]));
    const node = (iri: string) => {
      const made = graph.model.node({ type: "iri", value: iri });
      if (made) made.weight = sizes.get(iri) ?? 1;
      return made;
    };
    for (const c of all) {
      const [from, to] = [node(c.from), node(c.to)];
      if (from && to) graph.model.edge(from, to, c.predicate, (c.count / Math.max(1, c.looked)) * c.whole);
    }
    diagram.replaceChildren(graph.element);
    graph.begin();
    below.replaceChildren(this.table(all));
    if (this.chosen !== undefined) this.light(this.chosen);
  }

  private table(all: Connection[]): HTMLElement {
    const rows = all.map((c) => h(
      "tr", {}, h("td", { class: "what" }, iriLink(c.from)), h("td", { class: "what" }, iriLink(c.predicate)), h("td", { class: "what" }, iriLink(c.to)),
      h("td", { class: "n" }, count(c.count)), h("td", {}, c.whole > c.looked ? `sample of ${count(c.looked)}` : "all"),
      h("td", {}, h("a", { title: "Query", attrs: { "aria-label": `Query ${c.from} ${c.predicate} ${c.to}`, href: queryHash(`SELECT ?x ?y WHERE {\n  ?x a ${iriText(c.from)} .\n  ?x ${iriText(c.predicate)} ?y .\n  ?y a ${iriText(c.to)}\n}\nLIMIT 1000\n`, graphsParameter()) } }, "Query")),
    ));
    const heads = ["From", "By", "To", "Times", "Counted"].map((t) => h("th", { attrs: { scope: "col" } }, t));
    return h("div", { class: "wide tall", attrs: { tabindex: 0, role: "region", "aria-label": "Connections between classes" } }, h("table", {}, h("thead", {}, h("tr", {}, ...heads, h("td"))), h("tbody", {}, ...rows)));
  }

  private light(iri: string | undefined): void {
    this.choosing = true;
    this.graph?.select(iri === undefined ? undefined : this.graph.model.nodes.get(iriText(iri)));
    this.choosing = false;
  }

  /** Shows a class's properties, and selects it in the tree and the diagram. */
  private choose(iri: string | undefined): void {
    if (iri === this.chosen) return;
    this.chosen = iri;
    this.tree?.mark(iri);
    this.light(iri);
    if (iri !== undefined) void this.describe(iri);
    else this.details.replaceChildren(h("p", { class: "soft" }, "No class is chosen."));
  }

  private async describe(iri: string): Promise<void> {
    const whole = this.classes.find((c) => c.iri === iri)?.count;
    const head = h("div", {}, h("h3", {}, iriLink(iri)), whole === undefined ? null : h("p", { class: "soft" }, counted(whole, "instance")));
    this.details.replaceChildren(head, h("p", { class: "soft" }, "Looking at its instances…"));
    try {
      const found = await select(`SELECT ?p (COUNT(DISTINCT ?x) AS ?with) (COUNT(*) AS ?n) {\n  ${some(iri)}\n  ?x ?p ?v\n}\nGROUP BY ?p\nORDER BY DESC(?with) DESC(?n) ?p\nLIMIT ${PROPERTIES}`, { timeout: TIME * 2 });
      if (this.chosen !== iri) return;
      this.details.replaceChildren(head, ...this.properties(iri, found.flatMap(([p, n, m]) => (p ? [{ iri: p.value, instances: Number(n?.value ?? 0), triples: Number(m?.value ?? 0) }] : [])), whole));
    } catch (error) {
      if (this.chosen === iri) this.details.replaceChildren(head, failure(messageOf(error)));
    }
  }

  private properties(iri: string, found: { iri: string; instances: number; triples: number }[], whole: number | undefined): HTMLElement[] {
    // Every instance has rdf:type, so its count is that of the instances that were read.
    const looked = Math.max(1, ...found.filter((p) => p.iri === RDF_TYPE).map((p) => p.instances));
    const own = found.filter((p) => p.iri !== RDF_TYPE);
    const text = classExample(iri, own.map((p) => ({ predicate: p.iri, always: p.instances >= looked })));
    const example = [h("p", { class: "panel-title" }, "An example query"), h("pre", {}, text), h("p", {}, h("a", { class: "button", attrs: { href: queryHash(text, graphsParameter()) } }, "Run it"))];
    if (own.length === 0) return [h("p", { class: "soft" }, "Its instances have no other property than their class."), ...example];
    const rows = own.map((p) => h("tr", {}, h("td", { class: "what" }, iriLink(p.iri)), h("td", { class: "n" }, count(p.instances)), h("td", { class: "n" }, count(p.triples))));
    const heads = h("tr", {}, h("th", { attrs: { scope: "col" } }, "Property"), h("th", { class: "n", attrs: { scope: "col" } }, "Instances"), h("th", { class: "n", attrs: { scope: "col" } }, "Values"));
    const note = whole !== undefined && whole > looked ? `Counted in a sample of ${counted(looked, "instance")}.` : `Counted in ${looked === 1 ? "its one instance" : `all ${count(looked)} instances`}.`;
    return [h("p", { class: "soft" }, found.length === PROPERTIES ? `${note} The ${PROPERTIES} most frequent are listed.` : note), h("table", { class: "class-properties" }, h("thead", {}, heads), h("tbody", {}, ...rows)), ...example];
  }
}

/** What the diagram shows, in words. `late`: classes whose query took too long. */
export function looked(classes: number, late: number, found: boolean): string {
  const most = Math.min(CLASSES, classes);
  const words = [`Of the ${most < classes ? `${most} largest ` : ""}classes, up to ${count(SAMPLE)} instances and ${EACH} connections each.`];
  if (late > 0) words.push(`${late} of ${most} took too long and are left out.`);
  if (found) words.push("Nodes are as large as their classes, edges as wide as their use; a chosen class names its edges.");
  else if (late < most) words.push(late > 0 ? "None of the others is connected." : "No class is connected to another.");
  return words.join(" ");
}
