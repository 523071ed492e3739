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
