// What is asked at a place of a query, and what the query has said until there.

import { tokens, type Token } from "./tokens.ts";

/** A triple pattern in the text's own words. */
export interface Pattern {
  subject: string;
  predicate: string;
  object: string;
  /** The graph whose group it stands in. */
  graph: string | undefined;
}

export interface Context {
  /** The slot that is being written. `other`: no triple. */
  slot: "subject" | "predicate" | "object" | "other";
  subject?: string;
  predicate?: string;
  graph?: string;
  /** Complete patterns before, of the groups around this place. */
  patterns: Pattern[];
  /** Where the word that is being written begins. */
  from: number;
}

interface Group {
  sign: "{" | "[" | "(";
  graph: string | undefined;
  /** Another endpoint's: what it has is not known here. */
  foreign: boolean;
  patterns: Pattern[];
  slot: "subject" | "predicate" | "object" | "other";
  subject: string | undefined;
  predicate: string;
  /** The next sign decides whether a path goes on. */
  inPath: boolean;
}

const STARTS = new Set(["optional", "union", "minus", "filter", "bind", "values", "graph", "service", "exists", "not", "silent", "select", "where"]);

/** The context at a place; `null` inside of a comment, a string or another endpoint's group. */
export function context(text: string, at: number): Context | null {
  const before = text.slice(0, at);
  const all = tokens(before);
  const last = all.at(-1);
  let from = at;
  if (last?.open && last.to === at) return null;
  // What touches the place is still being written.
  if (last && last.to === at && last.kind !== "sign" && last.kind !== "string" && last.kind !== "iri") from = (all.pop() as Token).from;
  else {
    const bracket = /<[^\s<>"{}|^`]*$/.exec(before);
    if (bracket && all.length > 0 && (last?.text === "<" || (last?.to === at && last.kind !== "iri"))) {
      from = bracket.index;
      while (all.length > 0 && (all.at(-1)?.to ?? 0) > from) all.pop();
    } else if (last && last.to === at && (last.text === "?" || last.text === "$" || last.text === "@")) {
      from = (all.pop() as Token).from;
    }
  }
  const stack: Group[] = [];
  let graph: string | undefined;
  let service = false;
  let previous: Token | undefined;
  let previousWord = "";
  const open = (sign: Group["sign"], slot: Group["slot"], subject?: string) => {
    const around = stack.at(-1);
    stack.push({
      sign, slot, subject, predicate: "", patterns: [], inPath: false,
      graph: sign === "{" && graph !== undefined ? graph : around?.graph,
      foreign: (around?.foreign ?? false) || (sign === "{" && service),
    });
  };
  for (const token of all) {
    if (token.kind === "comment") continue;
    const group = stack.at(-1);
    const word = token.kind === "word" ? token.text.toLowerCase() : "";
    if (token.text === "{") {
      open("{", "subject");
      graph = undefined;
      service = false;
    } else if (token.text === "}") {
      // Whatever was left open inside is over.
      while (stack.length > 0 && stack.pop()?.sign !== "{");
      const outer = stack.at(-1);
      if (outer) outer.slot = "subject";
    } else if (!group) {
      if (previousWord === "graph") graph = token.text;
    } else if (word && STARTS.has(word)) {
      group.slot = "other";
      service ||= word === "service";
    } else if (group.slot === "other") {
      if (previousWord === "graph" && (token.kind !== "word")) graph = token.text;
      if (token.text === "(") open("(", "other");
      else if (token.text === ")" && group.sign === "(") {
        stack.pop();
        const outer = stack.at(-1);
        // A FILTER or a BIND is over; another call of an expression is not.
        if (outer && outer.sign === "{") outer.slot = "subject";
      } else if (token.text === "." && group.sign === "{") group.slot = "subject";
    } else {
      step(group, token, previous, open, stack);
    }
    previous = token;
    if (word !== "silent") previousWord = word;
  }
  const group = stack.at(-1);
  if (stack.some((g) => g.foreign)) return null;
  const made: Context = { slot: "other", patterns: stack.flatMap((g) => g.patterns), from };
  if (!group) return made;
  made.slot = group.slot;
  // Behind a predicate without a space it is still that predicate that is written.
  if (group.subject !== undefined) made.subject = group.subject;
  if (group.slot === "object") made.predicate = group.predicate;
  if (group.graph !== undefined) made.graph = group.graph;
  return made;
}

function step(group: Group, token: Token, previous: Token | undefined, open: (sign: Group["sign"], slot: Group["slot"], subject?: string) => void, stack: Group[]): void {
  switch (token.text) {
    case ".":
      if (group.sign === "{") group.slot = "subject";
      return;
    case ";":
      group.slot = "predicate";
      return;
    case ",":
      group.slot = "object";
      return;
    case "[":
      advance(group, undefined);
      open("[", "predicate", undefined);
      return;
    case "]":
      if (group.sign === "[") stack.pop();
      return;
    case "(":
      if (group.slot === "predicate") group.predicate += "(";
      else {
        advance(group, undefined);
        open("(", "object");
      }
      return;
    case ")":
      if (group.sign === "(") stack.pop();
      else group.predicate += ")";
      return;
  }
  const path = "/|^*+?!".includes(token.text);
  // A predicate goes on behind the sign of a path: `a/b`, `a|b`, `a*`.
  if (group.slot === "object" && path && previous && /^[/|*+?!^]$/.test(token.text)) {
    group.predicate += token.text;
    if (token.text === "/" || token.text === "|") group.slot = "predicate";
    return;
  }
  if (group.slot === "predicate" && path) {
    group.predicate += token.text;
    group.inPath = true;
    return;
  }
  if (token.kind === "sign" || (token.kind === "word" && token.text.startsWith("@"))) return;
  if (token.kind === "word" && !/^(a|true|false)$/.test(token.text)) {
    group.slot = "other";
    return;
  }
  // The datatype of a literal belongs to it.
  if (previous?.text === "^^") return;
  advance(group, token.text);
}

/** A term of a triple was read; `undefined`: one that has no name. */
function advance(group: Group, term: string | undefined): void {
  if (group.slot === "subject") {
    group.subject = term;
    group.predicate = "";
    group.slot = group.sign === "(" ? "object" : "predicate";
  } else if (group.slot === "predicate") {
    const goesOn = /[/|^!(]$/.test(group.predicate);
    group.predicate = goesOn ? group.predicate + (term ?? "") : (term ?? "");
    group.slot = "object";
  } else if (group.slot === "object" && group.sign !== "(") {
    if (group.subject !== undefined && group.predicate !== "" && term !== undefined && !/['"0-9]/.test(term[0] ?? "")) {
      group.patterns.push({ subject: group.subject, predicate: group.predicate, object: term, graph: group.graph });
    }
  }
}

const VARIABLE = /^[?$]/;

/** The patterns that say something about a variable, themselves or through others. */
export function about(variable: string, patterns: Pattern[]): Pattern[] {
  const known = new Set([bare(variable)]);
  const chosen = new Set<Pattern>();
  for (let grew = true; grew; ) {
    grew = false;
    for (const pattern of patterns) {
      const own = [pattern.subject, pattern.predicate, pattern.object].filter((t) => VARIABLE.test(t)).map(bare);
      if (chosen.has(pattern) || !own.some((v) => known.has(v))) continue;
      chosen.add(pattern);
      own.forEach((v) => known.add(v));
      grew = true;
    }
  }
  return patterns.filter((p) => chosen.has(p));
}

function bare(variable: string): string {
  return variable.slice(1);
}

function patternText({ subject, predicate, object, graph }: Pattern): string {
  const triple = `${subject} ${predicate} ${object} .`;
  return graph === undefined ? triple : `GRAPH ${graph} { ${triple} }`;
}

/** Solutions that a suggestion is drawn from. */
const SAMPLE = 1000;

/**
 * A query for what may stand in the slot, with how often: among the first subjects that the question so far has. `null` where the
 * question says nothing about it.
 */
export function suggestionQuery(c: Context, declared: [string, string][]): string | null {
  if (c.slot !== "predicate" && c.slot !== "object") return null;
  const { subject, graph } = c;
  if (subject === undefined || subject.startsWith("_:")) return null;
  const wanted = c.slot === "predicate" ? "?_p" : "?_o";
  const candidate = patternText({ subject, predicate: c.slot === "predicate" ? "?_p" : (c.predicate ?? ""), object: "?_o", graph });
  const prologue = declared.map(([name, iri]) => `PREFIX ${name}: <${iri}>\n`).join("");
  const group = `SELECT ${wanted} (COUNT(*) AS ?_n) WHERE`;
  const tail = `GROUP BY ${wanted} ORDER BY DESC(?_n) LIMIT 100`;
  const known = VARIABLE.test(subject) ? about(subject, c.patterns) : [];
  if (known.length > 0) {
    const sample = `{ SELECT ${subject} WHERE { ${known.map(patternText).join(" ")} } LIMIT ${SAMPLE} }`;
    return `${prologue}${group} { ${sample} ${candidate} } ${tail}`;
  }
  if (!VARIABLE.test(subject)) return `${prologue}${group} { ${candidate} } ${tail}`;
  // Of any subject: all predicates are known without a query, all classes too.
  if (c.slot === "predicate" || VARIABLE.test(c.predicate ?? "?")) return null;
  return `${prologue}${group} { { SELECT ?_o WHERE { ${candidate} } LIMIT ${SAMPLE} } } ${tail}`;
}
