// What the editor offers: the server says what may stand at the cursor (`/complete`). Without its answer there are words of SPARQL,
// variables and prefixes.

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";
import { FUNCTIONS } from "jindou:functions";
import { inGraphs } from "../graphs.ts";
import { label, labelsOn } from "../labels.ts";
import { dressed, token } from "../net/http.ts";
import { declaration, declared, Prefixes } from "../rdf/prefixes.ts";
import { prefixes } from "../show.ts";
import { isCode, tokens } from "./tokens.ts";

/** Words of the grammar. Functions with a name are not among them: those come from their reference. */
export const KEYWORDS = (
  "SELECT WHERE ASK CONSTRUCT DESCRIBE PREFIX BASE FROM DISTINCT REDUCED OPTIONAL UNION MINUS FILTER BIND VALUES GRAPH SERVICE SILENT " +
  "EXISTS GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET AS UNDEF INSERT DELETE DATA LOAD CLEAR DROP CREATE WITH USING NAMED " +
  "COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT BOUND COALESCE IF sameTerm"
).split(" ");
const WORDS = [...KEYWORDS, ...FUNCTIONS].map((label): Completion => ({ label, type: "keyword" }));

/** Items that are asked for. */
const MOST = 60;
/** Longer texts are completed from themselves alone. */
const LONGEST = 200_000;
/** Characters of a label that are shown. */
const LONGEST_LABEL = 60;

interface Item {
  text: string;
  kind: string;
  iri?: string;
  count?: number;
  prefix?: { name: string; iri: string };
  /** The label that has the word, of what is offered for it. */
  label?: string;
}

export interface Answer {
  slot: string;
  word: string;
  counts: "none" | "exact" | "estimate" | "sample" | "whole";
  sampled: number | null;
  items: Item[];
}

/** A name with a prefix that the text does not declare and this page made up. */
export function coined(before: string, names: Prefixes, own: [string, string][]): { from: number; iri: string } | undefined {
  const found = /(?:^|[\s{(\[.;,|/^!])(([A-Za-z][\w.-]*):([^\s<>"{}()[\],;|/^!*+?]*))$/.exec(before);
  const [, word, prefix, local = ""] = found ?? [];
  if (word === undefined || prefix === undefined || own.some(([name]) => name === prefix)) return undefined;
  const space = names.all.get(prefix);
  return space === undefined ? undefined : { from: before.length - word.length, iri: space + local };
}

async function ask(before: string, after: string, signal: AbortSignal): Promise<Answer | undefined> {
  try {
    const body = new URLSearchParams({ text: before, after, limit: String(MOST), labels: String(labelsOn()) });
    const response = await fetch(inGraphs("complete"), dressed({ method: "POST", body, signal }, token()));
    return response.ok ? ((await response.json()) as Answer) : undefined;
  } catch {
    // No one waits for a suggestion, or reads why there is none.
    return undefined;
  }
}

/** Says what a count counts. */
function detail(item: Item, { counts, sampled }: Answer): string {
  if (item.count === undefined || item.count === 0) return item.kind === "prefix" ? (item.iri ?? "") : "";
  const n = item.count.toLocaleString("en");
  if (counts === "sample" && sampled !== null) return sampled > 1 ? `${n} of ${sampled.toLocaleString("en")}` : "";
  if (counts === "whole") return `${n} in total`;
  return counts === "estimate" ? `~${n}` : n;
}

const TYPES: Record<string, string> = { predicate: "property", class: "class", literal: "constant", object: "constant", graph: "namespace", prefix: "namespace" };

/** Milliseconds that labels may keep completion waiting. */
const PATIENCE = 250;

function soon<T>(promise: Promise<T>, otherwise: T): Promise<T> {
  return Promise.race([promise.catch(() => otherwise), new Promise<T>((resolve) => setTimeout(() => resolve(otherwise), PATIENCE))]);
}

/** The labels of what is offered. */
async function labelsOf(items: Item[]): Promise<Map<string, string>> {
  if (!labelsOn()) return new Map();
  const made = new Map<string, string>();
  await soon(Promise.all(items.map(async ({ iri }) => {
    const found = iri === undefined ? null : await label(iri);
    if (iri !== undefined && found) made.set(iri, found.text.slice(0, LONGEST_LABEL));
  })), []);
  return made;
}

/** Offers an item as short as the prefixes allow; choosing it declares its prefix. */
function option(item: Item, answer: Answer, rank: number, names: Prefixes, label?: string): Completion {
  const text = item.text.startsWith("<") ? (names.short(item.text.slice(1, -1)) ?? item.text) : item.text;
  return {
    label: text,
    type: TYPES[item.kind] ?? item.kind,
    detail: [label, detail(item, answer)].filter(Boolean).join(" · "),
    boost: 99 - Math.min(198, rank),
    apply: (view, _, from, to) => insert(view, text, from, to, names),
  };
}

/** Puts a text where a word was, and declares the prefix that it has. */
function insert(view: EditorView, text: string, from: number, to: number, names: Prefixes = prefixes): void {
  const whole = view.state.doc.toString();
  const prefix = /^(?:"(?:[^"\\]|\\.)*"\^\^)?([^\s:<>"?]*):(?!\s)/.exec(text)?.[1];
  const iri = prefix === undefined ? undefined : names.all.get(prefix);
  const changes = [{ from, to, insert: text }];
  let shift = 0;
  if (prefix !== undefined && iri !== undefined && !declared(whole).some(([name]) => name === prefix)) {
    const { at, insert } = declaration(whole, prefix, iri);
    changes.unshift({ from: at, to: at, insert });
    shift = insert.length;
  }
  view.dispatch({ changes, selection: { anchor: from + shift + text.length }, userEvent: "input.complete", scrollIntoView: true });
}

/** Completion by the server. */
export async function complete(c: CompletionContext): Promise<CompletionResult | null> {
  const text = c.state.doc.toString();
  const before = text.slice(0, c.pos);
  if (!isCode(text, c.pos)) return null;
  const own = declared(text);
  const names = new Prefixes([...own, ...prefixes.all]);
  // The server does not know the prefixes that this page made up.
  const made = coined(before, names, own);
  const asked = made ? `${before.slice(0, made.from)}<${made.iri}` : before;
  const control = new AbortController();
  c.addEventListener("abort", () => control.abort(), { onDocChange: true });
  const answer = text.length <= LONGEST ? await ask(asked, text.slice(c.pos), control.signal) : undefined;
  if (c.aborted) return null;
  if (!answer) return alone(c, text, names);
  const word = made ? before.slice(made.from) : answer.word;
  const wanted = c.explicit || word !== "" || answer.slot === "predicate" || (answer.slot === "object" && answer.items.some((i) => i.count !== undefined));
  if (!wanted || answer.items.length === 0) return null;
  const labels = await labelsOf(answer.items);
  if (c.aborted) return null;
  const options = answer.items.map((item, rank) => option(item, answer, rank, names, (item.iri === undefined ? undefined : labels.get(item.iri)) ?? item.label?.slice(0, LONGEST_LABEL)));
  const stem = word.toLowerCase();
  if (/^[a-z][\w-]*$/i.test(word) && ["subject", "predicate", "object", "graph"].includes(answer.slot)) {
    for (const [name, iri] of names.all) {
      const label = `${name}:`;
      if (name.toLowerCase().startsWith(stem) && !options.some((o) => o.label === label)) {
        options.push({ label, type: "namespace", detail: iri, apply: (view, _, from, to) => insert(view, label, from, to, names) });
      }
    }
  }
  // The server has filtered and ranked them.
  return { from: c.pos - word.length, options, filter: false };
}

/** What the text itself allows to offer. */
function alone(c: CompletionContext, text: string, names: Prefixes): CompletionResult | null {
  const found = c.matchBefore(/[?$]\w*|[\p{L}\p{N}_:\-.]+/u);
  if (!found && !c.explicit) return null;
  const from = found?.from ?? c.pos;
  const options: Completion[] = variables(text, from);
  if (!/^[?$]/.test(found?.text ?? "")) {
    for (const [name, iri] of names.all) {
      if (name) options.push({ label: `${name}:`, type: "namespace", detail: iri, apply: (view, _, a, b) => insert(view, `${name}:`, a, b, names) });
    }
    options.push(...WORDS);
  }
  return { from, options, validFor: /^[?$]?[\p{L}\p{N}_:\-.]*$/u };
}

function variables(text: string, but: number): Completion[] {
  const names = new Set(tokens(text).filter((t) => t.kind === "variable" && t.from !== but).map((t) => `?${t.text.slice(1)}`));
  return [...names].map((label): Completion => ({ label, type: "variable" }));
}
