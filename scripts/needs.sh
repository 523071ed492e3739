#!/usr/bin/env bash
# Names, in one sentence each, what a build needs and this machine lacks; `needs.sh test`: what the tests need as well.
set -u
missing=0
need() { # command, sentence
  if ! command -v "$1" >/dev/null 2>&1; then
    echo "jindou: '$1' is missing: $2" >&2
    missing=1
  fi
}
[ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
need cargo "install Rust with rustup (https://rustup.rs), then open a new shell."
need cc "install a C compiler (Debian, Ubuntu: apt-get install build-essential)."
if [ "${1:-}" = test ]; then
  need c++ "install a C++ compiler, which builds the GPU kernels for the CPU, for tests (Debian, Ubuntu: apt-get install build-essential)."
fi
if command -v rustc >/dev/null 2>&1; then
  have=$(rustc --version | awk '{print $2}')
  want=1.90.0
  if [ "$(printf '%s\n%s\n' "$want" "$have" | sort -V | head -n 1)" != "$want" ]; then
    echo "jindou: rustc $have is older than $want: run 'rustup update stable'." >&2
    missing=1
  fi
fi
exit $missing
