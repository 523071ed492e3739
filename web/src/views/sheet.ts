// One query: its editor and its answer.

import { Answer } from "../answer/answer.ts";
import { isSideBySide, mayBeSideBySide, turn } from "../placement.ts";
import { button, failure, h, save } from "../dom.ts";
import { Editor } from "../editor/editor.ts";
import { formatted } from "../editor/format.ts";
import { tell } from "../events.ts";
import type { Example } from "../examples.ts";
import { bytes, counted, milliseconds } from "../format.ts";
import { choose as chooseGraphs, graphs, graphsMatter, graphsParameter, inGraphs, withParameter } from "../graphs.ts";
import { remember } from "../history.ts";
import { losses } from "../losses.ts";
import { GRAPH_FORMATS, TABLE_FORMATS, type Format } from "../net/formats.ts";
import { dressed, json, offerToken, type Problem, problemOf, query, send, token, wantsToken } from "../net/http.ts";
import { curl, python } from "../net/snippets.ts";
import { type Report, problemIn } from "../net/upload.ts";
import { type Item, menu } from "../pieces.ts";
import { formOf, type Form } from "../query-form.ts";
import { declared } from "../rdf/prefixes.ts";
import { copyText, dialog, prefixes, queryHash } from "../show.ts";
import { data, stale } from "../state.ts";
import { AnswerView, type Tab, told } from "./answer-view.ts";
import { countsNothing, hasMoreElsewhere, list, placed, whyEmpty } from "./empty.ts";
import { HOW_TO_WRITE, reportView } from "./load.ts";
import { markdown } from "./markdown.ts";
import { newTag, PlanView, type Profile, watch } from "./plan.ts";
import { Running } from "./running.ts";
import { Start } from "./start.ts";
import { trouble, Waiting, wordsFor } from "./trouble.ts";

export const FIRST = "SELECT * WHERE {\n  ?s ?p ?o\n}\nLIMIT 100\n";

interface Options {
  text: string;
  /** The text was changed. */
  changed: (sheet: Sheet) => void;
  /** An example was chosen. */
  example: (one: Example) => void;
}

export class Sheet {
  readonly element = h("div", { class: "sheet" });
  readonly editor: Editor;
  /** What the address named last, or what ran. */
  asked: string | undefined;
  /** Buttons and menus, shown in the line of the query tabs. */
  readonly tools: HTMLElement;
  /** Menus of queries that are kept; filled by the view. */
  readonly documents = h("span", { class: "documents" });
  private answer: Answer | undefined;
  /** The answer whose end has been dealt with. */
  private ended: Answer | undefined;
  private view: AnswerView | undefined;
  private form: Form = "unknown";
  private tab: Tab = "table";
  private running: Running | undefined;
  private waiting: Waiting | undefined;
  private planning: AbortController | undefined;
  private plan: PlanView | undefined;
  private runButton = button("Run", () => this.run(), { class: "primary", title: "Ctrl-Enter" });
  private cancelButton = button("Cancel", () => this.cancel(), { title: "Also ends the query on the server" });
  private planButton = button("Plan", () => void this.showPlan(), { title: "Says how the query is answered, and what each step takes" });
  private status = h("p", { class: "status", attrs: { role: "status" } });
  /** Tabs, state, filter and download of the answer, in one line. */
  private tabs = h("div", { class: "tabs-place" });
  private filter = h("div", { class: "filter-place" });
  private problems = h("div", { class: "problems" });
  /** The text that `problems` is about. */
  private wrong: string | undefined;
  private limit = h("input", { class: "limit", title: "Time limit of the query in seconds; without one, the server's", attrs: { type: "number", min: 1, step: 1, placeholder: "seconds", "aria-label": "Time limit in seconds" } });
  private place = h("div", { class: "place" });
  /** Why the answer is empty. */
  private why = h("div", { class: "reasons" });
  private start = new Start((one) => this.options.example(one), (empty) => this.element.classList.toggle("empty-store", empty));
  private download = menu("Download");

  constructor(private options: Options) {
    this.editor = new Editor({
      text: options.text,
      run: () => this.run(),
      format: (text) => formatted(text),
      check: faultsOf,
      changed: () => {
        options.changed(this);
        this.element.classList.add("writing");
        // What was wrong with another text is not wrong with this one.
        if (this.wrong !== undefined && this.wrong !== this.editor.text) this.clearProblems();
      },
    });
    this.cancelButton.hidden = true;
    this.tools = h("div", { class: "tools" }, this.runButton, this.cancelButton, this.planButton, this.documents, this.more());
    this.download.element.classList.add("end");
    this.element.append(
      h("div", { class: "write" }, h("div", { class: "editor-place" }, this.editor.element, h("p", { class: "editor-hint", attrs: { "aria-hidden": true } }, "Esc, then Tab leaves the editor")), this.problems),
      h("div", { class: "results" }, h("div", { class: "answer-bar" }, this.tabs, this.status, this.filter, this.download.element), this.place, this.why),
    );
    // Who goes on writing gets the room that the answer took.
    this.editor.element.addEventListener("pointerdown", () => this.element.classList.add("writing"));
    this.download.element.hidden = true;
    this.beginScreen();
  }

  /** What is rarely needed. */
  private more(): HTMLElement {
    const all = menu("More", () => all.fill([
      h("label", { class: "menu-field" }, "Time limit ", this.limit),
      ["Format", () => this.editor.format(), "Ctrl-Shift-F"],
      ["Copy link", () => this.copy(this.link)],
      ["Copy as curl", () => this.copy(curl(this.endpoint, this.editor.text, this.copied))],
      ["Copy as Python", () => this.copy(python(this.endpoint, this.editor.text, this.copied))],
      ...(mayBeSideBySide() ? [[isSideBySide() ? "Editor above the answer" : "Editor next to the answer", turn] as [string, () => void]] : []),
    ]));
    all.element.classList.add("end");
    const name = all.element.querySelector("summary");
    this.limit.addEventListener("input", () => name && (name.textContent = this.seconds === undefined ? "More" : `More · ${this.seconds} s`));
    // The limit is there before the menu was opened.
    all.fill([h("label", { class: "menu-field" }, "Time limit ", this.limit)]);
    return all.element;
  }

  /** Nothing was asked yet: the store at a glance. */
  private beginScreen(): void {
    this.place.replaceChildren(this.start.element);
    void this.start.show();
  }

  get text(): string {
    return this.editor.text;
  }

  private get copied() {
    return { hasToken: token() !== undefined, isUpdate: formOf(this.editor.text) === "update" };
  }

  private get seconds(): number | undefined {
    const seconds = this.limit.valueAsNumber;
    return seconds > 0 ? seconds : undefined;
  }

  /** A request's address with the time limit and the graphs. */
  private dressed(path: string): string {
    return inGraphs(withParameter(path, "timeout", this.seconds));
  }

  private get endpoint(): string {
    return new URL(inGraphs(formOf(this.editor.text) === "update" ? "update" : "query"), location.href.replace(/[?#].*$/, "")).href;
  }

  /** A link to the query, the graphs it reads and the view of its answer. */
  private get link(): string {
    const view = this.view && this.tab !== "table" ? `&view=${this.tab}` : "";
    return new URL(queryHash(this.editor.text, graphsParameter()) + view, location.href).href;
  }

  /** Takes a text and runs it: from a link, or from an example. */
  take(text: string, tab?: string | null): void {
    this.editor.text = text;
    if (tab === "chart" || tab === "map" || tab === "graph" || tab === "plan") this.tab = tab;
    else this.tab = "table";
    // A link may come from anyone: it is run if it reads only.
    if (formOf(text) !== "update") this.run(true);
    this.editor.offer();
  }

  /** It is on the screen again. */
  shown(): void {
    prefixes.show(declared(this.asked ?? ""));
    this.view?.update();
    if (this.start.element.isConnected) void this.start.show();
  }

  /** Other data or other graphs. */
  refresh(asksAgain: boolean): void {
    if (this.start.element.isConnected) void this.start.show();
    else if (asksAgain && this.answer && this.answer.query === this.text) this.run(true);
  }

  close(): void {
    this.stopAll();
    this.answer?.drop();
  }

  private copy(text: string): void {
    void copyText(text).then((done) => {
      if (done) this.say("Copied.");
      else dialog("Copy", h("pre", { class: "value", attrs: { tabindex: 0 } }, text));
    });
  }

  private async asMarkdown(): Promise<void> {
    const { answer } = this;
    if (answer) this.copy(markdown(answer.columns, await answer.firstRows(1000, 0, 2000)));
  }

  private say(text: string): void {
    this.status.textContent = text;
  }

  private clearProblems(): void {
    this.wrong = undefined;
    this.element.classList.remove("asks");
    this.problems.replaceChildren();
    this.waiting?.stop();
    this.waiting = undefined;
  }

  private stopAll(): void {
    this.planning?.abort();
    this.planning = undefined;
    this.running?.stop();
    this.running = undefined;
    this.waiting?.stop();
    this.view?.stop();
  }

  private begin(text: string): void {
    this.stopAll();
    this.answer?.drop();
    this.answer = this.view = this.plan = undefined;
    prefixes.show(declared(text));
    this.form = formOf(text);
    this.clearProblems();
    this.place.replaceChildren();
    this.tabs.replaceChildren();
    this.filter.replaceChildren();
    this.why.replaceChildren();
    this.element.classList.remove("nothing", "writing");
    this.element.classList.add("answered");
    this.editor.showBeginning();
    this.editor.underline(undefined);
    this.download.element.hidden = true;
    this.asked = text;
    const hash = queryHash(text, graphsParameter());
    if (location.hash !== hash) history.pushState(null, "", hash);
  }

  run(keepTab = false): void {
    const { text } = this.editor;
    if (formOf(text) === "update") {
      this.askToUpdate(text);
      return;
    }
    this.busy(true);
    this.say("Asking…");
    // Which graphs are read is known when the server has described its data.
    void data().then(() => this.ask(text, keepTab));
  }

  private ask(text: string, keepTab: boolean): void {
    this.begin(text);
    const isGraph = this.form === "construct" || this.form === "describe";
    if (!keepTab) this.tab = isGraph && this.tab === "graph" ? "graph" : "table";
    const tag = newTag();
    const answer = new Answer(text, this.dressed(`query?tag=${tag}&watch=true`));
    this.answer = answer;
    answer.changed = () => this.changed(answer);
    this.busy(true);
    const running = new Running({ text, tag }, (said) => this.answer === answer && answer.running && this.say(said), () => answer.progress.rows);
    this.running = running;
    this.place.replaceChildren(running.element);
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
    if (ending) this.running?.stop();
    const ends = ending !== undefined && this.ended !== answer;
    if (ends) this.ended = answer;
    if (ending?.how === "problem") {
      if (!ends) {
        this.view?.update();
        return;
      }
      this.busy(false);
      remember({ text: answer.query, at: Date.now(), ms: Math.round(progress.elapsed), ended: "failed" });
      if (!this.view) this.place.replaceChildren();
      this.failed(ending.problem, () => this.run(true), progress.rows, progress.elapsed);
      if (this.view && progress.rows > 0) {
        // What had come stays; it is not the whole answer.
        this.view.update();
        this.say(`Incomplete: ${told(answer, this.isGraph)}`);
      }
      return;
    }
    if (answer.truth !== undefined) {
      this.place.replaceChildren(h("p", { class: `truth ${answer.truth ? "yes" : "no"}` }, answer.truth ? "true" : "false"));
      this.say(`${answer.truth ? "True" : "False"}, after ${milliseconds(progress.elapsed)}`);
    } else if (answer.columns.length > 0) {
      // A head without rows says less than the plan of a query that still runs.
      if (!this.view && (progress.rows > 0 || ending)) this.open(answer);
      this.view?.update();
      if (ending || answer.arranging) this.say(told(answer, this.isGraph));
    } else if (ending) {
      this.place.replaceChildren();
      // A query without variables: rows of nothing; or none came before someone ended it.
      this.say(ending.how === "cancelled" ? `Cancelled after ${milliseconds(progress.elapsed)}; no row had come.` : `${counted(progress.rows, "row")} without columns, after ${milliseconds(progress.elapsed)}`);
    }
    if (ends) this.finished(answer);
  }

  private finished(answer: Answer): void {
    this.busy(false);
    this.offerDownload(answer);
    void this.view?.finish();
    // What was expected gives way to what was measured.
    if (this.view?.tab === "plan") this.view.choose("plan");
    const { ending, progress } = answer;
    if (ending?.how === "cancelled" && progress.rows > 0) this.problems.replaceChildren(trouble({ title: "Cancelled", text: `You ended the query after ${milliseconds(progress.elapsed)}. The ${counted(progress.rows, "row")} below had come; they are not the whole answer.`, calm: true }));
    remember({ text: answer.query, at: Date.now(), ms: Math.round(progress.elapsed), ...(ending?.how === "cancelled" ? { ended: "cancelled" } : ending?.how === "complete" && answer.truth === undefined ? { rows: progress.rows } : {}) });
    if (ending?.how === "complete") void this.explainEmpty(answer);
  }

  private get isGraph(): boolean {
    return this.form === "construct" || this.form === "describe";
  }

  private open(answer: Answer): void {
    this.view = new AnswerView(answer, {
      form: this.form,
      tab: this.tab,
      plan: () => this.planOf(answer),
      chosen: (tab) => (this.tab = tab),
      say: () => this.say(told(answer, this.isGraph)),
    });
    this.tabs.replaceChildren(this.view.tabs);
    this.filter.replaceChildren(this.view.filter);
    this.place.replaceChildren(this.view.element);
  }

  /** The plan of an answer that is here or on its way; measured by another run, once that is asked for. */
  private planOf(answer: Answer): HTMLElement {
    if (answer.running && this.running) return this.running.plan.element;
    if (!this.plan) {
      const plan = new PlanView(answer.query);
      this.plan = plan;
      void this.measure(answer.query, plan, () => answer === this.answer);
    }
    return this.plan.element;
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
    if (!graphsMatter() || graphs() === "all" || !hasMoreElsewhere(reasons)) return;
    const all = () => {
      chooseGraphs("all");
      tell("graphs");
    };
    this.why.append(h("p", {}, button("Read all graphs", all, { class: "primary" }), h("span", { class: "soft" }, " runs the query again over the default graph and all named graphs together")));
  }

  /** Says what went wrong, where, and what can be done; underlines it, too. */
  private failed(problem: Problem, again: () => void, rows = 0, ms = 0): void {
    this.say("");
    if (wantsToken(problem) && !/server is read-only/.test(problem.detail)) {
      void offerToken(problem).then((given) => {
        if (given) again();
      });
    }
    this.editor.underline(problem);
    this.element.classList.add("writing");
    this.wrong = this.editor.text;
    const faults = problem.faults ?? [];
    if (faults.some((f) => f.kind === "update-not-query")) {
      this.askToUpdate(this.editor.text);
      return;
    }
    if (problem.kind === "network" && rows === 0) {
      this.waiting?.stop();
      this.waiting = new Waiting(again);
      this.problems.replaceChildren(this.waiting.element);
      return;
    }
    if (faults.length === 0) {
      const words = wordsFor(problem, rows, ms);
      this.problems.replaceChildren(words ? trouble(words, button("Run again", again)) : failure(problem.detail));
      return;
    }
    this.problems.replaceChildren(
      h("div", { attrs: { role: "alert" } }, h("ul", { class: "faults" }, ...faults.map((fault) => {
        const at = button(`Line ${fault.line}, column ${fault.column}`, () => this.editor.goTo(fault), { class: "link" });
        const helps = fault.suggestions.map(({ text, replacement }) =>
          replacement
            ? button(text, () => { this.editor.replace(replacement); this.clearProblems(); this.editor.focus(); }, { class: "help" })
            : h("span", { class: "help" }, text));
        return h("li", {}, at, `: ${fault.message} `, ...helps);
      }))),
    );
  }

  /** An update changes the data, so it runs when someone says so once more. */
  private askToUpdate(text: string): void {
    void data().then(async (about) => {
      this.wrong = text;
      // The answer of another text is not what this is about.
      this.element.classList.add("asks");
      if (about && !about.writable) {
        this.problems.replaceChildren(trouble({ title: "This is an update, but the server is read-only.", text: `To change data, ${HOW_TO_WRITE}.` }));
        return;
      }
      const lost = await losses(text);
      if (this.wrong !== text) return;
      const go = button("Run the update", () => void this.update(text), { class: lost.length > 0 ? "danger" : "primary" });
      const stay = button("Cancel", () => {
        this.clearProblems();
        this.editor.focus();
      });
      const said = lost.length > 0 ? `This update deletes ${lost.join(", and ")}. This cannot be undone. ` : "This is an update: it changes the data. ";
      this.problems.replaceChildren(h("p", { class: "ask", attrs: { role: "alert" } }, said, go, " ", stay));
      (lost.length > 0 ? stay : go).focus();
    });
  }

  private async update(text: string): Promise<void> {
    this.begin(text);
    const control = new AbortController();
    this.planning = control;
    this.busy(true);
    this.say("Updating…");
    const started = performance.now();
    try {
      const report = await json<Report>(this.dressed("update"), { method: "POST", headers: { "Content-Type": "application/sparql-update" }, body: text, signal: control.signal });
      stale();
      tell("data");
      this.say("");
      this.place.replaceChildren(reportView(report));
      remember({ text, at: Date.now(), ms: Math.round(performance.now() - started) });
    } catch (error) {
      remember({ text, at: Date.now(), ms: Math.round(performance.now() - started), ended: control.signal.aborted ? "cancelled" : "failed" });
      this.failed(problemIn(error), () => this.askToUpdate(text));
    } finally {
      this.busy(false);
    }
  }

  /** Shows the plan: next to the answer if there is one of this text, otherwise alone. */
  private async showPlan(): Promise<void> {
    const { text } = this.editor;
    if (this.view && this.answer?.query === text) {
      this.view.choose("plan");
      return;
    }
    if (formOf(text) === "update") {
      this.problems.replaceChildren(failure("Plans are made of queries; this is an update."));
      this.wrong = text;
      return;
    }
    await data();
    this.begin(text);
    const plan = new PlanView(text);
    this.busy(true);
    if (await this.measure(text, plan, () => true, () => this.place.replaceChildren(plan.element))) this.plan = plan;
  }

  /** Runs a query without its answer, and shows what each step takes while it runs and in the end. */
  private async measure(text: string, view: PlanView, wanted: () => boolean, first: () => void = () => {}): Promise<boolean> {
    this.say("Running the query to measure each step…");
    this.busy(true);
    const control = new AbortController();
    this.planning = control;
    const started = performance.now();
    const over = new AbortController();
    control.signal.addEventListener("abort", () => over.abort());
    const tag = newTag();
    const here = () => this.planning === control && wanted();
    void watch(tag, over.signal, (live) => {
      if (!here() || !live.profile) return;
      first();
      view.show(live.profile, "running");
      this.say(`${counted(live.profile.rows, "row")} so far · ${milliseconds(performance.now() - started)}`);
    });
    try {
      const profile = await json<Profile>(this.dressed(`query?profile=true&tag=${tag}`), query(text, "application/json", control.signal));
      if (!here()) return false;
      over.abort();
      view.show(profile, "done");
      first();
      this.say(`Measured in a run of its own: ${counted(profile.rows, "row")} · planned in ${milliseconds(profile.plan_ms)}${profile.plan_cached ? " (cached)" : ""} · ran ${milliseconds(profile.run_ms)} · ${milliseconds(performance.now() - started)} in all`);
      return true;
    } catch (error) {
      if (here()) {
        const problem = problemIn(error);
        if (problem.kind === "aborted") this.say(`Cancelled after ${milliseconds(performance.now() - started)}.`);
        else this.failed(problem, () => void this.showPlan());
      }
      return false;
    } finally {
      over.abort();
      if (this.planning === control) this.busy(false);
    }
  }

  private offerDownload(answer: Answer): void {
    if (answer.truth === undefined && answer.columns.length === 0) return;
    this.download.element.hidden = false;
    const formats = this.isGraph ? GRAPH_FORMATS : TABLE_FORMATS;
    this.download.fill([
      ...formats.map((format): Item => [format.label, () => void this.fetchAs(answer.query, format)]),
      ["Copy as Markdown", () => void this.asMarkdown(), "the rows shown, 1,000 at most"],
    ]);
  }

  /** Asks again, in a format, for all rows. */
  private async fetchAs(text: string, format: Format): Promise<void> {
    this.say(`Fetching ${format.label}…`);
    try {
      const response = await send(this.dressed(`query?format=${format.name}`), query(text, "*/*"));
      const content = await response.blob();
      save(content, `answer.${format.extension}`);
      this.say(`${format.label}: ${bytes(content.size)}`);
    } catch (error) {
      this.say("");
      this.problems.replaceChildren(failure(problemIn(error).detail));
    }
  }
}

/** Longer texts are looked at when they run. */
const LONGEST_CHECK = 100_000;

/** What the server's parser finds wrong with a query that has not been run. */
async function faultsOf(text: string): Promise<Problem | undefined> {
  if (text.trim() === "" || text.length > LONGEST_CHECK || formOf(text) === "update") return undefined;
  try {
    const response = await fetch(inGraphs("query?explain=true"), dressed(query(text, "application/json"), token()));
    return response.status === 400 ? await problemOf(response) : undefined;
  } catch {
    // The server does not answer; that is said when someone runs the query.
    return undefined;
  }
}
