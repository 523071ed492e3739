// Asking: sheets with a query each, those that ran, and those that have a name.

import { button, h } from "../dom.ts";
import { count, milliseconds } from "../format.ts";
import { choose as chooseGraphs, graphs } from "../graphs.ts";
import { drop, forgetPast, keep, past, saved, summary } from "../history.ts";
import { tell } from "../events.ts";
import { type Item, menu } from "../pieces.ts";
import { dialog } from "../show.ts";
import { data } from "../state.ts";
import { FIRST, Sheet } from "./sheet.ts";
import type { View } from "./view.ts";

const KEY = "jindou-sheets";
/** Sheets that are kept open. */
const MOST = 20;

interface Kept {
  names: string[];
  texts: string[];
  current: number;
}

interface Tab {
  /** What someone called it; empty: it is called by its text. */
  name: string;
  text: string;
  /** Made when it is shown first. */
  sheet?: Sheet;
  /** What the text was when it was taken, run or saved: with another one there is something to lose. */
  clean: string;
}

export class QueryView implements View {
  readonly title = "Query";
  readonly element = h("section", { class: "query" });
  private tabs: Tab[] = [];
  private current = 0;
  private bar = h("div", { class: "sheet-tabs", attrs: { role: "tablist", "aria-label": "Queries" } });
  private place = h("div", { class: "sheet-place", id: "sheet", attrs: { role: "tabpanel" } });
  private recent = menu("Recent", () => this.recent.fill(this.recentItems()));
  private kept = menu("Saved", () => this.kept.fill(this.savedItems()));
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    const before = read();
    this.tabs = before ? before.texts.map((text, i) => ({ name: before.names[i] ?? "", text, clean: text })) : [{ name: "", text: FIRST, clean: FIRST }];
    this.current = before?.current ?? 0;
    this.element.append(h("h1", { class: "unseen" }, "Query"), h("div", { class: "sheet-line" }, this.bar), this.place);
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
        void data().then((about) => about && about.triples > 0 && document.activeElement === document.body && sheet?.editor.focus());
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

  hide(): void {}

  refresh(): void {
    for (const [i, { sheet }] of this.tabs.entries()) sheet?.refresh(i === this.current);
  }

  private get tab(): Tab {
    return this.tabs[this.current] as Tab;
  }

  /** Takes a text from elsewhere; what someone has written and not run stays in its own sheet. */
  private take(text: string, view?: string | null): void {
    if (text === this.tab.sheet?.asked) return;
    const written = this.tab.sheet?.text ?? this.tab.text;
    if (written.trim() !== "" && written !== this.tab.clean && written !== this.tab.sheet?.asked && written !== text) this.add(text);
    this.tab.text = this.tab.clean = text;
    this.tab.sheet?.take(text, view);
    this.draw();
  }

  private add(text = ""): void {
    if (this.tabs.length >= MOST) this.close(0);
    this.tabs.push({ name: "", text, clean: text });
    this.open(this.tabs.length - 1);
  }

  private open(i: number): void {
    this.current = Math.max(0, Math.min(i, this.tabs.length - 1));
    const { tab } = this;
    if (!tab.sheet) {
      tab.sheet = new Sheet({ text: tab.text, changed: (sheet) => this.changed(sheet) });
    }
    this.place.replaceChildren(tab.sheet.element);
    tab.sheet.tools.append(this.recent.element, this.kept.element);
    tab.sheet.shown();
    this.draw();
    this.write();
  }

  private close(i: number): void {
    const [closed] = this.tabs.splice(i, 1);
    closed?.sheet?.close();
    if (this.tabs.length === 0) this.tabs.push({ name: "", text: "", clean: "" });
    this.open(i < this.current || this.current >= this.tabs.length ? this.current - 1 : this.current);
  }

  private changed(sheet: Sheet): void {
    const tab = this.tabs.find((t) => t.sheet === sheet);
    if (!tab) return;
    tab.text = sheet.text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.draw();
      this.write();
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
      const one = button(name, () => (isCurrent ? this.rename() : this.open(i)), { id: `sheet-tab-${i}`, title: isCurrent ? "Click for another name" : tab.text.slice(0, 500), attrs: { role: "tab", "aria-selected": String(isCurrent), "aria-controls": "sheet", tabindex: isCurrent ? 0 : -1 } });
      one.addEventListener("keydown", (event) => {
        const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? this.tabs.length - 1 : 0;
        if (event.key === "Delete") this.close(i);
        else if (step > 0) this.open((this.current + step) % this.tabs.length);
        else return;
        this.bar.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
      });
      return one;
    });
    const current = made[this.current];
    this.bar.replaceChildren(...made);
    const extra = h("span", { class: "sheet-more" });
    if (this.tabs.length > 1) extra.append(button("✕", () => this.close(this.current), { title: "Close this query", attrs: { "aria-label": "Close this query" } }));
    extra.append(button("+", () => { this.add(); this.tab.sheet?.editor.focus(); }, { title: "New query", attrs: { "aria-label": "New query" } }));
    this.bar.parentElement?.querySelector(".sheet-more")?.remove();
    this.bar.after(extra);
    this.place.setAttribute("aria-labelledby", `sheet-tab-${this.current}`);
    if (focused) current?.focus();
  }

  private rename(): void {
    const { tab } = this;
    ask("Name of this query", tab.name, (name) => {
      tab.name = name;
      this.draw();
      this.write();
    });
  }

  private recentItems(): Item[] {
    const all = past();
    if (all.length === 0) return [["No query has run in this browser yet", () => {}]];
    const names = new Map(saved().map((q) => [q.text, q.name]));
    return [
      ...all.map((q): Item => [names.get(q.text) ?? summary(q.text), () => this.put(q.text), [when(q.at), q.rows === undefined ? "" : `${count(q.rows)} rows`, q.ms === undefined ? "" : milliseconds(q.ms)].filter(Boolean).join(" · ")]),
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
        this.write();
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
    const written = this.tab.sheet?.text ?? "";
    if (written.trim() !== "" && written !== this.tab.clean && written !== this.tab.sheet?.asked && written !== text) this.add(text);
    const { tab } = this;
    tab.clean = text;
    if (name !== "" || tab.name !== "") tab.name = name;
    if (tab.sheet) {
      tab.sheet.editor.text = text;
      tab.sheet.editor.focus();
    }
    this.draw();
  }

  private write(): void {
    const kept: Kept = { names: this.tabs.map((t) => t.name), texts: this.tabs.map((t) => t.text.slice(0, 200_000)), current: this.current };
    try {
      sessionStorage.setItem(KEY, JSON.stringify(kept));
    } catch {
      // A browser that keeps nothing is fine.
    }
  }
}

function read(): Kept | undefined {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Kept | null;
    const good = kept && Array.isArray(kept.texts) && Array.isArray(kept.names) && kept.texts.length > 0 && kept.texts.every((t) => typeof t === "string");
    return good ? kept : undefined;
  } catch {
    return undefined;
  }
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
