//! BSBM, SP²Bench and WatDiv on a device with ever less memory, as `--gpu auto` would run them if every plan were
//! predicted to be faster there. The answers must be the CPU's.

use crate::common::{holds_nothing, least, limited, mixed, planned, rather, shim, sorted, stored};
use crate::watdiv::sf10;
use jindou_engine::ExecutorChoice;
use jindou_gpu::shim::ShimOptions;
use jindou_plan::Weight;
use jindou_store::Snapshot;
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::queries::{bsbm, sp2b, watdiv};
use jindou_workloads::sp2b::Sp2b;
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sizes of memory that are tried, as fractions of the memory that a plan takes without a limit.
const CAPS: [f64; 4] = [1.0, 0.8, 0.5, 0.2];
/// Largest number of rows of answers that are compared, since the shim is slow.
const MOST_ROWS: usize = 200_000;

#[derive(Debug, Default)]
struct Tally {
    queries: u32,
    /// Number of runs of which the device did a part, and number of runs left to the CPU.
    there: u32,
    here: u32,
}

/// True if two answers are the same. For a LIMIT, only their lengths are compared, since any rows are valid.
fn agree(text: &str, a: &[Vec<String>], b: &[Vec<String>]) -> bool {
    let upper = text.to_uppercase();
    if upper.contains("LIMIT") || upper.contains("SAMPLE") {
        return a.len() == b.len();
    }
    a == b
}

fn sweep(name: &str, text: &str, snapshot: &Snapshot, tally: &mut Tally) {
    let mut plan = planned(snapshot, text);
    plan.weight = Weight::Heavy;
    let began = Instant::now();
    let want = sorted(mixed(&plan, snapshot, &ExecutorChoice::Here).0);
    if want.len() > MOST_ROWS || began.elapsed() > Duration::from_secs(2) {
        println!("{name}: left out, {} rows", want.len());
        return;
    }
    tally.queries += 1;
    let mut at = |memory: u64| -> (bool, u64) {
        let shim = shim(ShimOptions::default());
        let gpu = Arc::new(limited(shim.clone(), memory));
        let (got, there) = mixed(&plan, snapshot, &rather(&gpu));
        drop(gpu);
        let peak = shim.holdings().reserved;
        let rows = [got.len(), want.len()];
        let is_right = agree(text, &sorted(got), &want);
        assert!(is_right, "{name} in {memory} bytes: rows {rows:?}");
        assert!(peak <= memory, "{name}: {peak} bytes of {memory}");
        holds_nothing(&shim, name);
        tally.there += u32::from(there);
        tally.here += u32::from(!there);
        (there, peak)
    };
    let (there, footprint) = at(2 << 30);
    if !there {
        println!("{name}: the CPU's");
        return;
    }
    for part in CAPS {
        at((footprint as f64 * part / 0.9) as u64);
    }
    // Also tries sizes around the least memory in which the device runs a part of the plan.
    let yes = least(footprint, |yes| yes / 8 + 16, |memory| at(memory).0);
    let rows = want.len();
    println!("{name}: {rows} rows, {footprint} bytes, at least {yes}");
}

/// Sweeps over some queries, of which the device must run a part of most, and at least `seen` must be compared.
fn sweep_all(snapshot: &Snapshot, queries: impl IntoIterator<Item = (String, String)>, seen: u32) {
    let mut tally = Tally::default();
    for (name, text) in queries {
        sweep(&name, &text, snapshot, &mut tally);
    }
    println!("{tally:?}");
    let is_enough = tally.queries >= seen && tally.there > tally.queries;
    assert!(is_enough, "{tally:?}");
}

fn bsbm_in(products: u32, instances: u32, seen: u32) {
    let data = Bsbm::new(products, 0);
    let (_folder, snapshot) = stored(&data);
    let templates = bsbm::EXPLORE.iter().chain(&bsbm::BUSINESS);
    let all = templates.flat_map(|t| t.instances(&data, instances));
    let rows = all.filter(|q| !q.text.contains("CONSTRUCT") && !q.text.contains("DESCRIBE"));
    sweep_all(&snapshot, rows.map(|q| (q.name, q.text)), seen);
}

fn sp2b_in(triples: u64, seen: u32) {
    let (_folder, snapshot) = stored(&Sp2b::new(triples, 0));
    let all = sp2b::QUERIES.iter();
    let all = all.map(|q| (q.name.to_owned(), q.text.to_owned()));
    sweep_all(&snapshot, all, seen);
}

#[test]
fn bsbm_agrees_with_the_cpu_however_little_memory_there_is() {
    bsbm_in(30, 1, 12);
}

#[test]
fn sp2bench_agrees_with_the_cpu_however_little_memory_there_is() {
    sp2b_in(4_000, 12);
}

#[test]
fn watdiv_agrees_with_the_cpu_however_little_memory_there_is() {
    let (_folder, snapshot) = stored(&Watdiv::new(&WatdivModel::standard(), 1, 0).unwrap());
    let all = watdiv::instances(1, 0, 1).unwrap().into_iter();
    let small = all.filter(|q| !q.name.starts_with('C'));
    sweep_all(&snapshot, small.map(|q| (q.name, q.text)), 12);
}

#[test]
#[ignore = "minutes"]
fn larger_workloads_agree_with_the_cpu_however_little_memory_there_is() {
    bsbm_in(300, 3, 40);
    sp2b_in(30_000, 12);
    let Some(((_folder, snapshot), queries)) = sf10() else {
        return;
    };
    let first = queries.into_iter().filter(|q| q.instance == "0");
    sweep_all(&snapshot, first.map(|q| (q.name(), q.text)), 15);
}
