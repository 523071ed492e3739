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
  /** Class that colours it: an IRI, or a name of `KINDS`. */
  kind: string;
  /** Number that the node's size stands for; 0 without one. */
  weight: number;
}

export interface GraphEdge {
  source: GraphNode;
  target: GraphNode;
  /** IRIs, or texts that are shown as they are. */
  names: Set<string>;
  /** Number that its width stands for; 0 without one. */
  weight: number;
}

/** Kinds of nodes that are no class. */
export const KINDS = { none: "", literal: " literal", blank: " blank" } as const;

export const isClass = (kind: string) => /^\S/.test(kind);

/** Nodes that a drawing has at most. */
export const MOST_NODES = 20_000;
/** Steps that can be undone. */
const MOST_STEPS = 200;

interface Step {
  what: string;
  undo: () => void;
}

/** A term as the key of its node: whole texts are told apart even where the terms have only their beginnings. */
function keyOf(term: Term): string {
  return written(term) + ("hash" in term ? term.hash : "");
}

/** What precedes the key of a triple's object: each literal is a node of its own next to its subject, so equal numbers connect nothing. */
function prefixOf([s, p, o]: Triple): string {
  return o.type === "literal" ? `${keyOf(s)} ${p.value} ` : "";
}

export class GraphModel {
  readonly nodes = new Map<string, GraphNode>();
  readonly edges = new Map<string, GraphEdge>();
  /** Classes that are not drawn. */
  readonly hiddenKinds = new Set<string>();
  /** How often a triple was not added since there were too many nodes. */
  left = 0;
  /** Triples of rdf:type that are drawn as colours and not as edges. */
  readonly types = new Map<string, Triple>();
  private steps: Step[] = [];
  /** What undoes each change of the step that is being made. */
  private batch: (() => void)[] | undefined;

  constructor(private most = MOST_NODES) {}

  /** Adds triples; with `colours`, the class of a resource becomes its colour and no edge. */
  add(triples: Iterable<Triple>, colours = false): void {
    for (const [s, p, o] of triples) {
      if (colours && p.value === RDF_TYPE && s.type !== "literal" && o.type === "iri") {
        const node = this.node(s);
        if (!node) this.left++;
        else {
          if (node.kind === KINDS.none) {
            node.kind = o.value;
            this.batch?.push(() => (node.kind = KINDS.none));
          }
          const key = `${node.key} ${o.value}`;
          if (!this.types.has(key)) this.batch?.push(() => this.types.delete(key));
          this.types.set(key, [s, p, o]);
        }
        continue;
      }
      const source = this.node(s);
      const target = source && this.node(o, prefixOf([s, p, o]));
      if (!source || !target) {
        this.left++;
        continue;
      }
      this.edge(source, target, p.value);
    }
  }

  /** Draws classes as nodes if there are no other edges. */
  drawTypes(): void {
    if (this.edges.size > 0) return;
    this.add(this.types.values());
    this.types.clear();
  }

  /** Adds triples as one step that can be undone. */
  addAsStep(what: string, triples: Triple[], colours: boolean): void {
    const batch: (() => void)[] = (this.batch = []);
    this.add(triples, colours);
    this.batch = undefined;
    if (batch.length > 0) this.step(what, () => batch.reverse().forEach((undo) => undo()));
  }

  /** Whether an edge stands for a triple. */
  has(triple: Triple): boolean {
    const [s, p, o] = triple;
    return this.edges.get(`${keyOf(s)}\n${prefixOf(triple)}${keyOf(o)}`)?.names.has(p.value) === true;
  }

  /** A node of a term, new if there is none and there is room. */
  node(term: Term, before = ""): GraphNode | undefined {
    const key = before + keyOf(term);
    const found = this.nodes.get(key);
    if (found) return found;
    if (this.nodes.size >= this.most) return undefined;
    const kind = term.type === "literal" || term.type === "triple" ? KINDS.literal : term.type === "blank" ? KINDS.blank : KINDS.none;
    const made: GraphNode = { key, term, x: NaN, y: NaN, toX: NaN, toY: NaN, degree: 0, hidden: false, pinned: false, kind, weight: 0 };
    this.nodes.set(key, made);
    this.batch?.push(() => this.nodes.delete(key));
    return made;
  }

  edge(source: GraphNode, target: GraphNode, name: string, weight = 0): GraphEdge {
    const key = `${source.key}\n${target.key}`;
    let edge = this.edges.get(key);
    if (!edge) {
      edge = { source, target, names: new Set(), weight: 0 };
      this.edges.set(key, edge);
      const count = (by: number) => {
        if (source === target) return;
        source.degree += by;
        target.degree += by;
      };
      count(1);
      this.batch?.push(() => {
        this.edges.delete(key);
        count(-1);
      });
    }
    const { names } = edge;
    if (!names.has(name)) this.batch?.push(() => names.delete(name));
    names.add(name);
    edge.weight += weight;
    return edge;
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

  /** The name of the step that `undo` would undo. */
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
