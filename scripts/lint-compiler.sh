#!/bin/sh
# rustc with Clippy's lints, and with warnings denied: for Cargo's RUSTC_WORKSPACE_WRAPPER, which runs it for the workspace's own crates
# only. Code is checked and compiled in one pass, where `cargo clippy` checks all crates once more.
exec clippy-driver "$@" -D warnings
