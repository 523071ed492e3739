// A list of IRIs with their counts: classes, predicates, named graphs.

import { h } from "../dom.ts";
import { count } from "../format.ts";
import { bar } from "../pieces.ts";
import type { Counted } from "../rdf/description.ts";
import { visible } from "../rdf/term.ts";
import { iriLink, prefixes } from "../show.ts";
import { LISTED } from "../state.ts";

/** Longer lists have a field to filter them. */
const SHORT = 15;

interface Listing {
  title: string;
  /** What is counted. */
  unit: string;
  all: Counted[];
  /** How many there are; more than `all` has if not all are listed. */
  whole: number;
  /** The address of a query about one of them. */
  query: (iri: string) => string;
  note?: string;
  /** Buttons for one of them. */
  acts?: (one: Counted) => HTMLElement[];
  /** Asks the server for those that have all of the words. */
  find: (words: string[]) => Promise<Counted[]>;
}

/** Milliseconds between the last key and a request for those that are not listed. */
const PAUSE = 300;

export function list(listing: Listing): HTMLElement {
  const { title, unit, all, whole, note = "", acts } = listing;
  const body = h("tbody", {}, ...rows(listing, all));
  const part = whole > all.length ? `The ${count(all.length)} most frequent of ${count(whole)}.` : "";
  return h(
    "div", { class: "list" },
    h("h2", {}, title, " ", h("span", { class: "count" }, count(whole))),
    note || part ? h("p", { class: "soft" }, [note, part].filter(Boolean).join(" ")) : null,
    all.length > SHORT ? filter(listing, body) : null,
    all.length > 0
      ? h("div", { class: "wide tall", attrs: { tabindex: 0, role: "region", "aria-label": title } }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { attrs: { scope: "col" } }, title), h("th", { class: "n", attrs: { scope: "col" } }, unit), acts ? null : h("td"), h("td"))), body))
      : h("p", { class: "soft" }, "None."),
  );
}

function rows({ all, query, acts }: Listing, some: Counted[]): HTMLElement[] {
  const most = Math.max(1, all[0]?.count ?? 1);
  return some.map((one) => h(
    "tr", {}, h("td", { class: "what" }, one.blank ? h("span", { class: "blank" }, `_:${visible(one.iri)}`) : iriLink(one.iri)), h("td", { class: "n" }, count(one.count)),
    // With buttons there is no room for a bar.
    acts ? null : h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, bar(one.count / most)),
    h("td", { class: "acts" }, one.blank ? null : h("a", { class: "ask", title: "Query", attrs: { href: query(one.iri), "aria-label": `Query ${one.iri}` } }, "Query"), ...(acts?.(one) ?? [])),
  ));
}

/** A field that leaves the rows whose IRI, short name or label has all of the words; the server looks for those that are not listed. */
function filter(listing: Listing, body: HTMLElement): HTMLElement {
  const { title, all, whole, find } = listing;
  const listed = [...body.children] as HTMLElement[];
  const field = h("input", { attrs: { type: "search", placeholder: `Filter ${title.toLowerCase()}`, "aria-label": `Filter ${title.toLowerCase()}` } });
  const said = h("span", { class: "soft", attrs: { role: "status" } });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const others = async (words: string[], shown: Set<string>) => {
    const typed = field.value;
    const found = await find(words).catch(() => undefined);
    if (typed !== field.value || !body.isConnected) return;
    said.textContent = !found ? ` Only the ${count(all.length)} most frequent were looked through: the others took too long.` : found.length < LISTED ? "" : ` The ${count(LISTED)} most frequent that fit.`;
    body.append(...rows(listing, (found ?? []).filter(({ iri }) => !shown.has(iri))));
  };
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter((w) => w !== "");
    const fits = (row: HTMLElement, i: number) => {
      const iri = all[i]?.iri ?? "";
      const text = `${iri} ${prefixes.shown(iri)} ${row.firstElementChild?.textContent ?? ""}`.toLowerCase();
      return words.every((w) => text.includes(w));
    };
    const kept = listed.map(fits);
    body.replaceChildren(...listed.filter((_, i) => kept[i]));
    clearTimeout(timer);
    said.textContent = "";
    if (whole <= all.length || words.length === 0) return;
    said.textContent = " Looking through the others…";
    timer = setTimeout(() => void others(words, new Set(all.filter((_, i) => kept[i]).map(({ iri }) => iri))), PAUSE);
  });
  return h("p", { class: "list-filter" }, field, said);
}
