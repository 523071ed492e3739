//! Checks the documentation: commands print what the pages show, links are not broken, and the README is short.
//!
//! On the pages in [`CHECKED`], each `sh` block is run, in order, in one shell and one folder that at first contains
//! only `demo` and `jindou`. If the next block is a `text` block, it shows the expected output with standard error; `…`
//! matches any lines, and numbers that differ between runs are masked ([`mask`]). Comments before a block change this:
//!
//! - `<!-- not run: REASON -->`: the block is not run.
//! - `<!-- fails -->`: the block must fail.

mod commands;
mod links;
mod mask;
mod page;

use page::Page;
use std::path::{Path, PathBuf};

/// Pages whose commands run.
const CHECKED: [&str; 16] = [
    "README.md",
    "docs/tutorial.md",
    "docs/load.md",
    "docs/query.md",
    "docs/recipes.md",
    "docs/named-graphs.md",
    "docs/prefixes.md",
    "docs/updates.md",
    "docs/operation.md",
    "docs/large-graphs.md",
    "docs/format.md",
    "docs/performance.md",
    "docs/command.md",
    "docs/troubleshooting.md",
    "docs/coming-from.md",
    "docs/replicas.md",
];

/// Maximum number of words in the README, as counted by `wc -w`.
const README_WORDS: usize = 800;

/// The root folder of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn run(page: &str) {
    if let Err(e) = commands::run(&root(), &Page::read(&root().join(page))) {
        panic!("{page}: {e}");
    }
}

#[test]
fn every_page_is_checked_by_a_test() {
    let here =
        std::fs::read_to_string(root().join("crates/jindou-cli/tests/documentation/main.rs"))
            .expect("this file");
    for page in CHECKED {
        assert!(
            here.contains(&format!("run(\"{page}\")")),
            "{page} has no test"
        );
    }
}

#[test]
fn readme() {
    run("README.md");
}

#[test]
fn tutorial() {
    run("docs/tutorial.md");
}

#[test]
fn load() {
    run("docs/load.md");
}

#[test]
fn query() {
    run("docs/query.md");
}

#[test]
fn named_graphs() {
    run("docs/named-graphs.md");
}

#[test]
fn recipes() {
    run("docs/recipes.md");
}

#[test]
fn prefixes() {
    run("docs/prefixes.md");
}

#[test]
fn updates() {
    run("docs/updates.md");
}

#[test]
fn operation() {
    run("docs/operation.md");
}

#[test]
fn large_graphs() {
    run("docs/large-graphs.md");
}

#[test]
fn format() {
    run("docs/format.md");
}

#[test]
fn performance() {
    run("docs/performance.md");
}

#[test]
fn command() {
    run("docs/command.md");
}

#[test]
fn troubleshooting() {
    run("docs/troubleshooting.md");
}

#[test]
fn replicas() {
    run("docs/replicas.md");
}

#[test]
fn coming_from() {
    run("docs/coming-from.md");
}

#[test]
fn the_readme_is_short() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let words = text.split_whitespace().count();
    assert!(
        words <= README_WORDS,
        "README.md has {words} words, more than {README_WORDS}: move some to docs/"
    );
}

#[test]
fn pictures_are_small() {
    for entry in std::fs::read_dir(root().join("docs/pictures")).expect("docs/pictures") {
        let entry = entry.expect("an entry");
        let bytes = entry.metadata().expect("its size").len();
        assert!(bytes < 150_000, "{}: {bytes} bytes", entry.path().display());
    }
}

#[test]
fn links_lead_somewhere() {
    let faults = links::faults(&root());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
