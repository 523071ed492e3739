// Draws a graph: on a canvas, and with the same steps into an SVG text.

import { arranged, type Box, type Caption, widthOf } from "../answer/captions.ts";
import type { GraphEdge, GraphNode } from "./model.ts";

/** The part of a canvas's context that is drawn with. */
type Pen = Pick<CanvasRenderingContext2D, "beginPath" | "moveTo" | "lineTo" | "quadraticCurveTo" | "arc" | "rect" | "stroke" | "fill" | "fillRect"> & {
  fillStyle: unknown;
  strokeStyle: unknown;
  lineWidth: number;
  globalAlpha: number;
  /** A text with a rim of the background's colour, its middle at a place. */
  label(text: string, x: number, y: number, size: number, colour: string, rim: string): void;
};

export interface Palette {
  ink: string;
  soft: string;
  paper: string;
  accent: string;
  colours: string[];
  literal: string;
}

interface NodeCaption {
  text: string;
  dx: number;
  dy: number;
}

interface EdgeCaption {
  text: string;
  part: number;
  below: number;
}

export interface Scene {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** From the drawing's units to pixels: times `scale`, then moved. */
  view: { scale: number; x: number; y: number };
  width: number;
  height: number;
  palette: Palette;
  selected: GraphNode | undefined;
  /** Nodes that stand out; without it, all do. */
  lit: Set<GraphNode> | undefined;
  /** Edges with another in the opposite direction, which are bent. */
  bent: Set<GraphEdge>;
  /** Most that a node and an edge weigh; 0 where nothing is weighed. */
  heaviest: { node: number; edge: number };
  captions: { nodes: Map<GraphNode, NodeCaption>; edges: Map<GraphEdge, EdgeCaption> };
  colour: (node: GraphNode) => string;
}

const NODE_TEXT = 12;
const EDGE_TEXT = 10;
/** Radius of a node that stands for no number, in the drawing's units. */
const RADIUS = 8;
const HEAVIEST = 30;
/** Nodes that get captions at most. */
const MOST_CAPTIONS = 400;
/** Edges up to which names are placed, and arrows drawn. */
const MOST_NAMED = 400;
const MOST_ARROWS = 2500;
/** Parts of an edge where its caption may stand, and how far below them its middle lies, the best first. */
const STANDS = [-4, 10].flatMap((below) => [0.5, 0.4, 0.6, 0.3, 0.7].map((part) => ({ part, below })));
const FEW_STANDS = STANDS.length;
// Those of a selected node are sought further away.
STANDS.push(...[-4, 10].flatMap((below) => [0.45, 0.55, 0.35, 0.65, 0.25, 0.75, 0.8, 0.2].map((part) => ({ part, below }))), ...[-16, 22].flatMap((below) => [0.5, 0.4, 0.6, 0.7].map((part) => ({ part, below }))));

/** A node's radius in the drawing's units. */
export function radiusOf(node: GraphNode, heaviest: number): number {
  return heaviest > 0 && node.weight > 0 ? RADIUS + (HEAVIEST - RADIUS) * Math.sqrt(node.weight / heaviest) : RADIUS;
}

/** A node's radius in pixels: what is far away is still seen. */
export function pixels(node: GraphNode, { view, heaviest }: Scene): number {
  return Math.max(1.5, radiusOf(node, heaviest.node) * Math.min(1.3, Math.sqrt(view.scale)));
}

export function toScreen(node: { x: number; y: number }, { scale, x, y }: Scene["view"]): [number, number] {
  return [node.x * scale + x, node.y * scale + y];
}

/** Draws the scene; with `over`, only captions and what stands out, on top of what `PixelLayer` has drawn. */
export function paint(pen: Pen, scene: Scene, over = false): void {
  pen.globalAlpha = 1;
  if (!over) {
    pen.fillStyle = scene.palette.paper;
    pen.fillRect(0, 0, scene.width, scene.height);
  }
  paintEdges(pen, scene, over);
  paintNodes(pen, scene, over);
  paintCaptions(pen, scene);
  pen.globalAlpha = 1;
}

function outside([x, y]: [number, number], { width, height }: Scene, rim: number): boolean {
  return x < -rim || y < -rim || x > width + rim || y > height + rim;
}

/** The control point of a bent edge. */
function bend(a: [number, number], b: [number, number]): [number, number] {
  return [(a[0] + b[0]) / 2 - (b[1] - a[1]) * 0.16, (a[1] + b[1]) / 2 + (b[0] - a[0]) * 0.16];
}

function trace(pen: Pen, edge: GraphEdge, scene: Scene, arrows: boolean): void {
  const [a, b] = [toScreen(edge.source, scene.view), toScreen(edge.target, scene.view)];
  if (edge.source === edge.target) {
    const r = pixels(edge.source, scene) + 6;
    pen.moveTo(a[0] + r * 1.7, a[1] - r * 0.7);
    pen.arc(a[0] + r * 0.7, a[1] - r * 0.7, r, 0, Math.PI * 2);
    return;
  }
  if ((a[0] < 0 && b[0] < 0) || (a[1] < 0 && b[1] < 0) || (a[0] > scene.width && b[0] > scene.width) || (a[1] > scene.height && b[1] > scene.height)) return;
  const middle = scene.bent.has(edge) ? bend(a, b) : undefined;
  pen.moveTo(a[0], a[1]);
  if (middle) pen.quadraticCurveTo(middle[0], middle[1], b[0], b[1]);
  else pen.lineTo(b[0], b[1]);
  if (!arrows) return;
  const from = middle ?? a;
  const length = Math.hypot(b[0] - from[0], b[1] - from[1]);
  const r = pixels(edge.target, scene) + 1;
  if (length < r + 8) return;
  const [ux, uy] = [(b[0] - from[0]) / length, (b[1] - from[1]) / length];
  const [x, y] = [b[0] - ux * r, b[1] - uy * r];
  pen.moveTo(x - ux * 7 - uy * 3.5, y - uy * 7 + ux * 3.5);
  pen.lineTo(x, y);
  pen.lineTo(x - ux * 7 + uy * 3.5, y - uy * 7 - ux * 3.5);
}

function paintEdges(pen: Pen, scene: Scene, over: boolean): void {
  const { edges, palette, lit, selected, heaviest } = scene;
  const arrows = edges.length <= MOST_ARROWS;
  const near: GraphEdge[] = [];
  const byWidth = new Map<number, GraphEdge[]>();
  for (const edge of edges) {
    if (selected ? edge.source === selected || edge.target === selected : !over && lit?.has(edge.source) && lit.has(edge.target)) {
      near.push(edge);
      continue;
    }
    if (over) continue;
    const width = heaviest.edge > 0 ? 1 + Math.round(7 * Math.sqrt(edge.weight / heaviest.edge)) : 1;
    const same = byWidth.get(width);
    if (same) same.push(edge);
    else byWidth.set(width, [edge]);
  }
  pen.strokeStyle = palette.soft;
  pen.globalAlpha = lit ? 0.15 : edges.length > 3000 ? 0.3 : 0.55;
  for (const [width, some] of byWidth) {
    pen.lineWidth = width;
    pen.beginPath();
    for (const edge of some) trace(pen, edge, scene, arrows);
    pen.stroke();
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = palette.accent;
  for (const edge of near) {
    pen.lineWidth = heaviest.edge > 0 ? 1.5 + 7 * Math.sqrt(edge.weight / heaviest.edge) : 1.5;
    pen.beginPath();
    trace(pen, edge, scene, true);
    pen.stroke();
  }
}

function circle(pen: Pen, x: number, y: number, r: number): void {
  if (r < 2) {
    pen.rect(x - r, y - r, 2 * r, 2 * r);
    return;
  }
  pen.moveTo(x + r, y);
  pen.arc(x, y, r, 0, Math.PI * 2);
}

function paintNodes(pen: Pen, scene: Scene, over: boolean): void {
  const { palette, lit, selected, view } = scene;
  const byColour = new Map<string, GraphNode[]>();
  const marked: GraphNode[] = [];
  for (const node of scene.nodes) {
    if (outside(toScreen(node, view), scene, 40)) continue;
    if (node.pinned || node === selected) marked.push(node);
    if (over && !(selected && lit?.has(node))) continue;
    const key = `${lit && !lit.has(node) ? "dim" : "lit"} ${scene.colour(node)}`;
    const same = byColour.get(key);
    if (same) same.push(node);
    else byColour.set(key, [node]);
  }
  // What stands out lies above.
  for (const [key, some] of [...byColour].sort(([a], [b]) => (a < b ? -1 : 1))) {
    pen.globalAlpha = key.startsWith("dim") ? 0.25 : 1;
    pen.fillStyle = key.slice(4);
    pen.beginPath();
    for (const node of some) circle(pen, ...toScreen(node, view), pixels(node, scene));
    pen.fill();
  }
  pen.globalAlpha = 1;
  for (const node of marked) {
    pen.strokeStyle = palette.ink;
    pen.lineWidth = node === selected ? 3 : 1.5;
    pen.beginPath();
    circle(pen, ...toScreen(node, view), pixels(node, scene) + (node === selected ? 2 : 3));
    pen.stroke();
  }
}

function paintCaptions(pen: Pen, scene: Scene): void {
  const { captions, palette, lit, view, selected } = scene;
  for (const [edge, { text, part, below }] of captions.edges) {
    pen.globalAlpha = lit && !(lit.has(edge.source) && lit.has(edge.target)) ? 0.25 : 1;
    const [x, y] = along(edge, part, scene);
    pen.label(text, x, y + below, EDGE_TEXT, selected && (edge.source === selected || edge.target === selected) ? palette.ink : palette.soft, palette.paper);
  }
  for (const [node, { text, dx, dy }] of captions.nodes) {
    pen.globalAlpha = lit && !lit.has(node) ? 0.35 : 1;
    const [x, y] = toScreen(node, view);
    pen.label(text, x + dx, y + dy, NODE_TEXT, palette.ink, palette.paper);
  }
}

/** A place on an edge, in pixels. */
function along(edge: GraphEdge, part: number, scene: Scene): [number, number] {
  const [a, b] = [toScreen(edge.source, scene.view), toScreen(edge.target, scene.view)];
  if (edge.source === edge.target) {
    const r = pixels(edge.source, scene) + 6;
    return [a[0] + r * 0.7, a[1] - r * 1.7 - 8];
  }
  if (!scene.bent.has(edge)) return [a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part];
  const c = bend(a, b);
  const [u, v, w] = [(1 - part) ** 2, 2 * part * (1 - part), part ** 2];
  return [u * a[0] + v * c[0] + w * b[0], u * a[1] + v * c[1] + w * b[1]];
}

/** A place at which a caption is not cut by the rim. */
function within(x: number, width: number, scene: Scene): number {
  return x < 0 || x > scene.width ? x : Math.max(width / 2, Math.min(scene.width - width / 2, x));
}

/** Puts captions where they lie on nothing else: those of nodes that stand out first, then of those with most edges. `textOf` gives none for a node without. */
export function placeCaptions(scene: Scene, textOf: (node: GraphNode) => string, nameOf: (edge: GraphEdge) => string, onlySelected: boolean): void {
  const { lit, selected, view } = scene;
  const nodes = scene.nodes.filter((node) => !outside(toScreen(node, view), scene, 20));
  const rank = (node: GraphNode) => (node === selected ? 1e12 : lit?.has(node) ? 1e9 : 0) + node.weight + node.degree;
  const dense = nodes.length > MOST_CAPTIONS;
  const some = [...nodes].sort((a, b) => rank(b) - rank(a)).slice(0, MOST_CAPTIONS);
  const boxes = (dense ? some : nodes).map((node): Box => {
    const [x, y] = toScreen(node, view);
    const size = pixels(node, scene) * 2;
    return { x, y, width: size, height: size };
  });
  const texts = some.map(textOf);
  const ofNodes = some.map((node, i): Caption => {
    const [x, y] = toScreen(node, view);
    const r = pixels(node, scene);
    const width = Math.max(10, widthOf(texts[i] ?? "", NODE_TEXT) + 6);
    return { width: texts[i] ? width : 0, height: 14, places: [{ x: within(x, width, scene), y: y - r - 9 }, { x: within(x, width, scene), y: y + r + 10 }, { x: x + width / 2 + r + 3, y }, { x: x - width / 2 - r - 3, y }].filter((at) => at.x >= width / 2 - 2 && at.x <= scene.width - width / 2 + 2) };
  });
  const near = (edge: GraphEdge) => selected !== undefined && (edge.source === selected || edge.target === selected);
  const named = scene.edges.filter((edge) => near(edge) || (!onlySelected && scene.edges.length <= MOST_NAMED && !lit)).sort((a, b) => Number(near(b)) - Number(near(a))).slice(0, MOST_NAMED);
  const names = named.map(nameOf);
  const ofEdges = named.map((edge, i): Caption => {
    const width = Math.max(10, widthOf(names[i] ?? "", EDGE_TEXT) + 4);
    const stands = edge.source === edge.target ? STANDS.slice(0, 1) : near(edge) ? STANDS : STANDS.slice(0, FEW_STANDS);
    return { width, height: 12, places: stands.map(({ part, below }) => { const [x, y] = along(edge, part, scene); return { x, y: y + below }; }) };
  });
  // What stands out has its captions first, on nodes and on edges.
  const first = selected ? some.findIndex((node) => node !== selected && !lit?.has(node)) : -1;
  const cut = first < 0 ? some.length : first;
  const ordered = arranged([...ofNodes.slice(0, cut), ...ofEdges, ...ofNodes.slice(cut)], boxes);
  const places = [...ordered.slice(0, cut), ...ordered.slice(cut + ofEdges.length), ...ordered.slice(cut, cut + ofEdges.length)];
  const { captions } = scene;
  captions.nodes.clear();
  captions.edges.clear();
  some.forEach((node, i) => {
    const [found, text] = [places[i], texts[i]];
    const [x, y] = toScreen(node, view);
    if (found && text) captions.nodes.set(node, { text, dx: found.x - x, dy: found.y - y });
  });
  named.forEach((edge, i) => {
    const at = ofEdges[i]?.places.indexOf(places[some.length + i] as { x: number; y: number }) ?? -1;
    // Those of the selected node are read, come what may.
    const stand = STANDS[at] ?? (near(edge) ? STANDS[0] : undefined);
    if (stand) captions.edges.set(edge, { text: names[i] ?? "", ...stand });
  });
}

/** A canvas's context as a pen. */
export function penOf(context: CanvasRenderingContext2D, family: string): Pen {
  const label: Pen["label"] = (text, x, y, size, colour, rim) => {
    context.font = `${size}px ${family}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = rim;
    context.strokeText(text, x, y);
    context.fillStyle = colour;
    context.fillText(text, x, y);
  };
  return Object.assign(context, { label });
}

const ESCAPED: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (c) => ESCAPED[c] ?? c).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}

/** A pen whose strokes become the elements of an SVG text. */
export class SvgPen implements Pen {
  fillStyle: unknown = "";
  strokeStyle: unknown = "";
  lineWidth = 1;
  globalAlpha = 1;
  private path = "";
  private parts: string[] = [];

  constructor(private family: string) {}

  beginPath(): void { this.path = ""; }
  moveTo(x: number, y: number): void { this.path += `M${n(x)} ${n(y)}`; }
  lineTo(x: number, y: number): void { this.path += `L${n(x)} ${n(y)}`; }
  quadraticCurveTo(cx: number, cy: number, x: number, y: number): void { this.path += `Q${n(cx)} ${n(cy)} ${n(x)} ${n(y)}`; }
  /** Whole circles only: nothing else is drawn. */
  arc(x: number, y: number, r: number): void { this.path += `M${n(x + r)} ${n(y)}A${n(r)} ${n(r)} 0 1 1 ${n(x - r)} ${n(y)}A${n(r)} ${n(r)} 0 1 1 ${n(x + r)} ${n(y)}`; }
  rect(x: number, y: number, w: number, h: number): void { this.path += `M${n(x)} ${n(y)}h${n(w)}v${n(h)}h${n(-w)}Z`; }
  stroke(): void { this.put(`<path d="${this.path}" fill="none" stroke="${escaped(String(this.strokeStyle))}" stroke-width="${n(this.lineWidth)}"`); }
  fill(): void { this.put(`<path d="${this.path}" fill="${escaped(String(this.fillStyle))}"`); }
  fillRect(x: number, y: number, w: number, h: number): void { this.put(`<rect x="${n(x)}" y="${n(y)}" width="${n(w)}" height="${n(h)}" fill="${escaped(String(this.fillStyle))}"`); }

  label(text: string, x: number, y: number, size: number, colour: string, rim: string): void {
    const alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
    this.parts.push(`<text x="${n(x)}" y="${n(y)}" font-size="${size}" fill="${escaped(colour)}" stroke="${escaped(rim)}" stroke-width="3" paint-order="stroke" stroke-linejoin="round" text-anchor="middle" dominant-baseline="central"${alpha}>${escaped(text)}</text>`);
  }

  private put(beginning: string): void {
    this.parts.push(`${beginning}${this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""}/>`);
  }

  text(width: number, height: number): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${n(width)}" height="${n(height)}" viewBox="0 0 ${n(width)} ${n(height)}" font-family="${escaped(this.family)}">\n${this.parts.join("\n")}\n</svg>\n`;
  }
}

/** A number with as many digits as a drawing needs. */
function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}
