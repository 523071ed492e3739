//! Stores whose mapped files are cut while they are open: answers are right or an error that names the file, the process
//! lives, nothing wrong is written, and all is there once the file is as it was.

#[path = "common/stores.rs"]
mod stores;

use jindou::{
    Database, Error, MergeOptions, OpenOptions, Progress, QueryOptions, ReclusterOptions,
    UpdateOptions, Value, Verify,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions as FileOptions;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Persons of the data; every number below follows from it.
const N: u64 = 6000;
/// Of them in a named graph.
const SEEN: u64 = N / 4;
const PREFIX: &str = "PREFIX : <http://e/> ";

fn age(i: u64) -> u64 {
    i * i % 97
}

/// The persons as TriG.
fn text() -> String {
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
fn questions() -> Vec<(String, String)> {
    // Nobody knows one person twice: i + 1 = 7 i + 3 (mod 6000) has no solution, since 6 does not divide 2.
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

/// The row of an answer.
fn ask(db: &Database, text: &str) -> Result<String, Error> {
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

/// The error must name the file.
fn assert_named(e: &Error, file: &str) {
    let said = e.to_string();
    assert!(matches!(e, Error::Store(_)), "{e:?}");
    assert!(
        said.contains(file) && (said.contains("has shrunk") || said.contains("could not be read")),
        "{said}"
    );
}

/// All answers are right, or none is once one says that the file is cut. True if they are.
fn all_right(db: &Database, file: &str) -> bool {
    let mut refused = false;
    for (text, wanted) in questions() {
        match ask(db, &text) {
            Ok(got) => {
                assert_eq!(got, wanted, "{text} with {file} cut");
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

fn open(dir: &Path) -> Database {
    let options = OpenOptions::default().with_verify(Verify::Off);
    Database::open_with(dir, &options).unwrap()
}

fn cut(path: &Path, len: u64) {
    let file = FileOptions::new().write(true).open(path).unwrap();
    file.set_len(len).unwrap();
}

/// The files of a store that queries read mapped.
fn mapped(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
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

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn insert(db: &Database, i: u32) -> Result<(), Error> {
    let text = format!("{PREFIX}INSERT DATA {{ :v{i} :met :v{} }}", i + 1);
    db.update(&text, &UpdateOptions::default()).map(|_| ())
}

fn met(db: &Database) -> u64 {
    let text = format!("{PREFIX}SELECT (COUNT(*) AS ?n) {{ ?a :met ?b }}");
    ask(db, &text).unwrap().parse().unwrap()
}

/// Everything is as it must be, with so many `:met`.
fn assert_whole(dir: &Path, known: u64) {
    let report = Database::check(dir).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
    let db = open(dir);
    assert!(all_right(&db, "no file"));
    assert_eq!(met(&db), known);
    // No term twice: each of them is found by its text and met once.
    let text = format!("{PREFIX}SELECT (COUNT(DISTINCT ?a) AS ?n) {{ ?a :met ?b ; :age ?x }}");
    assert_eq!(ask(&db, &text).unwrap(), known.to_string());
}

#[test]
fn a_file_that_is_cut_gives_its_name_or_the_right_answer() {
    let store = stores::of_trig(&text());
    drop(store.db);
    let dir = &store.dir;
    let db = open(dir);
    insert(&db, 1).unwrap();
    db.merge(&MergeOptions::default(), &Progress::default())
        .unwrap();
    insert(&db, 2).unwrap();
    drop(db);
    assert_whole(dir, 2);
    let mut refusals = 0;
    for (path, good) in mapped(dir) {
        let (file, len) = (name(&path), good.len() as u64);
        for to in [0, len / 2 + 3, len.saturating_sub(4097), len - 1] {
            for warm in [false, true] {
                let db = open(dir);
                let prepared = db
                    .prepare(
                        &format!("{PREFIX}SELECT ?n {{ ?p :name ?n }}"),
                        &["p"],
                        &QueryOptions::default(),
                    )
                    .unwrap();
                if warm {
                    assert!(all_right(&db, "no file"));
                }
                cut(&path, to);
                let right = all_right(&db, &file);
                assert!(!right || to > 0, "{file} without a byte");
                let mut session = prepared.session();
                let person = [Value::Iri("http://e/v77")];
                let named = session.query(&person, &QueryOptions::default());
                if right {
                    // Zeros in place of zeros.
                    assert_eq!(named.unwrap().solutions().len(), 1);
                } else {
                    refusals += 1;
                    assert_named(&named.unwrap_err(), &file);
                    assert_named(&insert(&db, 3).unwrap_err(), &file);
                    let merged = db.merge(&MergeOptions::default(), &Progress::default());
                    assert_named(&merged.unwrap_err(), &file);
                    let anew = db.recluster(&ReclusterOptions::default(), &Progress::default());
                    assert_named(&anew.unwrap_err(), &file);
                }
                // It stays so until the store is opened again.
                std::fs::write(&path, &good).unwrap();
                assert_eq!(all_right(&db, &file), right);
                drop((session, prepared));
                drop(db);
            }
        }
        assert_whole(dir, 2);
    }
    assert!(refusals > 50, "{refusals}");
}

#[test]
fn a_file_that_is_cut_during_queries() {
    let store = stores::of_trig(&text());
    drop(store.db);
    let dir = &store.dir;
    insert(&open(dir), 1).unwrap();
    for (path, good) in mapped(dir) {
        let file = name(&path);
        for round in 0..4 {
            let db = open(dir);
            let begun = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for _ in 0..4 {
                            begun.fetch_add(1, Ordering::Relaxed);
                            if !all_right(&db, &file) {
                                break;
                            }
                        }
                    });
                }
                while begun.load(Ordering::Relaxed) < 2 {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_micros(1500 * round));
                cut(&path, good.len() as u64 * round / 5);
            });
            assert!(!all_right(&db, &file), "{file}");
            drop(db);
            std::fs::write(&path, &good).unwrap();
        }
    }
    assert_whole(dir, 1);
}

#[test]
fn what_is_acknowledged_while_a_file_is_cut_is_all_there_is() {
    let store = stores::of_trig(&text());
    drop(store.db);
    let dir = &store.dir;
    let mut next = 1;
    for (path, good) in mapped(dir) {
        let file = name(&path);
        let db = open(dir);
        let stop = AtomicBool::new(false);
        let written = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut i = next;
                while !stop.load(Ordering::Relaxed) || i < next + 3 {
                    match insert(&db, i) {
                        Ok(()) => i += 1,
                        Err(e) => {
                            assert_named(&e, &file);
                            break;
                        }
                    }
                }
                i
            });
            std::thread::sleep(Duration::from_millis(20));
            cut(&path, good.len() as u64 / 3);
            std::thread::sleep(Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        assert_named(&insert(&db, written).unwrap_err(), &file);
        drop(db);
        std::fs::write(&path, &good).unwrap();
        next = written;
        assert_whole(dir, u64::from(next - 1));
    }
}

#[test]
fn a_merge_writes_nothing_that_was_read_from_a_cut_file() {
    let store = stores::of_trig(&text());
    drop(store.db);
    let dir = &store.dir;
    let mut known = 0;
    let (mut merged, mut refused) = (0, 0);
    for round in 0..24 {
        let db = open(dir);
        known += 1;
        insert(&db, known).unwrap();
        // So that there is much to read.
        let more = format!("{PREFIX}INSERT DATA {{ :w{round} :knows :w{round} ; :name 'x' }}");
        db.update(&more, &UpdateOptions::default()).unwrap();
        let less = format!("{PREFIX}DELETE DATA {{ :w{round} :knows :w{round} ; :name 'x' }}");
        db.update(&less, &UpdateOptions::default()).unwrap();
        let files: Vec<_> = mapped(dir).into_iter().collect();
        let (path, good) = &files[round % files.len()];
        let result = std::thread::scope(|scope| {
            let merge = scope.spawn(|| db.merge(&MergeOptions::default(), &Progress::default()));
            if round % 6 == 5 {
                while !merge.is_finished() {
                    std::thread::yield_now();
                }
            } else {
                std::thread::sleep(Duration::from_micros(400 * (round * round) as u64));
            }
            // A merge that is over has removed what it replaced.
            if path.exists() {
                cut(path, good.len() as u64 / 4);
            }
            merge.join().unwrap()
        });
        match result {
            Ok(_) => merged += 1,
            Err(e) => {
                assert_named(&e, &name(path));
                refused += 1;
            }
        }
        drop(db);
        if path.exists() {
            std::fs::write(path, good).unwrap();
        }
        assert_whole(dir, u64::from(known));
    }
    println!("{merged} merges were over before, {refused} were refused");
    assert!(merged >= 4 && refused > 0);
}
