// Numbers as people read them.

export function count(n: number): string {
  return n.toLocaleString("en");
}

/** All digits of a number. */
export function number(n: number): string {
  return Math.abs(n) >= 1e15 || (n !== 0 && Math.abs(n) < 1e-4) ? n.toExponential() : n.toLocaleString("en", { maximumFractionDigits: 20 });
}

/** A number as data has it, the digits of an integer in groups. */
export function grouped(text: string): string {
  return /^[-+]?\d{1,99}$/.test(text) ? BigInt(text).toLocaleString("en") : text;
}

export function counted(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = n / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

export function milliseconds(ms: number): string {
  if (ms < 1) return `${(ms * 1000).toFixed(0)} µs`;
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${ms.toFixed(0)} ms`;
  if (ms < 120_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** A long time in its two largest units. */
export function duration(seconds: number): string {
  const units: [string, number][] = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  let left = Math.floor(seconds);
  const parts = units.map(([name, size]): [string, number] => {
    const n = Math.floor(left / size);
    left -= n * size;
    return [name, n];
  });
  const first = parts.findIndex(([, n]) => n > 0);
  return first < 0 ? "0 s" : parts.slice(first, first + 2).filter(([, n]) => n > 0).map(([name, n]) => `${n} ${name}`).join(" ");
}
