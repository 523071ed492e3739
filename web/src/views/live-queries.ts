// Queries that run, and those that took long.

import { button, failure, h } from "../dom.ts";
import { bytes, count, milliseconds } from "../format.ts";
import { inGraphs } from "../graphs.ts";
import { dressed, json, messageOf, query, send, token } from "../net/http.ts";
import { formOf } from "../query-form.ts";
import { dialog, queryHash } from "../show.ts";
import { PlanView, type Steps } from "./plan.ts";

export interface LiveQuery {
  id: number;
  query: string;
  client: string;
  state: string;
  class: string | null;
  seconds: number;
  timeout: number;
  rows: number;
  bytes: number;
  memory: number;
  /** Only of queries whose sender asked for it. */
  profile?: Steps;
}

export interface SlowQuery extends LiveQuery {
  outcome: string;
  /** Seconds since 1970. */
  ended: number;
}

/** The server keeps the beginning of a long text. */
const isWhole = (text: string) => !text.endsWith("…");

function textOf(text: string): HTMLElement {
  const line = text.replace(/\s+/g, " ").slice(0, 160);
  return isWhole(text) ? h("a", { class: "code", title: text.slice(0, 2000), attrs: { href: queryHash(text) } }, line) : h("span", { class: "code", title: text.slice(0, 2000) }, `${line}…`);
}

/** Shows the plan of a query in a dialog: as far as it was measured, or what the planner expects. */
async function showPlan(of: LiveQuery): Promise<void> {
  const view = new PlanView(of.query);
  dialog("Plan", h("pre", { class: "value", attrs: { tabindex: 0 } }, of.query.slice(0, 10_000)), view.element).classList.add("wide-dialog");
  try {
    const ended = "ended" in of;
    const profile = of.profile ?? (ended ? undefined : (await json<LiveQuery>(`admin/queries/${of.id}`).catch(() => undefined))?.profile);
    if (profile) view.show(profile, ended ? "done" : "running");
    else if (!isWhole(of.query)) view.element.replaceChildren(failure("The server keeps only the beginning of this query, and its sender did not ask for its steps, so there is no plan."));
    else view.show(await fetch(inGraphs("query?explain=true"), dressed(query(of.query, "application/json"), token())).then((r) => r.json() as Promise<Steps>), "expected");
  } catch {
    view.element.replaceChildren(failure("The server made no plan of this text."));
  }
}

const hasPlan = ({ query }: LiveQuery) => formOf(query) !== "update";

function planButton(of: () => LiveQuery): HTMLElement {
  return button("Plan", () => void showPlan(of()), { attrs: { "aria-label": `Plan of query ${of().id}` } });
}

/** The running ones; their rows stay, and with them the focus on a button. */
export class LiveQueries {
  readonly element = h("div");
  private rows = new Map<number, { row: HTMLElement; now: LiveQuery }>();

  constructor(private say: (text: string) => void, private again: () => void) {}

  /** They cannot be listed. */
  fail(text: string): void {
    this.element.replaceChildren(failure(text));
    this.rows.clear();
  }

  show(all: LiveQuery[]): void {
    for (const [id, { row }] of this.rows) {
      if (all.some((q) => q.id === id)) continue;
      row.remove();
      this.rows.delete(id);
    }
    if (all.length === 0) {
      this.element.replaceChildren(h("p", { class: "soft" }, "No query is running."));
      return;
    }
    let body = this.element.querySelector("tbody");
    if (!body) {
      body = h("tbody");
      this.element.replaceChildren(table("Running queries", headed(["Query", "State", "Time", "Rows", "Sent", "Memory", "Client", ""]), body));
    }
    for (const q of all) {
      let one = this.rows.get(q.id);
      if (!one) {
        const made = { row: h("tr"), now: q };
        const end = button("Cancel", () => void this.cancel(q.id), { attrs: { "aria-label": `Cancel query ${q.id}` } });
        made.row.append(h("td", { class: "what" }, textOf(q.query)), h("td"), ...["n", "n", "n", "n", ""].map((kind) => h("td", { class: kind })), h("td", { class: "acts" }, hasPlan(q) ? planButton(() => made.now) : null, end));
        one = made;
        this.rows.set(q.id, one);
        body.append(one.row);
      }
      one.now = q;
      const cells = [q.class ? `${q.state}, ${q.class}` : q.state, `${milliseconds(q.seconds * 1000)} of ${milliseconds(q.timeout * 1000)}`, count(q.rows), bytes(q.bytes), bytes(q.memory), q.client];
      for (const [i, text] of cells.entries()) {
        const cell = one.row.children[i + 1];
        if (cell) cell.textContent = text;
      }
    }
  }

  private async cancel(id: number): Promise<void> {
    try {
      await send(`admin/queries/${id}`, { method: "DELETE" });
      this.say(`Query ${id} is being cancelled.`);
    } catch (error) {
      this.say(messageOf(error));
    }
    this.again();
  }
}

const headed = (names: string[]) => names.map((text) => (text === "" ? h("td") : h("th", { attrs: { scope: "col" } }, text)));

export function table(name: string, heads: HTMLElement[], body: HTMLElement): HTMLElement {
  return h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": name } }, h("table", { class: "live" }, h("thead", {}, h("tr", {}, ...heads)), body));
}

/** Those that took long: the server keeps the last ones. */
export class SlowQueries {
  readonly element = h("div");
  private newest = -1;

  show(all: SlowQuery[]): void {
    const newest = all[0]?.ended ?? 0;
    // Someone who reads there is not thrown out.
    if (newest === this.newest || this.element.contains(document.activeElement)) return;
    this.newest = newest;
    const lines = all.map((q) => h(
      "tr", {}, h("td", { class: "what" }, textOf(q.query)), h("td", {}, new Date(q.ended * 1000).toLocaleString("en-GB")), h("td", {}, q.outcome), h("td", { class: "n" }, milliseconds(q.seconds * 1000)), h("td", { class: "n" }, count(q.rows)), h("td", { class: "n" }, bytes(q.memory)), h("td", {}, q.client),
      h("td", { class: "acts" }, hasPlan(q) ? planButton(() => q) : null),
    ));
    this.element.replaceChildren(all.length === 0 ? h("p", { class: "soft" }, "None since the server started.") : table("Slow queries", headed(["Query", "Ended", "Outcome", "Time", "Rows", "Memory", "Client", ""]), h("tbody", {}, ...lines)));
  }
}
