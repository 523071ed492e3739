// A query that runs and whose first row has not come: how long, how far, and by which plan.

import { h } from "../dom.ts";
import { bytes, counted, milliseconds } from "../format.ts";
import { inGraphs } from "../graphs.ts";
import { dressed, query, token } from "../net/http.ts";
import { type Live, PlanView, type Steps, watch } from "./plan.ts";

/** Milliseconds after which a query is worth a look. */
const SHORT = 500;

/** Follows one run: the words for the status, and the plan. */
export class Running {
  readonly plan: PlanView;
  /** What is shown in the answer's place until there is an answer. */
  readonly element = h("div", { class: "running" });
  private note = h("p", { class: "soft" });
  private live: Live | undefined;
  private over = new AbortController();
  private ticker: ReturnType<typeof setInterval>;
  private started = performance.now();
  /** The plan's lines, as soon as they are known. */
  private text: string[] | undefined;

  /** `say` takes the state in words several times a second. */
  constructor(private request: { text: string; tag: string }, private say: (text: string) => void, private rows: () => number) {
    this.plan = new PlanView(request.text);
    this.ticker = setInterval(() => this.tick(), 100);
    setTimeout(() => void this.look(), SHORT);
  }

  private tick(): void {
    const rows = Math.max(this.rows(), this.live?.rows ?? 0);
    const state = this.live?.state === "queued" || this.live?.state === "waiting" ? "Waiting for a slot" : "Running";
    this.say(`${state} · ${milliseconds(performance.now() - this.started)} · ${counted(rows, "row")} so far${this.live && this.live.memory > 0 ? ` · ${bytes(this.live.memory)} of memory` : ""}`);
  }

  private async look(): Promise<void> {
    const { signal } = this.over;
    if (signal.aborted) return;
    void watch(this.request.tag, signal, (live) => {
      this.live = live;
      if (live.profile) this.show(live.profile, "running");
    });
    try {
      const response = await fetch(inGraphs("query?explain=true"), dressed(query(this.request.text, "application/json", signal), token()));
      if (!response.ok || signal.aborted) return;
      this.text = ((await response.json()) as { text: string[] }).text;
      if (!this.live?.profile) this.show({ text: this.text }, "expected");
    } catch {
      // The plan is an ornament of an answer that is on its way.
    }
  }

  private show(steps: Pick<Steps, "text"> & { tree?: Steps["tree"] }, state: "expected" | "running"): void {
    if (this.over.signal.aborted) return;
    const about = /about ([^()]*?)(?: on |$)/.exec(steps.text[0] ?? "")?.[1];
    this.note.textContent = about ? `The planner expects about ${about.trim()} of work.` : "";
    if (!this.element.contains(this.plan.element)) this.element.replaceChildren(this.note, this.plan.element);
    this.plan.show(steps, state);
  }

  /** The run is over. */
  stop(): void {
    this.over.abort();
    clearInterval(this.ticker);
  }
}
