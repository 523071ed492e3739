#!/bin/sh
# Builds jindou.fatbin with a pinned CUDA 13.0 compiler from PyPI: machine code for each of ARCHITECTURES, and PTX for
# the oldest, which the driver compiles for later GPUs. Compressed. Also writes the sha256 of the sources and of the
# result. Needs python3 with venv; nothing is installed outside the target folder.
set -eu
# Turing, Ampere (A100, then others), Ada, Hopper, Blackwell (B200, then others). tests/all/fatbin.rs reads the next
# line.
ARCHITECTURES="75 80 86 89 90 100 120"
here=$(cd "$(dirname "$0")" && pwd)
venv=${CARGO_TARGET_DIR:-$here/../../../target}/cuda-venv
if [ ! -x "$venv/bin/pip" ]; then python3 -m venv "$venv"; fi
"$venv/bin/pip" -q --disable-pip-version-check install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
nvcc=$(find "$venv" -path '*/bin/nvcc' | head -n 1)
cd "$here"
targets="-gencode arch=compute_${ARCHITECTURES%% *},code=compute_${ARCHITECTURES%% *}"
for a in $ARCHITECTURES; do targets="$targets -gencode arch=compute_$a,code=sm_$a"; done
# shellcheck disable=SC2086 # lists of words
"$nvcc" -std=c++17 -O3 -Xptxas -v -Xfatbin -compress-all -compress-mode=size ${NVCC_FLAGS:-} $targets \
  -fatbin -o jindou.fatbin all.cu 2> ptxas.log || { cat ptxas.log >&2; exit 1; }
grep -E 'error|warning|spill|registers' ptxas.log | grep -v ' 0 bytes spill' || true
rm -f ptxas.log
cat device.cuh params.cuh segment.cuh compact.cuh start.cu filter.cu measure.cu expand.cu fold.cu operators.cu group.cu select.cu all.cu | sha256sum | cut -d' ' -f1 > jindou.fatbin.sources.sha256
sha256sum jindou.fatbin | cut -d' ' -f1 > jindou.fatbin.sha256
ls -l jindou.fatbin
