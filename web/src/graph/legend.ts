// The legend of a drawing: classes with their colours and counts. Each can be hidden, and its colour and captions changed.

import { button, h, redrawn } from "../dom.ts";
import { count, counted } from "../format.ts";
import { label, labelOf } from "../labels.ts";
import { visible } from "../rdf/term.ts";
import { nameOf, prefixes } from "../show.ts";
import { captionPredicates } from "./expand.ts";
import { isClass, KINDS } from "./model.ts";
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
  return colour < COLOURS ? String(colour) : "other";
}

export class Legend {
  private list = h("ul", { attrs: { "aria-label": "Legend" } });
  // On a phone it would cover the drawing.
  readonly element = h("details", { class: "graph-legend", attrs: { open: innerWidth > 700 } }, h("summary", {}, "Legend"), this.list);
  /** The class whose settings are open. */
  private open: string | undefined;

  constructor(private acts: Acts) {}

  show(kinds: KindInfo[]): void {
    const listed = kinds.filter(({ kind }, i) => i < LISTED || !isClass(kind));
    const more = kinds.length - listed.length;
    this.element.hidden = kinds.length === 0;
    redrawn(this.list, () => this.list.replaceChildren(...listed.map((info) => this.item(info)), ...(more > 0 ? [h("li", { class: "soft" }, `and ${counted(more, "more class", "more classes")}`)] : [])));
  }

  private item(info: KindInfo): HTMLElement {
    const { kind, nodes, hidden } = info;
    const name = kindName(kind);
    const dot = h("span", { class: "key" });
    dot.dataset["colour"] = colourName(info);
    const text = h("bdi", {}, name);
    if (isClass(kind) && labelOf(kind) === undefined) void label(kind).then(() => text.isConnected && (text.textContent = kindName(kind)));
    const toggle = button("", () => this.acts.toggle(kind), { class: "legend-item", title: `${hidden ? "Shows" : "Hides"} ${isClass(kind) ? prefixes.shown(kind) : name.toLowerCase()}`, attrs: { "aria-pressed": String(!hidden) } });
    toggle.append(dot, text, h("span", { class: "soft n" }, count(nodes)));
    const settings = h("details", { attrs: { open: this.open === kind } }, h("summary", { title: "Caption and colour", attrs: { "aria-label": `Caption and colour of ${name}` } }, "⋯"));
    const fill = () => settings.childElementCount === 1 && settings.append(this.settings(info));
    if (settings.open) fill();
    settings.addEventListener("toggle", () => {
      if (settings.open) {
        this.open = kind;
        fill();
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
    return h("div", { class: "legend-settings" }, h("label", {}, "Caption ", select), h("div", { class: "swatches" }, ...(isClass(kind) ? colours : [])));
  }
}
