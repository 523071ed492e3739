//! The log's figures: small durable records from 16 appenders on a disk whose sync takes 4 ms, bytes of large records,
//! and how fast a log is replayed.
//!
//! `cargo bench -p jindou-bench --bench log`; `JINDOU_SECONDS` for each part (3), `TMPDIR` for another disk.

use jindou_log::{Directory, Durability, File, Files, Log, LogOptions};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A directory whose syncs of files take a given time and do nothing else; without a time they are the disk's own.
struct Slow {
    inner: Directory,
    sync: Option<Duration>,
}

struct SlowFile {
    inner: Box<dyn File>,
    sync: Option<Duration>,
}

impl Slow {
    fn file(&self, inner: io::Result<Box<dyn File>>) -> io::Result<Box<dyn File>> {
        let sync = self.sync;
        Ok(Box::new(SlowFile {
            inner: inner?,
            sync,
        }))
    }
}

impl Files for Slow {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }
    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.inner.read(name, limit)
    }
    fn len(&self, name: &str) -> io::Result<u64> {
        Files::len(&self.inner, name)
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.file(self.inner.create(name))
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn File>> {
        self.file(Files::open(&self.inner, name))
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
    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
}

impl File for SlowFile {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.inner.write_at(at, bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        match self.sync {
            Some(time) => std::thread::sleep(time),
            None => self.inner.sync()?,
        }
        Ok(())
    }
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }
    fn in_place(&self) -> io::Result<bool> {
        self.inner.in_place()
    }
}

fn open(path: &std::path::Path, sync: Option<Duration>, options: LogOptions) -> Log {
    let inner = Directory::open(path).expect("a directory");
    let files = Arc::new(Slow { inner, sync });
    Log::open(files, 1, 0, options, &mut |_, _| Ok(()))
        .expect("open")
        .0
}

struct Measured {
    time: Duration,
    /// From handing a record over to its acknowledgement, ascending.
    latencies: Vec<Duration>,
    groups: u64,
}

/// Appenders that hand over a record, wait for it, spend `think` otherwise and begin again.
fn append(log: &Log, appenders: u32, bytes: usize, think: Duration, time: Duration) -> Measured {
    let next = Mutex::new(log.status().acknowledged + 1);
    let latencies = Mutex::new(Vec::new());
    let groups = log.status().groups;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..appenders {
            scope.spawn(|| {
                let mut mine = Vec::new();
                while begun.elapsed() < time {
                    let handed = Instant::now();
                    let ticket = {
                        let mut next = next.lock().expect("lock");
                        let ticket = log.append(*next, vec![0x5a; bytes]).expect("append");
                        *next += 1;
                        ticket
                    };
                    ticket.wait().expect("wait");
                    mine.push(handed.elapsed());
                    if !think.is_zero() {
                        std::thread::sleep(think);
                    }
                }
                latencies.lock().expect("lock").extend(mine);
            });
        }
    });
    let time = begun.elapsed();
    let mut latencies = latencies.into_inner().expect("lock");
    latencies.sort_unstable();
    Measured {
        time,
        latencies,
        groups: log.status().groups - groups,
    }
}

impl Measured {
    fn print(&self, what: &str, bytes: usize) {
        let ms = |part: f64| {
            let at = (self.latencies.len() as f64 * part) as usize;
            let latency = self.latencies.get(at).copied().unwrap_or_default();
            latency.as_secs_f64() * 1e3
        };
        let seconds = self.time.as_secs_f64();
        println!(
            "{what:<58} {:>8.0} records/s {:>7.0} groups/s {:>8.1} MB/s  median {:.2} ms, 99 % {:.2} ms",
            self.latencies.len() as f64 / seconds,
            self.groups as f64 / seconds,
            (self.latencies.len() * bytes) as f64 / seconds / 1e6,
            ms(0.5),
            ms(0.99)
        );
    }
}

fn main() {
    let seconds = std::env::var("JINDOU_SECONDS").ok();
    let time = Duration::from_secs_f64(seconds.and_then(|s| s.parse().ok()).unwrap_or(3.0));
    let slow = Some(Duration::from_millis(4));
    let none = Duration::ZERO;
    for (appenders, think) in [(16, 0), (16, 1), (16, 3), (1, 0), (64, 1)] {
        let directory = tempfile::tempdir().expect("a directory");
        let log = open(directory.path(), slow, LogOptions::default());
        let think = Duration::from_millis(think);
        let what = format!("sync 4 ms, {appenders} appenders, {think:?} between, 200 bytes");
        append(&log, appenders, 200, think, time).print(&what, 200);
    }
    let gather = LogOptions {
        gather: none,
        ..LogOptions::default()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let log = open(directory.path(), slow, gather);
    append(&log, 16, 200, Duration::from_millis(1), time)
        .print("the same, 1 ms between, groups gather nobody", 200);
    for lengthen_bytes in [0, 256 << 10] {
        let directory = tempfile::tempdir().expect("a directory");
        let options = LogOptions {
            lengthen_bytes,
            ..LogOptions::default()
        };
        let log = open(directory.path(), None, options);
        let what = format!("this disk, 16 appenders, lengthened by {lengthen_bytes}");
        append(&log, 16, 200, none, time).print(&what, 200);
        append(&log, 1, 200, none, time).print(&what.replace("16", "1"), 200);
    }
    for (name, durability) in [
        ("batch", Durability::Batch),
        (
            "interval of 100 ms",
            Durability::Interval(Duration::from_millis(100)),
        ),
        ("none", Durability::None),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let options = LogOptions {
            durability,
            ..LogOptions::default()
        };
        let log = open(directory.path(), None, options);
        let what = format!("this disk, 4 appenders, {name}, 1 MiB");
        append(&log, 4, 1 << 20, none, time).print(&what, 1 << 20);
    }
    for (count, bytes) in [(1_000_000u64, 100usize), (500, 1 << 20)] {
        let directory = tempfile::tempdir().expect("a directory");
        let options = LogOptions {
            durability: Durability::None,
            ..LogOptions::default()
        };
        let log = open(directory.path(), None, options);
        for n in 1..=count {
            let _unawaited = log.append(n, vec![0x5a; bytes]).expect("append");
        }
        log.close().expect("close");
        let files = Arc::new(Directory::open(directory.path()).expect("a directory"));
        let mut sum = 0u64;
        let (_, found) = Log::open(files, 1, 0, options, &mut |n, r| {
            sum += n + r.len() as u64;
            Ok(())
        })
        .expect("open");
        assert_eq!(found.records, count);
        assert!(sum > 0);
        println!(
            "replay of {count} records of {bytes} bytes: {:.3} s, {:.0} records/s, {:.0} MB/s (files in the page cache)",
            found.time.as_secs_f64(),
            count as f64 / found.time.as_secs_f64(),
            found.bytes as f64 / found.time.as_secs_f64() / 1e6
        );
    }
}
