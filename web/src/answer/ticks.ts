// Round numbers for an axis.

/** About the given number of round values from below the least to above the greatest. */
export function ticks(least: number, greatest: number, about: number): number[] {
  if (!Number.isFinite(least) || !Number.isFinite(greatest)) return [0, 1];
  if (least === greatest) {
    const around = Math.abs(least) || 1;
    [least, greatest] = [least - around / 2, greatest + around / 2];
  }
  const raw = (greatest - least) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw) ?? 10 * power;
  const first = Math.floor(least / step);
  const last = Math.ceil(greatest / step);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}
