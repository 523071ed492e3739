// The server at a glance: what it is, what is wrong with it, its last five minutes, and what runs.

import { button, h } from "../dom.ts";
import { bytes, count, counted, duration, milliseconds } from "../format.ts";
import { dressed, json, messageOf, ProblemError, send, token } from "../net/http.ts";
import { metrics, samples, samplesBy } from "../net/metrics.ts";
import { visible } from "../rdf/term.ts";
import { data } from "../state.ts";
import { type Job, jobs, jobsView } from "./jobs.ts";
import { LiveQueries, type LiveQuery, SlowQueries, type SlowQuery, table } from "./live-queries.ts";
import { Past, type Sample, smallChart } from "./past.ts";
import type { View } from "./view.ts";
import { warnings } from "./warnings.ts";

/** Milliseconds between two requests, and how many of them go without asking whether the server is ready. */
const PACE = 1000;
const READY = 5;
/** The most shards that are shown. */
const MOST_SHARDS = 200;

type Of = Sample["of"];

interface Merge {
  edits: number;
  bytes: number;
  done: number;
  failed: number;
  generations: number;
  running: boolean;
  last_failure: string | null;
}

function facts(all: [string, string][]): HTMLElement {
  return h("dl", { class: "facts" }, ...all.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** A table whose rows begin with their name; those named in `far` are marked. */
function grid(name: string, heads: string[], rows: string[][], far = new Set<string>()): HTMLElement {
  const line = ([first = "", ...cells]: string[]) => h("tr", { class: far.has(first) ? "far" : "" }, h("th", { attrs: { scope: "row" } }, first), ...cells.map((cell) => h("td", { class: "n" }, cell)));
  return table(name, heads.map((head, i) => h("th", { class: i > 0 ? "n" : "", attrs: { scope: "col" } }, head)), h("tbody", {}, ...rows.map(line)));
}

/** A group of figures: its charts above, its facts below. */
class Group {
  readonly element: HTMLElement;
  private charts = h("div", { class: "small-charts" });
  private facts = h("div");
  readonly more = h("div");

  constructor(title: string) {
    this.element = h("section", { class: "panel", attrs: { "aria-label": title } }, h("h2", {}, title), this.charts, this.facts, this.more);
  }

  show(charts: HTMLElement[], all: [string, string][]): void {
    this.charts.replaceChildren(...charts);
    this.facts.replaceChildren(facts(all));
  }
}

export class ServerView implements View {
  readonly title = "Server";
  readonly element = h("section", { class: "server" });
  private about = h("p", { class: "server-line" });
  private warned = h("div", { attrs: { role: "status" } });
  private said = h("p", { attrs: { role: "status" } });
  private memory = new Group("Memory");
  private traffic = new Group("Traffic");
  private store = new Group("Store");
  private replication = new Group("Shared log");
  private shards = new Group("Shards");
  private jobs = h("div");
  private live = new LiveQueries((text) => (this.said.textContent = text), () => void this.look());
  private slow = new SlowQueries();
  private past = new Past();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private shown = false;
  private looks = 0;
  private notReady: string | undefined;

  constructor() {
    const groups = [this.memory, this.traffic, this.store, this.replication, this.shards].map(({ element }) => element);
    this.replication.element.hidden = this.shards.element.hidden = true;
    this.element.append(
      h("h1", {}, "Server"), this.about, this.warned, h("div", { class: "panels" }, ...groups), h("h2", {}, "Running queries"), this.live.element, this.said,
      h("h2", {}, "Slow queries"), this.slow.element, this.jobs,
    );
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
      if (!document.hidden) await this.ask();
    } catch (error) {
      this.live.fail(messageOf(error));
      // Who would not give a token is not asked every second.
      if (error instanceof ProblemError && error.problem.status !== 0) return;
    }
    clearTimeout(this.timer);
    if (this.shown) this.timer = setTimeout(() => void this.look(), PACE);
  }

  private async ask(): Promise<void> {
    const [live, text, merge, about, work] = await Promise.all([
      json<{ queries: LiveQuery[]; slow: SlowQuery[] }>("admin/queries"),
      send("metrics").then((r) => r.text()),
      json<Merge>("admin/merge").catch(() => undefined),
      data(),
      jobs(),
    ]);
    if (this.looks++ % READY === 0) this.notReady = await reason();
    if (!this.shown) return;
    const sample = { at: Date.now() / 1000, of: metrics(text) };
    this.past.add(sample);
    this.live.show(live.queries);
    this.slow.show(live.slow);
    const [names] = samples(text, "jindou_replica_info");
    const holders = samplesBy(text, "jindou_shard_holders", "shard");
    this.head(sample, samples(text, "jindou_build_info")[0]);
    this.warn(warnings(sample, this.past, { notReady: this.notReady, lastFailure: merge?.last_failure, holders, isReplica: names !== undefined }));
    this.figures(sample.of);
    this.stored(sample.of, merge, about?.writable ?? false);
    this.among(names, sample.of, text);
    this.spread(text, holders);
    this.work(work);
  }

  private head({ at, of }: Sample, build: Map<string, string> | undefined): void {
    const began = of("process_start_time_seconds");
    const parts = [build ? `Jindou ${build.get("version") ?? ""}` : "", build?.get("commit") ?? "", began > 0 ? `running for ${duration(at - began)}, since ${new Date(began * 1000).toLocaleString("en-GB")}` : ""];
    this.about.textContent = parts.filter(Boolean).join(" · ");
  }

  private warn(all: string[]): void {
    // The same words again would be read out again.
    const words = all.join("\n");
    if (this.warned.dataset["words"] === words) return;
    this.warned.dataset["words"] = words;
    this.warned.replaceChildren(all.length === 0 ? h("p", { class: "soft" }, "No warnings.") : h("ul", { class: "warnings" }, ...all.map((text) => h("li", {}, visible(text)))));
  }

  private figures(of: Of): void {
    const { past } = this;
    const resident = (o: Of) => o("process_resident_memory_bytes");
    const held = (o: Of) => o("jindou_query_memory_bytes");
    const wanted = of("jindou_warm_wanted_bytes");
    this.memory.show([smallChart("Process", past.values(resident), whole), smallChart("Queries", past.values(held), whole)], [
      ["Memory of the process", bytes(resident(of))], ["Memory of queries", `${bytes(held(of))} of ${bytes(of("jindou_query_memory_limit_bytes"))}`],
      ...(wanted > 0 ? [["Store read ahead", `${bytes(of("jindou_warm_read_bytes"))} of ${bytes(wanted)}`] as [string, string]] : []),
    ]);
    const [hits, misses] = [of("jindou_plan_cache_hits_total"), of("jindou_plan_cache_misses_total")];
    const answered = (o: Of) => o("jindou_query_seconds_count");
    this.traffic.show([smallChart("Queries a second", past.rates(answered), rate), smallChart("Rows a second", past.rates((o) => o("jindou_result_rows_total")), rate)], [
      ["Queries answered", count(of("jindou_queries_total", 'outcome="ok"'))], ["Mean time", answered(of) > 0 ? milliseconds((of("jindou_query_seconds_sum") / answered(of)) * 1000) : "–"],
      ["Waiting for a slot", count(of("jindou_queries_queued"))], ["Rejected: no slot or memory", count(of("jindou_queries_refused_total"))], ["Rows sent", count(of("jindou_result_rows_total"))],
      ["Bytes sent", bytes(of("jindou_result_bytes_total"))], ["Plan-cache hits", hits + misses > 0 ? `${Math.round((hits / (hits + misses)) * 100)} %` : "–"], ["Connections", count(of("jindou_connections"))],
    ]);
  }

  private stored(of: Of, state: Merge | undefined, writable: boolean): void {
    const updates = smallChart("Updates a second", this.past.rates((o) => o("jindou_update_seconds_count")), rate);
    this.store.show(writable ? [updates, smallChart("Changes not merged", this.past.values((o) => o("jindou_delta_edits")), (n) => count(Math.round(n)))] : [], [
      ["Snapshot", count(of("jindou_snapshot"))], ["Log", of("jindou_log_failing") > 0 ? "cannot be written" : bytes(of("jindou_log_bytes"))],
      ["Updates made", count(of("jindou_updates_total", 'outcome="ok"'))], ["Merged to snapshot", count(of("jindou_merged_snapshot"))],
    ]);
    const { more } = this.store;
    if (!state || !writable) {
      more.replaceChildren();
      return;
    }
    const text = state.running
      ? `A merge is running. ${counted(state.edits, "change")} not merged yet.`
      : `${counted(state.edits, "change")} (${bytes(state.bytes)}) not merged yet; ${counted(state.done, "merge")} since the start${state.failed ? `, ${count(state.failed)} failed: ${state.last_failure ?? ""}` : ""}.`;
    const focused = more.contains(document.activeElement);
    const go = button("Merge now", () => void this.mergeNow(), { attrs: { disabled: state.running || state.edits === 0 } });
    more.replaceChildren(h("p", {}, text, " ", go));
    if (focused) go.focus();
  }

  /** The place of a server among those of a shared log. */
  private among(names: Map<string, string> | undefined, of: Of, text: string): void {
    this.replication.element.hidden = !names;
    if (!names) return;
    const behind = of("jindou_replica_groups_behind");
    const age = of("jindou_replica_proof_age_seconds");
    const [own, writer] = [names.get("server") ?? "", names.get("writer") ?? ""];
    const puts = of("jindou_replica_puts_total");
    this.replication.show([smallChart("Groups behind", this.past.values((o) => o("jindou_replica_groups_behind")), (n) => count(n)), smallChart("Seconds since it was current", this.past.values((o) => Math.max(0, o("jindou_replica_proof_age_seconds"))), (n) => n.toFixed(1))], [
      ["This server", visible(own)],
      ["Writer", writer === own ? "this server" : visible(writer) || "not known yet"],
      ["Other servers in contact", `${count(of("jindou_replica_servers_in_contact"))} of ${count(Math.max(0, of("jindou_replica_servers_listed") - 1))}`],
      ["Updates to catch up with", behind === 0 ? "none" : counted(behind, "group")],
      ["Known to be current", age < 0 ? "not yet" : `${milliseconds(age * 1000)} ago`],
      ["Newest group read", count(of("jindou_replica_group"))],
      ["Mean time of a put", puts > 0 ? milliseconds((of("jindou_replica_put_seconds_total") / puts) * 1000) : "–"],
    ]);
    const groups = samplesBy(text, "jindou_replica_server_group", "server");
    const others = [...samplesBy(text, "jindou_replica_contact_age_seconds", "server")].map(([server, silent]) => {
      const missing = of("jindou_replica_group") - (groups.get(server) ?? 0);
      return [visible(server), silent < 0 ? "never" : `${milliseconds(silent * 1000)} ago`, silent < 0 ? "–" : missing > 0 ? counted(missing, "group") : "none"];
    });
    this.replication.more.replaceChildren(...(others.length > 0 ? [grid("Other servers", ["Server", "Last message", "Groups it lacks"], others)] : []));
  }

  /** How many servers have each shard, and what this one has. */
  private spread(text: string, holders: Map<string, number>): void {
    this.shards.element.hidden = holders.size === 0;
    if (holders.size === 0) return;
    const by = (name: string) => samplesBy(text, `jindou_shard_${name}`, "shard");
    const [bases, sizes, sent, hedged, over] = [by("bases"), by("bytes"), by("requests_total"), by("requests_hedged_total"), by("requests_failed_over_total")];
    const of = (all: Map<string, number>, shard: string) => all.get(shard) ?? 0;
    const held = samples(text, "jindou_shard_holder");
    const line = ([shard, servers]: [string, number]) => {
      const names = held.filter((sample) => sample.get("shard") === shard).map((sample) => visible(sample.get("server") ?? ""));
      return [shard, names.sort().join(", ") || counted(servers, "server"), of(bases, shard) > 0 ? bytes(of(sizes, shard)) : "not here", count(of(sent, shard)), count(of(hedged, shard)), count(of(over, shard))];
    };
    const all = [...holders].sort(([a], [b]) => Number(a) - Number(b)).slice(0, MOST_SHARDS);
    const few = new Set(all.filter(([, servers]) => servers < 2).map(([shard]) => shard));
    this.shards.more.replaceChildren(grid("Shards and their servers", ["Shard", "Servers in contact that have it", "On this server", "Requests to others", "Sent to a second", "Failed over"], all.map(line), few));
  }

  private work(all: Job[]): void {
    // Someone who reads there is not thrown out.
    if (!this.jobs.contains(document.activeElement)) this.jobs.replaceChildren(...jobsView(all));
  }

  private async mergeNow(): Promise<void> {
    this.said.textContent = "Merging…";
    try {
      await send("admin/merge", { method: "POST" });
      this.said.textContent = "Merged.";
    } catch (error) {
      this.said.textContent = messageOf(error);
    }
    void this.look();
  }
}

const whole = (value: number) => bytes(Math.round(value));
const rate = (value: number) => (value === 0 ? "0" : value < 10 ? value.toFixed(1) : count(Math.round(value)));

/** Why the server is not ready; `undefined` if it is, or does not say. */
async function reason(): Promise<string | undefined> {
  try {
    const response = await fetch("ready", dressed({ headers: { Accept: "text/plain" }, cache: "no-store" }, token()));
    return response.ok ? undefined : (await response.text()).trim().slice(0, 300);
  } catch {
    return undefined;
  }
}
