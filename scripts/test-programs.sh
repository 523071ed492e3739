#!/usr/bin/env bash
# `cargo test` for many test programs, two more at once than there are processors: many of them wait.
#   test-programs.sh ARGS OF CARGO TEST… [-- ARGS OF THE PROGRAMS…]
# Each program's output is printed when it ends, with its seconds and those of processor time. Ends with what failed, and its programs' names.
# Tests that were skipped are listed in target/skipped/programs: such a test prints a line that begins with `skipped:`.
# JINDOU_PACKAGES="jindou-plan jindou-gpu": only the programs of these packages. JINDOU_AT_ONCE=n: n programs at once.
# JINDOU_WITHOUT=1: afterwards the tests that read inputs from outside of the repository run once more, without these. Such a test prints a
# line that begins with `reads shared:` (jindou_testing::shared).
#
# Cargo hands every program to a runner, in its package's folder and with its variables. The runner here only notes what it was
# given; the notes are run afterwards.
set -euo pipefail

if [ "${1:-}" = --note ]; then
  shift
  note=$(mktemp "$JINDOU_NOTES/note.XXXXXX")
  {
    export -p
    # The output of tests that pass says which were skipped.
    case " $* " in *" --show-output "*) ;; *) set -- "$@" --show-output ;; esac
    printf 'cd %q\nexec ${JINDOU_NOTHING_SHARED:+env JINDOU_SHARED=none}' "$PWD"
    printf ' %q' "$@"
    echo ' "$@"'
  } >"$note"
  # The program's name without Cargo's hash, for the order.
  name=${1##*/}
  mv "$note" "$JINDOU_NOTES/${name%-*}@${note##*.}"
  exit 0
fi

# Package and name of a note's program.
name_of() {
  local name=${1##*/} package
  package=$(sed -n 's/^cd //p' "$1")
  echo "${package##*/} ${name%@*}"
}

# The tests that printed a line that begins with $1, each with the rest of its first such line; $2: output with --show-output.
tests_that_print() {
  awk -v begin="$1" '
    /^---- .* stdout ----$/ { test = $2 }
    /^(successes|failures):$/ { test = "" }
    test != "" && index($0, begin) == 1 && !(test in seen) { seen[test]; print test ": " substr($0, length(begin) + 2) }
  ' "$2"
}

# A program's output without that of tests that passed.
without_successes() {
  awk '/^successes:$/ { hidden = 1 } /^(failures:$|test result:)/ { hidden = 0 } !hidden' "$1"
}

if [ "${1:-}" = --run ]; then
  note=$2
  name=$(name_of "$note")
  code=0
  # Most tests of these programs wait: for servers, their heartbeats, and their disks.
  case "$name" in
    "jindou all" | "jindou-replicas driver") export RUST_TEST_THREADS=$((2 * $(nproc))) ;;
  esac
  TIMEFORMAT='%R %U %S'
  { time bash "$note" >"$note.out" 2>&1 || code=$?; } 2>"$note.time"
  # A signal that ended the program is named above.
  read -r real user system < <(tail -n 1 "$note.time")
  (
    flock 9
    echo "--- $name: ${real%.*} s, $(((10#${user/./} + 10#${system/./}) / 1000)) s of processor time$([ "$code" = 0 ] || echo ", FAILED with $code")"
    if [ -n "$JINDOU_SHOW" ]; then cat "$note.out"; else without_successes "$note.out"; fi
    tests_that_print "skipped:" "$note.out" | sed "s/^/$name, /" >>"$JINDOU_NOTES/.skipped"
    if [ "$code" != 0 ]; then
      echo "$name" >>"$JINDOU_NOTES/.failed"
      without_successes "$note.out" >>"$JINDOU_NOTES/.output"
    fi
  ) 9>"$JINDOU_NOTES/.turn"
  exit 0
fi

if [ "${1:-}" = --run-without ]; then
  note=$2
  name=$(name_of "$note")
  mapfile -t tests < <(tests_that_print "reads shared:" "$note.out" | sed 's/: .*//')
  [ "${#tests[@]}" -gt 0 ] || exit 0
  code=0
  JINDOU_NOTHING_SHARED=1 bash "$note" --exact "${tests[@]}" >"$note.without" 2>&1 || code=$?
  (
    flock 9
    skipped=$(tests_that_print "skipped:" "$note.without" | wc -l)
    echo "--- $name, without inputs from outside: ${#tests[@]} tests, of which $skipped were skipped$([ "$code" = 0 ] || echo "; FAILED with $code")"
    if [ "$code" != 0 ]; then
      without_successes "$note.without" | tee -a "$JINDOU_NOTES/.output"
      echo "$name (without inputs from outside)" >>"$JINDOU_NOTES/.failed"
    fi
  ) 9>"$JINDOU_NOTES/.turn"
  exit 0
fi

self=$(readlink -f "$0")
JINDOU_NOTES=$(mktemp -d)
case " $* " in *" --show-output "* | *" --nocapture "*) JINDOU_SHOW=1 ;; *) JINDOU_SHOW= ;; esac
export JINDOU_NOTES JINDOU_SHOW
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
long=" jindou/all jindou/limits jindou-replicas/driver jindou-gpu/all jindou-engine/all jindou-server/http jindou-cli/commands \
  jindou-workloads/all jindou-syntax/jindou_syntax jindou/jindou jindou-cli/hostile jindou-bench/jindou_bench jindou-store/all "
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
ordered=$(while read -r package note; do
  case " ${packages:-$package} " in *" $package "*) ;; *) continue ;; esac
  name=${note##*/}
  name=$package/${name%@*}
  before=${long%% "$name" *}
  [ "$before" = "$long" ] && echo "9999 $note" || echo "${#before} $note"
done <<<"$notes" | sort -n | cut -d' ' -f2-)
each() { xargs -P "${JINDOU_AT_ONCE:-$(($(nproc) + 2))}" -n 1 "$self" "$1" <<<"$ordered"; }
each --run
[ -z "${JINDOU_WITHOUT:-}" ] || each --run-without

touch "$JINDOU_NOTES/.skipped"
"${self%/*}/skipped.sh" programs <"$JINDOU_NOTES/.skipped"
if [ -f "$JINDOU_NOTES/.failed" ]; then
  # Once more at the end, which is what is left of a long log.
  tail -n 100 "$JINDOU_NOTES/.output"
  echo "error: failed: $(sort "$JINDOU_NOTES/.failed" | paste -sd, | sed 's/,/, /g')" >&2
  exit 1
fi
