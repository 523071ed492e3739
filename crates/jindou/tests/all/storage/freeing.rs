//! Merges free the terms that no quad uses, whatever still reads an older state: cursors, prepared queries, other
//! processes, backups.

use super::sound;
use jindou::testing::load_nquads_cut;
use jindou::{
    Access, BackupTarget, CancelToken, Database, Durability, MergeOptions, OpenOptions, Progress,
    QueryOptions, RestoreTo, Sharding, UpdateOptions, Value,
};
use oxrdf::{Literal, Term};
use std::collections::BTreeSet;
use std::path::Path;

/// Subjects, each of which has one value.
const SUBJECTS: usize = 40_000;
/// New values in each round.
const CHANGED: usize = 300;

fn opened(dir: &Path, access: Access) -> Database {
    let options = OpenOptions::default()
        .with_access(access)
        .with_durability(Durability::None);
    Database::open_with(dir, &options).expect("the store")
}

fn loaded(dir: &Path, shards: u32) {
    let quads: String = (0..SUBJECTS)
        .map(|n| format!("<http://e/s{n}> <http://e/p> \"0 {n}\" .\n"))
        .collect();
    let sharding = (shards > 1).then(|| Sharding::new(shards));
    load_nquads_cut(dir, &quads, sharding).expect("a store");
}

fn value(round: usize, n: usize) -> String {
    match n < CHANGED {
        true => format!("{round} {n}"),
        false => format!("0 {n}"),
    }
}

/// Replaces the values of some subjects by new ones.
fn replace(db: &Database, round: usize) {
    let quads = |round| -> String {
        (0..CHANGED)
            .map(|n| format!("<http://e/s{n}> <http://e/p> \"{}\" . ", value(round, n)))
            .collect()
    };
    let text = format!(
        "DELETE DATA {{ {} }} ; INSERT DATA {{ {} }}",
        quads(round - 1),
        quads(round)
    );
    db.update(&text, &UpdateOptions::default().with_threads(1))
        .unwrap();
}

fn merge(db: &Database, keeps_terms: bool) -> u64 {
    let options = MergeOptions::default().with_keeps_terms(keeps_terms);
    db.merge(&options, &Progress::default()).unwrap().freed
}

fn values_of(rows: Vec<Option<Term>>) -> (String, String) {
    let text = |term: &Option<Term>| match term {
        Some(Term::NamedNode(n)) => n.as_str().to_owned(),
        Some(Term::Literal(l)) => l.value().to_owned(),
        other => panic!("{other:?}"),
    };
    (text(&rows[0]), text(&rows[1]))
}

fn all(db: &Database) -> BTreeSet<(String, String)> {
    let answer = db.query("SELECT ?s ?v { ?s <http://e/p> ?v }").unwrap();
    answer
        .solutions()
        .iter()
        .map(|row| values_of(row.to_vec()))
        .collect()
}

fn wanted(round: usize) -> BTreeSet<(String, String)> {
    (0..SUBJECTS)
        .map(|n| (format!("http://e/s{n}"), value(round, n)))
        .collect()
}

#[test]
fn older_states_are_read_while_ids_are_freed_and_reused() {
    older_states(1);
}

#[test]
fn older_states_of_shards_are_read_while_ids_are_freed_and_reused() {
    older_states(3);
}

fn older_states(shards: u32) {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    loaded(&store, shards);
    let db = opened(&store, Access::Write);
    // Another process that reads a store in shards opens it again.
    let reader = (shards == 1).then(|| opened(&store, Access::Read));
    let kept = {
        let path = dir.path().join("kept");
        loaded(&path, shards);
        opened(&path, Access::Write)
    };
    let options = QueryOptions::default();
    let prepared = db
        .prepare("SELECT ?s { ?s <http://e/p> $v }", &["v"], &options)
        .unwrap();
    let mut session = prepared.session();
    let mut subject_of = |round: usize, n: usize| {
        let value: Term = Literal::from(value(round, n)).into();
        session
            .query(&[Value::Term(&value)], &options)
            .unwrap()
            .solutions()
            .len()
    };
    let (mut cursors, mut freed) = (Vec::new(), 0);
    for round in 1..10 {
        replace(&db, round);
        replace(&kept, round);
        // A cursor that has read its first rows, and is read on after two more merges.
        let mut cursor = db
            .cursor("SELECT ?s ?v { ?s <http://e/p> ?v }", &options)
            .unwrap();
        let first = cursor.next_batch().unwrap().unwrap();
        cursors.push((round, cursor, first));
        assert_eq!((subject_of(round, 7), subject_of(round - 1, 7)), (1, 0));
        freed += merge(&db, false);
        assert_eq!(merge(&kept, true), 0);
        assert_eq!((subject_of(round, 7), subject_of(round - 1, 7)), (1, 0));
        assert_eq!(all(&db), wanted(round));
        if let Some(reader) = &reader {
            reader.refresh().unwrap();
            assert_eq!(all(reader), wanted(round));
        }
        if cursors.len() > 2 {
            let (then, mut cursor, first) = cursors.remove(0);
            let mut rows = BTreeSet::new();
            let mut batch = Some(first);
            while let Some(now) = batch {
                rows.extend((0..now.rows()).map(|n| values_of(now.row(n).unwrap())));
                batch = cursor.next_batch().unwrap();
            }
            assert_eq!(
                rows,
                wanted(then),
                "a cursor of round {then} in round {round}"
            );
        }
    }
    // Two rounds of values, and the next one.
    let tail = |db: &Database| db.snapshot().tail().len() as usize;
    assert!(freed as usize >= 6 * CHANGED, "{freed}");
    assert!(tail(&db) <= 4 * CHANGED, "{}", tail(&db));
    assert_eq!(tail(&kept), 9 * CHANGED);
    assert_eq!(all(&kept), all(&db));
    drop(cursors);
    drop((db, reader));
    sound(&store);
    let info = Database::info(&store).unwrap();
    assert!(
        info.free_ids > 0 && info.free_ids <= 4 * CHANGED as u64,
        "{}",
        info.free_ids
    );
    assert!(info.terms <= (SUBJECTS * 2 + 1 + 4 * CHANGED) as u64);
    assert_eq!(all(&opened(&store, Access::Any)), wanted(9));
}

#[test]
fn backups_have_what_was_freed_and_reused() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    loaded(&store, 1);
    let db = opened(&store, Access::Write);
    let (cancel, progress) = (CancelToken::new(), Progress::default());
    let target = BackupTarget::folder(dir.path().join("backups").to_str().unwrap()).unwrap();
    let mut numbers = Vec::new();
    for round in 1..6 {
        replace(&db, round);
        numbers.push((round, db.snapshot_number()));
        if round % 2 == 0 {
            merge(&db, false);
            db.backup(&target, &cancel, &progress).unwrap();
        }
    }
    replace(&db, 6);
    numbers.push((6, db.snapshot_number()));
    db.backup(&target, &cancel, &progress).unwrap();
    // From the last merge on, each state comes back; records that reuse ids are replayed.
    for (round, number) in numbers.into_iter().filter(|(round, _)| *round > 4) {
        let made = dir.path().join(format!("made-{round}"));
        let to = RestoreTo::Snapshot(number);
        Database::restore(&target, &made, to, &cancel, &progress).unwrap();
        let made = opened(&made, Access::Write);
        assert_eq!(all(&made), wanted(round));
        replace(&made, round + 1);
        merge(&made, false);
        assert_eq!(all(&made), wanted(round + 1));
    }
}
