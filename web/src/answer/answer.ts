// The page's view of an answer, whose rows are in a worker.

import { token } from "../net/http.ts";
import { SHOWN, type Term } from "../rdf/term.ts";
import { learnNames } from "../show.ts";
import type { Ask, Choice, Ending, Progress, Series, Statistics, Told } from "./protocol.ts";
import type { Order } from "./rows.ts";

/** Rows that are fetched at most, and characters. */
const MOST_ROWS = 2_000_000;
const MOST_SIZE = 400_000_000;

/** Rows that are fetched from the worker at once. */
const BLOCK = 200;
/** Blocks that are kept. */
const KEPT = 40;

/** A worker that was started in advance, so that its script is loaded even if the server no longer answers. */
let spare: Worker | undefined = typeof Worker === "undefined" ? undefined : new Worker("worker.js");

export function nextWorker(): Worker {
  const worker = spare ?? new Worker("worker.js");
  spare = new Worker("worker.js");
  spare.onerror = () => (spare = undefined);
  return worker;
}

export class Answer {
  columns: string[] = [];
  truth: boolean | undefined;
  progress: Progress = { rows: 0, received: 0, elapsed: 0, first: null };
  ending: Ending | undefined;
  order: Order | null = null;
  /** Changes whenever other rows are shown, or in another order. */
  version = 0;
  texts: string[] = [];
  /** The worker sorts or filters. */
  arranging = false;
  /** Called whenever something of this has changed. */
  changed: () => void = () => {};
  private worker = nextWorker();
  private view = 0;
  /** Number of rows after a filter; `null` if all rows are shown in their order. */
  private arranged: number | null = null;
  private blocks = new Map<number, (Term | null)[][]>();
  private asked = new Set<number>();
  private replies = new Map<number, (value: unknown) => void>();
  private last = 0;

  /** `path`: where the query is sent to, with its parameters. */
  constructor(readonly query: string, path: string) {
    this.worker.onmessage = (event: MessageEvent<Told>) => this.take(event.data);
    this.worker.onerror = () => void this.lost();
    this.ask({ type: "run", path, query, bearer: token(), mostRows: MOST_ROWS, mostSize: MOST_SIZE });
  }

  /** The worker failed to start: the server does not answer a request for its script, or the browser refuses it. */
  private async lost(): Promise<void> {
    const answers = await fetch("health", { cache: "no-store" }).then(() => true, () => false);
    this.ending ??= { how: "problem", problem: { status: 0, kind: answers ? "worker" : "network", detail: "" } };
    this.changed();
  }

  private ask(ask: Ask): void {
    this.worker.postMessage(ask);
  }

  private take(told: Told): void {
    switch (told.type) {
      case "head":
        this.columns = told.columns;
        break;
      case "truth":
        this.truth = told.value;
        break;
      case "progress":
        this.progress = told;
        this.freshen();
        break;
      case "end":
        this.progress = told;
        this.ending = told.ending;
        this.freshen();
        break;
      case "arranged":
        if (told.view !== this.view) return;
        this.arranged = this.order || this.texts.length > 0 ? told.shown : null;
        this.version++;
        this.arranging = false;
        this.blocks.clear();
        this.asked.clear();
        break;
      case "window":
        if (told.view !== this.view) return;
        this.asked.delete(told.from);
        this.blocks.delete(told.from);
        learnNames(told.rows.flat());
        this.blocks.set(told.from, told.rows);
        for (const oldest of this.blocks.keys()) {
          if (this.blocks.size <= KEPT) break;
          this.blocks.delete(oldest);
        }
        break;
      case "reply":
        this.replies.get(told.id)?.(told.value);
        this.replies.delete(told.id);
        return;
    }
    this.changed();
  }

  /** Forgets blocks that were not full, for which there are more rows now. */
  private freshen(): void {
    if (this.arranged !== null) return;
    for (const [from, rows] of this.blocks) {
      if (rows.length < BLOCK && from + rows.length < this.progress.rows) this.blocks.delete(from);
    }
  }

  /** Number of rows that are shown. */
  get shown(): number {
    return this.arranged ?? this.progress.rows;
  }

  get running(): boolean {
    return this.ending === undefined;
  }

  /** True for a table of triples. */
  get isGraph(): boolean {
    return this.columns.join(" ") === "subject predicate object";
  }

  /** A row, or `undefined` while it is on its way; `changed` is called when it came. */
  row(i: number): (Term | null)[] | undefined {
    const from = i - (i % BLOCK);
    const found = this.blocks.get(from)?.[i - from];
    if (!found && !this.asked.has(from)) {
      this.asked.add(from);
      this.ask({ type: "window", view: this.view, from, most: BLOCK });
    }
    return found;
  }

  arrange(order: Order | null, texts: string[]): void {
    this.order = order;
    this.texts = texts;
    this.view++;
    this.asked.clear();
    this.blocks.clear();
    this.arranging = true;
    this.ask({ type: "arrange", view: this.view, order, texts });
    this.changed();
  }

  cancel(): void {
    this.ask({ type: "cancel" });
  }

  private request<T>(make: (id: number) => Ask): Promise<T> {
    const id = ++this.last;
    return new Promise((resolve) => {
      this.replies.set(id, resolve as (value: unknown) => void);
      this.ask(make(id));
    });
  }

  /** A whole cell, however long. */
  cell(row: number, column: number): Promise<Term | null> {
    return this.request((id) => ({ type: "cell", id, view: this.view, row, column }));
  }

  series(choice: Choice): Promise<Series> {
    return this.request((id) => ({ type: "series", id, ...choice }));
  }

  statistics(column: number): Promise<Statistics> {
    return this.request((id) => ({ type: "statistics", id, column }));
  }

  /** Rows that are shown, from the given one on, with `cut` characters of each value at most. */
  firstRows(most: number, from = 0, cut = SHOWN): Promise<(Term | null)[][]> {
    return this.request((id) => ({ type: "rows", id, from, most, cut }));
  }

  /** Some rows that are shown, with values of every column that has any. */
  sample(): Promise<(Term | null)[][]> {
    return this.request((id) => ({ type: "sample", id }));
  }

  /** Cancels the query and discards the rows. */
  drop(): void {
    this.changed = () => {};
    this.worker.postMessage({ type: "cancel" } satisfies Ask);
    // Time for the request to be cancelled at the server.
    setTimeout(() => this.worker.terminate(), 50);
  }
}
