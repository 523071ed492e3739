// The worker that fetches an answer and holds its rows, so that the page's own thread stays responsive.

import { dressed, problemOf, query, unreachable } from "../net/http.ts";
import { SHOWN, type Term, parseTerm } from "../rdf/term.ts";
import { Layout, type LayoutAsk, type LayoutTold } from "../graph/layout.ts";
import type { Ask, Ending, Progress, Series, Told } from "./protocol.ts";
import { extremes, greatest, sample } from "./choice.ts";
import { type Order, Rows } from "./rows.ts";
import { statistics } from "./statistics.ts";

// The types of the library `dom` are those of a window, not of a worker.
const scope = self as unknown as {
  postMessage(message: Told | LayoutTold, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent<Ask | LayoutAsk>) => void) | null;
};

/** Milliseconds between two messages about progress. */
const PACE = 60;

const rows = new Rows();
let control = new AbortController();
let ended = false;
/** The rows that are shown, in their order; `null`: all rows as they were received. */
let arranged: Uint32Array | null = null;
let order: Order | null = null;
let texts: string[] = [];
let view = 0;

function tell(message: Told): void {
  scope.postMessage(message);
}

async function run(ask: Extract<Ask, { type: "run" }>): Promise<void> {
  const started = performance.now();
  let received = 0;
  let first: number | null = null;
  let told = 0;
  let headed = false;
  const progress = (): Progress => ({ rows: rows.count, received, elapsed: performance.now() - started, first });
  const look = () => {
    if (!headed && rows.truth !== undefined) tell({ type: "truth", value: rows.truth });
    else if (!headed && rows.columns.length > 0) tell({ type: "head", columns: rows.columns });
    headed ||= rows.truth !== undefined || rows.columns.length > 0;
    const now = performance.now();
    const begins = first === null && rows.count > 0;
    if (begins) first = now - started;
    if (begins || now - told > PACE) {
      told = now;
      tell({ type: "progress", ...progress() });
    }
  };
  const end = (ending: Ending) => {
    ended = true;
    if (texts.length > 0 || order) arrange();
    tell({ type: "end", ending, ...progress() });
  };
  try {
    const response = await fetch(ask.path, dressed(query(ask.query, "text/tab-separated-values", control.signal), ask.bearer));
    if (!response.ok || !response.body) {
      end({ how: "problem", problem: await problemOf(response) });
      return;
    }
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      received += value.length;
      rows.append(decoder.decode(value, { stream: true }));
      look();
      if (rows.count >= ask.mostRows || rows.size >= ask.mostSize) {
        await reader.cancel();
        end({ how: "capped" });
        return;
      }
    }
    rows.append(decoder.decode());
    rows.finish();
    look();
    end({ how: "complete" });
  } catch (error) {
    const problem = unreachable(error);
    end(control.signal.aborted ? { how: "cancelled" } : { how: "problem", problem });
  }
}

function arrange(): void {
  let chosen = texts.length > 0 ? rows.matching(texts) : null;
  if (order) chosen = rows.sorted(chosen ?? Uint32Array.from({ length: rows.count }, (_, i) => i), order);
  arranged = chosen;
  tell({ type: "arranged", view, shown: arranged?.length ?? rows.count });
}

const rowAt = (i: number): number => (arranged ? (arranged[i] ?? 0) : i);
const shown = (): number => arranged?.length ?? rows.count;

/** Rows that are shown, with `cut` characters of each value at most. */
function part(from: number, most: number, cut: number): (Term | null)[][] {
  return Array.from({ length: Math.max(0, Math.min(most, shown() - from)) }, (_, i) => rows.terms(rowAt(from + i), cut));
}

function series(ask: Extract<Ask, { type: "series" }>): Series {
  const all = shown();
  const { labels, columns, most } = ask;
  const every = Uint32Array.from({ length: all }, (_, i) => rowAt(i));
  const choose = ask.choose === "greatest" ? greatest : extremes;
  const at = all <= most ? Uint32Array.from(every, (_, i) => i) : choose(rows.numbers(ask.by, every), most);
  const chosen = at.map((i) => every[i] ?? 0);
  return {
    values: columns.map((column) => rows.numbers(column, chosen)),
    texts: columns.map((column) => Array.from(chosen, (row) => parseTerm(rows.cells(row)[column] ?? "")?.value ?? "")),
    labels: labels === null ? [] : Array.from(chosen, (row) => parseTerm(rows.cells(row)[labels] ?? "", 1000)),
    at,
    rows: all,
  };
}

/** For workers that lay out a graph. A worker holds an answer or a layout, not both. */
const layout = new Layout((told, transfer) => scope.postMessage(told, transfer));

scope.onmessage = ({ data: ask }) => {
  switch (ask.type) {
    case "layout":
    case "drag":
      layout.take(ask);
      break;
    case "run":
      control = new AbortController();
      void run(ask);
      break;
    case "cancel":
      if (!ended) control.abort();
      break;
    case "arrange":
      ({ view, order, texts } = ask);
      arrange();
      break;
    case "window":
      if (ask.view === view) tell({ type: "window", view, from: ask.from, rows: part(ask.from, ask.most, SHOWN) });
      break;
    case "cell":
      tell({ type: "reply", id: ask.id, value: ask.view === view ? parseTerm(rows.cells(rowAt(ask.row))[ask.column] ?? "") : null });
      break;
    case "series":
      tell({ type: "reply", id: ask.id, value: series(ask) });
      break;
    case "statistics":
      tell({ type: "reply", id: ask.id, value: statistics(rows, ask.column, shown(), rowAt) });
      break;
    case "rows":
      tell({ type: "reply", id: ask.id, value: part(ask.from, ask.most, ask.cut) });
      break;
    case "sample":
      tell({ type: "reply", id: ask.id, value: sample((i) => rows.cells(rowAt(i)), shown(), rows.columns.length).map((i) => rows.terms(rowAt(i), SHOWN)) });
      break;
  }
};
