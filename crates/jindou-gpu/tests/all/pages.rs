//! Plans whose segments do not fit in the device's memory together: they are paged in blocks, and return the CPU's
//! rows.

use crate::common::{
    TestDevice, edited, holds_nothing, limited, native, paged, planned, shim, stored,
    sum_here as here, sum_on as there,
};
use jindou_gpu::faults::{DeviceFault, DeviceFaults};
use jindou_gpu::shim::{Shim, ShimOptions, Speeds, Times};
use jindou_gpu::{Backend, GpuOptions, GpuProfile, PagingOptions, ResultUse};
use jindou_model::{Direction, Error, PredicateId};
use jindou_plan::{EdgeList, Plan, StartSource, Step, StepKind};
use jindou_store::Snapshot;
use jindou_store::testing::store_of;
use jindou_testing::{named, triple};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use oxrdf::Literal;
use std::sync::Arc;
use std::time::Duration;

const PAGE: usize = 1024;

/// A device with small pages.
fn device() -> Arc<dyn Backend> {
    TestDevice::open(paged(PAGE)).backend
}

/// `n` nodes, each with two edges along each of `:a` to `:e` and a number (`:v`), and a hub with a thousand of them as
/// members (`:m`).
fn wheel(n: u32) -> (tempfile::TempDir, Snapshot) {
    let mut quads = vec![];
    for i in 0..n {
        let node = format!("n{i}");
        for (k, p) in (0..).zip(["a", "b", "c", "d", "e"]) {
            for to in [i * (7 + 2 * k) + k, i * (31 + 2 * k) + 5] {
                quads.push(triple(&node, p, named(&format!("n{}", to % n))));
            }
        }
        quads.push(triple(&node, "v", Literal::from(i64::from(i))));
        if i % (n / 1000) == 0 {
            quads.push(triple("hub", "m", named(&node)));
        }
    }
    let (folder, base) = store_of(&quads);
    (folder, Snapshot::of_base(base))
}

const TEXTS: [&str; 5] = [
    "SELECT ?x ?u WHERE { :hub :m ?x . ?x :a ?y . ?y :b ?z . ?z :c ?w . ?w :d ?u }",
    "SELECT * WHERE { :hub :m ?x . ?x :e ?y . ?y :d ?z . ?z :v ?w . ?y :c ?u . ?u :v ?t }",
    // Checks and intersections.
    "SELECT * WHERE { :hub :m ?x . ?x :a ?y . ?y :b ?z . ?x :c ?w . ?w :d ?z . ?z :e ?u }",
    // Two lists of constants, and their cross product.
    "SELECT * WHERE { :n7 :a ?x . :n9 :b ?y . ?x :c ?z . ?y :d ?w . ?z :e ?u }",
    // Starts from keys, against the direction of edges.
    "SELECT ?x ?v WHERE { ?x :a :n77 . ?y :b ?x . ?z :c ?y . ?w :d ?z . ?w :v ?v }",
];

/// Device memory such that blocks may take `part` of the size of a plan's segments.
fn memory_for(profile: &GpuProfile, part: f64) -> u64 {
    (profile.segment_bytes as f64 * part / 0.75) as u64
}

#[test]
fn plans_run_in_less_memory_than_their_segments_take() {
    let (_folder, snapshot) = wheel(12_000);
    let (mut whole, mut blocks, mut moved, mut refused) = (0, 0, 0, 0);
    for text in TEXTS {
        let plan = native(&snapshot, text);
        let want = here(&plan, &snapshot);
        let (_, profile) = there(&limited(device(), 1 << 30), &plan, &snapshot).unwrap();
        assert_eq!((profile.paged_in, profile.paged_out), (0, 0));
        for part in [1.0, 0.7, 0.6, 0.45, 0.35, 0.3, 0.1] {
            let memory = memory_for(&profile, part);
            let device = TestDevice::open(paged(PAGE));
            let gpu = limited(Arc::clone(&device.backend), memory);
            let mut before = u64::MAX;
            for run in 0..3 {
                let Some((got, profile)) = there(&gpu, &plan, &snapshot) else {
                    refused += 1;
                    break;
                };
                assert_eq!(got, want, "{text} in {part}, run {run}");
                assert!(device.reserved() <= memory);
                if before == u64::MAX && profile.paged_in == 0 {
                    whole += 1;
                    break;
                }
                blocks += 1;
                moved += profile.paged_in;
                // Blocks that stayed on the device since the run before are not uploaded again.
                assert!(profile.paged_in <= before, "{text} in {part}");
                before = profile.paged_in;
            }
            drop(gpu);
            device.holds_nothing(&format!("{text} in {part}"));
        }
    }
    println!(
        "{whole} runs with whole segments, {blocks} by blocks ({moved} bytes), {refused} refused"
    );
    assert!(whole >= 3 && blocks >= 20 && refused >= 3);
}

/// Blocks of several plans share the memory. A plan over patched segments is left to the CPU.
#[test]
fn blocks_stay_between_plans_and_patched_segments_are_left_to_the_cpu() {
    let (_folder, base) = wheel(12_000);
    let patched = edited(&base, &[(1, "a", 900, true), (7, "d", 8, true)]);
    let plans: Vec<Plan> = TEXTS.iter().map(|text| native(&base, text)).collect();
    let gpu = limited(device(), 460 << 10);
    let mut ran = 0;
    for round in 0..3 {
        for (plan, text) in plans.iter().zip(TEXTS) {
            if let Some((got, profile)) = there(&gpu, plan, &base) {
                assert_eq!(got, here(plan, &base), "{text}, round {round}");
                ran += u32::from(round == 0 && profile.paged_in > 0);
            }
            let plan = native(&patched, text);
            if let Some((got, profile)) = there(&gpu, &plan, &patched) {
                assert_eq!(got, here(&plan, &patched), "{text}, patched");
                assert_eq!(profile.paged_in, 0, "{text}, patched");
            }
        }
    }
    assert!(ran >= 2, "{ran} by blocks");
}

/// A shim that does everything as late as possible. It ignores the `unordered`th order to wait for a copy; 0 for none.
fn late(page: usize, unordered: u64, speeds: Option<Speeds>) -> Arc<Shim> {
    shim(ShimOptions {
        delay: true,
        unordered,
        speeds,
        ..paged(page)
    })
}

/// Each part of paging alone, and together with the others, on a device that does everything as late as possible.
#[test]
fn each_part_of_swapping_can_be_switched_and_the_rows_stay_the_same() {
    let (_folder, snapshot) = wheel(6000);
    let mut moved = vec![];
    for text in TEXTS {
        let plan = native(&snapshot, text);
        let want = here(&plan, &snapshot);
        let (_, profile) = there(&limited(device(), 1 << 30), &plan, &snapshot).unwrap();
        for choice in 0..8u32 {
            let options = PagingOptions {
                prefetch: choice & 1 != 0,
                pairwise: choice & 2 != 0,
                look_ahead: choice & 4 != 0,
            };
            let device = late(PAGE, 0, None);
            let gpu = limited(device.clone(), memory_for(&profile, 0.5)).with_paging(options);
            let mut bytes = 0;
            for run in 0..2 {
                let Some((got, profile)) = there(&gpu, &plan, &snapshot) else {
                    break;
                };
                assert_eq!(got, want, "{text} with {options:?}, run {run}");
                bytes += profile.paged_in;
            }
            moved.push((choice, bytes));
            drop(gpu);
            holds_nothing(&device, &format!("{options:?}"));
        }
    }
    let sum = |of: u32| -> u64 {
        let all = moved.iter().filter(|m| m.0 == of);
        all.map(|m| m.1).sum()
    };
    let all: Vec<u64> = (0..8).map(sum).collect();
    println!("bytes moved by (look-ahead, pairwise, prefetch) from none to all: {all:?}");
    assert!(all.iter().all(|&b| b > 0));
    // Look-ahead transfers no more than LRU replacement, and early uploads no more than late ones.
    assert!(all[6] <= all[2] && all[7] <= all[6], "{all:?}");
}

/// A chain of twenty patterns over a segment each, starting from 2,000 nodes; the query reads every block.
fn chain() -> (tempfile::TempDir, Snapshot, Plan) {
    const N: u32 = 10_000;
    const CHAIN: u32 = 20;
    let mut quads = vec![];
    for i in 0..N {
        let node = format!("n{i}");
        for p in 0..CHAIN {
            let to = format!("n{}", (i * 7 + p * 31 + 1) % N);
            quads.push(triple(&node, &format!("p{p}"), named(&to)));
        }
        if i % 5 == 0 {
            quads.push(triple("hub", "m", named(&node)));
        }
    }
    let (folder, base) = store_of(&quads);
    let snapshot = Snapshot::of_base(base);
    let mut text = format!("SELECT ?x{CHAIN} WHERE {{ :hub :m ?x0 . ");
    for p in 0..CHAIN {
        text += &format!("?x{p} :p{p} ?x{} . ", p + 1);
    }
    let plan = native(&snapshot, &(text + "}"));
    (folder, snapshot, plan)
}

/// Removes each order to wait for a copy on the second queue in turn, and checks that this is noticed if the device
/// delays its work; otherwise it would not be.
#[test]
fn a_missing_event_on_the_copies_queue_is_seen_when_work_is_late() {
    let (_folder, snapshot, plan) = chain();
    let want = here(&plan, &snapshot);
    let (_, profile) = there(&limited(device(), 1 << 30), &plan, &snapshot).unwrap();
    let options = GpuOptions::default();
    let run = |unordered| {
        let device = late(PAGE, unordered, None);
        let gpu = limited(device.clone(), memory_for(&profile, 0.6));
        let got = gpu.execute(&plan, &snapshot, ResultUse::Checksum, &options);
        let right = got.is_ok_and(|r| {
            assert!(r.profile.paged_in > 0);
            (r.rows, r.checksum) == (want.0, Some(want.1))
        });
        (right, device.ordered())
    };
    let (right, orders) = run(0);
    assert!(right && orders >= 10, "{orders} orders");
    for unordered in 1..=orders {
        let (right, _) = run(unordered);
        assert!(!right, "order {unordered} of {orders} is not missed");
    }
}

/// While one step computes, the blocks of the next one are uploaded.
#[test]
fn copies_and_kernels_run_at_the_same_time() {
    let (_folder, snapshot, plan) = chain();
    let want = here(&plan, &snapshot);
    let (_, profile) = there(&limited(device(), 1 << 30), &plan, &snapshot).unwrap();
    let times = |speeds: Speeds, prefetch: bool| -> Times {
        let device = late(8 * PAGE, 0, Some(speeds));
        let options = PagingOptions {
            prefetch,
            ..PagingOptions::default()
        };
        let gpu = limited(device.clone(), memory_for(&profile, 0.6)).with_paging(options);
        let (got, profile) = there(&gpu, &plan, &snapshot).unwrap();
        assert_eq!(got, want);
        assert!(profile.paged_in > 0);
        device.take_times()
    };
    let slow = Speeds {
        link: 10e9,
        memory: 1e9,
    };
    let t = times(slow, false);
    let shorter = t.copying.min(t.computing);
    assert!(t.copying > 0.0 && t.both < 0.01 * shorter, "{t:?}");
    // Kernels that take as long as the copies, twice as long, and half as long.
    let even = slow.memory * t.computing / t.copying;
    for factor in [1.0, 0.5, 2.0] {
        let speeds = Speeds {
            memory: even * factor,
            ..slow
        };
        let (apart, together) = (times(speeds, false), times(speeds, true));
        let shorter = together.copying.min(together.computing);
        println!(
            "copying {:.3} ms, computing {:.3} ms: {:.1} % of the shorter one together; {:.3} ms in place of {:.3}",
            together.copying * 1e3,
            together.computing * 1e3,
            100.0 * together.both / shorter,
            together.all * 1e3,
            apart.all * 1e3,
        );
        assert!(together.both >= 0.8 * shorter, "{together:?}");
        assert!(together.all < 0.8 * apart.all, "{together:?} {apart:?}");
    }
}

/// The bytes that `transfers` computes without running kernels are those that real runs move.
#[test]
fn transfers_are_those_of_runs() {
    let (_folder, snapshot) = wheel(6000);
    let mut compared = 0;
    for text in TEXTS {
        let plan = native(&snapshot, text);
        let (_, profile) = there(&limited(device(), 1 << 30), &plan, &snapshot).unwrap();
        for part in [0.8, 0.5] {
            let memory = memory_for(&profile, part);
            let counted = limited(device(), memory).transfers(&plan, &snapshot, 2);
            let (counted, gpu) = (counted.unwrap(), limited(device(), memory));
            for &(bytes, blocks) in &counted.runs {
                let Some((_, profile)) = there(&gpu, &plan, &snapshot) else {
                    break;
                };
                if profile.cuts == 0 && profile.paged_in > 0 {
                    assert_eq!(profile.paged_in, bytes, "{text} in {part}");
                    assert!(blocks > 0 && blocks * PAGE as u64 <= bytes);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared >= 4, "{compared}");
}

/// Whichever call fails, the result is an error or the correct rows, and no memory stays allocated.
#[test]
fn faults_while_blocks_move_leave_nothing_behind() {
    let (_folder, snapshot) = wheel(6000);
    let plan = native(&snapshot, TEXTS[4]);
    let want = here(&plan, &snapshot);
    let (_, profile) = there(&limited(device(), 1 << 30), &plan, &snapshot).unwrap();
    let (memory, options) = (memory_for(&profile, 0.4), GpuOptions::default());
    let run = |fault, at| {
        let case = format!("{fault:?} at {at}");
        let shim = shim(paged(PAGE));
        let faults = DeviceFaults::new(shim.clone(), fault, at).patient(Duration::from_millis(20));
        let faults = Arc::new(faults);
        let gpu = limited(faults.clone(), memory);
        let mut blocks = 0;
        for _ in 0..2 {
            match gpu.execute(&plan, &snapshot, ResultUse::Checksum, &options) {
                Ok(r) => {
                    assert_eq!((r.rows, r.checksum), (want.0, Some(want.1)), "{case}");
                    blocks += r.profile.paged_in;
                }
                Err(Error::Unsupported(_) | Error::Limit(_) | Error::Internal(_)) => {}
                Err(e) => panic!("{case}: {e}"),
            }
        }
        let calls = faults.calls();
        drop((gpu, faults));
        holds_nothing(&shim, &case);
        (calls, blocks)
    };
    let (calls, blocks) = run(DeviceFault::Error, 0);
    assert!(blocks > 0, "it runs by blocks");
    let step = (calls / 120).max(1) as usize;
    for fault in DeviceFault::ALL {
        for at in (1..=calls).step_by(step) {
            run(fault, at);
        }
    }
    println!("{calls} calls, each {step}th made to fail");
}

/// Bytes of a segment's neighbours and offsets.
fn segment_bytes(snapshot: &Snapshot, p: PredicateId, d: Direction) -> u64 {
    let view = snapshot.edges(p, d);
    let s = view.here().unwrap().default;
    4 * (s.neighbours.len() + s.offsets.map_or(0, <[u32]>::len)) as u64
}

/// Bytes of the neighbours and offsets of all segments.
fn entire(snapshot: &Snapshot) -> u64 {
    let predicates = (0..snapshot.predicate_count()).map(PredicateId);
    let both = predicates.flat_map(|p| [(p, Direction::Out), (p, Direction::In)]);
    both.map(|(p, d)| segment_bytes(snapshot, p, d)).sum()
}

/// Bytes of the neighbours and offsets of the segments that a step reads.
fn bytes_of(step: &Step, snapshot: &Snapshot) -> u64 {
    let of = |l: &EdgeList| segment_bytes(snapshot, l.predicate, l.direction);
    match &step.kind {
        StepKind::Expand { lists, .. } => lists.iter().map(of).sum(),
        StepKind::Check { list, .. } => of(list),
        StepKind::Start { source, .. } | StepKind::Cross { source, .. } => match source {
            StartSource::List(list) => of(list),
            StartSource::Keys {
                predicate,
                direction,
                ..
            } => segment_bytes(snapshot, *predicate, *direction),
            _ => 0,
        },
        _ => 0,
    }
}

/// Bytes of segments that LUBM's heavy queries need by step and by query (ATC '18, table 1), and the bytes that warm
/// runs move with less memory than that (its table 5, figure 11). Here a step intersects several lists at once, so one
/// step needs most of what its query needs; if it does not fit, the query is left to the CPU. The variable
/// `UNIVERSITIES` sets the scale.
#[test]
fn lubm_wants_less_by_query_than_in_all_and_less_by_step_than_by_query() {
    let universities = jindou_testing::from_environment("UNIVERSITIES", 2) as u32;
    let (_folder, snapshot) = stored(&Lubm::new(universities, 0));
    let all = entire(&snapshot);
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!("LUBM({universities}); MB. Entire graph: {:.2}", mb(all));
    println!("query  per query  per pattern  memory in parts of the first: moved in a warm run");
    let heavy = |name: &str| ["L1", "L2", "L3", "L7"].contains(&name);
    for q in QUERIES.iter().filter(|q| heavy(q.name)) {
        let plan = planned(&snapshot, q.text);
        let want = here(&plan, &snapshot);
        let (_, profile) = there(&limited(device(), 1 << 32), &plan, &snapshot).unwrap();
        let segments = profile.segment_bytes;
        assert!(segments < all, "{}", q.name);
        let steps = &plan.exploration().unwrap().steps;
        let pattern = steps.iter().map(|s| bytes_of(s, &snapshot)).max();
        let pattern = pattern.unwrap_or(0);
        assert!(pattern <= segments, "{}", q.name);
        let (whole, pattern) = (mb(segments), mb(pattern));
        let mut line = format!("{:<5} {whole:>10.2} {pattern:>12.2}", q.name);
        let mut last = 0;
        for part in [1.2, 0.95, 0.75] {
            let memory = (segments as f64 * part) as u64;
            let gpu = limited(device(), memory);
            let runs: Option<Vec<GpuProfile>> = (0..2)
                .map(|_| {
                    let (got, profile) = there(&gpu, &plan, &snapshot)?;
                    assert_eq!(got, want, "{} at {part}", q.name);
                    Some(profile)
                })
                .collect();
            let Some(runs) = runs else {
                line.push_str(&format!("  {part}: CPU"));
                continue;
            };
            let warm = runs[1].paged_in;
            assert!(warm >= last || warm == 0, "{line} {warm} after {last}");
            last = warm;
            line.push_str(&format!("  {part}: {:.2}", mb(warm)));
        }
        println!("{line}");
    }
}
