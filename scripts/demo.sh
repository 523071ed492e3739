#!/usr/bin/env bash
# Loads real data in five formats, and a generated university graph, answers queries over both, and says
# how to go on. Usage: scripts/demo.sh PATH-TO-JINDOU
set -euo pipefail
jindou=$1
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== 1. The Solar System: Turtle, TriG, RDF/XML, JSON-LD and N-Triples into one store"
"$jindou" load --store "$work/sky.store" "$here/demo/data"
for q in "$here"/demo/queries/*.rq; do
  echo
  echo "-- $(head -n 1 "$q" | cut -c3-)"
  "$jindou" query --store "$work/sky.store" -f "$q" --format table --time
done

echo
echo "== 2. Twenty universities (LUBM, 2.7 million triples): generated, compressed, loaded"
"$jindou" generate lubm --universities 20 --out - | gzip -1 >"$work/lubm20.nt.gz"
ls -lh "$work/lubm20.nt.gz" | awk '{print "   " $5 " of N-Triples, gzipped"}'
"$jindou" load --store "$work/lubm.store" "$work/lubm20.nt.gz"
echo
echo "-- Which courses are taught by the students' own advisors? (a triangle: 'heavy')"
"$jindou" query --store "$work/lubm.store" --time --format table "
PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>
SELECT (COUNT(*) AS ?triangles) WHERE {
  ?student a ub:UndergraduateStudent ; ub:advisor ?prof ; ub:takesCourse ?course .
  ?prof a ub:FullProfessor ; ub:teacherOf ?course .
  ?course a ub:Course }"
echo
echo "-- How the engine does it:"
"$jindou" query --store "$work/lubm.store" --explain "
PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>
SELECT ?student ?prof ?course WHERE {
  ?student a ub:UndergraduateStudent ; ub:advisor ?prof ; ub:takesCourse ?course .
  ?prof a ub:FullProfessor ; ub:teacherOf ?course .
  ?course a ub:Course }"

echo
echo "Done. Your own data:"
echo "   $jindou load  --store my.store FILE-OR-FOLDER..."
echo "   $jindou query --store my.store 'SELECT * WHERE { ?s ?p ?o } LIMIT 10'"
echo "   $jindou serve --store my.store      # SPARQL over HTTP: docs/server.md"
