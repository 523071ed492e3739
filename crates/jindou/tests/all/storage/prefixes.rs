//! The prefixes of a store equal those of a simple model, whether they are stored by a load, the log, a merge or a
//! reclustering, or read by a follower.

use super::sound;
use jindou::parse::Format;
use jindou::testing::source;
use jindou::{
    Access, Database, Error, LoadOptions, MergeOptions, OpenOptions, PrefixOrigin, Progress,
    QueryOptions, ReclusterOptions, UpdateOptions,
};
use jindou_model::random::splitmix64;
use jindou_testing::copy_folder;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        splitmix64(&mut self.0) % n
    }
}

fn opened(dir: &Path, access: Access) -> Database {
    let options = OpenOptions::default().with_access(access);
    Database::open_with(dir, &options).unwrap()
}

type Listed = BTreeMap<String, (String, PrefixOrigin)>;

fn listed(db: &Database) -> Listed {
    let table = db.prefixes();
    let all = table.iter();
    all.map(|(name, iri, origin)| (name.to_owned(), (iri.to_owned(), origin)))
        .collect()
}

#[derive(Clone, Default)]
struct Model {
    data: BTreeMap<String, String>,
    set: BTreeMap<String, String>,
}

impl Model {
    fn listed(&self) -> Listed {
        let of = |list: &BTreeMap<String, String>, origin| -> Listed {
            let all = list.iter();
            all.map(|(n, i)| (n.clone(), (i.clone(), origin))).collect()
        };
        let mut all = of(&self.data, PrefixOrigin::Data);
        all.append(&mut of(&self.set, PrefixOrigin::Set));
        all
    }
}

#[test]
fn whatever_happens_to_a_store_its_prefixes_are_the_models() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("s");
        let mut model = Model::default();
        let document = |model: &mut Model, random: &mut Random| {
            let (mut text, mut own) = (String::new(), BTreeMap::new());
            for _ in 0..random.below(4) {
                let (name, iri) = (format!("p{}", random.below(6)), random.below(9));
                let iri = format!("http://e/{iri}/");
                text.push_str(&format!("@prefix {name}: <{iri}> .\n"));
                // In one document, the last declaration before the first statement counts.
                own.insert(name, iri);
            }
            for (name, iri) in own {
                model.data.entry(name).or_insert(iri);
            }
            // The same few statements are inserted repeatedly, so that a transaction often consists of prefixes only.
            let subject = random.below(3);
            text + &format!("<http://e/s{subject}> <http://e/p> 1 .\n")
        };
        let text = document(&mut model, &mut random);
        Database::load(
            &dir,
            &source(&text, Format::Turtle),
            &LoadOptions::default().with_memory(64 << 20),
            &Progress::default(),
        )
        .unwrap();
        let mut db = opened(&dir, Access::Write);
        let options = UpdateOptions::default().with_threads(1);
        assert_eq!(listed(&db), model.listed(), "{seed}");
        for step in 0..40 {
            match random.below(12) {
                0..=2 => {
                    let text = document(&mut model, &mut random);
                    db.insert(
                        &source(&text, Format::Turtle),
                        &options,
                        &Progress::default(),
                    )
                    .unwrap();
                }
                3 | 4 => {
                    let name = format!("p{}", random.below(6));
                    let iri = format!("http://set/{}/", random.below(4));
                    db.set_prefix(&name, &iri, &options).unwrap();
                    model.set.insert(name, iri);
                }
                5 | 6 => {
                    let name = format!("p{}", random.below(6));
                    let removed = db.remove_prefix(&name, &options);
                    let was = model.set.remove(&name).or_else(|| model.data.remove(&name));
                    assert_eq!(removed.is_ok(), was.is_some(), "{removed:?}");
                }
                7 => {
                    // A transaction that is dropped, also after a failed call, changes no prefixes.
                    let mut open = db.begin(&options).unwrap();
                    let text = document(&mut model.clone(), &mut random);
                    open.insert(
                        &source(&text, Format::Turtle),
                        &options,
                        &Progress::default(),
                    )
                    .unwrap();
                    assert!(open.update("CREATE GRAPH nonsense", &options).is_err());
                    drop(open);
                }
                8 => {
                    let merged = db.merge(&MergeOptions::default(), &Progress::default());
                    assert!(merged.is_ok(), "{merged:?}");
                }
                9 => {
                    let options = ReclusterOptions::default()
                        .with_memory(64 << 20)
                        .with_threads(1);
                    db.recluster(&options, &Progress::default()).unwrap();
                }
                10 => {
                    // A crash: the files are copied while the store is open.
                    let other = folder.path().join(format!("crashed-{step}"));
                    copy_folder(&dir, &other);
                    assert_eq!(listed(&opened(&other, Access::Write)), model.listed());
                }
                _ => {
                    drop(db);
                    sound(&dir);
                    db = opened(&dir, Access::Write);
                }
            }
            assert_eq!(listed(&db), model.listed(), "{seed} {step}");
        }
    }
}

#[test]
fn plans_and_texts_follow_the_prefixes() {
    let db = Database::in_memory();
    let options = UpdateOptions::default();
    let text = "@prefix a: <http://a/> . a:s a:p 1 . <http://b/s> <http://b/p> 1 , 2 .";
    db.insert(
        &source(text, Format::Turtle),
        &options,
        &Progress::default(),
    )
    .unwrap();
    let rows = |db: &Database| {
        let query = "SELECT ?o { a:s a:p ?o }";
        db.query(query).unwrap().solutions().len()
    };
    assert_eq!((rows(&db), rows(&db)), (1, 1));
    let prepared = db
        .prepare(
            "SELECT ?o { a:s a:p ?o }",
            &["o"; 0],
            &QueryOptions::default(),
        )
        .unwrap();
    db.set_prefix("a", "http://b/", &options).unwrap();
    assert_eq!((rows(&db), rows(&db)), (2, 2));
    db.remove_prefix("a", &options).unwrap();
    assert_eq!(rows(&db), 1);
    drop(prepared);
    // The store's prefixes also apply to updates; a caller's take precedence; and they do not apply without
    // `store_prefixes`.
    db.update("DELETE WHERE { a:s ?p ?o }", &options).unwrap();
    assert_eq!(rows(&db), 0);
    let own = QueryOptions::default().with_prefixes(vec![("a".into(), "http://b/".into())]);
    let answer = db.query_with("SELECT ?o { a:s a:p ?o }", &own).unwrap();
    assert_eq!(answer.solutions().len(), 2);
    let strict = QueryOptions::default().with_store_prefixes(false);
    assert!(matches!(
        db.query_with("ASK { a:s ?p ?o }", &strict),
        Err(Error::Sparql(_))
    ));
    // An open transaction sees the prefixes that it has added itself.
    let mut open = db.begin(&options).unwrap();
    let text = "@prefix new: <http://new/> . new:s new:p 1 .";
    open.insert(
        &source(text, Format::Turtle),
        &options,
        &Progress::default(),
    )
    .unwrap();
    let report = open.update("INSERT DATA { new:t new:p 2 }", &options);
    assert_eq!(report.unwrap().added, 1);
    assert!(db.prefixes().get("new").is_none());
    open.commit().unwrap();
    assert_eq!(db.prefixes().get("new"), Some("http://new/"));
    assert!(db.set_prefix("a b", "http://a/", &options).is_err());
    assert!(db.set_prefix("a", "a", &options).is_err());
}

#[test]
fn followers_learn_them() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("s");
    let load = LoadOptions::default().with_memory(64 << 20);
    let text = "@prefix a: <http://a/> . a:s a:p 1 .";
    Database::load(
        &dir,
        &source(text, Format::Turtle),
        &load,
        &Progress::default(),
    )
    .unwrap();
    let writer = opened(&dir, Access::Write);
    let reader = opened(&dir, Access::Read);
    let _following = reader.follow_in_background(|_| {}).unwrap();
    writer
        .set_prefix("b", "http://b/", &UpdateOptions::default())
        .unwrap();
    let begun = Instant::now();
    while reader.prefixes().get("b").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(listed(&reader), listed(&writer));
}
