// A plan as a diagram: boxes for its steps, the result on top, lines as wide as the rows that go along them.

import { svg } from "../dom.ts";
import { count, milliseconds } from "../format.ts";
import { type Line, type PlanNode, treeOf } from "./estimate.ts";

const WIDE = 220;
const HIGH = 46;
const GAP = 16;
const STEP = HIGH + 26;
/** Characters of a name in a box. */
const LETTERS = 30;
/** Boxes that can be told apart. */
const MOST = 200;

interface Box {
  line: Line;
  x: number;
  y: number;
  above?: Box;
}

/** Places each node: leaves next to each other, and each other one over the middle of its inputs. */
function place(root: PlanNode): { boxes: Box[]; width: number } {
  const boxes: Box[] = [];
  let next = 0;
  const put = (node: PlanNode, depth: number, above?: Box): Box => {
    const box: Box = { line: node.line, x: 0, y: depth * STEP, ...(above ? { above } : {}) };
    boxes.push(box);
    const below = node.inputs.map((one) => put(one, depth + 1, box));
    const [first, last] = [below[0], below.at(-1)];
    if (first && last) box.x = (first.x + last.x) / 2;
    else {
      box.x = next;
      next += WIDE + GAP;
    }
    return box;
  };
  put(root, 0);
  return { boxes, width: next - GAP };
}

/** The diagram; `undefined` where no step has two inputs, or there are too many. */
export function flow(all: Line[], slow: Line | undefined, name: (text: string) => string): SVGSVGElement | undefined {
  if (all.length > MOST) return undefined;
  const root = treeOf(all);
  const forks = (node: PlanNode): boolean => node.inputs.length > 1 || node.inputs.some(forks);
  if (!root || !forks(root)) return undefined;
  const { boxes, width } = place(root);
  const height = Math.max(...boxes.map(({ y }) => y)) + HIGH;
  const rows = (line: Line) => line.measured?.rows_out ?? line.expected ?? 0;
  const most = Math.max(1, ...boxes.map(({ line }) => rows(line)));
  const made = svg("svg", { class: "flow", role: "img", "aria-label": `Flow of ${boxes.length} steps; the table has the same`, width: width + 4, height: height + 4, viewBox: `-2 -2 ${width + 4} ${height + 4}` });
  for (const { line, x, y, above } of boxes) {
    if (!above) continue;
    const [from, to] = [x + WIDE / 2, above.x + WIDE / 2];
    const middle = (y + above.y + HIGH) / 2;
    made.append(svg("path", { d: `M${from} ${y}C${from} ${middle} ${to} ${middle} ${to} ${above.y + HIGH}`, "stroke-width": 1 + (7 * Math.log1p(rows(line))) / Math.log1p(most) }));
  }
  for (const { line, x, y } of boxes) made.append(draw(line, x, y, line === slow, name));
  return made;
}

function draw(line: Line, x: number, y: number, slow: boolean, name: (text: string) => string): SVGGElement {
  const { number, measured, expected } = line;
  const whole = `${number === undefined ? "" : `${number}. `}${name(line.name)}`;
  const cut = whole.length > LETTERS ? `${whole.slice(0, LETTERS - 1)}…` : whole;
  const rows = measured?.rows_out ?? undefined;
  const facts = [
    rows !== undefined ? `${count(rows)} rows` : expected !== undefined ? `~${count(Math.round(expected))} rows` : "",
    line.own !== undefined && line.own > 0 ? milliseconds(line.own) : "", slow ? "slowest" : "",
  ].filter(Boolean).join(" · ");
  return svg(
    "g", { class: slow ? "slow" : "", transform: `translate(${x} ${y})` },
    svg("title", {}, [whole, ...line.notes.map(name)].join("\n").slice(0, 1000)),
    svg("rect", { width: WIDE, height: HIGH, rx: 4 }), svg("text", { x: 10, y: 19 }, cut), svg("text", { x: 10, y: 37, class: "facts-line" }, facts),
  );
}
