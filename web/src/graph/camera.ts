// Which part of a drawing is seen, and how large.

import type { GraphNode } from "./model.ts";
import { pixels, type Scene, toScreen } from "./paint.ts";

/** Fits the whole drawing into the view. */
export function fit(scene: Scene): void {
  let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { x, y } of scene.nodes) {
    if (x < left) left = x;
    if (x > right) right = x;
    if (y < top) top = y;
    if (y > bottom) bottom = y;
  }
  if (!Number.isFinite(left + right + top + bottom)) return;
  // A wide drawing has its legend open at its left.
  const legend = scene.width < 900 ? 0 : 150;
  const [w, h] = [Math.max(50, scene.width - legend - 140), Math.max(50, scene.height - 70)];
  const scale = Math.min(Math.max(1.5, scene.width / 900), w / Math.max(1, right - left), h / Math.max(1, bottom - top));
  scene.view = { scale, x: (scene.width + legend) / 2 - ((left + right) / 2) * scale, y: scene.height / 2 - ((top + bottom) / 2) * scale };
}

/** Changes the scale; what is at a place in pixels stays there. */
export function zoom({ view }: Scene, factor: number, x: number, y: number): void {
  const scale = Math.min(8, Math.max(0.01, view.scale * factor));
  view.x = x - ((x - view.x) * scale) / view.scale;
  view.y = y - ((y - view.y) * scale) / view.scale;
  view.scale = scale;
}

/** Brings a node into the middle, large enough to be read. */
export function centre({ view, width, height }: Scene, node: GraphNode): void {
  view.scale = Math.max(view.scale, 0.6);
  view.x = width / 2 - node.x * view.scale;
  view.y = height / 2 - node.y * view.scale;
}

/** True if a node is at the rim or beyond. */
export function isAtRim({ view, width, height }: Scene, node: GraphNode): boolean {
  const [x, y] = toScreen(node, view);
  return x < 20 || y < 20 || x > width - 20 || y > height - 20;
}

/** The node at a place in pixels, or near it. */
export function nodeAt(scene: Scene, x: number, y: number): GraphNode | undefined {
  let best: GraphNode | undefined;
  let least = Infinity;
  for (const node of scene.nodes) {
    const [nx, ny] = toScreen(node, scene.view);
    const distance = Math.hypot(nx - x, ny - y) - pixels(node, scene);
    if (distance < least) [best, least] = [node, distance];
  }
  return least < 8 ? best : undefined;
}

/** The node that comes next in a direction; without one to begin at, the one in the middle. */
export function next({ nodes, view, width, height }: Scene, from: GraphNode | undefined, dx: number, dy: number): GraphNode | undefined {
  const [x0, y0] = from ? toScreen(from, view) : [width / 2, height / 2];
  let best: GraphNode | undefined;
  let least = Infinity;
  for (const node of nodes) {
    if (node === from) continue;
    const [x, y] = toScreen(node, view);
    const ahead = (x - x0) * dx + (y - y0) * dy;
    const aside = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
    if (from && ahead <= 0) continue;
    const cost = from ? ahead + 2 * aside : Math.hypot(x - x0, y - y0);
    if (cost < least) [best, least] = [node, cost];
  }
  return best;
}
