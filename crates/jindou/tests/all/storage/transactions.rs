//! Transactions of several calls: compared with a set of quads, with calls that fail in between; atomic and durable;
//! and with other writers and readers at the same time.

use jindou::parse::Format;
use jindou::testing::{load_nquads, source};
use jindou::{
    Answer, Batch, CancelToken, Database, Error, MemoryBudget, OpenOptions, Progress, QueryOptions,
    UpdateOptions,
};
use jindou_testing::Rng;
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use std::collections::BTreeSet;
use std::time::Duration;

fn quad(n: usize) -> Quad {
    let iri = |s: String| NamedNode::new_unchecked(s);
    let graph = match n % 3 {
        0 => GraphName::DefaultGraph,
        g => iri(format!("http://e/g{g}")).into(),
    };
    let subject = iri(format!("http://e/s{}", n % 7));
    let predicate = iri(format!("http://e/p{}", n % 5));
    Quad::new(subject, predicate, Literal::from(n as i64), graph)
}

fn quads(db: &Database) -> BTreeSet<String> {
    let all = "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let options = QueryOptions::default().with_union_default(false);
    let answer = db.query_with(all, &options).unwrap();
    let text = |row: &Vec<Option<oxrdf::Term>>| {
        let cells = row.iter().flatten().map(ToString::to_string);
        cells.collect::<Vec<_>>().join(" ")
    };
    answer.solutions().iter().map(text).collect()
}

fn model(set: &BTreeSet<usize>) -> BTreeSet<String> {
    set.iter()
        .map(|&n| quad(n).to_string().trim_end_matches(" .").to_owned())
        .collect()
}

fn block(q: &Quad) -> String {
    let triple = format!("{} {} {}", q.subject, q.predicate, q.object);
    match &q.graph_name {
        GraphName::DefaultGraph => triple,
        g => format!("GRAPH {g} {{ {triple} }}"),
    }
}

/// Runs random transactions with all kinds of calls, some of which fail; some transactions are dropped. Returns the
/// numbers of the committed quads.
fn random(db: &Database, seed: u64, rounds: usize) -> BTreeSet<usize> {
    let mut rng = Rng::new(seed);
    let options = UpdateOptions::default();
    let mut committed = BTreeSet::new();
    for _ in 0..rounds {
        let mut set = committed.clone();
        let mut open = db.begin(&options).unwrap();
        let (mut added, mut removed) = (0, 0);
        for _ in 0..rng.below(6) {
            let (one, other) = (rng.below(60), rng.below(60));
            let before = set.clone();
            let report = match rng.below(5) {
                0 => {
                    set.extend([one, other]);
                    let text = format!(
                        "INSERT DATA {{ {} . {} }}",
                        block(&quad(one)),
                        block(&quad(other))
                    );
                    open.update(&text, &options)
                }
                1 => {
                    set.remove(&one);
                    open.update(
                        &format!("DELETE DATA {{ {} }}", block(&quad(one))),
                        &options,
                    )
                }
                2 => {
                    set.insert(one);
                    set.remove(&other);
                    let mut batch = Batch::new();
                    batch.insert(quad(one).as_ref());
                    batch.remove(quad(other).as_ref());
                    if one == other {
                        set.remove(&one);
                    }
                    open.apply(&batch, &options)
                }
                3 => {
                    set.insert(one);
                    let text = format!("{} .", quad(one));
                    let source = source(&text, Format::NQuads);
                    open.insert(&source, &options, &Progress::default())
                }
                _ => {
                    // A request whose second operation fails; its first one must have no effect.
                    let text = format!(
                        "INSERT DATA {{ {} }} ; LOAD <file:///nothing>",
                        block(&quad(one))
                    );
                    assert!(open.update(&text, &options).is_err());
                    continue;
                }
            }
            .unwrap();
            assert_eq!(
                report.added - report.removed.min(report.added),
                (set.len() as u64).saturating_sub(before.len() as u64)
            );
            added += report.added;
            removed += report.removed;
            assert_eq!(quads(&open.database().unwrap()), model(&set));
            assert_eq!(quads(db), model(&committed));
        }
        if rng.below(3) == 0 {
            drop(open);
        } else {
            let report = open.commit().unwrap();
            assert_eq!((report.added, report.removed), (added, removed));
            committed = set;
        }
        assert_eq!(quads(db), model(&committed));
    }
    committed
}

#[test]
fn calls_are_seen_by_the_next_and_by_others_at_the_end() {
    for seed in 0..20 {
        random(&Database::in_memory(), seed, 8);
    }
}

#[test]
fn a_store_has_all_of_it_or_nothing_when_it_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    load_nquads(&dir, "").unwrap();
    for seed in 0..4 {
        let db = Database::open(&dir).unwrap();
        db.update("CLEAR ALL", &UpdateOptions::default()).unwrap();
        let set = random(&db, 100 + seed, 6);
        // A transaction that is dropped, as when a process ends, leaves no trace.
        let mut open = db.begin(&UpdateOptions::default()).unwrap();
        open.update("CLEAR ALL", &UpdateOptions::default()).unwrap();
        drop(open);
        drop(db);
        assert_eq!(
            quads(&Database::open_with(&dir, &OpenOptions::default()).unwrap()),
            model(&set)
        );
    }
    let log = Database::check(&dir).unwrap();
    assert!(log.damages.is_empty(), "{:?}", log.damages);
}

#[test]
fn others_wait_and_are_not_lost() {
    let db = Database::in_memory();
    let options = UpdateOptions::default();
    let mut open = db.begin(&options).unwrap();
    open.update("INSERT DATA { <a:a> <a:a> 1 }", &options)
        .unwrap();
    let other = {
        let db = db.clone();
        std::thread::spawn(move || {
            db.update(
                "DELETE { ?s ?p ?o } INSERT { ?s ?p 2 } WHERE { ?s ?p ?o }",
                &UpdateOptions::default(),
            )
        })
    };
    // A waiting update ends at its time limit, or when it is cancelled.
    let limited = UpdateOptions::default().with_timeout(Duration::from_millis(30));
    assert!(matches!(
        db.update("CLEAR ALL", &limited),
        Err(Error::Timeout(_))
    ));
    assert!(matches!(db.begin(&limited), Err(Error::Timeout(_))));
    let cancel = CancelToken::new();
    cancel.cancel();
    let cancelled = UpdateOptions::default().with_cancel(cancel);
    assert!(matches!(db.begin(&cancelled), Err(Error::Cancelled)));
    assert!(matches!(
        open.update("CLEAR ALL", &cancelled),
        Err(Error::Cancelled)
    ));
    assert!(!other.is_finished());
    open.commit().unwrap();
    assert_eq!(other.join().unwrap().unwrap().added, 1);
    assert_eq!(
        db.query("ASK { <a:a> <a:a> 2 }").unwrap(),
        Answer::Boolean(true)
    );
}

#[test]
fn what_does_not_fit_leaves_the_calls_before() {
    let db = Database::in_memory();
    let budget = MemoryBudget::new(8 << 20);
    let options = UpdateOptions::default().with_memory(budget.clone());
    let mut open = db.begin(&options).unwrap();
    open.update("INSERT DATA { <a:a> <a:a> 1 }", &options)
        .unwrap();
    let numbers: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let numbers = numbers.join(" ");
    let many = format!(
        "INSERT {{ <a:a> ?x ?y }} WHERE {{ VALUES ?a {{ {numbers} }} VALUES ?y {{ {numbers} }} BIND(IRI(CONCAT('a:', STR(?a))) AS ?x) }}"
    );
    assert!(matches!(
        open.update(&many, &options),
        Err(Error::Limit(_) | Error::Busy(_))
    ));
    assert_eq!(open.commit().unwrap().added, 1);
    assert_eq!(db.quads(), 1);
    assert_eq!(budget.used(), 0);
}

#[test]
fn the_view_is_read_only_and_stays() {
    let db = Database::in_memory();
    let options = UpdateOptions::default();
    let mut open = db.begin(&options).unwrap();
    let before = open.database().unwrap();
    open.update("INSERT DATA { <a:a> <a:a> 1 }", &options)
        .unwrap();
    let after = open.database().unwrap();
    assert_eq!((before.quads(), after.quads(), db.quads()), (0, 1, 0));
    assert!(matches!(
        after.update("CLEAR ALL", &options),
        Err(Error::ReadOnly(_))
    ));
    drop(open);
    assert_eq!((after.quads(), db.quads()), (1, 0));
}
