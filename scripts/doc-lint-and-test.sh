#!/usr/bin/env bash
# A `rustdoc` for `cargo test --doc` that first writes the documentation of the published crates, with warnings denied. `cargo doc` would check
# every dependency once more for that, since it cannot read what was built.
set -euo pipefail

crate='' previous='' of_page=()
for argument in "$@"; do
  case $previous in --crate-name) crate=$argument ;; esac
  case $previous in
  --test-args | --test-run-directory | --test-runtool | --test-runtool-arg) ;;
  *)
    case $argument in
    --test | --test-args | --test-run-directory | --test-runtool | --test-runtool-arg) ;;
    --test-args=* | --test-run-directory=* | --test-runtool=* | --test-runtool-arg=*) ;;
    *) of_page+=("$argument") ;;
    esac
    ;;
  esac
  previous=$argument
done

case $crate in
jindou | jindou_model)
  pages=$(mktemp -d)
  trap 'rm -rf "$pages"' EXIT
  rustdoc "${of_page[@]}" -D warnings --out-dir "$pages"
  ;;
esac
rustdoc "$@"
