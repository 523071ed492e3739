// Sends graphs to the layout's worker, and the places that it computes to the nodes.

import { nextWorker } from "../answer/answer.ts";
import type { LayoutAsk, LayoutTold } from "./layout.ts";
import type { GraphEdge, GraphNode } from "./model.ts";
import { radiusOf } from "./paint.ts";

export class LayoutRunner {
  /** Whether the layout has ended. */
  settled = true;
  private worker: Worker | undefined;
  private round = 0;
  /** The nodes of the layout, in its order. */
  private order: GraphNode[] = [];

  /** With `still`, nodes are drawn at their final places only. `changed` is called when their places change. */
  constructor(private still: boolean, private changed: () => void) {}

  begin(nodes: GraphNode[], edges: GraphEdge[], heaviest: number, budget: number, energy: number): void {
    this.settled = nodes.length === 0;
    this.order = nodes;
    this.round++;
    if (this.settled) return this.changed();
    if (!this.worker) {
      this.worker = nextWorker();
      this.worker.onmessage = ({ data }: MessageEvent<LayoutTold>) => this.placed(data);
      // Without the worker, nodes keep the places that they have.
      this.worker.onerror = () => this.unplaced();
    }
    const index = new Map(nodes.map((node, i) => [node, i]));
    const positions = new Float32Array(nodes.length * 2);
    nodes.forEach(({ toX, toY }, i) => positions.set([toX, toY], 2 * i));
    const ends = new Uint32Array(edges.length * 2);
    edges.forEach(({ source, target }, i) => ends.set([index.get(source) ?? 0, index.get(target) ?? 0], 2 * i));
    this.send({ type: "layout", round: this.round, positions, edges: ends, pinned: Uint8Array.from(nodes, (n) => Number(n.pinned)), radii: Float32Array.from(nodes, (n) => radiusOf(n, heaviest)), budget: this.still ? budget / 2 : budget, energy });
  }

  /** A node is held at a place, or let go there; the others make room. */
  drag(node: GraphNode, x: number, y: number, hold: boolean): void {
    this.send({ type: "drag", round: this.round, node: this.order.indexOf(node), x, y, hold });
  }

  stop(): void {
    this.worker?.terminate();
    this.worker = undefined;
  }

  private send(ask: LayoutAsk): void {
    this.worker?.postMessage(ask);
  }

  private placed({ round, positions, done }: LayoutTold): void {
    if (round !== this.round) return;
    this.settled = done;
    if (this.still && !done && this.order.every(({ x }) => !Number.isNaN(x))) return;
    this.order.forEach((node, i) => {
      [node.toX, node.toY] = [positions[2 * i] ?? 0, positions[2 * i + 1] ?? 0];
      if (Number.isNaN(node.x) || this.still) [node.x, node.y] = [node.toX, node.toY];
    });
    this.changed();
  }

  private unplaced(): void {
    this.order.forEach((node, i) => {
      if (Number.isNaN(node.toX)) [node.toX, node.toY] = [140 * Math.sqrt(i) * Math.cos(i * 2.4), 140 * Math.sqrt(i) * Math.sin(i * 2.4)];
      [node.x, node.y] = [node.toX, node.toY];
    });
    this.settled = true;
    this.changed();
  }
}
