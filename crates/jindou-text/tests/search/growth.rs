//! Many terms that updates add: the index of the tail is built in blocks while searches run.

use super::support::{World, names, opened, prepared, search};
use jindou::search::Search;
use jindou::{
    Database, MemoryBudget, MergeOptions, Progress, ReclusterOptions, Runtime, UpdateOptions,
};
use std::time::Duration;

/// Inserts labels `Number N colour`; many have the same colour.
fn insert(db: &Database, numbers: std::ops::Range<u32>) {
    let label = "<http://www.w3.org/2000/01/rdf-schema#label>";
    let colours = ["red", "green", "blue", "grey"];
    for from in numbers.clone().step_by(20_000) {
        let all: String = (from..numbers.end.min(from + 20_000))
            .map(|n| {
                let colour = colours[n as usize % 4];
                format!("<http://e/Thing{n}> {label} \"Number {n} {colour}\" . ")
            })
            .collect();
        // If memory is not measured, an update is charged 256 times its length.
        let options = UpdateOptions::default().with_memory(MemoryBudget::new(4 << 30));
        db.update(&format!("INSERT DATA {{ {all} }}"), &options)
            .unwrap();
    }
}

/// Searches for single labels, and for words of many labels.
fn compare(db: &Database, count: u32) {
    for n in [0, 1, 777, count / 2, count - 1] {
        let found = search(db, &format!("number {n} gr"), false);
        let want = matches!(n % 4, 1 | 3);
        let is = |name: &&str| *name == format!("Thing{n}");
        assert_eq!(names(&found).iter().any(is), want, "{n}");
        let found = search(db, &format!("thing{n}"), false);
        assert_eq!(names(&found)[0], format!("Thing{n}"));
        assert_eq!(
            found.found[0]
                .label
                .as_ref()
                .unwrap()
                .text
                .split(' ')
                .nth(1),
            Some(&*n.to_string())
        );
    }
    let found = search(db, "blue num", false);
    assert_eq!(found.found.len(), 200);
    assert!(search(db, "blue red num", false).found.is_empty());
}

#[test]
fn a_store_that_began_empty_is_searched() {
    let db = Database::in_memory();
    let mut count = 0;
    // More terms than a large block and some small ones contain.
    for step in [3_000, 20_000, 30_000] {
        insert(&db, count..count + step);
        count += step;
        compare(&db, count);
        prepared(&db);
        compare(&db, count);
        let asked = Search::new("number 2999 grey").with_patience(Duration::from_secs(60));
        let found = db.search(&asked).unwrap();
        assert!(found.complete && names(&found)[0] == "Thing2999");
    }
}

#[test]
fn terms_of_updates_stay_found_when_they_become_the_base_s() {
    let world = World::new("<http://e/a> <http://e/b> <http://e/c> .", true);
    let db = opened(&world.store());
    insert(&db, 0..12_000);
    prepared(&db);
    compare(&db, 12_000);
    db.merge(&MergeOptions::default(), &Progress::default())
        .unwrap();
    compare(&db, 12_000);
    db.recluster(&ReclusterOptions::default(), &Progress::default())
        .unwrap();
    compare(&db, 12_000);
    insert(&db, 12_000..24_000);
    prepared(&db);
    compare(&db, 24_000);
}

/// Labels `Number N colour` come, go, and give their ids to others.
#[test]
fn terms_with_the_ids_of_freed_ones_are_found_instead() {
    let world = World::new("<http://e/a> <http://e/b> <http://e/c> .", true);
    let db = opened(&world.store());
    let merge = || {
        let merged = db.merge(&MergeOptions::default(), &Progress::default());
        merged.unwrap().freed
    };
    let finds = |words: &str, n: u32| {
        let found = search(
            &db,
            &format!("{words} {n}").replace("thing ", "thing"),
            false,
        );
        names(&found).contains(&&*format!("Thing{n}"))
    };
    insert(&db, 0..70_000);
    prepared(&db);
    compare(&db, 70_000);
    merge();
    let ids = db.snapshot().tail().len();
    // In parts, so that blocks of the index have some terms of before and some new ones.
    for (from, to) in [(0, 500), (500, 20_000), (20_000, 60_000)] {
        let all = format!("FILTER(?n >= {from} && ?n < {to})");
        let text = format!(
            "DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o BIND(<http://www.w3.org/2001/XMLSchema#integer>(STRAFTER(STR(?s), \"Thing\")) AS ?n) {all} }}"
        );
        db.update(&text, &UpdateOptions::default()).unwrap();
        assert_eq!(merge(), 2 * u64::from(to - from));
        assert!(!finds("thing", from + 1) && !finds("number", from + 1));
        insert(&db, 100_000 + from..100_000 + to);
        assert_eq!(db.snapshot().tail().len(), ids);
        for is_prepared in [false, true] {
            if is_prepared {
                prepared(&db);
            }
            for n in [from, to - 1] {
                for words in ["thing", "number"] {
                    assert!(finds(words, 100_000 + n) && !finds(words, n), "{words} {n}");
                    assert!(finds(words, 69_999));
                }
            }
        }
    }
}

#[test]
fn without_memory_for_the_index_searches_look_through_the_terms() {
    let runtime = Runtime::builder().threads(2).memory(48 << 20).build();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    super::support::load(&dir, "", true, 64 << 20).unwrap();
    let db = Database::open_with(&dir, &super::support::options().with_runtime(runtime)).unwrap();
    insert(&db, 0..30_000);
    db.prepare_search();
    compare(&db, 30_000);
    prepared(&db);
    compare(&db, 30_000);
    assert!(db.runtime().memory().used() <= db.runtime().memory().limit());
}
