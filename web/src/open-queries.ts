// The queries that are open: kept by the browser's tab, and by the browser itself for the next tab that begins.

export interface Open {
  names: string[];
  texts: string[];
  current: number;
  /** What those are called that were too long to be kept. */
  lost?: string[];
}

const KEY = "jindou-sheets";
/** Characters of all texts that the tab keeps, of each the whole text or nothing: it has room for some five million. */
const ALL_WHOLE = 2_000_000;
/** Less room than this is not tried. */
const LEAST = 10_000;
/** Characters of the beginning of a text by which it is called. */
const CALLED = 40;
/** Characters of a text, and of all of them, that the browser keeps: its few million are also for what is saved and what ran. */
const LONGEST_KEPT = 100_000;
const ALL_KEPT = 500_000;

/** What the browser keeps, or was found to keep. */
let kept: string | undefined;

/** What was open in this tab; in a new one, what the browser kept last. */
export function openBefore(): Open | undefined {
  return read(() => sessionStorage) ?? read(() => localStorage);
}

/** What is open as the tab begins. The browser is given no set that nobody changed: it could be older than another tab's. */
export function begin(open: Open): void {
  kept = written(open);
}

/** Keeps what is open. Gives what those are called that the tab cannot keep. */
export function keepOpen(open: Open): string[] {
  const lost = keepWhole(open);
  const now = written(open);
  if (now === kept) return lost;
  kept = now;
  try {
    if (now === "") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, JSON.stringify(portion(open)));
  } catch {
    // It is full, or forbidden: what it had stays.
  }
  return lost;
}

/** Keeps whole texts in the tab, in as much room as it has. */
function keepWhole(open: Open): string[] {
  for (let room = ALL_WHOLE; room >= LEAST; room /= 2) {
    const set = whole(open, room);
    try {
      sessionStorage.setItem(KEY, JSON.stringify(set));
      return set.lost ?? [];
    } catch {
      // It is full, or forbidden.
    }
  }
  return [];
}

/** A set without the texts that have no room; the one that is shown comes first. */
export function whole(open: Open, room = ALL_WHOLE): Open {
  const { names, texts } = open;
  const chosen = fitting(open, room, room);
  const all = texts.flatMap((text, i) => (chosen.has(i) || text.trim() === "" ? [i] : []));
  const lost = texts.flatMap((text, i) => (all.includes(i) ? [] : [names[i] || text.trim().slice(0, CALLED)]));
  return { ...part(open, all), ...(lost.length > 0 ? { lost } : {}) };
}

/** Which texts are chosen where there is room for so many characters. */
function fitting({ texts, current }: Open, longest: number, room: number): Set<number> {
  const chosen = new Set<number>();
  let left = room;
  for (const i of [current, ...texts.keys()]) {
    const text = texts[i] ?? "";
    if (chosen.has(i) || text.trim() === "" || text.length > Math.min(left, longest)) continue;
    chosen.add(i);
    left -= text.length;
  }
  return chosen;
}

function part({ names, texts, current }: Open, all: number[]): Open {
  return { names: all.map((i) => names[i] ?? ""), texts: all.map((i) => texts[i] ?? ""), current: Math.max(0, all.indexOf(current)) };
}

/** A set without which query is shown: looking at another one changes nothing that is worth keeping. */
function written(open: Open): string {
  const { names, texts } = portion(open);
  return texts.length === 0 ? "" : JSON.stringify([names, texts]);
}

/** What the browser keeps of a set: texts that are not too long, the one that is shown first while there is room. */
export function portion(open: Open): Open {
  return part(open, [...fitting(open, LONGEST_KEPT, ALL_KEPT)].sort((a, b) => a - b));
}

function read(storage: () => Storage): Open | undefined {
  try {
    return openOf(JSON.parse(storage().getItem(KEY) ?? "null"));
  } catch {
    return undefined;
  }
}

/** A set that was kept, unless it is none. */
export function openOf(found: unknown): Open | undefined {
  const { names, texts, current, lost } = (found ?? {}) as Partial<Record<keyof Open, unknown>>;
  if (!Array.isArray(names) || !Array.isArray(texts) || !texts.every((t) => typeof t === "string")) return undefined;
  const called = Array.isArray(lost) ? lost.map((name) => String(name).slice(0, 100)) : [];
  if (texts.length === 0 && called.length === 0) return undefined;
  const some = texts.length > 0 ? (texts as string[]) : [""];
  return {
    names: some.map((_, i) => String(names[i] ?? "")), texts: some, current: Number.isInteger(current) ? Math.max(0, Math.min(current as number, some.length - 1)) : 0,
    ...(called.length > 0 ? { lost: called } : {}),
  };
}
