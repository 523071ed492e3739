//! Plans on devices with too little memory, down to the least in which each runs: either they return the CPU's rows, or
//! they are refused and left to the CPU; the limit is never exceeded.

use crate::common::{edited, native, ring};
use jindou_engine::{ChecksumSink, ExecOptions, QueryTerms, Summed};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{GpuExecutor, GpuOptions, ResultUse};
use jindou_model::{Error, Progress, QuadSource};
use jindou_plan::{Plan, PlanOptions, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use std::sync::Arc;
use std::time::Duration;

/// Sizes of memory that are tried, as fractions of the memory that a plan takes without a limit.
const CAPS: [f64; 4] = [1.0, 0.8, 0.5, 0.2];

#[derive(Default, Debug)]
struct Tally {
    /// Number of runs in such a fraction of the memory that succeeded, and that were refused.
    ran: u32,
    refused: u32,
    cuts: u64,
}

/// Runs a plan on a new device that may use `memory` bytes: rows, checksum, number of cuts, and the largest memory in
/// use. `None` if the plan is left to the CPU.
fn on_device(plan: &Plan, snapshot: &Snapshot, memory: u64) -> Option<(u64, u64, u64, u64)> {
    let shim = Arc::new(Shim::open(ShimOptions::default()).unwrap());
    let gpu = GpuExecutor::limited(shim.clone(), memory, Duration::from_secs(600));
    let ran = gpu.execute(plan, snapshot, ResultUse::Checksum, &GpuOptions::default());
    // Memory has not been returned to the system yet, so this is the maximum.
    let peak = shim.holdings().reserved;
    assert!(peak <= memory, "{peak} bytes of {memory}");
    drop(gpu);
    let held = shim.holdings();
    assert_eq!((held.device, held.pinned, held.marks), (0, 0, 0));
    match ran {
        Ok(r) => Some((r.rows, r.checksum.unwrap(), r.profile.cuts, peak)),
        Err(Error::Unsupported(_) | Error::Limit(_)) => None,
        Err(e) => panic!("{memory} bytes: {e}"),
    }
}

/// Runs a plan in fractions of the memory that it takes without a limit, and finds the least memory in which it runs.
fn sweep(name: &str, plan: &Plan, snapshot: &Snapshot, tally: &mut Tally) {
    let cpu = Summed::<ChecksumSink>::default();
    let options = ExecOptions::default();
    jindou_engine::execute(plan, snapshot, &options, &QueryTerms::default(), &cpu).unwrap();
    let cpu = cpu.into_inner();
    let mut at = |memory: u64| {
        let ran = on_device(plan, snapshot, memory)?;
        assert_eq!(
            (ran.0, ran.1),
            (cpu.rows, cpu.checksum),
            "{name} in {memory} bytes"
        );
        tally.cuts += ran.2;
        Some(ran.3)
    };
    let Some(footprint) = at(1 << 30) else {
        panic!("{name} is refused with 1 GiB");
    };
    for part in CAPS {
        // Tables may take nine tenths of the free memory.
        match at((footprint as f64 * part / 0.9) as u64) {
            Some(_) => tally.ran += 1,
            None => tally.refused += 1,
        }
    }
    let (mut no, mut yes) = (0, footprint.max(1) * 10 / 9 + 1);
    while yes - no > (yes / 50).max(16) {
        let middle = no + (yes - no) / 2;
        match at(middle) {
            Some(_) => yes = middle,
            None => no = middle,
        }
    }
    println!("{name}: {footprint} bytes, at least {yes}");
}

fn stored(source: &dyn QuadSource) -> (tempfile::TempDir, Snapshot) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    let options = LoadOptions::default()
        .with_memory(256 << 20)
        .with_threads(2);
    load(&dir, source, &options, &Progress::default()).unwrap();
    (folder, Snapshot::of_base(open(&dir).unwrap()))
}

#[test]
fn plans_agree_with_the_cpu_however_little_memory_there_is() {
    let (_folder, base) = ring(300, 3);
    let patched = edited(&base, &[(3, "p", 30, true), (4, "q", 11, false)]);
    let mut tally = Tally::default();
    for text in [
        "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
        "SELECT ?a ?x ?c WHERE { ?a :p ?b . ?b ?x ?c . ?c :q ?d }",
        "SELECT ?a ?c WHERE { ?a :p ?b . ?b :q ?c FILTER(?c != :n3 && ?c != ?b) }",
        "SELECT ?a ?b WHERE { ?a :q ?x . ?b :q ?y }",
        "SELECT ?s ?p ?o WHERE { ?s ?p ?o }",
    ] {
        for snapshot in [&base, &patched] {
            sweep(text, &native(snapshot, text), snapshot, &mut tally);
        }
    }
    println!("{tally:?}");
    assert!(tally.ran >= 15 && tally.cuts > 20, "{tally:?}");
}

#[test]
fn lubm_agrees_with_the_cpu_however_little_memory_there_is() {
    let (_folder, snapshot) = stored(&jindou_workloads::lubm::Lubm::new(1, 0));
    let mut tally = Tally::default();
    for q in jindou_workloads::queries::lubm::QUERIES {
        let plan = plan(&parse(q.text).unwrap(), &snapshot, &PlanOptions::default()).unwrap();
        sweep(q.name, &plan, &snapshot, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.ran >= 12, "{tally:?}");
}
