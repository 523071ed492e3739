//! Memory of searches, labels and completions over texts that are much longer than what a list shows.
//!
//! This test is a program of its own, since its global allocator counts all memory.

use jindou::complete::{Completer, Request};
use jindou::parse::{Format, Sources};
use jindou::search::{LONGEST_LABEL, LabelOptions, Search, Text};
use jindou::{
    Access, Database, Indexes, LoadOptions, MemoryBudget, OpenOptions, Progress, QueryOptions,
};
use jindou_testing::{Counting, counted};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of a label, and number of labels.
const LONG: usize = 768 << 10;
const LABELS: usize = 60;
/// Memory that each request may take: a few copies of one label, and other needs.
const ALLOWED: usize = 12 << 20;

fn most<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let (out, taken) = counted(run);
    (out, taken.most_copied)
}

fn check(db: &Database, what: &str) {
    let budget = MemoryBudget::new(4 << 20);
    let query = QueryOptions::default().with_memory(budget.clone());
    let options = LabelOptions::default().with_query(query.clone());
    let asked = Search::new("resource")
        .with_limit(200)
        .with_patience(Duration::from_secs(60))
        .with_labels(options.clone());
    let (found, taken) = most(|| db.search(&asked).unwrap());
    assert_eq!(found.found.len(), LABELS, "{what}");
    assert!(taken < ALLOWED, "{what}: a search took {taken} bytes");
    for f in &found.found {
        let label = &f.label.as_ref().unwrap().text;
        assert!(label.starts_with("ü") && label.ends_with('…') && label.len() <= LONGEST_LABEL + 3);
    }
    let iris: Vec<String> = (0..LABELS)
        .map(|n| format!("http://e/resource{n}"))
        .collect();
    let (labels, taken) = most(|| db.labels(&iris, &options).unwrap());
    assert!(labels.iter().all(|l| {
        l.as_ref()
            .is_some_and(|l| l.text.len() <= LONGEST_LABEL + 3)
    }));
    assert!(taken < ALLOWED, "{what}: labels took {taken} bytes");
    let completer = Completer::new(db.clone());
    for before in [
        "SELECT * { ?s <http://www.w3.org/2000/01/rdf-schema#label> ",
        "SELECT * { ?s <http://www.w3.org/2000/01/rdf-schema#label> \"a",
        "SELECT * { <http://e/resource1> <http://www.w3.org/2000/01/rdf-schema#label> ",
        "SELECT * { ?s <http://e/to> reso",
        "SELECT * { reso",
    ] {
        let request = Request {
            patience: Duration::from_secs(5),
            options: query.clone(),
            ..Request::new(before, " }")
        };
        // The first request collects the snapshot's names, which later requests reuse.
        completer.complete(&request).unwrap();
        let (made, taken) = most(|| completer.complete(&request).unwrap());
        assert!(taken < ALLOWED, "{what}: {before} took {taken} bytes");
        assert!(made.items.iter().all(|i| i.text.len() < 4096));
    }
    assert_eq!(budget.used(), 0);
}

/// Once, twelve clients that requested labels of 768 KB took 858 MiB of a server with 512 MiB.
#[test]
fn long_labels_are_not_copied() {
    let mut text = String::from("@prefix : <http://e/> .\n");
    for n in 0..LABELS {
        let label = format!("ü{n} {}", "long ".repeat(LONG / 5));
        text += &format!(
            ":resource{n} <http://www.w3.org/2000/01/rdf-schema#label> \"{label}\" ; :to :resource{} .\n",
            (n + 1) % LABELS
        );
    }
    for indexed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store");
        let texts = || Indexes::new().with(Text).unwrap();
        let indexes = if indexed { texts() } else { Indexes::new() };
        let load = LoadOptions::default()
            .with_memory(256 << 20)
            .with_indexes(indexes);
        let sources = Sources::builder()
            .text("test.ttl", text.as_bytes().to_vec(), Format::Turtle)
            .build()
            .unwrap();
        Database::load(&store, &sources, &load, &Progress::default()).unwrap();
        drop(sources);
        let open = OpenOptions::default()
            .with_access(Access::Read)
            .with_indexes(texts());
        let db = Database::open_with(&store, &open).unwrap();
        let what = if indexed { "indexed" } else { "not indexed" };
        check(&db, what);
    }
}
