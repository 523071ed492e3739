//! Plans on devices with too little memory, down to the least in which each runs: either they return the CPU's rows, or
//! they are refused and left to the CPU; the limit is never exceeded.

use crate::common::{
    TestDevice, edited, least, limited, native, paged, planned, ring, stored, sum_here, sum_on,
};
use jindou_engine::ChecksumSink;
use jindou_gpu::{GpuOptions, ResultUse};
use jindou_model::Error;
use jindou_plan::Plan;
use jindou_store::Snapshot;

/// Sizes of memory that are tried, as fractions of the memory that a plan takes without a limit.
const CAPS: [f64; 4] = [1.0, 0.8, 0.5, 0.2];

#[derive(Default, Debug)]
struct Tally {
    /// Number of runs in such a fraction of the memory that succeeded, and that were refused.
    ran: u32,
    refused: u32,
    cuts: u64,
}

/// Runs a plan on a new device that may use `memory` bytes: number and checksum of the rows, number of cuts, and the
/// largest memory in use. `None` if the plan is left to the CPU. If `leave`, all rows are copied back.
fn on_device(
    device: &TestDevice,
    plan: &Plan,
    snapshot: &Snapshot,
    memory: u64,
    leave: bool,
) -> Option<((u64, u64), u64, u64)> {
    let gpu = limited(device.backend.clone(), memory);
    let ran = if leave {
        let mut rows = ChecksumSink::default();
        let output = ResultUse::Blocks(&mut rows);
        match gpu.execute(plan, snapshot, output, &GpuOptions::default()) {
            Ok(r) => Some(((rows.rows, rows.checksum), r.profile)),
            Err(Error::Unsupported(_) | Error::Limit(_)) => None,
            Err(e) => panic!("{memory} bytes: {e}"),
        }
    } else {
        sum_on(&gpu, plan, snapshot)
    };
    // Memory has not been returned to the system yet, so this is the maximum.
    let peak = device.reserved();
    assert!(peak <= memory, "{peak} bytes of {memory}");
    drop(gpu);
    device.holds_nothing("afterwards");
    ran.map(|(sum, profile)| (sum, profile.cuts, peak))
}

/// Runs a plan in fractions of the memory that it takes without a limit, and finds the least memory in which it runs. If
/// `leave`, all rows are copied back, and the runs are on the device of [`TestDevice::open`] after the first.
fn sweep(name: &str, plan: &Plan, snapshot: &Snapshot, leave: bool, tally: &mut Tally) {
    let options = paged(64 << 10);
    let cpu = sum_here(plan, snapshot);
    let mut at = |device: &TestDevice, memory: u64| {
        let (sum, cuts, peak) = on_device(device, plan, snapshot, memory, leave)?;
        assert_eq!(sum, cpu, "{name} in {memory} bytes");
        tally.cuts += cuts;
        Some(peak)
    };
    let Some(footprint) = at(&TestDevice::on_shim(options), 1 << 30) else {
        panic!("{name} is refused with 1 GiB");
    };
    let open = || match leave {
        true => TestDevice::open(options),
        false => TestDevice::on_shim(options),
    };
    for part in CAPS {
        // Tables may take nine tenths of the free memory.
        match at(&open(), (footprint as f64 * part / 0.9) as u64) {
            Some(_) => tally.ran += 1,
            None => tally.refused += 1,
        }
    }
    let near = |yes: u64| (yes / 50).max(16);
    let yes = least(footprint, near, |memory| at(&open(), memory).is_some());
    println!("{name}: {footprint} bytes, at least {yes}");
}

/// Runs queries over a ring of `n` nodes, with edges to the next `reach`, and over a changed one.
fn sweep_all(n: u32, reach: u32, leave: bool, queries: &[&str]) -> Tally {
    let (_folder, base) = ring(n, reach);
    let patched = edited(&base, &[(3, "p", 30, true), (4, "q", 11, false)]);
    let mut tally = Tally::default();
    for text in queries {
        for snapshot in [&base, &patched] {
            sweep(text, &native(snapshot, text), snapshot, leave, &mut tally);
        }
    }
    println!("{tally:?}");
    tally
}

#[test]
fn plans_agree_with_the_cpu_however_little_memory_there_is() {
    let queries = [
        "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
        "SELECT ?a ?x ?c WHERE { ?a :p ?b . ?b ?x ?c . ?c :q ?d }",
        "SELECT ?a ?c WHERE { ?a :p ?b . ?b :q ?c FILTER(?c != :n3 && ?c != ?b) }",
        "SELECT ?a ?b WHERE { ?a :q ?x . ?b :q ?y }",
        "SELECT ?s ?p ?o WHERE { ?s ?p ?o }",
    ];
    let tally = sweep_all(300, 3, false, &queries);
    assert!(tally.ran >= 15 && tally.cuts > 20, "{tally:?}");
}

#[test]
fn operators_agree_with_the_cpu_however_little_memory_there_is() {
    let queries = [
        "SELECT ?a ?c ?v { ?a :p ?b . ?b :p ?c . ?c :v ?v FILTER(?v >= 10 && ?v < 350) }",
        "SELECT DISTINCT ?c { ?a :p ?b . ?b :p ?c }",
        "SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c FILTER EXISTS { ?c :p ?a } }",
        "SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c FILTER NOT EXISTS { ?c :p ?d . ?d :q ?a } }",
        "SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c MINUS { ?c :v ?v FILTER(?v < 200) } }",
        "SELECT ?a ?b ?c ?d { ?a :p ?b . ?b :q ?c OPTIONAL { ?c :p ?d . ?d :v ?v FILTER(?v > 30) } }",
    ];
    let tally = sweep_all(400, 4, true, &queries);
    assert!(tally.ran >= 24 && tally.cuts > 20, "{tally:?}");
}

#[test]
fn lubm_agrees_with_the_cpu_however_little_memory_there_is() {
    let (_folder, snapshot) = stored(&jindou_workloads::lubm::Lubm::new(1, 0));
    let mut tally = Tally::default();
    for q in jindou_workloads::queries::lubm::QUERIES {
        let plan = planned(&snapshot, q.text);
        sweep(q.name, &plan, &snapshot, false, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.ran >= 12, "{tally:?}");
}
