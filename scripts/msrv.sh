#!/usr/bin/env bash
# Builds everything with the minimal Rust version that Cargo.toml names, where that toolchain is installed; otherwise only
# clippy's incompatible_msrv is run, which knows the standard library's items and not the language.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
if command -v rustup >/dev/null && RUSTUP_AUTO_INSTALL=0 rustup run "$version" rustc --version; then
    RUSTUP_AUTO_INSTALL=0 cargo "+$version" check --workspace --all-targets --locked --target-dir target/msrv
else
    echo "skipped: building with Rust $version (rustup toolchain install $version --profile minimal)"
    cargo clippy --workspace --all-targets --locked -- -A clippy::all -D clippy::incompatible_msrv
fi
