// The server at a glance: what runs now, and how it does.

import { button, failure, h } from "../dom.ts";
import { bytes, count, counted, milliseconds } from "../format.ts";
import { json, ProblemError, send } from "../net/http.ts";
import { labelsIn, metrics } from "../net/metrics.ts";
import { visible } from "../rdf/term.ts";
import { queryHash } from "../show.ts";
import { data } from "../state.ts";
import { type Job, jobs, jobsView } from "./jobs.ts";
import type { View } from "./view.ts";

/** Milliseconds between two looks. */
const PACE = 1000;

interface Live {
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
}

interface Merge {
  edits: number;
  bytes: number;
  done: number;
  failed: number;
  generations: number;
  running: boolean;
  last_failure: string | null;
}

function facts(all: [string, string][]): HTMLElement[] {
  return all.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
}

export class ServerView implements View {
  readonly title = "Server";
  readonly element = h("section", { class: "server" });
  private running = h("div");
  private merging = h("div");
  private jobs = h("div");
  private figures = h("dl", { class: "facts" });
  private replica = h("div");
  private said = h("p", { attrs: { role: "status" } });
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shown = false;
  private rows = new Map<number, HTMLElement>();

  constructor() {
    this.element.append(h("h1", {}, "Server status"), h("h2", {}, "Running queries"), this.running, this.said, h("h2", {}, "Statistics"), this.figures, this.replica, this.merging, this.jobs);
  }

  show(): void {
    this.shown = true;
    this.said.textContent = "";
    void this.look();
  }

  hide(): void {
    this.shown = false;
    clearTimeout(this.timer);
  }

  private async look(): Promise<void> {
    clearTimeout(this.timer);
    try {
      // A hidden page requests nothing.
      if (!document.hidden) {
        const [live, text, merge, about, work] = await Promise.all([
          json<{ queries: Live[] }>("admin/queries"),
          send("metrics").then((r) => r.text()),
          json<Merge>("admin/merge").catch(() => undefined),
          data(),
          jobs(),
        ]);
        if (!this.shown) return;
        this.list(live.queries);
        const of = metrics(text);
        this.figure(of);
        this.among(labelsIn(text, "jindou_replica_info"), of);
        this.merge(merge, about?.writable ?? false);
        this.work(work);
      }
    } catch (error) {
      this.running.replaceChildren(failure(error instanceof ProblemError ? error.problem.detail : String(error)));
      this.rows.clear();
      // Who would not give a token is not asked every second.
      if (error instanceof ProblemError && error.problem.status !== 0) return;
    }
    if (this.shown) this.timer = setTimeout(() => void this.look(), PACE);
  }

  private list(all: Live[]): void {
    if (all.length === 0) {
      this.rows.clear();
      this.running.replaceChildren(h("p", { class: "soft" }, "No query is running."));
      return;
    }
    let body = this.running.querySelector("tbody");
    if (!body) {
      body = h("tbody");
      const heads = ["Query", "State", "Time", "Rows", "Sent", "Memory", "Client"].map((t) => h("th", { attrs: { scope: "col" } }, t));
      this.running.replaceChildren(h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": "Running queries" } }, h("table", { class: "live" }, h("thead", {}, h("tr", {}, ...heads, h("td"))), body)));
    }
    for (const [id, row] of this.rows) {
      if (!all.some((q) => q.id === id)) {
        row.remove();
        this.rows.delete(id);
      }
    }
    for (const q of all) {
      // The row stays, and with it the focus on its button.
      let row = this.rows.get(q.id);
      if (!row) {
        // The server keeps the beginning of a long text.
        const text = q.query.endsWith("…") ? h("span", { class: "code", title: q.query.slice(0, 2000) }, `${q.query.replace(/\s+/g, " ").slice(0, 160)}…`) : h("a", { class: "code", title: q.query.slice(0, 2000), attrs: { href: queryHash(q.query) } }, q.query.replace(/\s+/g, " ").slice(0, 160));
        const end = button("Cancel", () => void this.cancel(q.id), { attrs: { "aria-label": `Cancel query ${q.id}` } });
        row = h("tr", {}, h("td", { class: "what" }, text), h("td"), h("td", { class: "n" }), h("td", { class: "n" }), h("td", { class: "n" }), h("td", { class: "n" }), h("td"), h("td", {}, end));
        this.rows.set(q.id, row);
        body.append(row);
      }
      [q.class ? `${q.state}, ${q.class}` : q.state, `${milliseconds(q.seconds * 1000)} of ${milliseconds(q.timeout * 1000)}`, count(q.rows), bytes(q.bytes), bytes(q.memory), q.client].forEach((text, i) => {
        const cell = row.children[i + 1];
        if (cell) cell.textContent = text;
      });
    }
  }

  private async cancel(id: number): Promise<void> {
    try {
      await send(`admin/queries/${id}`, { method: "DELETE" });
      this.said.textContent = `Query ${id} is being cancelled.`;
    } catch (error) {
      this.said.textContent = error instanceof ProblemError ? error.problem.detail : String(error);
    }
    void this.look();
  }

  private figure(of: (name: string, labels?: string) => number): void {
    const [hits, misses] = [of("jindou_plan_cache_hits_total"), of("jindou_plan_cache_misses_total")];
    const failing = of("jindou_log_failing") > 0;
    const all: [string, string][] = [
      ["Memory of the process", bytes(of("process_resident_memory_bytes"))],
      ["Memory of queries", `${bytes(of("jindou_query_memory_bytes"))} of ${bytes(of("jindou_query_memory_limit_bytes"))}`],
      ["Connections", count(of("jindou_connections"))],
      ["Queries answered", count(of("jindou_queries_total", 'outcome="ok"'))],
      ["Rejected: no slot or memory", count(of("jindou_queries_refused_total"))],
      ["Waiting for a slot", count(of("jindou_queries_queued"))],
      ["Rows sent", count(of("jindou_result_rows_total"))],
      ["Bytes sent", bytes(of("jindou_result_bytes_total"))],
      ["Plan-cache hits", hits + misses > 0 ? `${Math.round((hits / (hits + misses)) * 100)} %` : "–"],
      ["Snapshot", count(of("jindou_snapshot"))],
      ["Log", failing ? "cannot be written" : bytes(of("jindou_log_bytes"))],
    ];
    this.figures.replaceChildren(...facts(all));
  }

  /** The place of a server among those of a shared log. */
  private among(names: Map<string, string> | undefined, of: (name: string) => number): void {
    if (!names) return;
    const behind = of("jindou_replica_groups_behind");
    const age = of("jindou_replica_proof_age_seconds");
    const [own, writer] = [names.get("server") ?? "", names.get("writer") ?? ""];
    const all: [string, string][] = [
      ["This server", visible(own)],
      ["Writer", writer === own ? "this server" : visible(writer) || "not known yet"],
      ["Other servers in contact", `${count(of("jindou_replica_servers_in_contact"))} of ${count(Math.max(0, of("jindou_replica_servers_listed") - 1))}`],
      ["Updates to catch up with", behind === 0 ? "none" : counted(behind, "group")],
      ["Known to be current", age < 0 ? "not yet" : `${milliseconds(age * 1000)} ago`],
    ];
    this.replica.replaceChildren(h("h2", {}, "Shared log"), h("dl", { class: "facts" }, ...facts(all)));
  }

  private work(all: Job[]): void {
    // Someone who reads there is not thrown out.
    if (!this.jobs.contains(document.activeElement)) this.jobs.replaceChildren(...jobsView(all));
  }

  private merge(state: Merge | undefined, writable: boolean): void {
    if (!state || !writable) {
      this.merging.replaceChildren();
      return;
    }
    const text = state.running
      ? `A merge is running. ${counted(state.edits, "change")} not merged yet.`
      : `${counted(state.edits, "change")} (${bytes(state.bytes)}) not merged yet; ${counted(state.done, "merge")} since the start${state.failed ? `, ${count(state.failed)} failed: ${state.last_failure ?? ""}` : ""}.`;
    const focused = this.merging.contains(document.activeElement);
    const go = button("Merge now", () => void this.mergeNow(), { attrs: { disabled: state.running || state.edits === 0 } });
    this.merging.replaceChildren(h("h2", {}, "Updates"), h("p", {}, text, " ", go));
    if (focused) go.focus();
  }

  private async mergeNow(): Promise<void> {
    this.said.textContent = "Merging…";
    try {
      await send("admin/merge", { method: "POST" });
      this.said.textContent = "Merged.";
    } catch (error) {
      this.said.textContent = error instanceof ProblemError ? error.problem.detail : String(error);
    }
    void this.look();
  }
}
