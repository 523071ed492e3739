//! Plans whose segments are larger than the device's memory together: they come and go by blocks, and the rows are the CPU's.

mod common;

use common::{edited, native};
use jindou_engine::{ChecksumSink, ExecOptions, QueryTerms, Summed};
use jindou_gpu::faults::{Fault, Faults};
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{Backend, GpuExecutor, GpuOptions, GpuProfile, Output};
use jindou_model::{Direction, Error, PredicateId, Progress};
use jindou_plan::{EdgeList, Plan, PlanOptions, StartSource, Step, StepKind, parse, plan};
use jindou_store::testing::store_of;
use jindou_store::{LoadOptions, Snapshot, load, open};
use jindou_workloads::lubm::Lubm;
use jindou_workloads::queries::lubm::QUERIES;
use oxrdf::{GraphName, Literal, NamedNode, Quad};
use std::sync::Arc;
use std::time::Duration;

const PAGE: usize = 1024;

fn shim() -> Arc<Shim> {
    let options = ShimOptions {
        page: PAGE,
        ..ShimOptions::default()
    };
    Arc::new(Shim::open(options).unwrap())
}

fn limited(backend: Arc<dyn Backend>, memory: u64) -> GpuExecutor {
    GpuExecutor::limited(backend, memory, Duration::from_secs(600))
}

fn here(plan: &Plan, snapshot: &Snapshot) -> (u64, u64) {
    let sum = Summed::<ChecksumSink>::default();
    let options = ExecOptions::default();
    jindou_engine::execute(plan, snapshot, &options, &QueryTerms::default(), &sum).unwrap();
    let sum = sum.into_inner();
    (sum.rows, sum.checksum)
}

/// Rows, checksum and profile there; `None` where the plan is left to the CPU.
fn there(gpu: &GpuExecutor, plan: &Plan, snapshot: &Snapshot) -> Option<((u64, u64), GpuProfile)> {
    match gpu.execute(plan, snapshot, Output::Checksum, &GpuOptions::default()) {
        Ok(r) => Some(((r.rows, r.checksum.unwrap()), r.profile)),
        Err(Error::Unsupported(_) | Error::Limit(_)) => None,
        Err(e) => panic!("{e}"),
    }
}

/// `n` nodes with two edges each along `:a` to `:e`, a number (`:v`), and a hub that a thousand of them are members (`:m`) of.
fn wheel(n: u32) -> (tempfile::TempDir, Snapshot) {
    let node = |i: u32| NamedNode::new_unchecked(format!("http://e/n{i}"));
    let mut quads = vec![];
    let mut add = |s: &NamedNode, p: &str, o: oxrdf::Term| {
        let p = NamedNode::new_unchecked(format!("http://e/{p}"));
        quads.push(Quad::new(s.clone(), p, o, GraphName::DefaultGraph));
    };
    for i in 0..n {
        for (k, p) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            let k = k as u32;
            add(&node(i), p, node((i * (7 + 2 * k) + k) % n).into());
            add(&node(i), p, node((i * (31 + 2 * k) + 5) % n).into());
        }
        add(&node(i), "v", Literal::from(i64::from(i)).into());
        if i % (n / 1000) == 0 {
            let hub = NamedNode::new_unchecked("http://e/hub");
            add(&hub, "m", node(i).into());
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
    // Two lists of constants, and a product of them.
    "SELECT * WHERE { :n7 :a ?x . :n9 :b ?y . ?x :c ?z . ?y :d ?w . ?z :e ?u }",
    // From keys, backwards.
    "SELECT ?x ?v WHERE { ?x :a :n77 . ?y :b ?x . ?z :c ?y . ?w :d ?z . ?w :v ?v }",
];

/// Memory of which blocks get `part` of what a plan's segments take.
fn memory_for(profile: &GpuProfile, part: f64) -> u64 {
    (profile.segment_bytes as f64 * part / 0.75) as u64
}

#[test]
fn plans_run_in_less_memory_than_their_segments_take() {
    let (_folder, snapshot) = wheel(12_000);
    let (mut whole, mut paged, mut moved, mut refused) = (0, 0, 0, 0);
    for text in TEXTS {
        let plan = native(&snapshot, text);
        let want = here(&plan, &snapshot);
        let (_, profile) = there(&limited(shim(), 1 << 30), &plan, &snapshot).unwrap();
        assert_eq!((profile.paged_in, profile.paged_out), (0, 0));
        for part in [1.0, 0.7, 0.6, 0.45, 0.35, 0.3, 0.1] {
            let memory = memory_for(&profile, part);
            let device = shim();
            let gpu = limited(device.clone(), memory);
            let mut before = u64::MAX;
            for run in 0..3 {
                let Some((got, profile)) = there(&gpu, &plan, &snapshot) else {
                    refused += 1;
                    break;
                };
                assert_eq!(got, want, "{text} in {part}, run {run}");
                assert!(device.holdings().reserved <= memory);
                if before == u64::MAX && profile.paged_in == 0 {
                    whole += 1;
                    break;
                }
                paged += 1;
                moved += profile.paged_in;
                // What stayed from the run before need not come again.
                assert!(profile.paged_in <= before, "{text} in {part}");
                before = profile.paged_in;
            }
            drop(gpu);
            let held = device.holdings();
            assert_eq!(
                (held.device, held.pinned, held.marks),
                (0, 0, 0),
                "{text} in {part}"
            );
        }
    }
    println!(
        "{whole} runs with whole segments, {paged} by blocks ({moved} bytes), {refused} refused"
    );
    assert!(whole >= 3 && paged >= 20 && refused >= 3);
}

/// Blocks of different plans share the memory; edits leave a plan to the CPU.
#[test]
fn blocks_stay_between_plans_and_patched_segments_are_left_to_the_cpu() {
    let (_folder, base) = wheel(12_000);
    let patched = edited(&base, &[(1, "a", 900, true), (7, "d", 8, true)]);
    let plans: Vec<Plan> = TEXTS.iter().map(|text| native(&base, text)).collect();
    let gpu = limited(shim(), 460 << 10);
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

/// Any call that fails leaves an error or the right rows, and nothing held.
#[test]
fn faults_while_blocks_move_leave_nothing_behind() {
    let (_folder, snapshot) = wheel(6000);
    let plan = native(&snapshot, TEXTS[4]);
    let want = here(&plan, &snapshot);
    let (_, profile) = there(&limited(shim(), 1 << 30), &plan, &snapshot).unwrap();
    let memory = memory_for(&profile, 0.4);
    let run = |fault, at| {
        let shim = shim();
        let faults =
            Arc::new(Faults::new(shim.clone(), fault, at).patient(Duration::from_millis(20)));
        let gpu = limited(faults.clone(), memory);
        let mut blocks = 0;
        for _ in 0..2 {
            match gpu.execute(&plan, &snapshot, Output::Checksum, &GpuOptions::default()) {
                Ok(r) => {
                    assert_eq!(
                        (r.rows, r.checksum),
                        (want.0, Some(want.1)),
                        "{fault:?} at {at}"
                    );
                    blocks += r.profile.paged_in;
                }
                Err(Error::Unsupported(_) | Error::Limit(_) | Error::Internal(_)) => {}
                Err(e) => panic!("{fault:?} at {at}: {e}"),
            }
        }
        let calls = faults.calls();
        drop(gpu);
        drop(faults);
        let held = shim.holdings();
        assert_eq!(
            (held.device, held.pinned, held.marks),
            (0, 0, 0),
            "{fault:?} at {at}"
        );
        (calls, blocks)
    };
    let (calls, blocks) = run(Fault::Error, 0);
    assert!(blocks > 0, "it runs by blocks");
    let step = (calls / 120).max(1) as usize;
    for fault in Fault::ALL {
        for at in (1..=calls).step_by(step) {
            run(fault, at);
        }
    }
    println!("{calls} calls, each {step}th made to fail");
}

/// Bytes of a segment's neighbours and offsets.
fn segment_bytes(snapshot: &Snapshot, p: PredicateId, d: Direction) -> u64 {
    let view = snapshot.edges(p, d);
    let s = view.default();
    4 * (s.neighbours.len() + s.offsets.map_or(0, <[u32]>::len)) as u64
}

/// The same of all segments.
fn entire(snapshot: &Snapshot) -> u64 {
    let predicates = (0..snapshot.predicate_count()).map(PredicateId);
    let both = predicates.flat_map(|p| [(p, Direction::Out), (p, Direction::In)]);
    both.map(|(p, d)| segment_bytes(snapshot, p, d)).sum()
}

/// The same of those that a step reads.
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

/// Bytes that LUBM's heavy queries want by granularity (ATC '18, table 1), and what warm runs move in less memory than that (its table 5, figure
/// 11). A step here intersects several lists at once, so one step wants most of what its query does: where it does not fit, the
/// CPU has the query. `UNIVERSITIES` chooses the scale.
#[test]
fn lubm_wants_less_by_query_than_in_all_and_less_by_step_than_by_query() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
    let universities = number("UNIVERSITIES").unwrap_or(2);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("store");
    load(
        &dir,
        &Lubm::new(universities, 0),
        &LoadOptions::default(),
        &Progress::default(),
    )
    .unwrap();
    let snapshot = Snapshot::of_base(open(&dir).unwrap());
    let all = entire(&snapshot);
    println!(
        "LUBM({universities}); MB. Entire graph: {:.2}",
        all as f64 / 1e6
    );
    println!("query  per query  per pattern  memory in parts of the first: moved in a warm run");
    for q in QUERIES
        .iter()
        .filter(|q| ["L1", "L2", "L3", "L7"].contains(&q.name))
    {
        let plan = plan(&parse(q.text).unwrap(), &snapshot, &PlanOptions::default()).unwrap();
        let want = here(&plan, &snapshot);
        let (_, profile) = there(&limited(shim(), 1 << 32), &plan, &snapshot).unwrap();
        let segments = profile.segment_bytes;
        assert!(segments < all, "{}", q.name);
        let steps = &plan.exploration().unwrap().steps;
        let pattern = steps.iter().map(|s| bytes_of(s, &snapshot)).max();
        let pattern = pattern.unwrap_or(0);
        assert!(pattern <= segments, "{}", q.name);
        let pattern = pattern as f64 / 1e6;
        let mut line = format!(
            "{:<5} {:>10.2} {:>12.2}",
            q.name,
            segments as f64 / 1e6,
            pattern
        );
        let mut last = 0;
        for part in [1.2, 0.95, 0.75] {
            let memory = (segments as f64 * part) as u64;
            let gpu = limited(shim(), memory);
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
            assert!(
                warm >= last || warm == 0,
                "{} at {part}: {warm} after {last}",
                q.name
            );
            last = warm;
            line.push_str(&format!("  {part}: {:.2}", warm as f64 / 1e6));
        }
        println!("{line}");
    }
}
