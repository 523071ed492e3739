# `make demo` does the main job, `make test` checks everything. The other targets are the long checks that
# docs/testing.md describes.
SHELL := /bin/bash
.DEFAULT_GOAL := build

JINDOU := target/release/jindou

# What tests run: examples and benches are checked by `lint`, and built where somebody runs them. The same set everywhere, so that features of
# shared dependencies are the same and nothing is compiled twice.
TARGETS := --workspace --lib --bins --tests --locked

.PHONY: release build demo site test lint built unit documents page page-browser python tools demo-check test-long test-long-rest audit bench bench-quick fuzz needs needs-test

# LINT=compile: Clippy reads what is compiled while it is compiled, as continuous integration has it. That takes less time where nothing
# is compiled yet, and keeps such builds apart from others.
ifeq ($(LINT),compile)
export RUSTC_WORKSPACE_WRAPPER := $(CURDIR)/scripts/lint-and-compile.sh
export CLIPPY_ARGS := -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
CLIPPY := true
ALSO := --examples --benches
else
CLIPPY := cargo clippy --workspace --all-targets --locked $(PROFILE) -- -D warnings
endif

needs:
	@scripts/needs.sh

needs-test:
	@scripts/needs.sh test

build: needs
	cargo build --release --locked -p jindou-cli

demo: build
	@scripts/demo.sh $(JINDOU)

# The documentation as a site, target/site; installs mdBook into target/tools.
site:
	@scripts/site.sh

# With `make -j4 -Oline`, what does not depend on something else runs at the same time. AFTER=unit: what is not a test program of Cargo's
# waits for those, since some of them measure times. TOOLS=tools: what is missing is installed first.
test: lint page unit documents page-browser python
	@scripts/skipped.sh

# What tests need besides a compiler.
tools:
	@.ci/tools >tools.log 2>&1 || { cat tools.log; exit 1; }
	@rm -f tools.log

lint: needs-test
	@scripts/words.sh
	@scripts/boundary.sh
	@scripts/typos.sh
	cargo fmt --all --check
	$(CLIPPY)

built: needs-test
	cargo build $(TARGETS) $(ALSO) $(PROFILE)

unit: built $(TOOLS)
	PROPTEST_CASES=64 scripts/test-programs.sh $(TARGETS) $(PROFILE) $(TESTFLAGS)

# What the documentation says.
documents: built $(AFTER)
	RUSTDOC=$(CURDIR)/scripts/doc-lint-and-test.sh cargo test --workspace --doc --locked $(PROFILE)

# The page's sources, its unit tests, and whether what is committed is what they build (where Node is installed).
page: $(TOOLS)
	@scripts/page-test.sh sources

# The page in a browser, before the program that `built` has built (where Node and Chromium are installed).
page-browser: built page $(AFTER)
	@scripts/page-test.sh browser "$(PROFILE)"

# The Python package as `built` has built it (where Python 3 with venv is installed and PyPI can be reached).
python: built $(AFTER)
	@scripts/python-test.sh "$(PROFILE)"

# The demo with the program that `make PROFILE="--profile ci" built` builds.
demo-check: built $(AFTER)
	@scripts/demo.sh target/ci/jindou >demo.log 2>&1 || { cat demo.log; exit 1; }
	@rm -f demo.log
	@echo "demo: passed"

# Every long test: big scales, 100,000 random cases, real data. Some hours on two cores; PACKAGES="jindou-plan jindou-gpu" runs those of
# these packages (docs/testing.md has the time of each), and test-long-rest what belongs to none.
test-long: build
	PROPTEST_CASES=1024 TMPDIR="$${TMPDIR:-/tmp}" JINDOU_PACKAGES="$(PACKAGES)" JINDOU_AT_ONCE="$${JINDOU_AT_ONCE:-2}" \
		scripts/test-programs.sh $(TARGETS) --release -- --include-ignored
	$(if $(PACKAGES),,$(MAKE) test-long-rest)

# Fuzzing's targets, the model of replicas, the library by itself, the page's long tests.
test-long-rest: build
	cargo check --manifest-path lab/fuzz/Cargo.toml
	cargo test --release --locked --manifest-path lab/replicas-model/Cargo.toml
	cargo check -p jindou --locked
	@JINDOU_LONG=1 scripts/page-test.sh browser --release

# The auditor's run (docs/testing.md): texts of every kind, sent to a program that reports memory that no query was charged for, and
# long work without a look at the query's token.
audit: build
	cargo build --release --locked -p jindou-cli --features audit --bin jindou
	mkdir -p target/audit && rm -f target/audit/findings && mv target/release/jindou target/audit/jindou
	JINDOU_BIN=$(CURDIR)/target/audit/jindou JINDOU_AUDIT=$(CURDIR)/target/audit/findings \
		cargo test --release --locked -p jindou-cli --test attack -- --ignored --nocapture audited_texts

# The figures of docs/performance.md: LUBM at the scale in UNIVERSITIES (default 160).
bench: build
	cargo build --release --locked -p jindou-bench
	@scripts/bench.sh $(JINDOU) $(or $(UNIVERSITIES),160)

# What became slower since the last release (BASE=commit: since then), in instructions; see docs/testing.md.
bench-quick: needs
	@scripts/bench-quick.sh

# Ten minutes of fuzzing on each target; needs cargo-fuzz and a nightly toolchain.
fuzz:
	@scripts/fuzz.sh $(or $(SECONDS_EACH),600)

# What users download, into target/dist: archive, Debian package, container, checksums (docs/deployment.md).
release: needs
	@scripts/release.sh
