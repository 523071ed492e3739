#!/usr/bin/env bash
# Checks with porcupine, a checker written by others, that the histories of `jindou bench replicas faults --history FILE` and `jindou
# bench cluster updates faults --history FILE` are linearizable, and that it rejects each with one stale read. Draws a violation in
# FILE.html. First it checks a right and a wrong history of lab/porcupine/testdata; without files it checks only these.
# Usage: scripts/porcupine.sh [FILE…]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
command -v go >/dev/null || {
  echo "porcupine: 'go' is missing: install Go 1.23 or newer (https://go.dev/dl; Debian, Ubuntu: apt-get install golang)." >&2
  exit 2
}
checker=$here/target/porcupine
go build -C "$here/lab/porcupine" -o "$checker" .

# Runs the checker, which must end with this status.
ends_with() {
  local status=0
  "$checker" "${@:2}" || status=$?
  [ "$status" = "$1" ] || { echo "FAILED: porcupine ${*:2} ends with status $status" >&2; exit 1; }
}

tests=$here/lab/porcupine/testdata
ends_with 0 "$tests/right.jsonl"
ends_with 1 --plant "$tests/right.jsonl"
ends_with 1 "$tests/wrong.jsonl"
for history in "$@"; do
  ends_with 0 --html "$history.html" "$history"
  ends_with 1 --plant "$history"
done
echo "porcupine: passed"
