#!/usr/bin/env bash
# Builds the documentation as a site: target/site/index.html. Writes the Python reference. Checks that the comparison's picture is of the
# present tables, and that all links within the site lead somewhere. Installs mdBook into target/tools if it is not there.
# Usage: scripts/site.sh
set -euo pipefail
cd "$(dirname "$0")/.."
version=0.5.4
tools=target/tools
source=target/site-source
repository=$(sed -n 's/^repository = "\(.*\)"$/\1/p' Cargo.toml)

command -v python3 >/dev/null || { echo "site: 'python3' is missing: install it (Debian, Ubuntu: apt-get install python3)." >&2; exit 1; }
scripts/comparison-plot.py --check >/dev/null
scripts/python-reference.py

mdbook=$tools/bin/mdbook
if [ "$("$mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
  echo "site: installing mdBook $version into $tools (some minutes, once)"
  cargo install --quiet --locked mdbook --version "$version" --root "$tools"
fi

# One folder of pages: links between the pages of docs/ and those above it are made short, and links to sources lead to the repository.
rm -rf "$source" target/site
mkdir -p "$source"
cp -r docs/pictures "$source/"
for page in docs/*.md; do
  sed -E -e 's#\]\(\.\./(README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md#](\1.md#g' -e "s#\]\(\.\./#]($repository/tree/main/#g" "$page" >"$source/${page##*/}"
done
for folder in internals lab; do
  mkdir -p "$source/$folder"
  for page in docs/$folder/*.md; do
    sed -E -e 's#\]\(\.\./\.\./(README|ARCHITECTURE|CHANGELOG|CONTRIBUTING|SECURITY)\.md#](../\1.md#g' -e "s#\]\(\.\./\.\./#]($repository/tree/main/#g" "$page" >"$source/$folder/${page##*/}"
  done
done
for page in README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md; do
  sed -E -e 's#\]\(docs/#](#g' -e "s#\]\((crates|demo|scripts|web|bench|LICENSE)#]($repository/tree/main/\1#g" "$page" >"$source/$page"
done
# A page that is listed and not written yet is left out, and links to it become text.
while read -r page; do
  [ -e "$source/$page" ] && continue
  echo "site: $page is in docs/SUMMARY.md, but not written yet: left out"
  sed -i "/](${page//./\\.})/d" "$source/SUMMARY.md"
  sed -i -E "s/\[([^]]*)\]\(${page//./\\.}[^)]*\)/\1/g" "$source"/*.md
done < <(grep -oE '\]\([^)]+\.md\)' docs/SUMMARY.md | sed 's/^](//; s/)$//')

log=$(MDBOOK_BOOK__SRC="$source" "$mdbook" build . 2>&1) || { echo "$log" >&2; exit 1; }
scripts/site-links.py target/site
echo "site: target/site/index.html"
