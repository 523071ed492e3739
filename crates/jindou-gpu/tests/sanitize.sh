#!/bin/sh
# Runs every kernel, compiled for the CPU, under AddressSanitizer, then ThreadSanitizer: neither may report anything.
# Then injects bugs (barriers left out, additions that are not atomic), which ThreadSanitizer must report. Needs g++
# with both runtimes. Takes minutes.
#
#   crates/jindou-gpu/tests/sanitize.sh [address|thread]
set -eu
here=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$here"
target=${CARGO_TARGET_DIR:-target}
for kind in ${1:-address thread}; do
  echo "== $kind"
  runtime=$(g++ -print-file-name=lib"$([ "$kind" = address ] && echo asan || echo tsan)".so)
  JINDOU_SHIM_SANITIZE=$kind cargo build -q --release -p jindou-gpu --example check_kernels
  check() {
    # The sanitizer's runtime must come first; TSan wants fixed addresses.
    LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=1:exitcode=66 \
      setarch "$(uname -m)" -R "$target/release/examples/check_kernels" "$@"
  }
  check 2500 2
  if [ "$kind" = thread ]; then
    for bug in APPEND_FIRST_BARRIER SCAN_FIRST_BARRIER EXPAND_MARK_BARRIER FOLD_BARRIER FOLD_NOT_ATOMIC APPEND_NOT_ATOMIC BINS_FIRST_BARRIER PICK_BARRIER; do
      rc=0
      check 2500 2 $bug > /dev/null 2>&1 || rc=$?
      [ $rc = 66 ] && echo "planted $bug: reported" || { echo "planted $bug: not reported (rc $rc)"; missed=1; }
    done
  fi
done
[ -z "${missed:-}" ]
