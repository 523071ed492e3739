//! Checks the documentation: commands print what the pages show, links are not broken, and the README is short.
//!
//! On the pages in [`pages`], each `sh` block is run, in order, in one shell and one folder that at first contains
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

/// Pages whose commands run, each by a test of its own.
macro_rules! pages {
    ($($name:ident => $page:literal,)*) => {
        $(
            #[test]
            fn $name() {
                run($page);
            }
        )*
    };
}

pages! {
    readme => "README.md",
    tutorial => "docs/tutorial.md",
    load => "docs/load.md",
    query => "docs/query.md",
    named_graphs => "docs/named-graphs.md",
    recipes => "docs/recipes.md",
    prefixes => "docs/prefixes.md",
    updates => "docs/updates.md",
    operation => "docs/operation.md",
    large_graphs => "docs/large-graphs.md",
    format => "docs/format.md",
    performance => "docs/performance.md",
    command => "docs/command.md",
    troubleshooting => "docs/troubleshooting.md",
    replicas => "docs/replicas.md",
    coming_from => "docs/coming-from.md",
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
