#!/usr/bin/env bash
# Tests of the crates with unsafe code or threads of their own under AddressSanitizer, ThreadSanitizer and Miri.
#
#   scripts/sanitize.sh [address|thread|miri ...]       all three without arguments
#   CRATES="jindou-log jindou-engine"                   only these
#   SECONDS_EACH=1800                                   limit for each crate's tests, building not counted
#
# Needs a nightly toolchain with the sources of the standard library, which is built with the sanitizer as well (without it
# ThreadSanitizer knows nothing of the locks inside): `rustup component add rust-src miri --toolchain nightly`. What is missing is
# skipped, with a line that says so. Builds lie in target/sanitize-*. Ends with 1 if a test failed.
set -uo pipefail
cd "$(dirname "$0")/.."
: "${CRATES:=jindou-model jindou-log jindou-graph jindou-store jindou-engine jindou-cluster}"
: "${SECONDS_EACH:=1800}"
host=$(rustc -vV | sed -n 's/^host: //p')
failed=0

has_nightly() {
    command -v rustup >/dev/null && rustup run nightly rustc --version >/dev/null 2>&1
}

has_sources() {
    [ -f "$(rustup run nightly rustc --print sysroot)/lib/rustlib/src/rust/library/std/src/lib.rs" ]
}

# sanitized KIND: builds and tests each crate.
sanitized() {
    local kind=$1 crate
    if ! has_nightly; then
        echo "skipped: $kind sanitizer (no nightly toolchain)"
        return
    fi
    if ! has_sources; then
        echo "skipped: $kind sanitizer (no rust-src for nightly)"
        return
    fi
    # Frames deep inside the library are optimised away otherwise, and a test takes ten times as long.
    # `sanitized` leaves out the models under loom: its threads are coroutines on stacks that no sanitizer knows.
    export RUSTFLAGS="-Zsanitizer=$kind -Cforce-frame-pointers=yes --cfg sanitized" RUSTDOCFLAGS="-Zsanitizer=$kind"
    # The signals of bad memory are part of what is tested: of mapped files that fail, and of Rust's own stack guard.
    export ASAN_OPTIONS="handle_sigbus=0:handle_segv=0:allow_user_segv_handler=1:detect_stack_use_after_return=1"
    # UCX rewrites the process' functions for memory, which the sanitizers have replaced already.
    export UCX_MEM_EVENTS=n
    export TSAN_OPTIONS="handle_sigbus=0:handle_segv=0:halt_on_error=1:suppressions=$PWD/scripts/sanitize-thread.txt"
    for crate in $CRATES; do
        echo "== $kind: $crate"
        local -a cargo=(cargo +nightly test -q -p "$crate" -Zbuild-std --target "$host"
            --target-dir "target/sanitize-$kind" --lib --tests)
        if ! "${cargo[@]}" --no-run; then
            echo "FAILED: $kind: $crate does not build"
            failed=1
        elif ! timeout "$SECONDS_EACH" "${cargo[@]}"; then
            echo "FAILED: $kind: $crate"
            failed=1
        fi
    done
    unset RUSTFLAGS RUSTDOCFLAGS ASAN_OPTIONS TSAN_OPTIONS UCX_MEM_EVENTS
}

# Miri interprets: only what calls nothing foreign, and is small.
miri() {
    if ! has_nightly || ! cargo +nightly miri --version >/dev/null 2>&1; then
        echo "skipped: Miri (no nightly toolchain with miri)"
        return
    fi
    export MIRIFLAGS="-Zmiri-disable-isolation"
    local run
    # The table of mapped files; copy-on-write trees; views of edges over patches. A few cases of each take minutes.
    export PROPTEST_CASES=4
    for run in "jindou-model --lib mapped" "jindou-graph --lib segment::tree" "jindou-graph --lib segment::view"; do
        echo "== miri: $run"
        # shellcheck disable=SC2086
        if ! timeout "$SECONDS_EACH" cargo +nightly miri test -q --target-dir target/sanitize-miri -p $run; then
            echo "FAILED: miri: $run"
            failed=1
        fi
    done
    unset MIRIFLAGS PROPTEST_CASES
}

for kind in "${@:-address thread miri}"; do
    for one in $kind; do
        case $one in
        address | thread) sanitized "$one" ;;
        miri) miri ;;
        *)
            echo "'$one' is none of address, thread and miri" >&2
            exit 2
            ;;
        esac
    done
done
exit $failed
