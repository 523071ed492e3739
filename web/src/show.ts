// Terms on the page, and the ways from them.

import { h } from "./dom.ts";
import { count } from "./format.ts";
import { isShared, type Label, labelled, labelsOn, LONGEST } from "./labels.ts";
import { Prefixes } from "./rdf/prefixes.ts";
import { type Term, visible, written, XSD } from "./rdf/term.ts";

/** The prefixes of this visit: common ones, the server's, and those of the query whose answer is seen. */
export const prefixes = new Prefixes();

export function resourceHash(iri: string): string {
  return `#/resource?iri=${encodeURIComponent(iri)}`;
}

/** The address of a query; of one that reads other graphs than the server by itself, with these. */
export function queryHash(text: string, graphs?: string): string {
  return `#/query?q=${encodeURIComponent(text)}${graphs ? `&graphs=${graphs}` : ""}`;
}

/** What tells an IRI from others where there is little room: its short name, or its last part. */
export function nameOf(iri: string): string {
  return prefixes.short(iri) ?? visible(/[^/#]+[/#]?$/.exec(iri)?.[0] ?? iri);
}

/** Characters at the end of a long IRI that are always seen: they tell it from the one in the next row. */
const TAIL = 24;

/** A text whose end is seen however narrow its place is. */
function endSeen(text: string): (Node | string)[] {
  if (text.length <= TAIL + 12) return [text];
  return [h("span", { class: "head" }, text.slice(0, -TAIL)), h("span", { class: "tail" }, text.slice(-TAIL))];
}

/** Makes up prefixes for the namespaces of what is about to be shown. */
export function learnNames(terms: Iterable<Term | null | undefined>): void {
  prefixes.coinFor((function* iris() {
    for (const term of terms) if (term?.type === "iri") yield term.value;
  })());
}

/** The whole IRI, and a word where its short name is the page's own. */
function titleOf(iri: string, text: string): string {
  const name = text.slice(0, text.indexOf(":"));
  return text !== iri && prefixes.isMade(name) ? `${visible(iri)}\n${name}: is a prefix of this page's own` : visible(iri);
}

/** An IRI that leads to its resource's page: always to a place within this page, whatever the IRI is. */
export function iriLink(iri: string, text = prefixes.shown(iri)): HTMLElement {
  return named(h("a", { class: isOwn(text) ? "iri made" : "iri", title: titleOf(iri, text), attrs: { href: resourceHash(iri), dir: "ltr" } }, ...endSeen(text)), iri, text);
}

/** True for a short name whose prefix the page made up. */
export function isOwn(text: string): boolean {
  return prefixes.isMade(text.slice(0, Math.max(0, text.indexOf(":"))));
}

/** True for a short name by a prefix of the page's own that ends in the label: with the label before it, it would be read twice. */
export function saysBoth(short: string, label: string): boolean {
  return isOwn(short) && short.endsWith(`:${label}`);
}

/** Elements whose text is the name of an IRI, for as long as they are on the screen. */
const elements = new Map<WeakRef<HTMLElement>, { iri: string; text: string }>();
const swept = new FinalizationRegistry((ref: WeakRef<HTMLElement>) => elements.delete(ref));

/** Puts a label in the place of an IRI's short name as soon as it is known. */
function named<E extends HTMLElement>(element: E, iri: string, text: string): E {
  const ref = new WeakRef<HTMLElement>(element);
  elements.set(ref, { iri, text });
  swept.register(element, ref);
  labelled(element, iri, (label) => showLabel(element, label, text));
  return element;
}

function showLabel(element: HTMLElement, label: Label, short: string): void {
  if (!labelsOn()) return;
  const iri = element.title;
  element.replaceChildren(h("bdi", { class: "label-text", attrs: label.lang ? { lang: label.lang, dir: "auto" } : { dir: "auto" } }, visible(label.text.slice(0, LONGEST))));
  if (isShared(label) && saysBoth(short, label.text)) element.replaceChildren(...endSeen(short));
  else if (isShared(label)) element.append(h("span", { class: "soft label-of" }, ` ${short}`));
  if (!iri.includes("\n")) element.title = short === iri ? iri : `${short}\n${iri}`;
}

/** Labels were switched on or off. */
export function labelsChanged(): void {
  for (const [ref, { iri, text }] of elements) {
    const element = ref.deref();
    if (!element?.isConnected) continue;
    element.replaceChildren(...endSeen(text));
    if (labelsOn()) labelled(element, iri, (label) => showLabel(element, label, text));
  }
}

/** True for numbers and truth values in the forms that SPARQL reads without a datatype; they are told from texts by their colour. */
function isBare(term: Term): boolean {
  if (term.type !== "literal") return false;
  switch (term.datatype) {
    case `${XSD}integer`: return /^[+-]?\d+$/.test(term.value);
    case `${XSD}decimal`: return /^[+-]?\d*\.\d+$/.test(term.value);
    case `${XSD}double`: return /^[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+$/.test(term.value);
    case `${XSD}boolean`: return term.value === "true" || term.value === "false";
    default: return false;
  }
}

/** What stands after a literal: its language, or its datatype if it is not told by its form. */
export function mark(term: Term): string {
  if (term.type !== "literal") return "";
  if (term.language) return `@${visible(term.language)}`;
  if (!term.datatype || term.datatype === `${XSD}string` || isBare(term)) return "";
  return `^^${prefixes.shown(term.datatype)}`;
}

/** A text in one line, with a sign where its lines end. */
function lineEnds(text: string): string {
  return text.replace(/\r\n?|\n/g, "↵");
}

/** A term in one line; `blank` gives the addresses of blank nodes that have one. Texts of data stand in elements that keep their direction of writing to themselves. */
export function termNode(term: Term | null, options: { link?: boolean; most?: number; oneLine?: boolean; blank?: (label: string) => string } = {}): HTMLElement {
  if (term === null) return h("span", { class: "unbound" });
  const { link = true, most = 300, oneLine = false, blank } = options;
  switch (term.type) {
    case "iri":
      if (link) return iriLink(term.value);
      return named(h("span", { class: "iri", title: visible(term.value), attrs: { dir: "ltr" } }, prefixes.shown(term.value)), term.value, prefixes.shown(term.value));
    case "blank": {
      const short = `_:${visible(term.value.slice(0, 12))}`;
      const title = `_:${visible(term.value)}`;
      return blank ? h("a", { class: "blank", title, attrs: { href: blank(term.value) } }, short) : h("span", { class: "blank", title }, short);
    }
    case "triple":
      return h("bdi", { class: "triple" }, visible(term.value.slice(0, most)));
    case "literal": {
      const long = term.cut !== undefined || term.value.length > most;
      const behind = mark(term);
      return h(
        "span",
        { class: isBare(term) ? "literal bare" : "literal" },
        h("bdi", { attrs: { dir: "auto", ...(term.language ? { lang: term.language } : {}) } }, oneLine ? lineEnds(term.value.slice(0, most)) : term.value.slice(0, most)),
        long && h("span", { class: "more" }, `… (${count(term.cut ?? term.value.length)} characters)`),
        behind !== "" && h("span", { class: "mark" }, behind),
      );
    }
  }
}

/** About how many characters wide a term is shown. */
export function width(term: Term | null): number {
  if (term === null) return 0;
  if (term.type === "iri") return prefixes.shown(term.value).length;
  if (term.type === "literal") return term.value.length + mark(term).length;
  return Math.min(term.value.length, 14);
}

/** A dialog; it closes by Escape, by its button, and by what `close` is given to. */
export function dialog(title: string, ...content: Node[]): HTMLDialogElement {
  const close = h("button", { class: "close", attrs: { type: "button", "aria-label": "Close" } }, "✕");
  const made = h("dialog", { attrs: { "aria-label": title } }, h("header", {}, h("h2", {}, title), close), ...content);
  close.addEventListener("click", () => made.close());
  made.addEventListener("close", () => made.remove());
  document.body.append(made);
  made.showModal();
  return made;
}

/** Characters of one value that a dialog shows; more of them would only make the browser slow. */
const MOST = 100_000;

/** A whole value, to be read and copied. */
export function showValue(term: Term): void {
  const box = h("pre", { class: "value", attrs: { dir: "auto", tabindex: 0 } }, term.value.slice(0, MOST));
  const copied = h("span", { attrs: { role: "status" } });
  const copy = h("button", { attrs: { type: "button" } }, "Copy");
  copy.addEventListener("click", () => {
    void copyText(written(term)).then((done) => (copied.textContent = done ? "copied" : "the browser does not allow copying"));
  });
  const about = term.type === "literal"
    ? `${count(term.value.length)} characters${term.value.length > MOST ? `, the first ${count(MOST)} are shown; Copy takes all` : ""}${mark(term) ? `, ${mark(term)}` : ""}`
    : term.type;
  dialog("Value", h("p", {}, about), box, h("p", {}, copy, " ", copied));
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
