//! Allocations that LUBM's queries take to be parsed and planned, over LUBM(1): how many, and their bytes.
//!
//! `plan_allocations [ROUNDS]` plans each query so many times more, for `valgrind --tool=callgrind`.

use jindou_model::Progress;
use jindou_plan::{PlanOptions, parse, plan};
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static NUMBER: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is left to the system's allocator; the counts are beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        NUMBER.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise is that of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is that of this function.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and their bytes.
fn counted<T>(run: impl FnOnce() -> T) -> (T, u64, u64) {
    let read = || {
        (
            NUMBER.load(Ordering::Relaxed),
            BYTES.load(Ordering::Relaxed),
        )
    };
    let before = read();
    let out = run();
    let after = read();
    (out, after.0 - before.0, after.1 - before.1)
}

fn main() -> jindou_model::Result<()> {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let folder = std::env::temp_dir().join(format!("plan-allocations-{}", std::process::id()));
    let options = LoadOptions::default().with_threads(2);
    load(&folder, &Lubm::new(1, 0), &options, &Progress::default())?;
    let snapshot = Snapshot::of_base(open(&folder)?);
    let options = PlanOptions::default();
    let (mut number, mut bytes) = ([0; 2], [0; 2]);
    for (i, query) in QUERIES.iter().enumerate() {
        // The first time something is read that stays.
        plan(&parse(query.text)?, &snapshot, &options)?;
        let (parsed, n, b) = counted(|| parse(query.text));
        let parsed = parsed?;
        let (planned, m, c) = counted(|| plan(&parsed, &snapshot, &options));
        planned?;
        println!(
            "q{}: parse {n} allocations of {b} bytes, plan {m} of {c}",
            i + 1
        );
        number = [number[0] + n, number[1] + m];
        bytes = [bytes[0] + b, bytes[1] + c];
        for _ in 0..rounds.unwrap_or(0) {
            plan(&parse(query.text)?, &snapshot, &options)?;
        }
    }
    println!(
        "all: parse {} allocations of {} bytes, plan {} of {}",
        number[0], bytes[0], number[1], bytes[1]
    );
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}
