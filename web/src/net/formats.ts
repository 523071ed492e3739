// Formats of answers that the server writes, by the name of its parameter `format`.

export interface Format {
  name: string;
  label: string;
  extension: string;
}

export const TABLE_FORMATS: Format[] = [
  { name: "csv", label: "CSV", extension: "csv" },
  { name: "tsv", label: "TSV", extension: "tsv" },
  { name: "json", label: "JSON", extension: "srj" },
  { name: "xml", label: "XML", extension: "srx" },
  { name: "ndjson", label: "NDJSON", extension: "ndjson" },
];

export const GRAPH_FORMATS: Format[] = [
  { name: "ttl", label: "Turtle", extension: "ttl" },
  { name: "nt", label: "N-Triples", extension: "nt" },
  { name: "jsonld", label: "JSON-LD", extension: "jsonld" },
  { name: "rdf", label: "RDF/XML", extension: "rdf" },
  { name: "nq", label: "N-Quads", extension: "nq" },
  { name: "trig", label: "TriG", extension: "trig" },
  { name: "csv", label: "CSV", extension: "csv" },
  { name: "tsv", label: "TSV", extension: "tsv" },
];

const named = (names: string[]) => names.flatMap((name) => GRAPH_FORMATS.filter((format) => format.name === name));

/** Those of one graph of the store. N-Quads and TriG of it would be the same as N-Triples and Turtle: its name is not in them. */
export const GRAPH_STORE_FORMATS = named(["ttl", "nt", "jsonld", "rdf"]);

/** Those of the whole store, which say the graphs. */
export const DATASET_FORMATS = named(["nq", "trig", "jsonld"]);

const MEDIA = new Map(Object.entries({
  nt: "application/n-triples",
  ttl: "text/turtle",
  turtle: "text/turtle",
  n3: "text/turtle",
  nq: "application/n-quads",
  trig: "application/trig",
  rdf: "application/rdf+xml",
  owl: "application/rdf+xml",
  xml: "application/rdf+xml",
  jsonld: "application/ld+json",
  json: "application/ld+json",
}));

/** Media type of a file's RDF by its name; compression is found by the server itself. */
export function mediaOf(fileName: string): string | undefined {
  const bare = fileName.toLowerCase().replace(/\.(gz|bz2|xz|zst)$/, "");
  return MEDIA.get(bare.slice(bare.lastIndexOf(".") + 1));
}

/** True where the file itself says which graph its statements belong to. */
export function isDataset(media: string): boolean {
  return media === "application/n-quads" || media === "application/trig";
}
