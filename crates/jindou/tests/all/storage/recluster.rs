//! Reclustering: assigns other ids and keeps the quads, also while updates continue, and after crashes.

use super::sound;
use crate::quads;
use jindou::testing::{Nothing, load_nquads};
use jindou::{
    Access, CancelToken, Database, Durability, Error, OpenOptions, Progress, ReclusterOptions,
    UpdateOptions,
};
use jindou_store::directory::Manifest;
use oxrdf::Dataset;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const DATA: &str = "<http://e/a> <http://e/p> _:x .\n_:x <http://e/p> \"1\" <http://e/g> .\n\
                    _:x <http://e/q> _:y .\n<http://e/a> <http://e/q> \"zwei\"@de <http://e/g> .\n";

fn store(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    load_nquads(&store, text).unwrap();
    (dir, store)
}

fn opened(dir: &Path, durability: Durability) -> Database {
    let access = Access::Write;
    Database::open_with(
        dir,
        &OpenOptions::default()
            .with_access(access)
            .with_durability(durability),
    )
    .expect("the store")
}

fn options() -> ReclusterOptions {
    ReclusterOptions::default()
        .with_memory(64 << 20)
        .with_threads(2)
}

fn recluster(db: &Database) -> jindou::Result<jindou::ReclusterReport> {
    db.recluster(&options(), &Progress::default())
}

fn update(db: &Database, text: &str) -> u64 {
    let options = UpdateOptions::default().with_threads(1);
    db.update(text, &options).expect(text).snapshot
}

fn names(dir: &Path) -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    all
}

/// All quads as sorted text, including the labels of blank nodes.
fn lines(d: &Dataset) -> Vec<String> {
    let mut all: Vec<String> = d.iter().map(|q| q.to_string()).collect();
    all.sort();
    all
}

#[test]
fn the_quads_stay_and_the_ids_change() {
    let (_dir, dir) = store(DATA);
    let db = opened(&dir, Durability::Batch);
    update(
        &db,
        "INSERT DATA { <http://e/new> <http://e/r> <http://e/a> , 1 . GRAPH <http://e/h> { <http://e/new> a <http://e/C> } } ; \
         DELETE WHERE { <http://e/a> <http://e/p> ?x }",
    );
    let before = db.snapshot();
    let want = lines(&quads::all_quads(&db));
    let query = "SELECT ?o { <http://e/new> <http://e/r> ?o }";
    assert_eq!(db.query(query).unwrap().solutions().len(), 2);
    let report = recluster(&db).unwrap();
    assert_eq!((report.quads, report.snapshot, report.caught_up), (6, 1, 0));
    assert_eq!(report.left, None);
    assert_ne!(before.base().epoch(), report.epoch);
    assert_eq!(db.snapshot().base().epoch(), report.epoch);
    assert_eq!(db.snapshot().edit_count(), 0);
    assert_eq!(lines(&quads::all_quads(&db)), want);
    assert_eq!(db.query(query).unwrap().solutions().len(), 2);
    // A reader of the old base can continue, although its files are deleted.
    assert_eq!(names(&dir), ["base-1", "current.jd", "lock"]);
    let old = quads::all_quads(&Database::of_snapshot(before));
    assert_eq!(lines(&old), want);
    assert!(quads::same(&old, &quads::all_quads(&db)));
    // The data is the same again, but terms added by updates get other ids, and so another epoch.
    assert_eq!(
        update(&db, "INSERT DATA { <http://e/z> <http://e/r> 2 }"),
        2
    );
    assert_eq!(
        update(&db, "DELETE DATA { <http://e/z> <http://e/r> 2 }"),
        3
    );
    assert_ne!(recluster(&db).unwrap().epoch, report.epoch);
    assert_eq!(lines(&quads::all_quads(&db)), want);
    drop(db);
    sound(&dir);
    assert_eq!(names(&dir), ["base-2", "current.jd", "lock"]);
    let db = opened(&dir, Durability::Batch);
    assert_eq!(
        (lines(&quads::all_quads(&db)), db.snapshot().number()),
        (want, 3)
    );
    assert_eq!(
        update(&db, "INSERT DATA { <http://e/z> <http://e/r> 2 }"),
        4
    );
    // A second process may read while this one updates and reclusters again.
    let reader = Database::open(&dir).unwrap();
    recluster(&db).unwrap();
    assert_eq!(
        lines(&quads::all_quads(&reader)),
        lines(&quads::all_quads(&db))
    );
    assert_eq!(Database::info(&dir).unwrap().quads, 7);
    let again = Database::open(&dir).unwrap();
    assert_eq!(
        lines(&quads::all_quads(&again)),
        lines(&quads::all_quads(&db))
    );
}

/// Sets the flag that ends the clients when it is dropped, so that they also end after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn updates_go_on_meanwhile_and_none_is_lost() {
    for durability in [Durability::Batch, Durability::None] {
        let (_dir, dir) = store(DATA);
        let db = opened(&dir, durability);
        let (done, stop) = (AtomicU64::new(0), AtomicBool::new(false));
        let mut most = 0;
        let wrote: Vec<u64> = std::thread::scope(|scope| {
            let ending = Ends(&stop);
            let clients: Vec<_> = (0..3)
                .map(|client| {
                    let (db, done, stop) = (&db, &done, &stop);
                    scope.spawn(move || {
                        let mut n = 0;
                        while !stop.load(Ordering::Relaxed) {
                            let s = format!("<http://e/c{client}/{n}>");
                            let gone = format!("<http://e/c{client}/{}>", n / 2);
                            let number = update(
                                db,
                                &format!(
                                    "INSERT DATA {{ {s} <http://e/n> {n} . GRAPH <http://e/g{client}> {{ {s} <http://e/m> \"{n}\" }} }} ; \
                                     DELETE WHERE {{ {gone} <http://e/n> ?o }}"
                                ),
                            );
                            done.fetch_max(number, Ordering::Relaxed);
                            n += 1;
                        }
                        n
                    })
                })
                .collect();
            for _ in 0..6 {
                let before = db.snapshot().number();
                let report = recluster(&db).unwrap();
                most = most.max(report.caught_up);
                // A reclustering continues the numbers of snapshots.
                assert!(report.snapshot >= before);
                let acknowledged = done.load(Ordering::Relaxed);
                assert!(db.snapshot().number() >= acknowledged);
            }
            drop(ending);
            clients.into_iter().map(|c| c.join().unwrap()).collect()
        });
        assert!(most > 0, "nothing was committed while a base was made");
        let number = db.snapshot().number();
        assert_eq!(number, wrote.iter().sum::<u64>());
        let all = |db: &Database| {
            for (client, n) in wrote.iter().enumerate() {
                let count = |text: &str| db.query(text).unwrap().solutions().len() as u64;
                let named =
                    format!("SELECT ?s {{ GRAPH <http://e/g{client}> {{ ?s <http://e/m> ?o }} }}");
                assert_eq!(count(&named), *n);
                let left = format!(
                    "SELECT ?s {{ ?s <http://e/n> ?o FILTER(STRSTARTS(STR(?s), \"http://e/c{client}/\")) }}"
                );
                // Transaction `n` removes what transaction `n / 2` inserted.
                assert_eq!(count(&left), n - n.div_ceil(2));
            }
        };
        all(&db);
        drop(db);
        sound(&dir);
        let db = opened(&dir, durability);
        all(&db);
        assert_eq!(db.snapshot().number(), number);
    }
}

#[test]
fn numbers_go_on_where_they_have_more_than_32_bits() {
    let (_dir, dir) = store(DATA);
    let mut manifest = Manifest::of_store(&dir).unwrap();
    let end = u64::from(u32::MAX);
    manifest.snapshot = end - 2;
    std::fs::write(dir.join("manifest.jd"), manifest.to_text()).unwrap();
    let db = opened(&dir, Durability::Batch);
    let n = |n: u32| format!("INSERT DATA {{ <http://e/n> <http://e/n> {n} }}");
    assert_eq!(update(&db, &n(0)), end - 1);
    let want = lines(&quads::all_quads(&db));
    assert_eq!(recluster(&db).unwrap().snapshot, end - 1);
    assert_eq!(lines(&quads::all_quads(&db)), want);
    assert_eq!([update(&db, &n(1)), update(&db, &n(2))], [end, end + 1]);
    assert_eq!(recluster(&db).unwrap().snapshot, end + 1);
    drop(db);
    let db = opened(&dir, Durability::Batch);
    assert_eq!(
        (db.snapshot().number(), db.snapshot().quads()),
        (end + 1, 7)
    );
}

#[test]
fn what_was_left_goes_and_a_cancelled_one_changes_nothing() {
    let (_dir, dir) = store(DATA);
    let db = opened(&dir, Durability::Batch);
    let want = lines(&quads::all_quads(&db));
    let cancel = CancelToken::new();
    cancel.cancel();
    let cancelled = options().with_cancel(cancel);
    let done = db.recluster(&cancelled, &Progress::default());
    assert!(matches!(done, Err(Error::Cancelled)));
    assert!(!dir.join("base-1").exists());
    drop(db);
    // As after a process that was killed before it put the new base in place.
    std::fs::create_dir_all(dir.join("base-1/log")).unwrap();
    std::fs::write(dir.join("base-1/strings.jd"), "half").unwrap();
    std::fs::write(dir.join("current.jd.new"), "half").unwrap();
    let reader = OpenOptions::default().with_access(Access::Read);
    Database::open_with(&dir, &reader).unwrap();
    assert!(dir.join("base-1").exists(), "readers touch nothing");
    let db = opened(&dir, Durability::Batch);
    assert!(!dir.join("base-1").exists() && !dir.join("current.jd.new").exists());
    assert_eq!(lines(&quads::all_quads(&db)), want);
    // As after a process that was killed before it removed the old base.
    let copy = dir.with_extension("copy");
    std::fs::create_dir(&copy).unwrap();
    for name in names(&dir) {
        if dir.join(&name).is_file() {
            std::fs::copy(dir.join(&name), copy.join(&name)).unwrap();
        }
    }
    recluster(&db).unwrap();
    drop(db);
    for name in names(&copy) {
        std::fs::copy(copy.join(&name), dir.join(&name)).unwrap();
    }
    sound(&dir);
    let db = opened(&dir, Durability::Batch);
    assert_eq!(names(&dir), ["base-1", "current.jd", "lock"]);
    assert_eq!(lines(&quads::all_quads(&db)), want);
    // A database in memory cannot be reclustered, since it has no files.
    let memory = Database::of_snapshot(db.snapshot());
    assert!(matches!(recluster(&memory), Err(Error::Usage(_))));
    drop((db, memory));
    // A load replaces a reclustered store as any other.
    assert!(load_nquads(&dir, "").is_err());
    let replace = jindou::LoadOptions::default()
        .with_replace(true)
        .with_threads(1)
        .with_memory(64 << 20);
    Database::load(&dir, &Nothing, &replace, &Progress::default()).unwrap();
    assert!(!dir.join("base-1").exists());
    assert_eq!(Database::open(&dir).unwrap().snapshot().quads(), 0);
}
