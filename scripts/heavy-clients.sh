#!/usr/bin/env bash
# Eight clients ask heavy queries of a server, of each given build in turn, several times: how many are answered in a second,
# and how many of the server's threads run at once, as the system has it: those that compute, and those of the network, which are
# the ones that the server has before the first query.
#
#   scripts/heavy-clients.sh BINARY [BINARY...]     such as target/release/jindou, and one of another commit
#
#   ROUNDS=5 SECONDS_EACH=10 CLIENTS=8 UNIVERSITIES=5
#
# The first binary loads the store; jindou-bench, which generates the data, must lie beside it. Exit status: 0; 2 if a server does not start.
set -euo pipefail
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-10}
clients=${CLIENTS:-8}
[ $# -gt 0 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; }
work=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
"$1" generate lubm -n "${UNIVERSITIES:-5}" | "$1" load --quiet --format nt --store "$work/store" - >/dev/null
ub=http://swat.cse.lehigh.edu/onto/univ-bench.owl#
query="SELECT (COUNT(*) AS ?n) { ?x <${ub}takesCourse> ?c . ?y <${ub}takesCourse> ?c . ?x <${ub}memberOf> ?d . ?y <${ub}memberOf> ?e }"

# Threads of a process that run or want to, now: those that compute, and those of the network.
running() { # process, numbers of the network's threads
  # Threads that end meanwhile cannot be read.
  { cat /proc/"$1"/task/*/stat 2>/dev/null || true; } | awk -v network="$2" '
    BEGIN { split(network, list, " "); for (i in list) is_network[list[i]] = 1 }
    { id = $1; sub(/^.*\) /, ""); if ($1 == "R") { if (id in is_network) n++; else c++ } }
    END { print c + 0, n + 0 }'
}

client() { # address, file
  local end=$((SECONDS + seconds)) n=0
  while [ $SECONDS -lt $end ]; do
    curl -sf --data-urlencode "query=$query" "$1" -o /dev/null && n=$((n + 1))
  done
  echo $n >"$2"
}

for round in $(seq "$rounds"); do
  for binary in "$@"; do
    "$binary" serve --store "$work/store" --port 0 --log-level error >"$work/address" 2>"$work/log" &
    server=$!
    for _ in $(seq 100); do
      grep -q http "$work/address" && break
      sleep 0.1
    done
    address=$(sed 's/^.* at //' "$work/address")
    [ -n "$address" ] || { cat "$work/log" >&2; exit 2; }
    network=$(ls "/proc/$server/task" | tr '\n' ' ')
    pids=()
    for c in $(seq "$clients"); do
      client "$address" "$work/client$c" &
      pids+=($!)
    done
    : >"$work/samples"
    sleep 0.5
    end=$((SECONDS + seconds - 1))
    while [ $SECONDS -lt $end ]; do
      running "$server" "$network" >>"$work/samples"
      sleep 0.02
    done
    wait "${pids[@]}"
    kill "$server"
    wait "$server" 2>/dev/null || true
    server=
    answered=$(cat "$work"/client* | awk '{ n += $1 } END { print n }')
    sort -n "$work/samples" | awk -v a="$answered" -v s="$seconds" -v b="$binary" -v r="$round" '
      { v[NR] = $1; t += $1; w += $2; if ($2 > most) most = $2 }
      END {
        printf "round %d: %s: %.1f answers/s; threads that compute: mean %.2f, median %d, most %d of %d samples", r, b, a / s, t / NR, v[int((NR + 1) / 2)], v[NR], NR
        printf "; of the network: mean %.2f, most %d\n", w / NR, most
      }'
  done
done
