// A blank node's page. Its label is no name in a query, so it is asked for by the way that leads to it from an IRI, and found by the
// label among what is there.

import { failure, h } from "../dom.ts";
import { count, counted } from "../format.ts";
import { select } from "../net/select.ts";
import { problemIn } from "../net/upload.ts";
import { iriText, type Term, visible } from "../rdf/term.ts";
import { iriLink, queryHash, termNode } from "../show.ts";
import type { View } from "./view.ts";

/** Triples around all nodes at the end of the way that are looked through. */
const MOST = 10_000;
/** Seconds. */
const PATIENCE = 20;

/** A way from an IRI: predicates, each with `>` in front where it is followed to its object, and with `<` to its subject. */
export interface Way {
  from: string;
  by: string[];
}

/** The address of a blank node's page. */
export function blankHash(label: string, { from, by }: Way): string {
  return `#/blank?${new URLSearchParams([["node", label], ["from", from], ...by.map((step): [string, string] => ["by", step])])}`;
}

/** The pattern that leads to `?x`. */
function pattern({ from, by }: Way): string {
  let at = iriText(from);
  return by.map((step, i) => {
    const next = i === by.length - 1 ? "?x" : `?n${i}`;
    const predicate = iriText(step.slice(1));
    const triple = step.startsWith("<") ? `${next} ${predicate} ${at} .` : `${at} ${predicate} ${next} .`;
    at = next;
    return triple;
  }).join("\n  ");
}

export class BlankView implements View {
  readonly title = "Blank node";
  readonly element = h("section", { class: "resource" });
  private control = new AbortController();

  show(parameters: URLSearchParams): void {
    const label = parameters.get("node") ?? "";
    void this.fill(label, { from: parameters.get("from") ?? "", by: parameters.getAll("by") });
  }

  hide(): void {
    this.control.abort();
  }

  private async fill(label: string, way: Way): Promise<void> {
    this.control.abort();
    const { signal } = (this.control = new AbortController());
    const lead = pattern(way);
    const out = h("section", { attrs: { "aria-busy": true } }, h("h2", {}, "Properties"));
    const into = h("section", { attrs: { "aria-busy": true } }, h("h2", {}, "Referenced by"));
    const ask = h("a", { class: "button", attrs: { href: queryHash(`SELECT ?x ?p ?v WHERE {\n  ${lead}\n  ?x ?p ?v\n}\nLIMIT 1000\n`) } }, "Query");
    this.element.replaceChildren(
      h("h1", {}, "Blank node ", h("code", {}, `_:${visible(label)}`)),
      h("p", { class: "resource-iri" }, "From ", iriLink(way.from), ...way.by.flatMap((step) => [step.startsWith("<") ? " ← " : " → ", iriLink(step.slice(1))])),
      h("p", { class: "tools" }, ask), h("div", { class: "ways-both" }, out, into),
    );
    await Promise.all([this.list(out, "?x ?p ?v", ">", label, way, signal), this.list(into, "?v ?p ?x", "<", label, way, signal)]);
  }

  private async list(place: HTMLElement, triple: string, side: string, label: string, way: Way, signal: AbortSignal): Promise<void> {
    try {
      const rows = await select(`SELECT DISTINCT ?x ?p ?v { ${pattern(way)} ${triple} } LIMIT ${MOST}`, { signal, timeout: PATIENCE, graphs: "all" });
      const groups = new Map<string, Term[]>();
      for (const [x, p, v] of rows) {
        if (x?.type === "blank" && x.value === label && p && v) groups.set(p.value, [...(groups.get(p.value) ?? []), v]);
      }
      const lines = [...groups].map(([p, values]) => h(
        "tr", {}, h("th", { attrs: { scope: "row" } }, iriLink(p), " ", values.length > 1 ? h("span", { class: "count" }, count(values.length)) : null),
        h("td", {}, h("div", { class: "values" }, h("ul", {}, ...values.map((v) => h("li", {}, termNode(v, { blank: (to) => blankHash(to, { from: way.from, by: [...way.by, side + p] }) })))))),
      ));
      place.append(lines.length > 0 ? h("table", { class: "properties" }, h("tbody", {}, ...lines)) : h("p", { class: "soft" }, rows.length === MOST ? `None among the first ${counted(MOST, "triple")} at the end of this way.` : "None."));
    } catch (error) {
      if (!signal.aborted) place.append(failure(problemIn(error).detail));
    }
    place.removeAttribute("aria-busy");
  }
}
