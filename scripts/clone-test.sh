#!/usr/bin/env bash
# Runs `make test` as people do who have the repository and nothing else: in a clone of the current commit whose parent folder is
# empty. Prints its time and the number of tests that were skipped.
#   scripts/clone-test.sh [FOLDER]   clones into FOLDER, which must not exist, and leaves it; without it, into one that is removed afterwards
# A build from nothing takes some minutes and some 10 GiB.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo "note: what is not committed is not tested" >&2
if [ $# = 1 ]; then
    [ ! -e "$1" ] || { echo "error: $1 exists" >&2 && exit 2; }
    mkdir -p "$1"
    folder=$(realpath "$1")
else
    folder=$(mktemp -d "${TMPDIR:-/var/tmp}/jindou-clone.XXXXXX")
    trap 'rm -rf "$folder"' EXIT
fi
git clone --quiet --no-local . "$folder/jindou"
cd "$folder/jindou"
begun=$SECONDS
# Settings of the checkout that this runs in.
for name in $(compgen -e); do
    case $name in JINDOU_* | CARGO_TARGET* | RUSTC_WORKSPACE_WRAPPER | CLIPPY_ARGS | LINT | MAKE*) unset "$name" ;; esac
done
code=0
make test >test.log 2>&1 || code=$?
tail -n "$([ "$code" = 0 ] && echo 1 || echo 60)" test.log
echo "make test in an empty folder: $([ "$code" = 0 ] && echo passed || echo "failed with $code") after $((SECONDS - begun)) s"
exit "$code"
