#!/bin/sh
# First contact with a card: checks and measures the GPU part on this machine in one run of at most 240 s, stage by stage.
# Each stage is a process with a budget of its own, at which it stops and says what it left out; its lines of JSON go to
# $OUT/gpu.jsonl, a table of the stages comes last, and the exit code is the number of stages that failed. Lines with a
# goal say what is wanted, what is had, and whether it is met: a goal that is missed is no failure, a wrong answer is.
#
#   bench/gpu.sh build              builds the carried program into .carry/ (x86-64; runs on glibc 2.36 or newer)
#   bench/gpu.sh build-tests        and into .carry/gpu_tests the test program of jindou-gpu
#   bench/gpu.sh tests              runs those tests that can on the card (JINDOU_TEST_DEVICE=card)
#   bench/gpu.sh run [N [T]]        all stages; LUBM(N), default 2560, with T threads, default 16, and its store in $STORE
#   bench/gpu.sh queries [N [T]]    loading, queries, rows, bringing, paging and serving alone, for a second run at another scale (10240)
#   bench/gpu.sh variant [FLAGS]    kernels of this folder built by this machine's nvcc with FLAGS, checked and timed; no Rust
#   bench/gpu.sh transfers [N [T]]  without a card: bytes that LUBM(N)'s heavy queries want and move, alongside ATC '18's; default 160
#   JINDOU_GPU=shim bench/gpu.sh small [N]    every stage where there is no card, over LUBM(N), default 1
#
# stage      what
# driver     the card, its driver, memory
# load       LUBM(N) into a store, in the background
# kernels    every kernel against plain Rust; a group that fails again under memcheck
# speeds     bandwidths, sectors without order, launches, waits, pinning: kept in $OUT/calibration.json for the cost model
# floors     each kernel's time over its byte floor
# queries    LUBM: counts, checksums, CPU at 1 and T threads, predictions, parts of the memory that tables want
# threads    the CPU alone with 1, 2, 4 … T threads
# rows       large answers as TSV with --gpu off, on and auto
# bring      the link, the host's copies into pinned memory, and what bringing segments reaches
# paging     ATC '18's tables 5 and 6, figures 11 and 12 in milliseconds, with 3, 6 and 10 GB and all memory
# served     heavy and light clients over HTTP with --gpu off, on and auto
# memcheck, racecheck, ncu    where the tools are
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here" || exit 1
OUT=${OUT:-target/gpu-bench}
STORE=${STORE:-$OUT/store}
bench=${GPU_BENCH:-.carry/gpu_bench}
began=$(date +%s)
budget=${BUDGET:-240}
failed=0
mkdir -p "$OUT"

left() { echo $((budget - ($(date +%s) - began))); }

# stage NAME SECONDS COMMAND...: runs it, keeps its lines and its outcome.
stage() {
  name=$1; limit=$2; shift 2
  rest=$(left)
  [ "$rest" -lt "$limit" ] && limit=$rest
  if [ "$limit" -lt 3 ]; then
    echo '{"stopped":"before it began: the budget of the whole run is over"}' > "$OUT/$name.log"
    outcome "$name" 124 0
    return 1
  fi
  from=$(date +%s)
  timeout -k 5 "$limit" "$@" > "$OUT/$name.log" 2>&1
  code=$?
  outcome "$name" $code $(($(date +%s) - from))
}

# bounded NAME SECONDS STAGE [OPTIONS...]: a stage of the program that ends by itself within this budget. It is stopped if
# what it has begun by then takes long.
bounded() {
  name=$1; seconds=$2; shift 2
  rest=$(left)
  [ "$rest" -lt $((seconds + 5)) ] && seconds=$((rest - 5))
  if [ "$seconds" -lt 1 ]; then seconds=1; fi
  stage "$name" $((seconds + ${GRACE:-15})) "$bench" "$@" --seconds "$seconds"
}

# count NAME TEXT: the lines of a stage that have this text.
count() { if [ -f "$OUT/$1.log" ]; then grep -c -- "$2" "$OUT/$1.log"; else echo 0; fi; }

# outcome NAME CODE SECONDS
outcome() {
  if [ -f "$OUT/$1.log" ]; then grep '^{' "$OUT/$1.log" | sed "s/^{/{\"stage\":\"$1\",/" >> "$OUT/gpu.jsonl"; fi
  echo "{\"stage\":\"$1\",\"code\":$2,\"seconds\":$3}" >> "$OUT/gpu.jsonl"
  met=$(count "$1" '"met":true') missed=$(count "$1" '"met":false') stopped=$(count "$1" '"stopped"')
  note=
  [ "$2" -eq 124 ] && note='stopped from outside'
  [ "$stopped" -gt 0 ] && note='stopped at its budget'
  [ "$2" -eq 124 ] && [ "$3" -eq 0 ] && note='not begun'
  printf '%-12s %4s %5s s %5s met %5s missed  %s\n' "$1" "$2" "$3" "$met" "$missed" "$note" >> "$OUT/stages"
  if [ "$2" -ne 0 ]; then
    failed=$((failed + 1))
    echo "$1: failed ($2)" >&2
    [ -f "$OUT/$1.log" ] && tail -n 5 "$OUT/$1.log" >&2
  fi
  return "$2"
}

# LUBM(N) by T threads, in the background; `loaded` waits for it.
load() {
  rm -rf "$STORE"
  load_from=$(date +%s)
  timeout -k 5 "$3" "$bench" load --store "$STORE" --lubm "$1" --threads "$2" > "$OUT/load.log" 2>&1 &
  loading=$!
}
loaded() {
  wait "$loading"
  outcome load $? $(($(date +%s) - load_from))
}

# queries N T REPEAT SECONDS: what needs the store, in this many seconds and what they leave.
queries() {
  at="--store $STORE --lubm $1 --threads $2"
  share=$4
  # shellcheck disable=SC2086 # options, one word each
  {
    bounded queries $((share * 10 / 100)) queries $at --repeat "$3"
    bounded threads $((share * 5 / 100)) threads $at --repeat 3
    bounded rows $((share * 12 / 100)) rows $at --repeat "$3"
    bounded bring $((share * 10 / 100)) bring $at --repeat "$3"
    bounded paging $((share * 28 / 100)) paging $at --repeat "$3"
    bounded served $((share * 35 / 100)) served $at --repeat "$3"
  }
}

# What failed alone, once more under memcheck.
again() {
  command -v compute-sanitizer > /dev/null || return 0
  for group in $(sed -n 's/.*"group":"\([a-z-]*\)".*"right":false.*/\1/p' "$OUT/kernels.log"); do
    stage "memcheck-$group" 60 compute-sanitizer --tool memcheck --error-exitcode 9 "$bench" check --only "$group" --check-rows 3000
  done
}

# kernels ROWS SECONDS
kernels() {
  bounded kernels "$2" check --check-rows "$1" || again
}

# sanitizers SECONDS: for each tool.
sanitizers() {
  if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck; do
      stage $tool "$1" compute-sanitizer --tool $tool --error-exitcode 9 "$bench" check --check-rows 2500 --seconds $(($1 - 2))
    done
  fi
  if command -v ncu > /dev/null; then
    stage ncu "$1" ncu --set basic --kernel-name-base function "$bench" check --check-rows 200000 --only expansions --seconds $(($1 - 5))
  fi
}

finish() {
  echo
  printf '%-12s %4s\n' stage code
  cat "$OUT/stages"
  echo "$failed failed; lines in $OUT/gpu.jsonl"
  exit "$failed"
}

begin() {
  rm -f "$OUT/gpu.jsonl" "$OUT/stages"
  : > "$OUT/stages"
  export JINDOU_GPU_CALIBRATION="$OUT/calibration.json"
  if [ ! -x "$bench" ]; then
    echo "there is no $bench: run bench/gpu.sh build where there is Rust" >&2
    exit 99
  fi
  stage driver 60 "$bench" driver || finish
}

case "${1:-run}" in
  build)
    set -e
    mkdir -p .carry
    # shellcheck disable=SC2086 # a list of words
    cargo build ${PROFILE:---release} -p jindou-bench --example gpu_bench
    cp "${BUILT:-${CARGO_TARGET_DIR:-target}/release/examples/gpu_bench}" .carry/gpu_bench
    strip .carry/gpu_bench
    ls -l .carry/gpu_bench
    ;;
  build-tests)
    set -e
    mkdir -p .carry
    # shellcheck disable=SC2086 # a list of words
    built=$(cargo test ${PROFILE:---release} -p jindou-gpu --test all --no-run --message-format json |
      sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)
    cp "$built" .carry/gpu_tests
    strip .carry/gpu_tests
    ls -l .carry/gpu_tests
    ;;
  small)
    # The shim takes its time, and goals mean nothing.
    budget=${BUDGET:-1800}
    GRACE=240
    begin
    load "${2:-1}" 2 300
    kernels 3000 300
    stage speeds 120 "$bench" speeds --repeat 1
    bounded floors 60 floors --rows 20000 --repeat 1
    loaded && queries "${2:-1}" 2 1 "${SHARE:-300}"
    sanitizers 120
    finish
    ;;
  run)
    begin
    load "${2:-2560}" "${3:-16}" 100
    kernels 200000 40
    stage speeds 15 "$bench" speeds
    bounded floors 15 floors
    # 45 s of what is left are for the tools.
    loaded && queries "${2:-2560}" "${3:-16}" 11 $(($(left) - 45))
    sanitizers 15
    finish
    ;;
  tests)
    # No program but the tests is needed.
    budget=${BUDGET:-600}
    rm -f "$OUT/gpu.jsonl" "$OUT/stages"
    : > "$OUT/stages"
    for test in plans above id_starts executors pages; do
      JINDOU_TEST_DEVICE=card stage "$test" 180 .carry/gpu_tests "$test::"
    done
    finish
    ;;
  queries)
    budget=${BUDGET:-600}
    begin
    load "${2:-2560}" "${3:-16}" 400
    loaded && queries "${2:-2560}" "${3:-16}" 7 $(($(left) - 15))
    finish
    ;;
  transfers)
    # The shim counts, and no kernel runs.
    export JINDOU_GPU=shim
    budget=${BUDGET:-3600}
    begin
    load "${2:-160}" "${3:-2}" 1800
    loaded && stage transfers 1200 "$bench" transfers --store "$STORE" --lubm "${2:-160}" && grep -v '^{' "$OUT/transfers.log"
    finish
    ;;
  variant)
    shift
    begin
    # shellcheck disable=SC2086 # a list of words
    stage nvcc 120 nvcc -std=c++17 -O3 -arch=native $* -fatbin -o "$OUT/variant.fatbin" crates/jindou-gpu/kernels/all.cu || finish
    export JINDOU_FATBIN="$OUT/variant.fatbin"
    budget=${BUDGET:-600}
    kernels 200000 90
    bounded floors 60 floors
    finish
    ;;
  *)
    sed -n '2,28s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
