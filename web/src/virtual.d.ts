/** The parser's list of common prefixes: pairs of a prefix and its IRI (see build.mjs). */
declare module "jindou:prefixes" {
  export const COMMON_PREFIXES: [string, string][];
}
