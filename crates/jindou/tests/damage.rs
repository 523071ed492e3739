//! Damaged stores through the front door: queries end with an answer or an error, never with a panic, an abort or
//! a hang; `check` names the damage.

#[path = "common/stores.rs"]
mod stores;

use jindou::{Database, Error, QueryOptions};
use std::path::Path;
use std::time::{Duration, Instant};
use stores::Store;

const LIMIT: Duration = Duration::from_secs(2);

const QUERIES: [&str; 7] = [
    "SELECT * { ?s ?p ?o }",
    "SELECT * { GRAPH ?g { ?s ?p ?o } } ORDER BY ?o",
    "PREFIX : <http://e/> SELECT DISTINCT ?o (COUNT(*) AS ?n) { ?s a :C1 ; :age ?o FILTER(?o > 3) } GROUP BY ?o",
    "PREFIX : <http://e/> SELECT * { ?a :knows ?b . ?b :knows ?c . ?c :knows ?a }",
    "PREFIX : <http://e/> SELECT * { ?a :knows+ ?b OPTIONAL { ?b :name ?n } } LIMIT 500",
    "PREFIX : <http://e/> ASK { :v3 ?p ?o FILTER(REGEX(STR(?o), \"7\")) }",
    "PREFIX : <http://e/> CONSTRUCT { ?b :known ?a } WHERE { ?a :knows ?b MINUS { ?b :age 3 } }",
];

fn store() -> Store {
    use std::fmt::Write as _;
    let mut text = String::from("@prefix : <http://e/> .\n");
    for i in 0u32..90 {
        let (next, third) = ((i + 1) % 30, (i * 7 + 3) % 30);
        writeln!(
            text,
            ":v{i} a :C{} ; :knows :v{next} , :v{third} ; :age {} ; :name \"n{i}\"@en , \"m{i}\" .",
            i % 3,
            i % 11
        )
        .unwrap();
        if i % 4 == 0 {
            writeln!(text, ":g{} {{ :v{i} :knows :v{third} ; :seen \"2020-01-{:02}T00:00:00Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime> . }}", i % 5, 1 + i % 28).unwrap();
        }
    }
    stores::of_trig(&text)
}

/// Returns how many queries reached the time limit.
fn ask_all(dir: &Path) -> usize {
    // A store that does not open is fine: its error is the answer.
    let Ok(db) = Database::open(dir) else {
        return 0;
    };
    let mut late = 0;
    for text in QUERIES {
        let options = QueryOptions {
            threads: 1,
            timeout: Some(LIMIT),
            ..QueryOptions::default()
        };
        // A length or an interval that became huge makes much work, so the limit may be reached; then it must hold.
        let start = Instant::now();
        let outcome = db.query_with(text, &options);
        let took = start.elapsed();
        assert!(took < 10 * LIMIT, "{text} took {took:?}");
        if let Err(Error::Timeout(_)) = outcome {
            late += 1;
        }
    }
    late
}

/// Flips one bit of every `stride`-th byte from `offset` on, over all files in turn.
fn flip(stride: usize, offset: usize) -> usize {
    let store = store();
    let Store { folder, dir, db } = store;
    drop(db);
    ask_all(&dir);
    let mut files: Vec<_> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        // What updates brought is beside: a lock without content, and the log, whose own tests damage it.
        .filter(|p| p.is_file() && !p.ends_with("lock"))
        .collect();
    files.sort();
    let (mut at_all, mut flips) = (0, 0);
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let good = std::fs::read(path).unwrap();
        let mut bad = good.clone();
        for at in 0..good.len() {
            at_all += 1;
            // Headers decide most, so they get sixteen times their share.
            let stride = if at < 64 { stride.div_ceil(16) } else { stride };
            if at_all % stride != offset % stride {
                continue;
            }
            bad[at] ^= 1 << (at % 8);
            std::fs::write(path, &bad).unwrap();
            let named = match Database::check(&dir) {
                Err(e) => e.to_string(),
                Ok(report) => report
                    .damages
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("\n"),
            };
            assert!(
                !named.is_empty(),
                "byte {at} of {name} changed and check finds nothing"
            );
            let late = ask_all(&dir);
            if late > 0 {
                println!("byte {at} of {name}: {late} queries reached the limit; {named}");
            }
            bad[at] = good[at];
            flips += 1;
        }
        std::fs::write(path, &good).unwrap();
    }
    assert!(Database::check(&dir).unwrap().is_sound());
    drop(folder);
    flips
}

#[test]
fn a_sample_of_flipped_bits_is_named_and_never_crashes_a_query() {
    let size: usize = {
        let s = store();
        std::fs::read_dir(&s.dir)
            .unwrap()
            .map(|e| e.unwrap().metadata().unwrap().len() as usize)
            .sum()
    };
    let flips = flip(size / 220, 17);
    assert!(flips > 200, "{flips} flips");
}

#[test]
#[ignore = "long: every byte of the store"]
fn every_flipped_bit_is_named_and_never_crashes_a_query() {
    flip(1, 0);
}
