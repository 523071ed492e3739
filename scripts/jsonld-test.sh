#!/usr/bin/env bash
# Random JSON-LD documents, read by Jindou, pyld (PyPI) and jsonld.js (npm): where both of them agree, Jindou must agree as well
# (scripts/jsonld/compare.py lists exceptions, with the steps of the standard).
# Usage: scripts/jsonld-test.sh [PATH-TO-JINDOU] [NUMBER-OF-DOCUMENTS] [SEED]
# JINDOU_CLIENTS=DIR keeps installed packages there for the next run.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
jindou=${1:-$here/target/release/jindou}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packages=${JINDOU_CLIENTS:-$work}
mkdir -p "$packages/jsonld"
for tool in python3 npm node; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed"; exit 0; }
done
[ -d "$packages/jsonld/venv" ] || python3 -m venv "$packages/jsonld/venv"
"$packages/jsonld/venv/bin/pip" install --quiet --disable-pip-version-check PyLD==3.3.0
npm install --silent --prefix "$packages/jsonld" jsonld@9.0.0
"$packages/jsonld/venv/bin/python" "$here/scripts/jsonld/compare.py" --jindou "$jindou" --node "$packages/jsonld" \
  --count "${2:-1100}" --seed "${3:-1}"
