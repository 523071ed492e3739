// The tab Chart of an answer: choice of columns, rows and captions.

import { h } from "../dom.ts";
import { count, grouped } from "../format.ts";
import { isShared, label, labelsOn, LONGEST } from "../labels.ts";
import { numberOf, type Term, visible } from "../rdf/term.ts";
import { nameOf } from "../show.ts";
import type { Answer } from "./answer.ts";
import { bars, type Data, picture } from "./plots.ts";

type Kind = "bars" | "lines" | "points";

/** Bars that are read one by one, captions that fit below a picture, and points that a browser draws at once. */
const MOST_BARS = 40;
const MOST_CAPTIONS = 60;
const MOST_POINTS = 5000;
/** Characters of a caption that may wrap. */
const LONG = 250;

/** Columns in which most values of these rows are numbers. */
function numericColumns(rows: (Term | null)[][], columns: number): number[] {
  return Array.from({ length: columns }, (_, c) => c).filter((c) => {
    const bound = rows.map((row) => row[c] ?? null).filter((t) => t !== null);
    return bound.length > 0 && bound.filter((t) => numberOf(t) !== undefined).length * 2 > bound.length;
  });
}

/** What is not drawn of `rows` rows, in words. */
export function leftOut(kind: Kind, { values, texts, across, names: [name] }: Pick<Data, "values" | "texts" | "across" | "names">, rows: number): string[] {
  const chosen = across.length;
  const isNumber = (n: number | undefined) => Number.isFinite(n);
  const drawn = kind === "bars" ? chosen : across.filter((n, i) => isNumber(n) && values.some((numbers) => isNumber(numbers[i]))).length;
  if (drawn === rows) return [];
  return [kind === "bars"
    ? `The ${count(drawn)} rows with the greatest ${name} of ${count(rows)}; the others have ${drawn < MOST_BARS ? "" : `${texts[0]?.at(-1)} or less, or `}no number.`
    : `${count(drawn)} of ${count(rows)} rows are drawn${chosen < rows ? `, with the least and the greatest ${name} of each stretch` : ""}; rows without a finite number are left out.`];
}

export class Chart {
  readonly element = h("div", { class: "chart" });
  private kind = h("select", { attrs: { "aria-label": "Kind" } }, ...["bars", "lines", "points"].map((kind) => h("option", { attrs: { value: kind } }, kind)));
  private across = h("select", { attrs: { "aria-label": "Horizontal" } });
  private up = h("select", { attrs: { "aria-label": "Vertical" } });
  private second = h("select", { attrs: { "aria-label": "Second column" } });
  private place = h("div", { class: "picture" });
  private numeric: number[] = [];
  private round = 0;
  private width = 0;

  constructor(private answer: Answer) {
    new ResizeObserver(() => {
      const width = this.place.clientWidth;
      if (this.width > 0 && width > 0 && Math.abs(width - this.width) > 40) void this.draw();
    }).observe(this.place);
  }

  async show(): Promise<void> {
    const { columns } = this.answer;
    const numeric = numericColumns(await this.answer.sample(), columns.length);
    if (numeric.length === 0) {
      this.element.replaceChildren(h("p", {}, "No column of this answer has numbers, so there is nothing to draw."));
      return;
    }
    this.numeric = numeric;
    const option = (c: number) => h("option", { attrs: { value: c } }, columns[c] ?? "");
    this.up.replaceChildren(...numeric.map(option));
    this.second.replaceChildren(h("option", { attrs: { value: -1 } }, "none"), ...numeric.map(option));
    this.across.replaceChildren(h("option", { attrs: { value: -1 } }, "row number"), ...columns.map((_, c) => option(c)));
    this.up.value = String(numeric[0]);
    // By default, a number by the first column that is none; without one, the second number over the first.
    const names = columns.map((_, c) => c).filter((c) => !numeric.includes(c));
    this.across.value = String(names[0] ?? (numeric.length > 1 ? numeric[0] : -1));
    if (names.length === 0 && numeric.length > 1) this.up.value = String(numeric[1]);
    this.kind.value = names.length > 0 ? "bars" : "points";
    for (const choice of [this.kind, this.across, this.up, this.second]) choice.onchange = () => void this.draw();
    const field = (name: string, choice: HTMLSelectElement) => h("label", {}, `${name} `, choice);
    this.element.replaceChildren(h("p", { class: "tools" }, field("Draw", this.kind), field("of", this.up), field("and", this.second), field("by", this.across)), this.place);
    await this.draw();
  }

  private async draw(): Promise<void> {
    const round = ++this.round;
    const kind = this.kind.value as Kind;
    const [x, y, z] = [Number(this.across.value), Number(this.up.value), Number(this.second.value)];
    const ups = z >= 0 && z !== y ? [y, z] : [y];
    const named = kind === "bars" || (x >= 0 && !this.numeric.includes(x));
    const most = kind === "bars" ? MOST_BARS : MOST_POINTS;
    const series = await this.answer.series({ columns: named ? ups : x >= 0 ? [...ups, x] : ups, by: y, labels: named && x >= 0 ? x : null, choose: kind === "bars" ? "greatest" : "extremes", most });
    const captions = named && x >= 0 ? await Promise.all(series.labels.map((term) => captionOf(term, kind === "bars" ? LONG : LONGEST))) : x >= 0 ? (series.texts[ups.length] ?? []).map(grouped) : Array.from(series.at, (at) => count(at + 1));
    if (round !== this.round) return;
    const { columns } = this.answer;
    const values = ups.map((_, i) => series.values[i] ?? new Float64Array());
    const rows = Float64Array.from(series.at, (at) => at + 1);
    const captioned = named && x >= 0 && captions.length <= MOST_CAPTIONS;
    const data: Data = {
      title: `${ups.map((c) => columns[c] ?? "").join(" and ")} by ${x >= 0 ? (columns[x] ?? "") : "row"}`, names: ups.map((c) => columns[c] ?? ""), values, captions, captioned,
      texts: values.map((numbers, i) => Array.from(numbers, (n, at) => (Number.isNaN(n) ? "–" : grouped(series.texts[i]?.[at] ?? "")))),
      across: captioned ? rows.map((_, i) => i + 1) : named || x < 0 ? rows : (series.values[ups.length] ?? rows),
    };
    this.width = this.place.clientWidth;
    const said = leftOut(kind, data, series.rows);
    if (named && x >= 0 && !captioned && kind !== "bars") said.push("There are too many captions for the axis, so it counts rows.");
    this.place.replaceChildren(kind === "bars" ? bars(data) : picture(data, kind, Math.max(320, this.width), heightFor()), h("p", { class: "soft" }, said.join(" ")));
  }
}

/** Height of a picture in pixels: most of the window. */
function heightFor(): number {
  return Math.max(260, Math.min(innerHeight - 260, 900));
}

async function captionOf(term: Term | null, most: number): Promise<string> {
  if (!term) return "";
  const cut = (text: string) => (text.length > most ? `${text.slice(0, most)}…` : text);
  if (term.type !== "iri") return visible(cut(term.value.replace(/\s+/g, " ")));
  const found = labelsOn() ? await label(term.value) : null;
  if (!found) return cut(nameOf(term.value));
  return `${visible(cut(found.text))}${isShared(found) ? ` (${nameOf(term.value)})` : ""}`;
}
