// How a query was answered: what each step took, and what the planner had expected.

import { h } from "../dom.ts";
import { bytes, count, milliseconds } from "../format.ts";
import { dressed, token } from "../net/http.ts";

export interface Step {
  name: string;
  rows_in: number | null;
  rows_out: number | null;
  ms: number | null;
  bytes: number | null;
  bytes_held: number | null;
  place: string;
  inputs: Step[];
}

/** The steps of a query, and its plan in lines. */
export interface Steps {
  rows: number;
  text: string[];
  tree: Step;
}

export interface Profile extends Steps {
  plan_ms: number;
  run_ms: number;
  plan_cached: boolean;
}

/** The plan's own lines: what stands before the table of measured steps. */
export function expected(text: string[]): string[] {
  const end = text.findIndex((line) => line.trim() === "");
  return end < 0 ? text : text.slice(0, end);
}

/** All steps, each before its inputs. */
export function flat(step: Step, depth = 0): { step: Step; depth: number }[] {
  return [{ step, depth }, ...step.inputs.flatMap((input) => flat(input, depth + 1))];
}

/** A plan's steps as a table, which is filled while the query runs. */
export class PlanView {
  private rows = h("tbody");
  private lines = h("pre", { attrs: { tabindex: 0 } });
  private title = h("h2", {}, "Profile");
  readonly element: HTMLElement;

  constructor() {
    const heads = ["Step", "Rows in", "Rows out", "", "Time", "", "Read", "Held", "Where"].map((text) => h("th", text === "" ? { attrs: { "aria-hidden": true } } : { attrs: { scope: "col" } }, text));
    this.element = h(
      "div", { class: "plan" },
      h("div", {}, this.title, h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": "Steps" } }, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), this.rows)), h("p", { class: "soft" }, "Times are summed over threads.")),
      h("div", {}, h("h2", {}, "Estimate"), this.lines),
    );
  }

  /** Shows what has happened so far, or in all. */
  show({ tree, text }: Steps, done: boolean): void {
    const all = flat(tree);
    // A node above steps has their time in it, so the longest bar is the longest single time.
    const longest = Math.max(1e-9, ...all.map(({ step }) => step.ms ?? 0));
    const most = Math.max(1, ...all.map(({ step }) => step.rows_out ?? 0));
    this.title.textContent = done ? "Profile" : "Profile (running)";
    this.rows.replaceChildren(...all.map(({ step, depth }) => line(step, depth, (step.rows_out ?? 0) / most, (step.ms ?? 0) / longest)));
    const lines = expected(text).join("\n");
    // Replacing the same text would lose what someone marked in it.
    if (this.lines.textContent !== lines) this.lines.textContent = lines;
  }
}

function line(step: Step, depth: number, rows: number, time: number): HTMLElement {
  const name = h("td", { class: "step" }, step.name);
  name.style.paddingInlineStart = `${0.5 + depth * 1.1}rem`;
  const cell = (text: string) => h("td", { class: "n" }, text);
  const told = (value: number | null, how: (n: number) => string) => cell(value === null ? "" : how(value));
  return h(
    "tr", {}, name, told(step.rows_in, count), told(step.rows_out, count), bar(rows), told(step.ms, milliseconds), bar(time),
    told(step.bytes, bytes), told(step.bytes_held, bytes), h("td", {}, step.place),
  );
}

function bar(part: number): HTMLElement {
  const made = h("span", { class: "bar" });
  made.style.width = `${(part * 100).toFixed(1)}%`;
  return h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, made);
}

/** Milliseconds between two looks at a query that runs. */
const PACE = 250;

/** Looks at the query with this tag until `signal` says that it is over. No one is asked for a token here. */
export async function watch(tag: string, signal: AbortSignal, show: (so_far: Steps) => void): Promise<void> {
  const look = async <T>(path: string): Promise<T | undefined> => {
    try {
      const response = await fetch(path, dressed({ signal }, token()));
      return response.ok ? ((await response.json()) as T) : undefined;
    } catch {
      return undefined;
    }
  };
  let id: number | undefined;
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, PACE));
    if (signal.aborted) return;
    if (document.hidden) continue;
    id ??= (await look<{ queries: { id: number }[] }>(`admin/queries?tag=${encodeURIComponent(tag)}`))?.queries[0]?.id;
    const live = id === undefined ? undefined : await look<{ profile?: Steps }>(`admin/queries/${id}`);
    if (live?.profile && !signal.aborted) show(live.profile);
  }
}
