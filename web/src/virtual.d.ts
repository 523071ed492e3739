/** The parser's list of common prefixes: pairs of a prefix and its IRI (see build.mjs). */
declare module "jindou:prefixes" {
  export const COMMON_PREFIXES: [string, string][];
}

/** Names of SPARQL's functions in the reference (docs/functions.md), which is made from their definitions (see build.mjs). */
declare module "jindou:functions" {
  export const FUNCTIONS: string[];
}

/** The demo's files (demo/data): pairs of a name and a text (see build.mjs). */
declare module "jindou:demo" {
  export const DEMO: [string, string][];
}

/** Coastlines, as build.mjs writes them. */
declare module "world-atlas/land-110m.json" {
  const coast: { scale: number[]; translate: number[]; lines: string };
  export default coast;
}
