// Which values of many a chart draws.

/** Places of the greatest values, the greatest first; what is no number comes last. */
export function greatest(values: Float64Array, most: number): Uint32Array {
  const places = Uint32Array.from(values, (_, i) => i);
  const at = (i: number) => (Number.isNaN(values[i]) ? -Infinity : (values[i] ?? 0));
  return places.sort((a, b) => (at(a) === at(b) ? a - b : at(b) - at(a))).slice(0, most);
}

/** Places of the least and the greatest value of each of as many stretches as there is room for, in order. */
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
