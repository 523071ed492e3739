#!/usr/bin/env bash
# Spelling of sources and documents, by `typos` (typos.toml), where it is installed: cargo install typos-cli, or pip install typos.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v typos >/dev/null; then
  echo "typos is not installed: spelling was not checked"
  exit 0
fi
typos
