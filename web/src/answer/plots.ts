// Draws charts: bars as rows of a table, so that captions wrap; lines and points as SVG.

import { h, svg } from "../dom.ts";
import { number } from "../format.ts";
import { widthOf } from "./captions.ts";
import { ticks } from "./ticks.ts";

/** One or two columns of numbers over the same captions or numbers. */
export interface Data {
  title: string;
  /** Names of the columns. */
  names: string[];
  values: Float64Array[];
  /** Text for each value. */
  texts: string[][];
  /** Horizontal positions: numbers of the data, or 1, 2, 3 … */
  across: Float64Array;
  /** Text for each horizontal position. */
  captions: string[];
  /** The axis has the captions, and no numbers. */
  captioned: boolean;
}

const LEFT = 70;
const TOP = 15;
const BOTTOM = 34;
/** Size of letters, as in page.css, and turn of captions in degrees. */
const TEXT = 12;
const TURN = 50;

/** The colour of each column, with what `to` says about its scale. */
function legend(data: Data, to: (i: number) => string): HTMLElement {
  return h("p", { class: "series" }, ...data.names.map((name, i) => h("span", { class: "legend-item" }, h("span", { class: "key", attrs: { "data-colour": i } }), h("bdi", {}, name), ` ${to(i)}`)));
}

/** The least and the greatest finite value; with `zero`, the range includes 0. */
function range(values: Float64Array, zero: boolean): [number, number] {
  let [low, high] = zero ? [0, 0] : [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low <= high ? [low, high] : [0, 1];
}

/** Bars, one below the other. */
export function bars(data: Data): HTMLElement {
  const ranges = data.values.map((values) => range(values, true));
  const piece = (value: number, i: number) => {
    const [low, high] = ranges[i] ?? [0, 1];
    const size = high - low || 1;
    const at = Math.max(low, Math.min(high, Number.isNaN(value) ? 0 : value));
    const made = h("span", { class: "plot-bar", attrs: { "data-colour": i } });
    made.style.marginInlineStart = `${((Math.min(0, at) - low) / size) * 100}%`;
    made.style.width = `${(Math.abs(at) / size) * 100}%`;
    return made;
  };
  const rows = data.captions.map((caption, at) => h(
    "tr", {}, h("th", { attrs: { scope: "row" } }, h("bdi", { attrs: { dir: "auto" } }, caption)),
    h("td", { class: "bars", attrs: { "aria-hidden": true } }, ...data.values.map((values, i) => piece(values[at] ?? NaN, i))),
    ...data.texts.map((texts) => h("td", { class: "n" }, texts[at] ?? "")),
  ));
  const head = h("tr", {}, h("td"), h("td"), ...data.names.map((name) => h("th", { class: "n", attrs: { scope: "col" } }, name)));
  return h(
    "div", {}, data.names.length > 1 ? legend(data, (i) => `(to ${number(ranges[i]?.[1] ?? 0)})`) : null,
    h("div", { class: "wide", attrs: { tabindex: 0, role: "region", "aria-label": data.title } }, h("table", { class: "plot-bars" }, h("thead", {}, head), h("tbody", {}, ...rows))),
  );
}

/** Draws a vertical axis. Returns a function from values to y coordinates. */
function upright(to: SVGSVGElement, values: Float64Array, side: "start" | "end", width: number, height: number): (value: number) => number {
  const marks = ticks(...range(values, false), 6);
  const [low, high] = [marks[0] ?? 0, marks.at(-1) ?? 1];
  const at = (value: number) => height - BOTTOM - ((value - low) / (high - low || 1)) * (height - BOTTOM - TOP);
  for (const value of marks) {
    if (side === "start") to.append(svg("line", { class: "rule", x1: LEFT, x2: width - LEFT, y1: at(value), y2: at(value) }));
    to.append(svg("text", { x: side === "start" ? LEFT - 8 : width - LEFT + 8, y: at(value) + 4, "text-anchor": side === "start" ? "end" : "start" }, number(value)));
  }
  return at;
}

export function picture(data: Data, kind: "lines" | "points", width: number, height: number): HTMLElement {
  const plot = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": data.title, class: "plot" }, svg("title", {}, data.title));
  const marks = ticks(...range(data.across, false), Math.max(2, Math.round(width / 110)));
  const [low, high] = data.captioned ? [0, data.captions.length + 1] : [marks[0] ?? 0, marks.at(-1) ?? 1];
  const over = (value: number) => LEFT + ((value - low) / (high - low || 1)) * (width - 2 * LEFT);
  if (data.captioned) turned(plot, data.captions, (i) => over(i + 1), width, height);
  else for (const value of marks) plot.append(svg("text", { x: over(value), y: height - BOTTOM + 20, "text-anchor": "middle" }, number(value)));
  const order = Uint32Array.from(data.across, (_, i) => i);
  if (kind === "lines") order.sort((a, b) => (data.across[a] ?? 0) - (data.across[b] ?? 0));
  data.values.forEach((values, i) => {
    const at = upright(plot, values, i === 0 ? "start" : "end", width, height);
    const group = svg("g", { "data-colour": i, class: kind });
    let path = "";
    let pen = "M";
    for (const row of order) {
      const [x, y] = [data.across[row] ?? NaN, values[row] ?? NaN];
      if (!Number.isFinite(x) || !Number.isFinite(y)) {
        pen = "M";
        continue;
      }
      path += `${pen}${over(x).toFixed(1)} ${at(y).toFixed(1)}`;
      pen = "L";
      if (kind === "points" || order.length <= 300) group.append(svg("circle", { class: "point", cx: over(x), cy: at(y), r: 3 }, svg("title", {}, `${data.captions[row] ?? ""}: ${data.texts[i]?.[row] ?? ""}`)));
    }
    if (kind === "lines") group.prepend(svg("path", { d: path }));
    plot.append(group);
  });
  return h("div", {}, data.names.length > 1 ? legend(data, (i) => (i === 0 ? "(left)" : "(right)")) : null, plot);
}

/** Captions below the picture, turned; the picture gets the room that the longest needs. */
function turned(plot: SVGSVGElement, captions: string[], over: (i: number) => number, width: number, height: number): void {
  if (over(1) - over(0) < TEXT) return;
  let [left, bottom] = [0, height];
  captions.forEach((caption, i) => {
    const [x, y] = [over(i), height - BOTTOM + TEXT];
    const text = svg("text", { x, y, "text-anchor": "end", transform: `rotate(-${TURN} ${x} ${y})` });
    text.textContent = caption;
    plot.append(text);
    const length = widthOf(caption, TEXT);
    left = Math.min(left, x - length * Math.cos((TURN * Math.PI) / 180) - TEXT);
    bottom = Math.max(bottom, y + length * Math.sin((TURN * Math.PI) / 180) + TEXT);
  });
  plot.setAttribute("viewBox", `${left} 0 ${width - left} ${bottom}`);
}
