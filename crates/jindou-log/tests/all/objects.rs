//! Logs in object stores: in memory, in a directory, and in one that fails.

use crate::append;
use jindou_log::{Files, Log, LogOptions, Objects, Recovery, check};
use jindou_model::{Error, Result};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

fn open(files: &Arc<dyn Files>, after: u64) -> Result<(Log, Recovery, Vec<Vec<u8>>)> {
    crate::open(Arc::clone(files), 9, after, LogOptions::default())
}

fn stores() -> Vec<(Arc<dyn ObjectStore>, Option<tempfile::TempDir>)> {
    let directory = tempfile::tempdir().expect("a directory");
    let local = LocalFileSystem::new_with_prefix(directory.path())
        .expect("a directory")
        .with_fsync(true);
    vec![
        (Arc::new(InMemory::new()), None),
        (Arc::new(local), Some(directory)),
    ]
}

#[test]
fn records_come_back_and_are_forgotten() {
    for (store, _directory) in stores() {
        let files: Arc<dyn Files> =
            Arc::new(Objects::new(store, "some/store/log").expect("a thread"));
        let (log, found, _) = open(&files, 0).expect("open");
        assert_eq!(found.last, 0);
        for n in 1..=100u64 {
            let ticket = log
                .append(n, vec![n as u8; n as usize * 10])
                .expect("append");
            if n % 7 == 0 {
                ticket.wait().expect("wait");
            }
        }
        log.close().expect("close");
        let report = check(&*files).expect("check");
        assert!(report.is_sound(), "{:?}", report.damages);
        assert_eq!(report.records, 100);
        let (log, found, records) = open(&files, 0).expect("open");
        assert_eq!((found.last, found.rewritten, found.cut), (100, 0, None));
        assert!(
            (1u64..)
                .zip(&records)
                .all(|(n, r)| r == &vec![n as u8; n as usize * 10])
        );
        log.truncate(60).expect("truncate");
        append(&log, 101, vec![1]).expect("wait");
        drop(log);
        let (log, found, records) = open(&files, 60).expect("open");
        assert_eq!((found.last, records.len()), (101, 41));
        log.truncate(101).expect("truncate");
        drop(log);
        assert_eq!(
            files.list().expect("list").len(),
            1,
            "one says where names go on"
        );
        let (_, found, records) = open(&files, 101).expect("open");
        assert_eq!((found.last, records.len()), (101, 0));
    }
}

#[test]
fn the_first_of_two_writers_is_told() {
    for (store, _directory) in stores() {
        let files: Arc<dyn Files> = Arc::new(Objects::new(store, "log").expect("a thread"));
        let (one, ..) = open(&files, 0).expect("open");
        append(&one, 1, vec![1]).expect("wait");
        let (two, ..) = open(&files, 0).expect("open");
        append(&two, 2, vec![22]).expect("wait");
        let error = append(&one, 2, vec![2]).expect_err("another writes");
        assert!(
            matches!(&error, Error::InUse { message, .. } if message.contains("another process")),
            "{error}"
        );
        one.reset(2).expect("reset");
        assert!(append(&one, 2, vec![2]).is_err(), "for good");
        append(&two, 3, vec![33]).expect("wait");
        drop((one, two));
        let (_, _, records) = open(&files, 0).expect("open");
        assert_eq!(records, [vec![1], vec![22], vec![33]]);
    }
}

#[test]
fn a_missing_and_a_changed_object_are_named() {
    let store = Arc::new(InMemory::new());
    let files: Arc<dyn Files> = Arc::new(Objects::new(store, "log").expect("a thread"));
    let (log, ..) = open(&files, 0).expect("open");
    for n in 1..=10 {
        append(&log, n, vec![n as u8; 100]).expect("wait");
    }
    drop(log);
    let mut names = files.list().expect("list");
    names.sort();
    assert_eq!(names.len(), 10);
    for name in &names {
        let kept = files.read(name, u64::MAX).expect("read");
        for bit in (0..kept.len() * 8).step_by(37) {
            let mut changed = kept.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            files.remove(name).expect("remove");
            files.put(name, &changed).expect("put");
            let error = open(&files, 0)
                .expect_err("a bit is another one")
                .to_string();
            assert!(
                error.contains(name.as_str()),
                "{error} does not name {name}"
            );
            assert!(!check(&*files).expect("check").is_sound());
        }
        files.remove(name).expect("remove");
        if Some(name) != names.last() {
            let error = open(&files, 0)
                .expect_err("an object is missing")
                .to_string();
            assert!(
                error.contains(name.as_str()) || name == &names[0],
                "{error}"
            );
        }
        files.put(name, &kept).expect("put");
    }
    let (_, _, records) = open(&files, 0).expect("open");
    assert_eq!(records.len(), 10);
}

/// An object store whose answers get lost: a put fails without effect, or reports failure although it succeeded, or
/// succeeds only later.
struct Lossy {
    inner: Objects,
    late: Mutex<Vec<(String, Vec<u8>)>>,
    count: AtomicU32,
}

impl Files for Lossy {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    ask_inner!();

    fn appends(&self) -> bool {
        false
    }
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let late = std::mem::take(&mut *self.late.lock().expect("lock"));
        for (name, bytes) in late {
            let _ = self.inner.put(&name, &bytes);
        }
        match self.count.fetch_add(1, Ordering::Relaxed) % 5 {
            1 => Err(io::ErrorKind::TimedOut.into()),
            2 => {
                self.inner.put(name, bytes)?;
                Err(io::ErrorKind::TimedOut.into())
            }
            3 => {
                let mut late = self.late.lock().expect("lock");
                late.push((name.to_owned(), bytes.to_vec()));
                Err(io::ErrorKind::TimedOut.into())
            }
            _ => self.inner.put(name, bytes),
        }
    }
}

#[test]
fn lost_answers_lose_nothing() {
    let store = Arc::new(InMemory::new());
    let lossy = Lossy {
        inner: Objects::new(store, "log").expect("a thread"),
        late: Mutex::default(),
        count: AtomicU32::new(0),
    };
    let files: Arc<dyn Files> = Arc::new(lossy);
    let mut expected: Vec<Vec<u8>> = Vec::new();
    let mut attempt = 0u32;
    for _ in 0..5 {
        let (log, found, records) = open(&files, 0).expect("open");
        // There may be one record more than was acknowledged, if its answer was lost.
        assert_eq!(&records[..expected.len()], &expected[..]);
        assert!(records.len() <= expected.len() + 1);
        expected = records;
        let mut number = found.last + 1;
        for _ in 0..40 {
            attempt += 1;
            let record = attempt.to_le_bytes().to_vec();
            match append(&log, number, record.clone()) {
                Ok(()) => {
                    expected.push(record);
                    number += 1;
                }
                Err(e) => {
                    assert!(matches!(e, Error::Io { .. }), "{e}");
                    log.reset(number).expect("reset");
                }
            }
        }
    }
    assert!(expected.len() > 50);
    assert!(check(&*files).expect("check").is_sound());
}
