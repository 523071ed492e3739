//! Operators above patterns on the device: random plans must give the CPU engine's rows, over plain stores, over stores
//! with edges and terms from updates, and in ever less memory. Also checks how much data leaves the device.

mod random;

use crate::common::{
    TestDevice, answer, demanded, device, limited, logging, native, paged, rather, ring, shim,
    sorted,
};
use jindou_engine::{ExecOptions, Executor, ExecutorChoice, OperatorTask};
use jindou_gpu::reference::XorShift;
use jindou_gpu::shim::{Shim, ShimOptions};
use jindou_gpu::{GpuExecutor, ReduceOptions};
use jindou_plan::{Operator, Plan};
use jindou_store::Snapshot;
use random::{query, store};
use std::collections::BTreeMap;
use std::sync::Arc;

fn here(plan: &Plan, snapshot: &Snapshot) -> Vec<Vec<String>> {
    sorted(answer(plan, snapshot, &ExecutorChoice::Here).0)
}

/// The rows that the engine returns if the device must run what it supports, and whether the topmost operator ran
/// there.
fn there(gpu: &Arc<GpuExecutor>, plan: &Plan, snapshot: &Snapshot) -> (Vec<Vec<String>>, bool) {
    let (rows, ran) = answer(plan, snapshot, &demanded(gpu));
    let whole = ran.profile.nodes.first().is_some_and(|n| n.there.is_some());
    (sorted(rows), whole)
}

/// True if `rows` is contained in `all`, as multisets.
fn are_among(rows: &[Vec<String>], all: &[Vec<String>]) -> bool {
    let mut left: BTreeMap<&Vec<String>, i64> = BTreeMap::new();
    all.iter().for_each(|r| *left.entry(r).or_default() += 1);
    rows.iter().all(|r| {
        let left = left.entry(r).or_default();
        *left -= 1;
        *left >= 0
    })
}

#[derive(Default, Debug)]
struct Tally {
    plans: u32,
    /// Number of plans whose topmost operator ran on the device.
    whole: u32,
    /// Number of runs in little memory, and number of those that ran on the device.
    capped: u32,
    capped_there: u32,
    /// Number of plans by their features.
    kinds: BTreeMap<&'static str, u32>,
}

/// Runs four random queries over each of `cases` random stores, every second one of which has updates.
fn compare(cases: u32, first: u32) -> Tally {
    let mut tally = Tally::default();
    for case in first..first + cases {
        let r = &mut XorShift::new(u64::from(case) * 7 + 3);
        let (_folder, snapshot) = store(r, case % 2 == 1);
        let options = ShimOptions {
            seed: u64::from(case % 3),
            ..paged(4096)
        };
        let device = TestDevice::open(options);
        let gpu = GpuExecutor::new(Arc::clone(&device.backend));
        let mut asked = vec![];
        // Hash tables that are too small at first, tables of few rows, or the defaults.
        let reduced = |gpu: GpuExecutor| {
            Arc::new(match case % 4 {
                1 => gpu.with_reduction(ReduceOptions {
                    most_dense: 0,
                    dense_a_row: 0,
                    log_slots: 6,
                    least_sorted: 0,
                    numbers: 0.0,
                }),
                2 => gpu.with_reduction(ReduceOptions {
                    most_dense: 40,
                    dense_a_row: 0,
                    least_sorted: 0,
                    numbers: 0.0,
                    ..ReduceOptions::default()
                }),
                _ => gpu,
            })
        };
        let gpu = reduced(gpu);
        for _ in 0..4 {
            let (text, limit) = query(r);
            let all = native(&snapshot, &text);
            let want = here(&all, &snapshot);
            if limit.is_none() {
                asked.push((text.clone(), want.clone()));
            }
            let case = format!("case {case}: {text}");
            tally.plans += 1;
            let whole = match limit {
                None => {
                    let (rows, whole) = there(&gpu, &all, &snapshot);
                    assert_eq!(rows, want, "{case}\n{:#?}", all.root);
                    whole
                }
                Some((limit, offset)) => {
                    let some = format!("{text} LIMIT {limit} OFFSET {offset}");
                    let some = native(&snapshot, &some);
                    let (rows, whole) = there(&gpu, &some, &snapshot);
                    let left = (want.len() as u64).saturating_sub(offset);
                    let case = format!("{case} LIMIT {limit} OFFSET {offset}");
                    assert_eq!(rows.len() as u64, left.min(limit), "{case}");
                    assert!(are_among(&rows, &want), "{case}");
                    whole
                }
            };
            tally.whole += u32::from(whole);
            for (word, kind) in [
                ("(?x ", "comparison"),
                ("DISTINCT ?", "distinct"),
                ("COUNT", "count"),
                (" EXISTS", "exists"),
                ("MINUS", "minus"),
                ("OPTIONAL", "optional"),
                ("+ ", "one or more"),
                (")* ", "zero or more"),
                ("GROUP BY", "groups"),
                ("SUM(", "sum"),
                ("MIN(", "min"),
            ] {
                *tally.kinds.entry(kind).or_default() += u32::from(whole && text.contains(word));
            }
            *tally.kinds.entry("limit").or_default() += u32::from(whole && limit.is_some());
            *tally.kinds.entry("order").or_default() += u32::from(text.contains("ORDER BY"));
        }
        // Runs the plan again with as much memory as the first run took, with half of it, and with a fifth.
        let footprint = device.reserved();
        drop(gpu);
        for share in [1.0, 0.5, 0.2] {
            let device = TestDevice::open(options);
            let memory = (footprint as f64 * share) as u64;
            let gpu = reduced(limited(device.backend, memory));
            for (text, want) in &asked {
                // The CPU takes over if the device has too little memory.
                let (rows, ran) = answer(&native(&snapshot, text), &snapshot, &rather(&gpu));
                assert_eq!(sorted(rows), *want, "case {case} in {memory} bytes: {text}");
                tally.capped += 1;
                tally.capped_there += u32::from(ran.why_here.is_none());
            }
        }
    }
    println!("{tally:?}");
    tally
}

#[test]
fn random_operators_give_the_rows_of_the_cpu() {
    let tally = compare(200, 0);
    // The CPU does the ordering itself, over candidate rows from the device, so such plans never run there entirely.
    let plans = tally.plans - tally.kinds["order"];
    assert!(tally.whole * 10 > plans * 6, "{tally:?}");
    assert_eq!(tally.kinds.len(), 13);
    assert!(tally.capped_there * 3 > tally.capped, "{tally:?}");
    assert!(tally.kinds.values().all(|&n| n >= 10), "{tally:?}");
}

#[test]
#[ignore = "minutes"]
fn twenty_thousand_random_operators_give_the_rows_of_the_cpu() {
    let cases = std::env::var("CASES").map_or(5_000, |c| c.parse().unwrap());
    assert!(compare(cases, 1_000).whole > 2 * cases);
}

/// The value of a COUNT.
fn counted(rows: &[Vec<String>]) -> u64 {
    assert_eq!((rows.len(), rows[0].len()), (1, 1));
    let digits = rows[0][0].trim_start_matches(|c: char| !c.is_ascii_digit());
    digits.parse().unwrap()
}

/// The bytes that are copied back: only the number for a COUNT, only the wanted rows for a LIMIT, each distinct id
/// once.
#[test]
fn only_reduced_rows_leave_the_device() {
    let (_folder, snapshot) = ring(600, 4);
    let counter = shim(ShimOptions::default());
    let gpu = Arc::new(GpuExecutor::new(counter.clone()));
    // The number of rows and of columns that leave, and the query. There are 9,600 paths of two edges.
    for line in [
        "0 0 SELECT (COUNT(DISTINCT ?c) AS ?n) { ?a :p ?b . ?b :p ?c }",
        "0 0 SELECT (COUNT(?c) AS ?n) { ?a :p ?b . ?b :p ?c }",
        "0 0 SELECT (COUNT(*) AS ?n) { ?a :p ?b OPTIONAL { ?b :q ?c } }",
        "0 0 SELECT (COUNT(?b) AS ?n) { ?a :p ?b FILTER EXISTS { ?b :q ?c . ?c :v ?v FILTER(?v > 9) } }",
        "0 0 SELECT (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :v ?v FILTER(?v < 50) }",
        "600 1 SELECT DISTINCT ?c { ?a :p ?b . ?b :p ?c }",
        "10 3 SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c } LIMIT 10",
        "7 3 SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c } LIMIT 7 OFFSET 5",
        "10 3 SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c } OFFSET 9590",
        "0 0 SELECT ?a { ?a :p ?b } LIMIT 0",
        "4 2 SELECT ?a ?b { ?a :p ?b FILTER EXISTS { ?b :v ?v FILTER(?v = 7) } }",
        "8 2 SELECT ?a ?b { ?a :p ?b FILTER NOT EXISTS { ?b :v ?v FILTER(?v > 1) } }",
        "8 2 SELECT ?a ?b { ?a :p ?b MINUS { ?b :v ?v FILTER(?v > 1) } }",
        "0 0 ASK { ?a :p ?b . ?b :p ?c . ?c :q ?d }",
    ] {
        let (rows, line) = line.split_once(' ').unwrap();
        let (columns, text) = line.split_once(' ').unwrap();
        let (rows, columns): (usize, usize) = (rows.parse().unwrap(), columns.parse().unwrap());
        let plan = native(&snapshot, text);
        let want = here(&plan, &snapshot);
        let _ = there(&gpu, &plan, &snapshot);
        let _ = counter.take_traffic();
        let (got, whole) = there(&gpu, &plan, &snapshot);
        let t = counter.take_traffic();
        // For a plain pattern, the rows come back without columns, as a number.
        let is_bare = text.contains("COUNT(*)") && !text.contains("OPTIONAL");
        assert!(whole || is_bare, "{text}");
        if text.contains("LIMIT") || text.contains("OFFSET") {
            assert_eq!(got.len(), want.len(), "{text}");
        } else {
            assert_eq!(got, want, "{text}");
        }
        if columns > 0 {
            assert_eq!(got.len(), rows, "{text}");
        } else if text.contains("COUNT") {
            assert!(counted(&got) > 5, "{text}");
        }
        // At most the count of each step and the rows are copied back.
        let bound = 64 + (4 * rows * columns) as u64;
        assert!(t.download_bytes <= bound, "{text}: {t:?}");
        assert!(t.pinned == 0, "{text}: {t:?}");
    }
}

/// A LIMIT ends the run early: of a cross product with a million rows, only a few tiles are produced.
#[test]
fn a_limit_makes_few_rows() {
    let (_folder, snapshot) = ring(1000, 1);
    let shim = logging();
    let gpu = Arc::new(GpuExecutor::new(shim.clone()));
    let plan = native(&snapshot, "SELECT ?a ?b { ?a :q ?x . ?b :q ?y } LIMIT 100");
    assert!(matches!(plan.root, Operator::Slice(_)));
    let (rows, whole) = there(&gpu, &plan, &snapshot);
    assert!(whole && rows.len() == 100);
    let written = |shim: &Shim| -> u64 { shim.take_log().iter().map(|(_, c)| c.written).sum() };
    let few = written(&shim);
    let plan = native(&snapshot, "SELECT ?a ?b { ?a :q ?x . ?b :q ?y }");
    let (rows, _) = there(&gpu, &plan, &snapshot);
    let all = written(&shim);
    assert_eq!(rows.len(), 1_000_000);
    assert!(few * 8 < all, "{few} bytes, and {all} without a LIMIT");
}

/// If the device cannot run a part of a plan, it runs the others.
#[test]
fn what_is_above_and_below_is_shared_out() {
    let (_folder, snapshot) = ring(60, 3);
    let gpu = Arc::new(GpuExecutor::new(device(0)));
    let options = ExecOptions::default();
    for (number, text) in [
        "SELECT ?b (COUNT(?c) AS ?n) { ?a :p ?b OPTIONAL { ?b :q ?c } } GROUP BY ?b",
        "SELECT DISTINCT ?b { ?a :p ?b }",
        // The device runs what is below an ORDER BY or GROUP_CONCAT, but neither of these.
        "SELECT ?b (GROUP_CONCAT(?v) AS ?n) { ?a :p ?b . ?b :v ?v } GROUP BY ?b",
        "SELECT ?a ?v { ?a :p ?b . ?b :v ?v FILTER NOT EXISTS { ?b :q ?a } } ORDER BY ?v ?a LIMIT 5",
        "SELECT DISTINCT ?a ?b { ?a :p ?b FILTER EXISTS { ?b :q ?c } }",
        "SELECT ?a { ?a :v ?v FILTER(STRLEN(STR(?v)) = 1) FILTER EXISTS { ?a :p ?b } }",
    ]
    .into_iter()
    .enumerate()
    {
        // The device runs the first two as a whole.
        let runs = number < 2;
        let plan = native(&snapshot, text);
        let task = OperatorTask {
            op: &plan.root,
            most: None,
            top: None,
            snapshot: &snapshot,
            options: &options,
        };
        assert_eq!(gpu.runs(&task).unwrap(), runs, "{text}");
        let (rows, whole) = there(&gpu, &plan, &snapshot);
        assert_eq!((rows, whole), (here(&plan, &snapshot), runs), "{text}");
    }
}
