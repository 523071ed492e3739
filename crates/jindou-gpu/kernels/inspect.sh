#!/bin/sh
# Prints properties of the kernels' machine code, without a GPU: see inspect.py.
#
#   inspect.sh          writes inspect.txt for the current fatbin
#   inspect.sh check    tells whether inspect.txt belongs to the current fatbin (if PyPI can be reached)
#
# Needs python3 with venv. The tools come from PyPI, pinned, and are installed in the target folder.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${CARGO_TARGET_DIR:-$here/../../../target}/cuda-venv
if [ ! -x "$venv/bin/pip" ] && ! python3 -m venv "$venv" 2> /dev/null; then
  echo "kernels/inspect.sh: left out: python3 has no venv here"
  exit 0
fi
if ! "$venv/bin/pip" -q --disable-pip-version-check install nvidia-cuda-cuobjdump==13.2.51 nvidia-cuda-nvdisasm==13.5.37 2> "$venv/pip.log"; then
  echo "kernels/inspect.sh: left out: PyPI does not give cuobjdump here ($(tail -n 1 "$venv/pip.log"))"
  exit 0
fi
tool=$(find "$venv" -path '*/bin/cuobjdump' | head -n 1)
PATH=$(dirname "$tool"):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here"
{
  echo "fatbin $(sha256sum jindou.fatbin | cut -d' ' -f1)"
  printf '%-7s %-20s %9s %6s %7s %9s %6s %6s %8s %5s %7s\n' chip kernel registers shared spilled occupancy random blocks together alone ordered
  for arch in $(sed -n 's/^ARCHITECTURES="\(.*\)"$/\1/p' build.sh); do
    "$tool" --dump-resource-usage -arch "sm_$arch" jindou.fatbin > "$work/usage"
    "$tool" -sass -arch "sm_$arch" jindou.fatbin > "$work/sass"
    python3 inspect.py "$arch" "$work/usage" "$work/sass"
  done
} > "$work/table"
if [ "${1:-}" = check ]; then
  diff inspect.txt "$work/table" || { echo "kernels/inspect.txt is not of this fatbin: run kernels/inspect.sh" >&2; exit 1; }
  echo "kernels/inspect.txt: as the fatbin's machine code says"
else
  cp "$work/table" inspect.txt
  cat inspect.txt
fi
