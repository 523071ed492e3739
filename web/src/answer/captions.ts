// Places for the captions of a drawing, so that none lies on another.

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Caption {
  /** Where it may stand, the best place first: the middle of its line. */
  places: { x: number; y: number }[];
  width: number;
  height: number;
}

function overlap(a: Box, b: Box): boolean {
  return Math.abs(a.x - b.x) * 2 < a.width + b.width && Math.abs(a.y - b.y) * 2 < a.height + b.height;
}

/** The first place of each caption that is free; `undefined` for one that has none. `taken` is where dots are. */
export function arranged(captions: Caption[], taken: Box[]): ({ x: number; y: number } | undefined)[] {
  const boxes = [...taken];
  return captions.map(({ places, width, height }) => {
    const free = places.find(({ x, y }) => boxes.every((box) => !overlap({ x, y, width, height }, box)));
    if (free) boxes.push({ ...free, width, height });
    return free;
  });
}

let canvas: CanvasRenderingContext2D | null | undefined;
const widths = new Map<string, number>();
/** Widths that are kept; beyond them, all are measured again. */
const MOST_WIDTHS = 4000;

/** Width of a text in the page's letters of this size, in the same units. */
export function widthOf(text: string, size: number, family: "--sans" | "--mono" = "--sans"): number {
  const key = `${size} ${family} ${text}`;
  const found = widths.get(key);
  if (found !== undefined) return found;
  canvas ??= document.createElement("canvas").getContext("2d");
  if (!canvas) return text.length * size * 0.6;
  canvas.font = `${size}px ${getComputedStyle(document.documentElement).getPropertyValue(family)}`;
  const { width } = canvas.measureText(text);
  if (widths.size >= MOST_WIDTHS) widths.clear();
  widths.set(key, width);
  return width;
}
