#!/usr/bin/env bash
# rustc with Clippy's lints, and with warnings denied: for Cargo's RUSTC_WORKSPACE_WRAPPER, which runs it for the workspace's own crates
# only. Code is checked and compiled in one pass, where `cargo clippy` checks all crates once more.
# (bash keeps variables such as CARGO_BIN_EXE_jindou-bench, whose names are not those of shells; dash drops them.)
exec clippy-driver "$@" -D warnings
