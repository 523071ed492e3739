//! Random update requests, compared with a set of quads after each step: the database must hold the same quads, also in
//! earlier snapshots, during and after merges, and after reopening.

mod model;
mod nesting;

use crate::quads;
use jindou::testing::{load_nquads, load_nquads_cut};
use jindou::{
    Access, BackupTarget, CancelToken, Database, Durability, Error, Journal, MergeOptions,
    OpenOptions, Placement, Progress, QueryOptions, ReclusterOptions, RestoreTo, ShardMode,
    Sharding, Ticket, UpdateOptions,
};
use jindou_model::{VertexId, term};
use jindou_store::Snapshot;
use jindou_testing::{Rng, from_environment};
pub(crate) use model::Model;
use oxrdf::{Dataset, NamedNode, NamedOrBlankNodeRef, Quad, Term};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

const GRAPHS: usize = 3;

/// Writes random requests.
struct Writer<'a> {
    rng: &'a mut Rng,
    text: String,
    /// Number of labels used so far: blank nodes of different INSERT DATA operations must have different labels.
    labels: usize,
}

impl Writer<'_> {
    fn vertex(&mut self) -> String {
        match self.rng.below(12) {
            0 => format!("<http://e/p{}>", self.rng.below(3)),
            1 => format!("<http://e/g{}>", self.rng.below(GRAPHS)),
            2 => format!("<http://e/new{}>", self.rng.below(40)),
            _ => format!("<http://e/v{}>", self.rng.below(6)),
        }
    }

    fn predicate(&mut self) -> String {
        match self.rng.below(16) {
            0 => "a".into(),
            1 => format!("<http://e/q{}>", self.rng.below(12)),
            _ => format!("<http://e/p{}>", self.rng.below(3)),
        }
    }

    fn object(&mut self) -> String {
        match self.rng.below(8) {
            0 => self.rng.below(5).to_string(),
            1 => format!("\"s{}\"", self.rng.below(4)),
            2 => format!("\"s{}\"@en", self.rng.below(3)),
            _ => self.vertex(),
        }
    }

    fn graph(&mut self) -> String {
        format!("<http://e/g{}>", self.rng.below(GRAPHS))
    }

    /// A variable with a probability of `percent`, otherwise the term that `other` makes.
    fn or_variable(&mut self, percent: usize, other: impl FnOnce(&mut Self) -> String) -> String {
        if self.rng.chance(percent) {
            format!("?x{}", self.rng.below(4))
        } else {
            other(self)
        }
    }

    fn data(&mut self, blanks: bool) -> String {
        let mut out = String::new();
        self.labels += 1;
        let n = self.labels;
        for _ in 0..1 + self.rng.below(4) {
            let blank = |w: &mut Self| blanks && w.rng.chance(4);
            let s = if blank(self) {
                format!("_:a{n}")
            } else {
                self.vertex()
            };
            let (p, o) = (self.predicate(), self.object());
            let o = if blank(self) { format!("_:b{n}") } else { o };
            let _ = match self.rng.chance(50) {
                true => write!(out, "GRAPH {} {{ {s} {p} {o} }} ", self.graph()),
                false => write!(out, "{s} {p} {o} . "),
            };
        }
        out
    }

    /// Triples with variables: a template, or with `match_` a pattern, which has more variables.
    fn quads(&mut self, blanks: bool, match_: bool) -> String {
        let mut out = String::new();
        for _ in 0..1 + self.rng.below(2) {
            let share = if match_ { 65 } else { 60 };
            let s = self.or_variable(share, Self::vertex);
            let s = if blanks && self.rng.chance(6) {
                "_:t".into()
            } else {
                s
            };
            let p = self.or_variable(if match_ { 40 } else { 20 }, Self::predicate);
            let o = self.or_variable(share, Self::object);
            let _ = match self.rng.below(3) {
                0 => {
                    let g = self.or_variable(50, Self::graph);
                    write!(out, "GRAPH {g} {{ {s} {p} {o} }} ")
                }
                _ => write!(out, "{s} {p} {o} . "),
            };
        }
        out
    }

    fn pattern(&mut self) -> String {
        let mut out = self.quads(false, true);
        match self.rng.below(8) {
            0 => {
                let more = self.quads(false, true);
                let _ = write!(out, "OPTIONAL {{ {more} }} ");
            }
            1 => {
                let other = self.quads(false, true);
                out = format!("{{ {out} }} UNION {{ {other} }} ");
            }
            2 => {
                let v = self.rng.below(4);
                let _ = write!(out, "FILTER(isIRI(?x{v})) ");
            }
            3 => {
                // An IRI that is in no store, and one that may be in it.
                let n = self.rng.below(50);
                let _ = write!(
                    out,
                    "BIND(IRI(\"http://e/made{n}\") AS ?x9) BIND(1 + {} AS ?x8) ",
                    n % 4
                );
            }
            4 => {
                let not = self.quads(false, true);
                let _ = write!(out, "MINUS {{ {not} }} ");
            }
            _ => {}
        }
        out
    }

    fn operation(&mut self) {
        let text = match self.rng.below(24) {
            0..=7 => format!("INSERT DATA {{ {}}}", self.data(true)),
            8 | 9 => format!("DELETE DATA {{ {}}}", self.data(false)),
            10 | 11 => {
                let pattern = self.quads(false, true);
                format!("DELETE WHERE {{ {pattern}}}")
            }
            12..=18 => {
                let mut out = String::new();
                if self.rng.chance(20) {
                    let _ = write!(out, "WITH {} ", self.graph());
                }
                let both = self.rng.below(4);
                if both < 3 {
                    let _ = write!(out, "DELETE {{ {}}} ", self.quads(false, false));
                }
                if both > 0 {
                    let mut template = self.quads(true, false);
                    if self.rng.chance(15) {
                        template += "?x9 <http://e/p1> ?x8 . ";
                    }
                    let _ = write!(out, "INSERT {{ {template}}} ");
                }
                if self.rng.chance(20) {
                    let (a, b) = (self.graph(), self.graph());
                    let _ = write!(out, "USING {a} USING NAMED {b} ");
                }
                let _ = write!(out, "WHERE {{ {}}}", self.pattern());
                out
            }
            19 => format!("CLEAR GRAPH {}", self.graph()),
            20 => ["CLEAR DEFAULT", "DROP NAMED", "DROP ALL", "DROP DEFAULT"][self.rng.below(4)]
                .into(),
            n => {
                let verb = ["ADD", "COPY", "MOVE"][n - 21];
                let mut end = || match self.rng.below(4) {
                    0 => "DEFAULT".to_owned(),
                    _ => self.graph(),
                };
                format!("{verb} SILENT {} TO {}", end(), end())
            }
        };
        if !self.text.is_empty() {
            self.text += " ;\n";
        }
        self.text += &text;
    }
}

fn show(d: &Dataset) -> String {
    let mut all: Vec<String> = d.iter().map(|q| q.to_string()).collect();
    all.sort();
    all.join("\n")
}

fn opened(dir: &Path) -> Database {
    let options = OpenOptions::default()
        .with_access(Access::Write)
        .with_durability(Durability::None);
    Database::open_with(dir, &options).expect("the store")
}

/// Backs the store up, and in half of the cases replaces it by the restored backup.
fn backed_up(db: Database, dir: &Path, rng: &mut Rng) -> Database {
    let (cancel, progress) = (CancelToken::new(), Progress::default());
    let place = dir.join("backups");
    let target = BackupTarget::folder(place.to_str().unwrap()).unwrap();
    db.backup(&target, &cancel, &progress).expect("a backup");
    if rng.below(2) == 0 {
        return db;
    }
    drop(db);
    let (store, made) = (dir.join("store"), dir.join("made"));
    Database::restore(&target, &made, RestoreTo::Newest, &cancel, &progress).expect("a store");
    std::fs::remove_dir_all(&store).unwrap();
    std::fs::rename(&made, &store).unwrap();
    opened(&store)
}

/// Starts a merge on a thread of its own, so that updates continue meanwhile.
fn merging(db: &Database, generations: usize) -> std::thread::JoinHandle<()> {
    let db = db.clone();
    std::thread::spawn(move || {
        let options = MergeOptions::default().with_generations(generations);
        db.merge(&options, &Progress::default()).expect("a merge");
    })
}

/// Options for several shards, with blocks of one id; `None` for one shard.
fn cut(shards: u32) -> Option<Sharding> {
    let sharding = Sharding::new(shards).with_placement(match shards {
        2 | 5 => Placement::Hash,
        _ => Placement::Range,
    });
    (shards > 1).then(|| sharding.with_block_shift(Some(0)))
}

/// The classes of all graphs with their numbers of instances, sorted; blank nodes are written without labels.
fn classes(db: &Database) -> Vec<(String, u64)> {
    let snapshot = db.snapshot();
    let mut all = Vec::new();
    for (class, members) in snapshot.classes() {
        let mut bytes = Vec::new();
        assert!(snapshot.term(VertexId(class), &mut bytes));
        all.push((without_label(&term::decode(&bytes).unwrap()), members));
    }
    all.sort();
    all
}

fn classes_of(data: &Dataset) -> Vec<(String, u64)> {
    let mut members: BTreeMap<String, (String, BTreeSet<String>)> = BTreeMap::new();
    for q in data.quads_for_predicate(oxrdf::vocab::rdf::TYPE) {
        let class = q.object.into_owned();
        let entry = members.entry(class.to_string());
        let entry = entry.or_insert_with(|| (without_label(&class), BTreeSet::new()));
        entry.1.insert(q.subject.to_string());
    }
    let counted = members.into_values();
    let mut all: Vec<_> = counted.map(|(c, m)| (c, m.len() as u64)).collect();
    all.sort();
    all
}

fn without_label(term: &Term) -> String {
    match term {
        Term::BlankNode(_) => "_:".to_owned(),
        term => term.to_string(),
    }
}

/// A random request of one to four operations. Applies it to the model as well.
pub(crate) fn random_request(rng: &mut Rng, model: &mut Model) -> String {
    let mut w = Writer {
        rng,
        text: String::new(),
        labels: 0,
    };
    for _ in 0..[1, 1, 1, 2, 4][w.rng.below(5)] {
        w.operation();
    }
    let text = w.text;
    model.run(&text);
    // Large models only make the test slow.
    if model.0.len() > 300 {
        *model = Model::default();
        return "DROP ALL".to_owned();
    }
    text
}

fn random_steps(seed: u64, steps: usize, shards: u32) {
    let mut rng = Rng::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let mut model = Model::default();
    let mut lines = String::new();
    if !seed.is_multiple_of(4) {
        for q in jindou_testing::quads(&mut rng) {
            let _ = writeln!(lines, "{q} .");
            model.0.insert(&q);
        }
    }
    load_nquads_cut(&store, &lines, cut(shards)).unwrap();
    let db = opened(&store);
    let mut run = RandomRun {
        seed,
        shards,
        rng,
        dir,
        old: (db.snapshot(), model.clone()),
        db,
        before: model.clone(),
        model,
        text: String::new(),
        step: 0,
        merges: None,
    };
    for step in 0..steps {
        run.step = step;
        run.update();
        run.maintain();
    }
    run.wait_for_merge();
}

/// Applies random updates to a store and to a set of quads, with random maintenance of the store in between.
struct RandomRun {
    seed: u64,
    shards: u32,
    rng: Rng,
    dir: tempfile::TempDir,
    db: Database,
    model: Model,
    /// An earlier snapshot, and its quads.
    old: (Snapshot, Model),
    /// The quads before the last update.
    before: Model,
    /// The last update.
    text: String,
    step: usize,
    merges: Option<std::thread::JoinHandle<()>>,
}

impl RandomRun {
    fn fail(&self, what: &str, db: &Database) -> ! {
        panic!(
            "seed {}, step {}: {what}\n{}\n--- before:\n{}\n--- want:\n{}\n--- got:\n{}",
            self.seed,
            self.step,
            self.text,
            show(&self.before.0),
            show(&self.model.0),
            show(&quads::all_quads(db))
        )
    }

    fn check_quads(&self, when: &str) {
        if !quads::same(&quads::all_quads(&self.db), &self.model.0) {
            self.fail(&format!("another set {when}"), &self.db);
        }
    }

    fn wait_for_merge(&mut self) {
        let merge = self.merges.take();
        merge.map_or(Ok(()), |m| m.join()).expect("merged");
    }

    fn update(&mut self) {
        self.before = self.model.clone();
        self.text = random_request(&mut self.rng, &mut self.model);
        let (db, model) = (&self.db, &self.model);
        let options = UpdateOptions::default().with_threads(1);
        let report = match db.update(&self.text, &options) {
            Ok(report) => report,
            Err(e) => self.fail(&e.to_string(), db),
        };
        let got = quads::all_quads(db);
        if got.len() != model.0.len()
            || (self.step.is_multiple_of(4) && !quads::same(&got, &model.0))
        {
            self.fail("another set of quads", db);
        }
        // A merge that runs meanwhile frees terms, in transactions of its own.
        let (reported, now) = (report.snapshot, db.snapshot_number());
        if reported > now || (reported < now && self.merges.is_none()) {
            self.fail("another snapshot was reported", db);
        }
        if db.quads() != model.0.len() as u64 {
            self.fail(&format!("{} quads are counted", db.quads()), db);
        }
        if self.step % 4 == 1 && classes(db) != classes_of(&model.0) {
            self.fail(&format!("other classes: {:?}", classes(db)), db);
        }
    }

    /// Randomly reopens the store, reads an old snapshot, merges, reclusters, restores a backup, or runs a query.
    fn maintain(&mut self) {
        match self.rng.below(20) {
            0 => self.open_again(),
            1 => {
                let now = Database::of_snapshot(self.old.0.clone());
                if !quads::same(&quads::all_quads(&now), &self.old.1.0) {
                    self.fail("an old snapshot changed", &now);
                }
                self.old = (self.db.snapshot(), self.model.clone());
            }
            6 => {
                self.wait_for_merge();
                self.merges = Some(merging(&self.db, 1 + self.rng.below(5)));
                if self.rng.chance(50) {
                    self.wait_for_merge();
                    self.check_quads("after a merge");
                }
            }
            7 if self.shards == 1 && self.rng.chance(50) => {
                self.wait_for_merge();
                let options = ReclusterOptions::default()
                    .with_memory(32 << 20)
                    .with_threads(1);
                if let Err(e) = self.db.recluster(&options, &Progress::default()) {
                    self.fail(&e.to_string(), &self.db);
                }
                self.check_quads("after reclustering");
            }
            8 if self.shards == 1 && self.rng.chance(30) => {
                self.wait_for_merge();
                let db = std::mem::replace(&mut self.db, Database::in_memory());
                self.db = backed_up(db, self.dir.path(), &mut self.rng);
                self.check_quads("after a backup was restored");
            }
            2..=5 => self.ask(),
            _ => {}
        }
    }

    fn open_again(&mut self) {
        self.wait_for_merge();
        let store = self.dir.path().join("store");
        if self.rng.chance(30) {
            let report = Database::check(&store).unwrap();
            let (seed, step) = (self.seed, self.step);
            assert!(
                report.is_sound(),
                "seed {seed}, step {step}: {:?}",
                report.damages
            );
        }
        drop(std::mem::replace(&mut self.db, Database::in_memory()));
        self.db = opened(&store);
        self.check_quads("after reopening");
    }

    fn ask(&mut self) {
        let all: Vec<Quad> = self.model.0.iter().map(|q| q.into_owned()).collect();
        let query = jindou_testing::query(&mut self.rng, &all);
        let Ok(want) = jindou_testing::answer(&all, &query.oracle) else {
            return;
        };
        for mode in modes(self.shards, &mut self.rng) {
            let q = QueryOptions::default()
                .with_threads(1)
                .with_shard_mode(mode);
            let got = match self.db.query_with(&query.text, &q) {
                Ok(jindou::Answer::Boolean(b)) => vec![b.to_string()],
                Ok(a) => a.solutions().iter().map(|_| String::new()).collect(),
                Err(e) => self.fail(&format!("{}, {mode:?}: {e}", query.text), &self.db),
            };
            if got.len() != want.bag().len() {
                let what = format!("{} has {} rows, {mode:?}", query.text, got.len());
                self.fail(&what, &self.db);
            }
        }
    }
}

/// The ways in which queries are run: one without shards, two with shards.
fn modes(shards: u32, rng: &mut Rng) -> Vec<ShardMode> {
    match shards {
        1 => vec![ShardMode::Dynamic],
        _ => {
            let other = [ShardMode::InPlace, ShardMode::Dynamic][rng.below(2)];
            vec![ShardMode::Fork, other]
        }
    }
}

#[test]
fn random_updates_agree_with_a_set_of_quads() {
    for seed in 0..16 {
        random_steps(seed, 60, 1);
    }
}

#[test]
fn random_updates_of_shards_agree_with_a_set_of_quads() {
    for seed in 100..114 {
        random_steps(seed, 60, 2 + (seed % 6) as u32);
    }
}

/// 100,000 steps; `JINDOU_SEED` sets the first seed.
#[test]
#[ignore = "long: some 20 minutes"]
fn a_hundred_thousand_random_steps() {
    many_random_steps(|_| 1);
}

/// As above, over 2 to 7 shards.
#[test]
#[ignore = "long: some 40 minutes"]
fn a_hundred_thousand_random_steps_over_shards() {
    many_random_steps(|seed| 2 + (seed % 6) as u32);
}

fn many_random_steps(shards: fn(u64) -> u32) {
    let first = from_environment("JINDOU_SEED", 1000);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            scope.spawn(move || {
                for seed in (first + thread..first + 250).step_by(2) {
                    random_steps(seed, 400, shards(seed));
                }
            });
        }
    });
}

fn empty() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    load_nquads(&store, "").unwrap();
    (dir, store)
}

#[test]
fn one_process_writes_and_others_read() {
    let (_dir, store) = empty();
    let db = opened(&store);
    let insert = |db: &Database, n: u32| {
        let text = format!("INSERT DATA {{ <http://e/s{n}> <http://e/p> {n} }}");
        db.update(&text, &UpdateOptions::default())
    };
    insert(&db, 1).unwrap();
    // A second process may read the store as it is now; its updates are refused with the reason.
    let second = Database::open(&store).unwrap();
    assert_eq!(quads::all_quads(&second).len(), 1);
    assert!(matches!(insert(&second, 2), Err(Error::ReadOnly(_))));
    let write = OpenOptions::default().with_access(Access::Write);
    assert!(matches!(
        Database::open_with(&store, &write),
        Err(Error::InUse { .. })
    ));
    insert(&db, 3).unwrap();
    assert_eq!(quads::all_quads(&second).len(), 1);
    drop((db, second));
    let db = Database::open(&store).unwrap();
    assert_eq!(db.recovery().map(|r| r.records), Some(2));
    assert_eq!(insert(&db, 2).unwrap().snapshot, 3);
    assert_eq!(quads::all_quads(&db).len(), 3);
}

/// A journal that fails while `bad` is set: the record that is being written, and all later ones until it is reset.
#[derive(Default)]
struct Failing {
    bad: AtomicBool,
    state: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    last: u64,
    failed: bool,
    undecided: VecDeque<Arc<OnceLock<bool>>>,
}

struct Late {
    journal: Arc<Failing>,
    outcome: Arc<OnceLock<bool>>,
}

fn full() -> Error {
    Error::io("log", std::io::ErrorKind::StorageFull.into())
}

struct Handle(Arc<Failing>);

impl Journal for Handle {
    fn append(&self, number: u64, _: Vec<u8>) -> jindou::Result<Box<dyn Ticket>> {
        let mut state = self.0.state.lock().unwrap();
        if state.failed {
            return Err(full());
        }
        assert_eq!(number, state.last + 1);
        state.last = number;
        let outcome = Arc::new(OnceLock::new());
        state.undecided.push_back(Arc::clone(&outcome));
        let journal = Arc::clone(&self.0);
        Ok(Box::new(Late { journal, outcome }))
    }

    fn reset(&self, number: u64) -> jindou::Result<()> {
        let mut state = self.0.state.lock().unwrap();
        assert!(state.undecided.is_empty());
        (state.last, state.failed) = (number, false);
        Ok(())
    }
}

impl Ticket for Late {
    fn wait(self: Box<Self>) -> jindou::Result<()> {
        std::thread::sleep(std::time::Duration::from_millis(1));
        let mut state = self.journal.state.lock().unwrap();
        // Decides the outcomes of earlier records first, in order, and then this one's.
        while self.outcome.get().is_none() {
            let next = state.undecided.pop_front().expect("this one");
            state.failed |= self.journal.bad.load(Ordering::SeqCst);
            next.set(!state.failed).unwrap();
        }
        if state.failed {
            for next in std::mem::take(&mut state.undecided) {
                next.set(false).unwrap();
            }
        }
        if *self.outcome.get().unwrap() {
            Ok(())
        } else {
            Err(full())
        }
    }
}

#[test]
fn what_the_journal_refuses_never_was() {
    let (_dir, store) = empty();
    let journal = Arc::new(Failing::default());
    let bad = &journal.bad;
    let snapshot = Database::open(&store).unwrap().snapshot();
    let db = Database::with_journal(snapshot, Box::new(Handle(Arc::clone(&journal))));
    let done: Vec<(u32, bool)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|client| {
                let db = &db;
                scope.spawn(move || {
                    let options = UpdateOptions::default().with_threads(1);
                    (0..100)
                        .map(|i| {
                            let n = client * 1000 + i;
                            let text =
                                format!("INSERT DATA {{ <http://e/s{n}> <http://e/p> {n} }}");
                            (n, db.update(&text, &options).is_ok())
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for i in 0..20 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            bad.store(i % 2 == 0, Ordering::SeqCst);
        }
        bad.store(false, Ordering::SeqCst);
        clients
            .into_iter()
            .flat_map(|c| c.join().unwrap())
            .collect()
    });
    let there: Dataset = quads::all_quads(&db);
    let mut refused = 0;
    for (n, ok) in &done {
        let name = NamedNode::new_unchecked(format!("http://e/s{n}"));
        let found = there.quads_for_subject(NamedOrBlankNodeRef::from(name.as_ref()));
        assert_eq!(found.count(), usize::from(*ok), "{n}");
        refused += usize::from(!ok);
    }
    assert!(refused > 0 && refused < done.len(), "{refused}");
    assert_eq!(there.len(), done.len() - refused);
    assert_eq!(db.snapshot().number() as usize, done.len() - refused);
}
