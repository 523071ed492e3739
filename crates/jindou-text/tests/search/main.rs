//! Searches and labels of whole stores, compared with a model that knows the words of every label: through updates,
//! merges, reclusterings, backups and followers, with damaged files, and with little memory.

mod complete;
mod files;
mod folding;
mod growth;
mod measure;
mod model;
mod shards;
mod support;

use jindou::search::{LabelOptions, Search};
use jindou::{
    Access, BackupTarget, CancelToken, Database, MergeOptions, Progress, QueryOptions,
    ReclusterOptions, RestoreTo, UpdateOptions,
};
use model::{Model, WORDS};
use std::collections::BTreeMap;
use support::{Rng, World, names, opened, prepared, search, texts};

/// Compares searches for random words, and the labels of all resources, with the model.
fn compare(db: &Database, model: &Model, rng: &mut Rng, count: usize) {
    for _ in 0..count {
        let chosen: Vec<_> = (0..1 + rng.below(3)).map(|_| *rng.pick(&WORDS)).collect();
        let mut folded: Vec<&str> = chosen.iter().map(|w| w.1).collect();
        let mut written: Vec<&str> = chosen.iter().map(|w| w.0).collect();
        // The last word may be incomplete. At least two letters are kept, since a single one could also begin the name
        // of a property.
        if let (Some(last), Some(shown)) = (folded.last_mut(), written.last_mut()) {
            let letters = last.chars().count();
            let keep = 2 + rng.below(letters - 1);
            let end = last
                .char_indices()
                .nth(keep)
                .map_or(last.len(), |(at, _)| at);
            if end < last.len() {
                *last = &last[..end];
                *shown = last;
            }
        }
        let union = rng.below(2) == 0;
        let text = written.join([" ", ", ", "-"][rng.below(3)]);
        let want: BTreeMap<String, model::Key> = model.find(&folded, union).into_iter().collect();
        let got = search(db, &text, union);
        assert!(got.complete, "{text}");
        let got = names(&got);
        let mut sorted = got.clone();
        sorted.sort_unstable();
        let all: Vec<&str> = want.keys().map(String::as_str).collect();
        assert_eq!(sorted, all, "{text}, union: {union}");
        let keys: Vec<_> = got.iter().map(|name| want[*name]).collect();
        assert!(keys.is_sorted(), "{text}: {got:?} {keys:?}");
    }
    for union in [false, true] {
        let iris: Vec<String> = model
            .subjects
            .iter()
            .map(|s| format!("http://e/{}", s.0))
            .collect();
        let options = LabelOptions::default()
            .with_languages(vec!["de".into()])
            .with_query(QueryOptions::default().with_union_default(union));
        let labels = db.labels(&iris, &options).unwrap();
        for (n, label) in labels.into_iter().enumerate() {
            let got = label.map(|l| (l.text, l.language));
            assert_eq!(got, model.german(n, union), "{}, union: {union}", iris[n]);
        }
    }
}

/// Random changes of a store, with the index or without it, after each of which searches find the same as the model.
fn life(indexed: bool, seed: u64) {
    let mut rng = Rng(seed);
    let mut model = Model::random(&mut rng, 60, 300);
    let world = World::new(&model.trig(), indexed);
    let has_file = |base: &str| world.store().join(base).join("index-text.jd").exists();
    assert_eq!(has_file("."), indexed);
    let mut db = opened(&world.store());
    compare(&db, &model, &mut rng, 40);
    for step in 0..6 {
        db.update(&model.change(&mut rng, 40), &UpdateOptions::default())
            .unwrap();
        compare(&db, &model, &mut rng, 15);
        match step {
            1 | 3 => {
                db.merge(&MergeOptions::default(), &Progress::default())
                    .unwrap();
                compare(&db, &model, &mut rng, 15);
            }
            2 => {
                drop(db);
                db = opened(&world.store());
            }
            4 => {
                let options = ReclusterOptions::default()
                    .with_memory(256 << 20)
                    .with_threads(2);
                db.recluster(&options, &Progress::default()).unwrap();
                // The index is built again if there was one, and not otherwise.
                assert_eq!(has_file("base-1"), indexed);
                compare(&db, &model, &mut rng, 15);
            }
            _ => {}
        }
    }
    let target = BackupTarget::folder(world.path("backups").to_str().unwrap()).unwrap();
    let (cancel, progress) = (CancelToken::new(), Progress::default());
    db.backup(&target, &cancel, &progress).unwrap();
    drop(db);
    let report = Database::check_with(world.store(), &texts()).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
    let restored = world.path("restored");
    Database::restore(&target, &restored, RestoreTo::Newest, &cancel, &progress).unwrap();
    compare(&opened(&restored), &model, &mut rng, 25);
}

#[test]
fn searches_find_what_looking_at_all_finds() {
    for seed in 1..=4 {
        life(true, seed);
    }
}

#[test]
fn and_without_the_index() {
    life(false, 5);
}

#[test]
fn a_reclustering_builds_the_index_where_it_is_asked_to() {
    let mut rng = Rng(11);
    let mut model = Model::random(&mut rng, 40, 200);
    let world = World::new(&model.trig(), false);
    let db = opened(&world.store());
    let state = || {
        Database::info_with(world.store(), &texts())
            .unwrap()
            .indexes
    };
    assert!(state()[0].1.starts_with("not built"), "{:?}", state());
    db.update(&model.change(&mut rng, 50), &UpdateOptions::default())
        .unwrap();
    let options = ReclusterOptions::default().with_indexes(texts());
    db.recluster(&options, &Progress::default()).unwrap();
    assert!(state()[0].1.starts_with("words of"), "{:?}", state());
    compare(&db, &model, &mut rng, 40);
    // A program that does not know the index leaves the file unchanged and works without it.
    drop(db);
    let db = Database::open(world.store()).unwrap();
    compare(&db, &model, &mut rng, 10);
}

#[test]
fn a_reader_that_follows_finds_the_same() {
    let mut rng = Rng(41);
    let mut model = Model::random(&mut rng, 50, 200);
    let world = World::new(&model.trig(), true);
    let db = opened(&world.store());
    let open = support::options().with_access(Access::Read);
    let reader = Database::open_with(world.store(), &open).unwrap();
    let _following = reader.follow_in_background(|_| ()).unwrap();
    let caught_up = |model: &Model, rng: &mut Rng| {
        let begun = std::time::Instant::now();
        let at = |db: &Database| (db.snapshot().base().epoch(), db.snapshot_number());
        while at(&reader) != at(&db) {
            assert!(begun.elapsed().as_secs() < 30, "the reader does not follow");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        compare(&reader, model, rng, 20);
    };
    db.update(&model.change(&mut rng, 60), &UpdateOptions::default())
        .unwrap();
    caught_up(&model, &mut rng);
    db.recluster(&ReclusterOptions::default(), &Progress::default())
        .unwrap();
    caught_up(&model, &mut rng);
}

#[test]
fn what_is_found_has_label_class_and_reason() {
    let text = r#"
        PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> PREFIX : <http://e/> PREFIX ex: <http://example.org/>
        INSERT DATA {
            :P31 rdfs:label "instance of"@en, "ist ein(e)"@de . :P310 rdfs:label "instance of what"@en .
            :used a :Rare, :Common ; rdfs:label "instance of" . :x a :Common ; :knows :used, :used2 . :y :knows :used .
            _:b rdfs:label "instance of nothing" .
            :used2 ex:title "instance of a title" .
        }"#;
    let db = Database::in_memory();
    db.update(text, &UpdateOptions::default()).unwrap();
    let german = LabelOptions::default().with_languages(vec!["de".into()]);
    let found = db
        .search(&Search::new("Instance OF").with_labels(german))
        .unwrap();
    assert!(found.complete);
    // The resource that is used more comes first; blank nodes are not found.
    assert_eq!(names(&found), ["used", "P31", "P310"]);
    assert_eq!(found.found[0].class.as_deref(), Some("http://e/Rare"));
    assert_eq!(found.found[1].matched, "instance of");
    assert_eq!(found.found[1].label.as_ref().unwrap().text, "ist ein(e)");
    assert_eq!(
        found.found[1].label.as_ref().unwrap().language.as_deref(),
        Some("de")
    );
    assert_eq!(found.found[1].class, None);
    assert_eq!(names(&search(&db, "p31", false)), ["P31", "P310"]);
    let named = search(&db, " <http://e/P310> ", false);
    assert_eq!(
        (names(&named), named.found[0].matched.as_str()),
        (vec!["P310"], "P310")
    );
    assert_eq!(names(&search(&db, "http://e/y", false))[0], "y");
    let titles: std::sync::Arc<[String]> = vec!["http://example.org/title".to_owned()].into();
    let titles = LabelOptions::default().with_properties(titles);
    let found = db
        .search(&Search::new("title inst").with_labels(titles))
        .unwrap();
    assert_eq!(names(&found), ["used2"]);
    for nothing in ["", " ,;", "zebra", "instance zebra"] {
        let found = search(&db, nothing, false);
        assert!(found.found.is_empty() && found.complete, "{nothing}");
    }
    assert_eq!(
        search(&db, &"instance of ".repeat(10_000), false)
            .found
            .len(),
        3
    );
}

#[test]
fn limits_hold() {
    let mut rng = Rng(3);
    let model = Model::random(&mut rng, 60, 300);
    let db = Database::in_memory();
    db.update(
        &format!("INSERT DATA {{ {} }}", model.trig()),
        &UpdateOptions::default(),
    )
    .unwrap();
    prepared(&db);
    let with = |query: QueryOptions| LabelOptions::default().with_query(query);
    let cancel = CancelToken::new();
    cancel.cancel();
    let cancelled = with(QueryOptions::default().with_cancel(cancel));
    let e = db.search(&Search::new("new").with_labels(cancelled.clone()));
    assert!(matches!(e, Err(jindou::Error::Cancelled)), "{e:?}");
    let iris: Vec<String> = model
        .subjects
        .iter()
        .map(|s| format!("http://e/{}", s.0))
        .collect();
    let e = db.labels(&iris, &cancelled);
    assert!(matches!(e, Err(jindou::Error::Cancelled)), "{e:?}");
    let little = with(QueryOptions::default().with_memory(jindou::MemoryBudget::new(1000)));
    let e = db.search(&Search::new("new").with_labels(little.clone()));
    assert!(matches!(e, Err(jindou::Error::Limit(_))), "{e:?}");
    let e = db.labels(&iris, &little);
    assert!(matches!(e, Err(jindou::Error::Limit(_))), "{e:?}");
    let e = db.labels(&vec!["http://e/a"; 10_001], &LabelOptions::default());
    assert!(matches!(e, Err(jindou::Error::Query(_))), "{e:?}");
    // Without time, the result says that it is incomplete.
    let asked = Search::new("new").with_patience(std::time::Duration::ZERO);
    assert!(!db.search(&asked).unwrap().complete);
    assert_eq!(
        db.search(&Search::new("new").with_limit(2))
            .unwrap()
            .found
            .len(),
        2
    );
}

/// A result that omits resources says so; a resource with few uses is found nevertheless.
#[test]
fn more_resources_than_are_compared_make_an_answer_incomplete() {
    let label = "<http://www.w3.org/2000/01/rdf-schema#label>";
    let mut text = String::new();
    for n in 0..300 {
        text += &format!("<http://e/same{n}> {label} \"shared label\" .\n");
    }
    for n in 0..100 {
        text += &format!("<http://e/few{n}> {label} \"some label\" .\n");
    }
    // A resource that has many properties in a named graph, but a single one in the default graph.
    for n in 0..60 {
        text += &format!("<http://e/g> {{ <http://e/zebra> <http://e/p{n}> {n} }}\n");
    }
    text += "<http://e/zebra> <http://e/q> 1 .\n";
    for indexed in [false, true] {
        let world = World::new(&text, indexed);
        let db = opened(&world.store());
        let shared = search(&db, "shared", false);
        assert!(!shared.complete && shared.found.len() == 200, "{indexed}");
        let some = search(&db, "some", false);
        assert!(some.complete && some.found.len() == 100, "{indexed}");
        for union in [false, true] {
            let zebra = search(&db, "zebra", union);
            assert_eq!((names(&zebra), zebra.complete), (vec!["zebra"], true));
        }
    }
}
