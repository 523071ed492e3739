// Which columns of an answer say where something is, and where.

import { numberOf, type Term } from "../rdf/term.ts";

/** Degrees. */
export interface Place {
  latitude: number;
  longitude: number;
}

/** The columns: one of points, or one each of latitudes and longitudes. */
export type Where = { point: number } | { latitude: number; longitude: number };

const WKT = "http://www.opengis.net/ont/geosparql#wktLiteral";
const LATITUDE = /^(?:.*[_.-])?(?:geo_?)?(?:lat|latitude)$|[a-z](?:Lat|Latitude)$/;
const LONGITUDE = /^(?:.*[_.-])?(?:geo_?)?(?:lon|lng|long|longitude)$|[a-z](?:Lon|Lng|Long|Longitude)$/;
/** Variables that a query binds by wgs84's predicates, whatever they are called. */
const BOUND = /(?:\b(?:wgs84|wgs84_pos|geo|pos):|<http:\/\/www\.w3\.org\/2003\/01\/geo\/wgs84_pos#)(lat|long)>?\s+[?$]([\p{L}\p{N}_]+)/gu;

/** A point that a WKT literal says; `undefined` for other shapes, and other systems of coordinates than degrees. */
export function pointOf(term: Term | null): Place | undefined {
  if (term?.type !== "literal" || term.datatype !== WKT) return undefined;
  const found = /^\s*(?:<([^>]*)>\s*)?POINT\s*(?:ZM?|M)?\s*\(\s*(\S+?)\s+([^\s)]+)/i.exec(term.value);
  if (!found) return undefined;
  const [, system = "", first = "", second = ""] = found;
  const [a, b] = [Number(first), Number(second)];
  // Longitudes come first, except where the system says otherwise.
  if (/\/EPSG\/[^/]*\/4326$/.test(system)) return placed(a, b);
  return system === "" || /\/CRS84$/.test(system) ? placed(b, a) : undefined;
}

function placed(latitude: number, longitude: number): Place | undefined {
  return Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180 ? { latitude, longitude } : undefined;
}

/** The place that a row names. */
export function placeOf(row: (Term | null)[], where: Where): Place | undefined {
  if ("point" in where) return pointOf(row[where.point] ?? null);
  const [latitude, longitude] = [numberOf(row[where.latitude] ?? null), numberOf(row[where.longitude] ?? null)];
  return latitude === undefined || longitude === undefined ? undefined : placed(latitude, longitude);
}

/** The columns that say where, told from their names, the query that bound them and the first rows. */
export function whereIn(columns: string[], rows: (Term | null)[][], query = ""): Where | undefined {
  const bound = new Map([...query.matchAll(BOUND)].map(([, kind = "", name = ""]) => [name, kind]));
  const column = (kind: string, names: RegExp) => {
    const byQuery = columns.findIndex((name) => bound.get(name) === kind);
    return byQuery >= 0 ? byQuery : columns.findIndex((name) => names.test(name) || names.test(name.toLowerCase()));
  };
  const [latitude, longitude] = [column("lat", LATITUDE), column("long", LONGITUDE)];
  const found = columns.map((_, point): Where => ({ point }));
  if (latitude >= 0 && longitude >= 0) found.push({ latitude, longitude });
  return found.find((where) => rows.some((row) => placeOf(row, where) !== undefined));
}
