#!/usr/bin/env bash
# Says what a release would break: compares the public API of the crates that programs use (the library and the server) with a
# commit, by cargo-semver-checks. Which bump of the version the differences need is in its report.
#
#   BASE=commit   compare with this instead of the last tag
#
# Ends with 0, with 1 if the version is not raised enough, with 2 if no comparison could be made.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! cargo semver-checks --version >/dev/null 2>&1; then
  echo "semver: cargo-semver-checks is not installed: cargo install cargo-semver-checks --locked" >&2
  exit 2
fi
if [ -n "${BASE:-}" ]; then
  name=$BASE
elif ! name=$(git describe --tags --abbrev=0 2>/dev/null); then
  echo "semver: there is no tag to compare with: set BASE" >&2
  exit 2
fi
base=$(git rev-parse --verify --quiet "$name^{commit}") || { echo "semver: there is no commit '$name': set BASE" >&2 && exit 2; }
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/semver} cargo semver-checks check-release \
  -p jindou -p jindou-server --all-features --baseline-rev "$base"
