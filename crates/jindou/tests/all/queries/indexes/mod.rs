//! An index that a program adds ([`words`]). Answers are compared with a model that knows the words of each text, over
//! stores that are loaded, updated, merged, reclustered, backed up, and opened without the index; also builders that
//! fail, and damaged files.

mod build;
mod files;
mod model;
mod support;
mod words;

use jindou::{
    BackupTarget, CancelToken, Database, MergeOptions, Progress, QueryOptions, ReclusterOptions,
    RestoreTo, UpdateOptions, Value,
};
use jindou_testing::Rng;
use model::{Model, Object, WORDS};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;
use support::{Counts, PREFIXES, World, counted, functions, opened, rows};
use words::{has_word, inner_word, words};

/// A random query, and the subjects that the model returns for it.
fn question(rng: &mut Rng, model: &Model) -> (String, Vec<String>) {
    let a = rng.one(&WORDS);
    let b = rng.one(&WORDS);
    let any = if rng.below(3) == 0 {
        "?s ?p ?t"
    } else {
        "?s :text ?t"
    };
    let only_text = any == "?s :text ?t";
    let pairs = |f: &dyn Fn(&Object) -> bool| {
        model.subjects(|q| (!only_text || q.predicate == "text") && f(&q.object))
    };
    let has = |o: &Object, w: &str| o.words().map(|words| words.iter().any(|x| x == w));
    match rng.below(8) {
        0 | 1 => (
            format!(
                "SELECT ?s {{ {any} FILTER(fn:word(?t, \"{}\")) }}",
                a.to_uppercase()
            ),
            pairs(&|o| has(o, a) == Some(true)),
        ),
        2 => (
            format!("SELECT ?s {{ {any} FILTER(!fn:word(?t, \"{a}\")) }}"),
            pairs(&|o| has(o, a) == Some(false)),
        ),
        3 => (
            format!("SELECT ?s {{ {any} FILTER(fn:word(?t, \"{a}\") || fn:word(?t, \"{b}\")) }}"),
            pairs(&|o| has(o, a) == Some(true) || has(o, b) == Some(true)),
        ),
        4 => (
            format!("SELECT ?s {{ {any} FILTER(fn:word(?t, \"{a}\") && fn:word(?t, \"{b}\")) }}"),
            pairs(&|o| has(o, a) == Some(true) && has(o, b) == Some(true)),
        ),
        5 => {
            // A whole word with the last letter of one word before it and the first letter of the same word after it;
            // words in texts are separated by one space.
            let part = format!("{} {a} {}", &b[b.len() - 1..], &b[..1]);
            (
                format!("SELECT ?s {{ {any} FILTER(CONTAINS(?t, \"{part}\")) }}"),
                pairs(&|o| o.text().is_some_and(|t| t.contains(&part))),
            )
        }
        6 => (
            format!(
                "SELECT ?s {{ ?s :kind :k{} . ?s :text ?t FILTER(fn:word(?t, \"{a}\")) }}",
                rng.below(4)
            ),
            vec![],
        ),
        _ => (
            format!(
                "SELECT ?s {{ {any} BIND(CONCAT(STR(?t), \" made\") AS ?u) FILTER(fn:word(?u, \"made\") && fn:word(?t, \"{a}\")) }}"
            ),
            pairs(&|o| has(o, a) == Some(true)),
        ),
    }
}

/// Compares `count` random queries with the model.
fn compare(db: &Database, model: &Model, rng: &mut Rng, count: usize) {
    for _ in 0..count {
        let (text, mut want) = question(rng, model);
        if let Some((_, rest)) = text.split_once("?s :kind :k") {
            let kind = format!("k{}", &rest[..1]);
            let word = rest.split('"').nth(1).unwrap().to_owned();
            want = model.subjects(|q| {
                q.predicate == "text"
                    && model.is_of_kind(&q.subject, &kind)
                    && q.object.words().is_some_and(|w| w.contains(&word))
            });
        }
        assert_eq!(rows(db, &text), want, "{text}");
    }
}

/// Runs a sequence of updates and maintenance on a store; with the index and without, answers must equal the model's.
fn life(indexed: bool, seed: u64) -> Counts {
    let mut rng = Rng::new(seed);
    let mut model = Model::random(&mut rng, 400);
    let (indexes, counts) = counted(indexed);
    let world = World::new(&model.trig(), &indexes);
    let mut db = opened(&world.store(), &indexes);
    compare(&db, &model, &mut rng, 60);
    let mut asked = counts.tests.load(Ordering::Relaxed);
    assert_eq!(
        asked > 0,
        indexed,
        "{asked} batches were asked of the index"
    );
    for step in 0..6 {
        // New terms, existing terms in new quads, and deletions.
        let changes = model.change(&mut rng, 40);
        db.update(&changes, &UpdateOptions::default()).unwrap();
        compare(&db, &model, &mut rng, 25);
        match step {
            1 | 3 => {
                db.merge(&MergeOptions::default(), &Progress::default())
                    .unwrap();
                compare(&db, &model, &mut rng, 25);
            }
            2 => {
                drop(db);
                db = opened(&world.store(), &indexes);
            }
            4 => {
                let options = ReclusterOptions::default()
                    .with_memory(256 << 20)
                    .with_threads(2);
                db.recluster(&options, &Progress::default()).unwrap();
                let base = world.store().join("base-1");
                assert_eq!(base.join("index-words.jd").exists(), indexed);
                compare(&db, &model, &mut rng, 25);
            }
            _ => {}
        }
    }
    let target = BackupTarget::folder(world.path("backups").to_str().unwrap()).unwrap();
    let (cancel, progress) = (CancelToken::new(), Progress::default());
    db.backup(&target, &cancel, &progress).unwrap();
    drop(db);
    let report = Database::check_with(world.store(), &indexes).unwrap();
    assert!(report.is_sound(), "{:?}", report.damages);
    let restored = world.path("restored");
    Database::restore(&target, &restored, RestoreTo::Newest, &cancel, &progress).unwrap();
    asked = counts.tests.load(Ordering::Relaxed);
    let db = opened(&restored, &indexes);
    compare(&db, &model, &mut rng, 40);
    assert_eq!(counts.tests.load(Ordering::Relaxed) > asked, indexed);
    counts
}

fn lives(seeds: RangeInclusive<u64>) {
    for seed in seeds {
        let counts = life(true, seed);
        assert!(counts.starts.load(Ordering::Relaxed) > 0);
    }
}

#[test]
fn answers_are_those_of_the_model_with_the_index() {
    lives(1..=2);
}

#[test]
#[ignore = "a quarter of a minute; see docs/testing.md"]
fn more_answers_are_those_of_the_model_with_the_index() {
    lives(3..=12);
}

#[test]
fn and_without_it() {
    life(false, 1);
}

#[test]
fn a_store_may_be_opened_with_and_without_the_index() {
    let mut rng = Rng::new(77);
    let mut model = Model::random(&mut rng, 300);
    let (with, counts) = counted(true);
    let (without, _) = counted(false);
    // A store loaded without the index does not have it until it is reclustered with it.
    let world = World::new(&model.trig(), &without);
    let db = opened(&world.store(), &with);
    compare(&db, &model, &mut rng, 30);
    assert_eq!(counts.tests.load(Ordering::Relaxed), 0);
    let states = |indexes| Database::info_with(world.store(), indexes).unwrap().indexes;
    let state = states(&with);
    assert!(
        state[0].0 == "words" && state[0].1.starts_with("not built"),
        "{state:?}"
    );
    db.recluster(&ReclusterOptions::default(), &Progress::default())
        .unwrap();
    compare(&db, &model, &mut rng, 30);
    assert!(counts.tests.load(Ordering::Relaxed) > 0);
    drop(db);
    // If the store is opened without the index, the file is kept, reported, and verified.
    let db = opened(&world.store(), &without);
    db.update(&model.change(&mut rng, 20), &UpdateOptions::default())
        .unwrap();
    compare(&db, &model, &mut rng, 30);
    db.merge(&MergeOptions::default(), &Progress::default())
        .unwrap();
    compare(&db, &model, &mut rng, 30);
    drop(db);
    let state = states(&without);
    assert!(
        state[0].0 == "words" && state[0].1.contains("does not support"),
        "{state:?}"
    );
    assert!(state[0].2 > 0);
    let parts = Database::info(world.store()).unwrap().parts;
    assert!(
        parts
            .iter()
            .any(|p| p.0 == "index of terms: words" && p.1 == state[0].2)
    );
    let db = opened(&world.store(), &with);
    compare(&db, &model, &mut rng, 30);
    assert!(
        states(&with)[0].1.contains("words of"),
        "{:?}",
        states(&with)
    );
}

#[test]
fn explain_names_the_index_where_it_filters_and_where_it_starts() {
    let (indexes, counts) = counted(true);
    let texts: String = (0..400)
        .map(|i| {
            format!(
                ":s{i} :text \"{} {i}\" ; :kind :k ; :number {i} .\n",
                WORDS[i % 12]
            )
        })
        .collect();
    let texts = format!("@prefix : <http://e/> .\n{texts}:rare :text \"zebra\" .");
    let world = World::new(&texts, &indexes);
    let db = opened(&world.store(), &indexes);
    let options = QueryOptions::default().with_functions(functions());
    let explain = |text: &str| db.explain(&(PREFIXES.to_owned() + text), &options).unwrap();
    let rare = explain("SELECT ?s { ?s :text ?t . ?s :kind ?k FILTER(fn:word(?t, \"zebra\")) }");
    assert!(rare.contains("is one by index words: 1 of"), "{rare}");
    assert!(rare.contains("?t by intervals, within 1.0 ids"), "{rare}");
    assert!(
        rare.contains("by index words: 1 of") && !rare.contains("on terms"),
        "{rare}"
    );
    let read = explain("SELECT ?s { ?s :text ?t FILTER(CONTAINS(?t, \"a zebra b\")) }");
    assert!(
        read.contains("by index words: 1 of") && read.contains("are read"),
        "{read}"
    );
    // A condition that the index does not support.
    let other = explain("SELECT ?s { ?s :text ?t FILTER(STRLEN(?t) = 5) }");
    assert!(
        other.contains("on terms") && !other.contains("by index"),
        "{other}"
    );
    let rank = explain("SELECT ?s { ?s :number ?n FILTER(?n < 5) }");
    assert!(rank.contains("by rank"), "{rank}");
    // Starting at the index, only one term is tested, rather than all 401.
    counts.tested.store(0, Ordering::Relaxed);
    assert_eq!(
        rows(
            &db,
            "SELECT ?s { ?s :text ?t FILTER(fn:word(?t, \"ZEBRA\")) }"
        ),
        ["rare"]
    );
    assert_eq!(counts.tested.load(Ordering::Relaxed), 1);
}

#[test]
fn a_cached_plan_goes_on_over_new_terms_and_not_over_other_constants() {
    let mut rng = Rng::new(9);
    let model = Model::random(&mut rng, 200);
    let (indexes, _) = counted(true);
    let world = World::new(&model.trig(), &indexes);
    let db = opened(&world.store(), &indexes);
    let ask = |word: &str| {
        let text = format!("SELECT ?s {{ ?s :text ?t FILTER(fn:word(?t, \"{word}\")) }}");
        rows(&db, &text)
    };
    assert_eq!(ask("quagga"), [""; 0]);
    // The cached plan is used again: the update only added a term, which is not in the index.
    for n in 1..=3 {
        let text = format!("PREFIX : <http://e/> INSERT DATA {{ :q{n} :text \"a Quagga {n}\" }}");
        db.update(&text, &UpdateOptions::default()).unwrap();
        assert_eq!(ask("quagga").len(), n);
        assert_eq!(ask("okapi"), [""; 0]);
    }
    let prepared = db
        .prepare(
            &(PREFIXES.to_owned() + "SELECT ?s { ?s :text ?t FILTER(fn:word(?t, ?w)) }"),
            &["w"],
            &QueryOptions::default().with_functions(functions()),
        )
        .unwrap();
    let mut session = prepared.session();
    let mut run = |word: &str| {
        let word = oxrdf::Literal::from(word).into();
        let answer = session.query(&[Value::Term(&word)], &QueryOptions::default());
        answer.unwrap().solutions().len()
    };
    assert_eq!(run("quagga"), 3);
    assert_eq!(run("okapi"), 0);
    assert_eq!(run(WORDS[0]), ask(WORDS[0]).len());
    assert_eq!(run("quagga"), 3);
}

#[test]
fn more_terms_of_updates_than_of_the_base_are_all_found() {
    let mut rng = Rng::new(43);
    let mut model = Model::random(&mut rng, 60);
    let (indexes, _) = counted(true);
    let world = World::new(&model.trig(), &indexes);
    let db = opened(&world.store(), &indexes);
    for _ in 0..4 {
        db.update(&model.change(&mut rng, 400), &UpdateOptions::default())
            .unwrap();
        compare(&db, &model, &mut rng, 30);
        db.merge(&MergeOptions::default(), &Progress::default())
            .unwrap();
        compare(&db, &model, &mut rng, 30);
    }
}

#[test]
fn unbound_variables_are_for_the_expression() {
    let mut rng = Rng::new(3);
    let model = Model::random(&mut rng, 100);
    let (indexes, _) = counted(true);
    let world = World::new(&(model.trig() + ":none :kind :odd ."), &indexes);
    let db = opened(&world.store(), &indexes);
    let all = rows(
        &db,
        "SELECT ?s { ?s :kind :odd OPTIONAL { ?s :text ?t } FILTER(COALESCE(fn:word(?t, \"x\"), true)) }",
    );
    assert_eq!(all, ["none"]);
    let none = rows(
        &db,
        "SELECT ?s { ?s :kind :odd OPTIONAL { ?s :text ?t } FILTER(fn:word(?t, \"x\")) }",
    );
    assert_eq!(none, [""; 0]);
}

#[test]
fn the_same_data_has_the_same_epoch_with_and_without_an_index() {
    let model = Model::random(&mut Rng::new(8), 100);
    let epochs = [true, false].map(|indexed| {
        let (indexes, _) = counted(indexed);
        let world = World::new(&model.trig(), &indexes);
        Database::info(world.store()).unwrap().epoch
    });
    assert_eq!(epochs[0], epochs[1]);
}

#[test]
fn lists_beyond_the_limit_filter_and_do_not_start() {
    let (indexes, counts) = counted(true);
    let world = World::new(&support::texts(30_000), &indexes);
    let db = opened(&world.store(), &indexes);
    let all = "SELECT ?s { ?s :text ?t FILTER(fn:word(?t, \"all\")) }";
    assert_eq!(rows(&db, all).len(), 30_000);
    assert_eq!(counts.starts.load(Ordering::Relaxed), 0);
    assert!(counts.tested.load(Ordering::Relaxed) >= 30_000);
    let options = QueryOptions::default().with_functions(functions());
    let plan = db.explain(&(PREFIXES.to_owned() + all), &options).unwrap();
    assert!(
        plan.contains("by index words: 30000 of 30000") && !plan.contains("is one by"),
        "{plan}"
    );
}

#[test]
fn words_are_runs_of_letters_and_digits() {
    let found: Vec<String> = words("Grün, as_2 (Σ)!").collect();
    assert_eq!(found, ["grün", "as", "2", "σ"]);
    assert_eq!(has_word("The end.", "END"), Some(true));
    assert_eq!(has_word("Then", "the"), Some(false));
    for none in ["", "a b", "a."] {
        assert_eq!(has_word("a b", none), None);
    }
    assert_eq!(inner_word("the big cat").as_deref(), Some("big"));
    assert_eq!(inner_word(" Cat ").as_deref(), Some("cat"));
    assert_eq!(inner_word(".a.long.b").as_deref(), Some("long"));
    for none in ["", "cat", "the cat", "cat.", ".cat"] {
        assert_eq!(inner_word(none), None, "{none}");
    }
}
