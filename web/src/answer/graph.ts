// Triples as a picture: what they name as nodes, coloured by class, their predicates as edges.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationLinkDatum, type SimulationNodeDatum } from "d3-force";
import { button, h, svg } from "../dom.ts";
import { isShared, label, labelsOn } from "../labels.ts";
import { RDF_TYPE, type Term, visible, written } from "../rdf/term.ts";
import { iriLink, nameOf, prefixes, resourceHash } from "../show.ts";
import { arranged, type Caption, widthOf } from "./captions.ts";
import { classesOf, type Triple } from "./neighbours.ts";

export type { Triple } from "./neighbours.ts";

interface Node extends SimulationNodeDatum {
  key: string;
  term: Term;
  group: SVGGElement;
  text: SVGTextElement;
  /** Edges that it has. */
  degree: number;
  expanded: boolean;
}

/** Place of a caption along an edge: the part of the way, and how far below the line, in units of the picture. */
interface Stand {
  part: number;
  below: number;
}

interface Edge extends SimulationLinkDatum<Node> {
  source: Node;
  target: Node;
  predicates: Set<string>;
  line: SVGLineElement;
  text: SVGTextElement;
  /** Where its caption stands. */
  stand: Stand;
}

interface Options {
  /** Gives more triples around a resource. */
  expand?: (iri: string) => Promise<Triple[]>;
  /** Whether nodes are coloured by their classes. */
  colours?: boolean;
}

/** More nodes than a picture is read with. */
const MOST_NODES = 150;
/** More edges than can be read with all their names; beyond it, a node shows those of its own while it has the pointer or the focus. */
const MOST_NAMED = 20;
/** Longest name of an edge, and of a node. */
const LONGEST = 28;
const LONGEST_NAME = 32;
/** Classes that have a colour of their own. */
const COLOURS = 8;
/** Height of the picture in its own units; its width follows the page's. */
const HEIGHT = 560;
/** Sizes of the captions' letters, as in page.css. */
const NODE_TEXT = 11;
const EDGE_TEXT = 9;
/** Parts of an edge where its caption may stand, and how far below them its middle lies, the best first. */
const STANDS = [-4, 10].flatMap((below) => [0.5, 0.4, 0.6, 0.3, 0.7].map((part): Stand => ({ part, below })));
const MIDDLE: Stand = { part: 0.5, below: -4 };
/** Turn between two places of a sunflower, in radians. */
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/** Radius of a node. */
const RADIUS = 8;

export class Graph {
  readonly element: HTMLElement;
  private nodes = new Map<string, Node>();
  private edges = new Map<string, Edge>();
  /** Nodes that were given a first place, and those of them that were far from the others. */
  private placed = 0;
  private roots = 0;
  private left = 0;
  private hint = h("span");
  private note = h("p", { attrs: { role: "status" } });
  private legend = h("p", { class: "legend" });
  private lines = svg("g");
  private dots = svg("g");
  private scene = svg("g", {}, this.lines, this.dots);
  private plot = svg("svg", { class: "graph", viewBox: `-450 -280 900 ${HEIGHT}`, role: "group", "aria-label": "Graph" }, arrow(), this.scene);
  private simulation = forceSimulation<Node>([])
    .force("charge", forceManyBody().strength(-320))
    // Parts that hang together by nothing stay in sight of one another.
    .force("x", forceX(0).strength(0.045))
    .force("y", forceY(0).strength(0.1))
    .force("collide", forceCollide(30))
    .on("tick", () => this.place())
    .on("end", () => this.captions());
  private at = { x: 0, y: 0, scale: 1 };
  private width = 900;
  /** Someone moved or scaled the picture. */
  private chosen = false;
  private ticks = 0;
  /** Class of each resource, and the classes by the colours that they have. */
  private classes = new Map<string, string>();
  private coloured: string[] = [];
  private stopped = new AbortController();

  constructor(private options: Options = {}) {
    const how = options.expand ? "Click a node to add its neighbours, twice for its page." : "Click a node twice for its page.";
    this.element = h(
      "div",
      { class: "graph-box" },
      h("p", { class: "tools" }, button("+", () => this.zoom(1.25), { title: "Larger", attrs: { "aria-label": "Larger" } }), button("−", () => this.zoom(0.8), { title: "Smaller", attrs: { "aria-label": "Smaller" } }), button("All", () => { this.chosen = false; this.fit(); }, { title: "Shows all of it" }), h("span", {}, `${how} ${options.expand ? "Space adds, " : ""}Enter opens, drag moves.`, this.hint)),
      this.plot as unknown as HTMLElement,
      this.legend, this.note,
    );
    this.drags();
  }

  /** Adds triples; a picture has room for this many nodes. */
  add(triples: Triple[], focus?: string): void {
    const before = this.nodes.size;
    for (const [s, p, o] of triples) {
      // What a resource is, is seen by its colour and said in the legend.
      if (this.colours && p.value === RDF_TYPE && s.type === "iri" && o.type === "iri") {
        if (!this.classes.has(s.value)) this.classes.set(s.value, o.value);
      }
      const subject = this.node(s);
      const object = this.node(o, p);
      if (!subject || !object) {
        this.left++;
        continue;
      }
      this.start(subject, object);
      this.start(object, subject);
      const key = `${subject.key} ${object.key}`;
      const edge = this.edges.get(key) ?? this.edge(key, subject, object);
      edge.predicates.add(p.value);
      this.nameEdge(edge);
    }
    const dense = this.edges.size > MOST_NAMED;
    this.plot.classList.toggle("dense", dense);
    this.hint.textContent = dense ? " Point at a node to read its edges." : "";
    if (focus) this.nodes.get(`<${focus}>`)?.group.classList.add("focus");
    this.note.textContent = this.nodes.size === 0 ? "There are no triples to draw." : this.left > 0 ? `The drawing is limited to ${MOST_NODES} nodes: ${this.left} triples are not shown.` : "";
    this.simulation.nodes([...this.nodes.values()]);
    this.simulation.force("link", forceLink<Node, Edge>([...this.edges.values()]).distance(dense ? 150 : 130).strength(dense ? 0.25 : 0.5));
    this.simulation.alpha(0.9);
    // Someone who wants no motion gets the end of it.
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.simulation.stop().tick(still ? 300 : 200);
    this.place();
    this.fit();
    this.captions();
    if (!still) this.simulation.alpha(0.05).restart();
    if (this.nodes.size > before) void this.dress();
  }

  private get colours(): boolean {
    return this.options.colours !== false;
  }

  /** Gives the nodes their labels and the colours of their classes. */
  private async dress(): Promise<void> {
    const { signal } = this.stopped;
    const iris = [...this.nodes.values()].flatMap(({ term }) => (term.type === "iri" ? [term.value] : []));
    const labels = labelsOn() ? Promise.all(iris.map(async (iri) => [iri, await label(iri)] as const)) : Promise.resolve([]);
    if (this.colours) {
      const classes = await classesOf(iris.filter((iri) => !this.classes.has(iri)), signal);
      if (signal.aborted) return;
      for (const [iri, c] of classes) this.classes.set(iri, c);
      this.paint();
    }
    const found = await labels;
    if (signal.aborted) return;
    for (const [iri, one] of found) {
      const node = this.nodes.get(`<${iri}>`);
      if (one && node) this.nameNode(node, one.text, prefixes.shown(iri), isShared(one) ? ` (${tail(nameOf(iri))})` : "");
    }
    this.captions();
  }

  private paint(): void {
    const times = new Map<string, number>();
    for (const { term } of this.nodes.values()) {
      const c = term.type === "iri" ? this.classes.get(term.value) : undefined;
      if (c !== undefined) times.set(c, (times.get(c) ?? 0) + 1);
    }
    // A class keeps its colour when more comes.
    for (const [c] of [...times].sort((a, b) => b[1] - a[1])) if (!this.coloured.includes(c)) this.coloured.push(c);
    for (const { term, group } of this.nodes.values()) {
      const c = term.type === "iri" ? this.classes.get(term.value) : undefined;
      const at = c === undefined ? -1 : this.coloured.indexOf(c);
      if (at >= 0) group.dataset["colour"] = at < COLOURS ? String(at) : "other";
    }
    this.legend.replaceChildren(...this.coloured.slice(0, COLOURS).map((c, i) => {
      const dot = h("span", { class: "key" });
      dot.dataset["colour"] = String(i);
      return h("span", { class: "legend-item" }, dot, iriLink(c));
    }), this.coloured.length > COLOURS ? h("span", { class: "soft" }, `and ${this.coloured.length - COLOURS} more classes`) : "");
  }

  /** Makes all of it seen, unless someone has chosen what to look at. */
  private fit(): void {
    if (this.nodes.size === 0) return;
    const { clientWidth, clientHeight } = this.plot;
    if (clientWidth > 0 && clientHeight > 0) {
      this.width = (HEIGHT * clientWidth) / clientHeight;
      this.plot.setAttribute("viewBox", `${-this.width / 2} ${-HEIGHT / 2} ${this.width} ${HEIGHT}`);
    }
    if (this.chosen) return;
    const xs = [...this.nodes.values()].map((n) => n.x ?? 0);
    const ys = [...this.nodes.values()].map((n) => n.y ?? 0);
    const [left, right, top, bottom] = [Math.min(...xs) - 100, Math.max(...xs) + 100, Math.min(...ys) - 40, Math.max(...ys) + 40];
    const scale = Math.min(1.4, this.width / (right - left), HEIGHT / (bottom - top));
    this.at = { x: (-(left + right) / 2) * scale, y: (-(top + bottom) / 2) * scale, scale };
    this.look();
  }

  private node(term: Term, predicate?: Term): Node | undefined {
    // Each literal is a node of its own alongside its subject, so equal numbers do not tie a graph together.
    const key = term.type === "literal" ? `${written(term)} ${predicate?.value ?? ""}` : written(term);
    const found = this.nodes.get(key);
    if (found) return found;
    if (this.nodes.size >= MOST_NODES) return undefined;
    const whole = term.type === "iri" ? prefixes.shown(term.value) : term.type === "blank" ? "" : term.value;
    const group = svg("g", { class: `node ${term.type}`, role: "button", tabindex: 0 });
    group.append(svg("title", {}, visible(term.value.slice(0, 500))), svg("circle", { r: RADIUS }));
    const text = svg("text", { y: -12, "text-anchor": "middle" });
    group.append(text);
    this.dots.append(group);
    const made: Node = { key, term, group, text, degree: 0, expanded: false };
    this.nameNode(made, term.type === "iri" ? nameOf(term.value) : whole, whole);
    this.nodes.set(key, made);
    this.acts(made);
    return made;
  }

  /** Gives a node that has no place one near its neighbour, or far from the others: the same triples make the same picture, in which parts do not cross. */
  private start(node: Node, neighbour: Node): void {
    if (node.x !== undefined) return;
    const near = neighbour.x !== undefined;
    const turn = GOLDEN_ANGLE * this.placed++;
    const radius = near ? 60 : 150 * Math.sqrt(this.roots++);
    node.x = (neighbour.x ?? 0) + radius * Math.cos(turn);
    node.y = (neighbour.y ?? 0) + radius * Math.sin(turn);
  }

  private nameNode({ group, text }: Node, name: string, whole: string, behind = ""): void {
    const clean = visible(name.replace(/\s+/g, " "));
    text.textContent = (clean.length > LONGEST_NAME ? `${clean.slice(0, LONGEST_NAME - 1)}…` : clean) + behind;
    group.setAttribute("aria-label", visible(name === whole ? whole.slice(0, 200) : `${name.slice(0, 200)} (${whole.slice(0, 200)})`));
  }

  private edge(key: string, source: Node, target: Node): Edge {
    const line = svg("line", { "marker-end": "url(#arrow)" });
    const text = svg("text", { class: "edge", "text-anchor": "middle" });
    this.lines.append(line, text);
    const made: Edge = { source, target, predicates: new Set(), line, text, stand: MIDDLE };
    this.edges.set(key, made);
    source.degree++;
    target.degree++;
    return made;
  }

  private nameEdge({ predicates, text }: Edge): void {
    const names = [...predicates].map((iri) => tail(prefixes.shown(iri)));
    text.textContent = names.slice(0, 3).join(", ") + (names.length > 3 ? ", …" : "");
  }

  private place(): void {
    for (const { source, target, line, text, stand } of this.edges.values()) {
      const [x1, y1, x2, y2] = [source.x ?? 0, source.y ?? 0, target.x ?? 0, target.y ?? 0];
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      line.setAttribute("x1", String(x1));
      line.setAttribute("y1", String(y1));
      line.setAttribute("x2", String(x2 - ((x2 - x1) / length) * 11));
      line.setAttribute("y2", String(y2 - ((y2 - y1) / length) * 11));
      text.setAttribute("x", String(x1 + (x2 - x1) * stand.part));
      text.setAttribute("y", String(y1 + (y2 - y1) * stand.part + stand.below + 3));
    }
    for (const { group, x = 0, y = 0 } of this.nodes.values()) group.setAttribute("transform", `translate(${x} ${y})`);
    if (++this.ticks % 5 === 0) this.captions();
  }

  /** Puts each caption where it lies on nothing else; one without such a place is seen while its node has the pointer or the focus. */
  private captions(): void {
    const nodes = [...this.nodes.values()].sort((a, b) => b.degree - a.degree);
    const dots = nodes.map(({ x = 0, y = 0 }) => ({ x, y, width: RADIUS * 2, height: RADIUS * 2 }));
    const wide = (text: SVGTextElement, size: number) => Math.max(10, widthOf(text.textContent ?? "", size) + 4);
    const ofNodes = nodes.map(({ text, x = 0, y = 0 }): Caption => {
      const width = wide(text, NODE_TEXT);
      return { width, height: 13, places: [{ x, y: y - 16 }, { x, y: y + 17 }, { x: x + width / 2 + 12, y }, { x: x - width / 2 - 12, y }] };
    });
    const named = this.edges.size > MOST_NAMED ? [] : [...this.edges.values()];
    const ofEdges = named.map(({ text, source, target }): Caption => {
      const at = ({ part, below }: Stand) => ({ x: (source.x ?? 0) + ((target.x ?? 0) - (source.x ?? 0)) * part, y: (source.y ?? 0) + ((target.y ?? 0) - (source.y ?? 0)) * part + below });
      return { width: wide(text, EDGE_TEXT), height: 12, places: STANDS.map(at) };
    });
    const places = arranged([...ofNodes, ...ofEdges], dots);
    nodes.forEach(({ text, x = 0, y = 0, group }, i) => {
      const found = places[i];
      group.classList.toggle("crowded", !found);
      text.setAttribute("x", String(found ? found.x - x : 0));
      text.setAttribute("y", String(found ? found.y - y + 4 : -12));
    });
    named.forEach((edge, i) => {
      const found = places[nodes.length + i];
      edge.text.classList.toggle("crowded", !found);
      if (!found) return;
      edge.stand = STANDS[ofEdges[i]?.places.indexOf(found) ?? 0] ?? MIDDLE;
      edge.text.setAttribute("x", String(found.x));
      edge.text.setAttribute("y", String(found.y + 3));
    });
  }

  private acts(node: Node): void {
    const { group, term } = node;
    let moved = false;
    const name = (shown: boolean) => {
      // What is read lies above the rest.
      if (shown && this.dots.lastChild !== group && document.activeElement !== group && !group.matches(":active")) this.dots.append(group);
      for (const { source, target, line, text } of this.edges.values()) {
        const near = shown && (source === node || target === node);
        for (const part of [line, text]) part.classList.toggle("near", near);
      }
    };
    group.addEventListener("pointerenter", () => name(true));
    group.addEventListener("focus", () => name(true));
    for (const event of ["pointerleave", "blur"]) group.addEventListener(event, () => name(false));
    group.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      moved = false;
      group.setPointerCapture(event.pointerId);
      const from = this.inScene(event);
      const move = (e: PointerEvent) => {
        const to = this.inScene(e);
        if (!moved && Math.hypot(to.x - from.x, to.y - from.y) < 4) return;
        moved = true;
        [node.fx, node.fy] = [to.x, to.y];
        this.simulation.alpha(Math.max(0.3, this.simulation.alpha())).restart();
      };
      group.addEventListener("pointermove", move);
      group.addEventListener("pointerup", () => group.removeEventListener("pointermove", move), { once: true });
    });
    if (term.type !== "iri") return;
    group.addEventListener("click", () => {
      if (!moved) void this.grow(node, term.value);
    });
    group.addEventListener("dblclick", () => (location.hash = resourceHash(term.value)));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter") location.hash = resourceHash(term.value);
      if (event.key === " ") {
        event.preventDefault();
        void this.grow(node, term.value);
      }
    });
  }

  private async grow(node: Node, iri: string): Promise<void> {
    if (!this.options.expand || node.expanded) return;
    node.expanded = true;
    node.group.classList.add("expanded");
    try {
      this.add(await this.options.expand(iri), iri);
    } catch (error) {
      node.expanded = false;
      this.note.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  private inScene(event: PointerEvent): { x: number; y: number } {
    const matrix = this.scene.getScreenCTM()?.inverse();
    return matrix ? new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix) : { x: 0, y: 0 };
  }

  private drags(): void {
    this.plot.addEventListener("pointerdown", (event) => {
      this.plot.setPointerCapture(event.pointerId);
      let [x, y] = [event.clientX, event.clientY];
      const move = (e: PointerEvent) => {
        const factor = this.width / Math.max(1, this.plot.clientWidth);
        this.at.x += (e.clientX - x) * factor;
        this.at.y += (e.clientY - y) * factor;
        [x, y] = [e.clientX, e.clientY];
        this.chosen = true;
        this.look();
      };
      this.plot.addEventListener("pointermove", move);
      this.plot.addEventListener("pointerup", () => this.plot.removeEventListener("pointermove", move), { once: true });
    });
  }

  private zoom(factor: number): void {
    this.chosen = true;
    this.at.scale = Math.min(8, Math.max(0.1, this.at.scale * factor));
    this.look();
  }

  private look(): void {
    this.scene.setAttribute("transform", `translate(${this.at.x} ${this.at.y}) scale(${this.at.scale})`);
  }

  stop(): void {
    this.stopped.abort();
    this.simulation.stop();
  }
}

/** The end of a long name, which says more than its beginning. */
function tail(name: string): string {
  return name.length > LONGEST ? `…${name.slice(1 - LONGEST)}` : name;
}

function arrow(): SVGDefsElement {
  const marker = svg("marker", { id: "arrow", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" });
  marker.append(svg("path", { d: "M0 0L10 5L0 10z" }));
  return svg("defs", {}, marker);
}
