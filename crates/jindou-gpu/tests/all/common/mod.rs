//! Devices and small graphs for tests.
//!
//! Tests that use [`TestDevice`] or [`device`] run on the shim, or, with `JINDOU_TEST_DEVICE=card` in the environment,
//! on this machine's GPU. Tests that need the shim (delayed work, counted requests, injected faults) always use it.

use jindou_engine::{
    ChecksumSink, CollectSink, ExecOptions, Execution, ExecutionOutcome, Executor, ExecutorChoice,
    QueryTerms, Summed,
};
use jindou_gpu::faults::{DeviceFault, DeviceFaults};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, GpuExecutor, GpuOptions, GpuProfile, ResultUse};
use jindou_model::{Error, Progress, QuadSource, VertexId};
use jindou_plan::{Plan, PlanOptions, parse, plan};
use jindou_store::testing::{canonical, changed, store_of};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_testing::{named, triple};
use oxrdf::Literal;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The environment variable that selects the device.
const DEVICE: &str = "JINDOU_TEST_DEVICE";

/// This machine's GPU if tests are to run on it, opened once; `None` for the shim. Panics if there is no GPU, or if the
/// variable has an unknown value.
fn card() -> Option<Arc<dyn Backend>> {
    static CARD: OnceLock<Result<Option<Arc<dyn Backend>>, String>> = OnceLock::new();
    let opened = CARD.get_or_init(|| match std::env::var(DEVICE).as_deref() {
        Err(_) | Ok("" | "shim") => Ok(None),
        Ok("card") => jindou_gpu::open().map(Some),
        Ok(other) => Err(format!("'{other}' is not one of card, shim")),
    });
    match opened {
        Ok(card) => card.clone(),
        Err(why) => panic!("{DEVICE} asks for a device that cannot be had: {why}"),
    }
}

/// A device for a test.
pub struct TestDevice {
    pub backend: Arc<dyn Backend>,
    /// The shim; `None` for a GPU.
    shim: Option<Arc<Shim>>,
}

impl TestDevice {
    /// A shim with these options, even if tests run on a GPU.
    pub fn on_shim(options: ShimOptions) -> Self {
        let shim = shim(options);
        Self {
            backend: shim.clone(),
            shim: Some(shim),
        }
    }

    /// A shim with these options, or the GPU; with small pages, if the options say so.
    pub fn open(options: ShimOptions) -> Self {
        let Some(card) = card() else {
            return Self::on_shim(options);
        };
        let backend: Arc<dyn Backend> = match options.page {
            0 => card,
            page => Arc::new(DeviceFaults::new(card, DeviceFault::Error, 0).with_page(page)),
        };
        let shim = None;
        Self { backend, shim }
    }

    /// Bytes of device memory held by the pool. Always 0 on a GPU: all tests share its pool, so a test cannot tell
    /// which bytes are its own.
    pub fn reserved(&self) -> u64 {
        self.shim.as_ref().map_or(0, |s| s.holdings().reserved)
    }

    /// Panics if memory or markers are still allocated. Does nothing for a GPU.
    pub fn holds_nothing(&self, case: &str) {
        if let Some(shim) = &self.shim {
            holds_nothing(shim, case);
        }
    }
}

/// The device; a shim runs threads in an order drawn from `seed`.
pub fn device(seed: u64) -> Arc<dyn Backend> {
    let options = ShimOptions {
        seed,
        ..ShimOptions::default()
    };
    TestDevice::open(options).backend
}

/// Options for a shim with pages of this many bytes.
pub fn paged(page: usize) -> ShimOptions {
    ShimOptions {
        page,
        ..ShimOptions::default()
    }
}

/// A shim that does everything as late as possible, if `delay`.
pub fn late(delay: bool) -> Arc<Shim> {
    shim(ShimOptions {
        delay,
        ..ShimOptions::default()
    })
}

/// A shim with these options.
pub fn shim(options: ShimOptions) -> Arc<Shim> {
    Arc::new(Shim::open(options).unwrap())
}

/// A shim that records what each launch moves.
pub fn logging() -> Arc<Shim> {
    shim(ShimOptions {
        log: true,
        ..ShimOptions::default()
    })
}

/// Panics if memory or markers of a shim are still allocated.
pub fn holds_nothing(shim: &Shim, case: &str) {
    let held = shim.holdings();
    assert_eq!((held.device, held.pinned, held.marks), (0, 0, 0), "{case}");
}

/// Waits until something holds; if it takes too long, panics with what `shown` returns.
pub fn until(holds: impl Fn() -> bool, shown: impl Fn() -> String) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(20), "{}", shown());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// An executor that may use this many bytes of device memory.
pub fn limited(backend: Arc<dyn Backend>, memory: u64) -> GpuExecutor {
    GpuExecutor::limited(backend, memory, Duration::from_secs(600))
}

/// About the least memory, in bytes, in which `runs` returns true, found by halving. `near` is the precision, given an
/// upper bound; a run takes `footprint` bytes without a limit.
pub fn least(footprint: u64, near: impl Fn(u64) -> u64, mut runs: impl FnMut(u64) -> bool) -> u64 {
    // Tables may take nine tenths of the free memory.
    let (mut no, mut yes) = (0, footprint.max(1) * 10 / 9 + 1);
    while yes - no > near(yes) {
        let middle = no + (yes - no) / 2;
        match runs(middle) {
            true => yes = middle,
            false => no = middle,
        }
    }
    yes
}

/// The rows in their order, as ids.
pub fn ids_of(rows: &CollectSink) -> Vec<Vec<u32>> {
    rows.rows().map(<[u32]>::to_vec).collect()
}

/// Sorts rows, for comparisons where their order does not matter.
pub fn sorted<R: Ord>(mut rows: Vec<R>) -> Vec<R> {
    rows.sort_unstable();
    rows
}

/// The rows of a plan on a device, sorted.
pub fn rows_on(
    gpu: &GpuExecutor,
    plan: &Plan,
    snapshot: &Snapshot,
    options: &GpuOptions,
) -> jindou_model::Result<Vec<Vec<u32>>> {
    let mut rows: Vec<Vec<u32>> = vec![];
    let mut sink = |columns: &[&[u32]], n: usize| {
        rows.extend((0..n).map(|i| columns.iter().map(|c| c[i]).collect()));
        Ok(())
    };
    let result = gpu.execute(plan, snapshot, ResultUse::Rows(&mut sink), options)?;
    assert_eq!(result.rows, rows.len() as u64);
    Ok(sorted(rows))
}

/// The rows of a plan on the CPU, sorted.
pub fn rows_here(plan: &Plan, snapshot: &Snapshot) -> Vec<Vec<u32>> {
    let (rows, _, _) = streamed(plan, snapshot, &ExecutorChoice::Here);
    sorted(ids_of(&rows))
}

/// The rows of a plan, the terms that it made, and how it ran.
pub fn streamed(
    plan: &Plan,
    snapshot: &Snapshot,
    executor: &ExecutorChoice,
) -> (CollectSink, QueryTerms, ExecutionOutcome) {
    let (terms, mut rows) = (QueryTerms::new(), CollectSink::default());
    let execution = Execution {
        plan,
        snapshot,
        options: &ExecOptions::default(),
        terms: &terms,
        executor,
    };
    let ran = execution.stream(&mut rows).unwrap();
    (rows, terms, ran)
}

/// The rows as terms, in their order.
pub fn terms_of(rows: &CollectSink, terms: &QueryTerms, snapshot: &Snapshot) -> Vec<Vec<String>> {
    let term = |&id: &u32| {
        let mut bytes = vec![];
        let known = id == 0
            || terms.term(VertexId(id), &mut bytes)
            || snapshot.term(VertexId(id), &mut bytes);
        assert!(known, "unknown id {id}");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    rows.rows().map(|r| r.iter().map(term).collect()).collect()
}

/// The rows of a plan as terms, in their order, and how it ran.
pub fn answer(
    plan: &Plan,
    snapshot: &Snapshot,
    executor: &ExecutorChoice,
) -> (Vec<Vec<String>>, ExecutionOutcome) {
    let (rows, terms, ran) = streamed(plan, snapshot, executor);
    (terms_of(&rows, &terms, snapshot), ran)
}

/// The rows of a plan as terms, in their order, and whether another executor than the CPU ran a part of it.
pub fn mixed(
    plan: &Plan,
    snapshot: &Snapshot,
    executor: &ExecutorChoice,
) -> (Vec<Vec<String>>, bool) {
    let (rows, ran) = answer(plan, snapshot, executor);
    (rows, ran.profile.nodes.iter().any(|n| n.there.is_some()))
}

/// The device must run what it supports.
pub fn demanded(gpu: &Arc<GpuExecutor>) -> ExecutorChoice {
    ExecutorChoice::Demanded(Arc::clone(gpu) as Arc<dyn Executor>)
}

/// The CPU takes over whatever the device cannot run.
pub fn rather(gpu: &Arc<GpuExecutor>) -> ExecutorChoice {
    ExecutorChoice::Rather(Arc::clone(gpu) as Arc<dyn Executor>)
}

/// Number and checksum of the rows of a plan on the CPU.
pub fn sum_here(plan: &Plan, snapshot: &Snapshot) -> (u64, u64) {
    let sum = Summed::<ChecksumSink>::default();
    let options = ExecOptions::default();
    jindou_engine::execute(plan, snapshot, &options, &QueryTerms::default(), &sum).unwrap();
    let sum = sum.into_inner();
    (sum.rows, sum.checksum)
}

/// Number and checksum of the rows of a plan on a device, and the profile; `None` if the plan is left to the CPU.
pub fn sum_on(
    gpu: &GpuExecutor,
    plan: &Plan,
    snapshot: &Snapshot,
) -> Option<((u64, u64), GpuProfile)> {
    match gpu.execute(plan, snapshot, ResultUse::Checksum, &GpuOptions::default()) {
        Ok(r) => Some(((r.rows, r.checksum.unwrap()), r.profile)),
        Err(Error::Unsupported(_) | Error::Limit(_)) => None,
        Err(e) => panic!("{e}"),
    }
}

/// The plan of a query.
pub fn planned(snapshot: &Snapshot, text: &str) -> Plan {
    plan(&parse(text).unwrap(), snapshot, &PlanOptions::default()).unwrap()
}

/// The plan of a query with the prefix `:` for `http://e/`.
pub fn native(snapshot: &Snapshot, text: &str) -> Plan {
    planned(snapshot, &format!("PREFIX : <http://e/> {text}"))
}

/// A store on disk with the quads of a source.
pub fn stored(source: &dyn QuadSource) -> (tempfile::TempDir, Snapshot) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions::default()
        .with_memory(512 << 20)
        .with_threads(2);
    load(&dir, source, &options, &Progress::default()).unwrap();
    (folder, Snapshot::of_base(open(&dir).unwrap()))
}

/// A snapshot of [`ring`] with edges added (`true`) or removed (`false`): numbers of subject and object, and the
/// predicate.
pub fn edited(snapshot: &Snapshot, edits: &[(u32, &str, u32, bool)]) -> Snapshot {
    let changes = edits.iter().map(|&(s, p, o, comes)| {
        let edge = triple(&format!("n{s}"), p, named(&format!("n{o}")));
        (canonical(&edge), comes)
    });
    changed(Snapshot::of_base(Arc::clone(snapshot.base())), changes)
}

/// `n` nodes in a ring, each with an edge `:p` to the next `reach` nodes, `:q` to the seventh node after it, and `:v`
/// to its number.
pub fn ring(n: u32, reach: u32) -> (tempfile::TempDir, Snapshot) {
    let node = |i: u32| format!("n{}", i % n);
    let mut quads = vec![];
    for i in 0..n {
        for d in 1..=reach {
            quads.push(triple(&node(i), "p", named(&node(i + d))));
        }
        quads.push(triple(&node(i), "q", named(&node(i + 7))));
        quads.push(triple(&node(i), "v", Literal::from(i64::from(i))));
    }
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}
