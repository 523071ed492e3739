// The nodes and edges of a drawing, what is hidden or pinned, and how to undo each change. No element of the page.

import { RDF_TYPE, type Term, written } from "../rdf/term.ts";

export type Triple = [Term, Term, Term];

export interface GraphNode {
  key: string;
  term: Term;
  /** Place in the drawing's own units; NaN until the layout has given one. */
  x: number;
  y: number;
  /** Where the layout wants it: `x` and `y` follow. */
  toX: number;
  toY: number;
  /** Edges, without self-loops. */
  degree: number;
  hidden: boolean;
  pinned: boolean;
  expanded: boolean;
  /** Class that colours it: an IRI, or a name of `KINDS`. */
  kind: string;
  /** Number that the node's size stands for; 0 without one. */
  weight: number;
}

export interface GraphEdge {
  source: GraphNode;
  target: GraphNode;
  /** Names of the edge with how often each was added: IRIs, or texts that are shown as they are. */
  names: Map<string, number>;
  /** Number that its width stands for; 0 without one. */
  weight: number;
}

/** Kinds of nodes that are no class. */
export const KINDS = { none: "", literal: " literal", blank: " blank" } as const;

/** Nodes that a drawing has at most. */
export const MOST_NODES = 20_000;
/** Steps that can be undone. */
const MOST_STEPS = 200;

interface Step {
  what: string;
  undo: () => void;
}

export class GraphModel {
  readonly nodes = new Map<string, GraphNode>();
  readonly edges = new Map<string, GraphEdge>();
  /** Classes that are not drawn. */
  readonly hiddenKinds = new Set<string>();
  /** Triples that found no room. */
  left = 0;
  /** Triples of rdf:type that are seen as colours only. */
  asColours = 0;
  private types: Triple[] = [];
  private steps: Step[] = [];
  private batch: { nodes: string[]; edges: string[] } | undefined;

  constructor(private most = MOST_NODES) {}

  /** Adds triples; with `colours`, what a resource is becomes its colour and no edge. */
  add(triples: Iterable<Triple>, colours = false): void {
    for (const [s, p, o] of triples) {
      if (colours && p.value === RDF_TYPE && s.type !== "literal" && o.type === "iri") {
        const node = this.node(s);
        if (!node) this.left++;
        else {
          if (node.kind === KINDS.none) node.kind = o.value;
          this.asColours++;
          this.types.push([s, p, o]);
        }
        continue;
      }
      const source = this.node(s);
      // Each literal is a node of its own next to its subject, so equal numbers do not tie a graph together.
      const target = source && this.node(o, o.type === "literal" ? `${source.key} ${p.value} ` : "");
      if (!source || !target) {
        this.left++;
        continue;
      }
      this.edge(source, target, p.value);
    }
  }

  /** Where nothing but classes was said, they are drawn after all. */
  drawTypes(): void {
    if (this.edges.size > 0) return;
    this.asColours = 0;
    this.add(this.types.splice(0));
  }

  /** Adds triples as one step that can be undone. */
  addAsStep(what: string, triples: Triple[], colours: boolean): void {
    const batch = { nodes: [] as string[], edges: [] as string[] };
    const { left, asColours } = this;
    this.batch = batch;
    this.add(triples, colours);
    this.batch = undefined;
    if (batch.nodes.length + batch.edges.length > 0) {
      this.step(what, () => {
        for (const key of batch.edges) this.removeEdge(key);
        for (const key of batch.nodes) this.nodes.delete(key);
        [this.left, this.asColours] = [left, asColours];
      });
    }
  }

  /** A node of a term, new if there is none and there is room. */
  node(term: Term, before = ""): GraphNode | undefined {
    const key = before + written(term);
    const found = this.nodes.get(key);
    if (found) return found;
    if (this.nodes.size >= this.most) return undefined;
    const kind = term.type === "literal" || term.type === "triple" ? KINDS.literal : term.type === "blank" ? KINDS.blank : KINDS.none;
    const made: GraphNode = { key, term, x: NaN, y: NaN, toX: NaN, toY: NaN, degree: 0, hidden: false, pinned: false, expanded: false, kind, weight: 0 };
    this.nodes.set(key, made);
    this.batch?.nodes.push(key);
    return made;
  }

  edge(source: GraphNode, target: GraphNode, name: string, weight = 0): GraphEdge {
    const key = `${source.key}\n${target.key}`;
    let edge = this.edges.get(key);
    if (!edge) {
      edge = { source, target, names: new Map(), weight: 0 };
      this.edges.set(key, edge);
      this.batch?.edges.push(key);
      if (source !== target) {
        source.degree++;
        target.degree++;
      }
    }
    edge.names.set(name, (edge.names.get(name) ?? 0) + 1);
    edge.weight += weight;
    return edge;
  }

  private removeEdge(key: string): void {
    const edge = this.edges.get(key);
    if (!edge) return;
    this.edges.delete(key);
    if (edge.source === edge.target) return;
    edge.source.degree--;
    edge.target.degree--;
  }

  seen(node: GraphNode): boolean {
    return !node.hidden && !this.hiddenKinds.has(node.kind);
  }

  /** What is drawn. */
  shown(): { nodes: GraphNode[]; edges: GraphEdge[] } {
    const nodes = [...this.nodes.values()].filter((node) => this.seen(node));
    const edges = [...this.edges.values()].filter(({ source, target }) => this.seen(source) && this.seen(target));
    return { nodes, edges };
  }

  /** Hides nodes. */
  hide(some: GraphNode[]): void {
    const changed = some.filter(({ hidden }) => !hidden);
    for (const node of changed) node.hidden = true;
    this.step(changed.length === 1 ? "hiding a node" : "hiding nodes", () => changed.forEach((node) => (node.hidden = false)));
  }

  /** Shows all that was hidden, one by one or by class. */
  showAll(): void {
    const nodes = [...this.nodes.values()].filter(({ hidden }) => hidden);
    const kinds = [...this.hiddenKinds];
    for (const node of nodes) node.hidden = false;
    this.hiddenKinds.clear();
    this.step("showing what was hidden", () => {
      for (const node of nodes) node.hidden = true;
      for (const kind of kinds) this.hiddenKinds.add(kind);
    });
  }

  toggleKind(kind: string): void {
    const flip = () => void (this.hiddenKinds.delete(kind) || this.hiddenKinds.add(kind));
    flip();
    this.step("a class's visibility", flip);
  }

  pin(node: GraphNode, to: boolean, from: { x: number; y: number } = node): void {
    const { x, y } = from;
    const { pinned } = node;
    node.pinned = to;
    this.step(to ? "pinning" : "unpinning", () => {
      node.pinned = pinned;
      [node.x, node.y, node.toX, node.toY] = [x, y, x, y];
    });
  }

  private step(what: string, undo: () => void): void {
    this.steps.push({ what, undo });
    if (this.steps.length > MOST_STEPS) this.steps.shift();
  }

  /** What would be undone next. */
  get undoable(): string | undefined {
    return this.steps.at(-1)?.what;
  }

  undo(): string | undefined {
    const step = this.steps.pop();
    step?.undo();
    return step?.what;
  }

  /** Neighbours of a node that are drawn, and the node itself. */
  around(node: GraphNode): Set<GraphNode> {
    const found = new Set([node]);
    for (const { source, target } of this.edges.values()) {
      if (source === node && this.seen(target)) found.add(target);
      if (target === node && this.seen(source)) found.add(source);
    }
    return found;
  }

  /** How many edges of a predicate lead from the node, or to it. */
  known(node: GraphNode, predicate: string, out: boolean): number {
    let n = 0;
    for (const { source, target, names } of this.edges.values()) if ((out ? source : target) === node && names.has(predicate)) n++;
    return n;
  }
}
