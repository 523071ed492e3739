// The prefixes that the server keeps with its data.

import { prefixes } from "../show.ts";
import { dressed, send, token } from "./http.ts";

interface Prefix {
  prefix: string;
  iri: string;
  from: "data" | "set" | "common";
}

/** What the server listed last; `undefined` where it keeps none. */
let listed: Prefix[] | undefined;

/** The server's prefixes of the data, and those that were set; common ones are known anyway. */
export function ownPrefixes(): Prefix[] | undefined {
  return listed?.filter((p) => p.from !== "common");
}

/** Learns the server's prefixes. A server without such a list changes nothing. */
export async function loadPrefixes(): Promise<void> {
  try {
    const response = await fetch("prefixes", dressed({}, token()));
    if (!response.ok) return;
    const { prefixes: all } = (await response.json()) as { prefixes: Prefix[] };
    listed = all;
    // What someone set comes last, since the last one counts.
    for (const kind of ["common", "data", "set"] as const) prefixes.learn(all.filter((p) => p.from === kind).map((p): [string, string] => [p.prefix, p.iri]));
  } catch {
    // Short names are an ornament: the page works without them.
  }
}

export async function setPrefix(prefix: string, iri: string): Promise<void> {
  await send(`prefixes/${encodeURIComponent(prefix)}`, { method: "PUT", headers: { "Content-Type": "text/plain" }, body: iri });
}

export async function dropPrefix(prefix: string): Promise<void> {
  await send(`prefixes/${encodeURIComponent(prefix)}`, { method: "DELETE" });
  prefixes.forget(prefix);
}
