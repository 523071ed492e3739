#!/usr/bin/env bash
# Loads real data in five formats, answers queries over it, says how to go on, and serves it. On a terminal it serves until Ctrl-C;
# elsewhere it asks the server once and ends. Usage: scripts/demo.sh PATH-TO-JINDOU
set -euo pipefail
jindou=$1
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
server=
end() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap end EXIT

echo "== 1. The Solar System: Turtle, TriG, RDF/XML, JSON-LD and N-Triples into one store"
"$jindou" load --store "$work/sky.store" "$here/demo/data"
for q in "$here"/demo/queries/*.rq; do
  echo
  echo "-- $(head -n 1 "$q" | cut -c3-)"
  "$jindou" query --store "$work/sky.store" -f "$q" --format table --time
done

echo
echo "-- How the engine answers the last one:"
"$jindou" query --store "$work/sky.store" -f "$q" --explain

echo
echo "Your own data:"
echo "   $jindou load  --store my.store FILE-OR-FOLDER..."
echo "   $jindou query --store my.store 'SELECT * WHERE { ?s ?p ?o } LIMIT 10'"
echo "   $jindou serve --store my.store      # the page, and SPARQL over HTTP: docs/tutorial.md"
echo
echo "== 2. The Solar System in your browser"

# The usual port, or a free one if it is taken. --writable, so that the page's updates and uploads can be tried; the store goes with the demo.
serve() {
  : >"$work/address"
  "$jindou" serve --store "$work/sky.store" --port "$1" --writable >"$work/address" 2>"$work/log" &
  server=$!
  for _ in $(seq 200); do
    address=$(grep -o 'http://[^/ ]*' "$work/address" || true)
    [ -z "$address" ] || return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  return 1
}
serve 7878 || serve 0 || { cat "$work/log" >&2; exit 1; }

if [ -t 1 ]; then
  # Ctrl-C is how this ends, and no failure.
  trap 'echo; exit 0' INT TERM
  echo "   $address/      (until Ctrl-C)"
  wait "$server"
else
  # Asked by the shell itself, since curl may not be there.
  place=${address#http://}
  exec 3<>"/dev/tcp/${place%:*}/${place##*:}"
  printf 'GET / HTTP/1.1\r\nHost: %s\r\nAccept: text/html\r\nConnection: close\r\n\r\n' "$place" >&3
  page=$(tr -d '\0' <&3)
  exec 3>&-
  grep -q '^HTTP/1.1 200' <<<"$page" && grep -qi '<!doctype html>' <<<"$page" || {
    echo "demo: $address/ gave no page: ${page:0:200}" >&2
    exit 1
  }
  echo "   $address/      (answered; not a terminal, so it ends here)"
  echo "   On a terminal, 'make demo' serves it until Ctrl-C."
fi
