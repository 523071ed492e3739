//! Tests that are text: each file of `tests/cases` holds data, queries and updates with what they must give. docs/testing.md has the
//! format. Every case runs over a loaded store, over a store in memory whose data was inserted, and over three shards.

mod check;
mod read;

use check::Database;
use read::Case;
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");

/// The files of a folder and of the folders in it, in order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let entries = std::fs::read_dir(folder).expect("the folder of the cases");
    for entry in entries {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|e| e == "test") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Runs every case, and fails with all that differ. `JINDOU_CASE` picks those with this in their file's path or in their name.
#[test]
fn cases_give_what_they_say() {
    let only = std::env::var("JINDOU_CASE").unwrap_or_default();
    let mut failures = Vec::new();
    let mut run = 0;
    for path in files(Path::new(FOLDER)) {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let file = path.strip_prefix(FOLDER).unwrap_or(&path).display();
        let cases = Case::all(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert!(!cases.is_empty(), "{file} has no case");
        for case in cases {
            if !format!("{file} {}", case.name).contains(&only) {
                continue;
            }
            run += 1;
            for database in Database::ALL {
                if let Err(difference) = check::run(&case, database) {
                    failures.push(format!(
                        "{file}:{}: {} ({database:?}): {difference}",
                        case.line, case.name
                    ));
                }
            }
        }
    }
    println!("{run} cases");
    assert!(run > 0, "no case has {only:?} in its name");
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
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
        "-- update\nINSERT DATA { <http://e/a> <http://e/p> 1 }\n-- error\nanything\n".to_owned(),
    ] {
        let text = format!("== a wrong expectation\n{data}{wrong}");
        let cases = Case::all(&text).expect("a case");
        for database in [Database::Loaded, Database::Inserted] {
            assert!(check::run(&cases[0], database).is_err(), "{text}");
        }
    }
    for broken in [
        "-- query\nASK {}\n",
        "== no expectation\n-- query\nASK {}\n",
        "== no such section\n-- qurey\nASK {}\n",
        "== no such format\n-- data n3\n",
        "== an expectation of nothing\n-- rows\n?x\n",
    ] {
        assert!(Case::all(broken).is_err(), "{broken}");
    }
}
