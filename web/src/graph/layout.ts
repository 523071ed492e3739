// The layout of a drawing, computed in the worker: the page's own thread only draws. Slices of a few milliseconds, and an end that
// time sets: whatever the size, the layout is done after its budget.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type Simulation, type SimulationLinkDatum, type SimulationNodeDatum } from "d3-force";

export type LayoutAsk =
  /** Positions as x and y in turn, NaN for nodes without a place; edges as pairs of indices. */
  | { type: "layout"; round: number; positions: Float32Array; edges: Uint32Array; pinned: Uint8Array; radii: Float32Array; budget: number; energy: number }
  /** A node is moved to a place and stays there; the layout goes on while `hold` is true. */
  | { type: "drag"; round: number; node: number; x: number; y: number; hold: boolean };

export interface LayoutTold {
  type: "placed";
  round: number;
  positions: Float32Array;
  done: boolean;
}

interface Body extends SimulationNodeDatum {
  index: number;
}

/** Nodes from which on the layout is computed coarsely. */
const LARGE = 600;
const HUGE = 2500;
/** Most steps of a layout; less where its time is over before. */
const STEPS = 300;
/** Milliseconds of a slice, after which the positions are sent. */
const SLICE = 16;
/** Angle between successive points of a sunflower spiral, in radians. */
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/** Part of the energy that is left at the end. */
const COLD = 0.002;

/** Distance at which edges hold their nodes, by the number of nodes. */
export function spacing(nodes: number): number {
  return nodes > HUGE ? 34 : nodes > LARGE ? 50 : nodes > 80 ? 80 : 130;
}

/** Gives each node without a place one next to a neighbour, or far from the others: the same edges give the same drawing. */
export function firstPlaces(positions: Float32Array, edges: Uint32Array, gap: number): void {
  const n = positions.length / 2;
  const degree = new Uint32Array(n + 1);
  for (const end of edges) degree[end] = (degree[end] ?? 0) + 1;
  const starts = new Uint32Array(n + 1);
  for (let i = 0; i < n; i++) starts[i + 1] = (starts[i] ?? 0) + (degree[i] ?? 0);
  const filled = starts.slice();
  const ends = new Uint32Array(edges.length);
  for (let e = 0; e < edges.length; e += 2) {
    const [a, b] = [edges[e] ?? 0, edges[e + 1] ?? 0];
    for (const [one, other] of [[a, b], [b, a]] as const) {
      const at = filled[one] ?? 0;
      ends[at] = other;
      filled[one] = at + 1;
    }
  }
  const has = (i: number) => !Number.isNaN(positions[2 * i]);
  const set = (i: number, x: number, y: number) => {
    positions[2 * i] = x;
    positions[2 * i + 1] = y;
  };
  const queue: number[] = [];
  const spread = (from: number) => {
    const [x, y] = [positions[2 * from] ?? 0, positions[2 * from + 1] ?? 0];
    const out = Math.atan2(y, x);
    let k = 0;
    for (let at = starts[from] ?? 0; at < (starts[from + 1] ?? 0); at++) {
      const to = ends[at] ?? 0;
      if (has(to)) continue;
      const radius = gap * (0.6 + 0.35 * Math.sqrt(k));
      set(to, x + radius * Math.cos(out + GOLDEN_ANGLE * k), y + radius * Math.sin(out + GOLDEN_ANGLE * k));
      k++;
      queue.push(to);
    }
  };
  const drain = () => {
    for (let i = 0; i < queue.length; i++) spread(queue[i] ?? 0);
    queue.length = 0;
  };
  for (let i = 0; i < n; i++) if (has(i)) queue.push(i);
  drain();
  // Hubs first: what hangs on them follows.
  const order = Array.from({ length: n }, (_, i) => i).filter((i) => !has(i)).sort((a, b) => (degree[b] ?? 0) - (degree[a] ?? 0));
  let roots = 0;
  for (const root of order) {
    if (has(root)) continue;
    const radius = gap * 1.2 * Math.sqrt(roots);
    set(root, radius * Math.cos(GOLDEN_ANGLE * roots), radius * Math.sin(GOLDEN_ANGLE * roots));
    roots += (degree[root] ?? 0) > 0 ? 4 : 1;
    queue.push(root);
    drain();
  }
}

/** The forces for a number of nodes. */
export function simulationOf(bodies: Body[], edges: Uint32Array, radii: Float32Array): Simulation<Body, SimulationLinkDatum<Body>> {
  const n = bodies.length;
  const gap = spacing(n);
  const links = Array.from({ length: edges.length / 2 }, (_, i): SimulationLinkDatum<Body> => ({ source: edges[2 * i] ?? 0, target: edges[2 * i + 1] ?? 0 }));
  const simulation = forceSimulation<Body>(bodies)
    .stop()
    .alphaDecay(0)
    .force("link", forceLink<Body, SimulationLinkDatum<Body>>(links.filter(({ source, target }) => source !== target)).distance(gap))
    .force("charge", forceManyBody<Body>().strength(-gap * (n > LARGE ? 1.6 : 2.6)).theta(n > HUGE ? 1.4 : n > LARGE ? 1.1 : 0.9).distanceMax(gap * (n > LARGE ? 14 : 20)))
    // Keeps unconnected parts near one another; the weaker force along x fills wide windows.
    .force("x", forceX<Body>(0).strength(n > LARGE ? 0.03 : 0.045))
    .force("y", forceY<Body>(0).strength(n > LARGE ? 0.05 : 0.1));
  if (n <= LARGE) simulation.force("collide", forceCollide<Body>((body) => (radii[body.index] ?? 8) + gap * 0.17));
  return simulation;
}

export class Layout {
  private bodies: Body[] = [];
  private simulation: Simulation<Body, SimulationLinkDatum<Body>> | undefined;
  private round = -1;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private begun = 0;
  private steps = 0;
  private budget = 0;
  private energy = 1;
  private held = false;

  constructor(private tell: (told: LayoutTold, transfer: Transferable[]) => void) {}

  take(ask: LayoutAsk): void {
    if (ask.type === "layout") this.begin(ask);
    else if (ask.round === this.round) this.drag(ask);
  }

  private begin({ round, positions, edges, pinned, radii, budget, energy }: Extract<LayoutAsk, { type: "layout" }>): void {
    clearTimeout(this.timer);
    firstPlaces(positions, edges, spacing(positions.length / 2));
    this.bodies = Array.from({ length: positions.length / 2 }, (_, index): Body => {
      const [x, y] = [positions[2 * index] ?? 0, positions[2 * index + 1] ?? 0];
      return pinned[index] ? { index, x, y, fx: x, fy: y } : { index, x, y };
    });
    this.simulation = simulationOf(this.bodies, edges, radii);
    [this.round, this.budget, this.energy, this.held] = [round, budget, energy, false];
    this.start();
  }

  private start(): void {
    clearTimeout(this.timer);
    this.begun = performance.now();
    this.steps = 0;
    this.slice();
  }

  /** Computes some steps, then returns so that the worker receives messages. */
  private slice(): void {
    const { simulation } = this;
    if (!simulation) return;
    const until = performance.now() + SLICE;
    let done = false;
    do {
      const part = this.held ? 0.3 : Math.min(1, Math.max(this.steps / STEPS, (performance.now() - this.begun) / this.budget));
      simulation.alpha(this.energy * COLD ** part).tick();
      this.steps++;
      done = !this.held && part >= 1;
    } while (!done && performance.now() < until);
    this.send(done);
    if (!done) this.timer = setTimeout(() => this.slice(), this.held ? 8 : 0);
  }

  private drag({ node, x, y, hold }: Extract<LayoutAsk, { type: "drag" }>): void {
    const body = this.bodies[node];
    if (!body) return;
    [body.fx, body.fy] = [x, y];
    const was = this.held;
    this.held = hold;
    this.energy = 0.3;
    if (!was || !hold) this.start();
  }

  private send(done: boolean): void {
    const positions = new Float32Array(this.bodies.length * 2);
    this.bodies.forEach(({ x = 0, y = 0 }, i) => {
      positions[2 * i] = x;
      positions[2 * i + 1] = y;
    });
    this.tell({ type: "placed", round: this.round, positions, done }, [positions.buffer]);
  }
}
