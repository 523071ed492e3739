//! Data about persons who know each other, whose answers can be computed, and checks of stores whose files fail.

use jindou::{Database, Error, OpenOptions, QueryOptions, UpdateOptions, Verify};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of persons; all expected answers are computed from it.
const N: u64 = 6000;
/// Number of `:seen` edges, which are in named graphs.
const SEEN: u64 = N / 4;
pub const PREFIX: &str = "PREFIX : <http://e/> ";

fn age(i: u64) -> u64 {
    i * i % 97
}

/// The persons as TriG.
pub fn text() -> String {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0..N {
        let (next, third) = ((i + 1) % N, (i * 7 + 3) % N);
        let age = age(i);
        writeln!(
            text,
            ":v{i} a :Person ; :knows :v{next} , :v{third} ; :age {age} ; :name \"the name of number {i}\" ."
        )
        .unwrap();
        if i % 4 == 0 {
            writeln!(text, ":g{} {{ :v{i} :seen :v{third} . }}", i % 8).unwrap();
        }
    }
    text
}

/// Queries, and the only row of each answer.
pub fn questions() -> Vec<(String, String)> {
    // A person's two `:knows` edges lead to different persons: i + 1 = 7 i + 3 (mod 6000) has no solution, since 6 does not divide 2.
    let ages: u64 = (0..N).map(age).sum();
    let lengths: u64 = (0..N)
        .map(|i| "the name of number ".len() as u64 + i.to_string().len() as u64)
        .sum();
    let old = (0..N).filter(|i| age(*i) > 50).count();
    let ask = |pattern: &str, n: String| (format!("{PREFIX}SELECT {pattern}"), n);
    vec![
        ask(
            "(COUNT(*) AS ?n) { ?a :knows ?b . ?b :name ?c }",
            (2 * N).to_string(),
        ),
        ask("(SUM(?a) AS ?n) { ?s :age ?a }", ages.to_string()),
        ask(
            "(SUM(STRLEN(?a)) AS ?n) { ?s :name ?a }",
            lengths.to_string(),
        ),
        ask(
            "(COUNT(*) AS ?n) { GRAPH ?g { ?s :seen ?o } }",
            SEEN.to_string(),
        ),
        ask(
            "(COUNT(*) AS ?n) { ?s a :Person ; :age ?a FILTER(?a > 50) }",
            old.to_string(),
        ),
        ask("?n { :v4000 :name ?n }", "the name of number 4000".into()),
        ask(
            "(COUNT(?s) AS ?n) { ?s :name \"the name of number 17\" }",
            "1".into(),
        ),
    ]
}

/// The first cell of an answer of one row, as text.
pub fn ask(db: &Database, text: &str) -> Result<String, Error> {
    let options = QueryOptions::default()
        .with_threads(2)
        .with_timeout(Duration::from_secs(20));
    let answer = db.query_with(text, &options)?;
    let rows = answer.solutions();
    assert_eq!(rows.len(), 1, "{text}");
    Ok(match &rows[0][0] {
        Some(oxrdf::Term::Literal(l)) => l.value().to_owned(),
        other => format!("{other:?}"),
    })
}

/// Asserts that an error reports damage and names the file.
pub fn assert_named(e: &Error, file: &str) {
    let said = e.to_string();
    assert!(matches!(e, Error::Damaged { .. }), "{e:?}");
    assert!(
        said.contains(file) && (said.contains("has shrunk") || said.contains("could not be read")),
        "{said}"
    );
}

/// Runs all queries. Returns true if all are answered, and false if some are refused with an error that names the file.
/// Answers must be right, and once one query was refused, all later ones must be.
pub fn all_right(db: &Database, file: &str) -> bool {
    let mut refused = false;
    for (text, wanted) in questions() {
        match ask(db, &text) {
            Ok(got) => {
                assert_eq!(got, wanted, "{text} with {file} damaged");
                assert!(!refused, "{text} is answered after another was refused");
            }
            Err(e) => {
                assert_named(&e, file);
                refused = true;
            }
        }
    }
    !refused
}

pub fn open(dir: &Path) -> Database {
    let options = OpenOptions::default().with_verify(Verify::Off);
    Database::open_with(dir, &options).unwrap()
}

/// The files of a store that queries read through mappings, with their content.
pub fn mapped(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let kinds = [
        "strings",
        "dictionary",
        "segments-",
        "named-",
        "index",
        "classes",
    ];
    std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| {
            let name = p.file_name().unwrap().to_string_lossy().into_owned();
            kinds.iter().any(|k| name.contains(k))
        })
        .map(|p| (p.clone(), std::fs::read(p).unwrap()))
        .collect()
}

pub fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

pub fn insert(db: &Database, i: u32) -> Result<(), Error> {
    let text = format!("{PREFIX}INSERT DATA {{ :v{i} :met :v{} }}", i + 1);
    db.update(&text, &UpdateOptions::default()).map(|_| ())
}

pub fn met(db: &Database) -> u64 {
    let text = format!("{PREFIX}SELECT (COUNT(*) AS ?n) {{ ?a :met ?b }}");
    ask(db, &text).unwrap().parse().unwrap()
}

/// Asserts that the store is intact, gives right answers, and has this many `:met` edges.
pub fn assert_whole(dir: &Path, known: u64) {
    let report = Database::check(dir).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
    let db = open(dir);
    assert!(all_right(&db, "no file"));
    assert_eq!(met(&db), known);
    // No term was stored twice under different ids: each subject is found once by its text.
    let text = format!("{PREFIX}SELECT (COUNT(DISTINCT ?a) AS ?n) {{ ?a :met ?b ; :age ?x }}");
    assert_eq!(ask(&db, &text).unwrap(), known.to_string());
}
