// The planner's own lines of a plan, brought together with the measured steps.

export interface Step {
  name: string;
  rows_in: number | null;
  rows_out: number | null;
  ms: number | null;
  bytes: number | null;
  bytes_held: number | null;
  place: string;
  inputs: Step[];
}

/** One line of the drawn plan: what it does, what was expected, what was measured. */
export interface Line {
  depth: number;
  /** The number of a step within its exploration, as the plan's text has it. */
  number?: number;
  name: string;
  /** What the planner says about it. */
  notes: string[];
  expected?: number;
  measured?: Step;
  /** Milliseconds without those of the steps that have lines of their own. */
  own?: number;
  /** True where a LIMIT above ended it before it was through. */
  cut?: boolean;
}

/** An operator or a step of the text. */
interface Said {
  indent: number;
  number?: number;
  name: string;
  notes: string[];
  expected?: number;
}

/** The plan's own lines: what stands before the table of measured steps. */
export function expected(text: string[]): string[] {
  const end = text.findIndex((line) => line.trim() === "");
  return end < 0 ? text : text.slice(0, end);
}

const UNITS: Record<string, number> = { k: 1e3, M: 1e6, G: 1e9, T: 1e12 };

function rowsOf(text: string): number | undefined {
  const found = /~\s*(\d[\d.,]*(?:e[+-]?\d+)?)([kMGT]?) rows/.exec(text);
  return found ? Number((found[1] ?? "").replaceAll(",", "")) * (UNITS[found[2] ?? ""] ?? 1) : undefined;
}

/** Reads operators and steps out of the lines. */
function said(lines: string[]): Said[] {
  const all: Said[] = [];
  for (const whole of expected(lines)) {
    // Variables of inner groups have their group in their names, which no one wrote.
    const line = whole.replace(/\((\w+) inside \d+\)/g, "?$1").replace(/(\?\w+) inside \d+/g, "$1");
    const indent = line.search(/\S/);
    if (indent <= 0) continue;
    const text = line.trim();
    const step = /^(\d+)\. (.*)$/.exec(text);
    const rows = rowsOf(text);
    const last = all.at(-1);
    if (step) {
      const made: Said = { indent, number: Number(step[1]), name: step[2] ?? "", notes: [] };
      all.push(made);
    } else if (last?.number !== undefined && indent > last.indent) {
      if (rows !== undefined && last.expected === undefined) last.expected = rows;
      const note = text.replace(/^~[^;]*;\s*/, "").replace(/^~[^;]* rows, ~[^;]*$/, "");
      if (note !== "") last.notes.push(note);
    } else {
      const operator = /^(.*?)\s+\(~[^()]*\)(.*)$/.exec(text);
      if (operator) all.push({ indent, name: (operator[1] ?? "") + (operator[2] ?? ""), notes: [], ...(rows === undefined ? {} : { expected: rows }) });
      else if (last && indent > last.indent) last.notes.push(text);
      else all.push({ indent, name: text, notes: [] });
    }
  }
  return all;
}

const STEP = /^step (\d+)$/;

/** The steps of an exploration by their numbers: each is the input of the next one. */
function chain(step: Step, into = new Map<number, Step>()): Map<number, Step> {
  for (const input of step.inputs) {
    const number = STEP.exec(input.name)?.[1];
    if (number === undefined) continue;
    into.set(Number(number) + 1, input);
    chain(input, into);
  }
  return into;
}

/** What hangs below an operator that is an operator itself. */
function below(step: Step): Step[] {
  return step.inputs.flatMap((input) => (STEP.test(input.name) ? below(input) : [input]));
}

/** All operators of a tree, each before its inputs. */
function operators(step: Step): Step[] {
  return [step, ...below(step).flatMap(operators)];
}

/** True for an operator that counts no rows by itself: it has none, and what it takes its rows from has, or what takes its rows. */
function countsNone(step: Step, above?: Step): boolean {
  if (step.rows_in || step.rows_out) return false;
  return step.inputs.some((input) => (input.rows_out ?? 0) > 0 || countsNone(input)) || (above !== undefined && (above.rows_in ?? 0) > 0 && below(above).length === 1);
}

/** The end of all plans, which the text does not have. */
const RESULT = "result";

/** Operators that take all rows before they give one, whatever LIMIT there is above. */
const WHOLE = /order|count|sum|avg|min|max|sample|concat|group|top/i;

/** All lines of a plan, each operator before what it takes its rows from, the steps of an exploration in the order in which they run. */
export function lines(text: string[], tree: Step | null | undefined): Line[] {
  const words = said(text);
  const all: Line[] = [];
  if (!tree) {
    const indents: number[] = [];
    for (const one of words) {
      while (indents.length > 0 && (indents.at(-1) ?? 0) >= one.indent) indents.pop();
      all.push({ depth: indents.length, ...shown(one) });
      if (one.number === undefined) indents.push(one.indent);
    }
    return all;
  }
  // The text and the tree have the same operators in the same order; otherwise those of the same name belong together.
  const own = operators(tree).filter((step) => step.name !== RESULT);
  const inOrder = own.length === words.filter((w) => w.number === undefined).length;
  let at = 0;
  const walk = (step: Step, depth: number, cut: boolean, above?: Step) => {
    const kind = step.name.toLowerCase();
    const found = step.name === RESULT ? -1 : words.findIndex((w, i) => i >= at && w.number === undefined && (inOrder || w.name.toLowerCase().includes(kind)));
    const operator = found < 0 ? undefined : words[found];
    if (found >= 0) at = found + 1;
    const ends = cut ? !WHOLE.test(step.name) : step.name === "slice";
    const steps = chain(step);
    // The time of an operator has that of its steps in it.
    const own = step.ms === null ? {} : { own: Math.max(0, step.ms - [...steps.values()].reduce((sum, { ms }) => sum + (ms ?? 0), 0)) };
    all.push({ depth, ...(operator ? shown(operator) : { name: step.name, notes: [] }), measured: countsNone(step, above) ? { ...step, rows_in: null, rows_out: null } : step, ...own, cut });
    const listed = new Set<number>();
    while (operator && words[at]?.number !== undefined) {
      const one = words[at] as Said;
      at++;
      const measured = steps.get(one.number ?? 0);
      listed.add(one.number ?? 0);
      all.push({ depth: depth + 1, ...shown(one), ...(measured ? { measured, own: measured.ms ?? 0 } : {}), cut: ends });
    }
    for (const [number, measured] of [...steps].sort(([a], [b]) => a - b)) if (!listed.has(number)) all.push({ depth: depth + 1, number, name: "step", notes: [], measured, own: measured.ms ?? 0, cut: ends });
    for (const input of below(step)) walk(input, depth + 1, ends, step);
  };
  walk(tree, 0, false);
  return all;
}

function shown({ number, name, notes, expected }: Said): Omit<Line, "depth"> {
  return { name, notes, ...(number === undefined ? {} : { number }), ...(expected === undefined ? {} : { expected }) };
}

/** How many times more rows came than expected, or fewer (below 1); `undefined` where it is not known or too few rows to matter. */
export function off({ expected, measured, cut }: Line): number | undefined {
  const rows = measured?.rows_out;
  if (expected === undefined || rows === null || rows === undefined || (cut && rows < expected)) return undefined;
  // Differences of a few rows cost nothing.
  return Math.max(expected, rows) < 100 ? undefined : Math.max(1, rows) / Math.max(1, expected);
}

/** The line that took most time by itself, and its part of the time of all. */
export function slowest(all: Line[]): { line: Line; part: number } | undefined {
  const sum = all.reduce((n, { own }) => n + (own ?? 0), 0);
  const line = all.reduce<Line | undefined>((most, one) => ((one.own ?? 0) > (most?.own ?? 0) ? one : most), undefined);
  return line && sum > 0 ? { line, part: (line.own ?? 0) / sum } : undefined;
}

/** A line and those that it takes its rows from. */
export interface PlanNode {
  line: Line;
  inputs: PlanNode[];
}

/** The lines as a tree. The steps of an exploration stand one after the other: each takes the rows of the one before. */
export function treeOf(all: Line[]): PlanNode | undefined {
  let at = 0;
  const read = (): PlanNode | undefined => {
    const line = all[at];
    if (!line) return undefined;
    at++;
    const steps: PlanNode[] = [];
    const inputs: PlanNode[] = [];
    while ((all[at]?.depth ?? -1) > line.depth) {
      const one = read();
      if (one) (one.line.number === undefined ? inputs : steps).push(one);
    }
    let below = inputs;
    for (const step of steps) below = [{ line: step.line, inputs: below }];
    return { line, inputs: below };
  };
  return read();
}

/** Puts prefixed names in the place of IRIs, of which the plan has only the last part: of those that the query names, or else the data has. */
export function renamer(known: Iterable<string>[], shown: (iri: string) => string): (text: string) => string {
  const last = /[^/#]*[/#]*$/;
  const found = known.map((iris) => {
    const names = new Map<string, string | undefined>();
    for (const iri of new Set(iris)) {
      const local = last.exec(iri)?.[0] ?? "";
      // Of two with the same end it is not known which one is meant.
      names.set(local, names.has(local) ? undefined : iri);
    }
    return names;
  });
  return (text) => text.replace(/<(…?)([^<>\s]+)>/g, (whole, cut: string, rest: string) => {
    if (cut === "") return short(rest, shown, whole);
    const names = found.find((one) => one.has(rest));
    const iri = names?.get(rest);
    return iri === undefined ? whole : short(iri, shown, whole);
  });
}

function short(iri: string, shown: (iri: string) => string, whole: string): string {
  const name = shown(iri);
  return name === iri ? whole : name;
}
