// A table of as many rows and columns as there are: only those that can be seen are elements.

import { h } from "../dom.ts";
import { count } from "../format.ts";
import { resourceHash, showValue, termNode, width } from "../show.ts";
import { widthOf } from "./captions.ts";
import { showStatistics } from "./column.ts";
import type { Answer } from "./answer.ts";

/** Height of a row in pixels; page.css has the same number. */
const ROW = 28;
/** Columns on each side of those that can be seen that are elements, too. */
const AROUND = 4;
/** Columns up to which all are elements, and share what room is left. */
const FEW = 60;
/** Taller elements are not drawn by all browsers. */
const TALLEST = 8_000_000;

export class Table {
  readonly element: HTMLElement;
  private head = h("div", { class: "grid-row grid-head", attrs: { role: "row", "aria-rowindex": 1 } });
  private body = h("div", { class: "grid-body", attrs: { role: "rowgroup" } });
  /** Elements of the rows that can be seen, by their numbers. */
  private drawn = new Map<number, HTMLElement>();
  /** The first row that can be seen, and a part of it. */
  private top = 0;
  private setByUs = -1;
  private active = { row: 0, column: 0 };
  /** What the head and the rows were drawn of. */
  private drawnHead = "";
  private drawnVersion = -1;
  private measured = false;
  /** Widths of columns in characters; those that someone chose are in pixels. */
  private widths: number[] = [];
  private chosen = new Map<number, number>();
  /** The columns that are elements: from, and up to but without. */
  private span = { from: 0, to: 0 };
  /** Where each of many columns begins, in pixels, and where the last one ends. */
  private edges: number[] = [];
  private pending = 0;

  constructor(private answer: Answer) {
    this.element = h(
      "div",
      { class: "grid", attrs: { role: "grid", tabindex: 0, "aria-label": "Rows of the answer" } },
      h("div", { class: "grid-top", attrs: { role: "rowgroup" } }, this.head),
      this.body,
    );
    this.element.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.element.addEventListener("wheel", (e) => this.wheeled(e), { passive: false });
    this.element.addEventListener("keydown", (e) => this.key(e));
    this.body.addEventListener("click", (e) => this.clicked(e));
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  private get rows(): number {
    return this.answer.shown;
  }

  private get room(): number {
    return Math.max(1, (this.element.clientHeight - ROW) / ROW);
  }

  /** True where a pixel of the scroll bar is more than a pixel of the table. */
  private get scaled(): boolean {
    return this.rows * ROW > TALLEST;
  }

  /** Takes what is new in the answer. */
  update(): void {
    const { columns, order, version } = this.answer;
    const head = JSON.stringify([columns, order]);
    if (head !== this.drawnHead) {
      this.drawnHead = head;
      this.span = { from: 0, to: Math.min(columns.length, FEW) };
      this.drawHead();
    }
    this.element.setAttribute("aria-rowcount", String(this.rows + 1));
    if (version !== this.drawnVersion) {
      this.drawnVersion = version;
      this.forget();
    } else {
      // Rows do not change, they come.
      for (const [i, row] of this.drawn) {
        if (!row.classList.contains("waiting") || !this.answer.row(i)) continue;
        row.remove();
        this.drawn.delete(i);
      }
    }
    this.draw();
  }

  private forget(): void {
    for (const row of this.drawn.values()) row.remove();
    this.drawn.clear();
  }

  /** Widths that the first rows want; the reader's own width of a column would be better still. */
  private measure(): void {
    const first = Array.from({ length: Math.min(50, this.rows) }, (_, i) => this.answer.row(i)).filter((r) => r !== undefined);
    if (first.length === 0 && this.rows > 0) return;
    this.measured = this.rows > 0;
    this.widths = this.answer.columns.map((name, c) => {
      const most = first.reduce((w, row) => Math.max(w, width(row[c] ?? null)), name.length + 6);
      return Math.min(44, Math.max(8, most + 2));
    });
    this.spread();
  }

  private get many(): boolean {
    return this.widths.length > FEW;
  }

  /** Gives the columns their widths. */
  private spread(): void {
    if (this.many) {
      const letter = widthOf("0", 13, "--mono");
      this.edges = [0];
      for (const [c, w] of this.widths.entries()) this.edges.push((this.edges[c] ?? 0) + (this.chosen.get(c) ?? Math.round(w * letter)));
      this.element.style.setProperty("--width", `calc(var(--numbers) + ${this.edges.at(-1) ?? 0}px)`);
      this.window(true);
      return;
    }
    const least = (w: number, c: number) => (this.chosen.has(c) ? `${this.chosen.get(c)}px` : `${w}ch`);
    const columns = this.widths.map((w, c) => (this.chosen.has(c) ? least(w, c) : `minmax(${w}ch, ${w}fr)`));
    // Where all are chosen, what is left stays empty.
    if (this.chosen.size === this.widths.length) columns.push("1fr");
    this.element.style.setProperty("--columns", `var(--numbers) ${columns.join(" ")}`);
    // Rows lie on top of one another and give their table no width.
    this.element.style.setProperty("--width", `calc(var(--numbers) + ${this.widths.map(least).join(" + ") || "0px"})`);
  }

  /** Makes elements of those of many columns that can be seen. */
  private window(anew: boolean): void {
    const { scrollLeft, clientWidth } = this.element;
    const at = (x: number) => Math.max(0, this.edges.findIndex((edge) => edge > x) - 1);
    const [first, end] = [scrollLeft, scrollLeft + clientWidth].map((x) => (x >= (this.edges.at(-1) ?? 0) ? this.widths.length - 1 : at(x))) as [number, number];
    if (!anew && first >= this.span.from && end < this.span.to) return;
    this.span = { from: Math.max(0, first - AROUND), to: Math.min(this.widths.length, end + 1 + AROUND) };
    const { from, to } = this.span;
    const widths = this.edges.slice(from, to).map((edge, i) => `${(this.edges[from + i + 1] ?? edge) - edge}px`);
    // Those to the left of them are one empty track.
    this.element.style.setProperty("--columns", `var(--numbers) ${this.edges[from] ?? 0}px ${widths.join(" ")}`);
    this.drawHead();
    this.forget();
  }

  /** The empty cell in place of the columns to the left of those that can be seen. */
  private get gap(): HTMLElement[] {
    return this.many ? [h("div", { class: "gap", attrs: { role: "presentation" } })] : [];
  }

  /** A handle at a column's edge: the pointer drags it, a double click gives the width back. */
  private handle(column: number): HTMLElement {
    const made = h("span", { class: "handle", title: "Drag for another width; twice for its own" });
    made.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      event.stopPropagation();
      made.setPointerCapture(event.pointerId);
      const cells = [...this.head.children].filter((cell) => cell.hasAttribute("aria-sort")).map((cell) => cell.getBoundingClientRect().width);
      const from = event.clientX;
      const before = cells[column - this.span.from] ?? 80;
      const move = (e: PointerEvent) => {
        // The others keep the widths that they have.
        if (!this.many) cells.forEach((w, c) => this.chosen.has(c) || this.chosen.set(c, Math.round(w)));
        this.chosen.set(column, Math.max(40, Math.round(before + e.clientX - from)));
        this.spread();
      };
      made.addEventListener("pointermove", move);
      made.addEventListener("pointerup", () => made.removeEventListener("pointermove", move), { once: true });
    });
    made.addEventListener("dblclick", () => {
      this.chosen.delete(column);
      this.spread();
    });
    return made;
  }

  private statistics(column: number): void {
    void this.answer.statistics(column).then((found) => showStatistics(this.answer.columns[column] ?? "", found));
  }

  private drawHead(): void {
    const { order } = this.answer;
    const focused = this.head.contains(document.activeElement) ? document.activeElement?.closest("[aria-sort]")?.getAttribute("aria-colindex") : undefined;
    const { from, to } = this.span;
    const cells = this.answer.columns.slice(from, to).map((name, i) => {
      const column = from + i;
      const way = order?.column === column ? (order.descending ? "descending" : "ascending") : "none";
      const sort = h("button", { attrs: { type: "button", tabindex: -1 }, title: "Sort what was received" }, name, h("span", { class: "way" }, way === "none" ? "" : way === "ascending" ? " ▲" : " ▼"));
      sort.addEventListener("click", () => this.sortBy(column));
      const about = h("button", { class: "about", attrs: { type: "button", tabindex: -1, "aria-label": `Statistics of ${name}` }, title: "Statistics of this column" }, "Σ");
      about.addEventListener("click", () => this.statistics(column));
      return h("div", { attrs: { role: "columnheader", "aria-sort": way, "aria-colindex": column + 2 } }, sort, about, this.handle(column));
    });
    this.head.replaceChildren(h("div", { class: "number", attrs: { role: "columnheader", "aria-label": "Row #", "aria-colindex": 1 } }, "#"), ...this.gap, ...cells);
    if (focused) this.head.querySelector<HTMLElement>(`[aria-colindex="${focused}"] button`)?.focus();
    this.element.setAttribute("aria-colcount", String(this.answer.columns.length + 1));
  }

  private sortBy(column: number): void {
    const { order, texts } = this.answer;
    const next = order?.column !== column ? { column, descending: false } : order.descending ? null : { column, descending: true };
    this.answer.arrange(next, texts);
    this.go(0);
  }

  /** Puts a row on top. */
  private go(top: number): void {
    this.top = Math.max(0, Math.min(top, this.rows - this.room));
    const height = this.body.offsetHeight - this.element.clientHeight + ROW;
    const at = this.scaled ? (this.top / Math.max(1, this.rows - this.room)) * height : this.top * ROW;
    this.element.scrollTop = at;
    this.setByUs = this.element.scrollTop;
    this.draw();
  }

  /** Shows a row in the middle, and chooses it. */
  goTo(row: number): void {
    // The table may not have been laid out yet.
    requestAnimationFrame(() => {
      this.drawNow();
      this.active = { row, column: 0 };
      this.go(row - Math.floor(this.room / 2));
      this.drawNow();
      this.element.focus();
    });
  }

  /** Scrolls one of many columns into view. */
  private reveal(column: number): void {
    const { element, edges } = this;
    const [left, right] = [edges[column] ?? 0, edges[column + 1] ?? 0];
    const numbers = this.head.firstElementChild?.clientWidth ?? 0;
    if (left < element.scrollLeft) element.scrollLeft = left;
    else if (right + numbers > element.scrollLeft + element.clientWidth) element.scrollLeft = right + numbers - element.clientWidth;
    this.window(false);
  }

  private scrolled(): void {
    const at = this.element.scrollTop;
    if (Math.abs(at - this.setByUs) > 1) {
      this.setByUs = -1;
      const height = this.body.offsetHeight - this.element.clientHeight + ROW;
      this.top = this.scaled ? (at / Math.max(1, height)) * (this.rows - this.room) : at / ROW;
    }
    if (this.many) this.window(false);
    this.draw();
  }

  private wheeled(event: WheelEvent): void {
    if (!this.scaled || event.deltaY === 0 || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 1 : event.deltaMode === 2 ? this.room : 1 / ROW;
    this.go(this.top + event.deltaY * unit);
  }

  private draw(): void {
    cancelAnimationFrame(this.pending);
    this.pending = requestAnimationFrame(() => this.drawNow());
  }

  private drawNow(): void {
    // Where it cannot be seen, the names could be those of another query's prefixes.
    if (!this.element.isConnected) return;
    if (!this.measured) this.measure();
    const height = Math.min(TALLEST, this.rows * ROW);
    this.body.style.height = `${height}px`;
    this.element.style.setProperty("--numbers", `calc(${Math.max(3, count(this.rows).length)}ch + 1.2rem)`);
    this.top = Math.max(0, Math.min(this.top, this.rows - this.room));
    if (!this.scaled) this.top = this.element.scrollTop / ROW;
    const from = Math.max(0, Math.floor(this.top) - 3);
    const to = Math.min(this.rows, Math.ceil(this.top + this.room) + 3);
    for (const [i, row] of this.drawn) {
      if (i < from || i >= to) {
        row.remove();
        this.drawn.delete(i);
      }
    }
    for (let i = from; i < to; i++) {
      let row = this.drawn.get(i);
      if (!row) {
        row = this.make(i);
        this.drawn.set(i, row);
        this.body.append(row);
      }
      const y = this.scaled ? this.element.scrollTop + (i - this.top) * ROW : i * ROW;
      row.style.transform = `translateY(${y}px)`;
    }
    this.mark();
  }

  private make(i: number): HTMLElement {
    const terms = this.answer.row(i);
    const row = h("div", { class: "grid-row", id: `row-${i}`, attrs: { role: "row", "aria-rowindex": i + 2 } });
    row.dataset["row"] = String(i);
    row.append(h("div", { class: "number", attrs: { role: "rowheader", "aria-colindex": 1 } }, count(i + 1)));
    row.append(...this.gap);
    for (let c = this.span.from; c < this.span.to; c++) {
      const cell = h("div", { id: `cell-${i}-${c}`, attrs: { role: "gridcell", "aria-colindex": c + 2 } });
      cell.dataset["column"] = String(c);
      if (terms) {
        const node = termNode(terms[c] ?? null, { oneLine: true });
        // Keys move between cells; a link in each would be thousands of stops.
        if (node instanceof HTMLAnchorElement) node.tabIndex = -1;
        cell.append(node);
      }
      row.append(cell);
    }
    if (!terms) row.classList.add("waiting");
    return row;
  }

  private get activeCell(): Element | null | undefined {
    return this.drawn.get(this.active.row)?.querySelector(`[data-column="${this.active.column}"]`);
  }

  private mark(): void {
    this.body.querySelector(".active")?.classList.remove("active");
    const cell = this.activeCell;
    cell?.classList.add("active");
    if (cell) this.element.setAttribute("aria-activedescendant", cell.id);
    else this.element.removeAttribute("aria-activedescendant");
  }

  private clicked(event: MouseEvent): void {
    const target = event.target as Element;
    const cell = target.closest<HTMLElement>("[role=gridcell]");
    const row = target.closest<HTMLElement>("[data-row]");
    if (!cell || !row) return;
    this.active = { row: Number(row.dataset["row"]), column: Number(cell.dataset["column"]) };
    this.mark();
    if (!target.closest("a") && !getSelection()?.toString()) void this.open(false);
  }

  /** Opens a resource's page, or shows a value as a whole. */
  private async open(follow: boolean): Promise<void> {
    const { row, column } = this.active;
    const term = this.answer.row(row)?.[column];
    if (!term) return;
    if (term.type === "iri") {
      if (follow) location.hash = resourceHash(term.value);
      return;
    }
    const whole = await this.answer.cell(row, column);
    if (whole) showValue(whole);
  }

  private key(event: KeyboardEvent): void {
    if (event.target !== this.element || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.room) - 1);
    const last = this.answer.columns.length - 1;
    const { active } = this;
    switch (event.key) {
      case "ArrowDown": active.row++; break;
      case "ArrowUp": active.row--; break;
      case "ArrowRight": active.column++; break;
      case "ArrowLeft": active.column--; break;
      case "PageDown": active.row += page; break;
      case "PageUp": active.row -= page; break;
      case "Home": if (event.ctrlKey) active.row = 0; else active.column = 0; break;
      case "End": if (event.ctrlKey) active.row = this.rows - 1; else active.column = last; break;
      case "s": this.sortBy(active.column); break;
      case "i": this.statistics(active.column); return;
      case "Enter": void this.open(true); break;
      default: return;
    }
    event.preventDefault();
    active.row = Math.max(0, Math.min(active.row, this.rows - 1));
    active.column = Math.max(0, Math.min(active.column, last));
    if (active.row < this.top) this.go(active.row);
    else if (active.row + 1 > this.top + this.room) this.go(active.row + 1 - this.room);
    if (this.many) this.reveal(active.column);
    this.drawNow();
    this.activeCell?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
