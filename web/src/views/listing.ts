// A list of IRIs with their counts: classes, predicates, named graphs.

import { h } from "../dom.ts";
import { count } from "../format.ts";
import { bar } from "../pieces.ts";
import type { Counted } from "../rdf/description.ts";
import { iriLink, prefixes } from "../show.ts";

/** A list that is longer has a field to filter it. */
const SHORT = 15;

export interface Listing {
  title: string;
  /** What is counted. */
  unit: string;
  all: Counted[];
  /** How many there are, where not all are listed. */
  whole: number;
  /** The address of a query for one of them. */
  query: (iri: string) => string;
  note?: string;
  /** What else can be done with one. */
  acts?: (one: Counted) => HTMLElement[];
}

export function list({ title, unit, all, whole, query, note = "", acts }: Listing): HTMLElement {
  const most = Math.max(1, ...all.map((c) => c.count));
  const rows = all.map((one) => h(
    "tr", {}, h("td", { class: "what" }, iriLink(one.iri)), h("td", { class: "n" }, count(one.count)),
    // Where there is more to do, names need the room.
    acts ? null : h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, bar(one.count / most)),
    h("td", { class: "acts" }, h("a", { class: "ask", title: "Query", attrs: { href: query(one.iri), "aria-label": `Query ${one.iri}` } }, "Query"), ...(acts?.(one) ?? [])),
  ));
  const listed = whole > all.length ? `The ${count(all.length)} most frequent of ${count(whole)}.` : "";
  return h(
    "div", { class: "list" },
    h("h2", {}, title, " ", h("span", { class: "count" }, count(whole))),
    note || listed ? h("p", { class: "soft" }, [note, listed].filter(Boolean).join(" ")) : null,
    all.length > SHORT ? filter(title, all, rows) : null,
    all.length > 0
      ? h("div", { class: "wide tall", attrs: { tabindex: 0, role: "region", "aria-label": title } }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { attrs: { scope: "col" } }, title), h("th", { class: "n", attrs: { scope: "col" } }, unit), acts ? null : h("td"), h("td"))), h("tbody", {}, ...rows)))
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
