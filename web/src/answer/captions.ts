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

/** Boxes by the cells of a grid that they touch, so that only what is near is compared. */
class Grid {
  private cells = new Map<string, Box[]>();

  private touched({ x, y, width, height }: Box): string[] {
    const keys: string[] = [];
    for (let i = Math.floor((x - width / 2) / CELL); i <= Math.floor((x + width / 2) / CELL); i++) {
      for (let j = Math.floor((y - height / 2) / CELL); j <= Math.floor((y + height / 2) / CELL); j++) keys.push(`${i} ${j}`);
    }
    return keys;
  }

  add(box: Box): void {
    for (const key of this.touched(box)) {
      const cell = this.cells.get(key);
      if (cell) cell.push(box);
      else this.cells.set(key, [box]);
    }
  }

  free(box: Box): boolean {
    return this.touched(box).every((key) => (this.cells.get(key) ?? []).every((other) => !overlap(box, other)));
  }
}

/** Side of a grid's cell: about the width of a caption. */
const CELL = 80;

/** The first place of each caption that is free; `undefined` for one that has none. `taken` is where dots are. */
export function arranged(captions: Caption[], taken: Box[]): ({ x: number; y: number } | undefined)[] {
  const grid = new Grid();
  for (const box of taken) grid.add(box);
  return captions.map(({ places, width, height }) => {
    const free = places.find(({ x, y }) => grid.free({ x, y, width, height }));
    if (free) grid.add({ ...free, width, height });
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
