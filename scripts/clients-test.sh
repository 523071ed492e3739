#!/usr/bin/env bash
# Other people's clients against `jindou serve`: the curl lines of docs/query.md as written; SPARQLWrapper, RDFLib and LangChain (PyPI);
# Comunica, sparql-http-client, fetch-sparql-endpoint and YASGUI's requests (npm); Jena and RDF4J (Maven Central). Each does SELECT, ASK,
# CONSTRUCT and an update, sees errors as errors, and shows a token by Basic where it can. Versions are pinned in scripts/clients.
# What lacks its tools (python3, npm, mvn and java) is skipped with a word. Usage: scripts/clients-test.sh [PATH-TO-JINDOU]
# JINDOU_CLIENTS=DIR keeps installed packages there for the next run.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
clients=$here/scripts/clients
jindou=${1:-$here/target/release/jindou}
work=$(mktemp -d)
packages=${JINDOU_CLIENTS:-$work}
mkdir -p "$packages"
servers=()
cleanup() {
  for server in "${servers[@]}"; do kill "$server" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
failed=0

# Starts a server: its name, its port, options.
serve() {
  local name=$1 port=$2
  shift 2
  "$jindou" load --quiet --store "$work/$name.store" "$here/demo/data"
  "$jindou" serve --store "$work/$name.store" --host localhost --port "$port" "$@" >"$work/$name.out" 2>"$work/$name.log" &
  local server=$!
  servers+=("$server")
  for _ in $(seq 100); do
    curl -sf "http://127.0.0.1:$port/ready" >/dev/null && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  fail "the server did not start: $(cat "$work/$name.log")"
}

open=http://127.0.0.1:7878
guarded=http://127.0.0.1:7879
token=writing-0123456789
(umask 077 && echo "write $token" >"$work/tokens")
serve open 7878 --writable
serve guarded 7879 --token-file "$work/tokens"

echo "== docs/query.md"
grep '^curl ' "$here/docs/query.md" >"$work/curls"
[ "$(wc -l <"$work/curls")" -ge 7 ] || fail "the curl lines of docs/query.md are gone"
while read -r line; do
  # -f makes curl fail on an error status; the rest is as written.
  if out=$(bash -c "${line/curl -s/curl -sSf}") && [ -n "$out" ]; then
    echo "ok      ${line:0:100}"
  else
    echo "FAILED  ${line:0:100}"
    failed=1
  fi
done <"$work/curls"

echo "== Python"
if command -v python3 >/dev/null; then
  [ -d "$packages/venv" ] || python3 -m venv "$packages/venv"
  "$packages/venv/bin/pip" install --quiet --disable-pip-version-check -r "$clients/requirements.txt"
  "$packages/venv/bin/python" -W ignore "$clients/check.py" "$open" "$guarded" "$token" || failed=1
else
  echo "skipped: no python3"
fi

echo "== JavaScript"
if command -v npm >/dev/null; then
  mkdir -p "$packages/js"
  cp "$clients/package.json" "$packages/js/"
  (cd "$packages/js" && npm install --silent --no-audit --no-fund >/dev/null 2>&1) || fail "npm install"
  (cd "$packages/js" && node "$clients/check.mjs" "$open" "$guarded" "$token") || failed=1
else
  echo "skipped: no npm"
fi

echo "== Java"
if command -v mvn >/dev/null && command -v java >/dev/null; then
  for client in jena:Jena rdf4j:Rdf4j; do
    profile=${client%:*} class=${client#*:}
    lib=$packages/$profile/lib
    [ -d "$lib" ] || mvn -q -P "$profile" -f "$clients/pom.xml" dependency:copy-dependencies -DoutputDirectory="$lib"
    version=$(grep -A5 "<id>$profile</id>" "$clients/pom.xml" | sed -n 's|.*<version>\(.*\)</version>.*|\1|p' | head -1)
    if java -Dslf4j.internal.verbosity=ERROR -cp "$lib/*" "$clients/$class.java" "$open" "$guarded" "$token"; then
      echo "ok      $profile $version"
    else
      echo "FAILED  $profile $version"
      failed=1
    fi
  done
  query='PREFIX v: <http://example.org/sky/vocabulary#> SELECT ?m WHERE { GRAPH <http://example.org/systems/Mars> { ?m a v:Moon } } ORDER BY ?m'
  rsparql=(java -cp "$packages/jena/lib/*" arq.rsparql --service "$open/query")
  for results in CSV TSV JSON XML; do
    got=$("${rsparql[@]}" --results=$results "$query")
    grep -q "Deimos" <<<"$got" && grep -q "Phobos" <<<"$got" || fail "rsparql --results=$results: $got"
  done
  got=$("${rsparql[@]}" 'ASK { ?s ?p ?o }')
  grep -qi "yes" <<<"$got" || fail "rsparql ASK: $got"
  got=$("${rsparql[@]}" 'CONSTRUCT { ?s ?p ?o } WHERE { GRAPH <http://example.org/systems/Mars> { ?s ?p ?o } }')
  grep -q "Phobos" <<<"$got" || fail "rsparql CONSTRUCT: $got"
  echo "ok      jena's command rsparql"
else
  echo "skipped: no mvn and java"
fi

# Nothing that a client sent may have made a server stumble.
for name in open guarded; do
  ! grep -iE "panicked|internal error" "$work/$name.log" || fail "the log of the $name server"
done
[ "$failed" = 0 ] || fail "some clients"
echo "all clients are served"
