// What the page and the worker that keeps an answer's rows tell each other.

import type { Problem } from "../net/http.ts";
import type { Term } from "../rdf/term.ts";
import type { Order } from "./rows.ts";

export type Ask =
  | { type: "run"; path: string; query: string; bearer: string | undefined; mostRows: number; mostSize: number }
  | { type: "cancel" }
  /** Which rows are shown, in which order; `view` numbers such wishes. */
  | { type: "arrange"; view: number; order: Order | null; texts: string[] }
  | { type: "window"; view: number; from: number; most: number }
  | { type: "cell"; id: number; view: number; row: number; column: number }
  | ({ type: "series"; id: number } & Choice)
  /** Rows in the order that is shown, with `cut` characters of each value at most. */
  | { type: "rows"; id: number; from: number; most: number; cut: number }
  | { type: "sample"; id: number }
  | { type: "statistics"; id: number; column: number };

export interface Progress {
  rows: number;
  /** Bytes of the body. */
  received: number;
  /** Milliseconds since the request was sent. */
  elapsed: number;
  /** Until the first row was there. */
  first: number | null;
}

export type Ending =
  | { how: "complete" }
  | { how: "cancelled" }
  /** There is more, and it was not fetched. */
  | { how: "capped" }
  | { how: "problem"; problem: Problem };

export type Told =
  | { type: "head"; columns: string[] }
  | { type: "truth"; value: boolean }
  | ({ type: "progress" } & Progress)
  | ({ type: "end"; ending: Ending } & Progress)
  /** The rows are arranged: this many are shown. */
  | { type: "arranged"; view: number; shown: number }
  | { type: "window"; view: number; from: number; rows: (Term | null)[][] }
  | { type: "reply"; id: number; value: unknown };

/** What a chart draws. */
export interface Choice {
  columns: number[];
  /** The column with captions. */
  labels: number | null;
  /** Where there are more than `most` rows, the column whose numbers choose: the greatest, greatest first; or the least and the greatest of each stretch. */
  by: number;
  choose: "greatest" | "extremes";
  most: number;
}

/** Numbers of columns, row by row, and what stands alongside them. */
export interface Series {
  values: Float64Array[];
  /** The values as the answer has them. */
  texts: string[][];
  labels: (Term | null)[];
  /** Places of these rows among those that are shown. */
  at: Uint32Array;
  /** Rows that there are; more than values if some were left out. */
  rows: number;
}

/** What there is to say about a column of the rows that are shown. */
export interface Statistics {
  /** Rows that were looked at. */
  rows: number;
  unbound: number;
  iris: number;
  blanks: number;
  literals: number;
  /** Different values; as many as were told apart where `more` is true. */
  distinct: number;
  more: boolean;
  /** Of the values that are numbers. */
  numbers: { count: number; least: number; most: number; mean: number; median: number } | undefined;
  /** Languages of literals with how often each occurs. */
  languages: [string, number][];
  /** Length of literals in characters. */
  longest: number;
  /** The most frequent values. */
  top: [Term | null, number][];
}
