#!/usr/bin/env bash
# Checks the page that browsers get.
#   page-test.sh install            what the other two need
#   page-test.sh sources            types, unit tests, and whether crates/jindou-server/src/page is what web/ builds
#   page-test.sh browser [PROFILE]  the page in Chromium, before target/…/jindou of cargo's PROFILE ("", --release, "--profile ci")
# Without Node 20, or for `browser` without Chromium, it says so and does nothing, unless JINDOU_PAGE=1 demands it.
set -euo pipefail
cd "$(dirname "$0")/.."

part=page-${1:-sources}
without() {
  if [ "${JINDOU_PAGE:-}" = 1 ]; then
    echo "error: the page cannot be tested: $1" >&2
    exit 1
  fi
  echo "page: not tested, $1"
  scripts/skipped.sh "$part" <<<"$part: $1"
  exit 0
}
[ "$part" = page-install ] || scripts/skipped.sh "$part" </dev/null

command -v node >/dev/null && command -v npm >/dev/null || without "node or npm is not installed"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 20 ] || without "node is older than 20"

# Installed once for each lockfile.
if ! cmp -s web/package-lock.json web/node_modules/.jindou-lock; then
  (cd web && npm ci --no-audit --no-fund --silent) || without "npm could not install what package-lock.json names"
  cp web/package-lock.json web/node_modules/.jindou-lock
fi

case "${1:-sources}" in
install) ;;
sources)
  cd web
  npm run --silent check
  node build.mjs --tests
  node --test --test-reporter=dot build/tests/*.mjs
  echo "page: sources passed"
  ;;
browser)
  chromium=${JINDOU_CHROMIUM:-$(command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
  [ -n "$chromium" ] || without "Chromium is not installed (Debian: apt-get install chromium)"
  case "${2:-}" in
  *--release*) folder=release ;;
  *--profile*) folder=$(sed 's/.*--profile[= ]*//; s/ .*//' <<<"$2") ;;
  *) folder=debug ;;
  esac
  export JINDOU_CHROMIUM=$chromium JINDOU_BIN=${JINDOU_BIN:-$PWD/target/$folder/jindou}
  [ -x "$JINDOU_BIN" ] || without "there is no $JINDOU_BIN"
  cd web
  node --test --test-concurrency=3 --test-reporter=spec e2e/*.test.mjs
  echo "page: browser passed"
  ;;
*)
  echo "usage: page-test.sh install | sources | browser [PROFILE]" >&2
  exit 2
  ;;
esac
