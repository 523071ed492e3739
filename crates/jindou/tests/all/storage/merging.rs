//! Merging while a store is used: with disks that fail, processes that are killed, old snapshots, and readers in other
//! processes.

use crate::quads;
use jindou::testing::load_nquads_cut;
use jindou::{
    Access, Database, Durability, Error, Files, MergeOptions, MergePolicy, OpenOptions, Progress,
    Sharding, UpdateOptions,
};
use jindou_log::{Directory, File};
use jindou_store::directory::Manifest;
use jindou_store::shard::{Cluster, manifest_of};
use jindou_testing::{Rng, from_environment};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn opened(dir: &Path, access: Access) -> Database {
    let options = OpenOptions::default()
        .with_access(access)
        .with_durability(Durability::None);
    Database::open_with(dir, &options).expect("the store")
}

/// The quad that update `n` adds.
fn quad(n: u64) -> String {
    let graph = if n.is_multiple_of(4) {
        format!("<http://e/g{}> ", n % 5)
    } else {
        String::new()
    };
    let predicate = match n % 6 {
        5 => "http://www.w3.org/1999/02/22-rdf-syntax-ns#type".to_owned(),
        p => format!("http://e/p{p}"),
    };
    let (s, o) = (n * 7 % 90 + n / 1000, n % 50);
    format!("<http://e/s{s}> <{predicate}> <http://e/o{o}> {graph}.")
}

fn as_data(quad: &str) -> String {
    let terms: Vec<&str> = quad.trim_end_matches('.').split_whitespace().collect();
    match terms[..] {
        [s, p, o] => format!("{s} {p} {o} ."),
        [s, p, o, g] => format!("GRAPH {g} {{ {s} {p} {o} }}"),
        _ => panic!("{quad}"),
    }
}

/// The quad that update `n` removes, if any.
fn removed(n: u64) -> Option<String> {
    (n.is_multiple_of(2) && n > 60).then(|| quad(n - 60 + n % 9))
}

fn counter(n: u64) -> String {
    format!("<http://e/c> <http://e/n> \"{n}\" .")
}

/// The text of update `n`. Each update also stores its number, so that a store tells which update was the last.
fn text(n: u64) -> String {
    let mut out = format!("DELETE DATA {{ {} ", as_data(&counter(n - 1)));
    if let Some(q) = removed(n) {
        out += &as_data(&q);
    }
    out + &format!(
        "}} ; INSERT DATA {{ {} {} }}",
        as_data(&counter(n)),
        as_data(&quad(n))
    )
}

/// The quads that a store must have after update `n`.
struct Model {
    n: u64,
    quads: BTreeSet<String>,
}

impl Model {
    fn new() -> Self {
        Self {
            n: 0,
            quads: BTreeSet::new(),
        }
    }

    fn go_to(&mut self, n: u64) {
        assert!(n >= self.n, "the store went back from {} to {n}", self.n);
        while self.n < n {
            self.quads.remove(&counter(self.n));
            self.n += 1;
            if let Some(q) = removed(self.n) {
                self.quads.remove(&q);
            }
            self.quads.insert(counter(self.n));
            self.quads.insert(quad(self.n));
        }
    }

    fn is(&self, db: &Database) -> bool {
        let found: BTreeSet<String> = quads::all_quads(db)
            .iter()
            .map(|q| match q.graph_name.is_default_graph() {
                true => format!("{} {} {} .", q.subject, q.predicate, q.object),
                false => format!("{q} ."),
            })
            .collect();
        found == self.quads
    }
}

fn last(db: &Database) -> u64 {
    let answer = db
        .query("SELECT ?n { <http://e/c> <http://e/n> ?n }")
        .unwrap();
    let numbers: Vec<u64> = answer
        .solutions()
        .iter()
        .filter_map(|row| match &row[0] {
            Some(oxrdf::Term::Literal(l)) => l.value().parse().ok(),
            _ => None,
        })
        .collect();
    assert!(numbers.len() <= 1, "{numbers:?}");
    numbers.first().copied().unwrap_or(0)
}

fn updated(db: &Database, model: &mut Model, count: u64) {
    let options = UpdateOptions::default().with_threads(1);
    for _ in 0..count {
        db.update(&text(model.n + 1), &options).unwrap();
        model.go_to(model.n + 1);
    }
}

fn empty() -> (tempfile::TempDir, PathBuf) {
    empty_cut(1)
}

/// As above, in shards with blocks of one id.
fn empty_cut(shards: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let sharding = (shards > 1).then(|| Sharding::new(shards).with_block_shift(Some(0)));
    load_nquads_cut(&store, "", sharding).unwrap();
    (dir, store)
}

/// Operations on files, of which number `at` fails, and with `for_ever` all later ones too.
struct Faults {
    count: AtomicU64,
    at: u64,
    for_ever: bool,
}

impl Faults {
    fn pass(&self, kind: io::ErrorKind) -> io::Result<()> {
        let n = self.count.fetch_add(1, Ordering::SeqCst);
        if n == self.at || self.for_ever && n > self.at {
            return Err(kind.into());
        }
        Ok(())
    }
}

struct Failing<T> {
    inner: T,
    faults: Arc<Faults>,
}

impl<T> Failing<T> {
    fn pass(&self, kind: io::ErrorKind) -> io::Result<()> {
        self.faults.pass(kind)
    }
}

impl File for Failing<Box<dyn File>> {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if let Err(e) = self.pass(io::ErrorKind::StorageFull) {
            // Half of the bytes are written before the failure.
            let _ = self.inner.write_at(at, &bytes[..bytes.len() / 2]);
            return Err(e);
        }
        self.inner.write_at(at, bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.pass(io::ErrorKind::Other)?;
        self.inner.sync()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.pass(io::ErrorKind::Other)?;
        self.inner.truncate(length)
    }

    fn in_place(&self) -> io::Result<bool> {
        self.inner.in_place()
    }
}

impl Files for Failing<Directory> {
    fn list(&self) -> io::Result<Vec<String>> {
        self.pass(io::ErrorKind::PermissionDenied)?;
        self.inner.list()
    }

    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.inner.read(name, limit)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.pass(io::ErrorKind::StorageFull)?;
        Ok(Box::new(Failing {
            inner: self.inner.create(name)?,
            faults: Arc::clone(&self.faults),
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.inner.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.pass(io::ErrorKind::ReadOnlyFilesystem)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.pass(io::ErrorKind::PermissionDenied)?;
        self.inner.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.pass(io::ErrorKind::Other)?;
        self.inner.sync_directory()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
}

/// Names of a store's files; those of its shards with their folders.
fn names(dir: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("shard-") {
            let own = names(&dir.join(&name)).into_iter();
            all.extend(own.map(|file| format!("{name}/{file}")));
        }
        all.insert(name);
    }
    all
}

/// Names of the files that a store's manifests list.
fn named(dir: &Path) -> BTreeSet<String> {
    let Some(cluster) = Cluster::read(dir).unwrap() else {
        return Manifest::of_store(dir).unwrap().names();
    };
    let mut all = BTreeSet::from(["cluster.jd".to_owned()]);
    for shard in 0..cluster.shards {
        let names = manifest_of(dir, &cluster, shard).unwrap().names();
        all.extend(names.iter().map(|name| format!("shard-{shard}/{name}")));
        all.insert(format!("shard-{shard}"));
    }
    all
}

/// Each operation of a merge fails in turn: the store stays as it was, accepts updates, and can be merged in the end.
#[test]
fn a_merge_that_fails_leaves_the_store_as_it_was() {
    merges_that_fail(1);
}

#[test]
fn a_merge_of_shards_that_fails_leaves_them_as_they_were() {
    merges_that_fail(3);
}

fn merges_that_fail(shards: u32) {
    for for_ever in [false, true] {
        let (_dir, store) = empty_cut(shards);
        let mut db = opened(&store, Access::Write);
        let mut model = Model::new();
        updated(&db, &mut model, 30);
        db.merge(&MergeOptions::default(), &Progress::default())
            .unwrap();
        updated(&db, &mut model, 10);
        let mut failed = 0;
        for at in 0.. {
            let faults = Arc::new(Faults {
                count: AtomicU64::new(0),
                at,
                for_ever,
            });
            let layer = |inner: Directory| -> Box<dyn Files> {
                let faults = Arc::clone(&faults);
                Box::new(Failing { inner, faults })
            };
            let before = names(&store);
            let options = MergeOptions::default().with_threads(1).with_generations(3);
            let merged = db.snapshot().base().merged();
            let result = db.merge_through(&layer, &options, &Progress::default());
            assert!(model.is(&db), "{at}");
            if faults.count.load(Ordering::SeqCst) <= at {
                result.unwrap();
                assert!(failed > 40, "{failed} faults");
                break;
            }
            match result {
                // Only the removal of files that were no longer needed failed.
                Ok(_) => assert!(db.snapshot().base().merged() > merged),
                Err(e) => {
                    failed += 1;
                    assert!(matches!(e, Error::Io { .. }), "{at}: {e}");
                    assert_eq!(db.snapshot().base().merged(), merged);
                    let status = db.merge_status().unwrap();
                    assert_eq!(status.last_failure, Some(e.to_string()));
                    let reader = opened(&store, Access::Read);
                    let now = reader.snapshot().base().merged();
                    assert!(model.is(&reader), "{at}");
                    // The failed operation may be the last sync, after which other processes already see the merged
                    // files.
                    if now == merged && !for_ever {
                        assert!(names(&store).is_subset(&before), "{at}: {e}");
                    }
                }
            }
            let report = Database::check(&store).unwrap();
            assert!(report.is_sound(), "{at}: {:?}", report.damages);
            updated(&db, &mut model, 2);
            if at % 5 == 4 {
                drop(db);
                db = opened(&store, Access::Write);
                assert!(model.is(&db), "{at}");
            }
        }
        drop(db);
        let db = opened(&store, Access::Write);
        assert!(model.is(&db));
        assert_eq!(db.recovery().map(|r| r.records), Some(0));
        let named = named(&store);
        let others = ["lock", "log", "log-end.jd"].map(str::to_owned);
        assert!(
            names(&store)
                .iter()
                .all(|n| named.contains(n) || others.contains(n))
        );
    }
}

#[test]
fn snapshots_stay_and_readers_elsewhere_find_the_store() {
    snapshots_and_readers(1);
}

#[test]
fn snapshots_of_shards_stay_and_readers_elsewhere_find_the_store() {
    snapshots_and_readers(3);
}

fn snapshots_and_readers(shards: u32) {
    let (_dir, store) = empty_cut(shards);
    let db = opened(&store, Access::Write);
    let mut model = Model::new();
    let mut old = vec![];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers = scope.spawn(|| {
            // While the store is merged and its log is trimmed, a reader that opens it always finds all updates.
            let mut opened_times = 0;
            let mut seen = 0;
            while !stop.load(Ordering::SeqCst) || opened_times < 20 {
                let there = opened(&store, Access::Read);
                let n = last(&there);
                assert!(n >= seen);
                seen = n;
                let mut model = Model::new();
                model.go_to(n);
                assert!(model.is(&there));
                opened_times += 1;
            }
        });
        for round in 0..12 {
            updated(&db, &mut model, 15);
            let options = MergeOptions::default().with_generations(2 + round % 3);
            let report = db.merge(&options, &Progress::default()).unwrap();
            assert_eq!(report.snapshot, db.snapshot().base().merged());
            assert_eq!(last(&db), model.n);
            assert!(report.generations < options.generations.max(2));
            assert!(model.is(&db));
            let mut then = Model::new();
            then.go_to(model.n);
            old.push((db.snapshot(), then));
            updated(&db, &mut model, 3);
            let mut then = Model::new();
            then.go_to(model.n);
            old.push((db.snapshot(), then));
        }
        stop.store(true, Ordering::SeqCst);
        readers.join().unwrap();
    });
    for (snapshot, then) in old {
        assert!(then.is(&Database::of_snapshot(snapshot)));
    }
    let again = db.merge(&MergeOptions::default(), &Progress::default());
    assert!(again.unwrap().bytes > 0);
    let nothing = db.merge(&MergeOptions::default(), &Progress::default());
    assert_eq!(nothing.unwrap().bytes, 0);
    let in_memory = Database::of_snapshot(db.snapshot());
    let refused = in_memory.merge(&MergeOptions::default(), &Progress::default());
    assert!(matches!(refused, Err(Error::ReadOnly(_) | Error::Usage(_))));
}

#[test]
fn a_database_merges_by_itself_while_updates_go_on() {
    let (_dir, store) = empty();
    let db = opened(&store, Access::Write);
    let mut model = Model::new();
    let policy = MergePolicy::default().with_edits(40);
    let merges = db
        .merge_in_background(policy, |r| assert!(r.is_ok()))
        .unwrap();
    let begun = Instant::now();
    while db.merge_status().unwrap().done < 2 {
        updated(&db, &mut model, 10);
        assert!(begun.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(merges);
    assert!(model.is(&db));
    let status = db.merge_status().unwrap();
    assert!(status.merged > 0 && status.bytes > 0 && !status.running);
}

const CHILD: &str = "JINDOU_MERGING_CHILD";

/// Not a test: the process that [`kills`] starts and kills. It updates the store, records which updates were
/// acknowledged, and merges all the time.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(CHILD) else {
        return;
    };
    let dir = PathBuf::from(dir);
    let db = Database::open_with(
        dir.join("store"),
        &OpenOptions::default()
            .with_access(Access::Write)
            .with_durability(Durability::Batch),
    )
    .unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0usize.. {
                let options = MergeOptions::default()
                    .with_generations(2 + round % 4)
                    .with_threads(1 + round % 2);
                db.merge(&options, &Progress::default()).unwrap();
            }
        });
        let options = UpdateOptions::default().with_threads(1);
        for n in last(&db) + 1.. {
            db.update(&text(n), &options).unwrap();
            std::fs::write(dir.join("acknowledged.tmp"), n.to_string()).unwrap();
            std::fs::rename(dir.join("acknowledged.tmp"), dir.join("acknowledged")).unwrap();
        }
    });
}

fn kills(rounds: u32, seed: u64, shards: u32) {
    let (dir, store) = empty_cut(shards);
    let mut rng = Rng::new(seed);
    let mut model = Model::new();
    let (mut merged_in, mut with_leftovers) = (0, 0);
    for round in 0..10 * rounds {
        // More rounds are run if no merge was complete or interrupted yet, as on a busy machine.
        if round >= rounds && merged_in > 0 && with_leftovers > 0 {
            break;
        }
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "storage::merging::child", "--nocapture"])
            .env(CHILD, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(
            3_000 + rng.below(150_000 * shards as usize) as u64,
        ));
        // The process never ends by itself, so an early end is a failure of its own.
        assert!(
            process.try_wait().unwrap().is_none(),
            "round {round}: the child ended"
        );
        process.kill().unwrap();
        process.wait().unwrap();
        let acknowledged: u64 = std::fs::read_to_string(dir.path().join("acknowledged"))
            .ok()
            .and_then(|t| t.parse().ok())
            .unwrap_or(0);
        let named_then = named(&store);
        let leftover = |n: &String| {
            n.ends_with(".jd") && n != "log-end.jd" && !named_then.contains(n)
                || n.ends_with(".tmp")
        };
        with_leftovers += u32::from(names(&store).iter().any(leftover));
        let db = opened(&store, Access::Write);
        merged_in = merged_in.max(db.snapshot().base().merged());
        let n = last(&db);
        // One more update may be durable than acknowledged, if the process was killed between the two.
        let least = acknowledged.max(model.n);
        assert!(
            (least..=least + 1).contains(&n),
            "round {round}: {acknowledged} were acknowledged, {n} are there, {} were before",
            model.n
        );
        model.go_to(n);
        assert!(model.is(&db), "round {round}");
        assert!(
            !names(&store)
                .iter()
                .any(|n| { n.ends_with(".jd") && n != "log-end.jd" && !named(&store).contains(n) })
        );
        drop(db);
        let report = Database::check(&store).unwrap();
        assert!(report.is_sound(), "round {round}: {:?}", report.damages);
    }
    println!(
        "{rounds} kills at least, {with_leftovers} of them inside a merge's writing; {} updates, merged up to {merged_in}",
        model.n
    );
    assert!(merged_in > 0 && with_leftovers > 0);
}

#[test]
fn a_process_that_is_killed_while_it_merges_loses_nothing() {
    kills(15, 1, 1);
}

#[test]
fn a_process_that_is_killed_while_it_merges_shards_loses_nothing() {
    kills(15, 3, 3);
}

/// `JINDOU_KILLS` sets the number of kills.
#[test]
#[ignore = "long: some minutes"]
fn killed_hundreds_of_times_while_it_merges() {
    let rounds = from_environment("JINDOU_KILLS", 500) as u32;
    for shards in [1, 3] {
        kills(rounds, 2, shards);
    }
}
