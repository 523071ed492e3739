// Numbers of an answer as bars or points.

import { h, svg } from "../dom.ts";
import { count } from "../format.ts";
import { isShared, label, labelsOn, LONGEST } from "../labels.ts";
import { numberOf, type Term, visible } from "../rdf/term.ts";
import { nameOf } from "../show.ts";
import type { Answer } from "./answer.ts";
import { widthOf } from "./captions.ts";
import { ticks } from "./ticks.ts";

const WIDTH = 900;
const HEIGHT = 420;
const LEFT = 70;
const BOTTOM = 60;
/** Size of letters, as in page.css, and turn of captions in degrees. */
const TEXT = 12;
const TURN = 50;
/** Bars that can be told apart, and points that a browser draws at once. */
const MOST_BARS = 60;
const MOST_POINTS = 5000;

/** Columns whose first values are numbers. */
export function numericColumns(first: (Term | null)[][], columns: number): number[] {
  return Array.from({ length: columns }, (_, c) => c).filter((c) => {
    const bound = first.map((row) => row[c] ?? null).filter((t) => t !== null);
    return bound.length > 0 && bound.filter((t) => numberOf(t) !== undefined).length * 2 > bound.length;
  });
}

export class Chart {
  readonly element = h("div", { class: "chart" });
  private across = h("select", { attrs: { "aria-label": "Horizontal" } });
  private up = h("select", { attrs: { "aria-label": "Vertical" } });
  private picture = h("div", { class: "picture" });

  constructor(private answer: Answer) {}

  async show(): Promise<void> {
    const { columns } = this.answer;
    const numeric = numericColumns(await this.answer.firstRows(200), columns.length);
    if (numeric.length === 0) {
      this.element.replaceChildren(h("p", {}, "No column of this answer has numbers, so there is nothing to draw."));
      return;
    }
    const option = (c: number) => h("option", { attrs: { value: c } }, columns[c] ?? "");
    this.up.replaceChildren(...numeric.map(option));
    this.across.replaceChildren(h("option", { attrs: { value: -1 } }, "row number"), ...columns.map((_, c) => option(c)));
    this.up.value = String(numeric[0]);
    // A name alongside its number, or one number over another.
    const names = columns.map((_, c) => c).filter((c) => !numeric.includes(c));
    this.across.value = String(names[0] ?? (numeric.length > 1 ? numeric[0] : -1));
    if (names.length === 0 && numeric.length > 1) this.up.value = String(numeric[1]);
    this.across.onchange = this.up.onchange = () => void this.draw(numeric);
    this.element.replaceChildren(h("p", {}, h("label", {}, "Horizontal ", this.across), " ", h("label", {}, "Vertical ", this.up)), this.picture);
    await this.draw(numeric);
  }

  private async draw(numeric: number[]): Promise<void> {
    const [x, y] = [Number(this.across.value), Number(this.up.value)];
    const named = x >= 0 && !numeric.includes(x);
    const columns = x >= 0 && !named ? [x, y] : [y];
    const series = await this.answer.series(columns, named ? x : null, named ? MOST_BARS : MOST_POINTS);
    const ys = series.values.at(-1) ?? new Float64Array();
    const xs = columns.length === 2 ? (series.values[0] ?? ys) : Float64Array.from(ys, (_, i) => i + 1);
    const title = `${this.answer.columns[y] ?? ""} ${x >= 0 ? `by ${this.answer.columns[x] ?? ""}` : "by row"}`;
    const chosen = named ? "those with the greatest values" : "with the least and the greatest value of each stretch";
    const left = series.rows > ys.length ? `${count(ys.length)} of ${count(series.rows)} rows are drawn, ${chosen}.` : "";
    const names = await Promise.all(series.labels.map(captionOf));
    this.picture.replaceChildren(named ? bars(ys, names, title) : points(xs, ys, title), h("p", {}, left));
  }
}

function frame(title: string): SVGSVGElement {
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title, class: "plot" }, svg("title", {}, title));
}

/** Lines and numbers of the vertical axis; gives the height of a value. */
function upright(to: SVGSVGElement, values: number[], zero: boolean): (value: number) => number {
  const finite = values.filter(Number.isFinite);
  const marks = ticks(Math.min(...finite, ...(zero ? [0] : [])), Math.max(...finite, ...(zero ? [0] : [])), 6);
  const [low, high] = [marks[0] ?? 0, marks.at(-1) ?? 1];
  const at = (value: number) => HEIGHT - BOTTOM - ((value - low) / (high - low || 1)) * (HEIGHT - BOTTOM - 15);
  for (const value of marks) {
    to.append(
      svg("line", { class: "rule", x1: LEFT, x2: WIDTH - 10, y1: at(value), y2: at(value) }),
      svg("text", { x: LEFT - 8, y: at(value) + 4, "text-anchor": "end" }, number(value)),
    );
  }
  return at;
}

function number(value: number): string {
  return Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(1) : Number(value.toPrecision(6)).toLocaleString("en");
}

/** What stands below a bar: as many characters as of a label elsewhere. */
async function captionOf(term: Term | null): Promise<string> {
  if (!term) return "";
  if (term.type !== "iri") return visible(term.value.replace(/\s+/g, " ").slice(0, LONGEST));
  const found = labelsOn() ? await label(term.value) : null;
  if (!found) return nameOf(term.value);
  return `${visible(found.text.slice(0, LONGEST))}${isShared(found) ? ` (${nameOf(term.value)})` : ""}`;
}

function bars(values: Float64Array, names: string[], title: string): SVGSVGElement {
  const plot = frame(title);
  const at = upright(plot, [...values], true);
  const step = (WIDTH - LEFT - 10) / Math.max(1, values.length);
  let [left, bottom] = [0, HEIGHT];
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    const x = LEFT + i * step;
    const name = names[i] ?? "";
    const bar = svg("rect", { class: "bar", x: x + step * 0.1, width: step * 0.8, y: Math.min(at(0), at(value)), height: Math.abs(at(value) - at(0)) });
    bar.append(svg("title", {}, `${name}: ${number(value)}`));
    plot.append(bar);
    if (step > 12) {
      const [tx, ty] = [x + step / 2, HEIGHT - BOTTOM + 12];
      const text = svg("text", { x: tx, y: ty, "text-anchor": "end", transform: `rotate(-${TURN} ${tx} ${ty})` });
      text.textContent = name;
      plot.append(text);
      const length = widthOf(name, TEXT);
      left = Math.min(left, tx - length * Math.cos((TURN * Math.PI) / 180) - TEXT);
      bottom = Math.max(bottom, ty + length * Math.sin((TURN * Math.PI) / 180) + TEXT);
    }
  });
  // Room for the longest caption.
  plot.setAttribute("viewBox", `${left} 0 ${WIDTH - left} ${bottom}`);
  return plot;
}

function points(xs: Float64Array, ys: Float64Array, title: string): SVGSVGElement {
  const plot = frame(title);
  const at = upright(plot, [...ys], false);
  const finite = [...xs].filter(Number.isFinite);
  const marks = ticks(Math.min(...finite), Math.max(...finite), 8);
  const [low, high] = [marks[0] ?? 0, marks.at(-1) ?? 1];
  const over = (value: number) => LEFT + ((value - low) / (high - low || 1)) * (WIDTH - LEFT - 20);
  for (const value of marks) plot.append(svg("text", { x: over(value), y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, number(value)));
  ys.forEach((y, i) => {
    const x = xs[i] ?? NaN;
    if (!Number.isFinite(x) || !Number.isFinite(y)) return;
    plot.append(svg("circle", { class: "point", cx: over(x), cy: at(y), r: 3 }, svg("title", {}, `${number(x)}, ${number(y)}`)));
  });
  return plot;
}
