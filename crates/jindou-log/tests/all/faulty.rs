//! Several appenders on a failing disk, and a process that dies at random moments, again and again: acknowledged
//! records must always be there, the records after them only in order and complete, and nothing else may ever be
//! returned.

use crate::log_files;
use jindou_log::{
    Crash, Damage, DiskFaults, Durability, Faulty, Files, Log, LogOptions, Recovery, check,
    check_for,
};
use jindou_model::random::splitmix64;
use jindou_model::{Error, Result};
use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

const EPOCH: u64 = 7;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        splitmix64(&mut self.0) % n.max(1)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A random record. It contains its attempt, and the attempt of the record before it in its history.
fn record(number: u64, attempt: u32, parent: u32, random: &mut Random, old: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for n in [number as u32, attempt, parent] {
        bytes.extend_from_slice(&n.to_le_bytes());
    }
    let length = match random.below(8) {
        0 => 0,
        1 => random.below(6000),
        _ => random.below(120),
    } as usize;
    match random.below(4) {
        0 => bytes.resize(12 + length, 0),
        1 => bytes.extend(old.iter().take(length)),
        _ => bytes.extend((0..length).map(|_| random.below(256) as u8)),
    }
    bytes
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Facts that must be true of the log on the disk.
#[derive(Default)]
struct Model {
    /// All records that were ever appended, by attempt. An attempt is a unique number.
    attempts: HashMap<u32, Vec<u8>>,
    /// Attempts of the records that must be there, by record number.
    must: HashMap<u64, u32>,
    /// All records up to this number must be there after any crash.
    durable: u64,
    /// All records up to this number must be there if only the process dies.
    acknowledged: u64,
    /// Number of the last record that was reported to a caller: by a ticket, or by an opening that could write.
    told: u64,
    /// Number of the last record in the base.
    base: u64,
    /// Attempt of the last record before the log.
    base_attempt: u32,
}

impl Model {
    /// Number of the last record that must be there after a crash.
    fn least(&self, files: &Faulty, crash: Crash) -> u64 {
        match crash {
            Crash::Kill if !files.has_lost() => self.acknowledged,
            _ => self.durable,
        }
    }

    /// Notes that a record was acknowledged, and with it all records before it.
    fn acknowledge(&mut self, number: u64, mut attempt: u32) {
        self.acknowledged = self.acknowledged.max(number);
        self.told = self.told.max(number);
        for n in (self.base + 1..=number).rev() {
            if self.must.insert(n, attempt) == Some(attempt) {
                return;
            }
            attempt = word(&self.attempts[&attempt], 8);
        }
    }
}

/// Opens the log and compares it with the model.
fn open(
    files: &Faulty,
    model: &mut Model,
    options: LogOptions,
    crash: Crash,
) -> Result<(Log, Recovery, u32)> {
    let mut read: Vec<Vec<u8>> = Vec::new();
    let base = model.base;
    let (log, found) = Log::open(
        std::sync::Arc::new(files.clone()),
        EPOCH,
        base,
        options,
        &mut |number, bytes| {
            assert_eq!(number, base + read.len() as u64 + 1, "in order");
            read.push(bytes.to_vec());
            Ok(())
        },
    )?;
    let last = base + read.len() as u64;
    assert_eq!(found.last, last);
    assert_eq!(found.records as usize, read.len());
    let least = model.least(files, crash);
    assert!(
        last >= least,
        "records up to {least} were acknowledged, there are {last} after {crash:?}: {found}"
    );
    let mut parent = model.base_attempt;
    for (number, bytes) in (base + 1..).zip(&read) {
        let attempt = word(bytes, 4);
        assert_eq!(word(bytes, 0), number as u32);
        assert_eq!(
            Some(bytes),
            model.attempts.get(&attempt),
            "as it was handed over"
        );
        assert_eq!(
            word(bytes, 8),
            parent,
            "record {number} continues another history"
        );
        if number <= least {
            assert_eq!(
                model.must.get(&number),
                Some(&attempt),
                "record {number} is another one"
            );
        }
        parent = attempt;
    }
    for (number, bytes) in (base + 1..).zip(&read) {
        model.must.insert(number, word(bytes, 4));
    }
    // Records that were found stay, unless they could not be made durable.
    model.acknowledged = last;
    model.told = match found.read_only {
        None => last,
        // A caller may have been told of more records before a crash that lost them.
        Some(_) => model.told.min(least),
    };
    model.durable = match found.read_only {
        None => last,
        Some(_) => model.durable.min(last),
    };
    Ok((log, found, parent))
}

struct Head {
    next: u64,
    attempt: u32,
    /// Number of resets so far.
    generation: u32,
    /// True if records are acknowledged only once they are durable.
    batch: bool,
    model: Model,
    random: Random,
}

fn random_options(random: &mut Random) -> LogOptions {
    LogOptions {
        durability: match random.below(4) {
            0 => Durability::Interval(Duration::from_micros(random.below(2000))),
            1 => Durability::None,
            _ => Durability::Batch,
        },
        file_bytes: 100 + random.below(8000),
        lengthen_bytes: [0, 512, 4096][random.below(3) as usize],
        queue_bytes: 100 + random.below(10_000) as usize,
        group_bytes: 1 + random.below(8000) as usize,
        unsynced_bytes: random.below(5000) as usize,
        idle: Duration::from_micros(random.below(1000)),
        gather: Duration::from_micros(random.below(100)),
    }
}

fn faults_while_opening(random: &mut Random) -> DiskFaults {
    let mut faults = DiskFaults::default();
    if random.one_in(3) {
        faults.die_after = Some(random.below(30));
    }
    if random.one_in(4) {
        faults.sync = 200_000;
        faults.sync_directory = 200_000;
        faults.write = 200_000;
        faults.other = 200_000;
    }
    if random.one_in(8) {
        faults.refuse = Some(ErrorKind::ReadOnlyFilesystem);
    }
    faults
}

/// Changes the disk's faults, or advances the base.
fn disturb(files: &Faulty, log: &Log, head: &Mutex<Head>, random: &mut Random) {
    match random.below(8) {
        0 => files.set(DiskFaults {
            sync: 150_000,
            sync_directory: 150_000,
            write: 150_000,
            other: 150_000,
            ..DiskFaults::default()
        }),
        1 => files.set(DiskFaults {
            room: Some(random.below(20_000)),
            ..DiskFaults::default()
        }),
        2 => files.set(DiskFaults {
            refuse: Some(
                [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied]
                    [random.below(2) as usize],
            ),
            ..DiskFaults::default()
        }),
        3 => files.set(DiskFaults {
            die_after: Some(random.below(40)),
            ..DiskFaults::default()
        }),
        4 => {
            let upto = {
                let mut h = head.lock().expect("lock");
                let durable = log.status().durable.min(h.model.acknowledged);
                let m = &mut h.model;
                let upto = m.base + random.below(durable.saturating_sub(m.base) + 1);
                m.base_attempt = m.must.get(&upto).copied().unwrap_or(m.base_attempt);
                m.base = upto;
                m.durable = m.durable.max(upto);
                upto
            };
            let _ = log.truncate(upto);
        }
        _ => files.set(DiskFaults::default()),
    }
}

/// Checks that a log on a disk without faults accepts records again, whatever happened before.
fn assert_recovers(files: &Faulty, log: &Log, head: &Mutex<Head>, attempt: &AtomicU32) {
    files.set(DiskFaults::default());
    let before = head.lock().expect("lock").model.acknowledged;
    append(log, head, attempt);
    append(log, head, attempt);
    let after = head.lock().expect("lock").model.acknowledged;
    assert!(
        after > before,
        "the log does not recover: {:?}",
        log.status()
    );
}

fn random_crash(random: &mut Random) -> Crash {
    if random.one_in(2) {
        Crash::Power
    } else {
        Crash::Kill
    }
}

/// Simulates a process: opens the log, runs several appenders while faults change, and ends.
fn session(
    files: &Faulty,
    model: Model,
    random: &mut Random,
    attempt: &AtomicU32,
    crash: Crash,
) -> (Model, Crash) {
    let mut model = model;
    let options = random_options(random);
    files.set(faults_while_opening(random));
    let opened = open(files, &mut model, options, crash);
    let (log, _, parent) = match opened {
        Ok(opened) => opened,
        Err(Error::Io { .. }) if files.is_dead() => {
            let next = random_crash(random);
            files.crash(next);
            // Data that was only in the cache is lost for good.
            return (model, if crash == Crash::Power { crash } else { next });
        }
        Err(e) => {
            for d in check(files).map(|r| r.damages).unwrap_or_default() {
                show(files, &d);
            }
            panic!("a log that nobody damaged does not open: {e}");
        }
    };
    let head = Mutex::new(Head {
        next: model.acknowledged + 1,
        attempt: parent,
        generation: 0,
        batch: options.durability == Durability::Batch,
        model,
        random: Random(random.below(u64::MAX)),
    });
    let stop = AtomicBool::new(false);
    let appended = AtomicU32::new(0);
    let many = 4 + random.below(60) as u32;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed)
                    && appended.fetch_add(1, Ordering::Relaxed) < many
                {
                    append(&log, &head, attempt);
                }
            });
        }
        // Meanwhile, faults change and the base advances.
        let mut faults = 0;
        while appended.load(Ordering::Relaxed) < many && !files.is_dead() {
            std::thread::sleep(Duration::from_micros(random.below(300)));
            faults += 1;
            if faults > 20 {
                break;
            }
            disturb(files, &log, &head, random);
        }
        if files.is_dead() || random.one_in(2) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    if !files.is_dead() {
        assert_recovers(files, &log, &head, attempt);
    }
    let durable = log.status().durable;
    let mut model = head.into_inner().expect("lock").model;
    model.durable = model.durable.max(durable.min(model.acknowledged));
    let crash = random_crash(random);
    if files.is_dead() || random.one_in(2) {
        files.set(DiskFaults {
            die_after: Some(0),
            ..DiskFaults::default()
        });
        drop(log);
    } else {
        log.close().expect("a disk without faults");
        model.durable = model.acknowledged;
    }
    files.crash(crash);
    (model, crash)
}

fn append(log: &Log, head: &Mutex<Head>, attempts: &AtomicU32) {
    let attempt = attempts.fetch_add(1, Ordering::Relaxed);
    let (number, generation, ticket) = {
        let mut h = head.lock().expect("lock");
        let h = &mut *h;
        let (number, parent) = (h.next, h.attempt);
        let old = h.model.attempts.get(&parent).cloned().unwrap_or_default();
        let bytes = record(number, attempt, parent, &mut h.random, &old);
        h.model.attempts.insert(attempt, bytes.clone());
        match log.append(number, bytes) {
            Ok(ticket) => {
                h.next += 1;
                h.attempt = attempt;
                (number, h.generation, ticket)
            }
            Err(e) => {
                assert!(matches!(e, Error::Io { .. }), "{e}");
                reset(log, h);
                return;
            }
        }
    };
    let outcome = ticket.wait();
    let mut h = head.lock().expect("lock");
    match outcome {
        Ok(()) => {
            h.model.acknowledge(number, attempt);
            if h.batch {
                h.model.durable = h.model.durable.max(number);
            }
        }
        Err(e) => {
            assert!(matches!(e, Error::Io { .. }), "{e}");
            if h.generation == generation {
                reset(log, &mut h);
            }
        }
    }
}

/// Returns to the last acknowledged record, as a database does after a failure.
fn reset(log: &Log, h: &mut Head) {
    h.generation += 1;
    let acknowledged = log.status().acknowledged;
    // Finds the attempt of the last acknowledged record; the tickets of later records may not have been checked yet.
    while h.next > acknowledged + 1 {
        h.next -= 1;
        h.attempt = word(&h.model.attempts[&h.attempt], 8);
    }
    // These include records that an opening has read but could not make durable, of which no caller was told.
    let told = h.model.told;
    h.model.acknowledge(acknowledged, h.attempt);
    h.model.told = told;
    log.reset(acknowledged + 1)
        .expect("the number after the last acknowledged one");
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let files = Faulty::new(random.below(u64::MAX));
    let attempt = AtomicU32::new(1);
    // Start numbers such that files have record numbers of 32 bits, of 64 bits, or first the one and then the other.
    let start = match seed % 4 {
        0 => (1 << 31) - seed % 60,
        1 => (1 << 32) - seed % 60,
        _ => 0,
    };
    let mut model = Model {
        base: start,
        durable: start,
        acknowledged: start,
        told: start,
        ..Model::default()
    };
    let mut crash = Crash::Power;
    for _ in 0..2 + random.below(5) {
        (model, crash) = session(&files, model, &mut random, &attempt, crash);
    }
    losses(&files, &model, &mut random, crash);
    flips(&files, model, &mut random, crash);
}

/// Opens copies of the disk in which one log file is missing. This must be reported, unless no caller was told of a
/// record in that file.
fn losses(files: &Faulty, model: &Model, random: &mut Random, crash: Crash) {
    let names = log_files(files);
    let least = model.least(files, crash).min(model.told);
    for name in &names {
        let copy = files.copy(random.below(u64::MAX));
        copy.remove(name).expect("removed");
        let copy = std::sync::Arc::new(copy);
        let none = &mut |_: u64, _: &[u8]| Ok(());
        match Log::open(copy.clone(), EPOCH, model.base, LogOptions::default(), none) {
            Ok((_, found)) => assert!(
                found.last >= least,
                "{name} is not missed: {found}; told {}, durable {}, acknowledged {}, base {}, {crash:?}, lost {}; {:?} {}",
                model.told,
                model.durable,
                model.acknowledged,
                model.base,
                files.has_lost(),
                names,
                String::from_utf8_lossy(&files.end().ok().flatten().unwrap_or_default()),
            ),
            Err(e @ Error::Damaged { .. }) => {
                let message = e.to_string();
                assert!(
                    message.contains(name) && message.contains("missing"),
                    "{message}"
                );
                let report = check_for(&*copy, EPOCH, model.base).expect("a disk without faults");
                assert!(!report.is_sound(), "check does not find what {message}");
            }
            Err(e) => panic!("{e}"),
        }
    }
}

fn show(files: &Faulty, d: &Damage) {
    let bytes = files.read(&d.file, u64::MAX).unwrap_or_default();
    let from = bytes.len().min(d.offset as usize);
    let to = bytes.len().min(from + 160);
    eprintln!("{d}; of {} bytes: {:02x?}", bytes.len(), &bytes[from..to]);
}

/// Opens copies of the disk in which one bit was flipped.
fn flips(files: &Faulty, model: Model, random: &mut Random, crash: Crash) {
    let report = check(files).expect("a disk without faults");
    report.damages.iter().for_each(|d| show(files, d));
    assert!(report.is_sound(), "{:?}", report.damages);
    let names = log_files(files);
    let least = model.least(files, crash);
    for _ in 0..4 {
        let Some(name) = names.get(random.below(names.len() as u64) as usize) else {
            return;
        };
        let copy = files.copy(random.below(u64::MAX));
        let length = copy.read(name, u64::MAX).expect("read").len() as u64;
        let byte = random.below(length);
        if random.one_in(4) {
            // A sector that reads as zeros instead.
            let byte = byte - byte % 512;
            let zeros = vec![0; 512.min(length - byte) as usize];
            let mut file = copy.open(name).expect("open");
            file.write_at(byte, &zeros).expect("write");
        } else if !copy.flip(name, byte, random.below(8) as u32) {
            continue;
        }
        let mut read = Vec::new();
        let opened = Log::open(
            std::sync::Arc::new(copy.clone()),
            EPOCH,
            model.base,
            LogOptions::default(),
            &mut |number, bytes| {
                read.push((number, bytes.to_vec()));
                Ok(())
            },
        );
        for (_, bytes) in &read {
            assert_eq!(
                Some(bytes),
                model.attempts.get(&word(bytes, 4)),
                "damage is served"
            );
        }
        match opened {
            Err(e @ Error::Damaged { .. }) => {
                let message = e.to_string();
                assert!(
                    message.contains(".log") && message.contains("byte"),
                    "{message}"
                );
                let report = check(&copy).expect("a disk without faults");
                assert!(!report.is_sound(), "check does not find what {message}");
            }
            Err(e) => panic!("{e}"),
            Ok((_, found)) => {
                if found.last < least {
                    // The one case that cannot be told from a crash: the last group of the log, which no later group
                    // proves to have been durable, has zeros where it changed. If the whole group is zeros, it looks as
                    // if it had never existed.
                    assert_eq!(name, names.last().expect("a file"));
                    let whole = copy.read(name, u64::MAX).expect("read");
                    match found.cut {
                        Some(cut) => {
                            assert_eq!(&cut.file, name);
                            assert!(cut.offset <= byte | 511, "bytes before the damage are cut");
                            assert_eq!(cut.offset + cut.bytes, whole.len() as u64);
                        }
                        None => {
                            let from = (byte - byte % 512) as usize;
                            let zero = whole[from..].iter().all(|&b| b == 0);
                            assert!(zero, "records are missing without a word");
                        }
                    }
                    CUT.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        FLIPPED.fetch_add(1, Ordering::Relaxed);
    }
}

static FLIPPED: AtomicU32 = AtomicU32::new(0);
static CUT: AtomicU32 = AtomicU32::new(0);

fn runs(from: u64, count: u64) {
    for seed in from..from + count {
        let result = std::panic::catch_unwind(|| run(seed));
        if let Err(panic) = result {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
    println!(
        "{count} runs; {} flipped bits, of which {} passed for a torn tail and were reported as one",
        FLIPPED.load(Ordering::Relaxed),
        CUT.load(Ordering::Relaxed)
    );
}

#[test]
fn nothing_acknowledged_is_lost() {
    runs(1, 150);
}

/// The environment variables `JINDOU_RUNS` and `JINDOU_SEED` select other runs.
#[test]
#[ignore = "minutes"]
fn nothing_acknowledged_is_lost_in_ten_thousand_runs() {
    let number = |name: &str, default| {
        std::env::var(name)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(default)
    };
    runs(
        number("JINDOU_SEED", 1_000_000),
        number("JINDOU_RUNS", 10_000),
    );
}
