//! Operators that reduce rows on the device: groups with counts, the first rows of an order, paths. Few rows must be
//! copied back, and the answers must be the CPU's, also if hash tables are too small at first or do not fit at all.

use crate::common::{
    answer, demanded, edited, holds_nothing, limited, logging, mixed, native, paged, rather, ring,
    shim, sorted,
};
use jindou_engine::ExecutorChoice;
use jindou_gpu::faults::{DeviceFault, DeviceFaults};
use jindou_gpu::shim::ShimOptions;
use jindou_gpu::{GpuExecutor, Kernel, ReduceOptions};
use jindou_plan::Plan;
use jindou_store::Snapshot;
use std::sync::Arc;

/// The rows in their order.
fn here(plan: &Plan, snapshot: &Snapshot) -> Vec<Vec<String>> {
    answer(plan, snapshot, &ExecutorChoice::Here).0
}

/// Hash tables even for few groups, too small at first.
const HASHED: ReduceOptions = ReduceOptions {
    most_dense: 0,
    dense_a_row: 0,
    log_slots: 6,
    least_sorted: 0,
    numbers: 0.0,
};

/// Few rows are copied back: groups, distinct values, or candidates for the first rows.
#[test]
fn few_rows_leave_the_device() {
    let (_folder, snapshot) = ring(600, 4);
    let shim = logging();
    let options = ReduceOptions {
        least_sorted: 64,
        ..ReduceOptions::default()
    };
    let gpu = Arc::new(GpuExecutor::new(shim.clone()).with_reduction(options));
    // A kernel that must run, the most bytes that are copied back, and the query.
    for line in [
        // 9,600 rows in 600 groups, each of three words.
        "jd_group_add 7200 SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?a",
        "jd_group_add 7200 SELECT ?c (COUNT(?a) AS ?n) (COUNT(*) AS ?m) { ?a :p ?b . ?b :p ?c } GROUP BY ?c",
        // Combinations of ?a and a value of ?v: 7 values for each of 600 nodes, each of four words.
        "jd_group_add 67200 SELECT ?a (SUM(?v) AS ?s) (AVG(?v) AS ?m) { ?a :p ?b . ?b :p ?c . ?c :v ?v } GROUP BY ?a",
        // One row per group, of five words, and one more for the largest value.
        "jd_group_best 12000 SELECT ?a (MIN(?v) AS ?s) (MAX(?v) AS ?m) (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :v ?v } GROUP BY ?a",
        "jd_group_ends 20 SELECT (MAX(?v) AS ?m) { ?a :p ?b . ?b :p ?c . ?c :v ?v }",
        "jd_group_add 7200 SELECT (MIN(?v) AS ?s) (MAX(?v) AS ?m) (SUM(?v) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :v ?v }",
        "jd_group_add 67200 SELECT ?a (COUNT(DISTINCT ?c) AS ?n) (COUNT(*) AS ?m) { ?a :p ?b . ?b :p ?c } GROUP BY ?a",
        // 16 rows per value, so 32 rows of three words, and 64 of them.
        "jd_sort_keep 384 SELECT ?a ?c ?v { ?a :p ?b . ?b :p ?c . ?c :v ?v } ORDER BY ?v ?a ?c LIMIT 20",
        "jd_sort_keep 768 SELECT ?a ?c ?v { ?a :p ?b . ?b :p ?c . ?c :v ?v } ORDER BY DESC(?v) ?a ?c LIMIT 40 OFFSET 9",
        "jd_sort_keep 24 SELECT ?c ?v { ?c :v ?v } ORDER BY ?v LIMIT 3",
    ] {
        let (kernel, line) = line.split_once(' ').unwrap();
        let (most, text) = line.split_once(' ').unwrap();
        let most: u64 = most.parse().unwrap();
        let plan = native(&snapshot, text);
        let want = here(&plan, &snapshot);
        let _ = mixed(&plan, &snapshot, &demanded(&gpu));
        let (_, _) = (shim.take_traffic(), shim.take_log());
        let (got, used) = mixed(&plan, &snapshot, &demanded(&gpu));
        let (traffic, log) = (shim.take_traffic(), shim.take_log());
        assert!(used, "{text}: {:#?}", plan.root);
        match text.contains("ORDER") {
            true => assert_eq!(got, want, "{text}"),
            false => assert_eq!(sorted(got), sorted(want), "{text}"),
        }
        assert!(log.iter().any(|(k, _)| k.symbol() == kernel), "{text}");
        let back = traffic.download_bytes;
        assert!(back <= most + 256, "{text}: {back} bytes back");
    }
}

/// Hash tables that must be enlarged, and hash tables that never fit.
#[test]
fn hash_tables_grow_or_leave_the_groups_to_the_cpu() {
    let (_folder, snapshot) = ring(500, 3);
    let options = ShimOptions {
        log: true,
        ..paged(4096)
    };
    let first = shim(options);
    let gpu = Arc::new(GpuExecutor::new(first.clone()).with_reduction(HASHED));
    for text in [
        "SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?a",
        "SELECT ?a ?c (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?a ?c",
        "SELECT ?a ?c (COUNT(?d) AS ?n) { ?a :p ?b . ?b :p ?c OPTIONAL { ?c :v ?d FILTER(?d < 250) } } GROUP BY ?a ?c",
        "SELECT ?a ?b ?c (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :p ?d } GROUP BY ?a ?b ?c",
        "SELECT ?a ?c (MIN(?v) AS ?m) (MAX(?v) AS ?n) (COUNT(?v) AS ?k) { ?a :p ?b . ?b :p ?c . ?c :p ?d . ?d :v ?v } GROUP BY ?a ?c",
        "SELECT ?a ?d (SUM(?v) AS ?n) { ?a :p ?b . ?b :p ?c OPTIONAL { ?c :q ?d . ?d :v ?v FILTER(?v < 90) } } GROUP BY ?a ?d",
    ] {
        let plan = native(&snapshot, text);
        let want = sorted(here(&plan, &snapshot));
        let _ = first.take_log();
        let (got, used) = mixed(&plan, &snapshot, &demanded(&gpu));
        assert!(used, "{text}");
        assert_eq!(sorted(got), want, "{text}");
        let log = first.take_log();
        let tries = log.iter().filter(|(k, _)| *k == Kernel::GroupSlots).count();
        assert!(tries > 1, "{text}: {tries} launches");
        // In ever less memory, the answer is the same, whether the device or the CPU computes it.
        let footprint = first.holdings().reserved;
        let (mut there_too, mut left) = (0, 0);
        for part in 1..12 {
            let memory = footprint * part / 12;
            let gpu = Arc::new(limited(shim(options), memory).with_reduction(HASHED));
            let (got, used) = mixed(&plan, &snapshot, &rather(&gpu));
            assert_eq!(sorted(got), want, "{text} in {memory} bytes");
            match used {
                true => there_too += 1,
                false => left += 1,
            }
        }
        println!("{text}: {footprint} bytes, {there_too} there, {left} here");
        assert!(left > 0, "{text}");
    }
}

/// Paths from a constant and to one: long and short, with edges from updates, below other operators, in little memory.
#[test]
fn paths_from_one_node_give_the_nodes_of_the_cpu() {
    let (_folder, base) = ring(300, 3);
    let edits = [
        (3, "p", 150, true),
        (4, "q", 11, false),
        (6, "p", 7, false),
        (200, "q", 201, true),
    ];
    let patched = edited(&base, &edits);
    for text in [
        "SELECT ?x { :n0 :p+ ?x }",
        "SELECT ?x { ?x :p+ :n5 }",
        // A chain of 300 levels.
        "SELECT ?x { :n0 :q+ ?x }",
        "SELECT ?x { ?x :q* :n4 }",
        "SELECT ?x { :n0 (:q|^:p)* ?x }",
        "SELECT ?x { ?x ^:q+ :n9 }",
        "SELECT ?x ?y { :n0 :q+ ?x . ?x :p ?y }",
        "SELECT ?x ?y { ?x :p ?y . ?y :q+ :n2 FILTER(?x != :n1) }",
        "SELECT (COUNT(*) AS ?n) { :n0 :p+ ?x . ?x :q ?y }",
        "SELECT ?y (COUNT(*) AS ?n) { :n0 :p* ?x . ?x :p ?y } GROUP BY ?y",
        "SELECT ?x ?v { :n0 :p* ?x . ?x :v ?v } ORDER BY DESC(?v) LIMIT 7",
        "SELECT ?x { :n0 :nothing* ?x }",
        "SELECT ?x ?y { ?x :v 7 . :n0 :v+ ?y }",
        "ASK { :n0 :p+ :n7 }",
    ] {
        for snapshot in [&base, &patched] {
            let plan = native(snapshot, text);
            let want = sorted(here(&plan, snapshot));
            let options = paged(4096);
            let first = shim(options);
            let gpu = Arc::new(GpuExecutor::new(first.clone()));
            let (got, used) = mixed(&plan, snapshot, &demanded(&gpu));
            assert_eq!(sorted(got), want, "{text}");
            // Paths between two constants, and paths that lead nowhere, need no device.
            let plain = text.contains("ASK") || text.contains("nothing");
            assert!(used || plain, "{text}: {:#?}", plan.root);
            let footprint = first.holdings().reserved;
            for part in [1, 2, 5] {
                let memory = footprint / part;
                let gpu = Arc::new(limited(shim(options), memory));
                let (got, _) = mixed(&plan, snapshot, &rather(&gpu));
                assert_eq!(sorted(got), want, "{text} in {memory} bytes");
            }
        }
    }
}

/// A fault at some of the calls to the device: the answer must be the CPU's, and no memory may stay allocated.
#[test]
fn faults_leave_the_answers_of_reductions_right() {
    faults_at(7);
}

#[test]
#[ignore = "minutes: every call"]
fn a_fault_at_each_call_leaves_the_answers_of_reductions_right() {
    faults_at(1);
}

fn faults_at(step: usize) {
    let (_folder, snapshot) = ring(40, 3);
    let dense = ReduceOptions {
        least_sorted: 0,
        ..ReduceOptions::default()
    };
    let (mut runs, mut there_too) = (0, 0);
    for (number, (text, reduction)) in [
        ("SELECT ?a (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?a", dense),
        ("SELECT ?a ?c (COUNT(?d) AS ?n) { ?a :p ?b . ?b :p ?c OPTIONAL { ?c :v ?d FILTER(?d < 20) } } GROUP BY ?a ?c", HASHED),
        ("SELECT (SUM(?v) AS ?s) (MIN(?v) AS ?n) { ?a :p ?b . ?b :v ?v }", dense),
        ("SELECT ?a (MIN(?v) AS ?s) (MAX(?v) AS ?n) { ?a :p ?b . ?b :p ?c . ?c :v ?v } GROUP BY ?a", HASHED),
        ("SELECT ?a ?v { ?a :p ?b . ?b :v ?v } ORDER BY DESC(?v) ?a LIMIT 5", dense),
        ("SELECT ?x ?y { :n0 :p+ ?x . ?x :q ?y }", dense),
    ]
    .into_iter()
    .enumerate()
    {
        let plan = native(&snapshot, text);
        let want = sorted(here(&plan, &snapshot));
        let calls = {
            let shim = shim(ShimOptions::default());
            let whole = Arc::new(DeviceFaults::new(shim, DeviceFault::Error, 0));
            let gpu = Arc::new(GpuExecutor::new(whole.clone()).with_reduction(reduction));
            let (got, used) = mixed(&plan, &snapshot, &demanded(&gpu));
            assert!(used && sorted(got) == want, "{text}");
            whole.calls()
        };
        for fault in DeviceFault::ALL {
            for at in (1 + number as u64 % step as u64..=calls).step_by(step) {
                let case = format!("{text}: {fault:?} at call {at} of {calls}");
                let shim = shim(ShimOptions::default());
                let broken = Arc::new(DeviceFaults::new(shim.clone(), fault, at));
                let gpu = Arc::new(GpuExecutor::new(broken.clone()).with_reduction(reduction));
                let (got, used) = mixed(&plan, &snapshot, &rather(&gpu));
                assert_eq!(sorted(got), want, "{case}");
                runs += 1;
                there_too += u32::from(used);
                drop((gpu, broken));
                holds_nothing(&shim, &case);
            }
        }
    }
    println!("{runs} runs, {there_too} of them on the device");
    assert!(there_too * 2 < runs, "{there_too} of {runs}");
}
