// An answer on the screen: as a table, a drawing, a chart, a map, and the plan it was made by.

import type { Answer } from "../answer/answer.ts";
import { Chart } from "../answer/chart.ts";
import { GeoMap, MOST_POINTS } from "../answer/map.ts";
import { type Where, whereIn } from "../answer/places.ts";
import { Table } from "../answer/table.ts";
import { button, h } from "../dom.ts";
import { bytes, count, counted, milliseconds } from "../format.ts";
import { type Plan, planOf } from "../graph/from-rows.ts";
import { Graph } from "../graph/graph.ts";
import { drawAnswer } from "../graph/load.ts";
import type { Form } from "../query-form.ts";
import { prefixes } from "../show.ts";

/** Milliseconds after the last key that a filter waits for. */
const PAUSE = 150;

export type Tab = "table" | "graph" | "chart" | "map" | "plan";

const NAMES: Record<Tab, string> = { table: "Table", graph: "Graph", chart: "Chart", map: "Map", plan: "Plan" };

interface Options {
  form: Form;
  tab: Tab;
  /** The element of the tab Plan, which the caller fills. */
  plan: () => HTMLElement;
  /** A tab was chosen. */
  chosen: (tab: Tab) => void;
  /** The state of the answer in words has changed. */
  say: () => void;
}

export class AnswerView {
  readonly element = h("div", { class: "answer" });
  readonly table: Table;
  tab: Tab;
  /** The caller places the tabs and the filter, in the line above the answer. */
  readonly tabs = h("div", { class: "tabs", attrs: { role: "tablist", "aria-label": "Answer" } });
  private panel = h("div", { id: "answer", attrs: { role: "tabpanel" } });
  readonly filter = h("input", { attrs: { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows" } });
  private graph: Graph | undefined;
  /** Columns with coordinates; `undefined` if there are none, and until the answer is complete. */
  private where: Where | undefined;
  /** How rows are drawn as a graph; `undefined` if no column has resources, and until the answer is complete. */
  private nodes: Plan | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private answer: Answer, private options: Options) {
    this.tab = options.tab;
    this.table = new Table(answer);
    this.filter.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.filtered(), PAUSE);
    });
    this.element.append(this.panel);
    this.show();
  }

  get isGraph(): boolean {
    return this.options.form === "construct" || this.options.form === "describe";
  }

  update(): void {
    if (this.tab === "table") this.table.update();
  }

  /** Offers the tabs that depend on the rows; to be called once the answer is complete. */
  async finish(): Promise<void> {
    if (this.tab === "graph") void this.picture();
    if (this.isGraph) return;
    const { columns, query } = this.answer;
    const rows = await this.answer.sample();
    this.where = whereIn(columns, rows, query);
    this.nodes = planOf(query, columns, rows, prefixes);
    if (!this.where && !this.nodes) return;
    this.drawTabs();
    const wanted = this.options.tab;
    if ((wanted === "map" || wanted === "graph") && this.tab === "table" && this.offered.includes(wanted)) this.choose(wanted);
  }

  stop(): void {
    this.graph?.stop();
  }

  private get offered(): Tab[] {
    return ["table", ...(this.isGraph || this.nodes ? ["graph" as const] : []), ...(this.isGraph ? [] : ["chart" as const]), ...(this.where ? ["map" as const] : []), "plan"];
  }

  private show(): void {
    if (!this.offered.includes(this.tab)) this.tab = "table";
    this.drawTabs();
    this.filter.hidden = this.tab !== "table";
    this.panel.setAttribute("aria-labelledby", `tab-${this.tab}`);
    this.panel.replaceChildren();
    this.fill(this.panel);
  }

  private drawTabs(): void {
    const names = this.offered;
    const made = names.map((tab) => {
      const isChosen = tab === this.tab;
      const one = button(NAMES[tab], () => this.choose(tab), { id: `tab-${tab}`, attrs: { role: "tab", "aria-selected": String(isChosen), "aria-controls": "answer", tabindex: isChosen ? 0 : -1 } });
      one.addEventListener("keydown", (event) => {
        if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
        const next = names[(names.indexOf(this.tab) + (event.key === "ArrowRight" ? 1 : names.length - 1)) % names.length];
        if (next) this.choose(next);
        this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
      });
      return one;
    });
    this.tabs.replaceChildren(...made);
  }

  choose(tab: Tab): void {
    this.graph?.stop();
    this.tab = tab;
    this.show();
    this.options.chosen(tab);
  }

  private fill(panel: HTMLElement): void {
    const { answer } = this;
    if (this.tab === "table") {
      panel.append(this.table.element);
      this.table.update();
    } else if (this.tab === "chart") {
      const chart = new Chart(answer);
      panel.append(chart.element);
      void chart.show();
    } else if (this.tab === "map") void this.map(panel);
    else if (this.tab === "graph") void this.picture();
    else panel.append(this.options.plan());
  }

  private async map(panel: HTMLElement): Promise<void> {
    const { answer } = this;
    const rows = await answer.firstRows(MOST_POINTS);
    if (!this.where || this.tab !== "map") return;
    const map = new GeoMap((row) => {
      this.choose("table");
      this.table.goTo(row);
    });
    panel.replaceChildren(map.element);
    map.show(rows, this.where, answer.shown);
  }

  private async picture(): Promise<void> {
    this.graph?.stop();
    const graph = new Graph({ expands: true });
    this.graph = graph;
    this.panel.replaceChildren(graph.element);
    await drawAnswer(this.answer, graph, this.nodes, () => this.graph === graph && this.tab === "graph");
  }

  private filtered(): void {
    const { answer } = this;
    const text = this.filter.value.trim();
    // The filter compares with whole IRIs, so a short name is expanded.
    const full = text.includes(":") ? prefixes.full(text) : undefined;
    answer.arrange(answer.order, text === "" ? [] : full === undefined ? [text] : [text, full]);
  }
}

/** An answer's state in words. */
export function told({ progress, ending, shown, texts, arranging }: Answer, isGraph: boolean): string {
  if (arranging) return `Looking through ${counted(progress.rows, "row")}…`;
  const { rows, elapsed, first, received } = progress;
  const parts = [counted(rows, isGraph ? "triple" : "row")];
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
