#!/usr/bin/env bash
# The tests that `make test` skipped, since something that they need is not here.
#   skipped.sh PART   takes those of a part of `make test` from its input, a line each, in place of what it had
#   skipped.sh        prints them, and how many they are
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p target/skipped
if [ $# = 1 ]; then
  sort >"target/skipped/$1"
  exit 0
fi
cat target/skipped/* 2>/dev/null || true
echo "$(cat target/skipped/* 2>/dev/null | wc -l) tests were skipped"
