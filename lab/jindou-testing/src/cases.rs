//! Common parts of test runners that read their cases from text files. The environment variable `JINDOU_CASES=FILE` or
//! `FILE:LINE` selects cases.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A file of test cases, with an optional selection of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseFile {
    /// Path of the file.
    pub path: PathBuf,
    /// A line of the selected case; `None` if all cases are selected.
    pub line: Option<usize>,
}

/// The selected files of a folder, sorted by name.
pub fn case_files(folder: &str) -> Vec<CaseFile> {
    selected(folder, &std::env::var("JINDOU_CASES").unwrap_or_default())
}

fn selected(folder: &str, selection: &str) -> Vec<CaseFile> {
    let (name, line) = match selection.rsplit_once(':') {
        Some((name, line)) => (name, line.parse().ok()),
        None => (selection, None),
    };
    let name = Path::new(name).file_name();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{folder}: {e}"));
    let paths = entries.map(|e| e.unwrap_or_else(|e| panic!("{folder}: {e}")).path());
    let mut found: Vec<CaseFile> = paths
        .filter(|path| name.is_none() || path.file_name() == name)
        .map(|path| CaseFile { path, line })
        .collect();
    assert!(!found.is_empty(), "{folder} has no {selection:?}");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl CaseFile {
    /// The name of the file.
    pub fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Removes the cases that are not selected. Cases must be in the order of their lines.
    pub fn select<T>(&self, cases: &mut Vec<T>, line_of: impl Fn(&T) -> usize) {
        if let Some(line) = self.line {
            let after = cases.partition_point(|c| line_of(c) <= line);
            cases.truncate(after);
            cases.drain(..after.saturating_sub(1));
        }
    }
}

/// Runs all cases on four threads. Returns the errors of the cases that failed, in the order of the cases.
pub fn failures<T: Sync, F: Send>(cases: &[T], run: impl Fn(&T) -> Result<(), F> + Sync) -> Vec<F> {
    let (next, failed) = (Mutex::new(0..cases.len()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(n) = next.lock().expect("no panic").next() else {
                        return;
                    };
                    if let Err(failure) = run(&cases[n]) {
                        failed.lock().expect("no panic").push((n, failure));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().expect("no panic");
    failed.sort_by_key(|(n, _)| *n);
    failed.into_iter().map(|(_, failure)| failure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_or_a_line_selects_cases() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/attack");
        assert!(selected(folder, "").len() > 5);
        let one = selected(folder, "anywhere/recipe.rs:7");
        assert_eq!((one.len(), one[0].line), (1, Some(7)));
        for (line, left) in [(1, &[1][..]), (6, &[1]), (7, &[7]), (99, &[9]), (0, &[])] {
            let mut cases = vec![1, 7, 9];
            let file = CaseFile {
                path: PathBuf::new(),
                line: Some(line),
            };
            file.select(&mut cases, |n| *n);
            assert_eq!(cases, left, "{line}");
        }
    }

    #[test]
    fn failures_keep_the_order_of_cases() {
        let cases: Vec<usize> = (0..100).collect();
        let odd = failures(&cases, |n| if n % 2 == 0 { Ok(()) } else { Err(*n) });
        assert_eq!(odd, (0..100).filter(|n| n % 2 == 1).collect::<Vec<_>>());
    }
}
