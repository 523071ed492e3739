// Places in a text: the server counts bytes of UTF-8, the editor units of UTF-16.

/** Gives the unit at which a byte's character begins, for ascending bytes in one pass each. */
export function unitAt(text: string, byte: number): number {
  let seen = 0;
  let unit = 0;
  while (unit < text.length && seen < byte) {
    const point = text.codePointAt(unit) ?? 0;
    seen += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    unit += point < 0x10000 ? 1 : 2;
  }
  return unit;
}

/** The unit at a line and a column in characters, both from 1. */
export function unitOf(text: string, line: number, column: number): number {
  let at = 0;
  for (let i = 1; i < line; i++) {
    const next = text.indexOf("\n", at);
    if (next < 0) return text.length;
    at = next + 1;
  }
  for (let i = 1; i < column && at < text.length && text[at] !== "\n"; i++) {
    at += (text.codePointAt(at) ?? 0) < 0x10000 ? 1 : 2;
  }
  return at;
}
