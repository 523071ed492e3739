#!/usr/bin/env bash
# Fuzzes every target for some seconds. Usage: scripts/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/../lab/fuzz"
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
  echo "fuzzing needs a nightly toolchain and cargo-fuzz: rustup toolchain install nightly && cargo install cargo-fuzz" >&2
  exit 1
fi
for target in $(cargo +nightly fuzz list); do
  echo "== $target"
  cargo +nightly fuzz run "$target" -- -max_total_time="$1" -timeout=10
done
