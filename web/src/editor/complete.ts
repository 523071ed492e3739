// What the editor offers: words of SPARQL, variables, prefixes, and what the data has at this place of the question.

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";
import { select } from "../net/select.ts";
import type { Counted, Description } from "../rdf/description.ts";
import { declaration, declared, Prefixes } from "../rdf/prefixes.ts";
import { RDF_TYPE, written } from "../rdf/term.ts";
import { prefixes } from "../show.ts";
import { context, suggestionQuery, type Context } from "./context.ts";
import { tokens } from "./tokens.ts";

const KEYWORDS = (
  "SELECT WHERE ASK CONSTRUCT DESCRIBE PREFIX BASE FROM DISTINCT REDUCED OPTIONAL UNION MINUS FILTER BIND VALUES GRAPH SERVICE SILENT " +
  "EXISTS GROUP BY HAVING ORDER ASC DESC LIMIT OFFSET AS UNDEF INSERT DELETE DATA LOAD CLEAR DROP CREATE WITH USING NAMED " +
  "COUNT SUM MIN MAX AVG SAMPLE GROUP_CONCAT STR LANG LANGMATCHES DATATYPE BOUND IRI BNODE RAND ABS CEIL FLOOR ROUND CONCAT STRLEN " +
  "UCASE LCASE ENCODE_FOR_URI CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ NOW " +
  "UUID STRUUID MD5 SHA1 SHA256 SHA384 SHA512 COALESCE IF STRLANG STRDT SAMETERM ISIRI ISBLANK ISLITERAL ISNUMERIC SUBSTR REPLACE REGEX"
).split(" ").map((label): Completion => ({ label, type: "keyword", boost: -5 }));

/** Milliseconds that a suggestion may take at the server. */
const PATIENCE = 700;
/** Suggestions that are kept. */
const KEPT = 60;

const kept = new Map<string, Promise<Counted[]>>();

/** What a query for suggestions found; none where it failed: nobody waits for a suggestion, or reads why there is none. */
function suggestions(query: string): Promise<Counted[]> {
  const found = kept.get(query);
  if (found) return found;
  const made = select(query, { timeout: PATIENCE / 1000, most: 200 }).then(
    (rows) => rows.flatMap(([term, n]) => (term && term.type !== "blank" && (term.type !== "literal" || !term.cut) ? [{ iri: written(term), count: Number(n?.value ?? 0) }] : [])),
    () => [],
  );
  kept.set(query, made);
  for (const oldest of kept.keys()) {
    if (kept.size <= KEPT) break;
    kept.delete(oldest);
  }
  return made;
}

/** Offers a term as short as the prefixes allow; choosing it declares its prefix. */
function option(text: string, count: number, rank: number, names: Prefixes): Completion {
  const short = text.startsWith("<") ? names.short(text.slice(1, -1)) : undefined;
  return {
    label: short ?? text,
    type: text.startsWith("<") ? "property" : "constant",
    detail: count > 0 ? count.toLocaleString("en") : "",
    boost: 50 - Math.min(49, rank / 2),
    apply: (view, _, from, to) => insert(view, short ?? text, from, to, names),
  };
}

/** Puts a text where a word was, and declares the prefix that it has. */
export function insert(view: EditorView, text: string, from: number, to: number, names: Prefixes = prefixes): void {
  const whole = view.state.doc.toString();
  const prefix = /^([^\s:<>"?]*):/.exec(text)?.[1];
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

/** Completion over the data that `data` describes. */
export function completion(data: () => Promise<Description | undefined>) {
  return async (c: CompletionContext): Promise<CompletionResult | null> => {
    const text = c.state.doc.toString();
    const at = context(text, c.pos);
    if (!at) return null;
    const word = text.slice(at.from, c.pos);
    const wanted = c.explicit || word !== "" || at.slot === "predicate" || (at.slot === "object" && at.predicate !== undefined);
    if (!wanted) return null;
    const own = declared(text);
    const names = new Prefixes([...own, ...prefixes.all]);
    if (/^[?$]/.test(word)) return { from: at.from, options: variables(text, at.from), validFor: /^[?$]\w*$/ };
    const options: Completion[] = [];
    if (at.slot !== "other") {
      const known = await terms(at, own, data);
      if (c.aborted) return null;
      known.forEach((t, rank) => options.push(option(t.iri, t.count, rank, names)));
      if (at.slot === "subject" || (at.slot === "object" && word === "" && c.explicit)) options.push(...variables(text, at.from));
      if (at.slot === "predicate" && !options.some((o) => o.label === "rdf:type")) options.push({ label: "a", type: "keyword", detail: "rdf:type", boost: 1 });
    }
    if (word !== "" && !word.includes(":") && !word.startsWith("<")) {
      for (const [name, iri] of names.all) {
        if (name) options.push({ label: `${name}:`, type: "namespace", detail: iri, boost: -2, apply: (view, _, from, to) => insert(view, `${name}:`, from, to, names) });
      }
    }
    if (at.slot === "other" || at.slot === "subject") options.push(...KEYWORDS);
    if (options.length === 0) return null;
    return { from: at.from, options, validFor: /^[\p{L}\p{N}_:\-.<>/#]*$/u };
  };
}

async function terms(at: Context, own: [string, string][], data: () => Promise<Description | undefined>): Promise<Counted[]> {
  const query = suggestionQuery(at, own);
  const found = query ? await suggestions(query) : [];
  if (found.length > 0) return found;
  const angled = (all: Counted[] | undefined) => (all ?? []).map(({ iri, count }) => ({ iri: `<${iri}>`, count }));
  if (at.slot === "predicate") return angled((await data())?.predicates);
  const typed = at.slot === "object" && (at.predicate === "a" || at.predicate === "rdf:type" || at.predicate === `<${RDF_TYPE}>`);
  return typed ? angled((await data())?.classList) : [];
}

function variables(text: string, but: number): Completion[] {
  const names = new Set(tokens(text).filter((t) => t.kind === "variable" && t.from !== but).map((t) => `?${t.text.slice(1)}`));
  return [...names].map((label): Completion => ({ label, type: "variable" }));
}
