// N-Triples as our server writes them: a triple a line, one space between its terms.

import { parseTerm, type Term } from "./term.ts";

export function triples(text: string): [Term, Term, Term][] {
  const all: [Term, Term, Term][] = [];
  for (const line of text.split("\n")) {
    const body = line.trimEnd();
    if (!body.endsWith(".") || body.startsWith("#")) continue;
    const first = body.indexOf(" ");
    const second = body.indexOf(" ", first + 1);
    if (first < 0 || second < 0) continue;
    const three = [body.slice(0, first), body.slice(first + 1, second), body.slice(second + 1, -1).trim()]
      .map((cell) => parseTerm(cell));
    const [s, p, o] = three;
    if (s && p && o) all.push([s, p, o]);
  }
  return all;
}
