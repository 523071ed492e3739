//! Queries whose rows do not fit into memory, and go to temporary files.

use crate::limits::{native, ring, texts};
use jindou_engine::{CollectSink, CountSink, ExecOptions, QueryTerms, execute_streaming};
use jindou_model::{CancelToken, Error, MemoryBudget, QueryTemp, Resource, TempSpace};
use jindou_plan::{Plan, Weight};
use jindou_store::Snapshot;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Queries of which all rows have a defined order.
const SORTED: [&str; 7] = [
    "SELECT ?a ?b ?c { ?a :p ?b . ?b :p ?c } ORDER BY ?c DESC(?a) ?b",
    "SELECT ?c ?a { ?a :p ?b . ?b :p ?c } ORDER BY DESC(?c) ?a",
    "SELECT ?c ?a { ?a :p ?b . ?b :p ?c } ORDER BY ?c DESC(?a) OFFSET 100 LIMIT 15000",
    "SELECT ?a ?c { ?a :p ?b . ?b :p ?c } ORDER BY CONCAT(STR(?c), 'x', STR(?a))",
    "SELECT ?a ?c { ?a :p ?b . ?b :p ?c } ORDER BY STRLEN(STR(?c)) DESC(CONCAT(STR(?c), STR(?a))) LIMIT 20000",
    "SELECT ?a ?c ?n { { SELECT ?a ?c (STRLEN(STR(?c)) * 1000 AS ?n) { ?a :p ?b . ?b :p ?c } } } ORDER BY DESC(?n) ?c ?a",
    "SELECT ?a ?c ?n { { SELECT ?a ?c (CONCAT(STR(?c), 'y') AS ?n) { ?a :p ?b . ?b :p ?c } } } ORDER BY ?n ?a",
];

/// Queries whose rows have no order: sets, groups with aggregates of all kinds, groups with many distinct values.
const UNORDERED: [&str; 8] = [
    "SELECT DISTINCT ?a ?b ?c { ?a :p ?b . ?b :p ?c }",
    "SELECT DISTINCT ?a ?c ?d { ?a :p ?b . ?b :p ?c . ?c :p ?d }",
    "SELECT ?a ?b ?c (COUNT(*) AS ?n) { ?a :p ?b . ?b :p ?c } GROUP BY ?a ?b ?c",
    "SELECT ?a ?c (COUNT(DISTINCT ?b) AS ?n) (COUNT(*) AS ?m) { ?a :p ?b . ?b :p ?c } GROUP BY ?a ?c",
    "SELECT (COUNT(DISTINCT *) AS ?n) { ?a :p ?b . ?b :p ?c }",
    "SELECT ?z (COUNT(DISTINCT *) AS ?n) { ?a :p ?b . ?b :p ?c BIND(1 AS ?z) } GROUP BY ?z",
    "SELECT ?a ?c (SUM(?l) AS ?s) (AVG(?l) AS ?v) (MIN(?b) AS ?x) (MAX(?b) AS ?y) (SAMPLE(?a) AS ?w) \
     { ?a :p ?b . ?b :p ?c BIND(STRLEN(STR(?b)) AS ?l) } GROUP BY ?a ?c",
    "SELECT ?a ?c (SUM(DISTINCT ?l) AS ?s) (GROUP_CONCAT(DISTINCT ?l) AS ?t) (COUNT(DISTINCT ?b) AS ?n) \
     { ?a :p ?b . ?b :p ?c BIND(STRLEN(STR(?c)) AS ?l) } GROUP BY ?a ?c",
];

fn temp(limit: u64, folder: &Path) -> (Arc<TempSpace>, QueryTemp) {
    let space = Arc::new(TempSpace::new(Some(1 << 40)));
    let temp = QueryTemp::new(Arc::clone(&space), folder.into(), limit);
    (space, temp)
}

type Rows = Vec<Vec<u8>>;

/// Runs a plan with a budget. Returns the values of all rows, the bytes written, and the largest number of bytes held.
fn run(
    snapshot: &Snapshot,
    plan: &Plan,
    threads: usize,
    memory: u64,
    folder: &Path,
) -> Result<(Rows, u64, u64), Error> {
    let (space, temp) = temp(1 << 40, folder);
    let memory = MemoryBudget::new(memory);
    let options = ExecOptions {
        threads,
        batch_rows: 256,
        memory: memory.clone(),
        temp: Some(temp),
        ..ExecOptions::default()
    };
    let (mut sink, terms) = (CollectSink::default(), QueryTerms::new());
    let done = execute_streaming(plan, snapshot, &options, &terms, &mut sink);
    assert_eq!(
        (space.used(), std::fs::read_dir(folder).unwrap().count()),
        (0, 0)
    );
    let spilled = done?.spilled;
    assert_eq!(spilled, space.written());
    Ok((texts(snapshot, &terms, &sink), spilled, memory.peak()))
}

/// Rows are the same, and in the same order if one is defined, with memory for all of them and for a part.
#[test]
fn answers_do_not_depend_on_the_memory() {
    let (_folder, snapshot) = ring(400, 30);
    let folder = tempfile::tempdir().unwrap();
    for text in SORTED {
        let mut plan = native(&snapshot, text);
        for (threads, weight) in [(1, Weight::Light), (3, Weight::Heavy)] {
            plan.weight = weight;
            let (want, none, peak) =
                run(&snapshot, &plan, threads, 1 << 30, folder.path()).unwrap();
            assert_eq!(none, 0, "{text}");
            // Terms that the query creates stay in memory.
            let parts = if text.contains("AS ?n") { 2..3 } else { 2..11 };
            for part in parts.step_by(4) {
                let (got, spilled, most) =
                    run(&snapshot, &plan, threads, peak / part, folder.path())
                        .unwrap_or_else(|e| panic!("{text}: 1/{part} of {peak}: {e}"));
                assert!(
                    spilled > 0 && most <= peak / part,
                    "{text}: 1/{part} of {peak}"
                );
                assert!(got == want, "{text}: 1/{part}");
            }
        }
    }
}

/// Sets and groups are the same with memory for all of them and for a part.
#[test]
fn sets_and_groups_do_not_depend_on_the_memory() {
    let (_folder, snapshot) = ring(400, 20);
    let folder = tempfile::tempdir().unwrap();
    for text in UNORDERED {
        let mut plan = native(&snapshot, text);
        let width = plan.output.len();
        let sorted = |rows: Rows| {
            let mut rows: Vec<Rows> = rows.chunks(width).map(<[_]>::to_vec).collect();
            rows.sort();
            rows
        };
        for (threads, weight) in [(1, Weight::Light), (3, Weight::Heavy)] {
            plan.weight = weight;
            let (want, none, peak) =
                run(&snapshot, &plan, threads, 1 << 30, folder.path()).unwrap();
            assert_eq!(none, 0, "{text}");
            let want = sorted(want);
            // Terms that the query creates, and the batches, take a megabyte.
            for part in [2, 4].into_iter().filter(|part| peak / part > 2 << 20) {
                let ran = run(&snapshot, &plan, threads, peak / part, folder.path());
                let (got, spilled, most) = match ran {
                    // A worker that has nothing to write does not get the memory that others hold.
                    Err(e) if threads > 1 && e.is_of_memory() => continue,
                    ran => ran.unwrap_or_else(|e| panic!("{text}: 1/{part} of {peak}: {e}")),
                };
                assert!(
                    spilled > 0 && most <= peak / part,
                    "{text}: 1/{part} of {peak}, {threads} threads: {spilled} written"
                );
                assert!(sorted(got) == want, "{text}: 1/{part}, {threads} threads");
            }
        }
    }
}

/// Rows with equal keys stay in the order in which they came.
#[test]
fn sorting_with_files_is_stable() {
    let (_folder, snapshot) = ring(300, 20);
    let folder = tempfile::tempdir().unwrap();
    let plan = native(
        &snapshot,
        "SELECT ?a ?c { ?a :p ?b . ?b :p ?c } ORDER BY ?c",
    );
    let (want, _, peak) = run(&snapshot, &plan, 1, 1 << 30, folder.path()).unwrap();
    let (got, spilled, _) = run(&snapshot, &plan, 1, peak / 8, folder.path()).unwrap();
    assert!(spilled > 0 && got == want);
}

/// Without permission for files, a query ends at its memory limit; with too few bytes of them, at that limit.
#[test]
fn limits_and_failures_of_files_end_the_query() {
    let (_folder, snapshot) = ring(300, 20);
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for text in &SORTED[..5] {
        let plan = native(&snapshot, text);
        let end = |temp: Option<QueryTemp>| {
            let options = ExecOptions {
                memory: MemoryBudget::new(1 << 20),
                temp,
                ..ExecOptions::default()
            };
            let mut sink = CountSink::default();
            let e = execute_streaming(&plan, &snapshot, &options, &QueryTerms::new(), &mut sink);
            assert_eq!(options.memory.used(), 0);
            e.unwrap_err()
        };
        assert!(end(None).is_of_memory(), "{text}");
        let (space, little) = temp(100_000, folder.path());
        let e = end(Some(little));
        assert!(
            matches!(&e, Error::Limit(l) if l.resource == Resource::Disk),
            "{text}: {e}"
        );
        assert_eq!(space.used(), 0);
        let e = end(Some(temp(1 << 40, &missing).1));
        assert!(
            e.to_string().contains("temporary file") && matches!(e, Error::Io { .. }),
            "{e}"
        );
    }
}

#[test]
fn cancelling_frees_the_files() {
    let (_folder, snapshot) = ring(400, 40);
    let folder = tempfile::tempdir().unwrap();
    let text = "SELECT ?a ?d { ?a :p ?b . ?b :p ?c . ?c :p ?d } ORDER BY ?d ?a";
    let mut plan = native(&snapshot, text);
    for (threads, weight) in [(1, Weight::Light), (3, Weight::Heavy)] {
        plan.weight = weight;
        for millis in [30, 200, 600] {
            let (space, temp) = temp(1 << 40, folder.path());
            let options = ExecOptions {
                threads,
                memory: MemoryBudget::new(4 << 20),
                cancel: CancelToken::with_deadline(Duration::from_millis(millis)),
                temp: Some(temp),
                ..ExecOptions::default()
            };
            let mut sink = CountSink::default();
            let end = execute_streaming(&plan, &snapshot, &options, &QueryTerms::new(), &mut sink);
            assert!(matches!(end, Err(Error::Timeout(_))), "{end:?}");
            assert_eq!((options.memory.used(), space.used()), (0, 0));
        }
    }
}
