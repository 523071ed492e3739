//! Sharded stores: they answer like the whole store, with an index in each shard and without. Also damage, limits, and
//! shards that fail.

use super::compare;
use super::model::{Model, WORDS};
use super::support::{Rng, World, names, opened, options, prepared, search, texts};
use jindou::index::{Index, IndexFile, IndexWriter, OpenIndex, Terms};
use jindou::search::{LabelOptions, Search, Searched};
use jindou::{
    CancelToken, Database, DatasetChoice, Error, Indexes, LoadOptions, MemoryBudget, Placement,
    Progress, QueryOptions, Result, Sharding, Verify,
};
use jindou_cluster::shards::{Reply, ShardClient, ShardRequest};
use jindou_graph::shard::Far;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Blocks of a single id, so that related terms are on different shards.
fn sharding(shards: u32, placement: Placement) -> Sharding {
    let sharding = Sharding::new(shards).with_placement(placement);
    sharding.with_block_shift(Some(0))
}

const LABEL: &str = "<http://www.w3.org/2000/01/rdf-schema#label>";

/// The model's data, with further data that determines ranks and classes: uses in both directions and in several
/// graphs, classes of different sizes, labels of blank nodes, of classes, of predicates and of graphs.
fn data(model: &Model, rng: &mut Rng) -> String {
    let mut text = model.trig();
    let all = model.subjects.len();
    for (name, _) in &model.subjects {
        for _ in 0..rng.below(4) {
            let other = &model.subjects[rng.below(all)].0;
            let link = format!(
                "<http://e/{name}> <http://e/knows{}> <http://e/{other}> .",
                rng.below(3)
            );
            let class = format!("<http://e/{name}> a <http://e/Class{}> .", rng.below(5));
            for triple in [link, class] {
                text += &match rng.below(3) {
                    0 => format!("<http://graphs/{}> {{ {triple} }}\n", 1 + rng.below(2)),
                    _ => triple + "\n",
                };
            }
        }
    }
    for n in 0..5 {
        text += &format!("_:b{n} {LABEL} \"New York {n}\" .\n");
        text += &format!("<http://e/Class{n}> {LABEL} \"Bern class {n}\" .\n");
    }
    text += &format!(
        "<http://e/knows1> {LABEL} \"Zürich knows\" . <http://graphs/1> {LABEL} \"New graph\" .\n"
    );
    text
}

/// Texts to search for: words of the model, some incomplete, and names.
fn questions(rng: &mut Rng) -> Vec<String> {
    let mut all: Vec<String> = [
        "knows",
        "class",
        "new",
        "be",
        "label",
        "n",
        "1",
        "graph",
        "zebra",
        "",
        "http://e/Class1",
        " <http://e/note> ",
        "http://graphs/2",
        "http://e/nothing",
        "<http://e/knows0>",
    ]
    .map(str::to_owned)
    .into();
    for _ in 0..12 {
        let words: Vec<&str> = (0..1 + rng.below(3)).map(|_| rng.pick(&WORDS).0).collect();
        let mut text = words.join(" ");
        let keep = text.chars().count() - rng.below(3);
        text = text.chars().take(keep).collect();
        all.push(text);
    }
    all
}

/// Options that read the default graph, all graphs, one graph, or two graphs.
fn graphs() -> Vec<QueryOptions> {
    let chosen = |graphs: &[&str]| {
        let default = graphs.iter().map(|g| (*g).to_owned()).collect();
        let dataset = DatasetChoice {
            default,
            named: Vec::new(),
        };
        QueryOptions::default().with_dataset(Some(dataset))
    };
    let both = |union| QueryOptions::default().with_union_default(union);
    let one = chosen(&["http://graphs/1"]);
    let two = chosen(&["http://graphs/2", "http://graphs/1", "http://graphs/none"]);
    vec![both(false), both(true), one, two]
}

fn ask(db: &Database, words: &str, query: &QueryOptions) -> Result<Searched> {
    let labels = LabelOptions::default()
        .with_languages(vec!["de".into()])
        .with_query(query.clone());
    let asked = Search::new(words)
        .with_limit(200)
        .with_patience(Duration::from_secs(120))
        .with_labels(labels);
    db.search(&asked)
}

#[test]
fn shards_answer_what_the_whole_store_does() {
    let mut rng = Rng(71);
    for (round, shards) in [2, 3, 5].into_iter().enumerate() {
        let model = Model::random(&mut rng, 60, 300);
        let text = data(&model, &mut rng);
        let whole = World::new(&text, round % 2 == 0);
        let whole = opened(&whole.store());
        for placement in [Placement::Range, Placement::Hash] {
            for indexed in [true, false] {
                let world = World::cut(&text, indexed, sharding(shards, placement));
                for shard in 0..shards {
                    let file = world.store().join(format!("shard-{shard}/index-text.jd"));
                    assert_eq!(file.exists(), indexed, "{}", file.display());
                }
                let report = Database::check_with(world.store(), &texts()).unwrap();
                assert!(report.is_sound(), "{:?}", report.damages);
                let cut = opened(&world.store());
                for words in questions(&mut rng) {
                    for query in graphs() {
                        let mut want = ask(&whole, &words, &query).unwrap();
                        let got = ask(&cut, &words, &query).unwrap();
                        assert!(want.complete, "{words}");
                        assert_eq!([want.indexed, got.indexed], [round % 2 == 0, indexed]);
                        want.indexed = indexed;
                        assert_eq!(got, want, "{words}, {shards} shards, {placement:?}");
                    }
                }
            }
        }
    }
}

/// Searches see labels that updates added or removed, both in the tail and in the base.
#[test]
fn changed_shards_find_what_is_there_now() {
    let mut rng = Rng(73);
    let model = Model::random(&mut rng, 60, 300);
    let text = data(&model, &mut rng);
    let change = format!(
        "DELETE WHERE {{ ?s {LABEL} \"Bern class 1\" }} ; \
         INSERT DATA {{ <http://e/fresh> {LABEL} \"Bern fresh\" . <http://e/Class2> {LABEL} \"New York 3\" }}"
    );
    for indexed in [true, false] {
        let [whole, cut] = [
            World::new(&text, indexed),
            World::cut(&text, indexed, sharding(3, Placement::Range)),
        ];
        let [whole, cut] = [&whole, &cut].map(|world| opened(&world.store()));
        for db in [&whole, &cut] {
            db.update(&change, &Default::default()).unwrap();
        }
        let iris = |found: &Searched| -> Vec<String> {
            let all = found.found.iter().map(|f| f.iri.clone());
            let mut all: Vec<String> = all.collect();
            all.sort();
            all
        };
        for words in ["bern", "fresh", "new york 3", "class"] {
            let query = QueryOptions::default();
            let want = iris(&ask(&whole, words, &query).unwrap());
            let got = ask(&cut, words, &query).unwrap();
            assert_eq!(iris(&got), want, "{words}");
            assert!(!got.complete, "{words}");
        }
    }
}

/// Shards find the same as the model, as whole stores do.
#[test]
fn shards_find_what_looking_at_all_finds() {
    let mut rng = Rng(73);
    let model = Model::random(&mut rng, 60, 300);
    for indexed in [true, false] {
        let world = World::cut(&model.trig(), indexed, sharding(3, Placement::Hash));
        compare(&opened(&world.store()), &model, &mut rng, 60);
        // A program that does not know the index scans the terms.
        let db = Database::open(world.store()).unwrap();
        compare(&db, &model, &mut rng, 20);
    }
}

/// If very many terms match, the result has as many as that of a whole store, all of them correct, and says that it is
/// incomplete.
#[test]
fn very_many_make_an_answer_incomplete() {
    let mut text = String::new();
    for n in 0..300 {
        text += &format!("<http://e/same{n}> {LABEL} \"shared label\" .\n");
    }
    for n in 0..100 {
        text += &format!("<http://e/few{n}> {LABEL} \"some label\" .\n");
    }
    for n in 0..1700 {
        text += &format!("<http://e/many{n}> {LABEL} \"number {n} of very many\" .\n");
    }
    for indexed in [true, false] {
        let world = World::cut(&text, indexed, sharding(3, Placement::Hash));
        let db = opened(&world.store());
        prepared(&db);
        let shared = search(&db, "shared", false);
        assert!(!shared.complete && shared.found.len() == 200, "{indexed}");
        let some = search(&db, "some", false);
        assert!(some.complete && some.found.len() == 100, "{indexed}");
        let many = search(&db, "very man", false);
        assert!(!many.complete && many.found.len() == 200, "{indexed}");
        let right = |m: &str| m.ends_with(" of very many");
        assert!(many.found.iter().all(|f| right(&f.matched)));
        let one = search(&db, "number 1234 very", false);
        assert!(one.complete && names(&one) == ["many1234"], "{indexed}");
    }
}

#[test]
fn limits_hold_over_shards() {
    let mut rng = Rng(5);
    let model = Model::random(&mut rng, 60, 300);
    for indexed in [true, false] {
        let world = World::cut(&model.trig(), indexed, sharding(3, Placement::Range));
        let db = opened(&world.store());
        let with = |query: QueryOptions| LabelOptions::default().with_query(query);
        let cancel = CancelToken::new();
        cancel.cancel();
        let cancelled = with(QueryOptions::default().with_cancel(cancel));
        let e = db.search(&Search::new("new").with_labels(cancelled));
        assert!(matches!(e, Err(Error::Cancelled)), "{e:?}");
        for bytes in [100, 1000, 3000] {
            let little = with(QueryOptions::default().with_memory(MemoryBudget::new(bytes)));
            let e = db.search(&Search::new("new").with_labels(little));
            assert!(matches!(e, Err(Error::Limit(_))), "{bytes}: {e:?}");
        }
        let budget = MemoryBudget::new(16 << 20);
        let enough = with(QueryOptions::default().with_memory(budget.clone()));
        let found = db.search(&Search::new("new").with_labels(enough)).unwrap();
        assert!(!found.found.is_empty());
        assert_eq!(budget.used(), 0);
        // Without time, the result says that it is incomplete.
        let asked = Search::new("new").with_patience(Duration::ZERO);
        assert!(!db.search(&asked).unwrap().complete);
        let two = db.search(&Search::new("new").with_limit(2)).unwrap();
        assert_eq!(two.found.len(), 2);
    }
}

#[test]
fn damage_in_a_shard_is_found_and_named() {
    let mut rng = Rng(23);
    let model = Model::random(&mut rng, 60, 300);
    let world = World::cut(&model.trig(), true, sharding(3, Placement::Hash));
    const FILE: &str = "shard-1/index-text.jd";
    let path = world.store().join(FILE);
    let sound = std::fs::read(&path).unwrap();
    let mut refused = 0;
    for _ in 0..30 {
        let mut bad = sound.clone();
        bad[rng.below(sound.len())] ^= 1 << rng.below(8);
        std::fs::write(&path, &bad).unwrap();
        let report = Database::check_with(world.store(), &texts()).unwrap();
        assert!(report.damages.iter().any(|d| d.file == FILE));
        let eager = Database::open_with(world.store(), &options().with_verify(Verify::Eager));
        let e = eager.err().expect("damage").to_string();
        assert!(e.contains(FILE), "{e}");
        match Database::open_with(world.store(), &options()) {
            Ok(db) => match ask(&db, "new", &QueryOptions::default()) {
                Ok(found) => assert!(found.complete),
                Err(Error::Shard { shard: 1, message }) => {
                    assert!(message.contains(FILE), "{message}");
                    refused += 1;
                }
                Err(e) => panic!("{e}"),
            },
            Err(e) => assert!(e.to_string().contains(FILE), "{e}"),
        }
    }
    assert!(refused > 10, "{refused}");
    // A missing index, and an index of another shard.
    std::fs::remove_file(&path).unwrap();
    assert!(Database::open_with(world.store(), &options()).is_err());
    std::fs::copy(world.store().join("shard-0/index-text.jd"), &path).unwrap();
    assert!(Database::open_with(world.store(), &options()).is_err());
    std::fs::write(&path, &sound).unwrap();
    assert!(
        Database::check_with(world.store(), &texts())
            .unwrap()
            .is_sound()
    );
}

/// A shard with an index does not belong to a store loaded without one, although the index does not change ids.
#[test]
fn a_shard_with_an_index_is_not_of_a_store_without_one() {
    let mut rng = Rng(29);
    let model = Model::random(&mut rng, 40, 100);
    let worlds = [true, false, true]
        .map(|indexed| World::cut(&model.trig(), indexed, sharding(2, Placement::Range)));
    let read = |n: usize, file: &str| std::fs::read(worlds[n].store().join(file)).unwrap();
    assert_eq!(read(0, "cluster.jd"), read(2, "cluster.jd"));
    assert_ne!(read(0, "cluster.jd"), read(1, "cluster.jd"));
    for shard in 0..2 {
        let file = format!("shard-{shard}/index-text.jd");
        assert!(read(0, &file) == read(2, &file));
    }
    let epoch = |n: usize| opened(&worlds[n].store()).snapshot().base().epoch();
    assert_eq!(epoch(0), epoch(1));
    let [from, to] = [1, 0].map(|n: usize| worlds[n].store().join("shard-1"));
    std::fs::remove_dir_all(&to).unwrap();
    std::fs::rename(from, &to).unwrap();
    let e = Database::open_with(worlds[0].store(), &options()).err();
    let e = e.expect("a shard of another load").to_string();
    assert!(e.contains("was not loaded together with the others"), "{e}");
}

/// Indexes that answer conditions of queries are not supported over shards.
#[test]
fn other_indexes_are_refused() {
    struct Other;
    impl Index for Other {
        fn name(&self) -> &str {
            "other"
        }

        fn build(&self, _: &Terms<'_>, _: &mut IndexWriter) -> Result<()> {
            Ok(())
        }

        fn open(
            &self,
            _: Option<Arc<IndexFile>>,
            _: &jindou::index::Dictionary,
        ) -> Result<Box<dyn OpenIndex>> {
            Err(Error::Internal("never opened".into()))
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let sources = jindou::parse::Sources::builder()
        .text(
            "a.nt",
            b"<a:a> <a:b> <a:c> .".to_vec(),
            jindou::parse::Format::NTriples,
        )
        .build()
        .unwrap();
    let options = LoadOptions::default()
        .with_sharding(Some(Sharding::new(2)))
        .with_indexes(Indexes::new().with(Other).unwrap());
    let dir = folder.path().join("store");
    let e = Database::load(dir, &sources, &options, &Progress::default()).unwrap_err();
    assert!(e.to_string().contains("without the index other"), "{e}");
}

/// How a shard answers from some request on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    Nothing,
    /// A reply to another request.
    Nonsense,
    /// Terms of other shards, more end offsets than terms, or offsets that do not fit.
    Unfit(usize),
    /// Replies each of which says that more follow.
    Endless,
    /// Terms without the words, and subjects that do not exist.
    Wrong,
}

/// Shards that answer some requests and then fail.
struct Flaky {
    inner: Arc<dyn ShardClient>,
    left: AtomicUsize,
    asked: AtomicUsize,
    says: Says,
}

impl Far for Flaky {
    fn post(&self, messages: Vec<(u32, Vec<u8>)>, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        self.inner.post(messages, cancel)
    }
}

impl ShardClient for Flaky {
    fn ask(&self, requests: &[(u32, ShardRequest)], cancel: &CancelToken) -> Result<Vec<Reply>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let left = |n: usize| n.checked_sub(1);
        let order = Ordering::SeqCst;
        if self.left.fetch_update(order, order, left).is_ok() {
            return self.inner.ask(requests, cancel);
        }
        let (ids, subjects, bytes) = (vec![u32::MAX], vec![u32::MAX, 0], b"\x01zebra".to_vec());
        let words = |ids: Vec<u32>, ends: Vec<u32>, more: bool| Reply::Words {
            subject_ends: ids.iter().map(|_| 2).collect(),
            ids,
            ends,
            bytes: bytes.clone(),
            subjects: subjects.clone(),
            cut: false,
            more,
            next: 0,
        };
        let mut replies = match self.says {
            Says::Nothing => {
                return Err(Error::shard(requests[0].0, "it is away"));
            }
            Says::Nonsense => return Ok(requests.iter().map(|_| Reply::Objects(9)).collect()),
            _ => self.inner.ask(requests, cancel)?,
        };
        for reply in &mut replies {
            let Reply::Words {
                ids: own,
                subjects,
                ends,
                bytes,
                subject_ends,
                more,
                ..
            } = reply
            else {
                continue;
            };
            match self.says {
                Says::Unfit(0) => *reply = words(ids.clone(), vec![6], false),
                Says::Unfit(1) => ends.push(0),
                Says::Unfit(2) => bytes.push(0),
                Says::Unfit(3) => subject_ends.push(0),
                Says::Unfit(4) => subjects.push(1),
                Says::Unfit(_) => own.push(1),
                Says::Endless => *more = true,
                _ => {
                    bytes.iter_mut().skip(1).for_each(|b| *b = b'-');
                    subjects.iter_mut().for_each(|s| *s = u32::MAX);
                }
            }
        }
        Ok(replies)
    }
}

/// Each request of a search fails once: the search returns an error that names the shard, and the next search succeeds.
#[test]
fn a_shard_that_fails_fails_the_search() {
    let mut rng = Rng(31);
    let model = Model::random(&mut rng, 60, 300);
    let text = data(&model, &mut rng);
    let questions = ["new", "be", "http://e/Class1", "knows"];
    let mut failures = 0;
    for (n, says) in [Says::Nothing, Says::Nonsense].into_iter().enumerate() {
        for indexed in [true, false] {
            let (world, flaky, db) = flaky(&text, indexed, n as u32, says);
            for words in questions {
                let query = QueryOptions::default().with_union_default(true);
                let right = ask(&db, words, &query).unwrap();
                for left in 0.. {
                    flaky.left.store(left, Ordering::SeqCst);
                    let got = ask(&db, words, &query);
                    flaky.left.store(usize::MAX, Ordering::SeqCst);
                    assert_eq!(ask(&db, words, &query).unwrap(), right);
                    match got {
                        Ok(got) => {
                            assert_eq!(got, right);
                            break;
                        }
                        Err(Error::Shard { shard, .. }) => assert!(shard < 3),
                        Err(e) => panic!("{e}"),
                    }
                    failures += 1;
                }
            }
            drop(world);
        }
    }
    assert!(failures > 60, "{failures}");
}

fn flaky(text: &str, indexed: bool, home: u32, says: Says) -> (World, Arc<Flaky>, Database) {
    let world = World::cut(text, indexed, sharding(3, Placement::Hash));
    let mut made = None;
    let through = |inner: Arc<dyn ShardClient>| {
        let flaky = Arc::new(Flaky {
            inner,
            left: AtomicUsize::new(usize::MAX),
            asked: AtomicUsize::new(0),
            says,
        });
        made = Some(Arc::clone(&flaky));
        flaky as Arc<dyn ShardClient>
    };
    let db = Database::open_shards_at(world.store(), &options(), home, through).unwrap();
    (world, made.unwrap(), db)
}

#[test]
fn a_shard_that_says_what_is_wrong_is_not_believed() {
    let mut rng = Rng(37);
    let model = Model::random(&mut rng, 60, 300);
    let unfit = (0..6).map(Says::Unfit);
    for says in unfit.chain([Says::Endless, Says::Wrong]) {
        let (_world, flaky, db) = flaky(&model.trig(), true, 1, says);
        flaky.left.store(0, Ordering::SeqCst);
        let begun = Instant::now();
        let asked = Search::new("new").with_patience(Duration::from_millis(300));
        let got = db.search(&asked);
        assert!(begun.elapsed() < Duration::from_secs(20), "{says:?}");
        match (says, got) {
            (Says::Unfit(_), Err(Error::Shard { message, .. })) => {
                assert!(message.contains("does not match its request"), "{message}");
            }
            (Says::Endless, Ok(got)) => assert!(!got.complete),
            (Says::Wrong, Ok(got)) => assert!(got.found.is_empty()),
            (_, got) => panic!("{says:?}: {got:?}"),
        }
    }
}

/// The number of rounds does not depend on how many resources are found.
#[test]
fn rounds_do_not_grow_with_what_is_found() {
    let mut text = String::new();
    for n in 0..200 {
        text += &format!(
            "<http://e/Thing{n}> {LABEL} \"some label {n}\"@en, \"ein Name {n}\"@de ; a <http://e/Class{}> ;
            <http://xmlns.com/foaf/0.1/name> \"name {n}\" ; <http://e/p> <http://e/Thing{}> .\n",
            n % 7,
            n / 2
        );
    }
    let (_world, flaky, db) = flaky(&text, true, 0, Says::Nothing);
    let found = ask(&db, "some label", &QueryOptions::default()).unwrap();
    assert_eq!((found.found.len(), found.complete), (200, true));
    let rounds = flaky.asked.load(Ordering::SeqCst);
    assert!(rounds <= 10, "{rounds} rounds");
    // Labels also take few rounds: for terms, for neighbour lists and for texts.
    let iris: Vec<String> = (0..200).map(|n| format!("http://e/Thing{n}")).collect();
    flaky.asked.store(0, Ordering::SeqCst);
    let labels = db.labels(&iris, &LabelOptions::default()).unwrap();
    assert!(labels.iter().all(Option::is_some));
    let rounds = flaky.asked.load(Ordering::SeqCst);
    assert!(rounds <= 4, "{rounds} rounds");
}
