#!/bin/sh
# Runs the kernels' tests with the CPU build of the kernels under AddressSanitizer, then ThreadSanitizer: planted
# bugs apart, neither may report anything. Needs g++ with both runtimes. Minutes.
#
#   crates/jindou-gpu/tests/sanitize.sh [address|thread]
set -eu
here=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$here"
target=${CARGO_TARGET_DIR:-target}
for kind in ${1:-address thread}; do
  echo "== $kind"
  runtime=$(g++ -print-file-name=lib"$([ "$kind" = address ] && echo asan || echo tsan)".so)
  JINDOU_SHIM_SANITIZE=$kind cargo test -p jindou-gpu --test kernels --no-run
  test=$(ls -t "$target"/debug/deps/kernels-* | grep -v '\.d$' | head -n 1)
  # The sanitizer's runtime must come first; TSan wants fixed addresses.
  LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=1 \
    setarch "$(uname -m)" -R "$test" --test-threads 1 ${FILTER:---skip planted}
done
