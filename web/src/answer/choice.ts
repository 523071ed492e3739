// Which rows of many are read: for a chart, and to find out what the columns have.

/** A sample's first rows, values of each column, and rows at most. */
const FIRST = 100;
const EACH = 10;
const MOST = 1000;

/** Chooses the first rows, and later ones with a value in a column that has few values in the rows chosen before. */
export function sample(cells: (row: number) => string[], rows: number, columns: number): number[] {
  const chosen: number[] = [];
  const values = new Uint32Array(columns);
  for (let row = 0; row < rows && chosen.length < MOST && (row < FIRST || values.some((n) => n < EACH)); row++) {
    const bound = [...cells(row).entries()].filter(([, cell]) => cell !== "");
    if (row >= FIRST && bound.every(([column]) => (values[column] ?? 0) >= EACH)) continue;
    for (const [column] of bound) values[column] = (values[column] ?? 0) + 1;
    chosen.push(row);
  }
  return chosen;
}

/** Positions of the greatest numbers, the greatest first. */
export function greatest(values: Float64Array, most: number): Uint32Array {
  const at = (i: number) => values[i] ?? NaN;
  const places = Uint32Array.from(values, (_, i) => i).filter((i) => !Number.isNaN(at(i)));
  return places.sort((a, b) => (at(a) === at(b) ? a - b : at(b) - at(a))).slice(0, most);
}

/** Splits the values into `most / 2` stretches. Returns the positions of the least and the greatest value of each, in order. */
export function extremes(values: Float64Array, most: number): Uint32Array {
  const step = Math.ceil(values.length / Math.max(1, most >> 1));
  const chosen: number[] = [];
  for (let from = 0; from < values.length; from += step) {
    let [low, high] = [-1, -1];
    for (let i = from; i < Math.min(from + step, values.length); i++) {
      const value = values[i] ?? NaN;
      if (Number.isNaN(value)) continue;
      if (low < 0 || value < (values[low] ?? 0)) low = i;
      if (high < 0 || value > (values[high] ?? 0)) high = i;
    }
    if (low >= 0) chosen.push(...new Set([Math.min(low, high), Math.max(low, high)]));
  }
  return Uint32Array.from(chosen);
}
