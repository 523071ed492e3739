#!/usr/bin/env bash
# Prints the figures of docs/performance.md on this machine. Usage: scripts/bench.sh PATH-TO-JINDOU UNIVERSITIES
set -euo pipefail
jindou=$1
n=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "machine: $(nproc) cores, $(awk '/MemTotal/ {printf "%.0f GiB", $2/1048576}' /proc/meminfo), $(grep -m1 'model name' /proc/cpuinfo | cut -d: -f2 | xargs)"
"$jindou" --version
"$jindou" bench lubm --universities "$n" --store "$work/lubm.store" --repeat 15 --light 10000
