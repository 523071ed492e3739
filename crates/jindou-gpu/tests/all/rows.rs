//! Rows that are copied back in blocks: all threads of the query process them, only a few blocks are in pinned memory
//! at a time, and other queries can use the device in the meantime.

use crate::common::{demanded, holds_nothing, late, native, rather, ring};
use jindou_engine::{ExecOptions, Execution, ExecutorChoice, ParallelSink, QueryTerms, Sink};
use jindou_gpu::faults::{DeviceFault, DeviceFaults};
use jindou_gpu::shim::Shim;
use jindou_gpu::{GpuExecutor, GpuOptions, ResultUse};
use jindou_model::{CancelToken, Error, MemoryBudget, Result};
use jindou_plan::{Plan, Weight};
use jindou_store::Snapshot;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// A sink that records the number of rows from all workers, an order-independent sum of them, the threads that
/// delivered them, and the largest amount of pinned memory in the meantime.
struct Rows<'s> {
    shim: &'s Shim,
    rows: AtomicU64,
    sum: AtomicU64,
    pinned: AtomicU64,
    threads: Mutex<HashSet<ThreadId>>,
    each: Duration,
    /// Called for each batch with the number of rows so far.
    at: &'s (dyn Fn(u64) -> Result<()> + Sync),
}

struct Part<'p, 's>(&'p Rows<'s>);

impl Sink for Part<'_, '_> {
    fn batch(&mut self, columns: &[&[u32]], rows: usize) -> Result<()> {
        let all = self.0;
        std::thread::sleep(all.each);
        let thread = std::thread::current().id();
        all.threads.lock().unwrap().insert(thread);
        let pinned = all.shim.holdings().pinned;
        all.pinned.fetch_max(pinned, Ordering::SeqCst);
        let row = |r: usize| {
            let mut hash = 7u64;
            for c in columns {
                hash = (hash ^ u64::from(c[r])).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            }
            hash
        };
        let sum = (0..rows).fold(0u64, |sum, r| sum.wrapping_add(row(r)));
        all.sum.fetch_add(sum, Ordering::SeqCst);
        let before = all.rows.fetch_add(rows as u64, Ordering::SeqCst);
        (all.at)(before + rows as u64)
    }
}

impl<'p, 's> ParallelSink for &'p Rows<'s> {
    type Local = Part<'p, 's>;

    fn local(&self) -> Part<'p, 's> {
        Part(self)
    }

    fn merge(&self, _: Part<'p, 's>) -> Result<()> {
        Ok(())
    }
}

impl<'s> Rows<'s> {
    fn new(shim: &'s Shim, at: &'s (dyn Fn(u64) -> Result<()> + Sync)) -> Self {
        Self {
            shim,
            rows: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            pinned: AtomicU64::new(0),
            threads: Mutex::default(),
            each: Duration::ZERO,
            at,
        }
    }

    fn found(&self) -> (u64, u64) {
        let now = |n: &AtomicU64| n.load(Ordering::SeqCst);
        (now(&self.rows), now(&self.sum))
    }
}

fn run(
    rows: &Rows<'_>,
    plan: &Plan,
    snapshot: &Snapshot,
    executor: &ExecutorChoice,
    options: &ExecOptions,
) -> Result<(usize, Option<String>)> {
    let terms = QueryTerms::new();
    let execution = Execution {
        plan,
        snapshot,
        options,
        terms: &terms,
        executor,
    };
    let ran = execution.run(&rows)?;
    assert_eq!(ran.profile.rows, rows.found().0);
    Ok((ran.profile.threads, ran.why_here))
}

fn heavy(snapshot: &Snapshot, text: &str) -> Plan {
    let mut plan = native(snapshot, text);
    plan.weight = Weight::Heavy;
    plan
}

fn options(threads: usize) -> ExecOptions {
    ExecOptions {
        threads,
        ..ExecOptions::default()
    }
}

fn chosen(gpu: &Arc<GpuExecutor>, hold: bool) -> ExecutorChoice {
    match hold {
        true => rather(gpu),
        false => demanded(gpu),
    }
}

/// Pinned memory in bytes for uploads and row counts.
const STAGING: u64 = (4 << 20) + (64 << 10);

/// A plan that the device runs as a whole, steps with a filter above that the device does not support, and a cross
/// product with a column for a variable that nothing binds.
const TEXTS: [&str; 3] = [
    "SELECT ?a ?b WHERE { ?a :q ?x . ?b :q ?y }",
    "SELECT ?a ?b WHERE { ?a :q ?x . ?b :q ?y FILTER(STR(?a) < STR(?b)) }",
    "SELECT ?a ?none ?b WHERE { ?a :q ?x . ?b :q ?y }",
];

#[test]
fn all_threads_take_the_rows_of_the_device() {
    let (_folder, snapshot) = ring(900, 1);
    for text in TEXTS {
        let plan = heavy(&snapshot, text);
        let shim = late(true);
        let gpu = Arc::new(GpuExecutor::new(shim.clone()));
        let want = Rows::new(&shim, &|_| Ok(()));
        run(&want, &plan, &snapshot, &ExecutorChoice::Here, &options(1)).unwrap();
        assert!(want.found().0 > 100_000);
        for (threads, hold) in [(1, false), (1, true), (4, false), (4, true)] {
            let mut rows = Rows::new(&shim, &|_| Ok(()));
            rows.each = Duration::from_micros(100);
            let executor = chosen(&gpu, hold);
            let options = options(threads);
            let (took_part, why) = run(&rows, &plan, &snapshot, &executor, &options).unwrap();
            assert_eq!(why, None, "{text}");
            assert_eq!(rows.found(), want.found(), "{text}");
            let seen = rows.threads.lock().unwrap().len();
            assert!(
                (seen > 1) == (threads > 1) && took_part >= seen,
                "{text}: {seen} of {threads}, {hold}"
            );
            // There are thirteen blocks of up to 1 MiB, of which two are being copied, one or two are queued, and each
            // worker has one.
            let pinned = rows.pinned.load(Ordering::SeqCst);
            let most = (threads as u64 + 4) * (1 << 20) + STAGING;
            assert!(pinned <= most, "{text}: {pinned} of {most}");
            assert_eq!(options.memory.used(), 0, "{text}");
        }
        drop(gpu);
        holds_nothing(&shim, text);
    }
}

/// While a consumer of rows stops, another query must be able to run.
#[test]
fn a_slow_reader_keeps_nobody_from_the_device() {
    let (_folder, snapshot) = ring(500, 1);
    let plan = heavy(&snapshot, TEXTS[0]);
    let other = heavy(&snapshot, "SELECT ?a ?c WHERE { ?a :q ?b . ?b :q ?c }");
    let shim = late(false);
    let gpu = Arc::new(GpuExecutor::new(shim.clone()));
    for threads in [1, 3] {
        let ran = AtomicU64::new(0);
        let at = |rows: u64| {
            if rows > 20_000 && ran.fetch_add(1, Ordering::SeqCst) == 0 {
                let done =
                    gpu.execute(&other, &snapshot, ResultUse::Count, &GpuOptions::default())?;
                assert_eq!(done.rows, 500);
            }
            Ok(())
        };
        let rows = Rows::new(&shim, &at);
        let (executor, options) = (demanded(&gpu), options(threads));
        run(&rows, &plan, &snapshot, &executor, &options).unwrap();
        assert_eq!(rows.found().0, 250_000);
        assert!(ran.load(Ordering::SeqCst) > 0);
    }
}

#[test]
fn who_stops_reading_ends_the_run() {
    let (_folder, snapshot) = ring(500, 1);
    let shim = late(true);
    let gpu = Arc::new(GpuExecutor::new(shim.clone()));
    for text in &TEXTS[..2] {
        let plan = heavy(&snapshot, text);
        let ways = [(1, false), (3, false), (3, true)].into_iter();
        let ways = ways.flat_map(|(t, h)| [(t, h, "closed"), (t, h, "cancelled")]);
        for (threads, hold, how) in ways {
            let cancel = CancelToken::new();
            let at = |rows: u64| match how {
                _ if rows < 30_000 => Ok(()),
                "closed" => Err(Error::SinkClosed),
                _ => {
                    cancel.cancel();
                    Ok(())
                }
            };
            let rows = Rows::new(&shim, &at);
            let options = ExecOptions {
                cancel: cancel.clone(),
                ..options(threads)
            };
            let began = Instant::now();
            let e = run(&rows, &plan, &snapshot, &chosen(&gpu, hold), &options).unwrap_err();
            let right = match how {
                "closed" => matches!(e, Error::SinkClosed),
                _ => matches!(e, Error::Cancelled),
            };
            assert!(right, "{text}, {how}: {e}");
            assert!(rows.found().0 < 120_000 && began.elapsed() < Duration::from_secs(20));
            assert_eq!((options.memory.used(), gpu.queries()), (0, 0), "{text}");
        }
    }
    drop(gpu);
    holds_nothing(&shim, "afterwards");
}

/// With `auto`, the CPU must give the whole answer whatever fails; a device that was demanded gives all rows or an
/// error.
#[test]
fn faults_while_threads_take_rows_give_all_rows_once_or_an_error() {
    let (_folder, snapshot) = ring(160, 1);
    let (mut runs, mut there, mut failed) = (0, 0, 0);
    for text in &TEXTS[..2] {
        let plan = heavy(&snapshot, text);
        let plain = late(false);
        let want = Rows::new(&plain, &|_| Ok(()));
        run(&want, &plan, &snapshot, &ExecutorChoice::Here, &options(1)).unwrap();
        let calls = {
            let faults = Arc::new(DeviceFaults::new(plain.clone(), DeviceFault::Error, 0));
            let gpu = Arc::new(GpuExecutor::new(faults.clone()));
            let rows = Rows::new(&plain, &|_| Ok(()));
            run(&rows, &plan, &snapshot, &chosen(&gpu, false), &options(3)).unwrap();
            assert_eq!(rows.found(), want.found());
            faults.calls()
        };
        for fault in DeviceFault::ALL {
            for at in (1..=calls).step_by(2) {
                for hold in [true, false] {
                    let case = format!("{text}: {fault:?} at {at} of {calls}, {hold}");
                    let shim = late(false);
                    let broken = Arc::new(DeviceFaults::new(shim.clone(), fault, at));
                    let gpu = Arc::new(GpuExecutor::new(broken.clone()));
                    let rows = Rows::new(&shim, &|_| Ok(()));
                    let options = ExecOptions {
                        memory: MemoryBudget::new(64 << 20),
                        ..options(3)
                    };
                    runs += 1;
                    match run(&rows, &plan, &snapshot, &chosen(&gpu, hold), &options) {
                        Ok((_, why)) => {
                            assert_eq!(rows.found(), want.found(), "{case}");
                            assert!(hold || why.is_none(), "{case}");
                            there += u32::from(why.is_none());
                        }
                        Err(e) => {
                            failed += 1;
                            assert!(!hold && matches!(e, Error::Gpu(_)), "{case}: {e}");
                        }
                    }
                    assert_eq!(options.memory.used(), 0, "{case}");
                    drop((gpu, broken));
                    holds_nothing(&shim, &case);
                }
            }
        }
    }
    println!("{runs} runs, {there} on the device, {failed} failed");
    assert!(failed > runs / 8, "{failed} of {runs}");
}
