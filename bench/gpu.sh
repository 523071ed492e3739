#!/bin/sh
# Checks and measures the GPU part on this machine: kernels against plain Rust, the card's copy bandwidth, each
# kernel's time over its byte floor, LUBM through the real loader and planner, and compute-sanitizer on a small set.
#
#   bench/gpu.sh build            builds the carried binary into .carry/ (x86-64; runs on glibc 2.36 or newer)
#   bench/gpu.sh run [N [T]]      runs .carry/gpu_bench: LUBM(N), default 640, with T threads, default 16; logs to $OUT
#   JINDOU_GPU=shim bench/gpu.sh small    proves this script where there is no GPU
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
out=${OUT:-target/gpu-bench}
mkdir -p "$out"
case "${1:-run}" in
  build)
    mkdir -p .carry
    cargo build --release -p jindou-gpu --example gpu_bench
    cp "${CARGO_TARGET_DIR:-target}/release/examples/gpu_bench" .carry/gpu_bench
    strip .carry/gpu_bench
    ls -l .carry/gpu_bench
    ;;
  small)
    ${GPU_BENCH:-.carry/gpu_bench} --rows 20000 --check-rows 5000 --repeat 1 --lubm 1 | tee "$out/small.log"
    ;;
  run)
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader || true
    ${GPU_BENCH:-.carry/gpu_bench} --lubm "${2:-640}" --threads "${3:-16}" 2>&1 | tee "$out/gpu_bench.log"
    if command -v compute-sanitizer > /dev/null; then
      for tool in memcheck racecheck initcheck synccheck; do
        echo "compute-sanitizer $tool"
        timeout 100 compute-sanitizer --tool "$tool" --error-exitcode 9 \
          ${GPU_BENCH:-.carry/gpu_bench} --rows 4096 --check-rows 3000 --repeat 1 > "$out/$tool.log" 2>&1 \
          && echo "  clean" || { echo "  rc $?"; tail -n 15 "$out/$tool.log"; }
      done
    fi
    ;;
  *)
    echo "usage: bench/gpu.sh build | run [N [T]] | small" >&2
    exit 2
    ;;
esac
