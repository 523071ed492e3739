// The search for resources, on every page.

import { h } from "../dom.ts";
import { graphsMatter, graphsOfNames } from "../graphs.ts";
import { type Found, type Hit, PATIENCE, search } from "../net/search.ts";
import { visible } from "../rdf/term.ts";
import { learnNames, nameOf, prefixes, resourceHash } from "../show.ts";

/** Milliseconds after the last key. */
const PAUSE = 120;
/** Milliseconds after which the list says that the search is still running. */
const SLOW = 300;

export class SearchBox {
  readonly element: HTMLElement;
  private input = h("input", {
    attrs: { type: "search", placeholder: "Search resources  /", "aria-label": "Search resources by label or IRI", role: "combobox", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false" },
  });
  private list = h("ul", { id: "found", class: "found", attrs: { role: "listbox", "aria-label": "Resources" } });
  private status = h("p", { class: "found-note", attrs: { role: "status" } });
  private box = h("div", { class: "found-box" }, this.list, this.status);
  private hits: Hit[] = [];
  private active = -1;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private control = new AbortController();

  constructor() {
    this.element = h("div", { class: "search", attrs: { role: "search" } }, this.input, this.box);
    this.box.hidden = true;
    this.input.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => void this.look(), PAUSE);
    });
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("focus", () => this.hits.length > 0 && this.open(true));
    this.element.addEventListener("focusout", (event) => {
      if (!(event.relatedTarget instanceof Node && this.element.contains(event.relatedTarget))) this.open(false);
    });
    this.list.addEventListener("pointerdown", (event) => event.preventDefault());
    addEventListener("hashchange", () => this.open(false));
    // Before the editor gets the key: it may have the focus from the page itself, and then no one is writing there yet.
    addEventListener("keydown", (event) => {
      const at = event.target as HTMLElement;
      const writes = at.closest("input, textarea, select, dialog, .editor:not([data-offered])");
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || writes) return;
      event.preventDefault();
      event.stopPropagation();
      this.input.focus();
      this.input.select();
    }, { capture: true });
  }

  private open(on: boolean): void {
    this.box.hidden = !on;
    this.input.setAttribute("aria-expanded", String(on));
    if (!on) this.choose(-1);
  }

  private async look(): Promise<void> {
    this.control.abort();
    const control = new AbortController();
    this.control = control;
    const words = this.input.value.trim();
    if (words.length < 2) {
      this.hits = [];
      this.open(false);
      return;
    }
    const slow = setTimeout(() => control === this.control && this.display([], ["Searching…"]), SLOW);
    try {
      const found = await search(words, control.signal);
      clearTimeout(slow);
      if (control === this.control) this.display(found.results, note(found));
    } catch {
      // Another text was typed, or the server does not answer; the next key looks again.
      clearTimeout(slow);
    }
  }

  private display(hits: Hit[], said: (Node | string)[]): void {
    this.hits = hits;
    this.active = -1;
    this.list.replaceChildren(...hits.map((hit, i) => this.line(hit, i)));
    this.status.replaceChildren(...said);
    this.open(document.activeElement === this.input);
  }

  private line(hit: Hit, i: number): HTMLElement {
    learnNames([{ type: "iri", value: hit.iri }]);
    const short = prefixes.shown(hit.iri);
    const label = hit.label === undefined ? nameOf(hit.iri) : visible(hit.label);
    const other = hit.matched !== undefined && hit.label !== undefined && hit.matched !== hit.label && !hit.iri.includes(hit.matched) ? hit.matched : "";
    const made = h(
      "li", { id: `found-${i}`, title: visible(hit.iri), attrs: { role: "option", "aria-selected": "false" } },
      h("bdi", { class: "found-label", attrs: { ...(hit.lang ? { lang: hit.lang } : {}) } }, label),
      hit.class ? h("span", { class: "badge" }, nameOf(hit.class)) : null,
      other ? h("bdi", { class: "soft" }, visible(other.slice(0, 80))) : null,
      h("span", { class: "soft found-iri", attrs: { dir: "ltr" } }, short),
    );
    made.addEventListener("click", () => this.go(hit));
    return made;
  }

  private choose(i: number): void {
    this.active = i;
    [...this.list.children].forEach((line, at) => line.setAttribute("aria-selected", String(at === i)));
    const line = this.list.children[i];
    if (line) {
      this.input.setAttribute("aria-activedescendant", line.id);
      line.scrollIntoView({ block: "nearest" });
    } else this.input.removeAttribute("aria-activedescendant");
  }

  private key(event: KeyboardEvent): void {
    const last = this.hits.length - 1;
    switch (event.key) {
      case "ArrowDown": this.open(last >= 0); this.choose(Math.min(last, this.active + 1)); break;
      case "ArrowUp": this.choose(Math.max(-1, this.active - 1)); break;
      case "Enter": {
        const hit = this.hits[Math.max(0, this.active)];
        if (!hit || this.box.hidden) return;
        this.go(hit);
        break;
      }
      case "Escape": this.open(false); break;
      default: return;
    }
    event.preventDefault();
  }

  private go(hit: Hit): void {
    this.open(false);
    this.input.value = "";
    this.hits = [];
    this.input.blur();
    location.hash = resourceHash(hit.iri);
  }
}

/** What is said below the resources: what the search left out, and how to include it. */
function note({ results, complete, hint }: Found): (Node | string)[] {
  const said: (Node | string)[] = [];
  if (results.length === 0) said.push(`Nothing has these words in its label or IRI${complete ? "" : ", as far as was searched"}. `);
  else if (!complete) said.push("There may be more. ");
  // Commands stand between backticks.
  if (hint !== undefined) said.push(`A search ends after ${PATIENCE} seconds. `, ...hint.split("`").map((part, i) => (i % 2 === 1 ? h("code", {}, part) : part)), " ");
  if (graphsMatter() && graphsOfNames() === "default") said.push("Only the default graph was searched: choose “All graphs” at the top for the others.");
  return said;
}
