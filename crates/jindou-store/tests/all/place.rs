//! Places where a store may be written, and the remains of a failed load.

use jindou_model::{Error, Progress, QuadSink, QuadSource, Result};
use jindou_store::directory::WriteLock;
use jindou_store::testing::{QuadList, TermQuad};
use jindou_store::{LoadOptions, Snapshot, load, open};
use std::path::Path;

fn quads(n: usize) -> Vec<TermQuad> {
    (0..n)
        .map(|i| {
            [
                format!("<http://e/{i}"),
                "<http://e/p".into(),
                format!("\"{i}"),
                String::new(),
            ]
            .map(String::into_bytes)
        })
        .collect()
}

fn put(dir: &Path, n: usize, replace: bool) -> Result<()> {
    let options = LoadOptions::default()
        .with_threads(1)
        .with_memory(16 << 20)
        .with_replace(replace);
    load(dir, &QuadList(&quads(n)), &options, &Progress::default()).map(|_| ())
}

fn sentence(r: Result<()>) -> String {
    let e = r.unwrap_err();
    assert!(
        e.is_of_store() || matches!(e, Error::Usage(_) | Error::External(_)),
        "{e}"
    );
    let s = e.to_string();
    assert!(!s.contains('\n'));
    s
}

/// The names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let mut out: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    out.sort();
    out
}

#[test]
fn a_store_is_replaced_only_when_asked_and_readers_keep_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("s");
    put(&dir, 3, false).unwrap();
    assert!(matches!(
        put(&dir, 5, false).map(|_| ()),
        Err(Error::StoreExists { path }) if path == dir
    ));
    let old = open(&dir).unwrap();
    put(&dir, 5, true).unwrap();
    let new = open(&dir).unwrap();
    assert_eq!((old.statistics().quads, new.statistics().quads), (3, 5));
    assert_ne!(old.epoch(), new.epoch());
    let snapshot = Snapshot::of_base(old);
    assert!(snapshot.lookup(b"\"2").is_some() && snapshot.lookup(b"\"4").is_none());
    assert_eq!(names(folder.path()), ["s"]);
}

#[test]
fn foreign_folders_and_files_are_never_touched() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("photos");
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("a.jpg"), "x").unwrap();
    for replace in [false, true] {
        assert!(sentence(put(&dir, 1, replace)).contains("a.jpg"));
    }
    assert_eq!(names(&dir), ["a.jpg"]);
    assert!(
        open(&dir)
            .err()
            .unwrap()
            .to_string()
            .contains("not a store")
    );
    // A store with something of the user's in it.
    let dir = folder.path().join("s");
    put(&dir, 1, false).unwrap();
    std::fs::write(dir.join("notes.txt"), "x").unwrap();
    assert!(sentence(put(&dir, 2, true)).contains("notes.txt"));
    assert_eq!(open(&dir).unwrap().statistics().quads, 1);
    let file = folder.path().join("f");
    std::fs::write(&file, "x").unwrap();
    assert!(sentence(put(&file, 1, true)).contains("not a folder"));
    // An empty folder is free to take.
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    put(&empty, 2, false).unwrap();
    assert_eq!(open(&empty).unwrap().statistics().quads, 2);
    let lost = open(&folder.path().join("nowhere"))
        .err()
        .unwrap()
        .to_string();
    assert!(lost.contains("no store"), "{lost}");
    assert!(sentence(put(&folder.path().join("no/parent"), 1, false)).contains("does not exist"));
}

#[test]
fn a_newer_store_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("s");
    put(&dir, 1, false).unwrap();
    let path = dir.join("manifest.jd");
    let text = std::fs::read_to_string(&path).unwrap();
    let newer = text.replace("jindou-store 1", "jindou-store 2") + "more 1\n";
    std::fs::write(&path, newer).unwrap();
    let e = open(&dir).err().unwrap().to_string();
    assert!(e.contains("version 2") && e.contains("newer"), "{e}");
}

#[test]
fn a_second_writer_is_told_and_a_dead_one_is_cleaned_up_after() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("s");
    let lock = WriteLock::take(&dir).unwrap();
    assert!(sentence(put(&dir, 1, false)).contains("another process"));
    drop(lock);
    // The remains of a killed load.
    std::fs::create_dir(folder.path().join("s.loading-12345")).unwrap();
    std::fs::write(folder.path().join("s.loading-12345/strings.jd"), "x").unwrap();
    std::fs::create_dir(folder.path().join("s.loading-mine")).unwrap();
    std::fs::write(folder.path().join("s.lock"), "").unwrap();
    put(&dir, 1, false).unwrap();
    assert_eq!(names(folder.path()), ["s", "s.loading-mine"]);
}

/// Fails on one worker after some quads.
struct Failing(Vec<TermQuad>);

impl QuadSource for Failing {
    fn run(
        &self,
        worker: usize,
        workers: usize,
        sink: &mut dyn QuadSink,
        progress: &Progress,
    ) -> Result<()> {
        QuadList(&self.0).run(worker, workers, sink, progress)?;
        if worker == 1 {
            return Err(Error::external("line 7 is bad"));
        }
        Ok(())
    }
}

#[test]
fn a_failed_load_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("s");
    let options = LoadOptions::default()
        .with_threads(3)
        .with_memory(16 << 20)
        .with_replace(true);
    let fail = || load(&dir, &Failing(quads(500)), &options, &Progress::default()).map(|_| ());
    assert_eq!(sentence(fail()), "line 7 is bad");
    assert!(names(folder.path()).is_empty());
    put(&dir, 2, false).unwrap();
    assert_eq!(sentence(fail()), "line 7 is bad");
    assert_eq!(names(folder.path()), ["s"]);
    assert_eq!(open(&dir).unwrap().statistics().quads, 2);
}
