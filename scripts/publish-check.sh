#!/usr/bin/env bash
# Packs every crate that is published, as `cargo publish` would, and compiles each from its package against the others'. Fails on any warning
# of Cargo's, on a package without LICENSE, README or description, and on one beyond its size. Prints the sizes.
# `--no-verify` does not compile, which takes a minute in place of many. Nothing is uploaded.
set -euo pipefail
cd "$(dirname "$0")/.."

# KiB that a package may have, compressed: the largest is the one with the GPU's kernels.
most=1024
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/publish}
log=$(mktemp)
rm -rf "$CARGO_TARGET_DIR/package"
trap 'rm "$log"' EXIT

cargo publish --dry-run --workspace --locked "$@" 2>&1 | tee "$log" | grep --line-buffered -vE '^ *(Updating|Uploading|Unpacked|Compiling|Downloaded|Downloading|Checking)|aborting upload due to dry run' ||
    [ "${PIPESTATUS[0]}" = 0 ]

bad=$(grep -A3 '^warning' "$log" | grep -vE 'aborting upload due to dry run|^ *Uploading|^--' || true)
packages=("$CARGO_TARGET_DIR"/package/tmp-registry/*.crate)
for package in "${packages[@]}"; do
    name=$(basename "$package" .crate)
    files=$(tar -tzf "$package" | cut -d/ -f2-)
    kib=$((($(stat -Lc %s "$package") + 1023) / 1024))
    printf '%-28s %5d KiB %4d files\n' "$name" "$kib" "$(wc -l <<<"$files")"
    for file in LICENSE README.md; do
        grep -qxF "$file" <<<"$files" || bad+=$'\n'"$name has no $file"
    done
    [ "$kib" -le "$most" ] || bad+=$'\n'"$name has $kib KiB, more than $most"
done
if [ -n "$bad" ]; then
    echo "$bad" >&2
    exit 1
fi
echo "${#packages[@]} crates can be published"
