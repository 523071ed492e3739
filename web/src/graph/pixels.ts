// The nodes and edges of a large drawing, written into the canvas's pixels: ten thousand lines take a few milliseconds, which no
// path of a canvas reaches. Lines are one pixel wide, without arrows; where few are in sight, paint.ts draws them finely.

import { pixels, type Scene, toScreen } from "./paint.ts";

/** Nodes and edges in sight from which on pixels are written. */
const MANY_NODES = 1500;
const MANY_EDGES = 2000;

/** True if there is more in sight than paths can draw while it moves. */
export function isCrowded({ nodes, edges, view, width, height }: Scene): boolean {
  if (nodes.length <= MANY_NODES && edges.length <= MANY_EDGES) return false;
  const inside = (node: { x: number; y: number }) => {
    const [x, y] = toScreen(node, view);
    return x > 0 && y > 0 && x < width && y < height;
  };
  let n = 0;
  for (const node of nodes) if (inside(node) && ++n > MANY_NODES) return true;
  n = 0;
  for (const { source, target } of edges) if ((inside(source) || inside(target)) && ++n > MANY_EDGES) return true;
  return false;
}

let probe: CanvasRenderingContext2D | null | undefined;
const known = new Map<string, number>();

/** A colour of the style sheet as the number of a pixel. */
function number(colour: string): number {
  const found = known.get(colour);
  if (found !== undefined) return found;
  probe ??= Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  if (!probe) return 0xff808080;
  probe.fillStyle = colour;
  probe.fillRect(0, 0, 1, 1);
  const value = new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0] ?? 0;
  if (known.size > 100) known.clear();
  known.set(colour, value);
  return value;
}

/** A part of one colour on another. */
function mixed(over: number, under: number, part: number): number {
  let made = 0xff000000;
  for (const shift of [0, 8, 16]) made |= Math.round(((over >> shift) & 255) * part + ((under >> shift) & 255) * (1 - part)) << shift;
  return made >>> 0;
}

export class PixelLayer {
  private image: ImageData | undefined;
  private buffer = new Uint32Array(0);
  /** How many lines cross each pixel, up to the shades that there are. */
  private hits = new Uint8Array(0);

  /** Draws edges and nodes over all of the canvas. */
  draw(context: CanvasRenderingContext2D, scene: Scene, ratio: number): void {
    const { width, height } = context.canvas;
    if (width === 0 || height === 0) return;
    if (this.image?.width !== width || this.image.height !== height) {
      this.image = context.createImageData(width, height);
      this.buffer = new Uint32Array(this.image.data.buffer);
      this.hits = new Uint8Array(width * height);
    }
    const paper = number(scene.palette.paper);
    this.buffer.fill(paper);
    this.edges(scene, ratio, width, height, paper);
    this.nodes(scene, ratio, width, height, paper);
    context.putImageData(this.image, 0, 0);
  }

  private edges(scene: Scene, ratio: number, width: number, height: number, paper: number): void {
    const { buffer, hits } = this;
    const { scale, x: left, y: top } = scene.view;
    const soft = number(scene.palette.soft);
    const part = scene.lit ? 0.12 : 0.3;
    const shades = Uint32Array.from([0, 1, 2, 3, 4, 5], (k) => mixed(soft, paper, 1 - (1 - part) ** k));
    hits.fill(0);
    for (const { source, target } of scene.edges) {
      let [x, y] = [(source.x * scale + left) * ratio, (source.y * scale + top) * ratio];
      const [x2, y2] = [(target.x * scale + left) * ratio, (target.y * scale + top) * ratio];
      if ((x < 0 && x2 < 0) || (y < 0 && y2 < 0) || (x > width && x2 > width) || (y > height && y2 > height)) continue;
      const steps = Math.min(20_000, Math.ceil(Math.max(Math.abs(x2 - x), Math.abs(y2 - y))) || 1);
      const [dx, dy] = [(x2 - x) / steps, (y2 - y) / steps];
      for (let i = 0; i <= steps; i++, x += dx, y += dy) {
        if (x < 0 || y < 0 || x >= width || y >= height) continue;
        const at = (y | 0) * width + (x | 0);
        const times = (hits[at] as number) < 5 ? ++(hits[at] as number) : 5;
        buffer[at] = shades[times] as number;
      }
    }
  }

  private nodes(scene: Scene, ratio: number, width: number, height: number, paper: number): void {
    const { buffer } = this;
    const { lit, view } = scene;
    const whole = new Map<string, number>();
    const dim = new Map<string, number>();
    const order = lit ? [...scene.nodes.filter((n) => !lit.has(n)), ...scene.nodes.filter((n) => lit.has(n))] : scene.nodes;
    for (const node of order) {
      const r = pixels(node, scene) * ratio;
      const [x, y] = [(node.x * view.scale + view.x) * ratio, (node.y * view.scale + view.y) * ratio];
      if (x < -r || y < -r || x > width + r || y > height + r) continue;
      const key = scene.colour(node);
      if (!whole.has(key)) {
        whole.set(key, number(key));
        dim.set(key, mixed(number(key), paper, 0.25));
      }
      const colour = (lit && !lit.has(node) ? dim : whole).get(key) ?? paper;
      for (let row = Math.max(0, Math.ceil(y - r)); row <= Math.min(height - 1, y + r); row++) {
        const half = Math.sqrt(Math.max(0, r * r - (row - y) ** 2));
        const from = Math.max(0, Math.round(x - half));
        const to = Math.min(width, Math.max(from + 1, Math.round(x + half)));
        for (let at = row * width + from; at < row * width + to; at++) buffer[at] = colour;
      }
    }
  }
}
