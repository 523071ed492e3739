//! Tests that are text: each file of `crates/jindou/tests/cases` holds data, queries and updates with what they must give.
//! docs/testing.md has the format. Every case runs over the kinds of store in `check::Database`.
//!
//! `cargo cases` runs them all, `cargo cases FILE`, `cargo cases FOLDER` or `cargo cases FILE:LINE` (the case at that line) some
//! of them. The program has no dependencies but the library's own, so that it is built in a fraction of the time of its tests.

mod check;
mod read;

use check::Database;
use read::Case;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/jindou/tests/cases"
);

/// A file or folder to run; of a file perhaps only the case that has a line.
struct Selection {
    path: PathBuf,
    line: Option<usize>,
}

impl Selection {
    /// `PATH` or `PATH:LINE`.
    fn parse(text: &str) -> Self {
        let numbered = text
            .rsplit_once(':')
            .and_then(|(path, line)| Some((path, line.parse().ok()?)));
        match numbered {
            Some((path, line)) if !Path::new(text).exists() => Self {
                path: path.into(),
                line: Some(line),
            },
            _ => Self {
                path: text.into(),
                line: None,
            },
        }
    }
}

/// The case that an editor's cursor at a line is in: the last one that begins there or above.
fn at_line(mut cases: Vec<Case>, line: usize) -> Option<Case> {
    let after = cases.partition_point(|c| c.line <= line);
    let index = after.checked_sub(1)?;
    Some(cases.swap_remove(index))
}

/// The `.test` files of a folder and of the folders in it, in order of their names; a file is itself.
fn files(path: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        entries.push(entry.map_err(failed)?.path());
    }
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        if entry.is_dir() || entry.extension().is_some_and(|e| e == "test") {
            found.extend(files(&entry)?);
        }
    }
    Ok(found)
}

/// Cases that were run, and a text for each that differs.
#[derive(Default)]
struct Outcome {
    run: usize,
    failures: Vec<String>,
}

/// Runs the selected cases over every kind of database. The error says which file cannot be read, or why it is not a test.
fn run(selection: &Selection) -> Result<Outcome, String> {
    let mut outcome = Outcome::default();
    for path in files(&selection.path)? {
        let file = path.display();
        let text = fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
        let mut cases = Case::all(&text).map_err(|e| format!("{file}: {e}"))?;
        if let Some(line) = selection.line {
            cases = at_line(cases, line).into_iter().collect();
        }
        if cases.is_empty() {
            return Err(format!("{file}: no case (a case begins with `== NAME`)"));
        }
        for case in cases {
            outcome.run += 1;
            for database in Database::ALL {
                if let Err(difference) = check::run(&case, database) {
                    outcome.failures.push(format!(
                        "{file}:{}: {} ({database:?}): {difference}",
                        case.line, case.name
                    ));
                }
            }
        }
    }
    if outcome.run == 0 {
        return Err(format!("{}: no .test files", selection.path.display()));
    }
    Ok(outcome)
}

fn main() -> ExitCode {
    let mut selections: Vec<Selection> = Vec::new();
    for argument in std::env::args().skip(1) {
        if argument.starts_with('-') {
            eprintln!(
                "usage: cargo cases [FILE | FILE:LINE | FOLDER]…\nRuns tests that are text (docs/testing.md); by default all of them."
            );
            return ExitCode::from(if matches!(&*argument, "-h" | "--help") {
                0
            } else {
                2
            });
        }
        selections.push(Selection::parse(&argument));
    }
    if selections.is_empty() {
        selections.push(Selection::parse(FOLDER));
    }
    let mut total = Outcome::default();
    for selection in &selections {
        match run(selection) {
            Ok(outcome) => {
                total.run += outcome.run;
                total.failures.extend(outcome.failures);
            }
            Err(e) => {
                eprintln!("error: {e}");
                return ExitCode::from(2);
            }
        }
    }
    for failure in &total.failures {
        println!("{failure}\n");
    }
    println!("{} cases, {} failures", total.run, total.failures.len());
    ExitCode::from(u8::from(!total.failures.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_give_what_they_say() {
        let outcome = run(&Selection::parse(FOLDER)).expect("files of cases");
        println!("{} cases", outcome.run);
        assert!(
            outcome.failures.is_empty(),
            "{} failures:\n{}",
            outcome.failures.len(),
            outcome.failures.join("\n")
        );
    }

    #[test]
    fn a_line_selects_the_case_around_it() {
        let text =
            "# A comment.\n== one\n-- query\nASK {}\n-- true\n== two\n-- query\nASK {}\n-- true\n";
        let name = |line| at_line(Case::all(text).expect("two cases"), line).map(|c| c.name);
        assert_eq!(name(1), None);
        assert_eq!(name(2).as_deref(), Some("one"));
        assert_eq!(name(5).as_deref(), Some("one"));
        assert_eq!(name(6).as_deref(), Some("two"));
        assert_eq!(name(99).as_deref(), Some("two"));
        let selection = Selection::parse("cases/one.test:5");
        assert_eq!(
            (selection.path.to_str(), selection.line),
            (Some("cases/one.test"), Some(5))
        );
    }

    /// The runner itself must notice each kind of difference, or a case would pass whatever the answer is.
    #[test]
    fn differences_are_noticed() {
        let data = "-- data turtle\n<http://e/a> <http://e/p> 1, 2 .\n";
        let select = "-- query\nSELECT ?o { ?s ?p ?o } ORDER BY ?o\n";
        for wrong in [
            format!("{select}-- rows\n?o\n1\n"),
            format!("{select}-- rows\n?o\n1\n1\n2\n"),
            format!("{select}-- rows\n?x\n1\n2\n"),
            format!("{select}-- rows\n?o\n1\n02\n"),
            format!("{select}-- rows in order\n?o\n2\n1\n"),
            format!("{select}-- error\nline\n"),
            "-- query\nASK {}\n-- false\n".to_owned(),
            "-- query\nASK {\n-- true\n".to_owned(),
            "-- query\nASK {\n-- error\nno such words\n".to_owned(),
            "-- query\nCONSTRUCT WHERE { ?s ?p 1 }\n-- graph\n<http://e/a> <http://e/p> _:o .\n"
                .to_owned(),
            "-- quads\n<http://e/a> <http://e/p> 1 .\n".to_owned(),
            "-- values\n1 + 1 => 3\n".to_owned(),
            "-- values\n1 + 1 => error\n".to_owned(),
            "-- values\n1 / 0 => 0\n".to_owned(),
            "-- update\nINSERT DATA { <http://e/a> <http://e/p> 1 }\n-- error\nanything\n"
                .to_owned(),
        ] {
            let text = format!("== a wrong expectation\n{data}{wrong}");
            let cases = Case::all(&text).expect("a case");
            for database in [Database::Loaded, Database::Inserted, Database::Merged] {
                assert!(check::run(&cases[0], database).is_err(), "{text}");
            }
        }
        for broken in [
            "-- query\nASK {}\n",
            "== no expectation\n-- query\nASK {}\n",
            "== no such section\n-- qurey\nASK {}\n",
            "== no such format\n-- data n3\n",
            "== an expectation of nothing\n-- rows\n?x\n",
            "== no value\n-- values\n1 + 1\n",
        ] {
            assert!(Case::all(broken).is_err(), "{broken}");
        }
    }
}
