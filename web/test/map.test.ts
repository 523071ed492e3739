import assert from "node:assert/strict";
import { test } from "node:test";
import { coastlines } from "../src/answer/coast.ts";
import { project, unproject } from "../src/answer/map.ts";
import { placeOf, pointOf, whereIn } from "../src/answer/places.ts";
import type { Term } from "../src/rdf/term.ts";

const XSD = "http://www.w3.org/2001/XMLSchema#";
const wkt = (value: string): Term => ({ type: "literal", value, datatype: "http://www.opengis.net/ont/geosparql#wktLiteral" });
const number = (n: number): Term => ({ type: "literal", value: String(n), datatype: `${XSD}decimal` });
const name: Term = { type: "literal", value: "Bonn" };

test("points of WKT, longitude first unless the system says otherwise", () => {
  const bonn = { latitude: 50.73, longitude: 7.1 };
  assert.deepEqual(pointOf(wkt("POINT(7.1 50.73)")), bonn);
  assert.deepEqual(pointOf(wkt("<http://www.opengis.net/def/crs/OGC/1.3/CRS84> Point Z (7.1 50.73 60)")), bonn);
  assert.deepEqual(pointOf(wkt("<http://www.opengis.net/def/crs/EPSG/0/4326> POINT(50.73 7.1)")), bonn);
  for (const other of ["POLYGON((0 0, 1 1, 1 0, 0 0))", "POINT EMPTY", "POINT(200 95)", "<http://www.opengis.net/def/crs/EPSG/0/25832> POINT(366000 5621000)", "POINT(a b)", ""]) {
    assert.equal(pointOf(wkt(other)), undefined, other);
  }
  assert.equal(pointOf({ type: "literal", value: "POINT(7.1 50.73)" }), undefined);
});

test("columns with coordinates are told by their names and the query", () => {
  const row = [name, number(50.73), number(7.1)];
  for (const columns of [["n", "lat", "long"], ["n", "latitude", "lng"], ["n", "city_lat", "city_lon"], ["n", "cityLat", "cityLong"], ["n", "Lat", "Long"]]) {
    assert.deepEqual(whereIn(columns, [row]), { latitude: 1, longitude: 2 }, columns.join());
  }
  assert.deepEqual(whereIn(["n", "a", "b"], [row], "SELECT * { ?x geo:lat ?a ; <http://www.w3.org/2003/01/geo/wgs84_pos#long> ?b }"), { latitude: 1, longitude: 2 });
  assert.equal(whereIn(["n", "flat", "belong"], [row]), undefined);
  assert.equal(whereIn(["n", "lat", "long"], [[name, number(950), number(7)]]), undefined);
  assert.deepEqual(whereIn(["n", "where"], [[name, null], [name, wkt("POINT(1 2)")]]), { point: 1 });
  assert.deepEqual(placeOf(row, { latitude: 1, longitude: 2 }), { latitude: 50.73, longitude: 7.1 });
  assert.equal(placeOf([null, null, null], { latitude: 1, longitude: 2 }), undefined);
});

test("Mercator and back", () => {
  for (const place of [{ latitude: 0, longitude: 0 }, { latitude: 50.73, longitude: 7.1 }, { latitude: -33.9, longitude: 151.2 }]) {
    const { x, y } = project(place);
    const back = unproject(x, y);
    assert.ok(Math.abs(back.latitude - place.latitude) < 1e-9 && Math.abs(back.longitude - place.longitude) < 1e-9);
  }
  assert.deepEqual(project({ latitude: 0, longitude: -180 }), { x: 0, y: 0.5 });
  // The square ends at the map's own pole.
  assert.ok(Math.abs(project({ latitude: 90, longitude: 0 }).y) < 1e-3);
});

test("coastlines are on the earth", () => {
  const all = coastlines().flat();
  assert.equal(all.length, 5129);
  assert.ok(all.every(([longitude, latitude]) => Math.abs(longitude) <= 180.001 && Math.abs(latitude) <= 90.001));
  // The Cape of Good Hope.
  assert.ok(all.some(([longitude, latitude]) => Math.hypot(longitude - 18.4, latitude + 34) < 1.5));
});
