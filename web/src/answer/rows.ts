// The rows of an answer: the received text, and the offset of each row in it. Cells are parsed when they are read, so a row
// takes the memory of its text and up to 8 bytes.

import { numberOf, parseTerm, type Term } from "../rdf/term.ts";

/** A growing array of numbers. */
class Numbers {
  private all = new Uint32Array(1024);
  length = 0;

  push(n: number): void {
    if (this.length === this.all.length) {
      const more = new Uint32Array(this.all.length * 2);
      more.set(this.all);
      this.all = more;
    }
    this.all[this.length++] = n;
  }

  at(i: number): number {
    return this.all[i] ?? 0;
  }
}

export interface Order {
  column: number;
  descending: boolean;
}

export class Rows {
  /** Names of the columns, without their `?`; empty until the first line has come. */
  columns: string[] = [];
  /** The truth value of an ASK. */
  truth: boolean | undefined;
  count = 0;
  /** Characters of the text. */
  size = 0;
  private chunks: string[] = [];
  /** The first row of each chunk. */
  private firsts: number[] = [];
  /** Offset of each row in its chunk. */
  private starts = new Numbers();
  /** Parts of a line whose end was not received yet. */
  private open: string[] = [];
  private headed = false;

  append(text: string): void {
    if (text === "") return;
    const end = text.lastIndexOf("\n");
    if (end < 0) {
      this.open.push(text);
      return;
    }
    let chunk = text.slice(0, end + 1);
    if (this.open.length > 0) {
      this.open.push(chunk);
      chunk = this.open.join("");
      this.open = [];
    }
    if (end + 1 < text.length) this.open.push(text.slice(end + 1));
    let at = 0;
    if (!this.headed) {
      at = chunk.indexOf("\n") + 1;
      this.head(chunk.slice(0, at - 1));
    }
    if (at === chunk.length || this.truth !== undefined) return;
    this.firsts.push(this.count);
    this.chunks.push(chunk);
    this.size += chunk.length;
    for (; at < chunk.length; at = chunk.indexOf("\n", at) + 1) {
      this.starts.push(at);
      this.count++;
    }
  }

  /** To be called after the last text: the last line need not end with a line feed. */
  finish(): void {
    if (this.open.length > 0) this.append("\n");
  }

  private head(line: string): void {
    this.headed = true;
    if (line === "true" || line === "false") this.truth = line === "true";
    else if (line !== "") this.columns = line.split("\t").map((name) => name.replace(/^\?/, ""));
  }

  private line(row: number): string {
    const chunk = this.chunkOf(row);
    const text = this.chunks[chunk] ?? "";
    const next = row + 1;
    const end = next < this.count && next !== this.firsts[chunk + 1] ? this.starts.at(next) : text.length;
    return text.slice(this.starts.at(row), end - 1);
  }

  private chunkOf(row: number): number {
    let low = 0;
    let high = this.firsts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.firsts[middle] ?? 0) <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** A row's cells as they were sent. */
  cells(row: number): string[] {
    return this.line(row).split("\t");
  }

  /** A row's terms, with `most` characters of each at most. */
  terms(row: number, most: number): (Term | null)[] {
    return this.cells(row).map((cell) => parseTerm(cell, most));
  }

  /** Indexes of the rows that contain one of these texts, ignoring case. */
  matching(texts: string[]): Uint32Array {
    const pattern = texts.map((t) => t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\t|\n/g, " ")).join("|");
    const found = new Numbers();
    const search = new RegExp(pattern, "giu");
    this.chunks.forEach((chunk, c) => {
      const first = this.firsts[c] ?? 0;
      const end = this.firsts[c + 1] ?? this.count;
      search.lastIndex = this.starts.at(first);
      let from = first;
      for (let hit = search.exec(chunk); hit; hit = search.exec(chunk)) {
        // The row of the hit: the last one that begins at it or before.
        let [low, high] = [from, end - 1];
        while (low < high) {
          const middle = (low + high + 1) >> 1;
          if (this.starts.at(middle) <= hit.index) low = middle;
          else high = middle - 1;
        }
        found.push(low);
        from = low + 1;
        if (from >= end) break;
        search.lastIndex = this.starts.at(from);
      }
    });
    return Uint32Array.from({ length: found.length }, (_, i) => found.at(i));
  }

  /**
   * Sorts rows by a column: unbound, blank nodes, IRIs, then literals, with numbers before texts. The order of rows with equal values
   * does not change.
   */
  sorted(rows: Uint32Array, order: Order): Uint32Array {
    const n = rows.length;
    const kinds = new Uint8Array(n);
    const numbers = new Float64Array(n);
    const texts: string[] = new Array<string>(n);
    let plain = true;
    for (let i = 0; i < n; i++) {
      const term = parseTerm(this.cells(rows[i] ?? 0)[order.column] ?? "", 256);
      const number = numberOf(term);
      kinds[i] = term === null ? 0 : term.type === "blank" ? 1 : term.type === "iri" ? 2 : number !== undefined ? 3 : term.type === "literal" ? 4 : 5;
      numbers[i] = number ?? 0;
      texts[i] = number === undefined ? (term?.value ?? "") : "";
      if (kinds[i] !== 3) plain = false;
    }
    const sign = order.descending ? -1 : 1;
    const places = Uint32Array.from({ length: n }, (_, i) => i);
    const byNumber = (a: number, b: number) => sign * ((numbers[a] ?? 0) - (numbers[b] ?? 0)) || a - b;
    places.sort(plain ? byNumber : (a, b) => {
      const [ka, kb] = [kinds[a] ?? 0, kinds[b] ?? 0];
      if (ka !== kb) return sign * (ka - kb);
      if (ka === 3) return byNumber(a, b);
      const [ta, tb] = [texts[a] ?? "", texts[b] ?? ""];
      return ta < tb ? -sign : ta > tb ? sign : a - b;
    });
    return places.map((place) => rows[place] ?? 0);
  }

  /** The numbers of a column, `NaN` for values that are not numbers. */
  numbers(column: number, rows: Uint32Array): Float64Array {
    return Float64Array.from(rows, (row) => numberOf(parseTerm(this.cells(row)[column] ?? "")) ?? NaN);
  }
}
