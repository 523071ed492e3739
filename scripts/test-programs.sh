#!/usr/bin/env bash
# `cargo test` for many test programs, two more at once than there are processors: many of them wait.
#   test-programs.sh ARGS OF CARGO TEST… [-- ARGS OF THE PROGRAMS…]
# Each program's output is printed when it ends, with its seconds and those of processor time. Ends with the names of the programs that failed.
# JINDOU_PACKAGES="jindou-plan jindou-gpu": only the programs of these packages. JINDOU_AT_ONCE=n: n programs at once.
#
# Cargo hands every program to a runner, in its package's folder and with its variables. The runner here only notes what it was
# given; the notes are run afterwards.
set -euo pipefail

if [ "${1:-}" = --note ]; then
  shift
  note=$(mktemp "$JINDOU_NOTES/note.XXXXXX")
  {
    export -p
    printf 'cd %q\nexec' "$PWD"
    printf ' %q' "$@"
    echo
  } >"$note"
  # The program's name without Cargo's hash, for the order.
  name=${1##*/}
  mv "$note" "$JINDOU_NOTES/${name%-*}@${note##*.}"
  exit 0
fi

if [ "${1:-}" = --run ]; then
  note=$2
  name=${note##*/}
  package=$(sed -n 's/^cd //p' "$note")
  name="${package##*/} ${name%@*}"
  code=0
  TIMEFORMAT='%R %U %S'
  { time bash "$note" >"$note.out" 2>&1 || code=$?; } 2>"$note.time"
  # A signal that ended the program is named above.
  read -r real user system < <(tail -n 1 "$note.time")
  (
    flock 9
    echo "--- $name: ${real%.*} s, $(((10#${user/./} + 10#${system/./}) / 1000)) s of processor time$([ "$code" = 0 ] || echo ", FAILED with $code")"
    cat "$note.out"
    [ "$code" = 0 ] || echo "$name" >>"$JINDOU_NOTES/.failed"
  ) 9>"$JINDOU_NOTES/.turn"
  exit 0
fi

self=$(readlink -f "$0")
JINDOU_NOTES=$(mktemp -d)
export JINDOU_NOTES
trap 'rm -rf "$JINDOU_NOTES" ${fast:+"$fast"}' EXIT
# Temporary files in memory, unless the caller has chosen a place.
fast=
if [ -z "${TMPDIR:-}" ]; then
  fast=$("${self%/*}/fast-tmp.sh")
  [ -z "$fast" ] || export TMPDIR=$fast
fi
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
env "CARGO_TARGET_${host}_RUNNER=$self --note" cargo test "$@"

# The longest first, so that none is left over at the end.
long=" driver servers http jindou hostile growth measured all faults kernels jindou_syntax commands queries fork jindou_bench words "
packages=${JINDOU_PACKAGES:-}
notes=$(for note in "$JINDOU_NOTES"/*@*; do
  package=$(sed -n 's/^cd //p' "$note")
  echo "${package##*/} $note"
done)
for package in $packages; do
  if ! grep -q "^$package " <<<"$notes"; then
    echo "error: no test program is of a package $package" >&2
    exit 1
  fi
done
while read -r package note; do
  case " ${packages:-$package} " in *" $package "*) ;; *) continue ;; esac
  name=${note##*/}
  name=${name%@*}
  before=${long%% "$name" *}
  [ "$before" = "$long" ] && echo "9999 $note" || echo "${#before} $note"
done <<<"$notes" | sort -n | cut -d' ' -f2- | xargs -P "${JINDOU_AT_ONCE:-$(($(nproc) + 2))}" -n 1 "$self" --run

if [ -f "$JINDOU_NOTES/.failed" ]; then
  echo "error: failed: $(sort "$JINDOU_NOTES/.failed" | paste -sd, | sed 's/,/, /g')" >&2
  exit 1
fi
