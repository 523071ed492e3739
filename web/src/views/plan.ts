// How a query was answered: what each step took, and what the planner had expected.

import { h } from "../dom.ts";
import { bytes, count, milliseconds } from "../format.ts";

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

export interface Profile {
  plan_ms: number;
  run_ms: number;
  plan_cached: boolean;
  rows: number;
  text: string[];
  tree: Step;
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

export function planView(profile: Profile): HTMLElement {
  const all = flat(profile.tree);
  // A node above steps has their time in it, so the longest bar is the longest single time.
  const longest = Math.max(1e-9, ...all.map(({ step }) => step.ms ?? 0));
  const most = Math.max(1, ...all.map(({ step }) => step.rows_out ?? 0));
  const cell = (text: string) => h("td", { class: "n" }, text);
  const bar = (part: number) => {
    const made = h("span", { class: "bar" });
    made.style.width = `${(part * 100).toFixed(1)}%`;
    return h("td", { class: "bar-cell", attrs: { "aria-hidden": true } }, made);
  };
  const rows = all.map(({ step, depth }) => {
    const name = h("td", { class: "step" }, step.name);
    name.style.paddingInlineStart = `${0.5 + depth * 1.1}rem`;
    return h(
      "tr", {}, name,
      cell(step.rows_in === null ? "" : count(step.rows_in)), cell(step.rows_out === null ? "" : count(step.rows_out)), bar((step.rows_out ?? 0) / most),
      cell(step.ms === null ? "" : milliseconds(step.ms)), bar((step.ms ?? 0) / longest),
      cell(step.bytes === null ? "" : bytes(step.bytes)), cell(step.bytes_held === null ? "" : bytes(step.bytes_held)), h("td", {}, step.place),
    );
  });
  const heads = ["Step", "Rows in", "Rows out", "", "Time", "", "Read", "Held", "Where"].map((text) => h("th", text === "" ? { attrs: { "aria-hidden": true } } : { attrs: { scope: "col" } }, text));
  return h(
    "div", { class: "plan" },
    h("div", {}, h("h2", {}, "What it took"), h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": "Steps" } }, h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows))), h("p", { class: "soft" }, "Times are summed over threads.")),
    h("div", {}, h("h2", {}, "What was expected"), h("pre", { attrs: { tabindex: 0 } }, expected(profile.text).join("\n"))),
  );
}
