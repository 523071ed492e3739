// The queries that are open: kept by the browser's tab, and by the browser itself for the next tab that begins.

export interface Open {
  names: string[];
  texts: string[];
  current: number;
}

const KEY = "jindou-sheets";
/** Queries that are kept open. */
export const MOST = 20;
/** Characters of a text that the tab keeps. */
const LONGEST = 200_000;
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

/** Keeps what is open. */
export function keepOpen(open: Open): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ ...open, texts: open.texts.map((t) => t.slice(0, LONGEST)) }));
  } catch {
    // A browser that keeps nothing is fine.
  }
  const now = written(open);
  if (now === kept) return;
  kept = now;
  try {
    if (now === "") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, JSON.stringify(portion(open)));
  } catch {
    // It is full, or forbidden: what it had stays.
  }
}

/** A set without which query is shown: looking at another one changes nothing that is worth keeping. */
function written(open: Open): string {
  const { names, texts } = portion(open);
  return texts.length === 0 ? "" : JSON.stringify([names, texts]);
}

/** What the browser keeps of a set: texts that are not too long, the one that is shown first while there is room. */
export function portion({ names, texts, current }: Open): Open {
  const chosen = new Set<number>();
  let left = ALL_KEPT;
  for (const i of [current, ...texts.keys()]) {
    const text = texts[i] ?? "";
    if (chosen.has(i) || text.trim() === "" || text.length > Math.min(left, LONGEST_KEPT)) continue;
    chosen.add(i);
    left -= text.length;
  }
  const all = [...chosen].sort((a, b) => a - b);
  return { names: all.map((i) => names[i] ?? ""), texts: all.map((i) => texts[i] ?? ""), current: Math.max(0, all.indexOf(current)) };
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
  const { names, texts, current } = (found ?? {}) as Partial<Record<keyof Open, unknown>>;
  if (!Array.isArray(names) || !Array.isArray(texts) || texts.length === 0 || !texts.every((t) => typeof t === "string")) return undefined;
  const some = texts.slice(0, MOST) as string[];
  return { names: some.map((_, i) => String(names[i] ?? "")), texts: some, current: Number.isInteger(current) ? Math.max(0, Math.min(current as number, some.length - 1)) : 0 };
}
