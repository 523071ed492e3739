// Queries that this browser remembers: those that ran, and those that were given a name.

export interface Past {
  text: string;
  /** When it ran last, in milliseconds since 1970. */
  at?: number;
  rows?: number;
  /** Milliseconds that it took. */
  ms?: number;
  /** How it ended, unless it was answered. */
  ended?: "failed" | "cancelled";
}

interface Saved {
  name: string;
  text: string;
}

const PAST = "jindou-queries";
const SAVED = "jindou-saved";
const MOST = 50;
/** Characters of a query that is remembered. */
const LONGEST = 20_000;

function read(key: string): unknown[] {
  try {
    const all: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
    return Array.isArray(all) ? all : [];
  } catch {
    return [];
  }
}

function write(key: string, all: unknown[]): void {
  try {
    localStorage.setItem(key, JSON.stringify(all));
  } catch {
    // A browser that keeps nothing is fine.
  }
}

/** Queries that ran in this browser, the last one first. */
export function past(): Past[] {
  return read(PAST).flatMap((q): Past[] => {
    // Earlier versions kept the texts alone.
    if (typeof q === "string") return [{ text: q }];
    return typeof q === "object" && q !== null && typeof (q as Past).text === "string" ? [q as Past] : [];
  });
}

export function remember(one: Past): void {
  if (one.text.length > LONGEST) return;
  write(PAST, [one, ...past().filter((q) => q.text !== one.text)].slice(0, MOST));
}

export function forgetPast(): void {
  write(PAST, []);
}

export function saved(): Saved[] {
  return read(SAVED).filter((q): q is Saved => typeof q === "object" && q !== null && typeof (q as Saved).name === "string" && typeof (q as Saved).text === "string");
}

/** Keeps a query under its name, in place of an earlier one of that name. */
export function keep(name: string, text: string): void {
  write(SAVED, [...saved().filter((q) => q.name !== name), { name, text }].sort((a, b) => a.name.localeCompare(b.name)));
}

export function drop(name: string): void {
  write(SAVED, saved().filter((q) => q.name !== name));
}

/** What a query is about, without what many have in common: its first comment, or its text without prologue. */
export function summary(text: string, most = 90): string {
  const comment = /^\s*#\s*(\S[^\n]*)/m.exec(text)?.[1];
  const bare = text.replace(/^\s*(?:#[^\n]*\n|(?:prefix\s+[^\s:]*:|base)\s*<[^>]*>\s*)+/i, "").replace(/\s+/g, " ").trim();
  const said = comment ? `${comment} · ${bare}` : bare;
  return said.length > most ? `${said.slice(0, most - 1)}…` : said;
}
