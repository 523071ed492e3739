//! Stores whose mapped files are truncated while they are open: answers are right, or an error that names the file; the
//! process does not end; nothing wrong is written; and no data is lost once the file is restored.

use crate::persons::{
    PREFIX, all_right, assert_named, assert_whole, insert, mapped, name, open, text,
};
use jindou::testing::Store;
use jindou::{MergeOptions, Progress, QueryOptions, ReclusterOptions, UpdateOptions, Value};
use std::fs::OpenOptions as FileOptions;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

fn cut(path: &Path, len: u64) {
    let file = FileOptions::new().write(true).open(path).unwrap();
    file.set_len(len).unwrap();
}

#[test]
fn a_file_that_is_cut_gives_its_name_or_the_right_answer() {
    let store = Store::of_trig(&text());
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
                    // Right answers are possible if the lost bytes were zeros, as which they are read.
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
                // After the file is restored, the open store still refuses; once it is opened again, it does not.
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
fn a_batch_gives_right_terms_or_the_name_of_the_file_that_was_cut() {
    let store = Store::of_trig(&text());
    drop(store.db);
    let dir = &store.dir;
    let query = format!("{PREFIX}SELECT ?p ?n {{ ?p :name ?n }}");
    let (mut given, mut refused) = (0, 0);
    for (path, good) in mapped(dir) {
        let (file, len) = (name(&path), good.len() as u64);
        for to in [0, len / 2 + 3, len - 1] {
            let db = open(dir);
            let mut cursor = db.cursor(&query, &QueryOptions::default()).unwrap();
            let batch = cursor.next_batch().unwrap().unwrap();
            drop(cursor);
            let mut columns = [batch.column(0), batch.column(1)];
            let mut fault = None;
            for row in 0..batch.rows() {
                if row == 100 {
                    cut(&path, to);
                }
                // Some rows are read out of order.
                let row = if row % 7 == 3 { row / 2 } else { row };
                match (columns[0].term(row), columns[1].canonical(row)) {
                    (Ok(Some(person)), Ok(Some(name))) => {
                        let number = person
                            .to_string()
                            .replace(|c: char| !c.is_ascii_digit(), "");
                        let name = String::from_utf8_lossy(name);
                        let right = format!("the name of number {number}");
                        assert!(name.ends_with(&right), "{person}: {name} with {file} cut");
                        given += 1;
                    }
                    (Err(e), _) | (_, Err(e)) => {
                        assert!(row >= 50, "{e}");
                        fault.get_or_insert(e);
                    }
                    (a, b) => panic!("{a:?}, {b:?} with {file} cut"),
                }
            }
            if let Some(e) = fault {
                assert_named(&e, &file);
                refused += 1;
                // Reading a single row fails as well.
                assert_named(&batch.row(3).unwrap_err(), &file);
            }
            drop(db);
            std::fs::write(&path, &good).unwrap();
        }
    }
    println!("{given} rows, {refused} batches were refused");
    assert!(refused > 10 && given > 1000);
}

#[test]
fn a_file_that_is_cut_during_queries() {
    let store = Store::of_trig(&text());
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
    let store = Store::of_trig(&text());
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
    let store = Store::of_trig(&text());
    drop(store.db);
    let dir = &store.dir;
    let mut known = 0;
    let (mut merged, mut refused) = (0, 0);
    for round in 0..24 {
        let db = open(dir);
        known += 1;
        insert(&db, known).unwrap();
        // Edges of predicates that are large, so that the merge must read much.
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
            // A merge that has ended has removed the files that it replaced.
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
