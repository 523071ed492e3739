// How a query is answered: a tree of its steps with what each took, next to what the planner had expected.

import { h } from "../dom.ts";
import { bytes, count, milliseconds } from "../format.ts";
import { dressed, token } from "../net/http.ts";
import { bar } from "../pieces.ts";
import { declared } from "../rdf/prefixes.ts";
import { RDF_TYPE } from "../rdf/term.ts";
import { prefixes } from "../show.ts";
import { data } from "../state.ts";
import { expected, type Line, lines, off, renamer, slowest, type Step } from "./estimate.ts";
import { flow } from "./flow.ts";

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
/** Lines of a table that a browser draws without a pause. */
const MOST = 250;

export class PlanView {
  private rows = h("tbody");
  private text = h("pre", { attrs: { tabindex: 0 } });
  private title = h("h2", {}, "Plan");
  private note = h("p", { class: "soft" });
  /** What the bars' lengths mean. */
  private rowScale = h("div", { class: "scale" });
  private timeScale = h("div", { class: "scale" });
  private picture = h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": "Flow" } });
  private diagram = h("details", { class: "plan-flow" }, h("summary", {}, "Flow"), this.picture);
  private name: (text: string) => string;
  readonly element: HTMLElement;

  /** `query`: the text that the plan is of. */
  constructor(query: string) {
    this.name = namer(query);
    const head = (text: string, kind = "", more?: HTMLElement) => h("th", { class: kind, attrs: { scope: "col" } }, text, more);
    const heads = [head("Step"), head("Rows", "n", this.rowScale), head("Time", "n", this.timeScale), head("Expected rows", "n"), head("Read", "n"), head("Held", "n"), head("Where")];
    this.diagram.open = matchMedia("(min-width: 100rem)").matches;
    this.diagram.hidden = true;
    this.element = h(
      "div", { class: "plan" },
      this.title, this.note,
      h(
        "div", { class: "plan-body" },
        h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": "Steps" } }, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), this.rows)), this.diagram,
      ),
      h("details", { class: "plan-text" }, h("summary", {}, "The planner's own words"), this.text),
    );
  }

  /** Shows the plan alone, what has happened so far, or all. */
  show({ tree, text }: Pick<Steps, "text"> & { tree?: Step | null }, state: "expected" | "running" | "done"): void {
    const all = lines(text, tree);
    // A node above steps has their time in it, so the longest bar is the longest single time.
    const longest = Math.max(1e-9, ...all.map(({ own }) => own ?? 0));
    const most = Math.max(1, ...all.map(({ measured, expected }) => Math.max(measured?.rows_out ?? 0, expected ?? 0)));
    const slow = slowest(all);
    this.title.textContent = state === "done" ? "Profile" : state === "running" && tree ? "Profile (running)" : "Plan";
    this.say(all, Boolean(tree), state === "done");
    this.rowScale.textContent = `log scale to ${count(Math.round(most))}`;
    this.timeScale.textContent = tree && longest > 1e-6 ? `to ${milliseconds(longest)}` : "";
    this.rows.replaceChildren(...all.slice(0, MOST).map((line) => row(line, most, longest, state === "done", this.name, line === slow?.line ? slow.part : undefined)));
    const picture = flow(all, slow?.line, this.name);
    this.diagram.hidden = picture === undefined;
    this.picture.replaceChildren(...(picture ? [picture] : []));
    const words = expected(text).join("\n");
    // Replacing the same text would lose what someone marked in it.
    if (this.text.textContent !== words) this.text.textContent = words;
  }

  private say(all: Line[], measured: boolean, done: boolean): void {
    const far = done ? all.filter((line) => isFar(off(line))).length : 0;
    const said = measured
      ? ["Times are summed over threads, and each is that of its line alone.", far > 0 ? `${far === 1 ? "One estimate was" : `${count(far)} estimates were`} off by ten times or more: marked.` : ""]
      : ["What the planner expects; nothing is measured yet."];
    if (all.length > MOST) said.push(`The first ${count(MOST)} of ${count(all.length)} steps; the planner's own words have all.`);
    this.note.textContent = said.filter(Boolean).join(" ");
  }
}

/** Puts short names into a plan's lines: for IRIs that the query names, or that are among the data's own. */
function namer(query: string): (text: string) => string {
  const own = new Set<string>();
  const space = new Map(declared(query));
  for (const [name, prefix = "", local = ""] of query.slice(0, 100_000).matchAll(/([A-Za-z][\w.-]*|):([\w][\w.-]*)/g)) {
    const iri = space.has(prefix) ? `${space.get(prefix)}${local}` : prefixes.full(name);
    if (iri !== undefined) own.add(iri.replace(/\.$/, ""));
  }
  for (const [, iri = ""] of query.slice(0, 100_000).matchAll(/<([^<>\s"{}|^`\\]+)>/g)) own.add(iri);
  if (/\sa\s/.test(query)) own.add(RDF_TYPE);
  const shown = (iri: string) => prefixes.shown(iri);
  let rename = renamer([own], shown);
  void data().then((about) => about && (rename = renamer([own, [...about.predicates, ...about.classList].map(({ iri }) => iri)], shown)));
  return (text) => rename(text);
}

function isFar(factor: number | undefined): boolean {
  return factor !== undefined && (factor >= FAR || factor <= 1 / FAR);
}

function row(line: Line, most: number, longest: number, done: boolean, say: (text: string) => string, slow: number | undefined): HTMLElement {
  const { depth, number, name, notes, expected: wanted, measured, own } = line;
  const title = h("div", { class: "step-name" }, number === undefined ? null : h("span", { class: "step-number" }, `${number}.`), ` ${say(name)}`, slow === undefined ? null : h("span", { class: "badge slowest" }, `slowest: ${Math.round(slow * 100)} % of the time`));
  const step = h("td", { class: "step" }, title, ...notes.map((note) => h("div", { class: "step-note" }, say(note))));
  step.style.setProperty("--depth", String(depth));
  const cell = (value: number | null | undefined, how: (n: number) => string, ...more: (Node | null)[]) => h("td", { class: "n" }, value === null || value === undefined ? "" : how(value), ...more);
  const factor = off(line);
  const wrong = done && isFar(factor) && factor !== undefined;
  const said = wrong ? h("div", { class: "off" }, factor > 1 ? `${times(factor)} more than expected` : `${times(1 / factor)} fewer than expected`) : null;
  return h(
    "tr", { class: `${wrong ? "far" : ""}${slow === undefined ? "" : " slow"}` }, step,
    cell(measured?.rows_out, count, bars(measured?.rows_out ?? 0, wanted, most), said),
    cell(own, milliseconds, own === undefined ? null : bar(own / longest)),
    cell(wanted, (n) => (n < 0.5 ? "<1" : `~${count(Math.round(n))}`)),
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
  return h("div", { attrs: { "aria-hidden": true } }, bar(part(rows)), wanted === undefined ? null : thin);
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
