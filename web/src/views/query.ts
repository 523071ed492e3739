// Asking: sheets with a query each, those that ran, and those that have a name.

import { button, h } from "../dom.ts";
import { count, milliseconds } from "../format.ts";
import { choose as chooseGraphs, graphs, graphsParameter } from "../graphs.ts";
import { drop, forgetPast, keep, past, saved, summary } from "../history.ts";
import { tell } from "../events.ts";
import { begin, keepOpen, openBefore, type Open } from "../open-queries.ts";
import { type Item, menu } from "../pieces.ts";
import { dialog, prefixes, queryHash } from "../show.ts";
import { data } from "../state.ts";
import { FIRST, Sheet } from "./sheet.ts";
import type { View } from "./view.ts";

interface Tab {
  /** What someone called it; empty: it is called by its text. */
  name: string;
  text: string;
  /** Made when it is shown first. */
  sheet?: Sheet;
  /** What the text was when it was taken, run or saved: with another one there is something to lose. */
  clean: string;
}

const isBlank = (tab: Tab) => tab.name === "" && textOf(tab).trim() === "";

function textOf(tab: Tab): string {
  return tab.sheet?.text ?? tab.text;
}

export class QueryView implements View {
  readonly title = "Query";
  readonly element = h("section", { class: "query" });
  private tabs: Tab[] = [];
  private current = 0;
  private bar = h("div", { class: "sheet-tabs", attrs: { role: "tablist", "aria-label": "Queries" } });
  /** The tabs, and next to them the buttons of the query that is shown. */
  private line = h("div", { class: "sheet-line" }, this.bar);
  private place = h("div", { class: "sheet-place", id: "sheet", attrs: { role: "tabpanel" } });
  /** Says what did not come back, and what will not. */
  private gone = h("p", { class: "soft", attrs: { role: "status", hidden: true } });
  private long = h("p", { class: "soft", attrs: { role: "status", hidden: true } });
  private recent = menu("Recent", () => this.recent.fill(this.recentItems()));
  private kept = menu("Saved", () => this.kept.fill(this.savedItems()));
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The tab that was closed last, and its place. */
  private closed: { tab: Tab; at: number } | undefined;

  constructor() {
    const before = openBefore();
    // Whether a text from before was run is not known, so it counts as written.
    this.tabs = before ? before.texts.map((text, i) => ({ name: before.names[i] ?? "", text, clean: text === FIRST ? FIRST : "" })) : [{ name: "", text: FIRST, clean: FIRST }];
    this.current = before?.current ?? 0;
    begin(this.all);
    // The pause after the last key may not be over when the browser is closed.
    addEventListener("pagehide", () => keepOpen(this.all));
    if (before?.lost) {
      this.gone.hidden = false;
      this.gone.replaceChildren(`${these(before.lost)} too long for this browser to keep, and did not come back. `, button("Dismiss", () => (this.gone.hidden = true)));
    }
    this.element.append(h("h1", { class: "unseen" }, "Query"), this.line, this.gone, this.long, this.place);
    this.open(this.current);
  }

  show(parameters: URLSearchParams): void {
    const text = parameters.get("q");
    const { sheet } = this.tab;
    // Someone who comes back finds the text as it is, next to the answer that is still here.
    if (text === null || text === sheet?.asked) {
      sheet?.shown();
      // Whoever has a keyboard can begin to write at once.
      if (text === null && document.activeElement === document.body && matchMedia("(pointer: fine)").matches) {
        void data().then((about) => about && about.triples > 0 && document.activeElement === document.body && sheet?.editor.offer());
      }
      return;
    }
    const which = parameters.get("graphs");
    void data().then(() => {
      if ((which === "all" || which === "default") && which !== graphs()) {
        chooseGraphs(which);
        tell("graphs");
      }
      this.take(text, parameters.get("view"));
    });
  }

  hide(): void {
    prefixes.show([]);
  }

  refresh(): void {
    for (const [i, { sheet }] of this.tabs.entries()) sheet?.refresh(i === this.current);
  }

  private get tab(): Tab {
    return this.tabs[this.current] as Tab;
  }

  /** Takes a text from elsewhere; what someone has written and not run stays in its own sheet. */
  private take(text: string, view?: string | null): void {
    if (text === this.tab.sheet?.asked) return;
    if (this.losesBy(text)) {
      const there = this.tabs.findIndex((tab) => textOf(tab) === text);
      if (there < 0) this.add(text);
      else this.open(there);
    }
    this.tab.text = this.tab.clean = text;
    this.tab.sheet?.take(text, view);
    this.draw();
  }

  /** True if another text in place of the current one would lose something. */
  private losesBy(text: string): boolean {
    const written = textOf(this.tab);
    return written.trim() !== "" && written !== this.tab.clean && written !== this.tab.sheet?.asked && written !== text;
  }

  private add(text = ""): void {
    this.tabs.push({ name: "", text, clean: text });
    this.open(this.tabs.length - 1);
  }

  private open(i: number): void {
    this.current = Math.max(0, Math.min(i, this.tabs.length - 1));
    const { tab } = this;
    if (!tab.sheet) {
      tab.sheet = new Sheet({ text: tab.text, changed: (sheet) => this.changed(sheet), example: ({ text: chosen, tab: view }) => this.take(chosen, view) });
    }
    this.place.replaceChildren(tab.sheet.element);
    tab.sheet.documents.append(this.recent.element, this.kept.element);
    this.line.querySelector(".tools")?.remove();
    this.line.append(tab.sheet.tools);
    tab.sheet.shown();
    this.draw();
    this.keepAll();
  }

  private keepAll(): void {
    const lost = keepOpen(this.all);
    this.long.textContent = lost.length > 0 ? `${these(lost)} too long for this browser to keep: save it elsewhere before you leave or reload the page.` : "";
    this.long.hidden = lost.length === 0;
  }

  /** Does what someone chose at the tabs. The address then names the query that is seen, so that the page comes back with it. */
  private choose(act: () => void): void {
    act();
    const { asked } = this.tab.sheet ?? {};
    history.replaceState(null, "", asked === undefined ? "#/query" : queryHash(asked, graphsParameter()));
  }

  private close(i: number): void {
    const [tab] = this.tabs.splice(i, 1);
    if (tab && !isBlank(tab)) this.closed = { tab: { name: tab.name, text: textOf(tab), clean: tab.clean }, at: i };
    tab?.sheet?.close();
    if (this.tabs.length === 0) this.tabs.push({ name: "", text: "", clean: "" });
    this.open(i < this.current || this.current >= this.tabs.length ? this.current - 1 : this.current);
  }

  /** Brings back the tab that was closed last, without its answer. */
  private reopen(): void {
    const { closed } = this;
    if (!closed) return;
    this.closed = undefined;
    const [only] = this.tabs;
    if (only && this.tabs.length === 1 && isBlank(only)) {
      // It took the place of the last one.
      only.sheet?.close();
      this.tabs.pop();
    }
    const at = Math.min(closed.at, this.tabs.length);
    this.tabs.splice(at, 0, closed.tab);
    this.open(at);
  }

  private changed(sheet: Sheet): void {
    const tab = this.tabs.find((t) => t.sheet === sheet);
    if (!tab) return;
    tab.text = sheet.text;
    this.later();
  }

  /** Shows the names of the tabs and keeps their texts, unless a button that this would replace is being pressed. */
  private later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.line.querySelector("button:active")) this.later();
      else {
        this.draw();
        this.keepAll();
      }
    }, 300);
  }

  private nameOf(tab: Tab, i: number): string {
    return tab.name || summary(tab.text, 28) || `Query ${i + 1}`;
  }

  private draw(): void {
    const focused = this.bar.contains(document.activeElement);
    const made = this.tabs.map((tab, i) => {
      const isCurrent = i === this.current;
      const name = this.nameOf(tab, i);
      const one = button(name, () => (isCurrent ? this.rename() : this.choose(() => this.open(i))), { id: `sheet-tab-${i}`, title: isCurrent ? "Click for another name" : tab.text.slice(0, 500), attrs: { role: "tab", "aria-selected": String(isCurrent), "aria-controls": "sheet", tabindex: isCurrent ? 0 : -1 } });
      one.addEventListener("keydown", (event) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? this.tabs.length - 1 : 0;
        if (event.key === "Delete") this.choose(() => this.close(i));
        else if (event.key === "z" && (event.ctrlKey || event.metaKey) && this.closed) this.choose(() => this.reopen());
        else if (step > 0) this.choose(() => this.open((this.current + step) % this.tabs.length));
        else return;
        event.preventDefault();
        this.bar.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
      });
      return one;
    });
    const current = made[this.current];
    this.bar.replaceChildren(...made);
    const extra = h("span", { class: "sheet-more" });
    if (this.tabs.length > 1) extra.append(button("✕", () => this.choose(() => this.close(this.current)), { title: "Close this query", attrs: { "aria-label": "Close this query" } }));
    extra.append(button("+", () => { this.choose(() => this.add()); this.tab.sheet?.editor.focus(); }, { title: "New query", attrs: { "aria-label": "New query" } }));
    if (this.closed) extra.append(button("Reopen closed tab", () => { this.choose(() => this.reopen()); this.tab.sheet?.editor.focus(); }, { title: `${this.nameOf(this.closed.tab, this.closed.at)} (Ctrl-Z on a tab)` }));
    this.line.querySelector(".sheet-more")?.remove();
    this.line.classList.toggle("single", this.tabs.length === 1);
    this.bar.after(extra);
    this.place.setAttribute("aria-labelledby", `sheet-tab-${this.current}`);
    if (focused) current?.focus();
  }

  private rename(): void {
    const { tab } = this;
    ask("Name of this query", tab.name, (name) => {
      tab.name = name;
      this.draw();
      this.keepAll();
    });
  }

  private recentItems(): Item[] {
    const all = past();
    if (all.length === 0) return [["No query has run in this browser yet", () => {}]];
    const names = new Map(saved().map((q) => [q.text, q.name]));
    return [
      ...all.map((q): Item => [names.get(q.text) ?? summary(q.text), () => this.put(q.text), [when(q.at), q.ended ?? "", q.rows === undefined ? "" : `${count(q.rows)} rows`, q.ms === undefined ? "" : milliseconds(q.ms)].filter(Boolean).join(" · ")]),
      ["Clear history", forgetPast],
    ];
  }

  private savedItems(): Item[] {
    const { tab } = this;
    const all = saved();
    return [
      ["Save this query…", () => ask("Save this query as", tab.name || summary(tab.sheet?.text ?? "", 40), (name) => {
        keep(name, tab.sheet?.text ?? "");
        tab.name = name;
        tab.clean = tab.sheet?.text ?? "";
        this.draw();
        this.keepAll();
      })],
      ...all.map((q): Item => {
        const line = h("div", { class: "saved" });
        line.append(
          button(q.name, () => { this.kept.element.open = false; this.put(q.text, q.name); }, { title: q.text.slice(0, 500) }),
          button("✕", () => { drop(q.name); this.kept.fill(this.savedItems()); }, { class: "remove", title: `Remove ${q.name}`, attrs: { "aria-label": `Remove ${q.name}` } }),
        );
        return line;
      }),
    ];
  }

  /** Puts a text into the editor, without running it. */
  private put(text: string, name = ""): void {
    if (this.losesBy(text)) this.add(text);
    const { tab } = this;
    tab.clean = text;
    if (name !== "" || tab.name !== "") tab.name = name;
    if (tab.sheet) {
      tab.sheet.editor.text = text;
      tab.sheet.editor.focus();
    }
    this.draw();
  }

  private get all(): Open {
    return { names: this.tabs.map((t) => t.name), texts: this.tabs.map(textOf), current: this.current };
  }
}

/** Names queries, as the beginning of a sentence. */
function these(names: string[]): string {
  const quoted = names.map((name) => `“${name}”`).join(", ");
  return names.length === 1 ? `The query ${quoted} is` : `The queries ${quoted} are`;
}

/** When something was, as people say it. */
function when(at: number | undefined): string {
  if (at === undefined) return "";
  const then = new Date(at);
  const time = then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return then.toDateString() === new Date().toDateString() ? time : `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

function ask(title: string, before: string, done: (name: string) => void): void {
  const field = h("input", { attrs: { type: "text", value: before, maxlength: 60, "aria-label": title, required: true } });
  const form = h("form", { attrs: { method: "dialog" } }, h("p", {}, field), h("p", {}, h("button", { class: "primary", attrs: { type: "submit" } }, "Save")));
  dialog(title, form);
  form.addEventListener("submit", () => {
    const name = field.value.trim();
    if (name !== "") done(name);
  });
  field.focus();
  field.select();
}
