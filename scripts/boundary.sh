#!/usr/bin/env bash
# Planner and executors explore a Graph (crates/jindou-store/src/graph): a source of theirs that names the store's own snapshot or
# base has gone around that boundary. Their tests may.
set -euo pipefail
cd "$(dirname "$0")/.."
if grep -rnwE 'Snapshot|Base' --include='*.rs' crates/jindou-{plan,engine,gpu}/src | grep -vE '/tests/|:[0-9]+: *//'; then
    echo "these name the store's own types; use jindou_store::Graph and the views that it hands out" >&2
    exit 1
fi
