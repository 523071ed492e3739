//! Queries on a device that does queued work as late as possible, so that code that lacks a wait reads memory before it
//! was written.

use crate::common::{edited, holds_nothing, late, native, ring, rows_here, rows_on, shim};
use jindou_gpu::shim::ShimOptions;
use jindou_gpu::{GpuExecutor, GpuOptions};

const QUERIES: [&str; 8] = [
    "SELECT ?a ?b ?c WHERE { ?a :p ?b . ?b :p ?c . ?a :p ?c }",
    "SELECT ?a ?x ?c WHERE { ?a :p ?b . ?b ?x ?c . ?c :q ?d }",
    "SELECT ?a ?c WHERE { ?a :p ?b . ?b :q ?c FILTER(?c != :n3 && ?c != ?b) }",
    "SELECT ?s ?p ?o WHERE { ?s ?p ?o }",
    "SELECT ?a ?b WHERE { ?a :q ?x . ?b :q ?y }",
    "SELECT DISTINCT ?c WHERE { ?a :p ?b . ?b :p ?c . ?c :v ?v FILTER(?v < 40) }",
    "SELECT ?a ?b WHERE { ?a :p ?b FILTER EXISTS { ?b :p ?a } MINUS { ?b :v ?v FILTER(?v < 7) } }",
    "SELECT ?a ?b ?c WHERE { ?a :p ?b OPTIONAL { ?b :q ?c . ?c :v ?v FILTER(?v > 20) } }",
];

#[test]
fn a_device_that_does_all_as_late_as_it_may_gives_the_same_rows() {
    let (_folder, base) = ring(60, 3);
    let patched = edited(&base, &[(3, "p", 30, true), (4, "q", 11, false)]);
    let shim = late(true);
    let gpu = GpuExecutor::new(shim.clone());
    for (text, snapshot) in QUERIES.iter().flat_map(|q| [(q, &base), (q, &patched)]) {
        let plan = native(snapshot, text);
        let want = rows_here(&plan, snapshot);
        for (table_bytes, wait_for_counts) in [(None, false), (None, true), (Some(250_000), false)]
        {
            let options = GpuOptions {
                table_bytes,
                wait_for_counts,
                profile: table_bytes.is_some(),
                ..GpuOptions::default()
            };
            let got = rows_on(&gpu, &plan, snapshot, &options).unwrap();
            assert_eq!(got, want, "{text}");
        }
    }
    drop(gpu);
    holds_nothing(&shim, "afterwards");
}

/// Removes each wait of a query in turn, and checks that this is noticed if the device delays its work; otherwise it
/// would not be.
#[test]
fn a_missing_wait_is_seen_when_work_is_late_and_only_then() {
    let (_folder, snapshot) = ring(60, 3);
    // Each step produces a different number of rows than the step before, so that a stale number leads to a wrong
    // result.
    let distinct = "SELECT DISTINCT ?c WHERE { ?a :p ?b . ?b :p ?c }";
    for text in [QUERIES[0], distinct] {
        let plan = native(&snapshot, text);
        let want = rows_here(&plan, &snapshot);
        // Row counts stay on the device, or the host waits for the count after each step.
        for (wait_for_counts, least) in [(false, 2), (true, 3)] {
            let options = GpuOptions {
                wait_for_counts,
                ..GpuOptions::default()
            };
            // Waits of the query only; closing the device waits, too.
            let waits = {
                let shim = late(true);
                let gpu = GpuExecutor::new(shim.clone());
                rows_on(&gpu, &plan, &snapshot, &options).unwrap();
                shim.asked()
            };
            assert!(waits >= least, "{text}: {waits} waits");
            for unwaited in 1..=waits {
                for delay in [true, false] {
                    let gpu = GpuExecutor::new(shim(ShimOptions {
                        delay,
                        unwaited,
                        ..ShimOptions::default()
                    }));
                    let got = rows_on(&gpu, &plan, &snapshot, &options);
                    let right = got.is_ok_and(|rows| rows == want);
                    assert_eq!(right, !delay, "{text}: wait {unwaited} of {waits}");
                }
            }
        }
    }
}
