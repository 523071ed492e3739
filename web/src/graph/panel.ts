// The panel of the selected node: its name, its class, and buttons that add neighbours, pin or hide it.

import { button, failure, h, redrawn } from "../dom.ts";
import { count } from "../format.ts";
import { messageOf, ProblemError } from "../net/http.ts";
import { visible } from "../rdf/term.ts";
import { iriLink, prefixes, termNode } from "../show.ts";
import { PREDICATES, type Way, ways } from "./expand.ts";
import { type GraphNode, isClass } from "./model.ts";

interface Acts {
  /** How many neighbours by a predicate are drawn. */
  known(node: GraphNode, way: Way): number;
  add(node: GraphNode, way: Way): Promise<void>;
  addAll(node: GraphNode): Promise<void>;
  pin(node: GraphNode): void;
  hide(node: GraphNode): void;
  close(): void;
}

export class NodePanel {
  readonly element = h("div", { class: "graph-panel", attrs: { role: "region", "aria-label": "Selected node", hidden: true } });
  private node: GraphNode | undefined;
  private list = h("div");
  private found: Way[] = [];
  private more = false;
  private round = 0;

  constructor(private acts: Acts, private expands: boolean) {}

  show(node: GraphNode | undefined): void {
    if (node === this.node) {
      if (node) this.draw(node);
      return;
    }
    this.node = node;
    this.found = [];
    this.round++;
    this.element.hidden = node === undefined;
    if (!node) return;
    this.list = h("div");
    this.draw(node);
    if (this.expands && node.term.type === "iri") void this.load(node, node.term.value);
  }

  private draw(node: GraphNode): void {
    const { acts } = this;
    const { term } = node;
    const close = button("×", () => acts.close(), { class: "link close", title: "Close", attrs: { "aria-label": "Close" } });
    const title = term.type === "iri" ? iriLink(term.value) : termNode(term, { most: 200, link: false });
    const isIri = term.type === "iri";
    const short = isIri && prefixes.short(term.value) !== undefined;
    redrawn(this.element, () => {
      this.element.replaceChildren(h(
        "div", {},
        h("p", { class: "panel-head" }, h("strong", {}, title), close),
        short ? h("p", { class: "soft small" }, visible(term.value)) : null,
        isClass(node.kind) ? h("p", {}, h("span", { class: "badge" }, iriLink(node.kind))) : null,
        h("p", { class: "tools" }, button(node.pinned ? "Unpin" : "Pin", () => acts.pin(node)), button("Hide", () => acts.hide(node)), isIri && this.expands ? button("Add neighbours", () => void this.run(() => acts.addAll(node))) : null),
        this.list,
      ));
      this.ways(node);
    });
  }

  private async load(node: GraphNode, iri: string): Promise<void> {
    const round = ++this.round;
    this.list.replaceChildren(h("p", { class: "soft" }, "Counting its neighbours…"));
    try {
      const { ways: found, more } = await ways(iri);
      if (round !== this.round) return;
      [this.found, this.more] = [found, more];
      this.ways(node);
    } catch (error) {
      if (round !== this.round) return;
      const late = error instanceof ProblemError && error.problem.kind === "timeout";
      this.list.replaceChildren(late ? h("p", { class: "soft" }, "It has too many neighbours to be counted in time.") : failure(messageOf(error)));
    }
  }

  private ways(node: GraphNode): void {
    if (this.found.length === 0) return;
    const line = (way: Way) => {
      const known = Math.min(way.count, this.acts.known(node, way));
      const name = prefixes.shown(way.predicate);
      const what = known >= way.count ? `All ${count(way.count)} are in the graph` : `Adds neighbours by ${name}`;
      const one = button("", () => void this.run(() => this.acts.add(node, way)), { class: "way-item", title: what, attrs: { disabled: known >= way.count } });
      one.append(h("span", { class: "way", attrs: { "aria-hidden": true } }, way.out ? "→" : "←"), h("bdi", {}, name, way.out ? null : h("span", { class: "unseen" }, " (to it)")), h("span", { class: "count" }, known > 0 ? `${count(known)} of ${count(way.count)}` : count(way.count)));
      return h("li", {}, one);
    };
    this.list.replaceChildren(h("p", { class: "panel-title" }, "Neighbours by predicate"), h("ul", { class: "ways" }, ...this.found.map(line)), ...(this.more ? [h("p", { class: "soft" }, `The ${PREDICATES} most frequent predicates of each direction are listed.`)] : []));
  }

  private async run(act: () => Promise<void>): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.list.append(failure(messageOf(error)));
    }
  }
}
