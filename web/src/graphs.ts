// Which graphs patterns outside GRAPH read: the default graph, or all graphs together.

import type { Description } from "./rdf/description.ts";

export type Graphs = "default" | "all";

const KEY = "jindou-graphs";

/** What the server reads by itself. */
let own: Graphs = "default";
/** What fits the data, where no one has chosen. */
let fitting: Graphs = "default";
/** Whether there is a choice: named graphs, whose triples are not all. */
let matters = false;

/** What someone chose in this tab. */
function chosen(): Graphs | undefined {
  try {
    const value = sessionStorage.getItem(KEY);
    return value === "all" || value === "default" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Takes what the server says of its data: where the default graph is empty and named graphs are not, all graphs are read. */
export function fit(about: Description): void {
  own = about.unionDefault ? "all" : "default";
  matters = about.namedQuads > 0;
  fitting = matters && about.defaultTriples === 0 ? "all" : own;
}

export function graphs(): Graphs {
  return matters ? (chosen() ?? fitting) : own;
}

/** True if there is something to choose. */
export function graphsMatter(): boolean {
  return matters;
}

/** True if all graphs are read because the default graph is empty, and not because someone said so. */
export function isFitted(): boolean {
  return matters && chosen() === undefined && fitting === "all" && own === "default";
}

export function choose(value: Graphs): void {
  try {
    sessionStorage.setItem(KEY, value);
  } catch {
    // A browser that keeps nothing takes what fits.
    fitting = value;
  }
}

/** What the search and labels read: all graphs, unless someone chose the default graph. */
export function graphsOfNames(): Graphs {
  return chosen() ?? "all";
}

/** The parameter for the server; `undefined` where it is what the server does anyway. */
export function graphsParameter(value: Graphs = graphs()): Graphs | undefined {
  return value === own ? undefined : value;
}

/** A request's path with a parameter more. */
export function withParameter(path: string, name: string, value: string | number | undefined): string {
  return value === undefined ? path : `${path}${path.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
}

/** A request's path that says which graphs are read. */
export function inGraphs(path: string, value: Graphs = graphs()): string {
  return withParameter(path, "graphs", graphsParameter(value));
}
