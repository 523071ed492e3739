// How a query is answered: a tree of its steps with what each took, next to what the planner had expected.

import { h } from "../dom.ts";
import { bytes, count, milliseconds } from "../format.ts";
import { dressed, token } from "../net/http.ts";
import { bar } from "../pieces.ts";
import { expected, type Line, lines, off, type Step } from "./estimate.ts";

/** The steps of a query, and its plan in lines. */
export interface Steps {
  rows: number;
  text: string[];
  tree: Step | null;
}

export interface Profile extends Steps {
  plan_ms: number;
  run_ms: number;
  plan_cached: boolean;
}

/** From this factor on an estimate is marked. */
const FAR = 10;

export class PlanView {
  private rows = h("tbody");
  private text = h("pre", { attrs: { tabindex: 0 } });
  private title = h("h2", {}, "Plan");
  private note = h("p", { class: "soft" });
  readonly element: HTMLElement;

  constructor() {
    const heads: [string, string][] = [["Step", ""], ["Expected rows", "n"], ["Rows", "n"], ["", ""], ["Time", "n"], ["", ""], ["Read", "n"], ["Held", "n"], ["Where", ""]];
    const head = heads.map(([text, kind]) => (text === "" ? h("td", { attrs: { "aria-hidden": true } }) : h("th", { class: kind, attrs: { scope: "col" } }, text)));
    this.element = h(
      "div", { class: "plan" },
      this.title, this.note,
      h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": "Steps" } }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), this.rows)),
      h("details", { class: "plan-text" }, h("summary", {}, "The planner's own words"), this.text),
    );
  }

  /** Shows the plan alone, what has happened so far, or all. */
  show({ tree, text }: Pick<Steps, "text"> & { tree?: Step | null }, state: "expected" | "running" | "done"): void {
    const all = lines(text, tree);
    // A node above steps has their time in it, so the longest bar is the longest single time.
    const longest = Math.max(1e-9, ...all.map(({ measured }) => measured?.ms ?? 0));
    const most = Math.max(1, ...all.map(({ measured, expected }) => measured?.rows_out ?? expected ?? 0));
    this.title.textContent = state === "done" ? "Profile" : state === "running" && tree ? "Profile (running)" : "Plan";
    const far = state === "done" ? all.filter((line) => isFar(off(line))).length : 0;
    this.note.textContent = tree
      ? `Times are summed over threads.${far > 0 ? ` ${far === 1 ? "One estimate was" : `${far} estimates were`} off by ten times or more: marked.` : ""}`
      : "What the planner expects; nothing is measured yet.";
    this.rows.replaceChildren(...all.map((line) => row(line, most, longest, state === "done")));
    const words = expected(text).join("\n");
    // Replacing the same text would lose what someone marked in it.
    if (this.text.textContent !== words) this.text.textContent = words;
  }
}

function isFar(factor: number | undefined): boolean {
  return factor !== undefined && (factor >= FAR || factor <= 1 / FAR);
}

function row(line: Line, most: number, longest: number, done: boolean): HTMLElement {
  const { depth, number, name, notes, expected: wanted, measured } = line;
  const title = h("div", { class: "step-name" }, number === undefined ? null : h("span", { class: "step-number" }, `${number}.`), ` ${name}`);
  const step = h("td", { class: "step" }, title, ...notes.map((note) => h("div", { class: "step-note" }, note)));
  step.style.setProperty("--depth", String(depth));
  const cell = (value: number | null | undefined, how: (n: number) => string, ...more: Node[]) => h("td", { class: "n" }, value === null || value === undefined ? "" : how(value), ...more);
  const factor = off(line);
  const wrong = done && isFar(factor) && factor !== undefined;
  const said = wrong ? [h("div", { class: "off" }, factor > 1 ? `${times(factor)} more than expected` : `${times(1 / factor)} fewer than expected`)] : [];
  return h(
    "tr", { class: wrong ? "far" : "" }, step,
    cell(wanted, (n) => (n < 0.5 ? "<1" : `~${count(Math.round(n))}`)),
    cell(measured?.rows_out, count, ...said),
    bars(measured?.rows_out ?? 0, wanted, most),
    cell(measured?.ms, milliseconds), h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, bar((measured?.ms ?? 0) / longest)),
    cell(measured?.bytes, bytes), cell(measured?.bytes_held, bytes), h("td", {}, measured?.place ?? ""),
  );
}

function times(factor: number): string {
  return `${count(Number(factor.toPrecision(2)))} times`;
}

/** The rows as a bar, and below it the expected ones as a thin one; lengths grow with the logarithm, so that small ones are seen. */
function bars(rows: number, wanted: number | undefined, most: number): HTMLElement {
  const part = (n: number) => Math.log1p(n) / Math.log1p(most);
  const thin = bar(part(wanted ?? 0));
  thin.classList.add("wanted");
  return h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, bar(part(rows)), wanted === undefined ? null : thin);
}

/** Milliseconds between two looks at a query that runs. */
const PACE = 250;

/** A query as the server's list of running ones has it. */
export interface Live {
  id: number;
  state: string;
  seconds: number;
  rows: number;
  memory: number;
  profile?: Steps;
}

/** Looks at the query with this tag until `signal` says that it is over. No one is asked for a token here. */
export async function watch(tag: string, signal: AbortSignal, show: (live: Live) => void): Promise<void> {
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
    const live = id === undefined ? undefined : await look<Live>(`admin/queries/${id}`);
    if (live && !signal.aborted) show(live);
  }
}

/** A name for a query that no other one has. */
export function newTag(): string {
  return crypto.getRandomValues(new Uint32Array(3)).join("-");
}
