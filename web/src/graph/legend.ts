// The legend within a drawing: its classes with their colours and counts; each can be hidden, coloured and captioned otherwise.

import { button, h } from "../dom.ts";
import { count } from "../format.ts";
import { label, labelOf } from "../labels.ts";
import { visible } from "../rdf/term.ts";
import { nameOf, prefixes } from "../show.ts";
import { captionPredicates } from "./expand.ts";
import { KINDS } from "./model.ts";
import { COLOURS } from "./theme.ts";

/** How the nodes of a class are captioned: by label, by short name, not at all, or by the values of a predicate. */
export type CaptionBy = "label" | "short" | "none" | (string & {});

export interface KindInfo {
  kind: string;
  nodes: number;
  hidden: boolean;
  /** Index of its colour; `COLOURS` and more: no colour of its own. */
  colour: number;
  caption: CaptionBy;
  /** Some of its resources. */
  some: string[];
}

interface Acts {
  toggle(kind: string): void;
  colour(kind: string, colour: number): void;
  caption(kind: string, by: CaptionBy): void;
}

/** Classes that are listed. */
const LISTED = 12;
/** Characters of a name. */
const LONGEST = 28;

/** The name of a kind of nodes. */
export function kindName(kind: string): string {
  if (kind === KINDS.none) return "No class";
  if (kind === KINDS.literal) return "Values";
  if (kind === KINDS.blank) return "Blank nodes";
  const found = labelOf(kind);
  // Within a drawing the last part tells classes apart; the title has the whole.
  const name = visible(found?.text ?? nameOf(kind).replace(/^[^:/#]*:(?=[^/])/, ""));
  return name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
}

/** What a colour is called in the style sheet. */
function colourName({ kind, colour }: Pick<KindInfo, "kind" | "colour">): string {
  if (kind === KINDS.literal) return "literal";
  if (kind === KINDS.none) return "none";
  return kind !== KINDS.blank && colour < COLOURS ? String(colour) : "other";
}

export class Legend {
  private list = h("ul", { attrs: { "aria-label": "Legend" } });
  // On a phone it would cover the drawing.
  readonly element = h("details", { class: "graph-legend", attrs: { open: innerWidth > 700 } }, h("summary", {}, "Legend"), this.list);
  /** The class whose settings are open. */
  private open: string | undefined;

  constructor(private acts: Acts) {}

  show(kinds: KindInfo[]): void {
    const listed = kinds.slice(0, LISTED);
    this.element.hidden = kinds.length === 0;
    const focused = document.activeElement instanceof HTMLElement && this.list.contains(document.activeElement) ? document.activeElement.dataset["kind"] : undefined;
    this.list.replaceChildren(...listed.map((info) => this.item(info)), ...(kinds.length > LISTED ? [h("li", { class: "soft" }, `and ${kinds.length - LISTED} more classes`)] : []));
    // Who works by keys stays where they are.
    if (focused !== undefined) [...this.list.querySelectorAll<HTMLElement>(".legend-item")].find((one) => one.dataset["kind"] === focused)?.focus();
  }

  private item(info: KindInfo): HTMLElement {
    const { kind, nodes, hidden } = info;
    const name = kindName(kind);
    const dot = h("span", { class: "key" });
    dot.dataset["colour"] = colourName(info);
    const text = h("bdi", {}, name);
    if (kind !== KINDS.none && kind !== KINDS.literal && kind !== KINDS.blank && labelOf(kind) === undefined) void label(kind).then(() => text.isConnected && (text.textContent = kindName(kind)));
    const toggle = button("", () => this.acts.toggle(kind), { class: "legend-item", title: `${hidden ? "Shows" : "Hides"} ${kind.trim() === "" || kind.startsWith(" ") ? name.toLowerCase() : prefixes.shown(kind)}`, attrs: { "aria-pressed": String(!hidden) } });
    toggle.dataset["kind"] = kind;
    toggle.append(dot, text, h("span", { class: "soft n" }, count(nodes)));
    const settings = h("details", { attrs: { open: this.open === kind } }, h("summary", { title: "Caption and colour", attrs: { "aria-label": `Caption and colour of ${name}` } }, "⋯"));
    settings.addEventListener("toggle", () => {
      if (settings.open) {
        this.open = kind;
        if (settings.childElementCount === 1) settings.append(this.settings(info));
      } else if (this.open === kind) this.open = undefined;
    });
    return h("li", { class: hidden ? "off" : "" }, toggle, kind === KINDS.literal ? null : settings);
  }

  private settings(info: KindInfo): HTMLElement {
    const { kind, caption, some } = info;
    const options: [CaptionBy, string][] = [["label", "Label"], ["short", "Short name"], ["none", "None"]];
    if (!options.some(([by]) => by === caption)) options.push([caption, nameOf(caption)]);
    const select = h("select", { attrs: { "aria-label": `Caption of ${kindName(kind)}` } }, ...options.map(([by, text]) => h("option", { attrs: { value: by, selected: by === caption } }, text)));
    select.addEventListener("change", () => this.acts.caption(kind, select.value));
    // Its own predicates come when they are there.
    if (some.length > 0) {
      void captionPredicates(some).then((found) => {
        for (const iri of found) if (!options.some(([by]) => by === iri)) select.append(h("option", { attrs: { value: iri } }, nameOf(iri)));
      }).catch(() => undefined);
    }
    const colours = Array.from({ length: COLOURS }, (_, i) => {
      const one = button("", () => this.acts.colour(kind, i), { class: "swatch", attrs: { "aria-label": `Colour ${i + 1}` } });
      one.dataset["colour"] = String(i);
      return one;
    });
    return h("div", { class: "legend-settings" }, h("label", {}, "Caption ", select), h("div", { class: "swatches" }, ...(kind === KINDS.none || kind === KINDS.blank ? [] : colours)));
  }
}
