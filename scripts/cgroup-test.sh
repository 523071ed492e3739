#!/usr/bin/env bash
# Loads LUBM and asks a server eight heavy queries at a time inside a memory cgroup, with default budgets: the load must
# end, every query must be answered or refused, and nothing may be killed. Needs root and a writable cgroup (v1 or v2).
# Usage: scripts/cgroup-test.sh PATH-TO-JINDOU [UNIVERSITIES [MIB]]; jindou-bench, which generates the data, must lie beside it.
set -euo pipefail
jindou=$(realpath "$1")
universities=${2:-160}
limit=$((${3:-2048} << 20))
work=$(mktemp -d)
port=$((20000 + RANDOM % 20000))

if [ -w /sys/fs/cgroup/cgroup.subtree_control ]; then
  group=/sys/fs/cgroup/jindou-$$
  mkdir "$group" && echo "$limit" >"$group/memory.max" && echo 0 >"$group/memory.swap.max" 2>/dev/null || true
  kills() { awk '$1 == "oom_kill" { print $2 }' "$group/memory.events"; }
  peak() { cat "$group/memory.peak" 2>/dev/null || echo 0; }
elif [ -d /sys/fs/cgroup/memory ]; then
  group=/sys/fs/cgroup/memory/jindou-$$
  mkdir "$group" && echo "$limit" >"$group/memory.limit_in_bytes"
  kills() { awk '$1 == "oom_kill" { print $2 }' "$group/memory.oom_control"; }
  peak() { cat "$group/memory.max_usage_in_bytes"; }
else
  echo "cgroup-test: no writable memory cgroup here" >&2
  exit 2
fi
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  wait 2>/dev/null || true
  rmdir "$group" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
# To be called in a subshell, which becomes the program.
inside() { echo "$BASHPID" >"$group/cgroup.procs" && exec "$@"; }
mib() { echo $(($1 >> 20)) MiB; }

echo "a cgroup of $(mib "$limit"), LUBM-$universities"
start=$SECONDS
"$jindou" generate lubm -n "$universities" | (inside "$jindou" load --store "$work/lubm.store" --format nt --quiet -)
echo "load: ended after $((SECONDS - start)) s, most memory $(mib "$(peak)") (with pages of files)"

inside "$jindou" serve --store "$work/lubm.store" --port "$port" --timeout 60s >"$work/log" 2>&1 &
server=$!
for _ in $(seq 300); do curl -sf "http://127.0.0.1:$port/health" >/dev/null && break; sleep 0.2; done

ub='PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>'
queries=(
  "SELECT * { ?s ?p ?o } ORDER BY ?o ?s"
  "SELECT DISTINCT ?s ?o { ?s ?p ?o }"
  "SELECT ?o (COUNT(DISTINCT ?s) AS ?n) { ?s ?p ?o } GROUP BY ?o ORDER BY DESC(?n) LIMIT 10"
  "$ub SELECT (COUNT(*) AS ?n) { ?a ub:takesCourse ?c . ?b ub:takesCourse ?c . ?a ub:advisor ?d . ?b ub:advisor ?d }"
  "$ub SELECT ?s (GROUP_CONCAT(?c) AS ?all) { ?s ub:takesCourse ?c } GROUP BY ?s"
  "$ub SELECT (COUNT(*) AS ?n) { { SELECT ?x { ?x ub:name ?n } } { SELECT ?y { ?y ub:telephone ?t } } FILTER(STR(?x) = STR(?y)) }"
  "SELECT (COUNT(*) AS ?n) { ?s ?p ?o . MINUS { ?o ?q ?s } }"
  "$ub SELECT ?s ?t { ?s (ub:memberOf|^ub:memberOf)+ ?t }"
)
ask() { # number, query
  local status
  status=$(curl -s -o "$work/answer.$1" -w '%{http_code}' --max-time 90 \
    -H 'Accept: text/tab-separated-values' --data-urlencode "query=$2" "http://127.0.0.1:$port/query") || status="broken off"
  echo "$1 $status $(stat -c %s "$work/answer.$1" 2>/dev/null) bytes: ${2:0:90}" >"$work/status.$1"
}
asking=()
for round in 1 2; do
  for i in "${!queries[@]}"; do
    ask "$round.$i" "${queries[$i]}" &
    asking+=($!)
  done
  wait "${asking[@]}"
  asking=()
done
cat "$work"/status.*
grep -qx "$server" "$group/cgroup.procs" || { echo "cgroup-test: the server is not in the cgroup" >&2; exit 2; }
echo "most memory $(mib "$(peak)"), of the server alone $(awk '/VmHWM/ { print $2 / 1024 " MiB" }' "/proc/$server/status")"
bad=0
if grep -vE '^[0-9.]+ (200|broken off|408|429|503|507) ' "$work"/status.* >&2; then bad=1; fi
if ! curl -sf "http://127.0.0.1:$port/health" >/dev/null; then
  echo "cgroup-test: the server is gone" >&2
  tail "$work/log" >&2
  bad=1
fi
if [ "$(kills)" != 0 ]; then
  echo "cgroup-test: the system killed $(kills) process(es)" >&2
  bad=1
fi
[ "$bad" = 0 ] && echo "cgroup-test: nothing was killed"
exit "$bad"
