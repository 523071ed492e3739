// Triples as a picture: what they name as nodes, their predicates as edges.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type SimulationLinkDatum, type SimulationNodeDatum } from "d3-force";
import { button, h, svg } from "../dom.ts";
import { type Term, visible, written } from "../rdf/term.ts";
import { nameOf, prefixes, resourceHash } from "../show.ts";

export type Triple = [Term, Term, Term];

interface Node extends SimulationNodeDatum {
  key: string;
  term: Term;
  group: SVGGElement;
}

interface Edge extends SimulationLinkDatum<Node> {
  source: Node;
  target: Node;
  predicates: Set<string>;
  line: SVGLineElement;
  text: SVGTextElement;
}

/** More nodes than a picture is read with. */
const MOST_NODES = 150;
/** More edges than can be read with all their names; beyond it, a node shows those of its own while it has the pointer or the focus. */
const MOST_NAMED = 20;
/** Longest name of an edge. */
const LONGEST = 28;

export class Graph {
  readonly element: HTMLElement;
  private nodes = new Map<string, Node>();
  private edges = new Map<string, Edge>();
  private left = 0;
  private hint = h("span");
  private note = h("p", { attrs: { role: "status" } });
  private lines = svg("g");
  private dots = svg("g");
  private scene = svg("g", {}, this.lines, this.dots);
  private plot = svg("svg", { class: "graph", viewBox: "-450 -280 900 560", role: "group", "aria-label": "Graph" }, arrow(), this.scene);
  private simulation = forceSimulation<Node>([])
    .force("charge", forceManyBody().strength(-260))
    // Parts that hang together by nothing stay in sight of one another.
    .force("x", forceX(0).strength(0.06))
    .force("y", forceY(0).strength(0.1))
    .force("collide", forceCollide(26))
    .on("tick", () => this.place());
  private at = { x: 0, y: 0, scale: 1 };
  /** Someone moved or scaled the picture. */
  private chosen = false;

  /** `expand` gives more triples around a resource. */
  constructor(private expand?: (iri: string) => Promise<Triple[]>) {
    const how = expand ? "Click a node for its neighbours, twice for its page." : "Click a node twice for its page.";
    this.element = h(
      "div",
      { class: "graph-box" },
      h("p", { class: "tools" }, button("+", () => this.zoom(1.25), { title: "Larger", attrs: { "aria-label": "Larger" } }), button("−", () => this.zoom(0.8), { title: "Smaller", attrs: { "aria-label": "Smaller" } }), h("span", {}, `${how} Enter opens it, drag moves.`, this.hint)),
      this.plot as unknown as HTMLElement,
      this.note,
    );
    this.drags();
  }

  /** Adds triples; a picture has room for this many nodes. */
  add(triples: Triple[], focus?: string): void {
    for (const [s, p, o] of triples) {
      const subject = this.node(s);
      const object = this.node(o, p);
      if (!subject || !object) {
        this.left++;
        continue;
      }
      const key = `${subject.key} ${object.key}`;
      const edge = this.edges.get(key) ?? this.edge(key, subject, object);
      edge.predicates.add(p.value);
      const names = [...edge.predicates].map((iri) => tail(prefixes.shown(iri)));
      edge.text.textContent = names.slice(0, 3).join(", ") + (names.length > 3 ? ", …" : "");
    }
    const dense = this.edges.size > MOST_NAMED;
    this.plot.classList.toggle("dense", dense);
    this.hint.textContent = dense ? " Point at a node to read its edges." : "";
    if (focus) this.nodes.get(`<${focus}>`)?.group.classList.add("focus");
    this.note.textContent = this.left > 0 ? `The drawing is limited to ${MOST_NODES} nodes: ${this.left} triples are not shown.` : "";
    this.simulation.nodes([...this.nodes.values()]);
    this.simulation.force("link", forceLink<Node, Edge>([...this.edges.values()]).distance(dense ? 170 : 110).strength(dense ? 0.25 : 0.6));
    this.simulation.alpha(0.9);
    // Someone who wants no motion gets the end of it.
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.simulation.stop().tick(still ? 250 : 120);
    this.place();
    this.fit();
    if (!still) this.simulation.restart();
  }

  /** Makes all of it seen, unless someone has chosen what to look at. */
  private fit(): void {
    if (this.chosen) return;
    const xs = [...this.nodes.values()].map((n) => n.x ?? 0);
    const ys = [...this.nodes.values()].map((n) => n.y ?? 0);
    const [left, right, top, bottom] = [Math.min(...xs) - 90, Math.max(...xs) + 90, Math.min(...ys) - 40, Math.max(...ys) + 30];
    const scale = Math.min(1.4, 900 / (right - left), 560 / (bottom - top));
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
    const name = term.type === "iri" ? nameOf(term.value) : whole;
    const short = name.length > 26 ? `${name.slice(0, 25)}…` : name;
    const group = svg("g", { class: `node ${term.type}`, role: "button", tabindex: 0, "aria-label": visible(whole.slice(0, 200)) });
    group.append(svg("title", {}, visible(term.value.slice(0, 500))), svg("circle", { r: 8 }));
    const text = svg("text", { y: -12, "text-anchor": "middle" });
    text.textContent = visible(short);
    group.append(text);
    this.dots.append(group);
    const made: Node = { key, term, group, x: (Math.random() - 0.5) * 200, y: (Math.random() - 0.5) * 200 };
    this.nodes.set(key, made);
    this.acts(made);
    return made;
  }

  private edge(key: string, source: Node, target: Node): Edge {
    const line = svg("line", { "marker-end": "url(#arrow)" });
    const text = svg("text", { class: "edge", "text-anchor": "middle" });
    this.lines.append(line, text);
    const made: Edge = { source, target, predicates: new Set(), line, text };
    this.edges.set(key, made);
    return made;
  }

  private place(): void {
    for (const { source, target, line, text } of this.edges.values()) {
      const [x1, y1, x2, y2] = [source.x ?? 0, source.y ?? 0, target.x ?? 0, target.y ?? 0];
      const length = Math.hypot(x2 - x1, y2 - y1) || 1;
      line.setAttribute("x1", String(x1));
      line.setAttribute("y1", String(y1));
      line.setAttribute("x2", String(x2 - ((x2 - x1) / length) * 11));
      line.setAttribute("y2", String(y2 - ((y2 - y1) / length) * 11));
      text.setAttribute("x", String((x1 + x2) / 2));
      text.setAttribute("y", String((y1 + y2) / 2 - 4));
    }
    for (const { group, x = 0, y = 0 } of this.nodes.values()) group.setAttribute("transform", `translate(${x} ${y})`);
  }

  private acts(node: Node): void {
    const { group, term } = node;
    let moved = false;
    const name = (shown: boolean) => {
      for (const { source, target, line, text } of this.edges.values()) {
        const near = shown && (source === node || target === node);
        for (const part of [line, text]) part.classList.toggle("near", near);
      }
    };
    for (const event of ["pointerenter", "focus"]) group.addEventListener(event, () => name(true));
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
      if (!moved) void this.grow(term.value);
    });
    group.addEventListener("dblclick", () => (location.hash = resourceHash(term.value)));
    group.addEventListener("keydown", (event) => {
      if (event.key === "Enter") location.hash = resourceHash(term.value);
      if (event.key === " ") {
        event.preventDefault();
        void this.grow(term.value);
      }
    });
  }

  private async grow(iri: string): Promise<void> {
    if (!this.expand) return;
    try {
      this.add(await this.expand(iri), iri);
    } catch (error) {
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
        const factor = 900 / Math.max(1, this.plot.clientWidth);
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
