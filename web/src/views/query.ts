// Asking: the editor, and the answer as a table, a picture, a chart, or the plan it was made by.

import { Answer } from "../answer/answer.ts";
import { Chart } from "../answer/chart.ts";
import { Graph, type Triple } from "../answer/graph.ts";
import { GeoMap, MOST_POINTS } from "../answer/map.ts";
import { type Where, whereIn } from "../answer/places.ts";
import { Table } from "../answer/table.ts";
import { button, failure, h, save } from "../dom.ts";
import { Editor } from "../editor/editor.ts";
import { bytes, count, counted, milliseconds } from "../format.ts";
import { GRAPH_FORMATS, TABLE_FORMATS, type Format } from "../net/formats.ts";
import { dressed, json, offerToken, type Problem, ProblemError, problemOf, query, send, token, unreachable, wantsToken } from "../net/http.ts";
import { curl, python } from "../net/snippets.ts";
import { formOf, type Form } from "../query-form.ts";
import { declared } from "../rdf/prefixes.ts";
import { copyText, dialog, prefixes, queryHash } from "../show.ts";
import { data, forgetQueries, recent, remember, stale } from "../state.ts";
import { countsNothing, list, placed, whyEmpty } from "./empty.ts";
import { PlanView, type Profile, watch } from "./plan.ts";
import type { View } from "./view.ts";

const FIRST = "SELECT * WHERE {\n  ?s ?p ?o\n}\nLIMIT 100\n";
const DRAFT = "jindou-draft";

/** Milliseconds after the last key that a filter waits for. */
const PAUSE = 150;

type Tab = "table" | "graph" | "chart" | "map" | "plan";

interface Report {
  added: number;
  removed: number;
  operations: number;
  snapshot: number;
  ms: Record<string, number>;
}

export class QueryView implements View {
  readonly title = "Query";
  readonly element = h("section", { class: "query" });
  private editor: Editor;
  private answer: Answer | undefined;
  /** What the address named last. */
  private asked: string | undefined;
  private form: Form = "unknown";
  private table: Table | undefined;
  private graph: Graph | undefined;
  /** Columns with coordinates; unknown until rows came. */
  private where: Where | undefined;
  private tab: Tab = "table";
  private planning: AbortController | undefined;
  private runButton = button("Run", () => this.run(), { class: "primary", title: "Ctrl-Enter" });
  private cancelButton = button("Cancel", () => this.cancel(), { title: "Also ends the query on the server" });
  private planButton = button("Plan", () => void this.plan(), { title: "Runs the query and says how it was answered" });
  private status = h("p", { class: "status", attrs: { role: "status" } });
  private problems = h("div", { class: "problems" });
  private tabs = h("div", { class: "tabs", attrs: { role: "tablist", "aria-label": "Answer" } });
  private filter = h("input", { attrs: { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows" } });
  private limit = h("input", { class: "limit", title: "Time limit in seconds; without one, the server's", attrs: { type: "number", min: 1, step: 1, placeholder: "limit, s", "aria-label": "Time limit in seconds" } });
  private place = h("div", { class: "place" });
  /** Why the answer is empty. */
  private why = h("div");
  private download = menu("Download");
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.editor = new Editor({
      text: draft() ?? FIRST,
      run: () => this.run(),
      check: faultsOf,
      changed: (text) => draft(text),
    });
    const copy = menu("Copy as");
    copy.fill([
      ["Link", () => this.copy(new URL(queryHash(this.editor.text), location.href).href)],
      ["curl", () => this.copy(curl(this.endpoint, this.editor.text, this.copied))],
      ["Python", () => this.copy(python(this.endpoint, this.editor.text, this.copied))],
    ]);
    const past = menu("Recent", () => past.fill([
      ...recent().map((text): [string, () => void] => [text.replace(/\s+/g, " ").slice(0, 120), () => { this.editor.text = text; this.editor.focus(); }]),
      recent().length > 0 ? ["Clear history", forgetQueries] : ["No query has run in this browser yet", () => {}],
    ]));
    this.filter.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.filtered(), PAUSE);
    });
    this.cancelButton.hidden = true;
    this.element.append(
      h("h1", { class: "unseen" }, "Query"),
      this.editor.element,
      h("div", { class: "tools" }, this.runButton, this.cancelButton, this.planButton, this.limit, copy.element, this.download.element, past.element, this.status),
      this.problems, this.tabs, this.place, this.why,
    );
    this.download.element.hidden = true;
  }

  private get copied() {
    return { hasToken: token() !== undefined, isUpdate: formOf(this.editor.text) === "update" };
  }

  private get seconds(): number | undefined {
    const seconds = this.limit.valueAsNumber;
    return seconds > 0 ? seconds : undefined;
  }

  /** A request's address with the time limit. */
  private limited(path: string): string {
    return this.seconds ? `${path}${path.includes("?") ? "&" : "?"}timeout=${this.seconds}` : path;
  }

  private get endpoint(): string {
    return new URL(formOf(this.editor.text) === "update" ? "update" : "query", location.href).href.replace(/[?#].*$/, "");
  }

  show(parameters: URLSearchParams): void {
    const text = parameters.get("q");
    // A returning visitor finds the current text, next to the answer that is still here.
    if (text !== null && text !== this.asked) {
      this.asked = text;
      this.editor.text = text;
      // A link may come from anyone: it is run if it reads only.
      if (formOf(text) !== "update") this.run();
    } else this.table?.update();
  }

  hide(): void {}

  private copy(text: string): void {
    void copyText(text).then((done) => {
      if (done) this.say("Copied.");
      else dialog("Copy", h("pre", { class: "value", attrs: { tabindex: 0 } }, text));
    });
  }

  private say(text: string): void {
    this.status.textContent = text;
  }

  private begin(text: string): void {
    this.planning?.abort();
    this.answer?.drop();
    this.graph?.stop();
    this.answer = this.table = this.graph = this.where = undefined;
    prefixes.learn(declared(text));
    this.form = formOf(text);
    this.problems.replaceChildren();
    this.place.replaceChildren();
    this.why.replaceChildren();
    this.element.classList.remove("nothing");
    this.tabs.replaceChildren();
    this.filter.value = "";
    this.editor.underline(undefined);
    this.download.element.hidden = true;
    remember(text);
    this.asked = text;
    const hash = queryHash(text);
    if (location.hash !== hash) history.pushState(null, "", hash);
  }

  run(): void {
    const { text } = this.editor;
    if (formOf(text) === "update") {
      this.askToUpdate(text);
      return;
    }
    this.begin(text);
    this.tab = this.form === "construct" || this.form === "describe" ? (this.tab === "graph" ? "graph" : "table") : "table";
    const answer = new Answer(text, this.seconds);
    this.answer = answer;
    answer.changed = () => this.changed(answer);
    this.busy(true);
    this.say("Asking…");
  }

  private cancel(): void {
    this.answer?.cancel();
    this.planning?.abort();
  }

  private busy(on: boolean): void {
    this.cancelButton.hidden = !on;
    this.runButton.disabled = on;
    this.planButton.disabled = on;
  }

  private changed(answer: Answer): void {
    if (answer !== this.answer) return;
    const { progress, ending } = answer;
    if (ending?.how === "problem") {
      this.busy(false);
      this.failed(ending.problem, () => this.run());
      if (this.table && progress.rows > 0) {
        // What had come stays; it is not the whole answer.
        if (this.tab === "table") this.table.update();
        this.say(`Incomplete: ${this.told(answer)}`);
      }
      return;
    }
    if (answer.truth !== undefined) {
      this.place.replaceChildren(h("p", { class: `truth ${answer.truth ? "yes" : "no"}` }, answer.truth ? "true" : "false"));
      this.say(`${answer.truth ? "True" : "False"}, after ${milliseconds(progress.elapsed)}`);
    } else if (answer.columns.length > 0) {
      if (!this.table) {
        this.table = new Table(answer);
        this.showTabs();
      }
      if (this.tab === "table") this.table.update();
      this.say(this.told(answer));
    } else if (ending) {
      // A query without variables: rows of nothing.
      this.say(`${counted(progress.rows, "row")} without columns, after ${milliseconds(progress.elapsed)}`);
    }
    if (ending) {
      this.busy(false);
      if (this.download.element.hidden) this.offerDownload(answer);
      if (this.tab === "graph") void this.picture();
      if (this.table && !this.isGraph) void this.locate(answer);
      if (ending.how === "complete") void this.explainEmpty(answer);
    }
  }

  /** Says why there is nothing, if there is nothing. */
  private async explainEmpty(answer: Answer): Promise<void> {
    const { rows } = answer.progress;
    const empty = answer.truth === undefined ? rows === 0 || (rows === 1 && countsNothing(answer.columns.length, await answer.firstRows(1))) : !answer.truth;
    if (!empty || answer !== this.answer) return;
    const reasons = await whyEmpty(answer.query);
    if (answer !== this.answer || this.editor.text !== answer.query || reasons.length === 0) return;
    this.editor.underline({ status: 0, kind: "empty", detail: "", faults: placed(reasons) });
    // An empty table needs no room.
    this.element.classList.toggle("nothing", rows === 0);
    this.why.replaceChildren(list(reasons, this.editor, () => this.why.replaceChildren()));
  }

  /** Offers a map if the answer has coordinates. */
  private async locate(answer: Answer): Promise<void> {
    const where = whereIn(answer.columns, await answer.firstRows(100), answer.query);
    if (answer !== this.answer || !where) return;
    this.where = where;
    this.showTabs();
  }

  private told({ progress, ending, shown, texts, arranging }: Answer): string {
    if (arranging) return `Looking through ${counted(progress.rows, "row")}…`;
    const { rows, elapsed, first, received } = progress;
    const parts = [counted(rows, this.isGraph ? "triple" : "row")];
    if (texts.length > 0) parts.push(`${count(shown)} of them shown`);
    if (first !== null && rows > 1) parts.push(`the first after ${milliseconds(first)}`);
    parts.push(`${ending ? "" : "so far "}${milliseconds(elapsed)}`, bytes(received));
    const said = parts.join(" · ");
    switch (ending?.how) {
      case "cancelled": return `Cancelled: ${said}`;
      case "capped": return `${said}. The page holds no more rows and ended the query here: Download fetches all of them.`;
      default: return said;
    }
  }

  private get isGraph(): boolean {
    return this.form === "construct" || this.form === "describe";
  }

  private showTabs(): void {
    const names: [Tab, string][] = [["table", "Table"]];
    if (this.isGraph) names.push(["graph", "Graph"]);
    else names.push(["chart", "Chart"]);
    if (this.where) names.push(["map", "Map"]);
    if (!names.some(([tab]) => tab === this.tab)) this.tab = "table";
    const made = names.map(([tab, name]) => {
      const chosen = tab === this.tab;
      const one = button(name, () => this.choose(tab), { id: `tab-${tab}`, attrs: { role: "tab", "aria-selected": String(chosen), "aria-controls": "answer", tabindex: chosen ? 0 : -1 } });
      one.addEventListener("keydown", (event) => {
        if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
        const next = names[(names.findIndex(([t]) => t === this.tab) + (event.key === "ArrowRight" ? 1 : names.length - 1)) % names.length];
        if (next) this.choose(next[0]);
        this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
      });
      return one;
    });
    this.tabs.replaceChildren(...made);
    const panel = h("div", { id: "answer", attrs: { role: "tabpanel", "aria-labelledby": `tab-${this.tab}` } });
    this.place.replaceChildren(panel);
    this.fill(panel);
  }

  private choose(tab: Tab): void {
    this.tab = tab;
    this.showTabs();
  }

  private fill(panel: HTMLElement): void {
    const { answer } = this;
    if (!answer) return;
    if (this.tab === "table" && this.table) {
      panel.append(h("p", { class: "tools" }, this.filter), this.table.element);
      this.table.update();
    } else if (this.tab === "chart") {
      const chart = new Chart(answer);
      panel.append(chart.element);
      void chart.show();
    } else if (this.tab === "map") void this.map(answer, panel);
    else if (this.tab === "graph") void this.picture();
  }

  private async map(answer: Answer, panel: HTMLElement): Promise<void> {
    const rows = await answer.firstRows(MOST_POINTS);
    if (answer !== this.answer || !this.where || !panel.isConnected) return;
    const map = new GeoMap((row) => {
      // Rows of the map are those that came; sorted or filtered, they stand elsewhere.
      if (answer.order || answer.texts.length > 0) {
        this.filter.value = "";
        answer.arrange(null, []);
      }
      this.choose("table");
      this.table?.goTo(row);
    });
    panel.replaceChildren(map.element);
    map.show(rows, this.where, answer.progress.rows);
  }

  private async picture(): Promise<void> {
    const panel = this.place.querySelector("#answer");
    const { answer } = this;
    if (!panel || !answer) return;
    const rows = await answer.firstRows(1000);
    if (answer !== this.answer || this.tab !== "graph") return;
    this.graph?.stop();
    this.graph = new Graph();
    panel.replaceChildren(this.graph.element);
    this.graph.add(rows.filter((row): row is Triple => row.length === 3 && row.every((t) => t !== null)));
  }

  private filtered(): void {
    const { answer } = this;
    if (!answer) return;
    const text = this.filter.value.trim();
    // Rows have whole IRIs where the page shows short names.
    const full = text.includes(":") ? prefixes.full(text) : undefined;
    answer.arrange(answer.order, text === "" ? [] : full === undefined ? [text] : [text, full]);
  }

  /** Says what went wrong, where, and what can be done; underlines it, too. */
  private failed(problem: Problem, again: () => void): void {
    this.say("");
    if (wantsToken(problem)) {
      void offerToken(problem).then((given) => {
        if (given) again();
      });
    }
    this.editor.underline(problem);
    const faults = problem.faults ?? [];
    if (faults.some((f) => f.kind === "update-not-query")) {
      this.askToUpdate(this.editor.text);
      return;
    }
    if (faults.length === 0) {
      this.problems.replaceChildren(failure(problem.detail));
      return;
    }
    this.problems.replaceChildren(
      h("div", { attrs: { role: "alert" } }, h("ul", { class: "faults" }, ...faults.map((fault) => {
        const at = button(`Line ${fault.line}, column ${fault.column}`, () => this.editor.goTo(fault), { class: "link" });
        const helps = fault.suggestions.map(({ text, replacement }) =>
          replacement
            ? button(text, () => { this.editor.replace(replacement); this.problems.replaceChildren(); }, { class: "help" })
            : h("span", { class: "help" }, text));
        return h("li", {}, at, `: ${fault.message} `, ...helps);
      }))),
    );
  }

  /** An update changes the data, so it runs when someone says so once more. */
  private askToUpdate(text: string): void {
    void data().then((about) => {
      if (about && !about.writable) {
        this.problems.replaceChildren(failure("This is an update, but the server is read-only."));
        return;
      }
      const go = button("Run the update", () => void this.update(text), { class: "primary" });
      this.problems.replaceChildren(h("p", { class: "ask", attrs: { role: "alert" } }, "This is an update: it changes the data. ", go));
      go.focus();
    });
  }

  private async update(text: string): Promise<void> {
    this.begin(text);
    this.planning = new AbortController();
    this.busy(true);
    this.say("Updating…");
    try {
      const { signal } = this.planning;
      const report = await json<Report>(this.limited("update"), { method: "POST", headers: { "Content-Type": "application/sparql-update" }, body: text, signal });
      stale();
      this.say("");
      this.place.replaceChildren(reportView(report));
    } catch (error) {
      this.failed(error instanceof ProblemError ? error.problem : unreachable(error), () => void this.update(text));
    } finally {
      this.busy(false);
    }
  }

  private async plan(): Promise<void> {
    const { text } = this.editor;
    this.begin(text);
    this.busy(true);
    this.say("Running the query to measure each step…");
    const control = new AbortController();
    this.planning = control;
    const started = performance.now();
    const view = new PlanView();
    const over = new AbortController();
    control.signal.addEventListener("abort", () => over.abort());
    const tag = crypto.getRandomValues(new Uint32Array(3)).join("-");
    void watch(tag, over.signal, (steps) => {
      if (this.planning !== control) return;
      if (!view.element.isConnected) this.place.replaceChildren(view.element);
      view.show(steps, false);
      this.say(`${counted(steps.rows, "row")} so far · ${milliseconds(performance.now() - started)}`);
    });
    try {
      const profile = await json<Profile>(this.limited(`query?profile=true&tag=${tag}`), query(text, "application/json", control.signal));
      if (this.planning !== control) return;
      over.abort();
      view.show(profile, true);
      this.place.replaceChildren(view.element);
      this.say(`${counted(profile.rows, "row")}, discarded · planned in ${milliseconds(profile.plan_ms)}${profile.plan_cached ? " (cached)" : ""} · ran ${milliseconds(profile.run_ms)} · ${milliseconds(performance.now() - started)} in all`);
    } catch (error) {
      if (this.planning === control) this.failed(error instanceof ProblemError ? error.problem : unreachable(error), () => void this.plan());
    } finally {
      over.abort();
      if (this.planning === control) this.busy(false);
    }
  }

  private offerDownload(answer: Answer): void {
    if (answer.truth === undefined && answer.columns.length === 0) return;
    this.download.element.hidden = false;
    const formats = this.isGraph ? GRAPH_FORMATS : TABLE_FORMATS;
    this.download.fill(formats.map((format) => [format.label, () => void this.fetchAs(answer.query, format)]));
  }

  /** Asks again, in a format, for all rows. */
  private async fetchAs(text: string, format: Format): Promise<void> {
    this.say(`Fetching ${format.label}…`);
    try {
      const response = await send(this.limited(`query?format=${format.name}`), query(text, "*/*"));
      const content = await response.blob();
      save(content, `answer.${format.extension}`);
      this.say(`${format.label}: ${bytes(content.size)}`);
    } catch (error) {
      const problem = error instanceof ProblemError ? error.problem : unreachable(error);
      this.say("");
      this.problems.replaceChildren(failure(problem.detail));
    }
  }
}

/** Longer texts are looked at when they run. */
const LONGEST_CHECK = 100_000;

/** What the server's parser finds wrong with a query that has not been run. */
async function faultsOf(text: string): Promise<Problem | undefined> {
  if (text.trim() === "" || text.length > LONGEST_CHECK || formOf(text) === "update") return undefined;
  try {
    const response = await fetch("query?explain=true", dressed(query(text, "application/json"), token()));
    return response.status === 400 ? await problemOf(response) : undefined;
  } catch {
    return undefined;
  }
}

export function reportView(report: Report): HTMLElement {
  const changed = `${counted(report.added, "quad")} added, ${counted(report.removed, "quad")} removed by ${counted(report.operations, "operation")}.`;
  const times = Object.entries(report.ms).map(([name, ms]) => `${name} ${milliseconds(ms)}`).join(", ");
  return h("div", { class: "report", attrs: { role: "status" } }, h("p", {}, h("strong", {}, changed)), h("p", {}, `Snapshot ${report.snapshot} shows it (${times}).`));
}

function draft(text?: string): string | null {
  try {
    if (text !== undefined) sessionStorage.setItem(DRAFT, text);
    return sessionStorage.getItem(DRAFT);
  } catch {
    return null;
  }
}

interface Menu {
  element: HTMLDetailsElement;
  fill(items: [string, () => void][]): void;
}

/** A button with a list of things to do. */
function menu(name: string, opened: () => void = () => {}): Menu {
  const list = h("div", { class: "menu-items" });
  const element = h("details", { class: "menu" }, h("summary", { attrs: { role: "button" } }, name), list);
  element.addEventListener("toggle", () => element.open && opened());
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      element.open = false;
      element.querySelector("summary")?.focus();
    }
  });
  element.addEventListener("focusout", (event) => {
    if (event.relatedTarget instanceof Node && !element.contains(event.relatedTarget)) element.open = false;
  });
  document.addEventListener("click", (event) => {
    if (event.target instanceof Node && !element.contains(event.target)) element.open = false;
  });
  return {
    element,
    fill: (items) => list.replaceChildren(...items.map(([text, act]) => button(text, () => { element.open = false; act(); }))),
  };
}
