//! Allocations that the queries of LUBM, WatDiv and BSBM take to be parsed and planned, over a small graph of each: how many, and their
//! bytes.
//!
//! `plan_allocations [ROUNDS]` plans each query `ROUNDS` times more, for `valgrind --tool=callgrind`.

use jindou_model::{Progress, QuadSource, Result};
use jindou_plan::{PlanOptions, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_workloads::bsbm::Bsbm;
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::{bsbm, lubm, watdiv};
use jindou_workloads::watdiv::{Watdiv, WatdivModel};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static NUMBER: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

fn count(bytes: usize) {
    NUMBER.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

// SAFETY: all is left to the system's allocator; only counting is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promise is that of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is that of this function.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller's promise is that of this function.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and their bytes.
fn counted<T>(run: impl FnOnce() -> T) -> (T, [u64; 2]) {
    let read = || [&NUMBER, &BYTES].map(|n| n.load(Ordering::Relaxed));
    let before = read();
    let out = run();
    let after = read();
    (out, [after[0] - before[0], after[1] - before[1]])
}

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let rounds = rounds.unwrap_or(0);
    let texts: Vec<String> = lubm::QUERIES.iter().map(|q| q.text.to_owned()).collect();
    measure_set("LUBM", &Lubm::new(1, 0), &texts, rounds)?;
    let texts: Vec<String> = watdiv::instances(1, 0, 1)?
        .into_iter()
        .map(|i| i.text)
        .collect();
    let data = Watdiv::new(&WatdivModel::standard(), 1, 0)?;
    measure_set("WatDiv", &data, &texts, rounds)?;
    let data = Bsbm::new(100, 0);
    let all = bsbm::EXPLORE.iter().chain(&bsbm::BUSINESS);
    let texts: Vec<String> = all
        .flat_map(|t| t.instances(&data, 1))
        .map(|i| i.text)
        .collect();
    measure_set("BSBM", &data, &texts, rounds)
}

fn measure_set(name: &str, data: &dyn QuadSource, texts: &[String], rounds: usize) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("plan-allocations-{}", std::process::id()));
    let options = LoadOptions::default().with_threads(2);
    load(&folder, data, &options, &Progress::default())?;
    let snapshot = Snapshot::of_base(open(&folder)?);
    let options = PlanOptions::default();
    let (mut parsing, mut planning) = ([0; 2], [0; 2]);
    for text in texts {
        // The first time something is read that stays.
        plan(&parse(text)?, &snapshot, &options)?;
        let (query, parsed) = counted(|| parse(text));
        let query = query?;
        let (planned, taken) = counted(|| plan(&query, &snapshot, &options));
        planned?;
        for i in 0..2 {
            parsing[i] += parsed[i];
            planning[i] += taken[i];
        }
        for _ in 0..rounds {
            plan(&parse(text)?, &snapshot, &options)?;
        }
    }
    let n = texts.len() as u64;
    println!(
        "{name}, {n} queries, each on average: parse {} allocations of {} bytes, plan {} of {}",
        parsing[0] / n,
        parsing[1] / n,
        planning[0] / n,
        planning[1] / n
    );
    drop(snapshot);
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}
