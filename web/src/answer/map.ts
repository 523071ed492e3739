// Rows with coordinates on a map: coastlines and a grid, nothing from elsewhere. Mercator, so directions are those of a compass.

import { button, h, svg } from "../dom.ts";
import { count } from "../format.ts";
import { type Term, visible } from "../rdf/term.ts";
import { nameOf } from "../show.ts";
import { coastlines } from "./coast.ts";
import { type Place, placeOf, type Where } from "./places.ts";

/** The latitude where a square Mercator map ends. */
const POLE = 85.05;
/** Points that a browser moves without a stutter. */
export const MOST_POINTS = 5000;
/** Pixels of the whole world: from a small picture of it to some hundred metres across the map. */
const SCALES = { least: 250, most: 5e7 };
const STEPS = [30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01];

/** A place on the unit square. */
export function project({ latitude, longitude }: Place): { x: number; y: number } {
  const bounded = (Math.max(-POLE, Math.min(POLE, latitude)) * Math.PI) / 180;
  return { x: (longitude + 180) / 360, y: 0.5 - Math.log(Math.tan(Math.PI / 4 + bounded / 2)) / (2 * Math.PI) };
}

/** The place at a point of the unit square. */
export function unproject(x: number, y: number): Place {
  return { latitude: (Math.atan(Math.sinh((0.5 - y) * 2 * Math.PI)) * 180) / Math.PI, longitude: x * 360 - 180 };
}

interface Point {
  row: number;
  x: number;
  y: number;
  name: string;
  dot: SVGPathElement;
}

export class GeoMap {
  readonly element: HTMLElement;
  private world = svg("g", { class: "world" });
  private grid = svg("g", { class: "grid-lines" });
  private plot = svg("svg", { class: "map", tabindex: 0, role: "application", "aria-label": "Map. Arrows move, plus and minus scale, N and P go from point to point, Enter shows a point's row." }, this.world, this.grid);
  private said = h("p", { attrs: { role: "status" } });
  private points: Point[] = [];
  private chosen = -1;
  /** Pixels of the picture. */
  private size = { width: 900, height: 520 };
  /** The middle on the unit square, and pixels of its side. */
  private at = { x: 0.5, y: 0.5, scale: 900 };
  /** Someone moved or scaled the map. */
  private moved = false;

  /** `open` shows a row. */
  constructor(private open: (row: number) => void) {
    this.element = h(
      "div", { class: "graph-box" },
      h("p", { class: "tools" }, button("+", () => this.zoom(1.6), { title: "Larger", attrs: { "aria-label": "Larger" } }), button("−", () => this.zoom(1 / 1.6), { title: "Smaller", attrs: { "aria-label": "Smaller" } }), button("All", () => this.fit(), { title: "All points" }), h("span", {}, "Click a point for its row; drag moves, the wheel scales while the map has the focus.")),
      this.plot as unknown as HTMLElement, this.said,
    );
    this.world.append(svg("path", { class: "coast", d: coastlines().map(line).join("") }));
    this.acts();
    new ResizeObserver(() => this.resized()).observe(this.plot);
  }

  private resized(): void {
    const { clientWidth: width, clientHeight: height } = this.plot;
    if (width === 0 || height === 0) return;
    this.size = { width, height };
    this.plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    if (this.moved) this.look();
    else this.fit();
  }

  /** Draws the rows that say where they are. `total`: rows of the whole answer. */
  show(rows: (Term | null)[][], where: Where, total: number): void {
    const own = "point" in where ? [where.point] : [where.latitude, where.longitude];
    for (const [row, terms] of rows.entries()) {
      const place = placeOf(terms, where);
      if (!place) continue;
      const { x, y } = project(place);
      const label = terms.find((t, c) => t !== null && !own.includes(c));
      const name = label ? (label.type === "iri" ? nameOf(label.value) : label.value.slice(0, 100)) : `row ${count(row + 1)}`;
      // A line of no length with round ends is a dot of the same size at every scale.
      const dot = svg("path", { class: "dot", d: `M${x} ${y}h0`, "data-point": this.points.length }, svg("title", {}, visible(name)));
      this.points.push({ row, x, y, name, dot });
      this.world.append(dot);
    }
    const left = rows.length - this.points.length;
    const parts = [`${count(this.points.length)} points`];
    if (left > 0) parts.push(`${count(left)} rows without a place`);
    if (total > rows.length) parts.push(`the first ${count(rows.length)} of ${count(total)} rows`);
    this.said.textContent = parts.join(", ") + ".";
    this.fit();
  }

  private fit(): void {
    this.moved = false;
    const { width, height } = this.size;
    const [xs, ys] = [this.points.map((p) => p.x), this.points.map((p) => p.y)];
    if (xs.length === 0) return;
    const [left, right, top, bottom] = [least(xs), -least(xs.map((x) => -x)), least(ys), -least(ys.map((y) => -y))];
    const scale = 0.85 * Math.min(width / Math.max(right - left, 1e-9), height / Math.max(bottom - top, 1e-9));
    // One point alone is shown with its surroundings.
    this.at = { x: (left + right) / 2, y: (top + bottom) / 2, scale: bounded(Math.min(scale, 40_000)) };
    this.look();
  }

  private zoom(factor: number, x = this.size.width / 2, y = this.size.height / 2): void {
    const { at, size: { width, height } } = this;
    const scale = bounded(at.scale * factor);
    // What is under the pointer stays there.
    at.x += (x - width / 2) * (1 / at.scale - 1 / scale);
    at.y += (y - height / 2) * (1 / at.scale - 1 / scale);
    this.moved = true;
    at.scale = scale;
    this.look();
  }

  private move(dx: number, dy: number): void {
    this.moved = true;
    this.at.x += dx / this.at.scale;
    this.at.y += dy / this.at.scale;
    this.look();
  }

  private look(): void {
    const { at, size: { width, height } } = this;
    at.x = Math.min(1, Math.max(0, at.x));
    at.y = Math.min(1, Math.max(0, at.y));
    this.world.setAttribute("transform", `matrix(${at.scale} 0 0 ${at.scale} ${width / 2 - at.x * at.scale} ${height / 2 - at.y * at.scale})`);
    this.drawGrid();
  }

  /** Meridians and parallels, as many as can be told apart. */
  private drawGrid(): void {
    const { at, size: { width, height } } = this;
    const [low, high] = [unproject(at.x - width / 2 / at.scale, at.y + height / 2 / at.scale), unproject(at.x + width / 2 / at.scale, at.y - height / 2 / at.scale)];
    const across = high.longitude - low.longitude;
    // A line for each hundred pixels at most.
    const step = [...STEPS].reverse().find((s) => across / s <= width / 100) ?? 30;
    const lines: SVGElement[] = [];
    const degrees = (value: number, names: string) => `${Math.abs(value).toLocaleString("en", { maximumFractionDigits: 2 })}°${value === 0 ? "" : names[value > 0 ? 0 : 1]}`;
    for (let i = Math.ceil(Math.max(-180, low.longitude) / step); i * step <= Math.min(180, high.longitude); i++) {
      const x = width / 2 + (project({ latitude: 0, longitude: i * step }).x - at.x) * at.scale;
      lines.push(svg("line", { x1: x, x2: x, y1: 0, y2: height }), svg("text", { x: x + 3, y: height - 5 }, degrees(i * step, "EW")));
    }
    for (let i = Math.ceil(Math.max(-80, low.latitude) / step); i * step <= Math.min(80, high.latitude); i++) {
      const y = height / 2 + (project({ latitude: i * step, longitude: 0 }).y - at.y) * at.scale;
      lines.push(svg("line", { x1: 0, x2: width, y1: y, y2: y }), svg("text", { x: 4, y: y - 3 }, degrees(i * step, "NS")));
    }
    this.grid.replaceChildren(...lines);
  }

  private choose(point: number): void {
    this.points[this.chosen]?.dot.classList.remove("chosen");
    this.chosen = point;
    const found = this.points[point];
    if (!found) return;
    found.dot.classList.add("chosen");
    // The chosen one lies on top of the others.
    this.world.append(found.dot);
    const { latitude, longitude } = unproject(found.x, found.y);
    this.said.textContent = `${visible(found.name)}: ${latitude.toFixed(4)}, ${longitude.toFixed(4)}, row ${count(found.row + 1)}`;
    const [x, y] = [(found.x - this.at.x) * this.at.scale, (found.y - this.at.y) * this.at.scale];
    if (Math.abs(x) > this.size.width / 2 || Math.abs(y) > this.size.height / 2) this.move(x, y);
  }

  private acts(): void {
    const { plot } = this;
    const point = (event: Event) => {
      const dot = event.target instanceof Element ? event.target.closest<SVGPathElement>("[data-point]") : null;
      return dot ? Number(dot.dataset["point"]) : -1;
    };
    plot.addEventListener("pointerdown", (down) => {
      const on = point(down);
      let [x, y, moved] = [down.clientX, down.clientY, false];
      plot.setPointerCapture(down.pointerId);
      const move = (event: PointerEvent) => {
        if (!moved && Math.hypot(event.clientX - x, event.clientY - y) < 4) return;
        moved = true;
        this.move(x - event.clientX, y - event.clientY);
        [x, y] = [event.clientX, event.clientY];
      };
      const up = () => {
        plot.removeEventListener("pointermove", move);
        const found = this.points[on];
        if (!moved && found) {
          this.choose(on);
          this.open(found.row);
        }
      };
      plot.addEventListener("pointermove", move);
      plot.addEventListener("pointerup", up, { once: true });
      plot.addEventListener("pointercancel", () => plot.removeEventListener("pointermove", move), { once: true });
    });
    plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== plot) return;
      event.preventDefault();
      const box = plot.getBoundingClientRect();
      this.zoom(event.deltaY < 0 ? 1.25 : 0.8, event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    plot.addEventListener("keydown", (event) => {
      const n = this.points.length;
      const moves: Record<string, () => void> = {
        ArrowLeft: () => this.move(-60, 0), ArrowRight: () => this.move(60, 0), ArrowUp: () => this.move(0, -60), ArrowDown: () => this.move(0, 60),
        "+": () => this.zoom(1.6), "=": () => this.zoom(1.6), "-": () => this.zoom(1 / 1.6), Home: () => this.fit(),
        n: () => n > 0 && this.choose((this.chosen + 1) % n), p: () => n > 0 && this.choose((this.chosen + n - (this.chosen < 0 ? 0 : 1)) % n),
        Enter: () => {
          const found = this.points[this.chosen];
          if (found) this.open(found.row);
        },
      };
      const act = event.ctrlKey || event.altKey || event.metaKey ? undefined : moves[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  }
}

function bounded(scale: number): number {
  return Math.min(SCALES.most, Math.max(SCALES.least, scale));
}

/** Spreading thousands of arguments is not for every browser. */
function least(values: number[]): number {
  return values.reduce((a, b) => Math.min(a, b), Infinity);
}

function line(points: [number, number][]): string {
  return points.map(([longitude, latitude], i) => {
    const { x, y } = project({ latitude, longitude });
    // What goes on at the other edge of the map is not a line across it.
    const jumps = Math.abs(longitude - (points[i - 1]?.[0] ?? longitude)) > 180;
    return `${i === 0 || jumps ? "M" : "L"}${x.toFixed(5)} ${y.toFixed(5)}`;
  }).join("");
}
