// Messages between the page and the worker that holds an answer's rows.

import type { Problem } from "../net/http.ts";
import type { Term } from "../rdf/term.ts";
import type { Order } from "./rows.ts";

export type Ask =
  | { type: "run"; path: string; query: string; bearer: string | undefined; mostRows: number; mostSize: number }
  | { type: "cancel" }
  /** Sorts and filters the rows; `view` is the number of this arrangement. */
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
  /** The page's limit was reached before the end. */
  | { how: "capped" }
  | { how: "problem"; problem: Problem };

export type Told =
  | { type: "head"; columns: string[] }
  | { type: "truth"; value: boolean }
  | ({ type: "progress" } & Progress)
  | ({ type: "end"; ending: Ending } & Progress)
  /** The rows were sorted and filtered; `shown` are left. */
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

/** Columns of numbers for a chart, with captions. */
export interface Series {
  values: Float64Array[];
  /** The values as the answer has them. */
  texts: string[][];
  labels: (Term | null)[];
  /** Positions of the chosen rows among those that are shown. */
  at: Uint32Array;
  /** All rows that are shown; more than `at` has if some were left out. */
  rows: number;
}

/** Statistics of a column over the rows that are shown. */
export interface Statistics {
  rows: number;
  unbound: number;
  iris: number;
  blanks: number;
  literals: number;
  /** Different values; a lower bound if `more` is true. */
  distinct: number;
  more: boolean;
  /** Of the values that are numbers. */
  numbers: { count: number; least: number; most: number; mean: number; median: number } | undefined;
  /** The most frequent language tags, with the number of literals. */
  languages: [string, number][];
  /** Characters of the longest literal that is not a number. */
  longest: number;
  /** The most frequent values. */
  top: [Term | null, number][];
}
