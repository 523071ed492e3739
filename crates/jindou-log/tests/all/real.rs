//! Logs in real files: processes that are killed, files that are removed, a second process on the same store.

use crate::{append, log_files};
use jindou_log::{Directory, Durability, Files, Log, LogOptions, StoreLock, check};
use jindou_model::{Error, Result};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const EPOCH: u64 = 3;
/// Environment variable that makes this program a child process, and contains its folder.
const CHILD: &str = "JINDOU_LOG_TEST_DIRECTORY";

fn open(
    path: &Path,
    after: u64,
    options: LogOptions,
) -> Result<(Log, jindou_log::Recovery, Vec<Vec<u8>>)> {
    let files = Directory::create(path).map_err(|e| Error::io(path, e))?;
    crate::open(Arc::new(files), EPOCH, after, options)
}

/// The content of record `number`, which has up to some kilobytes.
fn record(number: u64) -> Vec<u8> {
    let length = (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % 6000;
    (0..length)
        .map(|i| (number.wrapping_mul(31).wrapping_add(i) >> 3) as u8)
        .collect()
}

fn child(test: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--ignored", "--nocapture", "--exact"])
        .arg(format!("real::{test}"))
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child process")
}

#[test]
#[ignore = "the child of other tests"]
fn child_appends_until_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let path = Path::new(&path);
    let _lock = StoreLock::acquire(path).expect("the lock of a process that was killed");
    let options = LogOptions {
        file_bytes: 100_000,
        idle: Duration::from_millis(1),
        ..LogOptions::default()
    };
    let (log, found, _) = open(&path.join("log"), 0, options).expect("open");
    println!("opened {}", found.last);
    let next = Mutex::new(found.last + 1);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let ticket = {
                        let mut next = next.lock().expect("lock");
                        let ticket = log.append(*next, record(*next)).expect("append");
                        *next += 1;
                        ticket
                    };
                    ticket.wait().expect("wait");
                    let mut out = std::io::stdout().lock();
                    let _ = writeln!(out, "acknowledged {}", ticket.number());
                    let _ = out.flush();
                }
            });
        }
    });
}

fn kills(count: u32) {
    let directory = tempfile::tempdir().expect("a directory");
    let mut acknowledged = 0;
    let mut random = 12345u64;
    for kill in 0..count {
        let mut process = child("child_appends_until_killed", directory.path());
        let out = process.stdout.take().expect("piped");
        let reader = std::thread::spawn(move || {
            let mut last = 0u64;
            let mut opened = 0;
            for line in BufReader::new(out).lines().map_while(|l| l.ok()) {
                // Lines of several threads, each complete; the output of the test harness may precede them.
                if let Some((_, n)) = line.split_once("opened ") {
                    opened = n.parse().expect("a number");
                }
                if let Some(n) = line.strip_prefix("acknowledged ") {
                    last = last.max(n.parse().unwrap_or(0));
                }
            }
            (opened, last)
        });
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        std::thread::sleep(Duration::from_millis(5 + (random >> 33) % 60));
        process.kill().expect("SIGKILL");
        process.wait().expect("its end");
        let (opened, last) = reader.join().expect("reading");
        assert!(
            opened == 0 || opened >= acknowledged,
            "kill {kill}: {acknowledged} were acknowledged, {opened} found"
        );
        acknowledged = acknowledged.max(last);
        let (log, found, records) =
            open(&directory.path().join("log"), 0, LogOptions::default()).expect("open");
        assert!(
            found.last >= acknowledged,
            "kill {kill}: {acknowledged} were acknowledged; {found}"
        );
        for (number, bytes) in (1..).zip(&records) {
            assert_eq!(bytes, &record(number), "kill {kill}, record {number}");
        }
        acknowledged = found.last;
        drop(log);
        let files = Directory::open(directory.path().join("log")).expect("directory");
        let report = check(&files).expect("check");
        assert!(report.is_sound(), "{:?}", report.damages);
        assert_eq!(report.records, found.last);
    }
    assert!(acknowledged > 0, "nothing was ever acknowledged");
    println!("{count} kills, {acknowledged} records");
}

#[test]
fn killed_twenty_times() {
    kills(20);
}

#[test]
#[ignore = "minutes"]
fn killed_a_thousand_times() {
    kills(1000);
}

#[test]
fn reopened_again_and_again_it_makes_no_files_without_need() {
    let directory = tempfile::tempdir().expect("a directory");
    for round in 0..5u64 {
        let (log, found, records) = open(directory.path(), 0, LogOptions::default()).expect("open");
        assert_eq!(found.last, round);
        assert_eq!(records.len(), round as usize);
        assert_eq!((found.cut, found.rewritten), (None, 0), "it was closed");
        append(&log, round + 1, vec![7; 10]).expect("wait");
        log.close().expect("close");
        for _ in 0..3 {
            open(directory.path(), 0, LogOptions::default()).expect("open");
        }
        let files = Directory::open(directory.path()).expect("open");
        let names = log_files(&files);
        assert_eq!(names.len() as u64, round + 1, "{names:?}");
    }
}

#[test]
fn a_file_that_is_removed_in_use_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, ..) = open(directory.path(), 0, LogOptions::default()).expect("open");
    append(&log, 1, vec![1]).expect("wait");
    for name in std::fs::read_dir(directory.path()).expect("list") {
        std::fs::remove_file(name.expect("entry").path()).expect("remove");
    }
    let error = append(&log, 2, vec![2]).expect_err("the file is gone");
    assert!(
        matches!(&error, Error::Damaged { message, .. } if message.contains("removed")),
        "{error}"
    );
    log.reset(2).expect("reset");
    let again = append(&log, 2, vec![2]);
    assert!(again.is_err(), "what was lost is not forgotten");
    log.reset(2).expect("reset");
    // Once the base includes the lost records, the log continues.
    log.truncate(1).expect("truncate");
    append(&log, 2, vec![2]).expect("wait");
    drop(log);
    let (_, found, records) = open(directory.path(), 1, LogOptions::default()).expect("open");
    assert_eq!((found.last, records), (2, vec![vec![2]]));
    let error = open(directory.path(), 0, LogOptions::default()).expect_err("record 1 is gone");
    assert!(error.to_string().contains("begins at record 2"), "{error}");
}

#[test]
fn a_missing_file_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = LogOptions {
        file_bytes: 200,
        ..LogOptions::default()
    };
    let (log, ..) = open(directory.path(), 0, options).expect("open");
    for n in 1..20 {
        append(&log, n, record(n)).expect("wait");
    }
    log.close().expect("close");
    let names = log_files(&Directory::open(directory.path()).expect("open"));
    assert!(names.len() > 4);
    for name in &names {
        let path = directory.path().join(name);
        let kept = std::fs::read(&path).expect("read");
        std::fs::remove_file(&path).expect("remove");
        let error = open(directory.path(), 0, options).expect_err("a file is missing");
        assert!(
            error.to_string().contains("missing") || name == &names[0],
            "{error}"
        );
        assert!(
            error.to_string().contains(name),
            "{error} does not name {name}"
        );
        std::fs::write(&path, kept).expect("write");
    }
    let (_, found, _) = open(directory.path(), 0, options).expect("open");
    assert_eq!(found.last, 19);
}

/// A directory whose newest file is not listed the first few times, as if it had been created just afterwards.
struct Late {
    inner: Directory,
    newest: String,
    hidden: AtomicU32,
}

impl Files for Late {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut all = self.inner.list()?;
        let hidden = |n: u32| n.checked_sub(1);
        if self
            .hidden
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, hidden)
            .is_ok()
        {
            all.retain(|name| *name != self.newest);
        }
        Ok(all)
    }

    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.inner.read(name, limit)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn jindou_log::File>> {
        self.inner.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn jindou_log::File>> {
        self.inner.open(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.inner.path(name)
    }
}

#[test]
fn a_file_that_was_begun_while_a_reader_listed_is_no_damage() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let (log, _, _) = open(path, 0, LogOptions::default()).expect("open");
    for number in 1..=6 {
        if number == 4 {
            log.begin_file();
        }
        let ticket = log.append(number, record(number)).expect("append");
        ticket.wait().expect("wait");
    }
    let read = |hidden: u32| {
        let inner = Directory::create(path).expect("the directory");
        let names = log_files(&inner);
        assert_eq!(names.len(), 2, "{names:?}");
        let files = Late {
            inner,
            newest: names.into_iter().max().expect("a file"),
            hidden: AtomicU32::new(hidden),
        };
        let mut records = Vec::new();
        jindou_log::replay(&files, EPOCH, 0, &mut |number, bytes| {
            assert_eq!(bytes, record(number));
            records.push(number);
            Ok(())
        })
        .map(|_| records)
    };
    assert_eq!(read(0).expect("all"), [1, 2, 3, 4, 5, 6]);
    // The file is missing from the first list, but is found when files are listed again.
    assert_eq!(read(1).expect("a beginning"), [1, 2, 3]);
    // The file is never found.
    let error = read(u32::MAX).expect_err("a file that is missing");
    assert!(
        matches!(&error, Error::Damaged { message, .. } if message.contains("the file is missing")),
        "{error}"
    );
}

#[test]
fn a_directory_that_cannot_be_written_is_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, ..) = open(directory.path(), 0, LogOptions::default()).expect("open");
    append(&log, 1, vec![1]).expect("wait");
    log.close().expect("close");
    let (log, found, _) = open(directory.path(), 0, LogOptions::default()).expect("open");
    assert_eq!((found.last, found.read_only), (1, None));
    // A directory has the name of the file that the next record would create, which makes writing fail for any user,
    // including root.
    let temporary = directory
        .path()
        .join(format!("{EPOCH:016x}-{:016x}.log.tmp", 2));
    std::fs::create_dir(&temporary).expect("create");
    let error = append(&log, 2, vec![2]).expect_err("refused");
    assert!(
        matches!(&error, Error::Io { .. }) && error.to_string().contains("queries still work"),
        "{error}"
    );
    assert!(log.append(2, vec![2]).is_err(), "until it is reset");
    assert!(log.status().failure.is_some());
    std::fs::remove_dir(&temporary).expect("remove");
    log.reset(2).expect("reset");
    append(&log, 2, vec![2]).expect("the obstacle is gone");
    assert_eq!(log.status().failure, None);
}

#[test]
fn a_second_process_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut process = child("child_appends_until_killed", directory.path());
    let out = BufReader::new(process.stdout.take().expect("piped"));
    let mut lines = out.lines().map_while(|l| l.ok());
    assert!(
        lines.any(|l| l.contains("opened ")),
        "the child does not begin"
    );
    std::thread::spawn(move || lines.for_each(drop));
    let error = StoreLock::acquire(directory.path())
        .expect_err("held")
        .to_string();
    assert!(
        error.contains(&format!("in use by process {}", process.id())),
        "{error}"
    );
    process.kill().expect("SIGKILL");
    process.wait().expect("its end");
    let lock = StoreLock::acquire(directory.path()).expect("the file is there, the holder is not");
    assert!(lock.holds());
    let error = StoreLock::acquire(directory.path())
        .expect_err("in use")
        .to_string();
    assert!(error.contains(&std::process::id().to_string()), "{error}");
    std::fs::remove_file(directory.path().join("lock")).expect("remove");
    assert!(!lock.holds());
}

#[test]
fn a_full_queue_waits_and_all_modes_keep_what_a_kill_leaves() {
    for durability in [
        Durability::Batch,
        Durability::Interval(Duration::from_millis(5)),
        Durability::None,
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let options = LogOptions {
            durability,
            queue_bytes: 5000,
            group_bytes: 2000,
            file_bytes: 50_000,
            ..LogOptions::default()
        };
        let (log, ..) = open(directory.path(), 0, options).expect("open");
        let tickets: Vec<_> = (1..=300)
            .map(|n| log.append(n, record(n)).expect("append"))
            .collect();
        tickets.iter().for_each(|t| t.wait().expect("wait"));
        assert_eq!(log.status().acknowledged, 300);
        log.sync().expect("sync");
        assert_eq!(log.status().durable, 300);
        // The log is not closed, as after a kill.
        let copy = tempfile::tempdir().expect("a directory");
        for name in std::fs::read_dir(directory.path()).expect("list") {
            let name = name.expect("entry").path();
            std::fs::copy(&name, copy.path().join(name.file_name().expect("name"))).expect("copy");
        }
        let (_, found, records) = open(copy.path(), 0, options).expect("open");
        assert_eq!(found.last, 300);
        assert!((1..).zip(&records).all(|(n, r)| r == &record(n)));
    }
}

#[test]
fn an_interval_is_kept_under_load_and_without() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = LogOptions {
        durability: Durability::Interval(Duration::from_millis(20)),
        ..LogOptions::default()
    };
    let (log, ..) = open(directory.path(), 0, options).expect("open");
    // The first record begins a file, which is always synced.
    append(&log, 1, vec![1]).expect("wait");
    let begun = Instant::now();
    let mut synced = 0;
    let mut last = log.status().durable;
    for n in 2..u64::MAX {
        append(&log, n, vec![1; 100]).expect("wait");
        let durable = log.status().durable;
        synced += u32::from(durable != last);
        last = durable;
        if begun.elapsed() > Duration::from_millis(500) {
            break;
        }
    }
    assert!(synced >= 2, "synced {synced} times in half a second");
    let begun = Instant::now();
    while log.status().durable < log.status().acknowledged {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{:?}",
            log.status()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn epochs_share_a_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let files = Arc::new(Directory::open(directory.path()).expect("a directory"));
    let mut logs = Vec::new();
    for epoch in [1u64, 2] {
        let (log, found) = Log::open(
            files.clone(),
            epoch,
            0,
            LogOptions::default(),
            &mut |_, _| Ok(()),
        )
        .expect("open");
        assert_eq!(found.other_epochs, (1..epoch).collect::<Vec<_>>());
        append(&log, 1, vec![epoch as u8]).expect("wait");
        logs.push(log);
    }
    drop(logs);
    let report = check(&*files).expect("check");
    assert_eq!(report.epochs, [(1, Some(1..=1)), (2, Some(1..=1))]);
    let mut read = Vec::new();
    Log::open(files.clone(), 2, 0, LogOptions::default(), &mut |_, r| {
        read.extend_from_slice(r);
        Ok(())
    })
    .expect("open");
    assert_eq!(read, [2]);
}

#[test]
fn numbers_must_follow_each_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let (log, ..) = open(directory.path(), 41, LogOptions::default()).expect("open");
    assert!(matches!(log.append(1, vec![]), Err(Error::Internal(_))));
    append(&log, 42, vec![]).expect("wait");
    assert!(matches!(log.reset(42), Err(Error::Internal(_))));
    log.reset(43).expect("nothing waits");
    assert!(matches!(log.append(42, vec![]), Err(Error::Internal(_))));
    drop(log);
    // The base is newer than the log.
    let (log, found, records) = open(directory.path(), 50, LogOptions::default()).expect("open");
    assert_eq!((found.skipped, found.last, records.len()), (1, 50, 0));
    append(&log, 51, vec![5]).expect("wait");
    drop(log);
    let (_, found, records) = open(directory.path(), 50, LogOptions::default()).expect("open");
    assert_eq!((found.last, records), (51, vec![vec![5]]));
    let error =
        open(directory.path(), 45, LogOptions::default()).expect_err("46 to 50 were never here");
    assert!(error.to_string().contains("from 46 on"), "{error}");
}
