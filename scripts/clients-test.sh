#!/usr/bin/env bash
# Other people's clients against `jindou serve`: the README's curl lines as written, SPARQLWrapper and RDFLib's SPARQLStore
# (PyPI, into a virtual environment), and Jena's rsparql (Maven Central). Usage: scripts/clients-test.sh [PATH-TO-JINDOU]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
jindou=${1:-$here/target/release/jindou}
work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

"$jindou" load --quiet --store "$work/sky.store" "$here/demo/data"
port=7878
"$jindou" serve --store "$work/sky.store" --port $port >"$work/out" 2>"$work/log" &
server=$!
for _ in $(seq 100); do
  curl -sf "http://127.0.0.1:$port/health" >/dev/null && break
  kill -0 "$server" 2>/dev/null || fail "the server did not start: $(cat "$work/log")"
  sleep 0.1
done

echo "== README"
grep '^curl ' "$here/README.md" >"$work/curls"
[ "$(wc -l <"$work/curls")" -ge 7 ] || fail "the README's curl lines are gone"
while read -r line; do
  # -f makes curl fail on an error status; the rest is as written.
  out=$(bash -c "${line/curl -s/curl -sSf}") || fail "$line"
  [ -n "$out" ] || fail "no answer: $line"
  echo "ok  ${line:0:100}"
done <"$work/curls"

echo "== SPARQLWrapper, RDFLib"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check SPARQLWrapper rdflib
"$work/venv/bin/python" - "http://127.0.0.1:$port" <<'PY'
import sys
import SPARQLWrapper as sw
from rdflib import Graph, ConjunctiveGraph, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore

base = sys.argv[1]
sky, v = "http://example.org/sky/", "http://example.org/sky/vocabulary#"
moons = f"SELECT ?m WHERE {{ GRAPH <http://example.org/systems/Mars> {{ ?m a <{v}Moon> }} }} ORDER BY ?m"
expected = [sky + "Deimos", sky + "Phobos"]

def wrapper(query, form, post=False):
    w = sw.SPARQLWrapper(base + "/query")
    w.setQuery(query)
    w.setReturnFormat(form)
    w.setTimeout(60)
    if post:
        w.setMethod(sw.POST)
        if post == "direct":
            w.setRequestMethod(sw.POSTDIRECTLY)
    return w.query().convert()

for post in (False, True, "direct"):
    got = [b["m"]["value"] for b in wrapper(moons, sw.JSON, post)["results"]["bindings"]]
    assert got == expected, got
xml = wrapper(moons, sw.XML)
got = [n.firstChild.data for n in xml.getElementsByTagName("uri")]
assert got == expected, got
assert wrapper(moons, sw.CSV).decode().split() == ["m"] + expected
assert wrapper(moons, sw.TSV).decode().split() == ["?m"] + [f"<{m}>" for m in expected]
assert wrapper("ASK { ?s ?p ?o }", sw.JSON)["boolean"] is True
construct = f"CONSTRUCT {{ ?m a <{v}Moon> }} WHERE {{ GRAPH ?g {{ ?m a <{v}Moon> }} }}"
for form in (sw.TURTLE, sw.N3):
    g = Graph().parse(data=wrapper(construct, form), format="turtle")
    assert len(g) == 14, len(g)
assert len(wrapper(construct, sw.RDFXML)) == 14
try:
    wrapper("SELECT * {", sw.JSON)
    raise SystemExit("a bad query was taken")
except sw.SPARQLExceptions.QueryBadFormed:
    pass
w = sw.SPARQLWrapper(base + "/query")
w.addDefaultGraph("http://example.org/systems/Mars")
w.setQuery(f"SELECT (COUNT(*) AS ?n) {{ ?m a <{v}Moon> }}")
w.setReturnFormat(sw.JSON)
assert w.query().convert()["results"]["bindings"][0]["n"]["value"] == "2"
print("ok  SPARQLWrapper", sw.__version__)

for method in ("GET", "POST", "POST_FORM"):
    store = SPARQLStore(base + "/query", method=method)
    g = Graph(store, identifier=URIRef("http://example.org/systems/Mars"))
    assert sorted(str(s) for s in g.subjects(URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#type"), URIRef(v + "Moon"))) == expected
    whole = ConjunctiveGraph(store)
    assert [str(r.m) for r in whole.query(moons)] == expected
    assert bool(whole.query("ASK { ?s ?p ?o }"))
    rows = list(whole.query(f"SELECT ?p ?r {{ ?p <{v}radiusKm> ?r }} ORDER BY DESC(?r) LIMIT 2"))
    assert len(rows) == 2 and float(rows[0].r) > float(rows[1].r), rows
import rdflib
print("ok  RDFLib SPARQLStore", rdflib.__version__)
PY

echo "== Jena rsparql"
query='PREFIX v: <http://example.org/sky/vocabulary#> SELECT ?m WHERE { GRAPH <http://example.org/systems/Mars> { ?m a v:Moon } } ORDER BY ?m'
if command -v rsparql >/dev/null; then
  rsparql=(rsparql)
elif command -v mvn >/dev/null && command -v java >/dev/null; then
  mkdir "$work/jena"
  cat >"$work/jena/pom.xml" <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>jindou</groupId><artifactId>clients-test</artifactId><version>1</version><packaging>pom</packaging>
<dependencies><dependency><groupId>org.apache.jena</groupId><artifactId>jena-cmds</artifactId><version>4.10.0</version></dependency></dependencies>
</project>
POM
  mvn -q -f "$work/jena/pom.xml" dependency:copy-dependencies -DoutputDirectory="$work/jena/lib"
  rsparql=(java -cp "$work/jena/lib/*" arq.rsparql)
else
  echo "skipped: neither rsparql nor mvn and java"
  exit 0
fi
for results in CSV TSV JSON XML; do
  got=$("${rsparql[@]}" --service "http://127.0.0.1:$port/query" --results=$results "$query")
  grep -q "Deimos" <<<"$got" && grep -q "Phobos" <<<"$got" || fail "rsparql --results=$results: $got"
done
got=$("${rsparql[@]}" --service "http://127.0.0.1:$port/query" 'ASK { ?s ?p ?o }')
grep -qi "yes" <<<"$got" || fail "rsparql ASK: $got"
got=$("${rsparql[@]}" --service "http://127.0.0.1:$port/query" 'CONSTRUCT { ?s ?p ?o } WHERE { GRAPH <http://example.org/systems/Mars> { ?s ?p ?o } }')
grep -q "Phobos" <<<"$got" || fail "rsparql CONSTRUCT: $got"
echo "ok  Jena rsparql"
