//! Inputs of tests: files outside of the repository, and the texts of the project's own test cases.
//!
//! Continuous integration runs the tests that read files from outside a second time without these files. The script
//! `scripts/test-programs.sh` recognises such tests by the lines that they print, so every test must find its files by
//! this module.

use crate::folders::files_below;
use std::path::{Path, PathBuf};

/// The path of a file or folder among the inputs outside of the repository.
///
/// # Errors
///
/// A message with the missing path.
pub fn find(part: &str) -> Result<PathBuf, String> {
    let root = std::env::var_os("JINDOU_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join(part);
    let missing = |_| format!("there is no {}; set JINDOU_SHARED", path.display());
    path.canonicalize().map_err(missing)
}

/// As [`find`], for a test that does nothing without the input. If it is missing, prints that the test is skipped.
pub fn shared(part: &str) -> Option<PathBuf> {
    found(part, "skipped")
}

/// As [`find`], for a test that also has other inputs. If the input is missing, prints that the test has fewer inputs.
pub fn shared_too(part: &str) -> Option<PathBuf> {
    found(part, "fewer inputs")
}

fn found(part: &str, otherwise: &str) -> Option<PathBuf> {
    match find(part) {
        Ok(path) => {
            println!("reads shared: {part}");
            Some(path)
        }
        Err(why) => {
            println!("{otherwise}: {why}");
            None
        }
    }
}

/// A section of a test case in a text file (`crates/jindou/tests/cases`).
#[derive(Clone, Debug)]
pub struct CaseText {
    /// The file that contains the section.
    pub file: PathBuf,
    /// Line of the section's heading.
    pub line: usize,
    /// The section's lines.
    pub text: String,
    /// True if the test case expects an error.
    pub fails: bool,
}

/// All sections of one kind in the test cases, such as `query`, `update` or `data turtle`.
pub fn case_texts(kind: &str) -> Vec<CaseText> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/jindou/tests/cases");
    let mut files = files_below(&root);
    files.retain(|path| path.extension().is_some_and(|e| e == "test"));
    assert!(!files.is_empty(), "no cases in {}", root.display());
    files.iter().flat_map(|f| sections(f, kind)).collect()
}

fn sections(file: &Path, kind: &str) -> Vec<CaseText> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut found: Vec<CaseText> = vec![];
    let mut inside = false;
    for (n, line) in text.lines().enumerate() {
        if line.starts_with("== ") {
            inside = false;
        } else if let Some(heading) = line.strip_prefix("-- ") {
            if let Some(section) = found.last_mut().filter(|_| inside) {
                section.fails = heading.trim() == "error";
            }
            inside = heading.trim() == kind;
            if inside {
                found.push(CaseText {
                    file: file.to_owned(),
                    line: n + 1,
                    text: String::new(),
                    fails: false,
                });
            }
        } else if let Some(section) = found.last_mut().filter(|_| inside) {
            section.text += line;
            section.text.push('\n');
        }
    }
    found
}

/// The number in an environment variable, such as a seed; `otherwise` if it is not set.
pub fn from_environment(name: &str, otherwise: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name}={text}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_cases_are_found() {
        for (kind, beginnings) in [
            ("query", &["SELECT", "ASK"][..]),
            ("update", &["INSERT", "DELETE"]),
            ("data turtle", &["<http"]),
        ] {
            let all = case_texts(kind);
            assert!(all.len() > 10, "{kind}: {}", all.len());
            assert!(all.iter().all(|c| !c.text.contains("\n-- ")));
            let fail = all.iter().filter(|c| c.fails).count();
            assert!(fail < all.len() / 2 && (fail > 0 || kind != "query"));
            for beginning in beginnings {
                assert!(all.iter().any(|c| c.text.starts_with(beginning)), "{kind}");
            }
        }
    }
}
