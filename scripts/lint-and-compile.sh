#!/usr/bin/env bash
# A compiler for Cargo that lints what it compiles, so that a machine that does both once, as continuous integration does, reads
# each crate once and third-party crates are not read for lints at all. Used as RUSTC_WORKSPACE_WRAPPER; Clippy's arguments are in
# CLIPPY_ARGS, as `cargo clippy` writes them.
#
# - Tests, examples, and what is only checked or not optimised anyway are linted and compiled by Clippy's driver in one pass. Tests
#   and examples are not optimised: what they use is. The parser's unit tests are: its limits on nesting are for the stack frames of
#   optimised code.
# - Libraries that are optimised are compiled by rustc, since the driver switches off the optimisation of MIR, and LLVM would then have
#   far more to do. Their unit tests hold all of their source, and are linted. A library without unit tests is linted next to its
#   compilation.
set -euo pipefail

rustc=$1
shift
optimised='' linked='' test='' crate=''
previous=''
for argument in "$@"; do
  case $previous$argument in
  *opt-level=[1-3s]) optimised=1 ;;
  --emit=*link*) linked=1 ;;
  --test | */examples) test=1 ;;
  --crate-name*) crate=$argument ;;
  esac
  case $argument in -C | --crate-name) previous=$argument ;; *) previous='' ;; esac
done

# Cargo's own questions.
case $crate in '' | ___) exec "$rustc" "$@" ;; esac

# As `cargo clippy` finds it: next to the compiler.
driver=$(dirname "$rustc")/clippy-driver
[ -x "$driver" ] || driver=clippy-driver

if [ -n "$test" ] && [ "$crate" != jindou_syntax ]; then
  exec "$driver" "$rustc" "$@" -C opt-level=0 -C debug-assertions=off -C overflow-checks=off
elif [ -z "$optimised" ] || [ -z "$linked" ]; then
  exec "$driver" "$rustc" "$@"
fi

# A warning of the compiler's is an error here, too: code that only unit tests use is dead only without them.
case " $* " in
*" --crate-type lib "*) ! grep -q '^test = false' "$CARGO_MANIFEST_DIR/Cargo.toml" && exec "$rustc" "$@" -D warnings ;;
esac

folder=$(mktemp -d)
lint=()
previous=''
for argument in "$@"; do
  case $previous in
  --out-dir) argument=$folder ;;
  *) case $argument in
    --emit=*) argument=--emit=metadata ;;
    # What Cargo waits for is the compiler's.
    --json=*) argument=${argument/,artifacts/} ;;
    esac ;;
  esac
  lint+=("$argument")
  previous=$argument
done
"$driver" "$rustc" "${lint[@]}" &
code=0
"$rustc" "$@" || code=$?
wait $! || code=$?
rm -rf "$folder"
exit $code
