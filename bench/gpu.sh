#!/bin/sh
# First contact with a card: checks and measures the GPU part on this machine in one run of at most 600 s, stage by stage.
# Each stage is a process with a timeout of its own; its lines of JSON go to $OUT/gpu.jsonl, a table of the stages comes last,
# and the exit code is the number of stages that failed.
#
#   bench/gpu.sh build              builds the carried program into .carry/ (x86-64; runs on glibc 2.36 or newer)
#   bench/gpu.sh run [N [T]]        all stages; LUBM(N), default 2560, with T threads, default 16, and its store in $STORE
#   bench/gpu.sh queries [N [T]]    loading and queries alone, for a second run at another scale (10240)
#   bench/gpu.sh variant [FLAGS]    kernels of this folder built by this machine's nvcc with FLAGS, checked and timed; no Rust
#   bench/gpu.sh transfers [N [T]]  without a card: bytes that LUBM(N)'s heavy queries want and move, alongside ATC '18's; default 160
#   JINDOU_GPU=shim bench/gpu.sh small    proves this script where there is no card
#
# stage      what
# driver     the card, its driver, memory
# load       LUBM(N) into a store, in the background
# kernels    every kernel against plain Rust; a group that fails again under memcheck
# speeds     bandwidths, sectors without order, launches, waits, pinning: kept in $OUT/calibration.json for the cost model
# floors     each kernel's time over its byte floor
# queries    LUBM: counts, checksums, CPU at 1 and T threads, predictions, parts of the memory that tables want
# threads    the CPU alone with 1, 2, 4 … T threads
# memcheck, racecheck, ncu    a minute each, where the tools are
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here" || exit 1
OUT=${OUT:-target/gpu-bench}
STORE=${STORE:-$OUT/store}
bench=${GPU_BENCH:-.carry/gpu_bench}
began=$(date +%s)
budget=${BUDGET:-600}
failed=0
mkdir -p "$OUT"

left() { echo $((budget - ($(date +%s) - began))); }

# stage NAME SECONDS COMMAND...: runs it, keeps its lines and its outcome.
stage() {
  name=$1; limit=$2; shift 2
  rest=$(left)
  [ "$rest" -lt "$limit" ] && limit=$rest
  if [ "$limit" -lt 3 ]; then outcome "$name" 124 0; return 1; fi
  from=$(date +%s)
  timeout -k 5 "$limit" "$@" > "$OUT/$name.log" 2>&1
  code=$?
  outcome "$name" $code $(($(date +%s) - from))
}

# outcome NAME CODE SECONDS
outcome() {
  if [ -f "$OUT/$1.log" ]; then grep '^{' "$OUT/$1.log" | sed "s/^{/{\"stage\":\"$1\",/" >> "$OUT/gpu.jsonl"; fi
  echo "{\"stage\":\"$1\",\"code\":$2,\"seconds\":$3}" >> "$OUT/gpu.jsonl"
  printf '%-12s %4s %5s s\n' "$1" "$2" "$3" >> "$OUT/stages"
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

queries() {
  stage queries 200 "$bench" queries --store "$STORE" --lubm "$1" --threads "$2" --repeat "$3"
  stage threads 60 "$bench" threads --store "$STORE" --threads "$2" --repeat 3
}

# What failed alone, once more under memcheck.
again() {
  command -v compute-sanitizer > /dev/null || return 0
  for group in $(sed -n 's/.*"group":"\([a-z-]*\)".*"right":false.*/\1/p' "$OUT/kernels.log"); do
    stage "memcheck-$group" 60 compute-sanitizer --tool memcheck --error-exitcode 9 "$bench" check --only "$group" --check-rows 3000
  done
}

kernels() {
  stage kernels "${2:-90}" "$bench" check --check-rows "$1" || again
}

sanitizers() {
  if command -v compute-sanitizer > /dev/null; then
    for tool in memcheck racecheck; do
      stage $tool 60 compute-sanitizer --tool $tool --error-exitcode 9 "$bench" check --check-rows 2500
    done
  fi
  if command -v ncu > /dev/null; then
    stage ncu 60 ncu --set basic --kernel-name-base function "$bench" check --check-rows 200000 --only expansions
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
  small)
    # The shim takes its time.
    budget=${BUDGET:-900}
    begin
    load 1 2 120
    kernels 3000 300
    stage speeds 60 "$bench" speeds --repeat 1
    stage floors 120 "$bench" floors --rows 20000 --repeat 1
    loaded && queries 1 2 1
    sanitizers
    finish
    ;;
  run)
    begin
    load "${2:-2560}" "${3:-16}" 240
    kernels 200000
    stage speeds 45 "$bench" speeds
    stage floors 60 "$bench" floors
    loaded && queries "${2:-2560}" "${3:-16}" 11
    sanitizers
    finish
    ;;
  queries)
    begin
    load "${2:-2560}" "${3:-16}" 400
    loaded && queries "${2:-2560}" "${3:-16}" 7
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
    kernels 200000
    stage floors 60 "$bench" floors
    finish
    ;;
  *)
    sed -n '2,25s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
