// Pointers on a drawing: a drag moves it or one of its nodes, two fingers or Ctrl and the wheel change its scale.

import type { GraphNode } from "./model.ts";

interface Handlers {
  nodeAt(x: number, y: number): GraphNode | undefined;
  pan(dx: number, dy: number): void;
  zoom(factor: number, x: number, y: number): void;
  /** A node is moved to a place in pixels; `end` where it is let go. */
  drag(node: GraphNode, x: number, y: number, end: boolean): void;
  click(node: GraphNode | undefined): void;
  open(node: GraphNode): void;
  hover(node: GraphNode | undefined): void;
}

/** Pixels that a pointer moves before it is a drag. */
const STILL = 4;

export function follow(canvas: HTMLCanvasElement, on: Handlers): void {
  const down = new Map<number, { x: number; y: number }>();
  let node: GraphNode | undefined;
  let moved = false;
  let start = { x: 0, y: 0 };
  const place = (event: MouseEvent) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    const at = place(event);
    if (down.size === 0) [start, moved, node] = [at, false, on.nodeAt(at.x, at.y)];
    down.set(event.pointerId, at);
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = place(event);
    const before = down.get(event.pointerId);
    if (!before) {
      if (down.size === 0) on.hover(on.nodeAt(at.x, at.y));
      return;
    }
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    down.set(event.pointerId, at);
    if (other) {
      moved = true;
      const distance = (p: { x: number; y: number }) => Math.max(10, Math.hypot(p.x - other.x, p.y - other.y));
      on.zoom(distance(at) / distance(before), (at.x + other.x) / 2, (at.y + other.y) / 2);
      return;
    }
    if (!moved && Math.hypot(at.x - start.x, at.y - start.y) < STILL) return;
    moved = true;
    if (node) on.drag(node, at.x, at.y, false);
    else on.pan(at.x - before.x, at.y - before.y);
  });
  const up = (event: PointerEvent) => {
    if (!down.delete(event.pointerId) || down.size > 0) return;
    const at = place(event);
    if (moved && node) on.drag(node, at.x, at.y, true);
    else if (!moved && event.type === "pointerup") on.click(node);
    node = undefined;
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => down.size === 0 && on.hover(undefined));
  canvas.addEventListener("dblclick", (event) => {
    const at = place(event);
    const found = on.nodeAt(at.x, at.y);
    if (found) on.open(found);
  });
  canvas.addEventListener("wheel", (event) => {
    // The wheel alone moves the page.
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const at = place(event);
    on.zoom(Math.exp(-Math.max(-100, Math.min(100, event.deltaY)) / 250), at.x, at.y);
  }, { passive: false });
}
