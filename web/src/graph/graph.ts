// A graph to work with: drawn on a canvas, laid out in a worker; searched, expanded, hidden, pinned, undone, exported.

import { button, h } from "../dom.ts";
import { listen } from "../events.ts";
import { count, counted } from "../format.ts";
import { label, labelOf } from "../labels.ts";
import { messageOf } from "../net/http.ts";
import { menu } from "../pieces.ts";
import { RDF_TYPE, type Term, visible } from "../rdf/term.ts";
import { learnNames, nameOf, prefixes, resourceHash, saysBoth } from "../show.ts";
import { centre, fit, isAtRim, next, nodeAt, zoom } from "./camera.ts";
import { along, classesOf, neighbours, valuesOf, type Way } from "./expand.ts";
import { saveDrawing } from "./export.ts";
import { type CaptionBy, type KindInfo, kindName, Legend } from "./legend.ts";
import { GraphModel, type GraphNode, isClass, KINDS, MOST_NODES, type Triple } from "./model.ts";
import { cut, edgeText, LONGEST, LONGEST_NAME, plainName } from "./names.ts";
import { paint, penOf, placeCaptions, type Scene } from "./paint.ts";
import { NodePanel } from "./panel.ts";
import { isCrowded, PixelLayer } from "./pixels.ts";
import { follow } from "./pointer.ts";
import { LayoutRunner } from "./runner.ts";
import { COLOURS, family, followColours, palette } from "./theme.ts";

interface Options {
  /** Whether neighbours of a node can be added. */
  expands?: boolean;
  /** Whether nodes are coloured by their classes. */
  colours?: boolean;
  /** Whether edges are named while one of their nodes is selected only. */
  namesOnSelection?: boolean;
  /** A node was selected, or none; without it, the drawing has a panel of its own. */
  selected?: (node: GraphNode | undefined) => void;
}

/** Neighbours by one predicate that are added at once. */
const BY_PREDICATE = 100;
/** Nodes up to which all labels are fetched at once; of more, those of the captions that are seen. */
const ALL_LABELS = 2000;
/** Milliseconds of a layout, of one of many nodes, and of one after a change. */
const BUDGET = 1700;
const LONG_BUDGET = 4000;
const CHANGE_BUDGET = 900;
const MANY = 6000;
/** Milliseconds between two placements of captions while nodes move. */
const CAPTION_PACE = 300;

export class Graph {
  readonly element: HTMLElement;
  readonly model = new GraphModel();
  private canvas = h("canvas", { class: "graph", attrs: { tabindex: 0, role: "application", "aria-label": "Graph" } });
  private area: HTMLElement;
  private note = h("p", { class: "graph-note soft", attrs: { role: "status" } });
  private said = h("span", { class: "unseen", attrs: { "aria-live": "polite" } });
  private find = h("input", { attrs: { type: "search", placeholder: "Find in the graph", "aria-label": "Find in the graph" } });
  private found = h("span", { class: "soft found-in-graph", attrs: { role: "status" } });
  private undoButton = button("Undo", () => this.undo(), { attrs: { disabled: true } });
  private allButton = button("Show hidden", () => this.change(() => this.model.showAll()), { attrs: { hidden: true } });
  private legend = new Legend({ toggle: (kind) => this.change(() => this.model.toggleKind(kind)), colour: (kind, i) => this.recolour(kind, i), caption: (kind, by) => this.captionBy(kind, by) });
  private panel: NodePanel;
  private scene: Scene = {
    nodes: [], edges: [], view: { scale: 1, x: 0, y: 0 }, width: 0, height: 0, palette: palette(), selected: undefined, lit: undefined, bent: new Set(),
    heaviest: { node: 0, edge: 0 }, captions: { nodes: new Map(), edges: new Map() }, colour: (node) => this.colourOf(node),
  };
  private selected: GraphNode | undefined;
  private hovered: GraphNode | undefined;
  private matches: GraphNode[] = [];
  private match = -1;
  /** Colour of each class, in the order in which they came. */
  private colours = new Map<string, number>();
  private captions = new Map<string, CaptionBy>();
  /** Captions by a predicate and a resource, and by predicates the resources whose captions are still to be read. */
  private values = new Map<string, string>();
  private unread = new Map<string, string[]>();
  private asked = new Set<string>();
  /** Nodes whose classes have been asked for. */
  private classed = new Set<GraphNode>();
  /** The user moved or scaled the drawing, so it is not fitted to its area any more. */
  private chosen = false;
  private runner: LayoutRunner;
  private frameAsked = false;
  private captionsDue = true;
  private captionsAt = 0;
  private dragged: { node: GraphNode; x: number; y: number } | undefined;
  private stopped = new AbortController();
  /** Sentences below the drawing, by what they are about. */
  private notes: { answer?: string; added?: string; classes?: string; problem?: string } = {};

  constructor(private options: Options = {}) {
    const acts = { known: (node: GraphNode, { predicate, out }: Way) => this.model.known(node, predicate, out), add: (node: GraphNode, way: Way) => this.expandBy(node, way), addAll: (node: GraphNode) => this.expand(node), pin: (node: GraphNode) => this.pin(node), hide: (node: GraphNode) => this.hide(node), close: () => this.close() };
    this.runner = new LayoutRunner(matchMedia("(prefers-reduced-motion: reduce)").matches, () => this.ask());
    this.panel = new NodePanel(acts, options.expands === true);
    this.area = h("div", { class: "graph-area" }, this.canvas, this.options.colours === false ? null : this.legend.element, this.options.selected ? null : this.panel.element);
    const exports = menu("Export");
    exports.fill([["SVG", () => void this.export("svg")], ["PNG", () => void this.export("png")]]);
    const keys = options.expands ? "Click selects, twice adds neighbours." : "Click selects.";
    this.element = h(
      "div", { class: "graph-box" },
      h("div", { class: "tools" }, this.find, this.found, button("+", () => this.zoom(1.25), { title: "Larger", attrs: { "aria-label": "Larger" } }), button("−", () => this.zoom(0.8), { title: "Smaller", attrs: { "aria-label": "Smaller" } }), button("All", () => this.showAll(), { title: "Shows all of it" }), this.undoButton, this.allButton, exports.element, h("span", { class: "soft" }, `${keys} Drag moves and pins. ? lists the keys.`)),
      this.area, this.note, this.said,
    );
    this.wire();
  }

  private wire(): void {
    const { signal } = this.stopped;
    follow(this.canvas, {
      nodeAt: (x, y) => nodeAt(this.scene, x, y),
      pan: (dx, dy) => this.pan(dx, dy),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
      drag: (node, x, y, end) => this.drag(node, x, y, end),
      click: (node) => this.select(node, true),
      open: (node) => void this.expand(node),
      hover: (node) => this.hover(node),
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.find.addEventListener("input", () => this.search());
    this.find.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.nextMatch(event.shiftKey ? -1 : 1);
    });
    const size = new ResizeObserver(() => this.resize());
    size.observe(this.area);
    signal.addEventListener("abort", () => size.disconnect());
    listen("labels", () => this.redraw(), signal);
    followColours(() => {
      this.scene.palette = palette();
      this.redraw();
    }, signal);
  }

  /** Draws the neighbours of a resource and selects it. */
  draw(iri: string, { triples, cut }: Awaited<ReturnType<typeof neighbours>>): void {
    this.fill(triples);
    this.begin(cut);
    this.select(this.model.node({ type: "iri", value: iri }));
  }

  /** Adds triples, and resources that stand alone, without drawing them yet. Returns whether all had room. */
  fill(triples: Triple[], alone: Term[] = []): boolean {
    const { left } = this.model;
    this.model.add(triples, this.options.colours !== false);
    let room = true;
    for (const term of alone) room = this.model.node(term) !== undefined && room;
    return room && this.model.left === left;
  }

  /** Draws what was filled in. `answer`: a sentence about what is not shown of the answer. */
  begin(answer = ""): void {
    this.notes.answer = answer;
    this.learn();
    this.model.drawTypes();
    this.changed(this.model.nodes.size > MANY ? LONG_BUDGET : BUDGET, 1);
    void this.dress();
  }

  private learn(): void {
    learnNames([...this.model.nodes.values()].map(({ term }) => term));
  }

  stop(): void {
    this.stopped.abort();
    this.runner.stop();
  }

  /** Lays out the nodes and edges that are drawn now. */
  private changed(budget = CHANGE_BUDGET, energy = 0.35): void {
    const { scene, model } = this;
    Object.assign(scene, model.shown());
    this.canvas.dataset["settled"] = "false";
    scene.bent = new Set(scene.edges.filter(({ source, target }) => source !== target && model.edges.has(`${target.key}\n${source.key}`)));
    scene.heaviest = { node: Math.max(0, ...scene.nodes.slice(0, 5000).map((n) => n.weight)), edge: Math.max(0, ...scene.edges.slice(0, 5000).map((e) => e.weight)) };
    if (this.selected && !scene.nodes.includes(this.selected)) this.select(undefined);
    this.runner.begin(scene.nodes, scene.edges, scene.heaviest.node, budget, energy);
    this.tell();
    this.redraw();
  }

  private change(act: () => void): void {
    act();
    this.changed();
  }

  private ask(): void {
    if (this.frameAsked || this.stopped.signal.aborted) return;
    this.frameAsked = true;
    requestAnimationFrame(() => {
      this.frameAsked = false;
      if (!this.stopped.signal.aborted) this.frame();
    });
  }

  private redraw(): void {
    this.captionsDue = true;
    this.ask();
  }

  /** Draws one frame: nodes go a part of the way to where the layout wants them. */
  private frame(): void {
    const { scene } = this;
    if (scene.width === 0 && !this.measure()) return;
    let far = 0;
    for (const node of scene.nodes) {
      if (Number.isNaN(node.x)) continue;
      const [dx, dy] = [node.toX - node.x, node.toY - node.y];
      const distance = Math.abs(dx) + Math.abs(dy);
      if (distance > far) far = distance;
      const part = distance < 0.2 || node === this.dragged?.node ? 1 : 0.35;
      node.x += dx * part;
      node.y += dy * part;
    }
    if (far > 0.5 && !this.chosen) fit(this.scene);
    const moves = !this.runner.settled || far > 0.2;
    const now = performance.now();
    if (moves) this.captionsDue = true;
    if (this.captionsDue && (!moves || now - this.captionsAt > CAPTION_PACE * (scene.nodes.length > MANY ? 5 : 1))) {
      this.captionsDue = moves;
      this.captionsAt = now;
      this.caption();
    }
    const context = this.canvas.getContext("2d");
    if (!context || scene.nodes.some(({ x }) => Number.isNaN(x))) return;
    const crowded = isCrowded(scene);
    if (crowded) this.pixels.draw(context, scene, devicePixelRatio);
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    paint(penOf(context, this.family), scene, crowded);
    this.canvas.dataset["settled"] = String(!moves);
    if (far > 0.2 || this.captionsDue) this.ask();
  }

  private family = family();
  private pixels = new PixelLayer();

  private caption(): void {
    this.twins();
    const shown = this.hovered ?? this.selected;
    this.scene.selected = shown;
    placeCaptions(this.scene, (node) => this.textOf(node), edgeText, this.options.namesOnSelection === true);
    for (const [by, iris] of this.unread) void this.readValues(by, iris);
    this.unread.clear();
    for (const { term } of this.scene.captions.nodes.keys()) if (term.type === "iri") this.askLabel(term.value);
  }

  /** Labels that several nodes have: such a label does not tell which of them is meant. */
  private shared = new Set<string>();

  private twins(): void {
    this.shared.clear();
    const { nodes } = this.scene;
    if (nodes.length > ALL_LABELS) return;
    const seen = new Set<string>();
    for (const { term } of nodes) {
      if (term.type !== "iri") continue;
      const text = plainName(term.value);
      if (seen.has(text)) this.shared.add(text);
      seen.add(text);
    }
  }

  /** A node's caption by a predicate, as soon as it has been read. */
  private valueOf(by: string, iri: string): string {
    const key = `${by} ${iri}`;
    if (!this.values.has(key)) {
      this.values.set(key, "");
      this.unread.set(by, [...(this.unread.get(by) ?? []), iri]);
    }
    return this.values.get(key) ?? "";
  }

  private async readValues(by: string, iris: string[]): Promise<void> {
    try {
      for (const [iri, text] of await valuesOf(iris, by, this.stopped.signal)) this.values.set(`${by} ${iri}`, text);
      this.redraw();
    } catch (error) {
      this.fail(error);
    }
  }

  private askLabel(iri: string): void {
    if (this.asked.has(iri) || labelOf(iri) !== undefined) return;
    this.asked.add(iri);
    void label(iri).then((found) => found && this.redraw());
  }

  /** A node's caption; `whole`: its name, whatever its caption is. */
  private textOf(node: GraphNode, whole = false): string {
    const { term, kind } = node;
    const by = this.captions.get(kind) ?? "label";
    let text = "";
    if (term.type !== "iri") text = term.type === "blank" ? (whole ? "a blank node" : "") : term.value;
    else if (by === "label" || whole) {
      const plain = plainName(term.value);
      const name = nameOf(term.value);
      text = !this.shared.has(plain) ? plain : !labelOf(term.value) || saysBoth(name, plain) ? name : `${plain} (${cut(name, LONGEST_NAME)})`;
    } else if (by === "short") text = nameOf(term.value);
    else if (by !== "none") text = this.valueOf(by, term.value);
    return cut(visible(text.slice(0, 200).replace(/\s+/g, " ")), whole ? 200 : LONGEST + (text.endsWith(")") ? LONGEST_NAME : 0));
  }

  /** Fetches labels, if the nodes are few, and classes. */
  private async dress(): Promise<void> {
    const { signal } = this.stopped;
    const iris = [...this.model.nodes.values()].flatMap(({ term }) => (term.type === "iri" ? [term.value] : []));
    if (iris.length <= ALL_LABELS) for (const iri of iris) this.askLabel(iri);
    if (this.options.colours === false) return;
    this.paintKinds();
    const nodes = [...this.model.nodes.values()].filter((node) => node.term.type === "iri" && node.kind === KINDS.none && !this.classed.has(node));
    for (const node of nodes) this.classed.add(node);
    const { classes, whole } = await classesOf(nodes.map(({ term }) => term.value), signal);
    if (signal.aborted) return;
    for (const node of nodes) node.kind = classes.get(node.term.value) ?? node.kind;
    if (!whole) this.notes.classes = "The classes of some nodes could not be read.";
    if (whole) this.paintKinds();
    else this.tell();
    this.redraw();
  }

  private paintKinds(): void {
    const kinds = new Map<string, GraphNode[]>();
    for (const node of this.model.nodes.values()) {
      const same = kinds.get(node.kind);
      if (same) same.push(node);
      else kinds.set(node.kind, [node]);
    }
    // Classes come first, the largest at the top.
    const sorted = [...kinds].sort(([a, some], [b, others]) => Number(isClass(b)) - Number(isClass(a)) || others.length - some.length);
    // A class keeps its colour when nodes are added.
    for (const [kind] of sorted) if (isClass(kind) && !this.colours.has(kind)) this.colours.set(kind, this.colours.size);
    this.legend.show(sorted.map(([kind, nodes]): KindInfo => ({
      kind, nodes: nodes.length, hidden: this.model.hiddenKinds.has(kind), colour: this.colours.get(kind) ?? COLOURS, caption: this.captions.get(kind) ?? "label",
      some: nodes.slice(0, 50).flatMap(({ term }) => (term.type === "iri" ? [term.value] : [])),
    })));
  }

  private colourOf({ kind }: GraphNode): string {
    const { palette: all } = this.scene;
    if (kind === KINDS.literal) return all.literal;
    if (kind === KINDS.none) return all.accent;
    return all.colours[this.colours.get(kind) ?? COLOURS] ?? all.soft;
  }

  private recolour(kind: string, index: number): void {
    this.colours.set(kind, index);
    this.paintKinds();
    this.redraw();
  }

  private captionBy(kind: string, by: CaptionBy): void {
    this.captions.set(kind, by);
    this.paintKinds();
    this.redraw();
  }

  /** Shows how much is drawn, what is not, and what can be undone. */
  private tell(): void {
    const { model, scene } = this;
    const hidden = model.nodes.size - scene.nodes.length;
    const parts: string[] = [];
    if (model.nodes.size === 0) parts.push("There are no triples to draw.");
    else parts.push(`${counted(scene.nodes.length, "node")}, ${counted(scene.edges.length, "edge")}.`);
    if (hidden > 0) parts.push(`${counted(hidden, "node is", "nodes are")} hidden.`);
    const types = [...model.types.values()];
    const several = new Set(types.map(([s]) => s.value)).size < types.length;
    if (types.length > 0) parts.push(`${counted(types.length, "triple")} of rdf:type ${types.length === 1 ? "is" : "are"} shown as colours${several ? ", one of each node" : ""}.`);
    this.note.textContent = [...parts, ...Object.values(this.notes).filter(Boolean)].join(" ");
    const { activeElement } = document;
    this.allButton.hidden = hidden === 0;
    this.undoButton.disabled = model.undoable === undefined;
    this.undoButton.title = model.undoable === undefined ? "Nothing to undo" : `Undoes ${model.undoable}`;
    if ([this.allButton, this.undoButton].some((one) => one === activeElement && (one.hidden || one.disabled))) this.focus();
    Object.assign(this.canvas.dataset, { nodes: scene.nodes.length, edges: scene.edges.length });
    this.canvas.setAttribute("aria-label", `Graph: ${counted(scene.nodes.length, "node")}, ${counted(scene.edges.length, "edge")}. Arrow keys select a node.`);
    if (this.options.colours !== false) this.paintKinds();
    this.panel.show(this.selected);
  }

  private fail(error: unknown): void {
    if (this.stopped.signal.aborted) return;
    this.notes.problem = messageOf(error);
    this.tell();
  }

  private focus(): void {
    this.canvas.focus({ preventScroll: true });
  }

  private close(): void {
    this.select(undefined, true);
    this.focus();
  }

  // --- input ---

  /** Selects a node; `light` dims what is not next to it. */
  select(node: GraphNode | undefined, tell = false): void {
    const same = node === this.selected;
    this.selected = node;
    this.scene.lit = node ? this.model.around(node) : undefined;
    this.panel.show(node);
    if (node && tell) this.said.textContent = this.inWords(node);
    if (!same || tell) this.options.selected?.(node);
    this.redraw();
  }

  private inWords(node: GraphNode): string {
    return `${this.textOf(node, true)}${isClass(node.kind) ? `, ${kindName(node.kind)}` : ""}, ${counted(node.degree, "edge")}${node.pinned ? ", pinned" : ""}`;
  }

  private hover(node: GraphNode | undefined): void {
    this.canvas.classList.toggle("on-node", node !== undefined);
    if (node === this.hovered) return;
    this.hovered = node;
    this.redraw();
  }

  private pin(node: GraphNode): void {
    this.change(() => this.model.pin(node, !node.pinned));
  }

  private hide(node: GraphNode): void {
    this.select(undefined);
    this.change(() => this.model.hide([node]));
    this.focus();
  }

  undo(): void {
    const what = this.model.undo();
    if (what === undefined) return;
    this.said.textContent = `Undone: ${what}`;
    if (what.includes("neighbours")) delete this.notes.added;
    if (this.selected && !this.model.nodes.has(this.selected.key)) this.select(undefined);
    this.changed();
    if (this.selected) this.select(this.selected);
  }

  /** Adds some triples from a node and to it. */
  private async expand(node: GraphNode): Promise<void> {
    if (!this.options.expands || node.term.type !== "iri") return;
    try {
      const { triples, cut } = await neighbours(node.term.value, this.stopped.signal);
      this.grow(node, `the neighbours of ${this.textOf(node)}`, triples, this.options.colours !== false, cut);
    } catch (error) {
      this.fail(error);
    }
  }

  private async expandBy(node: GraphNode, way: Way): Promise<void> {
    // Those that are drawn may be anywhere in the order.
    const most = this.model.known(node, way.predicate, way.out) + BY_PREDICATE;
    const found = await along(node.term.value, way, most, this.stopped.signal);
    this.grow(node, `neighbours by ${prefixes.shown(way.predicate)}`, found.filter((triple) => !this.model.has(triple)).slice(0, BY_PREDICATE), this.options.colours !== false && way.predicate !== RDF_TYPE);
  }

  private grow(node: GraphNode, what: string, triples: Triple[], colours: boolean, cut = ""): void {
    const { model } = this;
    // The node may have been removed by Undo since the request.
    if (this.stopped.signal.aborted || model.nodes.get(node.key) !== node) return;
    const { left, nodes: { size } } = model;
    model.addAsStep(what, triples, colours);
    const [added, full] = [model.nodes.size - size, model.left - left];
    this.notes.added = cut + (full > 0 ? ` ${counted(full, "triple was", "triples were")} not added: the drawing is limited to ${count(MOST_NODES)} nodes.` : "");
    delete this.notes.problem;
    this.learn();
    this.changed(CHANGE_BUDGET, 0.5);
    this.select(node);
    this.said.textContent = added === 0 ? "No new nodes" : `${counted(added, "node")} added`;
    void this.dress();
  }

  private search(): void {
    const words = this.find.value.toLowerCase().split(/\s+/).filter((w) => w !== "");
    this.match = -1;
    this.matches = words.length === 0 ? [] : this.scene.nodes.filter((node) => {
      const text = `${this.textOf(node, true)} ${node.term.value.slice(0, 500)} ${node.term.type === "iri" ? prefixes.shown(node.term.value) : ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    this.found.textContent = words.length === 0 ? "" : `${count(this.matches.length)} found${this.model.nodes.size > ALL_LABELS ? " by IRIs and the labels read so far" : ""}${this.matches.length > 0 ? ", Enter goes to them" : ""}`;
    if (this.selected) this.select(undefined);
    this.scene.lit = words.length === 0 ? undefined : new Set(this.matches);
    this.redraw();
  }

  private nextMatch(by: number): void {
    if (this.matches.length === 0) return;
    this.match = (this.match + by + this.matches.length) % this.matches.length;
    const node = this.matches[this.match];
    if (!node) return;
    this.found.textContent = `${count(this.match + 1)} of ${count(this.matches.length)}`;
    this.select(node, true);
    this.centre(node);
  }

  private key(event: KeyboardEvent): void {
    const node = this.selected;
    const { key } = event;
    const arrows: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const arrow = arrows[key];
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "z") this.undo();
    else if (event.ctrlKey || event.metaKey || event.altKey) return;
    else if (arrow) this.step(...arrow);
    else if (key === "+") this.zoom(1.25);
    else if (key === "-") this.zoom(0.8);
    else if (key === "0" || key === "Home") this.showAll();
    else if (key === "Escape" && node) this.select(undefined, true);
    else if (!node) return;
    else if (key === " ") event.repeat || void this.expand(node);
    else if (key === "Enter" && node.term.type === "iri") location.hash = resourceHash(node.term.value);
    else if (key === "p") this.pin(node);
    else if (key === "h" || key === "Delete") this.hide(node);
    else return;
    event.preventDefault();
  }

  private step(dx: number, dy: number): void {
    const node = next(this.scene, this.selected, dx, dy);
    if (!node) return;
    this.select(node, true);
    if (isAtRim(this.scene, node)) this.centre(node);
  }

  private drag(node: GraphNode, x: number, y: number, end: boolean): void {
    const { view } = this.scene;
    this.dragged ??= { node, x: node.x, y: node.y };
    const [sx, sy] = [(x - view.x) / view.scale, (y - view.y) / view.scale];
    [node.x, node.y, node.toX, node.toY] = [sx, sy, sx, sy];
    this.runner.drag(node, sx, sy, !end);
    this.chosen = true;
    if (end) {
      this.model.pin(node, true, this.dragged);
      this.dragged = undefined;
      this.tell();
    }
    this.redraw();
  }

  private pan(dx: number, dy: number): void {
    this.chosen = true;
    this.scene.view.x += dx;
    this.scene.view.y += dy;
    this.redraw();
  }

  private zoom(factor: number, x = this.scene.width / 2, y = this.scene.height / 2): void {
    this.chosen = true;
    zoom(this.scene, factor, x, y);
    this.redraw();
  }

  private showAll(): void {
    this.chosen = false;
    fit(this.scene);
    this.redraw();
  }

  private centre(node: GraphNode): void {
    this.chosen = true;
    centre(this.scene, node);
    this.redraw();
  }

  private measure(): boolean {
    const { clientWidth, clientHeight } = this.canvas;
    if (clientWidth === 0 || clientHeight === 0) return false;
    [this.scene.width, this.scene.height] = [clientWidth, clientHeight];
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    this.family = family();
    if (!this.chosen) fit(this.scene);
    return true;
  }

  private resize(): void {
    if (this.measure()) this.redraw();
  }

  private async export(format: "png" | "svg"): Promise<void> {
    this.caption();
    const problem = await saveDrawing(format, this.scene, this.family);
    if (problem !== undefined) this.fail(problem);
  }
}
